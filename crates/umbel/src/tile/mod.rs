//! A tile is a group of up to 64 keys that are hashed, prefetched and tested together. This module
//! has the loop that passes a batch through a structure, tile by tile.
//!
//! A lookup in a filter larger than the caches waits for memory, about as long as it takes to hash
//! twenty keys. So a batch is cut into tiles, and while the processor works on one tile, memory
//! loads the next:
//!
//! ```text
//!              tile 0         tile 1         tile 2         tile 3
//!   hash     |========|     |========|     |========|     |========|         64 keys become 64 digests
//!   place     \=|            \=|            \=|            \=|               the cells of each digest are computed
//!   prefetch    |=|          : |===:==|     : |===:==|     : |===:==|        one cell of the next tile with each key
//!   test             waits   |=====|        |=====|        |=====|     |=====|
//!                            tile 0         tile 1         tile 2      tile 3
//!
//!   answers                  0110...1       0000...1       1110...0    00...01     one u64 for each tile
//! ```
//!
//! Only the first tile of a batch is prefetched in one burst. Every other tile is prefetched while
//! the tile before it is tested, one key with each key, because a burst of 64 requests would fill
//! the processor's miss buffers and stall it.
//!
//! The parts, in the order in which a batch passes through them:
//!
//! | part | does |
//! | --- | --- |
//! | [`run`] | cuts a batch into tiles, hashes the next tile and passes two consecutive ones to its work |
//! | [`Stage`] | one tile: its digests and their places |
//! | [`Tiled`] | a structure that computes places |
//! | [`Lookup`] | a structure that prefetches places and tests a tile |
//! | [`Work`] | the operation on each tile: look up, insert, decode, sort |
//! | [`Answers`] | one bit for each key of a batch |
//!
//! A kind without places to prefetch, or one whose tile operations prefetch by themselves,
//! processes a batch with [`each`].

mod answers;
mod hash;
mod lookup;
mod pipeline;

pub use answers::Answers;
pub(crate) use answers::{low_bits, ones};
pub(crate) use hash::{CHUNK, chunks, each, hash};
pub use lookup::Lookup;
pub(crate) use lookup::{contains_batch, contains_tile, mark_found};
pub use pipeline::{Pair, Places, Stage, Tiled};
pub(crate) use pipeline::{Work, run};

use crate::Digest;

/// The number of digests in a full tile.
pub const TILE: usize = 64;

/// The digests of a full tile. A tile with fewer keys is padded with arbitrary digests whose
/// answers are discarded, because loops of a fixed length compile to better code.
pub type Tile = [Digest; TILE];

/// Splits digests into a tile, whose answers fit into a word, and the rest.
#[inline(always)]
pub(crate) fn split_tile(digests: &[Digest]) -> (&[Digest], &[Digest]) {
    digests.split_at(digests.len().min(TILE))
}
