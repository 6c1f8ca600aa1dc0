//! The options and limits of a proxy.

use super::cache::AdmissionPolicy;
use super::log::LogSink;
use super::pace::MinRate;
use super::peers::PeerUrl;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Decides whether a client may use the proxy, by its address.
pub type Allow = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// The port to which tunnels may be opened by default.
pub const HTTPS_PORT: u16 = 443;

/// The options of a proxy.
#[derive(Clone)]
pub struct Options {
    /// Other caches.
    pub peers: Vec<PeerUrl>,
    /// The time between two requests for the summary of a peer, and between two publications of the
    /// own summary.
    pub summary_interval: Duration,
    /// Which responses are stored.
    pub admission: AdmissionPolicy,
    /// Which clients may use the proxy.
    pub allow: Allow,
    /// The ports to which tunnels may be opened.
    pub connect_ports: Vec<u16>,
    /// The names under which the proxy serves its own pages, besides IP addresses and names without
    /// dots.
    pub names: Vec<String>,
    /// The address of the status page and statistics, if it is not that of the proxy itself.
    pub status_address: Option<SocketAddr>,
    /// A file to which a line in the format of Squid's access log is appended for every response.
    pub access_log: Option<PathBuf>,
    /// Limits of size, number and time.
    pub limits: Limits,
    /// Receives a line for every failure.
    pub log: LogSink,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            peers: Vec::new(),
            summary_interval: Duration::from_secs(5),
            admission: AdmissionPolicy::All,
            allow: Arc::new(|address| address.to_canonical().is_loopback()),
            connect_ports: vec![HTTPS_PORT],
            names: Vec::new(),
            status_address: None,
            access_log: None,
            limits: Limits::default(),
            log: Arc::new(|_| {}),
        }
    }
}

/// Limits of size, number and time.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest body that is stored.
    pub max_object_bytes: u64,
    /// The largest number of clients at once, without tunnels. An address gets at most half of
    /// those that others leave.
    pub max_clients: usize,
    /// The largest number of tunnels at once, shared in the same way.
    pub max_tunnels: usize,
    /// The time for which a client waits for a place before it is turned away.
    pub place_timeout: Duration,
    /// The largest size of the headers of a request or response.
    pub max_header_bytes: usize,
    /// The largest number of headers of a request or response.
    pub max_headers: usize,
    /// The time in which a client must send the headers of a request, or begin the next request.
    pub header_timeout: Duration,
    /// The time in which all peers together must answer a request.
    pub peer_timeout: Duration,
    /// The time in which a connection must be opened.
    pub connect_timeout: Duration,
    /// The time in which an origin must begin its response.
    pub origin_timeout: Duration,
    /// The longest pause within a body, in either direction.
    pub stall_timeout: Duration,
    /// The lowest average rate of a body in any `stall_timeout`, in either direction. If it is 0,
    /// only pauses are limited.
    pub min_bytes_per_second: u64,
    /// The time for which a request waits for another request that fetches the same response.
    pub collapse_timeout: Duration,
    /// The time after which the cache digest for Squid is rebuilt.
    pub digest_lifetime: Duration,
}

impl Limits {
    pub(super) fn min_rate(&self) -> MinRate {
        MinRate::new(self.min_bytes_per_second, self.stall_timeout)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        let seconds = Duration::from_secs;
        Limits {
            max_object_bytes: 256 << 20,
            max_clients: 1000,
            max_tunnels: 1000,
            place_timeout: seconds(3),
            max_header_bytes: 64 << 10,
            max_headers: 128,
            header_timeout: seconds(30),
            peer_timeout: seconds(1),
            connect_timeout: seconds(10),
            origin_timeout: seconds(60),
            stall_timeout: seconds(60),
            min_bytes_per_second: 1024,
            collapse_timeout: seconds(10),
            digest_lifetime: seconds(10),
        }
    }
}
