//! Headers that are about one connection, and those that travel from one end to the other.

use http::HeaderMap;
use http::header::{
    AGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, COOKIE, EXPIRES, HOST, HeaderName, PRAGMA, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY,
};

/// Those that are always about one connection. (RFC 9110, section 7.6.1)
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

/// Removes what is about one connection: what always is, and what `Connection` names.
pub(crate) fn end_to_end(headers: &mut HeaderMap) {
    for name in named(headers) {
        headers.remove(name);
    }
    HOP_BY_HOP.iter().for_each(|name| {
        headers.remove(name);
    });
}

/// Whether a header travels from one end to the other.
pub(crate) fn is_end_to_end(name: &HeaderName, headers: &HeaderMap) -> bool {
    !HOP_BY_HOP.contains(name) && !named(headers).contains(name)
}

/// Those that are for everybody, whatever `Connection` says: it must not be used to hide from a cache what is private.
const FOR_ALL: [HeaderName; 13] = [
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

/// The headers that `Connection` names.
fn named(headers: &HeaderMap) -> Vec<HeaderName> {
    let lists =
        headers.get_all(CONNECTION).iter().flat_map(|list| list.as_bytes().split(|byte| *byte == b','));
    let names = lists.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok());
    names.filter(|name| !FOR_ALL.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn what_is_about_a_connection_does_not_travel_on() {
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
        end_to_end(&mut headers);
        let left: std::collections::BTreeSet<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left.into_iter().collect::<Vec<_>>(), ["accept", "cache-control"]);
    }
}
