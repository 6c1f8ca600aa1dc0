//! The interface of an [`Entry`] to the server: snapshots, rewrites of the append-only file, debug
//! digests and copies.

use super::Persist;
use super::entry::{Entry, PartialStream};
use super::header::StreamHeader;
use super::stream::{CHUNK_BYTES, Stream, cursor, decode};
use crate::config;
use crate::error::{Error, Result};
use crate::server::{AofWriter, DebugDigest, RdbReader, RdbWriter, TypeHandle, Value};
use std::ffi::CStr;
use std::io::{self, Read};
use std::iter;
use umbel::file::fields::sum;
use umbel::memory::Mover;

/// The longest stream that is decoded while it is read. A longer one is collected first: a damaged
/// header cannot then make the server allocate more memory for a filter than the snapshot has
/// bytes.
const MAX_STREAMED_BYTES: u64 = 64 << 20;

/// The tag of [`Entry::Ready`] in a snapshot.
const READY: u64 = 0;

/// The tag of [`Entry::Partial`] in a snapshot.
const PARTIAL: u64 = 1;

/// The tag of either in the layout of RedisBloom.
const REDISBLOOM: u64 = 2;

/// The number of words that are added to a debug digest at once; the server limits the length of
/// one addition.
const DIGEST_WORDS: usize = 1 << 16;

impl<P: Persist> Value for Entry<P> {
    const NAME: &'static CStr = P::NAME;

