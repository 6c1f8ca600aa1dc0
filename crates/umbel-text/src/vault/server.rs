//! The half of a vault that a server runs: it knows the directory and trapdoors, and no key.
//!
//! Nothing in this file has a key or a passphrase, or could open one: it does not even read the file in which the vault's
//! key is sealed, and works where that was never copied to.

use super::document::Document;
use super::zidx::{Id, Trapdoor};
use crate::{Error, Result};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// How the name of a document's file ends.
pub(super) const EXTENSION: &str = "doc";

/// How often a directory is listed again because documents in it have gone.
const MAX_LISTINGS: usize = 100;

/// A directory with documents that whoever keeps it cannot read.
#[derive(Clone, Debug)]
pub struct Server {
    folder: PathBuf,
}

/// What a server found.
#[derive(Debug, Default)]
pub struct Answer {
    /// The documents that may hold all the words.
    pub hits: Vec<Id>,
    /// How many documents there are.
    pub asked: u64,
    /// What is wrong with documents that could not be asked.
    pub problems: Vec<Error>,
}

/// What a server knows of a document without being asked for anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its id.
    pub id: Id,
    /// Bytes of its sealed contents.
    pub content: u64,
    /// Parts of its index.
    pub parts: u32,
    /// Bits of its index, those that are set and all.
    pub bits: [u64; 2],
}

impl Server {
    /// Of this directory.
    pub fn new(folder: impl Into<PathBuf>) -> Server {
        Server { folder: folder.into() }
    }

    /// The directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of a document.
    pub fn path(&self, id: &Id) -> PathBuf {
        self.folder.join(format!("{id}.{EXTENSION}"))
    }

    /// All documents, in the order of their ids, which is none.
    pub fn documents(&self) -> Result<Vec<Id>> {
        let mut ids = Vec::new();
        // No document is replaced while the directory is listed: one of the two is always seen.
        let _locked = self.listing(File::lock_shared);
        for entry in fs::read_dir(&self.folder).map_err(Error::io(&self.folder, "list"))? {
            let name = entry.map_err(Error::io(&self.folder, "list"))?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(EXTENSION)?.strip_suffix('.'));
            ids.extend(id.and_then(Id::parse));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// The documents that may hold all the words of the trapdoors: those that do, and of the others about one in 2^r for
    /// every part of its index.
    pub fn search(&self, trapdoors: &[Trapdoor]) -> Result<Answer> {
        let (found, problems) =
            self.each(|id| self.open(id)?.may_contain(trapdoors).map(|may| (*id, may)))?;
        let asked = (found.len() + problems.len()) as u64;
        let hits = found.into_iter().filter(|(_, may)| *may).map(|(id, _)| id).collect();
        Ok(Answer { hits, asked, problems })
    }

    /// What is to be seen of all documents, and what is wrong with some.
    pub fn seen(&self) -> Result<(Vec<Seen>, Vec<Error>)> {
        self.each(|id| {
            let mut document = self.open(id)?;
            let bits = document.fill()?;
            Ok(Seen { id: *id, content: document.content, parts: document.parts, bits })
        })
    }

    /// The lock under which directories are listed and documents are replaced, held until it is dropped. Whoever has the
    /// lock does nothing slow. Some file systems have no locks.
    pub(super) fn listing(&self, lock: fn(&File) -> std::io::Result<()>) -> Option<File> {
        let folder = File::open(&self.folder).ok()?;
        lock(&folder).ok()?;
        Some(folder)
    }

    pub(super) fn open(&self, id: &Id) -> Result<Document> {
        Document::open(&self.path(id), *id)
    }

    /// Does something with all documents, on all processors. If some have gone since the directory was listed, others may
    /// have come in their place, and it is listed anew.
    pub(super) fn each<T: Send>(
        &self,
        work: impl Fn(&Id) -> Result<T> + Send + Sync,
    ) -> Result<(Vec<T>, Vec<Error>)> {
        let mut done: BTreeMap<Id, Result<T>> = BTreeMap::new();
        for _ in 0..MAX_LISTINGS {
            let listed: HashSet<Id> = self.documents()?.into_iter().collect();
            // What is still listed and cannot be found is a link to nowhere, and stays a problem.
            done.retain(|id, _| listed.contains(id));
            let new: Vec<Id> = listed.into_iter().filter(|id| !done.contains_key(id)).collect();
            let new: Vec<_> = new.into_par_iter().map(|id| (id, work(&id))).collect();
            let gone = new.iter().any(|(_, result)| result.as_ref().is_err_and(Error::is_gone));
            done.extend(new);
            if !gone {
                break;
            }
        }
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for result in done.into_values() {
            match result {
                Ok(done) => good.push(done),
                Err(error) => bad.push(error),
            }
        }
        Ok((good, bad))
    }
}
