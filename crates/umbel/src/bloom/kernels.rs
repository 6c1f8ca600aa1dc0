//! The loops around a layout, each compiled once per instruction set.
//!
//! A batch is worked tile by tile: hash the next tile and compute its places, then test the current one and, with each
//! of its keys, ask the memory for a key of the next. So the memory is busy while the processor is.

use super::Bloom;
use super::layout::{Layout, Pair, Places, Tile, Tiled};
use super::sorter::Sorter;
use crate::arch::{Kernel, Simd};
use crate::hash::Ends;
use crate::tile::{TILE, low_bits, tiles};
use crate::words::{AtomicWords, Line};
use crate::{Answers, Batch, Digest, Hasher};

/// One digest.
pub(super) struct ContainsDigest<'a, L: Layout> {
    pub filter: &'a Bloom<L>,
    pub digest: Digest,
}

impl<L: Layout> Kernel for ContainsDigest<'_, L> {
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        self.filter.contains_with(simd, self.digest)
    }
}

/// A tile with what is known of it.
pub(crate) struct Stage<L: Tiled> {
    tile: Tile,
    len: usize,
    places: L::Places,
}

impl<L: Tiled> Stage<L> {
    #[inline(always)]
    fn empty() -> Stage<L> {
        Stage { tile: [Digest::default(); TILE], len: 0, places: L::Places::EMPTY }
    }

    /// At most 64 digests.
    #[inline(always)]
    pub(crate) fn of(layout: &L, digests: &[Digest]) -> Stage<L> {
        let mut stage = Stage::empty();
        stage.tile[..digests.len()].copy_from_slice(digests);
        stage.len = digests.len();
        layout.places(&stage.tile, &mut stage.places);
        stage
    }

    #[inline(always)]
    pub(crate) fn places(&self) -> &L::Places {
        &self.places
    }

    #[inline(always)]
    pub(crate) fn digests(&self) -> &[Digest] {
        &self.tile[..self.len]
    }

    #[inline(always)]
    pub(crate) fn before<'a>(&'a self, next: &'a Stage<L>) -> Pair<'a, L::Places> {
        Pair { now: &self.places, next: &next.places }
    }
}

/// A batch of keys: hashed tile by tile, each tile handed to `work` together with the one after it.
pub(crate) struct Pipeline<'a, L, B: ?Sized, W> {
    pub layout: &'a L,
    pub hasher: &'a Hasher,
    pub keys: &'a B,
    pub work: W,
}

/// What is done with each tile of a batch. (Not a closure: those cannot be marked `inline(always)`, and one that is
/// not inlined is compiled without the instruction set.)
pub(crate) trait Work<L: Tiled> {
    /// Whether the places of the keys are needed.
    const PLACES: bool = true;
    fn tile<S: Simd>(&mut self, simd: S, layout: &L, now: &Stage<L>, next: &Stage<L>);
}

impl<L: Tiled, B: Batch + ?Sized, W: Work<L>> Kernel for Pipeline<'_, L, B, W> {
    type Output = W;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> W {
        let Pipeline { layout, hasher, keys, mut work } = self;
        let mut stages = [Stage::empty(), Stage::empty()];
        let mut ranges = tiles(keys.len());
        let mut ends = Ends::EMPTY;
        let mut turn = 0;
        loop {
            let [even, odd] = &mut stages;
            let (now, next) = if turn % 2 == 0 { (odd, even) } else { (even, odd) };
            let upcoming = ranges.next();
            if let Some(range) = upcoming.clone() {
                next.len = range.len();
                keys.digest_tile_with(simd, range, hasher, &mut next.tile[..next.len], &mut ends);
                if W::PLACES {
                    layout.places(&next.tile, &mut next.places);
                }
            }
            if turn > 0 {
                work.tile(simd, layout, now, if upcoming.is_some() { next } else { now });
            }
            if upcoming.is_none() {
                return work;
            }
            turn += 1;
        }
    }
}

/// One tile of digests, at most 64.
pub(crate) struct ContainsTile<'a, L> {
    pub layout: &'a L,
    pub lines: &'a [Line],
    pub tile: &'a [Digest],
}

impl<L: Tiled> Kernel for ContainsTile<'_, L> {
    type Output = u64;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        let ContainsTile { layout, lines, tile } = self;
        let stage = Stage::of(layout, tile);
        layout.prefetch(lines, &stage.places);
        layout.contains_tile(simd, lines, &stage.tile, stage.before(&stage)) & low_bits(stage.len)
    }
}

/// Asks for each key of a batch.
pub(crate) struct Ask<'a> {
    pub lines: &'a [Line],
    pub answers: Answers,
}

