//! The rules of HTTP caching for a shared cache (RFC 9111): which responses may be stored, when a
//! stored response may be reused, and how the origin revalidates it.
//!
//! A [`StoredHead`] is built when a response arrives and is written to disk with it. For every
//! later request it decides whether the stored response is fresh, has to be revalidated, or answers
//! another request.
//!
//! ```
//! use http::{Request, Response};
//! use std::time::{Duration, SystemTime};
//! use umbel_cache::rules::{Reuse, StoredHead};
//!
//! let request = |language: &str| {
//!     let request = Request::get("http://example.org/").header("accept-language", language);
//!     request.body(()).unwrap().into_parts().0
//! };
//! let response = Response::builder().header("cache-control", "max-age=60").header("vary", "accept-language");
//! let response = response.body(()).unwrap().into_parts().0;
//!
//! let now = SystemTime::now();
//! let head = StoredHead::from_response(&request("de"), &response, now).expect("a storable response");
//! assert!(matches!(head.reuse(&request("de"), now), Reuse::Fresh));
//! assert!(matches!(head.reuse(&request("en"), now), Reuse::Mismatch));
//! assert!(matches!(head.reuse(&request("de"), now + Duration::from_secs(61)), Reuse::Stale(_)));
//! ```
//!
//! # References
//!
//! RFC 9110: HTTP Semantics. RFC 9111: HTTP Caching.

mod cache_control;
mod encoding;
mod vary;

pub(crate) use cache_control::has_directive;
pub use vary::variant;

use crate::headers::{is_end_to_end, remove_hop_by_hop};
use cache_control::{directives, has_explicit_lifetime, normalize};
use http::header::{
    AGE, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE,
    ETAG, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
    LAST_MODIFIED, PRAGMA, RANGE, SET_COOKIE,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, request, response};
use http_cache_semantics::{BeforeRequest, CacheOptions, CachePolicy};
use std::time::{Duration, SystemTime};
use vary::{matches_vary, selecting_request, vary_names};

/// The head of a stored response: its status and headers, the request that it answers, and when it
/// was received.
///
/// The caching policy decides about reuse. The headers themselves are stored exactly as the origin
/// sent them.
#[derive(Debug)]
pub struct StoredHead {
    /// The request, reduced to the headers that later decisions depend on.
    request: request::Parts,
    response: response::Parts,
    received_at: SystemTime,
    audience: Audience,
    source: Source,
    /// The time by which `Age` is raised, so that the caches of clients limit the freshness too.
    extra_age: Duration,
    policy: CachePolicy,
    /// The request headers that `Vary` lists, or `None` if the response varies on more than request
    /// headers.
    vary: Option<Vec<HeaderName>>,
    /// When the response becomes stale.
    fresh_until: SystemTime,
}

/// The clients that may receive a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// All clients.
    Everyone,
    /// Clients on this machine only, as the response came from a service on this machine.
    Localhost,
}

/// The source of a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The origin.
    Origin,
    /// A peer. The response has to be revalidated before it is reused, whatever the peer says about
    /// its freshness.
    Peer,
    /// A peer, and the origin has confirmed the response since.
    ConfirmedPeer,
}

/// Whether a stored response may be reused for a request.
#[derive(Debug)]
pub enum Reuse {
    /// It is fresh and may be reused without contacting the origin.
    Fresh,
    /// It is stale and may be reused if the origin answers this conditional request with 304.
    Stale(Box<request::Parts>),
    /// It answers another request.
    Mismatch,
}

/// The result of revalidating a stale response.
#[derive(Debug)]
pub enum Revalidated {
    /// The stored response is still valid, with this updated head.
    NotModified(Box<StoredHead>),
    /// The origin sent another response, with its head if that response may be stored.
    Modified(Option<Box<StoredHead>>),
    /// The 304 refers to a response other than the stored one. The request has to be repeated
    /// without conditions.
    Mismatch,
}

