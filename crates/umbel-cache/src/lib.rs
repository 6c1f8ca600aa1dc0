//! Web caches that share summaries of their contents, so that each asks another only for responses
//! that it probably has.
//!
//! A cache maintains a [`Summary`] of the [keys](CacheKey) for which it has responses: a counting
//! filter, since responses come and go, and a plain Bloom filter of the nonzero counters. Peers
//! fetch these bits, or only the bits that have changed since their last request, as an [`Update`].
//! When a cache does not have a response itself, the [`View`]s of its [`Peers`] determine the peers
//! that are worth a request (Fan et al. 2000). A false positive costs one request and never a wrong
//! response, since responses always come from a cache or origin that has them.
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
//!
//! # Modules
//!
//! * The root has the building blocks: [`CacheKey`], [`Summary`], [`Update`], [`View`] and
//!   [`Peers`].
//! * [`store`] has responses on disk, and maintains the summary of their keys.
//! * [`rules`] decides which responses may be stored and when they may be reused, as HTTP requires
//!   (RFC 9111).
//! * [`proxy`] is the caching proxy that puts all of this together. Its documentation follows a
//!   request through its modules.
//!
//! Squid exchanges [cache digests](CacheDigest), plain Bloom filters that it rebuilds every hour.
//! Both formats hash the same [`CacheKey`], so that one MD5 serves all peers.
//!
//! # References
//!
//! * L. Fan, P. Cao, J. Almeida and A. Broder. *Summary cache: a scalable wide-area web cache
//!   sharing protocol.* IEEE/ACM Transactions on Networking 8(3), 2000. `FCAB00`
//! * M. Mitzenmacher. *Compressed Bloom filters.* IEEE/ACM Transactions on Networking 10(5), 2002.
//!   `Mitzenmacher02`

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
mod update;

pub use cache_digest::CacheDigest;
pub use cache_key::CacheKey;
pub use error::{Error, Result};
pub use peers::{PeerCounts, PeerId, PeerOutcome, Peers};
pub use summary::{PublishTrigger, Summary};
pub use update::{Applied, Update, Version, View};
