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

use crate::headers::{is_end_to_end, remove_hop_by_hop};
use http::header::{
    AGE, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, COOKIE,
    DATE, ETAG, EXPIRES, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, LAST_MODIFIED, PRAGMA, RANGE, SET_COOKIE, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, request, response};
use http_cache_semantics::{BeforeRequest, CacheOptions, CachePolicy};
use md5::{Digest as _, Md5};
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
    scope: Scope,
    policy: CachePolicy,
    /// What the policy would say each time it is asked: the headers of a question that matter, and until when it is fresh.
    varying: Option<Vec<HeaderName>>,
    fresh_until: SystemTime,
}

/// Who may get an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everybody.
    All,
    /// Those who are on the same machine: it came from there.
    Here,
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
    immutable_min_time_to_live: DAY,
    ignore_cargo_cult: false,
};

/// Where the origin says nothing, a tenth of its age, and not more than this, is how long an answer is fresh.
const DAY: Duration = Duration::from_secs(24 * 3600);

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

    /// The same for others than everybody.
    pub fn within(self, scope: Scope) -> Known {
        Known { scope, ..self }
    }

    fn new(request: request::Parts, response: &response::Parts, at: SystemTime) -> Known {
        let mut parts = Response::new(()).into_parts().0;
        (parts.status, parts.headers) = (response.status, response.headers.clone());
        remove_hop_by_hop(&mut parts.headers);
        // How long it is, is seen.
        parts.headers.remove(CONTENT_LENGTH);
        if let Some(age) = age(&parts.headers, at) {
            parts.headers.insert(AGE, age.into());
        }
        // The policy takes words as they are written, and skips what it cannot read.
        let (mut asked, mut said) = (request.clone(), parts.clone());
        spell_out(&mut asked.headers);
        spell_out(&mut said.headers);
        let policy = CachePolicy::new_options(&asked, &said, at, SHARED);
        let varying = varying(&parts.headers);
        let most = if says_how_long(&said.headers) { Duration::from_secs(OLDEST) } else { DAY };
        let fresh_until = at + policy.time_to_live(at).min(most);
        Known { request, response: parts, at, scope: Scope::All, policy, varying, fresh_until }
    }

    /// What it is to a question.
    pub fn reuse(&self, request: &request::Parts, now: SystemTime) -> Reuse {
        if request.uri != self.request.uri || !self.varies_as(&request.headers) {
            return Reuse::Other;
        }
        let stale = self.is_stale(now);
        // Whoever asks for nothing special is answered without much ado.
        let special = request.headers.contains_key(CACHE_CONTROL) || request.headers.contains_key(PRAGMA);
        if !stale && (!special || self.satisfies(&request.headers, now)) {
            return Reuse::Fresh;
        }
        let mut asking = http::Request::new(()).into_parts().0;
        (asking.uri, asking.headers) = (request.uri.clone(), request.headers.clone());
        CONDITIONS.iter().for_each(|name| {
            asking.headers.remove(name);
        });
        for (validator, condition) in [(ETAG, IF_NONE_MATCH), (LAST_MODIFIED, IF_MODIFIED_SINCE)] {
            if let Some(value) = self.response.headers.get(validator) {
                asking.headers.insert(condition, value.clone());
            }
        }
        Reuse::Stale(Box::new(asking))
    }

    /// Whether it is what whoever asks wants of a cache; what is stale nobody gets, even if he would take it.
    fn satisfies(&self, headers: &HeaderMap, now: SystemTime) -> bool {
        let mut question = http::Request::new(()).into_parts().0;
        question.uri = self.request.uri.clone();
        // All that it depends on is the same.
        question.headers = self.request.headers.clone();
        for name in [CACHE_CONTROL, PRAGMA] {
            question.headers.remove(&name);
            for value in headers.get_all(&name) {
                question.headers.append(&name, value.clone());
            }
        }
        spell_out(&mut question.headers);
        matches!(self.policy.before_request(&question, now), BeforeRequest::Fresh(_))
    }

    fn varies_as(&self, headers: &HeaderMap) -> bool {
        let Some(names) = &self.varying else { return false };
        names.iter().all(|name| {
            let asked = headers.get_all(name).iter().map(|value| remembered(name, value));
            asked.eq(self.request.headers.get_all(name).iter().cloned())
        })
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
        // Where it does not say of what, it is of what it was asked about.
        let same = |name: HeaderName| {
            let tag = |headers: &HeaderMap| headers.get(&name).map(|value| weak(value).to_owned());
            tag(&response.headers).map(|new| Some(new) == tag(&self.response.headers))
        };
        if same(ETAG).or_else(|| same(LAST_MODIFIED)) == Some(false) {
            return Refreshed::Unclear;
        }
        let parts = self.updated(&response.headers, now);
        let known = Known::new(slim(request, &parts.headers), &parts, now).within(self.scope);
        Refreshed::Same(Box::new(known))
    }

    /// What it says after the origin has said so much more: all of its headers count now, but for those about the body,
    /// which it has not sent. (RFC 9111, section 3.2)
    fn updated(&self, news: &HeaderMap, now: SystemTime) -> response::Parts {
        let mut parts = self.response.clone();
        parts.headers.remove(AGE);
        if let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(now)) {
            parts.headers.insert(DATE, date);
        }
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

    /// When it came.
    pub fn at(&self) -> SystemTime {
        self.at
    }

    /// Who may get it.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// How long it stays fresh.
    pub fn time_to_live(&self, now: SystemTime) -> Duration {
        self.fresh_until.duration_since(now).unwrap_or_default()
    }

    /// Whether it may be kept; what the origin says later may forbid it. What is stale at once and cannot be asked about is
    /// kept for nothing.
    pub fn may_be_kept(&self) -> bool {
        let headers = &self.response.headers;
        let good =
            !self.is_stale(self.at) || headers.contains_key(ETAG) || headers.contains_key(LAST_MODIFIED);
        // The policy takes directives that contradict each other for a permission.
        let of_somebody = self.request.headers.contains_key(AUTHORIZATION);
        let for_others =
            |word: &String| word == "public" || word == "must-revalidate" || word.starts_with("s-maxage=");
        good && self.policy.is_storable()
            && self.varying.is_some()
            && !headers.contains_key(SET_COOKIE)
            && (!of_somebody || directives(headers).any(|word| for_others(&word)))
    }

    /// Whether it may be given only after the origin was asked.
    pub fn is_stale(&self, now: SystemTime) -> bool {
        now >= self.fresh_until
    }

    /// Its bytes: the time, the question and the answer, each line of them as it would travel.
    pub fn encode(&self) -> Vec<u8> {
        let since = self.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let scope = match self.scope {
            Scope::All => "all",
            Scope::Here => "here",
        };
        let start = format!("{FORM}\n{}\n{scope}\n{}\n", since.as_millis(), self.request.uri);
        let mut bytes = start.into_bytes();
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
        let scope = match text()? {
            "all" => Scope::All,
            "here" => Scope::Here,
            _ => return None,
        };
        let mut request = http::Request::new(()).into_parts().0;
        request.uri = text()?.parse().ok()?;
        request.headers = read_headers(&mut lines)?;
        let mut response = Response::new(()).into_parts().0;
        response.status = StatusCode::from_bytes(lines.next()?).ok()?;
        response.headers = read_headers(&mut lines)?;
        Some(Known::new(request, &response, at).within(scope))
    }
}

