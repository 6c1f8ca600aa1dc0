//! The peers of the proxy: their addresses, their summaries, and the format in which each of them serves it.

use super::log::Log;
use super::peer_url::PeerUrl;
use super::target::HostPort;
use super::upstream::Upstream;
use crate::sync::lock;
use crate::{PeerId, Peers};
use http::HeaderValue;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The peers of the proxy.
pub(super) struct PeerGroup {
    /// The views and counts of the peers.
    pub views: Peers,
    endpoints: Vec<PeerEndpoint>,
    pub(super) upstream: Arc<Upstream>,
    pub(super) log: Arc<Log>,
    /// The time in which all peers together must answer a request.
    pub(super) timeout: Duration,
}

/// The address of a peer and the state of the exchange of summaries with it.
pub(super) struct PeerEndpoint {
    pub address: HostPort,
    exchange: Mutex<SummaryExchange>,
}

/// The state of the exchange of summaries with a peer.
#[derive(Default)]
struct SummaryExchange {
    format: SummaryFormat,
    health: ExchangeHealth,
}

/// The format in which a peer serves its summary.
#[derive(Clone, Default)]
pub(super) enum SummaryFormat {
    /// Summaries of umbel, or not known yet.
    #[default]
    Umbel,
    /// Squid's cache digests. The last one had this `Last-Modified`.
    Squid { last_modified: Option<HeaderValue> },
}

/// The outcome of the last exchange. A line is logged when it changes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ExchangeHealth {
    #[default]
    Unknown,
    Healthy,
    Failing,
}

impl PeerGroup {
    pub fn new(urls: &[PeerUrl], upstream: Arc<Upstream>, log: Arc<Log>, timeout: Duration) -> PeerGroup {
        let endpoints = urls.iter().map(PeerEndpoint::new).collect();
        PeerGroup { views: Peers::new(urls.len()), endpoints, upstream, log, timeout }
    }

    pub fn endpoint(&self, id: PeerId) -> &PeerEndpoint {
        &self.endpoints[id.0]
    }

    /// Records that a peer failed to complete a response, so that it is left alone for a while.
    pub fn record_failure(&self, id: PeerId) {
        self.views.record_failure(id, Instant::now());
    }

    /// Returns whether one of the peers has this address.
    pub async fn contains_address(&self, address: SocketAddr) -> bool {
        for PeerEndpoint { address: peer, .. } in
            self.endpoints.iter().filter(|peer| peer.address.port == address.port())
        {
            let resolved = self.upstream.connector.resolve(peer).await;
            if resolved.is_ok_and(|resolved| resolved.into_iter().any(|other| is_same(other, address))) {
                return true;
            }
        }
        false
    }
}

/// Returns whether two addresses are equal when IPv4 addresses mapped to IPv6 count as IPv4.
pub(super) fn is_same(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}

impl PeerEndpoint {
    fn new(url: &PeerUrl) -> PeerEndpoint {
        PeerEndpoint { address: url.0.clone(), exchange: Mutex::default() }
    }

    pub fn summary_format(&self) -> SummaryFormat {
        lock(&self.exchange).format.clone()
    }

    pub fn set_summary_format(&self, format: SummaryFormat) {
        lock(&self.exchange).format = format;
    }

    /// Sets the health of the exchange and returns whether it has changed.
    pub fn set_health(&self, health: ExchangeHealth) -> bool {
        std::mem::replace(&mut lock(&self.exchange).health, health) != health
    }

    /// Returns the software of the peer, as far as it is known.
    pub fn kind(&self) -> &'static str {
        match self.summary_format() {
            SummaryFormat::Umbel => "umbel",
            SummaryFormat::Squid { .. } => "squid",
        }
    }
}
