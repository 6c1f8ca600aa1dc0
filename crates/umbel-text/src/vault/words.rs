//! What a word is: a run of letters, digits, combining marks and underscores, in lower case and in one spelling.
//!
//! The spelling is Unicode's NFKC, before and after the change to lower case, so that a letter with its accent is the same
//! word however it was typed, and `ﬁ` is `fi`. Of a run of more than [`LONGEST`] characters the first count. Bytes that
//! are not UTF-8 stand between words. What has a zero byte in its first [`SAMPLE`] bytes is not taken for text, and has no
//! words.
//!
//! ```
//! use umbel_text::vault::words;
//! assert_eq!(words::of("Don't PANIC, cafe\u{301}_1!"), ["don", "t", "panic", "caf\u{e9}_1"]);
//! ```

use std::io::{self, Read};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Characters of a run that count.
pub const LONGEST: usize = 256;
/// Bytes that tell whether it is text.
pub const SAMPLE: usize = 8192;

/// The words of a text, in its order, as often as they come.
pub fn of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut runs = Runs::default();
    text.chars().for_each(|c| runs.take(c, &mut |word| words.push(word)));
    runs.end(&mut |word| words.push(word));
    words
}

/// Gives away the words of what is read, a piece at a time; whether it is text.
pub fn read(mut from: impl Read, mut each: impl FnMut(String)) -> io::Result<bool> {
    let mut runs = Runs::default();
    let mut buffer = vec![0; 1 << 16];
    let mut kept = 0;
    let mut seen = 0;
    loop {
        let read = match from.read(&mut buffer[kept..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let sample = SAMPLE.saturating_sub(seen).min(read);
        if buffer[kept..kept + sample].contains(&0) {
            return Ok(false);
        }
        seen = seen.saturating_add(read);
        let bytes = &buffer[..kept + read];
        let mut rest = 0..0;
        for chunk in bytes.utf8_chunks() {
            chunk.valid().chars().for_each(|c| runs.take(c, &mut each));
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            let end = invalid.as_ptr().addr() - bytes.as_ptr().addr() + invalid.len();
            // The rest of a character may come with the next bytes.
            let cut = str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if cut && end == bytes.len() && read > 0 {
                rest = end - invalid.len()..end;
            } else {
                runs.end(&mut each);
            }
        }
        kept = rest.len();
        buffer.copy_within(rest, 0);
        if read == 0 {
            runs.end(&mut each);
            return Ok(true);
        }
    }
}

/// The run at hand.
#[derive(Default)]
struct Runs {
    run: String,
    chars: usize,
}

impl Runs {
    fn take(&mut self, c: char, each: &mut impl FnMut(String)) {
        if !(c.is_alphanumeric() || c == '_' || !c.is_ascii() && is_combining_mark(c)) {
            return self.end(each);
        }
        self.chars += 1;
        if self.chars <= LONGEST {
            self.run.push(c);
        }
    }

    fn end(&mut self, each: &mut impl FnMut(String)) {
        if self.chars > 0 {
            each(folded(&self.run));
            self.run.clear();
            self.chars = 0;
        }
    }
}

fn folded(run: &str) -> String {
    if run.is_ascii() {
        return run.to_ascii_lowercase();
    }
    run.nfkc().flat_map(char::to_lowercase).nfkc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Gives so many bytes at a time.
    struct Slowly<'a>(Cursor<&'a [u8]>, usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }

    #[test]
    fn it_does_not_matter_how_the_bytes_come() {
        let text = "Grüße, 日本語 text; e\u{301}te\u{301} \u{1f600} İstanbul straße ﬁn x".repeat(3);
        let mut bytes = text.clone().into_bytes();
        bytes.extend(b" caf\xc3\xe9 end\xff");
        let mut expected = of(&text);
        expected.truncate(expected.len());
        expected.extend(["caf", "end"].map(String::from));
        for step in [1, 2, 3, 5, 1 << 20] {
            let mut words = Vec::new();
            assert!(read(Slowly(Cursor::new(&bytes), step), |word| words.push(word)).unwrap());
            assert_eq!(words, expected, "{step}");
        }
    }

    #[test]
    fn spelling_does_not_matter_and_long_runs_are_cut() {
        assert_eq!(of("\u{e9}T\u{c9}"), of("e\u{301}te\u{301}"));
        assert_eq!(of("ＦＵＬＬ ﬁne"), ["full", "fine"]);
        assert_eq!(of(&"x".repeat(1000)), ["x".repeat(LONGEST)]);
        assert!(of("--- … !").is_empty());
        let mut none = 0;
        assert!(!read(&b"word\0word"[..], |_| none += 1).unwrap());
        assert_eq!(none, 0);
    }
}
