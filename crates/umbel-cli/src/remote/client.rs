//! A connection that speaks RESP, the protocol of Redis and Valkey.

use super::Address;
use anyhow::{Context, Result, anyhow, bail};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

/// No answer takes longer, not even that to the last piece of a large filter.
const PATIENCE: Duration = Duration::from_secs(120);

/// No answer is longer than a piece, by far.
const LONGEST: usize = 64 << 20;

/// How often a cluster may send us elsewhere.
const MOST_MOVES: u32 = 5;

/// Where a password is that is not in the address; redis-cli looks there too.
const PASSWORD: &str = "REDISCLI_AUTH";

/// The words of a command.
pub type Command<'a> = Vec<&'a [u8]>;

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Word(String),
    Error(String),
    Integer(i64),
    Bytes(Vec<u8>),
    Null,
    Array(Vec<Answer>),
}

impl Answer {
    /// Where a cluster has the key, if not here: "MOVED slot host:port".
    fn elsewhere(&self) -> Option<&str> {
        let Answer::Error(text) = self else { return None };
        text.strip_prefix("MOVED ")?.split(' ').next_back()
    }
}

/// A connection to the server that has a key.
pub struct Client {
    address: Address,
    reader: BufReader<TcpStream>,
    /// How many answers have not been read.
    owed: usize,
}

/// A connection that ended between a command and its answer: whether it was carried out is not known.
#[derive(Debug)]
pub struct Interrupted {
    host: String,
    port: u16,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the connection to {}:{} broke", self.host, self.port)
    }
}

/// A broken pipe is taken for a reader of our output that has seen enough, which is no error. This is one.
fn not_a_pipe(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => {
            io::Error::new(io::ErrorKind::ConnectionReset, "the server has closed it")
        }
        _ => error,
    }
}

/// Why a server does not do what it was asked for; `who` it is.
pub fn refused(who: &str, text: &str) -> anyhow::Error {
    if text.starts_with("ERR unknown command") {
        return anyhow!("{who} has not loaded umbel's module: see \"On a server\" in the README");
    }
    if text.starts_with("NOAUTH") {
        return anyhow!(
            "{who} wants a password: give it in {PASSWORD}, or as redis://user:password@host/key"
        );
    }
    anyhow!("{who} says: {text}")
}

impl Client {
    pub fn connect(address: &Address) -> Result<Client> {
        let Address { host, port, .. } = address;
        let stream =
            TcpStream::connect((&**host, *port)).with_context(|| format!("cannot reach {host}:{port}"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut client = Client { address: address.clone(), reader: BufReader::new(stream), owed: 0 };
        client.log_in()?;
        if let Some(database) = address.database {
            client.done(&[b"SELECT", database.to_string().as_bytes()])?;
        }
        Ok(client)
    }

    fn log_in(&mut self) -> Result<()> {
        let Address { user, password, .. } = self.address.clone();
        let (password, from) = match password {
            Some(password) => (Some(password), "the address"),
            None => (std::env::var_os(PASSWORD).map(OsStringExt::into_vec), PASSWORD),
        };
        let password = password.filter(|password| !password.is_empty());
        if user.is_none() && password.is_none() {
            return Ok(());
        }
        // There are users without a password.
        let password = password.unwrap_or_default();
        let words: Command =
            [Some(&b"AUTH"[..]), user.as_deref(), Some(&password)].into_iter().flatten().collect();
        self.done(&words).with_context(|| format!("cannot log in with the password of {from}"))
    }

    /// Sends a command that is answered with OK.
    fn done(&mut self, command: &[&[u8]]) -> Result<()> {
        match self.exchange(command)? {
            Answer::Error(text) => bail!("{}:{} says: {text}", self.address.host, self.address.port),
            _ => Ok(()),
        }
    }

    /// Sends a command about the key, to whoever has it.
    pub fn call(&mut self, command: &[&[u8]]) -> Result<Answer> {
        for _ in 0..MOST_MOVES {
            let answer = self.exchange(command)?;
            let Some(place) = answer.elsewhere() else { return Ok(answer) };
            let (host, port) = place.rsplit_once(':').context("the cluster names no server")?;
            // One that does not know its own name means the one we speak to.
            let host = if host.is_empty() { self.address.host.clone() } else { host.to_owned() };
            let port = port.parse().context("the cluster names no port")?;
            *self = Client::connect(&Address { host, port, ..self.address.clone() })?;
        }
        bail!("the cluster sends us from one server to the next: it may be moving the key; try again later")
    }

    fn exchange(&mut self, command: &[&[u8]]) -> Result<Answer> {
        self.send(&[command.to_vec()])?;
        self.next_answer()
    }

    /// Sends commands about the key. Their answers are for [`Client::receive`].
    pub fn send(&mut self, commands: &[Command]) -> Result<()> {
        if self.owed > 0 {
            // Somebody has given up waiting. Those answers are not for what is asked now.
            *self = Client::connect(&self.address)?;
        }
        let mut bytes = Vec::new();
        for command in commands {
            bytes.extend(format!("*{}\r\n", command.len()).into_bytes());
            for word in command {
                bytes.extend(format!("${}\r\n", word.len()).into_bytes());
                bytes.extend_from_slice(word);
                bytes.extend(b"\r\n");
            }
        }
        self.owed = commands.len();
        self.reader.get_mut().write_all(&bytes).map_err(not_a_pipe).with_context(|| self.interrupted())
    }

    /// The answers to the commands that were sent, from whoever has the key.
    pub fn receive(&mut self, commands: &[Command]) -> Result<Vec<Answer>> {
        let mut answers = commands.iter().map(|_| self.next_answer()).collect::<Result<Vec<_>>>()?;
        for (command, answer) in commands.iter().zip(&mut answers) {
            if answer.elsewhere().is_some() {
                *answer = self.call(command)?;
            }
        }
        Ok(answers)
    }

    fn next_answer(&mut self) -> Result<Answer> {
        let answer = self.answer(0).with_context(|| self.interrupted())?;
        self.owed = self.owed.saturating_sub(1);
        Ok(answer)
    }

    fn interrupted(&self) -> Interrupted {
        Interrupted { host: self.address.host.clone(), port: self.address.port }
    }

    fn answer(&mut self, depth: u32) -> io::Result<Answer> {
        let odd = || io::Error::other("this is no server that speaks RESP");
        let mut line = Vec::new();
        (&mut self.reader).take(LONGEST as u64).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8(line).map_err(|_| odd())?;
        let (kind, rest) = line.trim_end().split_at_checked(1).ok_or_else(odd)?;
        let number = || rest.parse::<i64>().map_err(|_| odd());
        let size = || {
            number()
                .and_then(|size| usize::try_from(size).ok().filter(|size| *size <= LONGEST).ok_or_else(odd))
        };
        Ok(match kind {
            "+" => Answer::Word(rest.to_owned()),
            "-" => Answer::Error(rest.to_owned()),
            ":" => Answer::Integer(number()?),
            "$" | "*" if rest == "-1" => Answer::Null,
            "$" => {
                let mut bytes = vec![0; size()? + 2];
                self.reader.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Answer::Bytes(bytes)
            }
            // Nothing that is asked here is answered with lists in lists.
            "*" if depth < 2 => {
                Answer::Array((0..size()?).map(|_| self.answer(depth + 1)).collect::<io::Result<_>>()?)
            }
            _ => return Err(odd()),
        })
    }
}
