//! Space-code Bloom filters: multisets that estimate how often a key was recorded, without counters
//! that could overflow.
//!
//! ```
//! use umbel::MultiResolution;
//! // A million packets in an epoch, and a noise of half a per cent.
//! let mut flows = MultiResolution::with_capacity(1_000_000, 0.005)?;
//! flows.insert("10.0.0.7 -> 10.0.0.1");
//! for _ in 0..20_000 {
//!     flows.insert("10.0.0.9 -> 10.0.0.1");
//! }
//! let small = flows.count("10.0.0.7 -> 10.0.0.1");
//! assert!((0.9..=1.0).contains(&small.value));
//! let large = flows.count("10.0.0.9 -> 10.0.0.1");
//! assert!(large.low < 20_000.0 && 20_000.0 < large.high);
//! assert!(!flows.contains("10.0.0.8 -> 10.0.0.1"), "certainly not");
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # How it works
//!
//! A recording sets the bits of one of 32 groups of hash functions, drawn at random. The number of
//! groups whose bits are all set estimates how often the key was recorded, up to about 110 times:
//!
//! ```text
//! groups of a key   0  1  2  3  4  5  6  7  ...  31
//! all bits set      .  x  .  .  x  .  x  .  ...  .      3 groups found: about 3 recordings
//! ```
//!
//! [`MultiResolution`] has nine such arrays. Each one samples a quarter as many recordings as the
//! one before, and a key is read from the most informative array. This reaches about eight million
//! recordings of a key.
//!
//! # When to use it
//!
//! Use [`SpaceCode`] for keys that are recorded up to about a hundred times, and
//! [`MultiResolution`] when some are recorded far more often, such as the packets of flows. Memory
//! depends on the number of recordings, not of keys: 11 bits for each recording in the first, 15 in
//! the second, and less when a few keys are recorded often. A lookup tests 32 groups of each array
//! that it reads, so it is many times slower than a lookup in a set.
//!
//! Counts are estimates. Half of them are within 10 % to 18 % for keys that were recorded at least
//! five times. The formulas are in [`sizing::space_code`](crate::sizing::space_code).
//!
//! # Random numbers
//!
//! The i-th recording draws its random numbers from the seed, the epoch and i. So the same input
//! produces the same file, and a filter that was saved and loaded continues with fresh numbers. An
//! attacker who knows the seed could choose when a key is recorded, and so confine it to a few
//! groups. To prevent this, [`insert_with`](SpaceCodeFilter::insert_with) takes the random numbers
//! from the caller, for instance from the operating system.
//!
//! Filters that are filled separately and united later must have different seeds. With equal seeds,
//! a key that is the i-th recording in both would hit the same group twice and count once.
//! [`part`](SpaceCodeFilter::part) creates such filters, and the union of two filters with the same
//! seed is refused.
//!
//! # References
//!
//! * A. Kumar, J. Xu, J. Wang, O. Spatschek and L. Li. *Space-code Bloom filter for efficient
//!   per-flow traffic measurement.* INFOCOM 2004. `Kumar04`

mod array;
mod persist;
pub mod private;

use crate::algebra::Mismatch;
use crate::bloom::Layout;
use crate::builder::Builder;
use crate::chain::keys_and_rate;
pub use crate::count::Multiplicity;
use crate::memory::LINE_BYTES;
use crate::methods::{count_methods, structure_methods};
use crate::sizing::space_code::{self as formulas, LevelParams, Rule, sampling};
use crate::sizing::{Cardinality, greatest};
use crate::structure::{self, Head};
use crate::tile::{self, low_bits};
use crate::{Count, Digest, Error, Hasher, Kind, Plan, Result, Spec, Standard, Stats, TILE};
use array::{Array, Hits};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::OnceLock;

/// The options of a space-code filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of groups of hash functions, l, from 1 to 64. A level can count up to about l ln
    /// l recordings of a key.
    pub groups: u32,
    /// The number of levels, r, of a multi-resolution filter, from 1 to 16. They can count up to l
    /// ln l 4^(r-1) recordings of a key.
    pub levels: u32,
    /// The number of different keys that will be recorded, if it is known. A key has at most l
    /// groups, so keys that are recorded often need fewer bits.
    pub keys: Option<u64>,
    /// The number of the epoch. The groups of every key change with it.
    pub epoch: u64,
    /// The seed of the random numbers. It must differ between filters that will be united.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { groups: 32, levels: 9, keys: None, epoch: 0, seed: 0 }
    }
}

