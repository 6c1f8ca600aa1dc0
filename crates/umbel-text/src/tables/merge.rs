//! Merges several sorted sources. For a key in more than one of them, the newest entry wins.

use super::table::Entry;
use crate::Result;
use std::iter::Peekable;

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
