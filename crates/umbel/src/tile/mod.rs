//! The tile: up to 64 keys that are hashed, fetched and tested together.

mod answers;
mod hashed;

pub use answers::Answers;
pub(crate) use answers::{low_bits, ones};
pub(crate) use hashed::{HashedTiles, tiles};

use crate::Digest;

/// The number of digests in a full tile.
pub const TILE: usize = 64;

/// Splits digests into a tile, whose answers fit into a word, and the rest.
#[inline(always)]
pub(crate) fn split_tile(digests: &[Digest]) -> (&[Digest], &[Digest]) {
    digests.split_at(digests.len().min(TILE))
}
