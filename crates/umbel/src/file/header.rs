//! The header of a file. `docs/format.md` describes it byte by byte.

use super::decode::part;
use super::{FormatError, Meta};
use crate::internals::secret::Secret;
use crate::{Design, Error, HashId, Kind, Result, Strength};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// The first bytes of every file.
pub const MAGIC: [u8; 8] = *b"\x89UMBEL\r\n";
const VERSION: u16 = 1;
/// "umbel" as a little-endian number.
const HEADER_SEED: u64 = 0x6c_65_62_6d_75;
/// The length of the fixed fields, up to and including the number of chunks.
const FIXED: usize = 80;
/// The length of the first fields, which keep their meaning in every version.
pub(super) const PREAMBLE: usize = 32;
/// Incompatible flag: the secret of a keyed hash is in the header.
const EMBEDDED_KEY: u32 = 1;
const UNKNOWN: u64 = u64::MAX;
/// Two lines of header and one of cells: the smallest file, reported for a file that is too short
/// to state its own length.
const SMALLEST_FILE: u64 = 128 + 64;

const SMALLEST_CHUNK: u32 = 16;
const LARGEST_CHUNK: u32 = 40;
const MAX_CHUNKS: u64 = 1 << 17;

/// The largest header of a file, whatever its version: 1 MiB of checksums, 1 MiB of metadata with
/// the lengths of 4096 entries, and more than enough for everything else. A reader refuses a longer
/// one before it reads it, since the length of a sparse file justifies nothing.
pub const MAX_HEADER_BYTES: u64 = 4 << 20;

/// The largest number of metadata entries.
const MAX_ENTRIES: usize = 4096;
/// The largest number of bytes in all names and values of the metadata.
const MAX_META_BYTES: usize = 1 << 20;

/// The decoded header of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header {
    pub kind: Kind,
    pub hash: StoredHash,
    pub design: Option<Design>,
    pub inserted: Option<u64>,
    pub params: Vec<u64>,
    pub sections: Vec<Section>,
    pub embedded_key: Option<Secret<[u8; 16]>>,
    pub meta: Meta,
    pub header_len: u64,
    pub file_len: u64,
    pub chunk_log2: u32,
    pub sums: Vec<u64>,
}

/// The hash as it is stored in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredHash {
    Digest(HashId),
    Family(u64),
}

/// A part of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub what: u32,
    pub offset: u64,
    pub len: u64,
}

impl StoredHash {
    fn encode(self) -> (u8, u64) {
        match self {
            StoredHash::Digest(HashId { strength: Strength::Fast, value }) => (1, value),
            StoredHash::Digest(HashId { strength: Strength::Keyed, value }) => (2, value),
            StoredHash::Digest(HashId { strength: Strength::Sealed, value }) => (3, value),
            StoredHash::Family(number) => (4, number),
        }
    }

    fn decode(tag: u8, value: u64) -> Option<StoredHash> {
        let strength = match tag {
            1 => Strength::Fast,
            2 => Strength::Keyed,
            3 => Strength::Sealed,
            4 => return Some(StoredHash::Family(value)),
            _ => return None,
        };
        Some(StoredHash::Digest(HashId { strength, value }))
    }
}

/// Returns the smallest chunk size, as a power of two, that splits a body of this length into at
/// most [`MAX_CHUNKS`].
pub(crate) fn chunk_log2(body: u64) -> u32 {
    (SMALLEST_CHUNK..LARGEST_CHUNK)
        .find(|log2| body.div_ceil(1 << log2) <= MAX_CHUNKS)
        .unwrap_or(LARGEST_CHUNK)
}

impl Header {
    /// Creates a header for a body of these lengths, to be completed and then
    /// [placed](Header::place).
    pub fn for_body(
        kind: Kind,
        hash: StoredHash,
        params: Vec<u64>,
        lengths: &[(u32, u64)],
        meta: Meta,
    ) -> Header {
        Header {
            kind,
            hash,
            design: None,
            inserted: None,
            params,
            sections: lengths.iter().map(|&(what, len)| Section { what, offset: 0, len }).collect(),
            embedded_key: None,
            meta,
            header_len: 0,
            file_len: 0,
            chunk_log2: 0,
            sums: Vec::new(),
        }
    }

    /// Rejects more metadata than a file may have.
    pub fn check_meta(&self) -> Result<()> {
        let (entries, bytes) = (self.meta.len(), self.meta_len());
        if entries > MAX_ENTRIES || bytes > MAX_META_BYTES {
            let got = format!("{entries} entries of {bytes} bytes");
            return Err(Error::parameter("metadata", got, "at most 4096 entries and 1 MiB"));
        }
        Ok(())
    }

