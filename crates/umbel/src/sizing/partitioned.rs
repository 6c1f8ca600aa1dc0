//! Partitioned filters: k slices of s bits, with one position per key in each.
//!
//! Every key sets exactly k bits, and the slices are independent, so the rate fill^k is exact here
//! and not an approximation. At equal memory it is a little above the rate of a standard filter.
//!
//! A slice of s bits holds `s ln 2` keys: half of its bits are then set. The well-known `M (ln 2)^2
//! / |ln p|` divides by a real number of slices and promises slightly more than whole slices can
//! hold.
//!
//! ```
//! use umbel::sizing::{PartitionedParams, partitioned};
//!
//! # fn main() -> umbel::Result<()> {
//! let params = PartitionedParams::for_capacity(18_000, 0.001)?;
//! assert_eq!((params.hashes, params.slice_bits, params.bits), (10, 25_969, 259_690));
//! assert!(params.rate <= 0.001);
//!
//! // Three slices of five bits and one key: one bit in five, three times.
//! assert!((partitioned::rate(5, 1, 3)? - 0.008).abs() < 1e-15);
//! # Ok(())
//! # }
//! ```
//!
//! # References
//!
//! * P. S. Almeida, C. Baquero, N. Preguiça and D. Hutchison. *Scalable Bloom filters.* Information
//!   Processing Letters 101(6), 2007. `ABPH07`
//! * J. K. Mullin. *A second look at Bloom filters.* Communications of the ACM 26(8), 1983.
//!   `Mullin83`

use super::{Decimal, MAX_BITS, MAX_HASHES, MAX_KEYS, check, greatest, least, rate as standard};
use crate::{Error, Result};
use std::f64::consts::LN_2;

/// The parameters of a partitioned filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PartitionedParams {
    /// n: the number of keys planned for.
    pub capacity: u64,
    /// s: the bits of one slice, a whole number.
    pub slice_bits: u64,
    /// k: the number of slices, each with its own hash function.
    pub hashes: u32,
    /// M = k s: the actual number of bits.
    pub bits: u64,
    /// The rate with `capacity` keys inserted.
    pub rate: f64,
}

impl PartitionedParams {
    /// Plans a filter for `n` keys at rate `p`: k = ceil(log2 1/p) slices of ceil(n / ln 2) bits,
    /// half full at capacity.
    ///
    /// The rate is 2^-k, which is below `p` unless `p` is a power of two;
    /// [`for_hashes`](Self::for_hashes) trades the difference for memory.
    ///
    /// # Errors
    ///
    /// If an argument is out of range, or the filter would need more than [`MAX_BITS`].
    pub fn for_capacity(n: u64, p: f64) -> Result<Self> {
        let k = hashes(p)?;
        let smallest = Self::for_hashes(n, p, k)?;
        // At a power of two the last bit matters: (1-1/s)^n is slightly less than e^(-n/s).
        let slice_bits = ((n as f64 / LN_2).ceil() as u64).max(smallest.slice_bits);
        if slice_bits > MAX_BITS / u64::from(k) {
            return Err(too_large(n, p));
        }
        Ok(Self::new(slice_bits, n, k))
    }

    /// Plans a filter for `n` keys with the smallest `k` slices that meet rate `p`.
    ///
    /// # Errors
    ///
    /// If an argument is out of range, or the filter would need more than [`MAX_BITS`].
    pub fn for_hashes(n: u64, p: f64, k: u32) -> Result<Self> {
        check::capacity(n)?;
        check::rate(p)?;
        check::hashes(k)?;
        let slice_bits = least(1..=MAX_BITS / u64::from(k), |s| unchecked_rate(s, n, k) <= p);
        slice_bits.map(|s| Self::new(s, n, k)).ok_or_else(|| too_large(n, p))
    }

    /// Plans a filter of `k` slices with at least `bits` bits. Slices are rounded up to whole bits,
    /// so [`bits`](Self::bits) may be up to k - 1 larger. At capacity half of the bits are set.
    ///
    /// # Errors
    ///
    /// If an argument is out of range, or the slices have no room for a key.
    pub fn for_bits(bits: u64, k: u32) -> Result<Self> {
        check::bits(bits)?;
        check::hashes(k)?;
        let slice_bits = bits.div_ceil(u64::from(k));
        if slice_bits * u64::from(k) > MAX_BITS {
            return Err(Error::parameter("m", bits, format!("at most 2^48 bits in k = {k} whole slices")));
        }
        Ok(Self::new(slice_bits, capacity(slice_bits)?, k))
    }

