//! A standard bit array with the positions of a hash family of the literature.

use super::{Family, Scheme};
use crate::algebra::Mismatch;
use crate::memory::{LINE_BITS, LINE_BYTES, Words, bits};
use crate::sizing::estimate::{Cardinality, Overlap, Shape};
use crate::sizing::{Given, KPolicy, Params, rate};
use crate::{Answers, Batch, Design, Key, Kind, Result, Spec, Stats};

/// A Bloom filter that hashes the key itself, as often as its [`Family`] requires.
///
/// It exists to reproduce filters that others have built and measured. It takes keys, not digests,
/// so it has no fast path and cannot be part of a chain or an index. For anything else use
/// [`Bloom`](crate::Bloom).
///
/// ```
/// use umbel::literature::{Family, Literature};
/// let mut filter = Literature::with_capacity(Family::Murmur3, 1000, 0.01)?;
/// filter.insert("bloom");
/// assert!(filter.contains("bloom"));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Debug)]
pub struct Literature {
    pub(crate) scheme: Scheme,
    pub(crate) words: Words,
    pub(crate) design: Option<Design>,
    pub(crate) inserted: Option<u64>,
}

impl Literature {
    /// Creates an empty filter with the positions of `scheme`.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn new(scheme: Scheme) -> Result<Literature> {
        let words = Words::zeroed(Literature::lines(&scheme))?;
        Ok(Literature { scheme, words, design: None, inserted: Some(0) })
    }

    /// Creates an empty filter for `capacity` keys with a false-positive rate of `rate`: exactly
    /// the m and k of the formulas.
    ///
    /// # Errors
    ///
    /// If `capacity` or `rate` is out of range, the family cannot provide the k and m, or there is
    /// not enough memory.
    pub fn with_capacity(family: Family, capacity: u64, rate: f64) -> Result<Literature> {
        Literature::with_policy(family, capacity, rate, KPolicy::Round)
    }

    /// As [`with_capacity`](Literature::with_capacity), with another rounding policy for k.
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](Literature::with_capacity).
    pub fn with_policy(family: Family, capacity: u64, rate: f64, policy: KPolicy) -> Result<Literature> {
        let params = Params::for_capacity(capacity, rate, policy)?;
        let mut filter = Literature::new(Scheme::new(family, params.hashes, params.bits)?)?;
        filter.design = Some(Design { capacity, rate });
        Ok(filter)
    }

    /// Creates an empty filter from any sufficient settings: exactly the m and k that they lead to.
    /// The hash of the specification is not used. If k follows from the rate and the family has
    /// fewer functions, all of them are used, and the rate is met with more bits.
    ///
    /// ```
    /// use umbel::Spec;
    /// use umbel::literature::{Family, Literature};
    /// let filter = Literature::build(Family::Md5Slices, &Spec::new(1000, 0.01)?)?;
    /// assert_eq!(filter.scheme().k(), 4);
    /// assert!(filter.predicted_rate(1000)? <= 0.01);
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the settings are not sufficient or contradict each other, the family cannot provide the k
    /// and m, or there is not enough memory.
    pub fn build(family: Family, spec: &Spec) -> Result<Literature> {
        let given = spec.given();
        let mut params = given.solve(spec.policy())?;
        if given.k.is_none() && params.hashes > family.max_hashes() {
            params = Given { k: Some(family.max_hashes()), ..given }.solve(spec.policy())?;
        }
        let Params { capacity, bits, hashes, .. } = params;
        let mut filter = Literature::new(Scheme::new(family, hashes, bits)?)?;
        let rate = given.p.map_or_else(|| filter.predicted_rate(capacity), Ok)?;
        filter.design = Some(Design { capacity, rate });
        Ok(filter)
    }

    pub(crate) fn lines(scheme: &Scheme) -> u64 {
        scheme.m().div_ceil(LINE_BITS)
    }

    /// Returns the kind of filter.
    pub fn kind(&self) -> Kind {
        Kind::Literature
    }

    /// Returns the family, k and m.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Returns the memory.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Returns the capacity and rate that the filter was planned for.
    pub fn design(&self) -> Option<Design> {
        self.design
    }

    /// Returns the number of insertions; `None` if it is unknown, as it is after a union.
    pub fn inserted(&self) -> Option<u64> {
        self.inserted
    }

    /// Returns a copy that owns its memory and can be changed.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn try_clone(&self) -> Result<Literature> {
        let Literature { scheme, ref words, design, inserted } = *self;
        Ok(Literature { scheme, words: words.try_clone()?, design, inserted })
    }

    /// Creates an empty filter of the same scheme and design.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn try_clone_empty(&self) -> Result<Literature> {
        let words = Words::zeroed(Literature::lines(&self.scheme))?;
        Ok(Literature { scheme: self.scheme, words, design: self.design, inserted: Some(0) })
    }

    /// Inserts `key`. Returns `true` if it was certainly not in the set before.
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        key.with_bytes(|bytes| self.insert_at(self.scheme.positions(bytes)))
    }

    /// Sets the bits at these positions of a key. Returns `true` if one of them was not set before.
    #[inline(always)]
    pub(super) fn insert_at(&mut self, positions: impl Iterator<Item = u64>) -> bool {
        let words = self.words.words_mut();
        let present = positions.fold(true, |present, position| present & bits::set(words, position));
        self.inserted = self.inserted.map(|before| before.saturating_add(1));
        !present
    }

    /// Returns whether `key` may be a member. Stops at the first zero bit.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        key.with_bytes(|bytes| self.contains_bytes(bytes))
    }

    fn contains_bytes(&self, bytes: &[u8]) -> bool {
        self.contains_at(self.scheme.positions(bytes))
    }

    /// Returns whether the bits at these positions of a key are set.
    #[inline(always)]
    pub(super) fn contains_at(&self, mut positions: impl Iterator<Item = u64>) -> bool {
        let words = self.words.words();
        positions.all(|position| bits::is_set(words, position))
    }

    /// Inserts many keys.
    pub fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) {
        for i in 0..keys.len() {
            keys.with_bytes(i, |bytes| self.insert(bytes));
        }
    }

    /// Looks up many keys.
    pub fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        (0..keys.len()).map(|i| keys.with_bytes(i, |bytes| self.contains_bytes(bytes))).collect()
    }

    /// Measures how full the filter is, and the rate that follows.
    pub fn stats(&self) -> Stats {
        let (bits, hashes, set_bits) = (self.scheme.m(), self.scheme.k(), self.words.count_ones());
        let estimate = self.shape().cardinality(set_bits).unwrap_or(Cardinality::Saturated);
        Stats {
            kind: self.kind(),
            cells: bits,
            used_cells: set_bits,
            hashes,
            bits,
            bytes: Literature::lines(&self.scheme) * LINE_BYTES as u64,
            capacity: self.design.map(|design| design.capacity),
            rate_target: self.design.map(|design| design.rate),
            inserted: self.inserted,
            // A key sets at most k bits.
            estimate: estimate.within(set_bits.div_ceil(hashes.into()), self.inserted),
            rate_now: (set_bits as f64 / bits as f64).powi(hashes as i32),
            details: Vec::new(),
        }
    }

    /// Returns the rate that theory predicts after `n` keys, if the hash functions are independent.
    ///
    /// # Errors
    ///
    /// If `n` is out of range.
    pub fn predicted_rate(&self, n: u64) -> Result<f64> {
        rate::expected(self.scheme.m(), n, self.scheme.k())
    }

    fn shape(&self) -> Shape {
        Shape::Standard { bits: self.scheme.m(), hashes: self.scheme.k() }
    }

    /// Returns the first difference that prevents combining the two, if there is one.
    pub fn mismatch(&self, other: &Literature) -> Option<Mismatch> {
        let (ours, theirs) = (&self.scheme, &other.scheme);
        Mismatch::between("number of bits", ours.m(), theirs.m())
            .or_else(|| Mismatch::between("number of hashes", ours.k(), theirs.k()))
            .or_else(|| Mismatch::between("family", ours.family(), theirs.family()))
    }

    /// Turns this filter into the filter of both sets.
    ///
    /// # Errors
    ///
    /// If family, k or m differ. Neither filter is changed then.
    pub fn union(&mut self, other: &Literature) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        self.words.merge(&other.words, |a, b| a | b);
        self.inserted = None;
        Ok(())
    }

    /// Turns this filter into a filter of the keys in both sets. It also has bits that both filters
    /// set for different keys.
    ///
    /// # Errors
    ///
    /// As [`union`](Literature::union).
    pub fn intersect(&mut self, other: &Literature) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        self.words.merge(&other.words, |a, b| a & b);
        self.inserted = None;
        Ok(())
    }

    /// Estimates how many keys the two sets have in common; `None` if their union is saturated.
    ///
    /// # Errors
    ///
    /// As [`union`](Literature::union).
    pub fn overlap(&self, other: &Literature) -> Result<Option<Overlap>> {
        Mismatch::refuse(self.mismatch(other))?;
        let union = self.words.count_union(&other.words);
        self.shape().overlap(self.words.count_ones(), other.words.count_ones(), union)
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.words.words_mut().fill(0);
        self.inserted = Some(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn every_family_keeps_its_keys_and_its_rate() {
        for family in Family::ALL {
            // Slices of SHA-1 provide at most five hash functions, those of MD5 four.
            let scheme = Scheme::new(family, family.max_hashes().min(5), 80_000).unwrap();
            let mut filter = Literature::new(scheme).unwrap();
            let keys: Vec<u64> = (0..10_000).collect();
            filter.insert_batch(&keys[..]);
            assert_eq!(filter.contains_batch(&keys[..]).count(), 10_000, "{family}");
            let absent: Vec<u64> = (1 << 40..(1 << 40) + 200_000).collect();
            let measured = filter.contains_batch(&absent[..]).count() as f64 / 200_000.0;
            let expected = filter.predicted_rate(10_000).unwrap();
            // Four sigma of 200 000 queries, and 2 % for the fill of one build.
            let tolerance = 4.0 * (expected / 200_000.0).sqrt() + 0.02 * expected;
            assert!((measured - expected).abs() < tolerance, "{family}: {measured} {expected}");
            assert!((filter.stats().rate_now - expected).abs() < 0.03 * expected, "{family}");
        }
    }

    #[test]
    fn only_filters_of_the_same_scheme_can_be_united() {
        let filter = |family, k, m| Literature::new(Scheme::new(family, k, m).unwrap()).unwrap();
        let mut ours = filter(Family::Murmur3, 3, 100);
        for (other, what) in [
            (filter(Family::Murmur3, 3, 101), "number of bits"),
            (filter(Family::Murmur3, 2, 100), "number of hashes"),
            (filter(Family::Murmur2, 3, 100), "family"),
        ] {
            assert_eq!(ours.mismatch(&other).unwrap().what, what);
            assert!(matches!(ours.union(&other), Err(Error::Mismatch(_))));
        }
        let mut other = filter(Family::Murmur3, 3, 100);
        other.insert("a");
        ours.union(&other).unwrap();
        assert!(ours.contains("a"));
    }
}
