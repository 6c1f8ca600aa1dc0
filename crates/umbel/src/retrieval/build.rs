//! From digests to a solved table: solves shards in parallel, tries other seeds where peeling gets
//! stuck, and removes duplicates if they are the cause.

use super::partition::partition;
use super::peel::{Payload, Scratch, Sink};
use super::{Arrangement, TableShape, placed};
use crate::hash::reduce;
use crate::memory::Words;
use crate::sizing::retrieval as sizing;
use crate::{Digest, Error, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;

/// A key and its payload.
pub(crate) type Item<P> = (Digest, P);

/// The requested arrangement of the cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arranged {
    Fuse,
    Segments { k: u32 },
}

/// A description of the requested table.
#[derive(Clone, Copy)]
pub(crate) struct Wish<'a> {
    /// The width of a cell, 1 to 96 bits.
    pub width: u32,
    pub arranged: Arranged,
    /// The number of shards; by default it depends on the number of keys.
    pub shards: Option<u64>,
    pub threads: usize,
    /// A callback that receives the number of keys in solved shards. It starts again with each
    /// attempt.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

impl Wish<'_> {
    /// A fuse table, built by one thread.
    pub fn fuse(width: u32) -> Wish<'static> {
        Wish { width, arranged: Arranged::Fuse, shards: None, threads: 1, progress: &|_| () }
    }
}

impl TableShape {
    /// Returns the shape for `n` distinct keys, unless its first ten attempts fail.
    pub fn plan(n: u64, wish: &Wish<'_>) -> Result<TableShape> {
        TableShape::grown(n, wish, 0)
    }

    /// Like `plan`, but two per cent larger for each step.
    fn grown(n: u64, wish: &Wish<'_>, steps: u32) -> Result<TableShape> {
        let shards = wish.shards.unwrap_or_else(|| sizing::shards(n));
        // Add a few keys, since two per cent of a few cells are none.
        let keys = (n as f64 * 1.02f64.powi(steps as i32)).ceil() as u64 + u64::from(4 * steps);
        let arrangement = match wish.arranged {
            Arranged::Fuse => {
                let table = sizing::fuse_with(keys, shards);
                Arrangement::Fuse { segment_log2: table.segment_log2, segments: table.segments }
            }
            Arranged::Segments { k } => {
                let factor = sizing::segments_factor(k)?;
                Arrangement::Segments {
                    k,
                    len: sizing::segment_len(sizing::fullest(keys, shards), k, factor),
                }
            }
        };
        TableShape::new(shards, arrangement, wish.width, 0)
    }
}

/// Why a table could not be built.
#[derive(Debug)]
pub(crate) enum BuildError<P> {
    /// The same digest occurs with different payloads.
    Conflict {
        digest: Digest,
        payloads: [P; 2],
    },
    Other(Error),
}

impl<P> From<Error> for BuildError<P> {
    fn from(error: Error) -> BuildError<P> {
        BuildError::Other(error)
    }
}

/// A solved table.
pub(crate) struct Built<S> {
    pub shape: TableShape,
    pub words: Words,
    /// The sinks of the shards, in order.
    pub sinks: Vec<S>,
    /// The number of distinct keys.
    pub keys: u64,
}

/// The number of seeds tried before the table is enlarged.
const SEEDS: u32 = 10;
/// The number of times that the table is enlarged. More would not help: digests that fail so often
/// are not uniform.
const STEPS: u32 = 8;

/// Returns the seed of an attempt: 0, and then salted digests of 1, 2, 3, ...
fn seed(try_: u32) -> u64 {
    if try_ == 0 { 0 } else { Digest::from_hash(try_.into()).salted(0).get() }
}

