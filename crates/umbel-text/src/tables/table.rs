//! A sorted table on disk: encoding, and the lookup of one key. `docs/tables.md` describes the
//! format.

use super::Span;
use super::secret::StoreHash;
use crate::{Error, Result};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use umbel::any::Stored;
use umbel::file::fields::{Fields, put_varint, read_with_sum, sum_at};
use umbel::file::{self, FormatError};
use umbel::internals::regular_file;
use umbel::internals::sync;
use umbel::spec::Construction;
use umbel::{AnyFilter, Digest, Hasher, Kind, Spec};

const MAGIC: &[u8; 8] = b"UMBELTAB";
const VERSION: u32 = 1;
const CHECKSUM_BYTES: usize = 8;
/// The size of the header: magic, version, padding, length, six numbers and the checksum.
const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 6 * 8 + CHECKSUM_BYTES;
/// The size at which a block is complete.
const BLOCK_BYTES: usize = 4096;

/// A key and its value, or `None` if the key was deleted.
pub(super) type Entry = (Vec<u8>, Option<Vec<u8>>);

/// Encodes a table of these entries, which are in the order of their keys.
pub(super) fn encode(
    span: Span,
    entries: impl Iterator<Item = Result<Entry>>,
    rate: f64,
    hasher: &Hasher,
) -> Result<Vec<u8>> {
    let mut out = vec![0; HEADER_BYTES];
    let (mut index, mut digests) = (Vec::new(), Vec::new());
    let (mut block, mut blocks, mut tombstones) = (Vec::new(), 0u64, 0u64);
    for entry in entries {
        let (key, value) = entry?;
        if block.is_empty() {
            put_varint(&mut index, key.len() as u64);
            index.extend(&key);
        }
        put_varint(&mut block, key.len() as u64);
        put_varint(&mut block, value.as_ref().map_or(0, |value| value.len() as u64 + 1));
        block.extend(&key);
        block.extend(value.iter().flatten());
        tombstones += u64::from(value.is_none());
        digests.push(hasher.digest_bytes(&key));
        if block.len() >= BLOCK_BYTES {
            put_block(&mut out, &mut index, &mut block, &mut blocks);
        }
    }
    if !block.is_empty() {
        put_block(&mut out, &mut index, &mut block, &mut blocks);
    }
    let entries = digests.len() as u64;
    let block_bytes = (out.len() - HEADER_BYTES) as u64;
    index.extend(sum_at(0, &index).to_le_bytes());
    out.extend(&index);
    out.extend(file::to_bytes(&filter(digests, rate, hasher)?, &file::Options::default())?);
    let mut head = MAGIC.to_vec();
    head.extend([VERSION, 0].map(u32::to_le_bytes).as_flattened());
    let numbers =
        [out.len() as u64, span.first, span.last, entries, tombstones, block_bytes, index.len() as u64];
    head.extend(numbers.map(u64::to_le_bytes).as_flattened());
    head.extend(sum_at(0, &head).to_le_bytes());
    out[..HEADER_BYTES].copy_from_slice(&head);
    Ok(out)
}

/// Ends a block: appends its checksum, and adds its length to the index.
fn put_block(out: &mut Vec<u8>, index: &mut Vec<u8>, block: &mut Vec<u8>, blocks: &mut u64) {
    block.extend(sum_at(*blocks, block).to_le_bytes());
    put_varint(index, block.len() as u64);
    out.append(block);
    *blocks += 1;
}

/// Builds the filter of a table's keys, including deleted ones.
fn filter(digests: Vec<Digest>, rate: f64, hasher: &Hasher) -> Result<AnyFilter> {
    let spec = Spec::new((digests.len() as u64).max(1), rate)?.with_hasher(hasher.clone());
    Ok(AnyFilter::from_digests(Kind::Blocked, &spec, digests, &Construction::default())?)
}

/// The location of a block in the file, and its first key.
#[derive(Debug)]
struct BlockLocation {
    first: Vec<u8>,
    offset: u64,
    length: usize,
}

/// An open table, with its filter and sparse index in memory and its blocks on disk.
#[derive(Debug)]
pub(super) struct Table {
    pub span: Span,
    pub path: PathBuf,
    pub length: u64,
    pub entries: u64,
    pub tombstones: u64,
    /// `None` if its secret is not available; any key may then be in the table.
    pub filter: Option<AnyFilter>,
    index: Vec<BlockLocation>,
    // Locked while a block is read, because seeking and reading have to be one step.
    file: Mutex<File>,
}

