//! A filter of weak passwords. It refuses candidates that may be weak.
//!
//! A false positive refuses a good password, and the user chooses another one. A weak password is
//! never accepted (Spafford 1992, "Opus"). A filter of passwords differs from others in three ways:
//!
//! - *Building and checking agree.* A [`Recipe`] describes how a password becomes a key: in
//!   Unicode's form NFKC, optionally in lower case, or as the SHA-1 or NTLM hash that leaked lists
//!   contain. It is stored in the filter's metadata, and applies to every query and insertion.
//! - *The filter does not leak passwords.* Passwords that were used before are added one by one. A
//!   comparison of the filter before and after an insertion shows the bits of one word, and with a
//!   public hash a dictionary reveals it. So the hash has a secret
//!   ([`Hasher::sealed`](umbel::Hasher::sealed)). A [`Slow`] hash before it makes every guess
//!   expensive, even for an attacker who has stolen the secret, too.
//! - *No password stays in memory.* Lines and normalised words are wiped when they are no longer
//!   needed.
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
//! // Apart from the filter and its secret, a query needs the recipe in the metadata.
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
//! [`List`] reads lists of words, or of SHA-1 or NTLM hashes with counts in the format of Have I
//! Been Pwned. That service is not a Bloom filter: a client sends the first five digits and receives
//! all hashes that start with them, which is how [`RangeList`] works.

mod hash;
mod list;
mod range;
mod recipe;

pub use hash::{Algorithm, PasswordHash, ntlm, sha1};
pub use list::{List, Lists, Pwned};
pub use range::{Prefix, RangeList, Suffix, scan};
pub use recipe::{Digester, Form, Recipe, Slow, normalised};
