//! Splits text into tokens.
//!
//! One tokeniser serves every search in this crate. An [`Alphabet`] selects the characters of its
//! tokens, and a [`Normaliser`], or [`fold`], brings a token into one spelling. Bytes that are not
//! UTF-8 separate tokens.
//!
//! ```
//! use umbel_text::tokens::{Alphabet, Tokens, fold};
//!
//! let text = "ÄRGER at 10:32, see error_log".as_bytes();
//! let words: Vec<&[u8]> = Tokens::new(text, Alphabet::Words).map(|token| &text[token.range()]).collect();
//! assert_eq!(words, ["ÄRGER".as_bytes(), b"at", b"10", b"32", b"see", b"error_log"]);
//! assert_eq!(fold("ÄRGER".as_bytes()), "ärger".as_bytes());
//! ```

mod names;
mod normalise;

pub(crate) use names::{name_length, starts_piece};
pub use normalise::{Normaliser, fold, fold_into};
pub(crate) use normalise::{SOFT_HYPHEN, nfc, to_apostrophe};

use std::ops::Range;
use unicode_normalization::char::is_combining_mark;

/// The characters that make up tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// Letters, decimal digits and underscores of any script, which are the words of `grep -w` in a
    /// UTF-8 locale. Excludes characters such as `²` and `½`.
    Words,
    /// ASCII letters, ASCII digits and underscores: the words of `grep -w` in the locale `C`.
    AsciiWords,
    /// Letters, numbers, combining marks and underscores.
    Identifiers,
    /// Letters, numbers and combining marks.
    Letters,
    /// Letters, numbers and underscores. After the first of them, a token may also have combining
    /// marks, soft hyphens, and apostrophes that precede a letter or number.
    Prose,
}

impl Alphabet {
    /// Returns whether a character belongs to tokens in any position.
    pub fn contains(self, character: char) -> bool {
        match u8::try_from(character).ok().filter(u8::is_ascii) {
            Some(byte) => matches!(self.classes()[usize::from(byte)], Class::Plain | Class::Capital),
            None => self.continues(character),
        }
    }

    /// Returns whether a token can begin with this non-ASCII character.
    fn starts(self, character: char) -> bool {
        match self {
            Alphabet::Words => character.is_alphabetic() || is_decimal_digit(character),
            Alphabet::AsciiWords => false,
            Alphabet::Identifiers | Alphabet::Letters => {
                character.is_alphanumeric() || is_combining_mark(character)
            }
            Alphabet::Prose => character.is_alphanumeric(),
        }
    }

    /// Returns whether a token can continue with this non-ASCII character.
    fn continues(self, character: char) -> bool {
        let follows = |c: char| self == Alphabet::Prose && (is_combining_mark(c) || c == SOFT_HYPHEN);
        self.starts(character) || follows(character)
    }

    /// Returns whether an apostrophe before `rest` joins its two sides into one token.
    fn joins(self, rest: &[u8]) -> bool {
        let (next, _) = bstr::decode_utf8(rest);
        self == Alphabet::Prose && next.is_some_and(char::is_alphanumeric)
    }

    /// Returns the end of the token that begins at `start`, and whether it is
    /// [plain](Token::plain).
    #[inline]
    pub(crate) fn token_end(self, text: &[u8], start: usize) -> (usize, bool) {
        let classes = self.classes();
        let (mut end, mut plain) = (start, true);
        while let Some(&byte) = text.get(end) {
            match classes[usize::from(byte)] {
                Class::Plain => end += 1,
                Class::Capital => {
                    plain = false;
                    end += 1;
                }
                Class::Separator => break,
                Class::Apostrophe | Class::Multibyte => {
                    let Some(length) = self.continued_by(&text[end..]) else { break };
                    plain = false;
                    end += length;
                }
            }
        }
        (end, plain)
    }

    /// Returns the length of the first character of `rest` if a token can continue with it. Out of
    /// line, so that the loop over ASCII stays small.
    #[inline(never)]
    fn continued_by(self, rest: &[u8]) -> Option<usize> {
        let (character, length) = bstr::decode_utf8(rest);
        let joins = |c| to_apostrophe(c) == '\'' && self.joins(&rest[length..]);
        character.is_some_and(|c| self.continues(c) || joins(c)).then_some(length)
    }

    fn classes(self) -> &'static [Class; 256] {
        const WORDS: [Class; 256] = classes(Class::Plain, Class::Separator, Class::Multibyte);
        const ASCII_WORDS: [Class; 256] = classes(Class::Plain, Class::Separator, Class::Separator);
        const LETTERS: [Class; 256] = classes(Class::Separator, Class::Separator, Class::Multibyte);
        const PROSE: [Class; 256] = classes(Class::Plain, Class::Apostrophe, Class::Multibyte);
        match self {
            Alphabet::Words | Alphabet::Identifiers => &WORDS,
            Alphabet::AsciiWords => &ASCII_WORDS,
            Alphabet::Letters => &LETTERS,
            Alphabet::Prose => &PROSE,
        }
    }
}

/// The class of a byte, which classifies most characters without decoding them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Separates tokens.
    Separator,
    /// Part of a token, and unchanged by folding.
    Plain,
    /// An ASCII capital letter.
    Capital,
    /// Part of a token if the characters on both sides are.
    Apostrophe,
    /// A byte of a character of several bytes.
    Multibyte,
}

