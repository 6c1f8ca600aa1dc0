//! Puts items into groups, in place.

use super::build::Item;

/// Sorts items by group and returns where each group ends: the American flag sort of McIlroy, Bostic and McIlroy 1993.
/// What `group` returns must be below `groups`.
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
    for home in 0..groups {
        while heads[home] < ends[home] {
            let mut item = items[heads[home]];
            // Follow the item to its group, take what is there, and so on until something belongs here.
            loop {
                let to = group(item.0.get());
                if to == home {
                    break;
                }
                std::mem::swap(&mut item, &mut items[heads[to]]);
                heads[to] += 1;
            }
            items[heads[home]] = item;
            heads[home] += 1;
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
