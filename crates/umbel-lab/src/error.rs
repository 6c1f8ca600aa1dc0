//! The error type of this crate.

use crate::criterion::short;
use crate::experiment::Parameter;
use std::path::PathBuf;
use std::{fmt, io};
use umbel::internals::write_causes;

/// A `Result` with this crate's error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The result of a drawing function, with the errors of the drawing library.
pub(crate) type Drawn<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The error type of this crate.
///
/// [`source`](std::error::Error::source) returns the cause, which the message does not repeat: `{}`
/// prints the message, and `{:#}` prints the message and its causes on one line.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An error of the filter library.
    Filter(umbel::Error),
    /// An error of the library for packets.
    Net(umbel_net::Error),
    /// An error of the library for documents.
    Text(umbel_text::Error),
    /// An error of the library for web caches.
    Cache(umbel_cache::Error),
    /// None of the experiments has a parameter with this name.
    UnknownParameter {
        /// The names of the parameters that they do have, in order.
        known: Vec<&'static str>,
    },
    /// A parameter of an experiment is out of range.
    OutOfRange {
        /// The parameter.
        parameter: Parameter,
        /// The id of the experiment.
        experiment: &'static str,
    },
    /// A formula of a hash function is wrong.
    Formula {
        /// The formulas as they were given.
        text: String,
        /// The byte at which the mistake is.
        at: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A filter of a user's own keys cannot be traced.
    OwnKeys {
        /// What is wrong, and how to put it right.
        problem: String,
    },
    /// A picture could not be drawn.
    Picture {
        /// The name of the picture.
        name: String,
        /// The error of the drawing library.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A table could not be written as CSV.
    Table {
        /// The name of the table.
        name: String,
        /// The error of the writer.
        source: io::Error,
    },
    /// The report could not be written.
    Report {
        /// The folder for the report.
        folder: PathBuf,
        /// The system's error, or that of a picture or a table.
        source: io::Error,
    },
}

impl Error {
    /// Returns the error for a parameter that is out of range.
    pub(crate) fn parameter(name: &'static str, got: impl fmt::Display, needs: impl Into<String>) -> Error {
        Error::Filter(umbel::Error::parameter(name, got, needs))
    }
}

impl From<umbel::Error> for Error {
    fn from(error: umbel::Error) -> Error {
        Error::Filter(error)
    }
}

impl From<umbel_net::Error> for Error {
    fn from(error: umbel_net::Error) -> Error {
        Error::Net(error)
    }
}

impl From<umbel_text::Error> for Error {
    fn from(error: umbel_text::Error) -> Error {
        Error::Text(error)
    }
}

impl From<umbel_cache::Error> for Error {
    fn from(error: umbel_cache::Error) -> Error {
        Error::Cache(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Filter(error) => write!(f, "{error}"),
            Error::Net(error) => write!(f, "{error}"),
            Error::Text(error) => write!(f, "{error}"),
            Error::Cache(error) => write!(f, "{error}"),
            Error::UnknownParameter { known } => {
                let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
                write!(f, "no such parameter: these experiments have {known}")
            }
            Error::OutOfRange { parameter, experiment } => {
                let [least, most] = parameter.range.map(short);
                let what = if parameter.whole { "a whole number" } else { "a number" };
                write!(f, "{}, in {experiment}: {what} from {least} to {most} is needed", parameter.meaning)
            }
            Error::Formula { text, at, problem } => match text.get(*at..).filter(|rest| !rest.is_empty()) {
                Some(rest) => {
                    let number = text[..text.len() - rest.len()].chars().count() + 1;
                    let near: String = rest.chars().take(12).collect();
                    write!(f, "{text:?}, character {number}, at {near:?}: {problem}")
                }
                None => write!(f, "{text:?}, at its end: {problem}"),
            },
            Error::OwnKeys { problem } => f.write_str(problem),
            Error::Picture { name, .. } => write!(f, "cannot draw {name}"),
            Error::Table { name, .. } => write!(f, "cannot write the table {name}"),
            Error::Report { folder, .. } => write!(f, "cannot write the report to {}", folder.display()),
        }?;
        write_causes(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // This error has the message of the inner one, so it also has the cause of the inner
            // one.
            Error::Filter(error) => error.source(),
            Error::Net(error) => error.source(),
            Error::Text(error) => error.source(),
            Error::Cache(error) => error.source(),
            Error::Picture { source, .. } => Some(&**source),
            Error::Table { source, .. } | Error::Report { source, .. } => Some(source),
            Error::UnknownParameter { .. }
            | Error::OutOfRange { .. }
            | Error::Formula { .. }
            | Error::OwnKeys { .. } => None,
        }
    }
}
