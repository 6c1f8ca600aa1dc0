//! Where the shards of a filter are, how they are made and removed together, and how they are all asked at once.
//!
//! Shard `i` of the filter `name` is under the key `{name:i}`, whose hash tag gives it a place of its own in the cluster;
//! under `name` stands how many there are. [`super::lines`] tells which of them a line belongs to.

use crate::remote::{Address, Answer, Client, Command, Interrupted, refused};
use crate::sync::lock;
use anyhow::{Context, Error, Result, anyhow, bail};
use bstr::ByteSlice;
use std::sync::Mutex;

/// What the number of shards stands behind.
const RECORD_PREFIX: &str = "umbel-shards";

/// No filter has more shards: each has a connection.
pub const MAX_SHARDS: u32 = 1024;

/// A filter in shards.
pub struct ShardedFilter {
    name: Vec<u8>,
    /// To whoever has the record of how many shards there are.
    record: Mutex<Client>,
    /// To whoever has each of them.
    shards: Vec<Mutex<Client>>,
}

impl ShardedFilter {
    /// Makes a filter of so many empty shards, each for so many lines at a rate: all of it, or nothing. Refused if there
    /// is something under its name.
    pub fn create(address: &Address, shards: u32, capacity: u64, rate: f64) -> Result<()> {
        let name = address.key.as_bstr();
        // They would make hash tags of their own.
        if name.contains(&b'{') || name.contains(&b'}') {
            bail!("the name of a filter in shards has no braces: the hash tags of its shards are made of it");
        }
        // Whoever cannot connect so often finds that out before there is anything to take back.
        let filter = ShardedFilter::connect(address, Client::connect(address)?, shards)?;
        let mark = format!("{RECORD_PREFIX} {shards}");
        match lock(&filter.record).call(&[b"SET", name, mark.as_bytes(), b"NX"])? {
            Answer::Null => {
                bail!(
                    "there is something under {name} already: `umbel shard delete` removes a filter in shards"
                )
            }
            Answer::Error(text) => return Err(refused("the server", &text)),
            _ => {}
        }
        let (rate, capacity) = (format!("{rate:?}"), capacity.to_string());
        for shard in 0..filter.len() {
            let made = filter.call(shard, "BF.RESERVE", &[rate.as_bytes(), capacity.as_bytes()]);
            if let Err(error) = made {
                return Err(filter.roll_back(shard, error));
            }
        }
        Ok(())
    }

    /// Removes the shards before this one, and the record. What there is to say to whoever wanted all of them.
    fn roll_back(&self, end: usize, error: Error) -> Error {
        let taken = (0..end).try_for_each(|shard| self.call(shard, "UNLINK", &[]).map(drop));
        // The shard of which no answer has come may be there, or not. With the record it can be deleted later.
        if taken.is_ok() && !error.is::<Interrupted>() && self.remove_record().is_ok() {
            return error;
        }
        error.context(format!(
            "{} is not complete, and not all of it could be taken back: remove it with `umbel shard delete`",
            self.name.as_bstr()
        ))
    }

    /// The filter that was created under this name. One that has lost a shard is refused: it would deny what was added.
    pub fn open(address: &Address) -> Result<ShardedFilter> {
        let filter = ShardedFilter::find(address)?;
        for (shard, answer) in filter.each("EXISTS")?.into_iter().enumerate() {
            filter.check_exists(shard, &answer)?;
        }
        Ok(filter)
    }

    /// The filter that was created under this name, whatever has become of its shards.
    pub fn find(address: &Address) -> Result<ShardedFilter> {
        let mut record = Client::connect(address)?;
        let name = address.key.as_bstr();
        let shards = match record.call(&[b"GET", name])? {
            Answer::Bytes(mark) => {
                let mark = String::from_utf8_lossy(&mark);
                let number =
                    mark.strip_prefix(RECORD_PREFIX).and_then(|number| number.trim().parse::<u32>().ok());
                number.filter(|number| (1..=MAX_SHARDS).contains(number))
            }
            Answer::Null => {
                bail!("there is nothing under {name}: `umbel shard create` makes a filter in shards")
            }
            Answer::Error(text) if !text.starts_with("WRONGTYPE") => {
                return Err(refused("the server", &text));
            }
            _ => None,
        };
        let shards = shards.with_context(|| format!("what is under {name} is not a filter in shards"))?;
        ShardedFilter::connect(address, record, shards)
    }

