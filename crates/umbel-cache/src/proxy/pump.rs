//! An answer on its way to whoever asked for it, and into the store.
//!
//! Others may wait until it is in the store, so whoever asked first and reads slowly does not hold it up: it comes as fast as the
//! origin sends it, and the slow one gets the rest from the store.

use super::body::{self, PipeItem, data_len};
use super::counters::Counter;
use super::fetch::Answer;
use super::in_flight::{FetchLead, FetchOutcome};
use super::lookup::Question;
use super::pool::Lease;
use super::service::Service;
use crate::PeerId;
use crate::error::{Error, Result, chain};
use crate::store::{Body, EntryWriter};
use bytes::Bytes;
use http::header::{CONTENT_RANGE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE};
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

/// How many frames wait for whoever asked, and how long one more is held back for it.
const AHEAD: usize = 8;
const PACE: Duration = Duration::from_millis(100);

/// So much is written to disk at a time.
const BATCH: usize = 256 << 10;

/// If whoever asked has gone, no more than this is fetched for the cache alone, and for no longer.
const REST: u64 = 1 << 20;
const REST_TIME: Duration = Duration::from_secs(10);

/// A document that is being kept.
pub(super) struct Saving {
    writer: EntryWriter,
    /// What is known of it.
    head: Vec<u8>,
    /// What is not written yet. It is copied: what comes in small pieces would hold large ones.
    buffer: Vec<u8>,
}

/// A document that cannot be kept.
pub(super) struct Lost {
    pub why: Error,
    so_far: Box<SoFar>,
}

/// What has come of a document: what was written of it, unless that cannot be read, and what was to be written next.
#[derive(Default)]
struct SoFar {
    written: Option<Body>,
    buffer: Vec<u8>,
}

impl SoFar {
    /// All of it was written, if anything.
    fn written(written: Option<Body>) -> SoFar {
        SoFar { written, ..SoFar::default() }
    }
}

impl Saving {
    pub fn new(writer: EntryWriter, head: Vec<u8>) -> Saving {
        Saving { writer, head, buffer: Vec::new() }
    }

    fn len(&self) -> u64 {
        self.writer.len() + self.buffer.len() as u64
    }

    fn lost(self, why: Error) -> Lost {
        let so_far = SoFar { written: self.writer.read_back().ok(), buffer: self.buffer };
        Lost { why, so_far: so_far.into() }
    }

    /// Takes more of it.
    pub async fn add(mut self, bytes: &[u8]) -> Result<Saving, Lost> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() < BATCH { Ok(self) } else { self.flush().await }
    }

    async fn flush(mut self) -> Result<Saving, Lost> {
        let flushed = tokio::task::spawn_blocking(move || match self.writer.write(&self.buffer) {
            Ok(()) => {
                self.buffer.clear();
                Ok(self)
            }
            Err(error) => Err(self.lost(error)),
        });
        flushed.await.unwrap_or_else(|error| Err(Lost { why: error.into(), so_far: Box::default() }))
    }

    /// It is whole. If it is to be read as well, that can be done whatever becomes of it.
    pub async fn finish(self, read: bool) -> Result<Option<Body>, Lost> {
        let Saving { writer, head, .. } = self.flush().await?;
        let written = read.then(|| writer.read_back());
        let committed = tokio::task::spawn_blocking(move || writer.commit(head)).await;
        match committed.map_err(Error::from).flatten() {
            Ok(_) => written.transpose().map_err(|why| Lost { why, so_far: Box::default() }),
            Err(why) => Err(Lost { why, so_far: SoFar::written(written.and_then(Result::ok)).into() }),
        }
    }
}

/// An answer on its way.
pub(super) struct Pump {
    service: Arc<Service>,
    question: Question,
    incoming: Incoming,
    lease: Option<Lease>,
    counter: Counter,
    to: Option<mpsc::Sender<Result<PipeItem>>>,
    /// From where on whoever asked gets it from the store.
    lags: Option<u64>,
    /// How long it is, if that is known, and how much has come.
    len: Option<u64>,
    come: u64,
    /// What the origin is told to get the rest from it, should a peer fail.
    resume: Option<(PeerId, HeaderValue)>,
    /// How long it was waited for more.
    waited: Duration,
    /// Nobody but the cache wants it, and not for longer than that.
    until: Option<Instant>,
}

