//! Funnels: how a line of text becomes the bytes that a format hashes.

use super::Format;
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The rule that turns a line of text into the bytes that are hashed. The word is Guava's.
///
/// A file does not store it: it belongs to the program that wrote the file.
///
/// ```
/// use umbel::foreign::Funnel;
/// assert_eq!("long".parse::<Funnel>()?, Funnel::Long);
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Funnel {
    /// The bytes of the line, which are text in UTF-8: strings. DataSketches ignores the empty one.
    #[default]
    Utf8,
    /// The UTF-16 code units of the line, little-endian: Guava's `unencodedCharsFunnel`.
    Unencoded,
    /// The bytes of the line, whatever they are.
    Bytes,
    /// The line as a decimal number of 64 bits, little-endian.
    Long,
    /// The line as a decimal number of 32 bits. Guava and Parquet hash its four bytes. Spark and
    /// DataSketches widen it to 64 bits, so that it is the same key as a `long`.
    Int,
}

impl Funnel {
    /// All funnels.
    pub const ALL: &[Funnel] = &[Funnel::Utf8, Funnel::Unencoded, Funnel::Bytes, Funnel::Long, Funnel::Int];

    /// Returns the name, as [`FromStr`] reads it.
    pub fn name(self) -> &'static str {
        match self {
            Funnel::Utf8 => "utf8",
            Funnel::Unencoded => "unencoded",
            Funnel::Bytes => "bytes",
            Funnel::Long => "long",
            Funnel::Int => "int",
        }
    }

    /// Returns whether the bytes of the line are hashed as they are.
    pub(super) fn is_identity(self) -> bool {
        matches!(self, Funnel::Utf8 | Funnel::Bytes)
    }

    /// Returns the funnel to use with a format: the one that is given, or UTF-8.
    ///
    /// ```
    /// use umbel::foreign::{Format, Funnel};
    /// assert_eq!(Funnel::for_format(Format::Spark, None)?, Funnel::Utf8);
    /// assert!(Funnel::for_format(Format::Dcso, Some(Funnel::Long)).is_err());
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the format has no such keys, or is Guava's and none is given.
    pub fn for_format(format: Format, funnel: Option<Funnel>) -> Result<Funnel> {
        let Some(funnel) = funnel else {
            return match format {
                Format::Guava => Err(Error::parameter(
                    "funnel",
                    "none",
                    "the funnel that the program used, as the file does not name it: utf8, unencoded, bytes, long or int",
                )),
                _ => Ok(Funnel::default()),
            };
        };
        let needs = match format {
            Format::Guava => return Ok(funnel),
            Format::Spark | Format::Spark2 | Format::DataSketches | Format::Sbbf
                if funnel != Funnel::Unencoded =>
            {
                return Ok(funnel);
            }
            Format::Spark | Format::Spark2 | Format::DataSketches | Format::Sbbf => {
                "utf8, bytes, long or int"
            }
            _ if funnel.is_identity() => return Ok(funnel),
            _ => "utf8 or bytes",
        };
        Err(Error::parameter("funnel", funnel, format!("{needs} in the format {format}")))
    }

    /// Returns whether a line can be a key.
    ///
    /// ```
    /// use umbel::foreign::Funnel;
    /// assert!(Funnel::Int.accepts(b"-7") && !Funnel::Int.accepts(b"4294967296"));
    /// ```
    pub fn accepts(self, line: &[u8]) -> bool {
        match self {
            Funnel::Utf8 | Funnel::Bytes => true,
            Funnel::Unencoded => std::str::from_utf8(line).is_ok(),
            Funnel::Long => number::<i64>(line).is_some(),
            Funnel::Int => number::<i32>(line).is_some(),
        }
    }

    /// Appends the bytes that are hashed for a line.
    pub(super) fn push(self, format: Format, line: &[u8], key: &mut Vec<u8>) -> Result<()> {
        let unusable = |needs: &str| {
            let line = String::from_utf8_lossy(line);
            let short: String = line.chars().take(MAX_QUOTED_CHARS).collect();
            let dots = if short.len() < line.len() { "..." } else { "" };
            Error::parameter("key", format!("\"{short}{dots}\""), format!("{needs} for the funnel {self}"))
        };
        match self {
            Funnel::Utf8 | Funnel::Bytes => key.extend_from_slice(line),
            Funnel::Unencoded => {
                let text = std::str::from_utf8(line).map_err(|_| unusable("text in UTF-8"))?;
                key.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
            }
            Funnel::Long => {
                let number: i64 =
                    number(line).ok_or_else(|| unusable("a whole number from -2^63 to 2^63 - 1"))?;
                key.extend(number.to_le_bytes());
            }
            Funnel::Int => {
                let number: i32 =
                    number(line).ok_or_else(|| unusable("a whole number from -2^31 to 2^31 - 1"))?;
                match format {
                    Format::Guava | Format::Sbbf => key.extend(number.to_le_bytes()),
                    _ => key.extend(i64::from(number).to_le_bytes()),
                }
            }
        }
        Ok(())
    }
}

/// Parses a line as a decimal number.
fn number<T: FromStr>(line: &[u8]) -> Option<T> {
    std::str::from_utf8(line).ok()?.parse().ok()
}

/// The number of characters of a line that an error message quotes.
const MAX_QUOTED_CHARS: usize = 60;

impl fmt::Display for Funnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Funnel {
    type Err = Error;

    fn from_str(name: &str) -> Result<Funnel> {
        let found = Funnel::ALL.iter().find(|funnel| funnel.name() == name);
        found
            .copied()
            .ok_or_else(|| Error::parameter("funnel", name, "one of utf8, unencoded, bytes, long, int"))
    }
}
