//! The listeners of the proxy and its background tasks.

use super::access_log::{AccessLog, AccessRecord, LoggedRequest};
use super::body::Body;
use super::framing::RequestFraming;
use super::internal::{self, InternalAccess};
use super::places::{Place, Places};
use super::rejection::{Rejection, Rejections};
use super::service::{Client, Service, text_response};
use super::timed_stream::TimedStream;
use super::{Allow, Options};
use crate::PublishTrigger;
use crate::error::{Error, Result, chain};
use crate::store::Store;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The time for which a proxy that shuts down waits for requests that are being answered.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// The pause after a connection could not be accepted, for lack of file descriptors, for example.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The largest number of clients that wait for a place.
const MAX_WAITING_CLIENTS: usize = 64;

/// The largest number of clients of the status page at once, if it has an address of its own.
const MAX_STATUS_CLIENTS: usize = 32;

/// A proxy that listens.
pub struct Proxy {
    service: Arc<Service>,
    listener: TcpListener,
    status_listener: Option<TcpListener>,
    address: SocketAddr,
    allow: Allow,
    access_log: Option<Arc<AccessLog>>,
    summary_interval: Duration,
}

impl Proxy {
    /// Binds a proxy with this store to an address. Port 0 stands for any free port.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] if an address is not free, [`Error::AccessLog`] if the access log cannot
    /// be written, [`Error::Filter`] if there is no memory for a filter.
    pub async fn bind(address: SocketAddr, store: Store, options: Options) -> Result<Proxy> {
        let listener = listen(address).await?;
        let status_listener = match options.status_address {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let address = listener.local_addr().map_err(|source| Error::Listen { address, source })?;
        let service = Arc::new(Service::new(store, &options)?);
        Ok(Proxy {
            service,
            listener,
            status_listener,
            address,
            access_log: AccessLog::open(&options)?,
            allow: options.allow,
            summary_interval: options.summary_interval,
        })
    }

    /// Returns the address of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the status page.
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.status_listener.as_ref().map_or(Some(self.address), |listener| listener.local_addr().ok())
    }

    /// Returns the access log, if there is one, so that it can be reopened after a rename.
    pub fn access_log(&self) -> Option<Arc<AccessLog>> {
        self.access_log.clone()
    }

    /// Answers requests until `until` completes. Requests that are being answered, and responses that
    /// are being stored, then get some seconds more.
    pub async fn run(self, until: impl Future<Output = ()>) {
        let mut tasks = JoinSet::new();
        for id in self.service.peers.ids() {
            let (peers, interval) = (Arc::clone(&self.service.peers), self.summary_interval);
            tasks.spawn(async move { peers.follow(id, interval).await });
        }
        tasks.spawn(maintain(Arc::clone(&self.service), self.summary_interval));
        let places = Places::new(self.service.limits.max_clients);
        let tunnels = self.service.tunnels.clone();
        let service = Arc::clone(&self.service);
        let (shutdown_sender, shutdown) = watch::channel(());
        let acceptor = Acceptor {
            service: self.service,
            pages: ServedPages::Proxy,
            allow: self.allow,
            access_log: self.access_log,
            places: places.clone(),
            waiting: Places::new(MAX_WAITING_CLIENTS),
            rejections: Rejections::new(),
            shutdown,
        };
        // The status page has its own places, so that it stays reachable when the proxy is full.
        let status_acceptor = Acceptor {
            pages: ServedPages::Status,
            places: Places::new(MAX_STATUS_CLIENTS),
            waiting: Places::new(MAX_WAITING_CLIENTS),
            ..acceptor.clone()
        };
        if let Some(listener) = self.status_listener {
            tasks.spawn(async move { status_acceptor.accept_clients(listener).await });
        }
        tokio::select! {
            () = acceptor.accept_clients(self.listener) => {}
            () = until => {}
        }
        drop(shutdown_sender);
        tasks.abort_all();
        let all_done = async {
            tokio::join!(places.all_free(), tunnels.all_free());
            service.cache.all_written().await;
        };
        let _ = timeout(SHUTDOWN_GRACE, all_done).await;
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })
}

/// The requests that a listener answers.
#[derive(Clone, Copy)]
enum ServedPages {
    /// All requests to a proxy.
    Proxy,
    /// Requests for the proxy's own pages only.
    Status,
}

/// Accepts the clients of a listener.
#[derive(Clone)]
struct Acceptor {
    service: Arc<Service>,
    pages: ServedPages,
    allow: Allow,
    access_log: Option<Arc<AccessLog>>,
    /// One place for each client that is served.
    places: Places,
    /// One place for each client that waits for one of them.
    waiting: Places,
    rejections: Rejections,
    shutdown: watch::Receiver<()>,
}

