//! Bit masks that fit into a packet header: of fixed size, without allocation.
//!
//! A [`Mask`] of `W` words has 32 `W` bits. It is either the filter that a packet carries or the
//! few bits of that filter that belong to one address. Those are derived from the address and a
//! seed, so every router computes its own once, without any configuration.
//!
//! ```
//! use umbel_net::mask::Mask;
//! let mask = Mask::<8>::from_address(&[192, 0, 2, 1], 7, 5);
//! assert_eq!((Mask::<8>::BITS, mask.count_ones()), (256, 5));
//! let mut filter = Mask::EMPTY;
//! assert!(!filter.covers(&mask));
//! filter |= mask;
//! assert!(filter.covers(&mask));
//! ```

use std::ops::{BitAndAssign, BitOrAssign, Not};
use umbel::hash::reduce;
use umbel::{Digest, Hasher, Key};

/// A mask of 32 `W` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask<const W: usize>([u32; W]);

impl<const W: usize> Mask<W> {
    /// The number of bits.
    pub const BITS: u32 = 32 * W as u32;

    /// The mask without any bit set.
    pub const EMPTY: Mask<W> = Mask([0; W]);

    /// The mask with every bit set.
    pub const FULL: Mask<W> = Mask([u32::MAX; W]);

    /// Returns the mask of `weight` different bits for an address (of a network card, or an IP
    /// address). All sets of `weight` bits are equally likely.
    pub fn from_address(address: &[u8], seed: u64, weight: u32) -> Mask<W> {
        Mask::from_digest(address.digest(&Hasher::fast(seed)), weight)
    }

    /// Returns the mask of `weight` different bits for a digest.
    pub fn from_digest(digest: Digest, weight: u32) -> Mask<W> {
        let mut mask = Mask::EMPTY;
        // Floyd's algorithm draws a set without ever drawing the same bit twice.
        for last in Self::BITS - weight.min(Self::BITS)..Self::BITS {
            let drawn = reduce(digest.salted(u64::from(last)).get(), u64::from(last) + 1) as u32;
            mask.set(if mask.has(drawn) { last } else { drawn });
        }
        mask
    }

    /// Returns the mask with the bits at these positions. Positions beyond the end are ignored.
    pub fn from_positions(positions: impl IntoIterator<Item = u32>) -> Mask<W> {
        let mut mask = Mask::EMPTY;
        positions.into_iter().for_each(|position| mask.set(position));
        mask
    }

    /// Returns the mask with these words, as returned by [`Mask::words`].
    pub fn from_words(words: [u32; W]) -> Mask<W> {
        Mask(words)
    }

    /// Returns the words. The first bit is the lowest bit of the first word.
    pub fn words(&self) -> &[u32; W] {
        &self.0
    }

    /// Sets a bit. Positions beyond the end are ignored.
    pub fn set(&mut self, position: u32) {
        if let Some(word) = self.0.get_mut(position as usize / 32) {
            *word |= 1 << (position % 32);
        }
    }

    /// Returns whether a bit is set.
    pub fn has(&self, position: u32) -> bool {
        self.0.get(position as usize / 32).is_some_and(|word| word >> (position % 32) & 1 == 1)
    }

    /// Returns whether all bits of `other` are set in this mask.
    #[inline]
    pub fn covers(&self, other: &Mask<W>) -> bool {
        self.0.iter().zip(&other.0).all(|(own, other)| own & other == *other)
    }

    /// Returns whether none of the bits of `other` is set in this mask.
    #[inline]
    pub fn misses(&self, other: &Mask<W>) -> bool {
        self.0.iter().zip(&other.0).all(|(own, other)| own & other == 0)
    }

    /// Returns the number of set bits.
    pub fn count_ones(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

impl<const W: usize> BitOrAssign for Mask<W> {
    #[inline]
    fn bitor_assign(&mut self, other: Mask<W>) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own |= other);
    }
}

impl<const W: usize> BitAndAssign for Mask<W> {
    #[inline]
    fn bitand_assign(&mut self, other: Mask<W>) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own &= other);
    }
}

impl<const W: usize> Not for Mask<W> {
    type Output = Mask<W>;

    #[inline]
    fn not(self) -> Mask<W> {
        Mask(self.0.map(|word| !word))
    }
}
