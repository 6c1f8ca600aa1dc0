//! Lookups of many digests: the cells of the next tile are fetched while those of this one are read.

use super::{MAX_CELLS_OF_KEY, Place, Shape, placed, z};
use crate::arch::{Kernel, Simd, prefetch};
use crate::bloom::kernels::{Stage, Work};
use crate::bloom::layout::{Pair, Places, Tile, Tiled};
use crate::filter::TILE;
use crate::words::{Line, as_words, read_bits};
use crate::{Digest, Level};

/// Where the cells of each key of a tile start, as bits.
#[derive(Clone, Copy)]
pub(crate) struct Starts([[u64; MAX_CELLS_OF_KEY]; TILE]);

impl Places for Starts {
    const EMPTY: Starts = Starts([[0; MAX_CELLS_OF_KEY]; TILE]);
}

impl Shape {
    #[inline(always)]
    fn starts<const K: usize>(&self, place: impl Place<K>, tile: &Tile, starts: &mut Starts) {
        for (starts, digest) in starts.0.iter_mut().zip(tile) {
            let cells = self.positions_in(place, *digest);
            for (start, cell) in starts.iter_mut().zip(cells) {
                *start = cell * u64::from(self.width);
            }
        }
    }

    #[inline(always)]
    fn fetch(&self, words: &[u64], starts: &[u64; MAX_CELLS_OF_KEY], cells: usize) {
        for start in &starts[..cells] {
            prefetch(words, (start / 64) as usize);
        }
    }

    /// What the table says of each key of a tile, for cells of at most 64 bits.
    #[inline(always)]
    fn decode_all<const K: usize>(
        &self,
        _: impl Place<K>,
        words: &[u64],
        tile: &Tile,
        at: Pair<'_, Starts>,
        out: &mut [u64; TILE],
    ) {
        let width = self.width.min(64);
        for i in 0..TILE {
            self.fetch(words, &at.next.0[i], K);
            let mut value = z(self.y(tile[i]), K) >> (64 - width);
            for start in &at.now.0[i][..K] {
                value ^= read_bits(words, *start, width);
            }
            out[i] = value;
        }
    }
}

impl Tiled for Shape {
    type Places = Starts;

    #[inline(always)]
    fn places(&self, tile: &Tile, starts: &mut Starts) {
        placed!(self.arrangement, place => self.starts(place, tile, starts));
    }

    #[inline(always)]
    fn prefetch(&self, lines: &[Line], starts: &Starts) {
        for starts in &starts.0 {
            self.fetch(as_words(lines), starts, self.cells_of_key() as usize);
        }
    }

    /// Whether the table says 0.
    #[inline(always)]
    fn contains_tile<S: Simd>(&self, _: S, lines: &[Line], tile: &Tile, at: Pair<'_, Starts>) -> u64 {
        let words = as_words(lines);
        if self.width > 64 {
            return (0..TILE).fold(0, |all, i| all | u64::from(self.decode(words, tile[i]) == 0) << i);
        }
        let mut values = [0; TILE];
        placed!(self.arrangement, place => self.decode_all(place, words, tile, at, &mut values));
        (0..TILE).fold(0, |all, i| all | u64::from(values[i] == 0) << i)
    }
}

/// The values of a batch of keys, for a [`Pipeline`](crate::bloom::kernels::Pipeline); cells have at most 64 bits.
pub(crate) struct Decode<'a, F> {
    pub lines: &'a [Line],
    /// Given the values of each tile, in order.
    pub take: F,
}

impl<F: FnMut(&[u64])> Work<Shape> for Decode<'_, F> {
    #[inline(always)]
    fn tile<S: Simd>(&mut self, _: S, shape: &Shape, now: &Stage<Shape>, next: &Stage<Shape>) {
        let mut values = [0; TILE];
        let words = as_words(self.lines);
        placed!(shape.arrangement, place => {
            shape.decode_all(place, words, now.tile(), now.before(next), &mut values);
        });
        (self.take)(&values[..now.digests().len()]);
    }
}

struct DecodeTile<'a> {
    shape: &'a Shape,
    lines: &'a [Line],
    tile: &'a [Digest],
}

impl Kernel for DecodeTile<'_> {
    type Output = [u64; TILE];
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> [u64; TILE] {
        let DecodeTile { shape, lines, tile } = self;
        let stage = Stage::of(shape, tile);
        shape.prefetch(lines, stage.places());
        let mut values = [0; TILE];
        placed!(shape.arrangement, place => {
            shape.decode_all(place, as_words(lines), stage.tile(), stage.before(&stage), &mut values);
        });
        values
    }
}

/// What the table says of each of at most 64 digests, for cells of at most 64 bits; behind them is anything.
pub(crate) fn decode_tile(shape: &Shape, level: Level, lines: &[Line], tile: &[Digest]) -> [u64; TILE] {
    level.run(DecodeTile { shape, lines, tile: &tile[..tile.len().min(TILE)] })
}
