//! A batch of changes, which a store writes completely or not at all.

use crate::{Error, Result};
use std::collections::BTreeMap;

/// The maximum length of a key in bytes.
pub const MAX_KEY: usize = 1 << 16;
/// The maximum length of a value in bytes.
pub const MAX_VALUE: usize = 1 << 30;

/// Keys to set or delete, each once. The last change of a key counts.
///
/// ```
/// use umbel_text::tables::Changes;
/// let mut changes = Changes::default();
/// changes.put(b"apple", b"green")?;
/// changes.put(b"apple", b"red")?;
/// changes.delete(b"pear")?;
/// assert_eq!(changes.len(), 2);
/// # Ok::<(), umbel_text::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Changes(pub(super) BTreeMap<Vec<u8>, Option<Vec<u8>>>);

impl Changes {
    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// Fails if the key or the value is too long.
    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Result<()> {
        self.insert(key.into(), Some(value.into()))
    }

    /// Deletes a key, whether it exists or not.
    ///
    /// # Errors
    ///
    /// Fails if the key is too long.
    pub fn delete(&mut self, key: impl Into<Vec<u8>>) -> Result<()> {
        self.insert(key.into(), None)
    }

    fn insert(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<()> {
        check_lengths(&key, value.as_deref())?;
        self.0.insert(key, value);
        Ok(())
    }

    /// Returns the number of keys that change.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether no key changes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Fails if a key or its value is too long.
pub(super) fn check_lengths(key: &[u8], value: Option<&[u8]>) -> Result<()> {
    let too_long = |name, length, most| {
        Err(Error::parameter(name, format!("{length} bytes"), format!("at most {most} bytes")))
    };
    if key.len() > MAX_KEY {
        return too_long("the key", key.len(), MAX_KEY);
    }
    match value.map(<[u8]>::len).filter(|length| *length > MAX_VALUE) {
        Some(length) => too_long("the value", length, MAX_VALUE),
        None => Ok(()),
    }
}
