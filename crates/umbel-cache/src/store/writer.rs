//! A document that is being written, which nobody sees before it is whole.

use super::entry::Entry;
use super::file::Ready;
use super::{Store, Ticket};
use crate::Key;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3Default;

/// Up to this size a body is in the file of its document.
const INLINE: usize = 64 << 10;

/// A document that is being written. If it is dropped before it is committed, nothing is left of it.
pub struct Writer {
    store: Arc<Store>,
    key: Key,
    variant: u64,
    since: Option<Ticket>,
    /// As long as it is small.
    buffer: Vec<u8>,
    file: Option<(PathBuf, File)>,
    len: u64,
    sum: Xxh3Default,
}

impl Writer {
    pub(super) fn new(store: Arc<Store>, key: Key, variant: u64) -> Writer {
        Writer {
            store,
            key,
            variant,
            since: None,
            buffer: Vec::new(),
            file: None,
            len: 0,
            sum: Xxh3Default::new(),
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

    /// Writes more of the body.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.len += bytes.len() as u64;
        self.sum.update(bytes);
        if let Some((_, file)) = &mut self.file {
            return file.write_all(bytes);
        }
        self.buffer.extend(bytes);
        if self.buffer.len() > INLINE {
            let (_, file) = self.file.insert(self.store.names.create()?);
            file.write_all(&std::mem::take(&mut self.buffer))?;
        }
        Ok(())
    }

    /// The document is whole, and this is known of it. From now on it is there.
    pub fn commit(mut self, head: Vec<u8>) -> io::Result<Arc<Entry>> {
        let body = match self.file.take() {
            None => Ready::Inline(std::mem::take(&mut self.buffer).into()),
            Some((path, _)) => {
                let placed = self.store.names.place_body(&path).inspect_err(|_| {
                    let _ = fs::remove_file(&path);
                });
                Ready::Beside { id: placed?, len: self.len, sum: self.sum.digest() }
            }
        };
        self.store.commit((&self.key, self.variant), self.since, head, body)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some((path, _)) = self.file.take() {
            let _ = fs::remove_file(path);
        }
    }
}