impl Acceptor {
    /// Accepts clients.
    async fn accept_clients(&self, listener: TcpListener) {
        loop {
            let (stream, remote) = match listener.accept().await {
                Ok(client) => client,
                Err(error) => {
                    self.service.log.line(format_args!("cannot accept clients: {error}"));
                    sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            };
            let ip = remote.ip();
            if !(self.allow)(ip) {
                self.service.counters.refused.increment();
                self.service.log.line(format_args!("{ip} is not allowed here"));
                self.rejections.send(stream, ip, Rejection::NotAllowed);
            } else if let Some(place) = self.places.try_take(ip) {
                tokio::spawn(self.clone().serve(stream, remote, place));
            } else if let Some(waiting_place) = self.waiting.try_take(ip) {
                tokio::spawn(self.clone().serve_later(stream, remote, waiting_place));
            } else {
                self.turn_away(stream, remote);
            }
        }
    }

    /// Serves a client when it gets a place, or turns it away if that takes too long.
    async fn serve_later(self, stream: TcpStream, remote: SocketAddr, waiting_place: Place) {
        let place = timeout(self.service.limits.place_timeout, self.places.take(remote.ip())).await;
        drop(waiting_place);
        match place {
            Ok(place) => self.serve(stream, remote, place).await,
            Err(_) => self.turn_away(stream, remote),
        }
    }

    /// Sends a client the response that all places are taken.
    fn turn_away(&self, stream: TcpStream, remote: SocketAddr) {
        let ip = remote.ip();
        self.service.counters.turned_away.increment();
        self.service.log.line(format_args!("{ip} was turned away, as it has no place free"));
        self.rejections.send(stream, ip, Rejection::NoPlace);
    }

    /// Answers the requests of a client.
    async fn serve(self, stream: TcpStream, remote: SocketAddr, place: Place) {
        let Acceptor { service, pages, access_log, mut shutdown, .. } = self;
        let Ok(local) = stream.local_addr() else { return };
        // Responses are sent at once and do not wait for more data.
        let _ = stream.set_nodelay(true);
        let limits = &service.limits;
        let framing = RequestFraming::new(limits.max_header_bytes);
        let fault = framing.fault();
        let client = Client { remote, local };
        let handler = |request: Request<Incoming>| {
            let (service, fault) = (Arc::clone(&service), fault.get());
            // Peers poll every few seconds, which would flood the access log.
            let access_log = access_log.as_ref().filter(|_| !internal::is_polled_path(request.uri().path()));
            let logged = access_log.map(|log| LoggedRequest {
                log: Arc::clone(log),
                start: Instant::now(),
                client: remote.ip(),
                method: request.method().clone(),
                url: request.uri().clone(),
            });
            async move {
                let response = match (fault, pages) {
                    (Some(fault), _) => service.refuse_framing(fault),
                    (None, ServedPages::Proxy) => service.handle(request, client).await,
                    (None, ServedPages::Status) => respond_with_status(&service, request).await,
                };
                Ok::<_, Infallible>(match logged {
                    None => response,
                    Some(logged) => {
                        let record = AccessRecord::new(logged, response.status(), response.headers());
                        response.map(|body| Body::Logged(Box::new((body, record))))
                    }
                })
            }
        };
        let stream = TimedStream::new(stream, limits.min_rate()).with_framing(framing);
        let received_since_write = stream.received_since_write();
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_timeout)
            .max_buf_size(limits.max_header_bytes)
            .max_headers(limits.max_headers)
            .serve_connection(TokioIo::new(stream), service_fn(handler))
            .with_upgrades();
        tokio::pin!(connection);
        let result = tokio::select! {
            result = connection.as_mut() => result,
            _ = shutdown.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        drop(place);
        let Err(error) = result else { return };
        let (ip, wait) = (remote.ip(), limits.header_timeout);
        if error.is_parse() {
            service.counters.refused.increment();
            service.log.line(format_args!("client {ip} sent an invalid HTTP request: {}", chain(&error)));
        } else if error.is_timeout() && received_since_write.load(Relaxed) {
            // A timeout between two requests is normal; this one is within a request.
            service.counters.refused.increment();
            service.log.line(format_args!("client {ip} sent half a request, and nothing more for {wait:?}"));
        }
    }
}

/// Answers a request at the address of the status page.
async fn respond_with_status(service: &Arc<Service>, request: Request<Incoming>) -> Response<Body> {
    if request.uri().authority().is_some() {
        return text_response(StatusCode::FORBIDDEN, "only /umbel/ is here; the proxy has another address");
    }
    internal::respond(service, &request.into_parts().0, InternalAccess::All).await
}

/// Publishes the summary when it is due, and closes idle connections.
async fn maintain(service: Arc<Service>, summary_interval: Duration) {
    let trigger = PublishTrigger { interval: summary_interval, ..PublishTrigger::default() };
    let pause = (summary_interval / 4).clamp(Duration::from_millis(20), Duration::from_secs(1));
    let mut last_publication = Instant::now();
    loop {
        sleep(pause).await;
        service.upstream.close_idle();
        let (store, elapsed) = (Arc::clone(&service.cache.store), last_publication.elapsed());
        match tokio::task::spawn_blocking(move || store.publish(&trigger, elapsed)).await {
            Ok(Ok(true)) => last_publication = Instant::now(),
            Ok(Err(error)) => {
                service.log.line(format_args!("the summary cannot be published: {}", chain(&error)))
            }
            _ => {}
        }
    }
}
