//! The error type of this crate.

use crate::address::Invalid;
use crate::password::Algorithm;
use crate::vault::Cost;
use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::{fmt, io};
use umbel::file::FormatError;
use umbel::internals::write_causes;

/// A `Result` with this crate's error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error type of this crate. No variant carries a secret.
///
/// [`source`](std::error::Error::source) returns the cause, which the message does not repeat: `{}`
/// prints the message, and `{:#}` prints the message and its causes on one line.
///
/// ```
/// use std::error::Error as _;
/// use umbel_text::index::Index;
///
/// let error = Index::open("missing.idx").err().expect("no such file");
/// assert_eq!(error.to_string(), "cannot open missing.idx");
/// assert!(error.source().is_some_and(|cause| cause.is::<std::io::Error>()));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An error of the filter library, such as a parameter out of range or a full filter.
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
    /// A reader passed by the caller failed.
    Input(io::Error),
    /// A writer passed by the caller failed.
    Output(io::Error),
    /// The contents of a file cannot be used.
    Format {
        /// The file; empty for bytes in memory.
        path: PathBuf,
        /// The problem with the contents.
        problem: FormatError,
    },
    /// A file of a vault or of a store, or an exact list of addresses, is not what was written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem with its contents.
        what: String,
    },
    /// A file of a vault, or an exact list of addresses, was written by a newer version.
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        version: u32,
    },
    /// The keys of an index are the values of a column, where words are needed.
    ColumnIndex {
        /// The index.
        path: PathBuf,
        /// The column.
        column: String,
    },
    /// No table has the column of an index.
    NoColumn {
        /// The name of the column.
        column: String,
    },
    /// The keys of an index are words, where the values of a column are needed.
    TextIndex {
        /// The index.
        path: PathBuf,
    },
    /// The system did not provide the memory.
    OutOfMemory {
        /// The number of bytes requested.
        bytes: u64,
        /// The purpose of the memory.
        purpose: &'static str,
    },
    /// The system has no random numbers.
    NoRandom(io::Error),

    /// Another process holds the lock on a store or on the directory of a vault.
    Locked {
        /// The file or directory with the lock.
        path: PathBuf,
    },

    /// There is no store of tables in this directory.
    NoStore {
        /// The directory.
        path: PathBuf,
    },

    /// There is no vault in this directory.
    NoVault {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has documents, but the header file needed to open them is missing.
    HeaderLost {
        /// The file.
        path: PathBuf,
    },
    /// The directory already holds a vault.
    VaultExists {
        /// The directory.
        path: PathBuf,
    },
    /// A new vault or store cannot be created in a directory that holds other files.
    Occupied {
        /// The directory.
        path: PathBuf,
    },
    /// The passphrase does not open this vault.
    WrongPassphrase {
        /// The directory.
        path: PathBuf,
    },
    /// Opening the vault takes more memory or time than the caller allows.
    CostlyVault {
        /// The directory.
        path: PathBuf,
        /// The cost that its header demands.
        cost: Cost,
    },
    /// The slow hash of a filter of passwords takes more memory or time than the caller allows.
    CostlyPasswords {
        /// The memory in bytes.
        memory: u64,
        /// The number of passes over the memory.
        passes: u32,
        /// The memory in bytes that the caller has to allow.
        required: u64,
    },
    /// A document of the vault is missing, and its owner did not remove it.
    MissingDocument {
        /// The file.
        path: PathBuf,
    },
    /// A document is authentic, but not in the inventory of its vault.
    NotListed {
        /// The file.
        path: PathBuf,
    },
    /// A vault is in an earlier state than it was before, or in one that never followed from it.
    RolledBack {
        /// The directory.
        path: PathBuf,
    },
    /// A document has more distinct words than its index can hold.
    TooManyWords {
        /// The maximum.
        most: u64,
    },
    /// A query has no word.
    NoWord {
        /// The text of the query.
        text: String,
    },

    /// The metadata of a filter does not record how passwords are inserted.
    Unmarked,
    /// A metadata entry that records how passwords are inserted has an unknown value.
    UnknownMark {
        /// The name of the entry.
        name: &'static str,
        /// The value of the entry.
        value: String,
    },
    /// A line is not a SHA-1 hash, with or without a count.
    NotAHash {
        /// The number of the line, from 1. `None` in the middle of a large file, where lines are
        /// not counted.
        line: Option<u64>,
        /// The algorithm of the lines before it, if there are any.
        algorithm: Option<Algorithm>,
    },
    /// A list of hashes has a hash of another algorithm.
    MixedHashes {
        /// The number of the line, as in [`NotAHash`](Error::NotAHash).
        line: Option<u64>,
        /// The algorithm of the other lines.
        algorithm: Algorithm,
    },
    /// A list holds hashes of another algorithm than the filter.
    OtherHashes {
        /// The algorithm of the list.
        found: Algorithm,
        /// The algorithm of the filter.
        wanted: Algorithm,
    },
    /// A text is not the first five digits of a hash.
    NotAPrefix,
    /// A list appears to hold neither words nor hashes of one known algorithm. The clause says what
    /// it holds instead.
    NotWords(&'static str),
    /// A list holds hashes, but the filter holds words, and the words behind the hashes are
    /// unknown.
    HashesAmongWords(Algorithm),

    /// A line of exceptions is not a word with hyphens.
    NotAnException {
        /// The number of the line, from 1.
        line: u64,
    },

    /// A text is not a web address.
    NotAnAddress(Invalid),
    /// A file is not an exact list of addresses.
    NotAnExactList {
        /// The file.
        path: PathBuf,
    },
}

impl Error {
    /// Returns whether a file does not exist, for instance because another process has removed it
    /// since it was listed.
    pub fn is_gone(&self) -> bool {
        matches!(self, Error::Io { doing: "open", source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Returns the error for a parameter that is out of range.
    pub(crate) fn parameter(name: &'static str, got: impl fmt::Display, needs: impl Into<String>) -> Error {
        Error::Filter(umbel::Error::parameter(name, got, needs))
    }

    /// Returns a function that adds the path and the operation to a system error.
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { path: path.to_owned(), doing, source }
    }

    /// Returns a function that adds the path to the error of a lock.
    pub(crate) fn lock(path: &Path) -> impl FnOnce(TryLockError) -> Error {
        move |error| match error {
            TryLockError::Error(source) => Error::io(path, "lock")(source),
            TryLockError::WouldBlock => Error::Locked { path: path.to_owned() },
        }
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
            umbel::Error::Format { path, problem } => Error::Format { path, problem },
            umbel::Error::NoRandom(source) => Error::NoRandom(source),
            other => Error::Filter(other),
        }
    }
}

impl From<FormatError> for Error {
    fn from(problem: FormatError) -> Error {
        Error::Format { path: PathBuf::new(), problem }
    }
}

impl From<Invalid> for Error {
    fn from(why: Invalid) -> Error {
        Error::NotAnAddress(why)
    }
}

impl From<getrandom::Error> for Error {
    fn from(error: getrandom::Error) -> Error {
        Error::NoRandom(io::Error::other(error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Filter(error) => write!(f, "{error}"),
            Error::Io { path, doing, .. } => write!(f, "cannot {doing} {}", path.display()),
            Error::Input(_) => f.write_str("cannot read the input"),
            Error::Output(_) => f.write_str("cannot write the output"),
            Error::Format { path, .. } if path.as_os_str().is_empty() => f.write_str("cannot use the data"),
            Error::Format { path, .. } => write!(f, "cannot use {}", path.display()),
            Error::Damaged { path, what } => write!(f, "{} is damaged: {what}", path.display()),
            Error::Newer { path, version } => {
                write!(
                    f,
                    "{} has version {version}, which this version of umbel does not know: use a newer one",
                    path.display()
                )
            }
            Error::ColumnIndex { path, column } => write!(
                f,
                "{0} is an index of the column {column}: see `umbel parquet which {0}` and `umbel parquet index`",
                path.display()
            ),
            Error::NoColumn { column } => write!(f, "no table has a column {column}"),
            Error::TextIndex { path } => {
                write!(f, "{0} is an index of words, not of a column: see `umbel index which {0}`", path.display())
            }
            Error::OutOfMemory { bytes, purpose } => {
                write!(f, "the system has no {bytes} bytes of memory for {purpose}")
            }
            Error::NoRandom(_) => f.write_str("the system has no random numbers"),

            Error::Locked { path } => {
                write!(f, "cannot lock {}: another process has locked it", path.display())
            }

            Error::NoStore { path } => {
                write!(f, "there is no store of tables in {}: `umbel table put` makes one", path.display())
            }

            Error::NoVault { path } => write!(f, "there is no vault in {}", path.display()),
            Error::HeaderLost { path } => {
                write!(
                    f,
                    "{} is missing, and without it nobody can open the documents beside it: put it back from a copy",
                    path.display()
                )
            }
            Error::VaultExists { path } => write!(f, "{} is a vault already", path.display()),
            Error::Occupied { path } => {
                write!(f, "{} holds other files: name a directory that is empty or new", path.display())
            }
            Error::WrongPassphrase { path } => {
                write!(f, "this passphrase does not open {}: nothing was changed", path.display())
            }
            Error::CostlyPasswords { memory, passes, required } => {
                let [memory, required] = [memory, required].map(|bytes| bytes.div_ceil(1 << 20));
                write!(
                    f,
                    "its slow hash takes {memory} MiB of memory and {passes} passes over it for each password, more than is expected: if you made it so, allow it with --max-memory {required}MiB"
                )
            }
            Error::CostlyVault { path, cost } => {
                write!(
                    f,
                    "opening {} takes {} MiB of memory and {} passes over it, more than is expected of a vault: if you made it so, allow it with --max-memory {}MiB",
                    path.display(),
                    cost.memory.div_ceil(1024),
                    cost.passes,
                    cost.required_limit().div_ceil(1024)
                )
            }
            Error::MissingDocument { path } => {
                write!(
                    f,
                    "{} is missing, and was not removed by `umbel vault remove`: put it back from a copy, or remove it by its id",
                    path.display()
                )
            }
            Error::NotListed { path } => {
                write!(
                    f,
                    "{} is not in the list of documents: it was removed or replaced before, or added elsewhere; `umbel vault adopt` takes it in, and `umbel vault remove` removes it",
                    path.display()
                )
            }
            Error::RolledBack { path } => {
                write!(f, "{} was set back to an earlier state, or changed from one", path.display())
            }
            Error::TooManyWords { most } => {
                write!(
                    f,
                    "it has more than {most} different words: cut it, or make a vault for more words in a document"
                )
            }
            Error::NoWord { text } => write!(f, "there is no word in {text:?}"),

            Error::Unmarked => f.write_str(
                "it does not say how passwords are put into it: `umbel password build` makes a filter that does",
            ),
            Error::UnknownMark { name, value } => {
                write!(
                    f,
                    "its metadata has {name} = {value:?}, which is not understood: a newer umbel made it, or somebody changed it"
                )
            }
            Error::NotAHash { line, algorithm } => {
                write_line(f, *line)?;
                match algorithm {
                    Some(algorithm) => {
                        let (article, digits) = (article(*algorithm), algorithm.digits());
                        write!(f, " is not {article} {algorithm} hash of {digits} hexadecimal digits")
                    }
                    None => f.write_str(
                        " is neither a SHA-1 hash of 40 hexadecimal digits nor an NTLM hash of 32",
                    ),
                }?;
                f.write_str(", with or without :COUNT")
            }
            Error::MixedHashes { line, algorithm } => {
                write_line(f, *line)?;
                write!(f, " is a hash of another kind than the {algorithm} hashes before it: give each kind a list of its own")
            }
            Error::OtherHashes { found, wanted } => write!(
                f,
                "it holds {found} hashes, and the filter holds {wanted} hashes: build a filter for each kind"
            ),
            Error::NotAPrefix => f.write_str("a prefix has 5 hexadecimal digits"),
            Error::NotWords(what) => write!(f, "{what}: use --words if they are words"),
            Error::HashesAmongWords(algorithm) => write!(
                f,
                "it holds {algorithm} hashes, and the filter holds words: give the hashes first, and words are hashed too"
            ),

            Error::NotAnException { line } => {
                write!(f, "line {line} is not a word with hyphens where it may be broken, such as ta-ble")
            }

            Error::NotAnAddress(_) => f.write_str("this is not a web address"),
            Error::NotAnExactList { path } => {
                write!(
                    f,
                    "{} is not an exact list of addresses: `umbel url build` makes one beside its filter",
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
            // `Display` prints the filter error itself, so its cause is the next one in the chain.
            Error::Filter(error) => error.source(),
            Error::Io { source, .. } => Some(source),
            Error::Input(error) | Error::Output(error) | Error::NoRandom(error) => Some(error),
            Error::Format { problem, .. } => Some(problem),
            Error::NotAnAddress(why) => Some(why),
            _ => None,
        }
    }
}

/// Writes the subject of an error about a line.
fn write_line(f: &mut fmt::Formatter<'_>, line: Option<u64>) -> fmt::Result {
    match line {
        Some(line) => write!(f, "line {line}"),
        None => f.write_str("a line"),
    }
}

fn article(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Sha1 => "a",
        Algorithm::Ntlm => "an",
    }
}
