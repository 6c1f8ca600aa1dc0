//! Single bits in an array of words. The array must contain the bit.

use crate::tile;

#[inline(always)]
const fn split(bit: u64) -> (usize, u64) {
    ((bit / 64) as usize, 1 << (bit % 64))
}

/// Returns whether a bit is set.
#[inline(always)]
pub(crate) fn is_set(words: &[u64], bit: u64) -> bool {
    let (word, mask) = split(bit);
    words[word] & mask != 0
}

/// Sets a bit and returns whether it was set before.
#[inline(always)]
pub(crate) fn set(words: &mut [u64], bit: u64) -> bool {
    let (word, mask) = split(bit);
    let before = words[word];
    words[word] = before | mask;
    before & mask != 0
}

/// Sets a bit if `value` is true, without a branch.
#[inline(always)]
pub(crate) fn or(words: &mut [u64], bit: u64, value: bool) {
    words[(bit / 64) as usize] |= u64::from(value) << (bit % 64);
}

/// Clears a bit.
#[inline(always)]
pub(crate) fn clear(words: &mut [u64], bit: u64) {
    let (word, mask) = split(bit);
    words[word] &= !mask;
}

/// Returns the positions of the set bits, in order.
pub(crate) fn ones(words: &[u64]) -> impl Iterator<Item = u64> {
    (0..).zip(words).flat_map(|(word, bits)| tile::ones(*bits).map(move |bit| word * 64 + bit as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_the_positions_of_the_format() {
        let mut words = [0; 3];
        for bit in [0, 63, 64, 191] {
            assert!(
                !is_set(&words, bit) && !set(&mut words, bit) && set(&mut words, bit) && is_set(&words, bit)
            );
        }
        assert_eq!(words, [1 << 63 | 1, 1, 1 << 63]);
        assert!(ones(&words).eq([0, 63, 64, 191]));
        clear(&mut words, 63);
        assert!(!is_set(&words, 63) && ones(&words).eq([0, 64, 191]));
        assert!(ones(&[0, 0]).eq([]) && ones(&[!0]).eq(0..64));
    }
}
