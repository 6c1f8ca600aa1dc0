//! Static sets: how many bits a fingerprint has for a rate. The number of cells is the business of
//! [`retrieval`](super::retrieval).
//!
//! A non-member is reported when its cells give its fingerprint by chance, with probability 2^-w
//! for w bits. There are 1.13 to 1.15 cells per key.
//!
//! # References
//!
//! * T. M. Graf and D. Lemire. *Binary fuse filters: fast and smaller than xor filters.* ACM
//!   Journal of Experimental Algorithmics 27, 2022. `GL22`
//! * T. M. Graf and D. Lemire. *Xor filters: faster and smaller than Bloom and cuckoo filters.* ACM
//!   Journal of Experimental Algorithmics 25, 2020. `GL20`

use super::check;
use crate::{Error, Result};

/// The narrowest fingerprint.
pub const MIN_FINGERPRINT_BITS: u32 = 4;

/// The widest fingerprint.
pub const MAX_FINGERPRINT_BITS: u32 = 32;

/// The bits of a fingerprint that keep a rate: the fewest `w` with `2^-w <= p`.
///
/// ```
/// use umbel::sizing::fuse;
/// assert_eq!([0.01, 0.001, 1.0 / 256.0].map(|p| fuse::bits_for(p).unwrap()), [7, 10, 8]);
/// ```
pub fn bits_for(p: f64) -> Result<u32> {
    check::rate(p)?;
    let fits = |bits: &u32| rate(*bits) <= p;
    (MIN_FINGERPRINT_BITS..=MAX_FINGERPRINT_BITS).find(fits).ok_or_else(|| {
        Error::parameter(
            "p",
            p,
            format!(
                "at least 2^-{MAX_FINGERPRINT_BITS}: fingerprints have at most {MAX_FINGERPRINT_BITS} bits"
            ),
        )
    })
}

/// The rate of fingerprints of so many bits.
pub fn rate(bits: u32) -> f64 {
    0.5f64.powi(bits as i32)
}

/// The same bits, unless there are too few or too many.
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
