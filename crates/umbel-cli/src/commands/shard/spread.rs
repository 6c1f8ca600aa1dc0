//! Where the shards of a filter are, and which of them a line belongs to.
//!
//! Shard `i` of the filter `name` is under the key `{name:i}`, whose hash tag gives it a place of its own in the cluster;
//! under `name` stands how many there are. A line belongs to the shard `reduce(d, shards)`, with its digest `d` of the fast
//! hash with the seed [`SEED`]: the high half of d times the number of shards.

use crate::remote::{Address, Answer, Client, refused};
use crate::sync::lock;
use anyhow::{Context, Result, bail};
use bstr::{BString, ByteSlice};
use std::sync::Mutex;
use umbel::Hasher;
use umbel::hash::reduce;

/// What the number of shards stands behind.
const MARK: &str = "umbel-shards";

/// Other hashes of the same line, in the filters themselves, have nothing to do with this one.
const SEED: u64 = 0x7368_6172_6473;

/// No filter has more shards: each has a connection.
pub const MOST_SHARDS: u32 = 1024;

/// How many lines go in one command.
const LINES: usize = 1000;

/// A filter in shards.
pub struct Spread {
    hasher: Hasher,
    name: Vec<u8>,
    shards: Vec<Mutex<Client>>,
}

impl Spread {
    /// Notes a new filter of so many shards; refused if there is something under its name.
    pub fn create(address: &Address, shards: u32) -> Result<Spread> {
        check_name(address)?;
        let mut client = Client::connect(address)?;
        let mark = format!("{MARK} {shards}");
        match client.call(&[b"SET", &address.key, mark.as_bytes(), b"NX"])? {
            Answer::Null => bail!("there is something under {} already", address.key.as_bstr()),
            Answer::Error(text) => Err(refused("the server", &text)),
            _ => Spread::connect(address, shards),
        }
    }

    /// The filter that was created under this name.
    pub fn open(address: &Address) -> Result<Spread> {
        let mut client = Client::connect(address)?;
        let name = address.key.as_bstr();
        let shards = match client.call(&[b"GET", name])? {
            Answer::Bytes(mark) => {
                let mark = String::from_utf8_lossy(&mark);
                let number = mark.strip_prefix(MARK).and_then(|number| number.trim().parse::<u32>().ok());
                number.filter(|number| (1..=MOST_SHARDS).contains(number))
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
        Spread::connect(address, shards)
    }

    fn connect(address: &Address, shards: u32) -> Result<Spread> {
        let client = |_| Client::connect(address).map(Mutex::new);
        let shards = (0..shards).map(client).collect::<Result<_>>()?;
        Ok(Spread { hasher: Hasher::fast(SEED), name: address.key.clone(), shards })
    }

    pub fn len(&self) -> usize {
        self.shards.len()
    }

    /// The key of a shard.
    fn key(&self, shard: usize) -> BString {
        [b"{", &self.name[..], format!(":{shard}}}").as_bytes()].concat().into()
    }

    /// Sends a command to a shard: its name, the key, and what comes behind it.
    pub fn call(&self, shard: usize, command: &str, rest: &[&[u8]]) -> Result<Answer> {
        let key = self.key(shard);
        let words: Vec<&[u8]> =
            [command.as_bytes(), key.as_bytes()].into_iter().chain(rest.iter().copied()).collect();
        match lock(&self.shards[shard]).call(&words)? {
            Answer::Error(text) => Err(refused(&format!("the server of {key}"), &text)),
            answer => Ok(answer),
        }
    }

    /// Sends lines to the shards they belong to, many at once; of each, what its shard answers.
    pub fn each(&self, command: &str, lines: &[&[u8]]) -> Result<Vec<bool>> {
        let mut of_shard = vec![Vec::new(); self.shards.len()];
        for (i, line) in lines.iter().enumerate() {
            let digest = self.hasher.digest_bytes(line);
            of_shard[reduce(digest.get(), self.shards.len() as u64) as usize].push(i);
        }
        let mut answers = vec![false; lines.len()];
        for (shard, places) in of_shard.iter().enumerate() {
            for places in places.chunks(LINES) {
                let part: Vec<&[u8]> = places.iter().map(|place| lines[*place]).collect();
                let Answer::Array(found) = self.call(shard, command, &part)? else {
                    bail!("the answer of {} is not understood", self.key(shard));
                };
                if found.len() != places.len() {
                    bail!("{} answers {} of {} questions", self.key(shard), found.len(), places.len());
                }
                for (place, found) in places.iter().zip(found) {
                    answers[*place] = match found {
                        Answer::Integer(number) => number > 0,
                        Answer::Error(text) => bail!("the server of {} says: {text}", self.key(shard)),
                        other => bail!("{} answers {other:?}, which is not understood", self.key(shard)),
                    };
                }
            }
        }
        Ok(answers)
    }
}

/// Braces in the name would make hash tags of their own.
fn check_name(address: &Address) -> Result<()> {
    if address.key.iter().any(|byte| matches!(byte, b'{' | b'}')) {
        bail!("the name of a filter in shards has no braces: the hash tags of its shards are made of it");
    }
    Ok(())
}
