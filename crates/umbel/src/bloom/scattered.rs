//! The layouts whose bits lie scattered over the whole array: standard and partitioned.
//!
//! ```text
//! standard:      ..1.......1..............1.....1.......    k bits anywhere
//! partitioned:   ..1......|......1..|.1.......|.......1.    one bit in each of k slices
//! ```
//!
//! Use the standard layout if space matters most or the filter is small: it takes 9.6 bits per key
//! at 1 %, but a cache miss per probe. A lookup of a member takes k probes. A lookup of a
//! non-member ends at the first zero bit, after two probes on average if half of the bits are set.
//! The partitioned layout takes as long. Its number of slices is log2(1 / rate) rounded up, so it
//! often takes more bits and has a lower rate than requested: at 1 %, seven slices, 10.1 bits per
//! key and a rate of 0.78 %.
//!
//! The two differ only in where probe `i` may land, so their loops are written once, over
//! [`Scatter`]. Filters with scattered counters use the same lookup loop with another test of a
//! cell.
//!
//! # References
//!
//! * B. H. Bloom. *Space/time trade-offs in hash coding with allowable errors.* Communications of
//!   the ACM 13(7), 1970. `Bloom70`
//! * J. K. Mullin. *A second look at Bloom filters.* Communications of the ACM 26(8), 1983.
//!   `Mullin83`
//! * P. S. Almeida, C. Baquero, N. Preguiça and D. Hutchison. *Scalable Bloom filters.* Information
//!   Processing Letters 101(6), 2007. `ABPH07`

use super::layout::{Layout, half, sealed::Sealed};
use crate::arch::{Simd, prefetch};
use crate::hash::{MULTIPLIER, reduce};
use crate::memory::{AtomicWords, CacheLine, LINE_BITS, as_words, as_words_mut};
use crate::sizing::{self, MAX_BITS, MAX_HASHES, estimate::Shape};
use crate::structure::small;
use crate::tile::{Lookup, Pair, Places, TILE, Tile, Tiled};
use crate::{Digest, Error, Kind, Plan, Result, Spec, spec};
use std::sync::atomic::Ordering::Relaxed;

/// The filter of Bloom 1970: `k` bits anywhere among `m`.
///
/// This layout needs the least space of the three and causes the most cache misses. A lookup of a
/// non-member ends at the first zero bit, after two probes on average when the filter is half full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standard {
    bits: u64,
    hashes: u32,
}

/// The filter of Mullin and of Almeida et al.: `k` slices, with one bit per key in each.
///
/// Every key sets exactly `k` bits. At equal size its rate is slightly above the standard filter's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitioned {
    slice_bits: u64,
    hashes: u32,
}

pub(crate) fn check_hashes(hashes: u32) -> Result<()> {
    if (1..=MAX_HASHES).contains(&hashes) {
        return Ok(());
    }
    Err(Error::parameter("k", hashes, format!("1 to {MAX_HASHES} hash functions")))
}

impl Standard {
    /// Returns a layout of `bits` bits (m) and `hashes` probes (k).
    ///
    /// # Errors
    ///
    /// If either number is out of range.
    pub fn new(bits: u64, hashes: u32) -> Result<Standard> {
        check_hashes(hashes)?;
        if !(1..=MAX_BITS).contains(&bits) {
            return Err(Error::parameter("m", bits, "1 to 2^48 bits"));
        }
        Ok(Standard { bits, hashes })
    }

    /// Returns the positions of a digest, for kinds that store more than the bits.
    #[inline(always)]
    pub(crate) fn positions(self, digest: Digest) -> impl Iterator<Item = u64> {
        digest.stream().take(self.hashes as usize).map(move |x| reduce(x, self.bits))
    }
}

impl Partitioned {
    /// Returns a layout of `hashes` slices (k) of `slice_bits` bits each.
    ///
    /// # Errors
    ///
    /// If either number is out of range.
    pub fn new(slice_bits: u64, hashes: u32) -> Result<Partitioned> {
        check_hashes(hashes)?;
        let bits = slice_bits.checked_mul(hashes.into());
        if !bits.is_some_and(|bits| (1..=MAX_BITS).contains(&bits)) {
            return Err(Error::parameter(
                "slice bits",
                slice_bits,
                "at least one bit, and at most 2^48 bits in all slices",
            ));
        }
        Ok(Partitioned { slice_bits, hashes })
    }

