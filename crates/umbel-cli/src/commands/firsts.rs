//! Lines that were not there before, in the order of the input: `uniq` and `add --new`.
//!
//! Threads split and hash; whether a line is new depends on all lines before it, so that part is done in order.

use crate::engine::{self, Tally, Turn};
use crate::input::{InputArgs, OutputLines};
use crate::runs::runs;
use crate::sync::{inner, lock};
use crate::system::clock;
use crate::terminal::output::Out;
use anyhow::Result;
use std::ops::ControlFlow;
use std::sync::Mutex;
use umbel::any::Stored;
use umbel::internals::TILE;
use umbel::{Batch, Digest};

/// What a block needs when its turn comes.
struct Pending {
    lines: Lines,
    keys: Keys,
}

enum Keys {
    Digests(Vec<Digest>),
    /// Already inserted, by a filter that hashes keys itself: which of them were new.
    Inserted(Vec<bool>),
}

/// Inserts all lines and prints those that were new; `seen` is told the digests of each block, as far as there are any, and
/// how many of them were new.
pub fn print(
    input: &InputArgs,
    filter: Stored,
    mut out: Out,
    mut seen: impl FnMut(&Stored, &[Digest], u64) -> Result<()> + Send,
) -> Result<(Stored, Tally)> {
    let hasher = match &filter {
        Stored::Set(filter) => Some(filter.hasher().clone()),
        _ => None,
    };
    // A filter that hashes keys itself gets them as they come.
    let threads = if hasher.is_some() { input.threads() } else { 1 };
    let filter = Mutex::new(filter);
    let tally = engine::run(
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
        |block, Turn { caught_up }| {
            let mut filter = lock(&filter);
            filter.advance(clock::now())?;
            let mut new = Vec::new();
            let mut count = 0;
            let mut take = |run: std::ops::Range<usize>| {
                count += run.len() as u64;
                new.extend_from_slice(block.lines.get(run));
            };
            match (&block.keys, &mut *filter) {
                (Keys::Digests(digests), Stored::Set(filter)) => {
                    for (tile, start) in digests.chunks(TILE).zip((0..).step_by(TILE)) {
                        runs(&[filter.insert_tile_new(tile)?])
                            .for_each(|run| take(start + run.start..start + run.end));
                    }
                }
                (Keys::Inserted(answers), _) => {
                    (0..answers.len()).filter(|i| answers[*i]).for_each(|i| take(i..i + 1));
                }
                (Keys::Digests(_), _) => unreachable!("only sets have a hasher"),
            }
            let digests = if let Keys::Digests(digests) = &block.keys { &digests[..] } else { &[] };
            seen(&filter, digests, count)?;
            out.write(&new, caught_up)?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    out.finish()?;
    Ok((inner(filter), tally))
}
