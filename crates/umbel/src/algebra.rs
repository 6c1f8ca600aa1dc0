//! Filters as sets: union, intersection, comparison.

use crate::sizing::estimate::Overlap;
use crate::{Error, Filter, HashId, Kind, Result, Strength};
use std::fmt;

/// Filters that can be combined when shape, hash and seed are the same. What would be unsound for a kind is refused by
/// it, and neither filter changes.
pub trait Algebra: Filter + Sized {
    /// The first thing that keeps the two from being combined, if any.
    fn mismatch(&self, other: &Self) -> Option<Mismatch>;

    /// Whether the two can be combined.
    fn is_compatible(&self, other: &Self) -> bool {
        self.mismatch(other).is_none()
    }

    /// Becomes the filter of both sets: exactly the one that would have come from inserting all keys of both.
    fn union(&mut self, other: &Self) -> Result<()> {
        let _ = other;
        Err(Error::cannot(
            self.kind(),
            "be united",
            "the keys of both could not be kept with the rate promised",
        ))
    }

    /// Becomes a filter of the keys that are in both sets. It has no false negatives, and a rate not above that of
    /// either; but bits that both set for different keys stay, so it is not as good as one built afresh.
    fn intersect(&mut self, other: &Self) -> Result<()> {
        let _ = other;
        Err(Error::cannot(self.kind(), "be intersected", "its cells do not tell which keys both have"))
    }

    /// How many keys the two sets have in common, with error bounds; `None` when their union is saturated.
    fn overlap(&self, other: &Self) -> Result<Option<Overlap>> {
        let _ = other;
        Err(Error::cannot(self.kind(), "be compared", "its cells do not tell which keys both have"))
    }
}

/// Why two filters do not fit together: the first difference, in the order kind, size, hashes, hash, seed or key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What differs: "kind", "number of bits", "number of hashes", "hash", "seed", "key", or what only its kind has, such
    /// as "family" or "window".
    pub what: &'static str,
    /// Its value in the first filter.
    pub ours: String,
    /// Its value in the second.
    pub theirs: String,
}

impl Mismatch {
    /// Nothing, or the error that names the difference.
    pub(crate) fn refuse(mismatch: Option<Mismatch>) -> Result<()> {
        mismatch.map_or(Ok(()), |mismatch| Err(Error::Mismatch(mismatch)))
    }

    /// `Some` if the two values differ.
    pub(crate) fn between<T: PartialEq + fmt::Display>(
        what: &'static str,
        ours: T,
        theirs: T,
    ) -> Option<Mismatch> {
        (ours != theirs).then(|| Mismatch { what, ours: ours.to_string(), theirs: theirs.to_string() })
    }

    /// Two kinds that differ.
    pub(crate) fn kinds(ours: Kind, theirs: Kind) -> Mismatch {
        Mismatch { what: "kind", ours: ours.to_string(), theirs: theirs.to_string() }
    }

    /// The difference between two hashes, named as a person would.
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
