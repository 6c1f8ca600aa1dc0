//! Little pieces of formats, read with care: for files that applications keep beside their filters.
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

/// What is left to be read.
#[derive(Clone, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// So many bytes, of which the compiler knows the number.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// Four bytes, the lowest first.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, the lowest first.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// So many bytes; no more than there are.
    pub fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(first)
    }

    /// So many records of a size; no more than there are bytes for.
    pub fn records(&mut self, count: u64, size: usize) -> Option<std::slice::ChunksExact<'a, u8>> {
        Some(self.bytes(count.checked_mul(size as u64)?)?.chunks_exact(size.max(1)))
    }

    /// A number in as many bytes as it needs, seven bits in each, the lowest first (LEB128).
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

/// Writes what [`Fields::varint`] reads.
pub fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// XXH3-64, which stands at the end of what it vouches for.
pub fn sum(bytes: &[u8]) -> u64 {
    sum_at(0, bytes)
}

/// The same for bytes that stand in one place of many, so that one cannot stand for the other.
pub fn sum_at(place: u64, bytes: &[u8]) -> u64 {
    Hasher::fast(place).digest_bytes(bytes).get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_as_many_bytes_as_they_need_and_come_back() {
        for (number, length) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            assert_eq!(bytes.len(), length);
            assert_eq!(Fields(&bytes).varint(), Some(number));
            assert_eq!(Fields(&bytes[..length - 1]).varint(), None);
        }
        // One that does not fit into 64 bits, and one that does not end.
        assert_eq!(Fields(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]).varint(), None);
        assert_eq!(Fields(&[128; 20]).varint(), None);
    }

    #[test]
    fn nobody_gets_more_than_there_is() {
        assert!(Fields(&[0; 8]).records(u64::MAX, 2).is_none());
        assert!(Fields(&[0; 8]).records(5, 2).is_none());
        assert_eq!(Fields(&[0; 8]).records(4, 2).map(Iterator::count), Some(4));
    }
}
