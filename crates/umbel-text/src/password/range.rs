//! Looks passwords up in a leaked list by the first five digits of their hashes (k-anonymity).
//!
//! The owner of the list learns only five of forty digits, which a few hundred of its hashes share,
//! and returns the remaining digits of each. The client compares them locally. This is the protocol
//! of Have I Been Pwned. Unlike a filter it has no false positives, but it needs the whole list,
//! with the 40 digits of every line.

use super::{Algorithm, PasswordHash, Pwned};
use crate::lines::{BYTE_ORDER_MARK, Lines};
use crate::{Error, Result};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use umbel::internals::hex;
use umbel::internals::regular_file;
use umbel::internals::secret::Secret;

/// The part of a hash that a client sends: its first five digits.
///
/// ```
/// use umbel_text::password::{Algorithm, Prefix};
/// assert_eq!(Prefix::from_hash(&Algorithm::Sha1.hash(b"password")).to_string(), "5BAA6");
/// assert_eq!("8846f".parse::<Prefix>()?, Prefix::from_hash(&Algorithm::Ntlm.hash(b"password")));
/// assert!("5baa61".parse::<Prefix>().is_err());
/// # Ok::<(), umbel_text::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix(u32);

impl Prefix {
    /// Returns the prefix of a hash.
    pub fn from_hash(hash: &PasswordHash) -> Prefix {
        let [first, second, third] = match hash {
            PasswordHash::Sha1([first, second, third, ..]) => [*first, *second, *third],
            PasswordHash::Ntlm([first, second, third, ..]) => [*first, *second, *third],
        };
        Prefix(u32::from_be_bytes([0, first, second, third]) >> 4)
    }
}

impl FromStr for Prefix {
    type Err = Error;

    fn from_str(text: &str) -> Result<Prefix> {
        let digits = text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = if digits { u32::from_str_radix(text, 16).ok() } else { None };
        number.map(Prefix).ok_or(Error::NotAPrefix)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:05X}", self.0)
    }
}

/// The part of a hash that a client receives: the other digits, 35 of SHA-1 and 27 of NTLM, and the
/// number of times the password was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Suffix {
    digits: Secret<String>,
    /// The number of times the password was found, or 1 in a list without counts.
    pub count: u64,
}

impl Suffix {
    fn from_line(line: &Pwned) -> Suffix {
        Suffix { digits: Secret(suffix(&line.hash)), count: line.count.unwrap_or(1) }
    }

    /// Returns whether a hash ends with these digits.
    pub fn is_of(&self, hash: &PasswordHash) -> bool {
        self.digits.0 == suffix(hash)
    }
}

fn suffix(hash: &PasswordHash) -> String {
    hex::encode(hash.as_bytes())[5..].to_ascii_uppercase()
}

impl fmt::Display for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.digits.0, self.count)
    }
}

