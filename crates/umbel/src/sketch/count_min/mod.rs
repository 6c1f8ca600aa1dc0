//! [`CountMin`]: estimates of how often each key was counted, never too low.

mod grid;
mod sum;

pub use sum::WeightedSum;

use super::{add_to_total, finish, set_total, sketch_methods, summarize, total};
use crate::file::FormatError;
use crate::memory::{Mover, Words};
use crate::sizing::{Cardinality, Shape};
use crate::structure::{COUNTERS, Head, Parts, check_tail, small};
use crate::tile;
use crate::{Batch, Capabilities, Digest, Error, Hasher, Key, Kind, Mismatch, Result, Stats, Structure};
use grid::{AddTile, CountTile, Grid, add, get};
use std::convert::Infallible;
use std::fmt;

/// Estimates how often each key was counted: the count-min sketch.
///
/// ```
/// use umbel::sketch::CountMin;
/// // Too high by more than 0.1 % of the total for at most one key in a hundred.
/// let mut requests = CountMin::with_error(0.001, 0.01)?;
/// requests.insert("10.0.0.7");
/// requests.insert_times("10.0.0.9", 500);
/// assert_eq!((requests.count("10.0.0.9"), requests.total()), (500, 501));
///
/// let mut others = CountMin::with_error(0.001, 0.01)?;
/// others.insert("10.0.0.9");
/// requests.union(&others)?;
/// assert_eq!(requests.count("10.0.0.9"), 501);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # How it works
///
/// Each of d rows has w counters. A key has one counter in each row, chosen by a hash of that row,
/// and is added to all of them. Other keys may share a counter, so each counter is an upper bound
/// of the key's count, and the lowest is the best:
///
/// ```text
///               w counters
///        ┌────────────────────────┐
/// row 0  . . 7 . . . . . 2 . . . .
/// row 1  . 9 . . . 7 . . . . . . .       count = min(7, 7, 8) = 7
/// row 2  . . . 3 . . . . . . 8 . .
/// ```
///
/// # When to use it
///
/// Take it when any key may be looked up and a count that is too high does no harm. A row
/// overestimates by total / w on average, so the guarantee is relative to the total, not to the
/// count: only a wide sketch can tell rare keys from absent ones. For the frequent keys alone,
/// [`Frequent`](super::Frequent) and [`TopK`](super::TopK) need less memory.
///
/// It costs 4 w d bytes, and an insertion touches d cache lines. `with_error(e, p)` chooses w =
/// 2.72 / e and d = ln(1 / p), rounded up. A counter stops at 2^32 - 1; beyond that, counts are too
/// low.
///
/// # References
///
/// * G. Cormode and S. Muthukrishnan. *An improved data stream summary: the count-min sketch and
///   its applications.* Journal of Algorithms 55(1), 2005. `CM05`
pub struct CountMin {
    head: Head,
    grid: Grid,
    /// Two counters in each word, row by row.
    counters: Words,
}

sketch_methods!(CountMin);

impl CountMin {
    /// Creates an empty sketch for an overestimate of at most `error` times the total, exceeded
    /// with probability `probability`.
    ///
    /// # Errors
    ///
    /// If either is not between 0 and 1, or there is not enough memory.
    pub fn with_error(error: f64, probability: f64) -> Result<CountMin> {
        for (name, value) in [("error", error), ("probability", probability)] {
            if !(value > 0.0 && value < 1.0) {
                return Err(Error::parameter(name, value, "a number between 0 and 1"));
            }
        }
        let (width, depth) = (std::f64::consts::E / error, (1.0 / probability).ln());
        CountMin::with_dimensions(width.ceil() as u64, depth.ceil() as u32)
    }

    /// Creates an empty sketch of `depth` rows (d) with `width` counters each (w).
    ///
    /// # Errors
    ///
    /// If there are no counters or more than 256 rows, or there is not enough memory.
    pub fn with_dimensions(width: u64, depth: u32) -> Result<CountMin> {
        let grid = Grid { width, depth };
        let counters = Words::zeroed(grid.cells()?.lines())?;
        Ok(CountMin { head: Head::new(Hasher::default()), grid, counters })
    }

