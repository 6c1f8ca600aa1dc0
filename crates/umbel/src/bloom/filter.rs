//! [`BloomFilter`]: the default filter.

use super::{Blocked, Bloom, Partitioned, Standard};
use crate::algebra::Mismatch;
use crate::builder::{Build, Builder};
use crate::file::{Encoder, FormatError, Options, Storable, expect_kind};
use crate::kind::Design;
use crate::methods::{file_methods, filter_methods, insert_methods};

use crate::memory::{Mover, Words};
use crate::sizing::Overlap;
use crate::structure::{Parts, Probe, Structure};
use crate::{
    Answers, AnyFilter, Batch, Digest, Error, Filter, Hasher, Insert, Key, Kind, Level, Plan, Result, Spec,
    Stats, Stored, spec,
};
use std::convert::Infallible;

/// A Bloom filter: a set that answers "certainly not" or "probably yes" in a few bits per key.
///
/// Use this filter unless there is a reason for another kind. It is [blocked](Blocked), so a lookup
/// costs one cache miss, or [standard](Standard) if it is so small that cache misses do not matter.
///
/// ```
/// use umbel::BloomFilter;
///
/// let mut seen = BloomFilter::with_capacity(1_000_000, 0.01)?;
/// assert!(seen.insert("apple"), "it was certainly not there");
/// assert!(seen.contains("apple"));
/// assert!(!seen.contains("pear"), "certainly not");
///
/// // Many keys at once are several times faster.
/// let keys: Vec<u64> = (0..1000).collect();
/// seen.insert_batch(&keys);
/// assert_eq!(seen.contains_batch(&keys).count(), 1000);
///
/// # let folder = tempfile::tempdir()?;
/// # std::env::set_current_dir(&folder)?;
/// seen.save("seen.umbel")?;
/// assert!(BloomFilter::load("seen.umbel")?.contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A file of a [`Bloom<Partitioned>`](Partitioned) can be loaded as a `BloomFilter`, too. Load
/// files of other kinds as [`AnyFilter`].
pub struct BloomFilter(pub(crate) Bits);

/// A bit array in one of its layouts.
pub(crate) enum Bits {
    Standard(Bloom<Standard>),
    Partitioned(Bloom<Partitioned>),
    Blocked(Bloom<Blocked>),
}

/// Evaluates the same expression for any layout.
macro_rules! each {
    ($filter:expr, $inner:ident => $action:expr) => {
        match $filter {
            Bits::Standard($inner) => $action,
            Bits::Partitioned($inner) => $action,
            Bits::Blocked($inner) => $action,
        }
    };
}

/// Evaluates the same expression for two filters of one layout, or `else` if the layouts differ.
macro_rules! both {
    ($ours:expr, $theirs:expr, $a:ident, $b:ident => $action:expr, else $other:expr) => {
        match ($ours, $theirs) {
            (Bits::Standard($a), Bits::Standard($b)) => $action,
            (Bits::Partitioned($a), Bits::Partitioned($b)) => $action,
            (Bits::Blocked($a), Bits::Blocked($b)) => $action,
            _ => $other,
        }
    };
}

impl BloomFilter {
    /// Makes an empty filter for `capacity` keys with a false-positive rate of `rate`.
    ///
    /// # Errors
    ///
    /// If `capacity` is 0, if `rate` is not between 0 and 1 or too small for 64-bit digests, or if
    /// there is not enough memory.
    pub fn with_capacity(capacity: u64, rate: f64) -> Result<BloomFilter> {
        BloomFilter::build(&Spec::new(capacity, rate)?)
    }

    /// Returns a builder, which makes an empty filter from any sufficient settings.
    pub fn builder() -> Builder<BloomFilter> {
        Builder::new()
    }

    /// Makes the empty filter that a specification describes.
    ///
    /// # Errors
    ///
    /// If the settings contradict each other or there is not enough memory.
    pub fn build(spec: &Spec) -> Result<BloomFilter> {
        Build::build(spec)
    }

    /// Makes a filter of these keys, of the size that `rate` requires. Needs 8 bytes of temporary
    /// memory per key.
    ///
    /// ```
    /// use umbel::BloomFilter;
    /// let fruit = BloomFilter::from_keys(["apple", "pear"], 0.001)?;
    /// assert!(fruit.contains("pear") && !fruit.contains("stone"));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If `rate` is not between 0 and 1 or there is not enough memory.
    pub fn from_keys<I>(keys: I, rate: f64) -> Result<BloomFilter>
    where
        I: IntoIterator,
        I::Item: Key,
    {
        crate::builder::from_keys(keys, rate)
    }

    /// Returns the number of keys and the rate it was planned for; `None` if it was made without a
    /// plan.
    pub fn design(&self) -> Option<Design> {
        each!(&self.0, filter => filter.design())
    }

