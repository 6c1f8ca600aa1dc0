//! [`CountMin`]: how often each key came, never too low.

use super::{add_to_total, finish, set_total, sketch_methods, summarize, total};
use crate::arch::{Kernel, Simd, prefetch};
use crate::file::FormatError;
use crate::hash::reduce;
use crate::sizing::{Cardinality, Shape};
use crate::structure::{COUNTERS, Head, Parts, check_tail, small};
use crate::tile::{self, TILE};
use crate::words::{Mover, Packed, Words};
use crate::{Batch, Can, Digest, Error, Hasher, Key, Kind, Mismatch, Result, Stats, Structure};
use std::convert::Infallible;
use std::fmt;

/// How often each key came: the count-min sketch.
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
/// Each of d rows has w counters. A key has one counter in each row, chosen by a hash of that row, and adds to all of
/// them. Other keys may share a counter, so each is an upper bound of the key's count, and the lowest is the best:
///
/// ```text
///               w counters
///        ┌────────────────────────┐
/// row 0  . . 7 . . . . . 2 . . . .
/// row 1  . 9 . . . 7 . . . . . . .       count = min(7, 7, 8) = 7
/// row 2  . . . 3 . . . . . . 8 . .
/// ```
///
/// # When to take it
///
/// Take it when any key may be asked for and a count that is too high does no harm. A row overestimates by total / w on
/// average, so the guarantee is relative to the total, not to the count: rare keys are told from absent ones only in a wide
/// sketch. For the frequent keys alone, [`Frequent`](super::Frequent) and [`TopK`](super::TopK) need less memory.
///
/// It costs 4 w d bytes, and an insertion touches d cache lines. `with_error(e, p)` makes w = 2.72 / e and
/// d = ln(1 / p), rounded up. A counter stops at 2^32 - 1; beyond that, counts are too low.
///
/// # References
///
/// * G. Cormode and S. Muthukrishnan. *An improved data stream summary: the count-min sketch and its applications.*
///   Journal of Algorithms 55(1), 2005. `CM05`
pub struct CountMin {
    head: Head,
    grid: Grid,
    /// Two counters in a word, the rows one after the other.
    counters: Words,
}

/// Rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grid {
    /// w: counters in a row.
    width: u64,
    /// d: rows.
    depth: u32,
}

const MAX_DEPTH: u32 = 256;

sketch_methods!(CountMin);

impl CountMin {
    /// Makes an empty sketch that overestimates by at most `error` times the total, except with `probability`.
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

    /// Makes an empty sketch of `depth` rows (d) with `width` counters each (w).
    ///
    /// # Errors
    ///
    /// If there are no counters or more than 256 rows, or there is not enough memory.
    pub fn with_dimensions(width: u64, depth: u32) -> Result<CountMin> {
        let grid = Grid { width, depth };
        let counters = Words::zeroed(grid.cells()?.lines())?;
        Ok(CountMin { head: Head::new(Hasher::default()), grid, counters })
    }

    /// Makes a sketch from what another program has kept of one.
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

    /// Returns the share of the total by which a count is too high, at most, except with
    /// [`probability`](CountMin::probability): e / w.
    pub fn error(&self) -> f64 {
        std::f64::consts::E / self.grid.width as f64
    }

    /// Returns the probability that a count is too high by more than [`error`](CountMin::error) times the total: e^-d.
    pub fn probability(&self) -> f64 {
        (-f64::from(self.grid.depth)).exp()
    }

    /// Returns the sum of everything that was counted; `u64::MAX` if it is more.
    pub fn total(&self) -> u64 {
        total(&self.head)
    }

    /// Counts `key` once, and returns its new count.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> u64 {
        self.insert_times(key, 1)
    }

    /// Counts `key` so many times, and returns its new count.
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

    /// Returns how often `key` was counted, or more.
    #[inline]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_digest(key.digest(&self.head.hasher))
    }

    /// Returns how often the key with this digest was counted, or more.
    pub fn count_digest(&self, digest: Digest) -> u64 {
        let counters = self.counters.words();
        let counts = (0..self.grid.depth).map(|row| get(counters, self.grid.place(row, digest)));
        counts.min().unwrap_or_default().into()
    }

    /// Returns how often each of many keys was counted, or more; the fast way.
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

    /// Returns the first difference that keeps the two from being united, if there is one.
    pub fn mismatch(&self, other: &CountMin) -> Option<Mismatch> {
        Mismatch::of("width", self.grid.width, other.grid.width)
            .or_else(|| Mismatch::of("depth", self.grid.depth, other.grid.depth))
            .or_else(|| Mismatch::of_hashes(self.head.hasher.id(), other.head.hasher.id()))
    }

    /// Becomes the sketch of everything that was counted in either.
    ///
    /// # Errors
    ///
    /// If width, depth, hash or seed differ. Neither sketch has changed then.
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

    /// Returns an empty weighted sum of sketches of this shape and hash.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for it.
    pub fn weighted_sum(&self) -> Result<WeightedSum> {
        let counters = (self.grid.width * u64::from(self.grid.depth)) as usize;
        let mut cells = Vec::new();
        let out_of_memory = |_| Error::OutOfMemory { bytes: 8 * counters as u64 };
        cells.try_reserve_exact(counters).map_err(out_of_memory)?;
        cells.resize(counters, 0);
        let empty = CountMin::with_dimensions(self.grid.width, self.grid.depth)?;
        Ok(WeightedSum { cells, total: 0, empty: empty.with_hasher(self.head.hasher.clone()) })
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counters.words_mut().fill(0);
        self.head = self.head.emptied();
    }

    /// Measures how full the sketch is. The estimate of the number of distinct keys comes from the first row.
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
            ..Stats::of(self)
        }
    }

    /// The memory.
    #[doc(hidden)]
    pub fn words(&self) -> &Words {
        &self.counters
    }
}

