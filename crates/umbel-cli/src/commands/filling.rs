//! A filter that threads fill together, and what is said when it holds more than it was made for.

use crate::input::{InputArgs, Records};
use crate::pipeline;
use crate::report::percent;
use crate::sync::{inner, lock};
use crate::system::clock;
use crate::terminal::output::warn;
use anyhow::{Context, Result};
use std::iter;
use std::ops::ControlFlow;
use std::sync::Mutex;
use umbel::any::{AnyConcurrent, Stored};
use umbel::key::Hashed;
use umbel::{AnyFilter, Batch};

/// A filter between threads. Whatever their number, the filter is the same in the end.
pub enum Filling {
    /// A small filter: each thread fills one of its own, and in the end they are united.
    Apart(Vec<Mutex<AnyFilter>>),
    /// A large filter: all threads fill the same one.
    Shared(Box<AnyConcurrent>),
    /// A filter that cannot be shared: one thread at a time, in any order.
    Alone(Box<Mutex<Stored>>),
    /// A filter whose cells depend on the order of the keys: they go in as they come, and threads only hash.
    InTurn(Box<Mutex<AnyFilter>>),
}

/// What the filters of further threads may take together.
const APART: u64 = 32 << 20;

impl Filling {
    pub fn new(filter: Stored, threads: usize) -> Result<Filling> {
        Ok(match filter {
            Stored::Set(filter)
                if filter.kind().capabilities().absorb && bytes(&filter) * (threads as u64 - 1) <= APART =>
            {
                let others =
                    (1..threads).map(|_| filter.try_clone_empty()).collect::<umbel::Result<Vec<_>>>()?;
                Filling::Apart(iter::once(filter).chain(others).map(Mutex::new).collect())
            }
            Stored::Set(filter) if filter.kind().capabilities().share => {
                Filling::Shared(Box::new(AnyConcurrent::new(filter)?))
            }
            Stored::Set(filter) if !filter.kind().capabilities().absorb => {
                Filling::InTurn(Box::new(Mutex::new(filter)))
            }
            filter => Filling::Alone(Box::new(Mutex::new(filter))),
        })
    }

    /// Inserts all lines of an input.
    pub fn fill(&self, input: &InputArgs) -> Result<()> {
        let (blocks, threads) = (input.open()?, input.threads());
        let counts = match self {
            Filling::InTurn(filter) => {
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

    /// How many of `threads` may insert at the same time.
    pub fn threads(&self, threads: usize) -> usize {
        if let Filling::InTurn(_) = self { 1 } else { threads }
    }

    /// Inserts keys on behalf of one of the threads.
    pub fn insert(&self, thread: usize, keys: &impl Batch) -> Result<()> {
        match self {
            Filling::Apart(filters) => lock(&filters[thread]).insert_batch(keys)?,
            Filling::Shared(filter) => filter.insert_batch(keys),
            Filling::Alone(filter) => lock(filter).insert_batch(keys)?,
            Filling::InTurn(filter) => {
                let mut filter = lock(filter);
                filter.advance(clock::now())?;
                filter.insert_batch(keys)?;
            }
        }
        Ok(())
    }

    pub fn into_filter(self) -> Result<Stored> {
        Ok(match self {
            Filling::Apart(filters) => {
                let mut filters = filters.into_iter().map(inner);
                let mut whole = filters.next().context("there is at least one thread")?;
                filters.try_for_each(|part| whole.absorb(&part))?;
                whole.into()
            }
            Filling::Shared(filter) => filter.into_filter().into(),
            Filling::Alone(filter) => inner(*filter),
            Filling::InTurn(filter) => inner(*filter).into(),
        })
    }
}

/// The memory of a filter.
fn bytes(filter: &AnyFilter) -> u64 {
    filter.sections().iter().map(|words| size_of_val(words.words()) as u64).sum()
}

/// Says so if a filter holds more keys than it was made for, as far as its bits tell for certain.
pub fn warn_if_overfull(filter: &Stored) {
    // One that grows is never too full, and insertions that are within bounds need no look at the bits.
    if filter.kind().capabilities().grow {
        return;
    }
    if filter.inserted().zip(filter.design()).is_some_and(|(count, design)| count <= design.capacity) {
        return;
    }
    let stats = filter.stats();
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
