//! The counters of a proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter. Clones share its value.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter(Arc<AtomicU64>);

impl Counter {
    pub fn increment(&self) {
        self.add(1);
    }

    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counters of a proxy. Counters without a unit count requests.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// All requests: for resources, tunnels and the proxy's own pages.
    pub requests: Counter,
    /// Answered with a fresh stored response.
    pub hits: Counter,
    /// Answered with a stored response that the origin has revalidated.
    pub revalidated: Counter,
    /// Answered by a peer.
    pub peer_hits: Counter,
    /// Answered by the origin.
    pub misses: Counter,
    /// Failed with `only-if-cached`, as no stored response was usable.
    pub only_if_cached: Counter,
    /// Waited for a fetch by another request.
    pub collapsed: Counter,
    pub tunnels: Counter,
    /// Not permitted or not understood.
    pub refused: Counter,
    /// Clients and tunnels for which there was no place.
    pub turned_away: Counter,
    /// Failed because the origin was unreachable or did not respond.
    pub origin_failures: Counter,
    /// Responses that were incomplete or too large to be stored.
    pub dropped: Counter,
    /// Responses stored.
    pub stored: Counter,
    /// Responses not stored because it was the first request for their key.
    pub not_admitted: Counter,
    /// Misses that the filter before the index recognized.
    pub filter_denied: Counter,
    /// Misses that only the index recognized.
    pub filter_false_hits: Counter,
    /// Bytes of bodies.
    pub bytes_from_cache: Counter,
    pub bytes_from_peers: Counter,
    pub bytes_from_origins: Counter,
    pub bytes_tunnelled: Counter,
}