    fn connect(address: &Address, record: Client, shards: u32) -> Result<ShardedFilter> {
        let client = |_| Client::connect(address).map(Mutex::new);
        let shards = (0..shards).map(client).collect::<Result<_>>()?;
        Ok(ShardedFilter { name: address.key.clone(), record: Mutex::new(record), shards })
    }

    /// Removes the shards, and then the record, so that whoever is interrupted can do it again. How many there were.
    pub fn delete(&self) -> Result<usize> {
        let removed = self.each("UNLINK")?;
        self.remove_record()?;
        Ok(removed.iter().filter(|answer| **answer == Answer::Integer(1)).count())
    }

    /// Removes the record.
    fn remove_record(&self) -> Result<()> {
        match lock(&self.record).call(&[b"UNLINK", &self.name])? {
            Answer::Error(text) => Err(refused("the server", &text)),
            _ => Ok(()),
        }
    }

    pub fn len(&self) -> usize {
        self.shards.len()
    }

    /// The key of a shard.
    pub fn key(&self, shard: usize) -> Vec<u8> {
        [b"{", &self.name[..], format!(":{shard}}}").as_bytes()].concat()
    }

    /// Sends a command to a shard: its name, the key, and what comes behind it.
    pub fn call(&self, shard: usize, command: &str, rest: &[&[u8]]) -> Result<Answer> {
        let key = self.key(shard);
        let words = [&[command.as_bytes(), &key], rest].concat();
        let answer = lock(&self.shards[shard]).call(&words)?;
        self.checked(shard, answer)
    }

    /// Sends a command that has only the key to all shards.
    fn each(&self, command: &str) -> Result<Vec<Answer>> {
        let keys: Vec<Vec<u8>> = (0..self.len()).map(|shard| self.key(shard)).collect();
        let commands: Vec<Vec<Command>> =
            keys.iter().map(|key| vec![vec![command.as_bytes(), key]]).collect();
        let answers = self.exchange(&commands)?.into_iter().flatten().enumerate();
        answers.map(|(shard, answer)| self.checked(shard, answer)).collect()
    }

    /// Sends to each shard its commands, all of them before the first answer is waited for, so that all servers work at
    /// the same time.
    pub fn exchange(&self, commands: &[Vec<Command>]) -> Result<Vec<Vec<Answer>>> {
        let mut waiting = Vec::new();
        for (shard, commands) in commands.iter().enumerate().filter(|(_, commands)| !commands.is_empty()) {
            // All threads take the locks in the same order, and so never wait for each other in a circle.
            let mut client = lock(&self.shards[shard]);
            client.send(commands)?;
            waiting.push((shard, client));
        }
        let mut answers = vec![Vec::new(); self.len()];
        for (shard, mut client) in waiting {
            answers[shard] = client.receive(&commands[shard])?;
        }
        Ok(answers)
    }

    /// The answer of a shard, unless it is an error.
    pub fn checked(&self, shard: usize, answer: Answer) -> Result<Answer> {
        match answer {
            Answer::Error(text) if text == "ERR not found" => Err(self.missing(shard)),
            Answer::Error(text) => {
                Err(refused(&format!("the server of {}", self.key(shard).as_bstr()), &text))
            }
            answer => Ok(answer),
        }
    }

    /// Refuses what a shard says by which EXISTS was answered so.
    pub fn check_exists(&self, shard: usize, answer: &Answer) -> Result<()> {
        if *answer == Answer::Integer(1) { Ok(()) } else { Err(self.missing(shard)) }
    }

    fn missing(&self, shard: usize) -> Error {
        anyhow!(
            "the shard {} is missing: it was deleted, or has expired, or its server has lost it, and with it the lines that were in it; `umbel shard delete`, `create` and `add` make the filter anew",
            self.key(shard).as_bstr()
        )
    }
}
