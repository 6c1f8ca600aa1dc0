//! What peers hold is asked for again and again: only what has changed, of those that know how to tell that.

use super::PeerUrl;
use super::body::read_to_end;
use super::manage::SUMMARY;
use super::reach::Reach;
use super::service::Service;
use super::target::HostPort;
use crate::error::{Error, Result, chain};
use crate::rules::StoredHead;
use crate::sync::lock;
use crate::update::UPDATE_NAME;
use crate::{Applied, CacheDigest, PeerId, Update, View};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, IF_MODIFIED_SINCE, LAST_MODIFIED};
use http::{HeaderValue, Request, StatusCode, response};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tokio::time::{sleep, timeout};

/// A peer, and how it tells what it has.
pub(super) struct Neighbour {
    pub address: HostPort,
    told: Mutex<Told>,
}

/// What a peer has told last.
#[derive(Default)]
struct Told {
    /// It has a digest of Squid, of this time.
    digest: Option<Option<HeaderValue>>,
    /// Whether the last time went wrong, or right, so that it need not be said again.
    well: Option<bool>,
}

/// No summary has more bytes, and bits when it is spread out: those of 33 million pages.
const MOST: usize = 64 << 20;
const MOST_BITS: u32 = 1 << 29;

/// How long to wait for a large one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Digests of Squid are for an hour, but it is asked more often whether there is another one.
const LONGEST: Duration = Duration::from_secs(3600);
const OFTEN: Duration = Duration::from_secs(60);

/// For how many times the time between two questions an answer is believed.
const BELIEVED: u32 = 3;

impl Neighbour {
    pub fn new(url: &PeerUrl) -> Neighbour {
        Neighbour { address: url.0.clone(), told: Mutex::default() }
    }

    /// What it is, as far as that is known.
    pub fn kind(&self) -> &'static str {
        if lock(&self.told).digest.is_some() { "squid" } else { "umbel" }
    }
}

impl Service {
    /// Follows what a peer has, for as long as the proxy runs.
    pub async fn follow(self: Arc<Service>, id: PeerId, every: Duration) {
        loop {
            let next = match timeout(PATIENCE, self.learn(id, every)).await {
                Ok(Ok(next)) => {
                    let neighbour = &self.neighbours[id.0];
                    if lock(&neighbour.told).well.replace(true) != Some(true) {
                        let pages = self.peers.view(id).map_or(0, |view| view.key_count());
                        let (address, kind) = (&neighbour.address, neighbour.kind());
                        self.log
                            .line(format_args!("peer {address} ({kind}) tells that it has {pages} pages"));
                    }
                    next
                }
                Ok(Err(error)) => self.note_trouble(id, &chain(&error), every),
                Err(_) => self.note_trouble(id, "it is too slow", every),
            };
            sleep(next).await;
        }
    }

    fn note_trouble(&self, id: PeerId, why: &str, every: Duration) -> Duration {
        let neighbour = &self.neighbours[id.0];
        if lock(&neighbour.told).well.replace(false) != Some(false) {
            self.log.line(format_args!("peer {} does not tell what it has: {why}", neighbour.address));
        }
        every
    }

    /// Asks a peer what it has, and returns when to ask again.
    async fn learn(&self, id: PeerId, every: Duration) -> Result<Duration> {
        let digest = lock(&self.neighbours[id.0].told).digest.clone();
        match digest {
            Some(since) => self.learn_digest(id, every, since).await,
            None => match self.learn_summary(id, every).await {
                Ok(next) => Ok(next),
                Err(summary) => self.learn_digest(id, every, None).await.map_err(|digest| {
                    // An unreachable peer fails both requests with the same error; report it once.
                    if chain(&digest) == chain(&summary) {
                        return digest;
                    }
                    Error::NoSummary { summary: summary.into(), digest: digest.into() }
                }),
            },
        }
    }

