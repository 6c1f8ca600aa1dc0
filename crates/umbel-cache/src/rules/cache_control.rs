//! The directives of `Cache-Control` and `Pragma`.

use http::header::{CACHE_CONTROL, EXPIRES, PRAGMA};
use http::{HeaderMap, HeaderValue};

/// Returns the directives of `Cache-Control`, in lower case.
pub(super) fn directives(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let lists = headers.get_all(CACHE_CONTROL).iter().map(|list| list.to_str());
    // An unreadable directive may be the most restrictive one.
    let lists = lists.map(|list| list.map_or_else(|_| "no-store".to_owned(), str::to_ascii_lowercase));
    let directives: Vec<String> = lists
        .flat_map(|list| list.split(',').map(|directive| directive.trim().to_owned()).collect::<Vec<_>>())
        .collect();
    directives.into_iter().filter(|directive| !directive.is_empty())
}

/// Returns whether `Cache-Control` contains this directive.
pub(crate) fn has_directive(headers: &HeaderMap, directive: &str) -> bool {
    headers.contains_key(CACHE_CONTROL) && directives(headers).any(|other| other == directive)
}

/// Returns whether a response states its freshness lifetime.
pub(super) fn has_explicit_lifetime(headers: &HeaderMap) -> bool {
    let is_lifetime =
        |directive: String| directive.starts_with("max-age") || directive.starts_with("s-maxage");
    headers.contains_key(EXPIRES) || directives(headers).any(is_lifetime)
}

/// Rewrites `Cache-Control` as a single line, and it and `Pragma` in lower case, as the policy
/// expects them.
pub(super) fn normalize(headers: &mut HeaderMap) {
    if headers.contains_key(CACHE_CONTROL) {
        let directives: Vec<String> = directives(headers).collect();
        let line =
            HeaderValue::try_from(directives.join(", ")).unwrap_or(HeaderValue::from_static("no-store"));
        headers.insert(CACHE_CONTROL, line);
    }
    if let Some(pragma) = headers.get(PRAGMA) {
        let line = HeaderValue::from_bytes(&pragma.as_bytes().to_ascii_lowercase());
        headers.insert(PRAGMA, line.unwrap_or(HeaderValue::from_static("no-cache")));
    }
}
