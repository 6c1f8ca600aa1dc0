//! What of an answer may be kept, and when it may be given again: HTTP caching for a cache that many share (RFC 9111).
//!
//! What is [`Known`] of an answer is made when it comes, goes to disk with it, and decides about every later question: it is
//! fresh, or the origin has to be asked whether it still holds, or it is an answer to something else.
//!
//! ```
//! use http::{Request, Response};
//! use std::time::{Duration, SystemTime};
//! use umbel_cache::rules::{Known, Reuse};
//!
//! let asked = |language: &str| {
//!     let request = Request::get("http://example.org/").header("accept-language", language);
//!     request.body(()).unwrap().into_parts().0
//! };
//! let answer = Response::builder().header("cache-control", "max-age=60").header("vary", "accept-language");
//! let answer = answer.body(()).unwrap().into_parts().0;
//!
//! let now = SystemTime::now();
//! let known = Known::of(&asked("de"), &answer, now).expect("it may be kept");
//! assert!(matches!(known.reuse(&asked("de"), now), Reuse::Fresh(_)));
//! assert!(matches!(known.reuse(&asked("en"), now), Reuse::Other));
//! assert!(matches!(known.reuse(&asked("de"), now + Duration::from_secs(61)), Reuse::Stale(_)));
//! ```

use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_RANGE, HeaderName, PRAGMA, RANGE, SET_COOKIE, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, request, response};
use http_cache_semantics::{AfterResponse, BeforeRequest, CacheOptions, CachePolicy};
use std::time::{Duration, SystemTime};
use xxhash_rust::xxh3::Xxh3Default;

/// What is known of an answer: how it was asked for, what it said, and when.
#[derive(Clone, Debug)]
pub struct Known(CachePolicy);

/// What an answer is to a question.
#[derive(Debug)]
pub enum Reuse {
    /// It may be given, with these headers.
    Fresh(response::Parts),
    /// It may be given if the origin, asked so, says that it has not changed.
    Stale(request::Parts),
    /// It answers something else.
    Other,
}

/// What the origin says of an answer that was stale.
#[derive(Debug)]
pub enum Refreshed {
    /// It still holds: this is known of it now, and these are its headers.
    Same(Known, response::Parts),
    /// There is another answer, which may be kept if something is known of it.
    Changed(Option<Known>),
}

/// Who shares a cache gets no answer that was for somebody else.
const SHARED: CacheOptions = CacheOptions {
    shared: true,
    cache_heuristic: 0.1,
    immutable_min_time_to_live: Duration::from_secs(24 * 3600),
    ignore_cargo_cult: false,
};

impl Known {
    /// What is known of an answer that came at this time, if it may be kept.
    pub fn of(request: &request::Parts, response: &response::Parts, now: SystemTime) -> Option<Known> {
        let policy = CachePolicy::new_options(&slim(request, &response.headers), response, now, SHARED);
        (policy.is_storable() && is_whole(request, response) && is_for_all(response)).then_some(Known(policy))
    }

    /// What it is to a question.
    pub fn reuse(&self, request: &request::Parts, now: SystemTime) -> Reuse {
        match self.0.before_request(request, now) {
            BeforeRequest::Fresh(response) => Reuse::Fresh(response),
            BeforeRequest::Stale { request, matches: true } => Reuse::Stale(request),
            BeforeRequest::Stale { matches: false, .. } => Reuse::Other,
        }
    }

    /// What the origin's answer to a question about it means; the question is that of [`Reuse::Stale`].
    pub fn refresh(
        &self,
        request: &request::Parts,
        response: &response::Parts,
        now: SystemTime,
    ) -> Refreshed {
        match self.0.after_response(request, response, now) {
            AfterResponse::NotModified(policy, parts) => Refreshed::Same(Known(policy), parts),
            AfterResponse::Modified(..) => Refreshed::Changed(Known::of(request, response, now)),
        }
    }

    /// How long it stays fresh.
    pub fn time_to_live(&self, now: SystemTime) -> Duration {
        self.0.time_to_live(now)
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).unwrap_or_default()
    }

    /// What is known, from its bytes.
    pub fn decode(bytes: &[u8]) -> Option<Known> {
        serde_json::from_slice(bytes).ok().map(Known)
    }
}

/// Which variant of a document an answer is: a number that depends on those headers of the question on which the answer
/// does. `None` if it depends on more than can be known.
pub fn variant(request: &HeaderMap, response: &HeaderMap) -> Option<u64> {
    let mut names = varying(response)?;
    if names.is_empty() {
        return Some(0);
    }
    names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    let mut sum = Xxh3Default::new();
    for name in &names {
        sum.update(name.as_str().as_bytes());
        for value in request.get_all(name) {
            sum.update(b":");
            sum.update(value.as_bytes());
        }
        sum.update(b"\n");
    }
    // 0 is that of an answer which is for all.
    Some(sum.digest().max(1))
}

/// The headers of a question on which an answer depends; `None` if it is more than headers.
fn varying(response: &HeaderMap) -> Option<Vec<HeaderName>> {
    let lists = response.get_all(VARY).iter().map(|value| value.to_str().ok());
    let mut names = Vec::new();
    for list in lists {
        for name in list?.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            names.push(HeaderName::from_bytes(name.as_bytes()).ok().filter(|_| name != "*")?);
        }
    }
    Some(names)
}

/// A question with only those headers that matter later: no secrets of whoever asked go to disk.
fn slim(request: &request::Parts, response: &HeaderMap) -> request::Parts {
    let mut slim = http::Request::new(()).into_parts().0;
    (slim.method, slim.uri) = (request.method.clone(), request.uri.clone());
    for name in varying(response).unwrap_or_default().into_iter().chain([CACHE_CONTROL, PRAGMA]) {
        for value in request.headers.get_all(&name) {
            slim.headers.append(&name, value.clone());
        }
    }
    // That there was one matters, unless the answer depends on which.
    if request.headers.contains_key(AUTHORIZATION) && !slim.headers.contains_key(AUTHORIZATION) {
        slim.headers.insert(AUTHORIZATION, HeaderValue::from_static("hidden"));
    }
    slim
}

/// Whether it is all of a document.
fn is_whole(request: &request::Parts, response: &response::Parts) -> bool {
    request.method == Method::GET
        && !request.headers.contains_key(RANGE)
        && response.status != StatusCode::PARTIAL_CONTENT
        && response.status != StatusCode::NOT_MODIFIED
        && !response.headers.contains_key(CONTENT_RANGE)
}

/// Whether whoever asks may get it, as far as can be seen.
fn is_for_all(response: &response::Parts) -> bool {
    let says_public = || {
        let mut values =
            response.headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
        values.any(|value| value.split(',').any(|word| word.trim().eq_ignore_ascii_case("public")))
    };
    varying(&response.headers).is_some() && (!response.headers.contains_key(SET_COOKIE) || says_public())
}
