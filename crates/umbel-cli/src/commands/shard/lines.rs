//! Lines and their shards.
//!
//! The shard of a line follows from its digest by the hash in the record of the filter, as
//! [`shard_of`] maps it. So a filter that was pushed from a folder has the shards of the folder.

use crate::remote::{Command, ShardedFilter, Value, command};
use anyhow::{Result, bail};
use bstr::ByteSlice;
use umbel::Hasher;
use umbel::sharded::shard_of;

/// Number of lines in one command.
const LINES_PER_COMMAND: usize = 1000;

/// Adds lines to their shards.
pub fn add(filter: &ShardedFilter, hasher: &Hasher, lines: &[&[u8]]) -> Result<()> {
    // Not BF.MADD: in place of a missing shard it would create an empty one, of another size.
    query(filter, hasher, "BF.INSERT", &["NOCREATE", "ITEMS"], lines).map(drop)
}

/// Returns for each line whether it may be in its shard.
pub fn contains(filter: &ShardedFilter, hasher: &Hasher, lines: &[&[u8]]) -> Result<Vec<bool>> {
    query(filter, hasher, "BF.MEXISTS", &[], lines)
}

/// Sends lines to their shards, after a command, the key and options, and returns the response for
/// each line.
fn query(
    filter: &ShardedFilter,
    hasher: &Hasher,
    name: &str,
    options: &[&str],
    lines: &[&[u8]],
) -> Result<Vec<bool>> {
    let mut positions = vec![Vec::new(); filter.len()];
    for (position, line) in lines.iter().enumerate() {
        positions[shard_of(hasher.digest_bytes(line), filter.len())].push(position);
    }
    let commands: Vec<Vec<Command>> = positions
        .iter()
        .enumerate()
        .map(|(shard, positions)| commands(name, &filter.key(shard), options, positions, lines))
        .collect();
    let mut found = vec![false; lines.len()];
    for (shard, mut responses) in filter.exchange(&commands)?.into_iter().enumerate() {
        // A missing shard denies every line, which must not be taken for an answer.
        if let Some(exists) = responses.pop() {
            filter.check_exists(shard, &filter.check(shard, exists)?)?;
        }
        for (response, positions) in responses.into_iter().zip(positions[shard].chunks(LINES_PER_COMMAND)) {
            record(filter, shard, response, positions, &mut found)?;
        }
    }
    // Last, since the shards of another filter come after its record.
    filter.check_unchanged()?;
    Ok(found)
}

/// Returns the commands for one shard: one for each chunk of its lines, then EXISTS. That comes
/// last, since the shard may be lost at any time before it.
fn commands(name: &str, key: &[u8], options: &[&str], positions: &[usize], lines: &[&[u8]]) -> Vec<Command> {
    if positions.is_empty() {
        return Vec::new();
    }
    let chunk_command = |positions: &[usize]| {
        command(name).arg(key).args(options).args(positions.iter().map(|position| lines[*position]))
    };
    positions.chunks(LINES_PER_COMMAND).map(chunk_command).chain([command("EXISTS").arg(key)]).collect()
}

/// Stores the response of a shard for the lines at these positions in `found`.
fn record(
    filter: &ShardedFilter,
    shard: usize,
    response: Value,
    positions: &[usize],
    found: &mut [bool],
) -> Result<()> {
    let (key, response) = (filter.key(shard), filter.check(shard, response)?);
    let key = key.as_bstr();
    let Value::Array(responses) = response else { bail!("the answer of {key} is not understood") };
    if responses.len() != positions.len() {
        bail!("{key} answers {} of {} questions", responses.len(), positions.len());
    }
    for (position, response) in positions.iter().zip(responses) {
        found[*position] = match filter.check(shard, response)? {
            Value::Integer(number) => number > 0,
            other => bail!("{key} answers with {other}, which is not understood"),
        };
    }
    Ok(())
}
