//! SIMD that is selected at run time: the operations that each instruction set implements
//! differently.
//!
//! An algorithm is written once, as a [`Kernel`], in safe code that is generic over a [`Simd`]
//! token. [`Level::run`] chooses the token that the processor supports and compiles the kernel
//! inside a function with that instruction set enabled, so that everything in the kernel (hashing
//! included) benefits from it. The portable token needs nothing beyond the default target and
//! returns bit-identical results; tests compare all levels with each other.
//!
//! On aarch64 the portable kernels run, with the prefetch instruction of that architecture. They
//! have not been run or measured on such hardware yet.
//!
//! A [`Level`] can only be obtained after its features were detected, and a token only from a
//! level. So owning a token proves that its instructions exist. The `unsafe` code in this module
//! relies on that.

#![allow(unsafe_code)]

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::memory::CacheLine;
use portable::Portable;
use std::fmt;
#[cfg(debug_assertions)]
use std::sync::OnceLock;

/// An instruction set this processor is known to have.
///
/// ```
/// use umbel::internals::Level;
/// assert!(Level::available().contains(&Level::PORTABLE));
/// println!("kernels run on {}", Level::detect());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(Isa);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Isa {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// An algorithm written once for all instruction sets.
///
/// `run` must be `#[inline(always)]`: only then is its body compiled with the features of the
/// level.
pub(crate) trait Kernel {
    type Output;
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// The constants of the split-block filter of Parquet, one for each word of a block. The bit in a
/// word is the five highest bits of the hash times its constant.
pub(crate) const SPLIT_BLOCK_SALTS: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// The operations that each instruction set implements differently. Those on cache lines use eight
/// bits of a line, one in each 64-bit lane.
///
/// The position in lane `j` is bits `16 + 6j .. 22 + 6j` of `x`.
pub trait Simd: Copy {
    /// Whether a vectorized loop of 64-bit multiplications, built from 32-bit ones, is faster than
    /// scalar ones.
    const WIDE: bool;
    /// Returns whether all eight bits of `x` are set in `line`.
    fn test(self, line: &CacheLine, x: u64) -> bool;
    /// Returns whether all eight bits of `x` are set in line `lines[i][key]` of any filter `i`.
    #[inline(always)]
    fn test_any<const N: usize>(
        self,
        x: u64,
        filters: &[&[CacheLine]; N],
        lines: &[[u64; 64]; N],
        key: usize,
    ) -> bool {
        let mut found = false;
        for (filter, lines) in filters.iter().zip(lines) {
            found |= self.test(&filter[lines[key] as usize], x);
        }
        found
    }
    /// Sets the eight bits of `x` in `line`.
    fn set(self, line: &mut CacheLine, x: u64);
    /// Returns the eight one-bit masks of `x`.
    fn masks(self, x: u64) -> CacheLine;
    /// Returns whether all eight bits of `hash` are set in a block of a split-block filter.
    fn test_split_block(self, block: &[u8; 32], hash: u32) -> bool;
    /// Sets the eight bits of `hash` in a block of a split-block filter.
    fn set_split_block(self, block: &mut [u8; 32], hash: u32);
    /// Deposits the lowest bits of `bits`, in order, at the positions of the set bits of `mask`.
    fn deposit(self, bits: u64, mask: u64) -> u64;
    /// Moves the values whose bit in `keep` is set to the front, in order; the values after them
    /// are arbitrary.
    fn compress(self, values: [u64; 8], keep: u8) -> [u64; 8];
    /// Returns a mask in which bit `i` is set if `bytes[i]` is `byte`.
    fn equal(self, bytes: &[u8; 64], byte: u8) -> u64;
    /// Returns the position of the set bit of `word` with this rank, counted from 0 and below 64;
    /// 64 if there is none.
    fn select(self, word: u64, rank: u32) -> u32;
}

impl Level {
    /// The instructions of the default target.
    pub const PORTABLE: Level = Level(Isa::Portable);

    /// Returns the best instruction set of this processor. The standard library caches the
    /// detection.
    pub fn detect() -> Level {
        #[cfg(debug_assertions)]
        if portable_is_forced() {
            return Level::PORTABLE;
        }
        #[cfg(target_arch = "x86_64")]
        {
            if x86::has_avx512() {
                return Level(Isa::Avx512);
            }
            if x86::has_avx2() {
                return Level(Isa::Avx2);
            }
        }
        Level::PORTABLE
    }