    /// Returns the number of bits in a slice.
    pub fn slice_bits(&self) -> u64 {
        self.slice_bits
    }
}

impl Standard {
    fn rate_of_words(&self, words: &[u64]) -> f64 {
        let fill = count_ones(words, 0, self.bits) as f64 / self.bits as f64;
        fill.powi(self.hashes as i32)
    }
}

impl Partitioned {
    fn rate_of_words(&self, words: &[u64]) -> f64 {
        let slice = |i| count_ones(words, i * self.slice_bits, (i + 1) * self.slice_bits) as f64;
        (0..u64::from(self.hashes)).map(|i| slice(i) / self.slice_bits as f64).product()
    }
}

/// The cells that the probes of a digest land on, and the test of such a cell. Cells are bits by
/// default.
pub(crate) trait Scatter: Copy {
    /// Returns the number of probes per digest.
    fn probes(self) -> u32;

    /// Returns the cell of probe `i`, whose number from the stream is `x`.
    fn position(self, i: u32, x: u64) -> u64;

    /// Returns the index of the word in which a cell starts.
    #[inline(always)]
    fn word(self, position: u64) -> usize {
        split(position).0
    }

    /// Returns whether the cell passes the probe whose number from the stream is `x`.
    #[inline(always)]
    fn passes(self, words: &[u64], position: u64, x: u64) -> bool {
        let _ = x;
        let (word, bit) = split(position);
        words[word] >> bit & 1 == 1
    }
}

impl Scatter for Standard {
    #[inline(always)]
    fn probes(self) -> u32 {
        self.hashes
    }

    #[inline(always)]
    fn position(self, _: u32, x: u64) -> u64 {
        reduce(x, self.bits)
    }
}

impl Scatter for Partitioned {
    #[inline(always)]
    fn probes(self) -> u32 {
        self.hashes
    }

    #[inline(always)]
    fn position(self, i: u32, x: u64) -> u64 {
        u64::from(i) * self.slice_bits + reduce(x, self.slice_bits)
    }
}

/// Returns the index of the word, and the bit in that word.
#[inline(always)]
fn split(position: u64) -> (usize, u32) {
    ((position / 64) as usize, (position % 64) as u32)
}

/// The positions of the first probes of a tile.
#[derive(Clone, Copy)]
pub struct FirstPositions([u64; TILE]);

impl Places for FirstPositions {
    const EMPTY: FirstPositions = FirstPositions([0; TILE]);
}

impl<L: Scatter> Tiled for L {
    type Places = FirstPositions;

    #[inline(always)]
    fn places(&self, tile: &Tile, places: &mut FirstPositions) {
        for (position, digest) in places.0.iter_mut().zip(tile) {
            *position = self.position(0, digest.get());
        }
    }
}

impl<L: Scatter> Lookup for L {
    type Memory = [CacheLine];

    #[inline(always)]
    fn prefetch(&self, lines: &[CacheLine], places: &FirstPositions) {
        for position in &places.0 {
            prefetch(as_words(lines), self.word(*position));
        }
    }

    #[inline(always)]
    fn contains_tile<S: Simd>(
        &self,
        _: S,
        lines: &[CacheLine],
        tile: &Tile,
        at: Pair<'_, FirstPositions>,
    ) -> u64 {
        contains_tile(*self, as_words(lines), tile, at)
    }
}

