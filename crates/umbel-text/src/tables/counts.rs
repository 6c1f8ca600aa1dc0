//! Counts of lookups: those of a process, and their total in a file. `docs/tables.md` describes the
//! format.

use crate::{Error, Result};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::ops::AddAssign;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use umbel::file::fields::{Fields, sum_at};

const MAGIC: &[u8; 8] = b"UMBELCNT";
const VERSION: u32 = 1;
/// The size of the file: magic, version, padding, four numbers and the checksum.
const FILE_BYTES: usize = 8 + 4 + 4 + 4 * 8 + 8;

/// Counts of lookups and their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of lookups.
    pub lookups: u64,
    /// The number of filter queries.
    pub asked: u64,
    /// The number of tables that were not read because their filter ruled the key out.
    pub skipped: u64,
    /// The number of tables that were read, one block each.
    pub read: u64,
    /// The number of tables that were read but did not have the key.
    pub wasted: u64,
}

impl Counts {
    /// `asked` is the sum of `skipped` and `read`.
    fn new([lookups, skipped, read, wasted]: [u64; 4]) -> Counts {
        Counts { lookups, asked: skipped.saturating_add(read), skipped, read, wasted }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        let sum = |a: u64, b: u64| a.saturating_add(b);
        *self = Counts::new([
            sum(self.lookups, more.lookups),
            sum(self.skipped, more.skipped),
            sum(self.read, more.read),
            sum(self.wasted, more.wasted),
        ]);
    }
}

/// The [`Counts`] of a store, shared between threads that look keys up.
#[derive(Debug, Default)]
pub(super) struct AtomicCounts {
    pub lookups: AtomicU64,
    pub skipped: AtomicU64,
    pub read: AtomicU64,
    pub wasted: AtomicU64,
}

impl AtomicCounts {
    pub fn get(&self) -> Counts {
        let AtomicCounts { lookups, skipped, read, wasted } = self;
        Counts::new([lookups, skipped, read, wasted].map(|count| count.load(Relaxed)))
    }
}

/// Returns the total in a file; zeros if there is none.
pub(super) fn load(path: &Path) -> Result<Counts> {
    let io = |doing| Error::io(path, doing);
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Counts::default()),
        file => file.map_err(io("open"))?,
    };
    file.lock_shared().map_err(io("lock"))?;
    read(&mut file, path)
}

/// Adds counts to the total in a file, and returns the new total. Creates the file if there is
/// none.
pub(super) fn add(path: &Path, counts: Counts) -> Result<Counts> {
    let io = |doing| Error::io(path, doing);
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
    let mut file = file.map_err(io("open"))?;
    // Several processes may end at the same time, and none of their counts should be lost.
    file.lock().map_err(io("lock"))?;
    let mut total = read(&mut file, path)?;
    total += counts;
    // A single small write, without `fsync`: these are statistics, not data.
    file.rewind().and_then(|()| file.write_all(&encode(total))).map_err(io("write to"))?;
    Ok(total)
}

fn encode(counts: Counts) -> Vec<u8> {
    let Counts { lookups, skipped, read, wasted, .. } = counts;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([VERSION, 0].map(u32::to_le_bytes).as_flattened());
    bytes.extend([lookups, skipped, read, wasted].map(u64::to_le_bytes).as_flattened());
    bytes.extend(sum_at(0, &bytes).to_le_bytes());
    bytes
}

/// Reads the total; a new file is empty.
fn read(file: &mut File, path: &Path) -> Result<Counts> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(Error::io(path, "read"))?;
    if bytes.is_empty() {
        return Ok(Counts::default());
    }
    decode(&bytes).map_err(|problem| {
        Error::damaged(path, format!("{problem}; remove it, and the counts of lookups start again at 0"))
    })
}

fn decode(bytes: &[u8]) -> Result<Counts, &'static str> {
    let Some((head, end)) = bytes.split_last_chunk::<8>().filter(|_| bytes.len() == FILE_BYTES) else {
        return Err("it has another length than counts have");
    };
    if sum_at(0, head) != u64::from_le_bytes(*end) {
        return Err("its checksum does not match");
    }
    let mut fields = Fields(head);
    let start = (fields.array() == Some(*MAGIC)).then(|| fields.u64()).flatten();
    if start != Some(u64::from(VERSION)) {
        return Err("its format is another one");
    }
    let mut numbers = || Some([fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?]);
    numbers().map(Counts::new).ok_or("it has another length than counts have")
}
