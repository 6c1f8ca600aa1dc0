//! Static tables with a few bits per cell, solved so that the xor of a key's cells and its mask is
//! the value of the key.
//!
//! `lookup(d) = M(d) xor T[h0] xor T[h1] xor T[h2]`
//!
//! The mask `M` makes the values of non-members uniform. If the value of every key is 0, the table
//! is a filter (xor, binary fuse); with other values it is a map (Bloomier). This module has the
//! code that they share: [`TableShape`] finds and reads the cells of a digest, [`build()`] solves
//! the table. Users work with [`Fuse`](crate::Fuse) or [`Bloomier`](crate::Bloomier).
//!
//! # Cost
//!
//! A table of w-bit cells takes 1.13 to 1.15 w bits per key when the cells of a key are in
//! neighbouring segments ("fuse"). When each of three or four cells is in a segment of its own, it
//! takes 1.23 w or 1.32 w. A lookup reads three or four cells. Solving takes linear time.
//!
//! # The parts of a digest
//!
//! All parts of a digest `d` are high halves or high bits of products:
//!
//! | part | from |
//! | --- | --- |
//! | shard | `reduce(d, shards)`; `low = d * shards` is the rest of `d` |
//! | first cell | `reduce(low, span)` |
//! | other cells | the highest bits of `y = (d ^ seed) * C`, and the bits below them; in segments, `y`, `y * C`, ... |
//! | mask | `z = y * C^(k-1)`; for more than 64 bits also `z * C` |
//!
//! Shard and first cell do not depend on the seed, and they increase with `d`. So digests that are
//! sorted once by their high bits are in order for every attempt.
//!
//! # References
//!
//! * T. M. Graf and D. Lemire. *Binary fuse filters: fast and smaller than xor filters.* ACM
//!   Journal of Experimental Algorithmics 27, 2022. `GL22`
//! * S. Walzer. *Peeling close to the orientability threshold: spatial coupling in hashing-based
//!   data structures.* SODA 2021. `Walzer21`
//! * B. Chazelle, J. Kilian, R. Rubinfeld and A. Tal. *The Bloomier filter: an efficient data
//!   structure for static support lookup tables.* SODA 2004. `CKRT04`
//! * M. Dietzfelbinger and R. Pagh. *Succinct data structures for retrieval and approximate
//!   membership.* ICALP 2008. `DP08`
//! * M. Molloy. *The pure literal rule threshold and cores in random hypergraphs.* SODA 2004.
//!   `Molloy04`

mod build;
mod construction;
mod kernels;
mod partition;
mod peel;
mod single;
#[cfg(test)]
mod tests;

pub(crate) use build::{Arranged, BuildError, Wish, build};
pub use construction::Construction;
pub(crate) use kernels::{Decode, decode_tile};
pub(crate) use peel::{Sink, Zero};

use crate::hash::{MULTIPLIER, POWERS, reduce, reduce_narrow};
use crate::memory::{LINE_BITS, read_bits, read_bytes, read_near};
use crate::sizing::{MAX_BITS, retrieval as sizing};
use crate::{Digest, Error, Result};

/// The largest width of a cell.
pub(crate) const MAX_WIDTH: u32 = 96;

/// The largest number of cells per key.
pub(crate) const MAX_CELLS_OF_KEY: usize = 4;

/// The largest number of cells in a shard: their indices are stored in 32 bits while a table is
/// built.
const MAX_SHARD_CELLS: u64 = 1 << 31;

/// The largest number of shards.
const MAX_SHARDS: u64 = u32::MAX as u64;

/// The arrangement of the cells in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrangement {
    /// Three cells in three neighbouring segments of `2^segment_log2` cells.
    Fuse { segment_log2: u32, segments: u64 },
    /// One cell in each of `k` segments of `len` cells.
    Segments { k: u32, len: u64 },
}

/// The high half of a product whose second factor is below 2^32. [`reduce_narrow`] explains why
/// there are two implementations.
pub(crate) trait Reduce {
    fn reduce(x: u64, range: u64) -> u64;
}

/// The implementation for single digests.
pub(crate) struct Scalar;
/// The implementation for loops that the compiler vectorizes.
pub(crate) struct Vector;

impl Reduce for Scalar {
    #[inline(always)]
    fn reduce(x: u64, range: u64) -> u64 {
        reduce(x, range)
    }
}

