//! The rate of a [Floom filter](crate::floom::Floom), and why the filter is not worth its memory.
//!
//! A standard filter of M bits in b regions also stores which *patterns* of regions its keys have
//! hit. A non-member passes if its k bits are set and some key had its pattern. The second happens
//! with probability
//!
//! > `F = Σ C(b,j) π_j (1-(1-π_j)^n)` over `j = 1..=min(b,k)`, `π_j = Surj(k,j) / b^k`
//!
//! where `π_j` is the probability of one given pattern of j regions, and Surj(k,j) counts the ways
//! to throw k balls so that each of j boxes gets one. The two events are nearly independent, so the
//! rate is that of the standard filter times F. A larger standard filter in the same memory always
//! has a lower rate; see [`crate::floom`].
//!
//! ```
//! use umbel::sizing::{floom, rate};
//! // Ten thousand keys in 95 856 bits, and 65 536 more for the patterns of 16 regions.
//! let floom = floom::rate(95_856, 10_000, 7, 16)?;
//! assert!((floom - 0.003751).abs() < 5e-7);
//! // The standard filter of both.
//! assert!(rate::classic(95_856 + 65_536, 10_000, 11)? < 0.00044);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # References
//!
//! * F. E. Schierz. *Bloomfilter: Wie zuverlässig ist Probabilismus.* UbiSys Seminar, TU
//!   Bergakademie Freiberg, 2022. `Schierz22`

use super::{check, rate as standard};
use crate::{Error, Result};

/// The largest number of regions: a table of 2^24 bits.
pub const MAX_REGIONS: u32 = 24;

/// Returns the rate after `n` keys: that of the standard filter times the probability that the
/// pattern of a non-member has been seen.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn rate(bits: u64, n: u64, k: u32, regions: u32) -> Result<f64> {
    Ok(standard::expected(bits, n, k)? * seen(regions, k, n)?)
}

/// Returns F: the probability that a non-member has the pattern of one of `n` keys.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn seen(regions: u32, k: u32, n: u64) -> Result<f64> {
    check::load(n)?;
    if n == 0 {
        return Ok(0.0);
    }
    let (hit, pattern) = throw(regions, k)?;
    let seen = |p: &f64| -(n as f64 * (-p).ln_1p()).exp_m1();
    Ok(hit.iter().zip(&pattern).map(|(hit, p)| hit * seen(p)).sum())
}

/// Returns `π_j` for j = 0..=min(k, regions): the probability that k probes hit exactly these j
/// regions.
///
/// # Errors
///
/// If `regions` is zero, or `k` is out of range.
pub fn pattern_probabilities(regions: u32, k: u32) -> Result<Vec<f64>> {
    Ok(throw(regions, k)?.1)
}

/// Returns how many of the 2^b patterns a key can have: those of 1 to min(k, b) regions. The bits
/// of all other patterns are wasted, unless the patterns are ranked.
///
/// ```
/// use umbel::sizing::floom::reachable_patterns;
/// assert_eq!(reachable_patterns(16, 7)?, 26_332);
/// assert_eq!(reachable_patterns(20, 5)?, 21_699);
/// assert_eq!(reachable_patterns(8, 4)?, 162);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If `regions` is not from 1 to [`MAX_REGIONS`], or `k` is out of range.
pub fn reachable_patterns(regions: u32, k: u32) -> Result<u64> {
    check_regions(regions)?;
    check::hashes(k)?;
    let mut choices = 1;
    let mut patterns = 0;
    for j in 1..=u64::from(k.min(regions)) {
        // C(b,j) = C(b,j-1) (b-j+1) / j is a whole number at every step.
        choices = choices * (u64::from(regions) - j + 1) / j;
        patterns += choices;
    }
    Ok(patterns)
}

/// Returns the bits that the patterns take: one per reachable pattern if they are ranked, otherwise
/// one for each of the 2^b.
///
/// # Errors
///
/// As [`reachable_patterns`].
pub fn pattern_bits(regions: u32, k: u32, ranked: bool) -> Result<u64> {
    let reachable = reachable_patterns(regions, k)?;
    Ok(if ranked { reachable } else { 1 << regions })
}

/// Returns the default number of regions for a filter of `bits` bits: as many as keep the table of
/// patterns below a sixteenth of the filter, but from 4 to 16.
pub fn default_regions(bits: u64) -> u32 {
    (bits / 16).max(1).ilog2().clamp(4, 16)
}

