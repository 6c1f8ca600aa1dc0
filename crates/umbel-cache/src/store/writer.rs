//! A response that is being written. It becomes visible to readers when it is committed.

use super::body::Body;
use super::entry::Entry;
use super::files::FinishedBody;
use super::{InvalidationCount, Store, folder};
use crate::CacheKey;
use crate::error::{Error, Result};
use bytes::Bytes;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use xxhash_rust::xxh3::Xxh3Default;

/// The largest body that is stored in the same file as its head.
pub(super) const MAX_INLINE_BYTES: usize = 64 << 10;

/// A response that is being written to the store. Dropping the writer before
/// [`commit`](EntryWriter::commit) discards it.
pub struct EntryWriter {
    store: Arc<Store>,
    key: CacheKey,
    variant: u64,
    invalidations: Option<InvalidationCount>,
    /// The body as long as it is small enough to be stored inline.
    buffer: Vec<u8>,
    /// The file of a larger body.
    file: Option<(PathBuf, File)>,
    len: u64,
    checksum: Xxh3Default,
    /// The bytes that the store counts as being written by this writer.
    reserved: u64,
}

impl EntryWriter {
    pub(super) fn new(store: Arc<Store>, key: CacheKey, variant: u64) -> EntryWriter {
        EntryWriter {
            store,
            key,
            variant,
            invalidations: None,
            buffer: Vec::new(),
            file: None,
            len: 0,
            checksum: Xxh3Default::new(),
            reserved: 0,
        }
    }

    /// Makes [`commit`](EntryWriter::commit) fail if the key is invalidated after `count` was
    /// taken.
    pub fn unless_invalidated_since(mut self, count: InvalidationCount) -> EntryWriter {
        self.invalidations = Some(count);
        self
    }

    /// Returns the number of bytes written.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether no bytes were written yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends to the body. After an error nothing more can be written, but earlier bytes can be
    /// [read back](EntryWriter::read_back).
    ///
    /// # Errors
    ///
    /// [`Error::Overloaded`] if too much is being written at once, [`Error::Store`] if the system
    /// refuses it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.store.reserve_write(bytes.len() as u64)?;
        self.reserved += bytes.len() as u64;
        let written = self.append(bytes).inspect_err(|error| self.store.handle_write_error(error));
        written.map_err(Error::store("write to"))?;
        self.len += bytes.len() as u64;
        self.checksum.update(bytes);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() && self.buffer.len() + bytes.len() > MAX_INLINE_BYTES {
            let (path, mut file) = self.store.files.create_temporary()?;
            let written = file.write_all(&self.buffer);
            self.file = Some((path, file));
            written?;
            // From now on the body is in the file. The buffer keeps it if the write has failed.
            self.buffer = Vec::new();
        }
        match &mut self.file {
            Some((_, file)) => file.write_all(bytes),
            None => {
                self.buffer.extend(bytes);
                Ok(())
            }
        }
    }

    /// Returns the bytes written so far. They stay readable whether or not the response is
    /// committed.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the file cannot be opened.
    pub fn read_back(&self) -> Result<Body> {
        match &self.file {
            Some((path, _)) if self.buffer.is_empty() => {
                let file = folder::open(path).map_err(Error::store("read"))?;
                Ok(Body::File { file, len: self.len })
            }
            _ => Ok(Body::Memory(Bytes::copy_from_slice(&self.buffer))),
        }
    }

    /// Stores the complete response with its head and makes it visible to readers.
    ///
    /// # Errors
    ///
    /// [`Error::Invalidated`] if the key was invalidated (see [`unless_invalidated_since`]),
    /// [`Error::Store`] if the system refuses it. In both cases nothing is stored.
    ///
    /// [`unless_invalidated_since`]: EntryWriter::unless_invalidated_since
    pub fn commit(mut self, head: Vec<u8>) -> Result<Arc<Entry>> {
        let body = match self.file.take() {
            None => FinishedBody::Inline(std::mem::take(&mut self.buffer).into()),
            Some((path, _)) => {
                let added = self.store.files.add_body(&path).inspect_err(|_| {
                    let _ = fs::remove_file(&path);
                });
                let id = added.map_err(Error::store("write to"))?;
                FinishedBody::Separate { id, len: self.len, checksum: self.checksum.digest() }
            }
        };
        self.store.commit((&self.key, self.variant), self.invalidations, head, body)
    }
}

impl Drop for EntryWriter {
    fn drop(&mut self) {
        self.store.bytes_in_progress.fetch_sub(self.reserved, Relaxed);
        if let Some((path, _)) = self.file.take() {
            let _ = fs::remove_file(path);
        }
    }
}
