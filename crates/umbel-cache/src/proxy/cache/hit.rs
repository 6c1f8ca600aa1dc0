//! A response from the cache: the whole stored response, a range of it, or 304 if the client has it
//! already.

use super::lookup::{CacheRequest, StoredResponse};
use crate::error::chain;
use crate::proxy::body::Body;
use crate::proxy::service::Service;
use crate::proxy::upstream::CACHE_STATUS;
use crate::store;
use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// Answers a request with a stored response, or returns `None` if the stored response is damaged.
pub(super) async fn respond(
    service: &Service,
    request: &CacheRequest,
    stored: &StoredResponse,
    cache_status: &'static str,
) -> Option<Response<Body>> {
    let body = open_body(service, stored).await?;
    let len = body.len();
    let mut parts = stored.head.response(SystemTime::now());
    service.upstream.via.append_to(&mut parts.headers);
    parts.headers.insert(CACHE_STATUS, HeaderValue::from_static(cache_status));
    let request_headers = &request.parts.headers;
    let mut range = 0..len;
    if parts.status == StatusCode::OK {
        if is_not_modified(request_headers, &parts.headers) {
            parts.status = StatusCode::NOT_MODIFIED;
            for name in [CONTENT_ENCODING, CONTENT_TYPE] {
                parts.headers.remove(name);
            }
            return Some(Response::from_parts(parts, Body::empty()));
        }
        // `Range` is defined for `GET` only.
        let requested = match request.parts.method {
            Method::HEAD => RequestedRange::Whole,
            _ => requested_range(request_headers, &parts.headers, len),
        };
        match requested {
            RequestedRange::Whole => {}
            RequestedRange::Part(part) => {
                parts.status = StatusCode::PARTIAL_CONTENT;
                parts
                    .headers
                    .insert(CONTENT_RANGE, value(format!("bytes {}-{}/{len}", part.start, part.end - 1)));
                range = part;
            }
            RequestedRange::Unsatisfiable => {
                parts.status = StatusCode::RANGE_NOT_SATISFIABLE;
                parts.headers.insert(CONTENT_RANGE, value(format!("bytes */{len}")));
                range = 0..0;
            }
        }
        parts.headers.entry(ACCEPT_RANGES).or_insert(HeaderValue::from_static("bytes"));
    }
    if parts.status != StatusCode::NO_CONTENT {
        parts.headers.insert(CONTENT_LENGTH, (range.end - range.start).into());
    }
    if request.parts.method == Method::HEAD {
        return Some(Response::from_parts(parts, Body::empty()));
    }
    service.counters.bytes_from_cache.add(range.end - range.start);
    Some(Response::from_parts(parts, Body::stored(body, range.start, range.end)))
}

/// Opens the body of a stored response, from memory or from disk.
async fn open_body(service: &Service, stored: &StoredResponse) -> Option<store::Body> {
    if let Some(bytes) = stored.entry.body_in_memory() {
        return Some(store::Body::Memory(bytes));
    }
    let (store, entry) = (Arc::clone(&service.cache.store), Arc::clone(&stored.entry));
    match tokio::task::spawn_blocking(move || store.body(&entry)).await {
        Ok(Ok(body)) => Some(body),
        Ok(Err(error)) => {
            service.log.line(format_args!("a stored response cannot be read: {}", chain(&error)));
            None
        }
        Err(_) => None,
    }
}

fn value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

fn text<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Evaluates the conditions of a request and returns whether the client has the stored response
/// already (RFC 9110, section 13).
fn is_not_modified(request: &HeaderMap, response: &HeaderMap) -> bool {
    if request.contains_key(IF_NONE_MATCH) {
        let etag = text(response, &ETAG).map(|tag| tag.trim().trim_start_matches("W/"));
        let lists = request.get_all(IF_NONE_MATCH).iter().filter_map(|list| list.to_str().ok());
        let mut tags = lists.flat_map(|list| list.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
        return tags.any(|tag| tag == "*" || Some(tag) == etag);
    }
    let (Some(since), Some(modified)) = (text(request, &IF_MODIFIED_SINCE), text(response, &LAST_MODIFIED))
    else {
        return false;
    };
    match (httpdate::parse_http_date(since), httpdate::parse_http_date(modified)) {
        (Ok(since), Ok(modified)) => modified <= since,
        _ => false,
    }
}

/// The part of a body that a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    Whole,
    Part(Range<u64>),
    /// The range begins after the end of the body.
    Unsatisfiable,
}

