//! Several sorted sources as one: of a key that is in more than one, the newest counts.

use super::table::Entry;
use std::iter::Peekable;
use umbel::Result;

/// Entries in the order of their keys.
pub(super) type Source<'a> = Box<dyn Iterator<Item = Result<Entry>> + 'a>;

/// The entries of all sources, each key once.
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
        let mut least: Option<(usize, Vec<u8>)> = None;
        for (number, source) in self.newest_first.iter_mut().enumerate() {
            match source.peek() {
                Some(Ok((key, _))) => {
                    if least.as_ref().is_none_or(|(_, least)| key < least) {
                        least = Some((number, key.clone()));
                    }
                }
                Some(Err(_)) => return source.next(),
                None => {}
            }
        }
        let (number, key) = least?;
        let newest = self.newest_first[number].next();
        for older in &mut self.newest_first[number + 1..] {
            older.next_if(|entry| entry.as_ref().is_ok_and(|(other, _)| *other == key));
        }
        newest
    }
}
