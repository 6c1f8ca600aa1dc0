//! The false-positive rate of a standard filter, and the quantities it is made of.
//!
//! There are three approximations, from the textbook formula to the second order, the exact values,
//! and [`expected`], which chooses among them. Sizes follow from the classic formula, as in the
//! literature; the rate of a plan is the expected one.
//!
//! | function | formula | cost | use it for |
//! | --- | --- | --- | --- |
//! | [`expected`] | exact up to [`MAX_EXACT_STEPS`], second order beyond | 2 ms at most | reporting the rate of any filter |
//! | [`classic`] | (1-(1-1/m)^(kn))^k | O(1) | sizing; 0.07 % low at m = 9586, 12 % low at m = 128, n = 8 |
//! | [`asymptotic`] | (1-e^(-kn/m))^k | O(1) | tables in m/n alone |
//! | [`second_order`] | classic + variance term | O(1) | filters below a few thousand bits |
//! | [`exact`] | occupancy, k independent positions | O(knm) | packet headers, per-document filters |
//! | [`exact_recurrence`] | the same by Grandi's recurrence | O(k^2) | the same at any size, k <= 20 |
//! | [`exact_distinct`] | occupancy, k different positions | O(knm) | families that never repeat a position |
//! | [`exact_distinct_sum`] | the same by inclusion and exclusion | O(k^2) | the same at any size, k <= 20 |
//!
//! The first two replace the mean of a power by the power of a mean and are too low: the fill
//! varies from build to build, and a filter that is fuller than average errs by more than an
//! emptier one saves.
//!
//! ```
//! use umbel::sizing::rate;
//!
//! # fn main() -> umbel::Result<()> {
//! let (m, n, k) = (128, 8, 11);
//! assert!((rate::classic(m, n, k)? - 0.000473).abs() < 1e-6);
//! assert!((rate::second_order(m, n, k)? - 0.000535).abs() < 1e-6);
//! assert!((rate::exact(m, n, k)? - 0.000537).abs() < 1e-6);
//! assert_eq!(rate::expected(m, n, k)?, rate::exact(m, n, k)?);
//! # Ok(())
//! # }
//! ```
//!
//! # References
//!
//! * B. H. Bloom. *Space/time trade-offs in hash coding with allowable errors.* Communications of
//!   the ACM 13(7), 1970. `Bloom70`
//! * P. Bose et al. *On the false-positive rate of Bloom filters.* Information Processing Letters
//!   108(4), 2008. `Bose08`
//! * K. Christensen, A. Roginsky and M. Jimeno. *A new analysis of the false positive rate of a
//!   Bloom filter.* Information Processing Letters 110(21), 2010. `CRJ10`
//! * F. Grandi. *On the analysis of Bloom filters.* Information Processing Letters 129, 2018.
//!   `Grandi18`

use super::{Decimal, check};
use crate::{Error, Result};
use std::f64::consts::LN_2;

pub use super::exact::{exact, exact_distinct, exact_distinct_sum, exact_recurrence};

/// The largest k·n·m for which [`expected`] computes the exact rate: about 1200 bits, half of them
/// set. That many steps take one or two milliseconds. Beyond, the second order is at most 1e-5 too
/// low for k = 7, 5e-4 for k = 20, and 6 % for k = 57, the most that 64-bit digests can make use of.
pub const MAX_EXACT_STEPS: u64 = 1 << 20;

/// Returns the rate of a filter whose keys draw k independent positions: the [`exact`] one for a
/// small filter, and the [`second_order`] for a large one.
///
/// It rises with `n` and is never below [`classic`]. Where the exact value gives way to the second
/// order, it falls by far less than another key adds.
///
/// ```
/// use umbel::sizing::rate;
/// assert!((rate::expected(10, 3, 3)? - 0.2472).abs() < 1e-4);
/// assert!((rate::classic(10, 3, 3)? - 0.2299).abs() < 1e-4);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn expected(m: u64, n: u64, k: u32) -> Result<f64> {
    check_filter(m, n, k)?;
    Ok(mean(m, n, k))
}

/// Returns the probability that a given bit is still zero after `n` keys: (1-1/m)^(kn).
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn zero_probability(m: u64, n: u64, k: u32) -> Result<f64> {
    check_filter(m, n, k)?;
    Ok(log_zero(m, n, k).exp())
}

/// Returns the expected share of set bits after `n` keys: 1-(1-1/m)^(kn).
///
/// ```
/// let fill = umbel::sizing::rate::expected_fill(9586, 1000, 7)?;
/// assert!((fill - 0.5182).abs() < 1e-4);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn expected_fill(m: u64, n: u64, k: u32) -> Result<f64> {
    check_filter(m, n, k)?;
    Ok(fill(m, n, k))
}

