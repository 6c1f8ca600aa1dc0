//! The interface of an [`Entry`] to the server: snapshots, rewrites of the append-only file, debug
//! digests and copies.

use super::Persist;
use super::entry::{BAD_HEADER, Entry, PartialStream};
use super::header::StreamHeader;
use super::received::Received;
use super::stream::{CHUNK_BYTES, Stream, cursor, decode};
use crate::config;
use crate::error::{Error, Result};
use crate::server::{AofWriter, DebugDigest, RdbReader, RdbWriter, TypeHandle, Value};
use std::ffi::CStr;
use std::io::{self, Read};
use umbel::memory::Mover;

/// The longest stream that is decoded while it is read. A longer one is collected first: a damaged
/// header cannot then make the server allocate more memory for a filter than the snapshot has
/// bytes.
const MAX_STREAMED_BYTES: u64 = 64 << 20;

/// The tag of [`Entry::Ready`] in a snapshot.
const READY: u64 = 0;

/// The tag of [`Entry::Partial`] in a snapshot.
const PARTIAL: u64 = 1;

/// The number of words that are added to a debug digest at once; the server limits the length of
/// one addition.
const DIGEST_WORDS: usize = 1 << 16;

impl<P: Persist> Value for Entry<P> {
    const NAME: &'static CStr = P::NAME;

    fn type_handle() -> &'static TypeHandle {
        P::type_handle()
    }

    fn save(&self, to: &mut RdbWriter<'_>) -> Result<()> {
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
            other => Err(Error::UnknownState(other)),
        }
    }

    fn rewrite(&self, to: &mut AofWriter<'_>) -> Result<()> {
        let mut send = |end: u64, chunk: &[u8]| to.command(P::LOAD_COMMAND, cursor(end), chunk);
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
                partial.received.chunks().for_each(|(_, chunk)| digest.bytes(&chunk));
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        let contents = match self {
            Entry::Ready(value) => value.memory_bytes(),
            Entry::Partial(partial) => partial.received.memory_bytes(),
        };
        size_of::<Self>() + contents
    }

    fn copy(&self) -> Option<Self> {
        match self {
            Entry::Ready(value) => value.copy().ok().map(Entry::Ready),
            Entry::Partial(PartialStream { total, received }) => {
                let received = received.try_clone().ok()?;
                Some(Entry::Partial(PartialStream { total: *total, received }))
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

/// Loads a complete value.
fn load_ready<P: Persist>(from: &mut RdbReader<'_>) -> Result<P> {
    let chunk = from.bytes()?;
    let header = StreamHeader::parse::<P>(&chunk).ok_or(BAD_HEADER)?;
    let total = header.stream_length().unwrap_or(u64::MAX);
    // The stream of a value is a little longer than the value.
    config::check_memory(total - total / 8).map_err(Error::Part)?;
    if total <= MAX_STREAMED_BYTES {
        let mut reader = StringReader { from, chunk, at: header.len };
        return decode(&header, &mut reader, &config::ring());
    }
    let mut partial = PartialStream { total, received: Received::default() };
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