    /// As [`for_bits`](Self::for_bits), with the most keys that meet rate `p`, however full the
    /// slices become.
    ///
    /// # Errors
    ///
    /// As [`for_bits`](Self::for_bits); also if not even one key fits at rate `p`.
    pub fn for_bits_hashes_and_rate(bits: u64, k: u32, p: f64) -> Result<Self> {
        check::rate(p)?;
        let Self { slice_bits, .. } = Self::for_bits(bits, k)?;
        let n = greatest(1..=MAX_KEYS, |n| unchecked_rate(slice_bits, n, k) <= p);
        let needs = || Error::parameter("m", bits, format!("more bits to hold a single key at rate {p}"));
        Ok(Self::new(slice_bits, n.ok_or_else(needs)?, k))
    }

    /// As [`for_bits`](Self::for_bits), with k = ceil(log2 1/p) slices. Where the slices are so
    /// short that half filling them would exceed `p`, the capacity is the most keys that do not.
    ///
    /// # Errors
    ///
    /// As [`for_bits`](Self::for_bits); also if not even one key fits at rate `p`.
    pub fn for_bits_and_rate(bits: u64, p: f64) -> Result<Self> {
        let half_full = Self::for_bits(bits, hashes(p)?)?;
        let keeps = |n| unchecked_rate(half_full.slice_bits, n, half_full.hashes) <= p;
        let needs = || Error::parameter("m", bits, format!("more bits to hold a single key at rate {p}"));
        let n = greatest(1..=half_full.capacity, keeps).ok_or_else(needs)?;
        Ok(Self::new(half_full.slice_bits, n, half_full.hashes))
    }

    fn new(slice_bits: u64, n: u64, k: u32) -> Self {
        let rate = unchecked_rate(slice_bits, n, k);
        Self { capacity: n, slice_bits, hashes: k, bits: slice_bits * u64::from(k), rate }
    }
}

/// Returns the number of slices for rate `p`: ceil(log2 1/p).
///
/// # Errors
///
/// If `p` is out of range or below 2^-1024.
pub fn hashes(p: f64) -> Result<u32> {
    let slices = standard::information_minimum(p)?.ceil();
    if slices > f64::from(MAX_HASHES) {
        return Err(Error::parameter("p", Decimal(p), "a rate of at least 2^-1024"));
    }
    // At least 1, since p is below 1.
    Ok(slices as u32)
}

/// Returns the number of keys that half fill a slice: floor(s ln 2).
///
/// # Errors
///
/// If `slice_bits` is below 2 or out of range.
pub fn capacity(slice_bits: u64) -> Result<u64> {
    check::bits(slice_bits)?;
    let n = (slice_bits as f64 * LN_2) as u64;
    if n == 0 {
        return Err(Error::parameter("s", slice_bits, "slices of at least 2 bits to hold a key"));
    }
    Ok(n)
}

/// Returns the capacity M (ln 2)^2 / |ln p| of the literature, in keys. It is slightly optimistic:
/// no whole number of slices of whole bits reaches it.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn nominal_capacity(bits: u64, p: f64) -> Result<f64> {
    check::bits(bits)?;
    Ok(bits as f64 / standard::bits_per_key(p)?)
}

/// Returns the expected share of set bits after `n` keys, in each slice and in all: 1-(1-1/s)^n.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn expected_fill(slice_bits: u64, n: u64) -> Result<f64> {
    standard::expected_fill(slice_bits, n, 1)
}

/// Returns the rate of `k` slices of `slice_bits` bits after `n` keys: fill^k.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn rate(slice_bits: u64, n: u64, k: u32) -> Result<f64> {
    standard::check_filter(slice_bits, n, k)?;
    Ok(unchecked_rate(slice_bits, n, k))
}

fn too_large(n: u64, p: f64) -> Error {
    Error::parameter("n", n, format!("fewer keys: at p = {} these take more than 2^48 bits", Decimal(p)))
}