/// Returns the rate by the classic formula (1-(1-1/m)^(kn))^k, by which filters are sized.
///
/// ```
/// let rate = umbel::sizing::rate::classic(389_318, 58_110, 5)?;
/// assert!((rate - 0.0402212180872).abs() < 1e-13);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn classic(m: u64, n: u64, k: u32) -> Result<f64> {
    check_filter(m, n, k)?;
    Ok(formula(m, n, k))
}

/// Evaluates the classic formula as it is written, for comparison with published figures to their
/// last digit.
///
/// Programs in the literature compute 1-1/m first, which drops the digits of 1/m that do not fit
/// beside the 1. The loss grows with m: a relative error of 1e-10 in the example below, 1e-9 at ten
/// million bits, and a per cent near the largest size. [`classic`] is the same formula without the
/// loss.
///
/// ```
/// let rate = umbel::sizing::rate::classic_as_written(389_318, 58_110, 5)?;
/// assert_eq!(rate, 0.04022121808446685);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn classic_as_written(m: u64, n: u64, k: u32) -> Result<f64> {
    check_filter(m, n, k)?;
    let k = f64::from(k);
    Ok((1.0 - (1.0 - 1.0 / m as f64).powf(k * n as f64)).powf(k))
}

/// Returns the rate by the asymptotic formula (1-e^(-kn/m))^k, which depends on m/n and k alone.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn asymptotic(m: u64, n: u64, k: u32) -> Result<f64> {
    check_filter(m, n, k)?;
    let k = f64::from(k);
    Ok((-(-k * n as f64 / m as f64).exp_m1()).powf(k))
}

/// Returns the classic formula plus its second-order term: half the variance of the fill times the
/// curvature of x^k.
///
/// Exact for k = 1 and k = 2. At m = 128, n = 8, k = 11 the result is 0.5 % low where the classic
/// formula is 12 % low.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn second_order(m: u64, n: u64, k: u32) -> Result<f64> {
    check_filter(m, n, k)?;
    if n == 0 {
        return Ok(0.0);
    }
    let rho = fill(m, n, k);
    let (m, k, throws) = (m as f64, f64::from(k), f64::from(k) * n as f64);
    let zero = 1.0 - rho;
    // Var X = m q (1 - m q + (m-1) (1-1/(m-1))^(kn)) subtracts numbers of size m to get one of size
    // one. Substituting (1-1/(m-1))^(kn) = q (1 - 1/(m-1)^2)^(kn) cancels the large parts
    // symbolically instead.
    let shrink = -(throws * (-1.0 / (m - 1.0).powi(2)).ln_1p()).exp_m1();
    let variance = if m > 1.0 { m * zero * (rho - (m - 1.0) * zero * shrink) } else { 0.0 };
    let curvature = k * (k - 1.0) / (m * m) * rho.powf(k - 2.0);
    Ok(rho.powf(k) + variance / 2.0 * curvature)
}

/// Returns the expected number of different positions among the `k` of one key: m(1-(1-1/m)^k).
///
/// ```
/// assert!((umbel::sizing::rate::expected_distinct(10, 3)? - 2.71).abs() < 1e-12);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn expected_distinct(m: u64, k: u32) -> Result<f64> {
    Ok(m as f64 * expected_fill(m, 1, k)?)
}

/// Returns the expected number of bits tested for a key that is not in the set, stopping at the
/// first zero: (1-fill^k)/(1-fill). At half fill this is at most two, for any `k`.
///
/// ```
/// assert!((umbel::sizing::rate::expected_probes(0.5, 20)? - 2.0).abs() < 1e-5);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If `fill` is not a share from 0 to 1, or `k` is out of range.
pub fn expected_probes(fill: f64, k: u32) -> Result<f64> {
    check::hashes(k)?;
    if !(0.0..=1.0).contains(&fill) {
        return Err(Error::parameter("fill", fill, "a share of set bits from 0 to 1"));
    }
    // The sum 1 + fill + ... + fill^(k-1), which unlike the quotient is also valid at fill = 1.
    Ok((0..k).fold(0.0, |sum, _| 1.0 + fill * sum))
}

/// Returns the bits per key of the best standard filter of rate `p`: log2(1/p)/ln 2 = 1.4427
/// log2(1/p).
///
/// ```
/// # use umbel::sizing::rate;
/// let bits = rate::bits_per_key(0.01)?;
/// assert!((bits - 9.585).abs() < 1e-3);
/// assert!((bits / rate::information_minimum(0.01)? - 1.4427).abs() < 1e-4);
/// assert!((rate::minimum_rate(bits)? - 0.01).abs() < 1e-15);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If `p` is not above 0 and below 1.
pub fn bits_per_key(p: f64) -> Result<f64> {
    check::rate(p)?;
    Ok(-p.ln() / (LN_2 * LN_2))
}

