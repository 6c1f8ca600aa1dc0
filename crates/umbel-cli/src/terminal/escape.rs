//! Text from servers and files on a terminal: control characters are shown, not obeyed.
//!
//! An escape sequence in a line, a file name or an error of a server could change the title of the
//! window, erase what was printed, or paste a command. Characters that reverse the direction of
//! text could show another name than the one that is there. On a terminal all of them appear as
//! `\u001b`, which is also how JSON writes them, and bytes that are not UTF-8 as `\x9b`. Output to a
//! pipe or a file is never changed.

use std::borrow::Cow;
use std::io::Write;
use umbel::internals::text::is_control;

/// Returns whether a character is shown instead of obeyed: every control character except ends of
/// lines and tabs.
pub fn is_unsafe(c: char) -> bool {
    is_control(c) && !matches!(c, '\n' | '\t')
}

/// Returns text with its unsafe characters shown.
pub fn escaped(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        let mut characters = chunk.valid().chars().peekable();
        while let Some(c) = characters.next() {
            // The end of a line in files from Windows.
            let ends_line = c == '\r' && characters.peek() == Some(&'\n');
            // Writes to memory do not fail.
            let _ = match is_unsafe(c) && !ends_line {
                true => write!(out, "\\u{:04x}", u32::from(c)),
                false => write!(out, "{c}"),
            };
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    Cow::Owned(out)
}

/// Escapes text that comes in pieces.
#[derive(Default)]
pub struct Escaper {
    /// The first bytes of a character, or a carriage return, at the end of the last piece.
    partial: Vec<u8>,
}

impl Escaper {
    /// Returns a piece with its unsafe characters shown, without a character that is not complete.
    pub fn escape(&mut self, piece: &[u8]) -> Vec<u8> {
        self.partial.extend_from_slice(piece);
        let whole = self.partial.len() - undecided(&self.partial);
        let rest = self.partial.split_off(whole);
        escaped(&std::mem::replace(&mut self.partial, rest)).into_owned()
    }

    /// Returns the incomplete character at the end of the text.
    pub fn finish(&mut self) -> Vec<u8> {
        escaped(&std::mem::take(&mut self.partial)).into_owned()
    }
}

/// Returns the number of bytes at the end whose meaning depends on the bytes after them.
fn undecided(text: &[u8]) -> usize {
    if text.ends_with(b"\r") {
        return 1;
    }
    // A character has at most four bytes.
    let tail = &text[text.len().saturating_sub(3)..];
    let cut_off = |start: &usize| {
        str::from_utf8(&tail[*start..])
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (0..tail.len()).find(cut_off).map_or(0, |start| tail.len() - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_control_a_terminal_are_shown() {
        for (text, shown) in [
            (&b"plain, with a\ttab\n"[..], "plain, with a\ttab\n"),
            ("Grün 世界 🦀\n".as_bytes(), "Grün 世界 🦀\n"),
            (b"va\x1b]0;x\x07lue\x1b[31m", "va\\u001b]0;x\\u0007lue\\u001b[31m"),
            (b"\0\x08\x7f", "\\u0000\\u0008\\u007f"),
            ("a\u{9b}31m".as_bytes(), "a\\u009b31m"),
            (b"a\x9b31m\xff", "a\\x9b31m\\xff"),
            ("evil\u{202e}txt.exe \u{2066}\u{2029}".as_bytes(), "evil\\u202etxt.exe \\u2066\\u2029"),
            (b"dos\r\nline\rover", "dos\r\nline\\u000dover"),
        ] {
            assert_eq!(str::from_utf8(&escaped(text)).unwrap(), shown);
        }
    }

    #[test]
    fn pieces_are_escaped_like_the_whole() {
        let text = "Grün\r\n世界\r🦀\u{9b}".as_bytes();
        let text = [text, b"\x9b \xe4\xb8", text, b"\xf0\x9f\xa6"].concat();
        for size in 1..text.len() {
            let mut escaper = Escaper::default();
            let mut pieces: Vec<u8> = text.chunks(size).flat_map(|piece| escaper.escape(piece)).collect();
            pieces.extend(escaper.finish());
            assert_eq!(pieces.to_vec(), escaped(&text).to_vec(), "{size}");
        }
    }

    #[test]
    fn escaped_json_is_json() {
        let text = "\u{7f}\u{9b}\u{202e}\u{1b}";
        let json = serde_json::to_vec(text).unwrap();
        let shown = escaped(&json);
        assert!(shown.is_ascii());
        assert_eq!(serde_json::from_slice::<String>(&shown).unwrap(), text);
    }
}
