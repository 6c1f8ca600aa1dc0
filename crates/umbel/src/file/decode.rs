//! Decodes a filter from bytes.

use super::header::{ChunkSums, Header, PREAMBLE, Section, StoredHash};
use super::{FormatError, Meta, Options, ReadOnly};
use crate::internals::{regular_file, secret::Secret};
use crate::literature::{Family, Literature, Scheme};
use crate::memory::{LINE_BYTES, Words};
use crate::structure::{BITS, Head, Parts, small};
use crate::{Design, Error, HashId, Hasher, KeyRing, Kind, Result, Stored};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The contents of a file.
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded<F = Stored> {
    /// The filter.
    pub filter: F,
    /// The metadata.
    pub meta: Meta,
    /// Whether the secret of a `keyed` hash is in the file.
    pub embedded_key: bool,
}

impl<F> Loaded<F> {
    /// Returns the options that write the filter back the way it was stored.
    pub fn options(&self) -> Options {
        Options { meta: self.meta.clone(), embed_key: self.embedded_key, create_new: false }
    }
}

/// The information in the header of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Info {
    /// The kind of filter in the file.
    pub kind: Kind,
    /// The hash; `None` for a family of the literature.
    pub hash: Option<HashId>,
    /// The family of the literature, if the filter uses one.
    pub family: Option<Family>,
    /// Whether the secret of a `keyed` hash is in the file.
    pub embedded_key: bool,
    /// The capacity and rate that the filter was planned for.
    pub design: Option<Design>,
    /// The number of insertions, if it is known.
    pub inserted: Option<u64>,
    /// The metadata.
    pub meta: Meta,
    /// The length of the file.
    pub file_len: u64,
    /// The number of parts that have their own checksum, not counting the header.
    pub chunks: usize,
}

impl Info {
    pub(super) fn from_header(header: &Header) -> Info {
        let (hash, family) = match header.hash {
            StoredHash::Digest(id) => (Some(id), None),
            StoredHash::Family(number) => (None, u8::try_from(number).ok().and_then(Family::from_id)),
        };
        Info {
            kind: header.kind,
            hash,
            family,
            embedded_key: header.embedded_key.is_some(),
            design: header.design,
            inserted: header.inserted,
            meta: header.meta.clone(),
            file_len: header.file_len,
            chunks: header.sums.len(),
        }
    }
}

/// Reads the information in the header of a file. No secret is needed, and only the header is read
/// and verified.
///
/// # Errors
///
/// If the file cannot be read, or its header is invalid or damaged.
pub fn inspect(path: impl AsRef<Path>) -> Result<Info> {
    let path = path.as_ref();
    let (mut file, len) = open(path)?;
    let header = read_header(&mut file, len).map_err(|error| error.at(path))?;
    Ok(Info::from_header(&header))
}

/// Reads the information in the header from the first bytes of a file of length `len`, before the
/// whole file has arrived.
///
/// ```
/// use umbel::{Blocked, Bloom, Kind, file};
/// let filter = Bloom::<Blocked>::with_capacity(1_000_000, 0.01)?;
/// let bytes = file::to_bytes(&filter, &file::Options::default())?;
/// assert_eq!(file::inspect_start(&bytes[..10_000], bytes.len() as u64)?.kind, Kind::Blocked);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// [`FormatError::Length`] if the bytes end before the header does; otherwise if the header is
/// invalid or damaged.
pub fn inspect_start(mut bytes: &[u8], len: u64) -> Result<Info> {
    Ok(Info::from_header(&read_header(&mut bytes, len)?))
}

/// Reads and verifies a whole file, into newly allocated memory.
///
/// # Errors
///
/// If the file cannot be read, is invalid or damaged, or its secret is not in the ring, or if there
/// is not enough memory.
pub fn load(path: impl AsRef<Path>, ring: &KeyRing) -> Result<Loaded> {
    let path = path.as_ref();
    let (mut file, len) = open(path)?;
    read(&mut file, len, ring).map_err(|error| error.at(path))
}

/// Reads and verifies the bytes of a file, into newly allocated memory.
///
/// # Errors
///
/// If the bytes are invalid or damaged, the secret is not in the ring, or there is not enough
/// memory.
pub fn from_bytes(mut bytes: &[u8], ring: &KeyRing) -> Result<Loaded> {
    let len = bytes.len() as u64;
    read(&mut bytes, len, ring)
}