fn unchecked_rate(slice_bits: u64, n: u64, k: u32) -> f64 {
    standard::fill(slice_bits, n, 1).powf(f64::from(k))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::MAX_KEYS;

    #[test]
    fn the_table_of_almeida_is_reproduced_and_is_optimistic() {
        // p, k, s rounded down as printed, n as printed, n before truncation, keys that half fill a
        // slice.
        let table = [
            (1e-3, 10, 26214, 18232, 18232.82, 18170),
            (1e-4, 14, 18724, 13674, 13674.62, 12978),
            (1e-5, 17, 15420, 10939, 10939.69, 10688),
            (1e-6, 20, 13107, 9116, 9116.41, 9085),
        ];
        let bits = 262_144;
        for (p, k, s, printed, real, half_full) in table {
            assert_eq!(hashes(p).unwrap(), k);
            assert_eq!(bits / u64::from(k), s);
            let nominal = nominal_capacity(bits, p).unwrap();
            assert_eq!(nominal as u64, printed);
            assert!((nominal - real).abs() < 0.0051, "{nominal}");
            assert_eq!(capacity(s).unwrap(), half_full);
            assert!((expected_fill(s, half_full).unwrap() - 0.5).abs() < 1e-4);
            assert!(rate(s, half_full, k).unwrap() < p && half_full < printed);
            // Rounded up, the slices are whole and the reported size is the actual size.
            let params = PartitionedParams::for_bits_and_rate(bits, p).unwrap();
            assert_eq!((params.slice_bits, params.bits), (s + 1, u64::from(k) * (s + 1)));
            assert!(params.capacity >= half_full && params.rate < p);
        }
    }

    #[test]
    fn one_key_in_three_slices_of_five() {
        let params = PartitionedParams::for_bits(15, 3).unwrap();
        assert_eq!((params.slice_bits, params.bits), (5, 15));
        assert!((expected_fill(5, 1).unwrap() - 0.2).abs() < 1e-15);
        assert!((rate(5, 1, 3).unwrap() - 0.008).abs() < 1e-15);
    }

    #[test]
    fn the_rate_is_slightly_above_a_standard_filter_of_equal_size() {
        let (n, k) = (107, 7);
        let real = (1.0 - (1.0 - 7.0 / 1024.0_f64).powi(107)).powi(7);
        assert!((real - 0.010280).abs() < 5e-7);
        assert!((rate(146, n, k).unwrap() - 0.010376).abs() < 5e-7);
        assert!((rate(147, n, k).unwrap() - 0.010044).abs() < 5e-7);
        let standard = standard::classic(1024, n, k).unwrap();
        assert!((standard - 0.010138).abs() < 5e-7);
        assert!(real > standard);
    }

    #[test]
    fn slices_planned_for_a_capacity_hold_it_at_the_rate() {
        for n in [1, 2, 3, 10, 1000, 1 << 30, 1 << 40] {
            for p in [0.9, 0.5, 0.3, 0.01, 1.0 / 1024.0, 1e-6, 1e-12] {
                let params = PartitionedParams::for_capacity(n, p).unwrap();
                assert!(params.rate <= p, "n {n} p {p}: {}", params.rate);
                assert!(capacity(params.slice_bits).unwrap() >= n, "n {n} p {p}");
                assert_eq!(params.bits, params.slice_bits * u64::from(params.hashes));
                assert!(expected_fill(params.slice_bits, n).unwrap() <= 0.5 + 0.2 / params.slice_bits as f64);
                // As small as half-full slices can be: one bit for rounding, half a bit for
                // (1-1/s)^s < 1/e.
                assert!(params.slice_bits as f64 <= n as f64 / LN_2 + 1.5, "n {n} p {p}");
                let smallest = PartitionedParams::for_hashes(n, p, params.hashes).unwrap();
                assert!(smallest.bits <= params.bits && smallest.rate <= p);
            }
        }
    }

    #[test]
    fn invalid_arguments_are_refused() {
        assert!(PartitionedParams::for_capacity(0, 0.01).is_err());
        assert!(PartitionedParams::for_capacity(MAX_KEYS, 0.01).is_err());
        assert!(PartitionedParams::for_capacity(10, f64::NAN).is_err());
        assert!(PartitionedParams::for_capacity(10, 5e-324).is_err());
        assert!(PartitionedParams::for_bits(10, 0).is_err() && PartitionedParams::for_bits(0, 3).is_err());
        assert!(PartitionedParams::for_bits(10, 10).is_err(), "slices of one bit hold no key");
        assert!(PartitionedParams::for_bits(MAX_BITS, 3).is_err(), "rounded up it would be too large");
        assert!(PartitionedParams::for_bits(u64::MAX, 1024).is_err());
        assert!(rate(0, 1, 1).is_err() && rate(5, 1, 0).is_err());
        assert_eq!(rate(5, 0, 3).unwrap(), 0.0);
        assert_eq!(rate(1, 1, 3).unwrap(), 1.0);
    }
}
