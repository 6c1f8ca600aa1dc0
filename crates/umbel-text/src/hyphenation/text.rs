//! Text with marks where its words may be broken. All other bytes stay as they are.

use super::{Counts, Hyphenator};
use crate::tokens::{Alphabet, SOFT_HYPHEN, name_length, starts_piece};
use crate::{Error, Result};
use std::io::{BufRead, Write};
use std::ops::ControlFlow;

/// The characters that show that a word has its breaks already.
const HYPHENS: [char; 4] = ['-', SOFT_HYPHEN, '\u{2010}', '\u{2011}'];

impl Hyphenator {
    /// Copies a text and inserts `mark` where its words may be broken. Returns the counts of its
    /// words.
    ///
    /// The text may have any bytes. Words that touch invalid UTF-8, words with digits, underscores
    /// or hyphens, web addresses, file names and absolute paths are copied as they are.
    ///
    /// ```
    /// use umbel_text::hyphenation::{Hyphenator, Language};
    /// let hyphenator = Hyphenator::new(Language::English)?;
    /// let mut out = Vec::new();
    /// let counts = hyphenator.hyphenate(&b"The table's well-known \xff programs.\r\n"[..], &mut out, "-")?;
    /// assert_eq!(out, b"The ta-ble's well-known \xff pro-grams.\r\n");
    /// assert_eq!(counts.words, 2, "The and s are too short");
    /// # Ok::<(), umbel_text::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the reader or the writer fails.
    pub fn hyphenate(&self, text: impl BufRead, mut out: impl Write, mark: &str) -> Result<Counts> {
        let mut counts = Counts::default();
        let mut marked = Vec::new();
        let written = crate::text::each_line(text, |line| {
            marked.clear();
            self.line(line, mark, &mut marked, &mut counts);
            match out.write_all(&marked) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        });
        match written.map_err(Error::Input)? {
            Some(error) => Err(Error::Output(error)),
            None => out.flush().map_err(Error::Output).map(|()| counts),
        }
    }

    fn line(&self, line: &[u8], mark: &str, out: &mut Vec<u8>, counts: &mut Counts) {
        let mut torn = false;
        for chunk in line.utf8_chunks() {
            let tears = !chunk.invalid().is_empty();
            self.valid(chunk.valid(), [torn, tears], mark, out, counts);
            out.extend_from_slice(chunk.invalid());
            torn = tears;
        }
    }

    /// Copies valid text with its marks. `torn` is whether invalid bytes touch its start and its
    /// end.
    fn valid(&self, text: &str, torn: [bool; 2], mark: &str, out: &mut Vec<u8>, counts: &mut Counts) {
        let (mut at, mut piece) = (0, true);
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            if let Some(length) = name_length(rest, piece) {
                out.extend_from_slice(&rest.as_bytes()[..length]);
                (at, piece) = (at + length, false);
                continue;
            }
            if !c.is_alphanumeric() && c != '_' {
                out.extend_from_slice(&rest.as_bytes()[..c.len_utf8()]);
                (at, piece) = (at + c.len_utf8(), starts_piece(c));
                continue;
            }
            let (end, _) = Alphabet::Prose.token_end(text.as_bytes(), at);
            let token = &text[at..end];
            let touches = torn[0] && at == 0 || torn[1] && end == text.len();
            let hyphenated = text[..at].ends_with(HYPHENS) || text[end..].starts_with(HYPHENS);
            let has_breaks = token.contains(|c: char| c == '_' || c == SOFT_HYPHEN || c.is_numeric());
            match touches || hyphenated || has_breaks {
                true => out.extend_from_slice(token.as_bytes()),
                false => self.token(token, mark, out, counts),
            }
            (at, piece) = (end, false);
        }
    }

    /// Copies a token with its marks; an apostrophe separates two words.
    fn token(&self, token: &str, mark: &str, out: &mut Vec<u8>, counts: &mut Counts) {
        for part in token.split_inclusive(|c: char| !c.is_alphabetic()) {
            let word = part.trim_end_matches(|c: char| !c.is_alphabetic());
            let mut start = 0;
            for place in self.breaks_counted(word, counts) {
                out.extend_from_slice(&word.as_bytes()[start..place]);
                out.extend_from_slice(mark.as_bytes());
                start = place;
            }
            out.extend_from_slice(&part.as_bytes()[start..]);
        }
    }
}
