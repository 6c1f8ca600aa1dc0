//! A store of responses on disk, with an index in memory.
//!
//! Each response is a file with its head and, if that is small, its body; a large body is a
//! separate file. Files are written under a temporary name and renamed when they are complete, and
//! all of them have checksums. The process can therefore be killed at any moment, and the store
//! still has only complete responses. Opening a store rebuilds the index from the files.
//!
//! A key can have several variants, which are responses that depend on request headers. The store
//! does not select one of them: it treats the head of a response as opaque bytes, which
//! [`StoredHead`](crate::rules::StoredHead) interprets.
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
//! assert_eq!(found[0].head_bytes(), b"text/plain");
//! assert_eq!(store.body(&found[0])?.bytes()?, "Hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod entry;
mod files;
mod folder;
mod index;
mod invalidations;
mod writer;

pub use body::Body;
pub use entry::Entry;
pub use invalidations::InvalidationCount;
pub use writer::EntryWriter;

use crate::error::{Error, Result};
use crate::{CacheDigest, CacheKey, PublishTrigger, Summary, Update, Version};
use files::{BodyLocation, FinishedBody, StoreFiles};
use index::Index;
use invalidations::Invalidations;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;
use umbel::internals::sync::{lock, read, write};

/// The limits of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The largest number of bytes on disk. Beyond that, responses that were not used recently are
    /// evicted.
    pub max_bytes: u64,
    /// The largest number of bytes in memory, for the bodies and decoded heads of recently used
    /// responses.
    pub max_memory: u64,
    /// The bits per key of the summary.
    pub summary_bits_per_key: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { max_bytes: 1 << 30, max_memory: 64 << 20, summary_bits_per_key: 16 }
    }
}

/// The contents of a store in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Stored responses. Each variant of a key counts.
    pub responses: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Bytes in memory.
    pub memory: u64,
    /// Responses evicted to make room for others.
    pub evicted: u64,
    /// Responses that were found damaged and removed.
    pub damaged: u64,
}

/// A store of responses on disk.
#[derive(Debug)]
pub struct Store {
    files: StoreFiles,
    options: Options,
    /// Held while files and the index change together. Readers do not take it.
    changes: Mutex<()>,
    index: RwLock<Index>,
    summary: RwLock<Summary>,
    /// A clock that advances with every lookup and orders entries by their last use.
    clock: AtomicU64,
    evicted: AtomicU64,
    damaged: AtomicU64,
    /// The bytes of responses that are not committed yet.
    bytes_in_progress: AtomicU64,
    invalidations: Invalidations,
    /// The lock on the folder, which keeps other processes out as long as the store is open.
    _folder_lock: File,
}

/// The number of responses that are evicted when the disk is full.
const EVICTIONS_WHEN_FULL: usize = 32;

/// The largest number of variants of a key.
const MAX_VARIANTS: usize = 32;

impl Store {
    /// Opens the store in a folder, which is created if it does not exist. Only its owner has access
    /// to it. Incomplete and damaged files are removed.
    ///
    /// # Errors
    ///
    /// [`Error::NotACache`] if the folder has files but is not a store, [`Error::NotOwned`] if it
    /// belongs to another user, [`Error::InUse`] if another
    /// process has it open, [`Error::Store`] if the system refuses access, [`Error::Size`] or
    /// [`Error::Filter`] if the summary cannot be created.
    pub fn open(folder: &Path, options: &Options) -> Result<Store> {
        let failed = Error::store("open");
        folder::create(folder).map_err(&failed)?;
        folder::mark(folder)?;
        let folder_lock = folder::lock(folder)?;
        let files = StoreFiles::open(folder).map_err(&failed)?;
        let (entries, damaged) = files.scan().map_err(&failed)?;
        let store = Store {
            files,
            options: options.clone(),
            changes: Mutex::default(),
            index: RwLock::default(),
            summary: RwLock::new(roomy_summary(entries.len() as u64, options.summary_bits_per_key)?),
            clock: AtomicU64::new(1),
            evicted: AtomicU64::new(0),
            damaged: AtomicU64::new(damaged),
            bytes_in_progress: AtomicU64::new(0),
            invalidations: Invalidations::new(),
            _folder_lock: folder_lock,
        };
        entries.into_iter().for_each(|entry| store.add(&Arc::new(entry)));
        write(&store.summary).publish()?;
        store.evict_to_limit(&lock(&store.changes));
        Ok(store)
    }

    /// Returns the folder of the store.
    pub fn folder(&self) -> &Path {
        self.files.folder()
    }

    /// Returns all variants of a key.
    pub fn find(&self, key: &CacheKey) -> Vec<Arc<Entry>> {
        let variants = read(&self.index).variants(key);
        let now = self.clock.fetch_add(1, Relaxed);
        variants.iter().for_each(|entry| entry.touch(now));
        variants
    }