impl Table {
    /// Opens a table. Header, index and filter are read and verified now, blocks when they are
    /// needed.
    pub fn open(path: &Path, span: Span, rate: f64, hash: &StoreHash) -> Result<Table> {
        let io = |doing| Error::io(path, doing);
        let mut file = regular_file::open(path).map_err(io("open"))?;
        let found = file.metadata().map_err(io("read"))?.len();
        let mut head = Vec::new();
        (&mut file).take(HEADER_BYTES as u64).read_to_end(&mut head).map_err(io("read"))?;
        let problem = |problem| Error::Format { path: path.to_owned(), problem };
        let head = TableHeader::read(&head, found).map_err(problem)?;
        if head.span != span {
            return Err(problem(invalid("it has the name of another table")));
        }
        let index_at = HEADER_BYTES as u64 + head.block_bytes;
        let filter_bytes = found.checked_sub(index_at).and_then(|rest| rest.checked_sub(head.index_bytes));
        let filter_bytes = filter_bytes.ok_or_else(|| problem(invalid("impossible numbers")))?;
        file.seek(SeekFrom::Start(index_at)).map_err(io("read"))?;
        let index = read_with_sum(&mut file, 0, head.index_bytes).map_err(io("read"))?;
        let index = index.ok_or_else(|| problem(FormatError::Damaged { part: "the index".into() }))?;
        let index = read_index(&index, head.block_bytes).map_err(problem)?;
        let kept = file::read(&mut file, filter_bytes, &hash.ring());
        let mut table = Table {
            span,
            path: path.to_owned(),
            length: head.length,
            entries: head.entries,
            tombstones: head.tombstones,
            filter: None,
            index,
            file: Mutex::new(file),
        };
        table.filter = match kept.map(|loaded| loaded.filter) {
            Ok(Stored::Set(kept)) if hash.accepts(kept.hasher()) => Some(kept),
            Err(umbel::Error::MissingKey { .. }) if hash.is_unavailable() => None,
            Err(umbel::Error::Io { source, .. }) => return Err(io("read")(source)),
            // The filter is damaged or has another hash, but it can be rebuilt from the entries.
            _ => Some(table.rebuilt(rate, hash.hasher())?),
        };
        Ok(table)
    }

    fn rebuilt(&self, rate: f64, hasher: &Hasher) -> Result<AnyFilter> {
        let digest = |entry: Result<Entry>| Ok(hasher.digest_bytes(&entry?.0));
        filter(self.entries().map(digest).collect::<Result<_>>()?, rate, hasher)
    }

    /// Looks a key up in the only block that can have it. Returns `None` if the table does not have
    /// the key, and `Some(None)` if it was deleted.
    pub fn get(&self, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        let after = self.index.partition_point(|location| location.first.as_slice() <= key);
        let Some(block) = after.checked_sub(1) else { return Ok(None) };
        let bytes = self.block(block)?;
        let mut fields = Fields(&bytes);
        while !fields.0.is_empty() {
            let (found, value) = self.entry(&mut fields)?;
            if found == key {
                return Ok(Some(value.map(<[u8]>::to_vec)));
            }
        }
        Ok(None)
    }

