//! A pool of HTTP connections to origins and peers.

use super::connector::Connector;
use crate::error::{Error, Result};
use crate::proxy::Limits;
use crate::proxy::body::Body;
use crate::proxy::framing;
use crate::proxy::reach::{Reach, Requester};
use crate::proxy::target::HostPort;
use crate::proxy::timed_stream::TimedStream;
use http::{Request, Response, StatusCode, request};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use umbel::internals::sync::lock;

/// The time after which an idle connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// The largest number of idle connections to one host.
const MAX_IDLE_PER_HOST: usize = 64;
/// The largest number of idle connections in all.
const MAX_IDLE: usize = 256;

/// Large uploads may take this many times longer before the first response byte.
const UPLOAD_TIMEOUT_FACTOR: u32 = 15;

/// The host of a connection and the reach of the clients that may use it.
type Destination = (HostPort, Reach);

/// The idle connections, by destination.
pub(super) struct ConnectionPool {
    idle: Mutex<HashMap<Destination, Vec<IdleConnection>>>,
    connector: Arc<Connector>,
    limits: Limits,
}

/// A connection that waits for the next request.
struct IdleConnection {
    connection: Connection,
    since: Instant,
}

/// An HTTP connection.
struct Connection {
    sender: SendRequest<Body>,
    /// The address of the other end, if it is known.
    address: Option<IpAddr>,
}

/// A connection that is in use.
pub(in crate::proxy) struct Lease {
    pool: Arc<ConnectionPool>,
    destination: Destination,
    connection: Connection,
}

impl ConnectionPool {
    pub fn new(connector: Arc<Connector>, limits: &Limits) -> ConnectionPool {
        ConnectionPool { idle: Mutex::default(), connector, limits: limits.clone() }
    }

    /// Sends a request and returns the response. A safe request without a body uses an idle
    /// connection first, and a new one if the other end has closed that meanwhile.
    pub async fn send(
        self: &Arc<ConnectionPool>,
        host: &HostPort,
        requester: Requester,
        parts: &request::Parts,
        body: Option<Body>,
    ) -> Result<(Response<Incoming>, Lease)> {
        let destination = (host.clone(), requester.reach());
        if body.is_none()
            && parts.method.is_safe()
            && let Some(mut connection) = self.take_idle(&destination)
            && connection.sender.ready().await.is_ok()
        {
            match exchange(host, &mut connection, parts, Body::empty(), self.limits.origin_timeout).await {
                // The other end may have closed the connection at this moment.
                Err(
                    Error::NoResponse { .. }
                    | Error::UnsupportedResponse { .. }
                    | Error::AmbiguousResponse { .. },
                ) => {}
                Err(error) => return Err(error),
                Ok(response) => {
                    return Ok((response, Lease { pool: Arc::clone(self), destination, connection }));
                }
            }
        }
        let mut connection = self.connect(host, requester).await?;
        let factor = if body.is_some() { UPLOAD_TIMEOUT_FACTOR } else { 1 };
        let wait = self.limits.origin_timeout * factor;
        let body = body.unwrap_or_else(Body::empty);
        let response = exchange(host, &mut connection, parts, body, wait).await?;
        Ok((response, Lease { pool: Arc::clone(self), destination, connection }))
    }

    async fn connect(&self, host: &HostPort, requester: Requester) -> Result<Connection> {
        let stream = self.connector.connect(host, requester).await?;
        let address = stream.peer_addr().ok().map(|address| address.ip());
        let stream = TimedStream::new(stream, self.limits.min_rate());
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(self.limits.max_header_bytes)
            .max_headers(self.limits.max_headers)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Error::unreachable(host, error))?;
        // Errors of the connection are reported to the request that uses it.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Connection { sender, address })
    }

    fn take_idle(&self, destination: &Destination) -> Option<Connection> {
        let mut idle = lock(&self.idle);
        let connections = idle.get_mut(destination)?;
        while let Some(last) = connections.pop() {
            if last.is_usable() {
                return Some(last.connection);
            }
        }
        idle.remove(destination);
        None
    }

    /// Closes connections that were idle for too long.
    pub fn close_idle(&self) {
        lock(&self.idle).retain(|_, connections| {
            connections.retain(IdleConnection::is_usable);
            !connections.is_empty()
        });
    }
}

/// Sends a request over a connection and waits for the head of the response.
async fn exchange(
    host: &HostPort,
    connection: &mut Connection,
    parts: &request::Parts,
    body: Body,
    wait: Duration,
) -> Result<Response<Incoming>> {
    let sent = connection.sender.send_request(Request::from_parts(parts.clone(), body));
    let host = || host.to_string();
    let response = match timeout(wait, sent).await {
        Ok(Ok(response)) => response,
        Ok(Err(source)) => return Err(Error::NoResponse { host: host(), source }),
        Err(_) => return Err(Error::Timeout { host: host(), what: "did not respond", within: wait }),
    };
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Error::UnsupportedResponse { host: host(), what: "wants to speak something else" });
    }
    match framing::check_response(response.headers()) {
        Ok(()) => Ok(response),
        Err(fault) => Err(Error::AmbiguousResponse { host: host(), fault }),
    }
}

impl IdleConnection {
    fn is_usable(&self) -> bool {
        self.since.elapsed() < IDLE_TIMEOUT && !self.connection.sender.is_closed()
    }
}

impl Lease {
    /// Returns the address of the other end, if it is known.
    pub fn address(&self) -> Option<IpAddr> {
        self.connection.address
    }

    /// Returns the connection to the pool, after the end of the response.
    pub fn give_back(self) {
        if !self.connection.sender.is_closed() {
            let mut idle = lock(&self.pool.idle);
            if idle.values().map(Vec::len).sum::<usize>() >= MAX_IDLE {
                // Make room: drop the destination with the connection that has been idle for
                // longest.
                let oldest = idle.iter().min_by_key(|(_, list)| list.first().map(|idle| idle.since));
                if let Some(oldest) = oldest.map(|(destination, _)| destination.clone()) {
                    idle.remove(&oldest);
                }
            }
            let connections = idle.entry(self.destination).or_default();
            if connections.len() < MAX_IDLE_PER_HOST {
                connections.push(IdleConnection { connection: self.connection, since: Instant::now() });
            }
        }
    }
}
