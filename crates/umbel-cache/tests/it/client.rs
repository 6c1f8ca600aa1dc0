//! A client that sees the exact bytes of responses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether the body is complete.
    pub whole: bool,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the `Cache-Status` of the last cache.
    pub fn cache(&self) -> &str {
        let mut said =
            self.headers.iter().rev().filter(|(name, _)| name.eq_ignore_ascii_case("cache-status"));
        said.next().map_or("", |(_, value)| value)
    }
}

/// A connection to a proxy.
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    pub fn open(proxy: SocketAddr) -> Connection {
        Connection::of(TcpStream::connect(proxy).unwrap())
    }

    pub fn of(stream: TcpStream) -> Connection {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        Connection(BufReader::new(stream))
    }

    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    pub fn ask(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let host = target.strip_prefix("http://").unwrap_or("proxy").split('/').next().unwrap();
        let mut text = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
        headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        self.send(&[text.as_bytes(), body].concat()).unwrap();
        self.receive_for(method).unwrap_or_else(|| panic!("no answer to {method} {target}"))
    }

    /// Returns the next response, if one arrives.
    pub fn receive(&mut self, head_only: bool) -> Option<Response> {
        self.receive_for(if head_only { "HEAD" } else { "GET" })
    }

    /// Returns the next response to a request with this method. After that to a successful
    /// `CONNECT`, a tunnel begins.
    fn receive_for(&mut self, method: &str) -> Option<Response> {
        let line = self.line()?;
        let status: u16 = line.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        while let Some((name, value)) = self.line()?.split_once(':') {
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut response = Response { status, headers, body: Vec::new(), whole: true };
        let begins_tunnel = method == "CONNECT" && (200..300).contains(&status);
        if method == "HEAD" || begins_tunnel || status == 304 || status == 204 {
            return Some(response);
        }
        let length = response.header("content-length").map(|length| length.parse::<u64>().unwrap());
        if response.header("transfer-encoding").is_some() {
            response.whole = self.read_chunks(&mut response.body).is_some();
        } else if let Some(length) = length {
            let _ = self.0.by_ref().take(length).read_to_end(&mut response.body);
            response.whole = response.body.len() as u64 == length;
        } else {
            response.whole = self.0.read_to_end(&mut response.body).is_ok();
        }
        Some(response)
    }

    fn read_chunks(&mut self, body: &mut Vec<u8>) -> Option<()> {
        loop {
            let length = u64::from_str_radix(&self.line()?, 16).ok()?;
            let count = self.0.by_ref().take(length).read_to_end(body).ok()?;
            self.line()?;
            if count as u64 != length {
                return None;
            }
            if length == 0 {
                return Some(());
            }
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.0.read_line(&mut line).ok()?;
        (count > 0).then(|| line.trim_end().to_owned())
    }

    pub fn into_stream(self) -> TcpStream {
        self.0.into_inner()
    }
}

/// Sends one request to a proxy.
pub fn ask(proxy: SocketAddr, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
    Connection::open(proxy).ask(method, target, headers, b"")
}

/// Sends a `GET` to a proxy.
pub fn get(proxy: SocketAddr, url: &str) -> Response {
    ask(proxy, "GET", url, &[])
}
