//! Semi-sorting: stores the four slots of a bucket in sorted order to save a bit per slot.
//!
//! The order of the slots in a bucket has no meaning, so it need not be stored. Four sorted numbers
//! of four bits each have only C(19, 4) = 3876 states, which fit in 12 bits instead of 16.
//!
//! # References
//!
//! * B. Fan, D. G. Andersen, M. Kaminsky and M. D. Mitzenmacher. *Cuckoo filter: practically better
//!   than Bloom.* CoNEXT 2014. `FAKM14`

/// The width of a code.
pub(super) const BITS: u32 = 12;

/// The number of codes: the multisets of four out of sixteen.
pub(super) const STATES: usize = 3876;

/// The four nibbles of each code, the smallest in the lowest bits. Codes are in the lexicographic
/// order of their sorted nibbles. The entries from `STATES` on are never written, and decode to an
/// empty bucket.
static NIBBLES: [u16; 1 << BITS] = {
    let (mut nibbles, mut code) = ([0; 1 << BITS], 0);
    let mut a = 0;
    while a < 16 {
        let mut b = a;
        while b < 16 {
            let mut c = b;
            while c < 16 {
                let mut d = c;
                while d < 16 {
                    nibbles[code] = a | b << 4 | c << 8 | d << 12;
                    code += 1;
                    d += 1;
                }
                c += 1;
            }
            b += 1;
        }
        a += 1;
    }
    assert!(code == STATES);
    nibbles
};

/// The number of multisets with `size` elements from `least` to 15: C(15 - least + size, size).
const fn multisets(least: u64, size: u64) -> u64 {
    let (mut count, mut i) = (1, 1);
    while i <= size {
        count = count * (15 - least + i) / i;
        i += 1;
    }
    count
}

/// `BEFORE[i][x]` is the number of ways to continue from place `i` with a nibble below `x` at that
/// place, if it could be any number. The nibble is at least `y`, the one before it, so
/// `BEFORE[i][x] - BEFORE[i][y]` of them precede the code with nibble `x`.
static BEFORE: [[u16; 16]; 4] = {
    let (mut before, mut place) = ([[0; 16]; 4], 0);
    while place < 4 {
        let mut x = 0;
        while x < 15 {
            before[place][x + 1] = before[place][x] + multisets(x as u64, 3 - place as u64) as u16;
            x += 1;
        }
        place += 1;
    }
    before
};

pub(super) fn is_code(code: u64) -> bool {
    code < STATES as u64
}

/// Returns the nibbles of a code; an invalid code decodes to zeros.
#[inline(always)]
pub(super) fn decode(code: u64) -> u16 {
    NIBBLES[code as usize % NIBBLES.len()]
}

/// Returns the code of four sorted nibbles, the smallest in the lowest bits.
#[inline(always)]
pub(super) fn encode(nibbles: u16) -> u64 {
    let (mut code, mut least) = (0, 0);
    for (place, before) in BEFORE.iter().enumerate() {
        let nibble = usize::from(nibbles >> (4 * place) & 15);
        code += u64::from(before[nibble].wrapping_sub(before[least]));
        least = nibble;
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_sorted_nibbles_have_3876_states() {
        let mut seen = std::collections::BTreeSet::new();
        for nibbles in 0..=u16::MAX {
            let mut sorted = [0, 4, 8, 12].map(|shift| nibbles >> shift & 15);
            sorted.sort_unstable();
            let sorted = sorted[0] | sorted[1] << 4 | sorted[2] << 8 | sorted[3] << 12;
            let code = encode(sorted);
            assert_eq!(decode(code), sorted);
            seen.insert(code);
        }
        assert_eq!((seen.len(), seen.last()), (STATES, Some(&3875)));
        assert_eq!(decode(0), 0, "an empty bucket is all zeros");
        assert_eq!(decode(3875), 0xffff);
        assert_eq!(decode(3876), 0);
    }
}