    /// Returns every instruction set of this processor that has its own kernels, the portable one
    /// first.
    pub fn available() -> Vec<Level> {
        let mut levels = vec![Level::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            if x86::has_avx2() {
                levels.push(Level(Isa::Avx2));
            }
            if x86::has_avx512() {
                levels.push(Level(Isa::Avx512));
            }
        }
        levels
    }

    /// Runs a kernel with this level's instructions enabled.
    #[inline(always)]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Isa::Portable => kernel.run(Portable),
            // SAFETY: a `Level` of this kind is only made after its features were detected.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { x86::run_avx2(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { x86::run_avx512(kernel) },
        }
    }
}

/// Returns whether `UMBEL_PORTABLE` asks for the portable kernels, so that the tests can run without
/// SIMD on any machine. Release builds do not look.
#[cfg(debug_assertions)]
fn portable_is_forced() -> bool {
    static FORCED: OnceLock<bool> = OnceLock::new();
    *FORCED.get_or_init(|| std::env::var_os("UMBEL_PORTABLE").is_some())
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Isa::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => "avx512",
        })
    }
}

impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Level({self})")
    }
}

/// Prefetches the cache line that contains `slice[index]`. This is only a hint: an index out of
/// range costs nothing.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    prefetch_at(slice.as_ptr().wrapping_add(index));
}

/// Prefetches the cache line that contains a byte of `words`.
#[inline(always)]
pub(crate) fn prefetch_byte(words: &[u64], byte: u64) {
    prefetch_at(words.as_ptr().cast::<u8>().wrapping_add(byte as usize));
}