impl Reduce for Vector {
    #[inline(always)]
    fn reduce(x: u64, range: u64) -> u64 {
        reduce_narrow(x, range)
    }
}

/// Computes the cells of a digest within its shard. `low` determines the first cell, `y` the
/// others.
pub(crate) trait CellPositions<const K: usize>: Copy + Send + Sync {
    fn cells<R: Reduce>(self, low: u64, y: u64) -> [u64; K];

    /// The number of cells, from the left, that no key with this `low` or a higher one uses.
    fn complete(self, low: u64) -> usize;

    /// The number of cells, from the left, that keys with this `low` or a lower one may use.
    fn reach(self, low: u64) -> usize;
}

#[derive(Clone, Copy)]
pub(crate) struct FusePlace {
    /// The range of the first cell.
    span: u64,
    /// The number of cells in a segment, a power of two.
    len: u64,
    /// The shift that leaves the bits for an index in a segment.
    shift: u32,
    /// The shift that leaves twice as many bits.
    next_shift: u32,
}

impl FusePlace {
    #[inline(always)]
    fn new(segment_log2: u32, segments: u64) -> FusePlace {
        let (shift, next_shift) = (64 - segment_log2, 64 - 2 * segment_log2);
        FusePlace { span: (segments - 2) << segment_log2, len: 1 << segment_log2, shift, next_shift }
    }
}

impl CellPositions<3> for FusePlace {
    #[inline(always)]
    fn cells<R: Reduce>(self, low: u64, y: u64) -> [u64; 3] {
        let (len, first) = (self.len, R::reduce(low, self.span));
        // The xor with a number below `len` stays in the segment.
        [first, (first + len) ^ (y >> self.shift), (first + 2 * len) ^ (y >> self.next_shift & (len - 1))]
    }

    fn complete(self, low: u64) -> usize {
        reduce(low, self.span) as usize
    }

    fn reach(self, low: u64) -> usize {
        let segment = reduce(low, self.span) & !(self.len - 1);
        (segment + 3 * self.len) as usize
    }
}

#[derive(Clone, Copy)]
pub(crate) struct SegmentPlace<const K: usize> {
    len: u64,
}

impl<const K: usize> CellPositions<K> for SegmentPlace<K> {
    #[inline(always)]
    fn cells<R: Reduce>(self, low: u64, y: u64) -> [u64; K] {
        std::array::from_fn(|i| {
            let x = if i == 0 { low } else { y.wrapping_mul(POWERS[i - 1]) };
            i as u64 * self.len + R::reduce(x, self.len)
        })
    }

    fn complete(self, _: u64) -> usize {
        0
    }

    fn reach(self, _: u64) -> usize {
        K * self.len as usize
    }
}

/// Runs the same code for each arrangement, with the number of cells known to the compiler.
macro_rules! placed {
    ($arrangement:expr, $place:ident => $body:expr) => {
        match $arrangement {
            $crate::retrieval::Arrangement::Fuse { segment_log2, segments } => {
                let $place = $crate::retrieval::FusePlace::new(segment_log2, segments);
                $body
            }
            $crate::retrieval::Arrangement::Segments { k: 3, len } => {
                let $place = $crate::retrieval::SegmentPlace::<3> { len };
                $body
            }
            $crate::retrieval::Arrangement::Segments { len, .. } => {
                let $place = $crate::retrieval::SegmentPlace::<4> { len };
                $body
            }
        }
    };
}
use placed;

/// The positions of the cells of every digest, and their width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableShape {
    shards: u64,
    arrangement: Arrangement,
    width: u32,
    seed: u64,
    /// The distance between the starts of two shards, in cells.
    stride: u64,
}

