//! Finds the words of a text and their positions.

use crate::tokens::{Alphabet, Normaliser};
use std::borrow::Cow;
use std::io::{self, BufRead, ErrorKind};
use std::ops::ControlFlow;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// The word in NFC, with typewriter apostrophes and without soft hyphens.
    pub text: Cow<'a, str>,
    /// The number of the line, from 1.
    pub line: u64,
    /// The position of the first character in its line, from 1. Characters are code points; an
    /// invalid UTF-8 sequence counts as one.
    pub column: u64,
}

/// Counts of the words in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// The number of words that were passed to the caller.
    pub words: u64,
    /// The number of words that were skipped because they touch bytes that are not UTF-8.
    pub unreadable: u64,
}

/// The part of a line that is held in memory. A word is split only if this many bytes have no white
/// space.
const MAX_HELD_BYTES: usize = 1 << 20;

/// The number of bytes at the start of a file that decide whether it is text.
const SAMPLE_BYTES: usize = 8 << 10;

/// Calls `found` with every word of a text, until it returns `Break`. Skips addresses and file
/// names unless `addresses` is set. Returns the counts, and the value of `Break`.
///
/// # Errors
///
/// Fails if the reader fails, or if the text has a zero byte near its start and so is binary.
pub fn each_word<B>(
    mut text: impl BufRead,
    addresses: bool,
    mut found: impl FnMut(Word<'_>) -> ControlFlow<B>,
) -> io::Result<(Passed, Option<B>)> {
    let mut scan = Scan { addresses, line: 1, column: 1, passed: Passed::default() };
    let mut held: Vec<u8> = Vec::new();
    let mut seen = 0;
    loop {
        let ready = match text.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            ready => ready?,
        };
        if seen < SAMPLE_BYTES && memchr::memchr(0, ready).is_some() {
            return Err(io::Error::new(ErrorKind::InvalidData, "it is binary, and has no words"));
        }
        seen += ready.len();
        if ready.is_empty() {
            break;
        }
        let room = MAX_HELD_BYTES.saturating_sub(held.len()).max(1);
        let end = memchr::memchr(b'\n', &ready[..ready.len().min(room)]);
        let taken = end.map_or(ready.len().min(room), |end| end + 1);
        held.extend_from_slice(&ready[..taken]);
        text.consume(taken);
        let whole = if end.is_some() {
            held.len()
        } else if held.len() < MAX_HELD_BYTES {
            continue;
        } else {
            let space = held.iter().rposition(u8::is_ascii_whitespace).map(|at| at + 1);
            space.unwrap_or_else(|| last_boundary(&held))
        };
        if let ControlFlow::Break(value) = scan.line(&held[..whole], &mut found) {
            return Ok((scan.passed, Some(value)));
        }
        held.drain(..whole);
    }
    let end = scan.line(&held, &mut found);
    Ok((scan.passed, end.break_value()))
}

/// Returns the start of the last character, which may be incomplete. Never returns 0.
fn last_boundary(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(4).max(1);
    (from..bytes.len()).rev().find(|at| bytes[*at] & 0xc0 != 0x80).unwrap_or(bytes.len())
}

struct Scan {
    addresses: bool,
    line: u64,
    column: u64,
    passed: Passed,
}

impl Scan {
    /// Scans a line or a part of one.
    fn line<B>(
        &mut self,
        bytes: &[u8],
        found: &mut impl FnMut(Word<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut torn = false;
        for chunk in bytes.utf8_chunks() {
            let tears = !chunk.invalid().is_empty();
            self.text(chunk.valid(), [torn, tears], found)?;
            self.column += u64::from(tears);
            torn = tears;
        }
        if bytes.ends_with(b"\n") {
            self.line += 1;
            self.column = 1;
        }
        ControlFlow::Continue(())
    }

    /// Scans valid text. `torn` is whether invalid bytes touch its start and its end.
    fn text<B>(
        &mut self,
        text: &str,
        torn: [bool; 2],
        found: &mut impl FnMut(Word<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut at = 0;
        let mut piece = true;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            if !self.addresses
                && let Some(length) = address(rest, piece)
            {
                self.column += rest[..length].chars().count() as u64;
                at += length;
                piece = false;
                continue;
            }
            if !c.is_alphanumeric() && c != '_' {
                piece = c.is_whitespace() || matches!(c, '(' | '[' | '<' | '"' | '\'' | '`' | '{');
                self.column += 1;
                at += c.len_utf8();
                continue;
            }
            let (end, _) = Alphabet::Prose.token_end(text.as_bytes(), at);
            let token = &text[at..end];
            let (line, column) = (self.line, self.column);
            let touches = torn[0] && at == 0 || torn[1] && end == text.len();
            self.column += token.chars().count() as u64;
            at = end;
            piece = false;
            // Numbers and identifiers of programs are not words.
            let is_word = !token.contains(|c: char| c == '_' || c.is_numeric());
            if touches {
                self.passed.unreadable += 1;
            } else if is_word {
                self.passed.words += 1;
                found(Word { text: Normaliser::Spelling.apply(token), line, column })?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns the length of the address, file name or path that begins here. `piece` is whether a new
/// piece of text begins here, such as after a space.
///
/// Looks at no more bytes than a name can have, so that a line of any length is read only once.
fn address(text: &str, piece: bool) -> Option<usize> {
    const MAX_NAME_BYTES: usize = 64;
    let bytes = text.as_bytes();
    let first = *bytes.first()?;
    let to_end = || {
        let end = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | ')' | ']' | '}' | '`');
        Some(text.find(end).unwrap_or(text.len()))
    };
    if piece && matches!(first, b'/' | b'~' | b'.') {
        let second = bytes.get(1).copied().unwrap_or(b' ');
        let path = second.is_ascii_alphanumeric() || second == b'/' || first == b'.' && second == b'.';
        return if path { to_end() } else { None };
    }
    if !first.is_ascii_alphanumeric() {
        return None;
    }
    let name = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._%".contains(byte);
    let length = bytes.iter().take(MAX_NAME_BYTES).take_while(|byte| name(byte)).count();
    let (named, after) = (&bytes[..length], &bytes[length..]);
    let host = |after: &[u8]| after.first().is_some_and(u8::is_ascii_alphanumeric);
    let letter = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    // A dot directly before a lower-case letter or a digit does not end a sentence.
    let dotted = named.windows(2).any(|pair| pair[0] == b'.' && letter(&pair[1]));
    let addressed = after.starts_with(b"://")
        || after.starts_with(b"@") && host(&after[1..])
        || named.eq_ignore_ascii_case(b"mailto") && after.starts_with(b":");
    if addressed {
        return to_end();
    }
    let reaches = length < MAX_NAME_BYTES && !text[length..].starts_with(|c: char| c.is_alphanumeric());
    (dotted && reaches).then_some(length)
}
