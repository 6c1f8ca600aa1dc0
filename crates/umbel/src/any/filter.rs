//! One enum over the sets that take digests.

use super::{Stored, no_set};
use crate::aging::{Timestamp, Window};
use crate::file::{Encoder, FormatError, Options, Storable};
use crate::floom::Floom;
use crate::memory::{Mover, Words};
use crate::methods::{filter_methods, try_insert_methods};
use crate::sizing::estimate::Overlap;
use crate::structure::{Parts, Probe};
use crate::{
    Aging, Algebra, Answers, Batch, Blocked, Bloom, Capabilities, Construction, Counting, Cuckoo, Deletable,
    Design, Digest, Error, Filter, Fuse, Hashed, Hasher, Insert, Key, Kind, Mismatch, Partitioned, Plan,
    Quotient, Removed, Result, Scalable, Set, Spec, Standard, Stats, Structure, VariableIncrement, plan,
    tile,
};
use std::convert::Infallible;

family! { $
    /// A set of digests of any kind.
    ///
    /// ```
    /// use umbel::{AnyFilter, Kind, Spec};
    /// let mut filter = AnyFilter::build(Kind::Blocked, &Spec::new(1_000_000, 0.01)?)?;
    /// filter.insert("apple")?;
    /// assert!(filter.contains("apple"));
    /// assert_eq!(filter.kind(), Kind::Blocked);
    /// # Ok::<(), umbel::Error>(())
    /// ```
    AnyFilter, Stored::Set, "a set of digests",
    changing {
        /// A standard filter.
        Standard(Bloom<Standard>),
        /// A partitioned filter.
        Partitioned(Bloom<Partitioned>),
        /// A blocked filter.
        Blocked(Bloom<Blocked>),
        /// A counting filter.
        Counting(Counting),
        /// A variable-increment filter.
        VariableIncrement(VariableIncrement),
        /// A deletable filter.
        Deletable(Deletable),
        /// A scalable filter.
        Scalable(Scalable),
        /// An aging filter.
        Aging(Aging),
        /// A Floom filter.
        Floom(Floom),
        /// A cuckoo filter.
        Cuckoo(Cuckoo),
        /// A quotient filter.
        Quotient(Quotient),
    }
    fixed {
        /// A fuse filter.
        Fuse(Fuse),
    }
}

planned!(AnyFilter);

impl AnyFilter {
    /// Creates an empty filter of this kind. A small blocked filter is built as a standard one, as
    /// reported by [`plan`].
    ///
    /// # Errors
    ///
    /// If `kind` is not a set, is fixed, the specification does not suit it, or there is not enough
    /// memory.
    pub fn build(kind: Kind, spec: &Spec) -> Result<AnyFilter> {
        of_kind!(plan(kind, spec)?.kind, S => Ok(S::build(spec)?.into()), else Err(no_set(kind)))
    }

    /// Builds a filter of this kind from the digests of its keys, as specified. This is the only
    /// way to build the kinds that are [fixed](Capabilities::fixed); the others are sized for the
    /// capacity of the specification.
    ///
    /// ```
    /// use umbel::spec::Construction;
    /// use umbel::{AnyFilter, Kind, Spec};
    /// let spec = Spec::new(2, 0.01)?;
    /// let digests = spec.hasher().digest_batch(&["apple", "pear"]);
    /// let filter = AnyFilter::from_digests(Kind::Fuse, &spec, digests, &Construction::default())?;
    /// assert!(filter.contains("pear"));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If `kind` is not a set, the specification does not suit it, there is no room for the keys,
    /// or there is not enough memory.
    pub fn from_digests(
        kind: Kind,
        spec: &Spec,
        digests: Vec<Digest>,
        construction: &Construction<'_>,
    ) -> Result<AnyFilter> {
        if kind == Kind::Fuse {
            return Ok(Fuse::from_digests(spec, digests, construction)?.into());
        }
        let mut filter = AnyFilter::build(kind, spec)?;
        filter.insert_batch(&Hashed(&digests))?;
        Ok(filter)
    }

    /// Returns the filter of the same keys in half the memory; see [`Set::fold`].
    ///
    /// # Errors
    ///
    /// If the kind or its size cannot be folded, or there is not enough memory.
    pub fn fold(&self) -> Result<AnyFilter> {
        changing!(self, filter => Ok(filter.fold()?.into()))
    }

    /// Returns the filter of the same keys, planned for `capacity` keys; see [`Set::resized_for`].
    ///
    /// # Errors
    ///
    /// If the kind cannot be resized, its keys do not fit, or there is not enough memory.
    pub fn resized_for(&self, capacity: u64) -> Result<AnyFilter> {
        changing!(self, filter => Ok(filter.resized_for(capacity)?.into()))
    }

    /// Creates an empty filter of the same shape, hash and design.
    ///
    /// # Errors
    ///
    /// If the kind is fixed, or there is not enough memory.
    pub fn try_clone_empty(&self) -> Result<AnyFilter> {
        changing!(self, filter => Ok(filter.try_clone_empty()?.into()))
    }

