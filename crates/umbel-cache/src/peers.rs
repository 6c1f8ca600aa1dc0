//! The views that a cache has of its peers, and how reliable the peers are.

use crate::{CacheKey, View};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};
use umbel::internals::sync::{lock, read, write};

/// The number of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub usize);

/// Counts of the requests to a peer and of its updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounts {
    /// Requests for a response that the peer's summary promised.
    pub requests: u64,
    /// Requests that the peer could answer from its cache.
    pub hits: u64,
    /// Requests for which the peer had no response after all.
    pub false_hits: u64,
    /// Requests that timed out or got an invalid response.
    pub failures: u64,
    /// Updates of the peer's summary.
    pub updates: u64,
    /// The size of these updates.
    pub update_bytes: u64,
}

/// The views of all peers, with counts for each of them.
#[derive(Debug)]
pub struct Peers {
    peers: Vec<Peer>,
}

#[derive(Debug, Default)]
struct Peer {
    view: RwLock<Option<ExpiringView>>,
    backoff: Mutex<Backoff>,
    requests: AtomicU64,
    hits: AtomicU64,
    false_hits: AtomicU64,
    failures: AtomicU64,
    updates: AtomicU64,
    update_bytes: AtomicU64,
}

#[derive(Debug)]
struct ExpiringView {
    view: Arc<View>,
    /// When this view expires.
    expires: Instant,
}

/// The pause in requests to a peer that has failed.
#[derive(Debug, Default)]
struct Backoff {
    /// The number of failures in a row.
    failures: u32,
    /// The number of false hits in a row.
    false_hits: u32,
    until: Option<Instant>,
}

/// The pause after the first failure. It doubles with each further one.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// The number of false hits in a row from which on they count as failures. A summary that promises
/// everything then costs a request once in a while, and not one for every miss.
const MAX_FALSE_HITS: u32 = 100;

/// The outcome of a request to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerOutcome {
    /// The peer had a response.
    Hit,
    /// The peer had no response although its summary promised one.
    FalseHit,
    /// The request timed out or got an invalid response.
    Failure,
}

impl Backoff {
    /// Begins a pause, twice as long as the last one.
    fn pause(&mut self, now: Instant) {
        // Concurrent requests fail together and count as one failure.
        if self.until.is_some_and(|until| now < until) {
            return;
        }
        let pause = MIN_BACKOFF.saturating_mul(1 << self.failures.min(16)).min(MAX_BACKOFF);
        (self.failures, self.until) = (self.failures.saturating_add(1), Some(now + pause));
    }
}

impl Peer {
    fn count_update(&self, bytes: u64) {
        self.updates.fetch_add(1, Relaxed);
        self.update_bytes.fetch_add(bytes, Relaxed);
    }
}

impl Peers {
    /// Creates the records of `count` peers whose summaries are not known yet.
    pub fn new(count: usize) -> Peers {
        Peers { peers: (0..count).map(|_| Peer::default()).collect() }
    }

    /// Returns the numbers of all peers.
    pub fn ids(&self) -> impl Iterator<Item = PeerId> + use<> {
        (0..self.peers.len()).map(PeerId)
    }

    /// Returns the view of a peer, even if it has expired.
    pub fn view(&self, id: PeerId) -> Option<Arc<View>> {
        read(&self.peers.get(id.0)?.view).as_ref().map(|current| Arc::clone(&current.view))
    }

    /// Replaces the view of a peer after an update of `bytes` bytes. Concurrent lookups see the old
    /// view or the new one.
    pub fn set_view(&self, id: PeerId, view: View, bytes: u64, expires: Instant) {
        let Some(peer) = self.peers.get(id.0) else { return };
        *write(&peer.view) = Some(ExpiringView { view: Arc::new(view), expires });
        peer.count_update(bytes);
    }

    /// Extends the life of a view that an update of `bytes` bytes has confirmed.
    pub fn renew_view(&self, id: PeerId, bytes: u64, expires: Instant) {
        let Some(peer) = self.peers.get(id.0) else { return };
        if let Some(current) = &mut *write(&peer.view) {
            current.expires = expires;
        }
        peer.count_update(bytes);
    }

    /// Removes the view of a peer.
    pub fn remove_view(&self, id: PeerId) {
        if let Some(peer) = self.peers.get(id.0) {
            *write(&peer.view) = None;
        }
    }

    /// Returns whether requests to a peer are paused because it has failed.
    pub fn is_backing_off(&self, id: PeerId, now: Instant) -> bool {
        self.peers.get(id.0).is_some_and(|peer| lock(&peer.backoff).until.is_some_and(|until| now < until))
    }

    /// Returns the peers whose summaries contain a key, the most reliable first. Peers with an
    /// expired view and peers that are backing off are left out.
    pub fn candidates(&self, key: &CacheKey, now: Instant) -> Vec<PeerId> {
        let is_candidate = |id: &PeerId| {
            let contains = |current: &ExpiringView| now <= current.expires && current.view.contains(key);
            !self.is_backing_off(*id, now) && read(&self.peers[id.0].view).as_ref().is_some_and(contains)
        };
        let mut candidates: Vec<(f64, PeerId)> =
            self.ids().filter(is_candidate).map(|id| (self.hit_rate(id), id)).collect();
        candidates.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(x.cmp(y)));
        candidates.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns the smoothed share of requests that were hits. It starts at 0.9 for a peer without
    /// requests.
    fn hit_rate(&self, id: PeerId) -> f64 {
        let counts = self.counts(id);
        (counts.hits as f64 + 9.0) / (counts.requests as f64 + 10.0)
    }

    /// Records the outcome of a request.
    pub fn record(&self, id: PeerId, outcome: PeerOutcome, now: Instant) {
        let Some(peer) = self.peers.get(id.0) else { return };
        peer.requests.fetch_add(1, Relaxed);
        match outcome {
            PeerOutcome::Hit => {
                peer.hits.fetch_add(1, Relaxed);
                *lock(&peer.backoff) = Backoff::default();
            }
            PeerOutcome::FalseHit => {
                peer.false_hits.fetch_add(1, Relaxed);
                let mut backoff = lock(&peer.backoff);
                backoff.false_hits = backoff.false_hits.saturating_add(1);
                if backoff.false_hits >= MAX_FALSE_HITS {
                    backoff.pause(now);
                } else {
                    (backoff.failures, backoff.until) = (0, None);
                }
            }
            PeerOutcome::Failure => self.record_failure(id, now),
        }
    }

    /// Records a failure after the outcome of the request was recorded, and pauses requests to the
    /// peer.
    pub fn record_failure(&self, id: PeerId, now: Instant) {
        let Some(peer) = self.peers.get(id.0) else { return };
        peer.failures.fetch_add(1, Relaxed);
        lock(&peer.backoff).pause(now);
    }

    /// Returns the counts of a peer.
    pub fn counts(&self, id: PeerId) -> PeerCounts {
        let Some(peer) = self.peers.get(id.0) else { return PeerCounts::default() };
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        PeerCounts {
            requests: read(&peer.requests),
            hits: read(&peer.hits),
            false_hits: read(&peer.false_hits),
            failures: read(&peer.failures),
            updates: read(&peer.updates),
            update_bytes: read(&peer.update_bytes),
        }
    }
}
