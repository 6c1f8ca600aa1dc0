//! The width of the counters of a counting filter.
//!
//! The rate of a counting filter is that of a standard filter with as many bits as it has counters,
//! so [`Params`](super::Params) sizes it. The width determines how likely counters are to overflow:
//! a counter of c bits overflows when it is hit 2^c times. At the best k a counter is hit ln 2
//! times on average, and then, for *distinct* keys:
//!
//! | bits of a counter | share of counters that overflow |
//! | --- | --- |
//! | 2 | 5.6e-3 |
//! | 3 | 7.2e-7 |
//! | 4 | 7.1e-17 |
//!
//! Sixteen copies of one key overflow its k counters of four bits, however large the filter is.
//!
//! ```
//! use umbel::sizing::counting::{overflow_bound, overflow_share};
//! // A million counters of four bits: an overflow is practically impossible.
//! assert!(overflow_bound(1_000_000, 4)? < 1.4e-9);
//! assert!(overflow_share(std::f64::consts::LN_2, 4)? < 7.1e-17);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # References
//!
//! * L. Fan, P. Cao, J. Almeida and A. Broder. *Summary cache: a scalable wide-area web cache
//!   sharing protocol.* IEEE/ACM Transactions on Networking 8(3), 2000. `FCAB00`

use super::check;
use crate::{Error, Result};
use std::f64::consts::{E, LN_2};

/// Returns an upper bound of the probability that one of `m` counters is hit 2^c times or more, if
/// k <= (m/n) ln 2 and all keys are distinct: m (e ln 2 / 2^c)^(2^c).
///
/// This is the bound of Fan et al.; [`overflow_share`] is twenty times lower at c = 4.
///
/// # Errors
///
/// If `m` is out of range, or `counter_bits` is not 1 to 16.
pub fn overflow_bound(m: u64, counter_bits: u32) -> Result<f64> {
    check::bits(m)?;
    let hits = hits_to_overflow(counter_bits)?;
    Ok((m as f64 * (E * LN_2 / hits).powf(hits)).min(1.0))
}

/// Returns the share of counters that are hit 2^c times or more when the average counter is hit
/// `load` = n k / m times: the tail of the Poisson distribution.
///
/// # Errors
///
/// If `load` is negative or not finite, or `counter_bits` is not 1 to 16.
pub fn overflow_share(load: f64, counter_bits: u32) -> Result<f64> {
    if !(load >= 0.0 && load.is_finite()) {
        return Err(Error::parameter("load", load, "a number of hits per counter, not below 0"));
    }
    let hits = hits_to_overflow(counter_bits)?;
    if load == 0.0 {
        return Ok(0.0);
    }
    // P(j) = P(j-1) load / j, in logarithms up to the first term that is needed.
    let count = hits as u64;
    let first = (1..=count).map(|j| (load / j as f64).ln()).sum::<f64>() - load;
    if load < hits {
        // Sum upwards from 2^c until the terms no longer change the sum.
        let (mut term, mut sum, mut j) = (first.exp(), 0.0, hits);
        while term > sum * f64::EPSILON {
            sum += term;
            j += 1.0;
            term *= load / j;
        }
        return Ok(sum);
    }
    // Sum downwards the probability of no overflow.
    let (mut term, mut below) = (first.exp(), 0.0);
    for j in (1..=count).rev() {
        term *= j as f64 / load;
        below += term;
    }
    Ok((1.0 - below).clamp(0.0, 1.0))
}

fn hits_to_overflow(counter_bits: u32) -> Result<f64> {
    if (1..=16).contains(&counter_bits) {
        return Ok(f64::from(1u32 << counter_bits));
    }
    Err(Error::parameter("counter bits", counter_bits, "1 to 16"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tails_and_the_bound_of_the_literature_are_reproduced() {
        let close = |value: f64, expected: f64, places: f64| assert!((value / expected - 1.0).abs() < places);
        close(overflow_bound(1, 4).unwrap(), 1.3677e-15, 1e-4);
        close(overflow_bound(1_000_000, 4).unwrap(), 1.3677e-9, 1e-4);
        for (bits, share) in [(1, 0.1534), (2, 5.56e-3), (3, 7.15e-7), (4, 7.07e-17)] {
            close(overflow_share(LN_2, bits).unwrap(), share, 1e-3);
        }
        // One overflow per 1.4 million counters.
        close(1.0 / overflow_share(LN_2, 3).unwrap(), 1.4e6, 0.01);
    }

    #[test]
    fn the_tail_equals_the_exact_sum_at_every_load() {
        for load in [1e-3, 0.5, 1.0, 3.9, 4.0, 4.1, 12.0, 60.0] {
            let mut term = f64::exp(-load);
            let mut below = 0.0;
            for j in 1..=4 {
                below += term;
                term *= load / f64::from(j);
            }
            let exact = 1.0 - below;
            assert!((overflow_share(load, 2).unwrap() - exact).abs() < 1e-14, "{load}");
        }
        assert_eq!(overflow_share(0.0, 4).unwrap(), 0.0);
        assert_eq!(overflow_share(1e9, 4).unwrap(), 1.0);
        assert_eq!(overflow_share(1e9, 16).unwrap(), 1.0);
    }

    #[test]
    fn invalid_arguments_are_refused() {
        assert!(overflow_share(-1.0, 4).is_err() && overflow_share(f64::NAN, 4).is_err());
        assert!(overflow_share(1.0, 0).is_err() && overflow_share(1.0, 17).is_err());
        assert!(overflow_bound(0, 4).is_err());
    }
}
