//! Bounds-checked reading of binary fields, for files that applications store beside their filters.
//!
//! ```
//! use umbel::file::fields::{Fields, put_varint, sum};
//!
//! let mut bytes = 7u32.to_le_bytes().to_vec();
//! put_varint(&mut bytes, 300);
//! let end = sum(&bytes);
//! bytes.extend(end.to_le_bytes());
//!
//! let mut fields = Fields(&bytes);
//! assert_eq!((fields.u32(), fields.varint(), fields.u64(), fields.u32()), (Some(7), Some(300), Some(end), None));
//! ```

use crate::Hasher;

/// The bytes that are left to read.
#[derive(Clone, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// Takes `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// Takes a little-endian number of four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Takes a little-endian number of eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Takes `count` bytes; `None` if there are fewer.
    pub fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(first)
    }

    /// Takes `count` records of `size` bytes each; `None` if there are too few bytes.
    pub fn records(&mut self, count: u64, size: usize) -> Option<std::slice::ChunksExact<'a, u8>> {
        Some(self.bytes(count.checked_mul(size as u64)?)?.chunks_exact(size.max(1)))
    }

    /// Takes a number of variable length: seven bits in each byte, lowest first (LEB128).
    pub fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 127);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }
}

/// Appends a number in the format that [`Fields::varint`] reads.
pub fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Returns the XXH3-64 checksum of these bytes.
pub fn sum(bytes: &[u8]) -> u64 {
    sum_at(0, bytes)
}

/// Returns a checksum that also depends on the place of the bytes, so that the bytes of one place
/// are not accepted in another.
pub fn sum_at(place: u64, bytes: &[u8]) -> u64 {
    Hasher::fast(place).digest_bytes(bytes).get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_have_minimal_length_and_round_trip() {
        for (number, length) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            assert_eq!(bytes.len(), length);
            assert_eq!(Fields(&bytes).varint(), Some(number));
            assert_eq!(Fields(&bytes[..length - 1]).varint(), None);
        }
        // A number that does not fit into 64 bits, and one that does not end.
        assert_eq!(Fields(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]).varint(), None);
        assert_eq!(Fields(&[128; 20]).varint(), None);
    }

    #[test]
    fn reads_beyond_the_end_return_none() {
        assert!(Fields(&[0; 8]).records(u64::MAX, 2).is_none());
        assert!(Fields(&[0; 8]).records(5, 2).is_none());
        assert_eq!(Fields(&[0; 8]).records(4, 2).map(Iterator::count), Some(4));
    }
}