/// How the number of recordings is estimated from the number of groups found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Estimator {
    /// The number of recordings for which this many groups are found on average; see
    /// [`mve`](formulas::mve).
    #[default]
    Mve,
    /// The number of recordings for which finding this many groups is most likely; see
    /// [`mle`](formulas::mle).
    Mle,
}

impl Estimator {
    /// All estimators, the default first.
    pub const ALL: [Estimator; 2] = [Estimator::Mve, Estimator::Mle];
}

impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Estimator::Mve => "mve",
            Estimator::Mle => "mle",
        })
    }
}

impl FromStr for Estimator {
    type Err = Error;

    fn from_str(text: &str) -> Result<Estimator> {
        let found = Estimator::ALL.into_iter().find(|estimator| estimator.to_string() == text);
        found.ok_or_else(|| Error::parameter("estimator", text, "mve or mle"))
    }
}

/// The number of levels of a filter: [`Single`] or [`Multi`].
#[doc(hidden)]
pub trait Resolution: std::fmt::Debug + Send + Sync + 'static + structure::sealed::Sealed {
    /// The kind of filter with this resolution.
    const KIND: Kind;

    /// Returns the number of levels.
    #[doc(hidden)]
    fn levels(options: &Options) -> u32;
}

/// One level with all recordings.
#[derive(Debug)]
pub struct Single;

/// Several levels with ever smaller samples.
#[derive(Debug)]
pub struct Multi;

impl structure::sealed::Sealed for Single {}
impl structure::sealed::Sealed for Multi {}

impl Resolution for Single {
    const KIND: Kind = Kind::SpaceCode;

    fn levels(_: &Options) -> u32 {
        1
    }
}

impl Resolution for Multi {
    const KIND: Kind = Kind::MultiResolution;

    fn levels(options: &Options) -> u32 {
        options.levels
    }
}

/// A space-code filter with one level.
pub type SpaceCode = SpaceCodeFilter<Single>;

/// A multi-resolution space-code filter with several levels.
pub type MultiResolution = SpaceCodeFilter<Multi>;

/// A multiset with one or several levels; see the [module documentation](self).
pub struct SpaceCodeFilter<R: Resolution> {
    head: Head,
    /// The options; only the epoch changes after construction.
    options: Options,
    levels: Vec<Array>,
    /// The salt of the random numbers, derived from seed and epoch.
    lot: u64,
    /// The 95 % intervals of the first level, computed on the first query.
    intervals: OnceLock<Intervals>,
    resolution: PhantomData<R>,
}

/// The intervals for each number of groups found. The noise is rounded so that they stay valid for
/// a while.
#[derive(Debug)]
struct Intervals {
    of: Vec<(f64, f64)>,
    /// The largest number of set bits for which they are valid.
    until: u64,
}

/// The current state of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LevelInfo {
    /// The fraction of recordings that it samples.
    pub sampling: f64,
    /// The number of bits, m.
    pub bits: u64,
    /// The number of hash functions of each group, k.
    pub hashes: u32,
    /// The number of set bits.
    pub ones: u64,
    /// The probability f that a group is found although it was not hit.
    pub noise: f64,
}

structure_methods!([R: Resolution] SpaceCodeFilter<R>);
count_methods!([R: Resolution] SpaceCodeFilter<R>);

impl<R: Resolution> SpaceCodeFilter<R> {
    /// Returns a builder: an empty filter from any sufficient settings.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    /// Creates an empty filter for this many recordings. Afterwards, a group that was not hit is
    /// found with a probability of at most `noise`; 0.005 is a good value.
    ///
    /// # Errors
    ///
    /// Returns an error if a number is out of range, or if there is not enough memory.
    pub fn with_capacity(recordings: u64, noise: f64) -> Result<Self> {
        Self::build(&Spec::new(recordings, noise)?)
    }

    /// Creates an empty filter with this specification, where `n` is the number of recordings and
    /// `p` is the noise.
    ///
    /// # Errors
    ///
    /// Returns an error if the specification is incomplete, contradictory or out of range, or if
    /// there is not enough memory.
    pub fn build(spec: &Spec) -> Result<Self> {
        let (layouts, plan) = Self::plan_levels(spec)?;
        Self::empty(Head::planned(spec, &plan), spec.options().space_code, layouts)
    }

    fn empty(head: Head, options: Options, layouts: Vec<Standard>) -> Result<Self> {
        let array = |(level, layout)| Array::new(layout, salts(&options, level));
        let levels = (0..).zip(layouts).map(array).collect::<Result<_>>()?;
        Ok(Self::with_levels(head, options, levels))
    }

