//! Lookups of many digests: the cells of the next tile are prefetched while those of this one are
//! read.

use super::{CellPositions, MAX_CELLS_OF_KEY, NEAR, Reduce, TableShape, Vector, placed, z};
use crate::arch::{Kernel, Simd, prefetch_byte};
use crate::memory::{CacheLine, as_words, read_bits, read_bytes};
use crate::tile::{Lookup, Pair, Places, Stage, TILE, Tile, Tiled, Work};
use crate::{Digest, Level};
use std::convert::Infallible;

/// The positions and masks of a tile, computed before its cells are read.
#[derive(Clone, Copy)]
pub(crate) struct Starts {
    /// The byte from which each cell of each key is read, eight bytes at a time.
    bytes: [[u64; TILE]; MAX_CELLS_OF_KEY],
    /// The shift of the cell within those eight bytes.
    shifts: [[u64; TILE]; MAX_CELLS_OF_KEY],
    /// The mask of each key.
    masks: [u64; TILE],
}

impl Places for Starts {
    const EMPTY: Starts = Starts {
        bytes: [[0; TILE]; MAX_CELLS_OF_KEY],
        shifts: [[0; TILE]; MAX_CELLS_OF_KEY],
        masks: [0; TILE],
    };
}

impl TableShape {
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "several arrays are walked side by side")]
    fn starts<R: Reduce, const K: usize>(
        &self,
        place: impl CellPositions<K>,
        tile: &Tile,
        starts: &mut Starts,
    ) {
        let width = u64::from(self.width.min(64));
        for i in 0..TILE {
            let cells = self.positions_in::<R, K>(place, tile[i]);
            for (j, cell) in cells.into_iter().enumerate() {
                let start = cell * u64::from(self.width);
                // A cell within a word is read with that word, and one that continues in the next
                // word is read from its first byte on. So no cache line is read beyond those of the
                // cell, which were prefetched.
                let aligned = start & if start % 64 + width > 64 { !7 } else { !63 };
                (starts.bytes[j][i], starts.shifts[j][i]) = (aligned / 8, start - aligned);
            }
            starts.masks[i] = z(self.y(tile[i]), K) >> (64 - width);
        }
    }

    /// Prefetches the cells of key `i`.
    #[inline(always)]
    fn fetch<const K: usize>(&self, words: &[u64], starts: &Starts, i: usize) {
        for bytes in &starts.bytes[..K] {
            prefetch_byte(words, bytes[i]);
        }
    }

    /// Decodes each key of a tile, for cells of at most 64 bits.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "several arrays are walked side by side")]
    fn decode_all<const K: usize>(&self, words: &[u64], at: Pair<'_, Starts>, out: &mut [u64; TILE]) {
        if self.width > NEAR {
            for i in 0..TILE {
                self.fetch::<K>(words, at.next, i);
                out[i] = at.now.masks[i];
                for (bytes, shifts) in at.now.bytes.iter().zip(&at.now.shifts).take(K) {
                    out[i] ^= read_bits(words, bytes[i] * 8 + shifts[i], self.width.min(64));
                }
            }
            return;
        }
        // The loads are not vectorized, but everything after them is.
        let mut read = [[0; TILE]; K];
        for i in 0..TILE {
            self.fetch::<K>(words, at.next, i);
            for j in 0..K {
                read[j][i] = read_bytes::<8>(words, at.now.bytes[j][i]);
            }
        }
        let max = !0 >> (64 - self.width);
        for i in 0..TILE {
            let mut value = at.now.masks[i];
            for j in 0..K {
                value ^= read[j][i] >> (at.now.shifts[j][i] % 64);
            }
            out[i] = value & max;
        }
    }

    #[inline(always)]
    fn decode_tile_at(&self, lines: &[CacheLine], at: Pair<'_, Starts>) -> [u64; TILE] {
        let mut values = [0; TILE];
        if self.cells_of_key() == 3 {
            self.decode_all::<3>(as_words(lines), at, &mut values);
        } else {
            self.decode_all::<4>(as_words(lines), at, &mut values);
        }
        values
    }
}

impl Tiled for TableShape {
    type Places = Starts;

    #[inline(always)]
    fn places(&self, tile: &Tile, starts: &mut Starts) {
        placed!(self.arrangement, place => self.starts::<Vector, _>(place, tile, starts));
    }
}

impl Lookup for TableShape {
    type Memory = [CacheLine];

    #[inline(always)]
    fn prefetch(&self, lines: &[CacheLine], starts: &Starts) {
        for i in 0..TILE {
            self.fetch::<3>(as_words(lines), starts, i);
        }
    }

    /// Returns a mask of the keys whose value is 0.
    #[inline(always)]
    fn contains_tile<S: Simd>(&self, _: S, lines: &[CacheLine], tile: &Tile, at: Pair<'_, Starts>) -> u64 {
        if self.width > 64 {
            return (0..TILE).fold(0, |all, i| all | u64::from(self.contains(as_words(lines), tile[i])) << i);
        }
        let values = self.decode_tile_at(lines, at);
        (0..TILE).fold(0, |all, i| all | u64::from(values[i] == 0) << i)
    }
}

/// Decodes a batch of keys with [`tile::run`](crate::tile::run); cells have at most 64 bits.
pub(crate) struct Decode<'a, F> {
    pub lines: &'a [CacheLine],
    /// Receives the values of each tile, in order.
    pub take: F,
}

impl<F: FnMut(&[u64])> Work<TableShape> for Decode<'_, F> {
    type Error = Infallible;

    #[inline(always)]
    fn start(&self, shape: &TableShape, first: &Stage<TableShape>) {
        shape.prefetch(self.lines, first.places());
    }

    #[inline(always)]
    fn tile<S: Simd>(
        &mut self,
        _: S,
        shape: &TableShape,
        now: &Stage<TableShape>,
        next: &Stage<TableShape>,
    ) -> Result<(), Infallible> {
        let values = shape.decode_tile_at(self.lines, now.before(next));
        (self.take)(&values[..now.digests().len()]);
        Ok(())
    }
}

struct DecodeTile<'a> {
    shape: &'a TableShape,
    lines: &'a [CacheLine],
    tile: &'a [Digest],
}

impl Kernel for DecodeTile<'_> {
    type Output = [u64; TILE];
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> [u64; TILE] {
        let DecodeTile { shape, lines, tile } = self;
        let stage = Stage::new(shape, tile);
        shape.prefetch(lines, stage.places());
        shape.decode_tile_at(lines, stage.before(&stage))
    }
}

/// Decodes at most 64 digests, for cells of at most 64 bits. The elements behind them are
/// arbitrary.
pub(crate) fn decode_tile(
    shape: &TableShape,
    level: Level,
    lines: &[CacheLine],
    tile: &[Digest],
) -> [u64; TILE] {
    level.run(DecodeTile { shape, lines, tile: &tile[..tile.len().min(TILE)] })
}
