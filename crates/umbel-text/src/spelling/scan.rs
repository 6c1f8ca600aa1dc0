//! Finds the words of a text and their positions.

use crate::text::each_line;
use crate::tokens::{Alphabet, Normaliser, name_length, starts_piece};
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
    let check_text = |bytes: &[u8]| match memchr::memchr(0, bytes) {
        Some(_) => Err(io::Error::new(ErrorKind::InvalidData, "it is binary, and has no words")),
        None => Ok(()),
    };
    // Check the bytes at hand first, so that no word of a binary file is reported.
    let ready = text.fill_buf().or_else(|error| match error.kind() {
        ErrorKind::Interrupted => Ok(&[][..]),
        _ => Err(error),
    })?;
    check_text(ready)?;
    let mut seen = 0;
    let end = each_line(text, |line| {
        if seen < SAMPLE_BYTES
            && let Err(error) = check_text(line)
        {
            return ControlFlow::Break(Err(error));
        }
        seen += line.len();
        scan.line(line, &mut found).map_break(Ok)
    })?;
    Ok((scan.passed, end.transpose()?))
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
                && let Some(length) = name_length(rest, piece)
            {
                self.column += rest[..length].chars().count() as u64;
                at += length;
                piece = false;
                continue;
            }
            if !c.is_alphanumeric() && c != '_' {
                piece = starts_piece(c);
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
