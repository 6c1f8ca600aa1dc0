//! Reads lines that may be secret, in memory that is wiped afterwards.

use memchr::{memchr_iter, memrchr};
use std::io::{self, ErrorKind, Read};
use zeroize::Zeroizing;

/// The size of the buffer. A longer line is neither a password nor an address.
const BUFFER_BYTES: usize = 1 << 20;

/// The byte order mark with which some programs start a text in UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of a reader, in batches. Each batch has the lines that were available at once.
///
/// ```
/// use umbel_text::lines::Lines;
/// let mut lines = Lines::new(&b"one\r\ntwo\nthree"[..]);
/// let mut all = Vec::new();
/// while lines.more()? {
///     all.extend(lines.lot().map(<[u8]>::to_vec));
/// }
/// assert_eq!(all, [&b"one"[..], b"two", b"three"]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Lines<R> {
    reader: R,
    buffer: Zeroizing<Vec<u8>>,
    /// The batch is `start..whole`; `whole..end` is the start of the next line.
    start: usize,
    whole: usize,
    end: usize,
    /// The number of lines in earlier batches.
    before: u64,
    begun: bool,
}

impl<R: Read> Lines<R> {
    /// Creates a reader of lines. A line ends with a newline, or with a carriage return and a
    /// newline.
    pub fn new(reader: R) -> Lines<R> {
        let buffer = Zeroizing::new(vec![0; BUFFER_BYTES]);
        Lines { reader, buffer, start: 0, whole: 0, end: 0, before: 0, begun: false }
    }

    /// Reads the next batch: waits for at least one whole line, and takes all that arrive with it.
    /// Returns `false` at the end of the input.
    ///
    /// # Errors
    ///
    /// Fails if the reader fails or a line is longer than a megabyte.
    pub fn more(&mut self) -> io::Result<bool> {
        self.before += self.lot().count() as u64;
        self.buffer.copy_within(self.whole..self.end, 0);
        self.end -= self.whole;
        (self.start, self.whole) = (0, 0);
        loop {
            if self.end == BUFFER_BYTES {
                let line = self.before + 1;
                let problem = format!("line {line} is longer than a megabyte");
                return Err(io::Error::new(ErrorKind::InvalidData, problem));
            }
            let read = match self.reader.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result?,
            };
            let searched = self.end;
            self.end += read;
            let last = memrchr(b'\n', &self.buffer[searched..self.end]);
            if let Some(last) = last {
                self.whole = searched + last + 1;
            } else if read == 0 {
                self.whole = self.end;
            }
            if self.whole > 0 || read == 0 {
                break;
            }
        }
        if !self.begun && self.buffer[..self.whole].starts_with(BYTE_ORDER_MARK) {
            self.start = BYTE_ORDER_MARK.len();
        }
        self.begun = true;
        Ok(self.whole > self.start)
    }

    /// Returns the lines of the current batch without their line ends.
    pub fn lot(&self) -> impl Iterator<Item = &[u8]> {
        let lot = &self.buffer[self.start..self.whole];
        let ends =
            memchr_iter(b'\n', lot).chain((!lot.ends_with(b"\n") && !lot.is_empty()).then_some(lot.len()));
        let mut start = 0;
        ends.map(move |end| {
            let line = &lot[start..end];
            start = end + 1;
            line.strip_suffix(b"\r").unwrap_or(line)
        })
    }

    /// Returns the number of the first line of the batch, from 1.
    pub fn number(&self) -> u64 {
        self.before + 1
    }
}
