//! The error type of this crate.

use std::path::{Path, PathBuf};
use std::{fmt, io};
use umbel::internals::write_causes;

/// A `Result` with this crate's error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error type of this crate.
///
/// [`source`](std::error::Error::source) returns the cause, which the message does not repeat: `{}`
/// prints the message, and `{:#}` prints the message and its causes on one line.
///
/// ```
/// use umbel_parquet::{Error, ParquetFile};
///
/// let error = ParquetFile::open("missing.parquet").err().expect("no such file");
/// assert_eq!(error.to_string(), "cannot open missing.parquet");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation on a file.
    Io {
        /// The file.
        path: PathBuf,
        /// The operation: "open", "read", ...
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A file is not a Parquet file.
    NotParquet {
        /// The file.
        path: PathBuf,
    },
    /// The footer of a file is encrypted.
    Encrypted {
        /// The file.
        path: PathBuf,
    },
    /// A file only describes columns that are stored in other files.
    Summary {
        /// The file.
        path: PathBuf,
    },
    /// A footer or a filter is not what the format allows.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem with its contents.
        what: String,
    },
    /// The system did not provide the memory.
    OutOfMemory {
        /// The file.
        path: PathBuf,
        /// The number of bytes requested.
        bytes: u64,
    },
    /// A file has no column of this name.
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The dotted path that was asked for.
        column: String,
        /// The dotted paths of the columns in the file.
        columns: Vec<String>,
    },
    /// A text is not a value of the type of a column.
    NotAValue {
        /// The text, at most its first hundred characters.
        text: String,
        /// The reason: the type of the column, and a value that it could hold.
        needs: String,
    },
}

impl Error {
    /// Returns a function that adds the path and the operation to a system error.
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { path: path.to_owned(), doing, source }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), what: what.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, doing, .. } => write!(f, "cannot {doing} {}", path.display()),
            Error::NotParquet { path } => {
                write!(f, "{} is not a Parquet file, or its end is missing", path.display())
            }
            Error::Encrypted { path } => {
                write!(f, "the footer of {} is encrypted, and cannot be read", path.display())
            }
            Error::Summary { path } => write!(
                f,
                "{} describes columns that are stored in other files: name those files",
                path.display()
            ),
            Error::Damaged { path, what } => write!(f, "{} is damaged: {what}", path.display()),
            Error::OutOfMemory { path, bytes } => {
                write!(f, "the system has no {bytes} bytes of memory to read {}", path.display())
            }
            Error::NoColumn { path, column, .. } => {
                write!(f, "{} has no column {column}", path.display())
            }
            Error::NotAValue { text, needs } => write!(f, "{text:?} {needs}"),
        }?;
        write_causes(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
