//! An enum over everything that a file can hold.

use super::{AnyCount, AnyFilter, AnyMap, AnySketch};
use crate::aging::Timestamp;
use crate::file::{FormatError, Storable};
use crate::literature::Literature;
use crate::memory::{Mover, Words};
use crate::sizing::estimate::Overlap;
use crate::structure::{Parts, check_tail};
use crate::{
    Answers, Batch, BloomFilter, Category, Design, Error, HashId, Hasher, Key, Kind, Mismatch, Result, Stats,
};

/// Anything that a file can hold.
#[derive(Debug)]
#[non_exhaustive]
pub enum Stored {
    /// A set that takes digests.
    Set(AnyFilter),
    /// A set that hashes keys by a family of the literature.
    Literature(Literature),
    /// A map.
    Map(AnyMap),
    /// A multiset.
    Count(AnyCount),
    /// A sketch.
    Sketch(AnySketch),
}

impl Stored {
    /// Restores the contents of a file, unless it is a filter of the literature.
    pub(crate) fn restore(kind: Kind, parts: Parts) -> Result<Stored> {
        Ok(match kind.category() {
            Category::Map => AnyMap::restore(kind, parts)?.into(),
            Category::Multiset => AnyCount::restore(kind, parts)?.into(),
            Category::Sketch => AnySketch::restore(kind, parts)?.into(),
            Category::Set => AnyFilter::restore(kind, parts)?.into(),
        })
    }

    /// Returns the kind of filter.
    pub fn kind(&self) -> Kind {
        match self {
            Stored::Set(filter) => filter.kind(),
            Stored::Literature(_) => Kind::Literature,
            Stored::Map(map) => map.kind(),
            Stored::Count(counts) => counts.kind(),
            Stored::Sketch(sketch) => sketch.kind(),
        }
    }

    /// Returns the identity of the hash; `None` for a family of the literature.
    pub fn hash_id(&self) -> Option<HashId> {
        self.hasher().map(Hasher::id)
    }

    /// Returns the function that turns keys into digests; `None` for a family of the literature.
    pub fn hasher(&self) -> Option<&Hasher> {
        match self {
            Stored::Set(filter) => Some(filter.hasher()),
            Stored::Literature(_) => None,
            Stored::Map(map) => Some(map.hasher()),
            Stored::Count(counts) => Some(counts.hasher()),
            Stored::Sketch(sketch) => Some(sketch.hasher()),
        }
    }

