//! Checks web addresses against a list of unsafe ones. A small filter rules out nearly all
//! addresses, and the exact list confirms the rest.
//!
//! 1. An [`Address`] is made canonical, so that spellings that browsers treat as the same address
//!    become equal.
//! 2. Its [expressions](Address::expressions) are its host and up to four parents of it, each with
//!    its path and up to five parents of that. `evil.example/` on the list stands for everything
//!    below it.
//! 3. The filter holds the first bytes of their SHA-256 hashes. A "no" is certain.
//! 4. After a "yes", the exact list is queried with those first bytes and returns whole hashes
//!    ([`Confirm`]). Only a whole hash decides, since the filter has false positives and first
//!    bytes collide.
//!
//! ```
//! use umbel_text::address::{Address, Exact, Screen, Verdict};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("exact");
//! let listed = ["evil.example", "http://host.example/bad/"].map(|line| Address::parse(line.as_bytes()).unwrap());
//! let (mut screen, hashes) = Screen::build(&listed, 0.001)?;
//! Exact::save(&path, &hashes, true)?;
//!
//! let mut exact = Exact::open(&path)?;
//! let mut ask = |url: &str| screen.check(&Address::parse(url.as_bytes()).unwrap(), Some(&mut exact));
//! assert_eq!(ask("http://www.EVIL.example/any?thing")?, Verdict::Unsafe("evil.example/".into()));
//! assert_eq!(ask("http://host.example/b%61d/../bad/page")?, Verdict::Unsafe("host.example/bad/".into()));
//! assert_eq!(ask("http://host.example/good/")?, Verdict::Clear);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This is the protocol of Safe Browsing. The first versions of Chrome stored the first 32 bits of
//! the hashes in a Bloom filter, as here. Later versions store them as an exact, sorted set of
//! differences. In both designs first bytes collide, and the whole hash has to be requested.

mod canonical;
mod exact;
mod expressions;
mod host;
mod listed;
mod screen;

pub use canonical::{Address, Invalid};
pub use exact::Exact;
pub use expressions::Expressions;
pub use screen::{Confirm, Full, Screen, ScreenStats, Verdict, sha256};
