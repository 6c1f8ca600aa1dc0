//! What is worth a place in the cache, what is never kept, and what has changed: filters that forget.

use crate::CacheKey;
use crate::sync::lock;
use std::sync::Mutex;
use umbel::{Aging, Result};

/// Which documents get a place in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdmissionPolicy {
    /// All that may be kept.
    #[default]
    All,
    /// Those that were asked for before. Three of four documents are asked for once and never again; they do not get a place
    /// that another had.
    SecondHit,
}

/// Of how many documents it is remembered that they were asked for, that they cannot be kept, that they were changed.
const ASKED: u64 = 1 << 20;
const PASSED: u64 = 1 << 16;
const CHANGED: u64 = 1 << 16;
const RATE: f64 = 0.01;

/// What is worth a place, and what cannot have one.
pub(super) struct Admission {
    asked: Option<Mutex<Aging>>,
    passed: Mutex<Aging>,
    changed: Mutex<Aging>,
}

impl Admission {
    pub fn new(admit: AdmissionPolicy) -> Result<Admission> {
        let new = |capacity| Aging::with_capacity(capacity, RATE).map(Mutex::new);
        let asked = match admit {
            AdmissionPolicy::All => None,
            AdmissionPolicy::SecondHit => Some(new(ASKED)?),
        };
        Ok(Admission { asked, passed: new(PASSED)?, changed: new(CHANGED)? })
    }

    /// Notes that a document is asked for; whether it gets a place. A filter that mistakes it for another gives it one too
    /// early, in one of a hundred cases.
    pub fn admits(&self, key: &CacheKey) -> bool {
        self.asked.as_ref().is_none_or(|asked| !lock(asked).insert(&key.bytes()[..]))
    }

    /// Notes that a document cannot be kept: nobody needs to wait until somebody else has fetched it.
    pub fn pass(&self, key: &CacheKey) {
        // If it is not noted they wait.
        let _ = lock(&self.passed).insert(&key.bytes()[..]);
    }

    /// Notes that a document was changed through here, which others do not know.
    pub fn note_change(&self, key: &CacheKey) {
        let _ = lock(&self.changed).insert(&key.bytes()[..]);
    }

    /// Whether a document was changed of late.
    pub fn has_changed(&self, key: &CacheKey) -> bool {
        lock(&self.changed).contains(&key.bytes()[..])
    }

    /// Whether a document could not be kept when it was last asked for.
    pub fn is_passed(&self, key: &CacheKey) -> bool {
        lock(&self.passed).contains(&key.bytes()[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_time_is_the_first_to_get_a_place() {
        let admission = Admission::new(AdmissionPolicy::SecondHit).unwrap();
        let keys: Vec<CacheKey> =
            (0..1000).map(|i| CacheKey::from_url(&format!("http://example.org/{i}"))).collect();
        let first = keys.iter().filter(|key| admission.admits(key)).count();
        assert!(first <= 20, "{first} of 1000 at once");
        assert!(keys.iter().all(|key| admission.admits(key)));
        let all = Admission::new(AdmissionPolicy::All).unwrap();
        assert!(keys.iter().all(|key| all.admits(key)));
    }
}
