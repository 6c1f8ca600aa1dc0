//! Who asks for what, and who answers it.

use super::access_log::AccessLog;
use super::body::Body;
use super::connector::Connector;
use super::counters::Counters;
use super::in_flight::InFlight;
use super::key_history::KeyHistory;
use super::log::Log;
use super::manage;
use super::neighbours::Neighbour;
use super::pool::ConnectionPool;
use super::reach::Reach;
use super::target::{HostPort, Resource, Target};
use super::{Limits, Options};
use crate::Peers;
use crate::error::{Error, Result, chain};
use crate::headers::remove_hop_by_hop;
use crate::rules::has_directive;
use crate::store::Store;
use bytes::Bytes;
use http::header::{
    CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderName, IF_MATCH, IF_UNMODIFIED_SINCE, MAX_FORWARDS,
    TRANSFER_ENCODING, VIA,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, request};
use hyper::body::Incoming;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a proxy has.
pub(super) struct Service {
    pub store: Arc<Store>,
    pub peers: Peers,
    pub neighbours: Vec<Neighbour>,
    pub connector: Arc<Connector>,
    pub pool: Arc<ConnectionPool>,
    pub in_flight: Arc<InFlight>,
    /// Places for what is fetched for the cache alone.
    pub alone: Arc<Semaphore>,
    pub history: KeyHistory,
    pub counters: Counters,
    pub limits: Limits,
    pub log: Log,
    pub access_log: Option<Arc<AccessLog>>,
    pub started: Instant,
    /// Whether what it says of itself is at another address.
    pub managed_elsewhere: bool,
    /// What it calls itself to others, so that a request that comes back is known.
    name: String,
    via: HeaderValue,
    /// What Squid was told last, and when.
    pub digest: Mutex<Option<(Instant, Bytes)>>,
}

/// Who asks.
#[derive(Clone)]
pub(super) struct Client {
    pub remote: SocketAddr,
    pub local: SocketAddr,
    /// A tunnel needs its place after the request is answered.
    pub place: Arc<OwnedSemaphorePermit>,
}

impl Client {
    /// Whom it may reach.
    pub fn reach(&self) -> Reach {
        if self.remote.ip().to_canonical().is_loopback() { Reach::Anywhere } else { Reach::RemoteOnly }
    }
}

/// So many pages are fetched at once for the cache alone, after those who asked have left.
const ALONE: usize = 32;

/// Which of its caches, and what it did. (RFC 9211)
pub(super) const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

impl Service {
    pub fn new(store: Store, options: &Options) -> Result<Service> {
        let limits = options.limits.clone();
        let connector = Arc::new(Connector::new(limits.connect_timeout));
        let name = format!("umbel-{:08x}", RandomState::new().hash_one(0) as u32);
        let via =
            HeaderValue::try_from(format!("1.1 {name}")).unwrap_or(HeaderValue::from_static("1.1 umbel"));
        Ok(Service {
            store: Arc::new(store),
            peers: Peers::new(options.peers.len()),
            neighbours: options.peers.iter().map(Neighbour::new).collect(),
            pool: Arc::new(ConnectionPool::new(Arc::clone(&connector), &limits)),
            connector,
            in_flight: Arc::default(),
            alone: Arc::new(Semaphore::new(ALONE)),
            history: KeyHistory::new(options.admission)?,
            access_log: AccessLog::open(options)?,
            counters: Counters::default(),
            limits,
            log: Log::new(Arc::clone(&options.log)),
            started: Instant::now(),
            managed_elsewhere: options.status_address.is_some(),
            name,
            via,
            digest: Mutex::default(),
        })
    }

    /// Answers a request.
    pub async fn answer(self: Arc<Service>, request: Request<Incoming>, client: Client) -> Response<Body> {
        self.counters.requests.increment();
        let (mut parts, body) = request.into_parts();
        let target = match Target::from_request(&parts) {
            Ok(target) => target,
            Err(why) => return self.refuse(StatusCode::BAD_REQUEST, why),
        };
        match target {
            Target::Internal => manage::answer(&self, &parts, self.managed_elsewhere).await,
            Target::Tunnel(address) => self.tunnel(Request::from_parts(parts, body), address, client).await,
            Target::Resource(resource) if manage::is_own_path(resource.uri.path()) => {
                // Peers and browsers ask for it by the whole address, and get it here; nobody gets that of others.
                if self.is_here(&resource.origin, client.local).await {
                    parts.uri = resource.path().parse().unwrap_or_default();
                    manage::answer(&self, &parts, self.managed_elsewhere).await
                } else {
                    self.refuse(StatusCode::FORBIDDEN, "what caches tell each other is not passed on")
                }
            }
            Target::Resource(resource) => self.answer_resource(parts, body, resource, client.reach()).await,
        }
    }

