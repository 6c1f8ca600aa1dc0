//! The tile: up to 64 keys that are hashed, fetched and tested together.

mod answers;
mod hashed;

pub use answers::Answers;
pub(crate) use answers::{low_bits, ones};
pub(crate) use hashed::{HashedTiles, tiles};

use crate::{Digest, Error, Result};

/// The number of digests in a full tile.
pub const TILE: usize = 64;

/// Refuses more digests than have an answer.
pub(crate) fn check_tile(tile: &[Digest]) -> Result<()> {
    if tile.len() > TILE {
        let needs = "at most 64 digests, whose answers fit into a word";
        return Err(Error::parameter("tile", tile.len(), needs));
    }
    Ok(())
}
