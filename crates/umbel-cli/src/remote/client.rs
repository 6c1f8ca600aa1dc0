//! A connection to the server that has a key.
//!
//! The crate `redis` speaks the protocol and TLS. The redirects of a cluster are followed here and
//! not by the cluster client of that crate: it needs a cluster, and it repeats a command after a
//! broken connection, when only the caller knows whether that is safe.

use super::Address;
use super::error::{Interrupted, connection_error, error_text, is_signal};
use anyhow::{Context, Result, anyhow, bail};
use redis::io::tcp::TcpSettings;
use redis::{
    Cmd, Connection, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisError, RedisResult,
    ServerError, ServerErrorKind, Value, cmd,
};
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

/// Time limit for a response, even to the last piece of a large filter.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);

/// Time limit for a TLS handshake. A server that does not speak TLS may wait for more, and never
/// respond.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);

/// Number of times that a cluster may redirect or postpone a command.
const MAX_REDIRECTS: u32 = 8;

/// Pause before a command that was postponed is repeated. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Environment variable with the password if the address has none, as for redis-cli.
pub const PASSWORD_VARIABLE: &str = "REDISCLI_AUTH";

/// A connection to the server that has a key.
pub struct Client {
    address: Address,
    connection: Connection,
    /// Number of responses that have not been read.
    unread: usize,
}

/// How a cluster responds to a command for a key that is not here, or only partly.
enum Redirect {
    /// The slot of the key belongs to another server.
    Moved(ConnectionAddr),
    /// The slot is being moved, and the key is on the other server already.
    Ask(ConnectionAddr),
    /// The slot is being moved, and its keys are on both servers.
    TryAgain,
}

impl Client {
    /// Connects to the server of an address and logs in.
    pub fn connect(address: &Address) -> Result<Client> {
        let connection = open(&address.server).with_context(|| format!("cannot reach {}", address.server))?;
        let mut client = Client { address: address.clone(), connection, unread: 0 };
        client.log_in()?;
        if let Some(database) = address.database {
            client.setup(cmd("SELECT").arg(database))?;
        }
        Ok(client)
    }

    fn log_in(&mut self) -> Result<()> {
        let Address { user, password, .. } = self.address.clone();
        let (password, source) = match password {
            Some(password) => (Some(password), "the address"),
            None => (std::env::var_os(PASSWORD_VARIABLE).map(OsStringExt::into_vec), PASSWORD_VARIABLE),
        };
        let password = password.filter(|password| !password.is_empty());
        if user.is_none() && password.is_none() {
            return Ok(());
        }
        let mut auth = cmd("AUTH");
        if let Some(user) = user {
            auth.arg(user);
        }
        // There are users without a password.
        auth.arg(password.unwrap_or_default());
        self.setup(&auth).with_context(|| format!("cannot log in with the password of {source}"))
    }

    /// Sends a command that prepares the connection.
    fn setup(&mut self, command: &Cmd) -> Result<()> {
        match self.exchange(command)? {
            Value::ServerError(error) => bail!("{} says: {}", self.address.server, error_text(&error)),
            _ => Ok(()),
        }
    }

    /// Sends a command about the key to the server that has it, and returns the response.
    pub fn call(&mut self, command: &Cmd) -> Result<Value> {
        let response = self.exchange(command)?;
        self.follow(command, response)
    }

    /// Sends commands about the key. [`Client::receive`] returns their responses.
    pub fn send(&mut self, commands: &[Cmd]) -> Result<()> {
        self.write(commands)
    }

    /// Returns the responses to the commands that were sent, from the server that has the key.
    pub fn receive(&mut self, commands: &[Cmd]) -> Result<Vec<Value>> {
        let responses = commands.iter().map(|_| self.read()).collect::<Result<Vec<_>>>()?;
        commands.iter().zip(responses).map(|(command, response)| self.follow(command, response)).collect()
    }

    /// Repeats a command where and when the cluster says, until the response is not a redirect.
    fn follow(&mut self, command: &Cmd, mut response: Value) -> Result<Value> {
        for attempt in 0..MAX_REDIRECTS {
            response = match self.redirect(&response)? {
                None => return Ok(response),
                Some(Redirect::Moved(server)) => {
                    if server != self.address.server {
                        *self = self.connect_to(server)?;
                    }
                    self.exchange(command)?
                }
                // Only this command: the next one may still be for the server that has the slot.
                Some(Redirect::Ask(server)) => self.connect_to(server)?.exchange_asking(command)?,
                Some(Redirect::TryAgain) => {
                    std::thread::sleep(FIRST_PAUSE * 2u32.pow(attempt));
                    self.exchange(command)?
                }
            };
        }
        match self.redirect(&response)? {
            None => Ok(response),
            Some(_) => bail!(
                "the cluster sends us from one server to the next: it may be moving the key; try again later"
            ),
        }
    }

