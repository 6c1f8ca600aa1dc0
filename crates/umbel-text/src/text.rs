//! The text of a file in blocks of whole lines, decompressed while it is read, and the lines of a
//! reader within fixed memory.

use crate::content::{self, Format};
use memchr::memchr;
use std::fs::File;
use std::io::{self, BufRead, ErrorKind, Read};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The length of the longest line that is read. A line has to fit into memory.
const MAX_LINE_BYTES: usize = 1 << 30;

/// The number of bytes read at once.
const READ_BYTES: usize = 1 << 16;

/// The part of a line that [`each_line`] holds in memory.
const MAX_HELD_BYTES: usize = 1 << 20;

/// Calls `found` with every line, including its end, until it returns `Break`. A long line comes in
/// parts, which end at white space; a word is split only if a mebibyte has none.
pub(crate) fn each_line<B>(
    mut text: impl BufRead,
    mut found: impl FnMut(&[u8]) -> ControlFlow<B>,
) -> io::Result<Option<B>> {
    let mut held: Vec<u8> = Vec::new();
    loop {
        let ready = match text.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            ready => ready?,
        };
        if ready.is_empty() {
            return Ok(found(&held).break_value());
        }
        let room = MAX_HELD_BYTES.saturating_sub(held.len()).max(1);
        let end = memchr(b'\n', &ready[..ready.len().min(room)]);
        let taken = end.map_or(ready.len().min(room), |end| end + 1);
        held.extend_from_slice(&ready[..taken]);
        text.consume(taken);
        let whole = if end.is_some() {
            held.len()
        } else if held.len() < MAX_HELD_BYTES {
            continue;
        } else {
            let space = held.iter().rposition(u8::is_ascii_whitespace).map(|at| at + 1);
            space.unwrap_or_else(|| last_boundary(&held))
        };
        if let ControlFlow::Break(value) = found(&held[..whole]) {
            return Ok(Some(value));
        }
        held.drain(..whole);
    }
}

/// Returns the start of the last character, which may be incomplete. Never returns 0.
fn last_boundary(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(4).max(1);
    (from..bytes.len()).rev().find(|at| bytes[*at] & 0xc0 != 0x80).unwrap_or(bytes.len())
}

/// The text of a file.
pub(crate) struct Text<'a> {
    reader: Box<dyn Read + Send + 'a>,
    /// The bytes read beyond the last block.
    rest: Vec<u8>,
    /// An error that occurred after the last block, which the next call returns.
    pending_error: Option<io::Error>,
    /// Whether the file is compressed.
    pub compressed: bool,
}

impl<'a> Text<'a> {
    /// Opens the text of a file. `count` counts the bytes read from the file.
    pub fn new(file: &'a File, count: &'a AtomicU64) -> io::Result<Text<'a>> {
        let (format, reader) = content::decompressed(Counted { file, count })?;
        let compressed = matches!(format, Some(Format::Gzip | Format::Zstd));
        Ok(Text { reader, rest: Vec::new(), pending_error: None, compressed })
    }

    /// Reads the next block: at least `least` bytes, up to the end of a line. The block is empty at
    /// the end of the text. It is shorter than `least` only there and before an error, which the
    /// next call returns.
    pub fn block(&mut self, least: usize, block: &mut Vec<u8>) -> io::Result<()> {
        block.clear();
        if let Some(error) = self.pending_error.take() {
            return Err(error);
        }
        std::mem::swap(block, &mut self.rest);
        self.rest.clear();
        let mut seen = least.saturating_sub(1);
        loop {
            if let Some(end) = block.get(seen..).and_then(|new| memchr(b'\n', new)) {
                self.rest.extend_from_slice(&block[seen + end + 1..]);
                block.truncate(seen + end + 1);
                return Ok(());
            }
            seen = seen.max(block.len());
            match self.more(block) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // Do not return part of a line that is too long.
                Err(pending_error) if block.is_empty() || block.len() >= MAX_LINE_BYTES => {
                    return Err(pending_error);
                }
                Err(error) => {
                    self.pending_error = Some(error);
                    return Ok(());
                }
            }
        }
    }

    /// Returns whether the next call to [`Text::block`] fails.
    pub fn has_pending_error(&self) -> bool {
        self.pending_error.is_some()
    }

    /// Reads the next `length` bytes, or fewer at the end of the text.
    pub fn exactly(&mut self, length: u64, block: &mut Vec<u8>) -> io::Result<()> {
        block.clear();
        std::mem::swap(block, &mut self.rest);
        self.rest.clear();
        while (block.len() as u64) < length && self.more(block)? {}
        if block.len() as u64 > length {
            self.rest.extend_from_slice(&block[length as usize..]);
            block.truncate(length as usize);
        }
        Ok(())
    }

    /// Skips `length` bytes.
    pub fn skip(&mut self, mut length: u64, block: &mut Vec<u8>) -> io::Result<()> {
        while length > 0 {
            self.exactly(length.min(READ_BYTES as u64), block)?;
            if block.is_empty() {
                break;
            }
            length -= block.len() as u64;
        }
        Ok(())
    }

    fn more(&mut self, block: &mut Vec<u8>) -> io::Result<bool> {
        let start = block.len();
        if start >= MAX_LINE_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it has a line of more than 1 GiB"));
        }
        block.resize(start + READ_BYTES, 0);
        loop {
            match self.reader.read(&mut block[start..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    block.truncate(start + *result.as_ref().unwrap_or(&0));
                    return result.map(|read| read > 0);
                }
            }
        }
    }
}

/// A file that counts the bytes read from it.
struct Counted<'a> {
    file: &'a File,
    count: &'a AtomicU64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.count.fetch_add(read as u64, Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Seek, Write};

    proptest! {
        #[test]
        fn blocks_are_whole_lines_and_together_the_text(lines in prop::collection::vec("[a-z]{0,20}", 0..40), least in 1usize..60, open: bool) {
            let mut text = lines.join("\n");
            if !open {
                text.push('\n');
            }
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            (&file).rewind().unwrap();
            let count = AtomicU64::new(0);
            let mut reader = Text::new(&file, &count).unwrap();
            let (mut block, mut all, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
            loop {
                reader.block(least, &mut block).unwrap();
                if block.is_empty() {
                    break;
                }
                all.extend_from_slice(&block);
                lengths.push(block.len() as u64);
                let last = all.len() == text.len();
                prop_assert!(last || block.len() >= least && block.ends_with(b"\n"));
            }
            prop_assert_eq!(&all, text.as_bytes());
            prop_assert_eq!(count.load(Relaxed), text.len() as u64);
            (&file).rewind().unwrap();
            let mut reader = Text::new(&file, &count).unwrap();
            let mut again = Vec::new();
            for length in lengths {
                reader.exactly(length, &mut block).unwrap();
                prop_assert_eq!(block.len() as u64, length);
                again.extend_from_slice(&block);
            }
            prop_assert_eq!(&again, text.as_bytes());
        }
    }
}
