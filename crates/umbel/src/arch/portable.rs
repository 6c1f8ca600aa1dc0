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
}