impl TableShape {
    /// Creates a shape; fails if a number is out of range.
    pub fn new(shards: u64, arrangement: Arrangement, width: u32, seed: u64) -> Result<TableShape> {
        if !(1..=MAX_WIDTH).contains(&width) {
            return Err(Error::parameter("bits per cell", width, "1 to 96"));
        }
        let cells = match arrangement {
            Arrangement::Fuse { segment_log2, segments } => {
                if !sizing::SEGMENT_LOG2.contains(&segment_log2) {
                    return Err(Error::parameter(
                        "segment length",
                        segment_log2,
                        "a power of two, 2^2 to 2^18",
                    ));
                }
                if segments < 3 {
                    return Err(Error::parameter("segments", segments, "at least 3"));
                }
                segments.checked_mul(1 << segment_log2)
            }
            Arrangement::Segments { k, len } => {
                sizing::segments_factor(k)?;
                if len == 0 {
                    return Err(Error::parameter("segment length", len, "at least one cell"));
                }
                len.checked_mul(k.into())
            }
        };
        let cells = cells.filter(|cells| *cells <= MAX_SHARD_CELLS).ok_or_else(|| {
            let got = format!("{arrangement:?}");
            Error::parameter("cells", got, "at most 2^31 cells in a shard")
        })?;
        // If there are several shards, each starts at a whole word whatever the width.
        let stride = if shards > 1 { cells.next_multiple_of(64) } else { cells };
        let bits = shards.checked_mul(stride).and_then(|cells| cells.checked_mul(width.into()));
        if !bits.is_some_and(|bits| (1..=MAX_BITS).contains(&bits)) || shards > MAX_SHARDS {
            let needs = "at least one, fewer than 2^32, and at most 2^48 bits in all";
            return Err(Error::parameter("shards", shards, needs));
        }
        Ok(TableShape { shards, arrangement, width, seed, stride })
    }

    /// Returns the parameters that describe the shape in a file.
    pub fn params(&self) -> [u64; 6] {
        let (kind, a, b) = match self.arrangement {
            Arrangement::Fuse { segment_log2, segments } => (0, segment_log2.into(), segments),
            Arrangement::Segments { k, len } => (1, k.into(), len),
        };
        [self.shards, kind, a, b, self.width.into(), self.seed]
    }

    /// Restores a shape from the parameters of a file.
    pub fn from_params([shards, kind, a, b, width, seed]: [u64; 6]) -> Result<TableShape> {
        let small = crate::structure::small;
        let arrangement = match kind {
            0 => Arrangement::Fuse { segment_log2: small(a), segments: b },
            1 => Arrangement::Segments { k: small(a), len: b },
            _ => return Err(Error::parameter("arrangement", kind, "0 (fuse) or 1 (segments)")),
        };
        TableShape::new(shards, arrangement, small(width), seed)
    }

    /// Returns the number of shards, which are built independently.
    pub fn shards(&self) -> u64 {
        self.shards
    }

    /// Returns the number of bits in a cell.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the number of cells per key.
    pub fn cells_of_key(&self) -> u32 {
        match self.arrangement {
            Arrangement::Fuse { .. } => 3,
            Arrangement::Segments { k, .. } => k,
        }
    }

    /// Returns the number of cells in a shard.
    pub fn shard_cells(&self) -> u64 {
        match self.arrangement {
            Arrangement::Fuse { segment_log2, segments } => segments << segment_log2,
            Arrangement::Segments { k, len } => u64::from(k) * len,
        }
    }

    /// Returns the distance between the starts of two shards, in cells.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// Returns the number of all cells, including those between shards.
    pub fn cells(&self) -> u64 {
        self.shards * self.stride
    }

    pub fn bits(&self) -> u64 {
        self.cells() * u64::from(self.width)
    }

    /// Returns the number of 64-byte lines that hold the cells.
    pub fn lines(&self) -> u64 {
        self.bits().div_ceil(LINE_BITS)
    }

    #[inline(always)]
    fn y(&self, digest: Digest) -> u64 {
        (digest.get() ^ self.seed).wrapping_mul(MULTIPLIER)
    }

    /// Returns the cells of a digest, in order.
    #[cfg(test)]
    pub fn positions(&self, digest: Digest) -> Vec<u64> {
        placed!(self.arrangement, place => self.positions_in::<Scalar, _>(place, digest).to_vec())
    }

    #[inline(always)]
    fn positions_in<R: Reduce, const K: usize>(
        &self,
        place: impl CellPositions<K>,
        digest: Digest,
    ) -> [u64; K] {
        let y = self.y(digest);
        if self.shards == 1 {
            return place.cells::<R>(digest.get(), y);
        }
        let start = R::reduce(digest.get(), self.shards) * self.stride;
        let low = digest.get().wrapping_mul(self.shards);
        place.cells::<R>(low, y).map(|cell| start + cell)
    }

