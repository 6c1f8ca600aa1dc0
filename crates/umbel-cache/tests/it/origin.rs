//! An origin that says whatever a test wants, byte for byte, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What somebody asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    /// As it stands in the first line.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The path, also of one who asks for a whole address.
    pub fn path(&self) -> &str {
        let rest = self.target.strip_prefix("http://").unwrap_or(&self.target);
        rest.find('/').map_or("/", |slash| &rest[slash..])
    }
}

/// What an origin does with a question.
pub enum Does {
    /// Sends these bytes, and waits for the next question.
    Says(Vec<u8>),
    /// Sends these bytes, waits so long, and hangs up.
    Ends(Vec<u8>, Duration),
}

type Handler = dyn Fn(&Asked) -> Does + Send + Sync;

/// A server on a port of its own, which ends with this.
pub struct Origin {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    ends: Arc<AtomicBool>,
}

impl Origin {
    pub fn start(handler: impl Fn(&Asked) -> Does + Send + Sync + 'static) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, ends) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (all, over, handler): (_, _, Arc<Handler>) =
            (Arc::clone(&asked), Arc::clone(&ends), Arc::new(handler));
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
        Origin { address, asked, ends }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All that it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How often it was asked for a path.
    pub fn times(&self, path: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| asked.path() == path).count()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: &TcpStream, all: &Mutex<Vec<Asked>>, handler: &Handler) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
    let mut reader = BufReader::new(stream);
    while let Some(asked) = read(&mut reader) {
        all.lock().unwrap().push(asked.clone());
        let mut stream = stream;
        match handler(&asked) {
            Does::Says(bytes) => {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
            Does::Ends(bytes, after) => {
                let _ = stream.write_all(&bytes);
                thread::sleep(after);
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Asked> {
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
    let mut asked = Asked { method, target, headers, body: Vec::new() };
    let length = asked.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    asked.body = vec![0; length];
    reader.read_exact(&mut asked.body).ok()?;
    Some(asked)
}

/// An answer in chunks.
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

/// An answer with a length.
pub fn answer(status: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len()).into_bytes();
    for line in headers {
        bytes.extend(format!("{line}\r\n").into_bytes());
    }
    bytes.extend(b"\r\n");
    bytes.extend(body);
    bytes
}
