//! The sizing formulas that the formats share. Each rounds as the original does, in the same order
//! of operations, so that sizes agree to the bit.

use crate::{Design, Error, Result};
use std::f64::consts::LN_2;

/// Checks the capacity and the rate.
pub(super) fn check(design: Design) -> Result<()> {
    if design.capacity == 0 {
        return Err(Error::parameter("n", 0, "at least one key"));
    }
    if !(design.rate > 0.0 && design.rate < 1.0) {
        return Err(Error::parameter("p", design.rate, "a rate above 0 and below 1"));
    }
    Ok(())
}

/// The number of bits -n ln p / (ln 2)^2.
pub(super) fn ideal_bits(design: Design) -> f64 {
    -(design.capacity as f64) * design.rate.ln() / (LN_2 * LN_2)
}

/// Returns a number of bits as an integer, if memory can be addressed so.
pub(super) fn to_bits(bits: f64) -> Result<u64> {
    const MAX_BITS: f64 = (1u64 << 48) as f64;
    if (1.0..=MAX_BITS).contains(&bits) {
        return Ok(bits as u64);
    }
    Err(Error::parameter("m", bits, "1 to 2^48 bits: choose another number of keys or another rate"))
}

/// Returns a number of bits rounded up to 64-bit words, for formats that store the number of words
/// as a signed integer of 32 bits.
pub(super) fn to_java_words(bits: f64) -> Result<u64> {
    let bits = to_bits(bits)?.div_ceil(64) * 64;
    if bits / 64 > i32::MAX as u64 {
        return Err(Error::parameter(
            "m",
            bits,
            "at most 2^31 - 1 words of 64 bits, as this format counts them",
        ));
    }
    Ok(bits)
}

/// The bits and the number of hash functions of Guava and Spark. The number of hash functions is
/// computed before the bits are rounded up to words.
pub(super) fn java(design: Design) -> Result<(u64, u64)> {
    let bits = ideal_bits(design).floor();
    let hashes = (bits / design.capacity as f64 * LN_2 + 0.5).floor().max(1.0);
    Ok((to_java_words(bits.max(1.0))?, hashes as u64))
}
