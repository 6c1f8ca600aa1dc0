//! The error type of the library, and the nested types that describe a cause.
//!
//! Nothing in the library panics on input. Bad parameters, damaged files and filters that do not
//! fit together are reported as an [`Error`], whose message states the problem and then the remedy.

use crate::aging::Timestamp;
pub use crate::algebra::Mismatch;
use crate::{Digest, HashId, Kind};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

/// A `Result` with this crate's error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error type of this crate.
///
/// [`source`](std::error::Error::source) returns the cause, which the message does not repeat: `{}`
/// prints the message, and `{:#}` prints the message and its causes on one line.
///
/// ```
/// use std::error::Error as _;
/// use umbel::BloomFilter;
///
/// let error = BloomFilter::load("missing.umbel").unwrap_err();
/// assert_eq!(error.to_string(), "cannot open missing.umbel");
/// assert!(format!("{error:#}").starts_with("cannot open missing.umbel: No such file"));
/// let cause = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
/// assert_eq!(cause.map(std::io::Error::kind), Some(std::io::ErrorKind::NotFound));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside the range in which the mathematics or the memory of a machine makes
    /// sense.
    Parameter {
        /// The parameter's name as the literature and the command line spell it (`n`, `p`, `m`,
        /// `k`, ...).
        name: &'static str,
        /// The rejected value.
        got: String,
        /// The values that are accepted.
        needs: String,
    },
    /// Two settings cannot hold together.
    Contradiction {
        /// The settings and their values, such as "m = 100".
        settings: [String; 2],
        /// The reason, and settings that would hold.
        why: String,
    },
    /// The system did not provide the memory.
    OutOfMemory {
        /// The number of bytes requested.
        bytes: u64,
    },
    /// The secret with which the filter was built is not in the key ring.
    MissingKey {
        /// The file; empty for bytes in memory.
        path: PathBuf,
        /// The tag of the secret.
        id: HashId,
    },
    /// A kind of filter does not support an operation.
    Cannot {
        /// The kind.
        kind: Kind,
        /// The operation: "remove keys", "be folded", ...
        what: &'static str,
        /// The reason, and the alternative.
        why: &'static str,
    },
    /// There is no room for another key; the filter did not change.
    Full {
        /// The kind.
        kind: Kind,
        /// The part that is full, and the remedy.
        why: String,
    },
    /// The clock of a filter with a time window was set back; the filter did not change.
    Clock {
        /// The latest time so far.
        last: Timestamp,
        /// The earlier time that was passed.
        got: Timestamp,
    },
    /// A key of a map comes with two values.
    Conflict {
        /// The key's digest.
        digest: Digest,
        /// The values.
        values: [u64; 2],
    },
    /// Two filters cannot be combined.
    Mismatch(Mismatch),
    /// The system refused an operation on a file.
    Io {
        /// The file; empty for a stream of bytes.
        path: PathBuf,
        /// The operation: "open", "read", "write to", ...
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The system has no random numbers.
    NoRandom(io::Error),
    /// The contents of a file cannot be used.
    Format {
        /// The file; empty for bytes in memory.
        path: PathBuf,
        /// The problem with the contents.
        problem: FormatError,
    },
}

impl Error {
    /// Returns the error for a parameter that is out of range. Crates that build on this one report
    /// theirs with it, too.
    ///
    /// ```
    /// let error = umbel::Error::parameter("depth", 0, "a number from 1 to 16");
    /// assert_eq!(error.to_string(), "depth = 0 cannot be used: it needs a number from 1 to 16");
    /// ```
    pub fn parameter(name: &'static str, got: impl fmt::Display, needs: impl Into<String>) -> Self {
        Error::Parameter { name, got: got.to_string(), needs: needs.into() }
    }

    /// Returns the error for two settings that cannot hold together.
    pub(crate) fn contradiction(one: String, other: String, why: String) -> Self {
        Error::Contradiction { settings: [one, other], why }
    }

    /// Returns the error for an operation that a kind does not support.
    pub(crate) fn cannot(kind: Kind, what: &'static str, why: &'static str) -> Self {
        Error::Cannot { kind, what, why }
    }

    pub(crate) fn io(path: &Path, doing: &'static str, source: io::Error) -> Error {
        Error::Io { path: path.to_owned(), doing, source }
    }

