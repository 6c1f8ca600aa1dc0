//! Words as search tools see them: the longest runs of letters, digits and underscores, of any script.
//!
//! This is what `grep -w` takes for a word where text is UTF-8. Bytes that are not UTF-8 stand between words.
//!
//! ```
//! use umbel_text::words::{Runs, fold};
//!
//! let text = "ÄRGER at 10:32, see error_log";
//! let words: Vec<&[u8]> = Runs::of(text.as_bytes()).map(|run| &text.as_bytes()[run.range()]).collect();
//! assert_eq!(words, ["ÄRGER".as_bytes(), b"at", b"10", b"32", b"see", b"error_log"]);
//! assert_eq!(fold("ÄRGER".as_bytes()), "ärger".as_bytes());
//! ```

use std::ops::Range;

/// Whether a character belongs to words: a letter, a decimal digit, an underscore. Not `²` or `½`, as for grep.
#[inline]
pub fn is_word(character: char) -> bool {
    character.is_alphabetic() || character.is_ascii_digit() || character == '_' || is_digit(character)
}

/// Whether it is a digit of some script beside ASCII: those of Unicode's category Nd come in tens, from zero to nine.
fn is_digit(character: char) -> bool {
    let zeros = ZEROS.partition_point(|zero| *zero <= u32::from(character));
    zeros > 0 && u32::from(character) - ZEROS[zeros - 1] < 10
}

/// The zeros of Unicode 16, without that of ASCII.
const ZEROS: [u32; 75] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0,
    0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50,
    0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x10d40, 0x11066,
    0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x116d0, 0x116da, 0x11730,
    0x118e0, 0x11950, 0x11bf0, 0x11c50, 0x11d50, 0x11da0, 0x11f50, 0x16130, 0x16a60, 0x16ac0, 0x16b50,
    0x16d70, 0x1ccf0, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e4f0, 0x1e5f1,
    0x1e950, 0x1fbf0,
];

/// What a byte is by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Between words.
    Between,
    /// Of a word, and as folding leaves it.
    Plain,
    /// A capital letter of ASCII.
    Capital,
    /// Of a longer character.
    Long,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Between; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' | b'_' => Class::Plain,
            b'A'..=b'Z' => Class::Capital,
            128.. => Class::Long,
            _ => Class::Between,
        };
        byte += 1;
    }
    classes
};

/// Where a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Whether folding would leave it as it is, as far as its bytes tell without a second look.
    pub plain: bool,
}

impl Run {
    /// Its bytes.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// The words of a text, one after the other.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    text: &'a [u8],
    position: usize,
}

impl<'a> Runs<'a> {
    /// The words of a text.
    pub fn of(text: &'a [u8]) -> Runs<'a> {
        Runs { text, position: 0 }
    }

    /// How long the character at the position is, and whether it is of a word; a byte that is none is one long.
    fn long(&self) -> (bool, usize) {
        let (character, length) = bstr::decode_utf8(&self.text[self.position..]);
        (character.is_some_and(is_word), length.max(1))
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        loop {
            match CLASSES[usize::from(*self.text.get(self.position)?)] {
                Class::Between => self.position += 1,
                Class::Plain | Class::Capital => break,
                Class::Long => match self.long() {
                    (true, _) => break,
                    (false, length) => self.position += length,
                },
            }
        }
        let start = self.position;
        let mut plain = true;
        while let Some(&byte) = self.text.get(self.position) {
            match CLASSES[usize::from(byte)] {
                Class::Plain => self.position += 1,
                Class::Capital => {
                    plain = false;
                    self.position += 1;
                }
                Class::Long => {
                    let (word, length) = self.long();
                    if !word {
                        break;
                    }
                    plain = false;
                    self.position += length;
                }
                Class::Between => break,
            }
        }
        Some(Run { start, end: self.position, plain })
    }
}

/// The words of a text where letters are those of ASCII, and other characters stand between words.
#[derive(Clone, Debug)]
pub struct AsciiRuns<'a> {
    text: &'a [u8],
    position: usize,
}

impl<'a> AsciiRuns<'a> {
    /// The words of a text.
    pub fn of(text: &'a [u8]) -> AsciiRuns<'a> {
        AsciiRuns { text, position: 0 }
    }
}

impl Iterator for AsciiRuns<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let left = &self.text[self.position..];
        let start = self.position + left.iter().position(|byte| is_ascii_word(*byte))?;
        let length = self.text[start..].iter().position(|byte| !is_ascii_word(*byte));
        self.position = length.map_or(self.text.len(), |length| start + length);
        let plain = !self.text[start..self.position].iter().any(u8::is_ascii_uppercase);
        Some(Run { start, end: self.position, plain })
    }
}

/// Whether a byte belongs to words of ASCII.
#[inline]
pub fn is_ascii_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Text without the difference between capital and small letters. Bytes that are not UTF-8 stay as they are.
pub fn fold(text: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(text.len());
    fold_into(text, &mut folded);
    folded
}

/// The same, behind what is there already.
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
    let mut small = character.to_lowercase();
    // The Kelvin sign would become a `k`, and `İ` an `i` with a dot that is not of words: then what is ASCII would not be
    // told by its bytes.
    if small.clone().any(|small| small.is_ascii()) && !character.is_ascii() {
        return folded.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
    }
    small.by_ref().for_each(|small| folded.extend_from_slice(small.encode_utf8(&mut utf8).as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &[u8]) -> Vec<&[u8]> {
        Runs::of(text).map(|run| &text[run.range()]).collect()
    }

    #[test]
    fn bytes_that_are_not_utf8_stand_between_words() {
        assert_eq!(words(b"caf\xe9 \xffau\xc3 lait"), [&b"caf"[..], b"au", b"lait"]);
        assert_eq!(
            words("naïve—daß 東京".as_bytes()),
            ["naïve".as_bytes(), "daß".as_bytes(), "東京".as_bytes()]
        );
        assert!(words(b"").is_empty() && words(b" \x80-").is_empty());
    }

    #[test]
    fn folding_never_makes_ascii_of_what_is_not() {
        for character in (128u32..0x11_0000).filter_map(char::from_u32) {
            let folded = fold(character.encode_utf8(&mut [0; 4]).as_bytes());
            assert!(!folded.is_ascii(), "{character:?}");
        }
        assert_eq!(fold(b"ABC\xff\xc4"), b"abc\xff\xc4");
        assert_eq!(fold("ΣΊΣΥΦΟΣ".as_bytes()), "σίσυφοσ".as_bytes());
    }

    proptest! {
        #[test]
        fn words_of_valid_text_are_what_splitting_gives(text in "[a-zA-Z0-9_ .äÖß—日\n]{0,60}") {
            let split: Vec<&[u8]> =
                text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(str::as_bytes).collect();
            prop_assert_eq!(words(text.as_bytes()), split);
        }

        #[test]
        fn words_of_ascii_are_what_splitting_gives(text: Vec<u8>) {
            let split: Vec<&[u8]> =
                text.split(|byte| !is_ascii_word(*byte)).filter(|word| !word.is_empty()).collect();
            let runs: Vec<&[u8]> = AsciiRuns::of(&text).map(|run| &text[run.range()]).collect();
            prop_assert_eq!(runs, split);
        }

        #[test]
        fn plain_words_are_left_alone_by_folding(text: Vec<u8>) {
            for run in Runs::of(&text).filter(|run| run.plain) {
                prop_assert_eq!(&fold(&text[run.range()])[..], &text[run.range()]);
            }
        }
    }
}
