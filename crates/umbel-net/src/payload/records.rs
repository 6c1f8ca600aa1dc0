//! The records of consecutive blocks, made in the same way for payloads and for excerpts.

use super::Method;
use std::ops::ControlFlow;
use umbel::Digest;

/// The numbering of blocks, and the method that records them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    pub method: Method,
    /// The number of blocks, a power of two, after which numbers start again at 0; 0 for no limit.
    pub window: u64,
}

impl Scheme {
    /// Returns the record of content with this number on this level. Equal numbers on different
    /// levels have different records.
    pub fn record(self, content: Digest, number: u64, level: u32) -> Digest {
        // Without a window, the mask is all ones.
        let within = (self.window >> level).wrapping_sub(1);
        content.salted((number & within) << 6 | u64::from(level))
    }

    /// Returns the record of the bytes after the last whole block.
    pub fn end(self, content: Digest, number: u64) -> Digest {
        let within = self.window.wrapping_sub(1);
        // No level is as high as 63.
        content.salted((number & within) << 6 | 63)
    }
}

/// Calls `each` with every record of these blocks, the first of which has number `first`, level by
/// level. Only aligned pairs that lie completely inside have a record. Uses `blocks` as scratch
/// space.
pub fn each_record<B>(
    blocks: &mut Vec<Digest>,
    mut first: u64,
    scheme: Scheme,
    each: &mut impl FnMut(Digest) -> ControlFlow<B>,
) -> ControlFlow<B> {
    for level in 0.. {
        for (content, number) in blocks.iter().zip(first..) {
            each(scheme.record(*content, number, level))?;
        }
        // A pair begins at an even number.
        let skipped = (first & 1) as usize;
        let pairs = blocks.len().saturating_sub(skipped) / 2;
        // A group as long as the window, or longer, has no number in it.
        let is_top = scheme.window != 0 && scheme.window >> level <= 2;
        if scheme.method != Method::Hierarchical || pairs == 0 || is_top {
            break;
        }
        for pair in 0..pairs {
            let [left, right] = [0, 1].map(|half| blocks[skipped + 2 * pair + half]);
            blocks[pair] = left.salted(right.get());
        }
        blocks.truncate(pairs);
        first = first.div_ceil(2);
    }
    ControlFlow::Continue(())
}

/// The records of blocks that arrive one by one, as in a stream.
#[derive(Clone, Debug, Default)]
pub struct Climb {
    /// On each level, the last left half with its number, which waits for its right half.
    left: Vec<Option<(u64, Digest)>>,
}

impl Climb {
    /// Calls `each` with every record that this block completes.
    pub fn push(&mut self, block: Digest, number: u64, scheme: Scheme, each: &mut impl FnMut(Digest)) {
        let (mut content, mut number) = (block, number);
        for level in 0.. {
            each(scheme.record(content, number, level));
            let is_top = scheme.window != 0 && scheme.window >> level <= 2;
            if scheme.method != Method::Hierarchical || is_top {
                return;
            }
            if self.left.len() <= level as usize {
                self.left.push(None);
            }
            let left = &mut self.left[level as usize];
            if number & 1 == 0 {
                *left = Some((number, content));
                return;
            }
            // After a gap, the left half is missing, or belongs to another pair.
            let Some((_, half)) = left.take().filter(|(at, _)| *at == number - 1) else { return };
            (content, number) = (half.salted(content.get()), number / 2);
        }
    }

    /// Drops the blocks so far, so that no group spans them and the next block.
    pub fn forget(&mut self) {
        self.left.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::Hasher;

    /// Returns the number of different records on all levels.
    fn levels(count: usize, first: u64, method: Method) -> usize {
        let digests = Hasher::default().digest_batch(&(0..count as u64).collect::<Vec<_>>());
        let mut records = Vec::new();
        let put = |record: Digest| {
            records.push(record.get());
            ControlFlow::<()>::Continue(())
        };
        let _ = each_record(&mut digests.clone(), first, Scheme { method, window: 0 }, &mut { put });
        records.sort_unstable();
        records.dedup();
        records.len()
    }

    #[test]
    fn hierarchy_has_the_published_number_of_distinct_records() {
        for (blocks, records) in [(1, 1), (4, 7), (8, 15), (16, 31), (32, 63), (47, 89)] {
            assert_eq!(levels(blocks, 0, Method::Hierarchical), records, "{blocks} blocks");
            assert_eq!(levels(blocks, 0, Method::BlockBased), blocks);
        }
        // Two blocks from an odd number on contain no aligned pair; three always contain one.
        assert_eq!([0, 1, 2, 3].map(|first| levels(2, first, Method::Hierarchical)), [3, 2, 3, 2]);
        assert_eq!([0, 1].map(|first| levels(3, first, Method::Hierarchical)), [4, 4]);
        assert_eq!([0, 1, 2, 3].map(|first| levels(4, first, Method::Hierarchical)), [7, 5, 6, 5]);
    }

    #[test]
    fn blocks_pushed_one_by_one_have_the_same_records() {
        let digests = Hasher::default().digest_batch(&(0..200u64).collect::<Vec<_>>());
        for method in [Method::BlockBased, Method::Hierarchical] {
            for (window, first) in [(0, 0), (0, 5), (8, 0), (64, 64), (64, 67)] {
                let scheme = Scheme { method, window };
                let mut whole = Vec::new();
                let put = |record: Digest| {
                    whole.push(record.get());
                    ControlFlow::<()>::Continue(())
                };
                let _ = each_record(&mut digests.clone(), first, scheme, &mut { put });
                let mut climb = Climb::default();
                let mut one_by_one = Vec::new();
                for (digest, number) in digests.iter().zip(first..) {
                    climb.push(*digest, number, scheme, &mut |record| one_by_one.push(record.get()));
                }
                whole.sort_unstable();
                one_by_one.sort_unstable();
                assert_eq!(whole, one_by_one, "{method:?}, window {window}, from {first}");
            }
        }
    }

    #[test]
    fn halves_across_a_gap_do_not_form_a_pair() {
        let digests = Hasher::default().digest_batch(&[1u64, 2, 3]);
        let scheme = Scheme { method: Method::Hierarchical, window: 0 };
        let mut climb = Climb::default();
        let mut records = 0;
        for (digest, number) in digests.iter().zip([0, 3, 5]) {
            climb.push(*digest, number, scheme, &mut |_| records += 1);
        }
        assert_eq!(records, 3);
    }

    #[test]
    fn records_of_an_excerpt_are_records_of_its_payload() {
        [0, 4, 8].into_iter().for_each(excerpts_of_a_window);
    }

    fn excerpts_of_a_window(window: u64) {
        let digests = Hasher::default().digest_batch(&(0..20u64).collect::<Vec<_>>());
        let scheme = Scheme { method: Method::Hierarchical, window };
        let all = |blocks: &[Digest], first| {
            let mut records = std::collections::HashSet::new();
            let put = |record: Digest| {
                records.insert(record);
                ControlFlow::<()>::Continue(())
            };
            let _ = each_record(&mut blocks.to_vec(), first, scheme, &mut { put });
            records
        };
        let payload = all(&digests, 0);
        for from in 0..20 {
            for to in from + 1..=20 {
                let first = if window == 0 { from as u64 } else { from as u64 % window };
                assert!(all(&digests[from..to], first).is_subset(&payload), "{from}..{to}, window {window}");
            }
        }
    }
}
