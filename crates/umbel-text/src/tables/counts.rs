//! Counts of lookups: those of a process, and their total in a file. `docs/tables.md` describes the
//! format.

use super::folder;
use crate::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::ops::AddAssign;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use umbel::file::fields::{Fields, sum_at};

const MAGIC: &[u8; 8] = b"UMBELCNT";
const VERSION: u32 = 1;
/// The size of the file: magic, version, padding, four numbers and the checksum.
const FILE_BYTES: usize = 8 + 4 + 4 + 4 * 8 + 8;

/// How often a lock is tried, and the pause in between.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(2);

const NOT_A_FILE: &str = "it is not a regular file";

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
    let Some(mut file) = open(path, File::options().read(true))? else {
        return Ok(Counts::default());
    };
    lock(path, || file.try_lock_shared())?;
    read(&mut file, path)
}

/// Adds counts to the total in a file, and returns the new total. Creates the file if there is
/// none.
pub(super) fn add(path: &Path, counts: Counts) -> Result<Counts> {
    let io = |doing| Error::io(path, doing);
    let file = open(path, File::options().read(true).write(true).create(true).truncate(false))?;
    let mut file = file.ok_or_else(|| io("open")(io::ErrorKind::NotFound.into()))?;
    // Several processes may end at the same time, and none of their counts should be lost.
    lock(path, || file.try_lock())?;
    let mut total = read(&mut file, path)?;
    total += counts;
    // A single small write, without `fsync`: these are statistics, not data.
    file.rewind().and_then(|()| file.write_all(&encode(total))).map_err(io("write to"))?;
    Ok(total)
}

fn open(path: &Path, options: &mut OpenOptions) -> Result<Option<File>> {
    folder::open_file(path, options, || unusable(path, NOT_A_FILE))
}

/// Locks the file. A process holds the lock for a moment only, so this gives up soon: lookups
/// should not wait for their statistics.
fn lock(path: &Path, try_lock: impl Fn() -> Result<(), TryLockError>) -> Result<()> {
    for _ in 0..LOCK_TRIES {
        match try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(Error::io(path, "lock")(error)),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
        }
    }
    Err(Error::Locked { path: path.to_owned() })
}

fn unusable(path: &Path, problem: &str) -> Error {
    Error::damaged(path, format!("{problem}; remove it, and the counts of lookups start again at 0"))
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
    decode(&bytes).map_err(|problem| unusable(path, problem))
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
