//! Counts the bits that rows of words have in common, with the best instructions of the processor.

use crate::Level;
use crate::arch::{Kernel, Simd};

/// Counts the bits that `row` has in common with each of `rows`, which are consecutive and have the
/// same length as `row`. Replaces the contents of `counts`.
///
/// ```
/// use umbel::memory::count_common;
/// let mut counts = Vec::new();
/// count_common(&[0b1100, 1], &[0b0110, 1, 0b0011, 0], &mut counts);
/// assert_eq!(counts, [2, 0]);
/// ```
pub fn count_common(row: &[u64], rows: &[u64], counts: &mut Vec<u64>) {
    counts.clear();
    if !row.is_empty() {
        Level::detect().run(CountCommon { row, rows, counts });
    }
}

struct CountCommon<'a> {
    row: &'a [u64],
    rows: &'a [u64],
    counts: &'a mut Vec<u64>,
}

impl Kernel for CountCommon<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for other in self.rows.chunks_exact(self.row.len()) {
            let common = self.row.iter().zip(other).map(|(a, b)| u64::from((a & b).count_ones()));
            self.counts.push(common.sum());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::fixed_cases())]

        #[test]
        fn every_level_counts_like_a_naive_loop(
            words in prop::collection::vec(any::<u64>(), 0..200),
            length in 1usize..40,
        ) {
            let (row, rows) = words.split_at(length.min(words.len()));
            let expected: Vec<u64> = rows
                .chunks_exact(row.len().max(1))
                .map(|other| (0..64 * row.len()).filter(|bit| row[bit / 64] & other[bit / 64] & 1 << (bit % 64) != 0).count() as u64)
                .collect();
            for level in Level::available() {
                let mut counts = Vec::new();
                if !row.is_empty() {
                    level.run(CountCommon { row, rows, counts: &mut counts });
                }
                prop_assert_eq!(&counts, &expected);
            }
            let mut counts = vec![7];
            count_common(row, rows, &mut counts);
            prop_assert_eq!(counts, expected);
        }
    }
}
