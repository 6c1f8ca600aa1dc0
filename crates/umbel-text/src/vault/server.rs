//! The server's half of a vault. It has the directory and trapdoors, but no key.
//!
//! Nothing in this file has or could open a key or a passphrase. It does not even read the file
//! with the vault's sealed key, and works where that file was never copied to.

use super::document::Document;
use super::zidx::{Id, IndexShape, Trapdoor};
use crate::{Error, Result};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use umbel::internals::file_lock::{FileLockKind, lock_within};
use umbel::internals::regular_file::open_folder;

/// The extension of a document's file.
pub(super) const EXTENSION: &str = "doc";

/// The maximum number of times a directory is listed because documents have disappeared.
pub(super) const MAX_LISTINGS: usize = 100;

/// The time limit for another process to release a lock.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// A directory of documents that the server cannot read.
#[derive(Clone, Debug)]
pub struct Server {
    folder: PathBuf,
    shape: Option<IndexShape>,
}

/// The result of a search on a server.
#[derive(Debug, Default)]
pub struct Answer {
    /// The documents that may have all words.
    pub hits: Vec<Id>,
    /// The number of documents searched.
    pub asked: u64,
    /// The errors of documents that could not be searched.
    pub problems: Vec<Error>,
}

/// The properties of a document that a server sees without any query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The id of the document.
    pub id: Id,
    /// The size of its sealed contents in bytes.
    pub content: u64,
    /// The number of parts of its index.
    pub parts: u32,
    /// The number of bits of its index that are set, and the number of all bits.
    pub bits: [u64; 2],
}

impl Server {
    /// Returns the server of a directory.
    pub fn new(folder: impl Into<PathBuf>) -> Server {
        Server { folder: folder.into(), shape: None }
    }

    /// Refuses documents whose indexes have another shape than this, before their indexes are read.
    /// Without it, a forged document can claim an index of many gigabytes.
    pub fn with_shape(mut self, shape: IndexShape) -> Server {
        self.shape = Some(shape);
        self
    }

    /// Returns the directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a document.
    pub fn path(&self, id: &Id) -> PathBuf {
        self.folder.join(format!("{id}.{EXTENSION}"))
    }

    /// Returns the ids of all documents in ascending order. Ids are random.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed.
    pub fn documents(&self) -> Result<Vec<Id>> {
        let mut ids = Vec::new();
        // No document is replaced while the directory is listed, so the old or the new one is
        // always seen.
        let _locked = self.listing(FileLockKind::Shared)?;
        for entry in fs::read_dir(&self.folder).map_err(Error::io(&self.folder, "list"))? {
            let name = entry.map_err(Error::io(&self.folder, "list"))?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(EXTENSION)?.strip_suffix('.'));
            ids.extend(id.and_then(Id::parse));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Returns the documents that match all trapdoors: those with all words, and false positives at
    /// a rate of about 2^-r for every part of an index.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed. Errors of single documents are in
    /// [`Answer::problems`].
    pub fn search(&self, trapdoors: &[Trapdoor]) -> Result<Answer> {
        let (found, problems) =
            self.each(|id| self.open(id)?.may_contain(trapdoors).map(|may| (*id, may)))?;
        let asked = (found.len() + problems.len()) as u64;
        let hits = found.into_iter().filter(|(_, may)| *may).map(|(id, _)| id).collect();
        Ok(Answer { hits, asked, problems })
    }

    /// Returns the visible properties of all documents, and the errors of those that cannot be
    /// read.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed.
    pub fn seen(&self) -> Result<(Vec<Seen>, Vec<Error>)> {
        self.each(|id| {
            let mut document = self.open(id)?;
            let bits = document.fill()?;
            Ok(Seen { id: *id, content: document.content, parts: document.parts, bits })
        })
    }

    /// Takes the lock under which the directory is listed and documents are replaced. It must not
    /// be held for long. Returns `None` on file systems without locks. Fails if another process
    /// does not release the lock, as anyone who can read the directory can lock it.
    pub(super) fn listing(&self, kind: FileLockKind) -> Result<Option<File>> {
        let Ok(folder) = open_folder(&self.folder) else { return Ok(None) };
        match lock_within(&folder, kind, LOCK_TIMEOUT) {
            Ok(()) => Ok(Some(folder)),
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path: self.folder.clone() }),
            Err(TryLockError::Error(_)) => Ok(None),
        }
    }

    pub(super) fn open(&self, id: &Id) -> Result<Document> {
        Document::open(&self.path(id), *id, self.shape.as_ref())
    }

    /// Calls `work` with all documents, on all processors. If some have disappeared since the
    /// directory was listed, others may have replaced them, so the directory is listed again.
    fn each<T: Send>(&self, work: impl Fn(&Id) -> Result<T> + Send + Sync) -> Result<(Vec<T>, Vec<Error>)> {
        let mut done = BTreeMap::new();
        for _ in 0..MAX_LISTINGS {
            if self.visit(&mut done, &work)? {
                break;
            }
        }
        Ok(split(done))
    }

    /// Lists the directory, drops the results of documents that have disappeared, and calls `work`
    /// with the new ones. Returns `false` if one of those has disappeared meanwhile.
    pub(super) fn visit<T: Send>(
        &self,
        done: &mut BTreeMap<Id, Result<T>>,
        work: impl Fn(&Id) -> Result<T> + Send + Sync,
    ) -> Result<bool> {
        let listed: HashSet<Id> = self.documents()?.into_iter().collect();
        // A document that is still listed but cannot be opened is a broken link, and stays an error.
        done.retain(|id, _| listed.contains(id));
        let new: Vec<Id> = listed.into_iter().filter(|id| !done.contains_key(id)).collect();
        let new: Vec<_> = new.into_par_iter().map(|id| (id, work(&id))).collect();
        let gone = new.iter().any(|(_, result)| result.as_ref().is_err_and(Error::is_gone));
        done.extend(new);
        Ok(!gone)
    }
}

/// Separates results from errors.
pub(super) fn split<T>(done: BTreeMap<Id, Result<T>>) -> (Vec<T>, Vec<Error>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for result in done.into_values() {
        match result {
            Ok(done) => good.push(done),
            Err(error) => bad.push(error),
        }
    }
    (good, bad)
}
