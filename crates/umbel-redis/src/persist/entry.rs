//! The value of a key: complete, or a stream with missing chunks.

use super::Persist;
use super::header::{MAX_HEADER_BYTES, StreamHeader};
use super::received::Received;
use super::stream::decode;
use crate::config;
use crate::error::{self, Error};
use crate::server::memory::Replacement;
use crate::server::{Failure, Result, note_rejected};
use umbel::file::FormatError;
use umbel::hash::KeyRing;

/// The value of a key.
#[derive(Debug)]
pub enum Entry<P> {
    /// A complete value.
    Ready(P),
    /// A stream that is not complete yet.
    Partial(PartialStream),
}

/// The bytes of a stream that have arrived so far.
#[derive(Debug, Default)]
pub struct PartialStream {
    /// The length of the whole stream.
    pub total: u64,
    /// The bytes, which begin with the header, unless it is that of RedisBloom.
    pub received: Received,
    /// The header of a dump of RedisBloom, which is not among the bytes.
    pub redisbloom: Option<Vec<u8>>,
}

impl PartialStream {
    /// Returns the header, if all of it has arrived and is valid.
    fn header<P: Persist>(&self) -> Option<StreamHeader> {
        StreamHeader::parse::<P>(&self.received.first_bytes(0, MAX_HEADER_BYTES as u64))
    }

    /// Decodes the value of a complete stream.
    pub fn decode<P: Persist>(&self, ring: &KeyRing) -> error::Result<P> {
        // The value takes the place of these bytes.
        let _replacement = Replacement::of(self.received.memory_bytes());
        if let Some(header) = &self.redisbloom {
            return P::restore_redisbloom(header, &mut self.received.reader(0));
        }
        let header = self.header::<P>().ok_or(Error::BAD_HEADER)?;
        decode(&header, &mut self.received.reader(header.len as u64), ring)
    }
}

/// Counts a rejected chunk and returns the failure for it.
fn bad_data() -> Failure {
    note_rejected();
    Failure::new("received bad data")
}

/// Counts rejected bytes and returns the failure for them, which names the problem.
fn bad_value(error: Error) -> Failure {
    note_rejected();
    match error {
        Error::Filter(error @ umbel::Error::OutOfMemory { .. }) => Failure::from(error),
        Error::MissingSecret { id } => Failure::MissingSecret(id),
        // Clients of RedisBloom compare this text.
        Error::Format(FormatError::NotAFilter) => Failure::new("received bad data"),
        error => Failure::new(format!("received bad data: {error:#}")),
    }
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

    /// Starts an entry with the first chunk of a stream, which ends at this offset; that of a dump
    /// of RedisBloom, which is its header, ends at 0.
    pub fn from_first_chunk(end: u64, chunk: &[u8]) -> Result<Entry<P>> {
        if end == 0 && !chunk.is_empty() {
            let total = P::redisbloom_bytes(chunk).map_err(bad_value)?;
            config::check_memory(total)?;
            let redisbloom = Some(chunk.to_vec());
            return Ok(Entry::Partial(PartialStream { total, redisbloom, ..Default::default() }));
        }
        if end != chunk.len() as u64 {
            return Err(bad_data());
        }
        let header = StreamHeader::parse::<P>(chunk);
        let total = header.and_then(|header| header.stream_length()).ok_or_else(bad_data)?;
        // The stream of a value is a little longer than the value.
        config::check_memory(total - total / 8)?;
        let mut entry = Entry::Partial(PartialStream { total, ..Default::default() });
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
        let (received, total) = (partial.received.len(), partial.total);
        if chunk.is_empty() || received.checked_add(chunk.len() as u64) != Some(end) || end > total {
            return Err(match partial.redisbloom {
                None => bad_data(),
                Some(_) => bad_value(Error::Malformed("chunks have to arrive in the order of SCANDUMP")),
            });
        }
        partial.received.append(chunk)?;
        if end < total {
            return Ok(());
        }
        let failure = match partial.decode(ring) {
            Ok(value) => {
                *self = Entry::Ready(value);
                return Ok(());
            }
            Err(error) => bad_value(error),
        };
        // Forget the chunk, so that the client can send it again undamaged.
        partial.received.truncate(received);
        Err(failure)
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
        let total = (header.len() as u64).checked_add(length).ok_or_else(bad_data)?;
        let mut received = Received::default();
        received.append(&header)?;
        Ok(Entry::Partial(PartialStream { total, received, ..Default::default() }))
    }

    /// Returns how much of a file has arrived, or `None` if an earlier file could not be stored.
    ///
    /// # Errors
    ///
    /// If the entry is ready.
    pub fn file_progress(&self) -> Result<Option<FileProgress>> {
        let Entry::Partial(partial) = self else { return Err(Failure::new("item exists")) };
        Ok(partial.header::<P>().map(|header| {
            let header = header.len as u64;
            FileProgress { received: partial.received.len() - header, length: partial.total - header }
        }))
    }

    /// Appends bytes of a file. Takes the value out of the entry and returns it when the file is
    /// complete.
    pub fn append_to_file(&mut self, bytes: &[u8], ring: &KeyRing) -> Result<Option<P>> {
        let Entry::Partial(partial) = self else { return Err(bad_data()) };
        let end = partial.received.len().saturating_add(bytes.len() as u64);
        self.append(end, bytes, ring)?;
        if let Entry::Partial(_) = self {
            return Ok(None);
        }
        match std::mem::replace(self, Entry::Partial(PartialStream::default())) {
            Entry::Ready(value) => Ok(Some(value)),
            Entry::Partial(_) => Err(bad_data()),
        }
    }
}
