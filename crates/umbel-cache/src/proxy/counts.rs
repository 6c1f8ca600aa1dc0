//! What is counted of a proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that grows, seen by all who have it.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter(Arc<AtomicU64>);

impl Counter {
    pub fn one(&self) {
        self.add(1);
    }

    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What is counted of a proxy.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Requests for pages, tunnels and the proxy's own.
    pub requests: Counter,
    /// Answered from the cache as it was.
    pub hits: Counter,
    /// Answered from the cache after the origin has said that nothing has changed.
    pub revalidated: Counter,
    /// Answered by a peer.
    pub peer_hits: Counter,
    /// Answered by the origin.
    pub misses: Counter,
    /// Not answered since nothing else than the cache was wanted.
    pub only_if_cached: Counter,
    /// Waited for what somebody else fetched.
    pub collapsed: Counter,
    pub tunnels: Counter,
    /// Not permitted, or not understood.
    pub refused: Counter,
    /// The origin could not be asked, or did not answer.
    pub failed: Counter,
    /// Documents that came to an end too early, or were too large, and were not kept.
    pub dropped: Counter,
    pub stored: Counter,
    /// Not kept since they were asked for the first time.
    pub not_admitted: Counter,
    /// The filter before the index said no, or said yes in vain.
    pub filter_denied: Counter,
    pub filter_false_hits: Counter,
    /// Bytes of bodies.
    pub bytes_from_cache: Counter,
    pub bytes_from_peers: Counter,
    pub bytes_from_origins: Counter,
    pub bytes_tunnelled: Counter,
}
