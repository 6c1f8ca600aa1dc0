//! Responses to clients that are not served: those that are not allowed, and those that find all
//! places taken.

use super::places::Places;
use http::StatusCode;
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The largest number of clients that are sent a rejection at once.
const MAX_REJECTIONS: usize = 32;
/// The time in which such a client must send its request and read the response.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(2);

/// The time after which a client without a place should try again, in seconds.
pub(super) const RETRY_AFTER_SECONDS: u16 = 5;

/// Sends rejections.
#[derive(Clone)]
pub(super) struct Rejections(Places);

/// Why a client is not served.
#[derive(Clone, Copy)]
pub(super) enum Rejection {
    NotAllowed,
    NoPlace,
}

impl Rejections {
    pub fn new() -> Rejections {
        Rejections(Places::new(MAX_REJECTIONS))
    }

    /// Sends a client the reason why it is not served, and disconnects it.
    pub fn send(&self, stream: TcpStream, client: IpAddr, rejection: Rejection) {
        let response = rejection.response();
        match self.0.try_take(client) {
            Some(place) => {
                tokio::spawn(async move {
                    let _ = timeout(REJECTION_TIMEOUT, send_after_request(stream, &response)).await;
                    drop(place);
                });
            }
            // The response fits in the buffer of a new connection. A client that has sent its
            // request already may miss it.
            None => drop(stream.try_write(response.as_bytes())),
        }
    }
}

/// Sends a response when the client has sent a request. A client that gets the response earlier may
/// not read it.
async fn send_after_request(mut stream: TcpStream, response: &str) -> io::Result<()> {
    let _read = stream.read(&mut [0; 4096]).await?;
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await?;
    // A connection that is closed with unread bytes is reset, and the response may be lost.
    while stream.read(&mut [0; 4096]).await? > 0 {}
    Ok(())
}

impl Rejection {
    fn response(self) -> String {
        let (status, headers, text) = match self {
            Rejection::NotAllowed => {
                (StatusCode::FORBIDDEN, String::new(), "you are not allowed here; see --allow")
            }
            Rejection::NoPlace => (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("Retry-After: {RETRY_AFTER_SECONDS}\r\n"),
                "your address has too many connections, or all places are taken; see --max-clients",
            ),
        };
        let body = format!("umbel proxy: {text}\n");
        format!(
            "HTTP/1.1 {status}\r\n{headers}Content-Type: text/plain; charset=utf-8\r\n\
             Cache-Control: no-store\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }
}
