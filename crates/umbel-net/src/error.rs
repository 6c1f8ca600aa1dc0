//! The error type of this crate.

use std::path::{Path, PathBuf};
use std::{fmt, io};
use umbel::file::FormatError;
use umbel::internals::write_causes;

/// A `Result` with this crate's error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error type of this crate.
///
/// [`source`](std::error::Error::source) returns the cause, which the message does not repeat: `{}`
/// prints the message alone, and `{:#}` prints the message and its causes on one line.
///
/// ```
/// use std::error::Error as _;
/// use umbel_net::capture::Reader;
///
/// let error = Reader::open("missing.pcap").unwrap_err();
/// assert_eq!(error.to_string(), "cannot open missing.pcap");
/// assert!(error.source().is_some_and(|cause| cause.is::<std::io::Error>()));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An error from the filter library, such as a parameter out of range or a full filter.
    Filter(umbel::Error),
    /// The system refused an operation on a file.
    Io {
        /// The file.
        path: PathBuf,
        /// The operation: "open", "read", "write to", ...
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The contents of a file cannot be used.
    Format {
        /// The file; empty for bytes in memory.
        path: PathBuf,
        /// The problem with the contents.
        problem: FormatError,
    },
    /// The input is neither pcap nor pcapng.
    NotACapture {
        /// The name of the input.
        name: PathBuf,
        /// The actual contents, as a clause of the message.
        found: String,
    },
    /// A network cannot be read.
    Topology {
        /// The file; empty for bytes in memory.
        path: PathBuf,
        /// The line with the problem, counted from 1, unless the problem is the file as a whole.
        line: Option<usize>,
        /// The problem, and the remedy.
        problem: String,
    },
    /// A folder for a store holds other files.
    NotAStore {
        /// The folder.
        path: PathBuf,
    },
    /// A store holds no epochs.
    EmptyStore {
        /// The folder of the store.
        path: PathBuf,
    },
    /// A traceback store holds no pages.
    NoPages {
        /// The folder of the store.
        path: PathBuf,
    },
    /// A store has no number left for another epoch or page.
    FullStore {
        /// The folder of the store.
        path: PathBuf,
    },
    /// Another process holds the lock on the state of a blocklist.
    Locked {
        /// The file with the state.
        path: PathBuf,
    },
}

impl Error {
    /// Returns the error for a parameter that is out of range.
    pub(crate) fn parameter(name: &'static str, got: impl fmt::Display, needs: impl Into<String>) -> Error {
        Error::Filter(umbel::Error::parameter(name, got, needs))
    }

    /// Returns a function that adds the path and the operation to an error of the system.
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::Io { path: path.to_owned(), doing, source }
    }

    /// Adds the path of the file to an error that has none yet.
    pub(crate) fn at(mut self, file: &Path) -> Error {
        if let Error::Io { path, .. }
        | Error::Format { path, .. }
        | Error::Topology { path, .. }
        | Error::Filter(umbel::Error::MissingKey { path, .. }) = &mut self
            && path.as_os_str().is_empty()
        {
            file.clone_into(path);
        }
        self
    }
}

/// Maps errors about files to this crate's own variants, so that callers match one variant each.
impl From<umbel::Error> for Error {
    fn from(error: umbel::Error) -> Error {
        match error {
            umbel::Error::Io { path, doing, source } => Error::Io { path, doing, source },
            umbel::Error::Format { path, problem } => Error::Format { path, problem },
            other => Error::Filter(other),
        }
    }
}

impl From<FormatError> for Error {
    fn from(problem: FormatError) -> Error {
        Error::Format { path: PathBuf::new(), problem }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Filter(error) => write!(f, "{error}"),
            Error::Io { path, doing, .. } => write!(f, "cannot {doing} {}", path.display()),
            Error::Format { path, .. } if path.as_os_str().is_empty() => f.write_str("cannot use the data"),
            Error::Format { path, .. } => write!(f, "cannot use {}", path.display()),
            Error::NotACapture { name, found } => {
                write!(f, "cannot read {}: neither pcap nor pcapng, {found}", name.display())
            }
            Error::Topology { path, line, problem } => {
                f.write_str("cannot read the network")?;
                if !path.as_os_str().is_empty() {
                    write!(f, " {}", path.display())?;
                }
                match line {
                    Some(line) => write!(f, ", line {line}: {problem}"),
                    None => write!(f, ": {problem}"),
                }
            }
            Error::NotAStore { path } => {
                write!(f, "cannot record into {}: it is not a store, but holds other files", path.display())
            }
            Error::EmptyStore { path } => {
                write!(
                    f,
                    "cannot open the store {}: there are no epochs in it; record a capture into it first",
                    path.display()
                )
            }
            Error::NoPages { path } => {
                write!(
                    f,
                    "cannot open the store {}: there are no pages in it; record a router's capture into it first",
                    path.display()
                )
            }
            Error::FullStore { path } => {
                write!(f, "cannot record into {}: its numbers are used up", path.display())
            }
            Error::Locked { path } => {
                write!(
                    f,
                    "cannot write to {}: another process has locked it; wait until that process ends",
                    path.display()
                )
            }
        }?;
        write_causes(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The message is the inner error's, so the cause is the inner error's cause, too.
            Error::Filter(error) => error.source(),
            Error::Io { source, .. } => Some(source),
            Error::Format { problem, .. } => Some(problem),
            _ => None,
        }
    }
}
