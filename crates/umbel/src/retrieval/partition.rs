//! Sorts items into groups in place.
//!
//! # References
//!
//! * P. M. McIlroy, K. Bostic and M. D. McIlroy. *Engineering radix sort.* Computing Systems 6(1),
//!   1993. `MBM93`

use super::build::Item;

/// Sorts items by group and returns the end of each group. The results of `group` must be below
/// `groups`. This is the American flag sort of `MBM93`, in rounds.
pub(super) fn partition<P: Copy>(
    items: &mut [Item<P>],
    groups: usize,
    group: impl Fn(u64) -> usize,
) -> Vec<usize> {
    let mut ends = vec![0; groups];
    for item in items.iter() {
        ends[group(item.0.get())] += 1;
    }
    let mut heads = vec![0; groups];
    let mut total = 0;
    for (head, end) in heads.iter_mut().zip(&mut ends) {
        *head = total;
        total += *end;
        *end = total;
    }
    // Each step moves one item to its group and leaves the displaced item for the next round.
    // Following the displaced items at once would need no rounds, but each step would have to wait
    // for the one before.
    let mut rest = true;
    while rest {
        rest = false;
        for home in 0..groups {
            rest |= heads[home] < ends[home];
            for index in heads[home]..ends[home] {
                let head = &mut heads[group(items[index].0.get())];
                items.swap(index, *head);
                *head += 1;
            }
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;
    use crate::hash::reduce;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::fixed_cases())]

        #[test]
        fn groups_are_contiguous_and_nothing_is_lost(hashes in prop::collection::vec(any::<u64>(), 0..300), groups in 1..40usize) {
            let mut items: Vec<_> = hashes.iter().enumerate().map(|(i, hash)| (Digest::from_hash(*hash), i as u64)).collect();
            let group = |hash| reduce(hash, groups as u64) as usize;
            let ends = partition(&mut items, groups, group);
            let mut start = 0;
            for (index, end) in ends.into_iter().enumerate() {
                prop_assert!(items[start..end].iter().all(|item| group(item.0.get()) == index));
                start = end;
            }
            prop_assert_eq!(start, items.len());
            items.sort_unstable_by_key(|item| item.1);
            prop_assert!(items.iter().map(|item| item.0.get()).eq(hashes));
        }
    }
}