    /// Returns whether `key` may be a member, has a value, or may have been recorded; for a sketch
    /// of the most frequent keys, whether it is one of them.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        match self {
            Stored::Set(filter) => filter.contains(key),
            Stored::Literature(filter) => filter.contains(key),
            Stored::Map(map) => map.get(key).is_some(),
            Stored::Count(counts) => counts.contains(key),
            Stored::Sketch(sketch) => sketch.contains(key),
        }
    }

    /// Looks up many keys; the fast way.
    pub fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        match self {
            Stored::Set(filter) => filter.contains_batch(keys),
            Stored::Literature(filter) => filter.contains_batch(keys),
            Stored::Map(map) => map.get_batch(keys).iter().map(Option::is_some).collect(),
            Stored::Count(counts) => {
                let digests = counts.hasher().digest_batch(keys);
                digests.into_iter().map(|digest| counts.contains_digest(digest)).collect()
            }
            Stored::Sketch(sketch) => {
                (0..keys.len()).map(|i| keys.with_bytes(i, |key| sketch.contains(key))).collect()
            }
        }
    }

    /// Inserts `key`. Returns `true` if it was certainly not in the set before.
    ///
    /// # Errors
    ///
    /// If this is not a set, its kind is fixed, or it has no room for another key.
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        match self {
            Stored::Set(filter) => filter.insert(key),
            Stored::Literature(filter) => Ok(filter.insert(key)),
            Stored::Map(_) | Stored::Count(_) | Stored::Sketch(_) => Err(self.no_set()),
        }
    }

    /// Inserts many keys; the fast way.
    ///
    /// # Errors
    ///
    /// As [`insert`](Stored::insert).
    pub fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<()> {
        match self {
            Stored::Set(filter) => filter.insert_batch(keys),
            Stored::Literature(filter) => {
                filter.insert_batch(keys);
                Ok(())
            }
            Stored::Map(_) | Stored::Count(_) | Stored::Sketch(_) => Err(self.no_set()),
        }
    }

    /// Measures how full the filter is, and the rate that follows.
    pub fn stats(&self) -> Stats {
        match self {
            Stored::Set(filter) => filter.stats(),
            Stored::Literature(filter) => filter.stats(),
            Stored::Map(map) => map.stats(),
            Stored::Count(counts) => counts.stats(),
            Stored::Sketch(sketch) => sketch.stats(),
        }
    }

    /// Returns the memory, section by section.
    pub fn sections(&self) -> Vec<&Words> {
        match self {
            Stored::Set(filter) => filter.sections(),
            Stored::Literature(filter) => vec![&filter.words],
            Stored::Map(map) => map.sections(),
            Stored::Count(counts) => counts.sections(),
            Stored::Sketch(sketch) => sketch.sections(),
        }
    }

    /// Allows the memory to be moved.
    pub fn relocate(&mut self, mover: &mut dyn Mover) {
        match self {
            Stored::Set(filter) => filter.relocate(mover),
            Stored::Literature(filter) => filter.words.relocate(mover),
            Stored::Map(map) => map.relocate(mover),
            Stored::Count(counts) => counts.relocate(mover),
            Stored::Sketch(sketch) => sketch.relocate(mover),
        }
    }

    /// Returns the capacity and rate that the filter was planned for.
    pub fn design(&self) -> Option<Design> {
        match self {
            Stored::Set(filter) => filter.design(),
            Stored::Literature(filter) => filter.design(),
            Stored::Map(map) => map.design(),
            Stored::Count(counts) => counts.design(),
            Stored::Sketch(_) => None,
        }
    }

    /// Returns the number of insertions; `None` after a union, where it is unknown.
    pub fn inserted(&self) -> Option<u64> {
        match self {
            Stored::Set(filter) => filter.inserted(),
            Stored::Literature(filter) => filter.inserted(),
            Stored::Map(map) => map.inserted(),
            Stored::Count(counts) => counts.inserted(),
            Stored::Sketch(sketch) => sketch.inserted(),
        }
    }

    /// Returns the inner structure, whatever its type.
    pub(crate) fn into_any(self) -> Box<dyn std::any::Any> {
        match self {
            Stored::Set(filter) => filter.into_any(),
            Stored::Literature(filter) => Box::new(filter),
            Stored::Map(map) => map.into_any(),
            Stored::Count(counts) => counts.into_any(),
            Stored::Sketch(sketch) => sketch.into_any(),
        }
    }

    pub(crate) fn check_contents(&self) -> Result<(), FormatError> {
        match self {
            Stored::Set(filter) => filter.check_contents(),
            Stored::Literature(filter) => check_tail(&filter.words, filter.scheme().m()),
            Stored::Map(map) => map.check_contents(),
            Stored::Count(counts) => counts.check_contents(),
            Stored::Sketch(sketch) => sketch.check_contents(),
        }
    }

    /// Returns a copy that owns its memory and can be changed.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn try_clone(&self) -> Result<Stored> {
        Ok(match self {
            Stored::Set(filter) => Stored::Set(filter.try_clone()?),
            Stored::Literature(filter) => Stored::Literature(filter.try_clone()?),
            Stored::Map(map) => Stored::Map(map.try_clone()?),
            Stored::Count(counts) => Stored::Count(counts.try_clone()?),
            Stored::Sketch(sketch) => Stored::Sketch(sketch.try_clone()?),
        })
    }

    /// Creates an empty filter of the same shape, hash and design.
    ///
    /// # Errors
    ///
    /// If this is a map, the kind is fixed, or there is not enough memory.
    pub fn try_clone_empty(&self) -> Result<Stored> {
        Ok(match self {
            Stored::Set(filter) => Stored::Set(filter.try_clone_empty()?),
            Stored::Literature(filter) => Stored::Literature(filter.try_clone_empty()?),
            Stored::Map(_) => return Err(self.no_set()),
            Stored::Count(counts) => Stored::Count(counts.try_clone_empty()?),
            Stored::Sketch(sketch) => Stored::Sketch(sketch.try_clone_empty()?),
        })
    }

    /// Sets the clock of a filter with a time window; see [`AnyFilter::advance`].
    ///
    /// # Errors
    ///
    /// If `now` is before the time set last.
    pub fn advance(&mut self, now: Timestamp) -> Result<()> {
        match self {
            Stored::Set(filter) => filter.advance(now),
            _ => Ok(()),
        }
    }

    /// Removes everything.
    ///
    /// # Errors
    ///
    /// If this is a map, or the kind is fixed.
    pub fn clear(&mut self) -> Result<()> {
        match self {
            Stored::Set(filter) => filter.clear()?,
            Stored::Literature(filter) => filter.clear(),
            Stored::Map(_) => return Err(self.no_set()),
            Stored::Count(counts) => counts.clear(),
            Stored::Sketch(sketch) => sketch.clear(),
        }
        Ok(())
    }

    /// Returns the first difference that prevents combining the two, if there is one.
    pub fn mismatch(&self, other: &Stored) -> Option<Mismatch> {
        match (self, other) {
            (Stored::Set(a), Stored::Set(b)) => a.mismatch(b),
            (Stored::Literature(a), Stored::Literature(b)) => a.mismatch(b),
            (Stored::Count(a), Stored::Count(b)) => a.mismatch(b),
            (Stored::Sketch(a), Stored::Sketch(b)) => a.mismatch(b),
            // Maps can never be combined; the operations that refuse them say why.
            _ => (self.kind() != other.kind()).then(|| Mismatch::kinds(self.kind(), other.kind())),
        }
    }

    /// Turns this filter into the filter of both sets.
    ///
    /// # Errors
    ///
    /// If the kind does not support it, or kind, shape, hash or seed differ. Neither filter is
    /// changed then.
    pub fn union(&mut self, other: &Stored) -> Result<()> {
        match (&mut *self, other) {
            (Stored::Set(a), Stored::Set(b)) => a.union(b),
            (Stored::Literature(a), Stored::Literature(b)) => a.union(b),
            (Stored::Count(a), Stored::Count(b)) => a.union(b),
            (Stored::Sketch(a), Stored::Sketch(b)) => a.union(b),
            _ => Err(self.kinds_differ(other)),
        }
    }

    /// Turns this filter into a filter of the keys that are in both sets; see
    /// [`BloomFilter::intersect`].
    ///
    /// # Errors
    ///
    /// As [`union`](Stored::union).
    pub fn intersect(&mut self, other: &Stored) -> Result<()> {
        match (&mut *self, other) {
            (Stored::Set(a), Stored::Set(b)) => a.intersect(b),
            (Stored::Literature(a), Stored::Literature(b)) => a.intersect(b),
            _ => Err(self.kinds_differ(other)),
        }
    }

    /// Estimates how many keys the two sets have in common; see [`BloomFilter::overlap`].
    ///
    /// # Errors
    ///
    /// As [`union`](Stored::union).
    pub fn overlap(&self, other: &Stored) -> Result<Option<Overlap>> {
        match (self, other) {
            (Stored::Set(a), Stored::Set(b)) => a.overlap(b),
            (Stored::Literature(a), Stored::Literature(b)) => a.overlap(b),
            _ => Err(self.kinds_differ(other)),
        }
    }

    /// Returns the error for inserting keys into something that is not a set.
    fn no_set(&self) -> Error {
        Error::parameter("kind", self.kind(), "a kind that holds a set")
    }

    fn kinds_differ(&self, other: &Stored) -> Error {
        if self.kind() == other.kind() {
            return Error::cannot(
                self.kind(),
                "be combined in this way",
                "it is not a set; build a new one from the keys of both",
            );
        }
        Error::Mismatch(Mismatch::kinds(self.kind(), other.kind()))
    }
}

impl TryFrom<Stored> for Literature {
    type Error = Error;

    /// Succeeds if it is a filter of the literature.
    fn try_from(stored: Stored) -> Result<Literature> {
        match stored {
            Stored::Literature(filter) => Ok(filter),
            other => Err(FormatError::wrong_kind(other.kind(), "a filter of the literature").into()),
        }
    }
}

impl TryFrom<Stored> for BloomFilter {
    type Error = Error;

    /// Succeeds if it is an array of bits.
    fn try_from(stored: Stored) -> Result<BloomFilter> {
        BloomFilter::check_kind(stored.kind())?;
        AnyFilter::try_from(stored)?.try_into()
    }
}

impl From<BloomFilter> for Stored {
    fn from(filter: BloomFilter) -> Stored {
        Stored::Set(filter.into())
    }
}

crate::methods::file_methods!([] Stored);

impl From<Literature> for Stored {
    fn from(filter: Literature) -> Stored {
        Stored::Literature(filter)
    }
}
