//! The blocked layout: all bits of a key in one cache line, or in a few.
//!
//! A line has 512 bits: eight lanes of 64 bits. A key chooses a line and sets one bit in each of
//! its lanes:
//!
//! ```text
//!            lane 0     lane 1     lane 2            lane 7
//! line 0    .......... .......... .......... ....... ..........
//! line 1    ......1... .1........ .........1 ....... ...1......    <- the line of a key
//! line 2    .......... .......... .......... ....... ..........
//! ```
//!
//! This is the default layout: a lookup costs one cache miss, and SIMD tests a whole line at once.
//! The price is space, because keys do not fall evenly into lines: at 1 %, 10.1 bits per key
//! instead of the 9.6 of a standard filter. Eight bits per key suit rates near 1 %; for much lower
//! rates a key has two to four such lines. The formulas are in [`sizing::blocked`].
//!
//! # References
//!
//! * F. Putze, P. Sanders and J. Singler. *Cache-, hash- and space-efficient Bloom filters.* ACM
//!   Journal of Experimental Algorithmics 14, 2009. `PSS09`
//! * O. Polychroniou and K. A. Ross. *Vectorized Bloom filters for advanced SIMD processors.*
//!   `DaMoN` 2014. `PR14`
//! * H. Lang, T. Neumann, A. Kemper and P. Boncz. *Performance-optimal filtering: Bloom overtakes
//!   cuckoo at high throughput.* PVLDB 12(5), 2019. `LNKB19`
//! * J. Apple. *Split block Bloom filters.* arXiv:2101.01719, 2021. `Apple21`

use super::layout::{Layout, half, sealed::Sealed};
use super::sorter::{Group, Sorter};
use crate::arch::{Simd, prefetch};
use crate::hash::{MULTIPLIER, POWERS, reduce};
use crate::memory::{AtomicWords, CacheLine, LINE_BITS};
use crate::sizing::{self, MAX_BITS, estimate::Shape};
use crate::tile::{Lookup, Pair, Places, TILE, Tile, Tiled, ones};
use crate::{Digest, Error, Kind, Plan, Result, Spec, spec};
use std::sync::atomic::Ordering::Relaxed;

/// A layout with one to four 512-bit lines per key, where a key sets one bit in each of the eight
/// 64-bit lanes of a line.
///
/// A lookup costs one cache miss where the standard layout costs one per probe, and a few SIMD
/// instructions test a line. The price is space, because keys do not fall evenly into lines: 5 %
/// more bits at a rate of 1 %, 9 % at 0.1 %. Below that, one line would waste too much, and keys
/// take two to four lines.
///
/// The number `x_2j` of a key's probe stream chooses its line `j`. The position in lane `i` is bits
/// `16 + 6i .. 22 + 6i` of `x_2j+1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    lines: u64,
    lines_per_key: u32,
}

/// The number of bits that a key sets in each of its lines.
const LANES: u32 = 8;

impl Blocked {
    /// The number of lines (256 KiB) up to which a filter is assumed to be in the cache that
    /// prefetching would load it into.
    pub(super) const NEAR: usize = 4096;

    /// Returns a layout of `lines` lines, with `lines_per_key` lines for each key.
    ///
    /// # Errors
    ///
    /// If either number is out of range.
    pub fn new(lines: u64, lines_per_key: u32) -> Result<Blocked> {
        if !(1..=MAX_BITS / LINE_BITS).contains(&lines) {
            return Err(Error::parameter("lines", lines, "1 to 2^39 lines of 512 bits"));
        }
        if !(1..=sizing::blocked::MAX_LINES_PER_KEY).contains(&lines_per_key) {
            return Err(Error::parameter("lines per key", lines_per_key, "1 to 4 lines"));
        }
        Ok(Blocked { lines, lines_per_key })
    }

    /// Returns the number of lines that a key uses.
    pub fn lines_per_key(&self) -> u32 {
        self.lines_per_key
    }

    /// Returns the index of the `j`-th line of a digest.
    #[inline(always)]
    fn line(&self, digest: Digest, j: u32) -> usize {
        reduce(digest.get().wrapping_mul(POWERS[2 * j as usize]), self.lines) as usize
    }

    /// Returns the 64 bits that contain the lane positions in the `j`-th line of a digest.
    #[inline(always)]
    fn lanes(digest: Digest, j: u32) -> u64 {
        digest.get().wrapping_mul(POWERS[2 * j as usize + 1])
    }

    /// Computes the line and the lane positions of the `j`-th lines of a tile, in loops that the
    /// compiler vectorizes.
    #[inline(always)]
    fn places_in(&self, tile: &Tile, j: u32, places: &mut LinePlaces) {
        let (to_line, to_lanes) = (POWERS[2 * j as usize], POWERS[2 * j as usize + 1]);
        if let Ok(lines) = u32::try_from(self.lines) {
            // The same high half of the product, from two 32-bit multiplications, which SIMD
            // supports.
            let lines = u64::from(lines);
            for (line, digest) in places.line.iter_mut().zip(tile) {
                let x = digest.get().wrapping_mul(to_line);
                *line = ((x >> 32) * lines + (((x & 0xffff_ffff) * lines) >> 32)) >> 32;
            }
        } else {
            for (line, digest) in places.line.iter_mut().zip(tile) {
                *line = reduce(digest.get().wrapping_mul(to_line), self.lines);
            }
        }
        for (lanes, digest) in places.lanes.iter_mut().zip(tile) {
            *lanes = digest.get().wrapping_mul(to_lanes);
        }
    }
}

