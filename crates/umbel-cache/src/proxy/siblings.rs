//! Peers are asked for what their summaries promise, all within one time limit.

use super::body::{Body, read_to_end};
use super::fetch::{Answer, respond};
use super::in_flight::{FetchLead, FetchOutcome};
use super::lookup::Question;
use super::pump::{Pump, Saving};
use super::reach::Reach;
use super::service::Service;
use crate::error::chain;
use crate::rules::{Reuse, StoredHead};
use crate::{PeerId, PeerOutcome};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, COOKIE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderValue, Response, StatusCode};
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tokio::time::timeout_at;

/// Up to this size an answer of a peer has come before it is believed.
const WHOLE: usize = 1 << 20;

/// What a peer has.
pub(super) struct FromPeer {
    peer: PeerId,
    answer: Answer,
    known: StoredHead,
    /// All of its body, or it is large and has a tag by which the origin can go on with it.
    body: Result<Bytes, HeaderValue>,
}

impl Service {
    /// Asks the peers that promise a page, one after the other.
    pub async fn ask_peers(self: &Arc<Service>, question: &Question) -> Option<FromPeer> {
        // What is for somebody is not asked for elsewhere, and who wants it from the origin gets it from there.
        // Peers do not know of changes that went through here.
        if !question.common || self.history.is_invalidated(&question.resource.key) {
            return None;
        }
        let start = Instant::now();
        let until = (start + self.limits.peer_timeout).into();
        for id in self.peers.candidates(&question.resource.key, start) {
            if !self.may_ask(id, question) {
                continue;
            }
            let began = Instant::now();
            let asked = timeout_at(until, self.ask_peer(id, question)).await;
            let late = asked.is_err();
            if late && began.elapsed() < self.limits.peer_timeout / 2 {
                // Others have taken most of the time.
                return None;
            }
            let (mut outcome, found) = asked.unwrap_or((PeerOutcome::Failure, None));
            if outcome == PeerOutcome::FalseHit && began.elapsed() > self.limits.peer_timeout / 2 {
                // To learn so late that it does not have it is worse than not to ask.
                (outcome, _) =
                    self.note_trouble_with(id, "it takes long to say that it does not have a page");
            }
            self.peers.record(id, outcome, Instant::now());
            if late {
                self.note_trouble_with(
                    id,
                    &format!("it has no answer within {:?}", self.limits.peer_timeout),
                );
            }
            if found.is_some() || late {
                return found;
            }
        }
        None
    }

    /// Whether a peer is asked for a page. What `localhost` has is something else on another machine; and what is for this
    /// machine is not fetched for others, from a peer that takes us for one who is here.
    fn may_ask(&self, id: PeerId, question: &Question) -> bool {
        let peer_is_here = self.neighbours[id.0].address.is_local();
        (peer_is_here || !question.resource.origin.is_local())
            && !(peer_is_here && question.reach == Reach::RemoteOnly)
    }

    fn note_trouble_with(&self, id: PeerId, why: &str) -> (PeerOutcome, Option<FromPeer>) {
        let address = &self.neighbours[id.0].address;
        self.log.line(format_args!("peer {address} fails, and is left alone for a while: {why}"));
        (PeerOutcome::Failure, None)
    }

