//! The body of a document: in memory, or a file that stays readable even when the document is gone.

use crate::error::{Error, Result};
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// The body of a document.
#[derive(Debug)]
pub enum Body {
    /// In memory.
    Memory(Bytes),
    /// A file, and how long it is.
    File {
        /// The file.
        file: File,
        /// Its length.
        len: u64,
    },
}

/// How much is read at a time.
const PIECE: usize = 64 << 10;

impl Body {
    /// How long it is.
    pub fn len(&self) -> u64 {
        match self {
            Body::Memory(bytes) => bytes.len() as u64,
            Body::File { len, .. } => *len,
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all of it.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the file cannot be read.
    pub fn bytes(&self) -> Result<Bytes> {
        match self {
            Body::Memory(bytes) => Ok(bytes.clone()),
            Body::File { len, .. } => self.piece(0, usize::try_from(*len).unwrap_or(usize::MAX)),
        }
    }

    /// Returns `most` bytes from an offset on, or as many as there are.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the file cannot be read.
    pub fn piece(&self, offset: u64, most: usize) -> Result<Bytes> {
        match self {
            Body::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes.slice(start..start.saturating_add(most).min(bytes.len())))
            }
            Body::File { file, len } => {
                let count = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX).min(most);
                let mut bytes = vec![0; count];
                file.read_exact_at(&mut bytes, offset).map_err(Error::store("read"))?;
                Ok(bytes.into())
            }
        }
    }
}

/// All of a file, held against its length and sum.
pub(super) fn read_whole(file: &File, len: u64, sum: u64) -> io::Result<Bytes> {
    check_len(file, len)?;
    let mut bytes = vec![0; usize::try_from(len).map_err(|_| damaged("it is too long"))?];
    file.read_exact_at(&mut bytes, 0)?;
    if xxh3_64(&bytes) == sum { Ok(bytes.into()) } else { Err(damaged("its sum is another one")) }
}

/// Holds a file against its length.
pub(super) fn check_len(file: &File, len: u64) -> io::Result<()> {
    if file.metadata()?.len() == len { Ok(()) } else { Err(damaged("its length is another one")) }
}

/// Holds a file against its length and sum.
pub(super) fn verify(file: &File, len: u64, sum: u64) -> io::Result<()> {
    let (mut hash, mut at, mut piece) = (Xxh3Default::new(), 0, vec![0; PIECE]);
    check_len(file, len)?;
    while at < len {
        let count = (len - at).min(PIECE as u64) as usize;
        file.read_exact_at(&mut piece[..count], at)?;
        hash.update(&piece[..count]);
        at += count as u64;
    }
    if hash.digest() == sum { Ok(()) } else { Err(damaged("its sum is another one")) }
}

/// Returns the error of a file that is not what was written.
pub(super) fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
