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
/// A key is found from the moment its insertion has returned, by the thread that inserted it and by every thread that
/// has since synchronised with it. Two threads that insert the same new key at the same time may both be told that it
/// was new. Lookups never wait; an insertion into a blocked filter waits only while another thread is writing to the
/// same part of it, one of up to 256 parts and for at most about a hundred keys. The other layouts never wait.
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
    /// As it was before this was shared: what is inserted now is counted apart.
    head: Head,
    inserted: StripedCount,
}

/// From this many keys on, a batch is sorted before it is written: to a few there is nothing to gain by it.
const SORT_FROM: usize = 4096;

impl<L: Layout> Concurrent<L> {
    /// Shares a filter.
    pub fn new(filter: Bloom<L>) -> Concurrent<L> {
        let Bloom { layout, words, head } = filter;
        Concurrent { layout, words: AtomicWords::new(words), head, inserted: StripedCount::default() }
    }

    /// The filter back, once all threads are done.
    pub fn into_filter(self) -> Bloom<L> {
        let head = self.head_now();
        Bloom { layout: self.layout, words: self.words.into_words(), head }
    }

    /// A copy of the filter as it is now, while threads go on. Whatever was inserted before is in it; of what is being
    /// inserted meanwhile, some is.
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

    /// The layout.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// The function that turns keys into digests.
    #[inline(always)]
    pub fn hasher(&self) -> &Hasher {
        &self.head.hasher
    }

    /// Inserts the key with this digest; `true` when it was certainly not there before.
    #[inline]
    pub fn insert_digest(&self, digest: Digest) -> bool {
        self.inserted.add(1);
        self.head.level.run(InsertDigestShared { layout: &self.layout, words: &self.words, digest })
    }

    /// Inserts `key`; `true` when it was certainly not there before.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.insert_digest(key.digest(self.hasher()))
    }

    /// Inserts many keys, the fast way: at best some ten thousand at once, which a blocked filter sorts by the part of
    /// it they go to, so that threads seldom meet. For that, each thread that has made such a call keeps 300 KB.
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

    /// Whether the key with this digest may be a member.
    #[inline]
    pub fn contains_digest(&self, digest: Digest) -> bool {
        self.layout.contains_shared(&self.words, digest)
    }

    /// Whether `key` may be a member.
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_digest(key.digest(self.hasher()))
    }

    /// Asks for many keys; the fast way.
    pub fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        tile::contains_batch(self.head.level, &Shared(self.layout), &self.words, self.hasher(), keys)
    }
}

/// A count that threads do not fight over: each adds to one of a few cells, each in a cache line of its own.
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

/// Threads take the cells in turn.
fn next_cell() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    NEXT.fetch_add(1, Relaxed)
}
