//! What can go wrong with a vault.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The room's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong with a vault. No variant carries a secret.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused something.
    Io {
        /// The file in question.
        path: PathBuf,
        /// What was tried: "open", "read", ...
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// There is no vault in this directory.
    NoVault {
        /// The directory.
        path: PathBuf,
    },
    /// There are documents in this directory, but the file without which nobody can open them is gone.
    HeaderLost {
        /// The file.
        path: PathBuf,
    },
    /// A new vault cannot be made where there is one already.
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// A new vault cannot be made in a directory that holds something else.
    Occupied {
        /// The directory.
        path: PathBuf,
    },
    /// The passphrase does not open this vault.
    WrongPassphrase {
        /// The directory.
        path: PathBuf,
    },
    /// A file of the vault is not what was written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A file of the vault was written by a newer version.
    Newer {
        /// The file.
        path: PathBuf,
        /// The version it says it has.
        version: u32,
    },
    /// A document has more different words than an index can have parts for.
    TooManyWords {
        /// So many are the most.
        most: u64,
    },
    /// A query without a word.
    NoWord {
        /// What was given.
        text: String,
    },
    /// The system has no random numbers.
    NoRandom,
    /// The system did not give the memory.
    OutOfMemory {
        /// How much was asked for.
        bytes: u64,
    },
    /// A parameter, or what the library of filters says.
    Filter(umbel::Error),
}

impl Error {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, doing, source }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), what: what.into() }
    }

    /// Whether a document is not there, for instance because somebody has removed it since it was listed.
    pub fn is_gone(&self) -> bool {
        matches!(self, Error::Io { doing: "open", source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// A parameter that is out of range.
    pub(crate) fn parameter(name: &'static str, got: impl fmt::Display, needs: impl Into<String>) -> Error {
        Error::Filter(umbel::Error::parameter(name, got, needs))
    }
}

impl From<umbel::Error> for Error {
    fn from(error: umbel::Error) -> Error {
        match error {
            umbel::Error::Io { path, doing, source } => Error::Io { path, doing, source },
            other => Error::Filter(other),
        }
    }
}

impl From<getrandom::Error> for Error {
    fn from(_: getrandom::Error) -> Error {
        Error::NoRandom
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, doing, .. } => write!(f, "cannot {doing} {}", path.display()),
            Error::NoVault { path } => write!(f, "there is no vault in {}", path.display()),
            Error::HeaderLost { path } => {
                write!(
                    f,
                    "{} is missing, and without it nobody can open the documents beside it: put it back from a copy",
                    path.display()
                )
            }
            Error::Exists { path } => write!(f, "{} is a vault already", path.display()),
            Error::Occupied { path } => {
                write!(f, "{} holds other files: a vault needs a directory of its own", path.display())
            }
            Error::WrongPassphrase { path } => {
                write!(f, "this passphrase does not open {}: nothing was changed", path.display())
            }
            Error::Damaged { path, what } => write!(f, "{} is damaged: {what}", path.display()),
            Error::Newer { path, version } => {
                write!(
                    f,
                    "{} has version {version}, which this version of umbel does not know: use a newer one",
                    path.display()
                )
            }
            Error::TooManyWords { most } => {
                write!(
                    f,
                    "it has more than {most} different words: cut it, or make a vault for more words in a document"
                )
            }
            Error::NoWord { text } => write!(f, "there is no word in {text:?}"),
            Error::NoRandom => f.write_str("the system has no random numbers"),
            Error::OutOfMemory { bytes } => {
                write!(f, "the system has no {bytes} bytes of memory, which this vault's passphrase needs")
            }
            Error::Filter(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::Filter(error) => error.source(),
            _ => None,
        }
    }
}
