//! The answers to tiles and batches: one bit per key.

use super::TILE;

/// Returns a mask of the answers of the first `len` keys of a tile.
#[inline(always)]
pub(crate) fn low_bits(len: usize) -> u64 {
    if len >= TILE { !0 } else { (1 << len) - 1 }
}

/// Returns the positions of the set bits.
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
/// use umbel::{Blocked, Bloom};
/// let mut filter = Bloom::<Blocked>::with_capacity(100_000, 0.01)?;
/// filter.insert_batch(&[1u64, 2, 3]);
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
    /// Makes an empty list of answers, with room for exactly this many keys.
    pub(crate) fn with_capacity(keys: usize) -> Answers {
        Answers { tiles: vec![0; keys.div_ceil(TILE)], len: 0 }
    }

    /// Appends the answers of a tile. All tiles but the last are full, which keeps key `i` at bit
    /// `i`.
    #[inline(always)]
    pub(crate) fn push_tile(&mut self, tile: u64, len: usize) {
        debug_assert!(self.len.is_multiple_of(TILE) && (1..=TILE).contains(&len));
        // Not `push`: its call for a full vector would be in the hot loop; see
        // `Hashed::digest_tile`.
        self.tiles[self.len / TILE] = tile;
        self.len += len;
    }

    /// Adds the members of another list of answers to the same keys.
    #[cfg(feature = "foreign")]
    pub(crate) fn unite(&mut self, other: &Answers) {
        for (ours, theirs) in self.tiles.iter_mut().zip(&other.tiles) {
            *ours |= theirs;
        }
    }

    /// Appends the answers to the next keys. All batches but the last must consist of full tiles.
    pub(crate) fn append(&mut self, next: &Answers) {
        debug_assert!(self.len.is_multiple_of(TILE));
        let at = self.len / TILE;
        self.tiles[at..at + next.tiles.len()].copy_from_slice(&next.tiles);
        self.len += next.len;
    }

    /// Returns the number of keys that were looked up.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no keys were looked up.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether key `index` may be a member; `None` beyond the batch.
    pub fn get(&self, index: usize) -> Option<bool> {
        (index < self.len).then(|| self.tiles[index / TILE] >> (index % TILE) & 1 == 1)
    }

    /// Returns the number of keys that may be members.
    pub fn count(&self) -> u64 {
        self.tiles.iter().map(|tile| u64::from(tile.count_ones())).sum()
    }

    /// Returns an iterator over the answers in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> {
        (0..self.len).map(|index| self.tiles[index / TILE] >> (index % TILE) & 1 == 1)
    }

    /// Returns the answers as bits: 64 keys per word, with the first key in the lowest bit. Unused
    /// bits are zero.
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
