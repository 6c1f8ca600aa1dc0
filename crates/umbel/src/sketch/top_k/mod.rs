//! [`TopK`]: the most frequent keys, by HeavyKeeper.

mod builder;
mod decay;
mod structure;

pub use builder::TopKBuilder;

use super::table::{Entry, KeyTable};
use super::{Item, add_to_total, each_key, sketch_methods};
use crate::memory::Words;
use crate::sizing::{Cardinality, Shape};
use crate::structure::Head;
use crate::{Batch, Digest, Error, Hasher, Key, Result, Stats, Structure};
use decay::{Contention, Decay};
use std::cmp::Reverse;
use structure::checked_heap;

/// Finds the k most frequent keys: HeavyKeeper.
///
/// ```
/// use umbel::sketch::TopK;
/// let mut words = TopK::new(2)?;
/// words.insert_batch(&["the", "cat", "the", "dog", "the", "cat"]);
/// let top: Vec<_> = words.items().iter().map(|item| (item.key, item.count)).collect();
/// assert_eq!(top, [(&b"the"[..], 3), (b"cat", 2)]);
/// assert!(words.contains("cat") && !words.contains("dog"));
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # How it works
///
/// Each of d rows has w cells, and a cell belongs to one key: it holds the fingerprint of that key
/// and a count. A key raises its own cells. In a cell that belongs to another key, it lowers the
/// count with probability decay^count, and takes over the cell when the count reaches 0. So a high
/// count hardly ever decays, and rare keys compete for the other cells:
///
/// ```text
/// the cell of a key        (fingerprint, count)
///   free, or its own       count + 1
///   another's, count 3     3 -> 2 with probability decay^3
///   another's, count 200   stays: decay^200 is almost 0
/// ```
///
/// The k keys with the highest counts are kept in a heap, the lightest on top, with an index by
/// digest. A key that reaches the count of the lightest takes its place.
///
/// # When to use it
///
/// Take it for a leaderboard of fixed length. Counts are almost never too high (only if
/// fingerprints collide) and, for the keys at the top, hardly too low. There is no guarantee:
/// [`Frequent`](super::Frequent) has one, and can be united.
///
/// It costs 8 w d bytes for the cells, plus 48 bytes and the bytes of the key for each of the k
/// places, and an insertion touches d cells. By default w is 8 k, at least 1024, and d is 4; wider
/// rows help when many keys are nearly as frequent as the k-th.
///
/// Random numbers are derived from the number of draws so far and the fingerprint, so the same
/// stream always yields the same list.
///
/// # References
///
/// * J. Gong, T. Yang, H. Zhang, H. Li, S. Uhlig, S. Chen, L. Uden and X. Li. *HeavyKeeper: an
///   accurate algorithm for finding top-k elephant flows.* USENIX ATC 2018. `Gong18`
pub struct TopK {
    head: Head,
    shape: TopKBuilder,
    /// A fingerprint and a count in each word, row by row.
    cells: Words,
    /// A place for each of the k keys, as a heap: no entry is heavier than its two children.
    heap: KeyTable,
    /// The number of random numbers drawn.
    draws: u64,
    decay: Box<Decay>,
}

sketch_methods!(TopK);

impl TopK {
    /// Creates an empty sketch of the `k` most frequent keys.
    ///
    /// # Errors
    ///
    /// If `k` is 0 or more than 2^31, or there is not enough memory.
    pub fn new(k: u64) -> Result<TopK> {
        TopK::builder(k).build()
    }

    /// Returns a builder with the default settings.
    pub fn builder(k: u64) -> TopKBuilder {
        TopKBuilder::new(k)
    }

    fn new_with(head: Head, shape: TopKBuilder, cells: Words, heap: KeyTable, draws: u64) -> TopK {
        TopK { head, shape, cells, heap, draws, decay: Box::new(Decay::new(shape.decay)) }
    }

