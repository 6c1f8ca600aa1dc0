//! The file of a document: its contents in sealed chunks, its sealed head, and its indexes, which
//! are for the server. `docs/vault.md` in the repository describes the format.
//!
//! Contents are sealed as they are read, with the STREAM construction (Hoang, Reyhanitabar, Rogaway
//! and Vizár 2015). The nonce of a chunk consists of the document's id, the number of the chunk and
//! whether it is the last, so that no chunk can be removed, moved, or taken from another document.
//! The head authenticates everything that is not sealed.

use super::keys::{Cipher, Keys};
use super::zidx::{Id, Index, IndexShape, Trapdoor};
use crate::{Error, Result};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use umbel::internals::regular_file;

const MAGIC: &[u8; 8] = b"UMBELDOC";
const VERSION: u32 = 1;
/// The size of the start of a file: magic, version, four zeros, and the id.
const FRONT_BYTES: usize = 32;
/// The size of the end of a file: lengths of the contents and of the head, number of parts, bits of
/// a part, and the checksum.
const TRAILER_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 8;
/// The number of bytes in a sealed chunk, before encryption.
pub const CHUNK: usize = 1 << 16;
const TAG_BYTES: usize = 16;
/// The maximum size of a sealed head, far longer than the longest name needs.
const MAX_HEAD_BYTES: u64 = 1 << 17;
/// The multiple to which a head is padded, so that the length of a name is hardly visible.
const HEAD_STEP_BYTES: usize = 256;
/// The size of the numbers in a head, which precede the name.
const HEAD_NUMBER_BYTES: usize = 8 + 8 + 8 + 8 + 1 + 4;
/// The length to which shorter contents are padded.
const MIN_CONTENT_BYTES: u64 = 1024;
/// The maximum number of parts of a document's index.
pub const MAX_PARTS: u32 = 4096;
/// The maximum number of bits in a part. The shape of a vault has no more.
const MAX_PART_BITS: u64 = 1 << 27;

/// Returns the padded length of contents of this length, without the tags. It is at most 12 %
/// longer, and reveals only a few bits of the length (Padmé, Nikitin and others 2019).
pub fn padded(length: u64) -> u64 {
    let length = length.max(MIN_CONTENT_BYTES);
    let exponent = length.ilog2();
    let kept = exponent.ilog2() + 1;
    length.checked_next_multiple_of(1 << (exponent - kept)).unwrap_or(length)
}

/// The metadata of a document, which only the owner can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentHead {
    /// The name under which the document was added. It may be any bytes.
    pub name: Vec<u8>,
    /// The size of the document in bytes.
    pub size: u64,
    /// The time of the last modification in seconds since 1970, if it is known.
    pub modified: Option<i64>,
    /// The time at which the document was added, in seconds since 1970.
    pub added: i64,
    /// The number of distinct words.
    pub words: u64,
    /// Whether the document is text. Other documents have no words.
    pub is_text: bool,
}

impl DocumentHead {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.size.to_le_bytes());
        bytes.extend(self.modified.unwrap_or(i64::MIN).to_le_bytes());
        bytes.extend(self.added.to_le_bytes());
        bytes.extend(self.words.to_le_bytes());
        bytes.push(u8::from(self.is_text));
        bytes.extend((self.name.len() as u32).to_le_bytes());
        bytes.extend(&self.name);
        bytes.resize(bytes.len().next_multiple_of(HEAD_STEP_BYTES), 0);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<DocumentHead> {
        let (numbers, rest) = bytes.split_at_checked(HEAD_NUMBER_BYTES)?;
        let long = |at: usize| numbers.get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
        let length = u32::from_le_bytes(*numbers.last_chunk()?) as usize;
        Some(DocumentHead {
            name: rest.get(..length)?.to_vec(),
            size: long(0)?,
            modified: Some(long(8)? as i64).filter(|seconds| *seconds != i64::MIN),
            added: long(16)? as i64,
            words: long(24)?,
            is_text: numbers[32] != 0,
        })
    }
}

/// Returns the nonce of a chunk or of the head.
fn nonce(id: &Id, purpose: &[u8; 3], number: u32, last: bool) -> [u8; 24] {
    let mut nonce = [0; 24];
    nonce[..16].copy_from_slice(&id.0);
    nonce[16..19].copy_from_slice(purpose);
    nonce[19..23].copy_from_slice(&number.to_le_bytes());
    nonce[23] = u8::from(last);
    nonce
}

