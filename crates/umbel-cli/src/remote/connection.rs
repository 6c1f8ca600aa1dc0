//! A connection to a server, with or without TLS, over which commands and responses are exchanged.

use super::response::{self, Command, Failure, Value, command};
use super::server::Server;
use super::socket::Socket;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, BufReader, Read, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Time limit for a TLS handshake. A server that does not speak TLS may wait for more, and never
/// respond.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);

/// Number of bytes that are read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// A connection to a server.
pub struct Connection {
    stream: BufReader<Stream>,
    /// Time limit for a command or a response.
    limit: Duration,
}

enum Stream {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

impl Connection {
    /// Connects to a server. The configuration is for [`Server::Tls`].
    pub fn open(server: &Server, tls: &Arc<ClientConfig>, limit: Duration) -> Result<Connection, Failure> {
        let socket = Socket::connect(server, limit)?;
        let stream = match server {
            Server::Tls { host, .. } => Stream::Tls(Box::new(shake_hands(host, tls, socket, limit)?)),
            _ => Stream::Plain(socket),
        };
        let mut connection = Connection { stream: BufReader::with_capacity(BUFFER_BYTES, stream), limit };
        if let Server::Tls { .. } = server {
            // A server that refuses the certificate of a client does so after the handshake. One
            // that wants a password refuses the command, which is a response too.
            connection.send([&command("PING")])?;
            connection.receive()?;
        }
        Ok(connection)
    }

    /// Returns the address of the host at the other end.
    pub fn peer(&self) -> Option<IpAddr> {
        match self.stream.get_ref() {
            Stream::Plain(socket) => socket.peer(),
            Stream::Tls(stream) => stream.sock.peer(),
        }
    }

    /// Sends commands, to which no earlier response may be missing.
    pub fn send<'a>(&mut self, commands: impl IntoIterator<Item = &'a Command>) -> Result<(), Failure> {
        if !self.stream.buffer().is_empty() {
            return Err(Failure::Unexpected);
        }
        let mut bytes = Vec::new();
        commands.into_iter().for_each(|command| command.write(&mut bytes));
        self.restart();
        let stream = self.stream.get_mut();
        stream.write_all(&bytes)?;
        Ok(stream.flush()?)
    }

    /// Returns the next response.
    pub fn receive(&mut self) -> Result<Value, Failure> {
        self.restart();
        response::read(&mut self.stream)
    }

    fn restart(&mut self) {
        match self.stream.get_mut() {
            Stream::Plain(socket) => socket.restart(self.limit),
            Stream::Tls(stream) => stream.sock.restart(self.limit),
        }
    }
}

fn shake_hands(
    host: &str,
    tls: &Arc<ClientConfig>,
    mut socket: Socket,
    limit: Duration,
) -> Result<StreamOwned<ClientConnection, Socket>, Failure> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    socket.restart(limit.min(HANDSHAKE_TIMEOUT));
    let mut stream =
        StreamOwned::new(ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?, socket);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => io::Error::new(io::ErrorKind::TimedOut, NoHandshake),
            _ => error,
        })?;
    }
    Ok(stream)
}

/// The cause of an error: the server did not answer the beginning of a TLS handshake.
#[derive(Debug)]
pub struct NoHandshake;

impl std::fmt::Display for NoHandshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "the server does not respond; it may not speak TLS on this port: use redis:// without TLS",
        )
    }
}

impl std::error::Error for NoHandshake {}

impl Read for Stream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(to),
            Stream::Tls(stream) => stream.read(to),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(from),
            Stream::Tls(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}
