//! Changes to a vault: documents that are added, replaced and removed, and a new passphrase.

use super::client::{Added, Entry, Vault};
use super::document::{DocumentHead, MAX_PARTS, Sealer};
use super::header;
use super::inventory::{Change, Inventory};
use super::keys::{Passphrase, PassphraseKey};
use super::server::LOCK_TIMEOUT;
use super::tee::{Failed, Tee};
use super::tokens;
use super::zidx::{CopyTag, Id, Index, Noise, Trapdoor};
use crate::content;
use crate::{Error, Result};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use umbel::file::{self, Placing};
use umbel::internals::file_lock::{FileLockKind, lock_current};
use umbel::internals::regular_file::open_folder;
use umbel::internals::sync::lock;

/// The maximum length of a document's name: far longer than any path, and shorter than a sealed
/// head.
const MAX_NAME_BYTES: usize = 1 << 16;
/// Files of a vault are private, and only the header is ever replaced.
pub(super) const PLACING: Placing = Placing { create_new: true, private: true, locked: false };
/// The maximum number of ids that are announced before they are used. The first change announces
/// one id, and each further announcement twice as many.
const MAX_RESERVED: usize = 256;

/// Changes to a vault, which is locked until they are finished or dropped: other functions that change
/// it wait for that, even in the same thread.
///
/// Each change is complete when its function returns, and survives even if the process is killed
/// then. [`finish`](Changes::finish) only updates the list of documents, after which a server that
/// brings back an old document can no longer pretend that the change was interrupted.
///
/// ```
/// # use umbel_text::vault::{Cost, Options, Passphrase, Vault};
/// # let folder = tempfile::tempdir()?;
/// # let passphrase = Passphrase::new(b"correct horse battery staple".to_vec().into()).ok_or("none")?;
/// # let options = Options { cost: Cost::WEAKEST, ..Options::default() };
/// let vault = Vault::create(folder.path().join("vault"), &passphrase, &options)?;
/// let mut changes = vault.changes()?;
/// for (name, text) in [("plan.txt", "We attack at dawn."), ("menu.txt", "Soup and bread.")] {
///     changes.replace(name.as_bytes(), None, text.as_bytes(), &[])?;
/// }
/// changes.finish()?;
/// assert_eq!(vault.entries()?.0.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Changes<'a> {
    vault: &'a Vault,
    inventory: Inventory,
    /// Announced ids that are not used yet.
    reserved: Vec<Id>,
    /// The number of ids to announce next.
    next_reserved: usize,
    /// New documents that are in place, while files that they replace could not be removed.
    unfinished: BTreeSet<Id>,
    /// Whether the inventory on disk lacks a change that is complete.
    is_unsaved: bool,
    /// Holds the lock on the header.
    _lock: File,
}

impl Vault {
    /// Waits at most 30 seconds for the lock on the vault, and starts to change it.
    ///
    /// # Errors
    ///
    /// Fails if the header cannot be read or locked, the passphrase was changed since the vault was
    /// opened, or files left behind by a killed process cannot be removed.
    pub fn changes(&self) -> Result<Changes<'_>> {
        let path = Vault::header_path(self.server().folder());
        let open = || super::document::open_regular(&path);
        let locked = lock_current(&path, FileLockKind::Exclusive, LOCK_TIMEOUT, open)?;
        self.changes_under(locked.map_err(Error::lock(&path))?)
    }

    /// Starts to change the vault under an exclusive lock on its header
    /// ([`header_path`](Vault::header_path)), which the caller holds.
    ///
    /// # Errors
    ///
    /// Fails like [`Vault::changes`].
    pub fn changes_under(&self, locked: File) -> Result<Changes<'_>> {
        let present: BTreeSet<Id> = self.server.documents()?.into_iter().collect();
        let mut changes = Changes {
            vault: self,
            inventory: Inventory::default(),
            reserved: Vec::new(),
            next_reserved: 0,
            unfinished: BTreeSet::new(),
            is_unsaved: false,
            _lock: locked,
        };
        match self.inventory()? {
            Some(inventory) => {
                // Complete the changes of a process that was killed.
                changes.is_unsaved = inventory.has_announced();
                changes.inventory = inventory;
                let removed = changes.inventory.settle(|id| present.contains(id));
                for id in removed.iter().filter(|id| present.contains(id)) {
                    changes.unlink(id)?;
                }
            }
            // Every document of a vault without an inventory counts.
            None => changes.inventory = Inventory::from_documents(present),
        }
        Ok(changes)
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

    fn flush_folder(&self) {
        // Some file systems cannot flush a directory.
        if let Ok(folder) = open_folder(self.server.folder()) {
            let _ = folder.sync_all();
        }
    }
}

