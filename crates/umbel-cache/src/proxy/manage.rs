//! What a proxy says of itself: its summary and Squid's digest to other caches, what was counted to whoever runs it.

use super::body::Body;
use super::page;
use super::service::{Service, sentence};
use crate::sync::lock;
use crate::{CacheDigest, Update, Version};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, DATE, EXPIRES, HOST, LAST_MODIFIED};
use http::uri::Authority;
use http::{HeaderValue, Method, Response, StatusCode, request};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Where the summary is, for those who know its version: `?since=EPOCH.GENERATION`.
pub(super) const SUMMARY: &str = "/umbel/summary";
const STATS: &str = "/umbel/stats";
const PAGE: &str = "/umbel/";
const SHORT: &str = "/umbel";

/// Where what was counted is shown.
const COUNTS: [&str; 3] = [STATS, PAGE, SHORT];

/// Whether a path is that of something that a cache tells others, on whichever host.
pub(super) fn is_own_path(path: &str) -> bool {
    path == SUMMARY || COUNTS.contains(&path) || path.starts_with("/squid-internal-")
}

/// Whether a path is of what a cache tells others again and again.
pub(super) fn is_for_caches(path: &str) -> bool {
    [SUMMARY, CacheDigest::PATH].contains(&path)
}

/// Answers a question about the proxy itself. What was counted may have an address of its own.
pub(super) async fn answer(
    service: &Arc<Service>,
    request: &request::Parts,
    for_caches_only: bool,
) -> Response<Body> {
    if request.method != Method::GET && request.method != Method::HEAD {
        return service.refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
    }
    if COUNTS.contains(&request.uri.path()) && !is_asked_by_address(request) {
        return service.refuse(StatusCode::FORBIDDEN, "ask for this by an IP address or as localhost");
    }
    let mut response = match request.uri.path() {
        SUMMARY => summary(service, request.uri.query()).await,
        CacheDigest::PATH => digest(service).await,
        STATS if !for_caches_only => plain("application/json", stats(service).to_string() + "\n"),
        PAGE if !for_caches_only => plain("text/html; charset=utf-8", page::page(&stats(service))),
        SHORT if !for_caches_only => {
            let mut response = sentence(StatusCode::PERMANENT_REDIRECT, PAGE);
            response.headers_mut().insert(http::header::LOCATION, HeaderValue::from_static(PAGE));
            response
        }
        STATS | PAGE | SHORT => service.refuse(StatusCode::NOT_FOUND, "this is at the address of --manage"),
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

/// Whether it is asked for by an address or a plain name: a page of the web can have a browser ask by a name of its own, which
/// it lets mean this machine.
fn is_asked_by_address(request: &request::Parts) -> bool {
    let host = request.headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    host.is_none_or(|host| {
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        !name.contains('.') || name.parse::<IpAddr>().is_ok()
    })
}

fn plain(kind: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// The summary, or what has changed in it.
async fn summary(service: &Arc<Service>, query: Option<&str>) -> Response<Body> {
    let since = match query.map(since) {
        None => None,
        Some(Some(version)) => Some(version),
        Some(None) => {
            return service.refuse(StatusCode::BAD_REQUEST, "since is EPOCH.GENERATION, two numbers");
        }
    };
    let store = Arc::clone(&service.store);
    // A large one takes a moment.
    match tokio::task::spawn_blocking(move || store.summary_since(since).encode()).await {
        Ok(bytes) => plain(Update::MEDIA_TYPE, bytes),
        Err(_) => sentence(StatusCode::INTERNAL_SERVER_ERROR, "the summary could not be made"),
    }
}

fn since(query: &str) -> Option<Version> {
    let (epoch, generation) = query.strip_prefix("since=")?.split_once('.')?;
    Some(Version { epoch: epoch.parse().ok()?, generation: generation.parse().ok()? })
}

/// The digest that Squid asks for. It is made anew after a while.
async fn digest(service: &Arc<Service>) -> Response<Body> {
    let lifetime = service.limits.digest_lifetime;
    let known = lock(&service.digest).clone().filter(|(made, _)| made.elapsed() < lifetime);
    let (made, bytes) = match known {
        Some(known) => known,
        None => {
            let store = Arc::clone(&service.store);
            let made = tokio::task::spawn_blocking(move || {
                store.digest(CacheDigest::BITS_PER_ENTRY).map(|digest| Bytes::from(digest.encode()))
            });
            let Ok(Ok(bytes)) = made.await else {
                return sentence(StatusCode::INTERNAL_SERVER_ERROR, "the digest could not be made");
            };
            let known = (Instant::now(), bytes);
            *lock(&service.digest) = Some(known.clone());
            known
        }
    };
    let mut response = Response::new(Body::full(bytes));
    let (age, now) = (made.elapsed(), SystemTime::now());
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

/// What was counted.
pub(super) fn stats(service: &Service) -> Value {
    let (counters, store) = (&service.counters, service.store.stats());
    let (cache, peers) = (counters.bytes_from_cache.get(), counters.bytes_from_peers.get());
    let now = Instant::now();
    let of_peers: Vec<Value> = service
        .peers
        .ids()
        .map(|id| {
            let (counted, view) = (service.peers.counts(id), service.peers.view(id));
            json!({
                "address": service.neighbours[id.0].address.to_string(),
                "kind": service.neighbours[id.0].kind(),
                "documents": view.as_ref().map(|view| view.key_count()),
                "summary_bits": view.as_ref().and_then(|view| Some(view.filter()?.scheme().m())),
                "resting": service.peers.is_backing_off(id, now),
                "asked": counted.requests,
                "hits": counted.hits,
                "false_hits": counted.false_hits,
                "failures": counted.failures,
                "updates": counted.updates,
                "update_bytes": counted.update_bytes,
            })
        })
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": service.started.elapsed().as_secs(),
        "requests": counters.requests.get(),
        "hits": counters.hits.get(),
        "revalidated": counters.revalidated.get(),
        "peer_hits": counters.peer_hits.get(),
        "misses": counters.misses.get(),
        "false_hits": service.peers.ids().map(|id| service.peers.counts(id).false_hits).sum::<u64>(),
        "bytes_saved": cache + peers,
        "only_if_cached": counters.only_if_cached.get(),
        "collapsed": counters.collapsed.get(),
        "tunnels": counters.tunnels.get(),
        "refused": counters.refused.get(),
        "origin_failures": counters.origin_failures.get(),
        "dropped": counters.dropped.get(),
        "stored": counters.stored.get(),
        "not_admitted": counters.not_admitted.get(),
        "filter": { "denied": counters.filter_denied.get(), "false_hits": counters.filter_false_hits.get() },
        "bytes": {
            "from_cache": cache,
            "from_peers": peers,
            "from_origins": counters.bytes_from_origins.get(),
            "tunnelled": counters.bytes_tunnelled.get(),
        },
        "store": {
            "documents": store.responses,
            "bytes": store.bytes,
            "memory": store.memory,
            "evicted": store.evicted,
            "damaged": store.damaged,
        },
        "peers": of_peers,
    })
}
