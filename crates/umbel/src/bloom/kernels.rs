//! The loops around a layout, each compiled once per instruction set: for single digests, for
//! tiles, and for each tile of a batch.

use super::Bloom;
use super::layout::Layout;
use super::sorter::Sorter;
use crate::Digest;
use crate::arch::{Kernel, Simd};
use crate::memory::{AtomicWords, CacheLine};
use crate::tile::{Lookup, Pair, Stage, TILE, Tile, Tiled, Work};
use std::convert::Infallible;

/// Looks up one digest.
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

/// Inserts one digest into owned memory and returns whether it was new. Has two words, so that it
/// is passed in registers.
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

/// Inserts digests into owned memory.
pub(super) struct InsertTile<'a, L> {
    pub layout: &'a L,
    pub lines: &'a mut [CacheLine],
    pub tile: &'a [Digest],
}

impl<L: Layout> Kernel for InsertTile<'_, L> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for tile in self.tile.chunks(TILE) {
            let stage = Stage::new(self.layout, tile);
            if L::PLACES_TO_INSERT {
                self.layout.prefetch(self.lines, stage.places());
            }
            self.layout.insert_tile(simd, self.lines, stage.digests(), stage.before(&stage));
        }
    }
}

/// Inserts one tile of at most 64 digests into owned memory and returns which were new, as a bit
/// mask.
pub(super) struct InsertTileNew<'a, L> {
    pub layout: &'a L,
    pub lines: &'a mut [CacheLine],
    pub tile: &'a [Digest],
}

impl<L: Layout> Kernel for InsertTileNew<'_, L> {
    type Output = u64;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        let stage = Stage::new(self.layout, self.tile);
        self.layout.prefetch(self.lines, stage.places());
        let mut new = 0;
        for (i, digest) in self.tile.iter().enumerate() {
            new |= u64::from(self.layout.insert(simd, self.lines, *digest)) << i;
        }
        new
    }
}

/// Inserts each key of a batch into owned memory.
pub(super) struct Fill<'a> {
    pub lines: &'a mut [CacheLine],
}

impl<L: Layout> Work<L> for Fill<'_> {
    type Error = Infallible;

    const PLACES: bool = L::PLACES_TO_INSERT;

    #[inline(always)]
    fn start(&self, layout: &L, first: &Stage<L>) {
        if L::PLACES_TO_INSERT {
            layout.prefetch(self.lines, first.places());
        }
    }

    #[inline(always)]
    fn tile<S: Simd>(
        &mut self,
        simd: S,
        layout: &L,
        now: &Stage<L>,
        next: &Stage<L>,
    ) -> Result<(), Infallible> {
        layout.insert_tile(simd, self.lines, now.digests(), now.before(next));
        Ok(())
    }
}

/// Inserts one digest into memory shared with other threads and returns whether it was new.
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

/// A layout over memory shared with other threads.
#[derive(Clone, Copy)]
pub(super) struct Shared<L>(pub L);

impl<L: Layout> Tiled for Shared<L> {
    type Places = L::Places;

    #[inline(always)]
    fn places(&self, tile: &Tile, places: &mut L::Places) {
        self.0.places(tile, places);
    }
}

impl<L: Layout> Lookup for Shared<L> {
    type Memory = AtomicWords;

    #[inline(always)]
    fn prefetch(&self, words: &AtomicWords, places: &L::Places) {
        self.0.prefetch_shared(words, places);
    }

    #[inline(always)]
    fn contains_tile<S: Simd>(&self, _: S, words: &AtomicWords, tile: &Tile, at: Pair<'_, L::Places>) -> u64 {
        self.0.prefetch_shared(words, at.next);
        let mut answers = 0;
        for (i, digest) in tile.iter().enumerate() {
            answers |= u64::from(self.0.contains_shared(words, *digest)) << i;
        }
        answers
    }
}

/// Inserts each key of a batch into memory shared with other threads.
pub(super) struct FillShared<'a> {
    pub words: &'a AtomicWords,
}

impl<L: Layout> Work<L> for FillShared<'_> {
    type Error = Infallible;

    #[inline(always)]
    fn start(&self, layout: &L, first: &Stage<L>) {
        layout.prefetch_shared(self.words, first.places());
    }

    #[inline(always)]
    fn tile<S: Simd>(
        &mut self,
        simd: S,
        layout: &L,
        now: &Stage<L>,
        next: &Stage<L>,
    ) -> Result<(), Infallible> {
        layout.prefetch_shared(self.words, next.places());
        for digest in now.digests() {
            layout.insert_shared(simd, self.words, *digest);
        }
        Ok(())
    }
}

/// Like [`FillShared`], but sorts the keys by region first.
pub(super) struct SortShared<'a> {
    pub words: &'a AtomicWords,
    pub sorter: Sorter,
}

impl<L: Layout> Work<L> for SortShared<'_> {
    type Error = Infallible;

    const PLACES: bool = false;

    #[inline(always)]
    fn tile<S: Simd>(&mut self, simd: S, layout: &L, now: &Stage<L>, _: &Stage<L>) -> Result<(), Infallible> {
        for j in 0..layout.sorts() {
            layout.sort_shared(self.words, now.digests(), j, &mut self.sorter);
            while let Some(region) = self.sorter.full() {
                let (now, next) = self.sorter.turn(region);
                layout.write_shared(simd, self.words, now, next);
            }
        }
        Ok(())
    }
}

/// Writes the keys that remain in the sorter after the last tile.
pub(super) struct FlushShared<'a, L> {
    pub layout: &'a L,
    pub work: SortShared<'a>,
}

impl<L: Layout> Kernel for FlushShared<'_, L> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let SortShared { words, mut sorter } = self.work;
        // Each thread starts at a different region. It visits that region again at the end, to
        // write the group that the last region held back.
        let start = sorter.somewhere();
        for region in (start..words.regions()).chain(0..=start) {
            let (now, next) = sorter.turn(region);
            self.layout.write_shared(simd, words, now, next);
        }
        sorter.retire();
    }
}
