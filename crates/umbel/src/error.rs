//! The one error type of the library.
//!
//! Every variant carries what a person needs to act: what is wrong, where, and what would be right. Nothing in
//! the library panics on input; whatever can go wrong with parameters, files or two filters that do not fit
//! together arrives here.

use crate::aging::Timestamp;
pub use crate::algebra::Mismatch;
use crate::file::FormatError;
use crate::{Digest, HashId, Kind};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

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
    /// Two settings cannot hold together.
    Contradiction {
        /// The settings and their values, such as "m = 100".
        settings: [String; 2],
        /// Why, and what would hold.
        why: String,
    },
    /// The system did not give the memory.
    OutOfMemory {
        /// How much was asked for.
        bytes: u64,
    },
    /// The secret with which the filter was built is not in the key ring.
    MissingKey {
        /// The file, if it came from one.
        path: PathBuf,
        /// Which secret it is.
        id: HashId,
    },
    /// A kind of filter cannot do what was asked.
    Cannot {
        /// The kind.
        kind: Kind,
        /// What: "remove keys", "be folded", ...
        what: &'static str,
        /// Why, and what to do instead.
        why: &'static str,
    },
    /// There is no room for another key; the filter is as it was before.
    Full {
        /// The kind.
        kind: Kind,
        /// What is full, and what to do.
        why: String,
    },
    /// A filter that follows a clock was told a time before the last one; it is as it was.
    Clock {
        /// The last time.
        last: Timestamp,
        /// The one before it.
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
    /// The system refused something.
    Io {
        /// The file in question.
        path: PathBuf,
        /// What was tried: "open", "read", "write to", ...
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A file's contents are not what they should be.
    Format {
        /// The file; empty for bytes in memory.
        path: PathBuf,
        /// What is wrong with it.
        problem: FormatError,
    },
}

impl Error {
    /// A parameter that is out of range; for this library, and for what is built on it.
    pub fn parameter(name: &'static str, got: impl fmt::Display, needs: impl Into<String>) -> Self {
        Error::Parameter { name, got: got.to_string(), needs: needs.into() }
    }

    /// Two settings that cannot hold together.
    pub(crate) fn contradiction(one: String, other: String, why: String) -> Self {
        Error::Contradiction { settings: [one, other], why }
    }

    /// Something that a kind cannot do.
    pub(crate) fn cannot(kind: Kind, what: &'static str, why: &'static str) -> Self {
        Error::Cannot { kind, what, why }
    }

    pub(crate) fn io(path: &Path, doing: &'static str, source: io::Error) -> Error {
        Error::Io { path: path.to_owned(), doing, source }
    }

    /// Names the file in errors that do not know it yet.
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
                write!(f, "{} {kind} filter cannot {what}: {why}", kind.article())
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
            Error::Io { path, doing, source } => write!(f, "cannot {doing} {}: {source}", path.display()),
            Error::Format { path, problem } if path.as_os_str().is_empty() => problem.fmt(f),
            Error::Format { path, problem } => write!(f, "{}: {problem}", path.display()),
        }
    }
}

// The sentence already holds what the system said, so there is no `source` that would print it a second time.
impl std::error::Error for Error {}
