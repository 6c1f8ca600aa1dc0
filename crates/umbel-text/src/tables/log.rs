//! The write-ahead log, which holds the writes since the last flush on disk.
//!
//! A log has the number of the table that it will become. Once that table exists, the log is
//! obsolete, so a crash between the two steps does no harm.

use super::table::Entry;
use crate::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use umbel::file::FormatError;
use umbel::file::fields::{Fields, read_summed, sum_at};
use umbel::internals::regular_file;

const MAGIC: &[u8; 8] = b"UMBELLOG";
const VERSION: u32 = 1;
/// The size of the header: magic, version, padding, the number and the checksum.
const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 8;
/// The size of a record before its key and value: their lengths, the checksum of both, and the
/// checksum of these three fields.
const RECORD_HEADER_BYTES: usize = 4 + 4 + 8 + 8;

const NOT_A_LOG: &str = "it is not a log";

#[derive(Debug)]
pub(super) struct Log {
    pub path: PathBuf,
    file: File,
    length: u64,
    /// Whether the log accepts no more records, because they could not be read back.
    closed: bool,
}

/// The contents of a log.
pub(super) struct Records {
    pub entries: Vec<Entry>,
    /// The length of the header and the complete records; 0 if the header is incomplete.
    length: u64,
    /// The number of bytes of an incomplete last record.
    pub torn: u64,
}

/// What the first bytes of a file with the name of a log say about it.
pub(super) enum Start {
    Log,
    /// A crash may have left this before the header was on disk. So may anything else that made an
    /// empty file.
    Torn,
    Foreign,
}

impl Start {
    pub fn read(path: &Path, number: u64) -> io::Result<Start> {
        let mut bytes = Vec::new();
        regular_file::open(path)?.take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
        Ok(match bytes.starts_with(MAGIC) {
            true => Start::Log,
            false if is_torn_header(&bytes, number) => Start::Torn,
            false => Start::Foreign,
        })
    }
}

/// Returns the error for a file that has the name of a log, but is something else.
pub(super) fn not_a_log(path: &Path) -> Error {
    Error::Format { path: path.to_owned(), problem: FormatError::Invalid { what: NOT_A_LOG.into() } }
}

fn header(number: u64) -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    head.extend([VERSION, 0].map(u32::to_le_bytes).as_flattened());
    head.extend(number.to_le_bytes());
    head.extend(sum_at(0, &head).to_le_bytes());
    head
}

/// Returns whether these bytes are a header of which not all reached the disk.
fn is_torn_header(bytes: &[u8], number: u64) -> bool {
    let is_cut = bytes.len() < HEADER_BYTES && header(number).starts_with(bytes);
    is_cut || bytes.iter().all(|byte| *byte == 0)
}

/// Reads a log up to its last complete record. A crash can leave an incomplete one.
pub(super) fn read(path: &Path, number: u64) -> Result<Records> {
    let read = || {
        let file = regular_file::open(path)?;
        let all = file.metadata()?.len();
        // Record by record: the length of a sparse file costs nothing, so it justifies no memory.
        replay(&mut BufReader::with_capacity(1 << 16, file), all, number)
    };
    match read().map_err(Error::io(path, "read"))? {
        Ok(records) => Ok(records),
        Err(problem) => Err(Error::Format { path: path.to_owned(), problem }),
    }
}

impl Log {
    /// Creates a log.
    pub fn create(path: &Path, number: u64) -> Result<Log> {
        // No `fsync` here: durability is only promised after `sync`.
        let write = || File::create(path)?.write_all(&header(number));
        write().map_err(Error::io(path, "create"))?;
        Log::append_to(path, HEADER_BYTES as u64)
    }

    /// Opens a log to append to the records that were read from it. Cuts off an incomplete one.
    pub fn reopen(path: &Path, number: u64, records: &Records) -> Result<Log> {
        if records.length == 0 {
            return Log::create(path, number);
        }
        let log = Log::append_to(path, records.length)?;
        if records.torn > 0 {
            log.file.set_len(records.length).map_err(Error::io(path, "cut"))?;
        }
        Ok(log)
    }

    fn append_to(path: &Path, length: u64) -> Result<Log> {
        let file = OpenOptions::new().append(true).open(path);
        let file = file.map_err(Error::io(path, "open"))?;
        Ok(Log { path: path.to_owned(), file, length, closed: false })
    }