    fn type_handle() -> &'static TypeHandle {
        P::type_handle()
    }

    fn save(&self, to: &mut RdbWriter<'_>) -> Result<()> {
        if let Some((header, chunks)) = self.redisbloom_chunks() {
            to.number(REDISBLOOM);
            // An empty chunk is the end.
            let parts = iter::once(header).chain(chunks.map(|(_, chunk)| chunk)).chain([Vec::new()]);
            parts.for_each(|part| {
                to.bytes(&part);
                to.number(sum(&part));
            });
            return Ok(());
        }
        match self {
            Entry::Ready(value) => {
                to.number(READY);
                let stream = Stream::new(value)?;
                stream.chunks().for_each(|(_, chunk)| to.bytes(&chunk));
            }
            Entry::Partial(partial) => {
                to.number(PARTIAL);
                to.number(partial.received.len().div_ceil(CHUNK_BYTES));
                partial.received.chunks().for_each(|(_, chunk)| to.bytes(&chunk));
            }
        }
        Ok(())
    }

    fn load(from: &mut RdbReader<'_>) -> Result<Self> {
        match from.number()? {
            READY => load_ready(from).map(Entry::Ready),
            PARTIAL => load_partial(from),
            REDISBLOOM => load_redisbloom(from),
            other => Err(Error::UnknownState(other)),
        }
    }

    fn rewrite(&self, to: &mut AofWriter<'_>) -> Result<()> {
        let mut send = |end: u64, chunk: &[u8]| to.command(P::LOAD_COMMAND, cursor(end), chunk);
        if let Some((header, chunks)) = self.redisbloom_chunks() {
            send(0, &header);
            chunks.for_each(|(end, chunk)| send(end, &chunk));
            return Ok(());
        }
        match self {
            Entry::Ready(value) => {
                let stream = Stream::new(value)?;
                stream.chunks().for_each(|(end, chunk)| send(end, &chunk));
            }
            Entry::Partial(partial) => {
                partial.received.chunks().for_each(|(end, chunk)| send(end, &chunk));
            }
        }
        Ok(())
    }

    fn debug_digest(&self, digest: &mut DebugDigest<'_>) {
        match self {
            // The stream is not suitable: it also counts insertions of keys that were already
            // present, and that number may differ.
            Entry::Ready(value) => {
                value.numbers().iter().for_each(|number| digest.bytes(&number.to_le_bytes()));
                for section in value.sections() {
                    for words in section.words().chunks(DIGEST_WORDS) {
                        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                        digest.bytes(&bytes);
                    }
                }
            }
            Entry::Partial(partial) => {
                partial.redisbloom.iter().for_each(|header| digest.bytes(header));
                partial.received.chunks().for_each(|(_, chunk)| digest.bytes(&chunk));
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        let contents = match self {
            Entry::Ready(value) => value.memory_bytes(),
            Entry::Partial(partial) => {
                partial.received.memory_bytes() + partial.redisbloom.as_ref().map_or(0, Vec::capacity)
            }
        };
        size_of::<Self>() + contents
    }

    fn copy(&self) -> Option<Self> {
        match self {
            Entry::Ready(value) => value.copy().ok().map(Entry::Ready),
            Entry::Partial(PartialStream { total, received, redisbloom }) => {
                let (received, redisbloom) = (received.try_clone().ok()?, redisbloom.clone());
                Some(Entry::Partial(PartialStream { total: *total, received, redisbloom }))
            }
        }
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        match self {
            Entry::Ready(value) => value.relocate(mover),
            // Its bytes are short-lived.
            Entry::Partial(_) => {}
        }
    }
}

/// The chunks of a dump behind its header, each with the offset of its end.
type DataChunks<'a> = Box<dyn Iterator<Item = (u64, Vec<u8>)> + 'a>;

impl<P: Persist> Entry<P> {
    /// Returns the header of the dump and the chunks behind it, as far as they have arrived, if the
    /// value has the layout of RedisBloom.
    fn redisbloom_chunks(&self) -> Option<(Vec<u8>, DataChunks<'_>)> {
        match self {
            Entry::Ready(value) => {
                let dump = value.redisbloom()?;
                let chunk = |from| Some(dump.chunk(from)).filter(|(next, _)| *next > 0);
                let chunks = iter::successors(chunk(1), move |(next, _)| chunk(*next));
                Some((dump.header(), Box::new(chunks.map(|(next, chunk)| (next - 1, chunk)))))
            }
            Entry::Partial(partial) => {
                Some((partial.redisbloom.clone()?, Box::new(partial.received.chunks())))
            }
        }
    }
}

/// Loads a complete value.
fn load_ready<P: Persist>(from: &mut RdbReader<'_>) -> Result<P> {
    let chunk = from.bytes()?;
    let header = StreamHeader::parse::<P>(&chunk).ok_or(Error::BAD_HEADER)?;
    let total = header.stream_length().unwrap_or(u64::MAX);
    // The stream of a value is a little longer than the value.
    config::check_memory(total - total / 8).map_err(Error::Part)?;
    if total <= MAX_STREAMED_BYTES {
        let mut reader = StringReader { from, chunk, at: header.len };
        return decode(&header, &mut reader, &config::ring());
    }
    let mut partial = PartialStream { total, ..Default::default() };
    partial.received.append(&chunk)?;
    while partial.received.len() < total {
        let chunk = from.bytes()?;
        if chunk.is_empty() {
            return Err(Error::Malformed("it has an empty chunk"));
        }
        partial.received.append(&chunk)?;
    }
    partial.decode(&config::ring())
}

/// Loads a stream that was not complete when the snapshot was taken.
fn load_partial<P: Persist>(from: &mut RdbReader<'_>) -> Result<Entry<P>> {
    let chunks = from.number()?;
    let (mut entry, mut end) = (None::<Entry<P>>, 0u64);
    for _ in 0..chunks {
        let chunk = from.bytes()?;
        end = end.checked_add(chunk.len() as u64).ok_or(Error::Malformed("it is too long"))?;
        let appended = match &mut entry {
            None => Entry::from_first_chunk(end, &chunk).map(|first| entry = Some(first)),
            Some(entry) => entry.append_chunk(end, &chunk),
        };
        appended.map_err(Error::Part)?;
    }
    entry.ok_or(Error::Malformed("it is empty"))
}

/// Loads a value in the layout of RedisBloom, complete or not.
fn load_redisbloom<P: Persist>(from: &mut RdbReader<'_>) -> Result<Entry<P>> {
    let mut next_part = || {
        let part = from.bytes()?;
        match from.number()? == sum(&part) {
            true => Ok(part),
            false => Err(Error::Malformed("a part of it is damaged")),
        }
    };
    let mut entry = Entry::<P>::from_first_chunk(0, &next_part()?).map_err(Error::Part)?;
    let mut end = 0u64;
    loop {
        let chunk = next_part()?;
        if chunk.is_empty() {
            return Ok(entry);
        }
        end = end.saturating_add(chunk.len() as u64);
        entry.append_chunk(end, &chunk).map_err(Error::Part)?;
    }
}

/// Reads the strings of a snapshot as one stream of bytes.
struct StringReader<'a, 'b> {
    from: &'a mut RdbReader<'b>,
    chunk: Vec<u8>,
    /// The offset in the chunk.
    at: usize,
}

impl Read for StringReader<'_, '_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() {
            self.chunk = self.from.bytes().map_err(io::Error::other)?;
            self.at = 0;
        }
        let read = (&self.chunk[self.at..]).read(to)?;
        self.at += read;
        Ok(read)
    }
}