/// A sum of sketches in which each has a weight; see [`CountMin::weighted_sum`].
///
/// ```
/// use umbel::sketch::CountMin;
/// let mut today = CountMin::with_dimensions(1000, 5)?;
/// today.insert_times("apple", 10);
/// let mut yesterday = CountMin::with_dimensions(1000, 5)?;
/// yesterday.insert_times("apple", 4);
///
/// let mut change = today.weighted_sum()?;
/// change.add(&today, 1)?;
/// change.add(&yesterday, -1)?;
/// assert_eq!(change.into_sketch().count("apple"), 6);
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Debug)]
pub struct WeightedSum {
    cells: Vec<i64>,
    total: i128,
    /// Of the shape and hash of all terms.
    empty: CountMin,
}

impl WeightedSum {
    /// Adds a sketch so many times. Sums that exceed 64 bits stay at the largest or smallest value.
    ///
    /// # Errors
    ///
    /// If width, depth, hash or seed differ. The sum has not changed then.
    pub fn add(&mut self, sketch: &CountMin, weight: i64) -> Result<()> {
        Mismatch::refuse(self.empty.mismatch(sketch))?;
        let words = sketch.counters.words();
        for (place, cell) in (0..).zip(&mut self.cells) {
            *cell = cell.saturating_add(i64::from(get(words, place)).saturating_mul(weight));
        }
        self.total = self.total.saturating_add(i128::from(sketch.total()) * i128::from(weight));
        Ok(())
    }

    /// Returns the sum as a sketch. Counters below 0 become 0, and those above 2^32 - 1 become that.
    pub fn into_sketch(self) -> CountMin {
        let WeightedSum { cells, total, empty: mut sketch } = self;
        let counters = sketch.counters.words_mut();
        for (place, cell) in (0..).zip(cells) {
            add(counters, place, u32::try_from(cell.max(0)).unwrap_or(u32::MAX));
        }
        set_total(&mut sketch.head, u64::try_from(total.max(0)).unwrap_or(u64::MAX));
        sketch
    }
}

impl Grid {
    /// The counters as packed cells of 32 bits.
    fn cells(self) -> Result<Packed> {
        if !(1..=MAX_DEPTH).contains(&self.depth) {
            return Err(Error::parameter("depth", self.depth, format!("1 to {MAX_DEPTH} rows")));
        }
        let cells = self.width.checked_mul(self.depth.into());
        let packed = cells.and_then(|cells| Packed::new(cells, 32).ok());
        packed.ok_or_else(|| {
            let needs = format!("at least 1, and at most 2^43 counters in {} rows", self.depth);
            Error::parameter("width", self.width, needs)
        })
    }

    /// The counter of a digest in a row.
    #[inline(always)]
    fn place(self, row: u32, digest: Digest) -> u64 {
        let row = u64::from(row);
        row * self.width + reduce(digest.salted(row).get(), self.width)
    }

    /// The counters of a tile in a row, which are prefetched.
    #[inline(always)]
    fn places(self, row: u32, digests: &[Digest], counters: &[u64]) -> [u64; TILE] {
        let mut places = [0; TILE];
        for (place, digest) in places.iter_mut().zip(digests) {
            *place = self.place(row, *digest);
            prefetch(counters, (*place / 2) as usize);
        }
        places
    }
}

#[inline(always)]
fn get(counters: &[u64], place: u64) -> u32 {
    (counters[(place / 2) as usize] >> (32 * (place % 2))) as u32
}

/// Adds to a counter, which stops at its largest value; the new value.
#[inline(always)]
fn add(counters: &mut [u64], place: u64, times: u32) -> u32 {
    let (word, shift) = (&mut counters[(place / 2) as usize], 32 * (place % 2));
    let sum = ((*word >> shift) as u32).saturating_add(times);
    *word = *word & !(u64::from(u32::MAX) << shift) | u64::from(sum) << shift;
    sum
}

/// Counts each key of a tile once. While the counters of one row are raised, those of the next are on their way.
struct AddTile<'a> {
    grid: Grid,
    counters: &'a mut [u64],
    digests: &'a [Digest],
}

impl Kernel for AddTile<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let AddTile { grid, counters, digests } = self;
        let mut places = grid.places(0, digests, counters);
        for row in 0..grid.depth {
            let now = places;
            if row + 1 < grid.depth {
                places = grid.places(row + 1, digests, counters);
            }
            for place in &now[..digests.len()] {
                add(counters, *place, 1);
            }
        }
    }
}

/// Takes the lowest counter of each key of a tile, row by row as above.
struct CountTile<'a> {
    grid: Grid,
    counters: &'a [u64],
    digests: &'a [Digest],
}

impl Kernel for CountTile<'_> {
    type Output = [u32; TILE];

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> [u32; TILE] {
        let CountTile { grid, counters, digests } = self;
        let mut counts = [u32::MAX; TILE];
        let mut places = grid.places(0, digests, counters);
        for row in 0..grid.depth {
            let now = places;
            if row + 1 < grid.depth {
                places = grid.places(row + 1, digests, counters);
            }
            for (count, place) in counts.iter_mut().zip(&now[..digests.len()]) {
                *count = get(counters, *place).min(*count);
            }
        }
        counts
    }
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

    const CAN: Can = Can { union: true, absorb: true, multiset: true, ..Can::NOTHING };

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
