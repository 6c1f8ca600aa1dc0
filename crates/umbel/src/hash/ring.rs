//! Key rings: the secrets that are available when a file is opened.

use super::{HashId, Hasher, Strength};
use crate::{Error, Result};
use std::path::PathBuf;

/// A set of secrets, which are found by the tag in a file.
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
    /// Makes an empty key ring, which is sufficient for every file with a fast hash.
    pub const fn new() -> KeyRing {
        KeyRing { secrets: Vec::new(), blind: false }
    }

    /// Makes a key ring that finds a placeholder for every secret, for code that reads bits and
    /// never looks up a key.
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

    /// Returns the hasher with this identity. A fast hasher needs no secret and is always found.
    ///
    /// # Errors
    ///
    /// [`Error::MissingKey`] if the secret is not in the ring.
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
