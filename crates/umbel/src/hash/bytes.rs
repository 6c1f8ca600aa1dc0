//! XXH3-64 of the short byte strings that most keys are, in a form that is compiled into the loop around it.
//!
//! Bit for bit what the general function gives, which takes over beyond 32 bytes. Written here because a call per
//! key is a large part of such a hash, and because what is inlined into a kernel uses the kernel's instructions.

use super::Digest;
use crate::TILE;
use std::hint::{black_box, select_unpredictable};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The first words of the default secret.
const SECRET: [u64; 9] = [
    0xbe4b_a423_396c_feb8,
    0x1cad_21f7_2c81_017c,
    0xdb97_9083_e96d_d4de,
    0x1f67_b3b7_a4a4_4072,
    0x78e5_c0cc_4ee6_79cb,
    0x2172_ffcc_7dd0_5a82,
    0x8e24_43f7_7446_08b8,
    0x4c26_3a81_e690_35e0,
    0xcb00_c391_bb52_283c,
];
const PRIME_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME_3: u64 = 0x1656_67b1_9e37_79f9;

/// XXH3-64 of `bytes`.
#[inline(always)]
pub(crate) fn xxh3_bytes(bytes: &[u8], seed: u64) -> u64 {
    match bytes.len() {
        9..=32 => from_9_to_32(bytes, seed),
        4..=8 => from_4_to_8(bytes, seed),
        0..=3 => up_to_3(bytes, seed),
        _ => xxh3_64_with_seed(bytes, seed),
    }
}

/// What mixes a keyed word of at most eight bytes.
#[inline(always)]
pub(super) const fn mix_short(mut h: u64, len: u64) -> u64 {
    const PRIME: u64 = 0x9fb2_1c65_1e98_df25;
    h ^= h.rotate_left(49) ^ h.rotate_left(24);
    h = h.wrapping_mul(PRIME);
    h ^= (h >> 35).wrapping_add(len);
    h = h.wrapping_mul(PRIME);
    h ^ (h >> 28)
}

