//! What can be wrong with a file's contents.

use crate::Kind;
use std::fmt;

/// What is wrong with the contents of a filter file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// It does not start like a filter file.
    NotAFilter,
    /// It is intact, but of a version this library does not know.
    Newer {
        /// The version it says it has.
        version: u16,
    },
    /// It is intact, but uses features this library does not know.
    Unknown {
        /// Which.
        what: String,
    },
    /// It is shorter, or longer, than its header says.
    Length {
        /// What the header says.
        expected: u64,
        /// How long it is.
        found: u64,
    },
    /// A checksum does not match.
    Damaged {
        /// Where.
        part: String,
    },
    /// It is intact, but holds another kind than the one it was loaded as.
    WrongKind {
        /// The kind it holds.
        found: Kind,
        /// The kinds it was expected to hold.
        expected: String,
    },
    /// The checksums match, but what is written there makes no sense.
    Invalid {
        /// What.
        what: String,
    },
}

impl FormatError {
    pub(crate) fn wrong_kind(found: Kind, expected: impl Into<String>) -> FormatError {
        FormatError::WrongKind { found, expected: expected.into() }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> FormatError {
        FormatError::Invalid { what: what.into() }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::NotAFilter => {
                f.write_str("this is not a filter file: it does not start with the umbel signature")
            }
            FormatError::Newer { version } => {
                write!(
                    f,
                    "the file has format version {version}, written by a newer umbel: this one reads version 1"
                )
            }
            FormatError::Unknown { what } => {
                write!(f, "the file has {what}, which this version of umbel does not know: use a newer one")
            }
            FormatError::Length { expected, found } if found < expected => {
                write!(f, "the file is truncated: it has {found} of {expected} bytes; copy or build it again")
            }
            FormatError::Length { expected, found } => {
                write!(f, "the file has {found} bytes instead of {expected}: something was appended to it")
            }
            FormatError::Damaged { part } => {
                write!(
                    f,
                    "the file is damaged: the checksum of {part} does not match; copy or build it again"
                )
            }
            FormatError::WrongKind { found, expected } => {
                write!(
                    f,
                    "the file holds {} {found} filter, not {expected}: load it as what it is, or as `Stored`",
                    found.article()
                )
            }
            FormatError::Invalid { what } => write!(f, "the file is not valid: {what}"),
        }
    }
}

impl std::error::Error for FormatError {}
