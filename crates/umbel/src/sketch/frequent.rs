//! [`Frequent`]: all keys above a share of the total, by Misra and Gries.

use super::table::{Entry, KeyTable, MAX_ENTRIES};
use super::{Item, add_to_total, each_key, finish, items, sketch_methods, summarize, total};
use crate::file::FormatError;
use crate::memory::{Mover, Words};
use crate::sizing::{Cardinality, Estimate};
use crate::structure::{Body, Head, ITEMS, Parts};
use crate::{Batch, Capabilities, Digest, Error, Hasher, Key, Kind, Mismatch, Result, Stats, Structure};
use std::cmp::Reverse;
use std::fmt;

/// Finds all keys with more than a share of the total: the summary of Misra and Gries.
///
/// ```
/// use umbel::sketch::Frequent;
/// // Every key with more than a tenth of the total.
/// let mut senders = Frequent::new(9)?;
/// senders.insert_times("10.0.0.7", 300);
/// senders.insert_batch(&(0..1000u64).collect::<Vec<_>>());
/// let heaviest = senders.items()[0];
/// assert_eq!(heaviest.key, b"10.0.0.7");
/// // The count is too low by at most the error bound, and that is at most a tenth of the total.
/// assert!(heaviest.count <= 300 && 300 <= heaviest.count + senders.error_bound());
/// assert!(senders.error_bound() <= senders.total() / 10);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # How it works
///
/// A new key gets a counter, and later occurrences raise it. When there are more than 2 k counters,
/// all of them are lowered by the value of the (k+1)-th largest, and those that reach zero are
/// dropped:
///
/// ```text
/// k = 2, five counters      9  7  4  2  1        the third largest is 4
/// all lowered by 4          5  3  -  -  -        at most k are left
/// ```
///
/// Each time at least k + 1 counters lose that value, so one key loses at most total / (k + 1)
/// overall. A key with more occurrences than that keeps its counter. A union adds the counters of
/// both sketches and lowers them in the same way, so it makes the same promise for both streams
/// together.
///
/// # When to use it
///
/// Take it when no frequent key may be missed: heavy senders, hot rows. Not every listed key is
/// frequent: a key is above a threshold if its count is, and is certainly not if `count +
/// error_bound()` is not. For the k most frequent keys, whatever their share, see
/// [`TopK`](super::TopK).
///
/// It costs at most 2 k counters of 48 bytes and the bytes of the key each, and an insertion is a
/// lookup in a hash table.
///
/// # References
///
/// * J. Misra and D. Gries. *Finding repeated elements.* Science of Computer Programming
///   2(2), 1982. `MG82`
/// * P. K. Agarwal, G. Cormode, Z. Huang, J. M. Phillips, Z. Wei and K. Yi. *Mergeable summaries.*
///   ACM Transactions on Database Systems 38(4), 2013; first at PODS 2012. `Agarwal13`
pub struct Frequent {
    head: Head,
    k: u64,
    counters: KeyTable,
    /// The sum of the values by which all counters have been lowered.
    error: u64,
}

/// The largest k; a sketch has up to twice as many counters.
const MAX_K: u64 = MAX_ENTRIES / 4;

sketch_methods!(Frequent);

impl Frequent {
    /// Creates an empty sketch that misses no key with more than 1 / (k + 1) of the total. Memory
    /// is allocated as keys arrive.
    ///
    /// # Errors
    ///
    /// If `k` is 0 or more than 2^29.
    pub fn new(k: u64) -> Result<Frequent> {
        check(k)?;
        Ok(Frequent { head: Head::new(Hasher::default()), k, counters: KeyTable::default(), error: 0 })
    }

    /// Returns k: no key with more than 1 / (k + 1) of the total is missing.
    pub fn k(&self) -> u64 {
        self.k
    }

    /// Returns the number of keys that have a counter, at most 2 k.
    pub fn len(&self) -> usize {
        self.counters.entries().len()
    }

    /// Returns whether no key has a counter.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the sum of all counts, or `u64::MAX` if it is larger.
    pub fn total(&self) -> u64 {
        total(&self.head)
    }

    /// Returns the amount by which a count may be too low: at most total / (k + 1). Keys without a
    /// counter were counted at most this often.
    pub fn error_bound(&self) -> u64 {
        self.error
    }

