//! Encoding and decoding of a page's file, whose layout is described in `docs/format.md`.

use super::page::{MAX_NAME_BYTES, Note, Page, PageInfo, check_name};
use crate::capture::Timestamp;
use crate::traceback::spie::Transform;
use crate::{Error, Result};
use umbel::any::Stored;
use umbel::file::fields::{Fields, sum};
use umbel::file::{self, FormatError};
use umbel::hash::KeyRing;
use umbel::{AnyFilter, Digest};

const MAGIC: &[u8; 8] = b"UMBELTRP";
const VERSION: u32 = 1;
const CHECKSUM_BYTES: usize = 8;
/// The size of the fields before the name: magic, version, length of the name, length of the file,
/// five numbers and two counts.
const FIXED_BYTES: usize = 8 + 4 + 4 + 8 + 5 * 8 + 2 * 8;
/// The size of a change: two digests, a time and the transformation.
const NOTE_BYTES: usize = 3 * 8 + 1;
/// The size of the longest header.
pub(super) const MAX_HEADER_BYTES: usize = FIXED_BYTES + MAX_NAME_BYTES + CHECKSUM_BYTES;

/// The header of a file, which has a checksum of its own.
#[derive(Debug)]
pub(super) struct PageHeader {
    pub about: PageInfo,
    /// The size of the header in bytes.
    size: usize,
    /// The size of the filter in bytes.
    filter: u64,
}

impl Page {
    /// Encodes the page as the bytes of a file.
    ///
    /// # Errors
    ///
    /// Fails if the filter cannot be encoded.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let PageInfo { router, run, number, first, last, packets, changes } = &self.about;
        let filter = file::to_bytes(&self.filter, &file::Options::default())?;
        let header = FIXED_BYTES + router.len() + CHECKSUM_BYTES;
        let length = header + self.notes.len() * NOTE_BYTES + filter.len() + CHECKSUM_BYTES;
        let mut out = Vec::with_capacity(length);
        out.extend(MAGIC);
        out.extend([VERSION, router.len() as u32].map(u32::to_le_bytes).as_flattened());
        let numbers = [
            length as u64,
            *run,
            *number,
            first.nanos(),
            last.nanos(),
            *packets,
            *changes,
            filter.len() as u64,
        ];
        out.extend(numbers.map(u64::to_le_bytes).as_flattened());
        out.extend(router.as_bytes());
        out.extend(sum(&out).to_le_bytes());
        for Note { after, time, before, how } in &self.notes {
            out.extend([after.get(), before.get(), time.nanos()].map(u64::to_le_bytes).as_flattened());
            out.push(code(*how));
        }
        out.extend(filter);
        out.extend(sum(&out).to_le_bytes());
        Ok(out)
    }

    /// Decodes and verifies the bytes of a file.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not a page, have an unknown version, or are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Page> {
        let header = PageHeader::read(bytes, bytes.len() as u64)?;
        let whole =
            bytes.split_last_chunk::<CHECKSUM_BYTES>().filter(|(before, _)| before.len() >= header.size);
        // The length in the header matches, so only the header can be incomplete here.
        let (before, end) = whole.ok_or_else(|| invalid("it is shorter than its header"))?;
        if sum(before) != u64::from_le_bytes(*end) {
            return Err(FormatError::Damaged { part: "the page".into() }.into());
        }
        let mut fields = Fields(&before[header.size..]);
        let short = || invalid("it claims more than it has");
        let notes = fields.records(header.about.changes, NOTE_BYTES).ok_or_else(short)?;
        let notes: Option<Vec<Note>> = notes.map(note).collect();
        let notes = notes.ok_or_else(|| invalid("an invalid change"))?;
        if !notes.is_sorted() {
            return Err(invalid("changes that are not in order"));
        }
        let filter = read_filter(fields.bytes(header.filter).ok_or_else(short)?)?;
        if !fields.0.is_empty() {
            return Err(invalid("bytes after its last part"));
        }
        Ok(Page::from_parts(header.about, notes, filter))
    }
}

impl PageHeader {
    /// Reads the header of a file of length `found`.
    pub fn read(bytes: &[u8], found: u64) -> Result<PageHeader> {
        let mut fields = Fields(bytes);
        let short = || FormatError::Length { expected: (FIXED_BYTES + 2 * CHECKSUM_BYTES) as u64, found };
        match fields.array() {
            Some(magic) if &magic == MAGIC => {}
            // A file may be truncated anywhere.
            None if MAGIC.starts_with(bytes) => return Err(short().into()),
            _ => return Err(invalid("it is not a page of a store")),
        }
        let version = fields.u32().ok_or_else(short)?;
        if version != VERSION {
            let what = format!("version {version} of the format of pages");
            return Err(FormatError::Unknown { what }.into());
        }
        let name = fields.u32().ok_or_else(short)? as usize;
        if name > MAX_NAME_BYTES {
            return Err(FormatError::Damaged { part: "the header".into() }.into());
        }
        let size = FIXED_BYTES + name + CHECKSUM_BYTES;
        let head = bytes.get(..size).and_then(|head| head.split_last_chunk::<CHECKSUM_BYTES>());
        let (head, end) = head.ok_or_else(short)?;
        if sum(head) != u64::from_le_bytes(*end) {
            return Err(FormatError::Damaged { part: "the header".into() }.into());
        }
        let mut number = || fields.u64().ok_or_else(short);
        let length = number()?;
        if length != found {
            return Err(FormatError::Length { expected: length, found }.into());
        }
        let (run, page) = (number()?, number()?);
        let (first, last) = (Timestamp::from_nanos(number()?), Timestamp::from_nanos(number()?));
        let (packets, changes, filter) = (number()?, number()?, number()?);
        let router = fields.bytes(name as u64).and_then(|name| std::str::from_utf8(name).ok());
        let router = router.filter(|name| check_name(name).is_ok());
        let router = router.ok_or_else(|| invalid("an invalid name of a router"))?.to_owned();
        if first > last {
            return Err(invalid("impossible times"));
        }
        let about = PageInfo { router, run, number: page, first, last, packets, changes };
        Ok(PageHeader { about, size, filter })
    }
}

fn note(bytes: &[u8]) -> Option<Note> {
    let mut fields = Fields(bytes);
    let (after, before) = (Digest::from_hash(fields.u64()?), Digest::from_hash(fields.u64()?));
    let time = Timestamp::from_nanos(fields.u64()?);
    let [how] = fields.array()?;
    let how = Transform::ALL.into_iter().find(|transform| code(*transform) == how)?;
    Some(Note { after, time, before, how })
}

/// Returns the number of a transformation in a file.
fn code(how: Transform) -> u8 {
    match how {
        Transform::Translated => 0,
        Transform::Tunnelled => 1,
        Transform::Fragmented => 2,
        Transform::Quoted => 3,
        Transform::Secured => 4,
    }
}

fn read_filter(bytes: &[u8]) -> Result<AnyFilter> {
    match file::from_bytes(bytes, &KeyRing::new())?.filter {
        Stored::Set(filter) => Ok(filter),
        _ => Err(invalid("a filter that is not a set")),
    }
}

fn invalid(what: &str) -> Error {
    FormatError::Invalid { what: what.into() }.into()
}
