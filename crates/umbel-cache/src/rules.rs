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
//! assert!(matches!(known.reuse(&asked("de"), now), Reuse::Fresh));
//! assert!(matches!(known.reuse(&asked("en"), now), Reuse::Other));
//! assert!(matches!(known.reuse(&asked("de"), now + Duration::from_secs(61)), Reuse::Stale(_)));
//! ```

use crate::headers::{end_to_end, is_end_to_end};
use http::header::{
    AGE, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HOST,
    HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, PRAGMA, RANGE,
    SET_COOKIE, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, request, response};
use http_cache_semantics::{AfterResponse, BeforeRequest, CacheOptions, CachePolicy};
use std::time::{Duration, SystemTime};
use xxhash_rust::xxh3::Xxh3Default;

/// What is known of an answer: how it was asked for, what it said, and when.
///
/// The policy decides; what is given is what the origin said, word for word.
#[derive(Debug)]
pub struct Known {
    request: request::Parts,
    response: response::Parts,
    at: SystemTime,
    policy: CachePolicy,
    /// What the policy would say each time it is asked: the headers of a question that matter, and until when it is fresh.
    varying: Option<Vec<HeaderName>>,
    fresh_until: SystemTime,
}

/// What an answer is to a question.
#[derive(Debug)]
pub enum Reuse {
    /// It may be given.
    Fresh,
    /// It may be given if the origin, asked so, says that it has not changed.
    Stale(Box<request::Parts>),
    /// It answers something else.
    Other,
}

/// What the origin says of an answer that was stale.
#[derive(Debug)]
pub enum Refreshed {
    /// It still holds, and this is known of it now.
    Same(Box<Known>),
    /// There is another answer, which may be kept if something is known of it.
    Changed(Option<Box<Known>>),
    /// What has not changed is not this: the origin has to be asked without a condition.
    Unclear,
}

/// Who shares a cache gets no answer that was for somebody else.
const SHARED: CacheOptions = CacheOptions {
    shared: true,
    cache_heuristic: 0.1,
    immutable_min_time_to_live: Duration::from_secs(24 * 3600),
    ignore_cargo_cult: false,
};

/// No answer is older than that: 68 years, as RFC 9111 has it.
const OLDEST: u64 = 1 << 31;

/// What a question is about besides the document itself. Whoever answers from here sees to it.
const CONDITIONS: [HeaderName; 6] =
    [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];

impl Known {
    /// What is known of an answer that came at this time, if it may be kept.
    pub fn of(request: &request::Parts, response: &response::Parts, now: SystemTime) -> Option<Known> {
        let known = Known::new(slim(request, &response.headers), response, now);
        (known.may_be_kept() && is_whole(request, response)).then_some(known)
    }

    fn new(request: request::Parts, response: &response::Parts, at: SystemTime) -> Known {
        let mut parts = Response::new(()).into_parts().0;
        (parts.status, parts.headers) = (response.status, response.headers.clone());
        end_to_end(&mut parts.headers);
        // How long it is, is seen.
        parts.headers.remove(CONTENT_LENGTH);
        if let Some(age) = parts.headers.remove(AGE) {
            let age = age.to_str().ok().and_then(|age| age.trim().parse::<u64>().ok()).unwrap_or(OLDEST);
            parts.headers.insert(AGE, age.min(OLDEST).into());
        }
        let policy = CachePolicy::new_options(&request, &parts, at, SHARED);
        let varying = varying(&parts.headers);
        let lifetime = policy.time_to_live(at).min(Duration::from_secs(OLDEST));
        Known { request, response: parts, at, varying, fresh_until: at + lifetime, policy }
    }

    /// What it is to a question.
    pub fn reuse(&self, request: &request::Parts, now: SystemTime) -> Reuse {
        if request.uri != self.request.uri || !self.varies_as(&request.headers) {
            return Reuse::Other;
        }
        // Whoever asks for nothing special is answered without much ado.
        if !request.headers.contains_key(CACHE_CONTROL)
            && !request.headers.contains_key(PRAGMA)
            && !self.is_stale(now)
        {
            return Reuse::Fresh;
        }
        let mut question = http::Request::new(()).into_parts().0;
        (question.uri, question.headers) = (request.uri.clone(), request.headers.clone());
        CONDITIONS.iter().for_each(|name| {
            question.headers.remove(name);
        });
        // It is part of the address, which is the same.
        let host = question.headers.remove(HOST);
        match self.policy.before_request(&question, now) {
            BeforeRequest::Fresh(_) => Reuse::Fresh,
            BeforeRequest::Stale { request: mut asking, matches: true } => {
                (asking.uri, asking.method) = (question.uri, question.method);
                if let Some(host) = host {
                    asking.headers.insert(HOST, host);
                }
                Reuse::Stale(Box::new(asking))
            }
            BeforeRequest::Stale { matches: false, .. } => Reuse::Other,
        }
    }

