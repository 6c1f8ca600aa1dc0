//! Web caches that tell each other what they hold, in a few bits for each document, and ask each other only for what the
//! other may have.
//!
//! A cache keeps a [`Summary`] of its documents: a counting filter, since documents come and go, and the bits of those
//! counters that are not zero. Other caches get those bits, all of them or only what has changed since they last asked, as an
//! [`Update`]. What a cache knows of the others is a board of [`Peers`]: for a document it does not have, it looks at all
//! summaries and asks only the caches that promise it. (Fan et al. 2000) A promise may be wrong, which costs a question;
//! what is served is never wrong, for it comes from whoever has it.
//!
//! Documents are in a [`store`], which keeps its summary with it; what may be kept and given again is a matter of [`rules`].
//!
//! Squid exchanges [digests](CacheDigest), plain filters that it makes anew every hour. Both kinds find a document's bits by the
//! same [`CacheKey`], so that one hash of it does for all caches.
//!
//! ```
//! use umbel_cache::{Applied, CacheKey, Summary, Update, View};
//!
//! let mut summary = Summary::new(1000, 16)?;
//! summary.insert(&CacheKey::from_url("http://example.org/"));
//! summary.publish()?;
//! let (mut view, update) = (View::default(), summary.update(None));
//! assert_eq!(view.apply(&Update::decode(&update.encode())?)?, Applied::Replaced);
//! assert!(view.contains(&CacheKey::from_url("http://example.org/")));
//! assert!(!view.contains(&CacheKey::from_url("http://example.org/other")));
//! # Ok::<(), umbel_cache::Error>(())
//! ```

mod cache_digest;
mod cache_key;
mod error;

mod headers;
mod key_filter;
mod peers;
pub mod proxy;
pub mod rules;
pub mod store;
mod summary;
mod sync;
mod update;

pub use cache_digest::CacheDigest;
pub use cache_key::CacheKey;
pub use error::{Error, Result};
pub use peers::{Counts, Outcome, PeerId, Peers};
pub use summary::{Summary, Trigger};
pub use update::{Applied, Update, Version, View};