    fn with_levels(head: Head, options: Options, levels: Vec<Array>) -> Self {
        let lot = Digest::from_hash(options.seed).salted(options.epoch).get();
        SpaceCodeFilter { head, options, levels, lot, intervals: OnceLock::new(), resolution: PhantomData }
    }

    /// Returns the layout of each level, and the plan.
    fn plan_levels(spec: &Spec) -> Result<(Vec<Standard>, Plan)> {
        let options = spec.options().space_code;
        check(&options, R::levels(&options))?;
        let Options { groups, keys, .. } = options;
        let exact = |n, p| formulas::levels(n, keys, groups, R::levels(&options), p);
        // Use whole words, so that no memory is wasted.
        let whole = |level: &LevelParams| level.bits.next_multiple_of(64);
        let (n, p) = keys_and_rate(spec, |n, p| Ok(exact(n, p)?.iter().map(whole).sum()))?;
        let levels = exact(n, p)?;
        let layouts: Vec<Standard> =
            levels.iter().map(|level| Standard::new(whole(level), level.hashes)).collect::<Result<_>>()?;
        let lines: u64 = layouts.iter().map(Layout::lines).sum();
        let probes: u32 = layouts.iter().map(|layout| groups * layout.hashes()).sum();
        let plan = spec.finish(Plan {
            kind: R::KIND,
            capacity: n,
            bits: levels.iter().map(|level| level.bits).sum(),
            stored_bits: layouts.iter().map(Layout::bits).sum(),
            bytes: lines * LINE_BYTES as u64,
            hashes: layouts.first().map_or(0, Layout::hashes),
            lines_touched: u64::from(probes).min(lines) as u32,
            rate_asked: spec.given().p.unwrap_or(p),
            rate: predicted(&layouts, &options, n)?,
        })?;
        Ok((layouts, plan))
    }

    /// Returns the number of groups of hash functions (l).
    pub fn groups(&self) -> u32 {
        self.options.groups
    }

    /// Returns the number of the epoch.
    pub fn epoch(&self) -> u64 {
        self.options.epoch
    }

    /// Returns the seed of the random numbers.
    pub fn seed(&self) -> u64 {
        self.options.seed
    }

    /// Returns the number of different keys that the filter was planned for, if it was known.
    pub fn keys(&self) -> Option<u64> {
        self.options.keys
    }

    /// Iterates over the levels, finest first.
    pub fn levels(&self) -> impl ExactSizeIterator<Item = LevelInfo> {
        self.levels.iter().enumerate().map(|(level, array)| LevelInfo {
            sampling: sampling(level as u32),
            bits: array.layout().bits(),
            hashes: array.layout().hashes(),
            ones: array.ones(),
            noise: array.noise(),
        })
    }

    /// Ends the epoch. Returns a filter with the recordings of this epoch, and continues empty with
    /// the next one. The groups of every key then change, so keys that were mistaken for each other
    /// in one epoch are not in the next.
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if there is not enough memory.
    pub fn turn(&mut self) -> Result<Self> {
        let epoch = self.options.epoch.wrapping_add(1);
        let next = self.like(Options { epoch, ..self.options })?;
        Ok(std::mem::replace(self, next))
    }

