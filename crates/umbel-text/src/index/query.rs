//! What an index can say about a text that is looked for.

use super::keys::grams;
use super::settings::{Settings, gram, word};
use crate::words::{AsciiRuns, Run, Runs, fold};
use umbel::Digest;

/// How a text is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Only where no letter, digit or underscore stands before or behind it.
    pub whole_words: bool,
    /// Capital and small letters are the same.
    pub ignore_case: bool,
    /// Letters are those of ASCII, and other characters only bytes, as programs see them where no language is set (the
    /// locale `C`).
    pub ascii: bool,
}

/// The keys that all must be in a file that holds a text; none if the index cannot tell.
pub(super) fn keys(text: &[u8], look: Look, settings: &Settings) -> Vec<Digest> {
    let mut keys = Vec::new();
    // A word at an edge may be a part of a longer one.
    let whole = |run: &Run| look.whole_words || run.start > 0 && run.end < text.len();
    let mut take = |run: Run| keys.push(word(&fold(&text[run.range()])));
    if look.ascii {
        AsciiRuns::of(text).filter(whole).for_each(&mut take);
    } else if str::from_utf8(text).is_ok() {
        // Of other bytes nobody knows with which characters of the file they belong together.
        Runs::of(text).filter(whole).for_each(&mut take);
    }
    if let Some(length) = settings.grams {
        // Where case does not matter, only letters of ASCII are folded alike here and there.
        let pieces = text.split(|byte| look.ignore_case && !byte.is_ascii());
        pieces.for_each(|piece| grams(piece, length, |bytes| keys.push(gram(bytes))));
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}
