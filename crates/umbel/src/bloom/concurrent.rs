//! A filter that many threads fill and query at the same time.

use super::kernels::{FillShared, FlushShared, InsertDigestShared, Shared, SortShared};
use super::sorter::Sorter;
use super::{Bloom, Layout};
use crate::memory::AtomicWords;
use crate::structure::Head;
use crate::tile;
use crate::{Answers, Batch, Digest, Hasher, Key, Result};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A [`Bloom`] filter behind `&self`, for any number of threads.
///
/// A key is found as soon as its insertion has returned, by the thread that inserted it and by
/// every thread that has synchronised with it since. If two threads insert the same new key at the
/// same time, both calls may report it as new.
///
/// Lookups never wait. An insertion into a blocked filter waits only while another thread writes to
/// the same part of it: one of up to 256 parts, for at most about a hundred keys. Insertions into
/// the other layouts never wait.
///
/// ```
/// use umbel::{Blocked, Bloom, Concurrent};
/// let shared = Concurrent::new(Bloom::<Blocked>::with_capacity(100_000, 0.01)?);
/// std::thread::scope(|scope| {
///     for thread in 0..4u64 {
///         let shared = &shared;
///         scope.spawn(move || (0..1000).for_each(|i| { shared.insert(&(thread * 1000 + i)); }));
///     }
/// });
/// let filter = shared.into_filter();
/// assert!((0..4000u64).all(|key| filter.contains(&key)));
/// assert_eq!(filter.inserted(), Some(4000));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Debug)]
pub struct Concurrent<L: Layout> {
    layout: L,
    words: AtomicWords,
    /// The head from before the filter was shared. `inserted` counts the insertions since.
    head: Head,
    inserted: StripedCount,
}

/// The smallest batch that is sorted before it is written. Sorting a smaller batch gains nothing.
const SORT_FROM: usize = 4096;

impl<L: Layout> Concurrent<L> {
    /// Shares a filter.
    pub fn new(filter: Bloom<L>) -> Concurrent<L> {
        let Bloom { layout, words, head } = filter;
        Concurrent { layout, words: AtomicWords::new(words), head, inserted: StripedCount::default() }
    }

    /// Returns the filter when all threads are done.
    pub fn into_filter(self) -> Bloom<L> {
        let head = self.head_now();
        Bloom { layout: self.layout, words: self.words.into_words(), head }
    }

    /// Returns a copy of the current filter while other threads continue. It contains all keys
    /// whose insertion has returned, and some of those being inserted.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn snapshot(&self) -> Result<Bloom<L>> {
        let mut copy = Bloom::with_head(self.layout, self.head_now())?;
        for (copy, word) in copy.words.words_mut().iter_mut().zip(self.words.words()) {
            *copy = word.load(Relaxed);
        }
        Ok(copy)
    }

    fn head_now(&self) -> Head {
        let inserted = self.head.inserted.map(|before| before.saturating_add(self.inserted.total()));
        Head { inserted, ..self.head.clone() }
    }

    /// Returns the layout.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// Returns the function that turns keys into digests.
    #[inline(always)]
    pub fn hasher(&self) -> &Hasher {
        &self.head.hasher
    }

    /// Inserts the key with this digest. Returns `true` if it was certainly not there before.
    #[inline]
    pub fn insert_digest(&self, digest: Digest) -> bool {
        self.inserted.add(1);
        self.head.level.run(InsertDigestShared { layout: &self.layout, words: &self.words, digest })
    }

    /// Inserts `key`. Returns `true` if it was certainly not there before.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.insert_digest(key.digest(self.hasher()))
    }

    /// Inserts many keys, faster than one by one. Batches of about ten thousand keys or more are
    /// best: a blocked filter sorts them by the part they are written to, so that threads seldom
    /// wait for each other. Each thread that has inserted such a batch keeps a buffer of 300 KB.
    pub fn insert_batch<B: Batch + ?Sized>(&self, keys: &B) {
        self.inserted.add(keys.len() as u64);
        let (layout, hasher, words) = (&self.layout, self.hasher(), &self.words);
        if layout.sorts() > 0 && keys.len() >= SORT_FROM {
            let work = SortShared { words, sorter: Sorter::new(words.regions()) };
            let Ok(work) = tile::run(self.head.level, layout, hasher, keys, work);
            self.head.level.run(FlushShared { layout, work });
        } else {
            let Ok(_) = tile::run(self.head.level, layout, hasher, keys, FillShared { words });
        }
    }

    /// Returns whether the key with this digest may be a member.
    #[inline]
    pub fn contains_digest(&self, digest: Digest) -> bool {
        self.layout.contains_shared(&self.words, digest)
    }

    /// Returns whether `key` may be a member.
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_digest(key.digest(self.hasher()))
    }

    /// Looks up many keys, faster than one by one.
    pub fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        tile::contains_batch(self.head.level, &Shared(self.layout), &self.words, self.hasher(), keys)
    }
}

/// A counter without contention: each thread adds to one of 16 cells, each in its own cache line.
#[derive(Debug, Default)]
struct StripedCount([Cell; 16]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Cell(AtomicU64);

impl StripedCount {
    #[inline]
    fn add(&self, keys: u64) {
        thread_local!(static CELL: usize = next_cell());
        let cell = CELL.try_with(|cell| *cell).unwrap_or_default();
        self.0[cell % self.0.len()].0.fetch_add(keys, Relaxed);
    }

    fn total(&self) -> u64 {
        self.0.iter().map(|cell| cell.0.load(Relaxed)).fold(0, u64::saturating_add)
    }
}

/// Returns the next number, so that threads use the cells in turn.
fn next_cell() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    NEXT.fetch_add(1, Relaxed)
}