/// The parts of a digest, for a filter that is built in pieces.
#[cfg(all(feature = "files", feature = "mmap"))]
impl Blocked {
    /// Returns the number of a digest for each of its lines. The number determines the line and, times
    /// [`MULTIPLIER`], the positions in its lanes.
    #[inline(always)]
    pub(crate) fn numbers(self, digest: Digest) -> impl Iterator<Item = u64> {
        (0..self.lines_per_key as usize).map(move |j| digest.get().wrapping_mul(POWERS[2 * j]))
    }

    /// Returns the index of the line that a number determines.
    #[inline(always)]
    pub(crate) fn line_of(self, number: u64) -> u64 {
        reduce(number, self.lines)
    }
}

/// The places of the keys of a tile: for each key a line, and the 64 bits that contain the
/// positions in its lanes.
#[derive(Clone, Copy)]
pub struct LinePlaces {
    line: [u64; TILE],
    lanes: [u64; TILE],
}

impl Places for LinePlaces {
    const EMPTY: LinePlaces = LinePlaces { line: [0; TILE], lanes: [0; TILE] };
}

/// Tests each key of a tile against its first line and returns the answers as a bit mask; with
/// `FETCH`, also prefetches the first lines of the next tile.
#[inline(always)]
fn first_lines<S: Simd, const FETCH: bool>(simd: S, lines: &[CacheLine], at: Pair<'_, LinePlaces>) -> u64 {
    let mut answer = 0;
    // From the last key to the first, so that shifting left puts the answer of key `i` into bit
    // `i`.
    for ((line, lanes), next) in at.now.line.iter().zip(&at.now.lanes).zip(&at.next.line).rev() {
        if FETCH {
            prefetch(lines, *next as usize);
        }
        answer = answer << 1 | u64::from(simd.test(&lines[*line as usize], *lanes));
    }
    answer
}

impl Tiled for Blocked {
    type Places = LinePlaces;

    #[inline(always)]
    fn places(&self, tile: &Tile, places: &mut LinePlaces) {
        self.places_in(tile, 0, places);
    }
}

impl Lookup for Blocked {
    type Memory = [CacheLine];

    #[inline(always)]
    fn prefetch(&self, lines: &[CacheLine], places: &LinePlaces) {
        for line in &places.line {
            prefetch(lines, *line as usize);
        }
    }

    #[inline(always)]
    fn contains_tile<S: Simd>(
        &self,
        simd: S,
        lines: &[CacheLine],
        tile: &Tile,
        at: Pair<'_, LinePlaces>,
    ) -> u64 {
        let mut answer = if lines.len() <= Blocked::NEAR {
            first_lines::<S, false>(simd, lines, at)
        } else {
            first_lines::<S, true>(simd, lines, at)
        };
        // Few non-members pass the first line, so prefetch further lines only for the keys that do.
        for j in 1..self.lines_per_key {
            for i in ones(answer) {
                prefetch(lines, self.line(tile[i], j));
            }
            for i in ones(answer) {
                let present = simd.test(&lines[self.line(tile[i], j)], Blocked::lanes(tile[i], j));
                answer &= !(u64::from(!present) << i);
            }
        }
        answer
    }
}

impl Sealed for Blocked {}

impl Layout for Blocked {
    const KIND: Kind = Kind::Blocked;

    fn lines(&self) -> u64 {
        self.lines
    }

    fn bits(&self) -> u64 {
        self.lines * LINE_BITS
    }

    fn hashes(&self) -> u32 {
        LANES * self.lines_per_key
    }

    fn folded(&self) -> Result<Blocked> {
        Ok(Blocked { lines: half("lines", self.lines)?, ..*self })
    }

    fn plan(spec: &Spec) -> Result<(Blocked, Plan)> {
        spec::blocked(spec)
    }

    fn shape(&self) -> Shape {
        Shape::Blocked { lines: self.lines, lines_per_key: self.lines_per_key }
    }

    fn predicted_rate(&self, n: u64) -> Result<f64> {
        sizing::blocked::rate(self.lines, n, self.lines_per_key)
    }

    fn rate_of(&self, lines: &[CacheLine]) -> f64 {
        let line_rate =
            |line: &CacheLine| line.0.iter().map(|lane| f64::from(lane.count_ones()) / 64.0).product::<f64>();
        let mean = lines.iter().map(line_rate).sum::<f64>() / lines.len() as f64;
        mean.powi(self.lines_per_key as i32)
    }

    fn params(&self) -> [u64; 2] {
        [self.lines, self.lines_per_key.into()]
    }

