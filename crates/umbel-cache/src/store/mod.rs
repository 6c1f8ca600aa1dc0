//! Documents on disk, and where they are.
//!
//! A document is a file of its own: what is known of it, and its body if that is small; a large body is a file beside it.
//! Files are written under another name and get theirs when they are whole, and every one has its sums, so that a store can
//! be closed at any moment, or killed, and holds then only whole documents. The index is in memory; it is read anew from
//! the files when a store is opened.
//!
//! A document may have several variants, as answers that depend on the question do. Which of them fits is not for the store
//! to say: what is known of each is bytes here.
//!
//! ```
//! use std::sync::Arc;
//! use umbel_cache::CacheKey;
//! use umbel_cache::store::{Options, Store};
//!
//! let folder = tempfile::tempdir()?;
//! let store = Arc::new(Store::open(folder.path(), &Options::default())?);
//! let key = CacheKey::from_url("http://example.org/");
//! let mut writer = store.begin(&key, 0);
//! writer.write(b"Hello")?;
//! writer.commit(b"text/plain".to_vec())?;
//! let found = store.find(&key);
//! assert_eq!(found[0].head(), b"text/plain");
//! assert_eq!(store.body(&found[0])?.bytes()?, "Hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod entry;
mod file;
mod index;
mod writer;

pub use body::Body;
pub use entry::Entry;
pub use writer::Writer;

use crate::error::{Error, Result};
use crate::sync::{lock, read, write};
use crate::{CacheDigest, CacheKey, PublishTrigger, Summary, Update, Version};
use file::{Names, Place, Ready};
use index::Index;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;

/// What a store is like.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most bytes on disk. When there are more, documents go that were not asked for of late.
    pub max_bytes: u64,
    /// The most bytes in memory: bodies, and what is known of documents that were asked for of late.
    pub max_memory: u64,
    /// Bits of the summary for each document.
    pub summary_bits: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { max_bytes: 1 << 30, max_memory: 64 << 20, summary_bits: 16 }
    }
}

/// What is counted of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Documents, each of their variants counted.
    pub documents: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Bytes in memory.
    pub memory: u64,
    /// How many documents had to go for others.
    pub evicted: u64,
    /// How many were found damaged, and removed.
    pub damaged: u64,
}

/// Documents on disk.
#[derive(Debug)]
pub struct Store {
    names: Names,
    options: Options,
    /// Held by whoever changes files and the index, which must agree; those who only ask do not wait for it.
    changes: Mutex<()>,
    index: RwLock<Index>,
    summary: RwLock<Summary>,
    /// Grows with every question, so that it is known what was asked for last.
    clock: AtomicU64,
    evicted: AtomicU64,
    damaged: AtomicU64,
    /// Bytes of documents that are not whole yet.
    writing: AtomicU64,
    /// How often documents were changed, some of them together.
    changed: Box<[AtomicU64]>,
    /// Which of them share a place nobody else can know.
    hash: RandomState,
    /// Held as long as the store is open: no other process has it.
    _lock: File,
}

/// What was known of changes to a document when it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// Changes are counted in so many places. Documents that share one by chance are fetched once more.
const CHANGED: usize = 1 << 16;

/// So many documents go when the disk is full.
const ROOM: usize = 32;

/// A document has at most so many variants.
const MOST_VARIANTS: usize = 32;

impl Store {
    /// Opens a folder, which is created if it is not there. Whatever in it is not a whole document is removed.
    ///
    /// # Errors
    ///
    /// [`Error::NotACache`] if the folder has other things in it and never was a store, [`Error::InUse`] if another process
    /// has it open, [`Error::Store`] if the system refuses it, [`Error::Size`] or [`Error::Filter`] if there can be no
    /// summary of the documents.
    pub fn open(folder: &Path, options: &Options) -> Result<Store> {
        let failed = Error::store("open");
        fs::create_dir_all(folder).map_err(&failed)?;
        mark(folder)?;
        let held = take_lock(folder)?;
        let names = Names::open(folder).map_err(&failed)?;
        let (entries, damaged) = names.scan().map_err(&failed)?;
        let store = Store {
            names,
            options: options.clone(),
            changes: Mutex::default(),
            index: RwLock::default(),
            summary: RwLock::new(summary_of(entries.len() as u64, options.summary_bits)?),
            clock: AtomicU64::new(1),
            evicted: AtomicU64::new(0),
            damaged: AtomicU64::new(damaged),
            writing: AtomicU64::new(0),
            hash: RandomState::new(),
            changed: (0..CHANGED).map(|_| AtomicU64::new(0)).collect(),
            _lock: held,
        };
        entries.into_iter().for_each(|entry| store.add(&Arc::new(entry)));
        write(&store.summary).publish()?;
        store.make_room(&lock(&store.changes));
        Ok(store)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        self.names.folder()
    }

    /// The variants of a document.
    pub fn find(&self, key: &CacheKey) -> Vec<Arc<Entry>> {
        let found = read(&self.index).variants(key);
        let now = self.clock.fetch_add(1, Relaxed);
        found.iter().for_each(|entry| entry.touch(now));
        found
    }

