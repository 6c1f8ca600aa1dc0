//! Cells of a few bits each, packed without gaps: counters, fingerprints, remainders and tables.

use crate::memory::LINE_BITS;
use crate::sizing::MAX_BITS;
use crate::{Error, Result};
use std::ops::Range;

/// The layout of `cells` cells of `width` bits: cell `i` is in the bits `i * width .. (i + 1) *
/// width`. It does not own the words that hold the cells; they are passed to each call.
///
/// ```
/// use umbel::memory::{Packed, Words};
/// let cells = Packed::new(1000, 5)?;
/// let mut words = Words::zeroed(cells.lines())?;
/// cells.set(words.words_mut(), 12, 21);
/// assert_eq!(cells.get(words.words(), 12), 21);
/// assert_eq!(cells.get(words.words(), 13), 0);
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    cells: u64,
    width: u32,
}

impl Packed {
    /// Returns the layout of `cells` cells of `width` bits, 1 to 64.
    ///
    /// # Errors
    ///
    /// If `width` is out of range, `cells` is 0, or there are more than 2^48 bits.
    pub fn new(cells: u64, width: u32) -> Result<Packed> {
        if !(1..=64).contains(&width) {
            return Err(Error::parameter("bits per cell", width, "1 to 64"));
        }
        if cells == 0 || cells.checked_mul(width.into()).is_none_or(|bits| bits > MAX_BITS) {
            return Err(Error::parameter("cells", cells, "at least one, and at most 2^48 bits in all"));
        }
        Ok(Packed { cells, width })
    }

    /// Returns the number of cells.
    #[inline(always)]
    pub const fn cells(&self) -> u64 {
        self.cells
    }

    /// Returns the number of bits in a cell.
    #[inline(always)]
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// Returns the number of bits in all cells.
    #[inline(always)]
    pub const fn bits(&self) -> u64 {
        self.cells * self.width as u64
    }

    /// Returns the number of 64-byte lines that the cells need.
    pub const fn lines(&self) -> u64 {
        self.bits().div_ceil(LINE_BITS)
    }

    /// Returns the largest value of a cell.
    #[inline(always)]
    pub const fn max(&self) -> u64 {
        !0 >> (64 - self.width)
    }

    /// Returns the range of bits of a cell.
    #[inline(always)]
    pub const fn range(&self, cell: u64) -> Range<u64> {
        let start = cell * self.width as u64;
        start..start + self.width as u64
    }

    /// Returns the index of the word in which a cell starts, and the bit within it.
    #[inline(always)]
    pub(crate) const fn split(&self, cell: u64) -> (usize, u32) {
        let start = cell * self.width as u64;
        ((start / 64) as usize, (start % 64) as u32)
    }

    /// Returns the value of a cell.
    #[inline(always)]
    pub fn get(&self, words: &[u64], cell: u64) -> u64 {
        read_bits(words, cell * u64::from(self.width), self.width)
    }

    /// Sets a cell to a value, which must not be larger than [`Packed::max`].
    #[inline(always)]
    pub fn set(&self, words: &mut [u64], cell: u64, value: u64) {
        write_bits(words, cell * u64::from(self.width), self.width, value);
    }

    /// Returns an iterator over all values, from the first cell to the last.
    pub fn iter(self, words: &[u64]) -> impl Iterator<Item = u64> {
        (0..self.cells).map(move |cell| self.get(words, cell))
    }
}

/// Reads `width` bits, 1 to 64, from bit `start` on.
#[inline(always)]
pub(crate) fn read_bits(words: &[u64], start: u64, width: u32) -> u64 {
    let (word, shift) = ((start / 64) as usize, (start % 64) as u32);
    let low = words[word] >> shift;
    // Branch-free, but reads the next word only if the bits extend into it, because that word may
    // be in a cache line that was not prefetched. Otherwise `next` is the same word again, and the
    // mask removes its bits.
    let next = words[word + usize::from(shift + width > 64)];
    (low | next << 1 << (63 - shift)) & !0 >> (64 - width)
}

/// Sets the `width` bits, 1 to 64, from bit `start` on. The value must fit.
#[inline(always)]
pub(crate) fn write_bits(words: &mut [u64], start: u64, width: u32, value: u64) {
    let (word, shift, max) = ((start / 64) as usize, (start % 64) as u32, !0 >> (64 - width));
    debug_assert!(value <= max);
    words[word] = words[word] & !(max << shift) | value << shift;
    if shift + width > 64 {
        let above = 64 - shift;
        words[word + 1] = words[word + 1] & !(max >> above) | value >> above;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::fixed_cases())]

        #[test]
        fn cells_of_every_width_behave_like_a_plain_array(
            width in 1..=64u32,
            cells in 1..400u64,
            steps in prop::collection::vec((0..400u64, any::<u64>()), 1..200),
        ) {
            let packed = Packed::new(cells, width).unwrap();
            let mut words = vec![0u64; packed.lines() as usize * 8];
            let mut naive = vec![0u64; cells as usize];
            for (cell, value) in steps {
                let (cell, value) = (cell % cells, value & packed.max());
                packed.set(&mut words, cell, value);
                naive[cell as usize] = value;
            }
            prop_assert!(packed.iter(&words).eq(naive.iter().copied()));
            // Compare bit by bit with the order in files.
            for (cell, value) in (0..).zip(&naive) {
                for (i, bit) in packed.range(cell).enumerate() {
                    prop_assert_eq!(words[bit as usize / 64] >> (bit % 64) & 1, value >> i & 1);
                }
            }
        }
    }

    #[test]
    fn invalid_sizes_are_refused() {
        for (cells, width) in [(0, 4), (1, 0), (1, 65), (u64::MAX, 2), (1 << 48, 2)] {
            assert!(matches!(Packed::new(cells, width), Err(Error::Parameter { .. })), "{cells} {width}");
        }
    }
}
