//! The loop of commands that print the lines that were not seen before: `uniq` and `add --new`.
//!
//! Threads split and hash. Whether a line is new depends on all lines before it, so the filter is
//! updated in order.

use super::{BlockInfo, InputCounts, bit_runs};
use crate::input::{InputArgs, OutputLines, Records};
use crate::pipeline;
use crate::system::clock;
use crate::terminal::output::Out;
use anyhow::Result;
use std::ops::ControlFlow;
use std::sync::Mutex;
use umbel::any::Stored;
use umbel::internals::TILE;
use umbel::internals::sync::{into_inner, lock};
use umbel::{Batch, Digest};

enum Keys {
    Digests(Vec<Digest>),
    /// For keys that are already inserted, since the filter hashes them itself: a bit for each that
    /// was new.
    Inserted(Vec<u64>),
}

/// Inserts all lines into the filter and prints the new ones. `observe` is called for each block
/// with its digests (if the filter takes digests) and the number of new lines.
pub fn print_new(
    input: &InputArgs,
    filter: Stored,
    out: Out,
    mut observe: impl FnMut(&Stored, &[Digest], u64) -> Result<()> + Send,
) -> Result<(Stored, InputCounts)> {
    let hasher = match &filter {
        Stored::Set(filter) => Some(filter.hasher().clone()),
        _ => None,
    };
    // A filter that hashes keys itself gets them in order, from one thread.
    let threads = if hasher.is_some() { input.threads() } else { 1 };
    let filter = Mutex::new(filter);
    let counts = print_inserted(
        input,
        threads,
        out,
        |records| {
            let arena = records.keys()?;
            let Some(hasher) = &hasher else {
                let (mut filter, mut new) = (lock(&filter), vec![0; arena.len().div_ceil(TILE)]);
                for i in 0..arena.len() {
                    new[i / TILE] |= u64::from(arena.with_bytes(i, |key| filter.insert(key))?) << (i % TILE);
                }
                return Ok(Keys::Inserted(new));
            };
            Ok(Keys::Digests(hasher.digest_batch(&arena)))
        },
        |keys| {
            let mut filter = lock(&filter);
            filter.advance(clock::now())?;
            let (digests, new) = match (keys, &mut *filter) {
                (Keys::Digests(digests), Stored::Set(filter)) => {
                    let tiles = digests.chunks(TILE).map(|tile| filter.insert_tile_new(tile));
                    let new = tiles.collect::<umbel::Result<Vec<u64>>>()?;
                    (digests, new)
                }
                (Keys::Inserted(new), _) => (Vec::new(), new),
                (Keys::Digests(_), _) => unreachable!("only sets have a hasher"),
            };
            observe(&filter, &digests, new.iter().map(|tile| u64::from(tile.count_ones())).sum())?;
            Ok(new)
        },
    )?;
    Ok((into_inner(filter), counts))
}

/// Prints the new lines of all blocks. `keys` is called for blocks in any order, and `insert` with
/// its results in the order of the input; it inserts the keys and returns a bit for each that was
/// new.
pub fn print_inserted<K: Send>(
    input: &InputArgs,
    threads: usize,
    mut out: Out,
    keys: impl Fn(&Records) -> Result<K> + Sync,
    mut insert: impl FnMut(K) -> Result<Vec<u64>> + Send,
) -> Result<InputCounts> {
    let counts = pipeline::run(
        input.open()?.printing()?,
        threads,
        |_, records| Ok((keys(records)?, records.to_lines())),
        |(keys, lines): (K, OutputLines), BlockInfo { caught_up }| {
            let new = insert(keys)?;
            let mut printed = Vec::new();
            bit_runs(&new).for_each(|run| printed.extend_from_slice(lines.get(run)));
            out.write(&printed, caught_up)?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    out.finish()?;
    Ok(counts)
}