/// A validator, where it does not matter whether it is a weak one.
fn weak(value: &HeaderValue) -> &[u8] {
    let bytes = value.as_bytes().trim_ascii();
    bytes.strip_prefix(b"W/").unwrap_or(bytes)
}

/// How old an answer was when it came: what it says, or what its date says if that is more. (RFC 9111, section 4.2.3)
fn age(headers: &HeaderMap, at: SystemTime) -> Option<u64> {
    let said = headers.get(AGE).map(|age| {
        age.to_str().ok().and_then(|age| age.trim().parse::<u64>().ok()).unwrap_or(OLDEST).min(OLDEST)
    });
    let date = headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    let seems = date.and_then(|date| at.duration_since(date).ok()).map(|age| age.as_secs().min(OLDEST));
    said.max(seems.filter(|age| *age > 0))
}

/// Whether an answer says how long it is fresh.
fn says_how_long(headers: &HeaderMap) -> bool {
    headers.contains_key(EXPIRES)
        || directives(headers).any(|word| word.starts_with("max-age") || word.starts_with("s-maxage"))
}

/// What somebody tells caches, in small letters.
fn directives(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let lists = headers.get_all(CACHE_CONTROL).iter().map(|list| list.to_str());
    // What cannot be read may forbid everything.
    let lists = lists.map(|list| list.map_or_else(|_| "no-store".to_owned(), str::to_ascii_lowercase));
    let words: Vec<String> = lists
        .flat_map(|list| list.split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>())
        .collect();
    words.into_iter().filter(|word| !word.is_empty())
}

/// Whether somebody tells caches this.
pub(crate) fn is_told(headers: &HeaderMap, what: &str) -> bool {
    headers.contains_key(CACHE_CONTROL) && directives(headers).any(|word| word == what)
}

/// Puts what is told to caches into one line, as it is expected.
fn spell_out(headers: &mut HeaderMap) {
    if headers.contains_key(CACHE_CONTROL) {
        let words: Vec<String> = directives(headers).collect();
        let line = HeaderValue::try_from(words.join(", ")).unwrap_or(HeaderValue::from_static("no-store"));
        headers.insert(CACHE_CONTROL, line);
    }
    if let Some(pragma) = headers.get(PRAGMA) {
        let line = HeaderValue::from_bytes(&pragma.as_bytes().to_ascii_lowercase());
        headers.insert(PRAGMA, line.unwrap_or(HeaderValue::from_static("no-cache")));
    }
}

/// What is remembered of a header of a question on which an answer depends: of a secret only whether it is the same.
fn remembered(name: &HeaderName, value: &HeaderValue) -> HeaderValue {
    if name != COOKIE && name != AUTHORIZATION {
        return value.clone();
    }
    let hash: [u8; 16] = Md5::digest(value.as_bytes()).into();
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::try_from(digits).unwrap_or(HeaderValue::from_static("hidden"))
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
        if !slim.headers.contains_key(&name) {
            for value in request.headers.get_all(&name) {
                slim.headers.append(&name, remembered(&name, value));
            }
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
