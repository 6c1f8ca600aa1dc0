//! XXH3-64 of a tile of byte strings of 9 to 32 bytes.
//!
//! The results equal those of the general function bit for bit. That function takes one path for 9
//! to 16 bytes, with one 128-bit product, and another for 17 to 32 bytes, with two. If a tile has
//! strings of both lengths, the branch between the paths cannot be predicted. Here both are
//! computed for every string, in one loop without branches that uses the 32-bit multiplications of
//! SIMD, and one result is selected.
//!
//! Both paths read only the first and the last sixteen bytes of a string, its *ends*, which are
//! gathered first:
//!
//! ```text
//! a string of 20 bytes: the ends overlap, and all four words are used
//!
//!   0       8       16  20
//!   [head 0][head 1]
//!       [tail 0][tail 1]
//!
//! a string of 11 bytes: the ends reach into its neighbours, and only head 0 and tail 1 are used
//!
//!        0       8  11
//!        [head 0][head 1]
//!   [tail 0][tail 1]
//! ```
//!
//! # References
//!
//! * Y. Collet. *xxHash: extremely fast hash algorithm.* Source code and specification, repository
//!   `Cyan4973/xxHash`. XXH3

use super::Digest;
use crate::TILE;
use crate::key::Offset;
use std::hint::{black_box, select_unpredictable};

/// The first seven words of the default secret.
const SECRET: [u64; 7] = [
    0xbe4b_a423_396c_feb8,
    0x1cad_21f7_2c81_017c,
    0xdb97_9083_e96d_d4de,
    0x1f67_b3b7_a4a4_4072,
    0x78e5_c0cc_4ee6_79cb,
    0x2172_ffcc_7dd0_5a82,
    0x8e24_43f7_7446_08b8,
];

/// The first and the last sixteen bytes of each string of a tile. The hash of a string depends only
/// on these and its length. (Public only because a hidden method of `Batch` mentions it; the module
/// is private.)
pub struct Ends {
    head: [[u8; 16]; TILE],
    tail: [[u8; 16]; TILE],
    len: [u64; TILE],
}

impl Ends {
    /// The initial state, before any strings are gathered.
    pub(crate) const EMPTY: Ends = Ends { head: [[0; 16]; TILE], tail: [[0; 16]; TILE], len: [0; TILE] };

    /// Gathers the ends of up to 64 consecutive strings in `bytes`, which must have at least
    /// sixteen bytes. The first string begins at `start`. Each string ends `gap` bytes before one
    /// of `stops`, where the next one begins.
    ///
    /// Bit `i` of the answer is set if string `i` was not taken, because it does not have 9 to 32
    /// bytes or lies too close to the ends of `bytes`. Sixteen bytes are copied even of a shorter
    /// string; the bytes of its neighbours among them are not used.
    #[inline(always)]
    pub(crate) fn take<O: Offset>(&mut self, bytes: &[u8], start: usize, stops: &[O], gap: usize) -> u64 {
        let last = bytes.len() - 16;
        let (mut from, mut others) = (start, 0);
        let places = self.head.iter_mut().zip(&mut self.tail).zip(&mut self.len);
        for (i, (((head, tail), len), to)) in places.zip(stops).enumerate() {
            let next = to.bytes() as usize;
            let to = next.wrapping_sub(gap);
            let (first, second) = (from, to.wrapping_sub(16));
            *len = to.wrapping_sub(from) as u64;
            from = next;
            if (9..=32).contains(len) && first <= last && second <= last {
                head.copy_from_slice(&bytes[first..][..16]);
                tail.copy_from_slice(&bytes[second..][..16]);
            } else {
                others |= 1 << i;
            }
        }
        others
    }

    /// Computes XXH3-64 of the strings taken. The digests of other strings are meaningless.
    #[inline(always)]
    pub(crate) fn hash(&self, seed: u64, digests: &mut [Digest]) {
        let thirty_two = black_box(32);
        for (((head, tail), len), digest) in self.head.iter().zip(&self.tail).zip(&self.len).zip(digests) {
            *digest = Digest::from_hash(hash(words(head), words(tail), *len, seed, thirty_two));
        }
    }
}

#[inline(always)]
fn words(bytes: &[u8; 16]) -> [u64; 2] {
    [0, 8].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")))
}

