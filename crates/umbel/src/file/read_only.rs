//! A structure over memory that must not be written.

use super::Storable;
use crate::aging::Timestamp;
use crate::{Result, Stored};
use std::ops::Deref;

/// A structure that reads a mapped file or static memory in place: it can be queried, but not
/// changed.
///
/// It dereferences to `F`, but never mutably. `try_clone` returns a copy that owns its memory and
/// can be changed.
///
/// ```
/// use umbel::BloomFilter;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("fruit.umbel");
/// BloomFilter::from_keys(["apple"], 0.01)?.save(&path)?;
/// let fruit = BloomFilter::map(&path)?.verify()?.filter;
/// let mut copy = fruit.try_clone()?;
/// copy.insert("pear");
/// assert!(copy.contains("pear") && !fruit.contains("pear"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ReadOnly<F>(pub(super) F);

impl<F> Deref for ReadOnly<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.0
    }
}

impl ReadOnly<Stored> {
    /// Returns the structure with its concrete type.
    ///
    /// # Errors
    ///
    /// If it is of another kind.
    pub fn into_kind<F: Storable>(self) -> Result<ReadOnly<F>> {
        Ok(ReadOnly(F::from_stored(self.0)?))
    }

    /// Sets the clock of a filter with a time window, which is stored outside the memory; see
    /// [`Aging::advance`](crate::Aging::advance).
    ///
    /// # Errors
    ///
    /// If `now` is before the time set last.
    pub fn advance(&mut self, now: Timestamp) -> Result<()> {
        self.0.advance(now)
    }
}