    /// Creates a sketch from its parts as stored by another program.
    #[doc(hidden)]
    pub fn from_parts(width: u64, depth: u32, hasher: Hasher, sum: u64, counters: Words) -> Result<CountMin> {
        let grid = Grid { width, depth };
        if counters.lines().len() as u64 != grid.cells()?.lines() {
            let needs = format!("{} lines of 64 bytes", grid.cells()?.lines());
            return Err(Error::parameter("counters", format!("{} lines", counters.lines().len()), needs));
        }
        let mut head = Head::new(hasher);
        set_total(&mut head, sum);
        let sketch = CountMin { head, grid, counters };
        sketch.check_contents()?;
        Ok(sketch)
    }

    /// Returns w: the number of counters in a row.
    pub fn width(&self) -> u64 {
        self.grid.width
    }

    /// Returns d: the number of rows.
    pub fn depth(&self) -> u32 {
        self.grid.depth
    }

    /// Returns the share of the total by which a count is too high at most, except with
    /// [`probability`](CountMin::probability): e / w.
    pub fn error(&self) -> f64 {
        std::f64::consts::E / self.grid.width as f64
    }

    /// Returns the probability that a count is too high by more than [`error`](CountMin::error)
    /// times the total: e^-d.
    pub fn probability(&self) -> f64 {
        (-f64::from(self.grid.depth)).exp()
    }

    /// Returns the sum of all counts, or `u64::MAX` if it is larger.
    pub fn total(&self) -> u64 {
        total(&self.head)
    }

    /// Counts `key` once, and returns its new count.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> u64 {
        self.insert_times(key, 1)
    }

    /// Counts `key` `times` times, and returns its new count.
    #[inline]
    pub fn insert_times<K: Key + ?Sized>(&mut self, key: &K, times: u64) -> u64 {
        self.insert_digest_times(key.digest(&self.head.hasher), times)
    }

    /// Counts the key with this digest once, and returns its new count.
    #[inline]
    pub fn insert_digest(&mut self, digest: Digest) -> u64 {
        self.insert_digest_times(digest, 1)
    }

    fn insert_digest_times(&mut self, digest: Digest, times: u64) -> u64 {
        let (grid, counters) = (self.grid, self.counters.words_mut());
        let added = u32::try_from(times).unwrap_or(u32::MAX);
        let raised = (0..grid.depth).map(|row| add(counters, grid.place(row, digest), added));
        let count = raised.min().unwrap_or_default();
        add_to_total(&mut self.head, times);
        count.into()
    }

    /// Counts many keys once each; the fast way.
    pub fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) {
        let hasher = self.head.hasher.clone();
        let (grid, level, counters) = (self.grid, self.head.level, self.counters.words_mut());
        let Ok(()) = tile::each(keys, &hasher, |digests| {
            level.run(AddTile { grid, counters, digests });
            Ok::<(), Infallible>(())
        });
        add_to_total(&mut self.head, keys.len() as u64);
    }

    /// Returns an upper bound of how often `key` was counted.
    #[inline]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_digest(key.digest(&self.head.hasher))
    }

    /// Returns an upper bound of how often the key with this digest was counted.
    pub fn count_digest(&self, digest: Digest) -> u64 {
        let counters = self.counters.words();
        let counts = (0..self.grid.depth).map(|row| get(counters, self.grid.place(row, digest)));
        counts.min().unwrap_or_default().into()
    }

    /// Returns an upper bound of how often each of many keys was counted; the fast way.
    pub fn count_batch<B: Batch + ?Sized>(&self, keys: &B) -> Vec<u64> {
        let (grid, counters) = (self.grid, self.counters.words());
        let mut all = Vec::with_capacity(keys.len());
        let Ok(()) = tile::each(keys, &self.head.hasher, |digests| {
            let counts = self.head.level.run(CountTile { grid, counters, digests });
            all.extend(counts[..digests.len()].iter().copied().map(u64::from));
            Ok::<(), Infallible>(())
        });
        all
    }

    /// Returns whether `key` may have been counted: `false` is certain.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.count(key) > 0
    }

    /// Returns the first difference that prevents a union of the two, if there is one.
    pub fn mismatch(&self, other: &CountMin) -> Option<Mismatch> {
        mismatch((self.grid, &self.head.hasher), (other.grid, &other.head.hasher))
    }

    /// Turns this sketch into the sketch of everything that was counted in either.
    ///
    /// # Errors
    ///
    /// If width, depth, hash or seed differ. Neither sketch is changed then.
    pub fn union(&mut self, other: &CountMin) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        let sum = |a: u64, b: u64| {
            let halves = [0, 32]
                .map(|shift| u64::from(((a >> shift) as u32).saturating_add((b >> shift) as u32)) << shift);
            halves[0] | halves[1]
        };
        self.counters.merge(&other.counters, sum);
        add_to_total(&mut self.head, total(&other.head));
        Ok(())
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        self.counters.words_mut().fill(0);
        self.head = self.head.emptied();
    }

    /// Measures how full the sketch is. The estimate of the number of distinct keys comes from the
    /// first row.
    pub fn stats(&self) -> Stats {
        let (words, Grid { width, depth }) = (self.counters.words(), self.grid);
        let used = |cells: std::ops::Range<u64>| cells.filter(|cell| get(words, *cell) > 0).count() as u64;
        let cells = width * u64::from(depth);
        let row = Shape::Standard { bits: width, hashes: 1 };
        Stats {
            cells,
            used_cells: used(0..cells),
            hashes: depth,
            bits: 32 * cells,
            bytes: size_of_val(words) as u64,
            estimate: row.cardinality(used(0..width)).unwrap_or(Cardinality::Saturated),
            details: vec![
                ("width", width as f64),
                ("depth", depth.into()),
                ("error", self.error()),
                ("probability of more", self.probability()),
            ],
            ..Stats::from_structure(self)
        }
    }

    /// Returns the memory.
    #[doc(hidden)]
    pub fn words(&self) -> &Words {
        &self.counters
    }
}

