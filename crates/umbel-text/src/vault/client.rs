//! The owner's half of a vault, which has the keys.

use super::changes::PLACING;
use super::document::{BadChunk, Document, DocumentHead, DocumentReader};
use super::header::{self, Header, Stored};
use super::inventory::Inventory;
use super::keys::{Cost, Keys, Passphrase, PassphraseKey};
use super::server::{MAX_LISTINGS, Server};
use super::state::State;
use super::tee::{Discard, Failed, Tee};
use super::tokens;
use super::zidx::{Id, IndexShape, Trapdoor};
use crate::content;
use crate::{Error, Result};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;
use umbel::file::{self, Placing};
use umbel::internals::sync::lock;
use zeroize::Zeroizing;

/// The file with the vault's sealed key.
const HEADER: &str = "vault";

/// The options of a new vault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The cost of guessing the passphrase once.
    pub cost: Cost,
    /// The maximum number of words in a part of an index.
    pub words: u32,
    /// The share of documents that match a word that they do not have.
    pub rate: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { cost: Cost::DEFAULT, words: 2000, rate: 1e-4 }
    }
}

/// An open vault.
pub struct Vault {
    pub(super) server: Server,
    pub(super) header: Header,
    pub(super) keys: Keys,
    /// The vault's key, from which all others are derived.
    pub(super) key: Zeroizing<[u8; 32]>,
    /// The key that opens the header. It changes with the passphrase.
    pub(super) opener: Mutex<PassphraseKey>,
}

/// A document, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id of the document, which is the name of its file.
    pub id: Id,
    /// The metadata of the document.
    pub head: DocumentHead,
}

/// The result of adding a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// The document.
    pub entry: Entry,
    /// The error that stopped decompression, if any. Only the words before it are in the index.
    pub cut: Option<String>,
}

/// Words to search for.
#[derive(Debug)]
pub struct Query {
    words: Vec<String>,
    trapdoors: Vec<Trapdoor>,
}

impl Query {
    /// Returns the trapdoors, which the server needs.
    pub fn trapdoors(&self) -> &[Trapdoor] {
        &self.trapdoors
    }

