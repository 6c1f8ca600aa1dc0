//! The operations that all approximate multisets have in common.
//!
//! [`Count`] records keys and estimates how often each was recorded. As with sets, its basic
//! methods take digests, and the methods that take keys call them.

use crate::tile;
use crate::{Batch, Digest, Hasher, Key, Kind, Stats, TILE};
use std::convert::Infallible;
use std::fmt;

/// An estimate of how often a key was recorded.
///
/// ```
/// use umbel::space_code::Multiplicity;
/// let some = Multiplicity { value: 21.83, low: 16.0, high: 29.0, saturated: false };
/// assert_eq!(some.to_string(), "21.8");
/// let many = Multiplicity { value: 129.87, low: 68.0, high: f64::INFINITY, saturated: true };
/// assert_eq!(format!("{many} or {many:.0}"), ">=129.9 or >=130");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Multiplicity {
    /// The estimate; a lower bound if `saturated`.
    pub value: f64,
    /// The lower end of a 95 % confidence interval.
    pub low: f64,
    /// The upper end of the interval; infinite if `saturated`.
    pub high: f64,
    /// Whether the count is at the largest value that the filter can distinguish.
    pub saturated: bool,
}

impl fmt::Display for Multiplicity {
    /// Formats the value, with one decimal unless a precision is given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        let at_least = if self.saturated { ">=" } else { "" };
        f.pad_integral(true, "", &format!("{at_least}{:.digits$}", self.value))
    }
}

/// An approximate multiset: records keys repeatedly and estimates how often each was recorded.
pub trait Count {
    /// Returns the kind of this multiset.
    fn kind(&self) -> Kind;

    /// Returns the function that turns keys into the digests this filter understands.
    fn hasher(&self) -> &Hasher;

    /// Returns whether the key with this digest may have been recorded; `false` is certain.
    fn contains_digest(&self, digest: Digest) -> bool;

    /// Estimates how often the key with this digest was recorded.
    fn count_digest(&self, digest: Digest) -> Multiplicity;

    /// Estimates how often the key of each `tile[i]` was recorded and writes it to `counts[i]`.
    /// Digests after the first 64 are ignored.
    fn count_tile(&self, tile: &[Digest], counts: &mut [Multiplicity; TILE]) {
        for (count, digest) in counts.iter_mut().zip(tile) {
            *count = self.count_digest(*digest);
        }
    }

    /// Records the key with this digest once more.
    fn insert_digest(&mut self, digest: Digest);

    /// Records digests in order.
    fn insert_tile(&mut self, tile: &[Digest]) {
        tile.iter().for_each(|digest| self.insert_digest(*digest));
    }

    /// Measures how full the filter is. Reads the whole filter.
    fn stats(&self) -> Stats;

    /// Returns whether `key` may have been recorded; `false` is certain.
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool
    where
        Self: Sized,
    {
        self.contains_digest(key.digest(self.hasher()))
    }

    /// Estimates how often `key` was recorded.
    fn count<K: Key + ?Sized>(&self, key: &K) -> Multiplicity
    where
        Self: Sized,
    {
        self.count_digest(key.digest(self.hasher()))
    }

    /// Estimates how often each of many keys was recorded, faster than one by one.
    fn count_batch<B: Batch + ?Sized>(&self, keys: &B) -> Vec<Multiplicity>
    where
        Self: Sized,
    {
        let mut answers = Vec::with_capacity(keys.len());
        let mut counts = [Multiplicity::default(); TILE];
        let Ok(()) = tile::each(keys, self.hasher(), |tile| {
            self.count_tile(tile, &mut counts);
            answers.extend_from_slice(&counts[..tile.len()]);
            Ok::<(), Infallible>(())
        });
        answers
    }

    /// Records `key` once more.
    fn insert<K: Key + ?Sized>(&mut self, key: &K)
    where
        Self: Sized,
    {
        self.insert_digest(key.digest(self.hasher()));
    }

    /// Records many keys, faster than one by one.
    fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B)
    where
        Self: Sized,
    {
        let hasher = self.hasher().clone();
        let Ok(()) = tile::each(keys, &hasher, |tile| {
            self.insert_tile(tile);
            Ok::<(), Infallible>(())
        });
    }
}
