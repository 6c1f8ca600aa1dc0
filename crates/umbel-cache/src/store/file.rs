//! The files of a store.
//!
//! `heads/ab/KEY-VARIANT` is a document, by its key and variant in hexadecimal digits:
//!
//! | bytes | |
//! | --- | --- |
//! | 8 | `UMBELOB1` |
//! | 16 + 8 | the key and the variant |
//! | 4 | the length of what is known of it |
//! | 4 | where the body is: 0 at the end of this file, 1 in a file of its own |
//! | 8 + 8 + 8 | the number of that file, the length of the body, and its sum (XXH3) |
//! | 8 | the sum of all before, and of what is known |
//! | | what is known of it, and the body |
//!
//! `bodies/ab/NUMBER` are bodies of their own, and `new` has what is being written.

use super::body::damaged;
use super::entry::Entry;
use crate::CacheKey;
use bytes::Bytes;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use umbel::file::fields::Fields;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Where the body of a document is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Behind what is known of it.
    Inline { len: u64, sum: u64 },
    /// In a file of its own.
    Beside { id: u64, len: u64, sum: u64 },
}

impl Place {
    pub fn len(&self) -> u64 {
        match self {
            Place::Inline { len, .. } | Place::Beside { len, .. } => *len,
        }
    }

    pub fn sum(&self) -> u64 {
        match self {
            Place::Inline { sum, .. } | Place::Beside { sum, .. } => *sum,
        }
    }
}

/// A body that is ready to belong to a document.
pub(super) enum Ready {
    Inline(Bytes),
    Beside { id: u64, len: u64, sum: u64 },
}

impl Ready {
    /// The number of its file, if it has one of its own.
    pub fn file(&self) -> Option<u64> {
        match self {
            Ready::Inline(_) => None,
            Ready::Beside { id, .. } => Some(*id),
        }
    }
}

const MAGIC: [u8; 8] = *b"UMBELOB1";
const PREFIX: usize = 64;

/// No more is known of a document: what is in a file may be anything.
const LONGEST_HEAD: u32 = 1 << 20;

/// The names of the files, and what they hold.
#[derive(Debug)]
pub(super) struct Names {
    folder: PathBuf,
    /// The next number of a body or of a file that is written.
    next: AtomicU64,
    taken: Arc<AtomicU64>,
}

impl Names {
    pub fn open(folder: &Path) -> io::Result<Names> {
        for room in ["heads", "bodies", "new"] {
            fs::create_dir_all(folder.join(room))?;
        }
        Ok(Names { folder: folder.to_owned(), next: AtomicU64::new(1), taken: Arc::default() })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What bodies in memory take.
    pub fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// What the file of a document takes besides its body.
    pub fn head_bytes(head: &[u8]) -> u64 {
        (PREFIX + 8 + head.len()) as u64
    }

    fn head_path(&self, key: &CacheKey, variant: u64) -> PathBuf {
        let name: String = key.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join("heads").join(&name[..2]).join(format!("{name}-{variant:016x}"))
    }

    fn body_path(&self, id: u64) -> PathBuf {
        self.folder.join("bodies").join(format!("{:02x}", id as u8)).join(format!("{id:016x}"))
    }

    /// A file to write to, which belongs to nothing yet.
    pub fn create(&self) -> io::Result<(PathBuf, File)> {
        let path = self.folder.join("new").join(self.next.fetch_add(1, Relaxed).to_string());
        let new = || OpenOptions::new().write(true).create_new(true).open(&path);
        let file = match new() {
            // Somebody may have removed the folder, and made it again.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(self.folder.join("new")).and_then(|()| new())
            }
            file => file,
        }?;
        Ok((path, file))
    }

    /// Gives a body that was written its place.
    pub fn place_body(&self, written: &Path) -> io::Result<u64> {
        let id = self.next.fetch_add(1, Relaxed);
        rename(written, &self.body_path(id))?;
        Ok(id)
    }

    pub fn open_body(&self, id: u64) -> io::Result<File> {
        File::open(self.body_path(id))
    }

    /// Writes the file of a document, whose body is ready.
    pub fn write_head(&self, key: &CacheKey, variant: u64, head: Vec<u8>, body: Ready) -> io::Result<Entry> {
        let (place, inline) = match &body {
            Ready::Inline(bytes) => {
                (Place::Inline { len: bytes.len() as u64, sum: xxh3_64(bytes) }, &bytes[..])
            }
            Ready::Beside { id, len, sum } => (Place::Beside { id: *id, len: *len, sum: *sum }, &[][..]),
        };
        let (path, mut file) = self.create()?;
        let mut bytes = prefix(key, variant, &head, &place)?;
        bytes.extend(&head);
        let written = file.write_all(&bytes).and_then(|()| file.write_all(inline));
        written.and_then(|()| rename(&path, &self.head_path(key, variant))).inspect_err(|_| {
            let _ = fs::remove_file(&path);
        })?;
        let entry = Entry::new((*key, variant), head, place, true, Arc::clone(&self.taken));
        if let Ready::Inline(bytes) = body {
            entry.keep(bytes);
        }
        Ok(entry)
    }