    /// Whether a document may be here, by the summary alone: what it denies need not be looked for.
    pub fn may_have(&self, key: &CacheKey) -> bool {
        read(&self.summary).contains(key)
    }

    fn place(&self, key: &CacheKey) -> &AtomicU64 {
        &self.changed[self.hash.hash_one(key) as usize % CHANGED]
    }

    /// What is known of changes to a document up to now; see [`Writer::since`].
    pub fn ticket(&self, key: &CacheKey) -> Ticket {
        Ticket(self.place(key).load(Relaxed))
    }

    /// Somebody has changed a document: its variants go, and what was fetched before is not kept any more.
    pub fn invalidate(&self, key: &CacheKey) {
        let changing = lock(&self.changes);
        self.place(key).fetch_add(1, Relaxed);
        let variants = read(&self.index).variants(key);
        variants.iter().for_each(|entry| {
            self.remove_while(&changing, entry);
        });
    }

    /// Begins a document, or a variant of it. Nobody sees it before it is [committed](Writer::commit).
    pub fn begin(self: &Arc<Store>, key: &CacheKey, variant: u64) -> Writer {
        Writer::new(Arc::clone(self), *key, variant)
    }

    /// Replaces the head of a document; its body stays. If the document is not there any more, or another has come in its
    /// place, nothing happens.
    ///
    /// # Errors
    ///
    /// Those of [`Store::body`] and [`Writer::commit`].
    pub fn update(&self, entry: &Arc<Entry>, head: Vec<u8>) -> Result<Option<Arc<Entry>>> {
        let body = match entry.place() {
            Place::Inline { .. } => Ready::Inline(self.body(entry)?.bytes()?),
            Place::Beside { id, len, sum } => Ready::Beside { id: *id, len: *len, sum: *sum },
        };
        let changing = lock(&self.changes);
        if !read(&self.index).variants(entry.key()).iter().any(|there| Arc::ptr_eq(there, entry)) {
            return Ok(None);
        }
        self.put(&changing, entry.key(), entry.variant(), head, body).map(Some)
    }

    /// Returns the body of a document.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if it is not what was written, in which case the document is removed; [`Error::Store`] if the
    /// system refuses to read it.
    pub fn body(&self, entry: &Arc<Entry>) -> Result<Body> {
        match entry.open_body(&self.names) {
            Ok(body) => {
                self.make_memory();
                Ok(body)
            }
            Err(error) if is_damage(&error) => {
                // Unless another has come in its place meanwhile.
                if self.remove(entry) {
                    self.damaged.fetch_add(1, Relaxed);
                }
                Err(Error::Damaged(error))
            }
            Err(error) => Err(Error::store("read")(error)),
        }
    }

    /// Removes a document, if it is still the one that is there; whether it was.
    pub fn remove(&self, entry: &Arc<Entry>) -> bool {
        self.remove_while(&lock(&self.changes), entry)
    }

    fn remove_while(&self, _changing: &MutexGuard<'_, ()>, entry: &Arc<Entry>) -> bool {
        let (removed, last) = {
            let mut index = write(&self.index);
            (index.remove(entry), !index.has(entry.key()))
        };
        if removed {
            if last {
                write(&self.summary).remove(entry.key());
            }
            self.names.remove(entry);
        }
        removed
    }

    /// Writes a document whose body is ready, unless it was changed since it was asked for.
    fn commit(
        &self,
        (key, variant): (&CacheKey, u64),
        since: Option<Ticket>,
        head: Vec<u8>,
        body: Ready,
    ) -> Result<Arc<Entry>> {
        let (changing, file) = (lock(&self.changes), body.file());
        let put = if since.is_none_or(|since| since == self.ticket(key)) {
            self.put(&changing, key, variant, head, body)
        } else {
            Err(Error::Changed)
        };
        put.inspect_err(|_| {
            if let Some(file) = file {
                self.names.discard(file);
            }
        })
    }

    /// Writes a document whose body is ready, in place of what was there.
    fn put(
        &self,
        changing: &MutexGuard<'_, ()>,
        key: &CacheKey,
        variant: u64,
        head: Vec<u8>,
        body: Ready,
    ) -> Result<Arc<Entry>> {
        let written = self.names.write_head(key, variant, head, body);
        let entry = Arc::new(written.map_err(Error::store("write to"))?);
        self.add(&entry);
        let variants = read(&self.index).variants(key);
        if variants.len() > MOST_VARIANTS
            && let Some(seldom) = variants.iter().min_by_key(|entry| entry.used())
        {
            self.remove_while(changing, seldom);
        }
        self.make_room(changing);
        self.make_memory();
        Ok(entry)
    }

