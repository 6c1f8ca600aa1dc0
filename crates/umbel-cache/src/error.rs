//! The error type of the crate.
//!
//! A message states the problem and, where there is one, the remedy. It does not repeat its cause:
//! that is the [`source`](std::error::Error::source), and programs print the whole chain.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::JoinError;

/// A `Result` with this crate's error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a cache, its store or the proxy.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Bytes from another cache are not in the expected format.
    Malformed {
        /// The name of the format: a digest of Squid, an update of a summary.
        what: &'static str,
        /// The reason.
        why: String,
        /// The error of the library that parsed the bytes, if there was one.
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// A summary or cache digest of this size is not possible.
    Size {
        /// The requested size and the possible sizes.
        what: String,
    },
    /// A filter could not be created, usually for lack of memory.
    Filter(umbel::Error),

    /// A folder has files but is not a cache.
    NotACache {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder of a cache belongs to another user.
    NotOwned {
        /// The folder.
        folder: PathBuf,
    },
    /// Another process uses the cache.
    InUse {
        /// The folder of the cache.
        folder: PathBuf,
    },
    /// The system refused to read or write the files of the cache.
    Store {
        /// The attempted operation: "open", "read", "write to".
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A stored response is damaged. It has been removed.
    Damaged(io::Error),
    /// A response was invalidated while it was fetched, so it is not stored.
    Invalidated,
    /// The responses that are being written take more than the cache may hold.
    Overloaded,

    /// A text is not the URL of a peer. A password in it is not shown.
    NotAPeer(String),
    /// The proxy cannot listen at an address.
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The access log cannot be opened.
    AccessLog {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },

    /// The target of a request is missing or not supported.
    InvalidTarget(&'static str),
    /// Only clients on this machine may reach a host.
    Forbidden {
        /// The host.
        host: String,
    },
    /// A connection to a host could not be opened.
    Unreachable {
        /// The host.
        host: String,
        /// The reason.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// A host took too long.
    Timeout {
        /// The host.
        host: String,
        /// The operation that was not completed, as in "did not respond".
        what: &'static str,
        /// The time limit.
        within: Duration,
    },
    /// The connection to a host ended before it sent a response.
    NoResponse {
        /// The host.
        host: String,
        /// The error of the connection.
        source: hyper::Error,
    },
    /// A host sent a response that this proxy cannot forward.
    UnsupportedResponse {
        /// The host.
        host: String,
        /// The unsupported property of the response.
        what: &'static str,
    },
    /// The end of a response is ambiguous.
    AmbiguousResponse {
        /// The host.
        host: String,
        /// The fault of the response, as in "it has more than one Content-Length".
        fault: &'static str,
    },
    /// A peer did not send the requested summary or digest.
    UnexpectedStatus {
        /// The status of the response.
        status: u16,
        /// The name of the requested format: "summary", "digest".
        wanted: &'static str,
    },
    /// The connection ended before the end of a body.
    IncompleteBody(hyper::Error),
    /// A body is larger than permitted.
    TooLarge {
        /// The largest permitted number of bytes.
        max: u64,
    },
    /// Nothing, or too little, of a body was received for some time.
    Stalled {
        /// The time limit.
        within: Duration,
    },
    /// A peer sends a body so slowly that the origin is the better source.
    TooSlow,
    /// The part of a body that is already stored cannot be read.
    StoredBodyLost,
    /// The origin cannot complete the body that a peer has begun, because it now has another
    /// representation.
    OriginMismatch {
        /// The failure of the peer.
        source: Box<Error>,
    },
    /// A peer sent neither a summary nor a cache digest.
    NoSummary {
        /// The error of the request for the summary.
        summary: Box<Error>,
        /// The error of the request for the digest.
        digest: Box<Error>,
    },
    /// A task of the proxy panicked or was cancelled.
    Task(JoinError),
}

impl Error {
    pub(crate) fn malformed(what: &'static str, why: impl Into<String>) -> Error {
        Error::Malformed { what, why: why.into(), source: None }
    }

    /// Returns a function that wraps an error of the system: `doing` is "open", "read" or "write
    /// to".
    pub(crate) fn store(doing: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::Store { doing, source }
    }

    pub(crate) fn unreachable(
        host: impl fmt::Display,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Error {
        Error::Unreachable { host: host.to_string(), source: source.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed { what, why, .. } => write!(f, "this is not a valid {what}: {why}"),
            Error::Size { what } => f.write_str(what),
            Error::Filter(_) => f.write_str("a filter cannot be created"),
            Error::NotACache { folder } => {
                write!(f, "{} holds other files and is not a cache; name an empty folder", folder.display())
            }
            Error::NotOwned { folder } => {
                write!(f, "{} belongs to another user; name a folder of your own", folder.display())
            }
            Error::InUse { folder } => {
                write!(f, "another process has the cache in {}", folder.display())
            }
            Error::Store { doing, .. } => write!(f, "cannot {doing} the cache"),
            Error::Damaged(_) => f.write_str("a stored response is damaged"),
            Error::Invalidated => f.write_str("it was changed while it was fetched"),
            Error::Overloaded => f.write_str("too much is being written at once"),
            Error::NotAPeer(text) => write!(f, "{text:?} is not a peer: write http://HOST:PORT"),
            Error::Listen { address, .. } => write!(f, "cannot listen at {address}"),
            Error::AccessLog { path, .. } => write!(f, "cannot write to {}", path.display()),
            Error::InvalidTarget(why) => f.write_str(why),
            Error::Forbidden { host } => write!(f, "{host} is for this machine only"),
            Error::Unreachable { host, .. } => write!(f, "{host} cannot be reached"),
            Error::Timeout { host, what, within } => write!(f, "{host} {what} within {within:?}"),
            Error::NoResponse { host, .. } => write!(f, "{host} did not respond"),
            Error::UnsupportedResponse { host, what } => write!(f, "{host} {what}"),
            Error::AmbiguousResponse { host, fault } => {
                write!(f, "the end of the response of {host} is ambiguous: {fault}")
            }
            Error::UnexpectedStatus { status, wanted } => {
                write!(f, "it sent status {status} instead of a {wanted}")
            }
            Error::IncompleteBody(_) => f.write_str("the body is incomplete"),
            Error::TooLarge { max } => write!(f, "it has more than {max} bytes"),
            Error::Stalled { within } => write!(f, "too little was received within {within:?}"),
            Error::TooSlow => f.write_str("it is sent too slowly"),
            Error::StoredBodyLost => f.write_str("its stored response cannot be read"),
            Error::OriginMismatch { .. } => {
                f.write_str("the origin has a different document from the one that a peer did not finish")
            }
            // An error has one source. These are two, so both are in the message.
            Error::NoSummary { summary, digest } => write!(f, "{}; {}", chain(summary), chain(digest)),
            Error::Task(_) => f.write_str("a task has failed"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Error::Malformed { source: Some(source), .. } | Error::Unreachable { source, .. } => {
                Some(&**source)
            }
            Error::Filter(source) => Some(source),
            Error::Store { source, .. }
            | Error::Damaged(source)
            | Error::Listen { source, .. }
            | Error::AccessLog { source, .. } => Some(source),
            Error::NoResponse { source, .. } | Error::IncompleteBody(source) => Some(source),
            Error::OriginMismatch { source } => Some(source),
            Error::Task(source) => Some(source),
            _ => None,
        }
    }
}

impl From<umbel::Error> for Error {
    fn from(error: umbel::Error) -> Error {
        Error::Filter(error)
    }
}

impl From<JoinError> for Error {
    fn from(error: JoinError) -> Error {
        Error::Task(error)
    }
}

/// Returns the message of an error and those of its causes, as in "cannot open the cache:
/// permission denied".
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_contains_every_message_once() {
        let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
        let listen = Error::Listen { address: ([127, 0, 0, 1], 80).into(), source: refused() };
        assert_eq!(chain(&listen), "cannot listen at 127.0.0.1:80: permission denied");
        assert!(listen.source().is_some_and(|cause| cause.is::<io::Error>()));
        let store = Error::store("write to")(refused());
        assert_eq!(chain(&store), "cannot write to the cache: permission denied");
        let unreachable = || Box::new(Error::unreachable("example.org:80", refused()));
        let both = Error::NoSummary { summary: unreachable(), digest: Box::new(Error::TooSlow) };
        assert_eq!(
            chain(&both),
            "example.org:80 cannot be reached: permission denied; it is sent too slowly"
        );
        let other = Error::OriginMismatch { source: unreachable() };
        assert!(chain(&other).ends_with("finish: example.org:80 cannot be reached: permission denied"));
    }

    #[test]
    fn errors_can_be_sent_between_threads() {
        fn crosses<T: Send + Sync + 'static>() {}
        crosses::<Error>();
    }
}
