//! The error type of this crate.

use std::fmt;

/// A `Result` with this crate's error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error type of this crate.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no contestant with this name.
    UnknownContestant {
        /// The name.
        name: String,
        /// The names of all contestants.
        known: Vec<&'static str>,
    },
    /// A contestant does not find keys that were inserted.
    FalseNegatives {
        /// The name of the contestant.
        name: &'static str,
        /// The number of members that it did not find.
        lost: u64,
        /// The number of members that were looked up.
        asked: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownContestant { name, known } => {
                write!(f, "there is no contestant `{name}`; there are: {}", known.join(", "))
            }
            Error::FalseNegatives { name, lost, asked } => {
                write!(f, "{name} has false negatives: it denies {lost} of {asked} members")
            }
        }
    }
}

impl std::error::Error for Error {}