    /// Counts `key` once.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) {
        self.insert_times(key, 1);
    }

    /// Counts `key` `times` times.
    pub fn insert_times<K: Key + ?Sized>(&mut self, key: &K, times: u64) {
        key.with_bytes(|bytes| self.insert_bytes(self.head.hasher.digest_bytes(bytes), bytes, times));
    }

    /// Counts many keys once each; the fast way.
    pub fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) {
        let hasher = self.head.hasher.clone();
        each_key(keys, &hasher, |digest, key| {
            self.insert_bytes(digest, key, 1);
        });
    }

    fn insert_bytes(&mut self, digest: Digest, key: &[u8], times: u64) {
        self.raise(digest, key, times);
        add_to_total(&mut self.head, times);
        if self.counters.entries().len() as u64 > 2 * self.k {
            self.purge();
        }
    }

    /// Raises the counter of a key, or creates one.
    #[inline]
    fn raise(&mut self, digest: Digest, key: &[u8], times: u64) {
        match self.counters.find(digest, key) {
            Some(at) => {
                let count = self.counters.entries()[at].count.saturating_add(times);
                self.counters.set_count(at, count);
            }
            None if times > 0 => self.counters.push(Entry { digest, count: times, key: key.to_vec() }),
            None => {}
        }
    }

    /// Lowers all counters by the (k+1)-th largest. There must be more than k.
    fn purge(&mut self) {
        let mut counts: Vec<u64> = self.counters.entries().iter().map(|entry| entry.count).collect();
        let (_, lower, _) = counts.select_nth_unstable_by_key(self.k as usize, |count| Reverse(*count));
        self.error = self.error.saturating_add(*lower);
        self.counters.lower(*lower);
    }

    /// Returns whether `key` has a counter.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.count(key) > 0
    }

    /// Returns how often `key` was counted, less at most [`error_bound`](Frequent::error_bound).
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        key.with_bytes(|bytes| {
            let found = self.counters.find(self.head.hasher.digest_bytes(bytes), bytes);
            found.map_or(0, |at| self.counters.entries()[at].count)
        })
    }

    /// Returns the keys that have a counter, heaviest first; keys of equal counts are ordered by
    /// their bytes.
    pub fn items(&self) -> Vec<Item<'_>> {
        let entries = self.counters.entries().iter();
        let mut items: Vec<Item<'_>> =
            entries.map(|entry| Item { key: &entry.key, count: entry.count }).collect();
        items.sort_unstable_by_key(|item| (Reverse(item.count), item.key));
        items
    }

    /// Returns the first difference that prevents a union of the two, if there is one.
    pub fn mismatch(&self, other: &Frequent) -> Option<Mismatch> {
        Mismatch::between("number of counters", self.k, other.k)
    }

    /// Turns this sketch into the sketch of everything that was counted in either. The hash
    /// functions may differ, since the keys are stored.
    ///
    /// # Errors
    ///
    /// If k differs. Neither sketch is changed then.
    pub fn union(&mut self, other: &Frequent) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        for entry in other.counters.entries() {
            self.raise(self.head.hasher.digest_bytes(&entry.key), &entry.key, entry.count);
        }
        self.error = self.error.saturating_add(other.error);
        add_to_total(&mut self.head, other.total());
        if self.counters.entries().len() as u64 > 2 * self.k {
            self.purge();
        }
        Ok(())
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        self.counters.clear();
        self.error = 0;
        self.head = self.head.emptied();
    }

    /// Measures how full the sketch is; its cells are the counters. The number of distinct keys is
    /// exact until the first key is dropped.
    pub fn stats(&self) -> Stats {
        let held = self.len() as u64;
        let exact = Estimate { value: held as f64, standard_error: 0.0 };
        Stats {
            cells: 2 * self.k,
            used_cells: held,
            hashes: 1,
            bits: 8 * self.counters.bytes(),
            bytes: self.counters.bytes(),
            estimate: if self.error == 0 { Cardinality::Estimated(exact) } else { Cardinality::Saturated },
            details: vec![("k", self.k as f64), ("error bound", self.error as f64)],
            ..Stats::from_structure(self)
        }
    }
}

fn check(k: u64) -> Result<()> {
    if !(1..=MAX_K).contains(&k) {
        return Err(Error::parameter("k", k, format!("1 to {MAX_K} counters")));
    }
    Ok(())
}

impl fmt::Debug for Frequent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape: [(&str, &dyn fmt::Debug); 3] =
            [("k", &self.k), ("len", &self.len()), ("error_bound", &self.error)];
        summarize(f, "Frequent", &shape, self.counters.bytes(), &self.head)
    }
}

impl Structure for Frequent {
    const KIND: Kind = Kind::Frequent;

    const CAPABILITIES: Capabilities =
        Capabilities { union: true, absorb: true, multiset: true, ..Capabilities::NOTHING };

    fn try_clone(&self) -> Result<Frequent> {
        Ok(Frequent { head: self.head.clone(), counters: self.counters.try_clone()?, ..*self })
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    fn params(&self) -> Vec<u64> {
        vec![self.k, self.len() as u64, self.error]
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        Vec::new()
    }

    fn body(&self) -> Result<Vec<(u32, Body<'_>)>> {
        let sorted = self.items();
        let items = items::encode(sorted.iter().map(|item| (item.count, item.key)))?;
        Ok(vec![(ITEMS, Body::Made(items))])
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.counters.relocate(mover);
    }

    fn restore(mut parts: Parts) -> Result<Frequent> {
        let [k, count, error] = parts.params()?;
        check(k)?;
        let items = parts.section_of_any_size(ITEMS)?;
        let invalid = |what: &str| FormatError::invalid(what);
        if count > 2 * k {
            return Err(invalid("it has more items than counters").into());
        }
        let entries = items::decode(&items, count, false, &parts.head.hasher)?;
        let ordered =
            |pair: &[Entry]| (Reverse(pair[0].count), &pair[0].key) < (Reverse(pair[1].count), &pair[1].key);
        if !entries.windows(2).all(ordered) {
            return Err(invalid("its items are not in order").into());
        }
        let counters = KeyTable::from_entries(entries)?.ok_or_else(|| invalid("an item occurs twice"))?;
        Ok(Frequent { head: finish(parts)?, k, counters, error })
    }

    /// Checks that the losses and the remaining counters add up to at most the total.
    fn check_contents(&self) -> Result<(), FormatError> {
        let left: u128 = self.counters.entries().iter().map(|entry| u128::from(entry.count)).sum();
        let lost = u128::from(self.error) * u128::from(self.k + 1);
        if self.head.inserted.is_some_and(|total| left + lost > total.into()) {
            return Err(FormatError::invalid("the counts of its items exceed the total"));
        }
        Ok(())
    }
}
