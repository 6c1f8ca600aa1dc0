//! Static sets: the fingerprint length for a rate. The number of cells is computed by
//! [`retrieval`](super::retrieval).
//!
//! A non-member is reported when its cells happen to yield its fingerprint, with probability 2^-w
//! for w bits. There are 1.13 to 1.15 cells per key.
//!
//! # References
//!
//! * T. M. Graf and D. Lemire. *Binary fuse filters: fast and smaller than xor filters.* ACM
//!   Journal of Experimental Algorithmics 27, 2022. `GL22`
//! * T. M. Graf and D. Lemire. *Xor filters: faster and smaller than Bloom and cuckoo filters.* ACM
//!   Journal of Experimental Algorithmics 25, 2020. `GL20`

use super::{Decimal, check};
use crate::{Error, Result};

/// The shortest fingerprint, in bits.
pub const MIN_FINGERPRINT_BITS: u32 = 4;

/// The longest fingerprint, in bits.
pub const MAX_FINGERPRINT_BITS: u32 = 32;

/// Returns the fewest bits `w` of a fingerprint that meet a rate: `2^-w <= p`.
///
/// ```
/// use umbel::sizing::fuse;
/// assert_eq!([0.01, 0.001, 1.0 / 256.0].map(|p| fuse::bits_for(p).unwrap()), [7, 10, 8]);
/// ```
///
/// # Errors
///
/// If `p` is out of range or below 2^-32.
pub fn bits_for(p: f64) -> Result<u32> {
    check::rate(p)?;
    let fits = |bits: &u32| rate(*bits) <= p;
    (MIN_FINGERPRINT_BITS..=MAX_FINGERPRINT_BITS).find(fits).ok_or_else(|| {
        Error::parameter(
            "p",
            Decimal(p),
            format!(
                "at least 2^-{MAX_FINGERPRINT_BITS}: fingerprints have at most {MAX_FINGERPRINT_BITS} bits"
            ),
        )
    })
}

/// Returns the rate of fingerprints of this many bits.
pub fn rate(bits: u32) -> f64 {
    0.5f64.powi(bits as i32)
}

/// Returns `bits` if it is a valid fingerprint length.
///
/// # Errors
///
/// If `bits` is below [`MIN_FINGERPRINT_BITS`] or above [`MAX_FINGERPRINT_BITS`].
pub fn check_bits(bits: u32) -> Result<u32> {
    if (MIN_FINGERPRINT_BITS..=MAX_FINGERPRINT_BITS).contains(&bits) {
        return Ok(bits);
    }
    Err(Error::parameter(
        "fingerprint bits",
        bits,
        format!("{MIN_FINGERPRINT_BITS} to {MAX_FINGERPRINT_BITS}"),
    ))
}
