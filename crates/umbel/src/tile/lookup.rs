//! Lookups of single tiles and of batches, for every structure that can test a tile.

use super::pipeline::{Pair, Stage, Tiled, Work};
use super::{Answers, TILE, Tile, low_bits};
use crate::arch::{Kernel, Simd};
use crate::key::Hashed;
use crate::{Batch, Digest, Hasher, Level};
use std::convert::Infallible;
use std::slice;

/// A structure that tests a tile of keys against its memory.
#[doc(hidden)]
pub trait Lookup: Tiled {
    /// The cells that lookups read.
    type Memory: ?Sized;

    /// Prefetches the cells that a lookup of each key reads first.
    fn prefetch(&self, memory: &Self::Memory, places: &Self::Places);

    /// Tests a tile: bit `i` of the answer is set if key `i` may be a member. Prefetches the places
    /// `at.next` at the same time, one key with each key.
    fn contains_tile<S: Simd>(
        &self,
        simd: S,
        memory: &Self::Memory,
        tile: &Tile,
        at: Pair<'_, Self::Places>,
    ) -> u64;
}

/// Looks up as many as 64 digests; any others are ignored.
pub(crate) fn contains_tile<L: Lookup>(level: Level, layout: &L, memory: &L::Memory, tile: &[Digest]) -> u64 {
    level.run(ContainsTile { layout, memory, tile: &tile[..tile.len().min(TILE)] })
}

/// Looks up a batch.
pub(crate) fn contains_batch<L: Lookup, B: Batch + ?Sized>(
    level: Level,
    layout: &L,
    memory: &L::Memory,
    hasher: &Hasher,
    keys: &B,
) -> Answers {
    let work = ContainsBatch { memory, answers: Answers::with_capacity(keys.len()) };
    let Ok(work) = super::run(level, layout, hasher, keys, work);
    work.answers
}

/// Looks up digests and sets the bits of those found in `found`, which has one bit per digest.
pub(crate) fn mark_found<L: Lookup>(
    level: Level,
    layout: &L,
    memory: &L::Memory,
    digests: &[Digest],
    found: &mut [u64],
) {
    let work = ContainsBatch { memory, answers: found.iter_mut() };
    let Ok(_) = super::run(level, layout, &Hasher::default(), &Hashed(digests), work);
}

/// A destination for the answers of a batch, tile by tile.
trait Sink {
    fn push_tile(&mut self, answers: u64, len: usize);
}

impl Sink for Answers {
    #[inline(always)]
    fn push_tile(&mut self, answers: u64, len: usize) {
        Answers::push_tile(self, answers, len);
    }
}

/// Adds the answers to those of other structures.
impl Sink for slice::IterMut<'_, u64> {
    #[inline(always)]
    fn push_tile(&mut self, answers: u64, _: usize) {
        if let Some(found) = self.next() {
            *found |= answers;
        }
    }
}

struct ContainsTile<'a, L: Lookup> {
    layout: &'a L,
    memory: &'a L::Memory,
    tile: &'a [Digest],
}

impl<L: Lookup> Kernel for ContainsTile<'_, L> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        let ContainsTile { layout, memory, tile } = self;
        let layout = &{ *layout };
        let stage = Stage::new(layout, tile);
        layout.prefetch(memory, stage.places());
        layout.contains_tile(simd, memory, stage.tile(), stage.before(&stage)) & low_bits(tile.len())
    }
}

struct ContainsBatch<'a, M: ?Sized, A> {
    memory: &'a M,
    answers: A,
}

impl<L: Lookup, A: Sink> Work<L> for ContainsBatch<'_, L::Memory, A> {
    type Error = Infallible;

    #[inline(always)]
    fn start(&self, layout: &L, first: &Stage<L>) {
        layout.prefetch(self.memory, first.places());
    }

    #[inline(always)]
    fn tile<S: Simd>(
        &mut self,
        simd: S,
        layout: &L,
        now: &Stage<L>,
        next: &Stage<L>,
    ) -> Result<(), Infallible> {
        let answers = layout.contains_tile(simd, self.memory, now.tile(), now.before(next));
        let len = now.digests().len();
        self.answers.push_tile(answers & low_bits(len), len);
        Ok(())
    }
}
