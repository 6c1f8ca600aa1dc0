//! A TCP stream whose writes have a lowest rate, and whose requests are checked.

use super::framing::RequestFraming;
use super::pace::{MinRate, PaceTimer};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP stream that fails if the other end accepts data too slowly.
pub(super) struct TimedStream {
    stream: TcpStream,
    write_pace: PaceTimer,
    /// Follows the requests of a client.
    framing: Option<RequestFraming>,
    /// Whether data was received since the last write.
    received_since_write: Arc<AtomicBool>,
}

impl TimedStream {
    pub fn new(stream: TcpStream, min_rate: MinRate) -> TimedStream {
        TimedStream {
            stream,
            write_pace: PaceTimer::new(min_rate),
            framing: None,
            received_since_write: Arc::default(),
        }
    }

    /// Passes the bytes that a client sends to `framing`, before they are read.
    pub fn with_framing(self, framing: RequestFraming) -> TimedStream {
        TimedStream { framing: Some(framing), ..self }
    }

    /// Returns a flag that is set while data was received since the last write, that is, within a
    /// request.
    pub fn received_since_write(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.received_since_write)
    }

    pub fn into_inner(self) -> TcpStream {
        self.stream
    }

    /// Fails if a write is blocked for too long.
    fn time_write(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(result) = result {
            self.write_pace.finish(result.as_ref().map_or(0, |count| *count as u64));
            self.received_since_write.store(false, Relaxed);
            return Poll::Ready(result);
        }
        let within = ready!(self.write_pace.poll_too_slow(context));
        let why = format!("too little of what was sent was read within {within:?}");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        let received = &buffer.filled()[before..];
        if !received.is_empty() {
            self.received_since_write.store(true, Relaxed);
            if let Some(framing) = &mut self.framing {
                framing.read(received);
            }
        }
        result
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.time_write(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.time_write(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
