//! Tunnels (`CONNECT`): bytes are relayed in both directions and not interpreted.

use super::body::Body;
use super::service::{Client, Service, closing};
use super::target::HostPort;
use super::timed_stream::TimedStream;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{interval, timeout};

/// The time after which a tunnel without traffic in either direction is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

impl Service {
    /// Opens a tunnel between a client and a host. If that fails, the connection of the client is
    /// closed: the bytes after the request may have been meant for the host.
    pub async fn tunnel(
        self: &Arc<Service>,
        request: Request<Incoming>,
        host: HostPort,
        client: Client,
    ) -> Response<Body> {
        match self.open_tunnel(request, host, client).await {
            Ok(()) => Response::new(Body::empty()),
            Err(response) => closing(response),
        }
    }

    async fn open_tunnel(
        self: &Arc<Service>,
        request: Request<Incoming>,
        host: HostPort,
        client: Client,
    ) -> Result<(), Response<Body>> {
        let forbidden = |why: fmt::Arguments<'_>| self.refuse(StatusCode::FORBIDDEN, why);
        if !self.connect_ports.contains(&host.port) {
            let port = host.port;
            return Err(forbidden(format_args!(
                "tunnels to port {port} are not permitted; see --connect-port"
            )));
        }
        let Some(place) = self.tunnels.try_take(client.remote.ip()) else {
            return Err(
                self.turn_away("your address has too many tunnels, or all are taken; see --max-tunnels")
            );
        };
        let connected = self.upstream.connector.connect(&host, client.requester()).await;
        let remote = connected.map_err(|error| self.fail(&error))?;
        if let Ok(address) = remote.peer_addr()
            && self.is_cache_address(address, client.local).await
        {
            return Err(forbidden(format_args!(
                "requests for the summaries of other caches are not forwarded"
            )));
        }
        self.counters.tunnels.increment();
        let service = Arc::clone(self);
        tokio::spawn(async move {
            if let Ok(upgraded) = hyper::upgrade::on(request).await
                && let Err(error) = service.relay(upgraded, remote).await
            {
                service.log.line(format_args!("the tunnel to {host} has ended: {error}"));
            }
            drop(place);
        });
        Ok(())
    }

    /// Relays bytes until both directions end or the tunnel is idle for too long.
    async fn relay(&self, upgraded: Upgraded, mut remote: TcpStream) -> io::Result<()> {
        let parts = upgraded
            .downcast::<TokioIo<TimedStream>>()
            .map_err(|_| io::Error::other("the client's connection cannot be taken over"))?;
        let mut client = parts.io.into_inner().into_inner();
        // Bytes that the client has sent before the tunnel was open.
        timeout(self.limits.stall_timeout, remote.write_all(&parts.read_buf)).await??;
        let relayed = AtomicU64::new(parts.read_buf.len() as u64);
        let (client_reads, client_writes) = client.split();
        let (remote_reads, remote_writes) = remote.split();
        let both = async {
            tokio::try_join!(
                copy_one_way(client_reads, remote_writes, &relayed),
                copy_one_way(remote_reads, client_writes, &relayed)
            )
        };
        let result = tokio::select! {
            result = both => result.map(drop),
            () = wait_until_idle(&relayed) => Err(io::Error::new(io::ErrorKind::TimedOut, "nothing is said any more")),
        };
        self.counters.bytes_tunnelled.add(relayed.load(Relaxed));
        match result {
            // Many clients end a tunnel this way.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) =>
            {
                Ok(())
            }
            other => other,
        }
    }
}

async fn copy_one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    relayed: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        match from.read(&mut buffer).await? {
            0 => return to.shutdown().await,
            count => {
                to.write_all(&buffer[..count]).await?;
                relayed.fetch_add(count as u64, Relaxed);
            }
        }
    }
}

/// Waits until no bytes were relayed for `IDLE_TIMEOUT`.
async fn wait_until_idle(relayed: &AtomicU64) {
    let mut last = relayed.load(Relaxed);
    let mut ticks = interval(IDLE_TIMEOUT);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let now = relayed.load(Relaxed);
        if now == last {
            return;
        }
        last = now;
    }
}
