//! Reads lines that may be secret, in memory that is wiped afterwards, and limits the length of
//! lines.

use memchr::{memchr_iter, memrchr};
use std::io::{self, ErrorKind, Read};
use std::{error, fmt};
use zeroize::Zeroizing;

/// The length of the longest line that is read by default, in bytes without its end. A line has to
/// fit into memory, and a small file can decompress to a very long one.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// The length of the longest password or hash, and the size of the buffer, which grows for a longer
/// line if it is allowed.
const BUFFER_BYTES: usize = 1 << 20;

/// The byte order mark with which some programs start a text in UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The error of a line that is longer than the limit, inside of an [`io::Error`] of the kind
/// [`ErrorKind::InvalidData`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTooLong {
    /// The number of the line, from 1; `None` if lines are not counted.
    pub line: Option<u64>,
    /// The length of the longest line that is read, in bytes.
    pub limit: usize,
}

impl LineTooLong {
    /// Returns the error inside of an [`io::Error`], if there is one.
    pub fn from_error(error: &io::Error) -> Option<&LineTooLong> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<LineTooLong> for io::Error {
    fn from(error: LineTooLong) -> io::Error {
        io::Error::new(ErrorKind::InvalidData, error)
    }
}

impl fmt::Display for LineTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}")?,
            None => write!(f, "a line")?,
        }
        match self.limit.is_multiple_of(1 << 20) {
            true => write!(f, " is longer than {} MiB", self.limit >> 20),
            false => write!(f, " is longer than {} bytes", self.limit),
        }
    }
}

impl error::Error for LineTooLong {}

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
    max_line: usize,
}

impl<R: Read> Lines<R> {
    /// Creates a reader of lines that fails at a line of more than a mebibyte, which is neither a
    /// password nor a hash. A line ends with a newline, or with a carriage return and a newline.
    pub fn new(reader: R) -> Lines<R> {
        Lines::with_max_line(reader, BUFFER_BYTES)
    }

    /// Creates a reader of lines that fails at a line of more than `max_line` bytes, without its
    /// end.
    pub fn with_max_line(reader: R, max_line: usize) -> Lines<R> {
        let buffer = Zeroizing::new(vec![0; BUFFER_BYTES.min(max_line.saturating_add(1))]);
        Lines { reader, buffer, start: 0, whole: 0, end: 0, before: 0, begun: false, max_line }
    }

    /// Reads the next batch: waits for at least one whole line, and takes all that arrive with it.
    /// Returns `false` at the end of the input.
    ///
    /// # Errors
    ///
    /// Fails if the reader fails, or with [`LineTooLong`] if a line is longer than the limit.
    pub fn more(&mut self) -> io::Result<bool> {
        self.before += self.lot().count() as u64;
        self.buffer.copy_within(self.whole..self.end, 0);
        self.end -= self.whole;
        (self.start, self.whole) = (0, 0);
        loop {
            if self.end == self.buffer.len() {
                self.grow()?;
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

    /// Makes room for a longer line. Wipes the buffer that it replaces.
    fn grow(&mut self) -> io::Result<()> {
        let (length, room) = (self.buffer.len(), self.max_line.saturating_add(1));
        if length >= room {
            return Err(LineTooLong { line: Some(self.before + 1), limit: self.max_line }.into());
        }
        let mut longer = Zeroizing::new(vec![0; (2 * length).min(room)]);
        longer[..length].copy_from_slice(&self.buffer);
        self.buffer = longer;
        Ok(())
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
