//! Key rings: the secrets that are available when a file is opened.

use super::{HashId, Hasher, Strength};
use crate::{Error, Result};
use std::path::PathBuf;

/// A set of secrets, found by the tag that a file carries.
///
/// ```
/// use umbel::hash::KeyRing;
/// use umbel::Hasher;
/// let secret = Hasher::keyed([7; 16]);
/// let ring = KeyRing::from_iter([secret.clone()]);
/// assert_eq!(ring.find(secret.id()).unwrap(), secret);
/// assert!(KeyRing::new().find(secret.id()).is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeyRing {
    secrets: Vec<Hasher>,
    blind: bool,
}

impl KeyRing {
    /// No secrets: enough for every file with a fast hash.
    pub const fn new() -> KeyRing {
        KeyRing { secrets: Vec::new(), blind: false }
    }

    /// Opens every file with a stand-in for its hash: for what looks at bits and never asks for a key.
    #[cfg(feature = "mmap")]
    pub(crate) const fn blind() -> KeyRing {
        KeyRing { secrets: Vec::new(), blind: true }
    }

    /// Adds a secret.
    pub fn insert(&mut self, hasher: Hasher) {
        if !self.secrets.contains(&hasher) {
            self.secrets.push(hasher);
        }
    }

    /// The hasher with this identity. A fast one needs no secret and is always found.
    pub fn find(&self, id: HashId) -> Result<Hasher> {
        if id.strength == Strength::Fast {
            return Ok(Hasher::fast(id.value));
        }
        if self.blind {
            return Ok(Hasher::default());
        }
        self.secrets
            .iter()
            .find(|hasher| hasher.id() == id)
            .cloned()
            .ok_or_else(|| Error::MissingKey { path: PathBuf::new(), id })
    }
}

impl FromIterator<Hasher> for KeyRing {
    fn from_iter<I: IntoIterator<Item = Hasher>>(hashers: I) -> KeyRing {
        let mut ring = KeyRing::new();
        hashers.into_iter().for_each(|hasher| ring.insert(hasher));
        ring
    }
}
