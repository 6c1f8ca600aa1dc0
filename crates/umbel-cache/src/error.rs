//! The error type of the crate.
//!
//! A message states the problem and, where there is one, the remedy. It does not repeat its cause: that is the
//! [`source`](std::error::Error::source), and programs print the whole chain.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::task::JoinError;

/// A `Result` with this crate's error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong in a cache, in its store and in the proxy.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Bytes from another cache are not what they should be.
    Malformed {
        /// What was expected: a digest of Squid, an update of a summary.
        what: &'static str,
        /// What is wrong with the bytes.
        why: String,
        /// The error of the library that read them, if there was one.
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// No summary or digest has this size.
    Size {
        /// The size that was asked for, and the sizes that exist.
        what: String,
    },
    /// A filter could not be created, usually for lack of memory.
    Filter(umbel::Error),

    /// A folder is not a cache, and is not empty either.
    NotACache {
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
        /// What was tried: "open", "read", "write to".
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A stored document is not what was written. It is removed.
    Damaged(io::Error),
    /// A document was changed while it was fetched, so that what was fetched is not stored.
    Changed,
    /// All documents that are being written take more than the cache may hold.
    Overloaded,

    /// A text is not the URL of a peer.
    NotAPeer(String),
    /// The proxy cannot listen at an address.
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The access log cannot be opened.
    AccessLog {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A request does not say what it is for.
    Target(&'static str),
    /// Only clients on this machine may reach a host.
    Forbidden {
        /// The host.
        host: String,
    },
    /// There is no connection to a host.
    Unreachable {
        /// The host.
        host: String,
        /// Why not.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// A host took too long.
    Late {
        /// The host.
        host: String,
        /// What it did not do: "gives no answer".
        what: &'static str,
        /// How long that may take.
        within: Duration,
    },
    /// The connection to a host ended before there was a response.
    NoResponse {
        /// The host.
        host: String,
        /// How it ended.
        source: hyper::Error,
    },
    /// A host sent a response that this proxy cannot pass on.
    Response {
        /// The host.
        host: String,
        /// What it did.
        what: &'static str,
    },
    /// A peer sent a response of another kind than the one that was asked for.
    Status {
        /// The status of the response.
        status: u16,
        /// What was asked for: a summary, a digest.
        wanted: &'static str,
    },
    /// A body did not come to its end.
    Cut(hyper::Error),
    /// A body is larger than it may be.
    TooLarge {
        /// The most bytes that it may have.
        max: u64,
    },
    /// Nothing came of a body for some time.
    Stalled {
        /// How long nothing came.
        after: Duration,
    },
    /// A body comes so slowly that it is better had from elsewhere.
    Slow,
    /// The part of a body that was stored cannot be read again.
    Lost,
    /// The origin cannot go on with a document that a peer did not finish, as its own is another one.
    OtherDocument {
        /// Why the peer did not finish it.
        source: Box<Error>,
    },
    /// A peer sent neither a summary nor a digest.
    NoSummary {
        /// Why it sent no summary.
        summary: Box<Error>,
        /// Why it sent no digest.
        digest: Box<Error>,
    },
    /// A task of the proxy did not end as it should.
    Task(JoinError),
}

impl Error {
    pub(crate) fn malformed(what: &'static str, why: impl Into<String>) -> Error {
        Error::Malformed { what, why: why.into(), source: None }
    }

    /// Wraps an error of the system while the files of the cache were opened, read or written to.
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
            Error::Malformed { what, why, .. } => write!(f, "this is no {what}: {why}"),
            Error::Size { what } => f.write_str(what),
            Error::Filter(_) => f.write_str("a filter cannot be made"),
            Error::NotACache { folder } => {
                write!(f, "{} holds other files and is not a cache; name an empty folder", folder.display())
            }
            Error::InUse { folder } => {
                write!(f, "another process has the cache in {}", folder.display())
            }
            Error::Store { doing, .. } => write!(f, "cannot {doing} the cache"),
            Error::Damaged(_) => f.write_str("a document is damaged"),
            Error::Changed => f.write_str("it was changed while it was fetched"),
            Error::Overloaded => f.write_str("too much is being written at once"),
            Error::NotAPeer(text) => write!(f, "{text:?} is not a peer: write http://HOST:PORT"),
            Error::Listen { address, .. } => write!(f, "cannot listen at {address}"),
            Error::AccessLog { path, .. } => write!(f, "cannot write to {}", path.display()),
            Error::Target(why) => f.write_str(why),
            Error::Forbidden { host } => write!(f, "{host} is for this machine only"),
            Error::Unreachable { host, .. } => write!(f, "{host} cannot be reached"),
            Error::Late { host, what, within } => write!(f, "{host} {what} within {within:?}"),
            Error::NoResponse { host, .. } => write!(f, "{host} gives no answer"),
            Error::Response { host, what } => write!(f, "{host} {what}"),
            Error::Status { status, wanted } => write!(f, "it answers {status} and no {wanted}"),
            Error::Cut(_) => f.write_str("the body is not whole"),
            Error::TooLarge { max } => write!(f, "it has more than {max} bytes"),
            Error::Stalled { after } => write!(f, "nothing has come for {after:?}"),
            Error::Slow => f.write_str("it comes too slowly"),
            Error::Lost => f.write_str("its stored response cannot be read"),
            Error::OtherDocument { .. } => {
                f.write_str("the origin has another document than the one that a peer did not finish")
            }
            // There is one source, but these are two: both are in the message.
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
            Error::NoResponse { source, .. } | Error::Cut(source) => Some(source),
            Error::OtherDocument { source } => Some(source),
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

/// Returns the message of an error and those of its causes, as in "cannot open the cache: permission denied".
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
    fn a_chain_says_everything_once() {
        let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
        let listen = Error::Listen { address: ([127, 0, 0, 1], 80).into(), source: refused() };
        assert_eq!(chain(&listen), "cannot listen at 127.0.0.1:80: permission denied");
        assert!(listen.source().is_some_and(|cause| cause.is::<io::Error>()));
        let store = Error::store("write to")(refused());
        assert_eq!(chain(&store), "cannot write to the cache: permission denied");
        let unreachable = || Box::new(Error::unreachable("example.org:80", refused()));
        let both = Error::NoSummary { summary: unreachable(), digest: Box::new(Error::Slow) };
        assert_eq!(chain(&both), "example.org:80 cannot be reached: permission denied; it comes too slowly");
        let other = Error::OtherDocument { source: unreachable() };
        assert!(chain(&other).ends_with("finish: example.org:80 cannot be reached: permission denied"));
    }

    #[test]
    fn an_error_crosses_threads() {
        fn crosses<T: Send + Sync + 'static>() {}
        crosses::<Error>();
    }
}
