//! Redirects of a cluster, and the hosts that get the password when one is followed.
//!
//! All servers of a cluster have the same password, but nothing in a redirect proves that it comes
//! from the cluster or leads to it: servers accept new members without a password, and lists such
//! as that of CLUSTER SLOTS come from the same source. A password is therefore sent only to the host of
//! the address, on any port, and to hosts that the user has named.

use super::response::ServerError;
use super::server::Server;
use anyhow::{Context, Result};
use std::net::IpAddr;
use std::str::FromStr;
use umbel_net::network::Prefix;

/// How a cluster responds to a command for a key that is not here, or only partly.
pub enum Redirect {
    /// The slot of the key belongs to another server.
    Moved(Server),
    /// The slot is being moved, and the key is on the other server already.
    Ask(Server),
    /// The slot is being moved, and its keys are on both servers.
    TryAgain,
}

impl Redirect {
    /// Interprets the error of a server as a redirect, if it is one.
    pub fn parse(error: &ServerError, from: &Server) -> Result<Option<Redirect>> {
        Ok(Some(match error.code() {
            "MOVED" => Redirect::Moved(target(error, from)?),
            "ASK" => Redirect::Ask(target(error, from)?),
            "TRYAGAIN" => Redirect::TryAgain,
            _ => return Ok(None),
        }))
    }
}

/// Returns the server that an error such as "MOVED slot host:port" names.
fn target(error: &ServerError, from: &Server) -> Result<Server> {
    let node = error.text.split(' ').nth(2).context("the cluster names no server")?;
    let (host, port) = node.rsplit_once(':').context("the cluster names no server")?;
    let port = port.parse().context("the cluster names no port")?;
    // A server that does not know its own name means the host of this connection. A socket is on
    // this machine.
    let host = if host.is_empty() { from.host().unwrap_or("localhost") } else { host }.to_owned();
    Ok(match from {
        Server::Tls { .. } => Server::Tls { host, port },
        _ => Server::Tcp { host, port },
    })
}

/// Hosts that get the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// The address of a host, or of all hosts of a network.
    Network(Prefix),
    /// The name of a host.
    Name(String),
    /// All names that end with this one, which begins with a dot.
    Domain(String),
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<HostPattern, String> {
        if let Ok(network) = text.parse() {
            return Ok(HostPattern::Network(network));
        }
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
        match text.strip_prefix('.') {
            Some(name) if is_name(name) => Ok(HostPattern::Domain(text.to_ascii_lowercase())),
            None if is_name(text) => Ok(HostPattern::Name(text.to_ascii_lowercase())),
            _ => Err("not a host: write a name, an address, a network as 10.0.0.0/24, \
                      or .example.com for all names that end so"
                .to_owned()),
        }
    }
}

impl HostPattern {
    /// Returns whether a host as a redirect names it is one of these.
    pub fn matches(&self, host: &str) -> bool {
        let name = host.to_ascii_lowercase();
        match self {
            HostPattern::Network(network) => {
                host.parse().is_ok_and(|address: IpAddr| network.covers(address))
            }
            HostPattern::Name(expected) => name == *expected,
            HostPattern::Domain(domain) => name.ends_with(domain),
        }
    }
}

/// Returns whether a redirect leads to the host of an address. `peer` is the address of the host
/// that the first connection was made to: clusters usually name their servers by address, and
/// users by name.
pub fn is_same_host(origin: &Server, peer: Option<IpAddr>, target: &Server) -> bool {
    let Some(target) = target.host() else { return false };
    let address = target.parse::<IpAddr>().ok().map(|address| address.to_canonical());
    match origin.host() {
        Some(host) if host.eq_ignore_ascii_case(target) => true,
        Some(_) => address.is_some() && address == peer,
        None => target == "localhost" || address.is_some_and(|address| address.is_loopback()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Server {
        Server::Tcp { host: host.to_owned(), port }
    }

    fn redirect(text: &str) -> Server {
        match Redirect::parse(&ServerError::new(text), &tcp("example", 7000)).unwrap() {
            Some(Redirect::Moved(server) | Redirect::Ask(server)) => server,
            _ => panic!("{text}"),
        }
    }

    #[test]
    fn redirects_name_a_server() {
        assert_eq!(redirect("MOVED 3999 10.0.0.2:7001"), tcp("10.0.0.2", 7001));
        assert_eq!(redirect("ASK 3999 ::1:7001"), tcp("::1", 7001));
        assert_eq!(redirect("MOVED 3999 :7001"), tcp("example", 7001));
        let tls = Server::Tls { host: "a".into(), port: 1 };
        let moved = Redirect::parse(&ServerError::new("MOVED 1 b:2"), &tls).unwrap();
        assert!(matches!(moved, Some(Redirect::Moved(Server::Tls { host, port: 2 })) if host == "b"));
        for text in ["MOVED", "MOVED 1", "MOVED 1 host", "MOVED 1 host:x", "ASK 1 host:99999", "MOVED  "] {
            assert!(Redirect::parse(&ServerError::new(text), &tls).is_err(), "{text}");
        }
        for text in ["ERR MOVED 1 b:2", "MOVEDX 1 b:2", ""] {
            assert!(Redirect::parse(&ServerError::new(text), &tls).unwrap().is_none(), "{text}");
        }
    }

    #[test]
    fn only_the_host_of_the_address_is_trusted() {
        let peer = Some("10.0.0.1".parse().unwrap());
        let origin = tcp("Cache.example", 7000);
        for (target, same) in [
            ("cache.example", true),
            ("10.0.0.1", true),
            ("::ffff:10.0.0.1", true),
            ("10.0.0.2", false),
            ("cache.example.evil", false),
            ("localhost", false),
        ] {
            assert_eq!(is_same_host(&origin, peer, &tcp(target, 1)), same, "{target}");
        }
        // Every address of this machine is another host, except for a socket.
        let local = (tcp("127.0.0.1", 1), "127.0.0.1".parse().ok());
        assert!(!is_same_host(&local.0, local.1, &tcp("127.0.0.2", 1)));
        let socket = Server::Unix("/run/redis.sock".into());
        assert!(is_same_host(&socket, None, &tcp("127.0.0.1", 1)));
        assert!(!is_same_host(&socket, None, &tcp("10.0.0.1", 1)));
    }

    #[test]
    fn hosts_are_allowed_by_name_domain_or_network() {
        let allows = |pattern: &str, host: &str| pattern.parse::<HostPattern>().unwrap().matches(host);
        assert!(allows("10.0.0.0/24", "10.0.0.7") && !allows("10.0.0.0/24", "10.0.1.7"));
        assert!(allows("10.0.0.7", "10.0.0.7") && !allows("10.0.0.0/8", "10.0.0.7.evil"));
        assert!(allows("fd00::/8", "fd00::1") && !allows("0.0.0.0/0", "host"));
        assert!(allows("Node-1.example", "node-1.EXAMPLE") && !allows("node", "node.example"));
        assert!(allows(".example", "a.b.example") && !allows(".example", "evilexample"));
        for wrong in ["", ".", "10.0.0.0/33", "host:1", "*", "a b", "redis://h"] {
            assert!(wrong.parse::<HostPattern>().is_err(), "{wrong}");
        }
    }
}
