//! The loop of commands that print the lines that were not seen before: `uniq` and `add --new`.
//!
//! Threads split and hash. Whether a line is new depends on all lines before it, so the filter is
//! updated in order.

use super::{BlockInfo, InputCounts, bit_runs};
use crate::input::{InputArgs, OutputLines};
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

/// The part of a block that is needed when its turn comes.
struct Pending {
    lines: OutputLines,
    keys: Keys,
}

enum Keys {
    Digests(Vec<Digest>),
    /// For keys that are already inserted, since the filter hashes them itself: whether each was
    /// new.
    Inserted(Vec<bool>),
}

/// Inserts all lines into the filter and prints the new ones. `observe` is called for each block
/// with its digests (if the filter takes digests) and the number of new lines.
pub fn print_new(
    input: &InputArgs,
    filter: Stored,
    mut out: Out,
    mut observe: impl FnMut(&Stored, &[Digest], u64) -> Result<()> + Send,
) -> Result<(Stored, InputCounts)> {
    let hasher = match &filter {
        Stored::Set(filter) => Some(filter.hasher().clone()),
        _ => None,
    };
    // A filter that hashes keys itself gets them in order, from one thread.
    let threads = if hasher.is_some() { input.threads() } else { 1 };
    let filter = Mutex::new(filter);
    let counts = pipeline::run(
        input.open()?.printing()?,
        threads,
        |_, records| {
            let arena = records.keys()?;
            let keys = match &hasher {
                Some(hasher) => Keys::Digests(hasher.digest_batch(&arena)),
                None => {
                    let mut filter = lock(&filter);
                    let insert = |i| arena.with_bytes(i, |key| filter.insert(key));
                    Keys::Inserted((0..arena.len()).map(insert).collect::<Result<_, _>>()?)
                }
            };
            Ok(Pending { lines: records.to_lines(), keys })
        },
        |block, BlockInfo { caught_up }| {
            let mut filter = lock(&filter);
            filter.advance(clock::now())?;
            let mut new = Vec::new();
            let mut count = 0;
            let mut print = |run: std::ops::Range<usize>| {
                count += run.len() as u64;
                new.extend_from_slice(block.lines.get(run));
            };
            match (&block.keys, &mut *filter) {
                (Keys::Digests(digests), Stored::Set(filter)) => {
                    for (tile, start) in digests.chunks(TILE).zip((0..).step_by(TILE)) {
                        bit_runs(&[filter.insert_tile_new(tile)?])
                            .for_each(|run| print(start + run.start..start + run.end));
                    }
                }
                (Keys::Inserted(answers), _) => {
                    (0..answers.len()).filter(|i| answers[*i]).for_each(|i| print(i..i + 1));
                }
                (Keys::Digests(_), _) => unreachable!("only sets have a hasher"),
            }
            let digests = if let Keys::Digests(digests) = &block.keys { &digests[..] } else { &[] };
            observe(&filter, digests, count)?;
            out.write(&new, caught_up)?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    out.finish()?;
    Ok((into_inner(filter), counts))
}
