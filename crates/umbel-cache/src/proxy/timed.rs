//! A connection whose other end has to read: who takes nothing for too long is left.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// A connection that fails when nothing of what is written was taken for so long.
pub(super) struct Timed {
    stream: TcpStream,
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    /// Whether something has come since something was written.
    heard: Arc<AtomicBool>,
}

impl Timed {
    pub fn new(stream: TcpStream, patience: Duration) -> Timed {
        Timed { stream, patience, stalled: None, heard: Arc::default() }
    }

    /// Whether something has come since something was written: an end now is one in the midst of it.
    pub fn heard(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.heard)
    }

    pub fn into_inner(self) -> TcpStream {
        self.stream
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stalled = None;
            self.heard.store(false, Relaxed);
            return result;
        }
        let patience = self.patience;
        ready!(self.stalled.get_or_insert_with(|| Box::pin(sleep(patience))).as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "what was written is not read")))
    }
}

impl AsyncRead for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.heard.store(true, Relaxed);
        }
        result
    }
}

impl AsyncWrite for Timed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, result)
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
