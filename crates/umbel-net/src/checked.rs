//! Files that end with the checksum of everything before it. A file is read only after its
//! checksum is known to match, so that a sparse file, whose length costs nothing, takes no memory.

use crate::{Error, Result};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use umbel::file::FormatError;
use umbel::file::fields::read_with_sum;
use umbel::internals::regular_file;

/// Opens a regular file.
pub(crate) fn open(path: &Path) -> Result<File> {
    regular_file::open(path).map_err(Error::io(path, "read"))
}

/// Returns at most the first `count` bytes of a file, and its length.
pub(crate) fn start(file: &mut File, count: usize) -> io::Result<(Vec<u8>, u64)> {
    let (length, mut bytes) = (file.metadata()?.len(), Vec::new());
    file.take(count as u64).read_to_end(&mut bytes)?;
    Ok((bytes, length))
}

/// Reads a file. `check` gets its first `count` bytes and its length, so that a file of another
/// format is reported as such; `part` names the contents in the error for a damaged one.
pub(crate) fn read<T>(
    path: &Path,
    part: &str,
    count: usize,
    check: impl FnOnce(&[u8], u64) -> Result<T>,
) -> Result<Vec<u8>> {
    let failed = Error::io(path, "read");
    let mut file = open(path)?;
    let (bytes, length) = start(&mut file, count).map_err(&failed)?;
    check(&bytes, length)?;
    file.rewind().map_err(&failed)?;
    let bytes = read_with_sum(&mut file, 0, length).map_err(&failed)?;
    bytes.ok_or_else(|| FormatError::Damaged { part: part.into() }.into())
}
