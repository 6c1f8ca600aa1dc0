//! The value of a key: complete, or a stream with missing chunks.

use super::Persist;
use super::header::StreamHeader;
use super::stream::decode;
use crate::config;
use crate::error::{self, Error};
use crate::server::{Failure, Result, note_rejected};
use std::collections::{VecDeque, vec_deque};
use std::io::{self, Read};
use umbel::hash::KeyRing;

pub const BAD_HEADER: Error = Error::Malformed("its header is invalid");

/// The value of a key.
#[derive(Debug)]
pub enum Entry<P> {
    /// A complete value.
    Ready(P),
    /// A stream that is not complete yet.
    Partial(PartialStream),
}

/// The chunks of a stream that have arrived so far.
#[derive(Debug, Clone)]
pub struct PartialStream {
    /// The length of the whole stream.
    pub total: u64,
    /// The length of all chunks.
    pub received: u64,
    /// The chunks; the first begins with the header.
    pub chunks: VecDeque<Vec<u8>>,
}

impl PartialStream {
    /// Decodes the value of a complete stream.
    pub fn decode<P: Persist>(&self, ring: &KeyRing) -> error::Result<P> {
        let first = self.chunks.front().map(Vec::as_slice).unwrap_or_default();
        let header = StreamHeader::parse::<P>(first).ok_or(BAD_HEADER)?;
        let mut reader = ChunkReader { chunks: self.chunks.iter(), current: &first[header.len..] };
        reader.chunks.next();
        decode(&header, &mut reader, ring)
    }
}

/// Reads chunks as one stream of bytes.
struct ChunkReader<'a> {
    chunks: vec_deque::Iter<'a, Vec<u8>>,
    current: &'a [u8],
}

impl Read for ChunkReader<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            let Some(next) = self.chunks.next() else { return Ok(0) };
            self.current = next;
        }
        self.current.read(to)
    }
}

/// Counts a rejected chunk and returns the failure for it.
fn bad_data() -> Failure {
    note_rejected();
    Failure::new("received bad data")
}

fn incomplete() -> Failure {
    Failure::new("the filter is incomplete: continue with LOADCHUNK or UMBEL.IMPORT, or delete the key")
}

impl<P: Persist> Entry<P> {
    /// Returns the value.
    ///
    /// # Errors
    ///
    /// If it is not complete yet.
    pub fn ready(&self) -> Result<&P> {
        match self {
            Entry::Ready(value) => Ok(value),
            Entry::Partial(_) => Err(incomplete()),
        }
    }

    /// Returns the value, to be changed.
    ///
    /// # Errors
    ///
    /// If it is not complete yet.
    pub fn ready_mut(&mut self) -> Result<&mut P> {
        match self {
            Entry::Ready(value) => Ok(value),
            Entry::Partial(_) => Err(incomplete()),
        }
    }

    /// Starts an entry with the first chunk of a stream, which ends at this offset.
    pub fn from_first_chunk(end: u64, chunk: &[u8]) -> Result<Entry<P>> {
        if end != chunk.len() as u64 {
            return Err(bad_data());
        }
        let header = StreamHeader::parse::<P>(chunk);
        let total = header.and_then(|header| header.stream_length()).ok_or_else(bad_data)?;
        // The stream of a value is a little longer than the value.
        config::check_memory(total - total / 8)?;
        let mut entry = Entry::Partial(PartialStream { total, received: 0, chunks: VecDeque::new() });
        entry.append_chunk(end, chunk)?;
        Ok(entry)
    }

    /// Appends the next chunk of a stream, which ends at this offset. The last one makes the entry
    /// ready.
    pub fn append_chunk(&mut self, end: u64, chunk: &[u8]) -> Result<()> {
        self.append(end, chunk, &config::ring())
    }

    /// Appends a chunk; `ring` has the secrets of filters that arrive without their own.
    fn append(&mut self, end: u64, chunk: &[u8], ring: &KeyRing) -> Result<()> {
        let Entry::Partial(partial) = self else { return Err(bad_data()) };
        let (received, total) = (partial.received, partial.total);
        if chunk.is_empty() || received.checked_add(chunk.len() as u64) != Some(end) || end > total {
            return Err(bad_data());
        }
        partial.chunks.push_back(chunk.to_vec());
        partial.received = end;
        if end == total {
            match partial.decode(ring) {
                Ok(value) => *self = Entry::Ready(value),
                Err(error) => {
                    // Forget the chunk, so that the client can send it again undamaged.
                    partial.chunks.pop_back();
                    partial.received = received;
                    note_rejected();
                    return Err(Failure::new(format!("received bad data: {error:#}")));
                }
            }
        }
        Ok(())
    }
}

/// How much of a file has arrived.
pub struct FileProgress {
    pub received: u64,
    /// The length of the file.
    pub length: u64,
}

/// Files of the library arrive without a header, so the header of a value with a single filter is
/// put in front of them.
impl<P: Persist> Entry<P> {
    /// Starts an entry for a file of this length.
    pub fn for_file(length: u64) -> Result<Entry<P>> {
        config::check_memory(length)?;
        let header = StreamHeader::encode::<P>(&[], &[length], 0);
        let received = header.len() as u64;
        Ok(Entry::Partial(PartialStream { total: received + length, received, chunks: [header].into() }))
    }

    /// Returns how much of a file has arrived, or `None` if an earlier file could not be stored.
    ///
    /// # Errors
    ///
    /// If the entry is ready.
    pub fn file_progress(&self) -> Result<Option<FileProgress>> {
        let Entry::Partial(partial) = self else { return Err(Failure::new("item exists")) };
        Ok(partial.chunks.front().map(|header| {
            let header = header.len() as u64;
            FileProgress { received: partial.received - header, length: partial.total - header }
        }))
    }

    /// Appends bytes of a file. Takes the value out of the entry and returns it when the file is
    /// complete.
    pub fn append_to_file(&mut self, bytes: &[u8], ring: &KeyRing) -> Result<Option<P>> {
        let Entry::Partial(partial) = self else { return Err(bad_data()) };
        let end = partial.received.saturating_add(bytes.len() as u64);
        self.append(end, bytes, ring)?;
        if let Entry::Partial(_) = self {
            return Ok(None);
        }
        let empty = Entry::Partial(PartialStream { total: 0, received: 0, chunks: VecDeque::new() });
        match std::mem::replace(self, empty) {
            Entry::Ready(value) => Ok(Some(value)),
            Entry::Partial(_) => Err(bad_data()),
        }
    }
}
