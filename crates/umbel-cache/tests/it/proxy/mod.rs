//! The proxy, as clients, origins and other caches see it.

mod caching;
mod exposure;
mod hostile_origins;
mod hostile_peers;
mod manners;
mod places;
mod sharing;
mod smuggling;
mod trouble;

use crate::running::Running;
use rustix::net::{AddressFamily, SocketType};
use std::net::{SocketAddr, TcpStream};
use umbel_cache::proxy::Options;

/// Starts a proxy with a cache of its own.
fn proxy(options: Options) -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), options);
    (folder, running)
}

/// Opens a connection from an address such as `127.0.0.2`.
fn connect_from(source: &str, to: SocketAddr) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &format!("{source}:0").parse::<SocketAddr>().unwrap()).unwrap();
    rustix::net::connect(&socket, &to).unwrap();
    TcpStream::from(socket)
}

/// Returns options that permit tunnels to all ports.
fn any_port() -> Options {
    Options { connect_ports: (1..=u16::MAX).collect(), ..Options::default() }
}
