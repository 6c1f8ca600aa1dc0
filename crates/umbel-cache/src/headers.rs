//! Hop-by-hop headers, which a proxy must not forward, and end-to-end headers (RFC 9110, section
//! 7.6.1).

use http::HeaderMap;
use http::header::{
    AGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, COOKIE, EXPIRES, HOST, HeaderName, PRAGMA, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY,
};

/// The headers that are always hop-by-hop.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes all hop-by-hop headers: the usual ones and those that `Connection` lists.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    for name in connection_options(headers) {
        headers.remove(name);
    }
    HOP_BY_HOP.iter().for_each(|name| {
        headers.remove(name);
    });
}

/// Returns whether a header is end-to-end.
pub(crate) fn is_end_to_end(name: &HeaderName, headers: &HeaderMap) -> bool {
    !HOP_BY_HOP.contains(name) && !connection_options(headers).contains(name)
}

/// The headers with which some origins replace the host, path, scheme or method of a request.
const OVERRIDES: [HeaderName; 22] = [
    HeaderName::from_static("forwarded"),
    HeaderName::from_static("front-end-https"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-path"),
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-forwarded-protocol"),
    HeaderName::from_static("x-forwarded-scheme"),
    HeaderName::from_static("x-forwarded-server"),
    HeaderName::from_static("x-forwarded-ssl"),
    HeaderName::from_static("x-forwarded-uri"),
    HeaderName::from_static("x-host"),
    HeaderName::from_static("x-http-host-override"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-method-override"),
    HeaderName::from_static("x-original-host"),
    HeaderName::from_static("x-original-uri"),
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-rewrite-url"),
    HeaderName::from_static("x-url-scheme"),
];

/// Returns whether a request has a header by which its response may depend on more than its URL. As
/// the header is not part of the key, that response must not be stored for others (cache
/// poisoning).
pub(crate) fn has_override(headers: &HeaderMap) -> bool {
    // Most headers differ in their first letter.
    headers.keys().any(|name| name.as_str().starts_with(['f', 'x']) && OVERRIDES.contains(name))
}

/// The headers that are end-to-end even if `Connection` lists them. Otherwise a sender could hide
/// from a cache that a response is private.
const ALWAYS_END_TO_END: [HeaderName; 13] = [
    AGE,
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    COOKIE,
    EXPIRES,
    HOST,
    PRAGMA,
    SET_COOKIE,
    VARY,
];

/// Returns the hop-by-hop headers that `Connection` lists.
fn connection_options(headers: &HeaderMap) -> Vec<HeaderName> {
    let lists =
        headers.get_all(CONNECTION).iter().flat_map(|list| list.as_bytes().split(|byte| *byte == b','));
    let names = lists.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok());
    names.filter(|name| !ALWAYS_END_TO_END.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn hop_by_hop_headers_are_not_forwarded() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Own"),
            ("connection", "x-other, cache-control"),
            ("cache-control", "private"),
            ("x-own", "1"),
            ("x-other", "2"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("accept", "*/*"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        assert!(is_end_to_end(&HeaderName::from_static("accept"), &headers));
        assert!(!is_end_to_end(&HeaderName::from_static("x-own"), &headers));
        remove_hop_by_hop(&mut headers);
        let left: std::collections::BTreeSet<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left.into_iter().collect::<Vec<_>>(), ["accept", "cache-control"]);
    }
}
