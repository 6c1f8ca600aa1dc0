//! A connection to the server that has a key.
//!
//! The redirects of a cluster are followed, but no command is repeated after a broken connection:
//! only the caller knows whether that is safe.

use super::connection::Connection;
use super::endpoint::Endpoint;
use super::error::{Interrupted, connection_error};
use super::redirect::Redirect;
use super::response::{Command, Failure, Value, command};
use super::server::Server;
use anyhow::{Context, Result, bail};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Number of times that a cluster may redirect or postpone a command.
const MAX_REDIRECTS: u32 = 8;

/// Pause before a command that was postponed is repeated. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// A connection to the server that has a key.
pub struct Client {
    endpoint: Arc<Endpoint>,
    /// The server of this connection: that of the endpoint, or another one of its cluster.
    server: Server,
    /// The host of the first connection.
    peer: Option<IpAddr>,
    connection: Connection,
    /// Number of responses that have not been read.
    unread: usize,
}

impl Client {
    /// Connects to the server of an address and logs in.
    pub fn connect(endpoint: &Arc<Endpoint>) -> Result<Client> {
        Client::open(endpoint, endpoint.address.server.clone(), None)
    }

    fn open(endpoint: &Arc<Endpoint>, server: Server, peer: Option<IpAddr>) -> Result<Client> {
        let connection = Connection::open(&server, &endpoint.tls, endpoint.timeout)
            .map_err(|failure| connection_error(&failure, endpoint.timeout))
            .with_context(|| format!("cannot reach {server}"))?;
        let peer = peer.or_else(|| connection.peer());
        let mut client = Client { endpoint: Arc::clone(endpoint), server, peer, connection, unread: 0 };
        client.log_in()?;
        if let Some(database) = endpoint.address.database {
            client.setup(&command("SELECT").number(database.into()))?;
        }
        Ok(client)
    }

    fn log_in(&mut self) -> Result<()> {
        let endpoint = Arc::clone(&self.endpoint);
        let mut auth = command("AUTH");
        match &endpoint.address.user {
            Some(user) => auth = auth.arg(user),
            None if endpoint.password.is_empty() => return Ok(()),
            None => {}
        }
        // There are users without a password.
        self.setup(&auth.arg(&*endpoint.password))
            .with_context(|| format!("cannot log in with the password of {}", endpoint.password_source))
    }

    /// Sends a command that prepares the connection.
    fn setup(&mut self, command: &Command) -> Result<()> {
        match self.exchange(command)? {
            Value::Error(error) => bail!("{} says: {error}", self.server),
            _ => Ok(()),
        }
    }

    /// Sends a command about the key to the server that has it, and returns the response.
    pub fn call(&mut self, command: &Command) -> Result<Value> {
        let response = self.exchange(command)?;
        self.follow(command, response)
    }

    /// Sends commands about the key. [`Client::receive`] returns their responses.
    pub fn send(&mut self, commands: &[Command]) -> Result<()> {
        self.write(commands)
    }

    /// Returns the responses to the commands that were sent, from the server that has the key.
    pub fn receive(&mut self, commands: &[Command]) -> Result<Vec<Value>> {
        let responses = commands.iter().map(|_| self.read()).collect::<Result<Vec<_>>>()?;
        commands.iter().zip(responses).map(|(command, response)| self.follow(command, response)).collect()
    }

    /// Repeats a command where and when the cluster says, until the response is not a redirect.
    fn follow(&mut self, command: &Command, mut response: Value) -> Result<Value> {
        for attempt in 0..MAX_REDIRECTS {
            response = match self.redirect(&response)? {
                None => return Ok(response),
                Some(Redirect::Moved(server)) => {
                    if server != self.server {
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
        match response {
            Value::Error(error) => Redirect::parse(error, &self.server),
            _ => Ok(None),
        }
    }

    fn connect_to(&self, server: Server) -> Result<Client> {
        if !self.endpoint.trusts(&server, self.peer) {
            let host = server.host().unwrap_or_default();
            bail!(
                "the cluster redirects to {server}, which does not get the password of {}: \
                 if that is a server of yours, allow it with --allow-redirect {host}",
                self.endpoint.address.server
            );
        }
        Client::open(&self.endpoint, server, self.peer)
    }

    /// Sends a command, after ASKING, to a server to which its slot is being moved.
    fn exchange_asking(&mut self, asking: &Command) -> Result<Value> {
        self.write([&command("ASKING"), asking])?;
        self.read()?;
        self.read()
    }

    fn exchange(&mut self, command: &Command) -> Result<Value> {
        self.write([command])?;
        self.read()
    }

    fn write<'a>(&mut self, commands: impl IntoIterator<Item = &'a Command>) -> Result<()> {
        if self.unread > 0 {
            // The caller has stopped waiting for responses; those that still come are not for these
            // commands.
            *self = self.connect_to(self.server.clone())?;
        }
        let commands: Vec<&Command> = commands.into_iter().collect();
        self.unread += commands.len();
        let sent = self.connection.send(commands);
        self.or_interrupted(sent)
    }

    fn read(&mut self) -> Result<Value> {
        let received = self.connection.receive();
        let mut response = self.or_interrupted(received)?;
        self.unread = self.unread.saturating_sub(1);
        if let Value::Error(error) = &mut response {
            // A server that does not know a command repeats its arguments.
            error.hide(&self.endpoint.password);
        }
        Ok(response)
    }

    fn or_interrupted<T>(&self, result: Result<T, Failure>) -> Result<T> {
        let explain = |failure| connection_error(&failure, self.endpoint.timeout);
        result.map_err(explain).with_context(|| Interrupted::new(&self.server))
    }
}
