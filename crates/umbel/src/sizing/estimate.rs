//! Estimates the number of keys in a filter, and the number that two filters share, from their
//! numbers of set bits alone.
//!
//! If each key sets k of the m cells of a filter and X cells are set, the filter holds about
//! n = -(m/k) ln(1 - X/m) keys. The union of two filters is the filter of the union, so
//! |A∩B| = n(A) + n(B) - n(A|B). The AND of two filters has no such estimate, because bits of
//! different keys coincide in it by chance.
//!
//! # Standard errors
//!
//! Every estimate comes with its standard error, over independent builds. To first order, the
//! estimates of any two sets P and Q built into the same shape with the same hashes covary as
//!
//! > Cov(n(P), n(Q)) = (m/k²) φ(c), c = k |P∩Q| / m, φ(c) = e^c - 1 - c
//!
//! since only shared keys affect both: e^c - 1 is the excess of cells that are empty in both over
//! chance, and c corrects for the fixed number of throws. With P = Q this is the variance of one
//! estimate, and the errors of sums and quotients follow by the usual rules. In a blocked filter
//! the loads of the lines vary as well, which adds 448 φ(c/64): a line has 448 cells outside a
//! given lane, and the same keys hit them.
//!
//! Two keys coincide in a whole number of cells, while a normal law with a small variance would
//! exclude even one coincidence. The error therefore includes two more cells wherever coincidences
//! can be expected at all; without them, one in a hundred estimates of a small filter would be more
//! than four standard errors off.
//!
//! ```
//! use umbel::sizing::Shape;
//!
//! # fn main() -> umbel::Result<()> {
//! let shape = Shape::Standard { bits: 9586, hashes: 7 };
//! let keys = shape.cardinality(4968)?.estimate().expect("not saturated");
//! assert_eq!(format!("{keys:.1}"), "1000.2 ± 8.2");
//!
//! // Two filters of the same shape, and their union.
//! let overlap = shape.overlap(4241, 3837, 5876)?.expect("not saturated");
//! assert_eq!(format!("{:.0}", overlap.intersection), "200 ± 8");
//! assert_eq!(format!("{:.3}", overlap.jaccard), "0.154 ± 0.007");
//! # Ok(())
//! # }
//! ```
//!
//! # References
//!
//! * S. J. Swamidass and P. Baldi. *Mathematical correction for fingerprint similarity measures to
//!   improve chemical retrieval.* Journal of Chemical Information and Modeling 47(3), 2007. `SB07`

use super::{blocked, check};
use crate::{Error, Result};
use std::fmt;

/// A number with its standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The most likely value.
    pub value: f64,
    /// The standard deviation from build to build: two thirds of all builds are within one
    /// standard deviation, 95 % within two.
    pub standard_error: f64,
}

impl Estimate {
    pub(crate) fn new(value: f64, variance: f64) -> Self {
        // A variance computed from estimates may come out slightly below zero.
        Self { value, standard_error: variance.max(0.0).sqrt() }
    }

    /// Limits the value to a range that it is known to be in. The error is then at most the
    /// distance to the farther end. If the limits contradict each other, the upper one holds, and
    /// the error stays as it is.
    pub(crate) fn within(self, least: u64, most: Option<u64>) -> Estimate {
        let (least, most) = (least as f64, most.map_or(f64::INFINITY, |most| most as f64));
        let value = self.value.max(least).min(most);
        let farthest = if least <= most { (value - least).max(most - value) } else { f64::INFINITY };
        Estimate { value, standard_error: self.standard_error.min(farthest) }
    }
}

impl fmt::Display for Estimate {
    /// Writes `value ± standard error`, both with the requested precision. By default both have as
    /// many decimals as the first digit of the error needs (`2.5 ± 0.6`, `1000 ± 8`), and an exact
    /// value is written without an error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Estimate { value, standard_error } = self;
        let digits = match f.precision() {
            Some(digits) => digits,
            None if *standard_error == 0.0 => return write!(f, "{value}"),
            // The error may round up to the next power of ten, which then shows one more digit.
            None => (-standard_error.log10().floor()).clamp(0.0, MAX_DECIMALS) as usize,
        };
        write!(f, "{value:.digits$} ± {standard_error:.digits$}")
    }
}

/// The largest number of decimals that an estimate is written with by default.
const MAX_DECIMALS: f64 = 9.0;

/// The number of keys in a filter, as estimated from its set bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cardinality {
    /// An estimate with its standard error.
    Estimated(Estimate),
    /// Every bit is set, so there is no upper bound on the number of keys.
    Saturated,
}

impl Cardinality {
    /// Returns the estimate, or `None` if the filter is saturated.
    pub fn estimate(self) -> Option<Estimate> {
        match self {
            Cardinality::Estimated(estimate) => Some(estimate),
            Cardinality::Saturated => None,
        }
    }

