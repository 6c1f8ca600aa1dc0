//! The positions of a key, one at a time, for a family with checked parameters.

use std::iter::FusedIterator;

#[cfg(feature = "literature")]
use md5::{Digest, Md5};
#[cfg(feature = "literature")]
use sha1::Sha1;

use super::Family;
use super::murmur::{murmur2, murmur3_x64_128, murmur3_x86_32};
use crate::Result;

/// A family with its number of hash functions k and number of cells m.
///
/// Parameters are checked once, here, so computing positions cannot fail. Two filters with equal
/// schemes set the same cells for the same key.
///
/// ```
/// use umbel::literature::{Family, Scheme};
///
/// let scheme = Scheme::new(Family::Sha1Slices, 5, 1 << 32)?;
/// let words: Vec<u64> = scheme.positions(b"abc").collect();
/// assert_eq!(words, [0xa999_3e36, 0x4706_816a, 0xba3e_2571, 0x7850_c26c, 0x9cd0_d89d]);
///
/// assert!(Scheme::new(Family::Sha1Slices, 6, 1 << 32).is_err());
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scheme {
    family: Family,
    k: u32,
    m: u64,
}

impl Scheme {
    /// Creates a scheme with k and m within the limits that [`Family::validate`] states.
    ///
    /// # Errors
    ///
    /// As [`Family::validate`].
    pub fn new(family: Family, k: u32, m: u64) -> Result<Scheme> {
        family.validate(k, m)?;
        Ok(Scheme { family, k, m })
    }

    /// Returns the family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the number of hash functions.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// Returns the number of cells.
    pub fn m(&self) -> u64 {
        self.m
    }

    /// Returns the k positions of a key, each below m, in the order of the hash functions; they may
    /// coincide.
    ///
    /// Nothing is allocated, and positions are hashed only as the iterator reaches them, except
    /// that a family with one digest per key computes it immediately.
    pub fn positions<'key>(&self, key: &'key [u8]) -> Positions<'key> {
        let source = match self.family {
            Family::Murmur2 => Source::Seeded { hash: murmur2, key },
            Family::Murmur3 => Source::Seeded { hash: murmur3_x86_32, key },
            Family::Murmur3Double => {
                let (a, b) = murmur3_x64_128(key, 0);
                let stride = if b.is_multiple_of(self.m) { 1 } else { b };
                Source::Double { next: a, stride }
            }
            Family::Murmur3Enhanced => {
                let (a, b) = murmur3_x64_128(key, 0);
                Source::Enhanced { next: a, stride: b }
            }
            #[cfg(feature = "literature")]
            Family::Md5Indexed => Source::Indexed(Md5::new_with_prefix(key)),
            #[cfg(feature = "literature")]
            Family::Md5Slices => Source::Slices(words(&Md5::digest(key))),
            #[cfg(feature = "literature")]
            Family::Sha1Slices => Source::Slices(words(&Sha1::digest(key))),
            #[cfg(not(feature = "literature"))]
            Family::Md5Indexed | Family::Md5Slices | Family::Sha1Slices => {
                unreachable!("`Family::validate` refuses a family that is not compiled in")
            }
        };
        Positions { source, i: 0, k: self.k, m: self.m }
    }
}

/// An iterator over the positions of one key: see [`Scheme::positions`].
#[derive(Clone, Debug)]
pub struct Positions<'key> {
    source: Source<'key>,
    i: u32,
    k: u32,
    m: u64,
}

/// The state from which the remaining positions of a key are computed.
#[derive(Clone, Debug)]
enum Source<'key> {
    /// The key is hashed again for every position, with its index as the seed.
    Seeded { hash: fn(&[u8], u32) -> u32, key: &'key [u8] },
    /// a + i b by repeated addition.
    Double { next: u64, stride: u64 },
    /// a + i b + (i³ - i)/6 by repeated addition, the stride growing by 1, 2, 3, ...
    Enhanced { next: u64, stride: u64 },
    /// MD5 state that has read the key and awaits the index, so a long key is read once.
    #[cfg(feature = "literature")]
    Indexed(Md5),
    /// The words of a digest; MD5 leaves the last of the five unused.
    #[cfg(feature = "literature")]
    Slices([u32; 5]),
}

impl Source<'_> {
    /// Computes hash function i of the key, for i = 0, 1, 2, ... in this order.
    #[inline]
    fn hash(&mut self, i: u32) -> u64 {
        match self {
            Source::Seeded { hash, key } => u64::from(hash(key, i)),
            Source::Double { next, stride } => {
                let sum = *next;
                *next = sum.wrapping_add(*stride);
                sum
            }
            Source::Enhanced { next, stride } => {
                let sum = *next;
                *next = sum.wrapping_add(*stride);
                *stride = stride.wrapping_add(u64::from(i) + 1);
                sum
            }
            #[cfg(feature = "literature")]
            Source::Indexed(md5) => {
                let digest: [u8; 16] = md5.clone().chain_update(i.to_le_bytes()).finalize().into();
                u128::from_le_bytes(digest) as u64
            }
            #[cfg(feature = "literature")]
            Source::Slices(words) => u64::from(words[i as usize]),
        }
    }
}

/// Returns the 32-bit words of a digest, each read big-endian.
#[cfg(feature = "literature")]
fn words(digest: &[u8]) -> [u32; 5] {
    let mut words = [0; 5];
    for (word, &bytes) in words.iter_mut().zip(digest.as_chunks().0) {
        *word = u32::from_be_bytes(bytes);
    }
    words
}

impl Iterator for Positions<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.i == self.k {
            return None;
        }
        let hash = self.source.hash(self.i);
        self.i += 1;
        Some(hash % self.m)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.k - self.i) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Positions<'_> {}

impl FusedIterator for Positions<'_> {}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static HASHED: Cell<u32> = const { Cell::new(0) };
    }

    fn counting(key: &[u8], seed: u32) -> u32 {
        HASHED.set(HASHED.get() + 1);
        murmur3_x86_32(key, seed)
    }

    #[test]
    fn early_exit_saves_hashing() {
        let source = Source::Seeded { hash: counting, key: b"fennel" };
        let mut positions = Positions { source, i: 0, k: 20, m: 1000 };
        assert_eq!(HASHED.get(), 0, "nothing is hashed before the first position");

        let mut asked = 0;
        let all_set = positions.all(|_| {
            asked += 1;
            asked < 3
        });
        assert!(!all_set);
        assert_eq!(HASHED.get(), 3, "a zero bit at the third position ends the hashing");
        assert_eq!(positions.len(), 17);
    }
}
