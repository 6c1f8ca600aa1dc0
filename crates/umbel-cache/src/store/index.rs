//! Which documents there are, by their keys.

use super::entry::Entry;
use crate::CacheKey;
use std::collections::HashMap;
use std::sync::Arc;

/// The documents of a store.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Where the variants of a document are in the list.
    places: HashMap<CacheKey, Vec<usize>>,
    /// All of them, in no order, so that some can be looked at by chance.
    list: Vec<Arc<Entry>>,
    bytes: u64,
}

/// How many documents are looked at to find one that was not asked for of late.
const TRIED: usize = 16;

impl Index {
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// What all of them take on disk.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn keys(&self) -> Vec<CacheKey> {
        self.places.keys().copied().collect()
    }

    pub fn variants(&self, key: &CacheKey) -> Vec<Arc<Entry>> {
        self.places.get(key).map_or_else(Vec::new, |places| {
            places.iter().map(|place| Arc::clone(&self.list[*place])).collect()
        })
    }

    pub fn has(&self, key: &CacheKey) -> bool {
        self.places.contains_key(key)
    }

    /// Puts a document in; the one that it replaces, if there is one.
    pub fn insert(&mut self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        let places = self.places.entry(*entry.key()).or_default();
        self.bytes += entry.bytes();
        match places.iter().find(|place| self.list[**place].variant() == entry.variant()) {
            Some(place) => {
                let replaced = std::mem::replace(&mut self.list[*place], entry);
                self.bytes -= replaced.bytes();
                Some(replaced)
            }
            None => {
                places.push(self.list.len());
                self.list.push(entry);
                None
            }
        }
    }

    /// Takes a document out, if it is this very one; whether it was.
    pub fn remove(&mut self, entry: &Arc<Entry>) -> bool {
        let Some(places) = self.places.get_mut(entry.key()) else { return false };
        let Some(at) = places.iter().position(|place| Arc::ptr_eq(&self.list[*place], entry)) else {
            return false;
        };
        let place = places.swap_remove(at);
        if places.is_empty() {
            self.places.remove(entry.key());
        }
        self.bytes -= entry.bytes();
        // The last of the list takes its place.
        let from = self.list.len() - 1;
        self.list.swap_remove(place);
        if let Some(moved) = self.list.get(place)
            && let Some(places) = self.places.get_mut(moved.key())
            && let Some(number) = places.iter_mut().find(|number| **number == from)
        {
            *number = place;
        }
        true
    }

    /// One that was asked for longer ago than others: of some, which chance picks by this seed.
    pub fn seldom_used(&self, seed: u64, which: impl Fn(&Entry) -> bool) -> Option<Arc<Entry>> {
        let some = (0..TRIED as u64).filter_map(|i| self.list.get(scattered(seed, i, self.list.len())));
        let found = some.filter(|entry| which(entry)).min_by_key(|entry| entry.used());
        // Where few are of that sort chance may miss them all.
        found.or_else(|| self.list.iter().find(|entry| which(entry))).cloned()
    }
}

/// A number below `len` that looks like chance.
fn scattered(seed: u64, i: u64, len: usize) -> usize {
    let mixed = (seed ^ i << 48).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((u128::from(mixed ^ mixed >> 29) * len as u128) >> 64) as usize
}
