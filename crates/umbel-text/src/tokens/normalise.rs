//! Normalisation: every way to write a token becomes one spelling.

use std::borrow::Cow;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// A hyphen that shows only where a line is broken.
pub(super) const SOFT_HYPHEN: char = '\u{ad}';

/// A normal form for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normaliser {
    /// NFC, the apostrophe of typewriters, and no soft hyphens; capitals stay. For words of a dictionary.
    Spelling,
    /// Lower case in NFC. For words that are compared between documents.
    Lowercase,
    /// Lower case in NFKC, so that `ﬁ` is `fi`. For words that a person types to search.
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
            // NFKC may leave capitals, and lower case may leave NFKC.
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

/// Replaces the apostrophes of printers by that of typewriters.
pub(crate) fn to_apostrophe(c: char) -> char {
    if matches!(c, '\u{2019}' | '\u{02bc}') { '\'' } else { c }
}

/// Composes letters with their accents (NFC).
pub(crate) fn nfc(text: &str) -> Cow<'_, str> {
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => text.into(),
        _ => text.nfc().collect::<String>().into(),
    }
}

/// Returns text in lower case. Bytes that are not UTF-8 stay as they are, and no other character becomes an ASCII one.
pub fn fold(text: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(text.len());
    fold_into(text, &mut folded);
    folded
}

/// Appends text in lower case, as [`fold`] returns it.
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
    // The Kelvin sign would become a `k`, and `İ` an `i` with a dot that is not part of words. A token that is ASCII after
    // folding must have been ASCII before.
    if lower.clone().any(|lower| lower.is_ascii()) && !character.is_ascii() {
        return folded.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
    }
    lower.by_ref().for_each(|lower| folded.extend_from_slice(lower.encode_utf8(&mut utf8).as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_never_makes_ascii_of_what_is_not() {
        for character in (128u32..0x11_0000).filter_map(char::from_u32) {
            let folded = fold(character.encode_utf8(&mut [0; 4]).as_bytes());
            assert!(!folded.is_ascii(), "{character:?}");
        }
        assert_eq!(fold(b"ABC\xff\xc4"), b"abc\xff\xc4");
        assert_eq!(fold("ΣΊΣΥΦΟΣ".as_bytes()), "σίσυφοσ".as_bytes());
    }
}
