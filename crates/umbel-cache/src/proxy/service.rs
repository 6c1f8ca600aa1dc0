//! The service behind the listeners, which passes each request on to the cache, a tunnel or the
//! proxy's own pages.

use super::body::Body;
use super::cache::Cache;
use super::counters::Counters;
use super::framing::Fault;
use super::internal::{self, InternalPages};
use super::log::{Log, printable};
use super::peers::PeerGroup;
use super::places::Places;
use super::reach::{Reach, Requester, is_same_address};
use super::rejection::RETRY_AFTER_SECONDS;
use super::target::{HostPort, Resource, Target};
use super::upstream::Upstream;
use super::{Limits, Options};
use crate::error::{Error, Result, chain};
use crate::headers::remove_hop_by_hop;
use crate::rules::has_directive;
use crate::store::Store;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, IF_MATCH, IF_UNMODIFIED_SINCE, MAX_FORWARDS,
    RETRY_AFTER, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, Request, Response, StatusCode, request};
use hyper::body::Incoming;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// The parts of a proxy that answer requests.
///
/// `cache`, `peers`, `upstream` and `internal` have a folder each, and only the code in it changes
/// their state.
pub(super) struct Service {
    pub cache: Cache,
    pub peers: Arc<PeerGroup>,
    pub upstream: Arc<Upstream>,
    pub internal: InternalPages,
    /// One place for each tunnel.
    pub tunnels: Places,
    /// The ports to which tunnels may be opened.
    pub connect_ports: Vec<u16>,
    pub limits: Limits,
    pub counters: Counters,
    pub log: Arc<Log>,
}

/// The client of a request.
#[derive(Clone, Copy)]
pub(super) struct Client {
    pub remote: SocketAddr,
    /// The address at which the client has reached the proxy.
    pub local: SocketAddr,
}

impl Client {
    /// Returns the party that names are looked up for on behalf of the client.
    pub fn requester(&self) -> Requester {
        Requester::Client(self.remote.ip())
    }
}

impl Service {
    pub fn new(store: Store, options: &Options) -> Result<Service> {
        let limits = options.limits.clone();
        let log = Arc::new(Log::new(Arc::clone(&options.log)));
        let upstream = Arc::new(Upstream::new(&limits));
        let peers =
            PeerGroup::new(&options.peers, Arc::clone(&upstream), Arc::clone(&log), limits.peer_timeout);
        Ok(Service {
            cache: Cache::new(store, options.admission)?,
            peers: Arc::new(peers),
            upstream,
            internal: InternalPages::new(options),
            tunnels: Places::new(limits.max_tunnels),
            connect_ports: options.connect_ports.clone(),
            limits,
            counters: Counters::default(),
            log,
        })
    }

    /// Answers a request.
    pub async fn handle(self: Arc<Service>, request: Request<Incoming>, client: Client) -> Response<Body> {
        self.counters.requests.increment();
        let (parts, body) = request.into_parts();
        let target = match Target::from_request(&parts) {
            Ok(target) => target,
            Err(why) if parts.method == Method::CONNECT => {
                return closing(self.refuse(StatusCode::BAD_REQUEST, why));
            }
            Err(why) => return self.refuse(StatusCode::BAD_REQUEST, why),
        };
        match target {
            Target::Internal => internal::respond(&self, &parts, self.internal.access()).await,
            Target::Tunnel(host) => self.tunnel(Request::from_parts(parts, body), host, client).await,
            Target::Resource(resource) if internal::is_internal_path(resource.uri.path()) => {
                // Peers and browsers request these pages by an absolute URI. The proxy serves its
                // own pages this way, and never forwards such a request to another cache.
                if self.is_own_address(&resource.origin, client).await {
                    internal::respond(&self, &parts, self.internal.access()).await
                } else {
                    self.refuse(
                        StatusCode::FORBIDDEN,
                        "requests for the summaries of other caches are not forwarded",
                    )
                }
            }
            Target::Resource(resource) => {
                self.handle_resource(parts, body, resource, client.requester()).await
            }
        }
    }