    fn from_params([lines, lines_per_key]: [u64; 2]) -> Result<Blocked> {
        Blocked::new(lines, u32::try_from(lines_per_key).unwrap_or(u32::MAX))
    }

    fn fold(from: &[CacheLine], to: &mut [CacheLine]) {
        for (pair, folded) in from.chunks_exact(2).zip(to) {
            for (word, both) in folded.0.iter_mut().zip(pair[0].0.iter().zip(&pair[1].0)) {
                *word = both.0 | both.1;
            }
        }
    }

    fn visit(&self, digest: Digest, visit: &mut dyn FnMut(u64)) {
        for j in 0..self.lines_per_key {
            let (start, x) = (self.line(digest, j) as u64 * LINE_BITS, Blocked::lanes(digest, j));
            for lane in 0..u64::from(LANES) {
                visit(start + lane * 64 + (x >> (16 + 6 * lane) & 63));
            }
        }
    }

    const PLACES_TO_INSERT: bool = true;

    #[inline(always)]
    fn contains<S: Simd>(&self, simd: S, lines: &[CacheLine], digest: Digest) -> bool {
        let mut present = simd.test(&lines[self.line(digest, 0)], Blocked::lanes(digest, 0));
        let mut j = 1;
        // In this order: with one line per key, the test must not decide a branch, because its
        // result cannot be predicted.
        while j < self.lines_per_key && present {
            present = simd.test(&lines[self.line(digest, j)], Blocked::lanes(digest, j));
            j += 1;
        }
        present
    }

    #[inline(always)]
    fn insert<S: Simd>(&self, simd: S, lines: &mut [CacheLine], digest: Digest) -> bool {
        let mut present = true;
        for j in 0..self.lines_per_key {
            let (line, x) = (&mut lines[self.line(digest, j)], Blocked::lanes(digest, j));
            present &= simd.test(line, x);
            simd.set(line, x);
        }
        !present
    }

    #[inline(always)]
    fn insert_tile<S: Simd>(
        &self,
        simd: S,
        lines: &mut [CacheLine],
        tile: &[Digest],
        at: Pair<'_, LinePlaces>,
    ) {
        for j in 1..self.lines_per_key {
            for digest in tile {
                prefetch(lines, self.line(*digest, j));
            }
        }
        for (i, digest) in tile.iter().enumerate() {
            prefetch(lines, at.next.line[i] as usize);
            simd.set(&mut lines[at.now.line[i] as usize], at.now.lanes[i]);
            for j in 1..self.lines_per_key {
                simd.set(&mut lines[self.line(*digest, j)], Blocked::lanes(*digest, j));
            }
        }
    }

    #[inline(always)]
    fn prefetch_shared(&self, words: &AtomicWords, places: &LinePlaces) {
        for line in &places.line {
            prefetch(words.lines(), *line as usize);
        }
    }

    #[inline(always)]
    fn insert_shared<S: Simd>(&self, simd: S, words: &AtomicWords, digest: Digest) -> bool {
        let mut new = false;
        for j in 0..self.lines_per_key {
            let (line, masks) = (self.line(digest, j), simd.masks(Blocked::lanes(digest, j)));
            new |= words.hold(words.region_of(line)).set(line, masks) != 0;
        }
        new
    }

    #[inline(always)]
    fn sorts(&self) -> u32 {
        self.lines_per_key
    }

    #[inline(always)]
    fn sort_shared(&self, words: &AtomicWords, tile: &[Digest], j: u32, sorter: &mut Sorter) {
        let mut sorting = sorter.sort();
        for digest in tile {
            let x = digest.get().wrapping_mul(POWERS[2 * j as usize]);
            sorting.push(words.region_of(reduce(x, self.lines) as usize), x);
        }
    }

    #[inline(always)]
    fn write_shared<S: Simd>(&self, simd: S, words: &AtomicWords, now: Group<'_>, next: &[u64]) {
        let (lines, count) = (words.lines(), self.lines);
        // Prefetch the next group while writing this one, key by key, as in `insert_tile`.
        let both = now.keys.len().min(next.len());
        if !now.keys.is_empty() {
            let held = words.hold(now.region);
            for (x, next) in now.keys.iter().zip(next) {
                prefetch(lines, reduce(*next, count) as usize);
                held.set(reduce(*x, count) as usize, simd.masks(x.wrapping_mul(MULTIPLIER)));
            }
            for x in &now.keys[both..] {
                held.set(reduce(*x, count) as usize, simd.masks(x.wrapping_mul(MULTIPLIER)));
            }
        }
        for next in &next[both..] {
            prefetch(lines, reduce(*next, count) as usize);
        }
    }

    #[inline(always)]
    fn contains_shared(&self, words: &AtomicWords, digest: Digest) -> bool {
        let lines = words.lines();
        (0..self.lines_per_key).all(|j| {
            let (line, x) = (&lines[self.line(digest, j)], Blocked::lanes(digest, j));
            line.iter().enumerate().fold(0, |missing, (lane, word)| {
                let mask = 1u64 << (x >> (16 + 6 * lane) & 63);
                missing | (mask & !word.load(Relaxed))
            }) == 0
        })
    }
}