    /// Returns the bit range of a cell.
    pub fn cell_bits(&self, cell: u64) -> std::ops::Range<u64> {
        let start = cell * u64::from(self.width);
        start..start + u64::from(self.width)
    }

    /// Returns the mask of a digest.
    pub fn mask(&self, digest: Digest) -> u128 {
        let z = z(self.y(digest), self.cells_of_key() as usize);
        let wide = (u128::from(z) << 64) | u128::from(z.wrapping_mul(MULTIPLIER));
        wide >> (128 - self.width)
    }

    /// Returns the value that the table stores for a digest.
    #[inline(always)]
    pub fn decode(&self, words: &[u64], digest: Digest) -> u128 {
        if self.width <= 64 {
            return self.decode_narrow(words, digest).into();
        }
        let cells = placed!(self.arrangement, place => {
            self.positions_in::<Scalar, _>(place, digest).iter().fold(0, |all, cell| all ^ read_cell(words, *cell, self.width))
        });
        self.mask(digest) ^ cells
    }

    /// Like [`decode`](TableShape::decode), for cells of at most 64 bits. The result for wider
    /// cells is meaningless.
    #[inline(always)]
    pub fn decode_narrow(&self, words: &[u64], digest: Digest) -> u64 {
        match self.arrangement {
            Arrangement::Fuse { segment_log2, segments } if self.width == 8 => {
                let place = FusePlace::new(segment_log2, segments);
                let cells = self.positions_in::<Scalar, 3>(place, digest);
                let mask = z(self.y(digest), 3) >> 56;
                cells.iter().fold(mask, |sum, cell| sum ^ read_bytes::<1>(words, *cell))
            }
            _ => self.decode_any(words, digest),
        }
    }

    /// Like `decode_narrow`, for every width and arrangement. It is a separate function so that
    /// loops around the most common ones stay small.
    #[inline(never)]
    fn decode_any(&self, words: &[u64], digest: Digest) -> u64 {
        placed!(self.arrangement, place => self.decode_in(place, words, digest))
    }

    #[inline(always)]
    fn decode_in<const K: usize>(&self, place: impl CellPositions<K>, words: &[u64], digest: Digest) -> u64 {
        let (cells, mask) = (self.positions_in::<Scalar, _>(place, digest), z(self.y(digest), K));
        xor_cells(words, cells.map(|cell| cell * u64::from(self.width)), mask, self.width)
    }

    /// Returns whether the value of a digest is 0, that is, whether a filter contains it.
    #[inline(always)]
    pub fn contains(&self, words: &[u64], digest: Digest) -> bool {
        if self.width <= 64 {
            self.decode_narrow(words, digest) == 0
        } else {
            self.decode(words, digest) == 0
        }
    }
}

/// Returns the element of the probe stream after those of the `k` cells, from which masks are made.
#[inline(always)]
fn z(y: u64, k: usize) -> u64 {
    y.wrapping_mul(POWERS[k - 1])
}

/// Returns the xor of cells of at most 64 bits and the highest bits of `mask`. `starts` are the
/// first bits of the cells.
#[inline(always)]
fn xor_cells<const K: usize>(words: &[u64], starts: [u64; K], mask: u64, width: u32) -> u64 {
    let sum = mask >> (64 - width.min(64));
    // Cells may be outside the caches, so only the bytes they need are read.
    let sum = match width {
        ..=9 => starts.iter().fold(sum, |sum, start| sum ^ read_near::<2>(words, *start)),
        10..=25 => starts.iter().fold(sum, |sum, start| sum ^ read_near::<4>(words, *start)),
        26..=NEAR => starts.iter().fold(sum, |sum, start| sum ^ read_near::<8>(words, *start)),
        _ => starts.iter().fold(sum, |sum, start| sum ^ read_bits(words, *start, width.min(64))),
    };
    sum & !0 >> (64 - width.min(64))
}

/// The widest cell that [`read_near`] reads as a whole.
const NEAR: u32 = 57;

/// Reads a cell of any width.
#[inline(always)]
fn read_cell(words: &[u64], cell: u64, width: u32) -> u128 {
    let start = cell * u64::from(width);
    let low = read_bits(words, start, width.min(64));
    let high = if width > 64 { read_bits(words, start + 64, width - 64) } else { 0 };
    u128::from(low) | u128::from(high) << 64
}
