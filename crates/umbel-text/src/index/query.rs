//! Translates a text to search for into keys of an index.

use super::keys::grams;
use super::settings::{Settings, gram, word};
use crate::tokens::{Alphabet, Token, Tokens, fold};
use umbel::Digest;

/// How to search for a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Whether only whole words match: the text must not have a letter, digit or underscore
    /// directly before or after it.
    pub whole_words: bool,
    /// Whether case is ignored.
    pub ignore_case: bool,
    /// Whether only ASCII letters are letters and other bytes are opaque, as in the locale `C`.
    pub ascii: bool,
}

impl Look {
    /// Returns the alphabet of words.
    pub(crate) fn alphabet(self) -> Alphabet {
        if self.ascii { Alphabet::AsciiWords } else { Alphabet::Words }
    }
}

/// Returns the keys that a file with this text must all have. Returns none if the index cannot rule
/// out any file.
pub(super) fn keys(text: &[u8], look: Look, settings: &Settings) -> Vec<Digest> {
    let mut keys = Vec::new();
    // A word at an edge of the text may be part of a longer word in the file.
    let is_whole = |token: &Token| look.whole_words || token.start > 0 && token.end < text.len();
    // Invalid UTF-8 may be part of characters that continue in the file.
    if look.ascii || str::from_utf8(text).is_ok() {
        let tokens = Tokens::new(text, look.alphabet()).filter(is_whole);
        keys.extend(tokens.map(|token| word(&fold(&text[token.range()]))));
    }
    if let Some(length) = settings.grams {
        // If case is ignored, split at non-ASCII characters, because the index folds only ASCII
        // letters in substrings.
        let pieces = text.split(|byte| look.ignore_case && !byte.is_ascii());
        pieces.for_each(|piece| grams(piece, length, |bytes| keys.push(gram(bytes))));
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}
