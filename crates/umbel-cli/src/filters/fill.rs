//! A filter that several threads fill, and the warning when it is overfull.

use crate::input::{InputArgs, Records};
use crate::pipeline;
use crate::report::percent;
use crate::system::clock;
use crate::terminal::output::warn;
use anyhow::{Context, Result};
use std::iter;
use std::ops::ControlFlow;
use std::sync::Mutex;
use umbel::any::{AnyConcurrent, Stored};
use umbel::internals::sync::{into_inner, lock};
use umbel::key::Hashed;
use umbel::{AnyFilter, Batch, Stats};

/// A filter that several threads fill. The result does not depend on the number of threads.
pub enum ParallelFill {
    /// A small filter: each thread fills a copy, and the copies are united at the end.
    PerThread(Vec<Mutex<AnyFilter>>),
    /// A large filter: all threads fill the same one.
    Shared(Box<AnyConcurrent>),
    /// A filter that cannot be shared: threads take turns, in any order.
    Locked(Box<Mutex<Stored>>),
    /// A filter whose cells depend on the order of the keys: threads only hash, and keys are
    /// inserted in order.
    InOrder(Box<Mutex<AnyFilter>>),
}

/// The maximum number of bytes that the copies of all further threads may take.
const MAX_COPIES_BYTES: u64 = 32 << 20;

impl ParallelFill {
    /// Chooses how to share the filter among threads.
    pub fn new(filter: Stored, threads: usize) -> Result<ParallelFill> {
        Ok(match filter {
            Stored::Set(filter)
                if filter.kind().capabilities().absorb
                    && bytes(&filter) * (threads as u64 - 1) <= MAX_COPIES_BYTES =>
            {
                let others =
                    (1..threads).map(|_| filter.try_clone_empty()).collect::<umbel::Result<Vec<_>>>()?;
                ParallelFill::PerThread(iter::once(filter).chain(others).map(Mutex::new).collect())
            }
            Stored::Set(filter) if filter.kind().capabilities().share => {
                ParallelFill::Shared(Box::new(AnyConcurrent::new(filter)?))
            }
            Stored::Set(filter) if !filter.kind().capabilities().absorb => {
                ParallelFill::InOrder(Box::new(Mutex::new(filter)))
            }
            filter => ParallelFill::Locked(Box::new(Mutex::new(filter))),
        })
    }

    /// Inserts all lines of an input into a filter, and returns the filter.
    pub fn filled(filter: Stored, input: &InputArgs) -> Result<Stored> {
        let fill = ParallelFill::new(filter, input.threads())?;
        fill.fill(input)?;
        fill.into_filter()
    }

    /// Inserts all lines of an input.
    fn fill(&self, input: &InputArgs) -> Result<()> {
        let (blocks, threads) = (input.open()?, input.threads());
        let counts = match self {
            ParallelFill::InOrder(filter) => {
                let hasher = lock(filter).hasher().clone();
                let hash = |_, records: &Records| Ok(hasher.digest_batch(&records.keys()?));
                pipeline::run(blocks, threads, hash, |digests, _| {
                    self.insert(0, &Hashed(&digests)).map(ControlFlow::Continue)
                })
            }
            _ => {
                let insert = |thread, records: &Records| self.insert(thread, &records.keys()?);
                pipeline::run(blocks, threads, insert, |(), _| Ok(ControlFlow::Continue(())))
            }
        };
        counts.map(drop)
    }

    /// Returns how many of `threads` may insert at the same time.
    pub fn threads(&self, threads: usize) -> usize {
        if let ParallelFill::InOrder(_) = self { 1 } else { threads }
    }

    /// Inserts keys on behalf of one of the threads.
    pub fn insert(&self, thread: usize, keys: &impl Batch) -> Result<()> {
        match self {
            ParallelFill::PerThread(filters) => lock(&filters[thread]).insert_batch(keys)?,
            ParallelFill::Shared(filter) => filter.insert_batch(keys),
            ParallelFill::Locked(filter) => lock(filter).insert_batch(keys)?,
            ParallelFill::InOrder(filter) => {
                let mut filter = lock(filter);
                filter.advance(clock::now())?;
                filter.insert_batch(keys)?;
            }
        }
        Ok(())
    }

    /// Returns the filter with the keys of all threads.
    pub fn into_filter(self) -> Result<Stored> {
        Ok(match self {
            ParallelFill::PerThread(filters) => {
                let mut filters = filters.into_iter().map(into_inner);
                let mut whole = filters.next().context("there is at least one thread")?;
                filters.try_for_each(|part| whole.absorb(&part))?;
                whole.into()
            }
            ParallelFill::Shared(filter) => filter.into_filter().into(),
            ParallelFill::Locked(filter) => into_inner(*filter),
            ParallelFill::InOrder(filter) => into_inner(*filter).into(),
        })
    }
}

/// Returns the memory of a filter.
fn bytes(filter: &AnyFilter) -> u64 {
    filter.sections().iter().map(|words| size_of_val(words.words()) as u64).sum()
}

/// Warns if the filter certainly holds more keys than it was made for.
pub fn warn_if_overfull(filter: &Stored) {
    // A filter that grows is never overfull, and if the insertions are few enough, the bits need
    // not be counted.
    if filter.kind().capabilities().grow {
        return;
    }
    if filter.inserted().zip(filter.design()).is_some_and(|(count, design)| count <= design.capacity) {
        return;
    }
    warn_if_overfull_by(&filter.stats());
}

/// Warns if a filter with these measurements certainly holds more keys than it was made for.
pub fn warn_if_overfull_by(stats: &Stats) {
    let (Some(capacity), Some(target)) = (stats.capacity, stats.rate_target) else { return };
    let holds = match stats.estimate.estimate() {
        Some(keys) if keys.value - 3.0 * keys.standard_error <= capacity as f64 => return,
        Some(keys) => format!("about {:.0} keys", keys.value),
        None => "too many keys to count".to_string(),
    };
    let (now, target) = (percent(stats.rate_now), percent(target));
    warn(format_args!(
        "the filter holds {holds}, more than the {capacity} it was made for: its rate is {now} instead of {target}"
    ));
}
