//! What every approximate map can do, whatever its kind.
//!
//! A key that is in the map gets exactly its value. A key that is not gets none, except at the map's rate, when it gets
//! one of the map's values.

use crate::tile::{self, ones};
use crate::{Batch, Digest, Hasher, Key, Kind, Stats, TILE};
use std::convert::Infallible;

/// An approximate map from keys to integers that can be asked.
///
/// The value of a key that was put in is exact. A key that was not gets a value all the same at the map's rate.
pub trait Map {
    /// What kind of map this is.
    fn kind(&self) -> Kind;

    /// The function that turns keys into the digests this map understands.
    fn hasher(&self) -> &Hasher;

    /// The value of the key with this digest; `None` when it is certainly not in the map.
    fn get_digest(&self, digest: Digest) -> Option<u64>;

    /// Bit `i` of the answer tells whether the key of `tile[i]` has a value, which is then in `values[i]`; only the first
    /// 64 are looked at.
    fn get_tile(&self, tile: &[Digest], values: &mut [u64; TILE]) -> u64 {
        get_each(self, tile, values)
    }

    /// How large the map is, and how often it is wrong.
    fn stats(&self) -> Stats;

    /// The value of `key`; `None` when it is certainly not in the map.
    fn get<K: Key + ?Sized>(&self, key: &K) -> Option<u64>
    where
        Self: Sized,
    {
        self.get_digest(key.digest(self.hasher()))
    }

    /// Asks for many keys; the fast way.
    fn get_batch<B: Batch + ?Sized>(&self, keys: &B) -> Vec<Option<u64>>
    where
        Self: Sized,
    {
        get_by_tiles(self, keys)
    }
}

/// Asks for a tile, one digest after the other.
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

/// Asks for a batch, tile by tile.
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