    /// Returns whether the store may have a response for this key, by the summary alone.
    pub fn may_contain(&self, key: &CacheKey) -> bool {
        read(&self.summary).contains(key)
    }

    /// Returns how often a key was invalidated. Pass it to
    /// [`EntryWriter::unless_invalidated_since`] to discard a response that was requested before an
    /// invalidation.
    pub fn invalidation_count(&self, key: &CacheKey) -> InvalidationCount {
        self.invalidations.count(key)
    }

    /// Removes all variants of a key whose resource has changed, and makes fetches that are under
    /// way fail to commit.
    pub fn invalidate(&self, key: &CacheKey) {
        let changes = lock(&self.changes);
        self.invalidations.increment(key);
        let variants = read(&self.index).variants(key);
        variants.iter().for_each(|entry| {
            self.remove_locked(&changes, entry);
        });
    }

    /// Begins to write a variant of a key. It becomes visible when it is
    /// [committed](EntryWriter::commit).
    pub fn begin(self: &Arc<Store>, key: &CacheKey, variant: u64) -> EntryWriter {
        EntryWriter::new(Arc::clone(self), *key, variant)
    }

    /// Replaces the head of an entry and keeps its body. Returns `None` and changes nothing if the
    /// entry was removed or replaced meanwhile.
    ///
    /// # Errors
    ///
    /// Those of [`Store::body`] and [`EntryWriter::commit`].
    pub fn update_head(&self, entry: &Arc<Entry>, head: Vec<u8>) -> Result<Option<Arc<Entry>>> {
        let body = match entry.location() {
            BodyLocation::Inline { .. } => FinishedBody::Inline(self.body(entry)?.bytes()?),
            BodyLocation::Separate { id, len, checksum } => {
                FinishedBody::Separate { id: *id, len: *len, checksum: *checksum }
            }
        };
        let changes = lock(&self.changes);
        if !read(&self.index).variants(entry.key()).iter().any(|current| Arc::ptr_eq(current, entry)) {
            return Ok(None);
        }
        self.put(&changes, entry.key(), entry.variant(), head, body).map(Some)
    }

    /// Opens the body of an entry.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if the body is damaged, in which case the entry is removed;
    /// [`Error::Store`] if the system refuses to read it.
    pub fn body(&self, entry: &Arc<Entry>) -> Result<Body> {
        match entry.open_body(&self.files) {
            Ok(body) => {
                self.release_memory_to_limit();
                Ok(body)
            }
            Err(error) if is_damage(&error) => {
                // If another entry has replaced this one, its files are gone for that reason.
                if self.remove(entry) {
                    self.damaged.fetch_add(1, Relaxed);
                }
                Err(Error::Damaged(error))
            }
            Err(error) => Err(Error::store("read")(error)),
        }
    }

    /// Removes an entry and returns whether it was still present.
    pub fn remove(&self, entry: &Arc<Entry>) -> bool {
        self.remove_locked(&lock(&self.changes), entry)
    }

    fn remove_locked(&self, _changes: &MutexGuard<'_, ()>, entry: &Arc<Entry>) -> bool {
        let (removed, was_last_variant) = {
            let mut index = write(&self.index);
            (index.remove(entry), !index.contains(entry.key()))
        };
        if removed {
            if was_last_variant {
                write(&self.summary).remove(entry.key());
            }
            self.files.remove(entry);
        }
        removed
    }

    /// Stores a response with a complete body, unless its key was invalidated since `invalidations`
    /// was taken.
    fn commit(
        &self,
        (key, variant): (&CacheKey, u64),
        invalidations: Option<InvalidationCount>,
        head: Vec<u8>,
        body: FinishedBody,
    ) -> Result<Arc<Entry>> {
        let (changes, separate_id) = (lock(&self.changes), body.separate_id());
        let put = if invalidations.is_none_or(|count| count == self.invalidation_count(key)) {
            self.put(&changes, key, variant, head, body)
        } else {
            Err(Error::Invalidated)
        };
        put.inspect_err(|_| {
            if let Some(id) = separate_id {
                self.files.discard_body(id);
            }
        })
    }

    /// Stores a response with a complete body in place of the same variant.
    fn put(
        &self,
        changes: &MutexGuard<'_, ()>,
        key: &CacheKey,
        variant: u64,
        head: Vec<u8>,
        body: FinishedBody,
    ) -> Result<Arc<Entry>> {
        let written = self.files.write_head(key, variant, head, body);
        let entry = Arc::new(written.map_err(Error::store("write to"))?);
        self.add(&entry);
        let variants = read(&self.index).variants(key);
        if variants.len() > MAX_VARIANTS
            && let Some(oldest) = variants.iter().min_by_key(|entry| entry.last_used())
        {
            self.remove_locked(changes, oldest);
        }
        self.evict_to_limit(changes);
        self.release_memory_to_limit();
        Ok(entry)
    }

