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
use std::io::{self, Read, Seek, SeekFrom};
use xxhash_rust::xxh3::Xxh3;

/// The number of bytes that are read before their checksum is known to be right.
const MAX_UNVERIFIED_BYTES: u64 = 1 << 20;
const PIECE_BYTES: usize = 1 << 16;
const SUM_BYTES: usize = size_of::<u64>();

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

/// Reads `len` bytes, the last eight of which must be the [`sum_at`] this `place` of those before.
/// Returns `None` if they are not.
///
/// More than 1 MiB is read twice: first in small pieces, to verify the checksum. So memory is only
/// allocated for what somebody has written, and a sparse file, whose length costs nothing, takes
/// none.
///
/// ```
/// use std::io::Cursor;
/// use umbel::file::fields::{read_with_sum, sum};
/// let mut bytes = b"fruit".to_vec();
/// bytes.extend(sum(b"fruit").to_le_bytes());
/// assert_eq!(read_with_sum(&mut Cursor::new(&bytes), 0, 13)?.as_deref(), Some(&bytes[..]));
/// bytes[0] = b'F';
/// assert_eq!(read_with_sum(&mut Cursor::new(&bytes), 0, 13)?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// If the bytes end too early or cannot be read, or there is not enough memory.
pub fn read_with_sum(from: &mut (impl Read + Seek), place: u64, len: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(before) = len.checked_sub(SUM_BYTES as u64) else { return Ok(None) };
    if before > MAX_UNVERIFIED_BYTES {
        let start = from.stream_position()?;
        let (found, mut end) = (read_sum(from, place, before)?, [0; SUM_BYTES]);
        from.read_exact(&mut end)?;
        if found != u64::from_le_bytes(end) {
            return Ok(None);
        }
        from.seek(SeekFrom::Start(start))?;
    }
    let bytes = read_all(from, len)?;
    // Checked again, since a file can change between two reads.
    let whole =
        bytes.split_last_chunk().is_some_and(|(before, end)| sum_at(place, before).to_le_bytes() == *end);
    Ok(whole.then_some(bytes))
}

/// Reads `len` bytes whose [`sum_at`] this `place` must be `sum`, as [`read_with_sum`] does.
///
/// # Errors
///
/// As [`read_with_sum`].
pub fn read_summed(
    from: &mut (impl Read + Seek),
    place: u64,
    len: u64,
    sum: u64,
) -> io::Result<Option<Vec<u8>>> {
    if len > MAX_UNVERIFIED_BYTES {
        let start = from.stream_position()?;
        if read_sum(from, place, len)? != sum {
            return Ok(None);
        }
        from.seek(SeekFrom::Start(start))?;
    }
    let bytes = read_all(from, len)?;
    Ok((sum_at(place, &bytes) == sum).then_some(bytes))
}

/// Reads `len` bytes in small pieces and returns their [`sum_at`] this `place`.
fn read_sum(from: &mut impl Read, place: u64, len: u64) -> io::Result<u64> {
    let (mut state, mut left, mut piece) = (Xxh3::with_seed(place), len, vec![0; PIECE_BYTES]);
    while left > 0 {
        let piece = &mut piece[..usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES)];
        from.read_exact(piece)?;
        state.update(piece);
        left -= piece.len() as u64;
    }
    Ok(state.digest())
}

fn read_all(from: &mut impl Read, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let count = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
    bytes.try_reserve_exact(count).map_err(|_| io::ErrorKind::OutOfMemory)?;
    from.take(len).read_to_end(&mut bytes)?;
    if bytes.len() < count { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

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

    /// A source that counts the bytes read from it.
    struct Counted(Cursor<Vec<u8>>, u64);

    impl Read for Counted {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(to)?;
            self.1 += read as u64;
            Ok(read)
        }
    }

    impl Seek for Counted {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn summed_bytes_of_any_length_are_read_and_damaged_ones_are_not() {
        for len in [0, 1, 1000, 1 << 16, 1 << 20, (1 << 20) + 1, (1 << 20) + (1 << 16) + 3] {
            let content: Vec<u8> = (0..len as u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
            let place = len as u64;
            let end = sum_at(place, &content);
            let mut whole = [b"before", &content[..], &end.to_le_bytes(), b"after"].concat();
            let read = |bytes: &[u8]| {
                let mut source = Counted(Cursor::new(bytes.to_vec()), 0);
                source.0.set_position(6);
                let with_sum = read_with_sum(&mut source, place, len as u64 + 8).unwrap();
                let (position, bytes) = (source.0.position(), source.1);
                source.0.set_position(6);
                let summed = read_summed(&mut source, place, len as u64, end).unwrap();
                assert_eq!(with_sum.as_ref().map(|bytes| &bytes[..len]), summed.as_deref());
                (summed, position, bytes)
            };
            let (good, position, _) = read(&whole);
            assert_eq!((good.as_deref(), position), (Some(&content[..]), len as u64 + 14));
            if len > 0 {
                whole[6 + len / 2] ^= 1;
                let (bad, _, bytes) = read(&whole);
                assert_eq!((bad, bytes), (None, len as u64 + 8), "nothing is read twice");
            }
        }
        assert_eq!(read_with_sum(&mut Cursor::new([0; 9]), 0, 7).unwrap(), None);
        let short = read_with_sum(&mut Cursor::new([0; 9]), 0, 1 << 40).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof, "no memory is asked for");
        let absurd = read_summed(&mut io::empty(), 0, u64::MAX, 0).unwrap_err();
        assert_eq!(absurd.kind(), io::ErrorKind::UnexpectedEof);
    }
}
