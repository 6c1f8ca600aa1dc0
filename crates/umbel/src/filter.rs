//! What every approximate set can do, whatever its kind.
//!
//! [`Filter`] asks, [`Insert`] adds, [`Remove`] takes out, [`Algebra`](crate::Algebra) combines. All speak in digests; the methods that take keys are
//! built on them. The unit of the hot path is a *tile* of up to 64 digests, whose answers are the bits of one `u64`:
//! dispatch on kind and instruction set is paid once per tile, and several filters combine by AND and OR.

pub use crate::tile::{Answers, TILE};
pub(crate) use crate::tile::{HashedTiles, check_tile, low_bits, ones, tiles};
use crate::{Batch, Digest, Hasher, Key, Kind, Result, Stats};

/// An approximate set that can be asked.
///
/// "No" is certain, "yes" is probable.
pub trait Filter {
    /// What kind of filter this is.
    fn kind(&self) -> Kind;

    /// The function that turns keys into the digests this filter understands.
    fn hasher(&self) -> &Hasher;

    /// Whether the key with this digest may be a member.
    fn contains_digest(&self, digest: Digest) -> bool;

    /// Bit `i` of the answer tells whether the key of `tile[i]` may be a member; only the first 64 are looked at.
    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        let answer = |(i, digest): (usize, &Digest)| u64::from(self.contains_digest(*digest)) << i;
        tile.iter().take(TILE).enumerate().map(answer).fold(0, |all, one| all | one)
    }

    /// How full the filter is and what that means. Reads the whole filter.
    fn stats(&self) -> Stats;

    /// Whether `key` may be a member.
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool
    where
        Self: Sized,
    {
        self.contains_digest(key.digest(self.hasher()))
    }

    /// Asks for many keys; the fast way.
    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers
    where
        Self: Sized,
    {
        let mut answers = Answers::with_capacity(keys.len());
        let mut tiles = HashedTiles::default();
        while let Some(tile) = tiles.next(keys, self.hasher()) {
            answers.push_tile(self.contains_tile(tile), tile.len());
        }
        answers
    }
}

/// An approximate set that grows by insertion.
pub trait Insert: Filter {
    /// Inserts the key with this digest; `true` when it was certainly not there before.
    fn insert_digest(&mut self, digest: Digest) -> Result<bool>;

    /// Inserts digests in order. If one is refused, those before it are in, and those after it are not.
    fn insert_tile(&mut self, tile: &[Digest]) -> Result<()> {
        tile.iter().try_for_each(|digest| self.insert_digest(*digest).map(drop))
    }

    /// Inserts at most 64 digests in order; bit `i` of the answer is set when `tile[i]` was certainly not there before.
    /// Knowing that costs a little time, so it is a method of its own. More than 64 are refused.
    fn insert_tile_new(&mut self, tile: &[Digest]) -> Result<u64> {
        check_tile(tile)?;
        tile.iter()
            .enumerate()
            .try_fold(0, |new, (i, digest)| Ok(new | u64::from(self.insert_digest(*digest)?) << i))
    }

    /// Inserts `key`; `true` when it was certainly not there before.
    fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool>
    where
        Self: Sized,
    {
        self.insert_digest(key.digest(self.hasher()))
    }

    /// Inserts many keys, the fast way. If one is refused, those before it are in, and those after it are not.
    fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<()>
    where
        Self: Sized,
    {
        let mut tiles = HashedTiles::default();
        while let Some(tile) = tiles.next(keys, self.hasher()) {
            self.insert_tile(tile)?;
        }
        Ok(())
    }
}

/// An approximate set from which keys can be removed.
///
/// Only what was inserted may be removed. A kind that can tell refuses the rest; but a key that was never inserted and
/// is taken for one that was, as happens with the filter's rate, cannot be told apart, and its removal may make the
/// filter forget another key. Who cannot be sure uses [`Remove::remove_checked`].
pub trait Remove: Insert {
    /// Removes the key with this digest, once if it was inserted more often. Unless the answer is
    /// [`Removed::Removed`], nothing has changed.
    fn remove_digest(&mut self, digest: Digest) -> Result<Removed>;

    /// Removes `key`.
    fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<Removed>
    where
        Self: Sized,
    {
        self.remove_digest(key.digest(self.hasher()))
    }

    /// Removes `key` if it is certain that it was inserted: the filter is asked first, and `was_inserted`, which knows
    /// exactly, only if the filter says "probably yes".
    fn remove_checked<K: Key + ?Sized>(
        &mut self,
        key: &K,
        was_inserted: impl FnOnce(&K) -> bool,
    ) -> Result<Removed>
    where
        Self: Sized,
    {
        let digest = key.digest(self.hasher());
        if self.contains_digest(digest) && was_inserted(key) {
            return self.remove_digest(digest);
        }
        Ok(Removed::NotPresent)
    }
}

/// What has become of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Removed {
    /// The key is out.
    Removed,
    /// It was certainly not there.
    NotPresent,
    /// It is there, but cannot be removed without touching other keys.
    NotDeletable,
}