    fn varies_as(&self, headers: &HeaderMap) -> bool {
        let Some(names) = &self.varying else { return false };
        names.iter().all(|name| headers.get_all(name).iter().eq(self.request.headers.get_all(name).iter()))
    }

    /// What it says, as of now.
    pub fn response(&self, now: SystemTime) -> response::Parts {
        let mut parts = self.response.clone();
        parts.headers.insert(AGE, self.policy.age(now).as_secs().min(OLDEST).into());
        parts
    }

    /// What the origin's answer to a question about it means; the question is that of [`Reuse::Stale`].
    pub fn refresh(
        &self,
        request: &request::Parts,
        response: &response::Parts,
        now: SystemTime,
    ) -> Refreshed {
        if response.status != StatusCode::NOT_MODIFIED {
            return Refreshed::Changed(Known::of(request, response, now).map(Box::new));
        }
        match self.policy.after_response(request, response, now) {
            AfterResponse::NotModified(..) => {
                let parts = self.updated(&response.headers);
                Refreshed::Same(Box::new(Known::new(slim(request, &parts.headers), &parts, now)))
            }
            AfterResponse::Modified(..) => Refreshed::Unclear,
        }
    }

    /// What it says after the origin has said so much more: all of its headers count now, but for those about the body,
    /// which it has not sent. (RFC 9111, section 3.2)
    fn updated(&self, news: &HeaderMap) -> response::Parts {
        let mut parts = self.response.clone();
        parts.headers.remove(AGE);
        let counts = |name: &HeaderName| {
            is_end_to_end(name, news)
                && ![CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_TYPE, CONTENT_RANGE].contains(name)
        };
        for name in news.keys().filter(|name| counts(name)) {
            parts.headers.remove(name);
            news.get_all(name).iter().for_each(|value| {
                parts.headers.append(name, value.clone());
            });
        }
        parts
    }

    /// How long it stays fresh.
    pub fn time_to_live(&self, now: SystemTime) -> Duration {
        self.policy.time_to_live(now)
    }

    /// Whether it may be kept; what the origin says later may forbid it.
    pub fn may_be_kept(&self) -> bool {
        self.policy.is_storable() && is_for_all(&self.response)
    }

    /// Whether it may be given only after the origin was asked.
    pub fn is_stale(&self, now: SystemTime) -> bool {
        now >= self.fresh_until
    }

    /// Its bytes: the time, the question and the answer, each line of them as it would travel.
    pub fn encode(&self) -> Vec<u8> {
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut bytes = format!("{FORM}\n{}\n{}\n", since.as_millis(), self.request.uri).into_bytes();
        write_headers(&mut bytes, &self.request.headers);
        bytes.extend(format!("{}\n", self.response.status.as_u16()).into_bytes());
        write_headers(&mut bytes, &self.response.headers);
        bytes
    }

    /// What is known, from its bytes.
    pub fn decode(bytes: &[u8]) -> Option<Known> {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let mut text = || lines.next().and_then(|line| str::from_utf8(line).ok());
        if text()? != FORM {
            return None;
        }
        let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(text()?.parse().ok()?))?;
        let mut request = http::Request::new(()).into_parts().0;
        request.uri = text()?.parse().ok()?;
        request.headers = read_headers(&mut lines)?;
        let mut response = Response::new(()).into_parts().0;
        response.status = StatusCode::from_bytes(lines.next()?).ok()?;
        response.headers = read_headers(&mut lines)?;
        Some(Known::new(request, &response, at))
    }
}

/// What the bytes of an answer begin with.
const FORM: &str = "umbel answer 1";

fn write_headers(bytes: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        bytes.extend(name.as_str().as_bytes());
        bytes.extend(b": ");
        bytes.extend(value.as_bytes());
        bytes.push(b'\n');
    }
    bytes.push(b'\n');
}

/// Headers up to an empty line.
fn read_headers<'a>(lines: &mut impl Iterator<Item = &'a [u8]>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    loop {
        let line = lines.next()?;
        if line.is_empty() {
            return Some(headers);
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let value = line.get(colon + 2..)?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        headers.append(name, HeaderValue::from_bytes(value).ok()?);
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
