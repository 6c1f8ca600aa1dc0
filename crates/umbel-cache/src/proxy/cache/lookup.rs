//! The lookup of a stored response. If there is none that may be reused, one request fetches a
//! response for all that wait.

use super::hit;
use super::in_flight::{FetchOutcome, Role};
use crate::headers::has_override;
use crate::proxy::body::Body;
use crate::proxy::reach::{Reach, Requester};
use crate::proxy::service::{Service, text_response};
use crate::proxy::target::Resource;
use crate::rules::{Audience, Reuse, StoredHead, has_directive};
use crate::store::{Entry, InvalidationCount};
use http::header::{AUTHORIZATION, PRAGMA, RANGE};
use http::{Method, Response, StatusCode, request};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::time::{Instant, timeout_at};

/// A request that may be answered from the cache.
pub(in crate::proxy) struct CacheRequest {
    pub parts: request::Parts,
    pub resource: Resource,
    pub requester: Requester,
    /// Whether this is a `GET` for the whole response, without credentials and without directives
    /// that bypass the cache. Only such requests wait for each other and are sent to peers.
    pub is_plain: bool,
    /// Whether the request has headers that may replace parts of its URL at the origin, so that its
    /// response is for this client alone.
    pub has_override: bool,
    /// The number of invalidations of the key when the request arrived. If it is invalidated again
    /// meanwhile, the response is not stored.
    pub invalidations: InvalidationCount,
}

/// A stored response.
pub(super) struct StoredResponse {
    pub entry: Arc<Entry>,
    pub head: Arc<StoredHead>,
}

/// A stale response and the conditional request that revalidates it.
pub(super) struct StaleResponse {
    pub stored: StoredResponse,
    pub conditional: Box<request::Parts>,
}

/// The result of a lookup.
enum Lookup {
    Fresh(StoredResponse),
    Stale(StaleResponse),
    /// All stored responses for this key answer other requests.
    Mismatch,
    /// The index has no response although the filter before it contains the key.
    FilterFalseHit,
    /// The filter before the index does not contain the key.
    FilterDenied,
}

/// The next step after a lookup.
enum NextStep {
    Respond(Response<Body>),
    /// Fetch a response, and revalidate the stale one if there is one.
    Fetch(Option<StaleResponse>),
}

impl CacheRequest {
    pub fn new(
        parts: request::Parts,
        resource: Resource,
        requester: Requester,
        invalidations: InvalidationCount,
    ) -> CacheRequest {
        let is_whole_get = parts.method == Method::GET && !parts.headers.contains_key(RANGE);
        let bypasses_cache = parts.headers.contains_key(AUTHORIZATION)
            || parts.headers.contains_key(PRAGMA)
            || ["no-cache", "no-store", "max-age=0"]
                .iter()
                .any(|directive| has_directive(&parts.headers, directive));
        let has_override = has_override(&parts.headers);
        let is_plain = is_whole_get && !bypasses_cache && !has_override;
        CacheRequest { parts, resource, requester, is_plain, has_override, invalidations }
    }
}

impl Service {
    /// Answers a request from the cache, or fetches the response.
    pub async fn look_up(
        self: &Arc<Service>,
        parts: request::Parts,
        resource: Resource,
        requester: Requester,
    ) -> Response<Body> {
        let invalidations = self.cache.store.invalidation_count(&resource.key);
        let request = CacheRequest::new(parts, resource, requester, invalidations);
        let lookup = self.find(&request);
        match lookup {
            Lookup::FilterDenied => self.counters.filter_denied.increment(),
            Lookup::FilterFalseHit => self.counters.filter_false_hits.increment(),
            _ => {}
        }
        let mut stale = match self.respond_if_fresh(&request, lookup).await {
            NextStep::Respond(response) => return response,
            NextStep::Fetch(stale) => stale,
        };
        if has_directive(&request.parts.headers, "only-if-cached") {
            self.counters.only_if_cached.increment();
            return text_response(StatusCode::GATEWAY_TIMEOUT, "this is not in the cache");
        }
        let (mut lead, mut has_waited) = (None, false);
        let deadline = Instant::now() + self.limits.collapse_timeout;
        let key = request.resource.key;
        while lead.is_none() && request.is_plain && !self.cache.history.is_uncacheable(&key) {
            match self.cache.in_flight.join(&key) {
                Role::Leader(handle) => lead = Some(handle),
                Role::Follower(mut outcome) => {
                    if !std::mem::replace(&mut has_waited, true) {
                        self.counters.collapsed.increment();
                    }
                    let timed_out = timeout_at(deadline, outcome.changed()).await.is_err();
                    if timed_out || *outcome.borrow() == FetchOutcome::NotStored {
                        break;
                    }
                }
            }
            // Another request may have stored the response meanwhile. If its leader has given up,
            // one of those that have waited becomes the leader.
            stale = match self.respond_if_fresh(&request, self.find(&request)).await {
                NextStep::Respond(response) => return response,
                NextStep::Fetch(stale) => stale,
            };
        }
        self.fetch(request, stale, lead).await
    }