    /// Adds an entry to the index and the summary, in place of the same variant.
    fn add(&self, entry: &Arc<Entry>) {
        entry.touch(self.clock.fetch_add(1, Relaxed));
        let (is_new_key, replaced) = {
            let mut index = write(&self.index);
            (!index.contains(entry.key()), index.insert(Arc::clone(entry)))
        };
        if is_new_key {
            write(&self.summary).insert(entry.key());
        }
        if let Some(replaced) = replaced {
            self.files.remove_replaced_body(&replaced, entry);
        }
    }

    /// Returns the contents of the store in numbers.
    pub fn stats(&self) -> StoreStats {
        let index = read(&self.index);
        StoreStats {
            responses: index.len() as u64,
            bytes: index.disk_bytes(),
            memory: self.files.memory_bytes(),
            evicted: self.evicted.load(Relaxed),
            damaged: self.damaged.load(Relaxed),
        }
    }

    /// Returns all keys.
    pub fn keys(&self) -> Vec<CacheKey> {
        read(&self.index).keys()
    }

    /// Builds Squid's cache digest of all keys.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] if there are too many keys, [`Error::Filter`] if there is no memory for the
    /// digest.
    pub fn digest(&self, bits_per_entry: u8) -> Result<CacheDigest> {
        CacheDigest::from_keys(&self.keys(), bits_per_entry)
    }

    /// Returns the update of the summary for a peer that has this version.
    pub fn summary_since(&self, since: Option<Version>) -> Update {
        read(&self.summary).update(since)
    }

    /// Publishes the summary if it is due, given the time since the last publication, and returns
    /// whether it was. A summary with more keys than its capacity is replaced by a larger one.
    ///
    /// # Errors
    ///
    /// Those of [`Summary::new`] and [`Summary::publish`].
    pub fn publish(&self, trigger: &PublishTrigger, elapsed: Duration) -> Result<bool> {
        if !read(&self.summary).is_due(trigger, elapsed) {
            return Ok(false);
        }
        // The index must not change while a larger summary is built from it.
        let _changes = lock(&self.changes);
        let mut summary = write(&self.summary);
        if summary.key_count() > summary.capacity() {
            let mut larger = roomy_summary(summary.key_count(), self.options.summary_bits_per_key)?;
            read(&self.index).keys().iter().for_each(|key| larger.insert(key));
            *summary = larger;
        }
        summary.publish()?;
        Ok(true)
    }

    /// Counts bytes that are about to be written, and fails if too many are being written at once.
    fn reserve_write(&self, bytes: u64) -> Result<()> {
        if self.bytes_in_progress.fetch_add(bytes, Relaxed) + bytes <= self.options.max_bytes {
            return Ok(());
        }
        self.bytes_in_progress.fetch_sub(bytes, Relaxed);
        Err(Error::Overloaded)
    }

    /// Evicts some responses if a write has failed because the disk is full, so that the next one
    /// succeeds.
    fn handle_write_error(&self, error: &io::Error) {
        if error.kind() != io::ErrorKind::StorageFull {
            return;
        }
        let changes = lock(&self.changes);
        for _ in 0..EVICTIONS_WHEN_FULL {
            self.evict_one(&changes);
        }
    }

    /// Evicts an entry that was not used recently, and returns whether there was one.
    fn evict_one(&self, changes: &MutexGuard<'_, ()>) -> bool {
        let oldest = read(&self.index).sample_least_recent(self.clock.fetch_add(1, Relaxed), |_| true);
        let evicted = oldest.is_some_and(|entry| self.remove_locked(changes, &entry));
        self.evicted.fetch_add(evicted.into(), Relaxed);
        evicted
    }

    /// Evicts entries until the store is within its limit on disk.
    fn evict_to_limit(&self, changes: &MutexGuard<'_, ()>) {
        while read(&self.index).disk_bytes() > self.options.max_bytes && self.evict_one(changes) {}
    }

    /// Drops bodies and heads from memory until the store is within its limit there.
    fn release_memory_to_limit(&self) {
        while self.files.memory_bytes() > self.options.max_memory {
            let seed = self.clock.fetch_add(1, Relaxed);
            match read(&self.index).sample_least_recent(seed, Entry::is_in_memory) {
                Some(entry) => entry.release_memory(),
                None => return,
            }
        }
    }
}

/// Returns whether an error means that a stored response is damaged.
fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    [InvalidData, NotFound, UnexpectedEof].contains(&error.kind())
}

/// Creates an empty summary with room for twice as many keys.
fn roomy_summary(keys: u64, bits_per_key: u32) -> Result<Summary> {
    Summary::new((2 * keys).max(1024), bits_per_key)
}
