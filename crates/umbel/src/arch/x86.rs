//! AVX2 and AVX-512 on x86-64.
//!
//! Each instruction set has a token with the operations on lines, and a function with the features
//! enabled, into which kernels are inlined. Both include BMI2, because the probe stream depends on
//! 64 x 64 -> 128 bit multiplications.

use super::{Kernel, SPLIT_BLOCK_SALTS, Simd, portable};
use crate::memory::CacheLine;
use std::arch::x86_64::*;

pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("lzcnt")
}

pub(super) fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
}

/// # Safety
/// `has_avx2()` must have been true.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
pub(super) unsafe fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2(()))
}

/// # Safety
/// `has_avx512()` must have been true.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt,avx512f,avx512dq,avx512vl,avx512bw")]
pub(super) unsafe fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512(()))
}

/// The token of AVX2, which processes a line in two halves of four lanes. The private field ensures
/// that only `run_avx2` can make it.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// Returns the masks of lanes 0 to 3 and of lanes 4 to 7.
    #[inline(always)]
    fn halves(self, x: u64) -> (__m256i, __m256i) {
        // SAFETY: the token proves AVX2; nothing here accesses memory.
        unsafe {
            let x = _mm256_set1_epi64x(x as i64);
            let low = _mm256_srlv_epi64(x, _mm256_setr_epi64x(16, 22, 28, 34));
            let high = _mm256_srlv_epi64(x, _mm256_setr_epi64x(40, 46, 52, 58));
            let (one, field) = (_mm256_set1_epi64x(1), _mm256_set1_epi64x(63));
            (
                _mm256_sllv_epi64(one, _mm256_and_si256(low, field)),
                _mm256_sllv_epi64(one, _mm256_and_si256(high, field)),
            )
        }
    }
}

impl Simd for Avx2 {
    const WIDE: bool = true;

    #[inline(always)]
    fn test(self, line: &CacheLine, x: u64) -> bool {
        let (low, high) = self.halves(x);
        // SAFETY: the token proves AVX2; a `CacheLine` has 64 bytes, aligned to 64, so both halves
        // may be loaded.
        unsafe {
            let at = std::ptr::from_ref(line).cast::<__m256i>();
            let missing_low = _mm256_andnot_si256(_mm256_load_si256(at), low);
            let missing_high = _mm256_andnot_si256(_mm256_load_si256(at.add(1)), high);
            let missing = _mm256_or_si256(missing_low, missing_high);
            _mm256_testz_si256(missing, missing) != 0
        }
    }

    #[inline(always)]
    fn set(self, line: &mut CacheLine, x: u64) {
        let (low, high) = self.halves(x);
        // SAFETY: the token proves AVX2.
        unsafe { set_halves(line, low, high) };
    }

    #[inline(always)]
    fn masks(self, x: u64) -> CacheLine {
        let (low, high) = self.halves(x);
        let mut line = CacheLine::default();
        // SAFETY: as in `set`.
        unsafe {
            let at = std::ptr::from_mut(&mut line).cast::<__m256i>();
            _mm256_store_si256(at, low);
            _mm256_store_si256(at.add(1), high);
        }
        line
    }

    #[inline(always)]
    fn test_split_block(self, block: &[u8; 32], hash: u32) -> bool {
        // SAFETY: the token proves AVX2.
        unsafe { test_split_block(block, hash) }
    }

    #[inline(always)]
    fn set_split_block(self, block: &mut [u8; 32], hash: u32) {
        // SAFETY: the token proves AVX2.
        unsafe { set_split_block(block, hash) };
    }

    #[inline(always)]
    fn select(self, word: u64, rank: u32) -> u32 {
        // Takes three cycles, except on AMD before Zen 3, where it is microcode.
        // SAFETY: the token proves BMI2; nothing here accesses memory.
        unsafe { _pdep_u64(1 << (rank & 63), word).trailing_zeros() }
    }

    #[inline(always)]
    fn deposit(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: the token proves BMI2; nothing here accesses memory.
        unsafe { _pdep_u64(bits, mask) }
    }

    #[inline(always)]
    fn compress(self, values: [u64; 8], keep: u8) -> [u64; 8] {
        portable::compress(values, keep)
    }

    #[inline(always)]
    fn equal(self, bytes: &[u8; 64], byte: u8) -> u64 {
        // SAFETY: the token proves AVX2; both halves are inside the array, and the loads need no
        // alignment.
        unsafe {
            let (at, wanted) = (bytes.as_ptr().cast::<__m256i>(), _mm256_set1_epi8(byte as i8));
            let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(at), wanted));
            let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(at.add(1)), wanted));
            u64::from(low as u32) | u64::from(high as u32) << 32
        }
    }
}

/// Sets the bits of both halves.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
unsafe fn set_halves(line: &mut CacheLine, low: __m256i, high: __m256i) {
    // SAFETY: a `CacheLine` has 64 bytes, aligned to 64, and is borrowed exclusively.
    unsafe {
        let at = std::ptr::from_mut(line).cast::<__m256i>();
        _mm256_store_si256(at, _mm256_or_si256(_mm256_load_si256(at), low));
        let at = at.add(1);
        _mm256_store_si256(at, _mm256_or_si256(_mm256_load_si256(at), high));
    }
}

/// Returns the one-bit masks of a hash in a block of a split-block filter.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
unsafe fn split_block_masks(hash: u32) -> __m256i {
    // SAFETY: the caller promises AVX2; the array has 32 bytes, and the load needs no alignment.
    unsafe {
        let salts = _mm256_loadu_si256(SPLIT_BLOCK_SALTS.as_ptr().cast());
        let products = _mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), salts);
        _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(products))
    }
}

