//! An entry of the store: the head of a response, the location of its body, and the parts that are
//! in memory.

use super::body::{self, Body};
use super::files::{BodyLocation, StoreFiles};
use crate::CacheKey;
use crate::rules::StoredHead;
use bytes::Bytes;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, RwLock};
use umbel::internals::sync::{read, write};

/// A stored response, which is one variant of its key.
#[derive(Debug)]
pub struct Entry {
    key: CacheKey,
    variant: u64,
    head_bytes: Vec<u8>,
    location: BodyLocation,
    /// When the entry was last used, on the clock of the store.
    last_used: AtomicU64,
    /// Whether the body was written or verified by this process.
    verified: AtomicBool,
    memory: RwLock<MemoryParts>,
    /// The bytes in memory of all entries of the store.
    memory_bytes: Arc<AtomicU64>,
}

/// The parts of a recently used entry that are kept in memory.
#[derive(Debug, Default)]
struct MemoryParts {
    body: Option<Bytes>,
    head: Option<Arc<StoredHead>>,
}

impl MemoryParts {
    /// Returns the memory that the parts take, given the length of the encoded head.
    fn bytes(&self, head_len: usize) -> u64 {
        let body = self.body.as_ref().map_or(0, Bytes::len);
        (body + self.head.as_ref().map_or(0, |_| HEAD_MEMORY_FACTOR * head_len)) as u64
    }
}

/// Returns the disk space that a file of this length takes, for blocks of the usual size.
fn disk_bytes(len: u64) -> u64 {
    len.next_multiple_of(4096)
}

/// The largest body that is kept in memory.
const MAX_MEMORY_BODY_BYTES: u64 = 1 << 20;

/// The approximate ratio of a decoded head's memory to the length of the encoded head.
const HEAD_MEMORY_FACTOR: usize = 4;

impl Entry {
    pub(super) fn new(
        (key, variant): (CacheKey, u64),
        head_bytes: Vec<u8>,
        location: BodyLocation,
        verified: bool,
        memory_bytes: Arc<AtomicU64>,
    ) -> Entry {
        let (last_used, verified) = (AtomicU64::new(0), AtomicBool::new(verified));
        Entry {
            key,
            variant,
            head_bytes,
            location,
            last_used,
            verified,
            memory: RwLock::default(),
            memory_bytes,
        }
    }

    /// Returns the key of the response.
    pub fn key(&self) -> &CacheKey {
        &self.key
    }

    /// Returns the number of the variant.
    pub fn variant(&self) -> u64 {
        self.variant
    }

    /// Returns the encoded head.
    pub fn head_bytes(&self) -> &[u8] {
        &self.head_bytes
    }

    /// Returns the length of the body.
    pub fn len(&self) -> u64 {
        self.location.len()
    }

    /// Returns whether the body is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn location(&self) -> &BodyLocation {
        &self.location
    }

    /// Returns the disk space that the entry takes.
    pub(super) fn disk_bytes(&self) -> u64 {
        let head = StoreFiles::head_file_len(&self.head_bytes);
        match self.location {
            BodyLocation::Inline { len, .. } => disk_bytes(head + len),
            BodyLocation::Separate { len, .. } => disk_bytes(head) + disk_bytes(len),
        }
    }

    pub(super) fn last_used(&self) -> u64 {
        self.last_used.load(Relaxed)
    }

    pub(super) fn touch(&self, now: u64) {
        self.last_used.fetch_max(now, Relaxed);
    }

    /// Returns the body if it is in memory.
    pub fn body_in_memory(&self) -> Option<Bytes> {
        read(&self.memory).body.clone()
    }

    pub(super) fn is_in_memory(&self) -> bool {
        let memory = read(&self.memory);
        memory.body.is_some() || memory.head.is_some()
    }

    /// Returns the decoded head, or `None` if the head is not one that [`StoredHead`] has encoded.
    /// It is decoded once and then kept in memory.
    pub fn head(&self) -> Option<Arc<StoredHead>> {
        if let Some(head) = &read(&self.memory).head {
            return Some(Arc::clone(head));
        }
        let head = Arc::new(StoredHead::decode(&self.head_bytes)?);
        self.change_memory(|memory| Some(Arc::clone(memory.head.get_or_insert(head))))
    }

    /// Keeps the body in memory.
    pub(super) fn keep_body(&self, body: Bytes) {
        self.change_memory(|memory| {
            memory.body.get_or_insert(body);
        });
    }

    /// Drops the parts that are in memory.
    pub(super) fn release_memory(&self) {
        self.change_memory(|memory| *memory = MemoryParts::default());
    }

    /// Changes the parts in memory and the count of the bytes that they take.
    fn change_memory<T>(&self, change: impl FnOnce(&mut MemoryParts) -> T) -> T {
        let mut memory = write(&self.memory);
        let before = memory.bytes(self.head_bytes.len());
        let result = change(&mut memory);
        let after = memory.bytes(self.head_bytes.len());
        self.memory_bytes.fetch_add(after.wrapping_sub(before), Relaxed);
        result
    }

    /// Opens the body. Its checksum is verified unless this process has done so before.
    pub(super) fn open_body(&self, files: &StoreFiles) -> io::Result<Body> {
        if let Some(body) = self.body_in_memory() {
            return Ok(Body::Memory(body));
        }
        match &self.location {
            BodyLocation::Inline { .. } => {
                let body = files.read_inline_body(self)?;
                self.keep_body(body.clone());
                Ok(Body::Memory(body))
            }
            BodyLocation::Separate { id, len, checksum } if *len <= MAX_MEMORY_BODY_BYTES => {
                let body = body::read_verified(&files.open_body(*id)?, *len, *checksum)?;
                self.keep_body(body.clone());
                Ok(Body::Memory(body))
            }
            BodyLocation::Separate { id, len, checksum } => {
                let file = files.open_body(*id)?;
                body::verify_len(&file, *len)?;
                if !self.verified.load(Relaxed) {
                    body::verify(&file, *len, *checksum)?;
                    self.verified.store(true, Relaxed);
                }
                Ok(Body::File { file, len: *len })
            }
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.release_memory();
    }
}