/// What the word of a key of four to eight bytes is xored with.
#[inline(always)]
pub(super) const fn flip_short(seed: u64) -> u64 {
    let seed = seed ^ (((seed as u32).swap_bytes() as u64) << 32);
    (SECRET[1] ^ SECRET[2]).wrapping_sub(seed)
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Low and high half of the product, xored.
#[inline(always)]
fn fold_product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Two words under the `i`-th sixteen bytes of the secret.
#[inline(always)]
fn keyed([a, b]: [u64; 2], i: usize, seed: u64) -> [u64; 2] {
    [a ^ SECRET[2 * i].wrapping_add(seed), b ^ SECRET[2 * i + 1].wrapping_sub(seed)]
}

#[inline(always)]
fn avalanche(mut h: u64) -> u64 {
    h ^= h >> 37;
    h = h.wrapping_mul(0x1656_6791_9e37_79f9);
    h ^ (h >> 32)
}

#[inline(always)]
fn from_9_to_32(bytes: &[u8], seed: u64) -> u64 {
    let len = bytes.len();
    // Where there are fewer than sixteen bytes, the two inner words are some that nobody looks at.
    let head = [word(bytes, 0), word(bytes, 8.min(len - 8))];
    let tail = [word(bytes, len.max(16) - 16), word(bytes, len - 8)];
    hash_9_to_32(head, tail, len as u64, seed, fold_product)
}

/// Two cases of the algorithm, up to sixteen bytes and more. Both are computed and one is taken: the lengths of keys
/// lie on either side of sixteen, in no order that a branch could be predicted from.
#[inline(always)]
fn hash_9_to_32(head: [u64; 2], tail: [u64; 2], len: u64, seed: u64, fold: impl Fn(u64, u64) -> u64) -> u64 {
    let low = head[0] ^ (SECRET[3] ^ SECRET[4]).wrapping_add(seed);
    let high = tail[1] ^ (SECRET[5] ^ SECRET[6]).wrapping_sub(seed);
    let short = len.wrapping_add(low.swap_bytes()).wrapping_add(high).wrapping_add(fold(low, high));
    let [front, back] = [keyed(head, 0, seed), keyed(tail, 1, seed)].map(|[a, b]| fold(a, b));
    let long = len.wrapping_mul(PRIME_1).wrapping_add(front).wrapping_add(back);
    avalanche(select_unpredictable(len <= 16, short, long))
}

/// The ends of byte strings, gathered so that a tile of them is hashed in one loop. (Public only because a hidden
/// method of `Batch` mentions it; the module is private.)
pub struct Ends {
    head: [[u8; 16]; TILE],
    tail: [[u8; 16]; TILE],
    len: [u64; TILE],
}

impl Ends {
    /// Nothing gathered yet.
    pub(crate) const EMPTY: Ends = Ends { head: [[0; 16]; TILE], tail: [[0; 16]; TILE], len: [0; TILE] };

    /// Takes up to 64 strings that follow each other in `bytes`, which are at least sixteen: the first begins at
    /// `start`, and each ends at one of `stops`. Bit `i` of the answer is set if string `i` was not taken, because it
    /// is not of 9 to 32 bytes or lies too close to the ends of `bytes`: of a string under sixteen bytes, sixteen are
    /// copied all the same, some of them its neighbours', which nobody looks at.
    #[inline(always)]
    pub(crate) fn take<O: Copy + Into<u64>>(&mut self, bytes: &[u8], start: usize, stops: &[O]) -> u64 {
        let last = bytes.len() - 16;
        let (mut from, mut others) = (start, 0);
        let places = self.head.iter_mut().zip(&mut self.tail).zip(&mut self.len);
        for (i, (((head, tail), len), to)) in places.zip(stops).enumerate() {
            let to = (*to).into() as usize;
            let (here, there) = (from, to.wrapping_sub(16));
            *len = to.wrapping_sub(from) as u64;
            from = to;
            if (9..=32).contains(len) && here <= last && there <= last {
                head.copy_from_slice(&bytes[here..][..16]);
                tail.copy_from_slice(&bytes[there..][..16]);
            } else {
                others |= 1 << i;
            }
        }
        others
    }

    /// XXH3-64 of the strings taken, each at its place; other places are given something meaningless. The same as
    /// one by one, but with multiplications that SIMD has.
    #[inline(always)]
    pub(crate) fn hash(&self, seed: u64, digests: &mut [Digest]) {
        let words = |ends: &[u8; 16]| [word(ends, 0), word(ends, 8)];
        let thirty_two = black_box(32);
        let fold = |a, b| fold_product_by_halves(a, b, thirty_two);
        let ends = self.head.iter().zip(&self.tail).zip(&self.len);
        for (((head, tail), len), digest) in ends.zip(digests) {
            let h = hash_9_to_32(words(head), words(tail), *len, seed, fold);
            *digest = Digest::from_hash(h);
        }
    }
}

/// [`fold_product`] from 32-bit multiplications. The compiler must not know that the last shift is by 32: it would
/// recognise a 128-bit product and compute one after the other.
#[inline(always)]
fn fold_product_by_halves(a: u64, b: u64, thirty_two: u32) -> u64 {
    const LOW: u64 = 0xffff_ffff;
    let (low, high) = ((a & LOW) * (b & LOW), (a >> 32) * (b >> 32));
    let (left, right) = ((a >> 32) * (b & LOW), (a & LOW) * (b >> 32));
    let middle = (low >> 32) + (right & LOW) + left;
    (middle << 32 | low & LOW) ^ (high.wrapping_add(middle >> 32).wrapping_add(right >> thirty_two))
}

#[inline(always)]
fn from_4_to_8(bytes: &[u8], seed: u64) -> u64 {
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (first, last) = (half(0), half(bytes.len() - 4));
    mix_short((u64::from(first) << 32 | u64::from(last)) ^ flip_short(seed), bytes.len() as u64)
}

#[inline(always)]
fn up_to_3(bytes: &[u8], seed: u64) -> u64 {
    let mut h = match *bytes {
        [] => seed ^ SECRET[7] ^ SECRET[8],
        [first, .., last] | [first @ last] => {
            let middle = bytes[bytes.len() / 2];
            let combined = u32::from_le_bytes([last, bytes.len() as u8, first, middle]);
            let flip = (SECRET[0] ^ SECRET[0] >> 32) & 0xffff_ffff;
            u64::from(combined) ^ flip.wrapping_add(seed)
        }
    };
    h = (h ^ (h >> 33)).wrapping_mul(PRIME_2);
    h = (h ^ (h >> 29)).wrapping_mul(PRIME_3);
    h ^ (h >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_length_is_hashed_like_the_general_function() {
        let bytes: Vec<u8> = (0..300u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
        for seed in [0, 1, 0xff, 1 << 31, 1 << 32, 0x0123_4567_89ab_cdef, 1 << 63, u64::MAX] {
            for len in 0..=bytes.len() {
                assert_eq!(xxh3_bytes(&bytes[..len], seed), xxh3_64_with_seed(&bytes[..len], seed), "{len}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_hashed_like_the_general_function(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            seed: u64,
        ) {
            prop_assert_eq!(xxh3_bytes(&bytes, seed), xxh3_64_with_seed(&bytes, seed));
        }
    }
}
