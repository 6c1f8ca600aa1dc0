//! Austin Appleby's MurmurHash in the three variants that the literature on Bloom filters uses.
//!
//! They are here to reproduce published filters bit for bit, not to be fast or safe: none resists
//! an adversary who chooses the keys, with or without a secret seed. Words are read little-endian
//! on every platform, so a key has the same hash everywhere. All arithmetic is modulo the word
//! size.
//!
//! Programs confuse the versions: more than one function called "murmur2" is really
//! `MurmurHash3_x86_32`. The hash of the empty key tells them apart.
//!
//! ```
//! use umbel::literature::murmur::{murmur2, murmur3_x86_32};
//!
//! assert_eq!(murmur2(b"", 1), 0x5bd1_5e36);
//! assert_eq!(murmur3_x86_32(b"", 1), 0x514e_28b7);
//! ```
//!
//! # References
//!
//! * A. Appleby. *MurmurHash2 and MurmurHash3.* Source code, repository `aappleby/smhasher`.
//!   `Murmur`

/// Computes the 32-bit MurmurHash2 of a key.
///
/// The length enters modulo 2^32, as in the original, whose length is a 32-bit integer.
///
/// ```
/// use umbel::literature::murmur::murmur2;
///
/// assert_eq!(murmur2(b"bloom", 0), 0x0be3_627e);
/// ```
pub fn murmur2(key: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;

    let (words, tail) = key.as_chunks::<4>();
    let mut h = seed ^ key.len() as u32;
    for &word in words {
        let mut x = u32::from_le_bytes(word).wrapping_mul(M);
        x = (x ^ (x >> 24)).wrapping_mul(M);
        h = h.wrapping_mul(M) ^ x;
    }
    // Unlike in version 3, an absent tail differs from a tail of zeros, because of the
    // multiplication.
    if !tail.is_empty() {
        h = (h ^ u32::from_le_bytes(zero_padded(tail))).wrapping_mul(M);
    }
    h = (h ^ (h >> 13)).wrapping_mul(M);
    h ^ (h >> 15)
}

/// Computes the `MurmurHash3_x86_32` of a key.
///
/// The length enters modulo 2^32, as in the original, whose length is a 32-bit integer.
///
/// ```
/// use umbel::literature::murmur::murmur3_x86_32;
///
/// assert_eq!(murmur3_x86_32(b"bloom", 0), 0x48ad_2c42);
/// ```
pub fn murmur3_x86_32(key: &[u8], seed: u32) -> u32 {
    let scramble = |word: [u8; 4]| {
        let x = u32::from_le_bytes(word).wrapping_mul(0xcc9e_2d51);
        x.rotate_left(15).wrapping_mul(0x1b87_3593)
    };

    let (words, tail) = key.as_chunks::<4>();
    let mut h = seed;
    for &word in words {
        h = (h ^ scramble(word)).rotate_left(13);
        h = h.wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    // An empty tail scrambles to zero and changes nothing.
    h ^= scramble(zero_padded(tail));
    avalanche32(h ^ key.len() as u32)
}

/// Computes the `MurmurHash3_x64_128` of a key, as two 64-bit halves in the order in which the
/// original writes them.
///
/// ```
/// use umbel::literature::murmur::murmur3_x64_128;
///
/// assert_eq!(murmur3_x64_128(b"bloom", 0), (0x270d_d9a5_1eeb_0832, 0xda26_9d58_ac07_a707));
/// ```
pub fn murmur3_x64_128(key: &[u8], seed: u32) -> (u64, u64) {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let scramble = |block: [u8; 16]| {
        let both = u128::from_le_bytes(block);
        let (first, second) = (both as u64, (both >> 64) as u64);
        (
            first.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2),
            second.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1),
        )
    };

    let (blocks, tail) = key.as_chunks::<16>();
    let (mut h1, mut h2) = (u64::from(seed), u64::from(seed));
    for &block in blocks {
        let (x1, x2) = scramble(block);
        h1 = (h1 ^ x1).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ x2).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // Absent halves of the tail scramble to zero and change nothing.
    let (x1, x2) = scramble(zero_padded(tail));
    h1 ^= x1 ^ key.len() as u64;
    h2 ^= x2 ^ key.len() as u64;

    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = avalanche64(h1);
    h2 = avalanche64(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2)
}

