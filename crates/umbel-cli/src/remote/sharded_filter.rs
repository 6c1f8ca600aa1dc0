//! A filter in shards: its keys on a cluster, how they are created and removed together, and how
//! all servers are queried at once.
//!
//! Shard `i` of the filter `name` is stored under the key `{name:i}`, whose hash tag spreads the
//! shards over the cluster. The [`Record`] is under `name`.

use super::client::Client;
use super::endpoint::Endpoint;
use super::error::{Interrupted, refused};
use super::record::{FoundRecord, Record};
use super::response::{Command, Value, command};
use anyhow::{Context, Error, Result, anyhow, bail};
use bstr::{BStr, ByteSlice};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use umbel::Hasher;
use umbel::hash::KeyRing;
use umbel::internals::sync::lock;

/// The number of shards that are created at the same time. For each, a piece of a filter is in memory
/// three times: as it was read, as a command, and as it is sent.
const SHARDS_AT_ONCE: usize = 8;

/// A filter in shards, with connections to all of them.
pub struct ShardedFilter {
    name: Vec<u8>,
    found: FoundRecord,
    /// The connection to the server of the record.
    record: Mutex<Client>,
    /// The connection to the server of each shard.
    shards: Vec<Mutex<Client>>,
}

/// The failure to create a shard.
pub struct NotCreated {
    /// Whether this process has put something under the key of the shard.
    pub is_begun: bool,
    pub error: Error,
}

impl ShardedFilter {
    /// Creates a filter: the record, and then each shard by a call of `make` with a connection to its
    /// server and its number, several of them at the same time. All of them are created, or none.
    ///
    /// # Errors
    /// Fails if a key with the name exists already, for names that cannot be part of a hash tag, and
    /// if `make` does.
    pub fn create(
        endpoint: &Arc<Endpoint>,
        record: Record,
        make: impl Fn(&mut Client, usize, &[u8]) -> Result<(), NotCreated> + Sync,
    ) -> Result<ShardedFilter> {
        let name = endpoint.address.key.as_bstr();
        check_name(name)?;
        // A failure to open this many connections leaves nothing to roll back.
        let filter =
            ShardedFilter::connect(endpoint, Client::connect(endpoint)?, FoundRecord::Current(record))?;
        match lock(&filter.record).call(&command("SET").arg(&filter.name).arg(record.encode()).arg("NX"))? {
            Value::Nil => {
                bail!(
                    "there is something under {name} already: `umbel shard delete` removes a filter in shards"
                )
            }
            Value::Error(error) => return Err(refused("the server", &error)),
            _ => {}
        }
        filter.make_shards(make)?;
        Ok(filter)
    }

