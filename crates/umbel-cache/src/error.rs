//! What can be wrong with what other caches send, and with what is asked for here.

use std::fmt;

/// What can be wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// What came from another cache is not what it should be.
    Malformed {
        /// What was expected: a digest of Squid, an update.
        what: &'static str,
        /// Why it is not that.
        why: String,
    },
    /// A size that no summary has.
    Size {
        /// What was asked for.
        what: String,
    },
    /// There is no memory for it.
    Memory(umbel::Error),
}

impl Error {
    pub(crate) fn malformed(what: &'static str, why: impl Into<String>) -> Error {
        Error::Malformed { what, why: why.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed { what, why } => write!(f, "this is no {what}: {why}"),
            Error::Size { what } => f.write_str(what),
            Error::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<umbel::Error> for Error {
    fn from(error: umbel::Error) -> Error {
        Error::Memory(error)
    }
}

/// The result of what can go wrong so.
pub type Result<T, E = Error> = std::result::Result<T, E>;
