//! The probe rules of the formats whose bits lie anywhere in the bit set: how the bytes of a key
//! become a sequence of bit numbers.
//!
//! All rules have one form. Two words are computed from the key, the first is the number of the
//! first probe, and each further number follows from the one before it:
//!
//! | rule | first number | next number | bit |
//! | --- | --- | --- | --- |
//! | [`Dcso`] | FNV-1 mod M | times G mod 2^64 mod M | mod m |
//! | [`Mitz64`] | low half of Murmur3-128 | plus high half | without the sign, mod m |
//! | [`Mitz32`] | bits 0 to 31 of Murmur3-128, plus bits 32 to 63 | plus bits 32 to 63 | complement if negative, mod m |
//! | [`Spark1`] | Murmur3-32, plus Murmur3-32 seeded with it | plus the second hash | as above |
//! | [`Spark2`] | the first times 2^31 - 1, plus the second | plus the second hash | as above, in 64 bits |
//! | [`Xx64`] | XXH64, plus XXH64 seeded with it | plus the second hash | half, mod m |
//! | [`Murmur64`] | Murmur64A | plus Murmur64A seeded with it | mod m |

use super::hash::{continue_fnv1, fnv1, fnv1_tile, murmur3_spark, murmur64a};
use crate::key::{START_BYTES, Starts};
use crate::literature::murmur::murmur3_x64_128;
use crate::{Batch, TILE};
use std::ops::Range;
use xxhash_rust::xxh64::xxh64;

/// What a rule needs to continue: the number of the next probe, and how it leads to the one after it.
pub(super) trait Walk: Copy {
    /// Any value, to be overwritten.
    const START: Self;
}

impl Walk for u64 {
    const START: u64 = 0;
}

/// A number, to which the same step is added again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    at: u64,
    step: u64,
}

impl Walk for Steps {
    const START: Steps = Steps { at: 0, step: 0 };
}

/// A probe rule.
pub(super) trait Rule: Copy {
    type Walk: Walk;

    /// Hashes the bytes of a key.
    fn start(self, key: &[u8]) -> Self::Walk;

    /// Hashes the keys of `range`, at most 64, into the first elements of `walks`.
    #[inline(always)]
    fn start_tile<B: Batch + ?Sized>(self, keys: &B, range: Range<usize>, walks: &mut [Self::Walk; TILE]) {
        for (walk, index) in walks.iter_mut().zip(range) {
            *walk = keys.with_bytes(index, |key| self.start(key));
        }
    }

    /// Returns the number that is reduced modulo the number of bits.
    fn number(self, walk: Self::Walk) -> u64;

    /// Moves to the next probe.
    fn advance(self, walk: &mut Self::Walk);
}

/// FNV-1 and a multiplicative generator modulo a prime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dcso;

impl Dcso {
    /// The largest prime below 2^64.
    pub const MODULUS: u64 = 18_446_744_073_709_551_557;
    pub const GENERATOR: u64 = 18_446_744_073_709_550_147;

    /// The remainder of division by [`MODULUS`](Dcso::MODULUS), which is above 2^63.
    #[inline(always)]
    pub fn reduce(x: u64) -> u64 {
        if x >= Dcso::MODULUS { x - Dcso::MODULUS } else { x }
    }

    /// The walk of a key, from its FNV-1 hash.
    #[inline(always)]
    pub fn walk(hash: u64) -> u64 {
        let mut walk = Dcso::reduce(hash);
        Dcso.advance(&mut walk);
        walk
    }
}

impl Rule for Dcso {
    type Walk = u64;

    #[inline(always)]
    fn start(self, key: &[u8]) -> u64 {
        Dcso::walk(fnv1(key))
    }

    #[inline(always)]
    fn start_tile<B: Batch + ?Sized>(self, keys: &B, range: Range<usize>, walks: &mut [Self::Walk; TILE]) {
        let (mut starts, mut hashes) = (Starts::EMPTY, [0; TILE]);
        keys.gather(range.clone(), &mut starts);
        fnv1_tile(&starts, &mut hashes);
        for (i, index) in range.enumerate() {
            if starts.len[i] > START_BYTES as u64 {
                hashes[i] = keys.with_bytes(index, |key| continue_fnv1(hashes[i], &key[START_BYTES..]));
            }
        }
        for (walk, hash) in walks.iter_mut().zip(hashes) {
            *walk = Dcso::walk(hash);
        }
    }

    #[inline(always)]
    fn number(self, walk: u64) -> u64 {
        walk
    }

    #[inline(always)]
    fn advance(self, walk: &mut u64) {
        *walk = Dcso::reduce(walk.wrapping_mul(Dcso::GENERATOR));
    }
}

/// The strategy `MURMUR128_MITZ_32` of Guava.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mitz32;

impl Rule for Mitz32 {
    type Walk = Steps;

    #[inline(always)]
    fn start(self, key: &[u8]) -> Steps {
        let (hash, _) = murmur3_x64_128(key, 0);
        Steps { at: hash.wrapping_add(hash >> 32), step: hash >> 32 }
    }

    #[inline(always)]
    fn number(self, walk: Steps) -> u64 {
        complement32(walk.at)
    }

