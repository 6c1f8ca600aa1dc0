//! The bit set of a foreign file, stored as its bytes stand in the file.
//!
//! Bytes and not words, because most formats have headers of odd lengths: so a mapped file can be
//! used where it lies. Formats of the Java world write 64-bit words in big-endian order, which
//! changes only in which byte of a word a bit is.

use crate::Result;
use crate::memory::{LINE_BYTES, Mover, Words};
#[cfg(feature = "mmap")]
use memmap2::Mmap;
#[cfg(feature = "mmap")]
use std::sync::Arc;

/// The order of the bytes in each 64-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// Returns the number by which the index of a byte is flipped.
    #[inline(always)]
    pub fn flip(self) -> usize {
        match self {
            Order::Little => 0,
            Order::Big => 7,
        }
    }
}

/// A bit set of a whole number of bytes; in big-endian order, of 64-bit words.
#[derive(Debug)]
pub(super) struct Bits {
    storage: Storage,
    len: usize,
    pub order: Order,
}

#[derive(Debug)]
enum Storage {
    /// All bits are zero, and take no memory until the first is set.
    Zero,
    /// The first bytes of these lines.
    Owned(Words),
    /// The bytes of a mapped file from this offset on.
    #[cfg(feature = "mmap")]
    Mapped(Arc<Mmap>, usize),
}

impl Bits {
    /// Makes a bit set of zeros that takes no memory yet.
    pub fn zero(len: usize, order: Order) -> Bits {
        Bits { storage: Storage::Zero, len, order }
    }

    /// Copies a bit set.
    pub fn copied(bytes: &[u8], order: Order) -> Result<Bits> {
        let mut bits = Bits::zero(bytes.len(), order);
        bits.bytes_mut()?.copy_from_slice(bytes);
        Ok(bits)
    }

    /// Uses a part of a mapped file, which must be inside it.
    #[cfg(feature = "mmap")]
    pub fn mapped(map: Arc<Mmap>, offset: usize, len: usize, order: Order) -> Bits {
        Bits { storage: Storage::Mapped(map, offset), len, order }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes as they stand in the file; `None` if all bits are zero and take no memory.
    #[inline(always)]
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.storage {
            Storage::Zero => None,
            Storage::Owned(words) => Some(&words.as_bytes()[..self.len]),
            #[cfg(feature = "mmap")]
            Storage::Mapped(map, offset) => Some(&map[*offset..*offset + self.len]),
        }
    }

    /// Returns the bytes for writing. Zeros get their memory, and a mapped file is copied first.
    pub fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        if !matches!(self.storage, Storage::Owned(_)) {
            let mut words = Words::zeroed(self.len.div_ceil(LINE_BYTES).max(1) as u64)?;
            if let Some(bytes) = self.bytes() {
                words.as_bytes_mut()[..self.len].copy_from_slice(bytes);
            }
            self.storage = Storage::Owned(words);
        }
        match &mut self.storage {
            Storage::Owned(words) => Ok(&mut words.as_bytes_mut()[..self.len]),
            _ => unreachable!("made owned above"),
        }
    }

    /// Returns the memory, if there is some of its own.
    pub fn words(&self) -> Option<&Words> {
        match &self.storage {
            Storage::Owned(words) => Some(words),
            _ => None,
        }
    }

    /// Returns a copy, if there is enough memory.
    pub fn try_clone(&self) -> Result<Bits> {
        let storage = match &self.storage {
            Storage::Zero => Storage::Zero,
            Storage::Owned(words) => Storage::Owned(words.try_clone()?),
            #[cfg(feature = "mmap")]
            Storage::Mapped(map, offset) => Storage::Mapped(Arc::clone(map), *offset),
        };
        Ok(Bits { storage, ..*self })
    }

    /// Offers the memory to an allocator that moves memory.
    pub fn relocate(&mut self, mover: &mut dyn Mover) {
        if let Storage::Owned(words) = &mut self.storage {
            words.relocate(mover);
        }
    }

    /// Counts the bits that are set.
    pub fn count_ones(&self) -> u64 {
        let (words, tail) = self.bytes().unwrap_or_default().as_chunks();
        let words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
        words + tail.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
    }

    /// Returns whether a bit is set.
    pub fn is_set(&self, bit: u64) -> bool {
        self.bytes().is_some_and(|bytes| is_set(bytes, self.order.flip(), bit))
    }

    /// Returns whether any bit from number `bits` on is set.
    pub fn any_beyond(&self, bits: u64) -> bool {
        let end = self.len as u64 * 8;
        (bits..end.min(bits.div_ceil(64) * 64)).any(|bit| self.is_set(bit))
    }
}

/// Returns whether a bit is set.
#[inline(always)]
pub(super) fn is_set(bytes: &[u8], flip: usize, bit: u64) -> bool {
    bytes[(bit / 8) as usize ^ flip] >> (bit % 8) & 1 == 1
}

/// Sets a bit and returns whether it was set before.
#[inline(always)]
pub(super) fn set(bytes: &mut [u8], flip: usize, bit: u64) -> bool {
    let byte = &mut bytes[(bit / 8) as usize ^ flip];
    let before = *byte >> (bit % 8) & 1 == 1;
    *byte |= 1 << (bit % 8);
    before
}
