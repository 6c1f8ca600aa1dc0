//! Extracts the words of documents and queries: tokens of letters, digits, combining marks and
//! underscores, in lower case and in one spelling.
//!
//! The spelling is Unicode's NFKC, before and after the conversion to lower case, so that an
//! accented letter is the same however it was typed, and `ﬁ` is `fi`. Only the first
//! [`MAX_WORD_CHARS`] characters of a longer token count. Bytes that are not UTF-8 separate words.
//! A document with a zero byte in its first [`SAMPLE_BYTES`] bytes is not text and has no words.
//!
//! ```
//! use umbel_text::vault::tokens;
//! assert_eq!(tokens::words("Don't PANIC, cafe\u{301}_1!"), ["don", "t", "panic", "caf\u{e9}_1"]);
//! ```

use crate::tokens::{Alphabet, Normaliser, Tokens};
use std::io::{self, Read};

/// The number of characters of a token that count. The rest is ignored.
pub const MAX_WORD_CHARS: usize = 256;
/// The number of bytes at the start of a document that decide whether it is text.
pub const SAMPLE_BYTES: usize = 8192;

/// The size of the buffer, which has room for many words of [`MAX_WORD_CHARS`].
const BUFFER_BYTES: usize = 1 << 16;

/// Returns the words of a text in order, with repetitions.
pub fn words(text: &str) -> Vec<String> {
    Tokens::new(text.as_bytes(), Alphabet::Identifiers).map(|token| word(&text[token.range()])).collect()
}

/// Calls `each` with every word of a reader. Returns whether its contents are text.
///
/// # Errors
///
/// Returns the error of the reader.
pub fn read(mut from: impl Read, mut each: impl FnMut(String)) -> io::Result<bool> {
    let mut buffer = vec![0; BUFFER_BYTES];
    // The number of bytes at the start of the buffer that are left over from the last round.
    let mut held = 0;
    let mut seen = 0;
    loop {
        let read = match from.read(&mut buffer[held..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let sample = SAMPLE_BYTES.saturating_sub(seen).min(read);
        if buffer[held..held + sample].contains(&0) {
            return Ok(false);
        }
        seen = seen.saturating_add(read);
        let end = held + read;
        let complete = if read == 0 { end } else { complete_length(&buffer[..end]) };
        let mut open = complete..complete;
        for token in Tokens::new(&buffer[..complete], Alphabet::Identifiers) {
            let text = str::from_utf8(&buffer[token.range()]).unwrap_or_default();
            if token.end == complete && read > 0 {
                // The next bytes may continue this token. Characters beyond the limit do not count
                // anyway.
                open = token.start..token.start + first_chars(text).len();
            } else {
                each(word(text));
            }
        }
        if read == 0 {
            return Ok(true);
        }
        held = open.len() + (end - complete);
        let incomplete = open.len();
        buffer.copy_within(open, 0);
        buffer.copy_within(complete..end, incomplete);
    }
}

/// Returns the number of bytes before an incomplete last character.
fn complete_length(bytes: &[u8]) -> usize {
    let last = (bytes.len().saturating_sub(3)..bytes.len()).rev().find(|at| bytes[*at] & 0xc0 != 0x80);
    let is_cut = |at: &usize| str::from_utf8(&bytes[*at..]).is_err_and(|error| error.error_len().is_none());
    last.filter(is_cut).unwrap_or(bytes.len())
}

/// Returns the characters of a token that count.
fn first_chars(token: &str) -> &str {
    if token.len() <= MAX_WORD_CHARS {
        return token;
    }
    token.char_indices().nth(MAX_WORD_CHARS).map_or(token, |(end, _)| &token[..end])
}

fn word(token: &str) -> String {
    Normaliser::Compatibility.apply(first_chars(token)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A reader that returns at most this many bytes at a time.
    struct Slowly<'a>(Cursor<&'a [u8]>, usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }

    #[test]
    fn words_do_not_depend_on_read_sizes() {
        let text = "Grüße, 日本語 text; e\u{301}te\u{301} \u{1f600} İstanbul straße ﬁn x".repeat(3);
        let mut bytes = text.clone().into_bytes();
        bytes.extend(b" caf\xc3\xe9 end\xff");
        let mut expected = words(&text);
        expected.truncate(expected.len());
        expected.extend(["caf", "end"].map(String::from));
        for step in [1, 2, 3, 5, 1 << 20] {
            let mut found = Vec::new();
            assert!(read(Slowly(Cursor::new(&bytes), step), |word| found.push(word)).unwrap());
            assert_eq!(found, expected, "{step}");
        }
    }

    #[test]
    fn a_token_longer_than_the_buffer_is_truncated() {
        let text = format!("{}\u{e9} end", "\u{e9}x".repeat(BUFFER_BYTES));
        for step in [7, 1000, 1 << 20] {
            let mut found = Vec::new();
            assert!(read(Slowly(Cursor::new(text.as_bytes()), step), |word| found.push(word)).unwrap());
            assert_eq!(found, ["\u{e9}x".repeat(MAX_WORD_CHARS / 2), "end".into()], "{step}");
        }
    }

    #[test]
    fn spellings_are_unified_and_long_tokens_truncated() {
        assert_eq!(words("\u{e9}T\u{c9}"), words("e\u{301}te\u{301}"));
        assert_eq!(words("ＦＵＬＬ ﬁne"), ["full", "fine"]);
        assert_eq!(words(&"x".repeat(1000)), ["x".repeat(MAX_WORD_CHARS)]);
        assert!(words("--- … !").is_empty());
        let mut none = 0;
        assert!(!read(&b"word\0word"[..], |_| none += 1).unwrap());
        assert_eq!(none, 0);
    }
}
