//! The peers of the proxy: their addresses and summaries, and requests to them.
//!
//! Only this folder changes the views of peers. `summaries` keeps them up to date, and `requests`
//! asks peers for responses.

mod requests;
mod summaries;
mod url;

pub(in crate::proxy) use requests::{PeerBody, PeerResponse};
pub use url::PeerUrl;

use crate::proxy::log::Log;
use crate::proxy::reach::{Requester, is_same_address};
use crate::proxy::target::HostPort;
use crate::proxy::upstream::Upstream;
use crate::{PeerId, Peers};
use http::HeaderValue;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use umbel::internals::sync::lock;

/// The peers of the proxy.
pub(in crate::proxy) struct PeerGroup {
    /// The views and counts of the peers.
    views: Peers,
    endpoints: Vec<PeerEndpoint>,
    upstream: Arc<Upstream>,
    log: Arc<Log>,
    /// The time in which all peers together must answer a request.
    timeout: Duration,
}

/// The address of a peer and the state of the exchange of summaries with it.
struct PeerEndpoint {
    address: HostPort,
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
enum SummaryFormat {
    /// Summaries of umbel, or not known yet.
    #[default]
    Umbel,
    /// Squid's cache digests. The last one had this `Last-Modified`.
    Squid { last_modified: Option<HeaderValue> },
}

/// The outcome of the last exchange. A line is logged when it changes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ExchangeHealth {
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

    pub fn ids(&self) -> impl Iterator<Item = PeerId> + use<> {
        self.views.ids()
    }

    pub fn address(&self, id: PeerId) -> &HostPort {
        &self.endpoint(id).address
    }

    fn endpoint(&self, id: PeerId) -> &PeerEndpoint {
        &self.endpoints[id.0]
    }

    /// Records that a peer failed to complete a response, so that requests to it are paused for a
    /// while.
    pub fn record_failure(&self, id: PeerId) {
        self.views.record_failure(id, Instant::now());
    }

    /// Returns the number of requests for which a peer had no response although its summary
    /// promised one.
    pub fn false_hits(&self) -> u64 {
        self.ids().map(|id| self.views.counts(id).false_hits).sum()
    }

    /// Returns the statistics of each peer.
    pub fn stats(&self) -> Vec<Value> {
        let now = Instant::now();
        let stats = self.ids().map(|id| {
            let (peer, counts, view) = (self.endpoint(id), self.views.counts(id), self.views.view(id));
            json!({
                "address": peer.address.to_string(),
                "kind": peer.kind(),
                "documents": view.as_ref().map(|view| view.key_count()),
                "summary_bits": view.as_ref().and_then(|view| Some(view.filter()?.scheme().m())),
                "resting": self.views.is_backing_off(id, now),
                "asked": counts.requests,
                "hits": counts.hits,
                "false_hits": counts.false_hits,
                "failures": counts.failures,
                "updates": counts.updates,
                "update_bytes": counts.update_bytes,
            })
        });
        stats.collect()
    }

    /// Returns whether one of the peers has this address.
    pub async fn contains_address(&self, address: SocketAddr) -> bool {
        for PeerEndpoint { address: peer, .. } in
            self.endpoints.iter().filter(|peer| peer.address.port == address.port())
        {
            let resolved = self.upstream.connector.resolve(peer, Requester::Proxy).await;
            if resolved
                .is_ok_and(|resolved| resolved.into_iter().any(|other| is_same_address(other, address)))
            {
                return true;
            }
        }
        false
    }
}

impl PeerEndpoint {
    fn new(url: &PeerUrl) -> PeerEndpoint {
        PeerEndpoint { address: url.0.clone(), exchange: Mutex::default() }
    }

    fn summary_format(&self) -> SummaryFormat {
        lock(&self.exchange).format.clone()
    }

    fn set_summary_format(&self, format: SummaryFormat) {
        lock(&self.exchange).format = format;
    }

    /// Sets the health of the exchange and returns whether it has changed.
    fn set_health(&self, health: ExchangeHealth) -> bool {
        std::mem::replace(&mut lock(&self.exchange).health, health) != health
    }

    /// Returns the name of the peer's software, if it is known.
    fn kind(&self) -> &'static str {
        match self.summary_format() {
            SummaryFormat::Umbel => "umbel",
            SummaryFormat::Squid { .. } => "squid",
        }
    }
}
