//! The text of a file in blocks of whole lines, decompressed while it is read, and the lines of a
//! reader within fixed memory.

use crate::content::{self, Format};
use crate::lines::LineTooLong;
use memchr::{memchr, memrchr};
use std::fs::File;
use std::io::{self, BufRead, ErrorKind, Read};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
    /// The length of the longest line that is read, in bytes.
    max_line: usize,
}

impl<'a> Text<'a> {
    /// Opens the text of a file, whose lines have at most `max_line` bytes. `count` counts the bytes
    /// read from the file.
    pub fn new(file: &'a File, count: &'a AtomicU64, max_line: usize) -> io::Result<Text<'a>> {
        let (format, reader) = content::decompressed(Counted { file, count })?;
        let compressed = matches!(format, Some(Format::Gzip | Format::Zstd));
        Ok(Text { reader, rest: Vec::new(), pending_error: None, compressed, max_line })
    }

    /// Reads the next block: at least `least` bytes, up to the end of a line. The block is empty at
    /// the end of the text. It is shorter than `least` only there and before an error, which the
    /// next call returns.
    ///
    /// A line beyond `least` that is too long is an error, unless it has a zero byte and so is
    /// binary: then the block ends after the last one, since no text is found across it.
    pub fn block(&mut self, least: usize, block: &mut Vec<u8>) -> io::Result<()> {
        block.clear();
        if let Some(error) = self.pending_error.take() {
            return Err(error);
        }
        std::mem::swap(block, &mut self.rest);
        self.rest.clear();
        let mut seen = least.saturating_sub(1);
        let mut line_start = memrchr(b'\n', block).map_or(0, |newline| newline + 1);
        loop {
            if let Some(end) = block.get(seen..).and_then(|new| memchr(b'\n', new)) {
                self.split_off(block, seen + end + 1);
                return Ok(());
            }
            seen = seen.max(block.len());
            if block.len() >= least && block.len() - line_start > self.max_line {
                let zero = memrchr(0, &block[line_start..]);
                self.split_off(block, zero.map_or(line_start, |zero| line_start + zero + 1));
                if zero.is_none() {
                    self.rest.clear();
                    self.pending_error = Some(LineTooLong { line: None, limit: self.max_line }.into());
                }
                return if block.is_empty() { self.block(least, block) } else { Ok(()) };
            }
            let read_from = block.len();
            match self.more(block) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if block.is_empty() => return Err(error),
                Err(error) => {
                    self.pending_error = Some(error);
                    return Ok(());
                }
            }
            if let Some(newline) = memrchr(b'\n', &block[read_from..]) {
                line_start = read_from + newline + 1;
            }
        }
    }

    /// Shortens a block to this length; the rest is the start of the next block.
    fn split_off(&mut self, block: &mut Vec<u8>, length: usize) {
        self.rest.extend_from_slice(&block[length..]);
        block.truncate(length);
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
            self.split_off(block, length as usize);
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
    use crate::lines::MAX_LINE_BYTES;
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
            let mut reader = Text::new(&file, &count, MAX_LINE_BYTES).unwrap();
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
            let mut reader = Text::new(&file, &count, MAX_LINE_BYTES).unwrap();
            let mut again = Vec::new();
            for length in lengths {
                reader.exactly(length, &mut block).unwrap();
                prop_assert_eq!(block.len() as u64, length);
                again.extend_from_slice(&block);
            }
            prop_assert_eq!(&again, text.as_bytes());
        }
    }
    /// Returns the blocks of a text before its end or an error.
    fn blocks(text: &[u8], least: usize, max_line: usize) -> (Vec<Vec<u8>>, Option<LineTooLong>) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        (&file).rewind().unwrap();
        let count = AtomicU64::new(0);
        let mut reader = Text::new(&file, &count, max_line).unwrap();
        let (mut block, mut all) = (Vec::new(), Vec::new());
        loop {
            match reader.block(least, &mut block) {
                Ok(()) if block.is_empty() => return (all, None),
                Ok(()) => all.push(block.clone()),
                Err(error) => return (all, Some(*LineTooLong::from_error(&error).unwrap())),
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_fails_after_the_lines_before_it() {
        let limit = 3 * READ_BYTES;
        let long = [b"one\ntwo\n", &vec![b'a'; limit + READ_BYTES][..], b"\nlast\n"].concat();
        let error = LineTooLong { line: None, limit };
        assert_eq!(blocks(&long, 5, limit), (vec![b"one\ntwo\n".to_vec()], Some(error)));
        assert_eq!(blocks(&long, 100, limit), (vec![b"one\ntwo\n".to_vec()], Some(error)));
        assert_eq!(blocks(&long[8..], 5, limit), (vec![], Some(error)));
        let (all, error) = blocks(&long, 5, limit + READ_BYTES);
        assert_eq!((all.concat() == long, error), (true, None));
    }

    #[test]
    fn a_binary_file_without_lines_is_read_in_blocks() {
        let limit = 2 * READ_BYTES;
        for zeros in [&b"\0"[..], b"\0aaaa", &[0; 64]] {
            let text = zeros.repeat(20 * READ_BYTES / zeros.len());
            let (all, error) = blocks(&text, 1000, limit);
            assert_eq!((all.concat() == text, error), (true, None));
            assert!(all.len() > 5 && all.iter().all(|block| block.len() <= limit + 2 * READ_BYTES));
        }
    }
}
