//! Set operations on filters: union, intersection and comparison.

use crate::sizing::estimate::Overlap;
use crate::{Error, Filter, HashId, Kind, Result, Strength};
use std::fmt;

/// Filters that can be combined if their shape, hash and seed are equal. A kind refuses operations
/// that would be unsound for it; neither filter changes then.
pub trait Algebra: Filter + Sized {
    /// Returns the first difference that prevents combining the two filters, if there is one.
    fn mismatch(&self, other: &Self) -> Option<Mismatch>;

    /// Returns whether the two filters can be combined.
    fn is_compatible(&self, other: &Self) -> bool {
        self.mismatch(other).is_none()
    }

    /// Adds the keys of `other`: the result equals the filter that comes from inserting all keys of
    /// both.
    ///
    /// # Errors
    ///
    /// If the filters differ in shape, hash or seed, or the kind does not support unions.
    fn union(&mut self, other: &Self) -> Result<()> {
        let _ = other;
        Err(Error::cannot(
            self.kind(),
            "be united",
            "the keys of both could not be kept with the rate promised",
        ))
    }

    /// Keeps the keys that are in both sets. The result has no false negatives, and a rate no
    /// higher than that of either filter. But bits that both filters set for different keys remain,
    /// so a filter built from the common keys has fewer false positives.
    ///
    /// # Errors
    ///
    /// If the filters differ in shape, hash or seed, or the kind does not support intersections.
    fn intersect(&mut self, other: &Self) -> Result<()> {
        let _ = other;
        Err(Error::cannot(self.kind(), "be intersected", "its cells do not tell which keys both have"))
    }

    /// Estimates the number of keys that the two sets have in common, with error bounds. Returns
    /// `None` if their union is saturated.
    ///
    /// # Errors
    ///
    /// If the filters differ in shape, hash or seed, or the kind cannot be compared.
    fn overlap(&self, other: &Self) -> Result<Option<Overlap>> {
        let _ = other;
        Err(Error::cannot(self.kind(), "be compared", "its cells do not tell which keys both have"))
    }
}

/// The first difference that prevents combining two filters, in the order kind, size, hashes, hash,
/// seed or key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The name of the property: "kind", "number of bits", "number of hashes", "hash", "seed",
    /// "key", or one that only some kinds have, such as "family" or "window".
    pub what: &'static str,
    /// Its value in the first filter.
    pub ours: String,
    /// Its value in the second.
    pub theirs: String,
}

impl Mismatch {
    /// Returns an error for a mismatch, and `Ok` for `None`.
    pub(crate) fn refuse(mismatch: Option<Mismatch>) -> Result<()> {
        mismatch.map_or(Ok(()), |mismatch| Err(Error::Mismatch(mismatch)))
    }

    /// Returns a mismatch if the two values differ.
    pub(crate) fn between<T: PartialEq + fmt::Display>(
        what: &'static str,
        ours: T,
        theirs: T,
    ) -> Option<Mismatch> {
        (ours != theirs).then(|| Mismatch { what, ours: ours.to_string(), theirs: theirs.to_string() })
    }

    /// Returns the mismatch of two different kinds.
    pub(crate) fn kinds(ours: Kind, theirs: Kind) -> Mismatch {
        Mismatch { what: "kind", ours: ours.to_string(), theirs: theirs.to_string() }
    }

    /// Compares two hashes by strength, then by seed (for `fast`) or by the tag of the secret key.
    pub(crate) fn between_hashes(ours: HashId, theirs: HashId) -> Option<Mismatch> {
        Mismatch::between("hash", ours.strength, theirs.strength).or_else(|| match ours.strength {
            Strength::Fast => Mismatch::between("seed", ours.value, theirs.value),
            _ => Mismatch::between(
                "key",
                format!("tag {:016x}", ours.value),
                format!("tag {:016x}", theirs.value),
            ),
        })
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {} in one and {} in the other", self.what, self.ours, self.theirs)
    }
}
