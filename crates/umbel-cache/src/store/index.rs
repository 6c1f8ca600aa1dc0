//! The index of the store: its entries by key.

use super::entry::Entry;
use crate::CacheKey;
use std::collections::HashMap;
use std::sync::Arc;

/// The entries of a store.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The positions in `entries` of all variants of a key.
    positions: HashMap<CacheKey, Vec<usize>>,
    /// All entries in arbitrary order, so that a random sample can be drawn.
    entries: Vec<Arc<Entry>>,
    disk_bytes: u64,
}

/// The number of entries in a sample.
const SAMPLE_SIZE: u64 = 16;

impl Index {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the disk space that all entries take.
    pub fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    pub fn keys(&self) -> Vec<CacheKey> {
        self.positions.keys().copied().collect()
    }

    pub fn variants(&self, key: &CacheKey) -> Vec<Arc<Entry>> {
        self.positions.get(key).map_or_else(Vec::new, |positions| {
            positions.iter().map(|position| Arc::clone(&self.entries[*position])).collect()
        })
    }

    pub fn contains(&self, key: &CacheKey) -> bool {
        self.positions.contains_key(key)
    }

    /// Inserts an entry and returns the entry for the same key and variant that it replaces.
    pub fn insert(&mut self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        let positions = self.positions.entry(*entry.key()).or_default();
        self.disk_bytes += entry.disk_bytes();
        match positions.iter().find(|position| self.entries[**position].variant() == entry.variant()) {
            Some(position) => {
                let replaced = std::mem::replace(&mut self.entries[*position], entry);
                self.disk_bytes -= replaced.disk_bytes();
                Some(replaced)
            }
            None => {
                positions.push(self.entries.len());
                self.entries.push(entry);
                None
            }
        }
    }

    /// Removes an entry and returns whether it was present. Another entry for the same key and
    /// variant stays.
    pub fn remove(&mut self, entry: &Arc<Entry>) -> bool {
        let Some(positions) = self.positions.get_mut(entry.key()) else { return false };
        let Some(at) = positions.iter().position(|position| Arc::ptr_eq(&self.entries[*position], entry))
        else {
            return false;
        };
        let position = positions.swap_remove(at);
        if positions.is_empty() {
            self.positions.remove(entry.key());
        }
        self.disk_bytes -= entry.disk_bytes();
        // The last entry moves to the free position.
        let last = self.entries.len() - 1;
        self.entries.swap_remove(position);
        if let Some(moved) = self.entries.get(position)
            && let Some(positions) = self.positions.get_mut(moved.key())
            && let Some(moved_position) = positions.iter_mut().find(|other| **other == last)
        {
            *moved_position = position;
        }
        true
    }

    /// Returns the least recently used entry of a random sample, among those that the predicate
    /// accepts.
    pub fn sample_least_recent(&self, seed: u64, accepts: impl Fn(&Entry) -> bool) -> Option<Arc<Entry>> {
        let sample =
            (0..SAMPLE_SIZE).filter_map(|i| self.entries.get(random_below(seed, i, self.entries.len())));
        let oldest = sample.filter(|entry| accepts(entry)).min_by_key(|entry| entry.last_used());
        // If few entries are acceptable the sample may have none of them.
        oldest.or_else(|| self.entries.iter().find(|entry| accepts(entry))).cloned()
    }
}

/// Returns the `i`-th pseudo-random number below `len` for this seed.
fn random_below(seed: u64, i: u64, len: usize) -> usize {
    let mixed = (seed ^ i << 48).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((u128::from(mixed ^ mixed >> 29) * len as u128) >> 64) as usize
}