macro_rules! scattered_layout {
    ($layout:ident, $kind:expr, $plan:path, $shape:ident { $cells:ident }, $rate:path, $bits:expr) => {
        impl Sealed for $layout {}

        impl Layout for $layout {
            const KIND: Kind = $kind;

            fn lines(&self) -> u64 {
                self.bits().div_ceil(LINE_BITS)
            }

            fn bits(&self) -> u64 {
                $bits(self)
            }

            fn hashes(&self) -> u32 {
                self.hashes
            }

            fn folded(&self) -> Result<Self> {
                let $cells = half(stringify!($cells), self.$cells)?;
                Ok($layout { $cells, ..*self })
            }

            fn plan(spec: &Spec) -> Result<(Self, Plan)> {
                $plan(spec)
            }

            fn shape(&self) -> Shape {
                Shape::$shape { $cells: self.$cells, hashes: self.hashes }
            }

            fn predicted_rate(&self, n: u64) -> Result<f64> {
                $rate(self.$cells, n, self.hashes)
            }

            fn rate_of(&self, lines: &[CacheLine]) -> f64 {
                self.rate_of_words(as_words(lines))
            }

            fn params(&self) -> [u64; 2] {
                [self.$cells, self.hashes.into()]
            }

            fn from_params([cells, hashes]: [u64; 2]) -> Result<Self> {
                $layout::new(cells, small(hashes))
            }

            fn fold(from: &[CacheLine], to: &mut [CacheLine]) {
                fold(as_words(from), as_words_mut(to));
            }

            fn visit(&self, digest: Digest, visit: &mut dyn FnMut(u64)) {
                (0..self.hashes).zip(digest.stream()).for_each(|(i, x)| visit(self.position(i, x)));
            }

            const PLACES_TO_INSERT: bool = false;

            #[inline(always)]
            fn contains<S: Simd>(&self, _: S, lines: &[CacheLine], digest: Digest) -> bool {
                contains(*self, as_words(lines), digest)
            }

            #[inline(always)]
            fn insert<S: Simd>(&self, _: S, lines: &mut [CacheLine], digest: Digest) -> bool {
                insert(*self, as_words_mut(lines), digest)
            }

            #[inline(always)]
            fn insert_tile<S: Simd>(
                &self,
                _: S,
                lines: &mut [CacheLine],
                tile: &[Digest],
                _: Pair<'_, FirstPositions>,
            ) {
                insert_tile(*self, as_words_mut(lines), tile);
            }

            #[inline(always)]
            fn prefetch_shared(&self, words: &AtomicWords, places: &FirstPositions) {
                for position in &places.0 {
                    prefetch(words.words(), split(*position).0);
                }
            }

            #[inline(always)]
            fn insert_shared<S: Simd>(&self, _: S, words: &AtomicWords, digest: Digest) -> bool {
                // No test before the write: it would fetch each line twice, once for reading and
                // once for writing, and skipping bits that are already set would cost more in
                // mispredicted branches than it saves.
                let mut present = 1;
                for (i, x) in (0..self.hashes).zip(digest.stream()) {
                    let (word, bit) = split(self.position(i, x));
                    present &= words.words()[word].fetch_or(1 << bit, Relaxed) >> bit;
                }
                present & 1 == 0
            }

            #[inline(always)]
            fn contains_shared(&self, words: &AtomicWords, digest: Digest) -> bool {
                (0..self.hashes).zip(digest.stream()).all(|(i, x)| {
                    let (word, bit) = split(self.position(i, x));
                    words.words()[word].load(Relaxed) >> bit & 1 == 1
                })
            }
        }
    };
}

scattered_layout!(
    Standard,
    Kind::Standard,
    spec::standard,
    Standard { bits },
    sizing::rate::expected,
    |layout: &Standard| layout.bits
);
scattered_layout!(
    Partitioned,
    Kind::Partitioned,
    spec::partitioned,
    Partitioned { slice_bits },
    sizing::partitioned::rate,
    |layout: &Partitioned| layout.slice_bits * u64::from(layout.hashes)
);

/// Joins bits `2i` and `2i + 1`. A position in half the range is half the position.
fn fold(from: &[u64], to: &mut [u64]) {
    for (pair, folded) in from.chunks_exact(2).zip(to) {
        *folded = join_pairs(pair[0]) | join_pairs(pair[1]) << 32;
    }
}

/// Returns the OR of each pair of bits, in the low half.
fn join_pairs(word: u64) -> u64 {
    let mut bits = (word | word >> 1) & 0x5555_5555_5555_5555;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ] {
        bits = (bits | bits >> shift) & mask;
    }
    bits
}

/// Counts the set bits among `from..to`.
fn count_ones(words: &[u64], from: u64, to: u64) -> u64 {
    let start = (from / 64) as usize;
    // The number of set bits from the start of the first word up to `end`.
    let below = |end: u64| {
        let (whole, rest) = split(end);
        let partial = if rest == 0 { 0 } else { words[whole] & ((1 << rest) - 1) };
        let full: u64 = words[start..whole].iter().map(|word| u64::from(word.count_ones())).sum();
        full + u64::from(partial.count_ones())
    };
    below(to) - below(from)
}

