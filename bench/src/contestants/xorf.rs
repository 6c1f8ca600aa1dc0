//! `xorf`: a binary fuse filter with 8-bit fingerprints. It is static, and its rate is 1/256 for
//! every job. Its insert time is the whole construction, including temporary memory. It takes `u64`
//! keys: strings are hashed with XXH3-64 inside the timed loop.

use super::{Filter, Job};
use crate::keys::{Key, List, Strings};
use ::xorf::{BinaryFuse8, Filter as _};

/// The filter, once it is built.
pub struct Fuse8(Option<BinaryFuse8>);

impl Fuse8 {
    fn construct(&mut self, keys: &[u64]) {
        self.0 = Some(BinaryFuse8::try_from(keys).expect("distinct keys"));
    }

    fn built(&self) -> &BinaryFuse8 {
        self.0.as_ref().expect("built before use")
    }

    fn bits(&self) -> u64 {
        self.built().fingerprints.len() as u64 * 8
    }
}

impl Filter<u64> for Fuse8 {
    fn create(_: &Job) -> Self {
        Fuse8(None)
    }

    fn wipe(&mut self) {}

    fn insert_all(&mut self, keys: &[u64]) {
        self.construct(keys);
    }

    fn count(&self, keys: &[u64]) -> u64 {
        let filter = self.built();
        keys.iter().map(|key| u64::from(filter.contains(key))).sum()
    }

    fn memory_bits(&self) -> u64 {
        self.bits()
    }
}

impl Filter<[u8]> for Fuse8 {
    fn create(_: &Job) -> Self {
        Fuse8(None)
    }

    fn wipe(&mut self) {}

    fn insert_all(&mut self, keys: Strings<'_>) {
        let hashes: Vec<u64> = keys.iter().map(Key::xxh3).collect();
        self.construct(&hashes);
    }

    fn count(&self, keys: Strings<'_>) -> u64 {
        let filter = self.built();
        keys.iter().map(|key| u64::from(filter.contains(&key.xxh3()))).sum()
    }

    fn memory_bits(&self) -> u64 {
        self.bits()
    }
}