/// The finaliser `fmix32` of version 3: every input bit flips every output bit with probability one
/// half.
fn avalanche32(mut h: u32) -> u32 {
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

/// The finaliser `fmix64` of version 3.
fn avalanche64(mut h: u64) -> u64 {
    h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}

/// Returns the last, incomplete block of a key, padded with zeros.
fn zero_padded<const N: usize>(tail: &[u8]) -> [u8; N] {
    let mut block = [0; N];
    block[..tail.len()].copy_from_slice(tail);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Input, MurmurHash2 with seeds 0 and 1, `MurmurHash3_x86_32` with seeds 0 and 1,
    /// `MurmurHash3_x64_128`.
    type Vector = (&'static str, [u32; 2], [u32; 2], (u64, u64));

    #[rustfmt::skip]
    const VECTORS: [Vector; 6] = [
        ("", [0x00000000, 0x5bd15e36], [0x00000000, 0x514e28b7], (0, 0)),
        ("a", [0x92685f5e, 0x2550b18c], [0x3c2569b2, 0x588adce8], (0x85555565f6597889, 0xe6b53a48510e895a)),
        ("abc", [0x13577c9b, 0x60a4fcc1], [0xb3dd93fa, 0xaa75e9ff], (0xb4963f3f3fad7867, 0x3ba2744126ca2d52)),
        ("bloom", [0x0be3627e, 0x4fbeaae1], [0x48ad2c42, 0xf441e029], (0x270dd9a51eeb0832, 0xda269d58ac07a707)),
        ("hello, world", [0x4b4c9d80, 0xf03d2350], [0x149bbb7f, 0x6f5cb2e9],
            (0x342fac623a5ebc8e, 0x4cdcbc079642414d)),
        ("The quick brown fox jumps over the lazy dog", [0x212729d0, 0x1e1049e7], [0x2e4ff723, 0x78e69e27],
            (0xe34bbc7bbc071b6c, 0x7a433ca9c49a9347)),
    ];

    #[test]
    fn known_vectors() {
        for (input, two, three, wide) in VECTORS {
            let key = input.as_bytes();
            assert_eq!([murmur2(key, 0), murmur2(key, 1)], two, "MurmurHash2 of {input:?}");
            assert_eq!(
                [murmur3_x86_32(key, 0), murmur3_x86_32(key, 1)],
                three,
                "MurmurHash3_x86_32 of {input:?}"
            );
            assert_eq!(murmur3_x64_128(key, 0), wide, "MurmurHash3_x64_128 of {input:?}");
        }
    }

    /// Computes the value by which the author of MurmurHash identifies a correct implementation:
    /// the keys [], [0], [0, 1], ... up to 255 bytes are hashed, each with its own seed, and all
    /// results are hashed once more. One wrong tail, block or seed anywhere changes the value.
    fn verification_value<const N: usize>(hash: impl Fn(&[u8], u32) -> [u8; N]) -> u32 {
        let key: Vec<u8> = (0..=255).collect();
        let results: Vec<u8> =
            (0..256).flat_map(|length| hash(&key[..length], 256 - length as u32)).collect();
        u32::from_le_bytes(*hash(&results, 0).first_chunk().expect("at least four bytes"))
    }

    #[test]
    fn every_length_up_to_255_matches_the_author() {
        assert_eq!(verification_value(|key, seed| murmur2(key, seed).to_le_bytes()), 0x2786_4c1e);
        assert_eq!(verification_value(|key, seed| murmur3_x86_32(key, seed).to_le_bytes()), 0xb0f5_7ee3);
        let wide = |key: &[u8], seed| {
            let (first, second) = murmur3_x64_128(key, seed);
            (u128::from(first) | u128::from(second) << 64).to_le_bytes()
        };
        assert_eq!(verification_value(wide), 0x6384_ba69);
    }

    #[test]
    fn zeros_at_the_end_count() {
        for length in 0..=40 {
            let zeros = [0; 41];
            let (short, long) = (&zeros[..length], &zeros[..length + 1]);
            assert_ne!(murmur2(short, 7), murmur2(long, 7), "length {length}");
            assert_ne!(murmur3_x86_32(short, 7), murmur3_x86_32(long, 7), "length {length}");
            assert_ne!(murmur3_x64_128(short, 7), murmur3_x64_128(long, 7), "length {length}");
        }
    }
}
