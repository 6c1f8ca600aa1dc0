//! Connections to origins and peers, which are used again.

use super::Limits;
use super::body::Body;
use super::target::HostPort;
use super::timed_stream::TimedStream;
use crate::error::{Error, Result};
use crate::rules::Audience;
use crate::sync::lock;
use http::header::TRANSFER_ENCODING;
use http::{Request, Response, StatusCode, request};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
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
    /// Whether an address is reached by this.
    pub fn permits(self, address: IpAddr) -> bool {
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

/// Connections that nobody uses just now.
pub(super) struct Pool {
    idle: Mutex<HashMap<(HostPort, Reach), Vec<Idle>>>,
    limits: Limits,
    /// Names that are being looked up: that takes a thread each, which others need.
    names: Arc<Semaphore>,
}

struct Idle {
    link: Link,
    since: Instant,
}

/// A connection.
struct Link {
    sender: SendRequest<Body>,
    /// Who may get what comes by it.
    audience: Audience,
}

/// A connection that is in use.
pub(super) struct Lease {
    pool: Arc<Pool>,
    to: (HostPort, Reach),
    link: Link,
}

/// How long a connection is kept for the next, how many to one address, and how many in all.
const KEPT: Duration = Duration::from_secs(15);
const MOST: usize = 64;
const MOST_IN_ALL: usize = 256;

/// So many names are looked up at once.
const NAMES: usize = 64;

/// Who sends much takes long before he is answered.
const UPLOAD: u32 = 15;

impl Pool {
    pub fn new(limits: &Limits) -> Pool {
        let names = Arc::new(Semaphore::new(NAMES));
        Pool { idle: Mutex::default(), limits: limits.clone(), names }
    }

    /// Asks somebody. If it changes nothing a connection is used again, and if that has ended meanwhile, a new one.
    pub async fn send(
        self: &Arc<Pool>,
        to: &HostPort,
        reach: Reach,
        parts: &request::Parts,
        body: Option<Body>,
    ) -> Result<(Response<Incoming>, Lease)> {
        let place = (to.clone(), reach);
        if body.is_none()
            && parts.method.is_safe()
            && let Some(mut link) = self.take(&place)
            && link.sender.ready().await.is_ok()
        {
            match self.ask(to, &mut link, parts, Body::empty(), self.limits.origin_timeout).await {
                // The other end may have closed it at this moment.
                Err(Error::NoResponse { .. } | Error::UnsupportedResponse { .. }) => {}
                Err(error) => return Err(error),
                Ok(answer) => return Ok((answer, Lease { pool: Arc::clone(self), to: place, link })),
            }
        }
        let mut link = self.connect(to, reach).await?;
        let wait =
            if body.is_some() { self.limits.origin_timeout * UPLOAD } else { self.limits.origin_timeout };
        let answer = self.ask(to, &mut link, parts, body.unwrap_or_else(Body::empty), wait).await?;
        Ok((answer, Lease { pool: Arc::clone(self), to: place, link }))
    }

    async fn ask(
        &self,
        to: &HostPort,
        link: &mut Link,
        parts: &request::Parts,
        body: Body,
        wait: Duration,
    ) -> Result<Response<Incoming>> {
        let sent = link.sender.send_request(Request::from_parts(parts.clone(), body));
        let host = || to.to_string();
        let answer = match timeout(wait, sent).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(source)) => return Err(Error::NoResponse { host: host(), source }),
            Err(_) => return Err(Error::Timeout { host: host(), what: "gives no answer", within: wait }),
        };
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Error::UnsupportedResponse { host: host(), what: "wants to speak something else" });
        }
        // Of any other coding it is not seen when it ends too early.
        let mut codings = answer.headers().get_all(TRANSFER_ENCODING).iter();
        if codings.any(|coding| !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked")) {
            let what = "sends its answer in a coding that is not known here";
            return Err(Error::UnsupportedResponse { host: host(), what });
        }
        Ok(answer)
    }

    async fn connect(&self, to: &HostPort, reach: Reach) -> Result<Link> {
        let stream = self.reach(to, reach).await?;
        let outside = stream.peer_addr().is_ok_and(|address| Reach::Outside.permits(address.ip()));
        let audience = if outside { Audience::Everyone } else { Audience::Localhost };
        let stream = TimedStream::new(stream, self.limits.stall_timeout);
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(self.limits.max_header_bytes)
            .max_headers(self.limits.max_headers)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Error::unreachable(to, error))?;
        // How it ends is seen by whoever uses it.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Link { sender, audience })
    }

    /// A connection to somewhere.
    pub async fn reach(&self, to: &HostPort, reach: Reach) -> Result<TcpStream> {
        let within = self.limits.connect_timeout;
        let late = |_| Error::Timeout { host: to.to_string(), what: "cannot be reached", within };
        timeout(within, self.reach_any(to, reach)).await.map_err(late)?
    }

    /// The addresses that a name has.
    pub async fn look_up(&self, to: &HostPort) -> io::Result<Vec<SocketAddr>> {
        if let Ok(ip) = to.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(ip, to.port)]);
        }
        let looking = async {
            let place = Arc::clone(&self.names).acquire_owned().await.map_err(io::Error::other)?;
            let to = to.clone();
            // It goes on when nobody waits for it any more, and so does its thread.
            let found = tokio::spawn(async move {
                let found = lookup_host((to.host.as_str(), to.port)).await.map(Iterator::collect);
                drop(place);
                found
            });
            found.await.map_err(io::Error::other)?
        };
        timeout(self.limits.connect_timeout, looking)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Tries all addresses of a host, each but the last for a third of the time at most.
    async fn reach_any(&self, to: &HostPort, reach: Reach) -> Result<TcpStream> {
        let unreachable = |error: io::Error| Error::unreachable(to, error);
        let mut last = None;
        let mut addresses = self.look_up(to).await.map_err(unreachable)?.into_iter().peekable();
        while let Some(address) = addresses.next() {
            if !reach.permits(address.ip()) {
                return Err(Error::Forbidden { host: to.to_string() });
            }
            let connecting = TcpStream::connect(address);
            let connected = match addresses.peek() {
                Some(_) => timeout(self.limits.connect_timeout / 3, connecting)
                    .await
                    .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
                None => connecting.await,
            };
            match connected {
                Ok(stream) => {
                    // Small questions are not held back until there is more to say.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| Error::unreachable(to, "it has no address"), unreachable))
    }

    fn take(&self, to: &(HostPort, Reach)) -> Option<Link> {
        let mut idle = lock(&self.idle);
        let list = idle.get_mut(to)?;
        while let Some(last) = list.pop() {
            if last.is_good() {
                return Some(last.link);
            }
        }
        idle.remove(to);
        None
    }

    /// Ends connections that nobody has used for some time.
    pub fn tidy(&self) {
        lock(&self.idle).retain(|_, list| {
            list.retain(Idle::is_good);
            !list.is_empty()
        });
    }
}

impl Idle {
    fn is_good(&self) -> bool {
        self.since.elapsed() < KEPT && !self.link.sender.is_closed()
    }
}

impl Lease {
    /// Who may get what comes by it.
    pub fn audience(&self) -> Audience {
        self.link.audience
    }

    /// Others may use the connection, since the answer has come to its end.
    pub fn give_back(self) {
        if !self.link.sender.is_closed() {
            let mut idle = lock(&self.pool.idle);
            if idle.values().map(Vec::len).sum::<usize>() >= MOST_IN_ALL {
                // Whichever it is, it was not used for some time.
                let oldest = idle.iter().min_by_key(|(_, list)| list.first().map(|idle| idle.since));
                if let Some(oldest) = oldest.map(|(to, _)| to.clone()) {
                    idle.remove(&oldest);
                }
            }
            let list = idle.entry(self.to).or_default();
            if list.len() < MOST {
                list.push(Idle { link: self.link, since: Instant::now() });
            }
        }
    }
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