#[inline(always)]
pub(crate) fn contains<L: Scatter>(layout: L, words: &[u64], digest: Digest) -> bool {
    let mut stream = digest.stream();
    for i in 0..layout.probes() {
        let x = stream.draw();
        if !layout.passes(words, layout.position(i, x), x) {
            return false;
        }
    }
    true
}

/// Looks up a tile in rounds. Each round tests one probe of every remaining key and prefetches its
/// next one. The remaining keys are the first `alive` entries of three arrays:
///
/// ```text
/// key[s]        the index of the key in the tile
/// x[s]          the number of its stream for this round
/// position[s]   the cell that this number selects, prefetched in the previous round
/// ```
///
/// Each round moves the entries of the keys that pass to the front.
///
/// Testing one key at a time would end every non-member in a branch that cannot be predicted, and
/// its cache misses would wait for each other. Here keys are moved without a branch, and all cache
/// misses of a round overlap. The first round also prefetches the first probes of the next tile.
#[inline(always)]
fn contains_tile<L: Scatter>(layout: L, words: &[u64], tile: &Tile, at: Pair<'_, FirstPositions>) -> u64 {
    let mut position = at.now.0;
    let mut x = tile.map(Digest::get);
    let mut key: [u8; TILE] = std::array::from_fn(|i| i as u8);
    let mut alive = TILE;
    for i in 1..layout.probes() {
        let mut kept = 0;
        for survivor in 0..alive {
            if i == 1 {
                prefetch(words, layout.word(at.next.0[survivor]));
            }
            let passes = layout.passes(words, position[survivor], x[survivor]);
            let next = x[survivor].wrapping_mul(MULTIPLIER);
            let next_position = layout.position(i, next);
            prefetch(words, layout.word(next_position));
            x[kept] = next;
            position[kept] = next_position;
            key[kept] = key[survivor];
            kept += usize::from(passes);
        }
        alive = kept;
    }
    let mut answer = 0;
    for survivor in 0..alive {
        answer |= u64::from(layout.passes(words, position[survivor], x[survivor])) << key[survivor];
    }
    answer
}

#[inline(always)]
fn insert<L: Scatter>(layout: L, words: &mut [u64], digest: Digest) -> bool {
    let mut stream = digest.stream();
    let mut present = 1;
    for i in 0..layout.probes() {
        let (word, bit) = split(layout.position(i, stream.draw()));
        let word = &mut words[word];
        present &= *word >> bit;
        *word |= 1 << bit;
    }
    present & 1 == 0
}

/// The number of words (4 MiB) from which a filter is assumed not to fit in the caches.
pub(crate) const OUT_OF_CACHE: usize = 512 << 10;

/// Prefetches all cells of a tile that is about to be inserted. For a filter in the caches that
/// would only cost time: no instruction waits for the cells that are read, so the processor
/// overlaps many misses by itself. Outside the caches, a tile of prefetches overlaps more.
#[inline(always)]
pub(crate) fn fetch_to_insert<L: Scatter>(layout: L, words: &[u64], tile: &[Digest]) {
    if words.len() < OUT_OF_CACHE {
        return;
    }
    for digest in tile {
        let mut stream = digest.stream();
        for i in 0..layout.probes() {
            prefetch(words, layout.word(layout.position(i, stream.draw())));
        }
    }
}

/// Sets the bits of a tile.
#[inline(always)]
fn insert_tile<L: Scatter>(layout: L, words: &mut [u64], tile: &[Digest]) {
    fetch_to_insert(layout, words, tile);
    // Probe by probe over eight keys: each stream is a chain of multiplications, and eight
    // independent chains overlap.
    let mut groups = tile.chunks_exact(8);
    for group in groups.by_ref() {
        let mut x: [u64; 8] = std::array::from_fn(|lane| group[lane].get());
        for i in 0..layout.probes() {
            for x in &mut x {
                let (word, bit) = split(layout.position(i, *x));
                words[word] |= 1 << bit;
                *x = x.wrapping_mul(MULTIPLIER);
            }
        }
    }
    for digest in groups.remainder() {
        let mut stream = digest.stream();
        for i in 0..layout.probes() {
            let (word, bit) = split(layout.position(i, stream.draw()));
            words[word] |= 1 << bit;
        }
    }
}
