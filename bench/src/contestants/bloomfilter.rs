//! `bloomfilter`: a classic filter with two `SipHash` functions and a remainder per probe.

use super::{Filter, Job};
use crate::keys::{Key, List};

pub use ::bloomfilter::Bloom;

impl<K: Key + ?Sized> Filter<K> for Bloom<K> {
    fn create(job: &Job) -> Self {
        // Its two hashes are keyed by the halves of the seed, which must therefore differ.
        let mut seed = [0x5a; 32];
        seed[..8].copy_from_slice(&job.seed.to_le_bytes());
        seed[16..24].copy_from_slice(&(!job.seed).to_le_bytes());
        Bloom::new_for_fp_rate_with_seed(job.n as usize, job.p, &seed).expect("a valid size")
    }

    fn wipe(&mut self) {
        self.clear();
    }

    fn insert_all(&mut self, keys: K::List<'_>) {
        for key in keys.iter() {
            self.set(key);
        }
    }

    fn count(&self, keys: K::List<'_>) -> u64 {
        keys.iter().map(|key| u64::from(self.check(key))).sum()
    }

    fn memory_bits(&self) -> u64 {
        self.as_slice().len() as u64 * 8
    }
}
