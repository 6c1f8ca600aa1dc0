//! Secrets of keyed and sealed hashes, and the key files that hold them.

use crate::args::headings;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use umbel::Hasher;
use umbel::file::{self, Placing};
use umbel::hash::{KeyRing, Strength};
use umbel::internals::{hex, key_file};
use zeroize::Zeroizing;

/// The secrets that open filters.
#[derive(Args, Clone, Debug)]
pub struct Secrets {
    /// Read the secret of a keyed or sealed hash from FILE, as written by `umbel key new`, or as
    /// the 32 raw bytes of a sealed secret (repeatable). A file that others own or can read is
    /// refused. A pipe, as of `<(command)`, has to bring the secret within a minute
    #[arg(long, value_name = "FILE", help_heading = headings::SECRETS)]
    pub(super) key_file: Vec<PathBuf>,

    /// The secrets read from the files, which may be pipes and are therefore read once.
    #[arg(skip)]
    ring: OnceLock<KeyRing>,
}

impl Secrets {
    /// Returns the secrets of all key files.
    pub fn ring(&self) -> Result<&KeyRing> {
        if let Some(ring) = self.ring.get() {
            return Ok(ring);
        }
        let ring = self.key_file.iter().map(|path| read_key(path)).collect::<Result<_>>()?;
        Ok(self.ring.get_or_init(|| ring))
    }

    /// Returns whether a key file is given.
    pub fn is_given(&self) -> bool {
        !self.key_file.is_empty()
    }

    /// Returns the secret to build with, if one is given.
    pub fn single(&self) -> Result<Option<Hasher>> {
        match &self.key_file[..] {
            [] => Ok(None),
            [path] => read_key(path).map(Some),
            _ => bail!("a filter is built with one secret: give --key-file once"),
        }
    }

    /// Returns these secrets, or if there are none, the one in the key file beside the filter.
    pub fn or_beside(&self, filter: &Path) -> Secrets {
        let beside = key_file_beside(filter);
        if self.key_file.is_empty() && beside.exists() {
            return Secrets { key_file: vec![beside], ring: OnceLock::new() };
        }
        self.clone()
    }
}

/// Reads the secret in a key file.
pub fn read_key(path: &Path) -> Result<Hasher> {
    Ok(key_file::read(path)?)
}

/// Returns the default path of a filter's key file: its own path and `.key`.
pub fn key_file_beside(filter: &Path) -> PathBuf {
    let mut name = filter.as_os_str().to_owned();
    name.push(".key");
    name.into()
}

/// A new secret, and the contents of its key file.
pub struct NewKey {
    pub hasher: Hasher,
    contents: Zeroizing<String>,
}

impl NewKey {
    /// Creates a random secret.
    pub fn random(strength: Strength) -> Result<NewKey> {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *secret).context("the system has no random numbers")?;
        let (keyed, _) = secret.split_first_chunk().context("a secret of 32 bytes")?;
        let contents = |secret: &[u8]| {
            let digits = Zeroizing::new(hex::encode(secret));
            // Long enough not to grow, which would leave a copy behind.
            let mut contents = Zeroizing::new(String::with_capacity(128));
            *contents += &format!("{} {strength} ", key_file::MARK);
            *contents += &digits;
            *contents += "\n";
            contents
        };
        Ok(match strength {
            Strength::Keyed => NewKey { hasher: Hasher::keyed(*keyed), contents: contents(keyed) },
            Strength::Sealed => NewKey { hasher: Hasher::sealed(*secret), contents: contents(&*secret) },
            _ => bail!("a {strength} hash has no secret: keyed and sealed have"),
        })
    }

    /// Writes the secret to a new file that only its owner can read, completely or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        let name = path.display();
        let placing = Placing { create_new: true, private: true, locked: false };
        match file::save_bytes(path, self.contents.as_bytes(), placing) {
            Err(umbel::Error::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                bail!(
                    "{name} exists: a secret is never overwritten, since filters may depend on it; give another name"
                )
            }
            written => Ok(written.map(drop)?),
        }
    }
}
