//! Reads lists of weak passwords: words, or SHA-1 or NTLM hashes with counts as leaked lists are
//! published.

use super::{Algorithm, Digester, PasswordHash};
use crate::lines::Lines;
use crate::{Error, Result};
use memchr::memchr;
use rayon::prelude::*;
use std::io::Read;
use umbel::Digest;

/// The content of the lines of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// Passwords in plain text.
    Words,
    /// Hashes of passwords, with or without counts.
    Hashes(Algorithm),
}

/// A line of a leaked list: the hash of a password, and the number of times it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pwned {
    /// The hash of the password.
    pub hash: PasswordHash,
    /// The number of times it was found, if the list has counts.
    pub count: Option<u64>,
}

impl Pwned {
    /// Parses the hexadecimal digits of a hash, 40 for SHA-1 and 32 for NTLM, optionally followed by
    /// a colon and a count.
    ///
    /// ```
    /// use umbel_text::password::{Algorithm, Pwned};
    /// let line = Pwned::parse(b"5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8:9659365").unwrap();
    /// assert_eq!(line.hash, *Algorithm::Sha1.hash(b"password"));
    /// assert_eq!(line.count, Some(9_659_365));
    /// let line = Pwned::parse(b"8846F7EAEE8FB117AD06BDD830B7586C").unwrap();
    /// assert_eq!(line.hash, *Algorithm::Ntlm.hash(b"password"));
    /// assert_eq!(Pwned::parse(b"password"), None);
    /// ```
    pub fn parse(line: &[u8]) -> Option<Pwned> {
        let (digits, count) = match memchr(b':', line) {
            None => (line, None),
            Some(colon) => {
                let count = &line[colon + 1..];
                let is_number = count.iter().all(u8::is_ascii_digit);
                (&line[..colon], Some(str::from_utf8(count).ok().filter(|_| is_number)?.parse().ok()?))
            }
        };
        Some(Pwned { hash: PasswordHash::parse(digits)?, count })
    }

    /// Parses a line of a list with hashes of one algorithm.
    pub(super) fn parse_as(line: &[u8], algorithm: Algorithm, number: Option<u64>) -> Result<Pwned> {
        match Pwned::parse(line) {
            Some(pwned) if pwned.hash.algorithm() == algorithm => Ok(pwned),
            Some(_) => Err(Error::MixedHashes { line: number, algorithm }),
            None => Err(Error::NotAHash { line: number, algorithm: Some(algorithm) }),
        }
    }
}

/// A list that is being read.
pub struct List<R> {
    lines: Lines<R>,
    holds: Lists,
    has_counts: bool,
    more: bool,
}

impl<R: Read> List<R> {
    /// Opens a list and reads its first lines, which show their content unless the caller states it
    /// in `said`. Refuses lines that look like other hashes, or like a mixture: a filter built from
    /// them as words would find no password weak.
    ///
    /// # Errors
    ///
    /// Fails if the reader fails, or if the list appears to hold neither words nor hashes of one
    /// algorithm.
    pub fn open(reader: R, said: Option<Lists>) -> Result<List<R>> {
        let mut lines = Lines::new(reader);
        let more = lines.more().map_err(Error::Input)?;
        let holds = match said {
            Some(holds) => holds,
            None => detect(&lines)?,
        };
        let first = lines.lot().find(|line| !line.is_empty());
        let has_counts = first.and_then(Pwned::parse).is_some_and(|first| first.count.is_some());
        Ok(List { lines, holds, has_counts, more })
    }

    /// Returns whether the first line is a hash with a count.
    pub fn has_counts(&self) -> bool {
        self.has_counts
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
    /// hashes but the recipe needs words or other hashes, or memory for the slow hash is short.
    pub fn read(
        mut self,
        digester: &Digester,
        least: u64,
        mut sink: impl FnMut(Vec<Digest>) -> Result<()>,
    ) -> Result<u64> {
        if let Lists::Hashes(found) = self.holds {
            match digester.recipe().form.algorithm() {
                Some(wanted) if wanted == found => {}
                Some(wanted) => return Err(Error::OtherHashes { found, wanted }),
                None => return Err(Error::HashesAmongWords(found)),
            }
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
                        Lists::Hashes(algorithm) => {
                            let Pwned { hash, count } = Pwned::parse_as(line, algorithm, Some(*number))?;
                            if count.is_none_or(|count| count >= least) {
                                digests.push(digester.digest_hash(&hash)?);
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
            [] => Some(LineFormat::Hash(digits, false)),
            [b':', count @ ..] if !count.is_empty() && count.iter().all(u8::is_ascii_digit) => {
                Some(LineFormat::Hash(digits, true))
            }
            _ => None,
        }
    }

    fn is_hash_of(self, algorithm: Algorithm) -> bool {
        matches!(self, LineFormat::Hash(digits, _) if digits == algorithm.digits())
    }
}

/// Returns what the first lines of a list show about its content. Fails if they look like other
/// hashes, or like hashes of both algorithms.
fn detect<R: Read>(lines: &Lines<R>) -> Result<Lists> {
    if lines.lot().any(|line| memchr(0, line).is_some()) {
        return Err(Error::NotWords(
            "it has zero bytes, as text in UTF-16 has, which `iconv -f UTF-16 -t UTF-8` converts",
        ));
    }
    let start: Vec<Option<LineFormat>> =
        lines.lot().filter(|line| !line.is_empty()).take(SAMPLED_LINES).map(LineFormat::detect).collect();
    let Some(first) = start.first().copied().flatten() else { return Ok(Lists::Words) };
    let is_hash = |algorithm| {
        move |format: &Option<LineFormat>| format.is_some_and(|format| format.is_hash_of(algorithm))
    };
    // No other line than a hash has 40 digits, but there are words of 32.
    if first.is_hash_of(Algorithm::Sha1) {
        return Ok(Lists::Hashes(Algorithm::Sha1));
    }
    if first.is_hash_of(Algorithm::Ntlm) {
        if start.iter().any(is_hash(Algorithm::Sha1)) {
            return Err(Error::NotWords(
                "its lines look like NTLM and SHA-1 hashes, of which a list has one kind",
            ));
        }
        let is_alone = start.len() == 1 && first == LineFormat::Hash(Algorithm::Ntlm.digits(), false);
        let is_ntlm = start.iter().all(is_hash(Algorithm::Ntlm)) && !is_alone;
        return Ok(if is_ntlm { Lists::Hashes(Algorithm::Ntlm) } else { Lists::Words });
    }
    if start.iter().any(|format| *format != Some(first)) {
        return Ok(Lists::Words);
    }
    match first {
        // A single line of hexadecimal digits may be a word.
        LineFormat::Hash(_, false) if start.len() == 1 => Ok(Lists::Words),
        LineFormat::Hash(..) => Err(Error::NotWords(
            "its lines look like hashes, and only those of SHA-1 and NTLM are understood",
        )),
        LineFormat::Sum => Err(Error::NotWords(
            "its lines look like sums of files, as sha1sum prints them, and not like hashes alone",
        )),
    }
}
