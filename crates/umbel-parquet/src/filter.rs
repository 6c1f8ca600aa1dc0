//! The filter of a column in a row group, read where it lies in the file.

use crate::error::{Error, Result};
use crate::file::{Column, ParquetFile};
use crate::footer::read_bytes;
use crate::sbbf::{self, BLOCK_BYTES, Block};
use std::os::unix::fs::FileExt;

/// The number of bytes of a filter for each value from which on it is read as a whole. Below, reading
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
        let header = read_bytes(file.path(), file.file(), offset, left.min(sbbf::MAX_HEADER_BYTES))?;
        let (header, bytes) = sbbf::parse_header(&header).map_err(|what| damaged(&what))?;
        if header + bytes > left {
            return Err(damaged(&format!("it has {bytes} bytes, and the footer comes after {left}")));
        }
        // Some writers count the header, and some do not.
        if length.is_some_and(|length| u64::try_from(length).unwrap_or(0) < bytes) {
            return Err(damaged("it is longer than the footer says"));
        }
        Ok(Some(ChunkFilter { file, start: offset + header, blocks: bytes / BLOCK_BYTES }))
    }

    /// Returns the length of the filter, without its header.
    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_BYTES
    }

    /// Reads all blocks.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn read(&self) -> Result<FilterBlocks> {
        let bytes = read_bytes(self.file.path(), self.file.file(), self.start, self.bytes())?;
        Ok(FilterBlocks { bytes })
    }

    /// Calls `found` with the index of each hash that may be in the filter. Reads the blocks of the
    /// hashes if they are few, and otherwise all blocks at once.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn find(
        &self,
        hashes: impl ExactSizeIterator<Item = u64>,
        mut found: impl FnMut(usize),
    ) -> Result<()> {
        if self.bytes() <= (hashes.len() as u64).saturating_mul(WHOLE_BYTES_PER_VALUE) {
            let blocks = self.read()?;
            hashes.enumerate().filter(|(_, hash)| blocks.contains(*hash)).for_each(|(index, _)| found(index));
            return Ok(());
        }
        for (index, hash) in hashes.enumerate() {
            let mut block: Block = [0; BLOCK_BYTES as usize];
            let at = self.start + sbbf::block_of(hash, self.blocks) * BLOCK_BYTES;
            self.file.file().read_exact_at(&mut block, at).map_err(Error::io(self.file.path(), "read"))?;
            if sbbf::contains(&block, hash) {
                found(index);
            }
        }
        Ok(())
    }
}

/// The blocks of a filter in memory.
pub struct FilterBlocks {
    bytes: Vec<u8>,
}

impl FilterBlocks {
    /// Returns the blocks.
    fn blocks(&self) -> &[Block] {
        self.bytes.as_chunks().0
    }

    /// Returns whether a hash may be in the filter.
    pub fn contains(&self, hash: u64) -> bool {
        let blocks = self.blocks();
        sbbf::contains(&blocks[sbbf::block_of(hash, blocks.len() as u64) as usize], hash)
    }

    /// Returns the share of bits that are set.
    pub fn fill(&self) -> f64 {
        let ones: u64 = self.bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
        ones as f64 / (8 * self.bytes.len()) as f64
    }

    /// Returns the rate of false positives now: the probability that a hash which is not in the
    /// filter finds its eight bits set.
    pub fn rate(&self) -> f64 {
        rate(self.blocks().iter().map(sbbf::words))
    }

    /// Returns the rate that the filter would have in a quarter of the blocks, or `None` if it has
    /// fewer than four.
    ///
    /// Four neighbouring blocks become one, in which their hashes have the same bits: this is the
    /// filter that the values would have had in that size.
    pub fn rate_of_quarter(&self) -> Option<f64> {
        let quarters = self.blocks().chunks(4);
        (self.blocks().len() >= 4).then(|| {
            rate(quarters.map(|four| {
                four.iter().map(sbbf::words).fold(vec![0; 8], |mut all, words| {
                    all.iter_mut().zip(words).for_each(|(all, word)| *all |= word);
                    all
                })
            }))
        })
    }
}

/// Returns the mean over the blocks of the probability that one bit of each word is set.
fn rate<W: IntoIterator<Item = u32>>(blocks: impl ExactSizeIterator<Item = W>) -> f64 {
    let count = blocks.len() as f64;
    let rates = blocks
        .map(|words| words.into_iter().map(|word| f64::from(word.count_ones()) / 32.0).product::<f64>());
    rates.sum::<f64>() / count
}
