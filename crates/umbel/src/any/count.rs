//! One enum over the multisets.

use super::Stored;
use crate::file::{Encoder, FormatError, Options, Storable};
use crate::memory::{Mover, Words};
use crate::sizing::space_code::Rule;
use crate::space_code::Estimator;
use crate::structure::{Parts, Probe};
use crate::{
    Batch, Capabilities, Count, Design, Digest, Error, Hasher, Kind, Mismatch, MultiResolution, Multiplicity,
    Plan, Result, SpaceCode, Spec, Stats, Structure, TILE,
};

family! { $
    /// A multiset of any kind.
    ///
    /// ```
    /// use umbel::{AnyCount, Kind, Spec};
    /// let mut counts = AnyCount::build(Kind::MultiResolution, &Spec::new(1000, 0.005)?)?;
    /// counts.insert_batch(&["apple", "pear", "apple"]);
    /// assert_eq!(format!("{:.0}", counts.count("apple")), "2");
    /// # Ok::<(), umbel::Error>(())
    /// ```
    AnyCount, Stored::Count, "a multiset",
    changing {
        /// One level.
        SpaceCode(SpaceCode),
        /// Several levels.
        MultiResolution(MultiResolution),
    }
    fixed {}
}

planned!(AnyCount);

impl AnyCount {
    /// Creates an empty multiset of this kind.
    ///
    /// # Errors
    ///
    /// If `kind` is not a multiset, the specification does not suit it, or there is not enough
    /// memory.
    pub fn build(kind: Kind, spec: &Spec) -> Result<AnyCount> {
        let none = || Error::parameter("kind", kind, "a multiset: space-code or multi-resolution");
        of_kind!(kind, S => Ok(S::build(spec)?.into()), else Err(none()))
    }

    /// Creates an empty multiset of the same shape, hash, design, epoch and seed.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn try_clone_empty(&self) -> Result<AnyCount> {
        Ok(map!(self, counts => counts.try_clone_empty()?))
    }

    /// Creates an empty multiset to be filled elsewhere and united with this one; see
    /// [`part`](crate::space_code::SpaceCodeFilter::part).
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn part(&self, seed: u64) -> Result<AnyCount> {
        Ok(map!(self, counts => counts.part(seed)?))
    }

    /// Ends the epoch and returns what was recorded in it; see
    /// [`turn`](crate::space_code::SpaceCodeFilter::turn).
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn turn(&mut self) -> Result<AnyCount> {
        Ok(map!(self, counts => counts.turn()?))
    }

    /// Estimates how often each of many keys was recorded, with this estimator.
    ///
    /// ```
    /// use umbel::space_code::Estimator;
    /// use umbel::{AnyCount, Kind, Spec};
    /// let mut counts = AnyCount::build(Kind::SpaceCode, &Spec::new(1000, 0.005)?)?;
    /// counts.insert_batch(&["apple", "apple", "pear"]);
    /// let likely = counts.estimate_batch(&["apple"], Estimator::Mle);
    /// assert_eq!(likely[0].value, 2.0, "the most likely number is a whole one");
    /// # Ok::<(), umbel::Error>(())
    /// ```
    pub fn estimate_batch<B: Batch + ?Sized>(&self, keys: &B, estimator: Estimator) -> Vec<Multiplicity> {
        if estimator == Estimator::default() {
            // The default has a faster loop.
            return self.count_batch(keys);
        }
        let estimate = |digest| match self {
            AnyCount::SpaceCode(counts) => counts.estimate(digest, estimator),
            AnyCount::MultiResolution(counts) => counts.estimate(digest, estimator, Rule::Guarded),
        };
        self.hasher().digest_batch(keys).into_iter().map(estimate).collect()
    }

    /// Returns the number of the epoch.
    pub fn epoch(&self) -> u64 {
        each!(self, counts => counts.epoch())
    }

    /// Returns the seed of the random numbers.
    pub fn seed(&self) -> u64 {
        each!(self, counts => counts.seed())
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        each!(self, counts => counts.clear())
    }

    /// Returns the first difference that prevents a union of the two, if there is one.
    pub fn mismatch(&self, other: &AnyCount) -> Option<Mismatch> {
        both!(self, other, a, b => a.mismatch(b), else Some(Mismatch::kinds(self.kind(), other.kind())))
    }

    /// Turns this multiset into the multiset of what was recorded in either; see
    /// [`union`](crate::space_code::SpaceCodeFilter::union).
    ///
    /// # Errors
    ///
    /// If kind, shape, hash or epoch differ. Neither multiset is changed then.
    pub fn union(&mut self, other: &AnyCount) -> Result<()> {
        let kinds = Mismatch::kinds(self.kind(), other.kind());
        both!(self, other, a, b => a.union(b), else Err(Error::Mismatch(kinds)))
    }
}

impl Count for AnyCount {
    fn kind(&self) -> Kind {
        each!(self, counts => counts.kind())
    }

    fn hasher(&self) -> &Hasher {
        each!(self, counts => counts.hasher())
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        each!(self, counts => counts.contains_digest(digest))
    }

    fn count_digest(&self, digest: Digest) -> Multiplicity {
        each!(self, counts => counts.count_digest(digest))
    }

    fn count_tile(&self, tile: &[Digest], counted: &mut [Multiplicity; TILE]) {
        each!(self, counts => counts.count_tile(tile, counted))
    }

    fn insert_digest(&mut self, digest: Digest) {
        each!(self, counts => counts.insert_digest(digest))
    }

    fn insert_tile(&mut self, tile: &[Digest]) {
        each!(self, counts => counts.insert_tile(tile))
    }

    fn stats(&self) -> Stats {
        each!(self, counts => counts.stats())
    }
}

crate::methods::count_methods!([] AnyCount);
