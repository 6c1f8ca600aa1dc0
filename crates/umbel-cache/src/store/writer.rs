//! A document that is being written, which nobody sees before it is whole.

use super::body::Body;
use super::entry::Entry;
use super::file::Ready;
use super::{Store, Ticket};
use crate::CacheKey;
use crate::error::{Error, Result};
use bytes::Bytes;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use xxhash_rust::xxh3::Xxh3Default;

/// Up to this size a body is in the file of its document.
const INLINE: usize = 64 << 10;

/// A document that is being written. If it is dropped before it is committed, nothing is left of it.
pub struct Writer {
    store: Arc<Store>,
    key: CacheKey,
    variant: u64,
    since: Option<Ticket>,
    /// As long as it is small.
    buffer: Vec<u8>,
    file: Option<(PathBuf, File)>,
    len: u64,
    sum: Xxh3Default,
    /// How much of it the store counts as being written.
    noted: u64,
}

impl Writer {
    pub(super) fn new(store: Arc<Store>, key: CacheKey, variant: u64) -> Writer {
        Writer {
            store,
            key,
            variant,
            since: None,
            buffer: Vec::new(),
            file: None,
            len: 0,
            sum: Xxh3Default::new(),
            noted: 0,
        }
    }

    /// If the document was changed since then it cannot be committed.
    pub fn since(mut self, ticket: Ticket) -> Writer {
        self.since = Some(ticket);
        self
    }

    /// How much of the body has come.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing has come yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes more of the body. After an error no more can be written, but what was before can be [read](Writer::read).
    ///
    /// # Errors
    ///
    /// [`Error::Overloaded`] if too much is being written at once, [`Error::Store`] if the system refuses it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.store.note_writing(bytes.len() as u64)?;
        self.noted += bytes.len() as u64;
        let written = self.append(bytes).inspect_err(|error| self.store.note_failure(error));
        written.map_err(Error::store("write to"))?;
        self.len += bytes.len() as u64;
        self.sum.update(bytes);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() && self.buffer.len() + bytes.len() > INLINE {
            let (path, mut file) = self.store.names.create()?;
            let written = file.write_all(&self.buffer);
            self.file = Some((path, file));
            written?;
            // From now on it is in the file.
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

    /// Returns what was written, for a client that cannot wait until it is whole. It can be read whatever becomes of the
    /// document.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the file cannot be opened.
    pub fn read(&self) -> Result<Body> {
        match &self.file {
            Some((path, _)) if self.buffer.is_empty() => {
                let file = File::open(path).map_err(Error::store("read"))?;
                Ok(Body::File { file, len: self.len })
            }
            _ => Ok(Body::Memory(Bytes::copy_from_slice(&self.buffer))),
        }
    }

    /// Stores the document, which is whole, with its head. From now on it is found.
    ///
    /// # Errors
    ///
    /// [`Error::Changed`] if the document was changed since the ticket of [`Writer::since`], [`Error::Store`] if the system
    /// refuses it. Nothing is stored then.
    pub fn commit(mut self, head: Vec<u8>) -> Result<Arc<Entry>> {
        let body = match self.file.take() {
            None => Ready::Inline(std::mem::take(&mut self.buffer).into()),
            Some((path, _)) => {
                let placed = self.store.names.place_body(&path).inspect_err(|_| {
                    let _ = fs::remove_file(&path);
                });
                let id = placed.map_err(Error::store("write to"))?;
                Ready::Beside { id, len: self.len, sum: self.sum.digest() }
            }
        };
        self.store.commit((&self.key, self.variant), self.since, head, body)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.store.writing.fetch_sub(self.noted, Relaxed);
        if let Some((path, _)) = self.file.take() {
            let _ = fs::remove_file(path);
        }
    }
}
