//! `qfilter`: a rank-and-select quotient filter. It has its own hash; XXH3-64 inside the timed loop
//! is faster.

use super::{Filter, Job};
use crate::keys::{Key, List};

pub type Quotient = ::qfilter::Filter;

impl<K: Key + ?Sized> Filter<K> for Quotient {
    fn create(job: &Job) -> Self {
        ::qfilter::Filter::new(job.n, job.p).expect("a valid size")
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn insert_all(&mut self, keys: K::List<'_>) {
        for key in keys.iter() {
            self.insert_fingerprint(false, key.xxh3()).expect("room for n keys");
        }
    }

    fn count(&self, keys: K::List<'_>) -> u64 {
        keys.iter().map(|key| u64::from(self.contains_fingerprint(key.xxh3()))).sum()
    }

    fn memory_bits(&self) -> u64 {
        self.memory_usage() as u64 * 8
    }
}
