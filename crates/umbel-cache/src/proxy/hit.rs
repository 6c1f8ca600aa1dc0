//! An answer from the cache: all of a document, a part of it, or that it has not changed.

use super::body::Body;
use super::lookup::{Found, Question};
use super::service::{CACHE_STATUS, Service};
use crate::error::chain;
use crate::store;
use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// Answers with a document, unless it is damaged.
pub(super) async fn answer(
    service: &Service,
    question: &Question,
    found: &Found,
    status: &'static str,
) -> Option<Response<Body>> {
    let body = body(service, found).await?;
    let len = body.len();
    let mut parts = found.known.response(SystemTime::now());
    service.sign(&mut parts.headers);
    parts.headers.insert(CACHE_STATUS, HeaderValue::from_static(status));
    let asked = &question.parts.headers;
    let mut range = 0..len;
    if parts.status == StatusCode::OK {
        if is_known(asked, &parts.headers) {
            parts.status = StatusCode::NOT_MODIFIED;
            for name in [CONTENT_ENCODING, CONTENT_TYPE] {
                parts.headers.remove(name);
            }
            return Some(Response::from_parts(parts, Body::empty()));
        }
        // Parts are for those who want a body.
        let wanted = match question.parts.method {
            Method::HEAD => Wanted::All,
            _ => wanted(asked, &parts.headers, len),
        };
        match wanted {
            Wanted::All => {}
            Wanted::Part(part) => {
                parts.status = StatusCode::PARTIAL_CONTENT;
                parts
                    .headers
                    .insert(CONTENT_RANGE, value(format!("bytes {}-{}/{len}", part.start, part.end - 1)));
                range = part;
            }
            Wanted::Beyond => {
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
    if question.parts.method == Method::HEAD {
        return Some(Response::from_parts(parts, Body::empty()));
    }
    service.counters.bytes_from_cache.add(range.end - range.start);
    Some(Response::from_parts(parts, Body::stored(body, range.start, range.end)))
}

/// The body, from memory or from disk.
async fn body(service: &Service, found: &Found) -> Option<store::Body> {
    if let Some(bytes) = found.entry.body_in_memory() {
        return Some(store::Body::Memory(bytes));
    }
    let (store, entry) = (Arc::clone(&service.store), Arc::clone(&found.entry));
    match tokio::task::spawn_blocking(move || store.body(&entry)).await {
        Ok(Ok(body)) => Some(body),
        Ok(Err(error)) => {
            service.log.line(format_args!("what was kept cannot be given: {}", chain(&error)));
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

/// Whether whoever asks has the document already. (RFC 9110, section 13)
fn is_known(asked: &HeaderMap, said: &HeaderMap) -> bool {
    if asked.contains_key(IF_NONE_MATCH) {
        let ours = text(said, &ETAG).map(|tag| tag.trim().trim_start_matches("W/"));
        let lists = asked.get_all(IF_NONE_MATCH).iter().filter_map(|list| list.to_str().ok());
        let mut tags = lists.flat_map(|list| list.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
        return tags.any(|tag| tag == "*" || Some(tag) == ours);
    }
    let (Some(since), Some(changed)) = (text(asked, &IF_MODIFIED_SINCE), text(said, &LAST_MODIFIED)) else {
        return false;
    };
    match (httpdate::parse_http_date(since), httpdate::parse_http_date(changed)) {
        (Ok(since), Ok(changed)) => changed <= since,
        _ => false,
    }
}

/// How much of a document is wanted.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    All,
    Part(Range<u64>),
    Beyond,
}

/// How much of a document is wanted: one part of it, or all. Who wants several parts gets all.
fn wanted(asked: &HeaderMap, said: &HeaderMap, len: u64) -> Wanted {
    let Some(range) = text(asked, &RANGE).and_then(|range| range.strip_prefix("bytes=")) else {
        return Wanted::All;
    };
    if let Some(condition) = text(asked, &IF_RANGE) {
        let strong = |tag: &&str| tag.starts_with('"');
        let same = text(said, &ETAG).filter(strong) == Some(condition)
            || text(said, &LAST_MODIFIED) == Some(condition);
        if !same {
            return Wanted::All;
        }
    }
    let number = |digits: &str| {
        let all = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        // What is too long for a number is beyond everything.
        all.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    let Some((first, last)) = range.trim().split_once('-') else { return Wanted::All };
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(len),
        (Some(first), None) if last.is_empty() => first..len,
        (None, Some(count)) if first.is_empty() => len.saturating_sub(count)..len,
        _ => return Wanted::All,
    };
    if part.start < part.end { Wanted::Part(part) } else { Wanted::Beyond }
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
    fn parts_are_those_that_were_asked_for() {
        let said = headers(&[("etag", "\"x\""), ("last-modified", "Mon, 16 Nov 2026 10:00:00 GMT")]);
        for (range, part) in [
            ("bytes=0-9", Wanted::Part(0..10)),
            ("bytes=90-", Wanted::Part(90..100)),
            ("bytes=90-1000", Wanted::Part(90..100)),
            ("bytes=-5", Wanted::Part(95..100)),
            ("bytes=-1000", Wanted::Part(0..100)),
            ("bytes=100-", Wanted::Beyond),
            ("bytes=-0", Wanted::Beyond),
            ("bytes=99999999999999999999999-", Wanted::Beyond),
            ("bytes=9-3", Wanted::All),
            ("bytes=1-2,5-6", Wanted::All),
            ("bytes=-", Wanted::All),
            ("bytes=+1-2", Wanted::All),
            ("lines=1-2", Wanted::All),
        ] {
            assert_eq!(wanted(&headers(&[("range", range)]), &said, 100), part, "{range}");
        }
        for (condition, holds) in [
            ("\"x\"", true),
            ("\"y\"", false),
            ("W/\"x\"", false),
            ("Mon, 16 Nov 2026 10:00:00 GMT", true),
            ("Mon, 16 Nov 2026 10:00:01 GMT", false),
        ] {
            let asked = headers(&[("range", "bytes=0-9"), ("if-range", condition)]);
            assert_eq!(wanted(&asked, &said, 100) == Wanted::Part(0..10), holds, "{condition}");
        }
    }

    #[test]
    fn who_has_it_is_told_that_it_has_not_changed() {
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
            assert_eq!(is_known(&headers(&[(name, value)]), &said), known, "{name}: {value}");
        }
        let both =
            headers(&[("if-none-match", "\"y\""), ("if-modified-since", "Mon, 16 Nov 2026 10:00:00 GMT")]);
        assert!(!is_known(&both, &said));
    }
}
