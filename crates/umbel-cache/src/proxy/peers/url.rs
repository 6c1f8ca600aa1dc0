//! The URL of a peer.

use crate::error::{Error, Result};
use crate::proxy::target::HostPort;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// The URL of a peer: `http://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerUrl(pub(super) HostPort);

impl PeerUrl {
    /// Returns whether the URL has this IP address and port.
    pub fn is(&self, address: SocketAddr) -> bool {
        self.0.port == address.port() && self.0.host.parse() == Ok(address.ip())
    }
}

impl fmt::Display for PeerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.0)
    }
}

impl FromStr for PeerUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<PeerUrl> {
        let wrong = || {
            Error::NotAPeer(match text.rsplit_once('@') {
                Some((_, host)) => format!("…@{host}"),
                None => text.to_owned(),
            })
        };
        let uri: http::Uri = text.parse().map_err(|_| wrong())?;
        let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(wrong());
        };
        if uri.path() != "/" || uri.query().is_some() {
            return Err(wrong());
        }
        HostPort::from_authority(authority, None).map(PeerUrl).map_err(|_| wrong())
    }
}