fn front(id: &Id) -> [u8; FRONT_BYTES] {
    let mut bytes = [0; FRONT_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..].copy_from_slice(&id.0);
    bytes
}

/// Seals contents and writes them to a file.
pub(super) struct Sealer<'a, W> {
    cipher: &'a Cipher,
    id: Id,
    to: W,
    chunk: Vec<u8>,
    number: u32,
    /// The size of the contents so far.
    pub size: u64,
    /// The number of bytes written for them.
    sealed: u64,
}

impl<'a, W: Write> Sealer<'a, W> {
    pub fn start(keys: &'a Keys, id: Id, mut to: W) -> io::Result<Sealer<'a, W>> {
        to.write_all(&front(&id))?;
        let chunk = Vec::with_capacity(CHUNK);
        Ok(Sealer { cipher: &keys.content, id, to, chunk, number: 0, size: 0, sealed: 0 })
    }

    /// Adds more contents.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.size += bytes.len() as u64;
        self.fill(bytes)
    }

    fn fill(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            // Whether a full chunk is the last one is known only when more bytes arrive.
            if self.chunk.len() == CHUNK {
                self.seal(false)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.chunk.len()));
            self.chunk.extend(now);
            bytes = later;
        }
        Ok(())
    }

    fn seal(&mut self, last: bool) -> io::Result<()> {
        let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, "it is too long for a vault");
        let nonce = nonce(&self.id, b"txt", self.number, last);
        let sealed = self.cipher.seal(&nonce, &self.chunk, &[]).ok_or_else(too_long)?;
        self.to.write_all(&sealed)?;
        self.sealed += sealed.len() as u64;
        self.number = self.number.checked_add(1).ok_or_else(too_long)?;
        self.chunk.clear();
        Ok(())
    }

    /// Writes the last chunk, the head and the indexes.
    pub fn finish(
        mut self,
        keys: &Keys,
        shape: &IndexShape,
        head: &DocumentHead,
        parts: &[Index],
    ) -> io::Result<()> {
        let zeros = [0; 4096];
        let mut missing = padded(self.size) - self.size;
        while missing > 0 {
            let now = missing.min(zeros.len() as u64);
            self.fill(&zeros[..now as usize])?;
            missing -= now;
        }
        self.seal(true)?;
        let plain = head.to_bytes();
        let mut numbers = Vec::new();
        numbers.extend(self.sealed.to_le_bytes());
        numbers.extend(
            [(plain.len() + TAG_BYTES) as u32, parts.len() as u32].map(u32::to_le_bytes).as_flattened(),
        );
        numbers.extend(shape.bits().to_le_bytes());
        let mut hash = Sha256::new().chain_update(front(&self.id));
        parts.iter().for_each(|part| hash.update(part.bits()));
        hash.update(&numbers);
        let hash: [u8; 32] = hash.finalize().into();
        let sealed = keys.head.seal(&nonce(&self.id, b"top", 0, true), &plain, &hash);
        self.to.write_all(&sealed.unwrap_or_default())?;
        parts.iter().try_for_each(|part| self.to.write_all(part.bits()))?;
        self.to.write_all(&numbers)?;
        self.to.write_all(&hash[..CHECKSUM_BYTES])?;
        self.to.flush()
    }
}

/// Opens a file of a vault. The server may have replaced it with anything.
pub(super) fn open_regular(path: &Path) -> Result<File> {
    if !fs::metadata(path).map_err(Error::io(path, "open"))?.is_file() {
        return Err(Error::damaged(path, "it is not a regular file"));
    }
    regular_file::open(path).map_err(Error::io(path, "open"))
}

/// A document in a vault, as the server sees it.
#[derive(Debug)]
pub(super) struct Document {
    pub path: PathBuf,
    pub id: Id,
    file: File,
    /// The sizes in bytes of the sealed contents and of the sealed head.
    pub content: u64,
    head: u64,
    pub parts: u32,
    bits: u64,
    numbers: [u8; TRAILER_BYTES - CHECKSUM_BYTES],
    sum: [u8; CHECKSUM_BYTES],
}