    /// Interprets a response as a redirect, if it is one.
    fn redirect(&self, response: &Value) -> Result<Option<Redirect>> {
        let Value::ServerError(error) = response else { return Ok(None) };
        Ok(Some(match error.kind() {
            Some(ServerErrorKind::Moved) => Redirect::Moved(self.redirect_server(error)?),
            Some(ServerErrorKind::Ask) => Redirect::Ask(self.redirect_server(error)?),
            Some(ServerErrorKind::TryAgain) => Redirect::TryAgain,
            _ => return Ok(None),
        }))
    }

    /// Returns the server that an error such as "MOVED slot host:port" names.
    fn redirect_server(&self, error: &ServerError) -> Result<ConnectionAddr> {
        let error = RedisError::from(error.clone());
        let (node, _slot) = error.redirect_node().context("the cluster names no server")?;
        let (new_host, new_port) = node.rsplit_once(':').context("the cluster names no server")?;
        let new_port = new_port.parse().context("the cluster names no port")?;
        let mut server = self.address.server.clone();
        match &mut server {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                *port = new_port;
                // A server that does not know its own name means the host of this connection.
                if !new_host.is_empty() {
                    *host = new_host.to_owned();
                }
            }
            // A socket is on this machine.
            _ if new_host.is_empty() => server = ConnectionAddr::Tcp("localhost".to_owned(), new_port),
            _ => server = ConnectionAddr::Tcp(new_host.to_owned(), new_port),
        }
        Ok(server)
    }

    fn connect_to(&self, server: ConnectionAddr) -> Result<Client> {
        Client::connect(&Address { server, ..self.address.clone() })
    }

    /// Sends a command, after ASKING, to a server to which its slot is being moved.
    fn exchange_asking(&mut self, command: &Cmd) -> Result<Value> {
        self.write([&cmd("ASKING"), command])?;
        self.read()?;
        self.read()
    }

    fn exchange(&mut self, command: &Cmd) -> Result<Value> {
        self.write([command])?;
        self.read()
    }

    fn write<'a>(&mut self, commands: impl IntoIterator<Item = &'a Cmd>) -> Result<()> {
        if self.unread > 0 {
            // The caller has stopped waiting for responses; those that still come are not for these
            // commands.
            *self = Client::connect(&self.address)?;
        }
        let mut bytes = Vec::new();
        for command in commands {
            command.write_packed_command(&mut bytes);
            self.unread += 1;
        }
        let sent = self.connection.send_packed_command(&bytes);
        self.or_interrupted(sent)
    }

    fn read(&mut self) -> Result<Value> {
        let received = self.connection.recv_response();
        if received.as_ref().is_err_and(is_signal) {
            // The connection skips the late response when it reads the next one.
            self.unread = self.unread.saturating_sub(1);
        }
        let response = self.or_interrupted(received)?;
        self.unread = self.unread.saturating_sub(1);
        Ok(response)
    }

    fn or_interrupted<T>(&self, result: RedisResult<T>) -> Result<T> {
        result
            .map_err(|error| connection_error(&error).context(Interrupted::new(&self.address.server, &error)))
    }
}

/// Opens a connection. Logging in is left to the caller: the crate takes only passwords that are
/// text, and has messages of its own.
fn open(server: &ConnectionAddr) -> Result<Connection> {
    let mut server = server.clone();
    // The crate refuses the addresses of all interfaces. Elsewhere they stand for this machine.
    if let ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } = &mut server {
        match &**host {
            "0.0.0.0" => *host = "127.0.0.1".to_owned(),
            "::" => *host = "::1".to_owned(),
            _ => {}
        }
    }
    let uses_tls = matches!(server, ConnectionAddr::TcpTls { .. });
    let mut connection = connect(server).map_err(|error| connection_error(&error))?;
    if uses_tls {
        shake_hands(&mut connection).map_err(|error| match error.is_timeout() {
            true => anyhow!(
                "the server does not respond; it may not speak TLS on this port: use redis:// without TLS"
            ),
            false => connection_error(&error),
        })?;
    }
    Ok(connection)
}

fn connect(server: ConnectionAddr) -> RedisResult<Connection> {
    let info = server
        .into_connection_info()?
        .set_tcp_settings(TcpSettings::default().set_nodelay(true))
        .set_redis_settings(RedisConnectionInfo::default().set_skip_set_lib_name());
    let connection = redis::Client::open(info)?.get_connection()?;
    connection.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    connection.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
    Ok(connection)
}

/// Sends a command on a new connection with TLS, since the handshake takes place with the first
/// one. A server that wants a password refuses the command, which is a response too.
fn shake_hands(connection: &mut Connection) -> RedisResult<()> {
    connection.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
    connection.send_packed_command(&cmd("PING").get_packed_command())?;
    connection.recv_response()?;
    connection.set_read_timeout(Some(RESPONSE_TIMEOUT))
}