    /// Limits the estimate to a range that the number of keys is known to be in. A saturated filter
    /// has an estimate only if the range is a single number.
    pub(crate) fn within(self, least: u64, most: Option<u64>) -> Cardinality {
        match self {
            Cardinality::Saturated if most == Some(least) => {
                Cardinality::Estimated(Estimate { value: least as f64, standard_error: 0.0 })
            }
            Cardinality::Estimated(estimate) => Cardinality::Estimated(estimate.within(least, most)),
            Cardinality::Saturated => Cardinality::Saturated,
        }
    }
}

impl std::iter::Sum for Cardinality {
    /// Adds up filters that have no keys in common. Their errors are independent. The sum is
    /// saturated if any filter is.
    fn sum<I: Iterator<Item = Cardinality>>(filters: I) -> Cardinality {
        let total = filters.map(Cardinality::estimate).try_fold((0.0, 0.0), |(value, variance), part| {
            part.map(|part| (value + part.value, variance + part.standard_error.powi(2)))
        });
        match total {
            Some((value, variance)) => Cardinality::Estimated(Estimate::new(value, variance)),
            None => Cardinality::Saturated,
        }
    }
}

impl fmt::Display for Cardinality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cardinality::Estimated(estimate) => estimate.fmt(f),
            Cardinality::Saturated => f.write_str("saturated"),
        }
    }
}

/// The estimated sizes of two sets and of the keys they have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Overlap {
    /// |A|.
    pub left: Estimate,
    /// |B|.
    pub right: Estimate,
    /// |A∪B|.
    pub union: Estimate,
    /// |A∩B|, at least zero.
    pub intersection: Estimate,
    /// |A∩B| / |A∪B|, from 0 to 1; 1 for two empty sets.
    pub jaccard: Estimate,
    /// |A∩B| / |A|, the share of A that is in B, from 0 to 1; 1 if A is empty.
    pub left_in_right: Estimate,
    /// |A∩B| / |B|, the share of B that is in A, from 0 to 1; 1 if B is empty.
    pub right_in_left: Estimate,
}

/// The largest variance that the discreteness of a count adds to that of a normal law. With 2, at
/// most one estimate in four thousand is more than four standard errors off, in filters of any size
/// and load.
const MAX_DISCRETENESS: f64 = 2.0;

/// The factor by which discreteness raises a small variance. It makes the term vanish where events
/// are rarer than those that four standard errors exclude anyway.
const DISCRETENESS: f64 = 1000.0;

/// Returns the variance to add to that of a count, because it is a whole number (see the module
/// documentation).
pub(crate) fn discreteness(variance: f64) -> f64 {
    (DISCRETENESS * variance).clamp(0.0, MAX_DISCRETENESS)
}

/// Where keys set bits, which is all that an estimate needs to know about a filter.
///
/// A counting filter has the standard shape, with its non-zero counters as set bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// `hashes` positions anywhere in the filter.
    Standard {
        /// The number of cells.
        bits: u64,
        /// The number of positions per key.
        hashes: u32,
    },
    /// One position in each of `hashes` slices.
    Partitioned {
        /// The number of cells in one slice.
        slice_bits: u64,
        /// The number of slices.
        hashes: u32,
    },
    /// One position in each of the eight lanes of each line.
    Blocked {
        /// The number of lines of 512 bits.
        lines: u64,
        /// The number of lines per key.
        lines_per_key: u32,
    },
}

impl Shape {
    /// Estimates the number of keys in a filter with this many bits set.
    ///
    /// # Errors
    ///
    /// If the shape is invalid or has fewer than `set_bits` bits.
    pub fn cardinality(self, set_bits: u64) -> Result<Cardinality> {
        self.check()?;
        Ok(match self.load(set_bits)? {
            Some(load) => Cardinality::Estimated(self.keys(load)),
            None => Cardinality::Saturated,
        })
    }

