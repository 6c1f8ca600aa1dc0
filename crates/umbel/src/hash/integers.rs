//! The hashes of an eight-byte key, computed in registers.
//!
//! The results equal those of the general functions for the eight little-endian bytes, bit for bit.
//! But this is straight-line arithmetic, which the compiler vectorizes inside the loop of a kernel.
//!
//! # References
//!
//! * Y. Collet. *xxHash: extremely fast hash algorithm.* Source code and specification, repository
//!   `Cyan4973/xxHash`. XXH3
//! * J.-P. Aumasson and D. J. Bernstein. *SipHash: a fast short-input PRF.* INDOCRYPT 2012.
//!   `AB12`

/// Computes XXH3-64 of the eight little-endian bytes of `value`.
#[inline(always)]
pub(crate) const fn xxh3_u64(value: u64, seed: u64) -> u64 {
    /// Bytes 8..16 of the default secret, xored with bytes 16..24.
    const FLIP: u64 = 0x1cad_21f7_2c81_017c ^ 0xdb97_9083_e96d_d4de;
    const PRIME: u64 = 0x9fb2_1c65_1e98_df25;
    // The path of XXH3 for 4 to 8 bytes. It reads the first and the last four bytes of the input,
    // here the low and the high half of `value`, and puts the first four on top:
    //
    //   value           [ high | low  ]
    //   rotate_left(32) [ low  | high ]
    let seed = seed ^ (((seed as u32).swap_bytes() as u64) << 32);
    let mut h = value.rotate_left(32) ^ FLIP.wrapping_sub(seed);
    h ^= h.rotate_left(49) ^ h.rotate_left(24);
    h = h.wrapping_mul(PRIME);
    h ^= (h >> 35).wrapping_add(8);
    h = h.wrapping_mul(PRIME);
    h ^ (h >> 28)
}

/// Computes SipHash-1-3 of the eight little-endian bytes of `value`.
#[cfg(feature = "secrets")]
#[inline(always)]
pub(crate) const fn sip13_u64(value: u64, k0: u64, k1: u64) -> u64 {
    // SipHash-1-3: for each block of eight bytes, xor it into v3, do one round, and xor it into v0.
    // There are two blocks, the value and the length; three more rounds finish.
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    v[3] ^= value;
    v = sip_round(v);
    v[0] ^= value;
    // The last block holds the length, eight, in its top byte and no further input.
    let last = 8 << 56;
    v[3] ^= last;
    v = sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    v = sip_round(sip_round(sip_round(v)));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

#[cfg(feature = "secrets")]
#[inline(always)]
const fn sip_round([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::fixed_cases())]
        #[test]
        fn the_fast_paths_equal_the_general_functions(value: u64, seed: u64, k0: u64, k1: u64) {
            let bytes = value.to_le_bytes();
            prop_assert_eq!(xxh3_u64(value, seed), xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, seed));
            let sip = siphasher::sip::SipHasher13::new_with_keys(k0, k1).hash(&bytes);
            prop_assert_eq!(sip13_u64(value, k0, k1), sip);
        }
    }
}
