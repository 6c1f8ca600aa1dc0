//! Counts of invalidations, by which a response that was requested before an invalidation is
//! recognized.

use crate::CacheKey;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of invalidations of a key up to some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidationCount(u64);

/// The number of counters. Keys that share one are invalidated together, which costs an extra
/// fetch.
const COUNTERS: usize = 1 << 16;

/// Counts of invalidations, shared by keys with the same hash.
#[derive(Debug)]
pub(super) struct Invalidations {
    counters: Box<[AtomicU64]>,
    /// A random hasher, so that no client can choose keys that share a counter.
    hasher: RandomState,
}

impl Invalidations {
    pub fn new() -> Invalidations {
        let counters = (0..COUNTERS).map(|_| AtomicU64::new(0)).collect();
        Invalidations { counters, hasher: RandomState::new() }
    }

    fn counter(&self, key: &CacheKey) -> &AtomicU64 {
        &self.counters[self.hasher.hash_one(key) as usize % COUNTERS]
    }

    pub fn count(&self, key: &CacheKey) -> InvalidationCount {
        InvalidationCount(self.counter(key).load(Relaxed))
    }

    pub fn increment(&self, key: &CacheKey) {
        self.counter(key).fetch_add(1, Relaxed);
    }
}
