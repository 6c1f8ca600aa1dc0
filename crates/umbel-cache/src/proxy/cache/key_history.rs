//! The proxy's memory of keys without stored responses: aging Bloom filters of keys that were
//! requested, that could not be stored, and that were invalidated.
//!
//! Clients choose the keys and can observe which of them are admitted, so the filters hash with a
//! secret that nothing outside the process knows.

use crate::CacheKey;
use std::sync::Mutex;
use umbel::internals::sync::lock;
use umbel::{Aging, Hasher, Result};

/// Which responses are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdmissionPolicy {
    /// All responses that may be stored.
    #[default]
    All,
    /// Responses that were requested before. Three of four resources are requested only once, and
    /// they should not evict others.
    SecondHit,
}

/// The number of requested keys that are remembered.
const REQUESTED_KEYS: u64 = 1 << 20;
/// The number of keys with uncacheable responses that are remembered.
const UNCACHEABLE_KEYS: u64 = 1 << 16;
/// The number of invalidated keys that are remembered.
const INVALIDATED_KEYS: u64 = 1 << 16;
/// The rate of false positives of the filters.
const FALSE_POSITIVE_RATE: f64 = 0.01;

/// The recent history of keys.
pub(super) struct KeyHistory {
    /// Requested keys, with [`AdmissionPolicy::SecondHit`] only.
    requested: Option<Mutex<Aging>>,
    uncacheable: Mutex<Aging>,
    invalidated: Mutex<Aging>,
}

impl KeyHistory {
    pub fn new(policy: AdmissionPolicy) -> Result<KeyHistory> {
        let hasher = Hasher::random()?;
        let new = |capacity| {
            let filter = Aging::builder().capacity(capacity).rate(FALSE_POSITIVE_RATE);
            filter.hasher(hasher.clone()).build().map(Mutex::new)
        };
        let requested = match policy {
            AdmissionPolicy::All => None,
            AdmissionPolicy::SecondHit => Some(new(REQUESTED_KEYS)?),
        };
        Ok(KeyHistory { requested, uncacheable: new(UNCACHEABLE_KEYS)?, invalidated: new(INVALIDATED_KEYS)? })
    }

    /// Records a request for a key and returns whether its response should be stored. A false
    /// positive of the filter admits one response in a hundred too early.
    pub fn admits(&self, key: &CacheKey) -> bool {
        self.requested.as_ref().is_none_or(|requested| !lock(requested).insert(&key.bytes()[..]))
    }

    /// Records that the response for a key cannot be stored, so that requests need not wait for
    /// each other.
    pub fn mark_uncacheable(&self, key: &CacheKey) {
        // If the insertion fails, requests wait.
        let _ = lock(&self.uncacheable).insert(&key.bytes()[..]);
    }

    /// Returns whether the last response for a key could not be stored.
    pub fn is_uncacheable(&self, key: &CacheKey) -> bool {
        lock(&self.uncacheable).contains(&key.bytes()[..])
    }

    /// Records that a request through this proxy has invalidated a key, which peers cannot know.
    pub fn mark_invalidated(&self, key: &CacheKey) {
        let _ = lock(&self.invalidated).insert(&key.bytes()[..]);
    }

    /// Returns whether a key was invalidated recently.
    pub fn is_invalidated(&self, key: &CacheKey) -> bool {
        lock(&self.invalidated).contains(&key.bytes()[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::hash::Strength;

    #[test]
    fn the_second_request_for_a_key_is_admitted() {
        let history = KeyHistory::new(AdmissionPolicy::SecondHit).unwrap();
        let keys: Vec<CacheKey> =
            (0..1000).map(|i| CacheKey::from_url(&format!("http://example.org/{i}"))).collect();
        let first = keys.iter().filter(|key| history.admits(key)).count();
        assert!(first <= 20, "{first} of 1000 at once");
        assert!(keys.iter().all(|key| history.admits(key)));
        let all = KeyHistory::new(AdmissionPolicy::All).unwrap();
        assert!(keys.iter().all(|key| all.admits(key)));
    }

    #[test]
    fn two_proxies_hash_keys_with_different_secrets() {
        let hashers = || {
            let history = KeyHistory::new(AdmissionPolicy::SecondHit).unwrap();
            let filters = [history.requested.unwrap(), history.uncacheable, history.invalidated];
            filters.map(|filter| lock(&filter).hasher().clone())
        };
        let (one, other) = (hashers(), hashers());
        assert!(one.iter().all(|hasher| hasher.id().strength == Strength::Keyed && !other.contains(hasher)));
    }
}
