//! The proxy's own pages: its summary and cache digest for peers, and the status page and
//! statistics for its operator.

mod stats;
mod status_page;

use crate::proxy::Options;
use crate::proxy::body::Body;
use crate::proxy::service::{Service, text_response};
use crate::{CacheDigest, Update, Version};
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, DATE, EXPIRES, HOST, LAST_MODIFIED, LOCATION,
};
use http::uri::Authority;
use http::{HeaderValue, Method, Response, StatusCode, request};
use stats::stats;
use status_page::status_page;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use umbel::internals::sync::lock;

/// The path of the summary. A peer that has a version of it adds `?since=EPOCH.GENERATION`.
pub(in crate::proxy) const SUMMARY_PATH: &str = "/umbel/summary";
const STATS_PATH: &str = "/umbel/stats";
const STATUS_PATH: &str = "/umbel/";
/// Redirects to the status page.
const STATUS_PATH_WITHOUT_SLASH: &str = "/umbel";

/// The pages for the operator.
const OPERATOR_PATHS: [&str; 3] = [STATS_PATH, STATUS_PATH, STATUS_PATH_WITHOUT_SLASH];

/// The state of the proxy's own pages.
pub(in crate::proxy) struct InternalPages {
    started: Instant,
    /// Whether the pages for the operator have an address of their own.
    has_status_address: bool,
    /// The names of the proxy, in lower case.
    names: Vec<String>,
    /// The digest that was built last.
    digest: Mutex<Option<BuiltDigest>>,
}

/// An encoded cache digest and when it was built.
#[derive(Clone)]
struct BuiltDigest {
    built: Instant,
    bytes: Bytes,
}

/// The pages that are served at an address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum InternalAccess {
    /// All pages.
    All,
    /// The pages for peers only, as those for the operator have an address of their own.
    PeersOnly,
}

impl InternalPages {
    pub fn new(options: &Options) -> InternalPages {
        InternalPages {
            started: Instant::now(),
            has_status_address: options.status_address.is_some(),
            names: options.names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            digest: Mutex::default(),
        }
    }

    /// Returns the pages that are served at the address of the proxy itself.
    pub fn access(&self) -> InternalAccess {
        if self.has_status_address { InternalAccess::PeersOnly } else { InternalAccess::All }
    }

    /// Returns whether a request names the proxy by an IP address, a name without dots, or one of
    /// its names. A web page can make its own host name resolve to this machine and have the
    /// browser send requests here (DNS rebinding); such requests have that name in `Host`, or in
    /// their target if the browser uses the proxy.
    fn has_safe_host(&self, request: &request::Parts) -> bool {
        let is_safe = |authority: &Authority| {
            let name = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
            !name.contains('.') || name.parse::<IpAddr>().is_ok() || self.names.contains(&name)
        };
        let is_safe_value = |host: &HeaderValue| {
            host.is_empty() || Authority::try_from(host.as_bytes()).is_ok_and(|host| is_safe(&host))
        };
        request.uri.authority().is_none_or(is_safe) && request.headers.get_all(HOST).iter().all(is_safe_value)
    }
}

/// Returns whether a path is that of a page of a cache, on any host.
pub(in crate::proxy) fn is_internal_path(path: &str) -> bool {
    path == SUMMARY_PATH || OPERATOR_PATHS.contains(&path) || path.starts_with("/squid-internal-")
}

/// Returns whether peers request a path every few seconds.
pub(in crate::proxy) fn is_polled_path(path: &str) -> bool {
    [SUMMARY_PATH, CacheDigest::PATH].contains(&path)
}

