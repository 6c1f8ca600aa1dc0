//! Clients come and go.

use super::access_log::{AccessLog, AccessRecord, LoggedRequest};
use super::body::Body;
use super::service::{Client, Service, sentence};
use super::timed_stream::TimedStream;
use super::{Allow, Options, manage};
use crate::PublishTrigger;
use crate::error::{Error, Result, chain};
use crate::store::Store;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long those who are being answered have when the proxy is told to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long to wait when no connection can be taken, for lack of files, say.
const PAUSE: Duration = Duration::from_millis(100);

/// How many strangers are told at once that they are not allowed, and how long that may take.
const STRANGERS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(2);

/// How many may look at what was counted at once, where that has an address of its own.
const MANAGERS: usize = 16;

/// A proxy that listens.
pub struct Proxy {
    service: Arc<Service>,
    listener: TcpListener,
    manager: Option<TcpListener>,
    address: SocketAddr,
    allow: Allow,
    every: Duration,
}

impl Proxy {
    /// Listens at an address; port 0 is any that is free.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] if an address is not free, [`Error::AccessLog`] if that file cannot be written, [`Error::Filter`] if
    /// there is no memory for a filter.
    pub async fn bind(address: SocketAddr, store: Store, options: Options) -> Result<Proxy> {
        let listener = listen(address).await?;
        let manager = match options.status_address {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let address = listener.local_addr().map_err(|source| Error::Listen { address, source })?;
        let service = Arc::new(Service::new(store, &options)?);
        Ok(Proxy {
            service,
            listener,
            manager,
            address,
            allow: options.allow,
            every: options.summary_interval,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where what was counted is shown.
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.manager.as_ref().map_or(Some(self.address), |manager| manager.local_addr().ok())
    }

    /// Returns the access log, if there is one, so that it can be reopened after a rename.
    pub fn access_log(&self) -> Option<Arc<AccessLog>> {
        self.service.access_log.clone()
    }

    /// Answers until something ends: who is being answered then has some seconds.
    pub async fn run(self, until: impl Future<Output = ()>) {
        let mut tasks = JoinSet::new();
        for id in self.service.peers.ids() {
            tasks.spawn(Arc::clone(&self.service).follow(id, self.every));
        }
        tasks.spawn(keep_house(Arc::clone(&self.service), self.every));
        let places = Arc::new(Semaphore::new(self.service.limits.max_clients));
        let (end, ends) = watch::channel(());
        let door = Door { service: self.service, allow: self.allow, places: Arc::clone(&places), ends };
        // Whoever looks after a proxy that is full has places of his own.
        let manager = Door { places: Arc::new(Semaphore::new(MANAGERS)), ..door.clone() };
        if let Some(listener) = self.manager {
            tasks.spawn(async move { manager.welcome(listener, true).await });
        }
        tokio::select! {
            () = door.welcome(self.listener, false) => {}
            () = until => {}
        }
        drop(end);
        tasks.abort_all();
        // All places are free when everybody has gone.
        let all = places.acquire_many(u32::try_from(door.service.limits.max_clients).unwrap_or(u32::MAX));
        let _ = timeout(FAREWELL, all).await;
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })
}

/// Where clients come in.
#[derive(Clone)]
struct Door {
    service: Arc<Service>,
    allow: Allow,
    places: Arc<Semaphore>,
    ends: watch::Receiver<()>,
}

impl Door {
    /// Lets clients in, as many as there are places. Some come only to see what was counted.
    async fn welcome(&self, listener: TcpListener, manages: bool) {
        let strangers = Arc::new(Semaphore::new(STRANGERS));
        loop {
            let (stream, remote) = match listener.accept().await {
                Ok(client) => client,
                Err(error) => {
                    self.service.log.line(format_args!("nobody can come in: {error}"));
                    sleep(PAUSE).await;
                    continue;
                }
            };
            if (self.allow)(remote.ip()) {
                let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return };
                tokio::spawn(self.clone().serve(stream, remote, place, manages));
                continue;
            }
            // They take nobody's place, and if there are many of them they are told nothing.
            self.service.counters.refused.increment();
            self.service.log.line(format_args!("{} is not allowed here", remote.ip()));
            if let Ok(place) = Arc::clone(&strangers).try_acquire_owned() {
                tokio::spawn(async move {
                    let _ = timeout(PATIENCE, turn_away(stream)).await;
                    drop(place);
                });
            }
        }
    }

    async fn serve(self, stream: TcpStream, remote: SocketAddr, place: OwnedSemaphorePermit, manages: bool) {
        let Door { service, mut ends, .. } = self;
        let Ok(local) = stream.local_addr() else { return };
        // An answer goes at once, and not when there is more to say.
        let _ = stream.set_nodelay(true);
        let client = Client { remote, local, place: Arc::new(place) };
        let answer = |request: Request<Incoming>| {
            let (service, client) = (Arc::clone(&service), client.clone());
            // What peers ask every few seconds is no news.
            let access = service.access_log.as_ref().filter(|_| !manage::is_for_caches(request.uri().path()));
            let asked = access.map(|log| LoggedRequest {
                log: Arc::clone(log),
                start: Instant::now(),
                client: remote.ip(),
                method: request.method().clone(),
                url: request.uri().clone(),
            });
            async move {
                let response = match manages {
                    false => service.answer(request, client).await,
                    true if request.uri().authority().is_none() => {
                        manage::answer(&service, &request.into_parts().0, false).await
                    }
                    true => {
                        sentence(StatusCode::FORBIDDEN, "only /umbel/ is here; the proxy has another address")
                    }
                };
                Ok::<_, Infallible>(match asked {
                    None => response,
                    Some(asked) => {
                        let record = AccessRecord::new(asked, response.status(), response.headers());
                        response.map(|body| Body::Logged(Box::new((body, record))))
                    }
                })
            }
        };
        let limits = &service.limits;
        let stream = TimedStream::new(stream, limits.stall_timeout);
        let received_since_write = stream.received_since_write();
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_timeout)
            .max_buf_size(limits.max_header_bytes)
            .max_headers(limits.max_headers)
            .serve_connection(TokioIo::new(stream), service_fn(answer))
            .with_upgrades();
        tokio::pin!(connection);
        let result = tokio::select! {
            result = connection.as_mut() => result,
            _ = ends.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        let Err(error) = result else { return };
        let (ip, wait) = (remote.ip(), limits.header_timeout);
        if error.is_parse() {
            service.counters.refused.increment();
            service.log.line(format_args!("client {ip} sent what is no HTTP request: {}", chain(&error)));
        } else if error.is_timeout() && received_since_write.load(Relaxed) {
            // Who asks for nothing any more is just left.
            service.counters.refused.increment();
            service.log.line(format_args!("client {ip} sent half a request, and nothing more for {wait:?}"));
        }
    }
}

/// Tells a stranger that he is not allowed here.
async fn turn_away(mut stream: TcpStream) -> io::Result<()> {
    // Who is answered before he has asked may not hear it.
    let _read = stream.read(&mut [0; 4096]).await?;
    let text = "umbel proxy: you are not allowed here; see --allow\n";
    let head = "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n";
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes()).await?;
    stream.shutdown().await
}

/// Tells others what is here, and ends connections that nobody uses.
async fn keep_house(service: Arc<Service>, every: Duration) {
    let trigger = PublishTrigger { interval: every, ..PublishTrigger::default() };
    let pause = (every / 4).clamp(Duration::from_millis(20), Duration::from_secs(1));
    let mut last = Instant::now();
    loop {
        sleep(pause).await;
        service.pool.close_idle();
        let (store, since) = (Arc::clone(&service.store), last.elapsed());
        match tokio::task::spawn_blocking(move || store.publish(&trigger, since)).await {
            Ok(Ok(true)) => last = Instant::now(),
            Ok(Err(error)) => service.log.line(format_args!("the summary cannot be told: {}", chain(&error))),
            _ => {}
        }
    }
}
