//! Requests to the peers whose summaries contain a key, all within one time limit.

use super::PeerGroup;
use crate::error::chain;
use crate::proxy::body::read_to_end;
use crate::proxy::cache::CacheRequest;
use crate::proxy::reach::Reach;
use crate::proxy::upstream::UpstreamResponse;
use crate::rules::{Reuse, Source, StoredHead};
use crate::{PeerId, PeerOutcome};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, COOKIE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderValue, StatusCode};
use std::time::{Instant, SystemTime};
use tokio::time::timeout_at;

/// The largest body that is received completely from a peer before any of it is sent to the client.
const MAX_BUFFERED_BYTES: usize = 1 << 20;

/// A response of a peer that may be stored and sent to the client.
pub(in crate::proxy) struct PeerResponse {
    pub peer: PeerId,
    pub response: UpstreamResponse,
    pub head: StoredHead,
    pub body: PeerBody,
}

/// The body of a response of a peer.
pub(in crate::proxy) enum PeerBody {
    /// The complete body.
    Complete(Bytes),
    /// A large body that is still to be received. If the peer fails, the origin can complete the
    /// representation with this strong entity tag.
    Streaming { etag: HeaderValue },
}

impl PeerGroup {
    /// Requests a response from the peers whose summaries contain its key, one after the other.
    pub async fn request(&self, request: &CacheRequest) -> Option<PeerResponse> {
        let start = Instant::now();
        let deadline = (start + self.timeout).into();
        for id in self.views.candidates(&request.resource.key, start) {
            if !self.may_ask(id, request) {
                continue;
            }
            let began = Instant::now();
            let result = timeout_at(deadline, self.request_from(id, request)).await;
            let timed_out = result.is_err();
            if timed_out && began.elapsed() < self.timeout / 2 {
                // Other peers have used up most of the time.
                return None;
            }
            let (mut outcome, response) = result.unwrap_or((PeerOutcome::Failure, None));
            if outcome == PeerOutcome::FalseHit && began.elapsed() > self.timeout / 2 {
                // A miss that takes this long costs more than not asking the peer.
                (outcome, _) = self.report_failure(id, "it is slow to report a miss");
            }
            self.views.record(id, outcome, Instant::now());
            if timed_out {
                self.report_failure(id, &format!("it did not respond within {:?}", self.timeout));
            }
            if response.is_some() || timed_out {
                return response;
            }
        }
        None
    }

    /// Returns whether a peer may be asked for a resource. On another machine `localhost` is
    /// another host. A peer on this machine treats the proxy as a local client, so it must not be
    /// asked on behalf of a remote one.
    fn may_ask(&self, id: PeerId, request: &CacheRequest) -> bool {
        let peer_is_local = self.endpoint(id).address.is_local();
        (peer_is_local || !request.resource.origin.is_local())
            && !(peer_is_local && request.requester.reach() == Reach::RemoteOnly)
    }

    fn report_failure(&self, id: PeerId, why: &str) -> (PeerOutcome, Option<PeerResponse>) {
        let address = &self.endpoint(id).address;
        self.log.line(format_args!("peer {address} failed and is not used for a while: {why}"));
        (PeerOutcome::Failure, None)
    }

    async fn request_from(&self, id: PeerId, request: &CacheRequest) -> (PeerOutcome, Option<PeerResponse>) {
        let mut parts = request.parts.clone();
        // The whole response is needed to store it.
        for condition in [IF_NONE_MATCH, IF_MODIFIED_SINCE] {
            parts.headers.remove(condition);
        }
        // Cookies are for the origin only. A response that varies on them will not match.
        parts.headers.remove(COOKIE);
        let sent = parts.clone();
        parts.headers.append(CACHE_CONTROL, HeaderValue::from_static("only-if-cached"));
        self.upstream.via.append_to(&mut parts.headers);
        let mut response = match self.upstream.send_to_peer(&self.endpoint(id).address, &parts).await {
            Ok(response) => response,
            Err(error) => return self.report_failure(id, &chain(&error)),
        };
        if response.parts.status == StatusCode::GATEWAY_TIMEOUT {
            // Read the body, so that the connection can be used again.
            if read_to_end(&mut response.incoming, MAX_BUFFERED_BYTES).await.is_ok() {
                response.lease.give_back();
            }
            return (PeerOutcome::FalseHit, None);
        }
        // Ignore responses that a shared cache may not store, that are stale, or whose `Vary` does
        // not match.
        let now = SystemTime::now();
        let Some(head) = StoredHead::from_response(&sent, &response.parts, now) else {
            let status = response.parts.status.as_u16();
            return self.report_failure(
                id,
                &format!("it sent a response with status {status} that no shared cache may store"),
            );
        };
        if !matches!(head.reuse(&request.parts, now), Reuse::Fresh) {
            return (PeerOutcome::FalseHit, None);
        }
        let head = head.with_source(Source::Peer);
        if !response.is_delimited() {
            return self.report_failure(id, "the end of its response cannot be detected");
        }
        if response.len().is_none_or(|len| len <= MAX_BUFFERED_BYTES as u64) {
            return match read_to_end(&mut response.incoming, MAX_BUFFERED_BYTES).await {
                Ok(bytes) => {
                    let body = PeerBody::Complete(bytes);
                    (PeerOutcome::Hit, Some(PeerResponse { peer: id, response, head, body }))
                }
                Err(error) => self.report_failure(id, &chain(&error)),
            };
        }
        let is_strong = |etag: &&HeaderValue| etag.as_bytes().starts_with(b"\"");
        match response.parts.headers.get(ETAG).filter(is_strong).cloned() {
            Some(etag) => {
                let body = PeerBody::Streaming { etag };
                (PeerOutcome::Hit, Some(PeerResponse { peer: id, response, head, body }))
            }
            // Without a strong tag the origin could not complete the body if the peer failed.
            None => (PeerOutcome::Hit, None),
        }
    }
}