/// Answers a request for one of the proxy's own pages.
pub(in crate::proxy) async fn respond(
    service: &Arc<Service>,
    request: &request::Parts,
    access: InternalAccess,
) -> Response<Body> {
    if request.method != Method::GET && request.method != Method::HEAD {
        return service.refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
    }
    let path = request.uri.path();
    let is_for_operator = OPERATOR_PATHS.contains(&path);
    if !service.internal.has_safe_host(request) {
        let why = "this proxy is not known by that name; use its IP address, or see --name";
        return service.refuse(StatusCode::FORBIDDEN, why);
    }
    let mut response = match path {
        SUMMARY_PATH => summary(service, request.uri.query()).await,
        CacheDigest::PATH => digest(service).await,
        _ if is_for_operator && access == InternalAccess::PeersOnly => {
            service.refuse(StatusCode::NOT_FOUND, "this page is at the address of --manage")
        }
        STATS_PATH => uncached("application/json", stats(service).to_string() + "\n"),
        STATUS_PATH => uncached("text/html; charset=utf-8", status_page(&stats(service))),
        STATUS_PATH_WITHOUT_SLASH => {
            let mut response = text_response(StatusCode::PERMANENT_REDIRECT, STATUS_PATH);
            response.headers_mut().insert(LOCATION, HeaderValue::from_static(STATUS_PATH));
            response
        }
        path => {
            let what = format!("{path} is not here; this is a proxy, and what it does is shown at /umbel/");
            service.refuse(StatusCode::NOT_FOUND, what)
        }
    };
    if request.method == Method::HEAD {
        if let Some(length) = hyper::body::Body::size_hint(response.body()).exact() {
            response.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        *response.body_mut() = Body::empty();
    }
    response
}

/// Returns a response that caches must not store.
fn uncached(content_type: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// Serves the summary, or its changes since the version in the query.
async fn summary(service: &Arc<Service>, query: Option<&str>) -> Response<Body> {
    let since = match query.map(parse_since) {
        None => None,
        Some(Some(version)) => Some(version),
        Some(None) => {
            return service.refuse(StatusCode::BAD_REQUEST, "since is EPOCH.GENERATION, two numbers");
        }
    };
    let store = Arc::clone(&service.cache.store);
    // Encoding a large summary would keep other requests of this thread waiting.
    match tokio::task::spawn_blocking(move || store.summary_since(since).encode()).await {
        Ok(bytes) => uncached(Update::MEDIA_TYPE, bytes),
        Err(_) => text_response(StatusCode::INTERNAL_SERVER_ERROR, "the summary could not be made"),
    }
}

fn parse_since(query: &str) -> Option<Version> {
    let (epoch, generation) = query.strip_prefix("since=")?.split_once('.')?;
    Some(Version { epoch: epoch.parse().ok()?, generation: generation.parse().ok()? })
}

/// Serves the cache digest for Squid, which is rebuilt at the end of its lifetime.
async fn digest(service: &Arc<Service>) -> Response<Body> {
    let lifetime = service.limits.digest_lifetime;
    let current = lock(&service.internal.digest).clone().filter(|digest| digest.built.elapsed() < lifetime);
    let BuiltDigest { built, bytes } = match current {
        Some(digest) => digest,
        None => {
            let store = Arc::clone(&service.cache.store);
            let encoded = tokio::task::spawn_blocking(move || {
                store.digest(CacheDigest::BITS_PER_ENTRY).map(|digest| Bytes::from(digest.encode()))
            });
            let Ok(Ok(bytes)) = encoded.await else {
                return text_response(StatusCode::INTERNAL_SERVER_ERROR, "the digest could not be made");
            };
            let digest = BuiltDigest { built: Instant::now(), bytes };
            *lock(&service.internal.digest) = Some(digest.clone());
            digest
        }
    };
    let mut response = Response::new(Body::full(bytes));
    let (age, now) = (built.elapsed(), SystemTime::now());
    let date = |time: SystemTime| HeaderValue::try_from(httpdate::fmt_http_date(time)).ok();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(CacheDigest::MEDIA_TYPE));
    for (name, time) in [
        (DATE, Some(now)),
        (LAST_MODIFIED, now.checked_sub(age)),
        (EXPIRES, now.checked_add(lifetime.saturating_sub(age) + Duration::from_secs(1))),
    ] {
        if let Some(value) = time.and_then(date) {
            headers.insert(name, value);
        }
    }
    response
}
