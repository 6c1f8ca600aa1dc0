//! Extracts the keys of a text, each once: its words and, if the settings ask for them, all
//! substrings of one length.

use super::settings::{Settings, gram, word};
use crate::tokens::{Alphabet, Tokens, fold_into};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use umbel::Digest;

/// Collects the distinct keys of one text after the other, reusing its memory.
#[derive(Default)]
pub(super) struct Keys {
    seen: HashSet<u64, BuildHasherDefault<Digested>>,
    folded: Vec<u8>,
}

impl Keys {
    /// Returns the distinct keys of a text.
    pub fn collect(&mut self, text: &[u8], settings: &Settings) -> impl ExactSizeIterator<Item = Digest> {
        self.seen.clear();
        for token in Tokens::new(text, Alphabet::Words) {
            let bytes = &text[token.range()];
            if token.plain {
                self.seen.insert(word(bytes).get());
                continue;
            }
            self.folded.clear();
            fold_into(bytes, &mut self.folded);
            self.seen.insert(word(&self.folded).get());
            if !bytes.is_ascii() {
                // In the locale `C`, other letters split this token into several words.
                let parts = Tokens::new(bytes, Alphabet::AsciiWords);
                self.seen.extend(parts.map(|part| word(&bytes[part.range()].to_ascii_lowercase()).get()));
            }
        }
        if let Some(length) = settings.grams {
            grams(text, length, |bytes| {
                self.seen.insert(gram(bytes).get());
            });
        }
        self.seen.iter().copied().map(Digest::from_hash)
    }
}

/// Calls `each` with every substring of `length` bytes within a line, as a number. ASCII letters
/// are in lower case.
pub(super) fn grams(text: &[u8], length: u32, mut each: impl FnMut(u64)) {
    let mask = u64::MAX >> (64 - 8 * length);
    let (mut bytes, mut fresh) = (0u64, 0);
    for byte in text {
        if *byte == b'\n' {
            fresh = 0;
            continue;
        }
        bytes = (bytes << 8 | u64::from(byte.to_ascii_lowercase())) & mask;
        fresh += 1;
        if fresh >= length {
            each(bytes);
        }
    }
}

/// A hasher for keys that are already hashed.
#[derive(Default)]
pub(super) struct Digested(u64);

impl Hasher for Digested {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, digest: u64) {
        self.0 = digest;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_word_is_one_key_in_lower_case() {
        let mut keys = Keys::default();
        let found: BTreeSet<Digest> =
            keys.collect(b"Error: error at 10:32\nERROR_LOG", &Settings::WORDS).collect();
        let words = ["error", "at", "10", "32", "error_log"];
        assert_eq!(found, words.iter().map(|text| word(text.as_bytes())).collect());
        assert_eq!(keys.collect(b"", &Settings::WORDS).len(), 0);
        // In the locale `C`, other letters split a word.
        let found: BTreeSet<Digest> = keys.collect("Écran NAÏVE".as_bytes(), &Settings::WORDS).collect();
        let words = ["écran", "cran", "naïve", "na", "ve"];
        assert_eq!(found, words.iter().map(|text| word(text.as_bytes())).collect());
    }

    #[test]
    fn substrings_do_not_cross_line_ends() {
        let mut found = Vec::new();
        grams(b"aBcd\nefg", 3, |bytes| found.push(bytes));
        let number = |text: &[u8; 3]| u64::from_be_bytes([0, 0, 0, 0, 0, text[0], text[1], text[2]]);
        assert_eq!(found, [number(b"abc"), number(b"bcd"), number(b"efg")]);
        grams(b"abcdefghi", 8, |bytes| found.push(bytes));
        assert_eq!(found[3..], [u64::from_be_bytes(*b"abcdefgh"), u64::from_be_bytes(*b"bcdefghi")]);
    }
}
