//! The grid of counters, and the loops over a tile.

use crate::arch::{Kernel, Simd, prefetch};
use crate::hash::reduce;
use crate::memory::Packed;
use crate::tile::TILE;
use crate::{Digest, Error, Result};

/// The shape of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// w: the number of counters in a row.
    pub width: u64,
    /// d: the number of rows.
    pub depth: u32,
}

const MAX_DEPTH: u32 = 256;

impl Grid {
    /// Returns the layout of the counters as packed cells of 32 bits.
    pub fn cells(self) -> Result<Packed> {
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

    /// Returns the counter of a digest in a row.
    #[inline(always)]
    pub fn place(self, row: u32, digest: Digest) -> u64 {
        let row = u64::from(row);
        row * self.width + reduce(digest.salted(row).get(), self.width)
    }

    /// Returns the counters of a tile in a row, and prefetches them.
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

/// Returns the value of a counter.
#[inline(always)]
pub(super) fn get(counters: &[u64], place: u64) -> u32 {
    (counters[(place / 2) as usize] >> (32 * (place % 2))) as u32
}

/// Adds to a counter, which saturates, and returns the new value.
#[inline(always)]
pub(super) fn add(counters: &mut [u64], place: u64, times: u32) -> u32 {
    let sum = get(counters, place).saturating_add(times);
    set(counters, place, sum);
    sum
}

/// Sets a counter.
#[inline(always)]
pub(super) fn set(counters: &mut [u64], place: u64, value: u32) {
    let (word, shift) = (&mut counters[(place / 2) as usize], 32 * (place % 2));
    *word = *word & !(u64::from(u32::MAX) << shift) | u64::from(value) << shift;
}

/// Counts each key of a tile once. The counters of the next row are prefetched while those of the
/// current row are raised.
pub(super) struct AddTile<'a> {
    pub grid: Grid,
    pub counters: &'a mut [u64],
    pub digests: &'a [Digest],
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

/// Returns the lowest counter of each key of a tile, row by row like [`AddTile`].
pub(super) struct CountTile<'a> {
    pub grid: Grid,
    pub counters: &'a [u64],
    pub digests: &'a [Digest],
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
