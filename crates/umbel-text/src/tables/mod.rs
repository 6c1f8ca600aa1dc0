//! Sorted tables on disk, each with a filter in memory that rules out absent keys.
//!
//! This is the design of Bigtable, Cassandra and LevelDB in miniature. Writes go to memory and to a
//! log. A [flush](Store::flush) turns them into a table, which never changes again. A lookup goes
//! through the tables from the newest to the oldest and ends at the first that has the key. It
//! queries each table's filter first, and does not read the table if the answer is no. The key is
//! hashed once for all tables.
//!
//! ```
//! use umbel_text::tables::{Options, Store};
//! let folder = tempfile::tempdir()?;
//! let mut store = Store::open(folder.path(), Options::default())?;
//! store.put(b"apple", b"red")?;
//! store.flush()?;
//! store.put(b"pear", b"green")?;
//! store.flush()?;
//! store.put(b"plum", b"blue")?;
//! store.delete(b"pear")?;
//! store.flush()?;
//!
//! // The filters rule out two of the three tables.
//! assert_eq!(store.get(b"apple")?.as_deref(), Some(&b"red"[..]));
//! assert_eq!((store.counts().asked, store.counts().skipped, store.counts().read), (3, 2, 1));
//!
//! // The newest table records the deletion.
//! assert_eq!(store.get(b"pear")?, None);
//!
//! store.merge(0..3)?;
//! assert_eq!(store.tables().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With T tables and a rate of p, a lookup of an absent key reads T p tables instead of T. A lookup
//! of a key in one table reads 1 + p times the number of newer tables. [`Store::history`], which
//! has to consult all tables, reads 1 + (T - 1) p. [`share`] computes the best division of memory
//! among tables of different sizes.
//!
//! # Durability
//!
//! - Flushed writes survive any crash: a table is written completely or not at all, and synced to
//!   disk.
//! - Other writes are in the log. The log survives the end of the process, and after
//!   [`Store::sync`] also a crash of the machine.
//! - A merged table replaces its sources in one step. Files that a crash leaves behind are removed
//!   when the store is opened.
//! - A deletion is an entry, too, called a *tombstone*, and its key is in the filter. Otherwise an
//!   older table would bring the key back. Tombstones are dropped when tables are merged into the
//!   oldest.
//! - A damaged part of a table is reported when it is read; all other keys are found. If a whole
//!   table is damaged or missing, keys of newer tables are found. All other lookups return an error
//!   instead of an older value, until [`Store::set_aside`] gives that table up.
//! - Only one process can have a store open.
//!
//! Tables are encoded in memory, so a merge needs as much memory as the size of its table. Entries
//! are not encrypted, and the secret of a keyed hash is not stored.
//!
//! # The files
//!
//! A table `00000003-00000005.table` holds the entries of tables 3 to 5. All numbers are
//! little-endian:
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | `UMBELTAB` |
//! | 4, 4 | the version, 1, and 0 |
//! | 8 | the length of the file |
//! | 8 each | the first and the last table number, the number of entries, the number of deleted ones, the bytes of the blocks and of the index |
//! | 8 | XXH3-64 of all bytes before |
//! | | blocks of 4096 bytes or a little more: entries in the order of their keys, then their XXH3-64, seeded with the number of the block, from 0 |
//! | | the index: for each block the length of its first key, that key, and the length of the block; then the XXH3-64 of all this |
//! | | the filter, as a filter file |
//!
//! An entry is the length of the key, the length of the value plus 1 (0 for a deleted key), the
//! key, and the value. Lengths in entries and in the index are LEB128: seven bits in a byte, the
//! lowest first.
//!
//! A log `00000006.log`, which will become table 6, starts with `UMBELLOG`, the version as above,
//! the number in 8 bytes, and the XXH3-64 of these. Then come the records. A record is the length
//! of the key and the length of the value plus 1 in 4 bytes each, the XXH3-64 of key and value, the
//! XXH3-64 of these 16 bytes, the key, and the value. Both sums are seeded with the record's offset
//! in the file.

mod log;
mod merge;
mod share;
mod slot;
mod table;

pub use share::share;

use crate::{Error, Result};
use log::{Log, Replayed};
use merge::{Merged, Source};
use slot::{MAX_FLUSHES, Slot, Span};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use table::{Entry, Table};
use umbel::file::{self, FormatError, Placing};
use umbel::{Digest, Hasher};

/// The maximum length of a key in bytes.
pub const MAX_KEY: usize = 1 << 16;
/// The maximum length of a value in bytes.
pub const MAX_VALUE: usize = 1 << 30;
/// The approximate memory that an entry takes besides its key and value.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// The options of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The false-positive rate of the filter of each table.
    pub rate: f64,
    /// The number of bytes in memory above which the store is flushed.
    pub memory: usize,
    /// The hash of the filters. A keyed hash prevents crafted keys that all filters let pass.
    pub hasher: Hasher,
}