    async fn ask_peer(&self, id: PeerId, question: &Question) -> (PeerOutcome, Option<FromPeer>) {
        let mut parts = question.parts.clone();
        // All of it is wanted, to be kept.
        for condition in [IF_NONE_MATCH, IF_MODIFIED_SINCE] {
            parts.headers.remove(condition);
        }
        // What is only for whoever sends it is not for peers to know; an answer that depends on it will not fit.
        parts.headers.remove(COOKIE);
        let asked = parts.clone();
        parts.headers.append(CACHE_CONTROL, HeaderValue::from_static("only-if-cached"));
        self.sign(&mut parts.headers);
        let address = &self.neighbours[id.0].address;
        let (answer, lease) = match self.pool.send(address, Reach::Anywhere, &parts, None).await {
            Ok(answer) => answer,
            Err(error) => return self.note_trouble_with(id, &chain(&error)),
        };
        let (parts, incoming) = answer.into_parts();
        let mut answer = Answer { parts, incoming, lease };
        if answer.parts.status == StatusCode::GATEWAY_TIMEOUT {
            // It is read, so that the connection can be used again.
            if read_to_end(&mut answer.incoming, WHOLE).await.is_ok() {
                answer.lease.give_back();
            }
            return (PeerOutcome::FalseHit, None);
        }
        // What it must not have is no answer, and what is stale, or answers another question, none that helps.
        let now = SystemTime::now();
        let Some(known) = StoredHead::from_response(&asked, &answer.parts, now) else {
            let status = answer.parts.status.as_u16();
            return self.note_trouble_with(id, &format!("it answers {status} with what no cache may have"));
        };
        if !matches!(known.reuse(&question.parts, now), Reuse::Fresh) {
            return (PeerOutcome::FalseHit, None);
        }
        if !answer.has_an_end() {
            return self.note_trouble_with(id, "it does not say where its answer ends");
        }
        if answer.len().is_none_or(|len| len <= WHOLE as u64) {
            return match read_to_end(&mut answer.incoming, WHOLE).await {
                Ok(body) => (PeerOutcome::Hit, Some(FromPeer { peer: id, answer, known, body: Ok(body) })),
                Err(error) => self.note_trouble_with(id, &chain(&error)),
            };
        }
        let strong = |tag: &&HeaderValue| tag.as_bytes().starts_with(b"\"");
        match answer.parts.headers.get(ETAG).filter(strong).cloned() {
            Some(tag) => (PeerOutcome::Hit, Some(FromPeer { peer: id, answer, known, body: Err(tag) })),
            // It is there, but could not be had to its end if the peer failed.
            None => (PeerOutcome::Hit, None),
        }
    }

    /// Gives an answer of a peer, and keeps it if it may.
    pub fn deliver_from_peer(
        self: &Arc<Service>,
        question: Question,
        found: FromPeer,
        lead: Option<FetchLead>,
    ) -> Response<Body> {
        self.counters.peer_hits.increment();
        let FromPeer { peer, answer, known, body } = found;
        let saving = self.saving(&question, &answer, Some(known));
        let stored = if saving.is_some() { ";stored" } else { "" };
        let said = format!("umbel;fwd=uri-miss{stored};detail=\"peer {}\"", self.neighbours[peer.0].address);
        let said = HeaderValue::try_from(said).unwrap_or(HeaderValue::from_static("umbel;fwd=uri-miss"));
        let headers = self.outgoing(&answer.parts.headers, said);
        let status = answer.parts.status;
        let lead = lead.and_then(|lead| {
            if saving.is_some() {
                return Some(lead);
            }
            FetchLead::end(Some(lead), FetchOutcome::NotStored);
            None
        });
        match body {
            Ok(bytes) => {
                self.counters.bytes_from_peers.add(bytes.len() as u64);
                answer.lease.give_back();
                if let Some(saving) = saving {
                    tokio::spawn(keep(Arc::clone(self), saving, bytes.clone(), lead));
                }
                respond(status, headers, Body::full(bytes))
            }
            Err(tag) => {
                let counter = self.counters.bytes_from_peers.clone();
                let (pump, body) = Pump::new(self, question, answer, counter);
                tokio::spawn(pump.resuming(peer, tag).run(saving, lead));
                respond(status, headers, body)
            }
        }
    }
}

/// Keeps what has come already. Those who wait for it wait until that is done.
async fn keep(service: Arc<Service>, saving: Saving, bytes: Bytes, lead: Option<FetchLead>) {
    let kept = async { saving.add(&bytes).await?.finish(false).await };
    let end = match kept.await {
        Ok(_) => {
            service.counters.stored.increment();
            FetchOutcome::Stored
        }
        Err(lost) => {
            let why = chain(&lost.why);
            service.log.line(format_args!("what a peer has sent cannot be kept: {why}"));
            FetchOutcome::NotStored
        }
    };
    FetchLead::end(lead, end);
}
