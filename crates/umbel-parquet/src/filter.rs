//! The filter of a column in a row group, read where it lies in the file.

use crate::error::{Error, Result};
use crate::file::{Column, ParquetFile};
use crate::footer::read_bytes;
use std::os::unix::fs::FileExt;
use umbel::file::FormatError;
use umbel::foreign::sbbf::{self, BLOCK_BYTES, Blocks};

/// The number of bytes of a filter for each value up to which it is read as a whole. Above, reading
/// the blocks of the values takes fewer bytes and about as much time.
const WHOLE_BYTES_PER_VALUE: u64 = 512;

/// The filter of a column in a row group. Its blocks stay in the file until they are needed.
pub struct ChunkFilter<'f> {
    file: &'f ParquetFile,
    /// The position of the first block in the file.
    start: u64,
    blocks: u64,
}

impl<'f> ChunkFilter<'f> {
    /// Reads the header of the filter of a column in a row group.
    pub(crate) fn open(
        file: &'f ParquetFile,
        row_group: usize,
        column: &Column,
    ) -> Result<Option<ChunkFilter<'f>>> {
        let chunk = file.metadata().row_group(row_group).column(column.index());
        let Some(offset) = chunk.bloom_filter_offset() else { return Ok(None) };
        let damaged = |what: &str| {
            let what = format!("the filter of column {} in row group {row_group}: {what}", column.path());
            Error::damaged(file.path(), what)
        };
        let (end, length) = (file.footer_start(), chunk.bloom_filter_length());
        // The signature of the file comes first.
        let left = u64::try_from(offset)
            .ok()
            .filter(|offset| *offset >= 4)
            .and_then(|offset| end.checked_sub(offset));
        let Some(left) = left.filter(|left| *left > 0) else {
            return Err(damaged(&format!("it starts at byte {offset}, and the footer at {end}")));
        };
        let offset = end - left;
        let start = read_bytes(file.path(), file.file(), offset, left.min(sbbf::MAX_HEADER_BYTES as u64))?;
        let header = sbbf::parse_header(&start).map_err(|error| damaged(&problem(error)))?;
        let bytes = header.bytes as u64;
        if header.len as u64 + bytes > left {
            return Err(damaged(&format!("it has {bytes} bytes, and the footer comes after {left}")));
        }
        // Some writers count the header, and some do not.
        if length.is_some_and(|length| u64::try_from(length).unwrap_or(0) < bytes) {
            return Err(damaged("it is longer than the footer says"));
        }
        let blocks = bytes / BLOCK_BYTES as u64;
        Ok(Some(ChunkFilter { file, start: offset + header.len as u64, blocks }))
    }

    /// Returns the length of the filter, without its header.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_BYTES as u64
    }

    /// Reads all blocks.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn read(&self) -> Result<Blocks> {
        let bytes = read_bytes(self.file.path(), self.file.file(), self.start, self.bytes())?;
        self.blocks(&bytes)
    }

    /// Calls `found` with the index of each [hash](crate::values::Value::hashes) that may be in the
    /// filter. Reads the blocks of the hashes if they are few, and otherwise all blocks at once.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn find(&self, hashes: &[u64], mut found: impl FnMut(usize)) -> Result<()> {
        if self.bytes() <= (hashes.len() as u64).saturating_mul(WHOLE_BYTES_PER_VALUE) {
            let answers = self.read()?.contains_hashes(hashes);
            answers.iter().enumerate().filter(|(_, answer)| *answer).for_each(|(index, _)| found(index));
            return Ok(());
        }
        for (index, hash) in hashes.iter().enumerate() {
            let mut block = [0; BLOCK_BYTES];
            let start = self.start + sbbf::block_of(*hash, self.blocks) * BLOCK_BYTES as u64;
            self.file.file().read_exact_at(&mut block, start).map_err(Error::io(self.file.path(), "read"))?;
            if self.blocks(&block)?.contains_hash(*hash) {
                found(index);
            }
        }
        Ok(())
    }

    /// Returns blocks, of which there is at least one.
    fn blocks(&self, bytes: &[u8]) -> Result<Blocks> {
        let no_memory =
            |_| Error::OutOfMemory { path: self.file.path().to_owned(), bytes: bytes.len() as u64 };
        Blocks::from_bytes(bytes).map_err(no_memory)
    }
}

/// Returns the problem with a header as a clause.
fn problem(error: umbel::Error) -> String {
    match error {
        umbel::Error::Format { problem: FormatError::Invalid { what }, .. } => what,
        umbel::Error::Format { problem: FormatError::Unknown { what }, .. } => format!("it has {what}"),
        other => other.to_string(),
    }
}
