//! What every approximate multiset can do, whatever its kind.
//!
//! [`Count`] records keys and tells how often each was recorded. Like the sets, it speaks in digests; the methods that
//! take keys are built on them.

use crate::tile;
use crate::{Batch, Digest, Hasher, Key, Kind, Stats, TILE};
use std::convert::Infallible;
use std::fmt;

/// How often something was recorded, as far as a filter can tell.
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
    /// The estimate; at least so often if it is saturated.
    pub value: f64,
    /// From here to `high` is a 95 % interval.
    pub low: f64,
    /// Infinite if it is saturated.
    pub high: f64,
    /// Whether anything more would have looked the same.
    pub saturated: bool,
}

impl fmt::Display for Multiplicity {
    /// The value, with one decimal unless another precision is asked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        let at_least = if self.saturated { ">=" } else { "" };
        f.pad_integral(true, "", &format!("{at_least}{:.digits$}", self.value))
    }
}

/// An approximate multiset: keys are recorded, again and again, and it tells how often each was.
pub trait Count {
    /// What kind of multiset this is.
    fn kind(&self) -> Kind;

    /// The function that turns keys into the digests this filter understands.
    fn hasher(&self) -> &Hasher;

    /// Whether the key with this digest may have been recorded; "no" is certain.
    fn contains_digest(&self, digest: Digest) -> bool;

    /// How often the key with this digest was recorded.
    fn count_digest(&self, digest: Digest) -> Multiplicity;

    /// How often the key of `tile[i]` was recorded is in `counts[i]`; only the first 64 are looked at.
    fn count_tile(&self, tile: &[Digest], counts: &mut [Multiplicity; TILE]) {
        for (count, digest) in counts.iter_mut().zip(tile) {
            *count = self.count_digest(*digest);
        }
    }

    /// Records the key with this digest once more.
    fn insert_digest(&mut self, digest: Digest);

    /// Records digests in order. If one is refused, those before it are in, and those after it are not.
    fn insert_tile(&mut self, tile: &[Digest]) {
        tile.iter().for_each(|digest| self.insert_digest(*digest));
    }

    /// How full the filter is and what that means. Reads the whole filter.
    fn stats(&self) -> Stats;

    /// Whether `key` may have been recorded; "no" is certain.
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool
    where
        Self: Sized,
    {
        self.contains_digest(key.digest(self.hasher()))
    }

    /// How often `key` was recorded.
    fn count<K: Key + ?Sized>(&self, key: &K) -> Multiplicity
    where
        Self: Sized,
    {
        self.count_digest(key.digest(self.hasher()))
    }

    /// Asks for many keys; the fast way.
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

    /// Records many keys, the fast way. If one is refused, those before it are in, and those after it are not.
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
