//! The width of the cells of a map for a number of values and a rate of wrong answers. The number
//! of cells is computed by [`retrieval`](super::retrieval).
//!
//! A key that is not in the map yields a uniformly random number of `q` bits. The number is
//! mistaken for a value if it is one of the `|R|` values of the map, so the rate is |R| / 2^q. A
//! map with mutable values uses these cells to store which of the `k` cells of a key is its own, so
//! its rate is k / 2^q.
//!
//! # References
//!
//! * B. Chazelle, J. Kilian, R. Rubinfeld and A. Tal. *The Bloomier filter: an efficient data
//!   structure for static support lookup tables.* SODA 2004. `CKRT04`

use super::{Decimal, check};
use crate::{Error, Result};

/// The width of the widest cell, in bits.
pub const MAX_CELL_BITS: u32 = 96;

/// Returns the fewest bits `q` with `values / 2^q <= p`.
///
/// ```
/// use umbel::sizing::bloomier;
/// assert_eq!(bloomier::bits_for(5, 0.01)?, 9);
/// assert_eq!(bloomier::rate(4, 8), 0.015625);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If `values` is zero, `p` is out of range, or a cell would need more than [`MAX_CELL_BITS`].
pub fn bits_for(values: u128, p: f64) -> Result<u32> {
    check::rate(p)?;
    if values == 0 {
        return Err(Error::parameter("values", values, "at least one"));
    }
    let fits = |bits: &u32| rate(values, *bits) <= p;
    (1..=MAX_CELL_BITS).find(fits).ok_or_else(|| {
        let needs = format!("a higher rate or fewer values: cells have at most {MAX_CELL_BITS} bits");
        Error::parameter("p", Decimal(p), needs)
    })
}

/// Returns the share of absent keys for which a map with this many values in cells of this many
/// bits returns a value.
pub fn rate(values: u128, bits: u32) -> f64 {
    values as f64 * 0.5f64.powi(bits as i32)
}

/// Returns the number of bits of a value up to `largest`, at least 1.
pub fn value_bits(largest: u64) -> u32 {
    (64 - largest.leading_zeros()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_as_wide_as_the_values_and_the_rate_need() {
        for values in [1u128, 2, 3, 4, 5, 255, 256, 257, 1 << 40, 1 << 64] {
            for p in [0.5, 0.01, 0.001, 1e-6] {
                let bits = bits_for(values, p).unwrap();
                assert!(rate(values, bits) <= p && (bits == 1 || rate(values, bits - 1) > p), "{values} {p}");
            }
        }
        assert_eq!(bits_for(1 << 64, 0.01).unwrap(), 71);
        assert!(bits_for(1 << 64, 1e-12).is_err() && bits_for(0, 0.1).is_err() && bits_for(1, 0.0).is_err());
    }

    #[test]
    fn values_have_the_bits_they_need() {
        assert_eq!([0, 1, 2, 255, 256, u64::MAX].map(value_bits), [1, 1, 2, 8, 9, 64]);
    }
}
