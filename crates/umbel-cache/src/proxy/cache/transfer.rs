//! The transfer of a body from a peer or origin to the client, and into the store.
//!
//! Other requests may wait until the response is stored, so a slow client must not hold it up. The
//! body is received as fast as it is sent, and a client that falls behind gets the rest from the
//! store.

use super::in_flight::{FetchLead, FetchOutcome};
use super::lookup::CacheRequest;
use super::pending_entry::{PendingEntry, ReceivedBody, StoreFailure};
use crate::PeerId;
use crate::error::{Error, Result, chain};
use crate::proxy::body::{self, PipeItem, data_len};
use crate::proxy::counters::Counter;
use crate::proxy::pace::Pace;
use crate::proxy::service::Service;
use crate::proxy::upstream::{Lease, UpstreamResponse};
use bytes::Bytes;
use http::header::{CONTENT_RANGE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE};
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, timeout};

/// The number of frames that are queued for a client.
const CLIENT_QUEUE_FRAMES: usize = 8;
/// The time for which the transfer waits for a client whose queue is full.
const CLIENT_WAIT: Duration = Duration::from_millis(100);

/// The largest number of bytes that are still received for the cache alone, after the client has
/// left.
const MAX_BACKGROUND_BYTES: u64 = 1 << 20;
/// The time in which they must be received.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(10);

/// The slowest rate at which a peer may send a body.
const MIN_PEER_BYTES_PER_SECOND: u32 = 128 << 10;

/// The source of a body.
pub(super) enum Source {
    Origin,
    /// A peer. If it fails or is slow, the origin completes the representation with this entity
    /// tag.
    Peer {
        id: PeerId,
        etag: HeaderValue,
    },
}

/// The client of a transfer.
enum Client {
    /// It receives frames as they arrive.
    Current(Sender),
    /// It has fallen behind at this offset, and gets the rest from the store.
    Behind(Sender, u64),
    /// It has closed its connection.
    Gone,
}

type Sender = mpsc::Sender<Result<PipeItem>>;

/// A transfer that goes on for the cache alone.
struct Background {
    deadline: Instant,
    /// Held until the transfer ends, to limit the number of such transfers.
    _permit: OwnedSemaphorePermit,
}

/// The transfer of a body.
pub(super) struct Transfer {
    service: Arc<Service>,
    request: CacheRequest,
    source: Source,
    incoming: Incoming,
    lease: Option<Lease>,
    /// Counts the bytes from this source.
    counter: Counter,
    client: Client,
    /// The length of the body, if it is known.
    len: Option<u64>,
    received: u64,
    /// The total time spent waiting for frames.
    time_waited: Duration,
    /// The pace of the origin.
    pace: Pace,
    background: Option<Background>,
}

impl Transfer {
    /// Returns a transfer and the body that the client receives.
    pub fn new(
        service: &Arc<Service>,
        request: CacheRequest,
        response: UpstreamResponse,
        source: Source,
    ) -> (Transfer, body::Body) {
        let (sender, receiver) = mpsc::channel(CLIENT_QUEUE_FRAMES);
        let len = response.len();
        let counter = match source {
            Source::Origin => &service.counters.bytes_from_origins,
            Source::Peer { .. } => &service.counters.bytes_from_peers,
        };
        let transfer = Transfer {
            service: Arc::clone(service),
            request,
            source,
            incoming: response.incoming,
            lease: Some(response.lease),
            counter: counter.clone(),
            client: Client::Current(sender),
            len,
            received: 0,
            time_waited: Duration::ZERO,
            pace: Pace::new(service.limits.min_rate()),
            background: None,
        };
        (transfer, body::Body::piped(receiver, len))
    }