    /// Estimates the overlap of two filters of this shape from the number of bits set in each and
    /// in their union (their OR). Returns `None` if the union is saturated.
    ///
    /// # Errors
    ///
    /// If the shape is invalid, or the three numbers cannot belong to two filters of this shape and
    /// their union.
    pub fn overlap(self, left: u64, right: u64, union: u64) -> Result<Option<Overlap>> {
        self.check()?;
        let (Some(a), Some(b), Some(u)) = (self.load(left)?, self.load(right)?, self.load(union)?) else {
            return Ok(None);
        };
        let (fewest, most) = (left.max(right), left + right);
        if !(fewest..=most).contains(&union) {
            let needs = format!("from {fewest} to {most} set bits, as the union of {left} and {right} has");
            return Err(Error::parameter("union", union, needs));
        }
        // Loads are keys per cell times k, so they count keys in units of m/k.
        let shared = (a + b - u).max(0.0);
        // The covariances of the three estimates in units of m/k², and from them those
        // of a + b - u.
        let (var_a, var_b, var_u, cov_ab) = (self.phi(a), self.phi(b), self.phi(u), self.phi(shared));
        let var_shared = var_u + 2.0 * cov_ab - var_a - var_b;
        // The number of cells that both have is a whole number, too.
        let discrete = |variance: f64| self.discreteness(u, variance) + variance;
        let cov_shared_u = var_a + var_b - var_u;
        let cov_shared_single = cov_ab;
        let scale = self.cells() / self.bits_per_key();
        // For the quotient r of the shared part and a whole w: dr = (d shared - r dw) / w.
        let share = |whole: f64, var_whole: f64, covariance: f64| {
            if whole == 0.0 {
                return Estimate::new(1.0, 0.0);
            }
            let ratio = (shared / whole).clamp(0.0, 1.0);
            let variance = var_shared + ratio * ratio * var_whole - 2.0 * ratio * covariance;
            Estimate::new(ratio, discrete(variance) / self.cells() / (whole * whole))
        };
        Ok(Some(Overlap {
            left: self.keys(a),
            right: self.keys(b),
            union: self.keys(u),
            intersection: Estimate::new(shared * scale, discrete(var_shared) * scale * scale / self.cells()),
            jaccard: share(u, var_u, cov_shared_u),
            left_in_right: share(a, var_a, cov_shared_single),
            right_in_left: share(b, var_b, cov_shared_single),
        }))
    }

    /// Returns the number of cells.
    fn cells(self) -> f64 {
        match self {
            Shape::Standard { bits, .. } => bits as f64,
            Shape::Partitioned { slice_bits, hashes } => slice_bits as f64 * f64::from(hashes),
            Shape::Blocked { lines, .. } => lines as f64 * blocked::LINE_BITS as f64,
        }
    }

    /// Returns the number of cells that one key sets, counting coincident positions separately.
    fn bits_per_key(self) -> f64 {
        f64::from(match self {
            Shape::Standard { hashes, .. } | Shape::Partitioned { hashes, .. } => hashes,
            Shape::Blocked { lines_per_key, .. } => lines_per_key * blocked::LANES,
        })
    }

    /// Returns the load c = k n / m at which this number of set bits is expected, or `None` if all
    /// are set.
    fn load(self, set_bits: u64) -> Result<Option<f64>> {
        let (set, cells) = (set_bits as f64, self.cells());
        if set > cells {
            return Err(Error::parameter(
                "set bits",
                set_bits,
                format!("at most the {cells} bits there are"),
            ));
        }
        // A key leaves a cell of a slice empty with probability 1 - 1/s. In slices of few cells,
        // that differs from the e^(-1/s) of the other shapes.
        let unit = match self {
            Shape::Partitioned { slice_bits, .. } => -(-1.0 / slice_bits as f64).ln_1p() * slice_bits as f64,
            Shape::Standard { .. } | Shape::Blocked { .. } => 1.0,
        };
        Ok((set < cells).then(|| -(-set / cells).ln_1p() / unit))
    }

    /// Returns the number of keys at a load, with its standard error.
    fn keys(self, load: f64) -> Estimate {
        let scale = self.cells() / self.bits_per_key();
        let phi = self.phi(load);
        let variance = phi + self.discreteness(load, phi);
        Estimate::new(load * scale, variance * scale * scale / self.cells())
    }

    /// Returns the term to add to m times the variance of a load, because set cells are counted in
    /// whole numbers (see the module documentation).
    fn discreteness(self, load: f64, variance: f64) -> f64 {
        // By the derivative of the logarithm, one cell of m changes the load by e^c / m.
        let cell = (2.0 * load).exp() / self.cells();
        discreteness(variance / cell) * cell
    }

    /// Returns m times the covariance of the loads of two sets that share a load c (see the module
    /// documentation).
    fn phi(self, c: f64) -> f64 {
        let phi = |c: f64| c.exp_m1() - c;
        match self {
            Shape::Standard { .. } | Shape::Partitioned { .. } => phi(c),
            Shape::Blocked { .. } => {
                let elsewhere = (blocked::LINE_BITS - blocked::LANE_BITS) as f64;
                phi(c) + elsewhere * phi(c / blocked::LANE_BITS as f64)
            }
        }
    }

    fn check(self) -> Result<()> {
        match self {
            Shape::Standard { bits, hashes } => check::bits(bits).and(check::hashes(hashes)),
            Shape::Partitioned { slice_bits, hashes } => {
                check::bits(slice_bits)?;
                check::hashes(hashes)?;
                check::bits(slice_bits * u64::from(hashes))
            }
            Shape::Blocked { lines, lines_per_key } => blocked::check_shape(lines, 0, lines_per_key),
        }
    }
}

#[cfg(test)]
mod tests;
