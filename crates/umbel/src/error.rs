//! The one error type of the library.
//!
//! Every variant carries what a person needs to act: what is wrong, where, and what would be right. Nothing in
//! the library panics on input; whatever can go wrong with parameters, files or two filters that do not fit
//! together arrives here.

use crate::{HashId, Mismatch};
use std::fmt;

/// The library's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside the range in which the mathematics or the memory of a machine makes sense.
    Parameter {
        /// The parameter's name as the literature and the command line spell it (`n`, `p`, `m`, `k`, ...).
        name: &'static str,
        /// What was given.
        got: String,
        /// What would have been accepted.
        needs: String,
    },
    /// The system did not give the memory.
    OutOfMemory {
        /// How much was asked for.
        bytes: u64,
    },
    /// The filter's memory is mapped from a file or static, so it can be asked but not changed.
    ReadOnly,
    /// The secret with which the filter was built is not in the key ring.
    MissingKey(HashId),
    /// Two filters cannot be combined.
    Mismatch(Mismatch),
}

impl Error {
    /// A parameter error, for the sizing rules and the builders.
    pub(crate) fn parameter(name: &'static str, got: impl fmt::Display, needs: impl Into<String>) -> Self {
        Error::Parameter { name, got: got.to_string(), needs: needs.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Parameter { name, got, needs } => {
                write!(f, "{name} = {got} cannot be used: it needs {needs}")
            }
            Error::OutOfMemory { bytes } => {
                write!(f, "the system has no {bytes} bytes of memory for this filter: use a smaller capacity or a higher rate")
            }
            Error::MissingKey(id) => {
                write!(f, "this filter was built with a secret ({id}) that is not among the given keys: add its key file")
            }
            Error::Mismatch(mismatch) => {
                write!(f, "the filters cannot be combined because their {mismatch}: build both with the same options")
            }
            Error::ReadOnly => {
                f.write_str("this filter is read-only because its memory is mapped or static: copy it with `try_clone_owned` first")
            }
        }
    }
}

impl std::error::Error for Error {}
