//! Servers, as addresses and redirects name them.

use std::fmt;
use std::path::PathBuf;

/// A server and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    Tcp { host: String, port: u16 },
    Tls { host: String, port: u16 },
    Unix(PathBuf),
}

impl Server {
    /// Returns the name or address of the host, unless it is this machine.
    pub fn host(&self) -> Option<&str> {
        match self {
            Server::Tcp { host, .. } | Server::Tls { host, .. } => Some(host),
            Server::Unix(_) => None,
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Server::Tcp { host, port } | Server::Tls { host, port } if host.contains(':') => {
                write!(f, "[{host}]:{port}")
            }
            Server::Tcp { host, port } | Server::Tls { host, port } => write!(f, "{host}:{port}"),
            Server::Unix(path) => path.display().fmt(f),
        }
    }
}
