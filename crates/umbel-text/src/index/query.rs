//! What an index can say about a text that is looked for.

use super::keys::grams;
use super::settings::{Settings, gram, word};
use crate::words::{Runs, fold};
use umbel::Digest;

/// How a text is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Only where no letter, digit or underscore stands before or behind it.
    pub whole_words: bool,
    /// Capital and small letters are the same.
    pub ignore_case: bool,
}

/// The keys that all must be in a file that holds a text; none if the index cannot tell.
pub(super) fn keys(text: &[u8], look: Look, settings: &Settings) -> Vec<Digest> {
    let mut keys = Vec::new();
    // A character of the text whose start is missing here might join the words beside it.
    if str::from_utf8(text).is_ok() {
        // A word at an edge may be a part of a longer one.
        let whole = |start, end| look.whole_words || start > 0 && end < text.len();
        let whole_runs = Runs::of(text).filter(|run| whole(run.start, run.end));
        keys.extend(whole_runs.map(|run| word(&fold(&text[run.range()]))));
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
