//! Variable-increment counting Bloom filters: each probe adds its own amount to its cell, so that a
//! cell can rule out a key even though other keys have added to it.
//!
//! ```
//! use umbel::{Counting, VariableIncrement};
//! let mut filter = VariableIncrement::with_capacity(10_000, 0.001)?;
//! filter.insert("apple")?;
//! filter.insert("pear")?;
//! filter.remove("apple");
//! assert!(!filter.contains("apple") && filter.contains("pear"));
//!
//! // A cell is wider than a plain counter, but fewer are needed: a quarter of the memory is saved.
//! let plain = Counting::with_capacity(10_000, 0.001)?;
//! assert!(filter.stats().bytes * 4 < plain.stats().bytes * 3 + 1024);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # When to use it
//!
//! Use it to remove keys when a counting filter is too large: at the same rate it needs a quarter
//! less memory, 28.8 bits per key at 1 %. It has no bit view, so its changes cannot be sent to
//! copies. A lookup touches up to two cache lines per probe, since a cell may span two. A
//! [cuckoo](crate::cuckoo) filter is smaller still.
//!
//! # How it works
//!
//! A probe has a cell and an increment v from a small set D. A key with increment v may be in a
//! cell with value c only if c - v is a sum of increments. With D = {8, 12, 14, 15}, a cell with
//! value 20 holds 8 and 12. A key that would have added 14 is not there, since the remaining 6 is
//! not such a sum. The value of a cell does not always determine the added increments: 12 + 12 is
//! also 8 + 8 + 8. Only remainders that are not sums at all exclude a key.
//!
//! A cell that overflows is stuck: from then on it excludes nothing and is never decremented. A
//! removal is refused if it would leave a cell below zero or with a value that is not a sum of
//! increments. This catches more mistakes than a counting filter does, but not all of them.
//!
//! # References
//!
//! * O. Rottenstreich, Y. Kanizo and I. Keslassy. *The variable-increment counting Bloom filter.*
//!   IEEE/ACM Transactions on Networking 22(4), 2014. `RKK14`

mod scheme;
#[cfg(test)]
mod tests;

pub use scheme::{Scheme, gaps, is_b_h, is_b_tilde_h};

use crate::algebra::Mismatch;
use crate::bloom::scattered::check_hashes;
use crate::counting::counters::{self, Counters, Rule, in_cells, planned};
use crate::file::FormatError;
use crate::hash::reduce;
use crate::memory::Packed;
use crate::sizing::{Given, MAX_BITS, Params, variable_increment};
use crate::structure::{INCREMENTS, small};
use crate::{Hasher, Kind, Plan, Result, Spec};
use scheme::Table;

/// A variable-increment counting Bloom filter; see the [module documentation](self).
pub type VariableIncrement = Counters<Increments>;

/// The options of a variable-increment filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The increments that probes add.
    pub scheme: Scheme,
}

/// The rule of the variable-increment filter: probes add the increments of a scheme.
#[derive(Clone, Debug, PartialEq)]
pub struct Increments {
    cells: Packed,
    hashes: u32,
    scheme: Scheme,
    table: Table,
}

impl Increments {
    /// Creates a rule for `cells` cells (m) and `hashes` probes (k).
    ///
    /// # Errors
    ///
    /// Returns an error if a number is out of range, or if the scheme is not valid.
    pub fn new(cells: u64, hashes: u32, scheme: Scheme) -> Result<Increments> {
        check_hashes(hashes)?;
        let table = Table::new(&scheme)?;
        Ok(Increments { cells: Packed::new(cells, table.width())?, hashes, scheme, table })
    }

    /// Returns the increments that probes add.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Returns the probability that a cell with 0, 1, 2, ... random increments excludes another
    /// one. Beyond the last element it is negligible.
    pub fn excluded(&self) -> Vec<f64> {
        self.table.excluded()
    }
}

impl VariableIncrement {
    /// Creates an empty filter of `cells` cells (m) and `hashes` probes (k).
    ///
    /// # Errors
    ///
    /// Returns an error if a number is out of range, if the scheme is not valid, or if there is not
    /// enough memory.
    pub fn new(cells: u64, hashes: u32, scheme: Scheme, hasher: Hasher) -> Result<VariableIncrement> {
        VariableIncrement::with_rule(Increments::new(cells, hashes, scheme)?, hasher)
    }
}

impl counters::sealed::Sealed for Increments {}

impl Rule for Increments {
    const KIND: Kind = Kind::VariableIncrement;
    const SECTION: u32 = INCREMENTS;

    #[inline(always)]
    fn cells(&self) -> Packed {
        self.cells
    }

    #[inline(always)]
    fn hashes(&self) -> u32 {
        self.hashes
    }

    /// Finds the numbers of cells and probes with the least memory for the rate, or with the lowest
    /// rate for the memory.
    fn plan(spec: &Spec) -> Result<(Increments, Plan)> {
        let scheme = spec.options().variable_increment.scheme.clone();
        let table = Table::new(&scheme)?;
        let width = u64::from(table.width());
        let Given { n, p, m, k } = spec.given();
        let given = Given { n, p, m: m.map(|bits| bits / width), k };
        let params = Params::of_cells(given, MAX_BITS / width, &table.excluded())
            .map_err(|error| in_cells(error, m, width))?;
        let rule = Increments::new(params.bits, params.hashes, scheme)?;
        let plan = planned(spec, &rule, params.capacity, params.rate, params.bits)?;
        Ok((rule, plan))
    }

    fn predicted_rate(&self, n: u64) -> Result<f64> {
        variable_increment::rate(self.cells.cells(), n, self.hashes, &self.excluded())
    }

    fn params(&self) -> Vec<u64> {
        let mut params = vec![self.cells.cells(), self.hashes.into()];
        params.extend(self.scheme.params());
        params
    }

    fn from_params(params: &[u64]) -> Result<Increments> {
        let scheme = params.get(2..).and_then(Scheme::from_params);
        let scheme = scheme.ok_or_else(|| FormatError::invalid("an unknown scheme of increments"))?;
        Increments::new(params[0], small(params[1]), scheme)
    }

    fn mismatch(&self, other: &Increments) -> Option<Mismatch> {
        Mismatch::between("scheme", &self.scheme, &other.scheme)
    }

    #[inline(always)]
    fn choice(&self, fraction: u64) -> usize {
        reduce(fraction, self.table.choices() as u64) as usize
    }

    #[inline(always)]
    fn increment(&self, choice: usize) -> u64 {
        self.table.single(choice)
    }

    #[inline(always)]
    fn passes(&self, value: u64, choice: usize) -> bool {
        self.table.passes(value, choice)
    }

    fn share_passing(&self, value: u64) -> f64 {
        self.table.share_passing(value)
    }

    #[inline(always)]
    fn join(&self, a: u64, b: u64) -> Option<u64> {
        Some(self.table.join(a, b))
    }

    #[inline(always)]
    fn without(&self, value: u64, choice: usize) -> Option<u64> {
        self.table.without(value, choice)
    }

    #[inline(always)]
    fn is_stuck(&self, value: u64) -> bool {
        value == self.table.max()
    }

    fn check_cells(&self, words: &[u64]) -> Result<(), FormatError> {
        let is_written = |value| self.is_stuck(value) || self.table.is_possible(value);
        match self.cells.iter(words).position(|value| !is_written(value)) {
            Some(cell) => Err(FormatError::invalid(format!("cell {cell} has a value that no filter writes"))),
            None => Ok(()),
        }
    }
}