    /// Adds the keys of another filter of the same shape; see [`Set::absorb`].
    ///
    /// # Errors
    ///
    /// If the kind does not support it, or kind, shape, hash or seed differ.
    pub fn absorb(&mut self, part: &AnyFilter) -> Result<()> {
        both_changing!(&mut *self, part, a, b => a.absorb(b), else Err(Error::Mismatch(self.kinds_differ(part))))
    }

    /// Removes all keys.
    ///
    /// # Errors
    ///
    /// If the kind is fixed.
    pub fn clear(&mut self) -> Result<()> {
        changing!(self, filter => {
            filter.clear();
            Ok(())
        })
    }

    /// Sets the clock of a filter with a time window, see [`Aging::advance`]; has no effect on
    /// other filters.
    ///
    /// # Errors
    ///
    /// If `now` is before the time set last.
    pub fn advance(&mut self, now: Timestamp) -> Result<()> {
        match self {
            AnyFilter::Aging(filter) if matches!(filter.window(), Window::Time(_)) => filter.advance(now),
            _ => Ok(()),
        }
    }

    /// Returns the error for two filters of different kinds. If one of the kinds can never be
    /// combined, building both alike would not help.
    fn cannot_combine(&self, other: &AnyFilter) -> Error {
        match [self.kind(), other.kind()].into_iter().find(|kind| kind.capabilities().fixed) {
            Some(kind) => Error::cannot(
                kind,
                "be combined with another",
                "it does not hold its keys: build a new one from the keys of both",
            ),
            None => Error::Mismatch(self.kinds_differ(other)),
        }
    }

    fn kinds_differ(&self, other: &AnyFilter) -> Mismatch {
        Mismatch::kinds(self.kind(), other.kind())
    }
}

impl Filter for AnyFilter {
    fn kind(&self) -> Kind {
        each!(self, filter => filter.kind())
    }

    fn hasher(&self) -> &Hasher {
        each!(self, filter => filter.hasher())
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        each!(self, filter => filter.contains_digest(digest))
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        each!(self, filter => filter.contains_tile(tile))
    }

    fn stats(&self) -> Stats {
        each!(self, filter => filter.stats())
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        if let AnyFilter::Blocked(filter) = self {
            return filter.contains_batch(keys);
        }
        let mut answers = Answers::with_capacity(keys.len());
        let Ok(()) = tile::chunks(keys, self.hasher(), |digests| {
            answers.append(&self.contains_hashed(digests));
            Ok::<(), Infallible>(())
        });
        answers
    }
}

impl Insert for AnyFilter {
    type Error = Error;

    fn insert_digest(&mut self, digest: Digest) -> Result<bool> {
        changing!(self, filter => Ok(Insert::insert_digest(filter, digest)?))
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<()> {
        changing!(self, filter => Ok(Insert::insert_tile(filter, tile)?))
    }

    fn insert_tile_new(&mut self, tile: &[Digest]) -> Result<u64> {
        changing!(self, filter => Ok(Insert::insert_tile_new(filter, tile)?))
    }

    fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<()> {
        if let AnyFilter::Blocked(filter) = self {
            filter.insert_batch(keys);
            return Ok(());
        }
        let hasher = self.hasher().clone();
        tile::chunks(keys, &hasher, |digests| self.insert_hashed(digests))
    }
}

impl AnyFilter {
    // Not generic, so that the batch loops of all kinds are compiled once, in this crate. Those of
    // the default kind are compiled for each type of batch, because hashing is faster while memory
    // is at work.

    fn contains_hashed(&self, digests: &[Digest]) -> Answers {
        each!(self, filter => filter.contains_batch(&Hashed(digests)))
    }

    fn insert_hashed(&mut self, digests: &[Digest]) -> Result<()> {
        changing!(self, filter => Ok(Insert::insert_batch(filter, &Hashed(digests))?))
    }
}

filter_methods!([] AnyFilter);
try_insert_methods!([] AnyFilter);

impl AnyFilter {
    /// Removes `key`, once if it was inserted more often. Unless the result is
    /// [`Removed::Removed`], nothing has changed.
    ///
    /// # Errors
    ///
    /// If the kind cannot remove keys; see [`Kind::capabilities`].
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<Removed> {
        self.remove_digest(key.digest(self.hasher()))
    }

    /// Removes the key with this digest; see [`AnyFilter::remove`].
    ///
    /// # Errors
    ///
    /// As [`AnyFilter::remove`].
    pub fn remove_digest(&mut self, digest: Digest) -> Result<Removed> {
        changing!(self, filter => filter.remove_if_able(digest))
    }

    /// Removes `key` if it was certainly inserted. Tests the filter first, and calls
    /// `was_inserted`, which must know exactly, only if the filter says "probably yes".
    ///
    /// # Errors
    ///
    /// As [`AnyFilter::remove`].
    pub fn remove_checked<K: Key + ?Sized>(
        &mut self,
        key: &K,
        was_inserted: impl FnOnce(&K) -> bool,
    ) -> Result<Removed> {
        let digest = key.digest(self.hasher());
        if self.contains_digest(digest) && was_inserted(key) {
            return self.remove_digest(digest);
        }
        Ok(Removed::NotPresent)
    }

