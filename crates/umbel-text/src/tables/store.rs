//! The side of a store that writes: changes, flushes and merges.

use super::Options;
use super::changes::{Changes, check_lengths};
use super::folder::{self, StoreFiles};
use super::log::{self, Log};
use super::merge::{self, Merged, Source};
use super::reader::{Access, Reader};
use super::slot::{Slot, Span};
use super::table::{self, Entry, Table};
use crate::{Error, Result};
use std::fs::{self, File};
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use umbel::file::{self, Placing};

/// The approximate memory that an entry takes besides its key and value.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// A key-value store of sorted tables in a folder.
///
/// It is a [`Reader`] too, which has the methods for lookups.
#[derive(Debug)]
pub struct Store {
    reader: Reader,
    /// The number of bytes in memory.
    held: usize,
    /// `None` until something is written.
    log: Option<Log>,
    /// Whether single writes are refused, because opening the store would not read them back.
    closed: bool,
    /// Holds the lock while the store is open.
    _lock: File,
}

impl Deref for Store {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}

impl Store {
    /// Opens a store. Creates the folder if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the rate is out of range, the folder holds other files but no store, another
    /// process has the store open, two tables overlap, the log is damaged, or the system refuses
    /// an operation. A damaged table is not an error here; see [`Reader::tables`].
    pub fn open(folder: impl AsRef<Path>, options: Options) -> Result<Store> {
        let folder = folder.as_ref();
        // Fail now instead of at the first flush, and create nothing.
        options.check_rate()?;
        fs::create_dir_all(folder).map_err(Error::io(folder, "create"))?;
        StoreFiles::list(folder)?.check_not_foreign(folder)?;
        let lock = folder::lock(folder, options.wait)?;
        let (mut reader, log) = Reader::load(folder, options, Access::Write)?;
        reader.hash.save(folder)?;
        let held = reader.memory.iter().map(|(key, value)| entry_bytes(key, value.as_deref())).sum();
        Ok(Store { reader, held, log, closed: false, _lock: lock })
    }

    /// Opens a store that exists. Creates no folder and no store.
    ///
    /// # Errors
    ///
    /// Fails if there is no store in the folder, and as [`Store::open`] does.
    pub fn open_existing(folder: impl AsRef<Path>, options: Options) -> Result<Store> {
        let folder = folder.as_ref();
        StoreFiles::check_store(folder)?;
        Store::open(folder, options)
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// Fails, and writes nothing, if the key or the value is too long, or if a flush or the log
    /// fails.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write_one(key, Some(value))
    }

    /// Deletes a key, whether it exists or not.
    ///
    /// # Errors
    ///
    /// Fails, and writes nothing, if the key is too long, or if a flush or the log fails.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.write_one(key, None)
    }

    fn write_one(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        check_lengths(key, value)?;
        // Flush before the write, so that an error means that nothing was written.
        if self.held >= self.options.memory {
            self.flush()?;
        }
        if self.closed {
            let path = self.folder.clone();
            return Err(Error::Format { path, problem: log::refused() });
        }
        if self.log.is_none() {
            let number = self.next_number();
            self.log = Some(Log::create(&folder::log_path(&self.folder, number), number)?);
        }
        self.log.as_mut().map_or(Ok(()), |log| log.append(key, value))?;
        self.held += entry_bytes(key, value);
        if let Some(before) = self.reader.memory.insert(key.to_vec(), value.map(<[u8]>::to_vec)) {
            self.held -= entry_bytes(key, before.as_deref());
        }
        Ok(())
    }

    /// Writes a batch of changes as a table of their own, if there are any. They are on disk when
    /// this returns.
    ///
    /// # Errors
    ///
    /// Fails, and writes none of the changes, if a flush fails or the table cannot be written.
    pub fn write(&mut self, changes: Changes) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        // The log is older than the changes.
        self.flush()?;
        self.push_table(changes.0.into_iter())
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
        let memory = std::mem::take(&mut self.reader.memory);
        let written = self.push_table(memory.iter().map(|(key, value)| (key.clone(), value.clone())));
        if written.is_err() {
            self.reader.memory = memory;
            return written;
        }
        self.held = 0;
        Ok(())
    }

    /// Writes these entries to a table that is newer than all others. The log, which has the same
    /// number, must hold no other entries: it is obsolete from then on, even if it is empty.
    fn push_table(&mut self, entries: impl Iterator<Item = Entry>) -> Result<()> {
        let number = self.next_number();
        let span = Span { first: number, last: number };
        match self.make(span, entries.map(Ok)) {
            Ok(table) => self.reader.newest_first.insert(0, table),
            Err(error) => {
                // If the table exists but could not be opened, the log of its number would not be
                // read again, so accept no more writes to it.
                let gone = fs::remove_file(self.folder.join(span.file_name()));
                self.closed = gone.is_err_and(|error| error.kind() != io::ErrorKind::NotFound);
                return Err(error);
            }
        }
        // This table has replaced one that an earlier failure left.
        self.closed = false;
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
        let sources = merged.into_iter().map(|table| Box::new(table.entries()) as Source<'_>);
        let made = self.make(span, Merged::new(sources).filter(lives));
        let own = self.folder.join(span.file_name());
        if made.is_err() && !paths.contains(&own) {
            // Opening the store would prefer this table over those it covers.
            let _ = fs::remove_file(&own);
        }
        self.reader.newest_first.splice(tables, [made?]);
        // The new table covers the others. Files that cannot be removed now are removed when the
        // store is opened.
        for path in paths.iter().filter(|path| **path != own) {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    /// Merges tables while there are more than `max_tables`.
    ///
    /// A merge takes two neighbours, and each next older table that is at most twice as large as
    /// those taken before it. Of all such runs it takes the one with the fewest bytes per table that
    /// goes away. So small tables are merged with each other, and a large one is left alone while
    /// there are cheaper merges. Damaged tables, and those older than a damaged one, stay as they
    /// are.
    ///
    /// # Errors
    ///
    /// As those of [`Store::merge`].
    pub fn compact(&mut self, max_tables: usize) -> Result<()> {
        while self.newest_first.len() > max_tables {
            let intact = self.newest_first.iter().map_while(|slot| slot.table().ok());
            let sizes: Vec<u64> = intact.map(|table| table.length).collect();
            let Some(run) = merge::due(&sizes) else { break };
            self.merge(run)?;
        }
        Ok(())
    }

    /// Writes a table and opens it.
    fn make(&self, span: Span, entries: impl Iterator<Item = Result<Entry>>) -> Result<Slot> {
        let path = self.folder.join(span.file_name());
        let bytes = table::encode(span, entries, self.options.rate, self.hash.hasher())?;
        file::save_bytes(&path, &bytes, Placing::default())?;
        Table::open(&path, span, self.options.rate, &self.hash).map(|table| Slot::Table(Box::new(table)))
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
            self.reader.newest_first.remove(table);
        } else {
            self.reader.newest_first[table] = self.make(span, std::iter::empty())?;
        }
        Ok(())
    }
}

/// Returns the approximate memory that an entry takes.
fn entry_bytes(key: &[u8], value: Option<&[u8]>) -> usize {
    key.len() + value.map_or(0, <[u8]>::len) + ENTRY_OVERHEAD_BYTES
}
