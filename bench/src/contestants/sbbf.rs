//! Split blocks of 256 bits, as in Parquet: `sbbf-rs-safe`, and umbel's own in batches. Both take
//! hashes; XXH3-64 is computed inside the timed loop.

use super::Job;
use crate::keys::{Key, List};
use crate::sizing;
use ::umbel::foreign::sbbf::{BLOCK_BYTES, Blocks};

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

/// The number of hashes that are passed at a time.
const BATCH: usize = 4096;

/// umbel's blocks, as many as the peer has.
pub struct Batched(Blocks);

impl Batched {
    /// Passes on the hashes of the keys in batches.
    fn each<K: Key + ?Sized>(keys: K::List<'_>, mut work: impl FnMut(&[u64])) {
        let mut hashes = Vec::with_capacity(BATCH);
        for start in (0..keys.len()).step_by(BATCH) {
            hashes.clear();
            hashes.extend(keys.slice(start..keys.len().min(start + BATCH)).iter().map(K::xxh3));
            work(&hashes);
        }
    }
}

impl<K: Key + ?Sized> super::Filter<K> for Batched {
    fn create(job: &Job) -> Self {
        let per_key = sizing::split_block_bits_per_key(8, 32, job.p).ceil() as u64;
        let blocks = (per_key * job.n).div_ceil(BLOCK_BYTES as u64 * 8);
        Batched(Blocks::new(blocks).expect("memory for the filter"))
    }

    fn wipe(&mut self) {
        let zeros = vec![0; self.0.as_bytes().len()];
        self.0 = Blocks::from_bytes(&zeros).expect("memory for the filter");
    }

    fn insert_all(&mut self, keys: K::List<'_>) {
        Batched::each::<K>(keys, |hashes| {
            self.0.insert_hashes(hashes).expect("memory that was taken");
        });
    }

    fn count(&self, keys: K::List<'_>) -> u64 {
        let mut found = 0;
        Batched::each::<K>(keys, |hashes| found += self.0.contains_hashes(hashes).count());
        found
    }

    fn memory_bits(&self) -> u64 {
        self.0.as_bytes().len() as u64 * 8
    }
}