    /// Returns an empty filter of the same shape, hash and epoch with its own random numbers, to be
    /// filled elsewhere and then [united](Self::union) with this one.
    ///
    /// ```
    /// use umbel::SpaceCode;
    /// let mut whole = SpaceCode::with_capacity(10_000, 0.005)?;
    /// let mut part = whole.part(1)?;
    /// (0..5).for_each(|_| whole.insert("apple"));
    /// (0..5).for_each(|_| part.insert("apple"));
    /// whole.union(&part)?;
    /// assert!((7.0..13.0).contains(&whole.count("apple").value));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub fn part(&self, seed: u64) -> Result<Self> {
        self.like(Options { seed, ..self.options })
    }

    /// Returns an empty filter of the same shape, hash, design, epoch and seed.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub fn try_clone_empty(&self) -> Result<Self> {
        self.like(self.options)
    }

    fn like(&self, options: Options) -> Result<Self> {
        Self::empty(self.head.emptied(), options, self.levels.iter().map(Array::layout).collect())
    }

    /// Removes all recordings; the epoch does not change.
    pub fn clear(&mut self) {
        self.levels.iter_mut().for_each(Array::clear);
        self.intervals = OnceLock::new();
        self.head = self.head.emptied();
    }

    /// Returns the first difference that prevents a union, if any; equal seeds are not considered.
    pub fn mismatch(&self, other: &Self) -> Option<Mismatch> {
        let (ours, theirs) = (&self.options, &other.options);
        let shapes = || {
            let pairs = self.levels.iter().zip(&other.levels);
            pairs.map(|(a, b)| (a.layout(), b.layout())).find_map(|(a, b)| {
                Mismatch::between("number of bits", a.bits(), b.bits())
                    .or_else(|| Mismatch::between("number of hashes", a.hashes(), b.hashes()))
            })
        };
        Mismatch::between("number of groups", ours.groups, theirs.groups)
            .or_else(|| Mismatch::between("number of levels", self.levels.len(), other.levels.len()))
            .or_else(shapes)
            .or_else(|| Mismatch::between("epoch", ours.epoch, theirs.epoch))
            .or_else(|| Mismatch::between_hashes(self.head.hasher.id(), other.head.hasher.id()))
    }

    /// Adds the recordings of another filter, so that counts add up. If more than two filters are
    /// united, all of their seeds must differ.
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if the two differ in shape, epoch or hash, or if
    /// their seeds are equal; see the [module documentation](self).
    pub fn union(&mut self, other: &Self) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        if self.options.seed == other.options.seed {
            let needs = "to differ between the two: with the same random numbers, recordings of both would hit the \
                         same groups and be counted once";
            return Err(Error::parameter("seed", self.options.seed, needs));
        }
        self.levels.iter_mut().zip(&other.levels).for_each(|(ours, theirs)| ours.unite(theirs));
        self.intervals = OnceLock::new();
        let inserted = self.head.inserted.zip(other.head.inserted);
        self.head.inserted =
            inserted.map(|(ours, theirs)| ours.saturating_add(theirs).min(structure::MAX_INSERTED));
        Ok(())
    }

    /// Records a digest with random numbers from the caller. They must be uniform in all of their
    /// bits; two or three are drawn, rarely more.
    ///
    /// ```
    /// use umbel::{Digest, SpaceCode};
    /// let mut filter = SpaceCode::with_capacity(100, 0.005)?;
    /// let digest = Digest::from_hash(0x0123_4567_89ab_cdef);
    /// // Always the first group: recorded twice, but one group indicates only one recording.
    /// filter.insert_with(digest, &mut || 0);
    /// filter.insert_with(digest, &mut || 0);
    /// assert_eq!(filter.groups_found(digest), 1);
    /// # Ok::<(), umbel::Error>(())
    /// ```
    pub fn insert_with(&mut self, digest: Digest, random: &mut impl FnMut() -> u64) {
        let hits = Hits::draw(self.levels.len(), self.options.groups, random);
        self.hit(digest, &hits);
    }

    /// Returns the groups that the recording `ahead` places after the next one hits.
    #[inline]
    fn draw(&self, ahead: usize) -> Hits {
        let number = self.head.inserted.unwrap_or(0).wrapping_add(ahead as u64);
        let recording = Digest::from_hash(number).salted(self.lot);
        let mut count = 0;
        let mut random = || {
            count += 1;
            recording.salted(count).get()
        };
        Hits::draw(self.levels.len(), self.options.groups, &mut random)
    }

    #[inline]
    fn hit(&mut self, digest: Digest, hits: &Hits) {
        for (level, group) in hits.iter() {
            let array = &mut self.levels[level];
            array.set(array.group(digest, group));
        }
        self.head.count_inserted(1);
        if self.intervals.get().is_some_and(|intervals| self.levels[0].ones() > intervals.until) {
            self.intervals = OnceLock::new();
        }
    }

    /// Returns the number of groups of a digest that each level finds.
    fn found(&self, digest: Digest) -> impl Iterator<Item = u32> {
        self.levels.iter().map(move |array| array.found(self.head.level, digest))
    }

    /// Returns the estimate of the guarded rule for a digest of which the first level finds `first`
    /// groups.
    fn guarded(&self, digest: Digest, first: u32) -> Multiplicity {
        let found = |level| self.levels[level as usize].found(self.head.level, digest);
        let (level, theta) = formulas::guarded(self.options.groups, self.levels.len() as u32, first, found);
        at_least_once(first, self.multiplicity(level, theta, Estimator::Mve))
    }

    /// Returns the estimate from a level that finds `theta` groups.
    fn multiplicity(&self, level: u32, theta: u32, estimator: Estimator) -> Multiplicity {
        let (groups, noise) = (self.options.groups, self.levels[level as usize].noise());
        let interval = match level {
            0 => self.intervals.get_or_init(|| self.intervals()).of[theta as usize],
            _ => formulas::poisson_interval(groups, noise, theta, sampling(level)),
        };
        multiplicity(groups, level, theta, noise, interval, estimator)
    }

    /// Computes the intervals of the first level, with its noise rounded in steps of one per cent.
    /// Computing them takes some ten microseconds, too long for each recording, and exact ones
    /// would hardly differ.
    fn intervals(&self) -> Intervals {
        let array = &self.levels[0];
        let step = |ones| noise_step(array.noise_of(ones));
        let now = step(array.ones());
        let until =
            greatest(array.ones()..=array.layout().bits().max(array.ones()), |ones| step(ones) <= now);
        let noise = rounded_noise(array.noise());
        Intervals { of: formulas::intervals(self.options.groups, noise), until: until.unwrap_or(0) }
    }
}

