//! The request headers that select one of several responses for a URL (RFC 9111, section 4.1).

use http::header::{AUTHORIZATION, CACHE_CONTROL, COOKIE, HeaderName, PRAGMA, VARY};
use http::{HeaderMap, HeaderValue, request};
use md5::{Digest as _, Md5};
use xxhash_rust::xxh3::Xxh3Default;

/// Returns the number of the variant that a response is: a hash of the request headers that its
/// `Vary` lists, or `None` if it varies on more than request headers.
pub fn variant(request: &HeaderMap, response: &HeaderMap) -> Option<u64> {
    let mut names = vary_names(response)?;
    if names.is_empty() {
        return Some(0);
    }
    names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    let mut hash = Xxh3Default::new();
    for name in &names {
        hash.update(name.as_str().as_bytes());
        for value in request.get_all(name) {
            hash.update(b":");
            hash.update(value.as_bytes());
        }
        hash.update(b"\n");
    }
    // 0 is the variant of responses without `Vary`.
    Some(hash.digest().max(1))
}

/// Returns the request headers that `Vary` lists, or `None` if it is `*` or unreadable.
pub(super) fn vary_names(response: &HeaderMap) -> Option<Vec<HeaderName>> {
    let lists = response.get_all(VARY).iter().map(|value| value.to_str().ok());
    let mut names = Vec::new();
    for list in lists {
        for name in list?.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            names.push(HeaderName::from_bytes(name.as_bytes()).ok().filter(|_| name != "*")?);
        }
    }
    Some(names)
}

/// Returns whether a request has the same values as the stored request for all headers that `Vary`
/// lists.
pub(super) fn matches_vary(names: &[HeaderName], request: &HeaderMap, stored: &HeaderMap) -> bool {
    names.iter().all(|name| {
        let values = request.get_all(name).iter().map(|value| stored_value(name, value));
        values.eq(stored.get_all(name).iter().cloned())
    })
}

/// Returns a request with only the headers that later decisions depend on, so that no secrets of a
/// client are stored.
pub(super) fn selecting_request(request: &request::Parts, response: &HeaderMap) -> request::Parts {
    let mut reduced = http::Request::new(()).into_parts().0;
    (reduced.method, reduced.uri) = (request.method.clone(), request.uri.clone());
    for name in vary_names(response).unwrap_or_default().into_iter().chain([CACHE_CONTROL, PRAGMA]) {
        if !reduced.headers.contains_key(&name) {
            for value in request.headers.get_all(&name) {
                reduced.headers.append(&name, stored_value(&name, value));
            }
        }
    }
    // The presence of credentials matters. Their value matters only if `Vary` lists the header.
    if request.headers.contains_key(AUTHORIZATION) && !reduced.headers.contains_key(AUTHORIZATION) {
        reduced.headers.insert(AUTHORIZATION, HeaderValue::from_static("hidden"));
    }
    reduced
}

/// Returns the form in which the value of a request header is stored: a hash if the value is a
/// secret.
fn stored_value(name: &HeaderName, value: &HeaderValue) -> HeaderValue {
    if name != COOKIE && name != AUTHORIZATION {
        return value.clone();
    }
    let hash: [u8; 16] = Md5::digest(value.as_bytes()).into();
    let digits = umbel::internals::hex::encode(&hash);
    HeaderValue::try_from(digits).unwrap_or(HeaderValue::from_static("hidden"))
}