    /// Creates all shards, or removes what was created and the record.
    fn make_shards(
        &self,
        make: impl Fn(&mut Client, usize, &[u8]) -> Result<(), NotCreated> + Sync,
    ) -> Result<()> {
        let next = AtomicUsize::new(0);
        // The shards that exist, and why others do not.
        let (made, errors) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let work = || {
            while lock(&errors).is_empty() {
                let shard = next.fetch_add(1, Relaxed);
                let Some(client) = self.shards.get(shard) else { return };
                match make(&mut lock(client), shard, &self.key(shard)) {
                    Ok(()) => lock(&made).push(shard),
                    Err(NotCreated { is_begun, error }) => {
                        if is_begun {
                            lock(&made).push(shard);
                        }
                        lock(&errors).push(error);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            (0..self.len().min(SHARDS_AT_ONCE)).for_each(|_| drop(scope.spawn(work)));
        });
        let (made, errors) = (lock(&made), std::mem::take(&mut *lock(&errors)));
        // A shard whose creation was not confirmed may exist. With the record it can be deleted later.
        let is_uncertain = errors.iter().any(Error::is::<Interrupted>);
        let Some(error) = errors.into_iter().next() else { return Ok(()) };
        let removed = made.iter().map(|shard| self.call(*shard, "UNLINK", &[]).map(drop));
        // All of them, also if one server does not respond.
        let removed = removed.fold(Ok(()), Result::and);
        if removed.is_ok() && !is_uncertain && self.remove_record().is_ok() {
            return Err(error);
        }
        Err(error.context(format!(
            "{} is not complete, and could not be removed completely: remove it with `umbel shard delete`",
            self.name.as_bstr()
        )))
    }

    /// Opens a filter for queries and insertions.
    ///
    /// # Errors
    /// Fails if a shard is missing: the filter would deny lines that were added. Fails for a filter
    /// of another version.
    pub fn open(endpoint: &Arc<Endpoint>) -> Result<ShardedFilter> {
        let filter = ShardedFilter::find(endpoint)?;
        filter.current_record()?;
        for (shard, exists) in filter.call_all("EXISTS")?.into_iter().enumerate() {
            filter.check_exists(shard, &exists)?;
        }
        Ok(filter)
    }

    /// Opens a filter, even of an older version, without a check that its shards exist.
    pub fn find(endpoint: &Arc<Endpoint>) -> Result<ShardedFilter> {
        let name = endpoint.address.key.as_bstr();
        ShardedFilter::find_any(endpoint)?.with_context(|| {
            format!(
                "there is nothing under {name}: `umbel shard create` makes a filter in shards, and `umbel push` \
                 sends one"
            )
        })
    }

    /// Opens a filter as [`ShardedFilter::find`] does; returns `None` if there is nothing under its
    /// name.
    pub fn find_any(endpoint: &Arc<Endpoint>) -> Result<Option<ShardedFilter>> {
        let mut record = Client::connect(endpoint)?;
        let name = endpoint.address.key.as_bstr();
        let found = match record.call(&command("GET").arg(&endpoint.address.key))? {
            Value::Bytes(text) => FoundRecord::parse(&text),
            Value::Nil => return Ok(None),
            Value::Error(error) if error.code() != "WRONGTYPE" => {
                return Err(refused("the server", &error));
            }
            _ => None,
        };
        let found = found.with_context(|| format!("what is under {name} is not a filter in shards"))?;
        ShardedFilter::connect(endpoint, record, found).map(Some)
    }

    fn connect(endpoint: &Arc<Endpoint>, record: Client, found: FoundRecord) -> Result<ShardedFilter> {
        let name = endpoint.address.key.clone();
        let shards = match found {
            FoundRecord::Current(Record { shards, .. }) | FoundRecord::Old { shards } => shards,
            FoundRecord::Newer { version } => bail!(
                "{} is a filter in shards of version {version}, made by a newer umbel: use that",
                name.as_bstr()
            ),
        };
        let shards = (0..shards).map(|_| Client::connect(endpoint).map(Mutex::new)).collect::<Result<_>>()?;
        Ok(ShardedFilter { name, found, record: Mutex::new(record), shards })
    }

    /// Returns the record, if it is of this version.
    pub fn current_record(&self) -> Result<&Record> {
        match &self.found {
            FoundRecord::Current(record) => Ok(record),
            _ => bail!(
                "{name} was made by an older umbel, which chose the shards of lines in another way: remove it with \
                 `umbel shard delete`, and make it again",
                name = self.name.as_bstr()
            ),
        }
    }

    /// Fails if the name is that of another filter since this one was opened. The shard of a line may be
    /// another one there, which would deny lines that were added.
    pub fn check_unchanged(&self) -> Result<()> {
        match lock(&self.record).call(&command("GET").arg(&self.name))? {
            Value::Bytes(text) if FoundRecord::parse(&text) == Some(self.found) => Ok(()),
            Value::Error(error) => Err(refused("the server", &error)),
            _ => bail!("{} was removed or replaced in the meantime: start again", self.name.as_bstr()),
        }
    }

    /// Returns the hash from whose digests the shard of a line follows.
    ///
    /// # Errors
    /// Fails if its secret is not among these.
    pub fn hasher(&self, secrets: &KeyRing) -> Result<Hasher> {
        let id = self.current_record()?.hash;
        secrets.find(id).ok().with_context(|| {
            format!(
                "the shards of {} are chosen by a hash with a secret ({id}), which is not among the given keys: \
                 name its file with --key-file",
                self.name.as_bstr()
            )
        })
    }

    /// Removes the shards, then the record, so that an interrupted removal can be repeated. Returns
    /// the number of shards that existed.
    pub fn delete(&self) -> Result<usize> {
        let removed = self.call_all("UNLINK")?;
        self.remove_record()?;
        Ok(removed.iter().filter(|response| **response == Value::Integer(1)).count())
    }

    fn remove_record(&self) -> Result<()> {
        match lock(&self.record).call(&command("UNLINK").arg(&self.name))? {
            Value::Error(error) => Err(refused("the server", &error)),
            _ => Ok(()),
        }
    }

    /// Returns the number of shards.
    pub fn len(&self) -> usize {
        self.shards.len()
    }

    /// Returns the key of a shard.
    pub fn key(&self, shard: usize) -> Vec<u8> {
        [b"{", &self.name[..], format!(":{shard}}}").as_bytes()].concat()
    }

    /// Sends a command to a shard: its name, the key of the shard, and further arguments.
    pub fn call(&self, shard: usize, name: &str, arguments: &[&str]) -> Result<Value> {
        let response = lock(&self.shards[shard]).call(&command(name).arg(self.key(shard)).args(arguments))?;
        self.check(shard, response)
    }

    /// Sends a command without further arguments to all shards.
    fn call_all(&self, name: &str) -> Result<Vec<Value>> {
        let commands: Vec<Vec<Command>> =
            (0..self.len()).map(|shard| vec![command(name).arg(self.key(shard))]).collect();
        let responses = self.exchange(&commands)?.into_iter().flatten().enumerate();
        responses.map(|(shard, response)| self.check(shard, response)).collect()
    }

    /// Sends to each shard its commands, all of them before the first response is read, so that all
    /// servers work at the same time.
    pub fn exchange(&self, commands: &[Vec<Command>]) -> Result<Vec<Vec<Value>>> {
        let mut waiting = Vec::new();
        for (shard, commands) in commands.iter().enumerate().filter(|(_, commands)| !commands.is_empty()) {
            // All threads take the locks in the same order, so that there is no deadlock.
            let mut client = lock(&self.shards[shard]);
            client.send(commands)?;
            waiting.push((shard, client));
        }
        let mut responses = vec![Vec::new(); self.len()];
        for (shard, mut client) in waiting {
            responses[shard] = client.receive(&commands[shard])?;
        }
        Ok(responses)
    }

    /// Returns the response of a shard, unless it is an error.
    pub fn check(&self, shard: usize, response: Value) -> Result<Value> {
        match response {
            Value::Error(error) if error.text == "ERR not found" => Err(self.missing(shard)),
            Value::Error(error) if error.text.ends_with("filter is full") => Err(self.full(shard)),
            Value::Error(error) => Err(refused(&server_of(&self.key(shard)), &error)),
            response => Ok(response),
        }
    }

    /// Fails if the response to EXISTS says that a shard is missing.
    pub fn check_exists(&self, shard: usize, response: &Value) -> Result<()> {
        if *response == Value::Integer(1) { Ok(()) } else { Err(self.missing(shard)) }
    }

    fn full(&self, shard: usize) -> Error {
        anyhow!(
            "the shard {} has all the lines that it was planned for: build the filter again for more",
            self.key(shard).as_bstr()
        )
    }

    fn missing(&self, shard: usize) -> Error {
        anyhow!(
            "the shard {} is missing: it was deleted, has expired, or was lost by its server, together with its lines; remove the filter with `umbel shard delete`, and make or push it again",
            self.key(shard).as_bstr()
        )
    }
}

/// Returns the name of the server of a key, for messages.
pub fn server_of(key: &[u8]) -> String {
    format!("the server of {}", key.as_bstr())
}

/// Fails for a name that cannot be part of a hash tag.
pub fn check_name(name: &BStr) -> Result<()> {
    // Braces would form hash tags of their own.
    if name.contains(&b'{') || name.contains(&b'}') {
        bail!("the name of a filter in shards has no braces: the hash tags of its shards are made of it");
    }
    Ok(())
}
