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
//! of a key in one table reads 1 + p times the number of newer tables. [`Reader::history`],
//! which has to consult all tables, reads 1 + (T - 1) p. [`share`] computes the best division of
//! memory among tables of different sizes.
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
//! - Only one process can have a store open. Others can read it with a [`Reader`] in between: it
//!   sees the store as it was when it was opened, writes nothing, and keeps nobody from writing.
//!
//! Tables are encoded in memory, so a merge needs as much memory as the size of its table. Entries
//! are not encrypted.
//!
//! # Hostile keys
//!
//! Filters are hashed with a random secret, so a client that chooses keys cannot find any that make
//! lookups read more tables than chance does. The secret is in the folder of the store, in a file
//! that only its owner can read. Without it no entry is lost: a store builds its filters again, and
//! a [`Reader`] of another user reads every table. Tables of a store without a secret, which earlier
//! versions wrote, are used as they are, until a merge replaces them. [`Options::hasher`] sets
//! another hash; its secret is not stored.
//!
//! # Batches
//!
//! [`Store::write`] writes many [`Changes`] at once, as a table of their own: all of them or none.
//! [`Store::compact`] merges tables when there are too many, so that a lookup queries a
//! bounded number of filters.
//!
//! ```
//! use umbel_text::tables::{Changes, Options, Reader, Store};
//! let folder = tempfile::tempdir()?;
//! let mut store = Store::open(folder.path(), Options::default())?;
//! let mut changes = Changes::default();
//! changes.put(b"apple", b"red")?;
//! changes.put(b"apricot", b"orange")?;
//! changes.put(b"pear", b"green")?;
//! store.write(changes)?;
//! drop(store);
//!
//! let reader = Reader::open(folder.path(), Options::default())?;
//! let keys = reader.prefixed(b"ap")?.map(|entry| Ok(entry?.0)).collect::<umbel_text::Result<Vec<_>>>()?;
//! assert_eq!(keys, [&b"apple"[..], b"apricot"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The files
//!
//! A store has tables, at most one log, the secret of its filters, the total of its lookups, and an
//! empty file that is locked.
//! The page `docs/tables.md` of the repository describes them byte by byte.

mod changes;
mod counts;
mod folder;
mod log;
mod merge;
mod reader;
mod secret;
mod share;
mod slot;
mod store;
mod table;

pub use changes::{Changes, MAX_KEY, MAX_VALUE};
pub use counts::Counts;
pub use folder::lock_path;
pub use reader::Reader;
pub use share::share;
pub use store::Store;

use crate::Result;
use slot::Span;
use std::path::PathBuf;
use std::time::Duration;
use umbel::Hasher;

/// The options of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The false-positive rate of the filter of each table.
    pub rate: f64,
    /// The number of bytes in memory above which the store is flushed.
    pub memory: usize,
    /// The hash of the filters. By default it is keyed with a secret of the store, which prevents
    /// crafted keys that all filters let pass.
    pub hasher: Option<Hasher>,
    /// How long to wait for another process that has the store open, before failing.
    pub wait: Duration,
}

impl Options {
    /// Fails if no filter can have the rate.
    fn check_rate(&self) -> Result<()> {
        umbel::Spec::new(1, self.rate).and_then(|spec| umbel::spec::plan(umbel::Kind::Blocked, &spec))?;
        Ok(())
    }
}

impl Default for Options {
    /// Returns a rate of 1 %, 4 MiB of memory, and the hash of the store, without waiting.
    fn default() -> Options {
        Options { rate: 0.01, memory: 4 << 20, hasher: None, wait: Duration::ZERO }
    }
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
