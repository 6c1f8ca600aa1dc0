//! An origin that sends the bytes that a test chooses and records the requests that it receives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request that the origin has received.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// The target as it is in the request line.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Returns the path, even if the target is an absolute URI.
    pub fn path(&self) -> &str {
        let rest = self.target.strip_prefix("http://").unwrap_or(&self.target);
        rest.find('/').map_or("/", |slash| &rest[slash..])
    }
}

/// The reaction of an origin to a request.
pub enum Reply {
    /// Sends these bytes and waits for the next request.
    Send(Vec<u8>),
    /// Sends these bytes, waits for this time and closes the connection.
    SendAndClose(Vec<u8>, Duration),
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

/// A server on a port of its own, which stops when this is dropped.
pub struct Origin {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    ends: Arc<AtomicBool>,
}

impl Origin {
    pub fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, ends) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (all, over, handler): (_, _, Arc<Handler>) =
            (Arc::clone(&requests), Arc::clone(&ends), Arc::new(handler));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Relaxed) {
                    return;
                }
                let (Ok(stream), all, handler) = (stream, Arc::clone(&all), Arc::clone(&handler)) else {
                    continue;
                };
                thread::spawn(move || serve(&stream, &all, &*handler));
            }
        });
        Origin { address, requests, ends }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns all requests received so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the number of requests for a path.
    pub fn times(&self, path: &str) -> usize {
        self.requests.lock().unwrap().iter().filter(|request| request.path() == path).count()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: &TcpStream, all: &Mutex<Vec<Request>>, handler: &Handler) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        all.lock().unwrap().push(request.clone());
        let mut stream = stream;
        match handler(&request) {
            Reply::Send(bytes) => {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
            Reply::SendAndClose(bytes, after) => {
                let _ = stream.write_all(&bytes);
                thread::sleep(after);
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = Request { method, target, headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

/// Returns a chunked response.
pub fn chunked<'a>(headers: &[&str], chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n".to_vec();
    headers.iter().for_each(|line| bytes.extend(format!("{line}\r\n").into_bytes()));
    bytes.extend(b"\r\n");
    for chunk in chunks {
        bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        bytes.extend(chunk.iter().chain(b"\r\n"));
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

/// Returns a response with a `Content-Length`.
pub fn response(status: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len()).into_bytes();
    for line in headers {
        bytes.extend(format!("{line}\r\n").into_bytes());
    }
    bytes.extend(b"\r\n");
    bytes.extend(body);
    bytes
}