    /// Returns the number of insertions; `None` if it is unknown, such as after a union.
    pub fn inserted(&self) -> Option<u64> {
        each!(&self.0, filter => filter.inserted())
    }

    /// Computes the false-positive rate that theory predicts after `n` distinct keys.
    ///
    /// # Errors
    ///
    /// If `n` is more than the theory covers.
    pub fn predicted_rate(&self, n: u64) -> Result<f64> {
        each!(&self.0, filter => filter.predicted_rate(n))
    }

    /// Returns a copy that owns its memory.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for it.
    pub fn try_clone(&self) -> Result<BloomFilter> {
        Ok(each!(&self.0, filter => filter.try_clone()?.into()))
    }

    /// Returns an empty filter of the same shape, hash and design.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for it.
    pub fn try_clone_empty(&self) -> Result<BloomFilter> {
        Ok(each!(&self.0, filter => filter.try_clone_empty()?.into()))
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        each!(&mut self.0, filter => filter.clear());
    }

    /// Returns a filter of the same keys in half the memory, without needing the keys: each bit is
    /// the union of two neighbours. The rate rises accordingly.
    ///
    /// ```
    /// use umbel::BloomFilter;
    /// let mut roomy = BloomFilter::with_capacity(1_000_000, 0.001)?;
    /// roomy.insert_batch(&(0..100_000u64).collect::<Vec<_>>());
    /// let folded = roomy.fold()?;
    /// assert_eq!(folded.stats().bytes * 2, roomy.stats().bytes);
    /// assert!((0..100_000u64).all(|key| folded.contains(&key)));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the size is odd or there is not enough memory.
    pub fn fold(&self) -> Result<BloomFilter> {
        Ok(each!(&self.0, filter => filter.fold()?.into()))
    }

    /// Returns the first difference that prevents combining the two filters, if there is one.
    pub fn mismatch(&self, other: &BloomFilter) -> Option<Mismatch> {
        let kinds = || Mismatch::kinds(self.kind(), other.kind());
        both!(&self.0, &other.0, a, b => a.mismatch(b), else Some(kinds()))
    }

    /// Adds the keys of `other`: the result equals the filter that comes from inserting all keys of
    /// both.
    ///
    /// ```
    /// use umbel::BloomFilter;
    /// let mut fruit = BloomFilter::with_capacity(1000, 0.01)?;
    /// let mut nuts = fruit.try_clone_empty()?;
    /// fruit.insert("apple");
    /// nuts.insert("hazel");
    /// fruit.union(&nuts)?;
    /// assert!(fruit.contains("apple") && fruit.contains("hazel"));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If shape, hash or seed differ. Neither filter has changed then.
    pub fn union(&mut self, other: &BloomFilter) -> Result<()> {
        let kinds = Mismatch::kinds(self.kind(), other.kind());
        both!(&mut self.0, &other.0, a, b => a.union(b), else Err(Error::Mismatch(kinds)))
    }

    /// Keeps the keys that are in both sets. The result has no false negatives, and a rate no
    /// higher than that of either filter. But bits that both filters set for different keys remain,
    /// so a filter built from the common keys has fewer false positives.
    ///
    /// # Errors
    ///
    /// If shape, hash or seed differ. Neither filter has changed then.
    pub fn intersect(&mut self, other: &BloomFilter) -> Result<()> {
        let kinds = Mismatch::kinds(self.kind(), other.kind());
        both!(&mut self.0, &other.0, a, b => a.intersect(b), else Err(Error::Mismatch(kinds)))
    }

    /// Estimates the number of keys that the two sets have in common, with error bounds. Returns
    /// `None` if their union is saturated.
    ///
    /// # Errors
    ///
    /// If shape, hash or seed differ.
    pub fn overlap(&self, other: &BloomFilter) -> Result<Option<Overlap>> {
        let kinds = Mismatch::kinds(self.kind(), other.kind());
        both!(&self.0, &other.0, a, b => a.overlap(b), else Err(Error::Mismatch(kinds)))
    }

    /// Adds the keys of another filter of the same shape, for threads that each fill their own.
    /// Unlike `union`, it adds the two counts of insertions.
    ///
    /// # Errors
    ///
    /// If shape, hash or seed differ. Neither filter has changed then.
    pub fn absorb(&mut self, part: &BloomFilter) -> Result<()> {
        let kinds = Mismatch::kinds(self.kind(), part.kind());
        both!(&mut self.0, &part.0, a, b => a.absorb(b), else Err(Error::Mismatch(kinds)))
    }

    /// Restores a filter from the parts of a file.
    pub(crate) fn restore(kind: Kind, parts: Parts) -> Result<BloomFilter> {
        AnyFilter::restore(kind, parts)?.try_into()
    }