impl SpaceCode {
    /// Returns theta, the number of groups that are found.
    pub fn groups_found(&self, digest: Digest) -> u32 {
        self.levels[0].found(self.head.level, digest)
    }

    /// Estimates how often a digest was recorded, with this estimator.
    pub fn estimate(&self, digest: Digest, estimator: Estimator) -> Multiplicity {
        let theta = self.groups_found(digest);
        at_least_once(theta, self.multiplicity(0, theta, estimator))
    }
}

impl MultiResolution {
    /// Returns the number of groups that each level finds, finest first.
    pub fn groups_found(&self, digest: Digest) -> Vec<u32> {
        self.found(digest).collect()
    }

    /// Returns the level from which a digest is estimated, counted from 0.
    pub fn believed(&self, digest: Digest, rule: Rule) -> u32 {
        self.choose(digest, rule).0
    }

    /// Estimates how often a digest was recorded, with this estimator, from the level that this
    /// rule chooses.
    pub fn estimate(&self, digest: Digest, estimator: Estimator, rule: Rule) -> Multiplicity {
        let (level, theta) = self.choose(digest, rule);
        let first = self.levels[0].found(self.head.level, digest);
        at_least_once(first, self.multiplicity(level, theta, estimator))
    }

    /// Returns the level to estimate from, and the number of groups it finds.
    fn choose(&self, digest: Digest, rule: Rule) -> (u32, u32) {
        let (groups, levels) = (self.options.groups, self.levels.len() as u32);
        let found = |level| self.levels[level as usize].found(self.head.level, digest);
        match rule {
            Rule::Guarded => formulas::guarded(groups, levels, found(0), found),
            Rule::Unguarded => formulas::unguarded(groups, levels, found),
        }
    }
}

/// Returns the estimate from a level that finds `theta` groups, with the interval for that many.
fn multiplicity(
    groups: u32,
    level: u32,
    theta: u32,
    noise: f64,
    (low, high): (f64, f64),
    estimator: Estimator,
) -> Multiplicity {
    let recordings = match estimator {
        Estimator::Mve => formulas::mean_value(groups, noise, theta),
        Estimator::Mle => formulas::most_likely(groups, noise, theta),
    };
    let saturated = theta == groups;
    // If noise alone may explain that all groups are found, only the lower bound is certain.
    let value = if saturated && low < 1.0 { low } else { recordings / sampling(level) };
    // Rounding may put an estimate of 1 slightly below it.
    let (low, high) = (low.min(value), high.max(value));
    Multiplicity { value, low, high, saturated }
}

/// Returns the number of the step of one per cent that a noise is in.
fn noise_step(noise: f64) -> f64 {
    (noise.max(1e-9).ln() * 100.0).floor()
}

/// Returns the middle of the step of one per cent that a noise is in.
fn rounded_noise(noise: f64) -> f64 {
    ((noise_step(noise) + 0.5) / 100.0).exp().min(1.0)
}

/// Raises the upper bound to at least 1 if the first level finds a group: only a key without one was
/// certainly never recorded. With much noise, other keys may look as if they most likely were not.
fn at_least_once(first: u32, count: Multiplicity) -> Multiplicity {
    if first == 0 { count } else { Multiplicity { high: count.high.max(1.0), ..count } }
}

/// The smallest number of groups with several levels. With fewer, a level is full before the next
/// one has sampled anything.
const LEAST_GROUPS_OF_SEVERAL: u32 = 8;