    /// Puts a document into the index, in place of the variant that was there.
    fn add(&self, entry: &Arc<Entry>) {
        entry.touch(self.clock.fetch_add(1, Relaxed));
        let (new, replaced) = {
            let mut index = write(&self.index);
            (!index.has(entry.key()), index.insert(Arc::clone(entry)))
        };
        if new {
            write(&self.summary).insert(entry.key());
        }
        if let Some(replaced) = replaced {
            self.names.remove_body(&replaced, entry);
        }
    }

    /// How much there is.
    pub fn size(&self) -> Size {
        let index = read(&self.index);
        Size {
            documents: index.len() as u64,
            bytes: index.bytes(),
            memory: self.names.taken(),
            evicted: self.evicted.load(Relaxed),
            damaged: self.damaged.load(Relaxed),
        }
    }

    /// The keys of all documents.
    pub fn keys(&self) -> Vec<CacheKey> {
        read(&self.index).keys()
    }

    /// Returns the digest of all documents, as Squid would make it.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] if there are too many documents, [`Error::Filter`] if there is no memory for it.
    pub fn digest(&self, bits_per_entry: u8) -> Result<CacheDigest> {
        CacheDigest::from_keys(&self.keys(), bits_per_entry)
    }

    /// What to tell a cache that knows this state of the summary.
    pub fn summary_since(&self, since: Option<Version>) -> Update {
        read(&self.summary).update(since)
    }

    /// Publishes the summary if it is due, so long after the last time, and returns whether it was. A summary that has become
    /// too small for all documents is replaced by a larger one.
    ///
    /// # Errors
    ///
    /// Those of [`Summary::new`] and [`Summary::publish`].
    pub fn publish(&self, trigger: &PublishTrigger, since: Duration) -> Result<bool> {
        if !read(&self.summary).is_due(trigger, since) {
            return Ok(false);
        }
        // Nothing comes or goes meanwhile.
        let _changing = lock(&self.changes);
        let mut summary = write(&self.summary);
        if summary.key_count() > summary.capacity() {
            let mut larger = summary_of(summary.key_count(), self.options.summary_bits)?;
            read(&self.index).keys().iter().for_each(|key| larger.insert(key));
            *summary = larger;
        }
        summary.publish()?;
        Ok(true)
    }

    /// Notes that so much more is being written, if that is not too much at once.
    fn note_writing(&self, bytes: u64) -> Result<()> {
        if self.writing.fetch_add(bytes, Relaxed) + bytes <= self.options.max_bytes {
            return Ok(());
        }
        self.writing.fetch_sub(bytes, Relaxed);
        Err(Error::Overloaded)
    }

    /// Where the disk is full some documents go, so that the next one has a place.
    fn note_failure(&self, error: &io::Error) {
        if error.kind() != io::ErrorKind::StorageFull {
            return;
        }
        let changing = lock(&self.changes);
        for _ in 0..ROOM {
            self.evict(&changing);
        }
    }

    /// Removes a document that was not asked for of late; whether there was one.
    fn evict(&self, changing: &MutexGuard<'_, ()>) -> bool {
        let seldom = read(&self.index).seldom_used(self.clock.fetch_add(1, Relaxed), |_| true);
        let gone = seldom.is_some_and(|entry| self.remove_while(changing, &entry));
        self.evicted.fetch_add(gone.into(), Relaxed);
        gone
    }

    /// Removes documents until there is not too much on disk.
    fn make_room(&self, changing: &MutexGuard<'_, ()>) {
        while read(&self.index).bytes() > self.options.max_bytes && self.evict(changing) {}
    }

    /// Gives up bodies in memory until there are not too many.
    fn make_memory(&self) {
        while self.names.taken() > self.options.max_memory {
            let seed = self.clock.fetch_add(1, Relaxed);
            match read(&self.index).seldom_used(seed, Entry::is_in_memory) {
                Some(entry) => entry.forget_memory(),
                None => return,
            }
        }
    }
}

/// Whether an error says that a document is not what was written.
fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    [InvalidData, NotFound, UnexpectedEof].contains(&error.kind())
}

/// A folder that is a store has this file, so that no other folder is taken for one and cleaned.
const MARK: &str = "umbel-cache";

fn mark(folder: &Path) -> Result<()> {
    let (mark, failed) = (folder.join(MARK), Error::store("open"));
    if mark.exists() {
        return Ok(());
    }
    if fs::read_dir(folder).map_err(&failed)?.next().is_some() {
        return Err(Error::NotACache { folder: folder.to_owned() });
    }
    fs::write(mark, "A cache of umbel is in this folder.\n").map_err(failed)
}

/// How often, and how long after one another, it is tried to get a folder: one who had it may be about to end.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Takes a folder for this process alone.
fn take_lock(folder: &Path) -> Result<File> {
    let failed = Error::store("open");
    let lock = OpenOptions::new().write(true).create(true).truncate(false).open(folder.join("lock"));
    let lock = lock.map_err(&failed)?;
    for _ in 0..TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
    Err(Error::InUse { folder: folder.to_owned() })
}

/// Creates an empty summary for twice as many documents.
fn summary_of(documents: u64, bits: u32) -> Result<Summary> {
    Summary::new((2 * documents).max(1024), bits)
}
