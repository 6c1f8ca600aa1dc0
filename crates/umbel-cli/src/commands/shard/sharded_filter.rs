//! A sharded filter: its keys on a cluster, how they are created and removed together, and how
//! all servers are queried at once.
//!
//! Shard `i` of the filter `name` is stored under the key `{name:i}`, whose hash tag spreads the
//! shards over the cluster. The record under `name` holds the number of shards. [`super::lines`]
//! maps a line to its shard.

use crate::remote::{Client, Command, Endpoint, Interrupted, Value, command, refused};
use anyhow::{Context, Error, Result, anyhow, bail};
use bstr::ByteSlice;
use std::sync::{Arc, Mutex};
use umbel::internals::sync::lock;

/// The text before the number of shards in the record.
const RECORD_PREFIX: &str = "umbel-shards";

/// Maximum number of shards of a filter: each has a connection.
pub const MAX_SHARDS: u32 = 1024;

/// A sharded filter, with connections to all of them.
pub struct ShardedFilter {
    name: Vec<u8>,
    /// The connection to the server of the record.
    record: Mutex<Client>,
    /// The connection to the server of each shard.
    shards: Vec<Mutex<Client>>,
}

impl ShardedFilter {
    /// Creates a filter of empty shards, each for `capacity` lines at a false-positive rate: all of
    /// them, or none.
    ///
    /// # Errors
    /// Fails if a key with the name exists already, and for names that cannot be part of a hash
    /// tag.
    pub fn create(endpoint: &Arc<Endpoint>, shards: u32, capacity: u64, rate: f64) -> Result<()> {
        let name = endpoint.address.key.as_bstr();
        // Braces would form hash tags of their own.
        if name.contains(&b'{') || name.contains(&b'}') {
            bail!("the name of a filter in shards has no braces: the hash tags of its shards are made of it");
        }
        // A failure to open this many connections leaves nothing to roll back.
        let filter = ShardedFilter::connect(endpoint, Client::connect(endpoint)?, shards)?;
        let record = format!("{RECORD_PREFIX} {shards}");
        match lock(&filter.record).call(&command("SET").arg(&filter.name).arg(record).arg("NX"))? {
            Value::Nil => {
                bail!(
                    "there is something under {name} already: `umbel shard delete` removes a filter in shards"
                )
            }
            Value::Error(error) => return Err(refused("the server", &error)),
            _ => {}
        }
        let (rate, capacity) = (format!("{rate:?}"), capacity.to_string());
        for shard in 0..filter.len() {
            if let Err(error) = filter.call(shard, "BF.RESERVE", &[&rate, &capacity]) {
                return Err(filter.roll_back(shard, error));
            }
        }
        Ok(())
    }

    /// Removes the shards before `end` and the record, and returns the error to report.
    fn roll_back(&self, end: usize, error: Error) -> Error {
        let removed = (0..end).try_for_each(|shard| self.call(shard, "UNLINK", &[]).map(drop));
        // A shard whose creation was not confirmed may exist. With the record it can be deleted
        // later.
        if removed.is_ok() && !error.is::<Interrupted>() && self.remove_record().is_ok() {
            return error;
        }
        error.context(format!(
            "{} is not complete, and could not be removed completely: remove it with `umbel shard delete`",
            self.name.as_bstr()
        ))
    }

    /// Opens a filter for queries and insertions.
    ///
    /// # Errors
    /// Fails if a shard is missing: the filter would deny lines that were added.
    pub fn open(endpoint: &Arc<Endpoint>) -> Result<ShardedFilter> {
        let filter = ShardedFilter::find(endpoint)?;
        for (shard, exists) in filter.call_all("EXISTS")?.into_iter().enumerate() {
            filter.check_exists(shard, &exists)?;
        }
        Ok(filter)
    }

    /// Opens a filter without a check that its shards exist.
    pub fn find(endpoint: &Arc<Endpoint>) -> Result<ShardedFilter> {
        let mut record = Client::connect(endpoint)?;
        let name = endpoint.address.key.as_bstr();
        let shards = match record.call(&command("GET").arg(&endpoint.address.key))? {
            Value::Bytes(text) => {
                let text = String::from_utf8_lossy(&text);
                let number =
                    text.strip_prefix(RECORD_PREFIX).and_then(|number| number.trim().parse::<u32>().ok());
                number.filter(|number| (1..=MAX_SHARDS).contains(number))
            }
            Value::Nil => {
                bail!("there is nothing under {name}: `umbel shard create` makes a filter in shards")
            }
            Value::Error(error) if error.code() != "WRONGTYPE" => {
                return Err(refused("the server", &error));
            }
            _ => None,
        };
        let shards = shards.with_context(|| format!("what is under {name} is not a filter in shards"))?;
        ShardedFilter::connect(endpoint, record, shards)
    }

    fn connect(endpoint: &Arc<Endpoint>, record: Client, shards: u32) -> Result<ShardedFilter> {
        let shards = (0..shards).map(|_| Client::connect(endpoint).map(Mutex::new)).collect::<Result<_>>()?;
        Ok(ShardedFilter { name: endpoint.address.key.clone(), record: Mutex::new(record), shards })
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
            Value::Error(error) => {
                Err(refused(&format!("the server of {}", self.key(shard).as_bstr()), &error))
            }
            response => Ok(response),
        }
    }

    /// Fails if the response to EXISTS says that a shard is missing.
    pub fn check_exists(&self, shard: usize, response: &Value) -> Result<()> {
        if *response == Value::Integer(1) { Ok(()) } else { Err(self.missing(shard)) }
    }

    fn missing(&self, shard: usize) -> Error {
        anyhow!(
            "the shard {} is missing: it was deleted, has expired, or was lost by its server, together with its lines; `umbel shard delete`, `create` and `add` make the filter again",
            self.key(shard).as_bstr()
        )
    }
}