/// Options of a shared cache.
const SHARED_CACHE: CacheOptions = CacheOptions {
    shared: true,
    cache_heuristic: 0.1,
    immutable_min_time_to_live: MAX_HEURISTIC_LIFETIME,
    ignore_cargo_cult: false,
};

/// The longest heuristic freshness lifetime. Without an explicit lifetime a response is fresh for a
/// tenth of the time since it was last modified, but not longer than this.
const MAX_HEURISTIC_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// The longest freshness lifetime of a response from a peer. An origin may permit years, but a peer
/// must not determine the contents of other caches for so long.
const MAX_PEER_LIFETIME: Duration = Duration::from_secs(600);

/// The largest age and lifetime, 68 years, as in RFC 9111, section 1.2.2.
const MAX_AGE_SECS: u64 = 1 << 31;

/// The conditions and ranges of a request. They do not affect which stored response is selected;
/// the code that answers from the cache evaluates them.
const CONDITIONAL_HEADERS: [HeaderName; 6] =
    [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];

impl StoredHead {
    /// Returns the head of a response that was received now, or `None` if a shared cache may not
    /// store the response.
    pub fn from_response(
        request: &request::Parts,
        response: &response::Parts,
        now: SystemTime,
    ) -> Option<StoredHead> {
        let head = StoredHead::new(selecting_request(request, &response.headers), response, now);
        (head.is_storable() && is_complete_get(request, response)).then_some(head)
    }

    /// Returns the head with another audience. Without this call it is everyone.
    pub fn with_audience(self, audience: Audience) -> StoredHead {
        StoredHead { audience, ..self }
    }

    /// Returns the head with another source. Without this call it is the origin. The freshness of a
    /// response from a peer is limited, here and by its `Age` in the caches of clients.
    pub fn with_source(self, source: Source) -> StoredHead {
        if source == Source::Origin {
            return StoredHead { source, ..self };
        }
        // A client may use `max-age` where this cache uses `s-maxage`.
        let (mut request, mut response) = (self.request.clone(), self.response.clone());
        normalize(&mut request.headers);
        normalize(&mut response.headers);
        let options = CacheOptions { shared: false, ..SHARED_CACHE };
        let of_client = CachePolicy::new_options(&request, &response, self.received_at, options);
        let lifetimes = [&self.policy, &of_client].map(|policy| policy.time_to_live(self.received_at));
        let longest = lifetimes.into_iter().max().unwrap_or_default();
        StoredHead {
            source,
            fresh_until: self.fresh_until.min(self.received_at + MAX_PEER_LIFETIME),
            extra_age: longest.saturating_sub(MAX_PEER_LIFETIME),
            ..self
        }
    }

    fn new(request: request::Parts, response: &response::Parts, received_at: SystemTime) -> StoredHead {
        let mut parts = Response::new(()).into_parts().0;
        (parts.status, parts.headers) = (response.status, response.headers.clone());
        remove_hop_by_hop(&mut parts.headers);
        // The length of the stored body is known from the body itself.
        parts.headers.remove(CONTENT_LENGTH);
        if let Some(age) = initial_age(&parts.headers, received_at) {
            parts.headers.insert(AGE, age.into());
        }
        // The policy compares directives case-sensitively and skips values that it cannot parse.
        let (mut policy_request, mut policy_response) = (request.clone(), parts.clone());
        normalize(&mut policy_request.headers);
        normalize(&mut policy_response.headers);
        let policy = CachePolicy::new_options(&policy_request, &policy_response, received_at, SHARED_CACHE);
        let vary = vary_names(&parts.headers);
        let max_lifetime = if has_explicit_lifetime(&policy_response.headers) {
            Duration::from_secs(MAX_AGE_SECS)
        } else {
            MAX_HEURISTIC_LIFETIME
        };
        let fresh_until = received_at + policy.time_to_live(received_at).min(max_lifetime);
        StoredHead {
            request,
            response: parts,
            received_at,
            audience: Audience::Everyone,
            source: Source::Origin,
            extra_age: Duration::ZERO,
            policy,
            vary,
            fresh_until,
        }
    }

