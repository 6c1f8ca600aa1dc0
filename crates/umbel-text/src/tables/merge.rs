//! Merges several sorted sources. For a key in more than one of them, the newest entry wins.

use super::table::Entry;
use crate::Result;
use std::iter::Peekable;

/// The largest ratio between a table and the newer ones that it is merged with.
const MAX_SIZE_RATIO: u64 = 2;

/// Returns how many of the newest tables to merge, whose sizes these are: two, and each further one
/// that is not much larger than all of those.
pub(super) fn due(newest_first: impl Iterator<Item = u64>) -> usize {
    let (mut taken, mut bytes) = (0, 0u64);
    for size in newest_first {
        if taken >= 2 && size > bytes.saturating_mul(MAX_SIZE_RATIO) {
            break;
        }
        taken += 1;
        bytes = bytes.saturating_add(size);
    }
    taken
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
