//! The layouts whose bits lie scattered over the whole array: standard and partitioned.
//!
//! ```text
//! standard:      ..1.......1..............1.....1.......    k bits anywhere
//! partitioned:   ..1......|......1..|.1.......|.......1.    one bit in each of k slices
//! ```
//!
//! Take the standard layout when space matters most or the filter is small: 9.6 bits per key at
//! 1 %, but a cache miss per probe. A lookup of a member takes k probes; a lookup of a non-member
//! ends at the first zero bit, after two probes on average when half of the bits are set. The
//! partitioned layout takes as long. It has log2(1 / rate) slices, rounded up, so that it often
//! takes more bits and errs less than asked for: at 1 %, seven slices, 10.1 bits per key and a rate
//! of 0.78 %.
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
/// It needs the least space of the three layouts and the most cache misses. A lookup of a non-member ends at the
/// first zero bit, after two probes on average when the filter is half full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standard {
    bits: u64,
    hashes: u32,
}

/// The filter of Mullin and of Almeida et al.: `k` slices, and in each slice one bit.
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
    /// A layout of `bits` bits (m) and `hashes` probes (k).
    pub fn new(bits: u64, hashes: u32) -> Result<Standard> {
        check_hashes(hashes)?;
        if !(1..=MAX_BITS).contains(&bits) {
            return Err(Error::parameter("m", bits, "1 to 2^48 bits"));
        }
        Ok(Standard { bits, hashes })
    }

    /// The positions of a digest, for kinds that keep something beside the bits.
    #[inline(always)]
    pub(crate) fn positions(self, digest: Digest) -> impl Iterator<Item = u64> {
        digest.stream().take(self.hashes as usize).map(move |x| reduce(x, self.bits))
    }
}

impl Partitioned {
    /// A layout of `hashes` slices (k) of `slice_bits` bits each.
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

    /// How many bits a slice has.
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

/// Where probe `i` of a digest lands, and what it asks of the cell there. Cells are bits unless said otherwise.
pub(crate) trait Scatter: Copy {
    /// How many probes a digest has.
    fn probes(self) -> u32;

    /// The cell of probe `i`, which draws `x` from the stream.
    fn position(self, i: u32, x: u64) -> u64;

    /// The word in which a cell starts.
    #[inline(always)]
    fn word(self, position: u64) -> usize {
        split(position).0
    }

    /// Whether the cell lets the probe pass that draws `x`.
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

/// The word and the bit in it.
#[inline(always)]
fn split(position: u64) -> (usize, u32) {
    ((position / 64) as usize, (position % 64) as u32)
}

/// Where the first probe of each key of a tile lands.
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
                // Looking before writing would bring each line here twice, once to be read and once to be written, and
                // skipping the bits that happen to be set would cost more in mispredicted branches than it saves.
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
    sizing::rate::classic,
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

/// Joins the bits `2i` and `2i + 1`: a position in half the range is half the position.
fn fold(from: &[u64], to: &mut [u64]) {
    for (pair, folded) in from.chunks_exact(2).zip(to) {
        *folded = join_pairs(pair[0]) | join_pairs(pair[1]) << 32;
    }
}

/// The OR of each pair of bits, in the low half.
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

/// How many of the bits `from..to` are set.
fn count_ones(words: &[u64], from: u64, to: u64) -> u64 {
    let start = (from / 64) as usize;
    // Set bits from the start of the first word up to `end`.
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

/// Round by round over the tile: probe `i` of all keys that are still in, the next probe prefetched on the way.
///
/// A key at a time, every non-member ends in a branch that cannot be predicted, and its misses wait for each other.
/// Here survivors are compacted without a branch, and a whole round of misses is under way at once. The first round
/// also asks for the first probes of the tile that comes next.
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

/// From this many words on (4 MiB), a filter is taken to live outside the caches.
pub(crate) const OUT_OF_CACHE: usize = 512 << 10;

/// Asks for all cells of a tile that is about to be inserted. Inside the caches that would only cost time: nothing
/// waits for what was read, so the processor has many misses under way by itself. Outside, a tile of prefetches has
/// more.
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
    // Probe by probe over eight keys: each stream is a chain of multiplications, but they do not wait for each other.
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
