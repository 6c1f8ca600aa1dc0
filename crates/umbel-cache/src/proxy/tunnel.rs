//! A tunnel: bytes go to and fro, and nothing is known of them.

use super::body::Body;
use super::service::{Client, Service};
use super::target::HostPort;
use super::timed_stream::TimedStream;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{interval, timeout};

/// After so long without a byte, in either direction, a tunnel is closed.
const IDLE: Duration = Duration::from_secs(600);

impl Service {
    /// Connects somebody with somewhere.
    pub async fn tunnel(
        self: &Arc<Service>,
        request: Request<Incoming>,
        address: HostPort,
        client: Client,
    ) -> Response<Body> {
        let there = match self.connector.connect(&address, client.reach()).await {
            Ok(stream) => stream,
            Err(error) => return self.fail(&error),
        };
        if let Ok(found) = there.peer_addr()
            && self.is_cache(found, client.local).await
        {
            return self.refuse(StatusCode::FORBIDDEN, "what caches tell each other is not passed on");
        }
        self.counters.tunnels.increment();
        let service = Arc::clone(self);
        tokio::spawn(async move {
            if let Ok(upgraded) = hyper::upgrade::on(request).await
                && let Err(error) = service.carry(upgraded, there).await
            {
                service.log.line(format_args!("the tunnel to {address} has ended: {error}"));
            }
            drop(client.place);
        });
        Response::new(Body::empty())
    }

    async fn carry(&self, upgraded: Upgraded, mut there: TcpStream) -> io::Result<()> {
        let parts = upgraded
            .downcast::<TokioIo<TimedStream>>()
            .map_err(|_| io::Error::other("it is no connection"))?;
        let mut here = parts.io.into_inner().into_inner();
        // What was sent before the tunnel was there.
        timeout(self.limits.stall_timeout, there.write_all(&parts.read_buf)).await??;
        let carried = AtomicU64::new(parts.read_buf.len() as u64);
        let (here_reads, here_writes) = here.split();
        let (there_reads, there_writes) = there.split();
        let both = async {
            tokio::try_join!(
                one_way(here_reads, there_writes, &carried),
                one_way(there_reads, here_writes, &carried)
            )
        };
        let result = tokio::select! {
            result = both => result.map(drop),
            () = idle(&carried) => Err(io::Error::new(io::ErrorKind::TimedOut, "nothing is said any more")),
        };
        self.counters.bytes_tunnelled.add(carried.load(Relaxed));
        match result {
            // So many clients end a tunnel.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) =>
            {
                Ok(())
            }
            other => other,
        }
    }
}

async fn one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    carried: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        match from.read(&mut buffer).await? {
            0 => return to.shutdown().await,
            count => {
                to.write_all(&buffer[..count]).await?;
                carried.fetch_add(count as u64, Relaxed);
            }
        }
    }
}

/// Ends when nothing was carried for long.
async fn idle(carried: &AtomicU64) {
    let mut last = carried.load(Relaxed);
    let mut ticks = interval(IDLE);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let now = carried.load(Relaxed);
        if now == last {
            return;
        }
        last = now;
    }
}
