//! How full a filter is, and what that means.

use crate::sizing::estimate::{Cardinality, Estimate};
use crate::{Kind, Structure};

/// What can be said about a filter as it is now.
///
/// Two numbers of keys are kept apart: `inserted` counts insertions, repeated keys included, and is unknown after a
/// union; `estimate` comes from the bits themselves, with its standard error.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The kind.
    pub kind: Kind,
    /// Cells that keys can land on (m): bits, counters or slots.
    pub cells: u64,
    /// Cells that are not empty.
    pub used_cells: u64,
    /// Cells of a key (k).
    pub hashes: u32,
    /// Bits of all cells, and of whatever else it keeps about them.
    pub bits: u64,
    /// Bytes of memory.
    pub bytes: u64,
    /// Keys it was planned for, if it was.
    pub capacity: Option<u64>,
    /// The rate it was planned for, if it was.
    pub rate_target: Option<f64>,
    /// Insertions so far, if they were counted.
    pub inserted: Option<u64>,
    /// Distinct keys, from the cells.
    pub estimate: Cardinality,
    /// The false-positive rate that these very cells have.
    pub rate_now: f64,
    /// What else there is to say of this kind, by name.
    pub details: Vec<(&'static str, f64)>,
}

impl Stats {
    /// What every structure knows of itself without a look at its cells; the rest is zero.
    pub(crate) fn from_structure<S: Structure>(structure: &S) -> Stats {
        Stats {
            kind: S::KIND,
            cells: 0,
            used_cells: 0,
            hashes: 0,
            bits: 0,
            bytes: 0,
            capacity: structure.design().map(|design| design.capacity),
            rate_target: structure.design().map(|design| design.rate),
            inserted: structure.inserted(),
            estimate: Cardinality::Estimated(Estimate::default()),
            rate_now: 0.0,
            details: Vec::new(),
        }
    }

    /// The share of cells that are not empty.
    pub fn fill(&self) -> f64 {
        self.used_cells as f64 / self.cells as f64
    }
}
