//! What travels as the body of a question or an answer: bytes, a document of the store, what comes from elsewhere.

use super::access_log::AccessRecord;
use super::counters::Counter;
use super::pool::Lease;
use crate::error::{Error, Result};
use crate::store;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep};

/// A body.
pub(super) enum Body {
    /// In memory.
    Whole(Option<Bytes>),
    /// A file of the store, from an offset up to another.
    Stored(Reading),
    /// What a task sends that keeps it, too.
    Piped(Pipe),
    /// What comes from elsewhere and is only passed on.
    Passed(Box<Passing>),
    /// One of these, of which a line is written when it has ended.
    Recorded(Box<(Body, AccessRecord)>),
}

/// What a task sends of a body.
pub(super) enum Piece {
    /// The next of it.
    Frame(Frame<Bytes>),
    /// What was held back, from an offset up to the end of what is kept of it.
    Stored(store::Body, u64),
}

/// What a task sends.
pub(super) struct Pipe {
    pieces: mpsc::Receiver<Result<Piece>>,
    /// So much of it is still to come, if that is known.
    left: Option<u64>,
    /// What was held back, and comes before the next piece.
    held: Option<Box<Body>>,
}

impl Pipe {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        let frame = loop {
            if let Some(held) = &mut self.held {
                match ready!(Pin::new(&mut **held).poll_frame(context)) {
                    None => self.held = None,
                    frame => break frame,
                }
            }
            match ready!(self.pieces.poll_recv(context)) {
                None => break None,
                Some(Err(error)) => break Some(Err(error)),
                Some(Ok(Piece::Frame(frame))) => break Some(Ok(frame)),
                Some(Ok(Piece::Stored(body, at))) => {
                    let end = body.len();
                    self.held = Some(Box::new(Body::stored(body, at, end)));
                }
            }
        };
        if let (Some(Ok(frame)), Some(left)) = (&frame, &mut self.left) {
            *left = left.saturating_sub(data_len(frame));
        }
        Poll::Ready(frame)
    }
}

/// How many bytes of a body are in a frame.
pub(super) fn data_len(frame: &Frame<Bytes>) -> u64 {
    frame.data_ref().map_or(0, |data| data.len() as u64)
}

/// Returns all of a body of at most `max` bytes. They are copied: what comes in small pieces would hold large ones.
pub(super) async fn gather(body: &mut Incoming, max: usize) -> Result<Bytes> {
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

/// A file that is being read.
pub(super) struct Reading {
    body: Arc<store::Body>,
    at: u64,
    end: u64,
    next: Option<JoinHandle<Result<Bytes>>>,
}

/// What comes from elsewhere, and how long nothing may come.
pub(super) struct Passing {
    incoming: Incoming,
    patience: Duration,
    stalled: Pin<Box<Sleep>>,
    /// Counts what has come.
    counter: Option<Counter>,
    /// The connection it comes by, which others may use after it.
    lease: Option<Lease>,
}

/// How much of a file is read at a time.
const PIECE: usize = 256 << 10;

impl Body {
    pub fn empty() -> Body {
        Body::Whole(None)
    }

    /// What a task sends; so much of it, if that is known.
    pub fn piped(pieces: mpsc::Receiver<Result<Piece>>, left: Option<u64>) -> Body {
        Body::Piped(Pipe { pieces, left, held: None })
    }

    pub fn whole(bytes: impl Into<Bytes>) -> Body {
        Body::Whole(Some(bytes.into()).filter(|bytes| !bytes.is_empty()))
    }

    /// A document of the store, from an offset up to another.
    pub fn stored(body: store::Body, from: u64, end: u64) -> Body {
        match body {
            store::Body::Memory(bytes) => {
                let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                Body::whole(bytes.slice(at(from)..at(end)))
            }
            file => Body::Stored(Reading { body: Arc::new(file), at: from, end, next: None }),
        }
    }

    /// What comes from elsewhere; nothing may come for so long and no longer.
    pub fn passed(
        incoming: Incoming,
        patience: Duration,
        counter: Option<Counter>,
        lease: Option<Lease>,
    ) -> Body {
        Body::Passed(Box::new(Passing {
            incoming,
            patience,
            stalled: Box::pin(sleep(patience)),
            counter,
            lease,
        }))
    }
}

impl Reading {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        if self.at >= self.end {
            return Poll::Ready(None);
        }
        let next = self.next.get_or_insert_with(|| {
            let (body, at, most) = (Arc::clone(&self.body), self.at, (self.end - self.at).min(PIECE as u64));
            tokio::task::spawn_blocking(move || body.chunk(at, most as usize))
        });
        let piece = ready!(Pin::new(next).poll(context));
        self.next = None;
        Poll::Ready(Some(match piece {
            Ok(Ok(bytes)) if !bytes.is_empty() => {
                self.at += bytes.len() as u64;
                Ok(Frame::data(bytes))
            }
            Ok(Ok(_)) => Err(Error::StoredBodyLost),
            Ok(Err(error)) => Err(error),
            Err(error) => Err(error.into()),
        }))
    }
}

impl Passing {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(context) else {
            ready!(self.stalled.as_mut().poll(context));
            return Poll::Ready(Some(Err(Error::Stalled { after: self.patience })));
        };
        self.stalled.as_mut().reset(Instant::now() + self.patience);
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
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Stored(reading) => reading.poll(context),
            Body::Piped(pipe) => pipe.poll(context),
            Body::Passed(passing) => passing.poll(context),
            Body::Recorded(both) => {
                let (body, record) = &mut **both;
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
            Body::Whole(bytes) => bytes.is_none(),
            Body::Stored(reading) => reading.at >= reading.end,
            Body::Piped(pipe) => pipe.left == Some(0),
            Body::Passed(passing) => passing.incoming.is_end_stream(),
            Body::Recorded(both) => both.0.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Body::Stored(reading) => SizeHint::with_exact(reading.end - reading.at),
            Body::Piped(pipe) => pipe.left.map_or_else(SizeHint::default, SizeHint::with_exact),
            Body::Passed(passing) => passing.incoming.size_hint(),
            Body::Recorded(both) => both.0.size_hint(),
        }
    }
}
