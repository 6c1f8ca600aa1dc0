//! Reads lists of weak passwords: words, or SHA-1 hashes with counts as leaked lists are published.

use super::{Digester, Form};
use crate::lines::Lines;
use crate::{Error, Result};
use memchr::memchr;
use rayon::prelude::*;
use std::io::Read;
use umbel::Digest;
use umbel::internals::hex;

/// The content of the lines of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// Passwords in plain text.
    Words,
    /// SHA-1 hashes of passwords, with or without counts.
    Hashes,
}

/// A line of a leaked list: the hash of a password, and the number of times it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pwned {
    /// The SHA-1 of the password.
    pub sha1: [u8; 20],
    /// The number of times it was found, if the list has counts.
    pub count: Option<u64>,
}

impl Pwned {
    /// Parses forty hexadecimal digits, optionally followed by a colon and a count.
    ///
    /// ```
    /// use umbel_text::password::{Pwned, sha1};
    /// let line = Pwned::parse(b"5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8:9659365").unwrap();
    /// assert_eq!(line.sha1, *sha1(b"password"));
    /// assert_eq!(line.count, Some(9_659_365));
    /// assert_eq!(Pwned::parse(b"password"), None);
    /// ```
    pub fn parse(line: &[u8]) -> Option<Pwned> {
        let (digits, rest) = line.split_first_chunk::<40>()?;
        let sha1 = hex::decode_array(digits)?;
        let count = match rest {
            [] => None,
            [b':', count @ ..] if count.iter().all(u8::is_ascii_digit) => {
                Some(str::from_utf8(count).ok()?.parse().ok()?)
            }
            _ => return None,
        };
        Some(Pwned { sha1, count })
    }
}

/// A list that is being read.
pub struct List<R> {
    lines: Lines<R>,
    holds: Lists,
    more: bool,
}

impl<R: Read> List<R> {
    /// Opens a list and reads its first lines, which show their content unless the caller states it
    /// in `said`. Refuses lines that look like neither words nor SHA-1 hashes: a filter built from
    /// them as words would find no password weak.
    ///
    /// # Errors
    ///
    /// Fails if the reader fails, or if the list holds neither words nor SHA-1 hashes.
    pub fn open(reader: R, said: Option<Lists>) -> Result<List<R>> {
        let mut lines = Lines::new(reader);
        let more = lines.more().map_err(Error::Input)?;
        if said.is_none() {
            check_kind(&lines)?;
        }
        let first = lines.lot().find(|line| !line.is_empty());
        let seen =
            if first.is_some_and(|line| Pwned::parse(line).is_some()) { Lists::Hashes } else { Lists::Words };
        Ok(List { lines, holds: said.unwrap_or(seen), more })
    }

    /// Returns the content of the lines.
    pub fn holds(&self) -> Lists {
        self.holds
    }

    /// Passes the digests of all lines to `sink`, many at once and in no particular order. Returns
    /// the number of lines. Skips empty lines, and hashes that were found fewer than `least` times.
    ///
    /// # Errors
    ///
    /// Fails if the reader or `sink` fails, a line is not a hash in a list of hashes, the list has
    /// hashes but the recipe needs words, or memory for the slow hash is short.
    pub fn read(
        mut self,
        digester: &Digester,
        least: u64,
        mut sink: impl FnMut(Vec<Digest>) -> Result<()>,
    ) -> Result<u64> {
        if self.holds == Lists::Hashes && digester.recipe().form != Form::Sha1 {
            return Err(Error::HashesAmongWords);
        }
        // If the hash is slow, divide the work into single words.
        let piece = if digester.recipe().slow.is_some() { 1 } else { 1024 };
        let mut total = 0;
        while self.more {
            let first = self.lines.number();
            let lot: Vec<(u64, &[u8])> =
                (first..).zip(self.lines.lot()).filter(|(_, line)| !line.is_empty()).collect();
            let work = |digester: &mut Digester, lines: &[(u64, &[u8])]| -> Result<Vec<Digest>> {
                let mut digests = Vec::with_capacity(lines.len());
                for (number, line) in lines {
                    match self.holds {
                        Lists::Words => digester.each(line, |digest| {
                            digests.push(digest);
                            Ok(())
                        })?,
                        Lists::Hashes => {
                            let Pwned { sha1, count } =
                                Pwned::parse(line).ok_or(Error::NotAHash { line: Some(*number) })?;
                            if count.is_none_or(|count| count >= least) {
                                digests.push(digester.digest_sha1(&sha1)?);
                            }
                        }
                    }
                }
                Ok(digests)
            };
            let pieces: Vec<Result<Vec<Digest>>> =
                lot.par_chunks(piece).map_init(|| digester.clone(), work).collect();
            total += lot.len() as u64;
            for digests in pieces {
                sink(digests?)?;
            }
            self.more = self.lines.more().map_err(Error::Input)?;
        }
        Ok(total)
    }
}

/// The number of lines that are compared.
const SAMPLED_LINES: usize = 8;

/// A line format that is not a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineFormat {
    /// A hash: its number of digits, and whether a count follows it.
    Hash(usize, bool),
    /// A hash and the name of a file, as `sha1sum` prints them.
    Sum,
}

impl LineFormat {
    fn detect(line: &[u8]) -> Option<LineFormat> {
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        match &line[digits..] {
            _ if ![32, 40, 56, 64, 96, 128].contains(&digits) => None,
            [b' ', b' ' | b'*', _, ..] => Some(LineFormat::Sum),
            // These are SHA-1 hashes, which are supported.
            _ if digits == 40 => None,
            [] => Some(LineFormat::Hash(digits, false)),
            [b':', count @ ..] if !count.is_empty() && count.iter().all(u8::is_ascii_digit) => {
                Some(LineFormat::Hash(digits, true))
            }
            _ => None,
        }
    }
}

/// Fails if the first lines show that a list has neither words nor SHA-1 hashes.
fn check_kind<R: Read>(lines: &Lines<R>) -> Result<()> {
    if lines.lot().any(|line| memchr(0, line).is_some()) {
        return Err(Error::NotWords(
            "it has zero bytes, as text in UTF-16 has, which `iconv -f UTF-16 -t UTF-8` converts",
        ));
    }
    let start: Vec<Option<LineFormat>> =
        lines.lot().filter(|line| !line.is_empty()).take(SAMPLED_LINES).map(LineFormat::detect).collect();
    let Some(first) = start.first().copied().flatten() else { return Ok(()) };
    if start.iter().any(|format| *format != Some(first)) {
        return Ok(());
    }
    Err(Error::NotWords(match first {
        // A single line of hexadecimal digits may be a word.
        LineFormat::Hash(_, false) if start.len() == 1 => return Ok(()),
        LineFormat::Hash(32, _) => "its lines look like NTLM hashes, and only those of SHA-1 are understood",
        LineFormat::Hash(..) => "its lines look like hashes, and only those of SHA-1 are understood",
        LineFormat::Sum => {
            "its lines look like sums of files, as sha1sum prints them, and not like hashes alone"
        }
    }))
}