    /// The body behind what is known of a document.
    pub fn read_inline(&self, entry: &Entry) -> io::Result<Bytes> {
        let mut bytes = fs::read(self.head_path(entry.key(), entry.variant()))?;
        let start = PREFIX + 8 + entry.head().len();
        // It may have been written anew since.
        if bytes.len() as u64 != start as u64 + entry.len() {
            return Err(damaged("its length is another one"));
        }
        let body = bytes.split_off(start);
        if xxh3_64(&body) != entry.place().sum() {
            return Err(damaged("its sum is another one"));
        }
        Ok(body.into())
    }

    /// Removes a body that belongs to nothing.
    pub fn discard(&self, id: u64) {
        let _ = fs::remove_file(self.body_path(id));
    }

    /// Removes the files of a document.
    pub fn remove(&self, entry: &Entry) {
        let _ = fs::remove_file(self.head_path(entry.key(), entry.variant()));
        if let Place::Beside { id, .. } = entry.place() {
            let _ = fs::remove_file(self.body_path(*id));
        }
    }

    /// Removes the body of a document that another has replaced, unless that has the same.
    pub fn remove_body(&self, replaced: &Entry, by: &Entry) {
        if let Place::Beside { id, .. } = replaced.place()
            && replaced.place() != by.place()
        {
            let _ = fs::remove_file(self.body_path(*id));
        }
    }

    /// All documents that are whole, the oldest first, and how many were not. What belongs to none is removed.
    pub fn scan(&self) -> io::Result<(Vec<Entry>, u64)> {
        let mut damaged = 0;
        let mut found = Vec::new();
        for path in files(&self.folder.join("heads"))? {
            match self.read_head(&path) {
                Ok(entry) => {
                    let age = fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
                    found.push((age, entry));
                }
                Err(_) => {
                    damaged += 1;
                    fs::remove_file(&path)?;
                }
            }
        }
        found.sort_by_key(|(age, _)| *age);
        let entries: Vec<Entry> = found.into_iter().map(|(_, entry)| entry).collect();
        let beside = |entry: &Entry| match entry.place() {
            Place::Beside { id, .. } => Some(*id),
            Place::Inline { .. } => None,
        };
        let used: HashSet<PathBuf> = entries.iter().filter_map(beside).map(|id| self.body_path(id)).collect();
        for path in files(&self.folder.join("bodies"))? {
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
        let last = entries.iter().filter_map(beside).max().unwrap_or(0);
        self.next.fetch_max(last + 1, Relaxed);
        Ok((entries, damaged))
    }

    /// The document in a file.
    fn read_head(&self, path: &Path) -> io::Result<Entry> {
        let short = || damaged("it is too short");
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut start = [0; PREFIX + 8];
        file.read_exact(&mut start)?;
        let mut fields = Fields(&start);
        let magic: [u8; 8] = fields.array().ok_or_else(short)?;
        let key = CacheKey::from_bytes(fields.array().ok_or_else(short)?);
        let variant = fields.u64().ok_or_else(short)?;
        let (head_len, kind) = fields.u32().zip(fields.u32()).ok_or_else(short)?;
        let mut number = || fields.u64().ok_or_else(short);
        let (id, len, body_sum, sum) = (number()?, number()?, number()?, number()?);
        let place = match kind {
            0 => Place::Inline { len, sum: body_sum },
            1 => Place::Beside { id, len, sum: body_sum },
            _ => return Err(damaged("its body is nowhere")),
        };
        let inline = if kind == 0 { len } else { 0 };
        let expected = ((PREFIX + 8) as u64 + u64::from(head_len)).checked_add(inline);
        if magic != MAGIC || expected != Some(length) || head_len > LONGEST_HEAD {
            return Err(damaged("its length is another one"));
        }
        let mut head = vec![0; head_len as usize];
        file.read_exact(&mut head)?;
        if sum != sum_of(&start[..PREFIX], &head) || path != self.head_path(&key, variant) {
            return Err(damaged("its sum is another one"));
        }
        if kind == 1 && fs::metadata(self.body_path(id))?.len() != len {
            return Err(damaged("its body has another length"));
        }
        Ok(Entry::new((key, variant), head, place, false, Arc::clone(&self.taken)))
    }
}

/// What the file of a document begins with.
fn prefix(key: &CacheKey, variant: u64, head: &[u8], place: &Place) -> io::Result<Vec<u8>> {
    let length =
        u32::try_from(head.len()).map_err(|_| io::Error::other("too much is known of a document"))?;
    let (kind, id) = match place {
        Place::Inline { .. } => (0u32, 0),
        Place::Beside { id, .. } => (1, *id),
    };
    let mut bytes = MAGIC.to_vec();
    bytes.extend(key.bytes());
    bytes.extend(variant.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    for number in [id, place.len(), place.sum()] {
        bytes.extend(number.to_le_bytes());
    }
    let sum = sum_of(&bytes, head);
    bytes.extend(sum.to_le_bytes());
    Ok(bytes)
}

fn sum_of(prefix: &[u8], head: &[u8]) -> u64 {
    let mut sum = Xxh3Default::new();
    sum.update(prefix);
    sum.update(head);
    sum.digest()
}

/// Gives a file its name, in a folder that is made if it is not there.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            to.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::rename(from, to)
        }
        done => done,
    }
}

/// All files in the folders of a folder. Links lead elsewhere, and are not followed.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for inner in fs::read_dir(folder)? {
        let inner = inner?;
        if inner.file_type()?.is_dir() {
            for file in fs::read_dir(inner.path())? {
                let file = file?;
                if file.file_type()?.is_file() {
                    found.push(file.path());
                }
            }
        }
    }
    Ok(found)
}
