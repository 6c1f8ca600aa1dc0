//! The fetch of a response that the cache cannot provide: from a peer whose summary contains its
//! key, or from the origin.

use super::hit;
use super::in_flight::{FetchLead, FetchOutcome};
use super::lookup::{CacheRequest, StaleResponse, StoredResponse};
use super::pending_entry::PendingEntry;
use super::transfer::{Source, Transfer};
use crate::CacheKey;
use crate::error::{Error, chain};
use crate::headers::remove_hop_by_hop;
use crate::proxy::body::Body;
use crate::proxy::peers::{PeerBody, PeerResponse};
use crate::proxy::reach::Requester;
use crate::proxy::service::Service;
use crate::proxy::target::Resource;
use crate::proxy::upstream::{CACHE_STATUS, UpstreamResponse};
use crate::rules::{self, Revalidated, StoredHead};
use http::header::{AGE, CONTENT_LENGTH, CONTENT_LOCATION, LOCATION, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, request};
use std::sync::Arc;
use std::time::SystemTime;

/// The largest encoded head of a response that is stored. The heads of all stored responses are in
/// memory.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// Why a request was forwarded to the origin.
#[derive(Clone, Copy)]
enum ForwardReason {
    /// The cache had no response for it.
    Miss,
    /// The stored response was stale.
    Stale,
}

impl ForwardReason {
    /// Returns the value of `Cache-Status` (RFC 9211).
    fn cache_status(self, stored: bool) -> &'static str {
        match (self, stored) {
            (ForwardReason::Miss, false) => "umbel;fwd=uri-miss",
            (ForwardReason::Miss, true) => "umbel;fwd=uri-miss;stored",
            (ForwardReason::Stale, false) => "umbel;fwd=stale",
            (ForwardReason::Stale, true) => "umbel;fwd=stale;stored",
        }
    }
}

impl Service {
    /// Fetches a response. A stale response is revalidated; otherwise the request goes to peers
    /// first, and then to the origin.
    pub(super) async fn fetch(
        self: &Arc<Service>,
        request: CacheRequest,
        stale: Option<StaleResponse>,
        lead: Option<FetchLead>,
    ) -> Response<Body> {
        match stale {
            Some(_) if request.parts.method == Method::HEAD || request.has_override => {
                self.fetch_from_origin(request, lead).await
            }
            Some(stale) => self.revalidate(request, stale, lead).await,
            None => match self.request_from_peers(&request).await {
                Some(response) => self.deliver_from_peer(request, response, lead),
                None => self.fetch_from_origin(request, lead).await,
            },
        }
    }

    /// Revalidates a stale response with the origin.
    async fn revalidate(
        self: &Arc<Service>,
        request: CacheRequest,
        StaleResponse { stored, conditional }: StaleResponse,
        lead: Option<FetchLead>,
    ) -> Response<Body> {
        let sent = self.upstream.send_to_origin(&conditional, &request.resource, request.requester, None);
        let response = match sent.await {
            Ok(response) => response,
            Err(error) => return self.fail_fetch(&error, lead),
        };
        match stored.head.revalidate(&conditional, &response.parts, SystemTime::now()) {
            Revalidated::NotModified(head) => {
                response.lease.give_back();
                match self.respond_revalidated(&request, stored, *head).await {
                    Some(response) => response,
                    None => self.fetch_from_origin(request, lead).await,
                }
            }
            Revalidated::Modified(head) => {
                // The new response replaces the stored one only if it is stored as the same
                // variant.
                let variant = rules::variant(&request.parts.headers, &response.parts.headers);
                let replaces = head.is_some() && variant == Some(stored.entry.variant());
                if response.parts.status.is_success() && !replaces {
                    self.cache.remove(stored.entry).await;
                }
                self.counters.misses.increment();
                self.deliver(request, response, head.map(|head| *head), lead, ForwardReason::Stale)
            }
            Revalidated::Mismatch => self.fetch_from_origin(request, lead).await,
        }
    }

    /// Responds with a stored response that the origin has revalidated, and stores its updated
    /// head.
    async fn respond_revalidated(
        &self,
        request: &CacheRequest,
        stored: StoredResponse,
        head: StoredHead,
    ) -> Option<Response<Body>> {
        let stored = StoredResponse { entry: stored.entry, head: Arc::new(head) };
        let response = hit::respond(self, request, &stored, "umbel;hit;fwd=stale;fwd-status=304").await?;
        self.counters.revalidated.increment();
        self.mark_uncacheable_if_stale(request, &stored.head);
        let (store, StoredResponse { entry, head }) = (Arc::clone(&self.cache.store), stored);
        let updated = tokio::task::spawn_blocking(move || {
            if head.is_storable() {
                store.update_head(&entry, head.encode()).map(drop)
            } else {
                store.remove(&entry);
                Ok(())
            }
        });
        if let Ok(Err(error)) = updated.await {
            self.log.line(format_args!("a revalidated response cannot be stored: {}", chain(&error)));
        }
        Some(response)
    }