/// Returns the first difference between two sketches whose counters are to be added.
fn mismatch(ours: (Grid, &Hasher), theirs: (Grid, &Hasher)) -> Option<Mismatch> {
    Mismatch::between("width", ours.0.width, theirs.0.width)
        .or_else(|| Mismatch::between("depth", ours.0.depth, theirs.0.depth))
        .or_else(|| Mismatch::between_hashes(ours.1.id(), theirs.1.id()))
}

impl fmt::Debug for CountMin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Grid { width, depth } = self.grid;
        let bytes = size_of_val(self.counters.lines()) as u64;
        summarize(f, "CountMin", &[("width", &width), ("depth", &depth)], bytes, &self.head)
    }
}

impl Structure for CountMin {
    const KIND: Kind = Kind::CountMin;

    const CAPABILITIES: Capabilities =
        Capabilities { union: true, absorb: true, multiset: true, ..Capabilities::NOTHING };

    fn try_clone(&self) -> Result<CountMin> {
        Ok(CountMin { head: self.head.clone(), counters: self.counters.try_clone()?, ..*self })
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    fn params(&self) -> Vec<u64> {
        vec![self.grid.width, self.grid.depth.into()]
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        vec![(COUNTERS, &self.counters)]
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.counters.relocate(mover);
    }

    fn restore(mut parts: Parts) -> Result<CountMin> {
        let [width, depth] = parts.params()?;
        let grid = Grid { width, depth: small(depth) };
        let counters = parts.section(COUNTERS, grid.cells()?.lines())?;
        Ok(CountMin { head: finish(parts)?, grid, counters })
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        check_tail(&self.counters, 32 * self.grid.width * u64::from(self.grid.depth))
    }
}
