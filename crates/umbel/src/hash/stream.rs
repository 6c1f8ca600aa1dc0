//! The probe stream: turns one digest into as many positions as a filter needs.
//!
//! The stream is `x_i = d * C^i mod 2^64`, and a position in `0..range` is the high half of `x_i *
//! range`. This needs neither division nor power-of-two sizes. In double hashing, two keys can
//! follow the same progression one cell apart, which limits the rate of small filters. Here each
//! step multiplies instead of adding, so this does not happen.
//!
//! # References
//!
//! * G. L. Steele Jr. and S. Vigna. *Computationally easy, spectrally good multipliers for
//!   congruential pseudorandom number generators.* Software: Practice and Experience 52(2), 2022.
//!   `SV22`
//! * D. Lemire. *Fast random integer generation in an interval.* ACM Transactions on Modeling and
//!   Computer Simulation 29(1), 2019. `Lemire19`
//! * A. Kirsch and M. Mitzenmacher. *Less hashing, same performance: building a better Bloom
//!   filter.* ESA 2006. `KM06`

/// The constant `C`: a multiplier with good spectral properties for multiplicative generators
/// modulo 2^64 (Steele and Vigna 2021).
pub const MULTIPLIER: u64 = 0xf135_7aea_2e62_a9c5;

/// The powers `C^0` to `C^7`, which yield the first eight elements of a stream without a chain of
/// multiplications.
pub(crate) const POWERS: [u64; 8] = {
    let mut powers = [1u64; 8];
    let mut i = 1;
    while i < 8 {
        powers[i] = powers[i - 1].wrapping_mul(MULTIPLIER);
        i += 1;
    }
    powers
};

/// The sequence `x_0, x_1, ...` of one digest.
///
/// ```
/// use umbel::{Digest, hash::{MULTIPLIER, reduce}};
/// let digest = Digest::from_hash(0x0123_4567_89ab_cdef);
/// let x: Vec<u64> = digest.stream().take(2).collect();
/// assert_eq!(x, [digest.get(), digest.get().wrapping_mul(MULTIPLIER)]);
/// assert!(reduce(x[1], 1000) < 1000);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stream(u64);

impl Stream {
    #[inline(always)]
    pub(super) const fn new(digest: u64) -> Stream {
        Stream(digest)
    }

    /// Returns the next element. The stream never ends.
    #[inline(always)]
    pub const fn draw(&mut self) -> u64 {
        let x = self.0;
        self.0 = x.wrapping_mul(MULTIPLIER);
        x
    }
}

impl Iterator for Stream {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        Some(self.draw())
    }
}

/// Maps 64 uniform bits to `0..range`: returns the high half of the product.
#[inline(always)]
pub const fn reduce(x: u64, range: u64) -> u64 {
    ((x as u128 * range as u128) >> 64) as u64
}

/// Like [`reduce`], for ranges below 2^32. Uses 32-bit multiplications, so that the compiler
/// vectorizes loops of it.
#[inline(always)]
pub(crate) const fn reduce_narrow(x: u64, range: u64) -> u64 {
    let low = (x & 0xffff_ffff) * (range & 0xffff_ffff);
    ((x >> 32) * (range & 0xffff_ffff) + (low >> 32)) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_reductions_agree() {
        let mut x = 1u64;
        for i in 0..10_000 {
            x = x.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            for range in [1, 2, 3, 12_345, x >> 32, (1 << 32) - 1, x >> (33 + i % 31)] {
                for x in [x, 0, u64::MAX, !x] {
                    assert_eq!(reduce_narrow(x, range), reduce(x, range), "{x} {range}");
                }
            }
        }
    }
}
