//! Web caches that share summaries of their contents, so that each asks another only for responses that it probably has.
//!
//! A cache keeps a [`Summary`] of the [keys](CacheKey) for which it has responses: a counting filter, since responses
//! come and go, and a plain Bloom filter of the counters that are not zero. Peers fetch these bits, or only the bits that
//! have changed since they last asked, as an [`Update`]. The [`View`]s that a cache has of its [`Peers`] tell it which of
//! them to ask for a response that it does not have itself (Fan et al. 2000). A false positive costs one request and
//! never a wrong response, since responses always come from a cache or origin that has them.
//!
//! Responses are kept in a [`store`], which maintains the summary. The [`rules`] of HTTP decide which responses may be
//! stored and when they may be reused (RFC 9111). The [`proxy`] puts all of this together.
//!
//! Squid exchanges [cache digests](CacheDigest), plain Bloom filters that it rebuilds every hour. Both formats hash the
//! same [`CacheKey`], so that one MD5 serves all peers.
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
//! # References
//!
//! L. Fan, P. Cao, J. Almeida, A. Broder: Summary Cache. IEEE/ACM Transactions on Networking 8 (2000).
//! M. Mitzenmacher: Compressed Bloom Filters. IEEE/ACM Transactions on Networking 10 (2002).

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
pub use peers::{PeerCounts, PeerId, PeerOutcome, Peers};
pub use summary::{PublishTrigger, Summary};
pub use update::{Applied, Update, Version, View};
