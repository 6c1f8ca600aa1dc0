//! Errors of servers and of connections to them, as messages.

use super::client::PASSWORD_VARIABLE;
use anyhow::{Error, anyhow};
use redis::{ConnectionAddr, ErrorKind, RedisError, ServerError};
use std::error::Error as _;
use std::sync::Arc;
use std::{fmt, io};

/// A connection that ended between a command and its response: the command may have been carried
/// out or not.
#[derive(Debug)]
pub struct Interrupted {
    /// The server's host and port, or the path of its socket.
    server: String,
    /// Whether a signal ended the wait for the response.
    by_signal: bool,
}

impl Interrupted {
    pub fn new(server: &ConnectionAddr, cause: &RedisError) -> Interrupted {
        Interrupted { server: server.to_string(), by_signal: is_signal(cause) }
    }
}

/// Returns whether a signal ended the wait for a response, as when a process is stopped and
/// continued in a shell: the system restarts other calls, but not those with a time limit. The
/// connection is intact, and another command can follow.
pub fn is_signal(error: &RedisError) -> bool {
    io_error(error).is_some_and(|error| error.kind() == io::ErrorKind::Interrupted)
}

/// As [`is_signal`], for an error of a command.
pub fn was_signalled(error: &Error) -> bool {
    error.downcast_ref::<Interrupted>().is_some_and(|interrupted| interrupted.by_signal)
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the connection to {} broke", self.server)
    }
}

/// Returns an error that a server sent, word for word.
pub fn error_text(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}

/// Explains why a server refused a command; `server` is the subject of the message.
pub fn refused(server: &str, error: &ServerError) -> Error {
    let text = error_text(error);
    if text.starts_with("ERR unknown command") {
        return anyhow!(
            "{server} has not loaded umbel's module: start it with --loadmodule libumbel_redis.so"
        );
    }
    if text.starts_with("NOAUTH") {
        return anyhow!(
            "{server} wants a password: give it in {PASSWORD_VARIABLE}, or as redis://user:password@host/key"
        );
    }
    anyhow!("{server} says: {text}")
}

/// Converts an error of a connection.
///
/// The result contains no [`io::Error`]: `main` takes a broken pipe for a reader of our output that
/// has seen enough, which is not a failure. A broken connection is one.
pub fn connection_error(error: &RedisError) -> Error {
    let io_error = io_error(error);
    if error.kind() == ErrorKind::Parse {
        return anyhow!("this is not a server that speaks RESP");
    }
    if io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        return anyhow!("the server has closed it");
    }
    let remedy = io_error
        .and_then(|error| error.get_ref()?.downcast_ref::<rustls::Error>())
        .and_then(tls_remedy)
        .map_or_else(String::new, |remedy| format!("; {remedy}"));
    anyhow!("{error}{remedy}")
}

/// Returns the cause of an error, if it is one of input and output.
fn io_error(error: &RedisError) -> Option<&io::Error> {
    error.source()?.downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>()?.downcast_ref()
}

/// Returns advice for a failed handshake.
fn tls_remedy(error: &rustls::Error) -> Option<&'static str> {
    use rustls::AlertDescription::{CertificateRequired, HandshakeFailure};
    use rustls::CertificateError::{self, UnknownIssuer};
    match error {
        rustls::Error::InvalidCertificate(UnknownIssuer) => {
            Some("name the certificate of its authority with --cacert")
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => Some("use a host name that the certificate is for"),
        rustls::Error::AlertReceived(CertificateRequired | HandshakeFailure) => {
            Some("the server may want a certificate of yours: name it with --cert and --key")
        }
        rustls::Error::InvalidMessage(_) => {
            Some("the server may not speak TLS on this port: use redis:// without TLS")
        }
        _ => None,
    }
}
