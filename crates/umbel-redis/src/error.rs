//! The error type of this crate: why the module could not be loaded, or a value could not be read
//! or written.
//!
//! A command that fails replies with a [`Failure`]; these errors go to the server's log, or become
//! a part of such a reply.

use crate::server::Failure;
use std::{fmt, io};
use umbel::file::FormatError;
use umbel::hash::HashId;
use umbel::internals::write_causes;

/// A `Result` with this crate's error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error type of this crate.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The last argument of the module is a name without a value.
    NoValue {
        /// The name.
        name: String,
    },
    /// An argument of the module has a value that cannot be used.
    BadValue {
        /// The name of the argument.
        name: String,
        /// The rejected value.
        value: String,
        /// The values that are accepted.
        needs: &'static str,
    },
    /// The module has no argument of this name.
    UnknownArgument {
        /// The name.
        name: String,
    },
    /// The key file cannot be read.
    KeyFile {
        /// The file.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The key file does not contain a keyed secret.
    NoSecret {
        /// The file.
        path: String,
    },
    /// The module is being loaded for the second time.
    LoadedTwice,
    /// The server refuses something that the module registers.
    Refused {
        /// The type, command or description, and the likely reason.
        what: String,
    },

    /// The bytes of a value, or of a part of it, are invalid.
    Malformed(&'static str),
    /// A value in a snapshot is in a state that this module does not know.
    UnknownState(u64),
    /// A snapshot was written in an encoding that this module does not know.
    UnknownEncoding(i32),
    /// There is not enough memory for a value.
    OutOfMemory,
    /// The bytes of a value cannot be read.
    Io(io::Error),
    /// The bytes of a filter cannot be used.
    Format(FormatError),
    /// An error of the filter library.
    Filter(umbel::Error),
    /// A value is hashed with a secret that this server does not have.
    MissingSecret {
        /// The strength of the hash and the tag of the secret.
        id: HashId,
    },
    /// A part of an incomplete value was refused.
    Part(Failure),
    /// Code of this module has panicked.
    Panicked,
}

impl Error {
    /// The error for bytes that end before the value does.
    pub const CUT: Error = Error::Malformed("it ends too early");

    /// The error for a stream or dump that does not begin as it should.
    pub const BAD_HEADER: Error = Error::Malformed("its header is invalid");

    /// The error for a value whose parts are valid but contradict each other.
    pub const CONTRADICTORY: Error = Error::Malformed("its parts do not fit together");
}

/// Errors about the bytes of a filter become errors of this crate, since those bytes have no path.
impl From<umbel::Error> for Error {
    fn from(error: umbel::Error) -> Error {
        match error {
            umbel::Error::Io { source, .. } => Error::Io(source),
            umbel::Error::Format { problem, .. } => Error::Format(problem),
            umbel::Error::MissingKey { id, .. } => Error::MissingSecret { id },
            other => Error::Filter(other),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoValue { name } => write!(f, "the argument {name} has no value"),
            Error::BadValue { name, value, needs } => write!(f, "{name} is {value}, and should be {needs}"),
            Error::UnknownArgument { name } => {
                write!(
                    f,
                    "{name} is not known; there are KEY-FILE, MAX-KEY-BYTES, MAX-BYTES, MAX-ITEM-BYTES, ERROR_RATE, INITIAL_SIZE, EXPANSION and CF_INITIAL_SIZE"
                )
            }
            Error::KeyFile { path, .. } => write!(f, "the key file {path}"),
            Error::NoSecret { path } => {
                write!(f, "{path} has no keyed secret: `umbel key new {path} --hash keyed` makes one")
            }
            Error::LoadedTwice => f.write_str("the module is loaded already"),
            Error::Refused { what } => f.write_str(what),
            Error::Malformed(what) => f.write_str(what),
            Error::UnknownState(state) => write!(f, "it is in state {state}, which is not known"),
            Error::UnknownEncoding(version) => {
                write!(f, "version {version} of its encoding is not known: a newer module wrote it")
            }
            Error::OutOfMemory => f.write_str("there is no memory for it"),
            Error::Io(_) => f.write_str("cannot read it"),
            Error::Format(problem) => write!(f, "{problem}"),
            Error::Filter(error) => write!(f, "{error}"),
            Error::MissingSecret { id } => write!(
                f,
                "it is hashed with a secret ({id}) that is not among the given keys: \
                 load the module with the KEY-FILE that it was written with"
            ),
            Error::Part(_) => f.write_str("a part of it is refused"),
            Error::Panicked => f.write_str("this is a mistake in the module"),
        }?;
        write_causes(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::KeyFile { source, .. } => Some(source),
            Error::Io(source) => Some(source),
            Error::Part(failure) => Some(failure),
            // The message is that of the inner error, so the cause is, too.
            Error::Format(problem) => problem.source(),
            Error::Filter(error) => error.source(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;
    use umbel::hash::KeyRing;

    #[test]
    fn a_missing_key_file_has_the_system_error_as_its_cause() {
        let error = crate::config::read_secret("/nowhere/umbel.key").unwrap_err();
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).expect("a cause");
        assert_eq!(cause.kind(), io::ErrorKind::NotFound);
        assert_eq!(error.to_string(), "the key file /nowhere/umbel.key");
        assert_eq!(format!("{error:#}"), format!("the key file /nowhere/umbel.key: {cause}"));
    }

    #[test]
    fn a_failed_stream_is_the_cause_of_the_error() {
        struct Cut;
        impl io::Read for Cut {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other(Error::CUT))
            }
        }
        let error = Error::from(umbel::file::read(&mut Cut, 1 << 20, &KeyRing::new()).unwrap_err());
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).expect("a cause");
        assert_eq!(cause.to_string(), "it ends too early");
        assert_eq!(format!("{error:#}"), "cannot read it: it ends too early");
    }

    #[test]
    fn a_reply_names_the_problem_with_a_filter_and_nothing_else() {
        let error = umbel::file::from_bytes(b"lines of text", &KeyRing::new()).unwrap_err();
        let failure = Failure::from(error);
        assert_eq!(failure, Failure::new(FormatError::NotAFilter.to_string()));
    }
}
