//! The portable token: eight 64-bit operations per line, which any compiler vectorises as far as its target allows.

use super::Simd;
use crate::words::Line;

#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// The one-bit mask of `x` in one lane.
#[inline(always)]
fn mask(x: u64, lane: usize) -> u64 {
    1 << ((x >> (16 + 6 * lane)) & 63)
}

impl Simd for Portable {
    const WIDE: bool = false;

    #[inline(always)]
    fn test(self, line: &Line, x: u64) -> bool {
        // Without branches: a miss leaves after two lanes on average, but where is not predictable.
        (0..8).fold(0, |missing, lane| missing | (mask(x, lane) & !line.0[lane])) == 0
    }

    #[inline(always)]
    fn set(self, line: &mut Line, x: u64) {
        for lane in 0..8 {
            line.0[lane] |= mask(x, lane);
        }
    }

    #[inline(always)]
    fn masks(self, x: u64) -> Line {
        Line(std::array::from_fn(|lane| mask(x, lane)))
    }

    #[inline(always)]
    fn equal(self, bytes: &[u8; 64], byte: u8) -> u64 {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let wanted = u64::from_le_bytes([byte; 8]);
        let (words, _) = bytes.as_chunks();
        words.iter().enumerate().fold(0, |mask, (i, word)| {
            // Zero where the byte is found; then the highest bit of exactly those bytes; then these bits side by side.
            let x = u64::from_le_bytes(*word) ^ wanted;
            let found = !(((x & LOW) + LOW) | x | LOW);
            mask | ((found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i)
        })
    }
}