impl Changes<'_> {
    /// Adds a document, and then removes others, as [`Vault::replace`] does.
    ///
    /// # Errors
    ///
    /// Fails like [`Vault::replace`].
    pub fn replace(
        &mut self,
        name: &[u8],
        modified: Option<SystemTime>,
        from: impl Read + Send,
        others: &[Id],
    ) -> Result<Added> {
        let id = self.next_id()?;
        self.replace_as(id, name, modified, from, others)
    }

    /// Adds the documents of another vault, encrypted again, and returns the errors of those that
    /// could not be copied. Documents that were copied before are left out, so that a copy that was
    /// interrupted is continued.
    ///
    /// # Errors
    ///
    /// Fails if the header cannot be written, or with [`Error::VaultExists`] if this vault has other
    /// documents too, or all of these already.
    pub fn copy(&mut self, from: &Vault, entries: &[Entry]) -> Result<Vec<Error>> {
        let prf = &self.vault.keys.copies;
        let mut present: BTreeMap<CopyTag, usize> = BTreeMap::new();
        for id in self.inventory.documents() {
            *present.entry(id.tag()).or_default() += 1;
        }
        let mut missing: Vec<(CopyTag, &Entry)> = Vec::new();
        for entry in entries {
            let tag = entry.id.copy_tag(prf);
            match present.get_mut(&tag) {
                Some(count @ 1..) => *count -= 1,
                _ => missing.push((tag, entry)),
            }
        }
        let is_complete = missing.is_empty() && !entries.is_empty();
        if is_complete || present.values().any(|count| *count > 0) {
            return Err(Error::VaultExists { path: self.vault.server.folder().to_owned() });
        }
        let mut problems = Vec::new();
        for batch in missing.chunks(MAX_RESERVED) {
            let ids: Vec<Id> = batch.iter().map(|(tag, _)| Id::random_copy(tag)).collect::<Result<_, _>>()?;
            ids.iter().for_each(|id| self.inventory.announce(Change { new: Some(*id), old: Vec::new() }));
            self.save()?;
            for (id, (_, Entry { id: original, head })) in ids.into_iter().zip(batch) {
                let modified = head.modified.and_then(|seconds| u64::try_from(seconds).ok());
                let modified = modified.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
                let copied = from
                    .reader(original)
                    .and_then(|contents| self.replace_as(id, &head.name, modified, contents, &[]));
                problems.extend(copied.err());
            }
        }
        Ok(problems)
    }

    /// Adds a document with this id, and then removes others.
    fn replace_as(
        &mut self,
        id: Id,
        name: &[u8],
        modified: Option<SystemTime>,
        mut from: impl Read + Send,
        others: &[Id],
    ) -> Result<Added> {
        if name.len() > MAX_NAME_BYTES {
            let needs = format!("one of at most {MAX_NAME_BYTES} bytes");
            return Err(Error::parameter("name", format_args!("{} bytes", name.len()), needs));
        }
        let Vault { server, header, keys, .. } = self.vault;
        let path = server.path(&id);
        let change = Change { new: Some(id), old: others.to_vec() };
        let mut noise = Noise::random()?;
        let mut added = None;
        let mut locked = None;
        file::save_with(&path, PLACING, |file| {
            let failed = || Error::io(&path, "write to");
            let sealer = Sealer::start(keys, id, BufWriter::with_capacity(1 << 18, &mut *file));
            let mut tee = Tee { from: &mut from, to: sealer.map_err(failed())?, failed: None };
            let mut found = HashSet::new();
            let most = u64::from(header.shape.words()) * u64::from(MAX_PARTS);
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
            let parts = self.vault.index(&id, found, &mut noise);
            sealer.finish(keys, &header.shape, &head, &parts).map_err(failed())?;
            added = Some(Added { entry: Entry { id, head }, cut });
            self.announce(change.clone())?;
            if !others.is_empty() {
                // Flush before taking the lock, since flushing takes long.
                file.sync_all().map_err(failed())?;
                locked = server.listing(FileLockKind::Exclusive)?;
            }
            Ok(())
        })?;
        if !others.is_empty() {
            self.unfinished.insert(id);
            self.is_unsaved = true;
            others.iter().try_for_each(|id| self.unlink(id))?;
            self.unfinished.remove(&id);
            drop(locked);
            self.vault.flush_folder();
        }
        self.complete(&change);
        added.ok_or_else(|| Error::damaged(&path, "it was not written"))
    }

    /// Removes documents, also those that are missing or not in the inventory.
    ///
    /// # Errors
    ///
    /// Fails if a document is neither in the inventory nor in the directory, or if a file cannot be
    /// removed.
    pub fn remove(&mut self, ids: &[Id]) -> Result<()> {
        for id in ids {
            let path = self.vault.server.path(id);
            if !self.inventory.may_contain(id) {
                fs::symlink_metadata(&path).map_err(Error::io(&path, "remove"))?;
            }
        }
        let change = Change { new: None, old: ids.to_vec() };
        self.announce(change.clone())?;
        ids.iter().try_for_each(|id| self.unlink(id))?;
        self.vault.flush_folder();
        self.complete(&change);
        Ok(())
    }

    /// Takes authentic documents into the inventory that are not in it, for instance because they
    /// were added to a copy of the vault elsewhere. Returns their entries.
    ///
    /// # Errors
    ///
    /// Fails if one of them is not a document of this vault.
    pub fn adopt(&mut self, ids: &[Id]) -> Result<Vec<Entry>> {
        let open = |id| self.vault.open_head(id).map(|(_, entry)| entry);
        let entries = ids.iter().map(open).collect::<Result<_>>()?;
        for id in ids {
            self.inventory.complete(&Change { new: Some(*id), old: Vec::new() });
        }
        self.save()?;
        Ok(entries)
    }

    /// Changes the passphrase. The vault's key stays the same, so the documents are not encrypted
    /// again: anyone who has a copy of the old header and the old passphrase can still read them.
    ///
    /// # Errors
    ///
    /// Fails if the header cannot be written, or the system lacks memory or random numbers. The
    /// passphrase is the old one then.
    pub fn set_passphrase(&mut self, passphrase: &Passphrase) -> Result<()> {
        let mut opener = PassphraseKey::random(passphrase, &self.vault.header.cost)?;
        std::mem::swap(&mut *lock(&self.vault.opener), &mut opener);
        let saved = self.save();
        if saved.is_err() {
            std::mem::swap(&mut *lock(&self.vault.opener), &mut opener);
        }
        saved
    }

    /// Lists the changed documents, and forgets the ones that are gone.
    ///
    /// # Errors
    ///
    /// Fails if the header cannot be written. The changes are in effect nevertheless.
    pub fn finish(mut self) -> Result<()> {
        self.inventory.retain_new(|id| self.unfinished.contains(id));
        if self.is_unsaved { self.save() } else { Ok(()) }
    }

    /// Returns the id of the next new document.
    fn next_id(&mut self) -> Result<Id> {
        match self.reserved.pop() {
            Some(id) => Ok(id),
            None => Ok(Id::random()?),
        }
    }

    /// Records a change on disk before it is made.
    fn announce(&mut self, change: Change) -> Result<()> {
        if change.new.is_some_and(|id| change.old.is_empty() && self.inventory.is_reserved(&id)) {
            return Ok(());
        }
        self.inventory.announce(change.clone());
        if self.reserved.is_empty() {
            for _ in 0..self.next_reserved {
                let id = Id::random()?;
                self.inventory.announce(Change { new: Some(id), old: Vec::new() });
                self.reserved.push(id);
            }
            self.next_reserved = (2 * self.next_reserved + 1).min(MAX_RESERVED);
        }
        self.save().inspect_err(|_| self.inventory.withdraw(&change))
    }

    fn complete(&mut self, change: &Change) {
        self.inventory.complete(change);
        self.is_unsaved = true;
    }

    /// Replaces the header, and keeps the lock.
    fn save(&mut self) -> Result<()> {
        let Vault { server, header, key, opener, .. } = self.vault;
        // Counts attempts, so that no two headers have the same number.
        self.inventory.counter += 1;
        let bytes = header::seal(header, &lock(opener), key, &self.inventory)?;
        let placing = Placing { create_new: false, private: true, locked: true };
        // The old file stays locked until the new one, which is locked, has its name.
        self._lock = file::save_bytes(Vault::header_path(server.folder()), &bytes, placing)?;
        self.is_unsaved = false;
        Ok(())
    }

    /// Removes the file of a document, which may be gone already.
    fn unlink(&self, id: &Id) -> Result<()> {
        let path = self.vault.server.path(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(Error::io(&path, "remove")),
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

/// Returns the seconds since 1970, negative for earlier times.
fn seconds(time: SystemTime) -> i64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_secs()).map_or(i64::MIN + 1, |seconds| -seconds),
    }
}
