//! Other caches: what each of them is known to hold, how they kept their promises, and whom to ask for a document.

use crate::sync::{lock, read, write};
use crate::{CacheKey, View};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

/// Which of the other caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub usize);

/// What is counted of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often it was asked for a document.
    pub asked: u64,
    /// How often it had it.
    pub hits: u64,
    /// How often it had promised it, and did not have it.
    pub false_hits: u64,
    /// How often it did not answer in time, or made no sense.
    pub failures: u64,
    /// How many updates of its summary have come, and their bytes.
    pub updates: u64,
    /// See above.
    pub update_bytes: u64,
}

/// What is known of other caches.
#[derive(Debug)]
pub struct Peers {
    peers: Vec<Peer>,
}

#[derive(Debug, Default)]
struct Peer {
    known: RwLock<Option<Known>>,
    rest: Mutex<Rest>,
    asked: AtomicU64,
    hits: AtomicU64,
    false_hits: AtomicU64,
    failures: AtomicU64,
    updates: AtomicU64,
    update_bytes: AtomicU64,
}

#[derive(Debug)]
struct Known {
    view: Arc<View>,
    /// It is not believed any longer.
    until: Instant,
}

/// A cache that fails is left alone for a while, a longer one each time.
#[derive(Debug, Default)]
struct Rest {
    failures: u32,
    until: Option<Instant>,
}

/// For how long after the first failure, and at most.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It had the document.
    Hit,
    /// It did not.
    FalseHit,
    /// It did not answer in time, or made no sense.
    Failure,
}

impl Peer {
    fn updated(&self, bytes: u64) {
        self.updates.fetch_add(1, Relaxed);
        self.update_bytes.fetch_add(bytes, Relaxed);
    }
}

impl Peers {
    /// So many caches of which nothing is known yet.
    pub fn new(count: usize) -> Peers {
        Peers { peers: (0..count).map(|_| Peer::default()).collect() }
    }

    /// All of them.
    pub fn ids(&self) -> impl Iterator<Item = PeerId> + use<> {
        (0..self.peers.len()).map(PeerId)
    }

    /// Returns what is known of one, however old it is.
    pub fn view(&self, id: PeerId) -> Option<Arc<View>> {
        read(&self.peers.get(id.0)?.known).as_ref().map(|known| Arc::clone(&known.view))
    }

    /// Puts another view in place of the one that was known; who looks meanwhile sees one or the other. It is believed until
    /// then. `bytes` have travelled for it.
    pub fn replace(&self, id: PeerId, view: View, bytes: u64, until: Instant) {
        let Some(peer) = self.peers.get(id.0) else { return };
        *write(&peer.known) = Some(Known { view: Arc::new(view), until });
        peer.updated(bytes);
    }

    /// Notes that what is known of one is what it has now, and believed until then.
    pub fn confirm(&self, id: PeerId, bytes: u64, until: Instant) {
        let Some(peer) = self.peers.get(id.0) else { return };
        if let Some(known) = &mut *write(&peer.known) {
            known.until = until;
        }
        peer.updated(bytes);
    }

    /// Forgets what is known of one.
    pub fn forget(&self, id: PeerId) {
        if let Some(peer) = self.peers.get(id.0) {
            *write(&peer.known) = None;
        }
    }

    /// Whether one is left alone, since it has failed of late.
    pub fn rests(&self, id: PeerId, now: Instant) -> bool {
        self.peers.get(id.0).is_some_and(|peer| lock(&peer.rest).until.is_some_and(|until| now < until))
    }

    /// Returns the peers that promise a document, those first that kept their promises best.
    pub fn promising(&self, key: &CacheKey, now: Instant) -> Vec<PeerId> {
        let promises = |id: &PeerId| {
            let promises = |known: &Known| now <= known.until && known.view.contains(key);
            !self.rests(*id, now) && read(&self.peers[id.0].known).as_ref().is_some_and(promises)
        };
        let mut found: Vec<(f64, PeerId)> =
            self.ids().filter(promises).map(|id| (self.trust(id), id)).collect();
        found.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(x.cmp(y)));
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// The share of promises that one has kept; of one that was seldom asked, somewhat less than all.
    fn trust(&self, id: PeerId) -> f64 {
        let counts = self.counts(id);
        (counts.hits as f64 + 9.0) / (counts.asked as f64 + 10.0)
    }

    /// Notes what came of a question.
    pub fn note(&self, id: PeerId, outcome: Outcome, now: Instant) {
        let Some(peer) = self.peers.get(id.0) else { return };
        peer.asked.fetch_add(1, Relaxed);
        let counter = match outcome {
            Outcome::Hit => &peer.hits,
            Outcome::FalseHit => &peer.false_hits,
            Outcome::Failure => return self.note_failure(id, now),
        };
        counter.fetch_add(1, Relaxed);
        *lock(&peer.rest) = Rest::default();
    }

    /// Notes that one has failed that was asked before: it is left alone for a while.
    pub fn note_failure(&self, id: PeerId, now: Instant) {
        let Some(peer) = self.peers.get(id.0) else { return };
        peer.failures.fetch_add(1, Relaxed);
        let mut rest = lock(&peer.rest);
        // Those who were asked at the same time fail together.
        if rest.until.is_some_and(|until| now < until) {
            return;
        }
        let long = FIRST_REST.saturating_mul(1 << rest.failures.min(16)).min(LONGEST_REST);
        *rest = Rest { failures: rest.failures.saturating_add(1), until: Some(now + long) };
    }

    /// What was counted of one.
    pub fn counts(&self, id: PeerId) -> Counts {
        let Some(peer) = self.peers.get(id.0) else { return Counts::default() };
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        Counts {
            asked: read(&peer.asked),
            hits: read(&peer.hits),
            false_hits: read(&peer.false_hits),
            failures: read(&peer.failures),
            updates: read(&peer.updates),
            update_bytes: read(&peer.update_bytes),
        }
    }
}
