//! `fastbloom-rs`: a counting filter with 4-bit counters and double hashing with a remainder per
//! probe.

use super::{Filter, Job};
use crate::keys::{Key, List};
use ::fastbloom_rs::{CountingBloomFilter, FilterBuilder, Membership};

pub type Counting = CountingBloomFilter;

impl<K: Key + ?Sized> Filter<K> for Counting {
    fn create(job: &Job) -> Self {
        FilterBuilder::new(job.n, job.p).build_counting_bloom_filter()
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn insert_all(&mut self, keys: K::List<'_>) {
        for key in keys.iter() {
            key.with_bytes(|bytes| self.add(bytes));
        }
    }

    fn count(&self, keys: K::List<'_>) -> u64 {
        keys.iter().map(|key| u64::from(key.with_bytes(|bytes| self.contains(bytes)))).sum()
    }

    fn memory_bits(&self) -> u64 {
        self.get_u64_array().len() as u64 * 64
    }
}
