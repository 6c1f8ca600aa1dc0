//! The share of keys that can be removed from a [deletable filter](crate::Deletable).
//!
//! The letters follow the paper: m' filter bits in r regions of L = m'/r bits, with one collision
//! bit each, so that a budget of m bits is m' + r. A key can be removed when at least one of its k
//! cells lies in a region in which no cell was hit twice.
//!
//! There are three formulas. Only the last one is right:
//!
//! | function | at m = 240, k = 5, n = 22, r = 24 | |
//! | --- | --- | --- |
//! | [`printed`] | 0.0675 | as printed in the paper: the probability that *no* region is free of collisions |
//! | [`complement`] | 0.9325 | as intended; too high, since it ignores that the cells of the key itself are hit |
//! | [`deletability`] | 0.8071 | with that condition; simulated 0.786, and "80 %" measured in the paper |
//!
//! ```
//! use umbel::sizing::deletable::{complement, deletability, filter_bits, printed};
//! let bits = filter_bits(240, 9)?;
//! assert_eq!((bits, 240 - bits), (216, 24));
//! assert!((printed(bits, 24, 22, 5)? - 0.0675).abs() < 5e-5);
//! assert!((complement(bits, 24, 22, 5)? - 0.9325).abs() < 5e-5);
//! assert!((deletability(bits, 24, 22, 5)? - 0.8071).abs() < 5e-5);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # References
//!
//! * C. E. Rothenberg, C. A. B. Macapuna, F. L. Verdi and M. F. Magalhães. *The deletable Bloom
//!   filter: a new member of the Bloom family.* IEEE Communications Letters 14(6), 2010. `RMVM10`

use super::{MAX_BITS, check};
use crate::{Error, Result};

/// The default number of filter bits per collision bit. The collision bits cost a quarter more
/// memory, and 92 % of the keys of a half-full filter with k = 7 can be removed.
///
/// | bits per region | extra memory | removable keys, k = 7 | k = 10 |
/// | --- | --- | --- | --- |
/// | 1 | 100 % | 99.2 % | 99.9 % |
/// | 2 | 50 % | 97.9 % | 99.6 % |
/// | 4 | 25 % | 92.0 % | 97.3 % |
/// | 8 | 12.5 % | 69.4 % | 81.6 % |
/// | 16 | 6.3 % | 25.5 % | 34.3 % |
pub const REGION_BITS: u64 = 4;

/// Returns the formula as printed (eq. (1) of Rothenberg et al.), (1-a)^k with a = (p0+p1)^(m'/r).
///
/// The paper calls this the probability that a key can be deleted. It is the probability that k
/// arbitrary regions *all* have a collision, so that the key cannot be deleted. It is provided for
/// comparison; plan with [`deletability`].
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn printed(bits: u64, regions: u64, n: u64, k: u32) -> Result<f64> {
    check(bits, regions, n, k)?;
    let (none, one) = hit_at_most_once(bits, f64::from(k) * n as f64);
    let free = (none + one).powf(bits as f64 / regions as f64);
    Ok((1.0 - free).powf(f64::from(k)))
}

/// Returns 1 - [`printed`]: the probability that at least one of k *arbitrary* regions has no
/// collision.
///
/// This is still too high for a key of the filter. An arbitrary cell may be hit once, but a cell of
/// the key is already hit by that key and must not be hit again.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn complement(bits: u64, regions: u64, n: u64, k: u32) -> Result<f64> {
    Ok(1.0 - printed(bits, regions, n, k)?)
}

/// Returns the probability that a given one of `n` keys can be removed: 1-(1-a)^k with a = q0
/// (q0+q1)^(L-1).
///
/// None of the other kn-1 throws may hit the key's own cell (q0), and at most one may hit each of
/// the L-1 other cells of the region (q0+q1). The k cells of a key are assumed to be independent,
/// which makes the result up to 0.05 too high for small filters with few regions, and less than
/// 0.01 in filters of a thousand bits and more with regions of a few bits.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn deletability(bits: u64, regions: u64, n: u64, k: u32) -> Result<f64> {
    let free = resettable(bits, regions, n, k)?;
    Ok(at_least_one_of(free, k))
}

/// Returns the probability that one given cell of a key can be cleared: the a of [`deletability`].
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn resettable(bits: u64, regions: u64, n: u64, k: u32) -> Result<f64> {
    check(bits, regions, n, k)?;
    let (none, one) = hit_at_most_once(bits, f64::from(k) * n as f64 - 1.0);
    Ok(none * (none + one).powf(bits as f64 / regions as f64 - 1.0))
}

