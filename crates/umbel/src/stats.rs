//! Measurements of a structure: how full it is, and the rate that follows.

use crate::sizing::estimate::{Cardinality, Estimate};
use crate::{Kind, Structure};

/// Measurements of a structure in its current state.
///
/// It has two numbers of keys. `inserted` counts insertions, repeated keys included, and is unknown
/// after a union. `estimate` is computed from the cells, with its standard error, and is never above
/// `inserted`. If the cells show as many keys as were inserted, as they do for a few keys, the
/// estimate is exact and its error is 0.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The kind of the structure.
    pub kind: Kind,
    /// The number of cells that keys can use (m): bits, counters or slots.
    pub cells: u64,
    /// The number of cells that are not empty.
    pub used_cells: u64,
    /// The number of cells per key (k).
    pub hashes: u32,
    /// The number of bits in all cells and the data that accompanies them.
    pub bits: u64,
    /// The size of the memory in bytes.
    pub bytes: u64,
    /// The number of keys the structure was planned for, if it was planned.
    pub capacity: Option<u64>,
    /// The rate the structure was planned for, if it was planned.
    pub rate_target: Option<f64>,
    /// The number of insertions so far, if it is known.
    pub inserted: Option<u64>,
    /// The number of distinct keys, estimated from the cells. After an intersection it is too high,
    /// because cells that different keys have used remain.
    pub estimate: Cardinality,
    /// The false-positive rate with the current contents of the cells.
    pub rate_now: f64,
    /// Further measurements of this kind, by name.
    pub details: Vec<(&'static str, f64)>,
}

impl Stats {
    /// Returns the values that are known without reading the cells; the rest are zero.
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

    /// Returns the share of cells that are not empty.
    pub fn fill(&self) -> f64 {
        self.used_cells as f64 / self.cells as f64
    }
}