/// Verifies the bytes of a file that is compiled into the program, and uses them in place.
///
/// ```
/// use umbel::hash::KeyRing;
/// use umbel::file::{self, Aligned};
/// # mod demo { pub const BYTES: [u8; 256] = *include_bytes!("../../tests/golden/standard.umbel"); }
/// // static FRUIT: &Aligned<[u8]> = &Aligned(*include_bytes!("fruit.umbel"));
/// # static FRUIT: &Aligned<[u8]> = &Aligned(demo::BYTES);
/// let filter = file::from_static(&FRUIT.0, &KeyRing::new())?.filter;
/// assert!(filter.contains("apple"));
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// As [`from_bytes`]; also if the bytes are not aligned to 64 bytes, or the machine is big-endian.
pub fn from_static(bytes: &'static [u8], ring: &KeyRing) -> Result<Loaded<ReadOnly<Stored>>> {
    in_place()?;
    let header = decode_header(bytes)?;
    header.check_chunks(bytes)?;
    let filter = assemble(&header, ring, |offset, lines| {
        let misaligned =
            || Error::parameter("bytes", "memory", "64-byte alignment: wrap them in `file::Aligned`");
        Words::from_static(bytes, offset as usize, lines as usize).ok_or_else(misaligned)
    })?;
    filter.check_contents()?;
    Ok(Loaded { filter: ReadOnly(filter), embedded_key: header.embedded_key.is_some(), meta: header.meta })
}

/// Files store little-endian words, so on big-endian machines they can be loaded but not used in
/// place.
pub(super) fn in_place() -> Result<()> {
    if cfg!(target_endian = "big") {
        let needs = "little-endian words to use a file where it lies: use `load`";
        return Err(Error::parameter("machine", "big-endian", needs));
    }
    Ok(())
}

/// Aligns bytes as [`from_static`] requires.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Aligned<T: ?Sized>(pub T);

/// Opens a regular file and returns it with its length.
pub(crate) fn open(path: &Path) -> Result<(File, u64)> {
    let examine = |source| Error::io(path, "examine", source);
    let metadata = std::fs::metadata(path).map_err(|source| Error::io(path, "open", source))?;
    regular_file::check(&metadata).map_err(|source| Error::io(path, "read", source))?;
    let file = regular_file::open(path).map_err(|source| Error::io(path, "open", source))?;
    let len = file.metadata().map_err(examine)?.len();
    Ok((file, len))
}

/// Decodes the header at the start of a file's bytes.
pub(super) fn decode_header(bytes: &[u8]) -> Result<Header, FormatError> {
    let len = bytes.len() as u64;
    let header_len = Header::len_of(&bytes[..bytes.len().min(PREAMBLE)], len)?;
    Header::decode(&bytes[..header_len], len)
}

/// Returns a range of the file that its header has already bounded.
pub(super) fn part(bytes: &[u8], range: std::ops::Range<u64>) -> &[u8] {
    &bytes[range.start as usize..range.end as usize]
}

fn read_failed(source: io::Error) -> Error {
    Error::io(Path::new(""), "read", source)
}

fn read_header(from: &mut impl Read, len: u64) -> Result<Header> {
    let mut bytes = Vec::new();
    from.take(PREAMBLE as u64).read_to_end(&mut bytes).map_err(read_failed)?;
    let header_len = Header::len_of(&bytes, len)?;
    let out_of_memory = |_| Error::OutOfMemory { bytes: header_len as u64 };
    bytes.try_reserve_exact(header_len.saturating_sub(bytes.len())).map_err(out_of_memory)?;
    from.take((header_len - bytes.len()) as u64).read_to_end(&mut bytes).map_err(read_failed)?;
    if bytes.len() < header_len {
        return Err(FormatError::Length { expected: len, found: bytes.len() as u64 }.into());
    }
    Ok(Header::decode(&bytes, len)?)
}

