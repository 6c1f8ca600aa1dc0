//! Words and runs of words.

use super::elements::Distinct;
use std::borrow::Cow;
use std::collections::VecDeque;
use umbel::{Digest, Hasher};
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// A word that has not ended after so many bytes is cut.
const LONGEST: usize = 64 << 10;

/// Takes text apart as it comes.
pub(super) struct Text {
    hasher: Hasher,
    found: Distinct,
    /// The end of what came, in which a word may not have ended yet.
    held: Vec<u8>,
    /// How many words make an element.
    run: usize,
    /// The last words.
    last: VecDeque<Digest>,
    /// Whether there was a whole run.
    any: bool,
}

impl Text {
    pub(super) fn new(run: usize) -> Text {
        let (hasher, found, held, last) = Default::default();
        Text { hasher, found, held, run: run.max(1), last, any: false }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(bytes);
        // At a byte that is certainly no part of a word nor of a longer character.
        let parts = |byte: &u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
        let whole = match held.iter().rposition(parts) {
            Some(at) => at + 1,
            None if held.len() < LONGEST => 0,
            None => held.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(held.len()),
        };
        self.words(&held[..whole]);
        held.drain(..whole);
        self.held = held;
    }

    pub(super) fn finish(mut self) -> Distinct {
        let held = std::mem::take(&mut self.held);
        self.words(&held);
        // Of a text that is shorter than a run, all of it.
        if !self.any && !self.last.is_empty() {
            self.element();
        }
        self.found
    }

    fn words(&mut self, bytes: &[u8]) {
        let part = |c: char| !(c.is_alphanumeric() || is_combining_mark(c));
        for chunk in bytes.utf8_chunks() {
            for word in chunk.valid().split(part).filter(|word| !word.is_empty()) {
                let digest = self.hasher.digest_bytes(folded(word).as_bytes());
                self.word(digest);
            }
        }
    }

    fn word(&mut self, digest: Digest) {
        if self.run == 1 {
            return self.found.add(digest);
        }
        self.last.push_back(digest);
        if self.last.len() == self.run {
            self.any = true;
            self.element();
            self.last.pop_front();
        }
    }

    fn element(&mut self) {
        let bytes: Vec<u8> = self.last.iter().flat_map(|word| word.get().to_le_bytes()).collect();
        self.found.add(self.hasher.digest_bytes(&bytes));
    }
}

/// In small letters, with accents put together.
fn folded(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return match word.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => word.to_ascii_lowercase().into(),
            false => word.into(),
        };
    }
    match is_nfc_quick(word.chars()) {
        IsNormalized::Yes => word.to_lowercase().into(),
        _ => word.nfc().collect::<String>().to_lowercase().into(),
    }
}
