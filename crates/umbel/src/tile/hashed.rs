//! A batch of keys, cut into tiles and hashed.

use super::TILE;
use crate::{Batch, Digest, Hasher};

/// The ranges of consecutive tiles in `0..len`.
#[inline(always)]
pub(crate) fn tiles(len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..len).step_by(TILE).map(move |start| start..len.min(start + TILE))
}

/// The digests of a batch, tile by tile. The hash is handed in with each, so that who has it may be changed in between.
pub(crate) struct HashedTiles {
    tile: [Digest; TILE],
    start: usize,
}

impl Default for HashedTiles {
    #[inline(always)]
    fn default() -> HashedTiles {
        HashedTiles { tile: [Digest::default(); TILE], start: 0 }
    }
}

impl HashedTiles {
    /// The next tile of these keys; `None` when there is none any more.
    #[inline(always)]
    pub(crate) fn next<B: Batch + ?Sized>(&mut self, keys: &B, hasher: &Hasher) -> Option<&[Digest]> {
        let range = self.start..keys.len().min(self.start + TILE);
        if range.is_empty() {
            return None;
        }
        self.start = range.end;
        let tile = &mut self.tile[..range.len()];
        keys.digest_tile(range, hasher, tile);
        Some(tile)
    }
}
