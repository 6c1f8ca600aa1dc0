//! Unsafe web addresses: a small filter says "certainly not listed" to nearly all, and the exact list has the last word.
//!
//! 1. An [`Address`] is made canonical, so that what browsers take for the same is written the same.
//! 2. Its [expressions](Address::expressions) are its host and up to four parents of it, each with its path and up to five
//!    parents of that: `evil.example/` on the list stands for everything below it.
//! 3. The filter holds the first bytes of their SHA-256 hashes. A no is certain.
//! 4. To a yes the exact list is asked by those first bytes, and answers with whole hashes ([`Confirm`]). Only a whole hash is
//!    a verdict: the filter is wrong at its rate, and first bytes collide.
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
//! This is the protocol of Safe Browsing. Chrome's first versions kept the first 32 bits of the hashes in a Bloom filter
//! as here; later ones keep them as a sorted set of differences, which is exact. Either way first bytes collide, and the
//! whole hash has to be asked for.

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
