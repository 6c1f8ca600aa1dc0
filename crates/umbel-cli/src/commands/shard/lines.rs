//! Which shard a line belongs to, and many lines on their way to theirs.
//!
//! A line belongs to the shard `reduce(d, shards)`, with its digest `d` of the fast hash with the seed [`SHARD_SEED`]: the
//! high half of d times the number of shards.

use super::sharded_filter::ShardedFilter;
use crate::remote::{Answer, Command};
use anyhow::{Result, bail};
use bstr::ByteSlice;
use umbel::Hasher;
use umbel::hash::reduce;

/// Other hashes of the same line, in the filters themselves, have nothing to do with this one.
const SHARD_SEED: u64 = 0x7368_6172_6473;

/// How many lines go in one command.
const LINES_PER_COMMAND: usize = 1000;

/// Adds lines to their shards.
pub fn add(filter: &ShardedFilter, lines: &[&[u8]]) -> Result<()> {
    // BF.MADD would make a lost shard anew, empty and of another size.
    ask(filter, "BF.INSERT", &[b"NOCREATE", b"ITEMS"], lines).map(drop)
}

/// Of each line, whether it may be in its shard.
pub fn contains(filter: &ShardedFilter, lines: &[&[u8]]) -> Result<Vec<bool>> {
    ask(filter, "BF.MEXISTS", &[], lines)
}

/// Sends lines to their shards, behind a command, the key and options; of each, what its shard answers.
fn ask(filter: &ShardedFilter, command: &str, options: &[&[u8]], lines: &[&[u8]]) -> Result<Vec<bool>> {
    let hasher = Hasher::fast(SHARD_SEED);
    let mut places = vec![Vec::new(); filter.len()];
    for (place, line) in lines.iter().enumerate() {
        places[reduce(hasher.digest_bytes(line).get(), filter.len() as u64) as usize].push(place);
    }
    let keys: Vec<Vec<u8>> = (0..filter.len()).map(|shard| filter.key(shard)).collect();
    let commands: Vec<Vec<Command>> = keys
        .iter()
        .zip(&places)
        .map(|(key, places)| commands(command, key, options, places, lines))
        .collect();
    let mut found = vec![false; lines.len()];
    for (shard, mut answers) in filter.exchange(&commands)?.into_iter().enumerate() {
        // A shard that is not there knows no line; that must not be taken for an answer.
        if let Some(present) = answers.pop() {
            filter.check_exists(shard, &filter.checked(shard, present)?)?;
        }
        for (answer, places) in answers.into_iter().zip(places[shard].chunks(LINES_PER_COMMAND)) {
            note(filter, shard, answer, places, &mut found)?;
        }
    }
    Ok(found)
}

/// What a shard is sent for the lines at these places: them, and whether it was there to answer. That comes last, or it
/// might be lost in between.
fn commands<'a>(
    command: &'a str,
    key: &'a [u8],
    options: &[&'a [u8]],
    places: &[usize],
    lines: &[&'a [u8]],
) -> Vec<Command<'a>> {
    if places.is_empty() {
        return Vec::new();
    }
    let front = [&[command.as_bytes(), key], options].concat();
    let lines =
        |places: &[usize]| front.iter().copied().chain(places.iter().map(|place| lines[*place])).collect();
    places.chunks(LINES_PER_COMMAND).map(lines).chain([vec![b"EXISTS", key]]).collect()
}

/// Notes what a shard answers to the lines at these places.
fn note(
    filter: &ShardedFilter,
    shard: usize,
    answer: Answer,
    places: &[usize],
    found: &mut [bool],
) -> Result<()> {
    let (key, answer) = (filter.key(shard), filter.checked(shard, answer)?);
    let key = key.as_bstr();
    let Answer::Array(answers) = answer else { bail!("the answer of {key} is not understood") };
    if answers.len() != places.len() {
        bail!("{key} answers {} of {} questions", answers.len(), places.len());
    }
    for (place, answer) in places.iter().zip(answers) {
        found[*place] = match filter.checked(shard, answer)? {
            Answer::Integer(number) => number > 0,
            other => bail!("{key} answers {other:?}, which is not understood"),
        };
    }
    Ok(())
}