    /// Answers a request for a resource: from the cache, from peers or from its origin.
    async fn handle_resource(
        self: &Arc<Service>,
        mut parts: request::Parts,
        body: Incoming,
        resource: Resource,
        requester: Requester,
    ) -> Response<Body> {
        if self.upstream.via.is_in(&parts.headers) {
            return self
                .refuse(StatusCode::LOOP_DETECTED, "this request has already passed through this proxy");
        }
        if parts.method.as_str() == "PURGE" {
            return self.purge(&resource, requester).await;
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
        let is_chunked = parts.headers.contains_key(TRANSFER_ENCODING);
        let has_body = is_chunked || parts.headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0");
        if is_chunked {
            // `Transfer-Encoding` overrides `Content-Length`, but not every origin agrees (request
            // smuggling).
            parts.headers.remove(CONTENT_LENGTH);
        }
        remove_hop_by_hop(&mut parts.headers);
        // The server of hyper has sent `100 Continue` already.
        parts.headers.remove(EXPECT);
        if let Ok(host) = resource.uri.authority().map_or("", |authority| authority.as_str()).parse() {
            parts.headers.insert(HOST, host);
        }
        parts.uri = resource.uri.clone();
        let body = has_body.then(|| Body::forwarded(body, self.limits.min_rate(), None, None));
        // These conditions are for the current state of the origin.
        let needs_origin =
            [IF_MATCH, IF_UNMODIFIED_SINCE].iter().any(|name| parts.headers.contains_key(name));
        let is_read = parts.method == Method::GET || parts.method == Method::HEAD;
        if is_read && body.is_none() && !needs_origin {
            self.look_up(parts, resource, requester).await
        } else if has_directive(&parts.headers, "only-if-cached") {
            self.counters.only_if_cached.increment();
            text_response(StatusCode::GATEWAY_TIMEOUT, "this is not in the cache")
        } else {
            self.forward(parts, body, resource, requester).await
        }
    }

    /// Removes the stored responses for a resource, at the request of a client on this machine.
    async fn purge(self: &Arc<Service>, resource: &Resource, requester: Requester) -> Response<Body> {
        if requester.reach() == Reach::RemoteOnly {
            return self
                .refuse(StatusCode::FORBIDDEN, "only clients on this machine may remove stored responses");
        }
        let (store, key) = (Arc::clone(&self.cache.store), resource.key);
        let purge = move || {
            let was_stored = !store.find(&key).is_empty();
            store.invalidate(&key);
            was_stored
        };
        match tokio::task::spawn_blocking(purge).await {
            Ok(true) => text_response(StatusCode::OK, "it was removed from the cache"),
            _ => text_response(StatusCode::NOT_FOUND, "it is not in the cache"),
        }
    }

    /// Returns the response to a request that is not permitted or not understood.
    pub fn refuse(&self, status: StatusCode, why: impl fmt::Display) -> Response<Body> {
        self.counters.refused.increment();
        text_response(status, why)
    }

    /// Returns the response to a request whose end is ambiguous, and closes the connection.
    pub fn refuse_framing(&self, fault: Fault) -> Response<Body> {
        closing(self.refuse(StatusCode::BAD_REQUEST, format_args!("the request is ambiguous: {fault}")))
    }

    /// Returns the response to a request when all places are taken.
    pub fn turn_away(&self, why: impl fmt::Display) -> Response<Body> {
        self.counters.turned_away.increment();
        let mut response = text_response(StatusCode::SERVICE_UNAVAILABLE, why);
        response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS.into());
        response
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
        text_response(status, why)
    }

    /// Returns whether a host is the address at which a client has reached the proxy.
    async fn is_own_address(&self, host: &HostPort, client: Client) -> bool {
        let local = client.local;
        if host.port != local.port() {
            return false;
        }
        let resolved = self.upstream.connector.resolve(host, client.requester()).await;
        resolved.is_ok_and(|resolved| resolved.into_iter().any(|address| is_same_address(address, local)))
    }

    /// Returns whether an address is that of this proxy, at which a client has reached it, or of a
    /// peer.
    pub async fn is_cache_address(&self, address: SocketAddr, local: SocketAddr) -> bool {
        is_same_address(address, local) || self.peers.contains_address(address).await
    }
}

/// Returns a response with a sentence as its body. Parts of the request in it are made printable.
pub(super) fn text_response(status: StatusCode, text: impl fmt::Display) -> Response<Body> {
    let text = printable(&text.to_string());
    let mut response = Response::new(Body::full(format!("umbel proxy: {text}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Returns a response after which the connection is closed.
pub(super) fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
