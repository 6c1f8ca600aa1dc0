//! Weak passwords in a filter: a candidate that may be among them is refused.
//!
//! A false positive refuses a good password, and another one is chosen; a weak one is never let through (Spafford 1992,
//! "Opus"). What makes a filter of passwords different from any other:
//!
//! - *Both sides agree.* A [`Recipe`] says how a password becomes a key: in Unicode's form NFKC, in lower case if
//!   wanted, or as SHA-1, in which leaked lists are published. It travels in the filter's metadata, and whoever asks or
//!   adds follows it.
//! - *It does not leak.* Passwords that were used before are added one by one, and who sees the filter before and after
//!   has the bits of one word: with a public hash a dictionary gives it away. So the hash has a secret
//!   ([`Hasher::sealed`](umbel::Hasher::sealed)). A [`Slow`] hash before it makes every guess dear even for whoever has stolen the secret too.
//! - *Nothing is left in memory.* Lines and normalised words are wiped when they are not needed any more.
//!
//! ```
//! use umbel::{Blocked, Bloom, Hasher, file::Meta};
//! use umbel_text::password::{Digester, Recipe};
//!
//! let hasher = Hasher::sealed([7; 32]);
//! let mut weak = Bloom::<Blocked>::with_capacity(100_000, 0.001)?;
//! let mut digester = Digester::new(Recipe::default(), hasher);
//! for word in ["letmein", "Ⅷth-floor"] {
//!     digester.each(word.as_bytes(), |digest| {
//!         weak.insert_digest(digest);
//!         Ok(())
//!     })?;
//! }
//! // What is needed beside the filter and its secret, to ask in the same way.
//! let mut meta = Meta::new();
//! digester.recipe().record(&mut meta);
//!
//! let mut digester = Digester::new(Recipe::from_meta(&meta)?, Hasher::sealed([7; 32]));
//! let mut refused = |candidate: &str| digester.is_weak(candidate.as_bytes(), &weak);
//! assert!(refused("letmein")?);
//! assert!(refused("VIIIth-floor")?, "the same letters, written differently");
//! assert!(!refused("correct horse battery staple")?);
//! # Ok::<(), umbel_text::Error>(())
//! ```
//!
//! [`List`] reads lists of words, or of SHA-1 hashes with counts in the form in which Have I Been Pwned publishes
//! them. That service itself is no Bloom filter: it is asked for five of forty digits and answers with all hashes that
//! start so, which is what [`RangeList`] does.

mod list;
mod range;
mod recipe;

pub use list::{List, Lists, Pwned};
pub use range::{Prefix, RangeList, Suffix, scan};
pub use recipe::{Digester, Form, Recipe, Slow, normalised, sha1};