/// # Safety
/// The processor must have AVX2.
#[inline(always)]
unsafe fn test_split_block(block: &[u8; 32], hash: u32) -> bool {
    // SAFETY: the caller promises AVX2; a block has 32 bytes, and the load needs no alignment.
    unsafe {
        let block = _mm256_loadu_si256(block.as_ptr().cast());
        _mm256_testc_si256(block, split_block_masks(hash)) != 0
    }
}

/// # Safety
/// The processor must have AVX2.
#[inline(always)]
unsafe fn set_split_block(block: &mut [u8; 32], hash: u32) {
    // SAFETY: as above; the block is borrowed exclusively.
    unsafe {
        let at = block.as_mut_ptr().cast::<__m256i>();
        _mm256_storeu_si256(at, _mm256_or_si256(_mm256_loadu_si256(at), split_block_masks(hash)));
    }
}

/// The token of AVX-512, which computes the masks of a line in one register. The line itself is
/// read and written in two halves: 64-byte loads that miss the caches are slower, by half in
/// filters of a hundred megabytes.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    #[inline(always)]
    fn whole(self, x: u64) -> __m512i {
        // SAFETY: the token proves AVX-512F; nothing here accesses memory.
        unsafe {
            let shifts = _mm512_setr_epi64(16, 22, 28, 34, 40, 46, 52, 58);
            let positions = _mm512_srlv_epi64(_mm512_set1_epi64(x as i64), shifts);
            // A rotation uses its count modulo 64, so the fields need not be masked to six bits.
            _mm512_rolv_epi64(_mm512_set1_epi64(1), positions)
        }
    }

    /// Returns the masks of lanes 0 to 3 and of lanes 4 to 7.
    #[inline(always)]
    fn halves(self, x: u64) -> (__m256i, __m256i) {
        let masks = self.whole(x);
        // SAFETY: as in `whole`.
        unsafe { (_mm512_castsi512_si256(masks), _mm512_extracti64x4_epi64::<1>(masks)) }
    }
}

impl Simd for Avx512 {
    const WIDE: bool = true;

    #[inline(always)]
    fn test(self, line: &CacheLine, x: u64) -> bool {
        let (low, high) = self.halves(x);
        // SAFETY: the token proves AVX-512VL; a `CacheLine` has 64 bytes, aligned to 64.
        unsafe {
            let at = std::ptr::from_ref(line).cast::<__m256i>();
            // There is one bit per lane, so a lane is either zero (missing) or not.
            let low = _mm256_test_epi64_mask(_mm256_load_si256(at), low);
            let high = _mm256_test_epi64_mask(_mm256_load_si256(at.add(1)), high);
            low & high == 0xf
        }
    }

    #[inline(always)]
    fn test_any<const N: usize>(
        self,
        x: u64,
        filters: &[&[CacheLine]; N],
        lines: &[[u64; 64]; N],
        key: usize,
    ) -> bool {
        let masks = self.whole(x);
        let mut found = false;
        for (filter, lines) in filters.iter().zip(lines) {
            let line = std::ptr::from_ref(&filter[lines[key] as usize]);
            // SAFETY: the token proves AVX-512F; a `CacheLine` has 64 bytes, aligned to 64.
            found |= unsafe { _mm512_test_epi64_mask(_mm512_load_si512(line.cast()), masks) } == 0xff;
        }
        found
    }

    #[inline(always)]
    fn set(self, line: &mut CacheLine, x: u64) {
        let (low, high) = self.halves(x);
        // SAFETY: the token proves AVX2.
        unsafe { set_halves(line, low, high) };
    }

    #[inline(always)]
    fn masks(self, x: u64) -> CacheLine {
        let mut line = CacheLine::default();
        // SAFETY: as in `set`.
        unsafe { _mm512_store_si512(std::ptr::from_mut(&mut line).cast(), self.whole(x)) };
        line
    }

    #[inline(always)]
    fn test_split_block(self, block: &[u8; 32], hash: u32) -> bool {
        // SAFETY: the token proves AVX2.
        unsafe { test_split_block(block, hash) }
    }

    #[inline(always)]
    fn set_split_block(self, block: &mut [u8; 32], hash: u32) {
        // SAFETY: the token proves AVX2.
        unsafe { set_split_block(block, hash) };
    }

    #[inline(always)]
    fn select(self, word: u64, rank: u32) -> u32 {
        // SAFETY: the token proves BMI2; nothing here accesses memory.
        unsafe { _pdep_u64(1 << (rank & 63), word).trailing_zeros() }
    }

    #[inline(always)]
    fn deposit(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: the token proves BMI2; nothing here accesses memory.
        unsafe { _pdep_u64(bits, mask) }
    }

    #[inline(always)]
    fn compress(self, values: [u64; 8], keep: u8) -> [u64; 8] {
        let mut kept = [0; 8];
        // Compress into a register and store that: the instruction that does both at once is slow.
        // SAFETY: the token proves AVX-512F; both arrays have 64 bytes, and neither access needs
        // alignment.
        unsafe {
            let values = _mm512_loadu_epi64(values.as_ptr().cast());
            _mm512_storeu_epi64(kept.as_mut_ptr().cast(), _mm512_maskz_compress_epi64(keep, values));
        }
        kept
    }

    #[inline(always)]
    fn equal(self, bytes: &[u8; 64], byte: u8) -> u64 {
        // SAFETY: the token proves AVX-512BW; the array has 64 bytes, and the load needs no
        // alignment.
        unsafe {
            _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(bytes.as_ptr().cast()), _mm512_set1_epi8(byte as i8))
        }
    }
}
