//! The mathematics of sizing filters: how many bits, how many hash functions, which rate.
//!
//! The functions are pure. Nothing here allocates a filter, reads a file or computes a hash. Plans
//! and builds both use these functions, so a printed plan and the filter that is built cannot
//! disagree.
//!
//! The letters are those of the literature: `m` bits, `n` keys, `k` hash functions (bits per key),
//! and `p` for the false-positive rate, the share of keys never inserted that a filter reports as
//! present.
//!
//! | given | use |
//! | --- | --- |
//! | a number of keys and a rate | `for_capacity` of [`Params`], [`PartitionedParams`], [`BlockedParams`], [`CuckooParams`], [`QuotientParams`] |
//! | a budget of bits, and keys or slices | their `for_bits` |
//! | any other two or three of n, p, m, k | [`Given::solve`] |
//! | a finished filter and its load | [`rate::expected`], [`partitioned::rate`], [`blocked::rate`], [`cuckoo::rate_of`], [`quotient::rate`] |
//! | a small filter, where the classic formula is too low | [`rate::exact`], [`rate::exact_distinct`] |
//! | a filter that removes keys, or that knows patterns | [`deletable::deletability`], [`floom::rate`] |
//! | the number of set bits, but not the number of keys | [`Shape::cardinality`] |
//! | two filters | [`Shape::overlap`] |
//!
//! ```
//! use umbel::sizing::{BlockedParams, KPolicy, Given, Params, Shape};
//!
//! # fn main() -> umbel::Result<()> {
//! // A million keys, one wrong answer in a hundred.
//! let plan = Params::for_capacity(1_000_000, 0.01, KPolicy::Round)?;
//! assert_eq!((plan.bits, plan.hashes), (9_585_059, 7));
//!
//! // What does the same megabyte hold at one in a thousand?
//! let fewer = Given { m: Some(plan.bits), p: Some(0.001), ..Given::default() }.solve(KPolicy::Round)?;
//! assert_eq!(fewer.capacity, 666_666);
//!
//! // One cache line per lookup costs five per cent more memory.
//! let blocked = BlockedParams::for_capacity(1_000_000, 0.01)?;
//! assert!(blocked.overhead() < 0.06);
//!
//! // Later: 4_961_000 bits are set. How many keys went in?
//! let shape = Shape::Standard { bits: plan.bits, hashes: plan.hashes };
//! let keys = shape.cardinality(4_961_000)?.estimate().expect("a filter half full is not saturated");
//! assert_eq!(keys.to_string(), "998123 ± 259");
//! # Ok(())
//! # }
//! ```
//!
//! Every function checks its input and returns a typed error for values that make no sense: a rate
//! outside (0, 1), or a capacity, size or number of hash functions that is zero or above
//! [`MAX_KEYS`], [`MAX_BITS`] or [`MAX_HASHES`]. Where `n` is a load and not a capacity, zero is a
//! valid value: it describes an empty filter. Within these limits every function returns
//! immediately, except for the exact rates of small filters.
//!
//! The modules name the papers they follow; `docs/references.md` in the repository lists them all.
//!
//! # References
//!
//! * B. H. Bloom. *Space/time trade-offs in hash coding with allowable errors.* Communications of
//!   the ACM 13(7), 1970. `Bloom70`
//! * A. Broder and M. Mitzenmacher. *Network applications of Bloom filters: a survey.* Internet
//!   Mathematics 1(4), 2004. `BM04`

pub mod aging;
pub mod blocked;
pub mod bloomier;
pub mod counting;
pub mod cuckoo;
pub mod deletable;
pub mod estimate;
mod exact;
#[cfg(test)]
mod experiment;
pub mod floom;
pub mod fuse;
pub mod partitioned;
mod policy;
pub mod quotient;
pub mod rate;
pub mod retrieval;
pub mod scalable;
mod solve;
pub mod space_code;
pub mod variable_increment;

pub use blocked::BlockedParams;
pub use cuckoo::CuckooParams;
pub use estimate::{Cardinality, Estimate, Overlap, Shape};
pub use partitioned::PartitionedParams;
pub use policy::KPolicy;
pub use quotient::QuotientParams;
pub use solve::{Given, Params};

use std::fmt;

/// The largest filter, in bits: 32 TiB. Far below the 2^53 up to which `f64` counts exactly.
pub const MAX_BITS: u64 = 1 << 48;

/// The largest capacity or load, in keys.
pub const MAX_KEYS: u64 = 1 << 48;

/// The largest number of hash functions: enough for any rate that `f64` can express, and a bound
/// for every loop over them.
pub const MAX_HASHES: u32 = 1024;

