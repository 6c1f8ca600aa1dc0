//! The body of a request or response that the proxy sends: bytes in memory, a stored body, or a
//! body that it forwards.

use super::access_log::AccessRecord;
use super::counters::Counter;
use super::pace::{MinRate, PaceTimer};
use super::upstream::Lease;
use crate::error::{Error, Result};
use crate::store;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A body that the proxy sends.
pub(super) enum Body {
    /// Bytes in memory.
    Full(Option<Bytes>),
    /// A range of a file of the store.
    Stored(StoredReader),
    /// The frames of a response that is stored while it is sent.
    Piped(Pipe),
    /// A body that is forwarded and not stored.
    Forwarded(Box<Forwarding>),
    /// Another body, with the access log record that is written at its end.
    Logged(Box<(Body, AccessRecord)>),
}

/// An item of a pipe.
pub(super) enum PipeItem {
    /// The next frame.
    Frame(Frame<Bytes>),
    /// The frames that a slow client has missed, as the part of a stored body from an offset to its
    /// end.
    Stored(store::Body, u64),
}

/// The receiving end of a transfer.
pub(super) struct Pipe {
    items: mpsc::Receiver<Result<PipeItem>>,
    /// The remaining length, if it is known.
    remaining: Option<u64>,
    /// A stored part that is being sent before the next item.
    stored: Option<Box<Body>>,
}

impl Pipe {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        let frame = loop {
            if let Some(stored) = &mut self.stored {
                match ready!(Pin::new(&mut **stored).poll_frame(context)) {
                    None => self.stored = None,
                    frame => break frame,
                }
            }
            match ready!(self.items.poll_recv(context)) {
                None => break None,
                Some(Err(error)) => break Some(Err(error)),
                Some(Ok(PipeItem::Frame(frame))) => break Some(Ok(frame)),
                Some(Ok(PipeItem::Stored(body, at))) => {
                    let end = body.len();
                    self.stored = Some(Box::new(Body::stored(body, at, end)));
                }
            }
        };
        if let (Some(Ok(frame)), Some(remaining)) = (&frame, &mut self.remaining) {
            *remaining = remaining.saturating_sub(data_len(frame));
        }
        Poll::Ready(frame)
    }
}

/// Returns the number of body bytes in a frame.
pub(super) fn data_len(frame: &Frame<Bytes>) -> u64 {
    frame.data_ref().map_or(0, |data| data.len() as u64)
}

/// Reads a whole body of at most `max` bytes. The bytes are copied, since a small frame can keep a
/// large receive buffer alive.
pub(super) async fn read_to_end(body: &mut Incoming, max: usize) -> Result<Bytes> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(Error::IncompleteBody)?.into_data() {
            if all.len() + data.len() > max {
                return Err(Error::TooLarge { max: max as u64 });
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(all.into())
}

/// A reader of a range of a stored file.
pub(super) struct StoredReader {
    body: Arc<store::Body>,
    offset: u64,
    end: u64,
    /// The read that is under way.
    next: Option<JoinHandle<Result<Bytes>>>,
}

/// A body that is forwarded and not stored.
pub(super) struct Forwarding {
    incoming: Incoming,
    pace: PaceTimer,
    /// Counts the bytes received.
    counter: Option<Counter>,
    /// The connection that the body is received from, which returns to the pool at the end of the
    /// body.
    lease: Option<Lease>,
}

/// The number of bytes that are read from a file at a time.
const READ_CHUNK_BYTES: usize = 256 << 10;

impl Body {
    pub fn empty() -> Body {
        Body::Full(None)
    }

    /// Returns a body that is received from a transfer, of this length if it is known.
    pub fn piped(items: mpsc::Receiver<Result<PipeItem>>, len: Option<u64>) -> Body {
        Body::Piped(Pipe { items, remaining: len, stored: None })
    }

    pub fn full(bytes: impl Into<Bytes>) -> Body {
        Body::Full(Some(bytes.into()).filter(|bytes| !bytes.is_empty()))
    }

    /// Returns the part of a stored body between two offsets.
    pub fn stored(body: store::Body, start: u64, end: u64) -> Body {
        match body {
            store::Body::Memory(bytes) => {
                let index = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                Body::full(bytes.slice(index(start)..index(end)))
            }
            file => Body::Stored(StoredReader { body: Arc::new(file), offset: start, end, next: None }),
        }
    }

    /// Returns a body that is forwarded from `incoming`, which must not be slower than `min_rate`.
    pub fn forwarded(
        incoming: Incoming,
        min_rate: MinRate,
        counter: Option<Counter>,
        lease: Option<Lease>,
    ) -> Body {
        Body::Forwarded(Box::new(Forwarding { incoming, pace: PaceTimer::new(min_rate), counter, lease }))
    }
}

impl StoredReader {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        if self.offset >= self.end {
            return Poll::Ready(None);
        }
        let next = self.next.get_or_insert_with(|| {
            let (body, offset) = (Arc::clone(&self.body), self.offset);
            let max_len = (self.end - offset).min(READ_CHUNK_BYTES as u64) as usize;
            tokio::task::spawn_blocking(move || body.chunk(offset, max_len))
        });
        let chunk = ready!(Pin::new(next).poll(context));
        self.next = None;
        Poll::Ready(Some(match chunk {
            Ok(Ok(bytes)) if !bytes.is_empty() => {
                self.offset += bytes.len() as u64;
                Ok(Frame::data(bytes))
            }
            Ok(Ok(_)) => Err(Error::StoredBodyLost),
            Ok(Err(error)) => Err(error),
            Err(error) => Err(error.into()),
        }))
    }
}

impl Forwarding {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(context) else {
            let within = ready!(self.pace.poll_too_slow(context));
            return Poll::Ready(Some(Err(Error::Stalled { within })));
        };
        self.pace.finish(match &frame {
            Some(Ok(frame)) => data_len(frame),
            _ => 0,
        });
        if let (Some(Ok(frame)), Some(counter)) = (&frame, &self.counter) {
            counter.add(data_len(frame));
        }
        if (frame.is_none() || self.incoming.is_end_stream())
            && let Some(lease) = self.lease.take()
        {
            lease.give_back();
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Error::IncompleteBody)))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Body::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Stored(reader) => reader.poll(context),
            Body::Piped(pipe) => pipe.poll(context),
            Body::Forwarded(forwarding) => forwarding.poll(context),
            Body::Logged(logged) => {
                let (body, record) = &mut **logged;
                let frame = ready!(Pin::new(body).poll_frame(context));
                if let Some(Ok(frame)) = &frame {
                    record.bytes += data_len(frame);
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Full(bytes) => bytes.is_none(),
            Body::Stored(reader) => reader.offset >= reader.end,
            Body::Piped(pipe) => pipe.remaining == Some(0),
            Body::Forwarded(forwarding) => forwarding.incoming.is_end_stream(),
            Body::Logged(logged) => logged.0.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Body::Stored(reader) => SizeHint::with_exact(reader.end - reader.offset),
            Body::Piped(pipe) => pipe.remaining.map_or_else(SizeHint::default, SizeHint::with_exact),
            Body::Forwarded(forwarding) => forwarding.incoming.size_hint(),
            Body::Logged(logged) => logged.0.size_hint(),
        }
    }
}