const fn classes(underscore: Class, apostrophe: Class, multibyte: Class) -> [Class; 256] {
    let mut classes = [Class::Separator; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' => Class::Plain,
            b'A'..=b'Z' => Class::Capital,
            b'_' => underscore,
            b'\'' => apostrophe,
            128.. => multibyte,
            _ => Class::Separator,
        };
        byte += 1;
    }
    classes
}

/// Returns whether a character is a non-ASCII decimal digit. Unicode's category Nd comes in runs of
/// ten, from zero to nine.
fn is_decimal_digit(character: char) -> bool {
    let zeros = ZEROS.partition_point(|zero| *zero <= u32::from(character));
    zeros > 0 && u32::from(character) - ZEROS[zeros - 1] < 10
}

/// The zeros of Unicode 16, without the ASCII one.
const ZEROS: [u32; 75] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0,
    0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50,
    0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x10d40, 0x11066,
    0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x116d0, 0x116da, 0x11730,
    0x118e0, 0x11950, 0x11bf0, 0x11c50, 0x11d50, 0x11da0, 0x11f50, 0x16130, 0x16a60, 0x16ac0, 0x16b50,
    0x16d70, 0x1ccf0, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e4f0, 0x1e5f1,
    0x1e950, 0x1fbf0,
];

/// The location of a token in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
    /// Whether [`fold`] certainly leaves the token unchanged. Tokens that are not plain may also
    /// stay unchanged.
    pub plain: bool,
}

impl Token {
    /// Returns the range of the token's bytes in its text. These bytes are valid UTF-8.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// An iterator over the tokens of a text.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    text: &'a [u8],
    alphabet: Alphabet,
    position: usize,
}

impl<'a> Tokens<'a> {
    /// Returns an iterator over the tokens of a text.
    pub fn new(text: &'a [u8], alphabet: Alphabet) -> Tokens<'a> {
        Tokens { text, alphabet, position: 0 }
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        let classes = self.alphabet.classes();
        let mut start = self.position;
        loop {
            match classes[usize::from(*self.text.get(start)?)] {
                Class::Plain | Class::Capital => break,
                Class::Separator | Class::Apostrophe => start += 1,
                Class::Multibyte => {
                    let (character, length) = bstr::decode_utf8(&self.text[start..]);
                    if character.is_some_and(|character| self.alphabet.starts(character)) {
                        break;
                    }
                    start += length.max(1);
                }
            }
        }
        let (end, plain) = self.alphabet.token_end(self.text, start);
        self.position = end;
        Some(Token { start, end, plain })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &[u8]) -> Vec<&[u8]> {
        Tokens::new(text, Alphabet::Words).map(|token| &text[token.range()]).collect()
    }

    fn is_ascii_word(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || byte == b'_'
    }

    #[test]
    fn invalid_utf8_separates_words() {
        assert_eq!(words(b"caf\xe9 \xffau\xc3 lait"), [&b"caf"[..], b"au", b"lait"]);
        assert_eq!(
            words("naïve—daß 東京".as_bytes()),
            ["naïve".as_bytes(), "daß".as_bytes(), "東京".as_bytes()]
        );
        assert!(words(b"").is_empty() && words(b" \x80-").is_empty());
    }

    #[test]
    fn alphabets_differ_as_documented() {
        let text = "d'été ’tis 'n' x_1 c\u{ad}o ½ \u{301}a\u{301}";
        let tokens = |alphabet| -> Vec<&str> {
            Tokens::new(text.as_bytes(), alphabet).map(|token| &text[token.range()]).collect()
        };
        assert_eq!(tokens(Alphabet::Words), ["d", "été", "tis", "n", "x_1", "c", "o", "a"]);
        assert_eq!(tokens(Alphabet::AsciiWords), ["d", "t", "tis", "n", "x_1", "c", "o", "a"]);
        let marks = ["½", "\u{301}a\u{301}"];
        assert_eq!(
            tokens(Alphabet::Identifiers),
            [&["d", "été", "tis", "n", "x_1", "c", "o"][..], &marks].concat()
        );
        assert_eq!(
            tokens(Alphabet::Letters),
            [&["d", "été", "tis", "n", "x", "1", "c", "o"][..], &marks].concat()
        );
        assert_eq!(tokens(Alphabet::Prose), ["d'été", "tis", "n", "x_1", "c\u{ad}o", "½", "a\u{301}"]);
    }

    proptest! {
        #[test]
        fn words_of_valid_text_match_splitting(text in "[a-zA-Z0-9_ .äÖß—日\n]{0,60}") {
            let split: Vec<&[u8]> = text
                .split(|c| !Alphabet::Words.contains(c))
                .filter(|word| !word.is_empty())
                .map(str::as_bytes)
                .collect();
            prop_assert_eq!(words(text.as_bytes()), split);
        }

        #[test]
        fn ascii_words_match_splitting(text: Vec<u8>) {
            let split: Vec<&[u8]> =
                text.split(|byte| !is_ascii_word(*byte)).filter(|word| !word.is_empty()).collect();
            let tokens: Vec<&[u8]> =
                Tokens::new(&text, Alphabet::AsciiWords).map(|token| &text[token.range()]).collect();
            prop_assert_eq!(tokens, split);
        }

        #[test]
        fn folding_leaves_plain_words_unchanged(text: Vec<u8>) {
            for token in Tokens::new(&text, Alphabet::Words).filter(|token| token.plain) {
                prop_assert_eq!(&fold(&text[token.range()])[..], &text[token.range()]);
            }
        }
    }
}
