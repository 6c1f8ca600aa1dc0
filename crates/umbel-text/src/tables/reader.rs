//! The side of a store that reads: lookups, histories and ranges of keys.

use super::counts::{self, AtomicCounts, Counts};
use super::folder::{self, StoreFiles};
use super::log::{self, Log};
use super::merge::{Merged, Source};
use super::secret::{HashedKey, StoreHash};
use super::slot::{self, Slot, Span};
use super::{Options, TableInfo};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use umbel::AnyFilter;
use umbel::file::FormatError;

/// Whether files may be changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// Obsolete files are removed, and the incomplete end of a log is cut off.
    Write,
}

/// Looks keys up in a store, as it was when the reader was opened.
///
/// Tables never change, and a reader holds them open. So a writer is kept out only while a reader
/// is being opened, and may merge and remove the tables that the reader still uses. A reader
/// changes no file and can be shared between threads. Every [`Store`](super::Store) is a reader of
/// its own current state.
///
/// ```
/// use umbel_text::tables::{Options, Reader, Store};
/// let folder = tempfile::tempdir()?;
/// let mut store = Store::open(folder.path(), Options::default())?;
/// store.put(b"apple", b"red")?;
/// drop(store);
/// let reader = Reader::open(folder.path(), Options::default())?;
/// let mut store = Store::open(folder.path(), Options::default())?;
/// store.delete(b"apple")?;
/// assert_eq!(reader.get(b"apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    pub(super) folder: PathBuf,
    pub(super) options: Options,
    pub(super) hash: StoreHash,
    pub(super) memory: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    pub(super) newest_first: Vec<Slot>,
    torn: u64,
    counts: AtomicCounts,
}

impl Reader {
    /// Opens a store for reading. Creates and changes nothing, so the folder may be read-only.
    ///
    /// # Errors
    ///
    /// Fails if there is no store in the folder, the rate is out of range, another process has the
    /// store open, two tables overlap, the log is damaged, or the system refuses an operation. A
    /// damaged table is not an error here; see [`Reader::tables`].
    pub fn open(folder: impl AsRef<Path>, options: Options) -> Result<Reader> {
        let folder = folder.as_ref();
        options.check_rate()?;
        let lock = folder::lock_shared(folder, options.wait)?;
        let (reader, _) = Reader::load(folder, options, Access::Read)?;
        drop(lock);
        Ok(reader)
    }

    /// Opens the tables, and reads the log that has not become a table yet. Returns the log too,
    /// if there is one and it may be written to.
    pub(super) fn load(folder: &Path, options: Options, access: Access) -> Result<(Reader, Option<Log>)> {
        let files = match access {
            Access::Read => StoreFiles::check_store(folder)?,
            Access::Write => StoreFiles::list(folder)?,
        };
        let hash = StoreHash::open(folder, options.hasher.as_ref(), access)?;
        let newest_first = slot::open_all(folder, files.spans, options.rate, &hash, access)?;
        let mut reader = Reader {
            folder: folder.to_owned(),
            options,
            hash,
            memory: BTreeMap::new(),
            newest_first,
            torn: 0,
            counts: AtomicCounts::default(),
        };
        let log = reader.replay(files.logs, access)?;
        Ok((reader, log))
    }

    fn replay(&mut self, mut logs: Vec<u64>, access: Access) -> Result<Option<Log>> {
        logs.sort_unstable();
        let next = self.next_number();
        logs.retain(|number| {
            let of_a_table = *number < next;
            if of_a_table && access == Access::Write {
                // If the log cannot be removed now, the next opening tries again.
                let _ = fs::remove_file(folder::log_path(&self.folder, *number));
            }
            !of_a_table
        });
        let Some(number) = logs.pop() else { return Ok(None) };
        let path = folder::log_path(&self.folder, number);
        if !logs.is_empty() {
            let what = "there is another log before it, whose table is missing".into();
            return Err(Error::Format { path, problem: FormatError::Invalid { what } });
        }
        if number > next {
            self.newest_first.insert(0, slot::missing(&self.folder, Span { first: next, last: number - 1 }));
        }
        let records = log::read(&path, number)?;
        let log = (access == Access::Write).then(|| Log::reopen(&path, number, &records)).transpose()?;
        self.torn = records.torn;
        self.memory.extend(records.entries);
        Ok(log)
    }

