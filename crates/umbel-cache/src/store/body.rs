//! The body of a stored response: bytes in memory, or a file that stays readable after the response
//! is evicted.

use crate::error::{Error, Result};
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// The body of a stored response.
#[derive(Debug)]
pub enum Body {
    /// The whole body in memory.
    Memory(Bytes),
    /// A body on disk.
    File {
        /// The open file.
        file: File,
        /// The length of the body in bytes.
        len: u64,
    },
}

/// The number of bytes that are read at a time to verify a checksum.
const VERIFY_CHUNK_BYTES: usize = 64 << 10;

impl Body {
    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Body::Memory(bytes) => bytes.len() as u64,
            Body::File { len, .. } => *len,
        }
    }

    /// Returns whether the body is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the whole body.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the file cannot be read.
    pub fn bytes(&self) -> Result<Bytes> {
        match self {
            Body::Memory(bytes) => Ok(bytes.clone()),
            Body::File { len, .. } => self.chunk(0, usize::try_from(*len).unwrap_or(usize::MAX)),
        }
    }

    /// Reads up to `max_len` bytes at an offset.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the file cannot be read.
    pub fn chunk(&self, offset: u64, max_len: usize) -> Result<Bytes> {
        match self {
            Body::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes.slice(start..start.saturating_add(max_len).min(bytes.len())))
            }
            Body::File { file, len } => {
                let count = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX).min(max_len);
                let mut bytes = vec![0; count];
                file.read_exact_at(&mut bytes, offset).map_err(Error::store("read"))?;
                Ok(bytes.into())
            }
        }
    }
}

/// Reads a whole file and verifies its length and checksum.
pub(super) fn read_verified(file: &File, len: u64, checksum: u64) -> io::Result<Bytes> {
    verify_len(file, len)?;
    let mut bytes = vec![0; usize::try_from(len).map_err(|_| damaged("it is too long"))?];
    file.read_exact_at(&mut bytes, 0)?;
    if xxh3_64(&bytes) == checksum { Ok(bytes.into()) } else { Err(damaged("its sum is another one")) }
}

/// Verifies the length of a file.
pub(super) fn verify_len(file: &File, len: u64) -> io::Result<()> {
    if file.metadata()?.len() == len { Ok(()) } else { Err(damaged("its length is another one")) }
}

/// Verifies the length and checksum of a file.
pub(super) fn verify(file: &File, len: u64, checksum: u64) -> io::Result<()> {
    let (mut hash, mut offset, mut chunk) = (Xxh3Default::new(), 0, vec![0; VERIFY_CHUNK_BYTES]);
    verify_len(file, len)?;
    while offset < len {
        let count = (len - offset).min(VERIFY_CHUNK_BYTES as u64) as usize;
        file.read_exact_at(&mut chunk[..count], offset)?;
        hash.update(&chunk[..count]);
        offset += count as u64;
    }
    if hash.digest() == checksum { Ok(()) } else { Err(damaged("its sum is another one")) }
}

/// Returns the error for a file whose contents have changed since it was written.
pub(super) fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
