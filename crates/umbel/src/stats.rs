//! How full a filter is, and what that means.

use crate::Kind;
use crate::sizing::estimate::Cardinality;

/// What can be said about a filter as it is now.
///
/// Two numbers of keys are kept apart: `inserted` counts insertions, repeated keys included, and is unknown after a
/// union; `estimate` comes from the bits themselves, with its standard error.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The kind.
    pub kind: Kind,
    /// Bits that keys can land on (m).
    pub bits: u64,
    /// Bits a key sets (k).
    pub hashes: u32,
    /// Bytes of memory.
    pub bytes: u64,
    /// Keys it was planned for, if it was.
    pub capacity: Option<u64>,
    /// The rate it was planned for, if it was.
    pub rate_target: Option<f64>,
    /// Insertions so far, if they were counted.
    pub inserted: Option<u64>,
    /// Bits that are set.
    pub set_bits: u64,
    /// Distinct keys, from the set bits.
    pub estimate: Cardinality,
    /// The false-positive rate that these very bits have.
    pub rate_now: f64,
}

impl Stats {
    /// The share of bits that are set.
    pub fn fill(&self) -> f64 {
        self.set_bits as f64 / self.bits as f64
    }
}