impl Document {
    /// Opens the file of a document. Checks its numbers against its length, and against the shape of
    /// the vault's indexes if it is known, so that no more is read than such a document has.
    pub fn open(path: &Path, id: Id, shape: Option<&IndexShape>) -> Result<Document> {
        let damaged = |what: &str| Error::damaged(path, what);
        let mut file = open_regular(path)?;
        let length = file.metadata().map_err(Error::io(path, "examine"))?.len();
        if length < (FRONT_BYTES + TRAILER_BYTES) as u64 {
            return Err(damaged("it is too short"));
        }
        let (mut start, mut end) = ([0; FRONT_BYTES], [0; TRAILER_BYTES]);
        file.read_exact(&mut start).map_err(Error::io(path, "read"))?;
        let version = start[8..].first_chunk().copied().map_or(0, u32::from_le_bytes);
        if start.starts_with(MAGIC) && version != VERSION {
            return Err(Error::Newer { path: path.to_owned(), version });
        }
        if start != front(&id) {
            return Err(damaged("it does not start as the document of its name"));
        }
        file.seek(SeekFrom::Start(length - TRAILER_BYTES as u64)).map_err(Error::io(path, "read"))?;
        file.read_exact(&mut end).map_err(Error::io(path, "read"))?;
        let (numbers, sum) = end.split_at(TRAILER_BYTES - CHECKSUM_BYTES);
        let long = |at: usize| numbers[at..].first_chunk().copied().map_or(0, u64::from_le_bytes);
        let short = |at: usize| numbers[at..].first_chunk().copied().map_or(0, u32::from_le_bytes);
        let (content, head, parts, bits) = (long(0), u64::from(short(8)), short(12), long(16));
        let sane = (1..=MAX_PARTS).contains(&parts)
            && bits.is_multiple_of(64)
            && (64..=MAX_PART_BITS).contains(&bits)
            && head <= MAX_HEAD_BYTES
            && content >= MIN_CONTENT_BYTES;
        let expected = u64::from(parts).checked_mul(bits / 8).and_then(|index| {
            index.checked_add(content)?.checked_add(head + (FRONT_BYTES + TRAILER_BYTES) as u64)
        });
        if !sane || expected != Some(length) {
            return Err(damaged("its length is not the one that it was written with"));
        }
        if shape.is_some_and(|shape| shape.bits() != bits) {
            return Err(damaged("its index does not have the shape of this vault's"));
        }
        let numbers = numbers.first_chunk().copied().unwrap_or_default();
        let sum = sum.first_chunk().copied().unwrap_or_default();
        Ok(Document { path: path.to_owned(), id, file, content, head, parts, bits, numbers, sum })
    }

    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<()> {
        let read = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.read_exact(bytes));
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::damaged(&self.path, "it was shortened"),
            _ => Error::io(&self.path, "read")(error),
        })
    }

    /// Calls `look` with each part of the index, and then verifies the checksum of all parts.
    fn parts(&mut self, mut look: impl FnMut(u32, &Index)) -> Result<[u8; 32]> {
        let size = self.bits / 8;
        let start = FRONT_BYTES as u64 + self.content + self.head;
        let mut hash = Sha256::new().chain_update(front(&self.id));
        let mut bytes = vec![0; size as usize];
        for part in 0..self.parts {
            self.read(start + u64::from(part) * size, &mut bytes)?;
            hash.update(&bytes);
            let index = Index::from_bits(bytes);
            look(part, &index);
            bytes = index.into_bits();
        }
        hash.update(self.numbers);
        let hash: [u8; 32] = hash.finalize().into();
        if hash[..CHECKSUM_BYTES] != self.sum {
            return Err(Error::damaged(&self.path, "the checksum of its index does not match"));
        }
        Ok(hash)
    }

    /// Returns whether the document may have the words of all trapdoors.
    pub fn may_contain(&mut self, trapdoors: &[Trapdoor]) -> Result<bool> {
        let id = self.id;
        let mut found = vec![false; trapdoors.len()];
        self.parts(|part, index| {
            for (found, trapdoor) in found.iter_mut().zip(trapdoors) {
                *found = *found || index.contains(&id, part, trapdoor);
            }
        })?;
        Ok(found.into_iter().all(|found| found))
    }

    /// Returns the number of bits of the index that are set, and the number of all bits.
    pub fn fill(&mut self) -> Result<[u64; 2]> {
        let mut ones = 0;
        self.parts(|_, index| ones += index.ones())?;
        Ok([ones, u64::from(self.parts) * self.bits])
    }

    /// Decrypts the head.
    pub fn head(&mut self, keys: &Keys) -> Result<DocumentHead> {
        let hash = self.parts(|_, _| ())?;
        let mut sealed = vec![0; self.head as usize];
        self.read(FRONT_BYTES as u64 + self.content, &mut sealed)?;
        let plain = keys.head.open(&nonce(&self.id, b"top", 0, true), &sealed, &hash);
        let plain = plain.ok_or_else(|| {
            Error::damaged(&self.path, "its head is not what was written, or is from another vault")
        })?;
        DocumentHead::from_bytes(&plain).ok_or_else(|| Error::damaged(&self.path, "its head makes no sense"))
    }

    /// Returns a reader of the contents, which verifies every chunk before it returns any byte of
    /// it.
    pub fn contents<'a>(self, keys: &'a Keys, head: &DocumentHead) -> Result<DocumentReader<'a>> {
        let Document { path, id, mut file, content, .. } = self;
        file.seek(SeekFrom::Start(FRONT_BYTES as u64)).map_err(Error::io(&path, "read"))?;
        let cipher = &keys.content;
        Ok(DocumentReader {
            file,
            cipher,
            id,
            sealed: content,
            size: head.size,
            number: 0,
            chunk: Vec::new(),
            at: 0,
        })
    }
}