    /// Answers a request for a page: from the cache, from peers or from its origin.
    async fn answer_resource(
        self: &Arc<Service>,
        mut parts: request::Parts,
        body: Incoming,
        resource: Resource,
        reach: Reach,
    ) -> Response<Body> {
        if self.came_back(&parts.headers) {
            return self.refuse(StatusCode::LOOP_DETECTED, "this request has come through here already");
        }
        if parts.method.as_str() == "PURGE" {
            return self.purge(&resource, reach).await;
        }
        if parts.method == Method::TRACE {
            return self.refuse(StatusCode::METHOD_NOT_ALLOWED, "TRACE is not passed on");
        }
        if parts.method == Method::OPTIONS
            && let Some(left) = parts.headers.get(MAX_FORWARDS)
        {
            let left = left.to_str().ok().and_then(|left| left.trim().parse::<u64>().ok()).unwrap_or(0);
            let Some(left) = left.checked_sub(1) else { return Response::new(Body::empty()) };
            parts.headers.insert(MAX_FORWARDS, left.into());
        }
        let chunked = parts.headers.contains_key(TRANSFER_ENCODING);
        let has_body = chunked || parts.headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0");
        if chunked {
            // It says how long the body is; the other would be believed by somebody else.
            parts.headers.remove(CONTENT_LENGTH);
        }
        remove_hop_by_hop(&mut parts.headers);
        // Whoever sends a body is told here to go on.
        parts.headers.remove(EXPECT);
        if let Ok(host) = resource.uri.authority().map_or("", |authority| authority.as_str()).parse() {
            parts.headers.insert(HOST, host);
        }
        parts.uri = resource.uri.clone();
        let body = has_body.then(|| Body::forwarded(body, self.limits.stall_timeout, None, None));
        // Who makes conditions for a change, or sends something, wants the origin itself.
        let special = [IF_MATCH, IF_UNMODIFIED_SINCE].iter().any(|name| parts.headers.contains_key(name));
        let reads = parts.method == Method::GET || parts.method == Method::HEAD;
        if reads && body.is_none() && !special {
            self.look_up(parts, resource, reach).await
        } else if has_directive(&parts.headers, "only-if-cached") {
            self.counters.only_if_cached.increment();
            sentence(StatusCode::GATEWAY_TIMEOUT, "this is not in the cache")
        } else {
            self.pass_on(parts, body, resource, reach).await
        }
    }

    /// Forgets a page, for whoever is on this machine.
    async fn purge(self: &Arc<Service>, resource: &Resource, reach: Reach) -> Response<Body> {
        if reach == Reach::RemoteOnly {
            return self.refuse(StatusCode::FORBIDDEN, "pages are removed by those who are on this machine");
        }
        let (store, key) = (Arc::clone(&self.store), resource.key);
        let purge = move || {
            let found = !store.find(&key).is_empty();
            store.invalidate(&key);
            found
        };
        match tokio::task::spawn_blocking(purge).await {
            Ok(true) => sentence(StatusCode::OK, "it was in the cache, and is not any more"),
            _ => sentence(StatusCode::NOT_FOUND, "it is not in the cache"),
        }
    }

    /// A short answer that says what is wrong.
    pub fn refuse(&self, status: StatusCode, why: impl fmt::Display) -> Response<Body> {
        self.counters.refused.increment();
        sentence(status, why)
    }

    /// Returns the response to a request that could not be forwarded.
    pub fn fail(&self, error: &Error) -> Response<Body> {
        self.counters.origin_failures.increment();
        let status = match error {
            Error::Forbidden { .. } => StatusCode::FORBIDDEN,
            Error::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        };
        let why = chain(error);
        self.log.line(format_args!("{why}"));
        sentence(status, why)
    }

    /// Notes in the headers of a request or an answer that it came through here.
    pub fn sign(&self, headers: &mut HeaderMap) {
        headers.append(VIA, self.via.clone());
    }

    fn came_back(&self, headers: &HeaderMap) -> bool {
        let mut through = headers.get_all(VIA).iter().filter_map(|via| via.to_str().ok());
        through.any(|via| via.split([',', ' ']).any(|word| word == self.name))
    }

    /// Whether an address is that at which a client has reached the proxy.
    async fn is_here(&self, address: &HostPort, local: SocketAddr) -> bool {
        if address.port != local.port() {
            return false;
        }
        let ours = local.ip().to_canonical();
        if let Ok(ip) = address.host.parse::<IpAddr>() {
            return ip.to_canonical() == ours;
        }
        let found = self.connector.resolve(address).await;
        found.is_ok_and(|found| found.iter().any(|found| found.ip().to_canonical() == ours))
    }

    /// Whether a client that came to this address has reached, through the proxy, this proxy itself or a peer of it.
    pub async fn is_cache(&self, found: SocketAddr, local: SocketAddr) -> bool {
        let is = |other: SocketAddr| {
            other.port() == found.port() && other.ip().to_canonical() == found.ip().to_canonical()
        };
        if is(local) {
            return true;
        }
        for Neighbour { address, .. } in
            self.neighbours.iter().filter(|peer| peer.address.port == found.port())
        {
            if self.connector.resolve(address).await.is_ok_and(|known| known.into_iter().any(is)) {
                return true;
            }
        }
        false
    }
}

/// An answer of a sentence.
pub(super) fn sentence(status: StatusCode, text: impl fmt::Display) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("umbel proxy: {text}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
