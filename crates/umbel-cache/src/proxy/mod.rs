//! A caching proxy for the web, which shares what it has with others.
//!
//! A request goes through these rooms: what it is for (`target`); whether the cache has it (`lookup`), then it is a `hit`;
//! otherwise one of `flights` fetches it for all who want it now, from `siblings` that promise it or from the origin, which
//! `fetch` asks over a `pool` of connections; and a `pump` brings it to whoever asked and into the store. `neighbours` are asked
//! meanwhile what they have, and `manage` tells them what is here.
//!
//! What is in a document is believed of a peer as it is of an origin, but not that it is a document to be given: it has to be one
//! that a cache may have, fresh, whole and in time; if not, the origin is asked.
//!
//! ```
//! use umbel_cache::proxy::{Options, Proxy};
//! use umbel_cache::store::{self, Store};
//!
//! let folder = tempfile::tempdir()?;
//! let runtime = tokio::runtime::Runtime::new()?;
//! runtime.block_on(async {
//!     let store = Store::open(folder.path(), &store::Options::default())?;
//!     let proxy = Proxy::bind("127.0.0.1:0".parse()?, store, Options::default()).await?;
//!     println!("http_proxy=http://{}", proxy.address());
//!     proxy.run(async { /* until this ends */ }).await;
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod admission;
mod body;
mod counts;
mod fetch;
mod flights;
mod hit;
mod listen;
mod log;
mod lookup;
mod manage;
mod neighbours;
mod page;
mod pool;
mod pump;
mod service;
mod siblings;
mod target;
mod timed;
mod tunnel;

pub use access::AccessLog;
pub use admission::Admit;
pub use listen::Proxy;
pub use log::Sink;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use target::Address;

/// Who may use a proxy.
pub type Allow = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// Where a peer is: `http://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerUrl(Address);

impl PeerUrl {
    /// Whether it is this address.
    pub fn is(&self, address: SocketAddr) -> bool {
        self.0.port == address.port() && self.0.host.parse() == Ok(address.ip())
    }
}

impl fmt::Display for PeerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.0)
    }
}

/// What a proxy is like.
#[derive(Clone)]
pub struct Options {
    /// Other caches.
    pub peers: Vec<PeerUrl>,
    /// How often they are asked what they have, and how often what is here is told.
    pub every: Duration,
    /// Which documents get a place in the cache.
    pub admit: Admit,
    /// Who may use it.
    pub allow: Allow,
    /// Where what was counted is shown, if not at the address of the proxy itself.
    pub manage: Option<SocketAddr>,
    /// A file that gets a line for every answer, in the form of Squid's log.
    pub access_log: Option<PathBuf>,
    /// What is too much.
    pub limits: Limits,
    /// Where it is said what goes wrong.
    pub log: Sink,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            peers: Vec::new(),
            every: Duration::from_secs(5),
            admit: Admit::All,
            allow: Arc::new(|address| address.to_canonical().is_loopback()),
            manage: None,
            access_log: None,
            limits: Limits::default(),
            log: Arc::new(|_| {}),
        }
    }
}

/// What is too much, and what takes too long.
#[derive(Clone, Debug)]
pub struct Limits {
    /// No larger document is kept.
    pub max_object: u64,
    /// The most clients at once.
    pub connections: usize,
    /// The most bytes of headers of a request or an answer, and how many.
    pub head_bytes: usize,
    /// See above.
    pub headers: usize,
    /// How long a client may take for the headers of a request, or to begin with the next one.
    pub head: Duration,
    /// How long all peers together may take for one document.
    pub peer: Duration,
    /// How long a connection may take.
    pub connect: Duration,
    /// How long an origin may take to begin with its answer.
    pub origin: Duration,
    /// How long nothing may come, or be taken, in the midst of a body.
    pub stall: Duration,
    /// How long somebody waits for what somebody else fetches.
    pub patience: Duration,
    /// How long a digest for Squid is good.
    pub digest: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let seconds = Duration::from_secs;
        Limits {
            max_object: 256 << 20,
            connections: 1000,
            head_bytes: 64 << 10,
            headers: 128,
            head: seconds(30),
            peer: seconds(1),
            connect: seconds(10),
            origin: seconds(60),
            stall: seconds(60),
            patience: seconds(10),
            digest: seconds(10),
        }
    }
}