/// Computes XXH3-64 of one string of 9 to 32 bytes from its ends. S is the secret, and `fold` xors
/// the two halves of a 128-bit product:
///
/// ```text
///  9 to 16 bytes    low  = head0 ^ ((S3 ^ S4) + seed)      len + swap_bytes(low) + high + fold(low, high)
///                   high = tail1 ^ ((S5 ^ S6) - seed)
/// 17 to 32 bytes    len * PRIME + fold(head0 ^ (S0 + seed), head1 ^ (S1 - seed))
///                               + fold(tail0 ^ (S2 + seed), tail1 ^ (S3 - seed))
/// ```
///
/// The last three lines of the function are the avalanche, which both paths share.
#[inline(always)]
fn hash(head: [u64; 2], tail: [u64; 2], len: u64, seed: u64, thirty_two: u32) -> u64 {
    let up = |i: usize, word: u64| word ^ SECRET[i].wrapping_add(seed);
    let down = |i: usize, word: u64| word ^ SECRET[i].wrapping_sub(seed);
    let fold = |a, b| fold_product(a, b, thirty_two);
    // Nine to sixteen bytes.
    let low = head[0] ^ (SECRET[3] ^ SECRET[4]).wrapping_add(seed);
    let high = tail[1] ^ (SECRET[5] ^ SECRET[6]).wrapping_sub(seed);
    let short = len.wrapping_add(low.swap_bytes()).wrapping_add(high).wrapping_add(fold(low, high));
    // Seventeen to thirty-two.
    let long = len
        .wrapping_mul(0x9e37_79b1_85eb_ca87)
        .wrapping_add(fold(up(0, head[0]), down(1, head[1])))
        .wrapping_add(fold(up(2, tail[0]), down(3, tail[1])));
    // A plain `if` is compiled to a loop with branches.
    let mut h = select_unpredictable(len <= 16, short, long);
    h ^= h >> 37;
    h = h.wrapping_mul(0x1656_6791_9e37_79f9);
    h ^ (h >> 32)
}

/// Returns the xor of the low and the high half of a product, computed with 32-bit multiplications.
/// The compiler must not know that the last shift is by 32: it would recognise a 128-bit product,
/// which SIMD does not have, and compute the products one by one.
#[inline(always)]
fn fold_product(a: u64, b: u64, thirty_two: u32) -> u64 {
    const LOW: u64 = 0xffff_ffff;
    // The product of a = (a1, a0) and b = (b1, b0), in columns of 32 bits:
    //
    //   |   3   |   2   |   1   |   0   |
    //                   |  low = a0 b0  |
    //           | left = a1 b0  |
    //           | right = a0 b1 |
    //   | high = a1 b1  |
    //
    // `middle` is the sum in column 1, with `left` as a whole: at most 2 (2^32 - 1) + (2^32 - 1)^2
    // = 2^64 - 1, so it does not overflow. The upper halves of `middle` and of `right` belong to
    // the columns of `high`.
    let (low, high) = ((a & LOW) * (b & LOW), (a >> 32) * (b >> 32));
    let (left, right) = ((a >> 32) * (b & LOW), (a & LOW) * (b >> 32));
    let middle = (low >> 32) + (right & LOW) + left;
    (middle << 32 | low & LOW) ^ (high.wrapping_add(middle >> 32).wrapping_add(right >> thirty_two))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    /// Hashes consecutive strings of these lengths; `None` for those that are not taken.
    fn hashes(bytes: &[u8], lengths: &[usize], seed: u64) -> Vec<Option<u64>> {
        let stops: Vec<u64> = lengths
            .iter()
            .scan(0, |end, len| {
                *end += *len as u64;
                Some(*end)
            })
            .collect();
        let (mut ends, mut digests) = (Ends::EMPTY, vec![Digest::default(); lengths.len()]);
        let others = ends.take(bytes, 0, &stops, 0);
        ends.hash(seed, &mut digests);
        digests.iter().enumerate().map(|(i, digest)| (others >> i & 1 == 0).then_some(digest.get())).collect()
    }

    #[test]
    fn every_length_is_hashed_like_the_general_function() {
        let bytes: Vec<u8> = (0..400u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
        for seed in [0, 1, 0xff, 1 << 31, 1 << 32, 0x0123_4567_89ab_cdef, 1 << 63, u64::MAX] {
            for len in 0..=300 {
                let string = &bytes[40..40 + len];
                let expected = (9..=32).contains(&len).then(|| xxh3_64_with_seed(string, seed));
                assert_eq!(hashes(&bytes, &[40, len, 1], seed)[1], expected, "{len} bytes");
            }
        }
    }

    #[test]
    fn strings_near_the_ends_of_the_buffer_are_skipped() {
        let bytes = [7; 40];
        let taken = |lengths| hashes(&bytes, lengths, 3).iter().map(Option::is_some).collect::<Vec<_>>();
        assert_eq!(taken(&[9, 9, 9, 13]), [false, true, true, false]);
        assert_eq!(taken(&[16, 24]), [true, true]);
        assert_eq!(taken(&[32, 8]), [true, false]);
    }

    proptest! {
        #![proptest_config(crate::fixed_cases())]
        #[test]
        fn any_tile_is_hashed_like_its_strings(
            bytes in proptest::collection::vec(any::<u8>(), 40 * TILE),
            lengths in proptest::collection::vec(0..40usize, 0..=TILE),
            seed: u64,
        ) {
            let mut rest = &bytes[..];
            for (len, hash) in lengths.iter().zip(hashes(&bytes, &lengths, seed)) {
                let (string, more) = rest.split_at(*len);
                prop_assert!(hash.is_none_or(|hash| hash == xxh3_64_with_seed(string, seed)));
                rest = more;
            }
        }
    }
}
