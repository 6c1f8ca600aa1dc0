//! Runs of set bits in a mask.

use std::ops::Range;

/// Returns the runs of set bits, in order.
pub fn bit_runs(words: &[u64]) -> impl Iterator<Item = Range<usize>> {
    let end = words.len() * 64;
    let find = move |from: usize, set: bool| {
        let mut at = from;
        while at < end {
            let word = if set { words[at / 64] } else { !words[at / 64] } >> (at % 64);
            if word != 0 {
                return at + word.trailing_zeros() as usize;
            }
            at = (at / 64 + 1) * 64;
        }
        end
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = find(at, true);
        at = find(start, false);
        (start < end).then_some(start..at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_exactly_the_set_bits() {
        let all = |words: &[u64]| bit_runs(words).collect::<Vec<_>>();
        assert!(all(&[]).is_empty() && all(&[0, 0]).is_empty());
        assert_eq!(all(&[0b1011]), [0..2, 3..4]);
        assert_eq!(all(&[!0, !0, 1 << 9]), [0..128, 137..138]);
        assert_eq!(all(&[1 << 63, 1, 0, 1 << 63]), [63..65, 255..256]);
    }
}