    pub(crate) fn relocate(&mut self, mover: &mut dyn Mover) {
        each!(&mut self.0, filter => filter.relocate(mover));
    }

    pub(crate) fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        each!(&self.0, filter => filter.trace(digest, probe))
    }

    pub(crate) fn words(&self) -> &Words {
        each!(&self.0, filter => filter.words())
    }

    pub(crate) fn check_contents(&self) -> Result<(), FormatError> {
        each!(&self.0, filter => filter.check_contents())
    }

    pub(crate) fn set_level(&mut self, level: Level) {
        each!(&mut self.0, filter => filter.set_level(level));
    }
}

/// The parts of a filter that is put together from pieces.
#[cfg(all(feature = "files", feature = "mmap"))]
impl BloomFilter {
    /// Returns the memory of the bits.
    pub(crate) fn words_mut(&mut self) -> &mut Words {
        each!(&mut self.0, filter => &mut filter.words)
    }

    /// Sets the number of insertions that the bits stand for.
    pub(crate) fn set_inserted(&mut self, inserted: u64) {
        each!(&mut self.0, filter => filter.head.inserted = Some(inserted));
    }
}

filter_methods!([] BloomFilter);
insert_methods!([] BloomFilter);
file_methods!([] BloomFilter);

impl Filter for BloomFilter {
    fn kind(&self) -> Kind {
        each!(&self.0, filter => filter.kind())
    }

    #[inline]
    fn hasher(&self) -> &Hasher {
        each!(&self.0, filter => filter.hasher())
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        each!(&self.0, filter => filter.contains_digest(digest))
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        each!(&self.0, filter => filter.contains_tile(tile))
    }

    fn stats(&self) -> Stats {
        each!(&self.0, filter => filter.stats())
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        each!(&self.0, filter => filter.contains_batch(keys))
    }
}

impl Insert for BloomFilter {
    type Error = Infallible;

    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Infallible> {
        each!(&mut self.0, filter => Insert::insert_digest(filter, digest))
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<(), Infallible> {
        each!(&mut self.0, filter => Insert::insert_tile(filter, tile))
    }

    fn insert_tile_new(&mut self, tile: &[Digest]) -> Result<u64, Infallible> {
        each!(&mut self.0, filter => Insert::insert_tile_new(filter, tile))
    }

    fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<(), Infallible> {
        each!(&mut self.0, filter => Insert::insert_batch(filter, keys))
    }
}

impl Build for BloomFilter {
    fn plan(spec: &Spec) -> Result<Plan> {
        spec::plan(Kind::Blocked, spec)
    }

    fn build(spec: &Spec) -> Result<BloomFilter> {
        match BloomFilter::plan(spec)?.kind {
            Kind::Blocked => Ok(Bloom::<Blocked>::build(spec)?.into()),
            _ => Ok(Bloom::<Standard>::build(spec)?.into()),
        }
    }
}

impl Storable for BloomFilter {
    fn encoder(&self, options: &Options) -> Result<Encoder<'_>> {
        each!(&self.0, filter => filter.encoder(options))
    }

    fn check_kind(kind: Kind) -> Result<(), FormatError> {
        let is = matches!(kind, Kind::Standard | Kind::Partitioned | Kind::Blocked);
        expect_kind(is, kind, "a blocked, standard or partitioned filter")
    }

    fn from_stored(stored: Stored) -> Result<BloomFilter> {
        stored.try_into()
    }
}

impl std::fmt::Debug for BloomFilter {
    /// Formats a summary, without the bits and without secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        each!(&self.0, filter => filter.fmt(f))
    }
}

macro_rules! convert {
    ($($layout:ident)*) => {$(
        impl From<Bloom<$layout>> for BloomFilter {
            fn from(filter: Bloom<$layout>) -> BloomFilter {
                BloomFilter(Bits::$layout(filter))
            }
        }
    )*};
}
convert!(Standard Partitioned Blocked);

impl From<BloomFilter> for AnyFilter {
    fn from(filter: BloomFilter) -> AnyFilter {
        each!(filter.0, filter => filter.into())
    }
}

impl TryFrom<AnyFilter> for BloomFilter {
    type Error = Error;

    /// Succeeds for the kinds that are an array of bits.
    fn try_from(filter: AnyFilter) -> Result<BloomFilter> {
        match filter {
            AnyFilter::Standard(filter) => Ok(filter.into()),
            AnyFilter::Partitioned(filter) => Ok(filter.into()),
            AnyFilter::Blocked(filter) => Ok(filter.into()),
            other => {
                let expected = "a blocked, standard or partitioned filter";
                Err(FormatError::wrong_kind(other.kind(), expected).into())
            }
        }
    }
}
