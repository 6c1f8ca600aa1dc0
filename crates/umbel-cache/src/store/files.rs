//! The files of the store.
//!
//! `heads/ab/KEY-VARIANT` is the head of a response, named by its key and variant in hexadecimal
//! digits:
//!
//! | bytes | |
//! | --- | --- |
//! | 8 | `UMBELOB1` |
//! | 16 + 8 | the key and the variant |
//! | 4 | the length of the encoded head |
//! | 4 | the location of the body: 0 at the end of this file, 1 in a separate file |
//! | 8 + 8 + 8 | the number of the separate file, the length of the body, and its checksum (XXH3) |
//! | 8 | the checksum of all bytes before it and of the encoded head |
//! | | the encoded head, and the body if it is inline |
//!
//! `bodies/ab/NUMBER` are separate bodies, and `new` has the files that are being written.

use super::body::{damaged, verify_len};
use super::entry::Entry;
use super::folder;
use super::writer::MAX_INLINE_BYTES;
use crate::CacheKey;
use bytes::Bytes;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use umbel::file::fields::Fields;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// The location of the body of a stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BodyLocation {
    /// In the same file as the head.
    Inline { len: u64, checksum: u64 },
    /// In a separate file.
    Separate { id: u64, len: u64, checksum: u64 },
}

impl BodyLocation {
    pub fn len(&self) -> u64 {
        match self {
            BodyLocation::Inline { len, .. } | BodyLocation::Separate { len, .. } => *len,
        }
    }

    pub fn checksum(&self) -> u64 {
        match self {
            BodyLocation::Inline { checksum, .. } | BodyLocation::Separate { checksum, .. } => *checksum,
        }
    }
}

/// A completely written body that does not belong to an entry yet.
pub(super) enum FinishedBody {
    Inline(Bytes),
    Separate { id: u64, len: u64, checksum: u64 },
}

impl FinishedBody {
    /// Returns the number of the separate file, if there is one.
    pub fn separate_id(&self) -> Option<u64> {
        match self {
            FinishedBody::Inline(_) => None,
            FinishedBody::Separate { id, .. } => Some(*id),
        }
    }
}

const MAGIC: [u8; 8] = *b"UMBELOB1";
/// The length of a head file before the checksum and the encoded head.
const PREFIX_LEN: usize = 64;

/// The largest encoded head that is read, since a damaged file can claim any length.
const MAX_HEAD_BYTES: u32 = 1 << 20;

/// The files of a store, by key and number.
#[derive(Debug)]
pub(super) struct StoreFiles {
    folder: PathBuf,
    /// The next number of a separate body or temporary file.
    next_id: AtomicU64,
    /// The bytes in memory of all entries.
    memory_bytes: Arc<AtomicU64>,
}