/// Returns all suffixes of a prefix in order. Reads the whole list, which may be in any order.
///
/// # Errors
///
/// Fails if the reader fails, a line is not a hash, or the list has hashes of both algorithms.
pub fn scan(reader: impl Read, prefix: Prefix) -> Result<Vec<Suffix>> {
    let mut lines = Lines::new(reader);
    let (mut found, mut algorithm) = (Vec::new(), None);
    while lines.more().map_err(Error::Input)? {
        for (number, line) in (lines.number()..).zip(lines.lot()).filter(|(_, line)| !line.is_empty()) {
            let line = match algorithm {
                Some(algorithm) => Pwned::parse_as(line, algorithm, Some(number))?,
                None => first_hash(line, number)?,
            };
            algorithm = Some(line.hash.algorithm());
            if Prefix::from_hash(&line.hash) == prefix {
                found.push(Suffix::from_line(&line));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Parses the first line of a list, which decides on its algorithm.
fn first_hash(line: &[u8], number: u64) -> Result<Pwned> {
    Pwned::parse(line).ok_or(Error::NotAHash { line: Some(number), algorithm: None })
}

/// A leaked list in a file. If it is sorted by hash, a lookup reads only a few pages.
pub struct RangeList {
    path: PathBuf,
    file: File,
    len: u64,
    sorted: bool,
    /// The algorithm of the hashes; `None` if there are none.
    algorithm: Option<Algorithm>,
}

/// An upper limit on the length of a line: forty digits, a colon, a count of twenty digits, and the
/// line end.
const MAX_LINE_BYTES: usize = 64;
/// The size up to which a list is always read as a whole.
const SMALL_LIST_BYTES: u64 = 1 << 20;
/// The number of lines that are sampled to decide whether a list is sorted.
const SAMPLED_LINES: u64 = 256;

impl RangeList {
    /// Opens a list of hashes, and samples lines to see whether they are sorted by hash
    /// instead of by count. A few misplaced lines are not noticed; use [`scan`] for a list that may
    /// have them.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or if the first or a sampled line is not a hash.
    pub fn open(path: impl AsRef<Path>) -> Result<RangeList> {
        let path = path.as_ref().to_owned();
        let file = regular_file::open(&path).map_err(Error::io(&path, "open"))?;
        let len = file.metadata().map_err(Error::io(&path, "examine"))?.len();
        let mut list = RangeList { path, file, len, sorted: len > SMALL_LIST_BYTES, algorithm: None };
        list.algorithm = list.first()?;
        let mut before = None;
        for sample in 0..=SAMPLED_LINES {
            if !list.sorted {
                break;
            }
            let at = (u128::from(len - MAX_LINE_BYTES as u64) * u128::from(sample)
                / u128::from(SAMPLED_LINES)) as u64;
            let here = list.line_from(at)?.map(|line| line.hash);
            list.sorted = here.is_none() || here >= before;
            before = here.or(before);
        }
        Ok(list)
    }

    /// Returns the algorithm of the first hash.
    fn first(&mut self) -> Result<Option<Algorithm>> {
        let mut lines = Lines::new(&self.file);
        while lines.more().map_err(Error::io(&self.path, "read"))? {
            let mut numbered = (lines.number()..).zip(lines.lot());
            if let Some((number, line)) = numbered.find(|(_, line)| !line.is_empty()) {
                return Ok(Some(first_hash(line, number)?.hash.algorithm()));
            }
        }
        Ok(None)
    }

    /// Returns the algorithm of the hashes. It is `None` if the list has no lines except empty ones;
    /// such a list would accept every password.
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.algorithm
    }

    /// Returns whether the list appears to be sorted, so that lookups read only a part of it.
    pub fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// Returns all suffixes of a prefix in order.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, a line is not a hash, or the list has hashes of both
    /// algorithms.
    pub fn range(&mut self, prefix: Prefix) -> Result<Vec<Suffix>> {
        let Some(algorithm) = self.algorithm.filter(|_| self.sorted) else {
            self.go_to(0)?;
            return scan(&self.file, prefix).map_err(|error| match error {
                Error::Input(source) => Error::io(&self.path, "read")(source),
                other => other,
            });
        };
        // Find the first offset whose next line is not before the prefix.
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.line_from(middle)? {
                Some(line) if Prefix::from_hash(&line.hash) < prefix => low = middle + 1,
                _ => high = middle,
            }
        }
        self.go_to(low.saturating_sub(1))?;
        let mut lines = Lines::new(&self.file);
        let mut found = Vec::new();
        // Skip the rest of the line before.
        let mut skip = usize::from(low > 0);
        while lines.more().map_err(Error::io(&self.path, "read"))? {
            for line in lines.lot().skip(std::mem::take(&mut skip)).filter(|line| !line.is_empty()) {
                let line = Pwned::parse_as(line, algorithm, None)?;
                if Prefix::from_hash(&line.hash) != prefix {
                    return Ok(found);
                }
                found.push(Suffix::from_line(&line));
            }
        }
        Ok(found)
    }

    fn go_to(&mut self, at: u64) -> Result<()> {
        self.file.seek(SeekFrom::Start(at)).map(drop).map_err(Error::io(&self.path, "read"))
    }

    /// Returns the first whole line at or after this byte that is not empty.
    fn line_from(&mut self, at: u64) -> Result<Option<Pwned>> {
        let mut bytes = [0; 2 * MAX_LINE_BYTES];
        // Read from the byte before, which is a line end if a line starts at `at`.
        self.go_to(at.saturating_sub(1))?;
        let mut len = 0;
        while len < bytes.len() {
            match self.file.read(&mut bytes[len..]) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(&self.path, "read")(error)),
            }
        }
        let bytes = &bytes[..len];
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).filter(|_| at == 0).unwrap_or(bytes);
        let lines = text.split(|byte| *byte == b'\n').skip(usize::from(at > 0));
        // Skip empty lines, as a full scan does.
        let mut lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let not_a_hash = || Error::NotAHash { line: None, algorithm: self.algorithm };
        let Some(line) = lines.find(|line| !line.is_empty()) else {
            // There is nothing after the last line.
            return if len < 2 * MAX_LINE_BYTES { Ok(None) } else { Err(not_a_hash()) };
        };
        match self.algorithm {
            Some(algorithm) => Pwned::parse_as(line, algorithm, None).map(Some),
            None => Pwned::parse(line).map(Some).ok_or_else(not_a_hash),
        }
    }
}