/// Reads and verifies the `len` bytes of a file from a reader.
///
/// Address space is reserved as soon as the header claims it, and memory is used as bytes arrive that
/// are not zero. With an untrusted source, read all bytes first or bound `len`.
///
/// ```
/// use umbel::hash::KeyRing;
/// use umbel::{Blocked, Bloom, file};
/// let mut filter = Bloom::<Blocked>::with_capacity(1000, 0.01)?;
/// filter.insert("apple");
/// let bytes = file::to_bytes(&filter, &file::Options::default())?;
/// let (first, rest) = bytes.split_at(70);
/// let loaded = file::read(&mut std::io::Read::chain(first, rest), bytes.len() as u64, &KeyRing::new())?;
/// assert!(loaded.filter.contains("apple"));
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// As [`from_bytes`]; also if the reader fails.
pub fn read(from: &mut impl Read, len: u64, ring: &KeyRing) -> Result<Loaded> {
    let header = read_header(from, len)?;
    let mut sums = ChunkSums::new(header.chunk_log2);
    let mut checked = 0;
    let mut check = |sums: &[u64]| {
        let new = checked..sums.len();
        checked = sums.len();
        new.into_iter().try_for_each(|index| header.check_sum(index, sums[index]))
    };
    let (mut sections, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    for section in &header.sections {
        // The header's claims were checked against the file's length, so this is no more memory
        // than that. Where the file is zero, it is not touched and costs nothing, like the holes of
        // a sparse file.
        let mut words = Words::zeroed(lines(section)?)?;
        // In small pieces, so that the bytes are still in the cache when they are hashed.
        for piece in words.as_bytes_mut().chunks_mut(buffer.len()) {
            let read = &mut buffer[..piece.len()];
            from.read_exact(read).map_err(read_failed)?;
            sums.add(read);
            check(sums.complete())?;
            if read.iter().any(|byte| *byte != 0) {
                piece.copy_from_slice(read);
            }
        }
        words.convert_from_le();
        sections.push(words);
    }
    check(&sums.finish())?;
    let mut sections = sections.into_iter();
    let filter = assemble(&header, ring, |_, _| {
        sections.next().ok_or_else(|| FormatError::invalid("a section is missing").into())
    })?;
    filter.check_contents()?;
    Ok(Loaded { filter, embedded_key: header.embedded_key.is_some(), meta: header.meta })
}

/// Returns the number of lines in a section.
fn lines(section: &Section) -> Result<u64, FormatError> {
    let lines = section.len / LINE_BYTES as u64;
    if lines == 0 || !section.len.is_multiple_of(LINE_BYTES as u64) {
        let what = format!("a section of {} bytes, not a multiple of 64", section.len);
        return Err(FormatError::invalid(what));
    }
    Ok(lines)
}

/// Builds the filter that a header describes over the memory that `words` returns for an offset and
/// a number of lines.
pub(super) fn assemble(
    header: &Header,
    ring: &KeyRing,
    mut words: impl FnMut(u64, u64) -> Result<Words>,
) -> Result<Stored> {
    let (kind, sections) = (header.kind, &header.sections);
    let mut sections = |hasher: Hasher| {
        let section = |section: &Section| Ok((section.what, words(section.offset, lines(section)?)?));
        let sections: Vec<(u32, Words)> = sections.iter().map(section).collect::<Result<_>>()?;
        let head = Head { design: header.design, inserted: header.inserted, ..Head::new(hasher) };
        Ok::<_, Error>(Parts { head, params: header.params.clone(), sections: sections.into_iter() })
    };
    match (kind, header.hash) {
        (Kind::Literature, StoredHash::Family(number)) => {
            let family = u8::try_from(number).ok().and_then(Family::from_id);
            let family =
                family.ok_or_else(|| FormatError::Unknown { what: format!("hash family {number}") })?;
            let mut parts = sections(Hasher::default())?;
            let [m, k] = parts.params()?;
            let scheme = Scheme::new(family, small(k), m).map_err(invalid)?;
            let words = parts.section(BITS, Literature::lines(&scheme))?;
            parts.finish()?;
            let (design, inserted) = (header.design, header.inserted);
            Ok(Literature { scheme, words, design, inserted }.into())
        }
        (Kind::Literature, _) => Err(FormatError::invalid("a literature filter without a family").into()),
        (_, StoredHash::Family(_)) => {
            Err(FormatError::invalid(format!("a {kind} filter with a hash of the literature")).into())
        }
        (_, StoredHash::Digest(id)) => {
            let parts = sections(find_hasher(header, id, ring)?)?;
            Stored::restore(kind, parts).map_err(invalid)
        }
    }
}

/// Reports an invalid parameter in a file as a fault of the file.
fn invalid(error: Error) -> Error {
    match error {
        Error::Parameter { .. } => FormatError::invalid(error.to_string()).into(),
        other => other,
    }
}

/// Returns the hash function with its secret, from the file itself or from the ring.
fn find_hasher(header: &Header, id: HashId, ring: &KeyRing) -> Result<Hasher> {
    let Some(key) = header.embedded_key else { return ring.find(id) };
    let hasher = keyed(key)?;
    if hasher.id() != id {
        return Err(FormatError::invalid("the embedded secret is not the one that its tag names").into());
    }
    Ok(hasher)
}

#[cfg(feature = "secrets")]
fn keyed(secret: Secret<[u8; 16]>) -> Result<Hasher> {
    Ok(Hasher::keyed(secret.0))
}

#[cfg(not(feature = "secrets"))]
fn keyed(_: Secret<[u8; 16]>) -> Result<Hasher> {
    Err(Error::parameter("hash", crate::Strength::Keyed, "the Cargo feature `secrets` of crate `umbel`"))
}