impl<L: Tiled> Work<L> for Ask<'_> {
    #[inline(always)]
    fn tile<S: Simd>(&mut self, simd: S, layout: &L, now: &Stage<L>, next: &Stage<L>) {
        let answer = layout.contains_tile(simd, self.lines, &now.tile, now.before(next));
        self.answers.push_tile(answer & low_bits(now.len), now.len);
    }
}

/// One digest into owned memory; `true` when it was new. Two words, so that it travels in registers.
pub(super) struct InsertDigest<'a, L: Layout> {
    pub filter: &'a mut Bloom<L>,
    pub digest: Digest,
}

impl<L: Layout> Kernel for InsertDigest<'_, L> {
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        let new = self.filter.layout.insert(simd, self.filter.words.lines_mut(), self.digest);
        self.filter.head.count_inserted(1);
        new
    }
}

/// Digests into owned memory.
pub(super) struct InsertTile<'a, L> {
    pub layout: &'a L,
    pub lines: &'a mut [Line],
    pub tile: &'a [Digest],
}

impl<L: Layout> Kernel for InsertTile<'_, L> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for tile in self.tile.chunks(TILE) {
            let stage = Stage::of(self.layout, tile);
            if L::PLACES_TO_INSERT {
                self.layout.prefetch(self.lines, &stage.places);
            }
            self.layout.insert_tile(simd, self.lines, stage.digests(), stage.before(&stage));
        }
    }
}

/// One tile of digests, at most 64, into owned memory; the bits of the answer are the new ones.
pub(super) struct InsertTileNew<'a, L> {
    pub layout: &'a L,
    pub lines: &'a mut [Line],
    pub tile: &'a [Digest],
}

impl<L: Layout> Kernel for InsertTileNew<'_, L> {
    type Output = u64;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        let stage = Stage::of(self.layout, self.tile);
        self.layout.prefetch(self.lines, &stage.places);
        let mut new = 0;
        for (i, digest) in self.tile.iter().enumerate() {
            new |= u64::from(self.layout.insert(simd, self.lines, *digest)) << i;
        }
        new
    }
}

/// Inserts each key of a batch into owned memory.
pub(super) struct Fill<'a> {
    pub lines: &'a mut [Line],
}

impl<L: Layout> Work<L> for Fill<'_> {
    const PLACES: bool = L::PLACES_TO_INSERT;

    #[inline(always)]
    fn tile<S: Simd>(&mut self, simd: S, layout: &L, now: &Stage<L>, next: &Stage<L>) {
        layout.insert_tile(simd, self.lines, now.digests(), now.before(next));
    }
}

/// One digest into memory that other threads use as well; `true` when it was new.
pub(super) struct InsertDigestShared<'a, L> {
    pub layout: &'a L,
    pub words: &'a AtomicWords,
    pub digest: Digest,
}

impl<L: Layout> Kernel for InsertDigestShared<'_, L> {
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        self.layout.insert_shared(simd, self.words, self.digest)
    }
}

/// Inserts each key of a batch into memory that other threads use as well.
pub(super) struct FillShared<'a> {
    pub words: &'a AtomicWords,
}

impl<L: Layout> Work<L> for FillShared<'_> {
    #[inline(always)]
    fn tile<S: Simd>(&mut self, simd: S, layout: &L, now: &Stage<L>, next: &Stage<L>) {
        layout.prefetch_shared(self.words, &next.places);
        for digest in now.digests() {
            layout.insert_shared(simd, self.words, *digest);
        }
    }
}

/// The same, sorted by region.
pub(super) struct SortShared<'a> {
    pub words: &'a AtomicWords,
    pub sorter: Sorter,
}

impl<L: Layout> Work<L> for SortShared<'_> {
    const PLACES: bool = false;

    #[inline(always)]
    fn tile<S: Simd>(&mut self, simd: S, layout: &L, now: &Stage<L>, _: &Stage<L>) {
        for j in 0..layout.sorts() {
            layout.sort_shared(self.words, now.digests(), j, &mut self.sorter);
            while let Some(region) = self.sorter.full() {
                let (now, next) = self.sorter.turn(region);
                layout.write_shared(simd, self.words, now, next);
            }
        }
    }
}

/// Writes what is left in the sorter after the last tile.
pub(super) struct FlushShared<'a, L> {
    pub layout: &'a L,
    pub work: SortShared<'a>,
}

impl<L: Layout> Kernel for FlushShared<'_, L> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let SortShared { words, mut sorter } = self.work;
        // Each thread starts somewhere else, and ends there once more, for the group that the last region put off.
        let start = sorter.somewhere();
        for region in (start..words.regions()).chain(0..=start) {
            let (now, next) = sorter.turn(region);
            self.layout.write_shared(simd, words, now, next);
        }
        sorter.retire();
    }
}