impl Default for Options {
    /// Returns a rate of 1 %, 4 MiB of memory, and the fast hash.
    fn default() -> Options {
        Options { rate: 0.01, memory: 4 << 20, hasher: Hasher::default() }
    }
}

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

/// A description of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// The file.
    pub path: PathBuf,
    /// The number of keys, including deleted ones.
    pub entries: u64,
    /// The number of deleted keys.
    pub tombstones: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The size of the filter in memory in bytes.
    pub filter_bytes: u64,
    /// The damage, if the table cannot be used.
    pub damage: Option<String>,
}

/// The [`Counts`] of a store, shared between threads that look keys up.
#[derive(Debug, Default)]
struct AtomicCounts {
    lookups: AtomicU64,
    skipped: AtomicU64,
    read: AtomicU64,
    wasted: AtomicU64,
}

/// A key-value store of sorted tables in a folder.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    options: Options,
    memory: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// The number of bytes in memory.
    held: usize,
    newest_first: Vec<Slot>,
    /// `None` until something is written.
    log: Option<Log>,
    torn: u64,
    counts: AtomicCounts,
    /// Holds the lock while the store is open.
    _lock: File,
}

impl Store {
    /// Opens a store. Creates the folder if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the rate is out of range, another process has the store open, two tables overlap,
    /// the log is damaged, or the system refuses an operation. A damaged table is not an error
    /// here; see [`Store::tables`].
    pub fn open(folder: impl AsRef<Path>, options: Options) -> Result<Store> {
        let folder = folder.as_ref();
        let io = |doing| Error::io(folder, doing);
        // Fail now instead of at the first flush.
        umbel::Spec::new(1, options.rate).and_then(|spec| umbel::spec::plan(umbel::Kind::Blocked, &spec))?;
        fs::create_dir_all(folder).map_err(io("create"))?;
        let lock = locked(&folder.join("lock"))?;
        let (mut spans, mut logs) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(folder).map_err(io("read"))? {
            let path = entry.map_err(io("read"))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).filter(|_| path.is_file());
            let Some(name) = name else { continue };
            spans.extend(Span::from_file_name(name));
            logs.extend(log_number(name));
        }
        let newest_first = slot::open_all(folder, spans, &options)?;
        let mut store = Store {
            folder: folder.to_owned(),
            options,
            memory: BTreeMap::new(),
            held: 0,
            newest_first,
            log: None,
            torn: 0,
            counts: AtomicCounts::default(),
            _lock: lock,
        };
        store.replay(logs)?;
        Ok(store)
    }

    /// Restores the entries of the log that has not become a table yet, and removes obsolete logs.
    fn replay(&mut self, mut logs: Vec<u64>) -> Result<()> {
        logs.sort_unstable();
        let next = self.next_number();
        logs.retain(|number| {
            let of_a_table = *number < next;
            if of_a_table {
                // If the log cannot be removed now, the next opening tries again.
                let _ = fs::remove_file(self.log_path(*number));
            }
            !of_a_table
        });
        let Some(number) = logs.pop() else { return Ok(()) };
        if !logs.is_empty() {
            let what = "there is another log before it, whose table is missing".into();
            let path = self.log_path(number);
            return Err(Error::Format { path, problem: FormatError::Invalid { what } });
        }
        if number > next {
            self.newest_first.insert(0, slot::missing(&self.folder, Span { first: next, last: number - 1 }));
        }
        let Replayed { log, entries, torn } = Log::open(&self.log_path(number), number)?;
        entries.into_iter().for_each(|(key, value)| self.remember(key, value));
        (self.log, self.torn) = (Some(log), torn);
        Ok(())
    }

    fn next_number(&self) -> u64 {
        self.newest_first.first().map_or(1, |slot| slot.span().last + 1)
    }

    fn log_path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:08}.log"))
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// Fails, and writes nothing, if the key or the value is too long, or if a flush or the log
    /// fails.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(key, Some(value))
    }

    /// Deletes a key, whether it exists or not.
    ///
    /// # Errors
    ///
    /// Fails, and writes nothing, if the key is too long, or if a flush or the log fails.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.write(key, None)
    }

    fn write(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let too_long = |name, length, most| {
            Err(Error::parameter(name, format!("{length} bytes"), format!("at most {most} bytes")))
        };
        if key.len() > MAX_KEY {
            return too_long("the key", key.len(), MAX_KEY);
        }
        if let Some(length) = value.map(<[u8]>::len).filter(|length| *length > MAX_VALUE) {
            return too_long("the value", length, MAX_VALUE);
        }
        // Flush before the write, so that an error means that nothing was written.
        if self.held >= self.options.memory {
            self.flush()?;
        }
        if self.log.is_none() {
            let number = self.next_number();
            self.log = Some(Log::create(&self.log_path(number), number)?);
        }
        self.log.as_mut().map_or(Ok(()), |log| log.append(key, value))?;
        self.remember(key.to_vec(), value.map(<[u8]>::to_vec));
        Ok(())
    }

    fn remember(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let size = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
        self.held += size(&value);
        let length = key.len();
        match self.memory.insert(key, value) {
            Some(before) => self.held -= size(&before),
            None => self.held += length + ENTRY_OVERHEAD_BYTES,
        }
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    ///
    /// Fails if a table that may have the key is damaged or cannot be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.counts.lookups.fetch_add(1, Relaxed);
        if let Some(value) = self.memory.get(key) {
            return Ok(value.clone());
        }
        let digest = self.options.hasher.digest_bytes(key);
        for slot in &self.newest_first {
            if let Some(newest) = self.read(slot, key, digest)? {
                return Ok(newest);
            }
        }
        Ok(None)
    }

    /// Returns all values of a key that have not been merged away, the newest first, with `None`
    /// for a deletion.
    ///
    /// # Errors
    ///
    /// Fails if a table is damaged or missing, or if one that may have the key cannot be read.
    pub fn history(&self, key: &[u8]) -> Result<Vec<Option<Vec<u8>>>> {
        self.counts.lookups.fetch_add(1, Relaxed);
        let mut all: Vec<_> = self.memory.get(key).cloned().into_iter().collect();
        let digest = self.options.hasher.digest_bytes(key);
        for slot in &self.newest_first {
            all.extend(self.read(slot, key, digest)?);
        }
        Ok(all)
    }

    /// Reads a table, unless its filter rules the key out.
    fn read(&self, slot: &Slot, key: &[u8], digest: Digest) -> Result<Option<Option<Vec<u8>>>> {
        let table = slot.table()?;
        if !table.filter.contains_digest(digest) {
            self.counts.skipped.fetch_add(1, Relaxed);
            return Ok(None);
        }
        self.counts.read.fetch_add(1, Relaxed);
        let found = table.get(key)?;
        self.counts.wasted.fetch_add(u64::from(found.is_none()), Relaxed);
        Ok(found)
    }

    /// Returns all keys that are not deleted in order, with their values. Reads every table.
    ///
    /// # Errors
    ///
    /// Fails if a table is damaged or missing. The iterator returns an error if a block is damaged
    /// or cannot be read.
    pub fn entries(&self) -> Result<impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> + '_> {
        let memory = self.memory.iter().map(|(key, value)| Ok((key.clone(), value.clone())));
        let tables = self.newest_first.iter().map(Slot::table).collect::<Result<Vec<_>>>()?;
        let sources = std::iter::once(Box::new(memory) as Source<'_>).chain(sources(tables));
        Ok(Merged::new(sources).filter_map(|entry| match entry {
            Ok((key, value)) => Some(Ok((key, value?))),
            Err(error) => Some(Err(error)),
        }))
    }

    /// Writes the entries in memory to a new table, if there are any.
    ///
    /// # Errors
    ///
    /// Fails if the table cannot be written. The entries then stay in memory and in the log.
    pub fn flush(&mut self) -> Result<()> {
        if self.memory.is_empty() {
            return Ok(());
        }
        let number = self.next_number();
        let entries = self.memory.iter().map(|(key, value)| Ok((key.clone(), value.clone())));
        let span = Span { first: number, last: number };
        let made = self.make(span, entries);
        if made.is_err() {
            // If the table exists but could not be opened, its log would not be read again, so
            // accept no more writes.
            let gone = fs::remove_file(self.folder.join(span.file_name()));
            if gone.is_err_and(|error| error.kind() != std::io::ErrorKind::NotFound)
                && let Some(log) = &mut self.log
            {
                log.close();
            }
        }
        self.newest_first.insert(0, made?);
        self.memory.clear();
        self.held = 0;
        if let Some(log) = self.log.take() {
            // The table exists, so a log that cannot be removed now is not read again.
            let _ = fs::remove_file(&log.path);
        }
        Ok(())
    }

    /// Waits until all writes are on disk, flushed to a table or not.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn sync(&self) -> Result<()> {
        self.log.as_ref().map_or(Ok(()), Log::sync)
    }

    /// Merges consecutive tables into one; 0 is the newest. The newest value of each key is kept.
    /// Deleted keys are dropped if the oldest table of the store is among the merged ones.
    ///
    /// # Errors
    ///
    /// Fails, and changes nothing, if the range is empty or out of bounds, if one of the tables is
    /// damaged, or if the new table cannot be written.
    pub fn merge(&mut self, tables: Range<usize>) -> Result<()> {
        let count = self.newest_first.len();
        let Some(slots) = self.newest_first.get(tables.clone()).filter(|slots| !slots.is_empty()) else {
            let got = format!("{} to {}", tables.start, tables.end);
            return Err(Error::parameter("tables", got, format!("some of the {count} that there are")));
        };
        let merged = slots.iter().map(Slot::table).collect::<Result<Vec<_>>>()?;
        let paths: Vec<PathBuf> = merged.iter().map(|table| table.path.clone()).collect();
        let (newest, oldest) = (merged[0].span, merged[merged.len() - 1].span);
        let span = Span { first: oldest.first, last: newest.last };
        let forget = tables.end == count;
        let lives = |entry: &Result<Entry>| !forget || !matches!(entry, Ok((_, None)));
        let made = self.make(span, Merged::new(sources(merged)).filter(lives));
        let own = self.folder.join(span.file_name());
        if made.is_err() && !paths.contains(&own) {
            // Opening the store would prefer this table over those it covers.
            let _ = fs::remove_file(&own);
        }
        self.newest_first.splice(tables, [made?]);
        // The new table covers the others. Files that cannot be removed now are removed when the
        // store is opened.
        for path in paths.iter().filter(|path| **path != own) {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    /// Writes a table and opens it.
    fn make(&self, span: Span, entries: impl Iterator<Item = Result<Entry>>) -> Result<Slot> {
        let path = self.folder.join(span.file_name());
        file::save_bytes(&path, &table::encode(span, entries, &self.options)?, Placing::default())?;
        Table::open(&path, span, &self.options).map(|table| Slot::Table(Box::new(table)))
    }

    /// Gives up a damaged or missing table: its entries are lost, and older values become visible
    /// again. Its file, if there is one, is renamed to end in `.damaged`. The other tables stay
    /// unchanged; 0 is the newest.
    ///
    /// # Errors
    ///
    /// Fails if the table is not damaged, its file cannot be renamed, or an empty table cannot be
    /// written in its place.
    pub fn set_aside(&mut self, table: usize) -> Result<()> {
        let Some(Slot::Damaged { span, path, .. }) = self.newest_first.get(table) else {
            return Err(Error::parameter("table", table, "the number of one that is damaged"));
        };
        if path.exists() {
            let aside = path.with_extension("table.damaged");
            fs::rename(path, aside).map_err(Error::io(path, "rename"))?;
        }
        let span = *span;
        // If a merge was interrupted, the tables it covers are still there and become visible
        // again.
        if self.newest_first.iter().any(|slot| slot.span() != span && span.covers(slot.span())) {
            self.newest_first.remove(table);
        } else {
            self.newest_first[table] = self.make(span, std::iter::empty())?;
        }
        Ok(())
    }

    /// Returns the tables, the newest first.
    pub fn tables(&self) -> Vec<TableInfo> {
        let info = |slot: &Slot| match slot {
            Slot::Table(table) => TableInfo {
                path: table.path.clone(),
                entries: table.entries,
                tombstones: table.tombstones,
                bytes: table.length,
                filter_bytes: table.filter.stats().bytes,
                damage: None,
            },
            Slot::Damaged { path, why, .. } => TableInfo {
                path: path.clone(),
                entries: 0,
                tombstones: 0,
                bytes: 0,
                filter_bytes: 0,
                damage: Some(why.clone()),
            },
        };
        self.newest_first.iter().map(info).collect()
    }

    /// Returns the costs of lookups since the store was opened.
    pub fn counts(&self) -> Counts {
        let AtomicCounts { lookups, skipped, read, wasted } = &self.counts;
        let [lookups, skipped, read, wasted] =
            [lookups, skipped, read, wasted].map(|count| count.load(Relaxed));
        Counts { lookups, asked: skipped + read, skipped, read, wasted }
    }

    /// Returns the number of bytes that were dropped from the end of the log when the store was
    /// opened: an incomplete record that a crash left.
    pub fn torn(&self) -> u64 {
        self.torn
    }
}

fn sources<'a>(tables: Vec<&'a Table>) -> impl Iterator<Item = Source<'a>> {
    tables.into_iter().map(|table| Box::new(table.entries()) as Source<'a>)
}

fn log_number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".log")?.parse().ok()?;
    (number < MAX_FLUSHES && format!("{number:08}.log") == name).then_some(number)
}

/// Takes an exclusive lock on a file.
fn locked(path: &Path) -> Result<File> {
    let io = |doing| Error::io(path, doing);
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(io("open"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(source)) => Err(io("lock")(source)),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { path: path.to_owned() }),
    }
}
