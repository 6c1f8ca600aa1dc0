//! The statistics of the proxy as JSON. The names of the fields are part of its interface.

use crate::proxy::service::Service;
use serde_json::{Value, json};

/// Returns the statistics of the proxy.
pub(super) fn stats(service: &Service) -> Value {
    let (counters, store) = (&service.counters, service.cache.store.stats());
    let (from_cache, from_peers) = (counters.bytes_from_cache.get(), counters.bytes_from_peers.get());
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": service.internal.started.elapsed().as_secs(),
        "requests": counters.requests.get(),
        "hits": counters.hits.get(),
        "revalidated": counters.revalidated.get(),
        "peer_hits": counters.peer_hits.get(),
        "misses": counters.misses.get(),
        "false_hits": service.peers.false_hits(),
        "bytes_saved": from_cache + from_peers,
        "only_if_cached": counters.only_if_cached.get(),
        "collapsed": counters.collapsed.get(),
        "tunnels": counters.tunnels.get(),
        "refused": counters.refused.get(),
        "turned_away": counters.turned_away.get(),
        "origin_failures": counters.origin_failures.get(),
        "dropped": counters.dropped.get(),
        "stored": counters.stored.get(),
        "not_admitted": counters.not_admitted.get(),
        "filter": {
            "denied": counters.filter_denied.get(),
            "false_hits": counters.filter_false_hits.get(),
        },
        "bytes": {
            "from_cache": from_cache,
            "from_peers": from_peers,
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
        "peers": service.peers.stats(),
    })
}
