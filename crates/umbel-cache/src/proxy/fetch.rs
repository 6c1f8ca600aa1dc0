//! What is not in the cache comes from a peer that promises it, or from the origin.

use super::body::Body;
use super::counters::Counter;
use super::hit;
use super::in_flight::{FetchLead, FetchOutcome};
use super::lookup::{Found, Question, Stale};
use super::pool::Lease;
use super::pump::{Pump, Saving};
use super::reach::Reach;
use super::service::{CACHE_STATUS, Service};
use super::target::Resource;
use crate::CacheKey;
use crate::error::{Error, Result, chain};
use crate::headers::remove_hop_by_hop;
use crate::rules::{self, Revalidated, StoredHead};
use crate::store::Entry;
use http::header::{CONTENT_LENGTH, CONTENT_LOCATION, LOCATION, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, request, response};
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::SystemTime;

/// An answer that has begun.
pub(super) struct Answer {
    pub parts: response::Parts,
    pub incoming: Incoming,
    pub lease: Lease,
}

/// What is known of a page is in memory as long as it is kept, and has no more bytes than this.
const MOST_HEAD: usize = 16 << 10;

impl Answer {
    /// How long its body is, if it says so.
    pub fn len(&self) -> Option<u64> {
        // Of the two the other one would count.
        if self.parts.headers.contains_key(TRANSFER_ENCODING) {
            return None;
        }
        self.parts.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// Whether it is seen when it ends too early.
    pub fn has_an_end(&self) -> bool {
        self.len().is_some() || self.parts.headers.contains_key(TRANSFER_ENCODING)
    }
}

/// Why the origin was asked.
#[derive(Clone, Copy)]
enum Why {
    /// It was not here.
    Miss,
    /// It was stale.
    Stale,
}

impl Why {
    /// How that is said, and whether the answer is kept. (RFC 9211)
    fn says(self, stored: bool) -> &'static str {
        match (self, stored) {
            (Why::Miss, false) => "umbel;fwd=uri-miss",
            (Why::Miss, true) => "umbel;fwd=uri-miss;stored",
            (Why::Stale, false) => "umbel;fwd=stale",
            (Why::Stale, true) => "umbel;fwd=stale;stored",
        }
    }
}

impl Service {
    /// Fetches a page: what is stale is asked about; for what is not here peers are asked, and then the origin.
    pub async fn fetch(
        self: &Arc<Service>,
        question: Question,
        stale: Option<Stale>,
        lead: Option<FetchLead>,
    ) -> Response<Body> {
        let Some(Stale { found, asking }) = stale else {
            return match self.ask_peers(&question).await {
                Some(answer) => self.deliver_from_peer(question, answer, lead),
                None => self.fetch_from_origin(question, lead).await,
            };
        };
        if question.parts.method == Method::HEAD {
            return self.fetch_from_origin(question, lead).await;
        }
        let answer = match self.ask_origin(&asking, &question.resource, question.reach, None).await {
            Ok(answer) => answer,
            Err(error) => return self.fail_for(&error, lead),
        };
        match found.known.revalidate(&asking, &answer.parts, SystemTime::now()) {
            Revalidated::NotModified(known) => {
                answer.lease.give_back();
                match self.give_refreshed(&question, found, *known).await {
                    Some(response) => response,
                    None => self.fetch_from_origin(question, lead).await,
                }
            }
            Revalidated::Modified(known) => {
                // What comes in its place may be another variant, or none that is kept.
                let variant = rules::variant(&question.parts.headers, &answer.parts.headers);
                let replaced = known.is_some() && variant == Some(found.entry.variant());
                if answer.parts.status.is_success() && !replaced {
                    self.remove(found.entry).await;
                }
                self.counters.misses.increment();
                self.deliver(question, answer, known.map(|known| *known), lead, Why::Stale)
            }
            Revalidated::Mismatch => self.fetch_from_origin(question, lead).await,
        }
    }

    /// Gives what the origin says has not changed.
    async fn give_refreshed(
        &self,
        question: &Question,
        found: Found,
        known: StoredHead,
    ) -> Option<Response<Body>> {
        let found = Found { entry: found.entry, known: Arc::new(known) };
        let response = hit::answer(self, question, &found, "umbel;hit;fwd=stale;fwd-status=304").await?;
        self.counters.revalidated.increment();
        self.pass_if_stale(question, &found.known);
        let (store, Found { entry, known }) = (Arc::clone(&self.store), found);
        let kept = tokio::task::spawn_blocking(move || {
            if known.is_storable() {
                store.update_head(&entry, known.encode()).map(drop)
            } else {
                store.remove(&entry);
                Ok(())
            }
        });
        if let Ok(Err(error)) = kept.await {
            self.log.line(format_args!("what the origin says of a page cannot be kept: {}", chain(&error)));
        }
        Some(response)
    }

    /// What cannot be fetched cannot be waited for, either.
    fn fail_for(&self, error: &Error, lead: Option<FetchLead>) -> Response<Body> {
        FetchLead::end(lead, FetchOutcome::NotStored);
        self.fail(error)
    }

    async fn remove(&self, entry: Arc<Entry>) {
        let store = Arc::clone(&self.store);
        // If it fails the store is at its end, and so is the proxy.
        let _ = tokio::task::spawn_blocking(move || store.remove(&entry)).await;
    }

    /// Of what is stale at once, everybody has to ask for himself.
    fn pass_if_stale(&self, question: &Question, known: &StoredHead) {
        if known.is_stale(SystemTime::now()) {
            self.history.mark_uncacheable(&question.resource.key);
        }
    }