/// Returns the probability that at least one of k independent cells can be cleared, if each can be
/// with probability `free`.
pub(crate) fn at_least_one_of(free: f64, k: u32) -> f64 {
    1.0 - (1.0 - free).powf(f64::from(k))
}

/// Returns the most filter bits that fit into a budget of `budget` bits together with a collision
/// bit for every `region_bits` of them.
///
/// # Errors
///
/// If `budget` is below two bits, or an argument is out of range.
pub fn filter_bits(budget: u64, region_bits: u64) -> Result<u64> {
    check::bits(budget)?;
    check_region_bits(region_bits)?;
    if budget < 2 {
        return Err(Error::parameter(
            "m",
            budget,
            "at least two bits: one of the filter, one for collisions",
        ));
    }
    Ok(budget - budget.div_ceil(region_bits + 1))
}

/// Returns the number of collision bits that this many filter bits need.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn regions(bits: u64, region_bits: u64) -> Result<u64> {
    check::bits(bits)?;
    check_region_bits(region_bits)?;
    Ok(bits.div_ceil(region_bits))
}

pub(crate) fn check_region_bits(region_bits: u64) -> Result<()> {
    if (1..=MAX_BITS).contains(&region_bits) {
        return Ok(());
    }
    Err(Error::parameter("region bits", region_bits, "1 to 2^48 bits of the filter for each collision bit"))
}

/// Returns the probabilities that a cell of `bits` is hit never and exactly once in `throws`
/// throws.
fn hit_at_most_once(bits: u64, throws: f64) -> (f64, f64) {
    let missed = (-1.0 / bits as f64).ln_1p();
    // A single bit is missed with probability zero; its logarithm times zero throws would be NaN.
    let power = |throws: f64| if throws <= 0.0 { 1.0 } else { (throws * missed).exp() };
    (power(throws), throws / bits as f64 * power(throws - 1.0))
}

fn check(bits: u64, regions: u64, n: u64, k: u32) -> Result<()> {
    check::bits(bits)?;
    check::capacity(n)?;
    check::hashes(k)?;
    if (1..=bits).contains(&regions) {
        return Ok(());
    }
    Err(Error::parameter("r", regions, "from one region to one for every bit of the filter"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_used_up() {
        for region_bits in 1..20 {
            for budget in 2..500 {
                let bits = filter_bits(budget, region_bits).unwrap();
                let total = |bits: u64| bits + bits.div_ceil(region_bits);
                assert!(total(bits) <= budget && total(bits + 1) > budget, "{budget} {region_bits}");
                assert_eq!(regions(bits, region_bits).unwrap(), total(bits) - bits);
            }
        }
    }

    #[test]
    fn edge_cases_are_finite_and_nonsense_is_refused() {
        // One key with one hash in one bit owns it; a second key, or a second hash, shares it.
        assert_eq!(deletability(1, 1, 1, 1).unwrap(), 1.0);
        assert_eq!(deletability(1, 1, 2, 1).unwrap(), 0.0);
        assert_eq!(deletability(1, 1, 1, 2).unwrap(), 0.0);
        assert!(printed(1, 1, 1, 1).unwrap().is_finite());
        for bad in [(0, 1, 1, 1), (10, 0, 1, 1), (10, 11, 1, 1), (10, 1, 0, 1), (10, 1, 1, 0)] {
            let (bits, regions, n, k) = bad;
            assert!(
                deletability(bits, regions, n, k).is_err() && printed(bits, regions, n, k).is_err(),
                "{bad:?}"
            );
        }
        assert!(filter_bits(1, 4).is_err() && filter_bits(0, 4).is_err() && filter_bits(10, 0).is_err());
        assert!(regions(10, 0).is_err());
    }

    #[test]
    fn the_table_of_region_sizes_is_right() {
        // m' = k n / ln 2: half full.
        for (region_bits, seven, ten) in
            [(1, 0.992, 0.999), (2, 0.979, 0.996), (4, 0.920, 0.973), (8, 0.694, 0.816), (16, 0.255, 0.343)]
        {
            for (k, expected) in [(7, seven), (10, ten)] {
                let n = 1_000_000u64;
                let bits = (k as f64 * n as f64 / std::f64::consts::LN_2) as u64 / 16 * 16;
                let share = deletability(bits, bits / region_bits, n, k).unwrap();
                assert!((share - expected).abs() < 5.1e-4, "{region_bits} {k}: {share}");
            }
        }
    }
}
