//! Name resolution and TCP connections to origins and peers.

use crate::error::{Error, Result};
use crate::proxy::places::Places;
use crate::proxy::reach::Requester;
use crate::proxy::target::HostPort;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// The largest number of concurrent name lookups. Each of them takes a thread of the runtime, which
/// other tasks need as well. They are shared among clients, since a name can take very long.
const MAX_LOOKUPS: usize = 64;

/// Opens TCP connections.
pub(in crate::proxy) struct Connector {
    connect_timeout: Duration,
    lookups: Places,
}

impl Connector {
    pub fn new(connect_timeout: Duration) -> Connector {
        Connector { connect_timeout, lookups: Places::new(MAX_LOOKUPS) }
    }

    /// Opens a connection to a host.
    pub async fn connect(&self, host: &HostPort, requester: Requester) -> Result<TcpStream> {
        let within = self.connect_timeout;
        let timed_out = |_| Error::Timeout { host: host.to_string(), what: "cannot be reached", within };
        timeout(within, self.connect_any(host, requester)).await.map_err(timed_out)?
    }

    /// Returns the addresses of a host.
    pub async fn resolve(&self, host: &HostPort, requester: Requester) -> io::Result<Vec<SocketAddr>> {
        if let Ok(ip) = host.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, host.port)]);
        }
        let lookup = async {
            let place = self.lookups.take(requester.address()).await;
            let host = host.clone();
            // A lookup cannot be cancelled: it occupies its thread, and so its place, even after
            // the timeout.
            let addresses = tokio::spawn(async move {
                let addresses = lookup_host((host.host.as_str(), host.port)).await.map(Iterator::collect);
                drop(place);
                addresses
            });
            addresses.await.map_err(io::Error::other)?
        };
        timeout(self.connect_timeout, lookup).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Tries all addresses of a host. Each but the last gets at most a third of the time.
    async fn connect_any(&self, host: &HostPort, requester: Requester) -> Result<TcpStream> {
        let unreachable = |error: io::Error| Error::unreachable(host, error);
        let mut last_error = None;
        let mut addresses = self.resolve(host, requester).await.map_err(unreachable)?.into_iter().peekable();
        while let Some(address) = addresses.next() {
            if !requester.reach().permits(address.ip()) {
                return Err(Error::Forbidden { host: host.to_string() });
            }
            let connecting = TcpStream::connect(address);
            let connected = match addresses.peek() {
                Some(_) => timeout(self.connect_timeout / 3, connecting)
                    .await
                    .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
                None => connecting.await,
            };
            match connected {
                Ok(stream) => {
                    // Small requests must not wait for more data.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(error) => last_error = Some(error),
            }
        }
        Err(last_error.map_or_else(|| Error::unreachable(host, "it has no address"), unreachable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lookups_of_one_client_do_not_delay_others() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let connector = Connector::new(Duration::from_secs(3));
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|ip| Requester::Client(ip.parse().unwrap()));
        let _held: Vec<_> = std::iter::from_fn(|| connector.lookups.try_take(one.address())).collect();
        let host = HostPort { host: "localhost".to_owned(), port: 9 };
        assert!(runtime.block_on(connector.resolve(&host, one)).is_err());
        assert!(runtime.block_on(connector.resolve(&host, other)).is_ok());
    }

    /// A name is judged by the addresses that are connected to, whatever it looks like.
    #[test]
    fn no_spelling_of_a_local_address_is_open_to_remote_clients() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let connector = Connector::new(Duration::from_secs(10));
        let remote = Requester::Client("192.0.2.1".parse().unwrap());
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "0177.0.0.1",
            "0",
            "localhost",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
            "64:ff9b::7f00:1",
            "169.254.169.254",
            "2852039166",
            "fd00:ec2::254",
            "fe80::1",
        ] {
            let host = HostPort { host: host.to_owned(), port: 9 };
            let result = runtime.block_on(connector.connect(&host, remote));
            assert!(matches!(result, Err(Error::Forbidden { .. })), "{host}: {result:?}");
        }
    }
}