    #[inline(always)]
    fn advance(self, walk: &mut Steps) {
        walk.at = walk.at.wrapping_add(walk.step);
    }
}

/// The low half as a signed number, or its complement if it is negative.
#[inline(always)]
fn complement32(at: u64) -> u64 {
    let at = at as i32;
    u64::from((at ^ at >> 31) as u32)
}

/// The strategy `MURMUR128_MITZ_64` of Guava.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mitz64;

impl Rule for Mitz64 {
    type Walk = Steps;

    #[inline(always)]
    fn start(self, key: &[u8]) -> Steps {
        let (at, step) = murmur3_x64_128(key, 0);
        Steps { at, step }
    }

    #[inline(always)]
    fn number(self, walk: Steps) -> u64 {
        walk.at & i64::MAX as u64
    }

    #[inline(always)]
    fn advance(self, walk: &mut Steps) {
        walk.at = walk.at.wrapping_add(walk.step);
    }
}

/// Version 1 of Spark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spark1;

impl Rule for Spark1 {
    type Walk = Steps;

    #[inline(always)]
    fn start(self, key: &[u8]) -> Steps {
        let first = murmur3_spark(key, 0);
        let step = u64::from(murmur3_spark(key, first));
        Steps { at: u64::from(first) + step, step }
    }

    #[inline(always)]
    fn number(self, walk: Steps) -> u64 {
        complement32(walk.at)
    }

    #[inline(always)]
    fn advance(self, walk: &mut Steps) {
        walk.at = walk.at.wrapping_add(walk.step);
    }
}

/// Version 2 of Spark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spark2 {
    pub seed: u32,
}

impl Rule for Spark2 {
    type Walk = Steps;

    #[inline(always)]
    fn start(self, key: &[u8]) -> Steps {
        let first = murmur3_spark(key, self.seed);
        let step = i64::from(murmur3_spark(key, first) as i32);
        let at = i64::from(first as i32) * i64::from(i32::MAX) + step;
        Steps { at: at as u64, step: step as u64 }
    }

    #[inline(always)]
    fn number(self, walk: Steps) -> u64 {
        let at = walk.at as i64;
        (at ^ at >> 63) as u64
    }

    #[inline(always)]
    fn advance(self, walk: &mut Steps) {
        walk.at = walk.at.wrapping_add(walk.step);
    }
}

/// DataSketches: XXH64 twice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Xx64 {
    pub seed: u64,
}

impl Rule for Xx64 {
    type Walk = Steps;

    #[inline(always)]
    fn start(self, key: &[u8]) -> Steps {
        let first = xxh64(key, self.seed);
        let step = xxh64(key, first);
        Steps { at: first.wrapping_add(step), step }
    }

    #[inline(always)]
    fn number(self, walk: Steps) -> u64 {
        walk.at >> 1
    }

    #[inline(always)]
    fn advance(self, walk: &mut Steps) {
        walk.at = walk.at.wrapping_add(walk.step);
    }
}

/// RedisBloom: `MurmurHash64A` twice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Murmur64;

impl Rule for Murmur64 {
    type Walk = Steps;

    #[inline(always)]
    fn start(self, key: &[u8]) -> Steps {
        let at = murmur64a(key, 0xc6a4_a793_5bd1_e995);
        Steps { at, step: murmur64a(key, at) }
    }

    #[inline(always)]
    fn number(self, walk: Steps) -> u64 {
        walk.at
    }

    #[inline(always)]
    fn advance(self, walk: &mut Steps) {
        walk.at = walk.at.wrapping_add(walk.step);
    }
}

/// A number of bits with its reciprocal, which replaces a division by two multiplications.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modulus {
    bits: u64,
    reciprocal: u64,
}

impl Modulus {
    /// `bits` must not be 0.
    pub fn new(bits: u64) -> Modulus {
        Modulus { bits, reciprocal: u64::MAX / bits }
    }

    pub fn bits(self) -> u64 {
        self.bits
    }

    /// The remainder of `x`.
    ///
    /// With r = floor((2^64 - 1) / m), which is at least (2^64 - m) / m, the estimate
    /// q = floor(x r / 2^64) is at most x / m and above x / m - 2. So q is the quotient or one less,
    /// and one subtraction corrects the remainder.
    #[inline(always)]
    pub fn of(self, x: u64) -> u64 {
        let quotient = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = x.wrapping_sub(quotient.wrapping_mul(self.bits));
        rest.min(rest.wrapping_sub(self.bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::fixed_cases())]

        #[test]
        fn remainders_are_exact(x: u64, bits: u64, shift in 0u32..64) {
            let bits: u64 = (bits >> shift).max(1);
            for x in [x, x >> shift, u64::MAX, u64::MAX - x % bits, bits, bits - 1, x - x % bits] {
                prop_assert_eq!(Modulus::new(bits).of(x), x % bits);
            }
        }

        #[test]
        fn the_prime_of_dcso_is_reduced_exactly(x: u64) {
            for x in [x, u64::MAX - x % 100] {
                prop_assert_eq!(Dcso::reduce(x), x % Dcso::MODULUS);
            }
        }
    }
}