impl StoreFiles {
    pub fn open(folder: &Path) -> io::Result<StoreFiles> {
        for name in ["heads", "bodies", "new"] {
            folder::create_own(&folder.join(name))?;
        }
        Ok(StoreFiles { folder: folder.to_owned(), next_id: AtomicU64::new(1), memory_bytes: Arc::default() })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the bytes in memory of all entries.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Relaxed)
    }

    /// Returns the length of a head file without an inline body.
    pub fn head_file_len(head: &[u8]) -> u64 {
        (PREFIX_LEN + 8 + head.len()) as u64
    }

    fn head_path(&self, key: &CacheKey, variant: u64) -> PathBuf {
        let name = umbel::internals::hex::encode(key.bytes());
        self.folder.join("heads").join(&name[..2]).join(format!("{name}-{variant:016x}"))
    }

    fn body_path(&self, id: u64) -> PathBuf {
        self.folder.join("bodies").join(format!("{:02x}", id as u8)).join(format!("{id:016x}"))
    }

    /// Creates a file to write to.
    pub fn create_temporary(&self) -> io::Result<(PathBuf, File)> {
        let path = self.folder.join("new").join(self.next_id.fetch_add(1, Relaxed).to_string());
        let create = || folder::writing().create_new(true).open(&path);
        let file = match create() {
            // The folder may have been removed since the store was opened.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                folder::create(&self.folder.join("new")).and_then(|()| create())
            }
            file => file,
        }?;
        Ok((path, file))
    }

    /// Moves a completely written body from its temporary file to its final place and returns its
    /// number.
    pub fn add_body(&self, temporary: &Path) -> io::Result<u64> {
        let id = self.next_id.fetch_add(1, Relaxed);
        rename(temporary, &self.body_path(id))?;
        Ok(id)
    }

    pub fn open_body(&self, id: u64) -> io::Result<File> {
        folder::open(&self.body_path(id))
    }

    /// Writes the head file of a response, whose body is complete.
    pub fn write_head(
        &self,
        key: &CacheKey,
        variant: u64,
        head: Vec<u8>,
        body: FinishedBody,
    ) -> io::Result<Entry> {
        let (location, inline) = match &body {
            FinishedBody::Inline(bytes) => {
                (BodyLocation::Inline { len: bytes.len() as u64, checksum: xxh3_64(bytes) }, &bytes[..])
            }
            FinishedBody::Separate { id, len, checksum } => {
                (BodyLocation::Separate { id: *id, len: *len, checksum: *checksum }, &[][..])
            }
        };
        let (path, mut file) = self.create_temporary()?;
        let mut bytes = prefix(key, variant, &head, &location)?;
        bytes.extend(&head);
        let written = file.write_all(&bytes).and_then(|()| file.write_all(inline));
        written.and_then(|()| rename(&path, &self.head_path(key, variant))).inspect_err(|_| {
            let _ = fs::remove_file(&path);
        })?;
        let entry = Entry::new((*key, variant), head, location, true, Arc::clone(&self.memory_bytes));
        if let FinishedBody::Inline(bytes) = body {
            entry.keep_body(bytes);
        }
        Ok(entry)
    }

    /// Reads and verifies the body in the head file of an entry.
    pub fn read_inline_body(&self, entry: &Entry) -> io::Result<Bytes> {
        let mut file = folder::open(&self.head_path(entry.key(), entry.variant()))?;
        let start = PREFIX_LEN as u64 + 8 + entry.head_bytes().len() as u64;
        // The file may belong to a newer entry by now.
        verify_len(&file, start + entry.len())?;
        let mut body = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.take(entry.len()).read_to_end(&mut body)?;
        if xxh3_64(&body) != entry.location().checksum() {
            return Err(damaged("its sum is another one"));
        }
        Ok(body.into())
    }

    /// Removes a separate body that belongs to no entry.
    pub fn discard_body(&self, id: u64) {
        let _ = fs::remove_file(self.body_path(id));
    }

    /// Removes the files of an entry.
    pub fn remove(&self, entry: &Entry) {
        let _ = fs::remove_file(self.head_path(entry.key(), entry.variant()));
        if let BodyLocation::Separate { id, .. } = entry.location() {
            let _ = fs::remove_file(self.body_path(*id));
        }
    }

    /// Removes the body of an entry that another one has replaced, unless both share it.
    pub fn remove_replaced_body(&self, replaced: &Entry, by: &Entry) {
        if let BodyLocation::Separate { id, .. } = replaced.location()
            && replaced.location() != by.location()
        {
            let _ = fs::remove_file(self.body_path(*id));
        }
    }

    /// Returns all intact entries, the oldest first, and the number of damaged ones. Files that
    /// belong to no entry are removed.
    pub fn scan(&self) -> io::Result<(Vec<Entry>, u64)> {
        let mut damaged_count = 0;
        let mut found = Vec::new();
        for path in folder::nested_files(&self.folder.join("heads"))? {
            match self.read_head(&path) {
                Ok(entry) => {
                    let modified = fs::symlink_metadata(&path).and_then(|metadata| metadata.modified()).ok();
                    found.push((modified, entry));
                }
                Err(_) => {
                    damaged_count += 1;
                    fs::remove_file(&path)?;
                }
            }
        }
        found.sort_by_key(|(modified, _)| *modified);
        let entries: Vec<Entry> = found.into_iter().map(|(_, entry)| entry).collect();
        let separate_id = |entry: &Entry| match entry.location() {
            BodyLocation::Separate { id, .. } => Some(*id),
            BodyLocation::Inline { .. } => None,
        };
        let used: HashSet<PathBuf> =
            entries.iter().filter_map(separate_id).map(|id| self.body_path(id)).collect();
        for path in folder::nested_files(&self.folder.join("bodies"))? {
            if !used.contains(&path) {
                fs::remove_file(&path)?;
            }
        }
        for file in fs::read_dir(self.folder.join("new"))? {
            let file = file?;
            if file.file_type()?.is_file() {
                fs::remove_file(file.path())?;
            }
        }
        let last = entries.iter().filter_map(separate_id).max().unwrap_or(0);
        self.next_id.fetch_max(last + 1, Relaxed);
        Ok((entries, damaged_count))
    }

    /// Reads and verifies the entry in a head file.
    fn read_head(&self, path: &Path) -> io::Result<Entry> {
        let short = || damaged("it is too short");
        let mut file = folder::open(path)?;
        let length = file.metadata()?.len();
        let mut start = [0; PREFIX_LEN + 8];
        file.read_exact(&mut start)?;
        let mut fields = Fields(&start);
        let magic: [u8; 8] = fields.array().ok_or_else(short)?;
        let key = CacheKey::from_bytes(fields.array().ok_or_else(short)?);
        let variant = fields.u64().ok_or_else(short)?;
        let (head_len, kind) = fields.u32().zip(fields.u32()).ok_or_else(short)?;
        let mut number = || fields.u64().ok_or_else(short);
        let (id, len, body_checksum, checksum) = (number()?, number()?, number()?, number()?);
        let location = match kind {
            0 => BodyLocation::Inline { len, checksum: body_checksum },
            1 => BodyLocation::Separate { id, len, checksum: body_checksum },
            _ => return Err(damaged("its body is nowhere")),
        };
        let inline = if kind == 0 { len } else { 0 };
        if inline > MAX_INLINE_BYTES as u64 {
            return Err(damaged("its body is too long for its place"));
        }
        let expected = ((PREFIX_LEN + 8) as u64 + u64::from(head_len)).checked_add(inline);
        if magic != MAGIC || expected != Some(length) || head_len > MAX_HEAD_BYTES {
            return Err(damaged("its length is another one"));
        }
        let mut head = vec![0; head_len as usize];
        file.read_exact(&mut head)?;
        if checksum != head_checksum(&start[..PREFIX_LEN], &head) || path != self.head_path(&key, variant) {
            return Err(damaged("its sum is another one"));
        }
        if kind == 1 {
            let body = fs::symlink_metadata(self.body_path(id))?;
            if !body.is_file() || body.len() != len {
                return Err(damaged("its body has another length"));
            }
        }
        Ok(Entry::new((key, variant), head, location, false, Arc::clone(&self.memory_bytes)))
    }
}

/// Returns the start of a head file, up to the encoded head.
fn prefix(key: &CacheKey, variant: u64, head: &[u8], location: &BodyLocation) -> io::Result<Vec<u8>> {
    let length =
        u32::try_from(head.len()).map_err(|_| io::Error::other("too much is known of a document"))?;
    let (kind, id) = match location {
        BodyLocation::Inline { .. } => (0u32, 0),
        BodyLocation::Separate { id, .. } => (1, *id),
    };
    let mut bytes = MAGIC.to_vec();
    bytes.extend(key.bytes());
    bytes.extend(variant.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    for number in [id, location.len(), location.checksum()] {
        bytes.extend(number.to_le_bytes());
    }
    let checksum = head_checksum(&bytes, head);
    bytes.extend(checksum.to_le_bytes());
    Ok(bytes)
}

fn head_checksum(prefix: &[u8], head: &[u8]) -> u64 {
    let mut hash = Xxh3Default::new();
    hash.update(prefix);
    hash.update(head);
    hash.digest()
}

/// Renames a file, and creates the new parent folder if it does not exist.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            to.parent().map_or(Ok(()), folder::create)?;
            fs::rename(from, to)
        }
        done => done,
    }
}
