//! The loop over the tiles of a batch, compiled once per instruction set.

use super::{TILE, Tile};
use crate::arch::{Kernel, Simd};
use crate::hash::Ends;
use crate::key::Visitor;
use crate::{Batch, Digest, Hasher, Level};
use std::ops::Range;

/// A structure that can compute where the cells of a digest are.
///
/// Loops over tiles work on a copy of it. A copy on the stack stays in registers, whereas fields
/// behind a reference would be loaded again after every store, which takes a tenth of the time of a
/// lookup.
#[doc(hidden)]
pub trait Tiled: Copy {
    /// The places of the keys of one tile.
    type Places: Places;

    /// Computes the places of a tile.
    fn places(&self, tile: &Tile, places: &mut Self::Places);
}

/// Scratch memory for the places of one tile.
pub trait Places: Copy {
    /// Places that have not been computed yet.
    const EMPTY: Self;
}

/// The places of the current tile and of the next one. For the last tile both are the same:
/// prefetching lines that have already arrived costs nothing.
#[derive(Clone, Copy)]
pub struct Pair<'a, P> {
    pub now: &'a P,
    pub next: &'a P,
}

/// One tile: its digests and their places.
pub struct Stage<'k, L: Tiled> {
    /// The digests, if the batch already has them.
    hashed: Option<&'k Tile>,
    /// The digests otherwise, computed from the keys.
    tile: Tile,
    len: usize,
    places: L::Places,
}

impl<L: Tiled> Stage<'_, L> {
    #[inline(always)]
    fn empty() -> Self {
        Stage { hashed: None, tile: [Digest::default(); TILE], len: 0, places: L::Places::EMPTY }
    }

    /// Makes a stage of at most 64 digests and computes their places.
    #[inline(always)]
    pub(crate) fn new(layout: &L, digests: &[Digest]) -> Self {
        let mut stage = Stage::empty();
        stage.tile[..digests.len()].copy_from_slice(digests);
        stage.len = digests.len();
        layout.places(&stage.tile, &mut stage.places);
        stage
    }

    /// Returns the digests of the tile, followed by arbitrary ones up to a full tile.
    #[inline(always)]
    pub(crate) fn tile(&self) -> &Tile {
        self.hashed.unwrap_or(&self.tile)
    }

    /// Returns the digests of the tile.
    #[inline(always)]
    pub(crate) fn digests(&self) -> &[Digest] {
        &self.tile()[..self.len]
    }

    #[inline(always)]
    pub(crate) fn places(&self) -> &L::Places {
        &self.places
    }

    #[inline(always)]
    pub(crate) fn before<'a>(&'a self, next: &'a Self) -> Pair<'a, L::Places> {
        Pair { now: &self.places, next: &next.places }
    }
}

/// The operation on each tile of a batch.
///
/// This is a trait and not a closure, because a closure cannot be marked `inline(always)`, and one
/// that is not inlined is compiled without the instruction set of its caller.
pub(crate) trait Work<L: Tiled> {
    /// The error that ends a batch early.
    type Error;

    /// Whether the places of the keys are needed.
    const PLACES: bool = true;

    /// Prefetches the first tile of a batch, because no earlier tile does.
    #[inline(always)]
    fn start(&self, _layout: &L, _first: &Stage<L>) {}

    /// Processes the tile `now` and prefetches `next` at the same time.
    fn tile<S: Simd>(
        &mut self,
        simd: S,
        layout: &L,
        now: &Stage<L>,
        next: &Stage<L>,
    ) -> Result<(), Self::Error>;
}

/// Passes a batch through a structure, tile by tile. Returns the work, or its first error.
pub(crate) fn run<L: Tiled, B: Batch + ?Sized, W: Work<L>>(
    level: Level,
    layout: &L,
    hasher: &Hasher,
    keys: &B,
    work: W,
) -> Result<W, W::Error> {
    keys.visit(Start { level, layout, hasher, work })
}

/// The settings of a pipeline before the type of its batch is known.
struct Start<'a, L, W> {
    level: Level,
    layout: &'a L,
    hasher: &'a Hasher,
    work: W,
}

impl<L: Tiled, W: Work<L>> Visitor for Start<'_, L, W> {
    type Output = Result<W, W::Error>;

    fn visit<B: Batch + ?Sized>(self, keys: &B) -> Result<W, W::Error> {
        let Start { level, layout, hasher, work } = self;
        level.run(Pipeline { layout, hasher, keys, work })
    }
}

/// A batch that passes through a structure; the kernel.
struct Pipeline<'a, L, B: ?Sized, W> {
    layout: &'a L,
    hasher: &'a Hasher,
    keys: &'a B,
    work: W,
}

impl<L: Tiled, B: Batch + ?Sized, W: Work<L>> Kernel for Pipeline<'_, L, B, W> {
    type Output = Result<W, W::Error>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Result<W, W::Error> {
        let Pipeline { layout, hasher, keys, mut work } = self;
        let layout = &{ *layout };
        let mut stages = [Stage::empty(), Stage::empty()];
        let [mut now, mut next] = stages.each_mut();
        let mut ranges = tiles(keys.len());
        let mut ends = Ends::EMPTY;
        // Each step has only one place in the code, although the first and the last iteration skip
        // some. Every step is inlined, and twice the code would take twice the time to compile and
        // twice the instruction cache.
        loop {
            let upcoming = ranges.next();
            let is_last = upcoming.is_none();
            if let Some(range) = upcoming {
                next.len = range.len();
                next.hashed = keys.hashed_tile(range.start);
                if next.hashed.is_none() {
                    keys.digest_tile_with(simd, range, hasher, &mut next.tile[..next.len], &mut ends);
                }
                if W::PLACES {
                    layout.places(next.hashed.unwrap_or(&next.tile), &mut next.places);
                }
                if now.len == 0 {
                    work.start(layout, next);
                }
            }
            if now.len > 0 {
                work.tile(simd, layout, now, if is_last { now } else { next })?;
            }
            if is_last {
                return Ok(work);
            }
            std::mem::swap(&mut now, &mut next);
        }
    }
}

/// The ranges of consecutive tiles in `0..len`.
#[inline(always)]
fn tiles(len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(TILE).map(move |start| start..len.min(start + TILE))
}