    async fn learn_summary(&self, id: PeerId, every: Duration) -> Result<Duration> {
        let view = self.peers.view(id);
        let path = match view.as_ref().and_then(|view| view.version()) {
            Some(version) => format!("{SUMMARY}?since={}.{}", version.epoch, version.generation),
            None => SUMMARY.to_owned(),
        };
        let (parts, bytes) = self.ask_neighbour(id, &path, None).await?;
        let kind = parts.headers.get(CONTENT_TYPE);
        if parts.status != StatusCode::OK || kind.is_none_or(|kind| kind != Update::MEDIA_TYPE) {
            return Err(Error::UnexpectedStatus { status: parts.status.as_u16(), wanted: "summary" });
        }
        let length = bytes.len() as u64;
        // A large one takes a moment. Whoever looks meanwhile sees the one before.
        let learned = tokio::task::spawn_blocking(move || {
            let update = Update::decode(&bytes)?;
            if update.bits() > MOST_BITS {
                return Err(Error::malformed(UPDATE_NAME, format!("it has more than {MOST_BITS} bits")));
            }
            let mut next = view.map_or_else(View::default, |view| (*view).clone());
            next.apply(&update).map(|applied| (applied, next))
        });
        let (applied, next) = learned.await??;
        let until = Instant::now() + every * BELIEVED;
        match applied {
            Applied::Same => self.peers.renew_view(id, length, until),
            Applied::Replaced | Applied::Changed(_) => self.peers.set_view(id, next, length, until),
            Applied::Unknown => {
                // It has begun anew, or has been asked by too old a version. All of it comes next time.
                self.peers.remove_view(id);
                return Ok(every / 10);
            }
        }
        Ok(every)
    }

    async fn learn_digest(
        &self,
        id: PeerId,
        every: Duration,
        since: Option<HeaderValue>,
    ) -> Result<Duration> {
        let (parts, bytes) = match self.ask_neighbour(id, CacheDigest::PATH, since.as_ref()).await {
            Ok(answer) => answer,
            Err(error) => {
                // What is there next may be another one.
                lock(&self.neighbours[id.0].told).digest = None;
                return Err(error);
            }
        };
        let now = SystemTime::now();
        let asked = Request::new(()).into_parts().0;
        let lifetime = StoredHead::from_response(&asked, &parts, now)
            .map_or(every, |known| known.remaining_lifetime(now));
        // It may be made anew earlier, by a Squid that has started anew.
        let next = lifetime.clamp(every, OFTEN.max(every));
        let (length, until) =
            (bytes.len() as u64, Instant::now() + (lifetime.min(LONGEST) + every) * BELIEVED);
        if parts.status == StatusCode::NOT_MODIFIED && since.is_some() {
            self.peers.renew_view(id, length, until);
            return Ok(every);
        }
        if parts.status != StatusCode::OK {
            lock(&self.neighbours[id.0].told).digest = None;
            return Err(Error::UnexpectedStatus { status: parts.status.as_u16(), wanted: "digest" });
        }
        let digest = CacheDigest::decode(&bytes)?;
        self.peers.set_view(id, View::from_digest(&digest), length, until);
        lock(&self.neighbours[id.0].told).digest = Some(parts.headers.get(LAST_MODIFIED).cloned());
        Ok(next)
    }

    async fn ask_neighbour(
        &self,
        id: PeerId,
        path: &str,
        since: Option<&HeaderValue>,
    ) -> Result<(response::Parts, Bytes)> {
        let address = &self.neighbours[id.0].address;
        let mut parts = Request::new(()).into_parts().0;
        parts.uri = path.parse().map_err(|_| Error::InvalidTarget("this is no path"))?;
        let host = address.to_string().parse().map_err(|_| Error::InvalidTarget("this is no host"))?;
        parts.headers.insert(HOST, host);
        if let Some(since) = since {
            parts.headers.insert(IF_MODIFIED_SINCE, since.clone());
        }
        let (answer, lease) = self.pool.send(address, Reach::Anywhere, &parts, None).await?;
        let (parts, mut incoming) = answer.into_parts();
        let body = read_to_end(&mut incoming, MOST).await?;
        lease.give_back();
        Ok((parts, body))
    }
}
