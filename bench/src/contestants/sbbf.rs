//! `sbbf-rs-safe`: 256-bit split blocks, as in Parquet. It takes hashes; XXH3-64 is computed inside
//! the timed loop.

use super::Job;
use crate::keys::{Key, List};
use crate::sizing;

pub use sbbf_rs_safe::Filter;

impl<K: Key + ?Sized> super::Filter<K> for Filter {
    /// Its constructor takes whole bits per key: pass the fewest that meet the rate.
    fn create(job: &Job) -> Self {
        let per_key = sizing::split_block_bits_per_key(8, 32, job.p).ceil();
        Filter::new(per_key as usize, job.n as usize)
    }

    fn wipe(&mut self) {
        self.reset();
    }

    fn insert_all(&mut self, keys: K::List<'_>) {
        for key in keys.iter() {
            self.insert_hash(key.xxh3());
        }
    }

    fn count(&self, keys: K::List<'_>) -> u64 {
        keys.iter().map(|key| u64::from(self.contains_hash(key.xxh3()))).sum()
    }

    fn memory_bits(&self) -> u64 {
        self.as_bytes().len() as u64 * 8
    }
}
