//! Splits text into words and runs of words.

use super::elements::Distinct;
use crate::tokens::{Alphabet, Normaliser, Tokens};
use std::collections::VecDeque;
use umbel::{Digest, Hasher};

/// The length at which text without a separator is split.
const MAX_WORD_BYTES: usize = 64 << 10;

/// Collects the elements of a text as it arrives.
pub(super) struct Text {
    hasher: Hasher,
    found: Distinct,
    /// The end of the text so far, which may hold an incomplete word.
    held: Vec<u8>,
    /// The number of words in an element.
    run: usize,
    /// The last words.
    last: VecDeque<Digest>,
    /// Whether there was a complete run.
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
        // Split at a byte that is certainly not part of a word or of a multibyte character.
        let parts = |byte: &u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
        let whole = match held.iter().rposition(parts) {
            Some(at) => at + 1,
            None if held.len() < MAX_WORD_BYTES => 0,
            None => held.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(held.len()),
        };
        self.words(&held[..whole]);
        held.drain(..whole);
        self.held = held;
    }

    pub(super) fn finish(mut self) -> Distinct {
        let held = std::mem::take(&mut self.held);
        self.words(&held);
        // A text that is shorter than a run is one element.
        if !self.any && !self.last.is_empty() {
            self.element();
        }
        self.found
    }

    fn words(&mut self, bytes: &[u8]) {
        for token in Tokens::new(bytes, Alphabet::Letters) {
            let token = str::from_utf8(&bytes[token.range()]).unwrap_or_default();
            let word = Normaliser::Lowercase.apply(token);
            self.word(self.hasher.digest_bytes(word.as_bytes()));
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