pub(crate) fn check_regions(regions: u32) -> Result<()> {
    if (1..=MAX_REGIONS).contains(&regions) {
        return Ok(());
    }
    Err(Error::parameter("regions", regions, "1 to 24 regions, whose patterns take 2^24 bits"))
}

/// Returns two probabilities for each j after k throws into b regions: that any j of them are hit,
/// and that j given ones are.
///
/// Computed throw by throw, in sums of positive terms; the alternating sum for Surj loses its
/// digits as j grows.
fn throw(regions: u32, k: u32) -> Result<(Vec<f64>, Vec<f64>)> {
    check::hashes(k)?;
    if regions == 0 {
        return Err(Error::parameter("regions", regions, "at least one region"));
    }
    let b = f64::from(regions);
    let most = regions.min(k) as usize;
    let (mut hit, mut pattern) = (vec![0.0; most + 1], vec![0.0; most + 1]);
    (hit[0], pattern[0]) = (1.0, 1.0);
    for _ in 0..k {
        for j in (1..=most).rev() {
            let old = j as f64 / b;
            hit[j] = hit[j] * old + hit[j - 1] * (b - (j - 1) as f64) / b;
            pattern[j] = (pattern[j] + pattern[j - 1]) * old;
        }
        (hit[0], pattern[0]) = (0.0, 0.0);
    }
    Ok((hit, pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Surj(k,j) = Σ (-1)^i C(j,i) (j-i)^k, in whole numbers.
    fn surjections(k: u32, j: u32) -> i128 {
        let mut sum = 0;
        let mut choices = 1;
        for i in 0..=j {
            let term = choices * i128::from(j - i).pow(k);
            sum += if i % 2 == 0 { term } else { -term };
            choices = choices * i128::from(j - i) / i128::from(i + 1);
        }
        sum
    }

    #[test]
    fn pattern_probabilities_are_those_of_surjections() {
        assert_eq!((surjections(3, 2), surjections(4, 4), surjections(7, 3)), (6, 24, 1806));
        for (regions, k) in [(1, 1), (1, 9), (2, 3), (5, 2), (8, 4), (16, 7), (24, 20), (12, 12)] {
            let pattern = pattern_probabilities(regions, k).unwrap();
            assert_eq!(pattern.len() as u32, k.min(regions) + 1);
            for (j, found) in pattern.iter().enumerate().skip(1) {
                let expected = surjections(k, j as u32) as f64 / f64::from(regions).powi(k as i32);
                assert!((found / expected - 1.0).abs() < 1e-12, "{regions} {k} {j}: {found} {expected}");
            }
            let (hit, _) = throw(regions, k).unwrap();
            assert!((hit.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn reachable_patterns_match_a_direct_count() {
        for regions in 1..=12 {
            for k in 1..=14 {
                let count = (1u32..1 << regions).filter(|pattern| pattern.count_ones() <= k).count();
                assert_eq!(reachable_patterns(regions, k).unwrap(), count as u64, "{regions} {k}");
                assert_eq!(pattern_bits(regions, k, true).unwrap(), count as u64);
                assert_eq!(pattern_bits(regions, k, false).unwrap(), 1 << regions);
            }
        }
        assert_eq!(reachable_patterns(24, 1024).unwrap(), (1 << 24) - 1);
    }

    #[test]
    fn edge_cases_are_finite_and_nonsense_is_refused() {
        assert_eq!(seen(16, 7, 0).unwrap(), 0.0);
        // With one region there is one pattern, and the first key sets it.
        assert_eq!(seen(1, 7, 1).unwrap(), 1.0);
        assert!(seen(1024, 9, 1 << 48).unwrap() <= 1.0 + 1e-12);
        assert!(seen(0, 7, 1).is_err() && seen(16, 0, 1).is_err() && seen(16, 7, u64::MAX).is_err());
        assert!(reachable_patterns(0, 7).is_err() && reachable_patterns(25, 7).is_err());
        assert!(rate(0, 1, 7, 16).is_err());
    }

    #[test]
    fn the_table_stays_small_beside_the_filter() {
        assert_eq!(default_regions(0), 4);
        assert_eq!(default_regions(959), 5);
        assert_eq!(default_regions(1 << 18), 14);
        assert_eq!(default_regions(u64::MAX), 16);
        for bits in (256..100_000).step_by(7) {
            let table = 1 << default_regions(bits);
            assert!(table * 16 <= bits && table * 32 > bits, "{bits}");
        }
    }
}