    /// Computes lengths and offsets from everything else.
    pub fn place(&mut self) {
        let body: u64 =
            self.sections.iter().fold(0u64, |end, section| end.next_multiple_of(64) + section.len);
        self.chunk_log2 = chunk_log2(body);
        self.sums.resize(body.div_ceil(1 << self.chunk_log2) as usize, 0);
        self.header_len = (self.sums_offset() + 8 * self.sums.len() + 8).next_multiple_of(64) as u64;
        let mut end = self.header_len;
        for section in &mut self.sections {
            section.offset = end.next_multiple_of(64);
            end = section.offset + section.len;
        }
        self.file_len = end;
    }

    fn sums_offset(&self) -> usize {
        let meta = 8 * self.meta.len() + self.meta_len();
        let key = self.embedded_key.map_or(0, |key| key.0.len());
        (FIXED + 8 * self.params.len() + 24 * self.sections.len() + key + meta).next_multiple_of(8)
    }

    /// Returns the number of bytes in all names and values.
    pub fn meta_len(&self) -> usize {
        self.meta.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// Returns chunk `index` as a range of the file.
    pub fn chunk(&self, index: usize) -> std::ops::Range<u64> {
        let start = self.header_len + ((index as u64) << self.chunk_log2);
        start..self.file_len.min(start + (1 << self.chunk_log2))
    }

    /// Checks that these are the bytes of chunk `index`.
    pub fn check_chunk(&self, index: usize, bytes: &[u8]) -> Result<(), FormatError> {
        self.check_sum(index, chunk_sum(index, bytes))
    }

    /// Checks that all chunks of this file are intact.
    pub fn check_chunks(&self, file: &[u8]) -> Result<(), FormatError> {
        (0..self.sums.len()).try_for_each(|index| self.check_chunk(index, part(file, self.chunk(index))))
    }

    /// Checks that this is the checksum of chunk `index`.
    pub fn check_sum(&self, index: usize, sum: u64) -> Result<(), FormatError> {
        if sum == self.sums[index] {
            return Ok(());
        }
        let chunk = self.chunk(index);
        let part = format!("chunk {index} of {} (bytes {} to {})", self.sums.len(), chunk.start, chunk.end);
        Err(FormatError::Damaged { part })
    }

    pub fn encode(&self) -> Vec<u8> {
        let (hash, hash_value) = self.hash.encode();
        let mut bytes = Vec::with_capacity(self.header_len as usize);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.kind.number().to_le_bytes());
        bytes.extend(self.embedded_key.map_or(0, |_| EMBEDDED_KEY).to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend((self.header_len as u32).to_le_bytes());
        bytes.extend(self.file_len.to_le_bytes());
        bytes.extend([hash, self.chunk_log2 as u8]);
        bytes.extend((self.meta.len() as u16).to_le_bytes());
        bytes.extend((self.sections.len() as u32).to_le_bytes());
        bytes.extend(hash_value.to_le_bytes());
        bytes.extend(self.design.map_or(0, |design| design.capacity).to_le_bytes());
        bytes.extend(self.design.map_or(0.0, |design| design.rate).to_le_bytes());
        bytes.extend(self.inserted.unwrap_or(UNKNOWN).to_le_bytes());
        bytes.extend((self.params.len() as u32).to_le_bytes());
        bytes.extend((self.sums.len() as u32).to_le_bytes());
        self.params.iter().for_each(|param| bytes.extend(param.to_le_bytes()));
        for section in &self.sections {
            bytes.extend(u64::from(section.what).to_le_bytes());
            bytes.extend(section.offset.to_le_bytes());
            bytes.extend(section.len.to_le_bytes());
        }
        bytes.extend(self.embedded_key.iter().flat_map(|key| key.0));
        for (name, value) in &self.meta {
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend((value.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
            bytes.extend(value.as_bytes());
        }
        bytes.resize(self.sums_offset(), 0);
        self.sums.iter().for_each(|sum| bytes.extend(sum.to_le_bytes()));
        bytes.resize(self.header_len as usize - 8, 0);
        bytes.extend(xxh3_64_with_seed(&bytes, HEADER_SEED).to_le_bytes());
        bytes
    }

    /// Returns the length of the header, from the first bytes of a file of this length.
    pub fn len_of(preamble: &[u8], file_len: u64) -> Result<usize, FormatError> {
        let seen = preamble.len().min(MAGIC.len());
        if seen == 0 || preamble[..seen] != MAGIC[..seen] {
            return Err(FormatError::NotAFilter);
        }
        if preamble.len() < PREAMBLE {
            return Err(FormatError::Length { expected: SMALLEST_FILE, found: file_len });
        }
        let mut reader = Reader(&preamble[20..]);
        let (len, expected) = (u64::from(reader.u32()?), reader.u64()?);
        if len < FIXED as u64 || !len.is_multiple_of(64) {
            return Err(FormatError::Damaged { part: "the header".into() });
        }
        if len > MAX_HEADER_BYTES {
            let what = format!("its header claims {len} bytes of at most {MAX_HEADER_BYTES}");
            return Err(FormatError::invalid(what));
        }
        if len > file_len {
            return Err(FormatError::Length { expected: expected.max(len), found: file_len });
        }
        usize::try_from(len).map_err(|_| FormatError::invalid("the header does not fit into memory"))
    }

    /// Decodes a header of exactly the length that [`Header::len_of`] returned.
    pub fn decode(bytes: &[u8], file_len: u64) -> Result<Header, FormatError> {
        let (content, sum) = bytes.split_at(bytes.len() - 8);
        if xxh3_64_with_seed(content, HEADER_SEED) != Reader(sum).u64()? {
            return Err(FormatError::Damaged { part: "the header".into() });
        }
        let mut reader = Reader(&content[MAGIC.len()..]);
        let version = reader.u16()?;
        if version > VERSION {
            return Err(FormatError::Newer { version });
        }
        let kind = reader.u16()?;
        let incompatible = reader.u32()?;
        if incompatible & !EMBEDDED_KEY != 0 {
            let unknown = incompatible & !EMBEDDED_KEY;
            return Err(FormatError::Unknown { what: format!("features {unknown:#x}") });
        }
        let _compatible = reader.u32()?;
        let header_len = u64::from(reader.u32()?);
        let expected = reader.u64()?;
        if expected != file_len {
            return Err(FormatError::Length { expected, found: file_len });
        }
        if version == 0 {
            return Err(FormatError::invalid("version 0 does not exist"));
        }
        let kind = Kind::from_number(kind).ok_or(FormatError::Unknown { what: format!("kind {kind}") })?;
        let [hash, chunk_log2] = reader.array()?;
        let (entries, sections) = (reader.u16()?, reader.u32()?);
        let hash_value = reader.u64()?;
        let hash = StoredHash::decode(hash, hash_value)
            .ok_or(FormatError::Unknown { what: format!("hash {hash}") })?;
        let (capacity, rate, inserted) = (reader.u64()?, f64::from_bits(reader.u64()?), reader.u64()?);
        let (params, chunks) = (reader.u32()?, reader.u32()?);
        let params = reader.many(params.into(), 8, Reader::u64)?;
        let sections = reader.many(sections.into(), 24, |reader| {
            let what = u32::try_from(reader.u64()?);
            let what = what.map_err(|_| FormatError::invalid("a section's reserved bytes are not zero"))?;
            Ok(Section { what, offset: reader.u64()?, len: reader.u64()? })
        })?;
        let embedded_key =
            if incompatible & EMBEDDED_KEY != 0 { Some(Secret(reader.array()?)) } else { None };
        let mut meta = BTreeMap::new();
        if usize::from(entries) > MAX_ENTRIES {
            return Err(FormatError::invalid(format!("{entries} metadata entries")));
        }
        for _ in 0..entries {
            let (name, value) = (reader.u32()?, reader.u32()?);
            let (name, value) = (reader.text(name)?, reader.text(value)?);
            if meta.last_key_value().is_some_and(|(last, _)| *last >= name) {
                return Err(FormatError::invalid("metadata names are not in order"));
            }
            meta.insert(name, value);
        }
        let at = content.len() - reader.0.len();
        if reader.bytes(at.next_multiple_of(8) - at)?.iter().any(|byte| *byte != 0) {
            return Err(FormatError::invalid("bytes between its fields are not zero"));
        }
        let sums = reader.many(chunks.into(), 8, Reader::u64)?;
        let chunk_log2 = u32::from(chunk_log2);
        let header = Header {
            kind,
            hash,
            design: (capacity > 0 || rate != 0.0).then_some(Design { capacity, rate }),
            inserted: (inserted != UNKNOWN).then_some(inserted),
            params,
            sections,
            embedded_key,
            meta,
            header_len,
            file_len,
            chunk_log2,
            sums,
        };
        header.check()?;
        Ok(header)
    }

    /// Checks that the fields are consistent.
    fn check(&self) -> Result<(), FormatError> {
        if self.meta_len() > MAX_META_BYTES {
            return Err(FormatError::invalid(format!("{} bytes of metadata", self.meta_len())));
        }
        let body = self.file_len - self.header_len;
        // A chunk is read before its checksum is known to hold, so a large one needs a large file.
        if !(12..=chunk_log2(body)).contains(&self.chunk_log2) {
            let what = format!("chunks of 2^{} bytes in a body of {body}", self.chunk_log2);
            return Err(FormatError::invalid(what));
        }
        if self.sums.len() as u64 != body.div_ceil(1 << self.chunk_log2) {
            return Err(FormatError::invalid(format!("{} checksums for {body} bytes", self.sums.len())));
        }
        let mut end = self.header_len;
        for section in &self.sections {
            if section.offset != end.next_multiple_of(64) {
                return Err(FormatError::invalid("a section is not where the one before it ends"));
            }
            let fits = section.offset.checked_add(section.len).filter(|end| *end <= self.file_len);
            end = fits.ok_or_else(|| {
                let len = section.len;
                FormatError::invalid(format!(
                    "a section claims {len} bytes, but the file has only {}",
                    self.file_len
                ))
            })?;
        }
        if end != self.file_len {
            return Err(FormatError::invalid("the file does not end with its last section"));
        }
        if let Some(Design { capacity, rate }) = self.design
            && !(capacity > 0 && rate > 0.0 && rate < 1.0)
        {
            return Err(FormatError::invalid(format!("planned for {capacity} keys at a rate of {rate}")));
        }
        if self.embedded_key.is_some()
            && !matches!(self.hash, StoredHash::Digest(HashId { strength: Strength::Keyed, .. }))
        {
            return Err(FormatError::invalid("a secret is embedded that its hash does not use"));
        }
        Ok(())
    }
}

/// Returns the checksum of chunk `index`.
pub(super) fn chunk_sum(index: usize, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, index as u64)
}

/// The checksums of a body that arrives in pieces, which need not end where chunks do.
pub(super) struct ChunkSums {
    chunk: usize,
    sums: Vec<u64>,
    /// The state of a chunk whose first bytes have arrived, and their number.
    begun: Option<(Xxh3, usize)>,
}

impl ChunkSums {
    pub fn new(chunk_log2: u32) -> ChunkSums {
        ChunkSums { chunk: 1 << chunk_log2, sums: Vec::new(), begun: None }
    }

    pub fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let index = self.sums.len();
            if self.begun.is_none() && bytes.len() >= self.chunk {
                // The usual case, a whole chunk, needs no state between calls.
                let (whole, rest) = bytes.split_at(self.chunk);
                self.sums.push(chunk_sum(index, whole));
                bytes = rest;
                continue;
            }
            let (mut state, len) = self.begun.take().unwrap_or_else(|| (Xxh3::with_seed(index as u64), 0));
            let (piece, rest) = bytes.split_at(bytes.len().min(self.chunk - len));
            state.update(piece);
            if len + piece.len() == self.chunk {
                self.sums.push(state.digest());
            } else {
                self.begun = Some((state, len + piece.len()));
            }
            bytes = rest;
        }
    }

