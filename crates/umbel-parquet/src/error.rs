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
    /// A column has values that filters and texts cannot have.
    NoText {
        /// The file.
        path: PathBuf,
        /// The dotted path of the column.
        column: String,
        /// The type of the values.
        values: String,
    },
    /// A column has a filter already.
    HasFilter {
        /// The file.
        path: PathBuf,
        /// The dotted path of the column.
        column: String,
        /// The number of the row group, from 0.
        row_group: usize,
    },
    /// A filter would be longer than readers accept.
    FilterTooLong {
        /// The file.
        path: PathBuf,
        /// The dotted path of the column.
        column: String,
        /// The number of the row group, from 0.
        row_group: usize,
        /// The number of distinct values.
        values: u64,
    },
    /// An error of the filter library, such as a parameter out of range.
    Filter(umbel::Error),
    /// An error of an index.
    Index(umbel_text::Error),
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

/// Errors about files become variants of this crate, so that callers match one variant for each.
impl From<umbel::Error> for Error {
    fn from(error: umbel::Error) -> Error {
        match error {
            umbel::Error::Io { path, doing, source } => Error::Io { path, doing, source },
            other => Error::Filter(other),
        }
    }
}

impl Error {
    /// Returns the message for a caller that names the file itself.
    pub(crate) fn without_path(self) -> String {
        match self {
            Error::NotParquet { .. } => "it is not a Parquet file, or its end is missing".to_string(),
            Error::Encrypted { .. } => "its footer is encrypted, and cannot be read".to_string(),
            Error::Summary { .. } => "it describes columns that are stored in other files".to_string(),
            Error::Damaged { what, .. } => format!("it is damaged: {what}"),
            Error::OutOfMemory { bytes, .. } => {
                format!("the system has no {bytes} bytes of memory to read it")
            }
            Error::NoText { column, values, .. } => {
                format!("its column {column} has {values} values, which have no filter")
            }
            error => error.to_string(),
        }
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
            Error::NoText { path, column, values } => write!(
                f,
                "column {column} of {} has {values} values, which have neither filters nor texts: name another column",
                path.display()
            ),
            Error::HasFilter { path, column, row_group } => write!(
                f,
                "column {column} of {} has a filter in row group {row_group} already: `umbel parquet info` describes it",
                path.display()
            ),
            Error::FilterTooLong { path, column, row_group, values } => write!(
                f,
                "the {values} values of column {column} in row group {row_group} of {} need a filter of more than 128 MiB, which readers refuse: allow a higher rate",
                path.display()
            ),
            Error::Filter(error) => write!(f, "{error}"),
            Error::Index(error) => write!(f, "{error}"),
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
