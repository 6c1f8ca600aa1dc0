//! The replies to `SCANDUMP` of RedisBloom: a header, and pieces of the arrays behind it.

use super::bits::{Bits, Order};
use crate::file::FormatError;
use crate::memory::{Mover, Words};
use crate::{Error, Result};
use std::io::{self, Read};
use std::path::Path;

/// The most bytes in a chunk behind the header.
pub(super) const CHUNK_BYTES: usize = 16 << 20;

/// A value of RedisBloom that `SCANDUMP` copies to another server, where `LOADCHUNK` loads it.
///
/// The first chunk is a header with all settings and counts. The others are pieces of arrays of
/// bytes. An iterator numbers the places between them: 0 is the place before the header, 1 the one
/// behind it, and `1 + n` the one behind `n` bytes of the arrays.
///
/// ```
/// use umbel::foreign::{Dump, RedisCuckoo};
/// # let header: &[u8] = &[
/// #     1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
/// #     1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 20, 0, 1, 0,
/// # ];
/// # let data: &[u8] = &[0, 0, 207, 0, 0, 0, 0, 0];
/// let filter = RedisCuckoo::load(header, data)?;
/// assert_eq!(RedisCuckoo::data_bytes(header)?, 8);
/// assert_eq!(filter.chunk(0), (1, header.to_vec()));
/// assert_eq!(filter.chunk(1), (9, data.to_vec()));
/// assert_eq!(filter.chunk(9), (0, vec![]));
/// # Ok::<(), umbel::Error>(())
/// ```
pub trait Dump {
    /// Checks a header, and returns the number of bytes of all arrays behind it.
    ///
    /// # Errors
    ///
    /// If the bytes are not a header of this type, or its numbers contradict each other. No memory
    /// is taken that the length of the header does not justify.
    fn data_bytes(header: &[u8]) -> Result<u64>
    where
        Self: Sized;

    /// Loads a value from its header and the bytes behind it. Takes the memory of each array before
    /// its bytes are read: check first that [`data_bytes`](Dump::data_bytes) are there.
    ///
    /// # Errors
    ///
    /// As [`data_bytes`](Dump::data_bytes), or if bytes are missing, or there is not enough memory.
    fn load(header: &[u8], data: impl Read) -> Result<Self>
    where
        Self: Sized;

    /// Returns the header, which is the first chunk.
    fn header(&self) -> Vec<u8>;

    /// Returns the chunk at an iterator, and the iterator behind it; 0 and nothing at the end.
    fn chunk(&self, iterator: u64) -> (u64, Vec<u8>);

    /// Returns the memory of the arrays.
    fn sections(&self) -> Vec<&Words>;

    /// Returns a copy.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    fn try_clone(&self) -> Result<Self>
    where
        Self: Sized;

    /// Offers the memory of the value to an allocator that moves memory.
    fn relocate(&mut self, mover: &mut dyn Mover);
}

/// Returns the chunk at an iterator, and the iterator behind it. A chunk does not go beyond the end
/// of an array.
pub(super) fn chunk<'a>(
    header: impl FnOnce() -> Vec<u8>,
    arrays: impl Iterator<Item = &'a Bits>,
    iterator: u64,
) -> (u64, Vec<u8>) {
    let Some(mut offset) = iterator.checked_sub(1) else { return (1, header()) };
    for array in arrays {
        let len = array.len() as u64;
        if offset < len {
            let len = (len - offset).min(CHUNK_BYTES as u64) as usize;
            let chunk = match array.bytes() {
                Some(bytes) => bytes[offset as usize..][..len].to_vec(),
                None => vec![0; len],
            };
            return (iterator + len as u64, chunk);
        }
        offset -= len;
    }
    (0, Vec::new())
}

/// Reads an array.
///
/// # Errors
///
/// If the bytes end before it does, or there is not enough memory.
pub(super) fn read_array(from: &mut impl Read, len: u64) -> Result<Bits> {
    let bytes = usize::try_from(len).map_err(|_| Error::OutOfMemory { bytes: len })?;
    let mut array = Bits::zero(bytes, Order::Little);
    from.read_exact(array.bytes_mut()?).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => FormatError::invalid("chunks are missing at its end").into(),
        _ => Error::io(Path::new(""), "read", error),
    })?;
    Ok(array)
}