/// Solves a table for these keys. The items are reordered, and duplicates among them are removed if
/// they prevent a solution.
///
/// `sinks` creates a sink for each shard of a shape, once per attempt. The result does not depend
/// on the number of threads or the order of the items.
pub(crate) fn build<P: Payload, S: Sink<P>>(
    items: &mut Vec<Item<P>>,
    wish: &Wish<'_>,
    mut sinks: impl FnMut(&TableShape) -> Result<Vec<S>>,
) -> Result<Built<S>, BuildError<P>> {
    let mut distinct = false;
    let mut attempt = 0;
    while attempt < SEEDS * STEPS {
        let grown = TableShape::grown(items.len() as u64, wish, attempt / SEEDS)?;
        let shape = TableShape { seed: seed(attempt), ..grown };
        let mut words = Words::zeroed(shape.lines())?;
        let mut sinks = sinks(&shape)?;
        if solve(&shape, wish, items, words.words_mut(), &mut sinks)? {
            return Ok(Built { shape, words, sinks, keys: items.len() as u64 });
        }
        attempt += 1;
        if !distinct {
            distinct = true;
            let before = items.len();
            remove_duplicates(items)?;
            if items.len() < before {
                attempt = 0;
            }
        }
    }
    let needs = "keys whose digests are uniformly distributed: no table could be solved for these";
    Err(Error::parameter("n", items.len(), needs).into())
}

/// Keeps one of several equal items; fails if a digest has two payloads.
fn remove_duplicates<P: Payload>(items: &mut Vec<Item<P>>) -> Result<(), BuildError<P>> {
    items.sort_unstable_by_key(|item| item.0);
    for pair in items.windows(2) {
        if pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1 {
            return Err(BuildError::Conflict { digest: pair[0].0, payloads: [pair[0].1, pair[1].1] });
        }
    }
    items.dedup_by_key(|item| item.0);
    Ok(())
}

/// Makes one attempt; returns `false` if peeling got stuck in a shard.
fn solve<P: Payload, S: Sink<P>>(
    shape: &TableShape,
    wish: &Wish<'_>,
    items: &mut [Item<P>],
    mut words: &mut [u64],
    sinks: &mut [S],
) -> Result<bool> {
    let shards = shape.shards as usize;
    if sinks.len() != shards {
        return Err(Error::parameter("sinks", sinks.len(), format!("one for each of {shards} shards")));
    }
    let ends = partition(items, shards, |digest| reduce(digest, shape.shards) as usize);
    let shard_words =
        if shards == 1 { words.len() } else { (shape.stride() * u64::from(shape.width) / 64) as usize };
    let mut jobs = Vec::new();
    let mut rest = items;
    let mut start = 0;
    for (end, sink) in ends.into_iter().zip(sinks) {
        let (items, items_after) = rest.split_at_mut(end - start);
        let (cells, words_after) = words.split_at_mut(shard_words);
        jobs.push((items, cells, sink));
        (rest, words, start) = (items_after, words_after, end);
    }
    let threads = wish.threads.clamp(1, jobs.len());
    let jobs = Mutex::new(jobs.into_iter());
    let (stuck, solved) = (AtomicBool::new(false), AtomicU64::new(0));
    let work = |mut scratch: Scratch<P>| -> Result<()> {
        loop {
            let job = jobs.lock().map_or(None, |mut jobs| jobs.next());
            let Some((items, words, sink)) = job.filter(|_| !stuck.load(Relaxed)) else { return Ok(()) };
            if !placed!(shape.arrangement, place => scratch.solve(shape, place, items, words, sink))? {
                stuck.store(true, Relaxed);
            }
            let keys = items.len() as u64;
            (wish.progress)(solved.fetch_add(keys, Relaxed) + keys);
        }
    };
    if threads == 1 {
        work(Scratch::new(shape)?)?;
    } else {
        std::thread::scope(|scope| {
            // If the system refuses a thread or the memory for it, the others do its work.
            let other = || Scratch::new(shape).map_or(Ok(()), work);
            let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, other).ok();
            let others: Vec<_> = (1..threads).filter_map(spawn).collect();
            let own = Scratch::new(shape).and_then(work);
            let join = |other: ScopedJoinHandle<'_, Result<()>>| {
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            others.into_iter().map(join).fold(own, Result::and)
        })?;
    }
    Ok(!stuck.into_inner())
}
