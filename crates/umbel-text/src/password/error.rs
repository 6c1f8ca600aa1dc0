//! What can go wrong with passwords. No message ever holds one.

use std::{fmt, io};

/// What can go wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A filter whose metadata says nothing about passwords.
    Unmarked,
    /// A mark in the metadata that is not understood here.
    Mark {
        /// Its name.
        name: &'static str,
        /// What it says.
        value: String,
    },
    /// A line that should be a SHA-1 hash, with or without a count.
    NotAHash {
        /// Its number, from 1.
        line: u64,
    },
    /// Something that is not the first five digits of a hash.
    NotAPrefix,
    /// A list that seems to hold neither words nor SHA-1 hashes: what it seems to hold.
    NotWords(&'static str),
    /// Hashes among words that are kept as words: which words they stand for nobody knows.
    HashesAmongWords,
    /// The system had no memory for the slow hash.
    OutOfMemory {
        /// How much it needs.
        bytes: u64,
    },
    /// Of the filter.
    Filter(umbel::Error),
    /// Of the system.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unmarked => f.write_str(
                "it does not say how passwords are put into it: `umbel password build` makes a filter that does",
            ),
            Error::Mark { name, value } => {
                write!(f, "its metadata has {name} = {value:?}, which is not understood: a newer umbel made it, or somebody changed it")
            }
            Error::NotAHash { line } => {
                write!(f, "line {line} is not a SHA-1 hash of 40 hexadecimal digits, with or without :COUNT")
            }
            Error::NotAPrefix => f.write_str("a prefix has 5 hexadecimal digits"),
            Error::NotWords(what) => write!(f, "{what}: use --words if they are words"),
            Error::HashesAmongWords => f.write_str(
                "it holds SHA-1 hashes, and the filter holds words: give the hashes first, or --sha1, and words are hashed too",
            ),
            Error::OutOfMemory { bytes } => {
                write!(f, "the system has no {bytes} bytes of memory for the slow hash")
            }
            Error::Filter(error) => error.fmt(f),
            Error::Io(error) => error.fmt(f),
        }
    }
}

// The sentence already holds what the system said.
impl std::error::Error for Error {}

impl From<umbel::Error> for Error {
    fn from(error: umbel::Error) -> Error {
        Error::Filter(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}
