//! Errors of servers and of connections to them, as messages.

use super::connection::NoHandshake;
use super::endpoint::PASSWORD_VARIABLE;
use super::response::{Failure, ServerError};
use super::server::Server;
use anyhow::{Error, anyhow};
use std::time::Duration;
use std::{fmt, io};

/// A connection that ended between a command and its response: the command may have been carried
/// out or not.
#[derive(Debug)]
pub struct Interrupted {
    /// The server's host and port, or the path of its socket.
    server: String,
}

impl Interrupted {
    pub fn new(server: &Server) -> Interrupted {
        Interrupted { server: server.to_string() }
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the connection to {} broke", self.server)
    }
}

/// Explains why a server refused a command; `server` is the subject of the message.
pub fn refused(server: &str, error: &ServerError) -> Error {
    if error.text.starts_with("ERR unknown command") {
        return anyhow!(
            "{server} has not loaded umbel's module: start it with --loadmodule libumbel_redis.so"
        );
    }
    if error.code() == "NOAUTH" {
        return anyhow!(
            "{server} wants a password: give it in {PASSWORD_VARIABLE}, or as redis://user:password@host/key"
        );
    }
    anyhow!("{server} says: {error}")
}

/// Converts an error of a connection whose responses have this time limit.
///
/// The result contains no [`io::Error`]: `main` takes a broken pipe for a reader of our output that
/// has seen enough, which is not a failure. A broken connection is one.
pub fn connection_error(failure: &Failure, limit: Duration) -> Error {
    let error = match failure {
        Failure::NotResp => return anyhow!("this is not a server that speaks RESP"),
        Failure::TooLarge => return anyhow!("its response is larger than any that umbel asks for"),
        Failure::Unexpected => return anyhow!("the server responds to more than it was asked"),
        Failure::Io(error) => error,
    };
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => anyhow!("the server has closed it"),
        io::ErrorKind::TimedOut if error.get_ref().is_some_and(|cause| cause.is::<NoHandshake>()) => {
            anyhow!("{error}")
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            anyhow!("the server does not respond, or too slowly: --timeout waits longer than {limit:?}")
        }
        _ => {
            let remedy = error.get_ref().and_then(|cause| cause.downcast_ref().and_then(tls_remedy));
            anyhow!("{error}{}{}", if remedy.is_some() { "; " } else { "" }, remedy.unwrap_or_default())
        }
    }
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