/// Reads and decrypts contents.
pub(super) struct DocumentReader<'a> {
    file: File,
    cipher: &'a Cipher,
    id: Id,
    /// The number of sealed bytes still to be read.
    sealed: u64,
    /// The number of bytes of contents still to be read. Padding follows them.
    size: u64,
    number: u32,
    chunk: Vec<u8>,
    at: usize,
}

/// The error for a chunk that is not what was written.
#[derive(Debug)]
pub(super) struct BadChunk(u32);

impl fmt::Display for BadChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chunk {} of its contents is not what was written", self.0)
    }
}

impl std::error::Error for BadChunk {}

impl DocumentReader<'_> {
    /// Reads and verifies the next chunk.
    fn next(&mut self) -> io::Result<()> {
        let bad = |number| io::Error::new(io::ErrorKind::InvalidData, BadChunk(number));
        let length = self.sealed.min((CHUNK + TAG_BYTES) as u64);
        let mut sealed = vec![0; length as usize];
        self.file.read_exact(&mut sealed).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => bad(self.number),
            _ => error,
        })?;
        self.sealed -= length;
        let nonce = nonce(&self.id, b"txt", self.number, self.sealed == 0);
        let mut plain = self.cipher.open(&nonce, &sealed, &[]).ok_or_else(|| bad(self.number))?;
        plain.truncate(usize::try_from(self.size).unwrap_or(usize::MAX));
        self.size -= plain.len() as u64;
        self.number = self.number.wrapping_add(1);
        (self.chunk, self.at) = (plain, 0);
        Ok(())
    }
}

impl Read for DocumentReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Read up to the last chunk even if it contains only padding: it alone shows that no chunk
        // is missing.
        while self.at == self.chunk.len() && self.sealed > 0 {
            self.next()?;
        }
        if self.at == self.chunk.len() && self.size > 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, BadChunk(self.number)));
        }
        let now = buffer.len().min(self.chunk.len() - self.at);
        buffer[..now].copy_from_slice(&self.chunk[self.at..self.at + now]);
        self.at += now;
        Ok(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_hides_lengths_at_little_cost() {
        assert_eq!((padded(0), padded(1), padded(1024)), (1024, 1024, 1024));
        let mut told = std::collections::BTreeSet::new();
        for length in (1024..2_000_000).step_by(7) {
            let long = padded(length);
            assert!(long >= length && (long as f64) < 1.12 * length as f64, "{length}");
            told.insert(long);
        }
        assert!(told.len() < 300, "{}", told.len());
        assert_eq!(padded(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_head_survives_a_round_trip() {
        for name in [&b""[..], b"notes.txt", b"\xff\x00/..", &[b'n'; 5000]] {
            for modified in [None, Some(-5), Some(1_700_000_000)] {
                let head = DocumentHead {
                    name: name.to_vec(),
                    size: 3,
                    modified,
                    added: 7,
                    words: 2,
                    is_text: true,
                };
                let bytes = head.to_bytes();
                assert!(bytes.len().is_multiple_of(HEAD_STEP_BYTES));
                assert_eq!(DocumentHead::from_bytes(&bytes), Some(head));
            }
        }
        assert_eq!(DocumentHead::from_bytes(&[255; HEAD_STEP_BYTES]), None);
        assert_eq!(DocumentHead::from_bytes(&[0; 10]), None);
    }
}
