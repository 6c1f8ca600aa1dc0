//! What every approximate set can do, whatever its kind.
//!
//! [`Filter`] asks, [`Insert`] adds, [`Remove`] takes out, [`Algebra`](crate::Algebra) combines. All speak in digests; the methods that take keys are
//! built on them. The unit of the hot path is a *tile* of up to 64 digests, whose answers are the bits of one `u64`:
//! dispatch on kind and instruction set is paid once per tile, and several filters combine by AND and OR.

use crate::{Batch, Digest, Error, Hasher, Key, Kind, Result, Stats};

/// How many digests make a full tile.
pub const TILE: usize = 64;

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

/// Refuses more digests than have an answer.
pub(crate) fn check_tile(tile: &[Digest]) -> Result<()> {
    if tile.len() > TILE {
        let needs = "at most 64 digests, whose answers fit into a word";
        return Err(Error::parameter("tile", tile.len(), needs));
    }
    Ok(())
}

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

/// The answers of the first `len` keys of a tile.
#[inline(always)]
pub(crate) fn low_bits(len: usize) -> u64 {
    if len >= TILE { !0 } else { (1 << len) - 1 }
}

/// The positions of the set bits.
#[inline(always)]
pub(crate) fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let i = bits.trailing_zeros() as usize;
        (bits != 0).then(|| {
            bits &= bits - 1;
            i
        })
    })
}

/// The answers to a batch: one bit per key, in the order of the keys.
///
/// ```
/// use umbel::{Blocked, Bloom, Filter, Insert};
/// let mut filter = Bloom::<Blocked>::with_capacity(100_000, 0.01)?;
/// filter.insert_batch(&[1u64, 2, 3])?;
/// let answers = filter.contains_batch(&[3u64, 4, 1]);
/// assert_eq!(answers.get(0), Some(true));
/// assert!(answers.iter().eq([true, false, true]));
/// assert_eq!(answers.count(), 2);
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    tiles: Vec<u64>,
    len: usize,
}

impl Answers {
    pub(crate) fn with_capacity(keys: usize) -> Answers {
        Answers { tiles: Vec::with_capacity(keys.div_ceil(TILE)), len: 0 }
    }

    /// Appends the answers of a tile. All tiles but the last are full, which keeps key `i` at bit `i`.
    #[inline(always)]
    pub(crate) fn push_tile(&mut self, tile: u64, len: usize) {
        debug_assert!(self.len.is_multiple_of(TILE) && (1..=TILE).contains(&len));
        self.tiles.push(tile);
        self.len += len;
    }

    /// How many keys were asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no key was asked for.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether key `index` may be a member; `None` beyond the batch.
    pub fn get(&self, index: usize) -> Option<bool> {
        (index < self.len).then(|| self.tiles[index / TILE] >> (index % TILE) & 1 == 1)
    }

    /// How many keys may be members.
    pub fn count(&self) -> u64 {
        self.tiles.iter().map(|tile| u64::from(tile.count_ones())).sum()
    }

    /// The answers in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> {
        (0..self.len).map(|index| self.tiles[index / TILE] >> (index % TILE) & 1 == 1)
    }

    /// The answers as bits, 64 keys to a word, the first key in the lowest bit; unused bits are zero.
    pub fn as_words(&self) -> &[u64] {
        &self.tiles
    }
}

impl FromIterator<bool> for Answers {
    fn from_iter<I: IntoIterator<Item = bool>>(answers: I) -> Answers {
        let mut all = Answers::default();
        for answer in answers {
            if all.len.is_multiple_of(TILE) {
                all.tiles.push(0);
            }
            if let Some(tile) = all.tiles.last_mut() {
                *tile |= u64::from(answer) << (all.len % TILE);
            }
            all.len += 1;
        }
        all
    }
}