    /// Looks up the stored responses for a request: in the filter first, then in the index.
    fn find(&self, request: &CacheRequest) -> Lookup {
        let store = &self.cache.store;
        if !store.may_contain(&request.resource.key) {
            return Lookup::FilterDenied;
        }
        let now = SystemTime::now();
        let (mut lookup, mut latest) = (Lookup::FilterFalseHit, SystemTime::UNIX_EPOCH);
        for entry in store.find(&request.resource.key) {
            let Some(head) = entry.head() else {
                store.remove(&entry);
                continue;
            };
            let reuse = match (head.audience(), request.requester.reach()) {
                (Audience::Localhost, Reach::RemoteOnly) => Reuse::Mismatch,
                _ => head.reuse(&request.parts, now),
            };
            // If several responses match, the latest is used (RFC 9111, section 4).
            let is_latest = head.received_at() >= latest;
            match reuse {
                Reuse::Mismatch if matches!(lookup, Lookup::FilterFalseHit) => lookup = Lookup::Mismatch,
                Reuse::Fresh if is_latest => {
                    latest = head.received_at();
                    lookup = Lookup::Fresh(StoredResponse { entry, head });
                }
                Reuse::Stale(conditional) if is_latest => {
                    latest = head.received_at();
                    let stored = StoredResponse { entry, head };
                    lookup = Lookup::Stale(StaleResponse { stored, conditional });
                }
                _ => {}
            }
        }
        lookup
    }

    /// Responds with a fresh response, unless it turns out to be damaged.
    async fn respond_if_fresh(&self, request: &CacheRequest, lookup: Lookup) -> NextStep {
        match lookup {
            Lookup::Fresh(stored) => match hit::respond(self, request, &stored, "umbel;hit").await {
                Some(response) => {
                    self.counters.hits.increment();
                    NextStep::Respond(response)
                }
                None => NextStep::Fetch(None),
            },
            Lookup::Stale(stale) => NextStep::Fetch(Some(stale)),
            Lookup::Mismatch | Lookup::FilterFalseHit | Lookup::FilterDenied => NextStep::Fetch(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::Options;
    use crate::proxy::target::Target;
    use crate::store::{self, Store};
    use http::Request;

    /// A response from this machine is for clients on this machine only, even if it is stored.
    #[test]
    fn remote_clients_do_not_get_stored_responses_of_local_services() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), &store::Options::default()).unwrap();
        let service = Service::new(store, &Options::default()).unwrap();
        let store = &service.cache.store;
        let request = |path: &str, requester| {
            let uri = format!("http://127.0.0.1:8080/{path}");
            let parts = Request::get(uri).body(()).unwrap().into_parts().0;
            let Ok(Target::Resource(resource)) = Target::from_request(&parts) else { panic!("a page") };
            let invalidations = store.invalidation_count(&resource.key);
            CacheRequest { parts, resource, requester, is_plain: true, has_override: false, invalidations }
        };
        let response =
            Response::builder().header("cache-control", "max-age=60").body(()).unwrap().into_parts().0;
        for (path, audience) in [("secret", Audience::Localhost), ("public", Audience::Everyone)] {
            let request = request(path, Requester::Proxy);
            let head = StoredHead::from_response(&request.parts, &response, SystemTime::now()).unwrap();
            let head = head.with_audience(audience);
            store.begin(&request.resource.key, 0).commit(head.encode()).unwrap();
        }
        let is_given = |path, address: &str| {
            let client = Requester::Client(address.parse().unwrap());
            matches!(service.find(&request(path, client)), Lookup::Fresh(_))
        };
        assert!(is_given("secret", "127.0.0.1") && is_given("public", "192.0.2.1"));
        assert!(!is_given("secret", "192.0.2.1"));
    }
}
