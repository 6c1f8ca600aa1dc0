//! A document of a store: what is known of it, and where its body is.

use super::body::{self, Body};
use super::file::{Names, Place};
use crate::CacheKey;
use crate::rules::StoredHead;
use crate::sync::{read, write};
use bytes::Bytes;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

/// A document, or a variant of it.
#[derive(Debug)]
pub struct Entry {
    key: CacheKey,
    variant: u64,
    head: Vec<u8>,
    place: Place,
    /// When it was asked for last, on the clock of the store.
    used: AtomicU64,
    /// Whether its body was held against its sum since the store was opened, or written since.
    verified: AtomicBool,
    memory: RwLock<Memory>,
    /// What is in memory, all entries of the store together.
    taken: Arc<AtomicU64>,
}

/// What of a document is in memory besides its place, since it was asked for of late.
#[derive(Debug, Default)]
struct Memory {
    body: Option<Bytes>,
    known: Option<Arc<StoredHead>>,
}

impl Memory {
    /// What it takes, if so many bytes are known of the document.
    fn bytes(&self, head: usize) -> u64 {
        let body = self.body.as_ref().map_or(0, Bytes::len);
        (body + self.known.as_ref().map_or(0, |_| KNOWN * head)) as u64
    }
}

/// What a file takes of a disk, which has blocks of this size or so.
fn blocks(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}

/// No larger body is kept in memory.
const KEPT: u64 = 1 << 20;

/// How many times the bytes of what is known of a document it takes when it is ready to be asked.
const KNOWN: usize = 4;

impl Entry {
    pub(super) fn new(
        (key, variant): (CacheKey, u64),
        head: Vec<u8>,
        place: Place,
        verified: bool,
        taken: Arc<AtomicU64>,
    ) -> Entry {
        let (used, verified) = (AtomicU64::new(0), AtomicBool::new(verified));
        Entry { key, variant, head, place, used, verified, memory: RwLock::default(), taken }
    }

    /// The document.
    pub fn key(&self) -> &CacheKey {
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
        let head = Names::head_bytes(&self.head);
        match self.place {
            Place::Inline { len, .. } => blocks(head + len),
            Place::Beside { len, .. } => blocks(head) + blocks(len),
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    pub(super) fn touch(&self, now: u64) {
        self.used.fetch_max(now, Relaxed);
    }

    /// The body, if it is in memory.
    pub fn in_memory(&self) -> Option<Bytes> {
        read(&self.memory).body.clone()
    }

    pub(super) fn is_in_memory(&self) -> bool {
        let memory = read(&self.memory);
        memory.body.is_some() || memory.known.is_some()
    }

    /// What is known of it, if that is an answer to be given again. It is read once.
    pub fn known(&self) -> Option<Arc<StoredHead>> {
        if let Some(known) = &read(&self.memory).known {
            return Some(Arc::clone(known));
        }
        let known = Arc::new(StoredHead::decode(&self.head)?);
        self.change_memory(|memory| Some(Arc::clone(memory.known.get_or_insert(known))))
    }

    /// Keeps the body in memory.
    pub(super) fn keep(&self, body: Bytes) {
        self.change_memory(|memory| {
            memory.body.get_or_insert(body);
        });
    }

    /// Gives up what is in memory.
    pub(super) fn forget_memory(&self) {
        self.change_memory(|memory| *memory = Memory::default());
    }

    fn change_memory<T>(&self, change: impl FnOnce(&mut Memory) -> T) -> T {
        let mut memory = write(&self.memory);
        let before = memory.bytes(self.head.len());
        let result = change(&mut memory);
        let after = memory.bytes(self.head.len());
        self.taken.fetch_add(after.wrapping_sub(before), Relaxed);
        result
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
            Place::Beside { id, len, sum } if *len <= KEPT => {
                let body = body::read_whole(&names.open_body(*id)?, *len, *sum)?;
                self.keep(body.clone());
                Ok(Body::Memory(body))
            }
            Place::Beside { id, len, sum } => {
                let file = names.open_body(*id)?;
                body::check_len(&file, *len)?;
                if !self.verified.load(Relaxed) {
                    body::verify(&file, *len, *sum)?;
                    self.verified.store(true, Relaxed);
                }
                Ok(Body::File { file, len: *len })
            }
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.forget_memory();
    }
}