    async fn fetch_from_origin(
        self: &Arc<Service>,
        question: Question,
        lead: Option<FetchLead>,
    ) -> Response<Body> {
        let answer = match self.ask_origin(&question.parts, &question.resource, question.reach, None).await {
            Ok(answer) => answer,
            Err(error) => return self.fail_for(&error, lead),
        };
        self.counters.misses.increment();
        let known = StoredHead::from_response(&question.parts, &answer.parts, SystemTime::now());
        self.deliver(question, answer, known, lead, Why::Miss)
    }

    /// Asks the origin of a page for something, maybe with a body.
    pub async fn ask_origin(
        &self,
        parts: &request::Parts,
        resource: &Resource,
        reach: Reach,
        body: Option<Body>,
    ) -> Result<Answer> {
        let mut parts = parts.clone();
        parts.version = http::Version::HTTP_11;
        parts.uri = resource.path().parse().map_err(|_| Error::InvalidTarget("this is no path"))?;
        self.sign(&mut parts.headers);
        let (answer, lease) = self.pool.send(&resource.origin, reach, &parts, body).await?;
        let (parts, incoming) = answer.into_parts();
        Ok(Answer { parts, incoming, lease })
    }

    /// Passes a request on that is no question for a page. If it may have changed something, what is known of that is
    /// forgotten. (RFC 9111, section 4.4)
    pub async fn pass_on(
        self: &Arc<Service>,
        parts: request::Parts,
        body: Option<Body>,
        resource: Resource,
        reach: Reach,
    ) -> Response<Body> {
        let answer = match self.ask_origin(&parts, &resource, reach, body).await {
            Ok(answer) => answer,
            Err(error) => return self.fail(&error),
        };
        self.counters.misses.increment();
        let status = answer.parts.status;
        if !parts.method.is_safe() && (status.is_success() || status.is_redirection()) {
            let named = [LOCATION, CONTENT_LOCATION].into_iter().filter_map(|name| {
                resource
                    .resolve_on_same_host(answer.parts.headers.get(name)?.to_str().ok()?)
                    .map(|resource| resource.key)
            });
            let keys: Vec<CacheKey> = named.chain([resource.key]).collect();
            let service = Arc::clone(self);
            let forget = move || {
                for key in keys {
                    service.history.mark_invalidated(&key);
                    service.store.invalidate(&key);
                }
            };
            let _ = tokio::task::spawn_blocking(forget).await;
        }
        self.pass_answer(answer, "umbel;fwd=method")
    }

    /// Gives an answer of the origin, and keeps it if it may.
    fn deliver(
        self: &Arc<Service>,
        question: Question,
        answer: Answer,
        known: Option<StoredHead>,
        lead: Option<FetchLead>,
        why: Why,
    ) -> Response<Body> {
        let saving = self.saving(&question, &answer, known);
        let Some(saving) = saving else {
            FetchLead::end(lead, FetchOutcome::NotStored);
            return self.pass_answer(answer, why.says(false));
        };
        let headers = self.outgoing(&answer.parts.headers, HeaderValue::from_static(why.says(true)));
        let status = answer.parts.status;
        let (pump, body) = Pump::new(self, question, answer, self.counters.bytes_from_origins.clone());
        tokio::spawn(pump.run(Some(saving), lead));
        respond(status, headers, body)
    }

    /// How an answer is kept, if it is.
    pub fn saving(&self, question: &Question, answer: &Answer, known: Option<StoredHead>) -> Option<Saving> {
        let key = question.resource.key;
        let Some(known) = known else {
            // Nobody needs to wait for it next time, unless this time was another one: the origin has failed, whoever asks
            // has it already, or it was for him alone.
            let status = answer.parts.status;
            if question.common && !status.is_server_error() && status != StatusCode::NOT_MODIFIED {
                self.history.mark_uncacheable(&key);
            }
            return None;
        };
        let variant = rules::variant(&question.parts.headers, &answer.parts.headers)?;
        let too_large = answer.len().is_some_and(|len| len > self.limits.max_object_bytes);
        if too_large || !answer.has_an_end() {
            self.counters.dropped.add(too_large.into());
            self.history.mark_uncacheable(&key);
            return None;
        }
        if !self.history.admits(&key) {
            self.counters.not_admitted.increment();
            return None;
        }
        self.pass_if_stale(question, &known);
        let known = known.with_audience(answer.lease.audience());
        let head = known.encode();
        if head.len() > MOST_HEAD {
            return None;
        }
        let writer = self.store.begin(&key, variant).unless_invalidated_since(question.invalidations);
        Some(Saving::new(writer, head))
    }

    /// Gives an answer that is not kept.
    fn pass_answer(&self, answer: Answer, status: &'static str) -> Response<Body> {
        let headers = self.outgoing(&answer.parts.headers, HeaderValue::from_static(status));
        let counter: Counter = self.counters.bytes_from_origins.clone();
        let body =
            Body::forwarded(answer.incoming, self.limits.stall_timeout, Some(counter), Some(answer.lease));
        respond(answer.parts.status, headers, body)
    }

    /// The headers of an answer that goes on.
    pub fn outgoing(&self, headers: &HeaderMap, status: HeaderValue) -> HeaderMap {
        let mut outgoing = headers.clone();
        if headers.contains_key(TRANSFER_ENCODING) {
            outgoing.remove(CONTENT_LENGTH);
        }
        remove_hop_by_hop(&mut outgoing);
        self.sign(&mut outgoing);
        outgoing.append(CACHE_STATUS, status);
        outgoing
    }
}

pub(super) fn respond(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}
