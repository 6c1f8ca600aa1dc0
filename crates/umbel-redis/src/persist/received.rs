//! The bytes of a stream that have arrived so far.

use super::stream::CHUNK_BYTES;
use crate::server::memory::Replacement;
use std::io::{self, Read};
use umbel::memory::LINE_BYTES;
use umbel::{Error, Result};

/// Bytes in memory that counts towards the limits, whatever the lengths of the chunks in which they
/// arrived: it has the alignment of filters, and is at most twice as large as the bytes.
#[derive(Debug, Default)]
pub struct Received {
    /// All blocks but the last have [`BLOCK_LINES`] lines, and all lines but the last are full.
    blocks: Vec<Vec<Line>>,
    len: u64,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u8; LINE_BYTES]);

/// The number of lines in a block, which has the length of a chunk. Memory is copied when a block
/// grows, and never more than that.
const BLOCK_LINES: usize = CHUNK_BYTES as usize / LINE_BYTES;

impl Received {
    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// If there is not enough memory. Nothing is appended then.
    pub fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        let before = self.len;
        while !bytes.is_empty() {
            let place = (self.len % LINE_BYTES as u64) as usize;
            if place == 0
                && let Err(error) = self.add_line(bytes.len())
            {
                self.truncate(before);
                return Err(error);
            }
            let Some(line) = self.blocks.last_mut().and_then(|block| block.last_mut()) else { break };
            let (now, later) = bytes.split_at(bytes.len().min(LINE_BYTES - place));
            line.0[place..][..now.len()].copy_from_slice(now);
            self.len += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Adds an empty line, with room for this many bytes behind its start.
    fn add_line(&mut self, bytes: usize) -> Result<()> {
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK_LINES) {
            self.blocks.push(Vec::new());
        }
        let Some(block) = self.blocks.last_mut() else { return Ok(()) };
        if block.len() == block.capacity() {
            let lines = bytes.div_ceil(LINE_BYTES).max(block.len()).min(BLOCK_LINES - block.len());
            // The old block is freed when the new one is filled.
            let _replacement = Replacement::of(size_of_val(&block[..]));
            let out_of_memory = |_| Error::OutOfMemory { bytes: (lines * LINE_BYTES) as u64 };
            block.try_reserve_exact(lines).map_err(out_of_memory)?;
        }
        block.push(Line([0; LINE_BYTES]));
        Ok(())
    }

    /// Drops all bytes from this length on.
    pub fn truncate(&mut self, len: u64) {
        let lines = len.div_ceil(LINE_BYTES as u64) as usize;
        self.blocks.truncate(lines.div_ceil(BLOCK_LINES));
        if let Some(last) = self.blocks.len().checked_sub(1) {
            self.blocks[last].truncate(lines - last * BLOCK_LINES);
        }
        self.len = self.len.min(len);
    }

    /// Returns the bytes from an offset on, as a stream.
    pub fn reader(&self, offset: u64) -> Reader<'_> {
        Reader { received: self, offset }
    }

    /// Returns the bytes in pieces of the length of a chunk, each with the offset of its end.
    pub fn chunks(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        (0..self.len).step_by(CHUNK_BYTES as usize).map(|offset| {
            let chunk = self.first_bytes(offset, CHUNK_BYTES);
            (offset + chunk.len() as u64, chunk)
        })
    }

    /// Returns at most this many bytes from an offset on.
    pub fn first_bytes(&self, offset: u64, count: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.len.saturating_sub(offset).min(count) as usize];
        let read = self.reader(offset).read(&mut bytes).unwrap_or_default();
        bytes.truncate(read);
        bytes
    }

    /// Returns the bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.capacity() * LINE_BYTES).sum()
    }

    /// Returns a copy, if there is enough memory.
    pub fn try_clone(&self) -> Result<Received> {
        let mut copy = Received::default();
        for block in &self.blocks {
            let bytes = size_of_val(&block[..]) as u64;
            let mut lines = Vec::new();
            lines.try_reserve_exact(block.len()).map_err(|_| Error::OutOfMemory { bytes })?;
            lines.extend_from_slice(block);
            copy.blocks.push(lines);
        }
        copy.len = self.len;
        Ok(copy)
    }
}

/// Reads received bytes as a stream.
pub struct Reader<'a> {
    received: &'a Received,
    offset: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, mut to: &mut [u8]) -> io::Result<usize> {
        let start = self.offset;
        while !to.is_empty() && self.offset < self.received.len {
            let (line, place) = ((self.offset as usize) / LINE_BYTES, (self.offset as usize) % LINE_BYTES);
            let left = (self.received.len - self.offset) as usize;
            let count = to.len().min(LINE_BYTES - place).min(left);
            let line = &self.received.blocks[line / BLOCK_LINES][line % BLOCK_LINES];
            let (now, later) = to.split_at_mut(count);
            now.copy_from_slice(&line.0[place..][..count]);
            self.offset += count as u64;
            to = later;
        }
        Ok((self.offset - start) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns bytes that do not repeat soon.
    fn bytes(len: usize) -> Vec<u8> {
        (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
    }

    #[test]
    fn bytes_are_read_as_they_were_appended() {
        let all = bytes(2 * CHUNK_BYTES as usize + 1000);
        for piece in [1 << 10, 63, 64, 65, 100_000, CHUNK_BYTES as usize + 3, all.len()] {
            let mut received = Received::default();
            for part in all.chunks(piece) {
                received.append(part).unwrap();
            }
            assert_eq!(received.len(), all.len() as u64);
            let mut read = Vec::new();
            received.reader(5).read_to_end(&mut read).unwrap();
            assert!(read == all[5..], "in pieces of {piece}");
            let chunks: Vec<(u64, Vec<u8>)> = received.chunks().collect();
            assert_eq!(chunks.iter().map(|(end, _)| *end).collect::<Vec<_>>(), [8388608, 16777216, 16778216]);
            assert!(chunks.into_iter().flat_map(|(_, chunk)| chunk).eq(all.iter().copied()));
            assert!(received.memory_bytes() <= 2 * all.len() + LINE_BYTES);
        }
    }

    #[test]
    fn truncated_bytes_can_be_appended_again() {
        let all = bytes(CHUNK_BYTES as usize + 500);
        for len in [0, 1, 64, 100, CHUNK_BYTES as usize - 1, CHUNK_BYTES as usize, CHUNK_BYTES as usize + 7] {
            let mut received = Received::default();
            received.append(&all[..len]).unwrap();
            received.append(&[7; 300]).unwrap();
            received.truncate(len as u64);
            assert_eq!(received.len(), len as u64);
            let copy = received.try_clone().unwrap();
            for mut received in [received, copy] {
                received.append(&all[len..]).unwrap();
                assert!(received.first_bytes(0, u64::MAX) == all, "{len}");
            }
        }
    }

    #[test]
    fn single_bytes_take_as_little_memory_as_long_chunks() {
        let mut received = Received::default();
        for byte in bytes(10_000) {
            received.append(&[byte]).unwrap();
        }
        assert!(received.memory_bytes() <= 20_000, "{}", received.memory_bytes());
    }
}
