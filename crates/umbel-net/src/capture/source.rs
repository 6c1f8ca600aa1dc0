//! A buffered input over a file or pipe, which may be compressed. The buffer grows only with bytes
//! that were read.

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};
use std::ops::Range;

/// The number of bytes read at once, and the size of the buffer as long as no record needs more.
const CHUNK_BYTES: usize = 1 << 18;

/// The first bytes of a gzip file.
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

/// The reason why there are no more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The input ended.
    Here,
    /// The compressed data ended prematurely.
    Early,
    /// The compressed data is corrupt from here on.
    Corrupt,
}

/// A buffered input.
pub struct Source<'r> {
    input: Box<dyn Read + Send + 'r>,
    buffer: Vec<u8>,
    /// The range of the buffer that was read and is not consumed yet.
    ready: Range<usize>,
    /// The number of bytes consumed.
    taken: u64,
    ended: Option<Ended>,
}

/// A reader that reads again when a signal interrupts a read. A gzip decoder would take that for an
/// error at the start of a file, and for the end of the file from then on.
struct Uninterrupted<R>(R);

impl<R: Read> Read for Uninterrupted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

impl<'r> Source<'r> {
    /// Returns a source that decompresses the input if it begins like a gzip file.
    pub fn new(mut input: impl Read + Send + 'r) -> io::Result<Source<'r>> {
        let mut start = Vec::new();
        input.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut start)?;
        let compressed = start == GZIP_MAGIC;
        let whole = Uninterrupted(Cursor::new(start).chain(input));
        let input: Box<dyn Read + Send + 'r> = match compressed {
            true => Box::new(MultiGzDecoder::new(BufReader::with_capacity(CHUNK_BYTES, whole))),
            false => Box::new(whole),
        };
        Ok(Source { input, buffer: Vec::new(), ready: 0..0, taken: 0, ended: None })
    }

    /// Reads until this many bytes are ready, and returns whether they are.
    pub fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        while self.ready.len() < wanted {
            if !self.read_more(wanted)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the bytes that are ready.
    pub fn ready(&self) -> &[u8] {
        self.buffer.get(self.ready.clone()).unwrap_or_default()
    }

    /// Consumes bytes that are ready, and returns their range in the buffer, which is valid until
    /// more is read.
    pub fn consume(&mut self, count: usize) -> Range<usize> {
        let taken = self.ready.start..(self.ready.start + count).min(self.ready.end);
        self.ready.start = taken.end;
        self.taken += taken.len() as u64;
        taken
    }

    /// Returns a range of consumed bytes.
    pub fn at(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or_default()
    }

    /// Skips this many bytes without keeping them, and returns whether there were as many.
    pub fn skip(&mut self, mut count: u64) -> io::Result<bool> {
        loop {
            let taken = self.consume(usize::try_from(count).unwrap_or(usize::MAX).min(self.ready.len()));
            count -= taken.len() as u64;
            if count == 0 {
                return Ok(true);
            }
            if !self.read_more(CHUNK_BYTES)? {
                return Ok(false);
            }
        }
    }

    /// Returns the size of the buffer.
    pub fn memory(&self) -> usize {
        self.buffer.capacity()
    }

    /// Returns the number of (decompressed) bytes consumed so far.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns why there are no more bytes, or `None` if there may be more.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Reads once, as much as is available, for a record of this many bytes. Returns whether there
    /// was anything.
    fn read_more(&mut self, wanted: usize) -> io::Result<bool> {
        if self.ended.is_some() {
            return Ok(false);
        }
        let ready = self.ready.len();
        // Move only if the record does not fit, so that small records are seldom moved.
        if self.buffer.len() - self.ready.start < wanted.max(ready + 1) {
            self.buffer.copy_within(self.ready.clone(), 0);
            self.ready = 0..ready;
        }
        // Allocate at most twice the bytes that have arrived, whatever the record claims.
        let size = wanted.min(ready * 2).max(CHUNK_BYTES);
        if self.buffer.len() < size {
            // Reserve exactly; `resize` alone would double the capacity.
            self.buffer.reserve_exact(size - self.buffer.len());
            self.buffer.resize(size, 0);
        }
        let got = match self.input.read(&mut self.buffer[self.ready.end..]) {
            Err(error) => match error.kind() {
                ErrorKind::UnexpectedEof => self.end(Ended::Early),
                // The decoder reports these kinds; the system does not.
                ErrorKind::InvalidData | ErrorKind::InvalidInput => self.end(Ended::Corrupt),
                _ => return Err(error),
            },
            Ok(0) => self.end(Ended::Here),
            Ok(got) => got,
        };
        self.ready.end += got;
        Ok(got > 0)
    }

    fn end(&mut self, why: Ended) -> usize {
        self.ended = Some(why);
        0
    }
}