fn check(options: &Options, levels: u32) -> Result<()> {
    formulas::check_groups(options.groups)?;
    formulas::check_levels(levels)?;
    if levels > 1 && options.groups < LEAST_GROUPS_OF_SEVERAL {
        let needs = format!("at least {LEAST_GROUPS_OF_SEVERAL} groups on several levels");
        return Err(Error::parameter("groups", options.groups, needs));
    }
    match options.keys {
        Some(0) => Err(Error::parameter("keys", 0, "at least one key, or to be left open")),
        _ => Ok(()),
    }
}

/// Returns the salts that turn a key's digest into the digests of its groups on this level.
fn salts(options: &Options, level: u64) -> Vec<u64> {
    let epoch = Digest::from_hash(options.epoch);
    (0..u64::from(options.groups)).map(|group| epoch.salted(level << 8 | group).get()).collect()
}

/// Returns the highest noise of any level after `n` recordings.
fn predicted(layouts: &[Standard], options: &Options, n: u64) -> Result<f64> {
    let Options { groups, keys, .. } = *options;
    let noise = |(level, layout): (u32, &Standard)| {
        formulas::predicted_noise(n, keys, groups, level, layout.bits(), layout.hashes())
    };
    (0..).zip(layouts).map(noise).try_fold(0.0, |most: f64, noise| Ok(most.max(noise?)))
}

impl<R: Resolution> Count for SpaceCodeFilter<R> {
    fn kind(&self) -> Kind {
        R::KIND
    }

    fn hasher(&self) -> &Hasher {
        &self.head.hasher
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        self.levels[0].found(self.head.level, digest) > 0
    }

    fn count_digest(&self, digest: Digest) -> Multiplicity {
        self.guarded(digest, self.levels[0].found(self.head.level, digest))
    }

    fn count_tile(&self, tile: &[Digest], counts: &mut [Multiplicity; TILE]) {
        let (groups, array) = (self.options.groups as usize, &self.levels[0]);
        let mut digests = [Digest::default(); TILE];
        // Process as many keys at once as have room for all of their groups in a tile.
        let at_once = TILE / groups;
        for (keys, counts) in tile.chunks(at_once).zip(counts.chunks_mut(at_once)) {
            let tile = array.groups_of(keys, &mut digests);
            let found = tile::contains_tile(self.head.level, &array.layout(), array.words().lines(), tile);
            for (i, (key, count)) in keys.iter().zip(counts).enumerate() {
                let first = (found >> (i * groups) & low_bits(groups)).count_ones();
                *count = self.guarded(*key, first);
            }
        }
    }

    fn insert_digest(&mut self, digest: Digest) {
        let hits = self.draw(0);
        self.hit(digest, &hits);
    }

    fn insert_tile(&mut self, tile: &[Digest]) {
        if !self.levels[0].is_far() {
            return tile.iter().for_each(|digest| self.insert_digest(*digest));
        }
        // Draw all random numbers first, so that the groups on the first level can be prefetched
        // together.
        for tile in tile.chunks(TILE) {
            let (mut hits, mut first) = ([Hits::default(); TILE], [Digest::default(); TILE]);
            for (i, digest) in tile.iter().enumerate() {
                hits[i] = self.draw(i);
                first[i] = self.levels[0].group(*digest, hits[i].first());
            }
            self.levels[0].fetch(&first[..tile.len()]);
            tile.iter().zip(&hits).for_each(|(digest, hits)| self.hit(*digest, hits));
        }
    }

    /// `estimate` is the number of different pairs of a key and a group on the first level, which
    /// is at least the number of different keys. `rate_now` is the highest noise of a level.
    fn stats(&self) -> Stats {
        let first = &self.levels[0];
        let noise = |array: &Array| array.noise();
        let layouts = || self.levels.iter().map(Array::layout);
        let bits = layouts().map(|layout| layout.bits()).sum();
        Stats {
            cells: bits,
            used_cells: self.levels.iter().map(Array::ones).sum(),
            hashes: first.layout().hashes(),
            bits,
            bytes: layouts().map(|layout| layout.lines()).sum::<u64>() * LINE_BYTES as u64,
            estimate: first.layout().shape().cardinality(first.ones()).unwrap_or(Cardinality::Saturated),
            rate_now: self.levels.iter().map(noise).fold(0.0, f64::max),
            details: vec![
                ("groups", self.options.groups.into()),
                ("levels", self.levels.len() as f64),
                ("epoch", self.options.epoch as f64),
            ],
            ..Stats::from_structure(self)
        }
    }
}

#[cfg(test)]
mod tests;
