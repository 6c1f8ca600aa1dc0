//! Many keys at once: slices, vectors and arrays of keys, and keys that were hashed earlier.

use super::Key;
use crate::arch::{Simd, prefetch};
use crate::hash::Ends;
use crate::memory::LINE_BYTES;
use crate::{Digest, Hasher, TILE};
use std::ops::Range;

/// Many keys at once: a slice, a vector or an array of keys, or an [`Arena`](super::Arena).
pub trait Batch {
    /// Returns the number of keys.
    fn len(&self) -> usize;

    /// Returns whether there are no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hashes the keys of `range`, which must be inside `0..len()`, into the first elements of
    /// `digests`.
    fn digest_tile(&self, range: Range<usize>, hasher: &Hasher, digests: &mut [Digest]);

    /// Like `digest_tile`, but inside a kernel and with a buffer for the ends of strings.
    #[doc(hidden)]
    #[inline(always)]
    fn digest_tile_with<S: Simd>(
        &self,
        _: S,
        range: Range<usize>,
        hasher: &Hasher,
        digests: &mut [Digest],
        _: &mut Ends,
    ) {
        self.digest_tile(range, hasher, digests);
    }

    /// Gathers the first bytes of the keys of `range`, at most 64, for hash functions that process
    /// the keys of a tile in step.
    #[cfg(feature = "foreign")]
    #[doc(hidden)]
    #[inline(always)]
    fn gather(&self, range: Range<usize>, starts: &mut Starts) {
        for (slot, index) in range.enumerate() {
            self.with_bytes(index, |key| {
                let mut start = [0; START_BYTES];
                let len = key.len().min(START_BYTES);
                start[..len].copy_from_slice(&key[..len]);
                starts.put(slot, &start, key.len());
            });
        }
    }

    /// Returns the digests of a full tile from key `start` on if the keys were hashed earlier, so
    /// that they need not be copied.
    #[doc(hidden)]
    #[inline(always)]
    fn hashed_tile(&self, _start: usize) -> Option<&[Digest; TILE]> {
        None
    }

    /// Returns the digests of all keys if they were hashed earlier.
    #[doc(hidden)]
    #[inline(always)]
    fn hashed(&self) -> Option<&[Digest]> {
        None
    }

    /// Calls `f` with the bytes of key `index`, which must be below `len()`.
    fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R;

    /// Passes the batch to `visitor` as the type that loops are compiled for. Vectors and arrays
    /// are passed as slices: the loops are large, and would otherwise be compiled again for every
    /// length of an array.
    #[doc(hidden)]
    #[inline(always)]
    fn visit<V: Visitor>(&self, visitor: V) -> V::Output {
        visitor.visit(self)
    }
}

/// The number of bytes of a key that [`Starts`] holds.
#[cfg(feature = "foreign")]
pub(crate) const START_BYTES: usize = 32;

/// The first 32 bytes of each key of a tile, as little-endian words: word `w` of all keys is in
/// `words[w]`, so that a vector register takes the same word of several keys. Bytes after the end of
/// a key are arbitrary.
#[cfg(feature = "foreign")]
#[doc(hidden)]
pub struct Starts {
    pub(crate) words: [[u64; TILE]; START_BYTES / 8],
    pub(crate) len: [u64; TILE],
}

#[cfg(feature = "foreign")]
impl Starts {
    pub(crate) const EMPTY: Starts = Starts { words: [[0; TILE]; START_BYTES / 8], len: [0; TILE] };

    /// Stores the start of a key.
    #[inline(always)]
    pub(crate) fn put(&mut self, slot: usize, start: &[u8; START_BYTES], len: usize) {
        let (words, _) = start.as_chunks();
        for (to, word) in self.words.iter_mut().zip(words) {
            to[slot] = u64::from_le_bytes(*word);
        }
        self.len[slot] = len as u64;
    }
}

/// An operation on a batch of any type.
#[doc(hidden)]
pub trait Visitor {
    type Output;
    fn visit<B: Batch + ?Sized>(self, keys: &B) -> Self::Output;
}

impl<K: Key> Batch for [K] {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn digest_tile(&self, range: Range<usize>, hasher: &Hasher, digests: &mut [Digest]) {
        let keys_per_line = LINE_BYTES / size_of::<K>().clamp(1, LINE_BYTES);
        for at in range.clone().step_by(keys_per_line) {
            prefetch(self, at.wrapping_add(KEYS_AHEAD));
        }
        K::digest_tile(&self[range], hasher, digests);
    }

    fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        self[index].with_bytes(f)
    }
}

macro_rules! slice_batches {
    ($([$($generics:tt)*] $keys:ty),*) => {$(
        impl<K: Key, $($generics)*> Batch for $keys {
            #[inline(always)]
            fn len(&self) -> usize {
                self[..].len()
            }

            #[inline(always)]
            fn digest_tile(&self, range: Range<usize>, hasher: &Hasher, digests: &mut [Digest]) {
                self[..].digest_tile(range, hasher, digests);
            }

            fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R {
                self[index].with_bytes(f)
            }

            #[inline(always)]
            fn visit<V: Visitor>(&self, visitor: V) -> V::Output {
                visitor.visit(&self[..])
            }
        }
    )*};
}
slice_batches!([] Vec<K>, [const N: usize] [K; N]);

/// The number of keys ahead of the current tile that are prefetched in a slice. Keys are read in
/// order, but in bursts of one tile, and the processor's own prefetching falls behind between
/// bursts.
const KEYS_AHEAD: usize = 4 * TILE;

/// A batch of keys that were hashed earlier, with the hasher of the filter they are used with, for
/// callers that keep only the digests of keys. Only structures that take digests accept it.
///
/// ```
/// use umbel::key::Hashed;
/// use umbel::{Bloom, Blocked, Hasher, Key};
/// let mut filter = Bloom::<Blocked>::with_capacity(100_000, 0.01)?;
/// let digests: Vec<_> = ["apple", "pear"].iter().map(|key| key.digest(filter.hasher())).collect();
/// filter.insert_batch(&Hashed(&digests));
/// assert!(filter.contains("pear"));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Hashed<'a>(pub &'a [Digest]);

impl Batch for Hashed<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn digest_tile(&self, range: Range<usize>, _: &Hasher, digests: &mut [Digest]) {
        // Needed only for the last tile, see `hashed_tile`. Not `copy_from_slice`: a call in the
        // loop over tiles would prevent the compiler from keeping constants in registers.
        for (digest, index) in digests.iter_mut().zip(range) {
            *digest = self.0.get(index).copied().unwrap_or_default();
        }
    }

    #[inline(always)]
    fn hashed_tile(&self, start: usize) -> Option<&[Digest; TILE]> {
        self.0.get(start..)?.first_chunk()
    }

    #[inline(always)]
    fn hashed(&self) -> Option<&[Digest]> {
        Some(self.0)
    }

    /// Calls `f` with the bytes of the digest, because the bytes of the key are not available.
    fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&self.0[index].get().to_le_bytes())
    }
}