/// Prefetches for reading into the second-level cache, because one or two tiles of lines would
/// evict other data from the first.
#[inline(always)]
fn prefetch_at<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program can observe and cannot fault, whatever the
    // address. It needs SSE, which is part of the x86-64 baseline.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: `prfm` is part of the baseline, cannot fault, whatever the address, and changes no
    // register, flag or memory.
    unsafe {
        std::arch::asm!(
            "prfm pldl2keep, [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Case {
        line: CacheLine,
        x: u64,
    }

    impl Kernel for Case {
        type Output = (bool, CacheLine, CacheLine);
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let mut line = self.line;
            let before = simd.test(&line, self.x);
            simd.set(&mut line, self.x);
            assert!(simd.test(&line, self.x));
            (before, line, simd.masks(self.x))
        }
    }

    /// The definition, bit by bit.
    fn naive(case: &Case) -> (bool, CacheLine, CacheLine) {
        let (mut all, mut line, mut masks) = (true, case.line, CacheLine::default());
        for lane in 0..8 {
            let bit = 1u64 << ((case.x >> (16 + 6 * lane)) & 63);
            all &= case.line.0[lane] & bit != 0;
            line.0[lane] |= bit;
            masks.0[lane] = bit;
        }
        (all, line, masks)
    }

    struct Deposit(u64, u64);

    impl Kernel for Deposit {
        type Output = u64;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> u64 {
            simd.deposit(self.0, self.1)
        }
    }

    #[test]
    fn every_level_deposits_the_same_bits() {
        let mut x = 1u64;
        for _ in 0..2000 {
            let [bits, mask] = [(); 2].map(|()| {
                x = x.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
                x ^ (x >> 29)
            });
            let (mut expected, mut rank) = (0, 0);
            for place in (0..64).filter(|place| mask >> place & 1 == 1) {
                expected |= (bits >> rank & 1) << place;
                rank += 1;
            }
            for level in Level::available() {
                assert_eq!(level.run(Deposit(bits, mask)), expected, "{level}");
            }
        }
    }

    struct Compress([u64; 8], u8);

    impl Kernel for Compress {
        type Output = [u64; 8];
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> [u64; 8] {
            simd.compress(self.0, self.1)
        }
    }

    #[test]
    fn every_level_compresses_the_same_values() {
        let values = std::array::from_fn(|i| 0x0123_4567_89ab_cdef_u64.rotate_left(7 * i as u32));
        for keep in 0..=255u8 {
            let expected: Vec<u64> = (0..8).filter(|i| keep >> i & 1 == 1).map(|i| values[i]).collect();
            for level in Level::available() {
                assert_eq!(
                    level.run(Compress(values, keep))[..expected.len()],
                    expected,
                    "{level} {keep:08b}"
                );
            }
        }
    }

    struct Equal<'a>(&'a [u8; 64], u8);

    impl Kernel for Equal<'_> {
        type Output = u64;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> u64 {
            simd.equal(self.0, self.1)
        }
    }

    #[test]
    fn every_level_finds_every_byte() {
        // Bytes with similar values, above all those that differ in the lowest or the highest bit,
        // must not match.
        for byte in 0..=255u8 {
            let bytes: [u8; 64] = std::array::from_fn(|i| match i % 5 {
                0 => byte,
                1 => byte ^ 1,
                2 => byte ^ 0x80,
                3 => byte.wrapping_add(i as u8),
                _ => byte.wrapping_sub(1),
            });
            let expected = (0..64).fold(0, |mask, i| mask | u64::from(bytes[i] == byte) << i);
            for level in Level::available() {
                assert_eq!(level.run(Equal(&bytes, byte)), expected, "{level} {byte}");
            }
        }
    }

    struct Select(u64, u32);

    impl Kernel for Select {
        type Output = u32;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> u32 {
            simd.select(self.0, self.1)
        }
    }

    #[test]
    fn every_level_finds_the_bit_of_every_rank() {
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        let words = std::iter::repeat_with(|| {
            word = word.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            word & word.rotate_left(23)
        });
        for word in
            [0, 1, 1 << 63, !0, !1, !0 >> 1, 0x8000_0000_0000_0001].into_iter().chain(words.take(2000))
        {
            let mut bits = (0..64).filter(|bit| word >> bit & 1 == 1);
            for rank in 0..64 {
                let expected = bits.next().unwrap_or(64);
                for level in Level::available() {
                    assert_eq!(level.run(Select(word, rank)), expected, "{level} {word:x} {rank}");
                }
            }
        }
    }

    struct SplitBlock([u8; 32], u32);

    impl Kernel for SplitBlock {
        type Output = (bool, [u8; 32]);
        #[inline(always)]
        fn run<S: Simd>(mut self, simd: S) -> Self::Output {
            let before = simd.test_split_block(&self.0, self.1);
            simd.set_split_block(&mut self.0, self.1);
            assert!(simd.test_split_block(&self.0, self.1));
            (before, self.0)
        }
    }

    #[test]
    fn every_level_has_the_same_bits_in_a_split_block() {
        let (mut hash, mut present) = (1u32, 0);
        for round in 0..20_000 {
            hash = hash.wrapping_mul(0x915f_77f5).wrapping_add(1);
            // Vary the density of the blocks, so that both answers occur.
            let mut block: [u8; 32] = std::array::from_fn(|i| {
                let byte =
                    (0..round % 9).fold(hash, |bits, turn| bits | hash.rotate_left(7 * turn + i as u32));
                (byte >> 5) as u8
            });
            let (old, mut all) = (block, true);
            for (word, salt) in SPLIT_BLOCK_SALTS.iter().enumerate() {
                let bit = word * 32 + (hash.wrapping_mul(*salt) >> 27) as usize;
                all &= block[bit / 8] >> (bit % 8) & 1 == 1;
                block[bit / 8] |= 1 << (bit % 8);
            }
            present += usize::from(all);
            for level in Level::available() {
                assert_eq!(level.run(SplitBlock(old, hash)), (all, block), "{level}");
            }
        }
        assert!((1_000..19_000).contains(&present), "both answers must occur often: {present}");
    }

    #[test]
    fn every_level_agrees_with_the_definition() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            state ^ (state >> 29)
        };
        let mut present = 0;
        for round in 0..20_000 {
            let mut line = CacheLine::default();
            // Vary the density of the lines, so that both answers occur.
            for word in &mut line.0 {
                *word = (0..round % 7).fold(next(), |word, _| word | next());
            }
            let x = next();
            let expected = naive(&Case { line, x });
            present += usize::from(expected.0);
            for level in Level::available() {
                assert_eq!(level.run(Case { line, x }), expected, "{level}");
            }
        }
        assert!((1_000..19_000).contains(&present), "both answers must occur often: {present}");
    }
}
