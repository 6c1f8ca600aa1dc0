//! The physical limit: the work that no lookup can avoid, and nothing else.
//!
//! Each key is hashed, and one 64-byte line is fetched for it from an array as large as a blocked
//! filter. This is done in tiles: hash a tile of keys, prefetch its lines, load its lines. A filter
//! that touches one line per key and also tests bits can approach this time but cannot beat it.
//!
//! As a yardstick, it is compiled for the best instructions of the machine. The loop is written
//! once and instantiated in one `#[target_feature]` shell per level. This is the only file of the
//! benchmark with `unsafe`.
#![allow(unsafe_code, reason = "prefetch, unchecked line loads and calls into target-feature shells")]

use crate::contestants::{Contestant, Job, Shared};
use crate::keys::{Key, List};
use std::hint::{black_box, select_unpredictable};
use umbel::memory::{CacheLine, Words};
use umbel::sizing::BlockedParams;

/// The number of keys whose lines are in flight at once.
const TILE: usize = 64;
/// How far ahead string bytes are prefetched: between two hash loops the hardware prefetcher falls
/// behind.
const BYTES_AHEAD: usize = 2048;

/// Returns the number of lines in the array: as many as a blocked filter for the same job has.
pub fn lines(n: u64, p: f64) -> u64 {
    BlockedParams::for_capacity(n, p).expect("sizes that peers accept").lines
}

#[derive(Clone, Copy)]
enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
        {
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            return if wide { Level::Avx512 } else { Level::Avx2 };
        }
        Level::Portable
    }
}

/// The array, once it is allocated.
#[derive(Default)]
pub struct Limit {
    /// The same kind of memory that umbel's filters use: the same alignment, the same pages.
    words: Option<Words>,
}

impl Limit {
    fn lines(&self) -> &[CacheLine] {
        self.words.as_ref().expect("prepared before use").lines()
    }
}

