//! The one error type of the library.
//!
//! Every variant carries what a person needs to act: what is wrong, where, and what would be right. Nothing in
//! the library panics on input; whatever can go wrong with parameters, files or two filters that do not fit
//! together arrives here.

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
}

impl Error {
    /// A parameter error, for the sizing rules and the builders.
    pub(crate) fn parameter(name: &'static str, got: impl fmt::Display, needs: impl Into<String>) -> Self {
        Error::Parameter {
            name,
            got: got.to_string(),
            needs: needs.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Parameter { name, got, needs } => {
                write!(f, "{name} = {got} cannot be used: it needs {needs}")
            }
        }
    }
}

impl std::error::Error for Error {}