impl Pump {
    /// What brings an answer, and the body that it comes out of.
    pub fn new(
        service: &Arc<Service>,
        question: Question,
        answer: Answer,
        counter: Counter,
    ) -> (Pump, body::Body) {
        let (to, from) = mpsc::channel(AHEAD);
        let len = answer.len();
        let pump = Pump {
            service: Arc::clone(service),
            question,
            incoming: answer.incoming,
            lease: Some(answer.lease),
            counter,
            to: Some(to),
            lags: None,
            len,
            come: 0,
            resume: None,
            waited: Duration::ZERO,
            until: None,
        };
        (pump, body::Body::piped(from, len))
    }

    /// If the peer fails from which it comes, or is slow, the origin gives the rest of the document with this tag.
    pub fn resuming(mut self, peer: PeerId, tag: HeaderValue) -> Pump {
        self.resume = Some((peer, tag));
        self
    }

    /// Brings the answer to whoever asked, and into the store. Those who wait for it wait until that is done.
    pub async fn run(mut self, mut saving: Option<Saving>, mut lead: Option<FetchLead>) {
        let mut alone = None;
        loop {
            let frame = match self.next().await {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    self.service.counters.dropped.increment();
                    let (url, why) = (&self.question.resource.uri, chain(&error));
                    self.service.log.line(format_args!("{url} came to an end too early: {why}"));
                    drop((saving, lead));
                    return self.end_early(error).await;
                }
            };
            let mut passed = false;
            if let Some(bytes) = frame.data_ref()
                && let Some(keeping) = saving.take()
            {
                match self.keep(keeping, bytes).await {
                    Ok(kept) => saving = Some(kept),
                    Err(lost) => {
                        // Nobody waits in vain for what will not be kept.
                        FetchLead::end(lead.take(), FetchOutcome::NotStored);
                        self.note_loss(&lost);
                        passed = self.catch_up(*lost.so_far).await;
                    }
                }
            }
            if !passed {
                self.pass(frame, saving.is_some()).await;
            }
            if self.to.is_none() {
                let waited_for = lead.as_ref().is_some_and(FetchLead::has_followers);
                if saving.is_none() || !waited_for && !self.is_nearly_here() {
                    return;
                }
                // It is fetched for the cache alone, as long as that takes no time and few others are.
                if self.until.is_none() {
                    alone = Arc::clone(&self.service.alone).try_acquire_owned().ok();
                    if alone.is_none() {
                        return;
                    }
                    self.until = Some(Instant::now() + REST_TIME);
                }
            }
        }
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
        if let Some(saving) = saving {
            self.finish(saving, lead).await;
        }
        drop(alone);
    }

    /// All of it has come. Whoever lags behind gets the rest from what was kept.
    async fn finish(mut self, saving: Saving, lead: Option<FetchLead>) {
        let kept = saving.finish(self.lags.is_some()).await;
        FetchLead::end(lead, if kept.is_ok() { FetchOutcome::Stored } else { FetchOutcome::NotStored });
        match kept {
            Ok(body) => {
                self.service.counters.stored.increment();
                if let Some(body) = body {
                    self.catch_up(SoFar::written(Some(body))).await;
                }
            }
            Err(lost) => {
                self.note_loss(&lost);
                self.catch_up(*lost.so_far).await;
            }
        }
    }

    /// Gives whoever lags behind what was held back; whether somebody did.
    async fn catch_up(&mut self, so_far: SoFar) -> bool {
        let Some(at) = self.lags.take() else { return false };
        let Some(to) = &self.to else { return true };
        let SoFar { written: Some(written), buffer } = so_far else {
            self.end_early(Error::StoredBodyLost).await;
            return true;
        };
        // It lags behind what is not written yet, or already behind what is.
        let after = usize::try_from(at.saturating_sub(written.len())).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = Bytes::from(buffer).slice(after..);
        if at < written.len() && to.send(Ok(PipeItem::Stored(written, at))).await.is_err() {
            return true;
        }
        if !buffer.is_empty() {
            let _ = to.send(Ok(PipeItem::Frame(Frame::data(buffer)))).await;
        }
        true
    }

    /// Passes a frame to whoever asked. Who is slow gets it from the store, if it is kept.
    async fn pass(&mut self, frame: Frame<Bytes>, kept: bool) {
        let Some(to) = self.to.clone() else { return };
        if to.is_closed() {
            self.to = None;
            return;
        }
        if self.lags.is_some() {
            return;
        }
        let place = if kept { timeout(PACE, to.reserve()).await } else { Ok(to.reserve().await) };
        match place {
            Ok(Ok(place)) => place.send(Ok(PipeItem::Frame(frame))),
            Ok(Err(_)) => self.to = None,
            Err(_) => self.lags = Some(self.come - data_len(&frame)),
        }
    }

    /// Whoever asked is told that there will be no more.
    async fn end_early(&self, error: Error) {
        if let Some(to) = &self.to {
            let _ = to.send(Err(error)).await;
        }
    }

    /// Keeps a piece, unless it is too much.
    async fn keep(&self, saving: Saving, bytes: &Bytes) -> Result<Saving, Lost> {
        let max = self.service.limits.max_object_bytes;
        if saving.len() + bytes.len() as u64 > max {
            let mut lost = saving.lost(Error::TooLarge { max });
            lost.so_far.buffer.extend_from_slice(bytes);
            return Err(lost);
        }
        saving.add(bytes).await
    }

    fn note_loss(&self, lost: &Lost) {
        self.service.counters.dropped.increment();
        let (url, why) = (&self.question.resource.uri, chain(&lost.why));
        self.service.log.line(format_args!("{url} cannot be kept: {why}"));
    }

    /// Whether it is worth fetching the rest for the cache alone.
    fn is_nearly_here(&self) -> bool {
        self.len.is_some_and(|len| len.saturating_sub(self.come) <= REST)
    }

    /// The next of it, from the origin if the peer fails.
    async fn next(&mut self) -> Result<Option<Frame<Bytes>>> {
        loop {
            match self.receive().await {
                Ok(frame) => {
                    let bytes = frame.as_ref().map_or(0, data_len);
                    self.come += bytes;
                    self.counter.add(bytes);
                    return Ok(frame);
                }
                Err(error) => match self.resume.take() {
                    Some((peer, tag)) => {
                        self.service.peers.record_failure(peer, std::time::Instant::now());
                        self.go_on_with_origin(tag, error).await?;
                    }
                    None => return Err(error),
                },
            }
        }
    }

    async fn receive(&mut self) -> Result<Option<Frame<Bytes>>> {
        // A peer has to be quick, since the origin could be asked instead.
        let limits = &self.service.limits;
        let patience = if self.resume.is_some() { limits.peer_timeout } else { limits.stall_timeout };
        if self.resume.is_some() && is_slow(self.come, self.waited, limits.peer_timeout) {
            return Err(Error::TooSlow);
        }
        let start = Instant::now();
        let patience =
            self.until.map_or(patience, |until| until.saturating_duration_since(start).min(patience));
        let frame = timeout(patience, self.incoming.frame()).await;
        self.waited += start.elapsed();
        match frame {
            Err(_) => Err(Error::Stalled { after: patience }),
            Ok(None) => Ok(None),
            Ok(Some(Ok(frame))) => Ok(Some(frame)),
            Ok(Some(Err(error))) => Err(Error::IncompleteBody(error)),
        }
    }

    /// Asks the origin for the rest of what a peer has begun. Only if it has the very same document it goes on.
    async fn go_on_with_origin(&mut self, tag: HeaderValue, error: Error) -> Result<()> {
        let (url, why) = (&self.question.resource.uri, chain(&error));
        self.service.log.line(format_args!("a peer does not finish {url}, the origin has to: {why}"));
        let mut parts = self.question.parts.clone();
        for condition in [IF_NONE_MATCH, IF_MODIFIED_SINCE] {
            parts.headers.remove(condition);
        }
        let Ok(range) = HeaderValue::try_from(format!("bytes={}-", self.come)) else { return Err(error) };
        parts.headers.insert(RANGE, range);
        parts.headers.insert(IF_RANGE, tag.clone());
        let (resource, reach) = (&self.question.resource, self.question.reach);
        let answer = self.service.ask_origin(&parts, resource, reach, None).await?;
        let rest = self.len.map(|len| format!("bytes {}-{}/{len}", self.come, len.saturating_sub(1)));
        let said = answer.parts.headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
        if answer.parts.status != StatusCode::PARTIAL_CONTENT
            || rest.as_deref() != said
            || answer.parts.headers.get(ETAG) != Some(&tag)
        {
            return Err(Error::OriginMismatch { source: error.into() });
        }
        (self.incoming, self.lease) = (answer.incoming, Some(answer.lease));
        self.counter = self.service.counters.bytes_from_origins.clone();
        Ok(())
    }
}

/// Whether less has come than 128 KiB for each second, after some time.
fn is_slow(come: u64, after: Duration, patience: Duration) -> bool {
    (come as f64) < after.saturating_sub(patience).as_secs_f64() * f64::from(128 << 10)
}