    /// Appends a record. On failure the log is unchanged.
    pub fn append(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if self.closed {
            return Err(Error::Format { path: self.path.clone(), problem: refused() });
        }
        let lengths = [key.len() as u32, value.map_or(0, |value| value.len() as u32 + 1)];
        let body = [key, value.unwrap_or_default()].concat();
        let mut record = lengths.map(u32::to_le_bytes).as_flattened().to_vec();
        record.extend(sum_at(self.length, &body).to_le_bytes());
        record.extend(sum_at(self.length, &record).to_le_bytes());
        record.extend(body);
        if let Err(source) = self.file.write_all(&record) {
            // Records after an incomplete one could not be read, so remove it.
            self.closed = self.file.set_len(self.length).is_err();
            return Err(Error::io(&self.path, "write to")(source));
        }
        self.length += record.len() as u64;
        Ok(())
    }

    /// Waits until everything is on the disk.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Error::io(&self.path, "flush"))?;
        // Also flush the folder, which holds the file's name. Some file systems cannot do that.
        if let Some(Ok(folder)) = self.path.parent().map(File::open) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

/// Describes why a store accepts no more writes after a failed one.
pub(super) fn refused() -> FormatError {
    let what = "a write has failed, and what it left could not be removed: open the store again";
    FormatError::Invalid { what: what.into() }
}

/// Reads the records of a log of `all` bytes. The outer error is that of the system.
fn replay(
    log: &mut (impl BufRead + Seek),
    all: u64,
    number: u64,
) -> io::Result<Result<Records, FormatError>> {
    let mut head = Vec::new();
    log.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut head)?;
    if is_torn_header(&head, number) && rest_is_zero(log)? {
        return Ok(Ok(Records { entries: Vec::new(), length: 0, torn: all }));
    }
    if let Err(problem) = check_header(&head, number) {
        return Ok(Err(problem));
    }
    let (mut entries, mut length) = (Vec::new(), HEADER_BYTES as u64);
    while length < all {
        let damaged = || Ok(Err(FormatError::Damaged { part: format!("record {}", entries.len() + 1) }));
        let mut head = [0; RECORD_HEADER_BYTES];
        let rest = (all - length).checked_sub(RECORD_HEADER_BYTES as u64);
        let Some(rest) = rest else { break };
        log.read_exact(&mut head)?;
        let mut fields = Fields(&head);
        let (Some(key), Some(value), Some(of_body), Some(of_head)) =
            (fields.u32(), fields.u32(), fields.u64(), fields.u64())
        else {
            break;
        };
        if sum_at(length, &head[..RECORD_HEADER_BYTES - 8]) != of_head {
            // The file may have grown before the data reached the disk.
            if head == [0; RECORD_HEADER_BYTES] && rest_is_zero(log)? {
                break;
            }
            return damaged();
        }
        let size = u64::from(key) + u64::from(value.saturating_sub(1));
        if size > rest {
            break;
        }
        let Some(mut key_bytes) = read_summed(log, length, size, of_body)? else {
            if size == rest {
                break;
            }
            return damaged();
        };
        let value_bytes = key_bytes.split_off(key as usize);
        entries.push((key_bytes, (value > 0).then_some(value_bytes)));
        length += RECORD_HEADER_BYTES as u64 + size;
    }
    Ok(Ok(Records { entries, length, torn: all - length }))
}

fn check_header(bytes: &[u8], number: u64) -> Result<(), FormatError> {
    if !bytes.starts_with(MAGIC) {
        return Err(FormatError::Invalid { what: NOT_A_LOG.into() });
    }
    let whole = bytes.first_chunk::<HEADER_BYTES>().and_then(|head| head.split_last_chunk::<8>());
    let (head, end) =
        whole.ok_or(FormatError::Length { expected: HEADER_BYTES as u64, found: bytes.len() as u64 })?;
    if sum_at(0, head) != u64::from_le_bytes(*end) {
        return Err(FormatError::Damaged { part: "the head".into() });
    }
    if head[8..12] != VERSION.to_le_bytes() {
        return Err(FormatError::Unknown { what: "another version of the format of logs".into() });
    }
    if head[16..] != number.to_le_bytes() {
        return Err(FormatError::Invalid { what: "it has the name of another log".into() });
    }
    Ok(())
}

/// Returns whether only zeros are left to read.
fn rest_is_zero(log: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = log.fill_buf()?;
        if bytes.is_empty() {
            return Ok(true);
        }
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        let count = bytes.len();
        log.consume(count);
    }
}