    /// Returns whether the stored response may be reused for a request.
    pub fn reuse(&self, request: &request::Parts, now: SystemTime) -> Reuse {
        if request.uri != self.request.uri || !self.matches_vary(&request.headers) {
            return Reuse::Mismatch;
        }
        let stale = self.is_stale(now) || self.source == Source::Peer;
        // Evaluating the policy is slow, and most requests have no directives.
        let has_directives =
            request.headers.contains_key(CACHE_CONTROL) || request.headers.contains_key(PRAGMA);
        if !stale && (!has_directives || self.satisfies_directives(&request.headers, now)) {
            return Reuse::Fresh;
        }
        let mut conditional = http::Request::new(()).into_parts().0;
        (conditional.uri, conditional.headers) = (request.uri.clone(), request.headers.clone());
        CONDITIONAL_HEADERS.iter().for_each(|name| {
            conditional.headers.remove(name);
        });
        for (validator, condition) in [(ETAG, IF_NONE_MATCH), (LAST_MODIFIED, IF_MODIFIED_SINCE)] {
            if let Some(value) = self.response.headers.get(validator) {
                conditional.headers.insert(condition, value.clone());
            }
        }
        Reuse::Stale(Box::new(conditional))
    }

    /// Returns whether the response satisfies the cache directives of a request. Stale responses
    /// never do, not even with `max-stale`.
    fn satisfies_directives(&self, headers: &HeaderMap, now: SystemTime) -> bool {
        let mut request = http::Request::new(()).into_parts().0;
        request.uri = self.request.uri.clone();
        // The headers in `Vary` are equal, so those of the stored request can stand in for them.
        request.headers = self.request.headers.clone();
        for name in [CACHE_CONTROL, PRAGMA] {
            request.headers.remove(&name);
            for value in headers.get_all(&name) {
                request.headers.append(&name, value.clone());
            }
        }
        normalize(&mut request.headers);
        matches!(self.policy.before_request(&request, now), BeforeRequest::Fresh(_))
    }

    fn matches_vary(&self, headers: &HeaderMap) -> bool {
        self.vary.as_ref().is_some_and(|names| matches_vary(names, headers, &self.request.headers))
    }

    /// Returns the status and headers to send to a client now, with the current `Age`.
    pub fn response(&self, now: SystemTime) -> response::Parts {
        let mut parts = self.response.clone();
        parts.headers.insert(AGE, self.age(now).into());
        parts
    }

    /// Returns the `Age` to send to a client now.
    pub fn age(&self, now: SystemTime) -> u64 {
        (self.policy.age(now).saturating_add(self.extra_age)).as_secs().min(MAX_AGE_SECS)
    }

    /// Evaluates the response of the origin to the conditional request of [`Reuse::Stale`].
    pub fn revalidate(
        &self,
        request: &request::Parts,
        response: &response::Parts,
        now: SystemTime,
    ) -> Revalidated {
        if response.status != StatusCode::NOT_MODIFIED {
            return Revalidated::Modified(StoredHead::from_response(request, response, now).map(Box::new));
        }
        // A 304 without a validator is about the response that the request named.
        let is_same = |name: HeaderName| {
            let tag = |headers: &HeaderMap| headers.get(&name).map(|value| weak(value).to_owned());
            tag(&response.headers).map(|new| Some(new) == tag(&self.response.headers))
        };
        if is_same(ETAG).or_else(|| is_same(LAST_MODIFIED)) == Some(false) {
            return Revalidated::Mismatch;
        }
        let parts = self.updated(&response.headers, now);
        let source = if self.source == Source::Peer { Source::ConfirmedPeer } else { self.source };
        let head = StoredHead::new(selecting_request(request, &parts.headers), &parts, now)
            .with_audience(self.audience)
            .with_source(source);
        Revalidated::NotModified(Box::new(head))
    }

