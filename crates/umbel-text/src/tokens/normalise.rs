//! Brings the different spellings of a token into one normal form.

use std::borrow::Cow;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// A hyphen that is visible only where a line is broken.
pub(crate) const SOFT_HYPHEN: char = '\u{ad}';

/// A normal form for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normaliser {
    /// NFC with typewriter apostrophes and without soft hyphens; capitals stay. For the words of a
    /// dictionary.
    Spelling,
    /// Lower case in NFC. For words that are compared between documents.
    Lowercase,
    /// Lower case in NFKC, so that `ﬁ` becomes `fi`. For words that a person types to search.
    Compatibility,
}

impl Normaliser {
    /// Returns the normal form of a token.
    ///
    /// ```
    /// use umbel_text::tokens::Normaliser;
    /// assert_eq!(Normaliser::Spelling.apply("Don\u{2019}t"), "Don't");
    /// assert_eq!(Normaliser::Lowercase.apply("E\u{301}T\u{c9}"), "été");
    /// assert_eq!(Normaliser::Compatibility.apply("ﬁNE"), "fine");
    /// ```
    pub fn apply(self, token: &str) -> Cow<'_, str> {
        match self {
            Normaliser::Spelling if token.is_ascii() => token.into(),
            Normaliser::Spelling => spelling(token),
            _ if token.is_ascii() && !token.bytes().any(|byte| byte.is_ascii_uppercase()) => token.into(),
            _ if token.is_ascii() => token.to_ascii_lowercase().into(),
            Normaliser::Lowercase => nfc(token).to_lowercase().into(),
            // NFKC can produce capitals, and lower-casing can produce text that is not in NFKC.
            Normaliser::Compatibility => {
                token.nfkc().flat_map(char::to_lowercase).nfkc().collect::<String>().into()
            }
        }
    }
}

fn spelling(token: &str) -> Cow<'_, str> {
    let token = nfc(token);
    if token.contains(|c| c == SOFT_HYPHEN || c != to_apostrophe(c)) {
        return token.chars().filter(|c| *c != SOFT_HYPHEN).map(to_apostrophe).collect::<String>().into();
    }
    token
}

/// Replaces typographic apostrophes by the typewriter apostrophe.
pub(crate) fn to_apostrophe(c: char) -> char {
    if matches!(c, '\u{2019}' | '\u{02bc}') { '\'' } else { c }
}

/// Composes letters and their accents (NFC).
pub(crate) fn nfc(text: &str) -> Cow<'_, str> {
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => text.into(),
        _ => text.nfc().collect::<String>().into(),
    }
}

/// Returns text in lower case. Bytes that are not UTF-8 stay as they are, and a non-ASCII character
/// never becomes ASCII.
pub fn fold(text: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(text.len());
    fold_into(text, &mut folded);
    folded
}

/// Appends text in lower case to `folded`; see [`fold`].
pub fn fold_into(text: &[u8], folded: &mut Vec<u8>) {
    if text.is_ascii() {
        let start = folded.len();
        folded.extend_from_slice(text);
        return folded[start..].make_ascii_lowercase();
    }
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            fold_character(character, folded);
        }
        folded.extend_from_slice(chunk.invalid());
    }
}

fn fold_character(character: char, folded: &mut Vec<u8>) {
    let mut utf8 = [0; 4];
    let mut lower = character.to_lowercase();
    // The Kelvin sign would become a `k`, and `İ` an `i` and a dot that is not part of words. But a
    // token that is ASCII after folding must have been ASCII before.
    if lower.clone().any(|lower| lower.is_ascii()) && !character.is_ascii() {
        return folded.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
    }
    lower.by_ref().for_each(|lower| folded.extend_from_slice(lower.encode_utf8(&mut utf8).as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_never_turns_other_characters_into_ascii() {
        for character in (128u32..0x11_0000).filter_map(char::from_u32) {
            let folded = fold(character.encode_utf8(&mut [0; 4]).as_bytes());
            assert!(!folded.is_ascii(), "{character:?}");
        }
        assert_eq!(fold(b"ABC\xff\xc4"), b"abc\xff\xc4");
        assert_eq!(fold("ΣΊΣΥΦΟΣ".as_bytes()), "σίσυφοσ".as_bytes());
    }
}