    /// Returns all entries in the order of their keys.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry>> + use<'_> {
        self.entries_from(&[])
    }

    /// Returns the entries in the order of their keys, from the block on that may have this key.
    pub fn entries_from(&self, key: &[u8]) -> impl Iterator<Item = Result<Entry>> + use<'_> {
        let after = self.index.partition_point(|location| location.first.as_slice() <= key);
        (after.saturating_sub(1)..self.index.len()).flat_map(|block| match self.block_entries(block) {
            Ok(entries) => entries.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    }

    fn block_entries(&self, block: usize) -> Result<Vec<Entry>> {
        let (bytes, mut entries) = (self.block(block)?, Vec::new());
        let mut fields = Fields(&bytes);
        while !fields.0.is_empty() {
            let (key, value) = self.entry(&mut fields)?;
            entries.push((key.to_vec(), value.map(<[u8]>::to_vec)));
        }
        Ok(entries)
    }

    fn entry<'a>(&self, fields: &mut Fields<'a>) -> Result<(&'a [u8], Option<&'a [u8]>)> {
        let mut read = || {
            let (key, value) = (fields.varint()?, fields.varint()?);
            let key = fields.bytes(key)?;
            Some((key, if value == 0 { None } else { Some(fields.bytes(value - 1)?) }))
        };
        read().ok_or_else(|| self.problem(invalid("an invalid entry")))
    }

    /// Reads and verifies a block.
    fn block(&self, number: usize) -> Result<Vec<u8>> {
        let BlockLocation { offset, length, .. } = self.index[number];
        let read = || {
            let mut file = sync::lock(&self.file);
            file.seek(SeekFrom::Start(offset))?;
            read_with_sum(&mut *file, number as u64, length as u64)
        };
        let bytes = read().or_else(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => Ok(None),
            _ => Err(Error::io(&self.path, "read")(source)),
        })?;
        let damaged = || self.problem(FormatError::Damaged { part: part(number) });
        let mut bytes = bytes.ok_or_else(damaged)?;
        bytes.truncate(length - CHECKSUM_BYTES);
        Ok(bytes)
    }

    fn problem(&self, problem: FormatError) -> Error {
        Error::Format { path: self.path.clone(), problem }
    }
}

fn part(block: usize) -> String {
    format!("block {}", block + 1)
}

/// The header of a table, which has its own checksum.
struct TableHeader {
    length: u64,
    span: Span,
    entries: u64,
    tombstones: u64,
    block_bytes: u64,
    index_bytes: u64,
}

impl TableHeader {
    fn read(bytes: &[u8], found: u64) -> Result<TableHeader, FormatError> {
        let mut fields = Fields(bytes);
        let short = || FormatError::Length { expected: HEADER_BYTES as u64, found };
        match fields.array() {
            Some(magic) if &magic == MAGIC => {}
            // The file may be truncated anywhere.
            None if MAGIC.starts_with(bytes) => return Err(short()),
            _ => return Err(invalid("it is not a table")),
        }
        let version = fields.u32().ok_or_else(short)?;
        if version != VERSION {
            return Err(FormatError::Unknown { what: format!("version {version} of the format of tables") });
        }
        let whole =
            bytes.first_chunk::<HEADER_BYTES>().and_then(|head| head.split_last_chunk::<CHECKSUM_BYTES>());
        let (head, end) = whole.ok_or_else(short)?;
        if sum_at(0, head) != u64::from_le_bytes(*end) {
            return Err(FormatError::Damaged { part: "the head".into() });
        }
        fields.u32().ok_or_else(short)?;
        let mut number = || fields.u64().ok_or_else(short);
        let length = number()?;
        let (first, last) = (number()?, number()?);
        let [entries, tombstones, block_bytes, index_bytes] = [number()?, number()?, number()?, number()?];
        if length != found {
            return Err(FormatError::Length { expected: length, found });
        }
        if block_bytes > length {
            return Err(invalid("impossible numbers"));
        }
        Ok(TableHeader { length, span: Span { first, last }, entries, tombstones, block_bytes, index_bytes })
    }
}

/// Parses the locations of the blocks, whose checksum has been verified.
fn read_index(bytes: &[u8], block_bytes: u64) -> Result<Vec<BlockLocation>, FormatError> {
    let index = &bytes[..bytes.len() - CHECKSUM_BYTES];
    let (mut fields, mut locations, mut end) = (Fields(index), Vec::<BlockLocation>::new(), 0u64);
    while !fields.0.is_empty() {
        let mut read = || {
            let key = fields.varint()?;
            let first = fields.bytes(key)?.to_vec();
            let length = fields.varint()?;
            let offset = HEADER_BYTES as u64 + end;
            end = end.checked_add(length).filter(|end| *end <= block_bytes)?;
            let ascending = locations.last().is_none_or(|before| before.first < first);
            let length = usize::try_from(length).ok()?;
            (ascending && length > CHECKSUM_BYTES).then_some(BlockLocation { first, offset, length })
        };
        let location = read().ok_or_else(|| invalid("an invalid index"))?;
        locations.push(location);
    }
    if end != block_bytes {
        return Err(invalid("blocks that are not in the index"));
    }
    Ok(locations)
}

fn invalid(what: &str) -> FormatError {
    FormatError::Invalid { what: what.into() }
}
