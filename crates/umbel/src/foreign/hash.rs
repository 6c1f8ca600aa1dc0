//! The hash functions of the formats that the rest of the library does not use.
//!
//! # References
//!
//! * G. Fowler, L. C. Noll and K.-P. Vo. *The FNV non-cryptographic hash algorithm.*
//!   Internet-Draft. FNV
//! * A. Appleby. *MurmurHash2 and MurmurHash3.* Source code, repository `aappleby/smhasher`.
//!   `Murmur`

use crate::TILE;
use crate::key::{START_BYTES, Starts};

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// The 64-bit FNV-1 hash: multiply, then xor.
#[inline(always)]
pub(super) fn fnv1(key: &[u8]) -> u64 {
    continue_fnv1(FNV_OFFSET, key)
}

/// Adds bytes to an FNV-1 hash.
#[inline(always)]
pub(super) fn continue_fnv1(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| hash.wrapping_mul(FNV_PRIME) ^ u64::from(byte))
}

/// The number of keys that [`fnv1_tile`] hashes in step: four registers of AVX-512.
const LANES: usize = 32;

/// Computes the FNV-1 hashes of the starts of a tile of keys.
///
/// Each byte needs the hash of the bytes before it, a multiplication, and the ends of keys cannot be
/// predicted. One key after the other would take five cycles for each byte, and about twenty for
/// each end. So a byte of 32 keys is added at a time, to all hashes or none: those of keys that have
/// ended are put back.
///
/// ```text
///            lane 0   lane 1   lane 2   ...
/// words      "ant"    "beetle" "cat"            shifted by a byte in each step
/// step 0      a        b        c
/// step 1      n        e        a
/// step 2      t        e        t
/// step 3      -        t        -               `hash` keeps its value
/// ```
#[inline(always)]
pub(super) fn fnv1_tile(starts: &Starts, hashes: &mut [u64; TILE]) {
    for first in (0..TILE).step_by(LANES) {
        let len: &[u64; LANES] = starts.len[first..].first_chunk().expect("a whole number of groups");
        let longest = len.iter().fold(0, |longest, len| longest.max(*len)).min(START_BYTES as u64);
        let mut hash = [FNV_OFFSET; LANES];
        for (w, words) in starts.words[..longest.div_ceil(8) as usize].iter().enumerate() {
            let mut words: [u64; LANES] = *words[first..].first_chunk().expect("a whole number of groups");
            for at in 8 * w as u64..8 * w as u64 + 8 {
                for lane in 0..LANES {
                    let next = hash[lane].wrapping_mul(FNV_PRIME) ^ (words[lane] & 0xff);
                    hash[lane] = if at < len[lane] { next } else { hash[lane] };
                    words[lane] >>= 8;
                }
            }
        }
        hashes[first..first + LANES].copy_from_slice(&hash);
    }
}

/// `MurmurHash64A`, the 64-bit variant of MurmurHash2 for 64-bit processors.
#[inline(always)]
pub(super) fn murmur64a(key: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let (words, tail) = key.as_chunks::<8>();
    let mut h = seed ^ (key.len() as u64).wrapping_mul(M);
    for word in words {
        let x = u64::from_le_bytes(*word).wrapping_mul(M);
        h = (h ^ (x ^ (x >> 47)).wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        h = (h ^ tail.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))).wrapping_mul(M);
    }
    h = (h ^ (h >> 47)).wrapping_mul(M);
    h ^ (h >> 47)
}

/// Spark's variant of `MurmurHash3_x86_32`, which mixes each byte of the tail, widened with its
/// sign, as if it were a whole word.
#[inline(always)]
pub(super) fn murmur3_spark(key: &[u8], seed: u32) -> u32 {
    let mix = |h: u32, word: u32| {
        let x = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        (h ^ x).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    };
    let (words, tail) = key.as_chunks::<4>();
    let h = words.iter().fold(seed, |h, word| mix(h, u32::from_le_bytes(*word)));
    let mut h = tail.iter().fold(h, |h, byte| mix(h, i32::from(*byte as i8) as u32));
    h ^= key.len() as u32;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_vectors() {
        // From the FNV pages: the empty key and "foobar" by FNV-1.
        assert_eq!((fnv1(b""), fnv1(b"foobar")), (0xcbf2_9ce4_8422_2325, 0x340d_8765_a4dd_a9c2));
        // Whole words are mixed as in the original, and so is a tail of nothing.
        for key in [&b""[..], b"abcd", b"abcdefgh"] {
            assert_eq!(murmur3_spark(key, 7), crate::literature::murmur::murmur3_x86_32(key, 7));
        }
        assert_ne!(murmur3_spark(b"abc", 7), crate::literature::murmur::murmur3_x86_32(b"abc", 7));
    }

    /// As in `literature::murmur`: one number covers every length up to 255 bytes.
    #[test]
    fn murmur64a_matches_its_author() {
        let key: Vec<u8> = (0..=255).collect();
        let results: Vec<u8> = (0..256)
            .flat_map(|length| murmur64a(&key[..length], 256 - length as u64).to_le_bytes())
            .collect();
        assert_eq!(murmur64a(&results, 0) as u32, 0x1f0d_3804);
    }
}
