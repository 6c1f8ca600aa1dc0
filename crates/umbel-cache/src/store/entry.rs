//! A document of a store: what is known of it, and where its body is.

use super::body::{self, Body};
use super::file::{Names, Place};
use crate::Key;
use bytes::Bytes;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A document, or a variant of it.
#[derive(Debug)]
pub struct Entry {
    key: Key,
    variant: u64,
    head: Vec<u8>,
    place: Place,
    /// When it was asked for last, on the clock of the store.
    used: AtomicU64,
    /// Whether its body was held against its sum since the store was opened, or written since.
    verified: AtomicBool,
    memory: RwLock<Option<Bytes>>,
    /// What bodies in memory take, all entries of the store together.
    taken: Arc<AtomicU64>,
}

impl Entry {
    pub(super) fn new(
        (key, variant): (Key, u64),
        head: Vec<u8>,
        place: Place,
        verified: bool,
        taken: Arc<AtomicU64>,
    ) -> Entry {
        let (used, verified) = (AtomicU64::new(0), AtomicBool::new(verified));
        Entry { key, variant, head, place, used, verified, memory: RwLock::default(), taken }
    }

    /// The document.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Which variant of it.
    pub fn variant(&self) -> u64 {
        self.variant
    }

    /// What is known of it.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// How long its body is.
    pub fn len(&self) -> u64 {
        self.place.len()
    }

    /// Whether its body is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// What it takes on disk.
    pub(super) fn bytes(&self) -> u64 {
        Names::head_bytes(&self.head) + self.len()
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    pub(super) fn touch(&self, now: u64) {
        self.used.fetch_max(now, Relaxed);
    }

    /// The body, if it is in memory.
    pub fn in_memory(&self) -> Option<Bytes> {
        self.read_memory().clone()
    }

    pub(super) fn is_in_memory(&self) -> bool {
        self.read_memory().is_some()
    }

    /// Keeps the body in memory.
    pub(super) fn keep(&self, body: Bytes) {
        let mut memory = self.write_memory();
        if memory.is_none() {
            self.taken.fetch_add(body.len() as u64, Relaxed);
            *memory = Some(body);
        }
    }

    /// Gives the body in memory up.
    pub(super) fn forget_body(&self) {
        if let Some(body) = self.write_memory().take() {
            self.taken.fetch_sub(body.len() as u64, Relaxed);
        }
    }

    /// The body, held against its sum if that was not done yet.
    pub(super) fn open_body(&self, names: &Names) -> io::Result<Body> {
        if let Some(body) = self.in_memory() {
            return Ok(Body::Memory(body));
        }
        match &self.place {
            Place::Inline { .. } => {
                let body = names.read_inline(self)?;
                self.keep(body.clone());
                Ok(Body::Memory(body))
            }
            Place::Beside { id, len, sum } => {
                let file = names.open_body(*id)?;
                if !self.verified.load(Relaxed) {
                    body::verify(&file, *len, *sum)?;
                    self.verified.store(true, Relaxed);
                }
                Ok(Body::File { file, len: *len })
            }
        }
    }

    fn read_memory(&self) -> RwLockReadGuard<'_, Option<Bytes>> {
        self.memory.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn write_memory(&self) -> RwLockWriteGuard<'_, Option<Bytes>> {
        self.memory.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.forget_body();
    }
}
