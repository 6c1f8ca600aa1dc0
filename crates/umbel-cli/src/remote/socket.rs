//! Sockets with a time limit for a whole response, not for each of its bytes.

use super::response::MAX_RESPONSE_BYTES;
use super::server::Server;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// The lowest rate of a transfer, in bytes a second. Each byte extends the time limit accordingly.
const MIN_BYTES_PER_SECOND: u32 = 16 << 10;

/// The time that the largest response takes at the lowest rate.
const MAX_EARNED: Duration = Duration::from_secs(MAX_RESPONSE_BYTES / MIN_BYTES_PER_SECOND as u64);

/// A socket whose reads and writes share a time limit.
pub struct Socket {
    stream: Stream,
    /// Time limit for a command or a response.
    limit: Duration,
    /// Time that is left to wait for the current one.
    left: Duration,
    /// Time by which bytes can still extend the limit. Bytes outside a response, such as
    /// messages of TLS itself, cannot extend it for ever.
    earnable: Duration,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects to a server.
    pub fn connect(server: &Server, limit: Duration) -> io::Result<Socket> {
        let stream = match server {
            Server::Tcp { host, port } | Server::Tls { host, port } => {
                Stream::Tcp(connect_tcp(host, *port, limit)?)
            }
            Server::Unix(path) => Stream::Unix(connect_unix(path, limit)?),
        };
        Ok(Socket { stream, limit, left: limit, earnable: MAX_EARNED })
    }

    /// Returns the address of the host at the other end.
    pub fn peer(&self) -> Option<IpAddr> {
        match &self.stream {
            Stream::Tcp(stream) => stream.peer_addr().ok().map(|address| address.ip().to_canonical()),
            Stream::Unix(_) => None,
        }
    }

    /// Starts the time limit again.
    pub fn restart(&mut self, limit: Duration) {
        (self.limit, self.left, self.earnable) = (limit, limit, MAX_EARNED);
    }

    /// Calls a function that waits for the other end, and counts the time.
    fn wait(&mut self, mut call: impl FnMut(&mut Stream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            // The system takes zero for no limit.
            let limit = self.left.max(Duration::from_millis(1));
            self.stream.set_timeout(limit)?;
            let start = Instant::now();
            let result = call(&mut self.stream);
            let waited = start.elapsed();
            match &result {
                // A signal ended the wait, as when a process is stopped and continued in a shell:
                // the system restarts other calls, but not those with a time limit.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(_) => {}
                Ok(bytes) => {
                    // The system ends a wait at the limit: more time passed while the process was stopped.
                    let waited =
                        if waited > limit + Duration::from_secs(1) { Duration::ZERO } else { waited };
                    let earned = Duration::from_secs(*bytes as u64) / MIN_BYTES_PER_SECOND;
                    let earned = earned.min(self.earnable);
                    self.earnable -= earned;
                    self.left = (self.left.saturating_sub(waited) + earned).min(self.limit);
                    if self.left.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
            }
            return result;
        }
    }
}

impl Read for Socket {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.wait(|stream| match stream {
            Stream::Tcp(stream) => stream.read(to),
            Stream::Unix(stream) => stream.read(to),
        })
    }
}

impl Write for Socket {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.wait(|stream| match stream {
            Stream::Tcp(stream) => stream.write(from),
            Stream::Unix(stream) => stream.write(from),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    fn set_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(Some(limit)).and_then(|()| stream.set_write_timeout(Some(limit)))
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(Some(limit)).and_then(|()| stream.set_write_timeout(Some(limit)))
            }
        }
    }
}

/// Connects to the first address of a host that accepts a connection.
fn connect_tcp(host: &str, port: u16, limit: Duration) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Connects to a Unix socket. A program that accepts no connections would block this for ever, so
/// that another thread waits for it.
fn connect_unix(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let (sender, connected) = channel();
    let path = path.to_owned();
    // If nobody waits any longer, the connection is not needed.
    thread::spawn(move || drop(sender.send(UnixStream::connect(path))));
    connected.recv_timeout(limit).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