    /// Creates a sketch from its parts as stored by another program. `heap` holds the counts and
    /// keys of all places in the order of the heap. A count of 0 marks a free place, whose key is
    /// ignored.
    #[doc(hidden)]
    pub fn from_parts(
        shape: TopKBuilder,
        hasher: Hasher,
        draws: u64,
        cells: Words,
        heap: impl IntoIterator<Item = (u32, Vec<u8>)>,
    ) -> Result<TopK> {
        let lines = shape.cells()?.lines();
        if cells.lines().len() as u64 != lines {
            let got = format!("{} lines", cells.lines().len());
            return Err(Error::parameter("cells", got, format!("{lines} lines of 64 bytes")));
        }
        let entry = |(count, key): (u32, Vec<u8>)| match count {
            0 => Entry::default(),
            _ => Entry { digest: hasher.digest_bytes(&key), count: count.into(), key },
        };
        let heap = heap.into_iter().map(entry).collect();
        // The total is unknown.
        let head = Head { inserted: None, ..Head::new(hasher) };
        let sketch = TopK::new_with(head, shape, cells, checked_heap(heap, shape.k)?, draws);
        sketch.check_contents()?;
        Ok(sketch)
    }

    /// Returns the number of keys that the sketch lists.
    pub fn k(&self) -> u64 {
        self.shape.k
    }

    /// Returns w: the number of cells in a row.
    pub fn width(&self) -> u64 {
        self.shape.width
    }

    /// Returns d: the number of rows.
    pub fn depth(&self) -> u32 {
        self.shape.depth
    }

    /// Returns the base of the probability that another key lowers a count.
    pub fn decay(&self) -> f64 {
        self.shape.decay
    }

    /// Returns the number of keys counted, including repeated ones; `None` if it is unknown.
    pub fn inserted(&self) -> Option<u64> {
        self.head.inserted
    }

    /// Counts `key` once. Returns the key that lost its place to it, if one did.
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Option<Vec<u8>> {
        self.insert_times(key, 1)
    }

    /// Counts `key` `times` times. Returns the key that lost its place to it, if one did.
    pub fn insert_times<K: Key + ?Sized>(&mut self, key: &K, times: u32) -> Option<Vec<u8>> {
        key.with_bytes(|bytes| self.insert_bytes(self.head.hasher.digest_bytes(bytes), bytes, times))
    }

