//! A client of the cluster.

use super::{ANSWER_TIMEOUT, SERVERS};
use crate::support::{Answer, Client};
use std::collections::HashMap;
use std::io;

/// A client of the cluster, which follows redirections.
pub struct Router {
    addresses: Vec<(String, u16)>,
    connections: HashMap<u16, Client>,
    /// The server that had a key the last time.
    owners: HashMap<String, u16>,
    next: usize,
}

impl Router {
    pub fn new(addresses: Vec<(String, u16)>) -> Router {
        Router { addresses, connections: HashMap::new(), owners: HashMap::new(), next: 0 }
    }

    fn connection(&mut self, port: u16) -> io::Result<&mut Client> {
        if !self.connections.contains_key(&port) {
            let address = self.addresses.iter().find(|(_, known)| *known == port).expect("a server");
            self.connections.insert(port, Client::connect_to(&address.0, port, ANSWER_TIMEOUT)?);
        }
        Ok(self.connections.get_mut(&port).expect("it was just inserted"))
    }

    /// Sends a command about a key, its second word, and returns the answer with the server that has
    /// sent it. After an error the command may or may not have been executed.
    pub fn call(&mut self, command: &[&[u8]]) -> io::Result<(u16, Answer)> {
        let key = String::from_utf8_lossy(command[1]).into_owned();
        self.next += 1;
        let mut port = self.owners.get(&key).copied().unwrap_or(self.addresses[self.next % SERVERS].1);
        let mut asking = false;
        for _ in 0..16 {
            let mut send = || {
                let client = self.connection(port)?;
                if asking {
                    client.try_call(&[b"ASKING"])?;
                }
                client.try_call(command)
            };
            let answer = send().inspect_err(|_| {
                self.connections.remove(&port);
                self.owners.remove(&key);
            })?;
            let Answer::Error(text) = &answer else {
                return Ok((port, answer));
            };
            let redirected = text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
            asking = text.starts_with("ASK ");
            match redirected {
                Some(to) if asking => port = to,
                Some(to) if text.starts_with("MOVED ") => {
                    self.owners.insert(key.clone(), to);
                    port = to;
                }
                _ => {
                    self.owners.remove(&key);
                    return Err(io::Error::other(text.clone()));
                }
            }
        }
        Err(io::Error::other("too many redirections"))
    }

    /// Sends a write, and returns its answer if a replica has the write too.
    pub fn write(&mut self, command: &[&[u8]]) -> io::Result<Answer> {
        let (port, answer) = self.call(command)?;
        let replicas = self.connection(port)?.try_call(&[b"WAIT", b"1", b"1000"]);
        match replicas.inspect_err(|_| drop(self.connections.remove(&port)))? {
            Answer::Integer(1..) => Ok(answer),
            other => Err(io::Error::other(format!("no replica has it: {other:?}"))),
        }
    }
}
