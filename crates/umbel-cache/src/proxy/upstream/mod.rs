//! Requests to origins and peers, and the connections for them.

mod connector;
mod pool;
mod via;

pub(in crate::proxy) use pool::Lease;
pub(in crate::proxy) use via::CACHE_STATUS;

use crate::error::{Error, Result};
use crate::proxy::Limits;
use crate::proxy::body::Body;
use crate::proxy::reach::{Reach, Requester, is_local_address};
use crate::proxy::target::{HostPort, Resource};
use crate::rules::Audience;
use connector::Connector;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Version, request, response};
use hyper::body::Incoming;
use pool::ConnectionPool;
use std::net::IpAddr;
use std::sync::Arc;
use via::Via;

/// The connections to origins and peers.
pub(in crate::proxy) struct Upstream {
    pub connector: Arc<Connector>,
    pool: Arc<ConnectionPool>,
    pub via: Via,
}

/// A response whose body is still to be received.
pub(in crate::proxy) struct UpstreamResponse {
    pub parts: response::Parts,
    pub incoming: Incoming,
    pub lease: Lease,
    /// The clients that may receive the response.
    pub audience: Audience,
}

impl Upstream {
    pub fn new(limits: &Limits) -> Upstream {
        let connector = Arc::new(Connector::new(limits.connect_timeout));
        let pool = Arc::new(ConnectionPool::new(Arc::clone(&connector), limits));
        Upstream { connector, pool, via: Via::new() }
    }

    /// Sends a request to the origin of a resource.
    pub async fn send_to_origin(
        &self,
        parts: &request::Parts,
        resource: &Resource,
        requester: Requester,
        body: Option<Body>,
    ) -> Result<UpstreamResponse> {
        let mut parts = parts.clone();
        parts.version = Version::HTTP_11;
        parts.uri = resource.path().parse().map_err(|_| Error::InvalidTarget("this is not a valid path"))?;
        self.via.append_to(&mut parts.headers);
        let is_public = |address| Reach::RemoteOnly.permits(address);
        self.send(&resource.origin, requester, &parts, body, is_public).await
    }

    /// Sends a request without a body to a peer. A peer on another machine sends only what remote
    /// clients may receive.
    pub async fn send_to_peer(&self, peer: &HostPort, parts: &request::Parts) -> Result<UpstreamResponse> {
        let is_remote = |address| !is_local_address(address);
        self.send(peer, Requester::Proxy, parts, None, is_remote).await
    }

    /// Closes connections that were idle for too long.
    pub fn close_idle(&self) {
        self.pool.close_idle();
    }

    async fn send(
        &self,
        host: &HostPort,
        requester: Requester,
        parts: &request::Parts,
        body: Option<Body>,
        is_for_everyone: impl Fn(IpAddr) -> bool,
    ) -> Result<UpstreamResponse> {
        let (response, lease) = self.pool.send(host, requester, parts, body).await?;
        let is_for_everyone = lease.address().is_some_and(is_for_everyone);
        let audience = if is_for_everyone { Audience::Everyone } else { Audience::Localhost };
        let (parts, incoming) = response.into_parts();
        Ok(UpstreamResponse { parts, incoming, lease, audience })
    }
}

impl UpstreamResponse {
    /// Returns the length of the body, if the headers state it.
    pub fn len(&self) -> Option<u64> {
        // `Transfer-Encoding` overrides `Content-Length`.
        if self.parts.headers.contains_key(TRANSFER_ENCODING) {
            return None;
        }
        self.parts.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// Returns whether a truncated body can be detected.
    pub fn is_delimited(&self) -> bool {
        self.len().is_some() || self.parts.headers.contains_key(TRANSFER_ENCODING)
    }
}
