//! What a filter holds of blocks that follow each other: one way to say it for payloads and for excerpts.

use super::Method;
use std::ops::ControlFlow;
use umbel::Digest;

/// How blocks are numbered, and what is recorded of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    pub method: Method,
    /// After so many blocks, a power of two, numbers begin again; 0 if they never do.
    pub window: u64,
}

impl Scheme {
    /// The record of some content at a place. Places of different levels are different.
    pub fn record(self, content: Digest, number: u64, level: u32) -> Digest {
        // Without a window this is all ones.
        let within = (self.window >> level).wrapping_sub(1);
        content.salted((number & within) << 6 | u64::from(level))
    }

    /// The record of the bytes after the last whole block.
    pub fn end(self, content: Digest, number: u64) -> Digest {
        let within = self.window.wrapping_sub(1);
        // No level is as high.
        content.salted((number & within) << 6 | 63)
    }
}

/// Every record of these blocks, the first of which has the number `first`: level by level, and of pairs only those that are
/// aligned and wholly inside. The blocks are used up.
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
        // A group as long as the window, or longer, would have no place in it.
        let is_top = scheme.window != 0 && scheme.window >> level <= 2;
        if scheme.method == Method::BlockBased || pairs == 0 || is_top {
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

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::Hasher;

    /// How many records there are on each level.
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
    fn a_hierarchy_has_the_printed_number_of_records_and_no_two_alike() {
        for (blocks, records) in [(1, 1), (4, 7), (8, 15), (16, 31), (32, 63), (47, 89)] {
            assert_eq!(levels(blocks, 0, Method::Hierarchical), records, "{blocks} blocks");
            assert_eq!(levels(blocks, 0, Method::BlockBased), blocks);
        }
        // Two blocks from an odd one on have no pair; three have one, wherever they begin.
        assert_eq!([0, 1, 2, 3].map(|first| levels(2, first, Method::Hierarchical)), [3, 2, 3, 2]);
        assert_eq!([0, 1].map(|first| levels(3, first, Method::Hierarchical)), [4, 4]);
        assert_eq!([0, 1, 2, 3].map(|first| levels(4, first, Method::Hierarchical)), [7, 5, 6, 5]);
    }

    #[test]
    fn an_excerpt_has_only_records_that_its_payload_has() {
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
