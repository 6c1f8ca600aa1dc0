//! An address with everything that a connection to it needs, and the options for that.

use super::address::Address;
use super::redirect::{HostPattern, is_same_host};
use super::server::Server;
use super::tls::TlsArgs;
use crate::args::{headings, number};
use anyhow::Result;
use rustls::ClientConfig;
use std::net::IpAddr;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// Environment variable with the password if the address has none, as for redis-cli.
pub const PASSWORD_VARIABLE: &str = "REDISCLI_AUTH";

/// The options for connections.
#[derive(clap::Args)]
pub struct ConnectionArgs {
    /// Send the password to HOST too, if the cluster redirects there (repeatable)
    ///
    /// Without this option, only the host of the address gets the password, on any port. A HOST is a
    /// name, an address, a network such as 10.0.0.0/24, or a domain such as .cache.example.com.
    /// Redirects are followed to any host if there is no password.
    #[arg(long, value_name = "HOST", help_heading = headings::CONNECTION)]
    allow_redirect: Vec<HostPattern>,

    /// Fail if the server does not respond within TIME
    ///
    /// A response that has begun may take longer, at no less than 16 KiB a second.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "2m",
        value_parser = number::time,
        help_heading = headings::CONNECTION
    )]
    timeout: Duration,

    #[command(flatten)]
    tls: TlsArgs,
}

impl ConnectionArgs {
    /// Returns an address with these options.
    ///
    /// # Errors
    /// Fails if a file cannot be read or is not a certificate or key, and for options of TLS with
    /// an address without TLS.
    pub fn endpoint(&self, address: &Address) -> Result<Arc<Endpoint>> {
        let (password, source) = match &address.password {
            Some(password) => (password.clone(), "the address"),
            None => {
                let password = std::env::var_os(PASSWORD_VARIABLE).unwrap_or_default();
                (Zeroizing::new(password.into_vec()), PASSWORD_VARIABLE)
            }
        };
        Ok(Arc::new(Endpoint {
            address: address.clone(),
            password,
            password_source: source,
            tls: self.tls.config(&address.server)?,
            timeout: self.timeout,
            allowed: self.allow_redirect.clone(),
        }))
    }
}

/// A key on a server, and how to connect to it.
pub struct Endpoint {
    pub address: Address,
    /// The password, or nothing.
    pub password: Zeroizing<Vec<u8>>,
    /// The origin of the password, for messages.
    pub password_source: &'static str,
    pub tls: Arc<ClientConfig>,
    /// Time limit for a response, even to the last piece of a large filter.
    pub timeout: Duration,
    /// Other hosts that get the password.
    allowed: Vec<HostPattern>,
}

impl Endpoint {
    /// Returns whether a server to which the cluster redirects may get the password. `peer` is the
    /// host of the first connection.
    pub fn trusts(&self, server: &Server, peer: Option<IpAddr>) -> bool {
        self.password.is_empty()
            || is_same_host(&self.address.server, peer, server)
            || server.host().is_some_and(|host| self.allowed.iter().any(|allowed| allowed.matches(host)))
    }
}