    /// Returns the words in their normal form.
    pub fn words(&self) -> &[String] {
        &self.words
    }
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct SearchResult {
    /// The documents that may have all words, or that certainly do if their contents were
    /// confirmed.
    pub hits: Vec<Entry>,
    /// The number of documents that the server reported as hits, but that do not have all words.
    pub refuted: u64,
    /// The number of documents searched.
    pub asked: u64,
    /// The errors of documents that could not be searched.
    pub problems: Vec<Error>,
}

impl SearchResult {
    /// Adds documents, each with whether it has all words.
    fn add(&mut self, checked: impl IntoIterator<Item = (Entry, bool)>) {
        for (entry, holds) in checked {
            if holds { self.hits.push(entry) } else { self.refuted += 1 }
        }
        self.hits.sort_by(|a, b| (&a.head.name, a.id).cmp(&(&b.head.name, b.id)));
    }
}

impl Vault {
    /// Returns whether a directory has a vault.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn exists(folder: impl AsRef<Path>) -> Result<bool> {
        let path = folder.as_ref().join(HEADER);
        match fs::symlink_metadata(&path) {
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(false),
                _ => Err(Error::io(&path, "find")(error)),
            },
        }
    }

    /// Checks that a new vault can be created in a directory, which must be empty or not exist.
    /// Call this before asking the user for a passphrase.
    ///
    /// # Errors
    ///
    /// Fails if the directory already has a vault, holds other files, or cannot be listed.
    pub fn check_free(folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            entries => match entries.map_err(Error::io(folder, "list"))?.next() {
                Some(_) if Vault::exists(folder)? => Err(Error::VaultExists { path: folder.to_owned() }),
                Some(_) => Err(lost_or(Error::Occupied { path: folder.to_owned() }, folder)),
                None => Ok(()),
            },
        }
    }

    /// Creates a vault in a new or empty directory.
    ///
    /// # Errors
    ///
    /// Fails if an option is out of range, the directory is not empty, the header cannot be
    /// written, or the system lacks memory or random numbers.
    pub fn create(folder: impl AsRef<Path>, passphrase: &Passphrase, options: &Options) -> Result<Vault> {
        let folder = folder.as_ref();
        let shape = IndexShape::for_rate(options.words, options.rate)?;
        let header = Header { cost: options.cost, shape };
        let mut key = Zeroizing::new([0; 32]);
        getrandom::fill(&mut key[..])?;
        let opener = PassphraseKey::random(passphrase, &header.cost)?;
        let bytes = header::seal(&header, &opener, &key, &Inventory::default())?;
        make_folder(folder)?;
        file::save_bytes(folder.join(HEADER), &bytes, PLACING)?;
        Ok(Vault::new(folder, header, key, opener))
    }

    /// Opens the vault in a directory, if that takes no more memory and time than a vault should:
    /// 256 MiB, and about a second.
    ///
    /// # Errors
    ///
    /// Fails if there is no vault, its header is damaged or was written by a newer version, the
    /// passphrase is wrong, or memory is short. Returns [`Error::CostlyVault`] if the header demands
    /// too much.
    pub fn open(folder: impl AsRef<Path>, passphrase: &Passphrase) -> Result<Vault> {
        Vault::open_costly(folder, passphrase, Cost::MAX_TRUSTED_MEMORY)
    }

    /// Opens the vault in a directory, with at most this much memory in KiB, and the time of four
    /// passes over it.
    ///
    /// # Errors
    ///
    /// Fails like [`Vault::open`].
    pub fn open_costly(folder: impl AsRef<Path>, passphrase: &Passphrase, max_memory: u32) -> Result<Vault> {
        let folder = folder.as_ref();
        let stored = stored(folder)?;
        if stored.header.cost.required_limit() > max_memory {
            return Err(Error::CostlyVault { path: folder.to_owned(), cost: stored.header.cost });
        }
        let opener = stored.opener(passphrase)?;
        let contents = stored.open(folder, &opener)?;
        Ok(Vault::new(folder, stored.header, contents.key, opener))
    }

    fn new(folder: &Path, header: Header, key: Zeroizing<[u8; 32]>, opener: PassphraseKey) -> Vault {
        let keys = Keys::new(&key, header.shape.hashes());
        let server = Server::new(folder).with_shape(header.shape);
        Vault { server, header, keys, key, opener: Mutex::new(opener) }
    }

    /// Returns the public header of the vault in a directory.
    ///
    /// # Errors
    ///
    /// Fails if there is no vault, or its header is damaged or was written by a newer version.
    pub fn header_of(folder: impl AsRef<Path>) -> Result<Header> {
        Ok(stored(folder.as_ref())?.header)
    }

    /// Returns the path of the file with the sealed key of the vault in a directory. A process
    /// that changes the vault locks this file; see [`Vault::changes_under`].
    pub fn header_path(folder: impl AsRef<Path>) -> PathBuf {
        folder.as_ref().join(HEADER)
    }

    /// Returns the public header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the half of the vault that needs no key.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Encrypts a document and its words, and adds it to the vault once all of it is on disk. A
    /// document compressed with gzip or zstd is stored as it is, and indexed by its decompressed
    /// words. Use [`Vault::changes`] to add several.
    ///
    /// # Errors
    ///
    /// Fails if the name is too long, the document cannot be read or has too many words, or the
    /// vault cannot be written to. Nothing is added then.
    pub fn add(&self, name: &[u8], modified: Option<SystemTime>, from: impl Read + Send) -> Result<Added> {
        self.replace(name, modified, from, &[])
    }

    /// Adds a document, and then removes others. A concurrent listing of the vault has either the
    /// new document or the others.
    ///
    /// # Errors
    ///
    /// Fails like [`Vault::add`], or if one of the others cannot be removed.
    pub fn replace(
        &self,
        name: &[u8],
        modified: Option<SystemTime>,
        from: impl Read + Send,
        others: &[Id],
    ) -> Result<Added> {
        let mut changes = self.changes()?;
        let added = changes.replace(name, modified, from, others)?;
        changes.finish()?;
        Ok(added)
    }

    /// Removes a document from the vault. Copies of its file may still exist elsewhere.
    ///
    /// # Errors
    ///
    /// Fails if there is no such document, or if its file cannot be removed.
    pub fn remove(&self, id: &Id) -> Result<()> {
        let mut changes = self.changes()?;
        changes.remove(&[*id])?;
        changes.finish()
    }

    /// Returns the inventory as it is on disk, or `None` in a vault of the first version.
    pub(super) fn inventory(&self) -> Result<Option<Inventory>> {
        let folder = self.server.folder();
        Ok(stored(folder)?.open(folder, &lock(&self.opener))?.inventory)
    }

    /// Returns the state of the vault. Remembered where the server cannot reach it, it shows later
    /// whether the server has brought back an earlier state of the whole vault.
    ///
    /// # Errors
    ///
    /// Fails if the header cannot be read, or the passphrase was changed since the vault was opened.
    pub fn state(&self) -> Result<State> {
        Ok(State::new(&self.keys.state, self.inventory()?.as_ref()))
    }

    /// Calls `work` with all documents, on all processors, and compares them with the inventory. A
    /// document that is missing, or is not in the inventory, is an error.
    fn each<T: Send>(&self, work: impl Fn(&Id) -> Result<T> + Send + Sync) -> Result<(Vec<T>, Vec<Error>)> {
        let mut done = BTreeMap::new();
        let mut listed = self.inventory()?;
        let mut missing = Vec::new();
        for _ in 0..MAX_LISTINGS {
            let is_complete = self.server.visit(&mut done, &work)?;
            missing.clear();
            let mut odd = false;
            if let Some(mut inventory) = listed.clone() {
                let removed: HashSet<Id> = inventory.settle(|id| done.contains_key(id)).into_iter().collect();
                missing.extend(inventory.documents().iter().filter(|id| !done.contains_key(id)).copied());
                odd = done.keys().any(|id| !inventory.documents().contains(id) && !removed.contains(id));
            }
            // Whatever another process has changed meanwhile, it has announced before.
            let now = if odd || !missing.is_empty() { self.inventory()? } else { listed.clone() };
            if is_complete && now == listed {
                break;
            }
            listed = now;
        }
        if let Some(mut inventory) = listed {
            let removed = inventory.settle(|id| done.contains_key(id));
            // Being removed, or left behind by a process that was killed.
            removed
                .iter()
                .filter(|id| !inventory.documents().contains(id))
                .for_each(|id| drop(done.remove(id)));
            for (id, result) in &mut done {
                if result.is_ok() && !inventory.documents().contains(id) {
                    *result = Err(Error::NotListed { path: self.server.path(id) });
                }
            }
        }
        let (good, mut bad) = super::server::split(done);
        bad.extend(missing.iter().map(|id| Error::MissingDocument { path: self.server.path(id) }));
        Ok((good, bad))
    }

    /// Returns the ids that are in the inventory although their files are missing.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed.
    pub fn missing(&self) -> Result<Vec<Id>> {
        let Some(mut inventory) = self.inventory()? else { return Ok(Vec::new()) };
        let present = self.server.documents()?;
        inventory.settle(|id| present.contains(id));
        Ok(inventory.documents().iter().filter(|id| !present.contains(id)).copied().collect())
    }

    /// Fails if a document is not in the inventory.
    fn check_listed(&self, id: &Id) -> Result<()> {
        match self.inventory()? {
            Some(inventory) if !inventory.may_contain(id) => {
                // If another process has just removed it, its file is gone.
                self.server.open(id)?;
                Err(Error::NotListed { path: self.server.path(id) })
            }
            _ => Ok(()),
        }
    }

    /// Returns all documents in the order in which they were added, and the errors of those that
    /// cannot be read.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed.
    pub fn entries(&self) -> Result<(Vec<Entry>, Vec<Error>)> {
        let (mut entries, problems) = self.each(|id| self.open_head(id).map(|(_, entry)| entry))?;
        entries.sort_by(|a, b| (a.head.added, &a.head.name, a.id).cmp(&(b.head.added, &b.head.name, b.id)));
        Ok((entries, problems))
    }

    /// Returns the entry of a document.
    ///
    /// # Errors
    ///
    /// Fails if the document does not exist, is damaged, or cannot be read.
    pub fn entry(&self, id: &Id) -> Result<Entry> {
        let (_, entry) = self.open_head(id)?;
        self.check_listed(id)?;
        Ok(entry)
    }

    /// Opens a document, even if it is not in the inventory.
    pub(super) fn open_head(&self, id: &Id) -> Result<(Document, Entry)> {
        let mut document = self.server.open(id)?;
        let head = document.head(&self.keys)?;
        Ok((document, Entry { id: *id, head }))
    }

    fn contents(&self, id: &Id) -> Result<DocumentReader<'_>> {
        let (document, entry) = self.open_head(id)?;
        document.contents(&self.keys, &entry.head)
    }

    /// Writes the contents of a document. Every chunk is verified before it is written, but a later
    /// one may turn out to be damaged. [`check`](Vault::check) the document first, or write to a
    /// location that can be discarded.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Output`] if the writer fails. Any other error is about the document.
    pub fn read(&self, id: &Id, to: &mut impl Write) -> Result<()> {
        let contents = self.contents(id)?;
        self.check_listed(id)?;
        self.copy(id, contents, to)
    }

    fn copy(&self, id: &Id, mut contents: DocumentReader<'_>, to: &mut impl Write) -> Result<()> {
        let mut buffer = vec![0; super::CHUNK];
        loop {
            match contents.read(&mut buffer).map_err(|error| self.failed(id, error))? {
                0 => return to.flush().map_err(Error::Output),
                read => to.write_all(&buffer[..read]).map_err(Error::Output)?,
            }
        }
    }

    /// Returns a reader of the contents of a document, which verifies them as [`Vault::read`] does.
    ///
    /// # Errors
    ///
    /// Fails if the document does not exist, is damaged, or cannot be read.
    pub fn reader(&self, id: &Id) -> Result<impl Read + Send + '_> {
        let contents = self.contents(id)?;
        self.check_listed(id)?;
        Ok(contents)
    }

    /// Writes the contents of a document to a file, completely or not at all. `replace` allows an
    /// existing file to be replaced.
    ///
    /// # Errors
    ///
    /// Fails if the document is damaged or cannot be read, or if the file cannot be written.
    pub fn save(&self, id: &Id, path: &Path, replace: bool) -> Result<()> {
        let placing = Placing { create_new: !replace, private: true, locked: false };
        file::save_with(path, placing, |file| {
            self.read(id, file).map_err(|error| match error {
                Error::Output(error) => Error::io(path, "write to")(error),
                other => other,
            })
        })?;
        Ok(())
    }

    /// Reads and verifies a whole document.
    ///
    /// # Errors
    ///
    /// Fails if the document is damaged or cannot be read.
    pub fn check(&self, id: &Id) -> Result<()> {
        // A sink cannot fail, so an error is about the document.
        self.read(id, &mut io::sink())
    }

    /// Reads and verifies all documents. Returns the number of intact ones and the errors of the
    /// others.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed.
    pub fn check_all(&self) -> Result<(usize, Vec<Error>)> {
        let (whole, problems) = self.each(|id| self.copy(id, self.contents(id)?, &mut io::sink()))?;
        Ok((whole.len(), problems))
    }

    fn failed(&self, id: &Id, error: io::Error) -> Error {
        let path = self.server.path(id);
        match error.get_ref().and_then(|error| error.downcast_ref::<BadChunk>()) {
            Some(bad) => Error::damaged(&path, bad.to_string()),
            None => Error::io(&path, "read")(error),
        }
    }

    /// Creates a query for all words of the texts.
    ///
    /// # Errors
    ///
    /// Fails if a text has no words.
    pub fn query(&self, texts: &[impl AsRef<str>]) -> Result<Query> {
        let mut all = Vec::new();
        for text in texts.iter().map(AsRef::as_ref) {
            let mut words = tokens::words(text);
            if words.is_empty() {
                return Err(Error::NoWord { text: text.to_owned() });
            }
            all.append(&mut words);
        }
        all.sort_unstable();
        all.dedup();
        let trapdoors = all.iter().map(|word| self.keys.index.trapdoor(word)).collect();
        Ok(Query { words: all, trapdoors })
    }

    /// Searches all documents, and opens the heads of the hits. With `confirm`, also reads these
    /// documents and drops those without all words.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed. Errors of single documents are in
    /// [`SearchResult::problems`].
    pub fn search(&self, query: &Query, confirm: bool) -> Result<SearchResult> {
        // Open each hit at once, so that a document that is replaced meanwhile is searched again.
        let (asked, problems) = self.each(|id| {
            let may = self.server.open(id)?.may_contain(&query.trapdoors)?;
            if may { self.look(id, query, confirm).map(Some) } else { Ok(None) }
        })?;
        let mut found = SearchResult {
            asked: (asked.len() + problems.len()) as u64,
            problems,
            ..SearchResult::default()
        };
        found.add(asked.into_iter().flatten());
        Ok(found)
    }

    /// Opens the documents of a server's answer. With `confirm`, also reads them and drops those
    /// without all words.
    ///
    /// # Errors
    ///
    /// The search itself does not fail. Errors of single documents are in
    /// [`SearchResult::problems`].
    pub fn reveal(
        &self,
        query: &Query,
        answer: super::server::Answer,
        confirm: bool,
    ) -> Result<SearchResult> {
        let mut found =
            SearchResult { asked: answer.asked, problems: answer.problems, ..SearchResult::default() };
        let opened: Vec<_> = answer
            .hits
            .par_iter()
            .map(|id| {
                let hit = self.look(id, query, confirm)?;
                self.check_listed(id)?;
                Ok(hit)
            })
            .collect();
        let mut looked = Vec::new();
        for hit in opened {
            match hit {
                Ok(hit) => looked.push(hit),
                Err(error) => found.problems.push(error),
            }
        }
        found.add(looked);
        Ok(found)
    }

    /// Opens a hit of the server. Returns its entry, and whether the document has all words.
    /// Without `confirm`, trusts the server.
    fn look(&self, id: &Id, query: &Query, confirm: bool) -> Result<(Entry, bool)> {
        let (_, entry) = self.open_head(id)?;
        let holds = !confirm || self.holds(&entry, &query.words)?;
        Ok((entry, holds))
    }

    /// Reads a document. Returns whether it has all words.
    fn holds(&self, entry: &Entry, words: &[String]) -> Result<bool> {
        if !entry.head.is_text {
            return Ok(false);
        }
        let mut tee = Tee { from: self.contents(&entry.id)?, to: Discard, failed: None };
        let mut missing: HashSet<&str> = words.iter().map(String::as_str).collect();
        let read = content::decompressed(&mut tee).and_then(|(_, text)| {
            tokens::read(text, |word| {
                missing.remove(&word[..]);
            })
        });
        match tee.failed {
            Some(Failed::Reading(error) | Failed::Writing(error)) => Err(self.failed(&entry.id, error)),
            // Decompression stops at the same point as when the document was added.
            None => Ok(missing.is_empty() && read.unwrap_or(true)),
        }
    }
}

pub(super) fn stored(folder: &Path) -> Result<Stored> {
    Stored::read(folder, &folder.join(HEADER)).map_err(|error| match error {
        Error::NoVault { .. } => lost_or(error, folder),
        other => other,
    })
}

/// Returns the error for a directory without a header. If the directory has documents, it was a
/// vault.
fn lost_or(error: Error, folder: &Path) -> Error {
    match Server::new(folder).documents() {
        Ok(documents) if !documents.is_empty() => Error::HeaderLost { path: folder.join(HEADER) },
        _ => error,
    }
}

/// Creates a private directory, or accepts an empty one.
fn make_folder(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Vault::check_free(folder),
        made => made.map_err(Error::io(folder, "create")),
    }
}