/// Returns the bits per key that any structure of rate `p` needs: log2(1/p). A Bloom filter takes
/// 44 % more.
///
/// # Errors
///
/// If `p` is not above 0 and below 1.
pub fn information_minimum(p: f64) -> Result<f64> {
    check::rate(p)?;
    Ok(-p.log2())
}

/// Returns the lowest rate that a standard filter reaches with this many bits per key: 0.6185^bits,
/// at the best `k`.
///
/// # Errors
///
/// If `bits_per_key` is not a positive finite number.
pub fn minimum_rate(bits_per_key: f64) -> Result<f64> {
    check_bits_per_key(bits_per_key)?;
    Ok((-bits_per_key * LN_2 * LN_2).exp())
}

/// Returns the real number of hash functions at which the rate is lowest: (m/n) ln 2. The
/// [`rule_of_thumb`] is within 0.13 % of it.
///
/// # Errors
///
/// If `bits_per_key` is not a positive finite number.
pub fn optimal_hashes(bits_per_key: f64) -> Result<f64> {
    check_bits_per_key(bits_per_key)?;
    Ok(bits_per_key * LN_2)
}

/// Returns the rule of thumb for [`optimal_hashes`]: 9/13 of the bits per key.
///
/// ```
/// # use umbel::sizing::rate;
/// assert_eq!((rate::rule_of_thumb(13.0)?, rate::optimal_hashes(13.0)?.round()), (9.0, 9.0));
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If `bits_per_key` is not a positive finite number.
pub fn rule_of_thumb(bits_per_key: f64) -> Result<f64> {
    check_bits_per_key(bits_per_key)?;
    Ok(bits_per_key * 9.0 / 13.0)
}

/// Returns the bits for `n` keys at rate `p`: ceil(-n ln p / (ln 2)^2).
///
/// ```
/// # use umbel::sizing::rate;
/// assert_eq!(rate::optimal_bits(1000, 0.01)?, 9586);
/// assert_eq!(rate::bytes(9586), 1199);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If an argument is out of range, or the filter would need more than
/// [`MAX_BITS`](crate::sizing::MAX_BITS).
pub fn optimal_bits(n: u64, p: f64) -> Result<u64> {
    check::capacity(n)?;
    // The conversion saturates, so the check below also catches sizes that do not fit into 64 bits.
    let m = (n as f64 * bits_per_key(p)?).ceil() as u64;
    if check::bits(m).is_err() {
        let needs = format!("fewer keys: {n} at p = {} take more than 2^48 bits", Decimal(p));
        return Err(Error::parameter("n", n, needs));
    }
    Ok(m)
}

/// Returns the whole bytes that hold this many bits.
pub fn bytes(bits: u64) -> u64 {
    bits.div_ceil(8)
}

/// Returns ln (1-1/m)^(kn), by `ln_1p`: computing 1-1/m first would lose all digits of a large m.
fn log_zero(m: u64, n: u64, k: u32) -> f64 {
    if n == 0 {
        return 0.0; // at m = 1 the product below would be NaN
    }
    f64::from(k) * n as f64 * (-1.0 / m as f64).ln_1p()
}

/// [`expected_fill`] of checked arguments.
pub(super) fn fill(m: u64, n: u64, k: u32) -> f64 {
    -log_zero(m, n, k).exp_m1()
}

/// [`classic`] of checked arguments.
pub(super) fn formula(m: u64, n: u64, k: u32) -> f64 {
    fill(m, n, k).powf(f64::from(k))
}

/// [`expected`] of checked arguments.
pub(super) fn mean(m: u64, n: u64, k: u32) -> f64 {
    let steps = u128::from(m) * u128::from(n) * u128::from(k);
    let small = steps <= MAX_EXACT_STEPS.into();
    let rate = if small { exact(m, n, k) } else { second_order(m, n, k) };
    // Rounding must not push the sum of all probabilities above 1.
    rate.map_or(1.0, |rate| rate.clamp(formula(m, n, k), 1.0))
}

pub(super) fn check_filter(m: u64, n: u64, k: u32) -> Result<()> {
    check::bits(m)?;
    check::load(n)?;
    check::hashes(k)
}

fn check_bits_per_key(bits_per_key: f64) -> Result<()> {
    if bits_per_key > 0.0 && bits_per_key.is_finite() {
        return Ok(());
    }
    Err(Error::parameter("m/n", bits_per_key, "a positive number of bits per key"))
}

#[cfg(test)]
mod tests;