    /// Returns the stored response updated with the headers of a 304. All of them replace stored
    /// headers, except those about the body, which the origin has not sent (RFC 9111, section 3.2).
    fn updated(&self, new_headers: &HeaderMap, now: SystemTime) -> response::Parts {
        let mut parts = self.response.clone();
        parts.headers.remove(AGE);
        if let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(now)) {
            parts.headers.insert(DATE, date);
        }
        let replaces = |name: &HeaderName| {
            is_end_to_end(name, new_headers)
                && ![CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_TYPE, CONTENT_RANGE].contains(name)
        };
        for name in new_headers.keys().filter(|name| replaces(name)) {
            parts.headers.remove(name);
            new_headers.get_all(name).iter().for_each(|value| {
                parts.headers.append(name, value.clone());
            });
        }
        parts
    }

    /// Returns when the response was received or last revalidated.
    pub fn received_at(&self) -> SystemTime {
        self.received_at
    }

    /// Returns the clients that may receive the response.
    pub fn audience(&self) -> Audience {
        self.audience
    }

    /// Returns the source of the response.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Returns how long the response remains fresh.
    pub fn remaining_lifetime(&self, now: SystemTime) -> Duration {
        self.fresh_until.duration_since(now).unwrap_or_default()
    }

    /// Returns whether a shared cache may store the response. The headers of a 304 may forbid it
    /// later. A response that is stale at once and has no validator is not worth storing.
    pub fn is_storable(&self) -> bool {
        let headers = &self.response.headers;
        let is_reusable = !self.is_stale(self.received_at)
            || headers.contains_key(ETAG)
            || headers.contains_key(LAST_MODIFIED);
        // The policy permits a response to an authorized request if its directives contradict each
        // other; this does not.
        let is_authorized = self.request.headers.contains_key(AUTHORIZATION);
        let permits_sharing = |directive: &String| {
            directive == "public" || directive == "must-revalidate" || directive.starts_with("s-maxage=")
        };
        is_reusable
            && self.policy.is_storable()
            && self.vary.is_some()
            && !headers.contains_key(SET_COOKIE)
            && (!is_authorized || directives(headers).any(|directive| permits_sharing(&directive)))
    }

    /// Returns whether the response has to be revalidated before it is reused.
    pub fn is_stale(&self, now: SystemTime) -> bool {
        now >= self.fresh_until
    }
}

/// Returns a validator without its weakness indicator, for weak comparison.
fn weak(value: &HeaderValue) -> &[u8] {
    let bytes = value.as_bytes().trim_ascii();
    bytes.strip_prefix(b"W/").unwrap_or(bytes)
}

/// Returns the age of a response at its arrival: the larger one of `Age` and the time since `Date`
/// (RFC 9111, section 4.2.3).
fn initial_age(headers: &HeaderMap, received_at: SystemTime) -> Option<u64> {
    let age_value = headers.get(AGE).map(|age| {
        let seconds = age.to_str().ok().and_then(|age| age.trim().parse::<u64>().ok());
        seconds.unwrap_or(MAX_AGE_SECS).min(MAX_AGE_SECS)
    });
    let date = headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    let apparent_age = date.and_then(|date| received_at.duration_since(date).ok());
    let apparent_age = apparent_age.map(|age| age.as_secs().min(MAX_AGE_SECS));
    age_value.max(apparent_age.filter(|age| *age > 0))
}

/// Returns whether a response is the complete response to a `GET`.
fn is_complete_get(request: &request::Parts, response: &response::Parts) -> bool {
    request.method == Method::GET
        && !request.headers.contains_key(RANGE)
        && response.status != StatusCode::PARTIAL_CONTENT
        && response.status != StatusCode::NOT_MODIFIED
        && !response.headers.contains_key(CONTENT_RANGE)
}
