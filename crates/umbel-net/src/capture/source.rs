//! Bytes of a capture, as they come: a buffer that grows only with what was read, over a file or pipe that may be compressed.

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};
use std::ops::Range;

/// The number of bytes that are read at once, and the size of the buffer while no record needs more.
const CHUNK_BYTES: usize = 1 << 18;

/// The start of a compressed input.
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

/// Why nothing more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is the end.
    Here,
    /// Compressed data end before their end.
    Early,
    /// Compressed data cannot be decompressed from here on.
    Corrupt,
}

/// A buffered input.
pub struct Source<'r> {
    input: Box<dyn Read + Send + 'r>,
    buffer: Vec<u8>,
    /// What of the buffer has been read, and not yet been taken.
    ready: Range<usize>,
    /// How many bytes were taken.
    taken: u64,
    ended: Option<Ended>,
}

impl<'r> Source<'r> {
    /// Looks at the first bytes, and decompresses if they say so.
    pub fn new(mut input: impl Read + Send + 'r) -> io::Result<Source<'r>> {
        let mut start = Vec::new();
        input.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut start)?;
        let compressed = start == GZIP_MAGIC;
        let whole = Cursor::new(start).chain(input);
        let input: Box<dyn Read + Send + 'r> = match compressed {
            true => Box::new(MultiGzDecoder::new(BufReader::with_capacity(CHUNK_BYTES, whole))),
            false => Box::new(whole),
        };
        Ok(Source { input, buffer: Vec::new(), ready: 0..0, taken: 0, ended: None })
    }

    /// Whether so many bytes are ready, after reading what is missing.
    pub fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        while self.ready.len() < wanted {
            if !self.read_more(wanted)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The bytes that are ready.
    pub fn ready(&self) -> &[u8] {
        self.buffer.get(self.ready.clone()).unwrap_or_default()
    }

    /// Consumes bytes that are ready, and returns their range in the buffer, which holds until more is read.
    pub fn consume(&mut self, count: usize) -> Range<usize> {
        let taken = self.ready.start..(self.ready.start + count).min(self.ready.end);
        self.ready.start = taken.end;
        self.taken += taken.len() as u64;
        taken
    }

    /// Returns bytes that were consumed.
    pub fn at(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or_default()
    }

    /// Goes past so many bytes, keeping none; whether there were so many.
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

    /// How large the buffer is.
    pub fn memory(&self) -> usize {
        self.buffer.capacity()
    }

    /// How many bytes were taken so far, of what they are when decompressed.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Why nothing more came.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Reads once, as much as there is, for a record of so many bytes; whether there was something.
    fn read_more(&mut self, wanted: usize) -> io::Result<bool> {
        if self.ended.is_some() {
            return Ok(false);
        }
        let ready = self.ready.len();
        // Moved only when the record would not fit, so that small records are seldom moved.
        if self.buffer.len() - self.ready.start < wanted.max(ready + 1) {
            self.buffer.copy_within(self.ready.clone(), 0);
            self.ready = 0..ready;
        }
        // Twice what has come is the most that is taken on trust.
        let size = wanted.min(ready * 2).max(CHUNK_BYTES);
        if self.buffer.len() < size {
            // Exactly, where a vector would double itself.
            self.buffer.reserve_exact(size - self.buffer.len());
            self.buffer.resize(size, 0);
        }
        let got = loop {
            match self.input.read(&mut self.buffer[self.ready.end..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => match error.kind() {
                    ErrorKind::UnexpectedEof => break self.end(Ended::Early),
                    // What the decoder says; the system does not.
                    ErrorKind::InvalidData | ErrorKind::InvalidInput => break self.end(Ended::Corrupt),
                    _ => return Err(error),
                },
                Ok(0) => break self.end(Ended::Here),
                Ok(got) => break got,
            }
        };
        self.ready.end += got;
        Ok(got > 0)
    }

    fn end(&mut self, why: Ended) -> usize {
        self.ended = Some(why);
        0
    }
}
