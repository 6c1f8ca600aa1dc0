//! What an index can say about a text that is looked for.

use super::keys::grams;
use super::settings::{Settings, gram, word};
use crate::tokens::{Alphabet, Token, Tokens, fold};
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

impl Look {
    /// Returns the characters that make up words.
    pub(crate) fn alphabet(self) -> Alphabet {
        if self.ascii { Alphabet::AsciiWords } else { Alphabet::Words }
    }
}

/// The keys that all must be in a file that holds a text; none if the index cannot tell.
pub(super) fn keys(text: &[u8], look: Look, settings: &Settings) -> Vec<Digest> {
    let mut keys = Vec::new();
    // A word at an edge may be a part of a longer one.
    let is_whole = |token: &Token| look.whole_words || token.start > 0 && token.end < text.len();
    // Other bytes may be parts of characters that go on in the file.
    if look.ascii || str::from_utf8(text).is_ok() {
        let tokens = Tokens::new(text, look.alphabet()).filter(is_whole);
        keys.extend(tokens.map(|token| word(&fold(&text[token.range()]))));
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