    /// Returns the checksums of the complete chunks.
    pub fn complete(&self) -> &[u64] {
        &self.sums
    }

    /// Returns all checksums; the last chunk may be shorter.
    pub fn finish(mut self) -> Vec<u64> {
        self.sums.extend(self.begun.map(|(state, _)| state.digest()));
        self.sums
    }
}

/// A reader of fields that returns an error, instead of panicking, when the bytes run out.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let short = || FormatError::invalid("the header claims more than it holds");
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        Ok(self.bytes(N)?.try_into().expect("exactly N bytes were taken"))
    }

    fn u16(&mut self) -> Result<u16, FormatError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, FormatError> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self, len: u32) -> Result<String, FormatError> {
        let text = std::str::from_utf8(self.bytes(len as usize)?);
        text.map(str::to_owned).map_err(|_| FormatError::invalid("metadata is not UTF-8"))
    }

    /// Reads `count` items of `size` bytes. Checks that the bytes exist before allocating memory
    /// for the items.
    fn many<T>(
        &mut self,
        count: u64,
        size: u64,
        mut item: impl FnMut(&mut Self) -> Result<T, FormatError>,
    ) -> Result<Vec<T>, FormatError> {
        if count * size > self.0.len() as u64 {
            return Err(FormatError::invalid("the header claims more than it holds"));
        }
        (0..count).map(|_| item(self)).collect()
    }
}
