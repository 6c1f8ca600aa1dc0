//! Merges several sorted sources. For a key in more than one of them, the newest entry wins.

use super::table::Entry;
use crate::Result;
use std::iter::Peekable;
use std::ops::Range;

/// The largest ratio between a table and the newer ones that it is merged with.
const MAX_SIZE_RATIO: u64 = 2;

/// Returns which consecutive tables of these sizes to merge; `None` if there are fewer than two.
///
/// A run has two tables, and each older one that is not much larger than all of those, so that sizes
/// grow geometrically. Of the runs, this is the one with the fewest bytes per table that goes away.
pub(super) fn due(newest_first: &[u64]) -> Option<Range<usize>> {
    let runs = (0..newest_first.len().saturating_sub(1)).map(|start| {
        let (mut end, mut bytes) = (start, 0u64);
        for size in &newest_first[start..] {
            if end >= start + 2 && *size > bytes.saturating_mul(MAX_SIZE_RATIO) {
                break;
            }
            end += 1;
            bytes = bytes.saturating_add(*size);
        }
        (bytes / (end - start - 1) as u64, start..end)
    });
    runs.min_by_key(|(cost, _)| *cost).map(|(_, run)| run)
}

/// Entries in the order of their keys.
pub(super) type Source<'a> = Box<dyn Iterator<Item = Result<Entry>> + 'a>;

/// An iterator over the entries of all sources, with each key once.
pub(super) struct Merged<'a> {
    newest_first: Vec<Peekable<Source<'a>>>,
}

impl<'a> Merged<'a> {
    pub fn new(newest_first: impl Iterator<Item = Source<'a>>) -> Merged<'a> {
        Merged { newest_first: newest_first.map(Iterator::peekable).collect() }
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        let mut least: Option<(usize, &[u8])> = None;
        for (number, source) in self.newest_first.iter_mut().enumerate() {
            if source.peek().is_some_and(Result::is_err) {
                return source.next();
            }
            if let Some(Ok((key, _))) = source.peek()
                && least.is_none_or(|(_, least)| key.as_slice() < least)
            {
                least = Some((number, key));
            }
        }
        let (number, _) = least?;
        let newest = self.newest_first[number].next();
        if let Some(Ok((key, _))) = &newest {
            for older in &mut self.newest_first[number + 1..] {
                older.next_if(|entry| entry.as_ref().is_ok_and(|(other, _)| other == key));
            }
        }
        newest
    }
}
