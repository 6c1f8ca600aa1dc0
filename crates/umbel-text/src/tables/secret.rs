//! The hash of a store's filters: SipHash-1-3 with a secret in the folder of the store.
//!
//! Clients of a store can choose its keys and can observe which lookups are slow. With a public hash
//! they could craft keys that all filters let pass, so that each lookup reads every table.

use super::folder;
use super::reader::Access;
use crate::{Error, Result};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use umbel::file::{self, FormatError, Placing};
use umbel::hash::{KeyRing, Strength};
use umbel::internals::hex;
use umbel::{Digest, Hasher};
use zeroize::Zeroizing;

/// The words before the secret in hexadecimal, as in every key file.
const KEY_FILE_START: &str = "umbel-key keyed ";
/// The length of a key file, which ends with a newline.
const KEY_FILE_BYTES: usize = KEY_FILE_START.len() + 2 * SECRET_BYTES + 1;
const SECRET_BYTES: usize = 16;

/// The hash with which the filters of a store are built.
pub(super) struct StoreHash {
    hasher: Hasher,
    source: HashSource,
}

enum HashSource {
    /// The options of the store.
    Options,
    /// The file in the folder.
    Folder,
    /// A random secret that is not in the folder yet.
    New(Zeroizing<[u8; SECRET_BYTES]>),
    /// A random secret that stands in for one that a reader has no access to.
    Unavailable,
}

impl StoreHash {
    /// Returns the hash that the options request, or else the one with the secret in the folder, or
    /// else one with a random secret.
    pub fn open(folder: &Path, requested: Option<&Hasher>, access: Access) -> Result<StoreHash> {
        if let Some(hasher) = requested {
            return Ok(StoreHash { hasher: hasher.clone(), source: HashSource::Options });
        }
        let found = match (read(&folder::secret_path(folder)), access) {
            (Err(error), Access::Write) => return Err(error),
            (found, _) => found.ok().flatten(),
        };
        if let Some(hasher) = found {
            return Ok(StoreHash { hasher, source: HashSource::Folder });
        }
        let mut secret = Zeroizing::new([0; SECRET_BYTES]);
        getrandom::fill(&mut secret[..])?;
        let hasher = Hasher::keyed(*secret);
        let source = match access {
            Access::Read => HashSource::Unavailable,
            Access::Write => HashSource::New(secret),
        };
        Ok(StoreHash { hasher, source })
    }

    /// Writes a new secret to the folder, in a file that only the owner can read.
    pub fn save(&mut self, folder: &Path) -> Result<()> {
        let HashSource::New(secret) = &self.source else { return Ok(()) };
        let mut text = Zeroizing::new(Vec::with_capacity(KEY_FILE_BYTES));
        text.extend_from_slice(KEY_FILE_START.as_bytes());
        text.extend_from_slice(Zeroizing::new(hex::encode(&secret[..])).as_bytes());
        text.push(b'\n');
        let placing = Placing { create_new: true, private: true, ..Placing::default() };
        file::save_bytes(folder::secret_path(folder), &text, placing)?;
        self.source = HashSource::Folder;
        Ok(())
    }

    /// Returns the hash of new filters.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Returns the secrets for opening filters.
    pub fn ring(&self) -> KeyRing {
        KeyRing::from_iter([self.hasher.clone()])
    }

    /// Returns whether a filter with this hash can be used as it is. Stores of earlier versions have
    /// filters with the public hash, which a merge replaces.
    pub fn accepts(&self, hasher: &Hasher) -> bool {
        let is_public = hasher.id().strength == Strength::Fast;
        hasher == &self.hasher || (is_public && !matches!(self.source, HashSource::Options))
    }

    /// Returns whether the secret of the filters is not available. A reader then reads the tables
    /// instead, which takes less time than building the filters again.
    pub fn is_unavailable(&self) -> bool {
        matches!(self.source, HashSource::Unavailable)
    }
}

/// Shows the tag of the secret, not the secret.
impl fmt::Debug for StoreHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hasher.fmt(f)
    }
}

/// A key and its digest by the hash of a store, computed once for all tables.
pub(super) struct HashedKey<'a> {
    pub key: &'a [u8],
    hasher: &'a Hasher,
    digest: Digest,
}

impl<'a> HashedKey<'a> {
    pub fn new(key: &'a [u8], hash: &'a StoreHash) -> HashedKey<'a> {
        HashedKey { key, hasher: &hash.hasher, digest: hash.hasher.digest_bytes(key) }
    }

    /// Returns the digest by the hash of a filter.
    pub fn digest(&self, hasher: &Hasher) -> Digest {
        if hasher == self.hasher { self.digest } else { hasher.digest_bytes(self.key) }
    }
}

/// Reads the secret of a store. Returns `None` if it has none.
fn read(path: &Path) -> Result<Option<Hasher>> {
    let invalid = || {
        let what = "it is not a key file with the secret of a keyed hash: if it belongs to something \
                    else, move it away; if it is damaged, remove it, and the filters are built again";
        Error::Format { path: path.to_owned(), problem: FormatError::Invalid { what: what.into() } }
    };
    let Some(file) = folder::open_file(path, File::options().read(true), invalid)? else { return Ok(None) };
    let mut text = Zeroizing::new(Vec::with_capacity(2 * KEY_FILE_BYTES));
    file.take(KEY_FILE_BYTES as u64 + 1).read_to_end(&mut text).map_err(Error::io(path, "read"))?;
    let secret = text.strip_prefix(KEY_FILE_START.as_bytes()).and_then(|rest| rest.strip_suffix(b"\n"));
    secret.and_then(hex::decode_array).map(|secret| Some(Hasher::keyed(secret))).ok_or_else(invalid)
}