    /// Returns the first difference that prevents combining the two, if there is one.
    pub fn mismatch(&self, other: &AnyFilter) -> Option<Mismatch> {
        both!(self, other, a, b => Algebra::mismatch(a, b), else Some(self.kinds_differ(other)))
    }

    /// Turns this filter into the filter of both sets.
    ///
    /// # Errors
    ///
    /// If the kind does not support it, if kind, shape, hash or seed differ, or if there is no room
    /// for both. Neither filter is changed then.
    pub fn union(&mut self, other: &AnyFilter) -> Result<()> {
        both!(&mut *self, other, a, b => Algebra::union(a, b), else Err(self.cannot_combine(other)))
    }

    /// Turns this filter into a filter of the keys that are in both sets; see
    /// [`BloomFilter::intersect`](crate::BloomFilter::intersect).
    ///
    /// # Errors
    ///
    /// As [`AnyFilter::union`].
    pub fn intersect(&mut self, other: &AnyFilter) -> Result<()> {
        both!(&mut *self, other, a, b => Algebra::intersect(a, b), else Err(self.cannot_combine(other)))
    }

    /// Returns whether the two filters are of the same kind, shape and hash, and all their cells are
    /// equal. Then they give the same answer to every key.
    ///
    /// ```
    /// use umbel::{AnyFilter, Kind, Spec};
    /// let mut fruit = AnyFilter::build(Kind::Blocked, &Spec::new(100, 0.01)?)?;
    /// let mut nuts = fruit.try_clone_empty()?;
    /// assert!(fruit.has_same_cells(&nuts));
    /// nuts.insert("hazel")?;
    /// assert!(!fruit.has_same_cells(&nuts) && fruit.is_subset(&nuts)? && !nuts.is_subset(&fruit)?);
    /// # Ok::<(), umbel::Error>(())
    /// ```
    pub fn has_same_cells(&self, other: &AnyFilter) -> bool {
        self.mismatch(other).is_none() && self.words().eq(other.words())
    }

    /// Returns whether every bit that is set in this filter is set in the other: it is, if the other
    /// has all keys of this one. If not, this filter certainly has a key that the other has not.
    ///
    /// # Errors
    ///
    /// If kind, shape, hash or seed differ, or the kind is not an array of bits.
    pub fn is_subset(&self, other: &AnyFilter) -> Result<bool> {
        Mismatch::refuse(self.mismatch(other))?;
        if !matches!(self.kind(), Kind::Standard | Kind::Partitioned | Kind::Blocked) {
            let why = "only bits tell whether all keys of one are in the other; kinds that can are blocked, standard \
                       and partitioned";
            return Err(Error::cannot(self.kind(), "be a subset", why));
        }
        Ok(self.words().zip(other.words()).all(|(ours, theirs)| ours & !theirs == 0))
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        self.sections().into_iter().flat_map(Words::words).copied()
    }

    /// Estimates how many keys the two sets have in common, with error bounds; `None` if their
    /// union is saturated.
    ///
    /// # Errors
    ///
    /// As [`AnyFilter::union`].
    pub fn overlap(&self, other: &AnyFilter) -> Result<Option<Overlap>> {
        both!(self, other, a, b => Algebra::overlap(a, b), else Err(self.cannot_combine(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(kind: Kind, capacity: u64) -> AnyFilter {
        AnyFilter::build(kind, &Spec::new(capacity, 0.01).unwrap()).unwrap()
    }

    #[test]
    fn plan_and_build_cannot_disagree() {
        for kind in [Kind::Standard, Kind::Partitioned, Kind::Blocked] {
            for capacity in [1, 1000, 100_000] {
                let spec = Spec::new(capacity, 0.001).unwrap();
                let (plan, filter) = (plan(kind, &spec).unwrap(), AnyFilter::build(kind, &spec).unwrap());
                let stats = filter.stats();
                assert_eq!((plan.kind, plan.stored_bits), (filter.kind(), stats.bits));
                assert_eq!((plan.hashes, plan.bytes), (stats.hashes, stats.bytes));
                assert_eq!((Some(plan.capacity), Some(plan.rate_asked)), (stats.capacity, stats.rate_target));
            }
        }
    }

    #[test]
    fn small_blocked_filters_are_standard_and_say_so() {
        assert_eq!(build(Kind::Blocked, 1000).kind(), Kind::Standard);
        assert_eq!(build(Kind::Blocked, 100_000).kind(), Kind::Blocked);
    }

    #[test]
    fn kinds_do_not_mix() {
        let (mut a, b) = (build(Kind::Standard, 1000), build(Kind::Partitioned, 1000));
        assert_eq!(a.mismatch(&b).unwrap().what, "kind");
        assert!(a.union(&b).is_err() && a.intersect(&b).is_err() && a.overlap(&b).is_err());
        let a = Stored::from(a);
        let family = crate::literature::Family::Murmur3;
        let mut literature =
            Stored::from(crate::literature::Literature::with_capacity(family, 1000, 0.01).unwrap());
        assert!(matches!(literature.union(&a), Err(Error::Mismatch(Mismatch { what: "kind", .. }))));
    }
}