    /// Returns the number of the next table.
    pub(super) fn next_number(&self) -> u64 {
        self.newest_first.first().map_or(1, |slot| slot.span().last + 1)
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
        let hashed = HashedKey::new(key, &self.hash);
        for slot in &self.newest_first {
            if let Some(newest) = self.read(slot, &hashed)? {
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
        let hashed = HashedKey::new(key, &self.hash);
        for slot in &self.newest_first {
            all.extend(self.read(slot, &hashed)?);
        }
        Ok(all)
    }

    /// Reads a table, unless its filter rules the key out.
    fn read(&self, slot: &Slot, key: &HashedKey<'_>) -> Result<Option<Option<Vec<u8>>>> {
        let table = slot.table()?;
        let rules_out = |filter: &AnyFilter| !filter.contains_digest(key.digest(filter.hasher()));
        if table.filter.as_ref().is_some_and(rules_out) {
            self.counts.skipped.fetch_add(1, Relaxed);
            return Ok(None);
        }
        self.counts.read.fetch_add(1, Relaxed);
        let found = table.get(key.key)?;
        self.counts.wasted.fetch_add(u64::from(found.is_none()), Relaxed);
        Ok(found)
    }

    /// Returns all keys that are not deleted in order, with their values. Holds one block of each
    /// table in memory at a time.
    ///
    /// # Errors
    ///
    /// Fails if a table is damaged or missing. The iterator returns an error if a block is damaged
    /// or cannot be read.
    pub fn entries(&self) -> Result<impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>> {
        self.range(Bound::Unbounded, Bound::Unbounded)
    }

    /// Returns the keys between two bounds like [`Reader::entries`]. Reads only the blocks that
    /// may have them.
    ///
    /// # Errors
    ///
    /// As those of [`Reader::entries`].
    pub fn range(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
    ) -> Result<impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>> {
        let tables = self.newest_first.iter().map(Slot::table).collect::<Result<Vec<_>>>()?;
        let start = match from {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => &[],
        };
        let memory = self.memory.range::<[u8], _>((Bound::Included(start), Bound::Unbounded));
        let memory = memory.map(|(key, value)| Ok((key.clone(), value.clone())));
        let tables = tables.into_iter().map(move |table| Box::new(table.entries_from(start)) as Source<'_>);
        let merged = Merged::new(std::iter::once(Box::new(memory) as Source<'_>).chain(tables));
        // Errors pass, whatever their place.
        let is_before = move |key: &[u8]| match from {
            Bound::Included(from) => key < from,
            Bound::Excluded(from) => key <= from,
            Bound::Unbounded => false,
        };
        let is_within = move |key: &[u8]| match to {
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
            Bound::Unbounded => true,
        };
        let entries = merged
            .skip_while(move |entry| entry.as_ref().is_ok_and(|(key, _)| is_before(key)))
            .take_while(move |entry| entry.as_ref().map_or(true, |(key, _)| is_within(key)));
        Ok(entries.filter_map(|entry| match entry {
            Ok((key, value)) => Some(Ok((key, value?))),
            Err(error) => Some(Err(error)),
        }))
    }

    /// Returns the keys that start with these bytes like [`Reader::entries`].
    ///
    /// # Errors
    ///
    /// As those of [`Reader::entries`].
    pub fn prefixed(&self, prefix: &[u8]) -> Result<impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>> {
        let entries = self.range(Bound::Included(prefix), Bound::Unbounded)?;
        let has_prefix = |key: &[u8]| key.starts_with(prefix);
        Ok(entries.take_while(move |entry| entry.as_ref().map_or(true, |(key, _)| has_prefix(key))))
    }

    /// Returns the tables, the newest first.
    pub fn tables(&self) -> Vec<TableInfo> {
        let info = |slot: &Slot| match slot {
            Slot::Table(table) => TableInfo {
                path: table.path.clone(),
                entries: table.entries,
                tombstones: table.tombstones,
                bytes: table.length,
                filter_bytes: table.filter.as_ref().map_or(0, |filter| filter.stats().bytes),
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

    /// Returns the number of changed keys that are in the log, but not in a table yet.
    pub fn unflushed(&self) -> usize {
        self.memory.len()
    }

    /// Returns the costs of lookups since the store was opened.
    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    /// Adds counts to the total in the folder of the store, and returns the new total. This is the
    /// only method of a reader that writes, so that programs which run for a moment can find out
    /// together how many reads the filters save.
    ///
    /// ```
    /// # use umbel_text::tables::{Options, Reader, Store};
    /// # let folder = tempfile::tempdir()?;
    /// # drop(Store::open(folder.path(), Options::default())?);
    /// for _ in 0..3 {
    ///     let reader = Reader::open(folder.path(), Options::default())?;
    ///     reader.get(b"apple")?;
    ///     reader.record(reader.counts())?;
    /// }
    /// let reader = Reader::open(folder.path(), Options::default())?;
    /// assert_eq!(reader.recorded()?.lookups, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the folder is read-only, other processes keep the file with the total locked, or
    /// that file is damaged or not a regular file; it is then left as it is.
    pub fn record(&self, counts: Counts) -> Result<Counts> {
        counts::add(&folder::counts_path(&self.folder), counts)
    }

    /// Returns the total of all counts that were [recorded](Reader::record).
    ///
    /// # Errors
    ///
    /// Fails if the file with the total is damaged, locked for long, not a regular file, or cannot
    /// be read.
    pub fn recorded(&self) -> Result<Counts> {
        counts::load(&folder::counts_path(&self.folder))
    }

    /// Returns the number of bytes at the end of the log that are an incomplete record, which a
    /// crash left. A [`Store`](super::Store) drops them when it is opened.
    pub fn torn(&self) -> u64 {
        self.torn
    }
}
