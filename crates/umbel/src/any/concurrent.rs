//! A filter of any kind, shared between threads.

use super::AnyFilter;
use crate::key::Hashed;
use crate::{Batch, Blocked, Concurrent, Digest, Error, Hasher, Partitioned, Result, Standard, tile};
use std::convert::Infallible;

/// A [`Concurrent`] filter of any kind that supports sharing.
///
/// ```
/// use umbel::any::AnyConcurrent;
/// use umbel::{AnyFilter, Kind, Spec};
/// let filter = AnyFilter::build(Kind::Standard, &Spec::new(10_000, 0.01)?)?;
/// let shared = AnyConcurrent::new(filter)?;
/// std::thread::scope(|scope| {
///     for keys in [["apple", "pear"], ["plum", "fig"]] {
///         let shared = &shared;
///         scope.spawn(move || shared.insert_batch(&keys));
///     }
/// });
/// assert!(shared.into_filter().contains("fig"));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyConcurrent {
    /// A standard filter.
    Standard(Concurrent<Standard>),
    /// A partitioned filter.
    Partitioned(Concurrent<Partitioned>),
    /// A blocked filter.
    Blocked(Concurrent<Blocked>),
}

macro_rules! each {
    ($any:expr, $filter:ident => $action:expr) => {
        match $any {
            AnyConcurrent::Standard($filter) => $action,
            AnyConcurrent::Partitioned($filter) => $action,
            AnyConcurrent::Blocked($filter) => $action,
        }
    };
}

impl AnyConcurrent {
    /// Wraps a filter so that threads can share it.
    ///
    /// # Errors
    ///
    /// If the kind cannot be shared.
    pub fn new(filter: AnyFilter) -> Result<AnyConcurrent> {
        Ok(match filter {
            AnyFilter::Standard(filter) => AnyConcurrent::Standard(Concurrent::new(filter)),
            AnyFilter::Partitioned(filter) => AnyConcurrent::Partitioned(Concurrent::new(filter)),
            AnyFilter::Blocked(filter) => AnyConcurrent::Blocked(Concurrent::new(filter)),
            other => {
                let why = "a key changes several of its cells, and others must not see some of them";
                return Err(Error::cannot(other.kind(), "be filled by several threads at once", why));
            }
        })
    }

    /// Returns the filter, once all threads are done.
    pub fn into_filter(self) -> AnyFilter {
        each!(self, filter => filter.into_filter().into())
    }

    /// Returns the function that turns keys into digests.
    pub fn hasher(&self) -> &Hasher {
        each!(self, filter => filter.hasher())
    }

    /// Inserts many keys; see [`Concurrent::insert_batch`].
    pub fn insert_batch<B: Batch + ?Sized>(&self, keys: &B) {
        let Ok(()) = tile::chunks(keys, self.hasher(), |digests| {
            self.insert_hashed(digests);
            Ok::<(), Infallible>(())
        });
    }

    /// Not generic, so that the batch loops of all kinds are compiled once, in this crate.
    fn insert_hashed(&self, digests: &[Digest]) {
        each!(self, filter => filter.insert_batch(&Hashed(digests)))
    }
}
