//! A TCP stream whose writes time out.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// A TCP stream that fails if the other end does not accept any data for `stall_timeout`.
pub(super) struct TimedStream {
    stream: TcpStream,
    stall_timeout: Duration,
    /// Runs while a write is blocked.
    write_timer: Option<Pin<Box<Sleep>>>,
    /// Whether data was received since the last write.
    received_since_write: Arc<AtomicBool>,
}

impl TimedStream {
    pub fn new(stream: TcpStream, stall_timeout: Duration) -> TimedStream {
        TimedStream { stream, stall_timeout, write_timer: None, received_since_write: Arc::default() }
    }

    /// Returns a flag that is set while data was received since the last write, that is, within a
    /// request.
    pub fn received_since_write(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.received_since_write)
    }

    pub fn into_inner(self) -> TcpStream {
        self.stream
    }

    /// Starts or stops the timer of a write, depending on whether the write is blocked.
    fn time_write<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.write_timer = None;
            self.received_since_write.store(false, Relaxed);
            return result;
        }
        let stall_timeout = self.stall_timeout;
        ready!(self.write_timer.get_or_insert_with(|| Box::pin(sleep(stall_timeout))).as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "what was written is not read")))
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
        if buffer.filled().len() > before {
            self.received_since_write.store(true, Relaxed);
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