    /// Adds the path of the file to an error that has none yet.
    pub(crate) fn at(mut self, file: &Path) -> Error {
        if let Error::Io { path, .. } | Error::Format { path, .. } | Error::MissingKey { path, .. } =
            &mut self
            && path.as_os_str().is_empty()
        {
            file.clone_into(path);
        }
        self
    }
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Error {
        match never {}
    }
}

impl From<FormatError> for Error {
    fn from(problem: FormatError) -> Error {
        Error::Format { path: PathBuf::new(), problem }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = |path: &Path| match path.as_os_str().is_empty() {
            true => "the filter".to_string(),
            false => path.display().to_string(),
        };
        match self {
            Error::Parameter { name, got, needs } => {
                write!(f, "{name} = {got} cannot be used: it needs {needs}")
            }
            Error::Contradiction { settings: [one, other], why } => {
                write!(f, "{one} and {other} contradict each other: {why}")
            }
            Error::OutOfMemory { bytes } => {
                write!(
                    f,
                    "the system has no {bytes} bytes of memory for this filter: free some memory, or use a smaller filter"
                )
            }
            Error::MissingKey { path, id } => {
                if !path.as_os_str().is_empty() {
                    write!(f, "{}: ", path.display())?;
                }
                write!(
                    f,
                    "this filter was built with a secret ({id}) that is not among the given keys: add its key file"
                )
            }
            Error::Cannot { kind, what, why } => {
                write!(f, "{} cannot {what}: {why}", kind.described())
            }
            Error::Full { kind, why } => write!(f, "the {kind} filter takes no more: {why}"),
            Error::Clock { last, got } => {
                write!(
                    f,
                    "the clock goes backwards, from {last} to {got}: keys would live again; set the clock right, or ask with the later time"
                )
            }
            Error::Conflict { values: [one, other], .. } => {
                write!(f, "a key has two values, {one} and {other}: give each key one")
            }
            Error::Mismatch(mismatch) => {
                write!(
                    f,
                    "the filters cannot be combined: their {mismatch}; build both with the same options"
                )
            }
            Error::Io { path, doing, .. } => write!(f, "cannot {doing} {}", file(path)),
            Error::NoRandom(_) => f.write_str("the system has no random numbers"),
            Error::Format { path, .. } => write!(f, "cannot use {}", file(path)),
        }?;
        write_causes(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::NoRandom(source) => Some(source),
            Error::Format { problem, .. } => Some(problem),
            _ => None,
        }
    }
}

/// Writes the causes of an error after its message if the alternate form `{:#}` was requested.
///
/// Every error type of the workspace ends its `Display` with this, so that `{:#}` means the same
/// for all of them (and for `anyhow::Error`): the message and its causes, separated by colons.
#[doc(hidden)]
pub fn write_causes(error: &dyn std::error::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if !f.alternate() {
        return Ok(());
    }
    iter::successors(error.source(), |cause| cause.source()).try_for_each(|cause| write!(f, ": {cause}"))
}

/// A problem with the contents of a filter file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The file does not start with the signature of a filter file.
    NotAFilter,
    /// The file is intact, but its format version is newer than this library.
    Newer {
        /// The format version of the file.
        version: u16,
    },
    /// The file is intact, but uses features that this library does not know.
    Unknown {
        /// The unknown feature.
        what: String,
    },
    /// The file is shorter or longer than its header claims.
    Length {
        /// The length that the header claims.
        expected: u64,
        /// The length of the file.
        found: u64,
    },
    /// A checksum does not match.
    Damaged {
        /// The part of the file that the checksum covers.
        part: String,
    },
    /// The file is intact, but holds another kind than the one it was loaded as.
    WrongKind {
        /// The kind of filter in the file.
        found: Kind,
        /// The kinds that were expected.
        expected: String,
    },
    /// The checksums match, but the values make no sense.
    Invalid {
        /// The invalid value.
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
                    "the file holds {}, not {expected}: load it as what it is, or as `Stored`",
                    found.described()
                )
            }
            FormatError::Invalid { what } => write!(f, "the file is not valid: {what}"),
        }
    }
}

impl std::error::Error for FormatError {}
