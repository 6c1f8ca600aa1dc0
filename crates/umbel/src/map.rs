//! The operations that all approximate maps have in common.
//!
//! Looking up a key of the map returns exactly its value. Looking up any other key returns no
//! value, except at the map's rate, when it returns one of the map's values.

use crate::tile::{self, ones};
use crate::{Batch, Digest, Hasher, Key, Kind, Stats, TILE};
use std::convert::Infallible;

/// An approximate map from keys to integers.
///
/// The value of a key in the map is exact. A key that is not in the map gets a value with the
/// probability of the map's rate.
pub trait Map {
    /// Returns the kind of this map.
    fn kind(&self) -> Kind;

    /// Returns the function that turns keys into the digests this map understands.
    fn hasher(&self) -> &Hasher;

    /// Returns the value of the key with this digest; `None` if it is certainly not in the map.
    fn get_digest(&self, digest: Digest) -> Option<u64>;

    /// Looks up as many as 64 digests at once. Bit `i` of the answer is set if the key of `tile[i]`
    /// has a value, which is written to `values[i]`. Digests after the first 64 are ignored.
    fn get_tile(&self, tile: &[Digest], values: &mut [u64; TILE]) -> u64 {
        get_each(self, tile, values)
    }

    /// Measures how large the map is, and how often it is wrong.
    fn stats(&self) -> Stats;

    /// Returns the value of `key`; `None` if it is certainly not in the map.
    fn get<K: Key + ?Sized>(&self, key: &K) -> Option<u64>
    where
        Self: Sized,
    {
        self.get_digest(key.digest(self.hasher()))
    }

    /// Returns the values of many keys, faster than one by one.
    fn get_batch<B: Batch + ?Sized>(&self, keys: &B) -> Vec<Option<u64>>
    where
        Self: Sized,
    {
        get_by_tiles(self, keys)
    }
}

/// Looks up the digests of a tile one by one.
pub(crate) fn get_each(map: &(impl Map + ?Sized), tile: &[Digest], values: &mut [u64; TILE]) -> u64 {
    let mut found = 0;
    for (i, digest) in tile.iter().take(TILE).enumerate() {
        if let Some(value) = map.get_digest(*digest) {
            values[i] = value;
            found |= 1 << i;
        }
    }
    found
}

/// Looks up a batch, tile by tile.
pub(crate) fn get_by_tiles<B: Batch + ?Sized>(map: &impl Map, keys: &B) -> Vec<Option<u64>> {
    let mut answers = Vec::with_capacity(keys.len());
    let mut values = [0; TILE];
    let Ok(()) = tile::each(keys, map.hasher(), |tile| {
        let found = map.get_tile(tile, &mut values);
        push_values(&mut answers, found, &values[..tile.len()]);
        Ok::<(), Infallible>(())
    });
    answers
}

/// Appends the answers of a tile.
pub(crate) fn push_values(answers: &mut Vec<Option<u64>>, found: u64, values: &[u64]) {
    let start = answers.len();
    answers.resize(start + values.len(), None);
    ones(found).for_each(|i| answers[start + i] = Some(values[i]));
}
