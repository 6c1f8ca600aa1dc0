//! Connections to origins and peers, which are used again.

use super::body::Body;
use super::target::Address;
use super::timed::Timed;
use crate::sync::lock;
use http::{Request, Response, StatusCode, request};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// Whom somebody may reach through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reach {
    /// Everybody.
    All,
    /// Everybody but this machine itself: who asks from elsewhere does not get at what is only for those who are here.
    Outside,
}

impl Reach {
    fn permits(self, address: IpAddr) -> bool {
        self == Reach::All
            || !match address.to_canonical() {
                IpAddr::V4(v4) => {
                    v4.is_loopback() || v4.is_link_local() || v4.is_unspecified() || v4 == Ipv4Addr::BROADCAST
                }
                IpAddr::V6(v6) => {
                    v6.is_loopback() || v6.is_unicast_link_local() || v6 == Ipv6Addr::UNSPECIFIED
                }
            }
    }
}

/// Why somebody could not be asked.
#[derive(Debug)]
pub(super) enum Failure {
    /// One may not.
    Forbidden(String),
    /// Nobody is there.
    Unreachable(String),
    /// There was no answer in time.
    Late(String),
    /// The answer makes no sense.
    Nonsense(String),
}

impl Failure {
    pub fn status(&self) -> StatusCode {
        match self {
            Failure::Forbidden(_) => StatusCode::FORBIDDEN,
            Failure::Unreachable(_) | Failure::Nonsense(_) => StatusCode::BAD_GATEWAY,
            Failure::Late(_) => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Forbidden(what)
            | Failure::Unreachable(what)
            | Failure::Late(what)
            | Failure::Nonsense(what) => f.write_str(what),
        }
    }
}

/// How long one waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// For a connection.
    pub connect: Duration,
    /// For the beginning of an answer.
    pub answer: Duration,
    /// For somebody who does not read what is sent.
    pub stall: Duration,
}

/// Connections that nobody uses just now.
pub(super) struct Pool {
    idle: Mutex<HashMap<(Address, Reach), Vec<Idle>>>,
    waits: Waits,
    head_bytes: usize,
}

struct Idle {
    sender: SendRequest<Body>,
    since: Instant,
}

/// A connection that is in use.
pub(super) struct Lease {
    pool: Arc<Pool>,
    to: (Address, Reach),
    sender: SendRequest<Body>,
}

/// How long a connection is kept for the next, and how many to one address.
const KEPT: Duration = Duration::from_secs(15);
const MOST: usize = 64;

/// Who sends much takes long before he is answered.
const UPLOAD: u32 = 15;

impl Pool {
    pub fn new(waits: Waits, head_bytes: usize) -> Pool {
        Pool { idle: Mutex::default(), waits, head_bytes }
    }

    /// Asks somebody. Without a body a connection is used again, and if that has ended meanwhile, another one.
    pub async fn send(
        self: &Arc<Pool>,
        to: &Address,
        reach: Reach,
        parts: &request::Parts,
        body: Option<Body>,
    ) -> Result<(Response<Incoming>, Lease), Failure> {
        let place = (to.clone(), reach);
        if body.is_none() {
            while let Some(mut sender) = self.take(&place) {
                if sender.ready().await.is_err() {
                    continue;
                }
                match self.ask(to, &mut sender, parts, Body::empty(), self.waits.answer).await {
                    // The other end may have closed it at this moment.
                    Err(Failure::Nonsense(_)) => {}
                    Err(failure) => return Err(failure),
                    Ok(answer) => return Ok((answer, Lease { pool: Arc::clone(self), to: place, sender })),
                }
            }
        }
        let mut sender = self.connect(to, reach).await?;
        let wait = if body.is_some() { self.waits.answer * UPLOAD } else { self.waits.answer };
        let answer = self.ask(to, &mut sender, parts, body.unwrap_or_else(Body::empty), wait).await?;
        Ok((answer, Lease { pool: Arc::clone(self), to: place, sender }))
    }

    async fn ask(
        &self,
        to: &Address,
        sender: &mut SendRequest<Body>,
        parts: &request::Parts,
        body: Body,
        wait: Duration,
    ) -> Result<Response<Incoming>, Failure> {
        match timeout(wait, sender.send_request(Request::from_parts(parts.clone(), body))).await {
            Ok(answer) => {
                answer.map_err(|error| Failure::Nonsense(format!("{to} gives no answer: {}", chain(&error))))
            }
            Err(_) => Err(Failure::Late(format!("{to} gives no answer within {wait:?}"))),
        }
    }

    async fn connect(&self, to: &Address, reach: Reach) -> Result<SendRequest<Body>, Failure> {
        let stream = Timed::new(self.reach(to, reach).await?, self.waits.stall);
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(self.head_bytes)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Failure::Unreachable(format!("{to}: {error}")))?;
        // How it ends is seen by whoever uses it.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }

    /// A connection to somewhere.
    pub async fn reach(&self, to: &Address, reach: Reach) -> Result<TcpStream, Failure> {
        let late = |_| Failure::Late(format!("{to} cannot be reached within {:?}", self.waits.connect));
        timeout(self.waits.connect, reach_any(to, reach)).await.map_err(late)?
    }

    fn take(&self, to: &(Address, Reach)) -> Option<SendRequest<Body>> {
        let mut idle = lock(&self.idle);
        let list = idle.get_mut(to)?;
        while let Some(last) = list.pop() {
            if last.since.elapsed() < KEPT && !last.sender.is_closed() {
                return Some(last.sender);
            }
        }
        idle.remove(to);
        None
    }

    /// Ends connections that nobody has used for some time.
    pub fn tidy(&self) {
        lock(&self.idle).retain(|_, list| {
            list.retain(|idle| idle.since.elapsed() < KEPT && !idle.sender.is_closed());
            !list.is_empty()
        });
    }
}

impl Lease {
    /// Others may use the connection, since the answer has come to its end.
    pub fn give_back(self) {
        if !self.sender.is_closed() {
            let mut idle = lock(&self.pool.idle);
            let list = idle.entry(self.to).or_default();
            if list.len() < MOST {
                list.push(Idle { sender: self.sender, since: Instant::now() });
            }
        }
    }
}

async fn reach_any(to: &Address, reach: Reach) -> Result<TcpStream, Failure> {
    let unreachable = |error| Failure::Unreachable(format!("{to} cannot be reached: {error}"));
    let mut last = None;
    for address in lookup_host((to.host.as_str(), to.port)).await.map_err(unreachable)? {
        if !reach.permits(address.ip()) {
            return Err(Failure::Forbidden(format!("{to} is for this machine only")));
        }
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Small questions are not held back until there is more to say.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(|| Failure::Unreachable(format!("{to} has no address")), unreachable))
}

/// An error with its reasons.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(reason) = next {
        text.push_str(&format!(": {reason}"));
        next = reason.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_elsewhere_does_not_get_at_what_is_for_this_machine() {
        for (address, outside) in [
            ("127.0.0.1", false),
            ("127.9.9.9", false),
            ("0.0.0.0", false),
            ("169.254.169.254", false),
            ("::1", false),
            ("::", false),
            ("::ffff:127.0.0.1", false),
            ("fe80::1", false),
            ("192.0.2.7", true),
            ("10.0.0.1", true),
            ("2001:db8::1", true),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(Reach::Outside.permits(address), outside, "{address}");
            assert!(Reach::All.permits(address));
        }
    }
}