    /// Ends a fetch that has failed.
    fn fail_fetch(&self, error: &Error, lead: Option<FetchLead>) -> Response<Body> {
        FetchLead::end(lead, FetchOutcome::NotStored);
        self.fail(error)
    }

    /// Marks a key as uncacheable if its response is stale at once, since every request then has to
    /// be revalidated.
    fn mark_uncacheable_if_stale(&self, request: &CacheRequest, head: &StoredHead) {
        if head.is_stale(SystemTime::now()) {
            self.cache.history.mark_uncacheable(&request.resource.key);
        }
    }

    async fn fetch_from_origin(
        self: &Arc<Service>,
        request: CacheRequest,
        lead: Option<FetchLead>,
    ) -> Response<Body> {
        let sent = self.upstream.send_to_origin(&request.parts, &request.resource, request.requester, None);
        let response = match sent.await {
            Ok(response) => response,
            Err(error) => return self.fail_fetch(&error, lead),
        };
        self.counters.misses.increment();
        let head = StoredHead::from_response(&request.parts, &response.parts, SystemTime::now());
        self.deliver(request, response, head, lead, ForwardReason::Miss)
    }

    /// Requests a response from peers, unless the request has to go to the origin. Peers do not
    /// know of invalidations by requests through this proxy.
    async fn request_from_peers(&self, request: &CacheRequest) -> Option<PeerResponse> {
        if !request.is_plain || self.cache.history.is_invalidated(&request.resource.key) {
            return None;
        }
        self.peers.request(request).await
    }

    /// Forwards a request that cannot be answered from the cache (such as `POST`) to the origin. If
    /// it is unsafe, the stored responses that it may have changed are invalidated (RFC 9111,
    /// section 4.4).
    pub async fn forward(
        self: &Arc<Service>,
        parts: request::Parts,
        body: Option<Body>,
        resource: Resource,
        requester: Requester,
    ) -> Response<Body> {
        let response = match self.upstream.send_to_origin(&parts, &resource, requester, body).await {
            Ok(response) => response,
            Err(error) => return self.fail(&error),
        };
        self.counters.misses.increment();
        let status = response.parts.status;
        if !parts.method.is_safe() && (status.is_success() || status.is_redirection()) {
            let locations = [LOCATION, CONTENT_LOCATION].into_iter().filter_map(|name| {
                let location = response.parts.headers.get(name)?.to_str().ok()?;
                resource.resolve_on_same_host(location).map(|resource| resource.key)
            });
            let keys: Vec<CacheKey> = locations.chain([resource.key]).collect();
            let service = Arc::clone(self);
            let invalidate = move || {
                for key in keys {
                    service.cache.history.mark_invalidated(&key);
                    service.cache.store.invalidate(&key);
                }
            };
            let _ = tokio::task::spawn_blocking(invalidate).await;
        }
        self.deliver_unstored(response, "umbel;fwd=method")
    }

    /// Sends a response of the origin to the client, and stores it if possible.
    fn deliver(
        self: &Arc<Service>,
        request: CacheRequest,
        response: UpstreamResponse,
        head: Option<StoredHead>,
        lead: Option<FetchLead>,
        reason: ForwardReason,
    ) -> Response<Body> {
        let Some(entry) = self.begin_entry(&request, &response, head) else {
            FetchLead::end(lead, FetchOutcome::NotStored);
            return self.deliver_unstored(response, reason.cache_status(false));
        };
        let cache_status = HeaderValue::from_static(reason.cache_status(true));
        let headers = self.outgoing_headers(&response.parts.headers, cache_status);
        let status = response.parts.status;
        let (transfer, body) = Transfer::new(self, request, response, Source::Origin);
        self.cache.spawn_write(transfer.run(Some(entry), lead));
        respond(status, headers, body)
    }