    /// Receives the body, sends it to the client and stores it. The fetch ends when the response is
    /// stored.
    pub async fn run(mut self, mut entry: Option<PendingEntry>, mut lead: Option<FetchLead>) {
        loop {
            let frame = match self.next_frame().await {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    self.service.counters.dropped.increment();
                    let (url, why) = (&self.request.resource.uri, chain(&error));
                    self.service.log.line(format_args!("{url} ended too early: {why}"));
                    drop((entry, lead));
                    return self.send_error(error).await;
                }
            };
            let mut is_sent = false;
            if let Some(bytes) = frame.data_ref()
                && let Some(pending) = entry.take()
            {
                match self.store(pending, bytes).await {
                    Ok(pending) => entry = Some(pending),
                    Err(failure) => {
                        // Let the followers fetch the response themselves.
                        FetchLead::end(lead.take(), FetchOutcome::NotStored);
                        self.report_failure(&failure);
                        is_sent = self.catch_up(*failure.received).await;
                    }
                }
            }
            if !is_sent {
                self.send(frame, entry.is_some()).await;
            }
            if matches!(self.client, Client::Gone) {
                let has_followers = lead.as_ref().is_some_and(FetchLead::has_followers);
                if entry.is_none() || !has_followers && !self.is_nearly_complete() {
                    return;
                }
                if !self.continue_in_background() {
                    return;
                }
            }
        }
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
        if let Some(entry) = entry {
            self.finish(entry, lead).await;
        }
    }

    /// Stores the complete response. A client that has fallen behind gets the rest from the store.
    async fn finish(mut self, entry: PendingEntry, lead: Option<FetchLead>) {
        let stored = entry.commit(matches!(self.client, Client::Behind(..))).await;
        let outcome = if stored.is_ok() { FetchOutcome::Stored } else { FetchOutcome::NotStored };
        FetchLead::end(lead, outcome);
        match stored {
            Ok(body) => {
                self.service.counters.stored.increment();
                if let Some(body) = body {
                    self.catch_up(ReceivedBody::from_stored(Some(body))).await;
                }
            }
            Err(failure) => {
                self.report_failure(&failure);
                self.catch_up(*failure.received).await;
            }
        }
    }

    /// Sends the missed part of the body to a client that has fallen behind, and returns whether it
    /// had.
    async fn catch_up(&mut self, body: ReceivedBody) -> bool {
        let (sender, offset) = match std::mem::replace(&mut self.client, Client::Gone) {
            Client::Behind(sender, offset) => (sender, offset),
            other => {
                self.client = other;
                return false;
            }
        };
        self.client = Client::Current(sender.clone());
        let ReceivedBody { stored: Some(stored), buffer } = body else {
            self.send_error(Error::StoredBodyLost).await;
            return true;
        };
        // The missed part may begin in the stored part or in the buffer after it.
        let start = usize::try_from(offset.saturating_sub(stored.len())).unwrap_or(usize::MAX);
        let buffer = Bytes::from(buffer);
        let buffer = buffer.slice(start.min(buffer.len())..);
        if offset < stored.len() && sender.send(Ok(PipeItem::Stored(stored, offset))).await.is_err() {
            return true;
        }
        if !buffer.is_empty() {
            let _ = sender.send(Ok(PipeItem::Frame(Frame::data(buffer)))).await;
        }
        true
    }

    /// Sends a frame to the client. If the response is being stored, a slow client falls behind.
    async fn send(&mut self, frame: Frame<Bytes>, is_stored: bool) {
        let sender = match &self.client {
            Client::Current(sender) | Client::Behind(sender, _) if sender.is_closed() => {
                self.client = Client::Gone;
                return;
            }
            Client::Behind(..) | Client::Gone => return,
            Client::Current(sender) => sender.clone(),
        };
        let reserved = sender.reserve();
        let permit = if is_stored { timeout(CLIENT_WAIT, reserved).await } else { Ok(reserved.await) };
        match permit {
            Ok(Ok(permit)) => permit.send(Ok(PipeItem::Frame(frame))),
            Ok(Err(_)) => self.client = Client::Gone,
            Err(_) => self.client = Client::Behind(sender.clone(), self.received - data_len(&frame)),
        }
    }

    /// Ends the body of the client with an error.
    async fn send_error(&self, error: Error) {
        if let Client::Current(sender) | Client::Behind(sender, _) = &self.client {
            let _ = sender.send(Err(error)).await;
        }
    }

    /// Stores a part of the body, unless the body gets too large.
    async fn store(&self, entry: PendingEntry, bytes: &Bytes) -> Result<PendingEntry, StoreFailure> {
        let max = self.service.limits.max_object_bytes;
        if entry.len() + bytes.len() as u64 > max {
            let mut failure = entry.fail(Error::TooLarge { max });
            failure.received.buffer.extend_from_slice(bytes);
            return Err(failure);
        }
        entry.append(bytes).await
    }

    fn report_failure(&self, failure: &StoreFailure) {
        self.service.counters.dropped.increment();
        let (url, why) = (&self.request.resource.uri, chain(&failure.error));
        self.service.log.line(format_args!("{url} cannot be stored: {why}"));
    }

    /// Returns whether so little of the body is missing that it is worth receiving for the cache
    /// alone.
    fn is_nearly_complete(&self) -> bool {
        self.len.is_some_and(|len| len.saturating_sub(self.received) <= MAX_BACKGROUND_BYTES)
    }

    /// Continues the transfer for the cache alone, and returns whether the limit of such transfers
    /// permits it.
    fn continue_in_background(&mut self) -> bool {
        if self.background.is_none() {
            let permit = Arc::clone(&self.service.cache.background_fetches).try_acquire_owned();
            self.background = permit
                .ok()
                .map(|permit| Background { deadline: Instant::now() + BACKGROUND_TIMEOUT, _permit: permit });
        }
        self.background.is_some()
    }

    /// Receives the next frame. If a peer fails, the origin takes its place.
    async fn next_frame(&mut self) -> Result<Option<Frame<Bytes>>> {
        loop {
            match self.receive().await {
                Ok(frame) => {
                    let bytes = frame.as_ref().map_or(0, data_len);
                    self.received += bytes;
                    self.counter.add(bytes);
                    return Ok(frame);
                }
                Err(error) => match std::mem::replace(&mut self.source, Source::Origin) {
                    Source::Peer { id, etag } => {
                        self.service.peers.record_failure(id);
                        self.resume_from_origin(etag, error).await?;
                    }
                    Source::Origin => return Err(error),
                },
            }
        }
    }

    async fn receive(&mut self) -> Result<Option<Frame<Bytes>>> {
        // A peer has to be quick, since the origin can take its place.
        let limits = &self.service.limits;
        let (wait, within) = match self.source {
            Source::Peer { .. } if is_slow(self.received, self.time_waited, limits.peer_timeout) => {
                return Err(Error::TooSlow);
            }
            Source::Peer { .. } => (limits.peer_timeout, limits.peer_timeout),
            Source::Origin => (self.pace.remaining(), self.pace.window()),
        };
        let start = Instant::now();
        let (wait, within) = match &self.background {
            Some(background) => {
                let left = background.deadline.saturating_duration_since(start);
                (left.min(wait), BACKGROUND_TIMEOUT.min(within))
            }
            None => (wait, within),
        };
        let frame = timeout(wait, self.incoming.frame()).await;
        let waited = start.elapsed();
        self.time_waited += waited;
        match frame {
            Err(_) => Err(Error::Stalled { within }),
            Ok(None) => Ok(None),
            Ok(Some(Ok(frame))) => {
                if matches!(self.source, Source::Origin) {
                    self.pace.record(data_len(&frame), waited);
                }
                Ok(Some(frame))
            }
            Ok(Some(Err(error))) => Err(Error::IncompleteBody(error)),
        }
    }

    /// Requests the rest of a body that a peer has begun from the origin. Fails unless the origin
    /// has the very same representation.
    async fn resume_from_origin(&mut self, etag: HeaderValue, error: Error) -> Result<()> {
        let (url, why) = (&self.request.resource.uri, chain(&error));
        self.service.log.line(format_args!("a peer did not complete {url}, so the origin has to: {why}"));
        let mut parts = self.request.parts.clone();
        for condition in [IF_NONE_MATCH, IF_MODIFIED_SINCE] {
            parts.headers.remove(condition);
        }
        let Ok(range) = HeaderValue::try_from(format!("bytes={}-", self.received)) else { return Err(error) };
        parts.headers.insert(RANGE, range);
        parts.headers.insert(IF_RANGE, etag.clone());
        let (resource, requester) = (&self.request.resource, self.request.requester);
        let response = self.service.upstream.send_to_origin(&parts, resource, requester, None).await?;
        let expected = self.len.map(|len| format!("bytes {}-{}/{len}", self.received, len.saturating_sub(1)));
        let content_range = response.parts.headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
        if response.parts.status != StatusCode::PARTIAL_CONTENT
            || expected.as_deref() != content_range
            || response.parts.headers.get(ETAG) != Some(&etag)
        {
            return Err(Error::OriginMismatch { source: error.into() });
        }
        (self.incoming, self.lease) = (response.incoming, Some(response.lease));
        self.counter = self.service.counters.bytes_from_origins.clone();
        Ok(())
    }
}

/// Returns whether a peer sends slower than the minimum rate, not counting a time of grace.
fn is_slow(received: u64, time_waited: Duration, grace: Duration) -> bool {
    let seconds = time_waited.saturating_sub(grace).as_secs_f64();
    (received as f64) < seconds * f64::from(MIN_PEER_BYTES_PER_SECOND)
}