/// Returns the smallest value of a range that satisfies a predicate which, once true, stays true.
///
/// The sizing rules are inverted by bisection on the rate itself, not by a second set of inverse
/// formulas. The promised rate is therefore exactly the value of the forward formula.
pub(crate) fn least(range: std::ops::RangeInclusive<u64>, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = range.into_inner();
    if !holds(high) {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

/// Returns the greatest value of a range that satisfies a predicate which, once false, stays false.
pub(crate) fn greatest(range: std::ops::RangeInclusive<u64>, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let end = *range.end();
    let start = *range.start();
    match least(range, |x| !holds(x)) {
        Some(first_failure) if first_failure == start => None,
        Some(first_failure) => Some(first_failure - 1),
        None => Some(end),
    }
}

/// A number in a message, with an exponent where its decimals would be a row of zeros.
pub(crate) struct Decimal(pub f64);

impl Decimal {
    /// Returns a number with four significant digits.
    pub fn rounded(number: f64) -> Decimal {
        Decimal(format!("{number:.3e}").parse().unwrap_or(number))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            small if small != 0.0 && small.abs() < 1e-4 => write!(f, "{small:e}"),
            other => write!(f, "{other}"),
        }
    }
}

/// The input checks shared by the public functions.
pub(crate) mod check {
    use super::{Decimal, MAX_BITS, MAX_HASHES, MAX_KEYS};
    use crate::{Error, Result};

    /// Checks a number of keys to plan for.
    pub fn capacity(n: u64) -> Result<()> {
        if (1..=MAX_KEYS).contains(&n) {
            return Ok(());
        }
        Err(Error::parameter("n", n, "a number of keys from 1 to 2^48"))
    }

    /// Checks a number of keys already inserted, which may be zero.
    pub fn load(n: u64) -> Result<()> {
        if n <= MAX_KEYS {
            return Ok(());
        }
        Err(Error::parameter("n", n, "at most 2^48 keys"))
    }

    pub fn bits(m: u64) -> Result<()> {
        if (1..=MAX_BITS).contains(&m) {
            return Ok(());
        }
        Err(Error::parameter("m", m, "a number of bits from 1 to 2^48"))
    }

    pub fn hashes(k: u32) -> Result<()> {
        if (1..=MAX_HASHES).contains(&k) {
            return Ok(());
        }
        Err(Error::parameter("k", k, "a number of hash functions from 1 to 1024"))
    }

    pub fn rate(p: f64) -> Result<()> {
        // Written so that NaN fails.
        if p > 0.0 && p < 1.0 {
            return Ok(());
        }
        Err(Error::parameter("p", Decimal(p), "a rate above 0 and below 1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bisection_finds_the_edge_wherever_it_lies() {
        for edge in 1..=20 {
            assert_eq!(least(1..=20, |x| x >= edge), Some(edge));
            assert_eq!(greatest(1..=20, |x| x <= edge), Some(edge));
        }
        assert_eq!(least(1..=20, |_| false), None);
        assert_eq!(greatest(1..=20, |_| false), None);
        assert_eq!(least(0..=u64::MAX, |x| x >= u64::MAX - 1), Some(u64::MAX - 1));
    }

    #[test]
    fn small_numbers_have_an_exponent() {
        for (number, text) in [
            (0.0, "0"),
            (0.01, "0.01"),
            (0.00025, "0.00025"),
            (2.5e-5, "2.5e-5"),
            (1e-300, "1e-300"),
            (-1e-7, "-1e-7"),
            (f64::NAN, "NaN"),
            (12.5, "12.5"),
        ] {
            assert_eq!(Decimal(number).to_string(), text);
        }
        assert_eq!(Decimal::rounded(0.123456).to_string(), "0.1235");
        assert_eq!(Decimal::rounded(1.23456e-9).to_string(), "1.235e-9");
        assert_eq!(Decimal::rounded(1.0).to_string(), "1");
    }

    #[test]
    fn invalid_arguments_are_refused() {
        assert!(check::capacity(0).is_err() && check::capacity(MAX_KEYS + 1).is_err());
        assert!(check::load(0).is_ok() && check::load(MAX_KEYS + 1).is_err());
        assert!(check::bits(0).is_err() && check::bits(MAX_BITS + 1).is_err());
        assert!(check::hashes(0).is_err() && check::hashes(MAX_HASHES + 1).is_err());
        for p in [0.0, -0.0, -0.1, 1.0, 1.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(check::rate(p).is_err(), "{p}");
        }
        assert!(check::rate(f64::MIN_POSITIVE).is_ok());
    }
}