    /// Sends a response of a peer to the client, and stores it if possible.
    fn deliver_from_peer(
        self: &Arc<Service>,
        request: CacheRequest,
        PeerResponse { peer, response, head, body }: PeerResponse,
        lead: Option<FetchLead>,
    ) -> Response<Body> {
        self.counters.peer_hits.increment();
        let age = head.age(SystemTime::now());
        let entry = self.begin_entry(&request, &response, Some(head));
        let stored = if entry.is_some() { ";stored" } else { "" };
        let address = self.peers.address(peer);
        let cache_status =
            HeaderValue::try_from(format!("umbel;fwd=uri-miss{stored};detail=\"peer {address}\""))
                .unwrap_or(HeaderValue::from_static("umbel;fwd=uri-miss"));
        let mut headers = self.outgoing_headers(&response.parts.headers, cache_status);
        headers.insert(AGE, age.into());
        let status = response.parts.status;
        let lead = lead.and_then(|lead| {
            if entry.is_some() {
                return Some(lead);
            }
            FetchLead::end(Some(lead), FetchOutcome::NotStored);
            None
        });
        match body {
            PeerBody::Complete(bytes) => {
                self.counters.bytes_from_peers.add(bytes.len() as u64);
                response.lease.give_back();
                if let Some(entry) = entry {
                    let (service, bytes) = (Arc::clone(self), bytes.clone());
                    self.cache.spawn_write(async move { service.store_complete(entry, &bytes, lead).await });
                }
                respond(status, headers, Body::full(bytes))
            }
            PeerBody::Streaming { etag } => {
                let (transfer, body) =
                    Transfer::new(self, request, response, Source::Peer { id: peer, etag });
                self.cache.spawn_write(transfer.run(entry, lead));
                respond(status, headers, body)
            }
        }
    }

    /// Stores a response of a peer whose body is complete, and then ends the fetch.
    async fn store_complete(&self, entry: PendingEntry, body: &[u8], lead: Option<FetchLead>) {
        let stored = async { entry.append(body).await?.commit(false).await };
        let outcome = match stored.await {
            Ok(_) => {
                self.counters.stored.increment();
                FetchOutcome::Stored
            }
            Err(failure) => {
                let why = chain(&failure.error);
                self.log.line(format_args!("a response from a peer cannot be stored: {why}"));
                FetchOutcome::NotStored
            }
        };
        FetchLead::end(lead, outcome);
    }

    /// Begins to store a response, or returns `None` if it is not storable or not admitted.
    fn begin_entry(
        &self,
        request: &CacheRequest,
        response: &UpstreamResponse,
        head: Option<StoredHead>,
    ) -> Option<PendingEntry> {
        let (key, history) = (request.resource.key, &self.cache.history);
        let Some(head) = head else {
            // The next requests need not wait for each other, unless this response says nothing
            // about them: it was an error, a 304 for this client, or the answer to a request that
            // bypasses the cache.
            let status = response.parts.status;
            if request.is_plain && !status.is_server_error() && status != StatusCode::NOT_MODIFIED {
                history.mark_uncacheable(&key);
            }
            return None;
        };
        if request.has_override {
            return None;
        }
        let variant = rules::variant(&request.parts.headers, &response.parts.headers)?;
        let is_too_large = response.len().is_some_and(|len| len > self.limits.max_object_bytes);
        if is_too_large || !response.is_delimited() {
            self.counters.dropped.add(is_too_large.into());
            history.mark_uncacheable(&key);
            return None;
        }
        if !history.admits(&key) {
            self.counters.not_admitted.increment();
            return None;
        }
        self.mark_uncacheable_if_stale(request, &head);
        let head = head.with_audience(response.audience).encode();
        if head.len() > MAX_HEAD_BYTES {
            return None;
        }
        let writer = self.cache.store.begin(&key, variant).unless_invalidated_since(request.invalidations);
        Some(PendingEntry::new(writer, head))
    }

    /// Sends a response to the client without storing it.
    fn deliver_unstored(&self, response: UpstreamResponse, cache_status: &'static str) -> Response<Body> {
        let headers = self.outgoing_headers(&response.parts.headers, HeaderValue::from_static(cache_status));
        let counter = self.counters.bytes_from_origins.clone();
        let (min_rate, lease) = (self.limits.min_rate(), response.lease);
        let body = Body::forwarded(response.incoming, min_rate, Some(counter), Some(lease));
        respond(response.parts.status, headers, body)
    }

    /// Returns the headers of a response as they are forwarded to the client.
    fn outgoing_headers(&self, headers: &HeaderMap, cache_status: HeaderValue) -> HeaderMap {
        let mut outgoing = headers.clone();
        if headers.contains_key(TRANSFER_ENCODING) {
            outgoing.remove(CONTENT_LENGTH);
        }
        remove_hop_by_hop(&mut outgoing);
        self.upstream.via.append_to(&mut outgoing);
        outgoing.append(CACHE_STATUS, cache_status);
        outgoing
    }
}

fn respond(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}
