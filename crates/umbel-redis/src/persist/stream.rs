//! The stream of a value, encoded chunk by chunk and decoded from any reader.

use super::Persist;
use super::header::StreamHeader;
use crate::config;
use crate::error::{Error, Result};
use std::io::Read;
use umbel::any::Stored;
use umbel::file::fields::sum;
use umbel::file::{self, Image};
use umbel::hash::KeyRing;
use umbel::memory::{LINE_BYTES, Words};

/// The length of every chunk but the last.
pub const CHUNK_BYTES: u64 = 8 << 20;

/// The stream of a value. Chunks are encoded on demand.
pub struct Stream<'a> {
    header: Vec<u8>,
    filters: Vec<Image<'a>>,
    /// The extra bytes, with their checksum.
    extra: Vec<u8>,
}

impl<'a> Stream<'a> {
    /// Returns the stream of a value. It contains the hash secret, unless that comes from a key file.
    pub fn new<P: Persist>(value: &'a P) -> umbel::Result<Stream<'a>> {
        let [embedded, without] =
            [true, false].map(|embed_key| file::Options { embed_key, ..Default::default() });
        let embeds = value.hash_id().is_some_and(config::embeds);
        let image = |filter| match embeds {
            // The library never embeds a sealed key, and a fast hash has none to embed.
            true => Image::new(filter, &embedded).or_else(|_| Image::new(filter, &without)),
            false => Image::new(filter, &without),
        };
        let filters = value.filters().into_iter().map(image).collect::<umbel::Result<Vec<Image<'a>>>>()?;
        let mut extra = value.extra()?;
        if !extra.is_empty() {
            let checksum = sum(&extra);
            extra.extend(checksum.to_le_bytes());
        }
        let lengths: Vec<u64> = filters.iter().map(Image::len).collect();
        let header = StreamHeader::encode::<P>(&value.numbers(), &lengths, extra.len() as u64);
        Ok(Stream { header, filters, extra })
    }

    /// Returns the length of the stream.
    pub fn len(&self) -> u64 {
        (self.header.len() + self.extra.len()) as u64 + self.filters.iter().map(Image::len).sum::<u64>()
    }

    /// Returns the chunk that starts at an offset; it is empty at the end of the stream.
    pub fn chunk(&self, offset: u64) -> Vec<u8> {
        let mut chunk = vec![0; self.len().saturating_sub(offset).min(CHUNK_BYTES) as usize];
        let (mut part_start, chunk_end) = (0, offset + chunk.len() as u64);
        // Copies the overlap of the next part of the stream with the chunk; `read` gets an offset
        // within the part.
        let mut copy_part = |len: u64, read: &dyn Fn(u64, &mut [u8])| {
            let (from, until) = (offset.max(part_start), chunk_end.min(part_start + len));
            if from < until {
                read(from - part_start, &mut chunk[(from - offset) as usize..(until - offset) as usize]);
            }
            part_start += len;
        };
        let copy = |from: &[u8], at: u64, to: &mut [u8]| to.copy_from_slice(&from[at as usize..][..to.len()]);
        copy_part(self.header.len() as u64, &|at, to| copy(&self.header, at, to));
        self.filters.iter().for_each(|filter| copy_part(filter.len(), &|at, to| filter.read(at, to)));
        copy_part(self.extra.len() as u64, &|at, to| copy(&self.extra, at, to));
        chunk
    }

    /// Returns all chunks, each with the offset of its end.
    pub fn chunks(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        (0..self.len()).step_by(CHUNK_BYTES as usize).map(|offset| {
            let chunk = self.chunk(offset);
            (offset + chunk.len() as u64, chunk)
        })
    }
}

/// Decodes the part of a stream behind its header.
///
/// # Errors
///
/// If a filter is damaged or needs a secret that is not in `ring`, or if the parts do not fit
/// together.
pub fn decode<P: Persist>(header: &StreamHeader, from: &mut impl Read, ring: &KeyRing) -> Result<P> {
    let filter = |length: &u64| file::read(from, *length, ring).map(|loaded| loaded.filter);
    let filters = header.filter_lengths.iter().map(filter).collect::<umbel::Result<Vec<Stored>>>()?;
    let extra = read_extra(from, header.extra_length)?;
    P::restore(&header.numbers, filters, &extra)
}

/// Reads the extra bytes and checks their checksum; `length` includes it. Memory is allocated as
/// bytes arrive.
fn read_extra(from: &mut impl Read, length: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes).map_err(Error::Io)?;
    if length == 0 {
        return Ok(bytes);
    }
    let (extra, checksum) = bytes.split_last_chunk::<8>().ok_or(Error::CUT)?;
    if bytes.len() as u64 != length || sum(extra).to_le_bytes() != *checksum {
        return Err(Error::Malformed("its end is damaged"));
    }
    bytes.truncate(bytes.len() - 8);
    Ok(bytes)
}

/// Returns memory with the contents that [`words_to_bytes`] has written.
///
/// # Errors
///
/// If there are none, or there is not enough memory.
pub fn words_from_bytes(bytes: &[u8]) -> umbel::Result<Words> {
    let mut words = Words::zeroed(bytes.len().div_ceil(LINE_BYTES) as u64)?;
    let numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    words.words_mut().iter_mut().zip(numbers).for_each(|(word, number)| *word = number);
    Ok(words)
}

/// Returns the contents of memory as little-endian bytes.
///
/// # Errors
///
/// If there is not enough memory for them.
pub fn words_to_bytes(words: &Words) -> umbel::Result<Vec<u8>> {
    let words = words.words();
    let mut bytes = Vec::new();
    let out_of_memory = |_| umbel::Error::OutOfMemory { bytes: size_of_val(words) as u64 };
    // The caller appends a checksum and, for a list, its items, which are small beside the memory.
    bytes.try_reserve_exact(size_of_val(words) + 64).map_err(out_of_memory)?;
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    Ok(bytes)
}

/// Returns the cursor of `SCANDUMP` and `LOADCHUNK` for an offset: one more, since 0 is the start
/// and the end.
pub fn cursor(offset: u64) -> i64 {
    i64::try_from(offset.saturating_add(1)).unwrap_or(i64::MAX)
}
