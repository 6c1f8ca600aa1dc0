//! The owner's half of a vault, which has the keys.

use super::document::{BadChunk, Contents, DocumentHead, MAX_PARTS, Sealer};
use super::header::{self, Header, Stored};
use super::keys::{Cost, Keys, Passphrase};
use super::server::Server;
use super::tee::{Discard, Failed, Tee};
use super::tokens;
use super::zidx::{Id, Index, IndexShape, Noise, Trapdoor};
use crate::content;
use crate::{Error, Result};
use rayon::prelude::*;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use umbel::file::{self, Placing};
use umbel::internals::file_lock::FileLockKind;

/// The file with the vault's sealed key.
const HEADER: &str = "vault";
/// The maximum length of a document's name: far longer than any path, and shorter than a sealed
/// head.
const MAX_NAME_BYTES: usize = 1 << 16;
/// Files of a vault are private, and never replaced.
const PLACING: Placing = Placing { create_new: true, private: true, locked: false };

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
    server: Server,
    header: Header,
    keys: Keys,
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
        let (key, bytes) = header::create(&header, passphrase)?;
        make_folder(folder)?;
        file::save_bytes(folder.join(HEADER), &bytes, PLACING)?;
        Ok(Vault { server: Server::new(folder), header, keys: Keys::new(&key, shape.hashes()) })
    }

    /// Opens the vault in a directory.
    ///
    /// # Errors
    ///
    /// Fails if there is no vault, its header is damaged or was written by a newer version, the
    /// passphrase is wrong, or memory is short.
    pub fn open(folder: impl AsRef<Path>, passphrase: &Passphrase) -> Result<Vault> {
        let folder = folder.as_ref();
        let stored = stored(folder)?;
        let key = stored.open(folder, passphrase)?;
        let header = stored.header;
        Ok(Vault { server: Server::new(folder), header, keys: Keys::new(&key, header.shape.hashes()) })
    }

    /// Returns the public header of the vault in a directory.
    ///
    /// # Errors
    ///
    /// Fails if there is no vault, or its header is damaged or was written by a newer version.
    pub fn header_of(folder: impl AsRef<Path>) -> Result<Header> {
        Ok(stored(folder.as_ref())?.header)
    }

    /// Returns the path of the file with the sealed key of the vault in a directory. A process that
    /// changes a vault should lock this file, so that concurrent processes see each other's
    /// changes.
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
    /// words.
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
        mut from: impl Read + Send,
        others: &[Id],
    ) -> Result<Added> {
        if name.len() > MAX_NAME_BYTES {
            let needs = format!("one of at most {MAX_NAME_BYTES} bytes");
            return Err(Error::parameter("name", format_args!("{} bytes", name.len()), needs));
        }
        let id = Id::random()?;
        let path = self.server.path(&id);
        let mut noise = Noise::random()?;
        let mut added = None;
        let mut locked = None;
        file::save_with(&path, PLACING, |file| {
            let failed = || Error::io(&path, "write to");
            let sealer = Sealer::start(&self.keys, id, BufWriter::with_capacity(1 << 18, &mut *file));
            let mut tee = Tee { from: &mut from, to: sealer.map_err(failed())?, failed: None };
            let mut found = HashSet::new();
            let most = u64::from(self.header.shape.words()) * u64::from(MAX_PARTS);
            let read = read_words(&mut tee, &mut found, most);
            // The vault stores the whole document, even if reading its words stopped early.
            let drained = io::copy(&mut tee, &mut io::sink());
            let Tee { from: _, to: sealer, failed: went_wrong } = { tee };
            match went_wrong {
                Some(Failed::Reading(error)) => {
                    let name = PathBuf::from(String::from_utf8_lossy(name).into_owned());
                    return Err(Error::io(&name, "read")(error));
                }
                Some(Failed::Writing(error)) => return Err(failed()(error)),
                None => drained.map_err(failed())?,
            };
            if found.len() as u64 > most {
                return Err(Error::TooManyWords { most });
            }
            let (is_text, cut) = match read {
                Ok(is_text) => (is_text, None),
                Err(error) => (true, Some(error.to_string())),
            };
            let head = DocumentHead {
                name: name.to_vec(),
                size: sealer.size,
                modified: modified.map(seconds),
                added: seconds(SystemTime::now()),
                words: found.len() as u64,
                is_text,
            };
            let parts = self.index(&id, found, &mut noise);
            sealer.finish(&self.keys, &self.header.shape, &head, &parts).map_err(failed())?;
            added = Some(Added { entry: Entry { id, head }, cut });
            if !others.is_empty() {
                // Flush before taking the lock, since flushing takes long.
                file.sync_all().map_err(failed())?;
                locked = self.server.listing(FileLockKind::Exclusive)?;
            }
            Ok(())
        })?;
        if !others.is_empty() {
            others.iter().try_for_each(|id| self.unlink(id))?;
            drop(locked);
            self.flush_folder();
        }
        added.ok_or_else(|| Error::damaged(&path, "it was not written"))
    }

    /// Builds the parts of the index of a document with these words, all equally full.
    fn index(&self, id: &Id, words: HashSet<String>, noise: &mut Noise) -> Vec<Index> {
        let shape = &self.header.shape;
        let mut words: Vec<String> = words.into_iter().collect();
        // The part that holds a word must not reveal its position in the document.
        words.sort_unstable();
        noise.shuffle(&mut words);
        let trapdoors: Vec<Trapdoor> = words.par_iter().map(|word| self.keys.index.trapdoor(word)).collect();
        let count = trapdoors.len().div_ceil(shape.words() as usize).max(1);
        let part = trapdoors.len().div_ceil(count).max(1);
        let mut parts = Vec::with_capacity(count);
        for number in 0..count {
            let words = trapdoors.chunks(part).nth(number).unwrap_or_default();
            parts.push(Index::build(shape, id, number as u32, words, noise));
        }
        parts
    }

    /// Returns all documents in the order in which they were added, and the errors of those that
    /// cannot be read.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed.
    pub fn entries(&self) -> Result<(Vec<Entry>, Vec<Error>)> {
        let (mut entries, problems) = self.server.each(|id| self.entry(id))?;
        entries.sort_by(|a, b| (a.head.added, &a.head.name, a.id).cmp(&(b.head.added, &b.head.name, b.id)));
        Ok((entries, problems))
    }

    /// Returns the entry of a document.
    ///
    /// # Errors
    ///
    /// Fails if the document does not exist, is damaged, or cannot be read.
    pub fn entry(&self, id: &Id) -> Result<Entry> {
        let head = self.server.open(id)?.head(&self.keys, &self.header.shape)?;
        Ok(Entry { id: *id, head })
    }

    fn contents(&self, id: &Id) -> Result<(DocumentHead, Contents<'_>)> {
        let mut document = self.server.open(id)?;
        let head = document.head(&self.keys, &self.header.shape)?;
        let contents = document.contents(&self.keys, &head)?;
        Ok((head, contents))
    }

    /// Writes the contents of a document. Every chunk is verified before it is written, but a later
    /// one may turn out to be damaged. [`check`](Vault::check) the document first, or write to a
    /// location that can be discarded.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Output`] if the writer fails. Any other error is about the document.
    pub fn read(&self, id: &Id, to: &mut impl Write) -> Result<()> {
        let (_, mut contents) = self.contents(id)?;
        let mut buffer = vec![0; super::CHUNK];
        loop {
            match contents.read(&mut buffer).map_err(|error| self.failed(id, error))? {
                0 => return to.flush().map_err(Error::Output),
                read => to.write_all(&buffer[..read]).map_err(Error::Output)?,
            }
        }
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
        let (whole, problems) = self.server.each(|id| self.check(id))?;
        Ok((whole.len(), problems))
    }

    fn failed(&self, id: &Id, error: io::Error) -> Error {
        let path = self.server.path(id);
        match error.get_ref().and_then(|error| error.downcast_ref::<BadChunk>()) {
            Some(bad) => Error::damaged(&path, bad.to_string()),
            None => Error::io(&path, "read")(error),
        }
    }

    /// Removes a document from the vault. Copies of its file may still exist elsewhere.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be removed.
    pub fn remove(&self, id: &Id) -> Result<()> {
        self.unlink(id)?;
        self.flush_folder();
        Ok(())
    }

    fn unlink(&self, id: &Id) -> Result<()> {
        let path = self.server.path(id);
        fs::remove_file(&path).map_err(Error::io(&path, "remove"))
    }

    fn flush_folder(&self) {
        // Some file systems cannot flush a directory.
        if let Ok(folder) = File::open(self.server.folder()) {
            let _ = folder.sync_all();
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
        let (asked, problems) = self.server.each(|id| {
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
        let opened: Vec<_> = answer.hits.par_iter().map(|id| self.look(id, query, confirm)).collect();
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
        let entry = self.entry(id)?;
        let holds = !confirm || self.holds(&entry, &query.words)?;
        Ok((entry, holds))
    }

    /// Reads a document. Returns whether it has all words.
    fn holds(&self, entry: &Entry, words: &[String]) -> Result<bool> {
        if !entry.head.is_text {
            return Ok(false);
        }
        let (_, contents) = self.contents(&entry.id)?;
        let mut tee = Tee { from: contents, to: Discard, failed: None };
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

/// Reads the words of a document, decompressed. Returns whether the document is text. Stops
/// collecting when there is one word more than `most`.
fn read_words(from: &mut (impl Read + Send), found: &mut HashSet<String>, most: u64) -> io::Result<bool> {
    let (_, text) = content::decompressed(from)?;
    tokens::read(text, |word| {
        if found.len() as u64 <= most {
            found.insert(word);
        }
    })
}

fn stored(folder: &Path) -> Result<Stored> {
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

/// Returns the seconds since 1970, negative for earlier times.
fn seconds(time: SystemTime) -> i64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_secs()).map_or(i64::MIN + 1, |seconds| -seconds),
    }
}