/// Returns the part of a body that a request asks for. A request for several ranges gets the whole
/// body, as RFC 9110 permits.
fn requested_range(request: &HeaderMap, response: &HeaderMap, len: u64) -> RequestedRange {
    let Some(range) = text(request, &RANGE).and_then(|range| range.strip_prefix("bytes=")) else {
        return RequestedRange::Whole;
    };
    if let Some(condition) = text(request, &IF_RANGE) {
        let is_strong = |tag: &&str| tag.starts_with('"');
        let matches = text(response, &ETAG).filter(is_strong) == Some(condition)
            || text(response, &LAST_MODIFIED) == Some(condition);
        if !matches {
            return RequestedRange::Whole;
        }
    }
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        // A number that does not fit is beyond the end of every body.
        is_number.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    let Some((first, last)) = range.trim().split_once('-') else { return RequestedRange::Whole };
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(len),
        (Some(first), None) if last.is_empty() => first..len,
        (None, Some(count)) if first.is_empty() => len.saturating_sub(count)..len,
        _ => return RequestedRange::Whole,
    };
    if part.start < part.end { RequestedRange::Part(part) } else { RequestedRange::Unsatisfiable }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        lines.iter().for_each(|(name, value)| {
            headers.append(*name, HeaderValue::from_static(value));
        });
        headers
    }

    #[test]
    fn ranges_are_parsed_as_requested() {
        let said = headers(&[("etag", "\"x\""), ("last-modified", "Mon, 16 Nov 2026 10:00:00 GMT")]);
        for (range, part) in [
            ("bytes=0-9", RequestedRange::Part(0..10)),
            ("bytes=90-", RequestedRange::Part(90..100)),
            ("bytes=90-1000", RequestedRange::Part(90..100)),
            ("bytes=-5", RequestedRange::Part(95..100)),
            ("bytes=-1000", RequestedRange::Part(0..100)),
            ("bytes=100-", RequestedRange::Unsatisfiable),
            ("bytes=-0", RequestedRange::Unsatisfiable),
            ("bytes=99999999999999999999999-", RequestedRange::Unsatisfiable),
            ("bytes=9-3", RequestedRange::Whole),
            ("bytes=1-2,5-6", RequestedRange::Whole),
            ("bytes=-", RequestedRange::Whole),
            ("bytes=+1-2", RequestedRange::Whole),
            ("lines=1-2", RequestedRange::Whole),
        ] {
            assert_eq!(requested_range(&headers(&[("range", range)]), &said, 100), part, "{range}");
        }
        for (condition, holds) in [
            ("\"x\"", true),
            ("\"y\"", false),
            ("W/\"x\"", false),
            ("Mon, 16 Nov 2026 10:00:00 GMT", true),
            ("Mon, 16 Nov 2026 10:00:01 GMT", false),
        ] {
            let asked = headers(&[("range", "bytes=0-9"), ("if-range", condition)]);
            assert_eq!(
                requested_range(&asked, &said, 100) == RequestedRange::Part(0..10),
                holds,
                "{condition}"
            );
        }
    }

    #[test]
    fn conditional_requests_for_a_current_response_get_304() {
        let said = headers(&[("etag", "\"x\""), ("last-modified", "Mon, 16 Nov 2026 10:00:00 GMT")]);
        for (name, value, known) in [
            ("if-none-match", "\"x\"", true),
            ("if-none-match", "W/\"x\"", true),
            ("if-none-match", "\"a\", \"x\"", true),
            ("if-none-match", "*", true),
            ("if-none-match", "\"y\"", false),
            ("if-modified-since", "Mon, 16 Nov 2026 10:00:00 GMT", true),
            ("if-modified-since", "Mon, 16 Nov 2026 09:59:59 GMT", false),
            ("if-modified-since", "yesterday", false),
        ] {
            assert_eq!(is_not_modified(&headers(&[(name, value)]), &said), known, "{name}: {value}");
        }
        let both =
            headers(&[("if-none-match", "\"y\""), ("if-modified-since", "Mon, 16 Nov 2026 10:00:00 GMT")]);
        assert!(!is_not_modified(&both, &said));
    }
}