    /// Counts many keys once each; the fast way.
    pub fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) {
        let hasher = self.head.hasher.clone();
        each_key(keys, &hasher, |digest, key| {
            self.insert_bytes(digest, key, 1);
        });
    }

    fn insert_bytes(&mut self, digest: Digest, key: &[u8], times: u32) -> Option<Vec<u8>> {
        if times == 0 {
            return None;
        }
        let mark = mark(digest);
        let mut count = 0;
        for place in self.shape.places(digest) {
            let mut cell = Cell::from_word(self.cells.words()[place]);
            if cell.count == 0 || cell.mark == mark {
                cell = Cell { mark, count: cell.count.saturating_add(times) };
            } else {
                cell = self.contend(cell, mark, times);
            }
            if cell.mark == mark {
                count = count.max(cell.count);
            }
            self.cells.words_mut()[place] = cell.word();
        }
        if self.head.inserted.is_some() {
            add_to_total(&mut self.head, times.into());
        }
        self.place(digest, key, count.into())
    }

    /// Tries `times` times to lower the count of a cell that another key contends for. That key
    /// takes over the cell when the count reaches 0.
    #[inline]
    fn contend(&mut self, cell: Cell, mark: u32, times: u32) -> Cell {
        let draws = &mut self.draws;
        let draw = || {
            *draws = draws.wrapping_add(1);
            Digest::from_hash(*draws).salted(u64::from(mark)).get() as f64 / 2f64.powi(64)
        };
        match self.decay.contend(cell.count, times, draw) {
            Contention::Held(count) => Cell { mark: cell.mark, count },
            Contention::Lost(count) => Cell { mark, count },
        }
    }

    /// Sets the count of a key, and gives it a place if it has none and is not lighter than the
    /// lightest. Returns the key that lost the place.
    fn place(&mut self, digest: Digest, key: &[u8], count: u64) -> Option<Vec<u8>> {
        if let Some(at) = self.heap.find(digest, key) {
            let count = count.max(self.heap.entries()[at].count);
            self.heap.set_count(at, count);
            self.sink(at);
            return None;
        }
        // A key that lost all its cells is as light as a free place, and gets no place.
        if count == 0 || count < self.heap.entries().first()?.count {
            return None;
        }
        let gone = self.heap.replace(0, Entry { digest, count, key: key.to_vec() });
        self.sink(0);
        (gone.count > 0).then_some(gone.key)
    }

    /// Moves an entry down until its children are heavier. Among equals the older one moves up, to
    /// lose its place first.
    fn sink(&mut self, mut at: usize) {
        loop {
            let heap = self.heap.entries();
            let below = (2 * at + 1..=2 * at + 2).filter(|below| *below < heap.len());
            let Some(lightest) = below.min_by_key(|below| (heap[*below].count, Reverse(*below))) else {
                return;
            };
            if heap[lightest].count > heap[at].count {
                return;
            }
            self.heap.swap(at, lightest);
            at = lightest;
        }
    }

    /// Returns whether `key` is among the k most frequent.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        key.with_bytes(|bytes| self.heap.find(self.head.hasher.digest_bytes(bytes), bytes).is_some())
    }

    /// Returns a lower bound of how often `key` was counted. The key need not be among the k most
    /// frequent.
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        key.with_bytes(|bytes| {
            let digest = self.head.hasher.digest_bytes(bytes);
            if let Some(at) = self.heap.find(digest, bytes) {
                return self.heap.entries()[at].count;
            }
            let cells = self.shape.places(digest).map(|place| Cell::from_word(self.cells.words()[place]));
            let own = cells.filter(|cell| cell.mark == mark(digest)).map(|cell| cell.count);
            own.max().unwrap_or_default().into()
        })
    }

    /// Returns the most frequent keys, heaviest first.
    pub fn items(&self) -> Vec<Item<'_>> {
        let entries = self.heap.entries().iter().filter(|entry| entry.count > 0);
        let mut items: Vec<Item<'_>> =
            entries.map(|entry| Item { key: &entry.key, count: entry.count }).collect();
        items.sort_by_key(|item| Reverse(item.count));
        items
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        self.cells.words_mut().fill(0);
        self.heap.free_all();
        self.head = self.head.emptied();
        self.draws = 0;
    }

    /// Measures how full the sketch is. The estimate of the number of distinct keys comes from the
    /// first row.
    pub fn stats(&self) -> Stats {
        let TopKBuilder { k, width, depth, decay } = self.shape;
        let words = &self.cells.words()[..(width * u64::from(depth)) as usize];
        let used = |words: &[u64]| words.iter().filter(|word| **word != 0).count() as u64;
        let row = Shape::Standard { bits: width, hashes: 1 };
        Stats {
            cells: words.len() as u64,
            used_cells: used(words),
            hashes: depth,
            bits: 64 * words.len() as u64,
            bytes: self.bytes(),
            estimate: row.cardinality(used(&words[..width as usize])).unwrap_or(Cardinality::Saturated),
            details: vec![
                ("k", k as f64),
                ("width", width as f64),
                ("depth", depth.into()),
                ("decay", decay),
            ],
            ..Stats::from_structure(self)
        }
    }

    /// Returns the bytes of memory in use.
    #[doc(hidden)]
    pub fn bytes(&self) -> u64 {
        (size_of_val(self.cells.lines()) + size_of::<Decay>()) as u64 + self.heap.bytes()
    }

    /// Returns the memory of the cells.
    #[doc(hidden)]
    pub fn words(&self) -> &Words {
        &self.cells
    }

    /// Returns the number of random numbers drawn.
    #[doc(hidden)]
    pub fn draws(&self) -> u64 {
        self.draws
    }

    /// Returns all places in the order of the heap; a free place has a count of 0.
    #[doc(hidden)]
    pub fn heap(&self) -> impl Iterator<Item = Item<'_>> + Clone {
        self.heap.entries().iter().map(|entry| Item { key: &entry.key, count: entry.count })
    }
}

/// Returns the fingerprint of a digest.
#[inline]
fn mark(digest: Digest) -> u32 {
    (digest.salted(u64::MAX).get() >> 32) as u32
}

/// The fingerprint of a key and its count.
#[derive(Clone, Copy)]
struct Cell {
    mark: u32,
    count: u32,
}

impl Cell {
    #[inline]
    fn from_word(word: u64) -> Cell {
        Cell { mark: (word >> 32) as u32, count: word as u32 }
    }

    #[inline]
    fn word(self) -> u64 {
        u64::from(self.mark) << 32 | u64::from(self.count)
    }
}
