//! Third-party cuckoo filters: `cuckoofilter` (8-bit fingerprints for every rate) and
//! `scalable_cuckoo_filter`.

use super::{Filter, Job};
use crate::keys::{Key, List};
use ::cuckoofilter::CuckooFilter;
use rand::{SeedableRng, rngs::StdRng};
use scalable_cuckoo_filter::{
    DefaultHasher as TheirHasher, ScalableCuckooFilter, ScalableCuckooFilterBuilder,
};
use std::hash::DefaultHasher;

pub type Plain = CuckooFilter<DefaultHasher>;

impl<K: Key + ?Sized> Filter<K> for Plain {
    fn create(job: &Job) -> Self {
        // It rounds up to a power of two, or to the next if that leaves too little room.
        let slots = (job.n as f64 / 0.94).ceil() as usize;
        CuckooFilter::with_capacity(slots)
    }

    /// It cannot be emptied; a new one has touched all its memory.
    fn wipe(&mut self) {}

    fn insert_all(&mut self, keys: K::List<'_>) {
        for key in keys.iter() {
            self.add(key).expect("room for n keys");
        }
    }

    fn count(&self, keys: K::List<'_>) -> u64 {
        keys.iter().map(|key| u64::from(self.contains(key))).sum()
    }

    fn memory_bits(&self) -> u64 {
        self.memory_usage() as u64 * 8
    }
}

/// Planned for all keys.
pub struct Scalable<K: ?Sized>(ScalableCuckooFilter<K, TheirHasher, StdRng>);

impl<K: Key + ?Sized> Filter<K> for Scalable<K> {
    fn create(job: &Job) -> Self {
        let builder = ScalableCuckooFilterBuilder::new().rng(StdRng::seed_from_u64(job.seed));
        Scalable(builder.initial_capacity(job.n as usize).false_positive_probability(job.p).finish())
    }

    /// It cannot be emptied; a new one has touched all its memory.
    fn wipe(&mut self) {}

    fn insert_all(&mut self, keys: K::List<'_>) {
        for key in keys.iter() {
            self.0.insert(key);
        }
    }

    fn count(&self, keys: K::List<'_>) -> u64 {
        keys.iter().map(|key| u64::from(self.0.contains(key))).sum()
    }

    fn memory_bits(&self) -> u64 {
        self.0.bits()
    }
}