impl<K: Hashed + ?Sized> Contestant<K> for Limit {
    fn name(&self) -> &'static str {
        "physical limit"
    }

    fn is_filter(&self) -> bool {
        false
    }

    fn prepare(&mut self, job: &Job) {
        self.words = None;
        let mut words = Words::zeroed(lines(job.n, job.p)).expect("memory for the physical limit");
        words.words_mut().fill(0xa5a5_a5a5_a5a5_a5a5);
        self.words = Some(words);
    }

    fn insert(&mut self, _: K::List<'_>) {}

    /// Returns a checksum instead of a count: it only has to depend on every line.
    #[inline(never)]
    fn count(&self, keys: K::List<'_>) -> u64 {
        let lines = self.lines();
        assert!(u32::try_from(lines.len()).is_ok_and(|count| count > 0), "the array has 1 to 2^32 - 1 lines");
        match Level::detect() {
            Level::Portable => walk::<K, CacheLine>(lines, keys),
            // SAFETY: `Level::detect` has seen these features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { walk_avx2::<K>(lines, keys) },
            // SAFETY: `Level::detect` has seen these features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { walk_avx512::<K>(lines, keys) },
        }
    }

    fn bits(&self) -> u64 {
        self.lines().len() as u64 * 512
    }

    fn shared(&self) -> Option<&dyn Shared<K>> {
        None
    }

    fn release(&mut self) {
        self.words = None;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn walk_avx2<K: Hashed + ?Sized>(lines: &[CacheLine], keys: K::List<'_>) -> u64 {
    walk::<K, x86::Halves>(lines, keys)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,avx512f,avx512dq,avx512vl")]
fn walk_avx512<K: Hashed + ?Sized>(lines: &[CacheLine], keys: K::List<'_>) -> u64 {
    walk::<K, x86::Halves>(lines, keys)
}

#[inline(always)]
fn walk<K: Hashed + ?Sized, S: Sum>(lines: &[CacheLine], keys: K::List<'_>) -> u64 {
    let mut sum = S::zero();
    let whole = keys.len() - keys.len() % TILE;
    let mut start = 0;
    while start < whole {
        // A slice of constant length: its hash loop is unrolled and vectorised.
        walk_tile::<K, S>(lines, keys.slice(start..start + TILE), &mut sum);
        start += TILE;
    }
    walk_tile::<K, S>(lines, keys.slice(whole..keys.len()), &mut sum);
    sum.fold()
}

#[inline(always)]
fn walk_tile<K: Hashed + ?Sized, S: Sum>(lines: &[CacheLine], keys: K::List<'_>, sum: &mut S) {
    let count = lines.len() as u64;
    let mut places = [0u32; TILE];
    for (place, key) in places.iter_mut().zip(keys.iter()) {
        // The upper half of the hash times the number of lines, shifted: below the number of lines.
        *place = (((key.inline_xxh3() >> 32) * count) >> 32) as u32;
    }
    // In memory, not in vector registers: extracting the places one by one from registers is slower
    // than loading them.
    let places = &black_box(&places)[..keys.len()];
    for &place in places {
        prefetch(lines.as_ptr().wrapping_add(place as usize).cast());
    }
    for &place in places {
        // SAFETY: `place` is below the number of lines (see above).
        sum.add(unsafe { lines.get_unchecked(place as usize) });
    }
}

/// The XOR of all lines so far. Written separately for each level, because the compiler would turn
/// a loop over lines of words inside out, into gathers of single words.
trait Sum {
    fn zero() -> Self;
    fn add(&mut self, line: &CacheLine);
    fn fold(self) -> u64;
}

impl Sum for CacheLine {
    #[inline(always)]
    fn zero() -> Self {
        CacheLine([0; 8])
    }

    #[inline(always)]
    fn add(&mut self, line: &CacheLine) {
        for (word, more) in self.0.iter_mut().zip(line.0) {
            *word ^= more;
        }
    }

    #[inline(always)]
    fn fold(self) -> u64 {
        self.0.iter().fold(0, |all, word| all ^ word)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{CacheLine, Sum};
    use std::arch::x86_64::*;

    /// A line in two registers. Used only inside the AVX2 shell.
    pub struct Halves(__m256i, __m256i);

    impl Sum for Halves {
        #[inline(always)]
        fn zero() -> Self {
            // SAFETY: only called inside the AVX2 shell.
            unsafe { Halves(_mm256_setzero_si256(), _mm256_setzero_si256()) }
        }

        #[inline(always)]
        fn add(&mut self, line: &CacheLine) {
            let half = (&raw const *line).cast::<__m256i>();
            // SAFETY: only called inside the AVX2 shell; a line is two halves, aligned to 64 bytes.
            unsafe {
                self.0 = _mm256_xor_si256(self.0, _mm256_load_si256(half));
                self.1 = _mm256_xor_si256(self.1, _mm256_load_si256(half.add(1)));
            }
        }

        #[inline(always)]
        fn fold(self) -> u64 {
            let mut line = CacheLine([0; 8]);
            let half = (&raw mut line).cast::<__m256i>();
            // SAFETY: only called inside the AVX2 shell; a line is two halves, aligned to 64 bytes.
            unsafe {
                _mm256_store_si256(half, self.0);
                _mm256_store_si256(half.add(1), self.1);
            }
            line.fold()
        }
    }
}

/// Prefetches the cache line at `address`, which need not be valid.
#[inline(always)]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch returns no data and does not fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// XXH3-64 in a form that is inlined into the surrounding loop.
pub trait Hashed: Key {
    fn inline_xxh3(&self) -> u64;
}

impl Hashed for u64 {
    #[inline(always)]
    fn inline_xxh3(&self) -> u64 {
        xxh3_8(*self)
    }
}

impl Hashed for [u8] {
    #[inline(always)]
    fn inline_xxh3(&self) -> u64 {
        prefetch(self.as_ptr().wrapping_add(BYTES_AHEAD));
        match self.len() {
            16..=32 => xxh3_16_to_32(self),
            _ => self.xxh3(),
        }
    }
}

/// Returns the XXH3-64, seed 0, of the eight little-endian bytes of `key`: the algorithm's case for
/// 4 to 8 bytes, which for eight swaps the two halves of the key.
#[inline(always)]
fn xxh3_8(key: u64) -> u64 {
    // Words 1 and 2 of the default secret, combined.
    const FLIP: u64 = 0x1cad_21f7_2c81_017c ^ 0xdb97_9083_e96d_d4de;
    const PRIME: u64 = 0x9fb2_1c65_1e98_df25;
    let mut h = key.rotate_left(32) ^ FLIP;
    h ^= h.rotate_left(49) ^ h.rotate_left(24);
    h = h.wrapping_mul(PRIME);
    h ^= (h >> 35).wrapping_add(8);
    h = h.wrapping_mul(PRIME);
    h ^ (h >> 28)
}

/// Returns the XXH3-64, seed 0, of 16 to 32 bytes. The algorithm treats 16 bytes and longer keys
/// differently; both cases are computed and one result is selected, because a branch on the length
/// of random strings is mispredicted too often.
#[inline(always)]
fn xxh3_16_to_32(bytes: &[u8]) -> u64 {
    const SECRET: [u64; 4] =
        [0xbe4b_a423_396c_feb8, 0x1cad_21f7_2c81_017c, 0xdb97_9083_e96d_d4de, 0x1f67_b3b7_a4a4_4072];
    // Words 3 and 4, and 5 and 6, of the default secret, combined.
    const FLIPS: [u64; 2] = [0x6782_737b_ea42_39b9, 0xaf56_bc3b_0996_523a];
    const PRIME: u64 = 0x9e37_79b1_85eb_ca87;
    let length = bytes.len() as u64;
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let folded = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let (first, second) = (word(0), word(8));
    let (third, last) = (word(bytes.len() - 16), word(bytes.len() - 8));
    let (low, high) = (first ^ FLIPS[0], last ^ FLIPS[1]);
    let short = length.wrapping_add(low.swap_bytes()).wrapping_add(high).wrapping_add(folded(low, high));
    let long = length
        .wrapping_mul(PRIME)
        .wrapping_add(folded(first ^ SECRET[0], second ^ SECRET[1]))
        .wrapping_add(folded(third ^ SECRET[2], last ^ SECRET[3]));
    let mut h = select_unpredictable(length == 16, short, long);
    h ^= h >> 37;
    h = h.wrapping_mul(0x1656_6791_9e37_79f9);
    h ^ (h >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Store, Workload};

    #[test]
    fn the_inline_hash_is_xxh3() {
        let work = Workload::<u64>::new(10_000, 1);
        for key in [0, 1, 255, 1 << 32, u64::MAX].iter().chain(work.members.list()) {
            assert_eq!(key.inline_xxh3(), key.xxh3());
        }
        let bytes: Vec<u8> = work.members.list()[..32].iter().map(|&key| key as u8).collect();
        for length in 0..=32 {
            assert_eq!(bytes[..length].inline_xxh3(), bytes[..length].xxh3(), "{length} bytes");
        }
    }

    /// Every level visits the same lines, and an incomplete last tile loses no key.
    #[test]
    fn every_level_computes_the_same_checksum() {
        fn check<K: Hashed + ?Sized>() {
            let job = Job { n: 10_000, p: 0.01, seed: 2 };
            let work = Workload::<K>::new(job.n, job.seed);
            let mut limit = Limit::default();
            Contestant::<K>::prepare(&mut limit, &job);
            let words = limit.words.as_mut().unwrap().words_mut();
            for (i, word) in (0u64..).zip(words) {
                *word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
            for len in [0, 1, 63, 64, 65, 1000] {
                let keys = work.members.list().slice(0..len);
                let lines = limit.lines();
                let plain = keys.iter().fold(0, |sum, key| {
                    let place = ((u128::from(key.xxh3() >> 32) * lines.len() as u128) >> 32) as usize;
                    lines[place].0.iter().fold(sum, |sum, word| sum ^ word)
                });
                assert_eq!(Contestant::<K>::count(&limit, keys), plain);
                assert_eq!(walk::<K, CacheLine>(lines, keys), plain);
                // The level below the best one, which the line above does not cover on a wider
                // machine.
                #[cfg(target_arch = "x86_64")]
                if !matches!(Level::detect(), Level::Portable) {
                    // SAFETY: every level but the portable one has AVX2, BMI1 and BMI2.
                    assert_eq!(unsafe { walk_avx2::<K>(lines, keys) }, plain);
                }
            }
        }
        check::<u64>();
        check::<[u8]>();
    }

    #[test]
    fn the_array_is_as_large_as_a_blocked_filter() {
        let per_key = lines(1_000_000, 0.01) as f64 * 512.0 / 1e6;
        assert!((10.0..10.2).contains(&per_key), "{per_key}");
    }
}
