//! A table of counted keys, indexed by their digests.

use crate::hash::reduce;
use crate::memory::{Mover, relocate_vec};
use crate::{Digest, Error, Result};

/// A key and its count. An entry whose count is 0 is free and cannot be found.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub digest: Digest,
    pub count: u64,
    pub key: Vec<u8>,
}

/// Entries in an order chosen by the caller, and an index of them.
///
/// ```text
/// slots     . 2 . . 1 3 . .        open addressing: an entry is in the first free slot from its home on
///             │     │ │
/// entries   0 1 2   ...            the number in a slot is that of its entry plus 1
/// ```
///
/// At least half of the slots are free, so a search ends soon. There are no tombstones: when an
/// entry is removed, the entries after it move up.
#[derive(Debug, Default)]
pub(super) struct KeyTable {
    entries: Vec<Entry>,
    slots: Vec<u32>,
    /// The bytes of all keys.
    key_bytes: usize,
}

/// The bytes of an entry without its key, and of two slots.
const ENTRY_BYTES: usize = size_of::<Entry>() + 2 * size_of::<u32>();

/// The largest number of entries; their numbers plus 1 fit into a slot.
pub(super) const MAX_ENTRIES: u64 = 1 << 31;

impl KeyTable {
    /// Creates a table of free entries.
    pub fn with_free(count: u64) -> Result<KeyTable> {
        let mut entries = Vec::new();
        let len = count as usize;
        entries.try_reserve_exact(len).map_err(|_| out_of_memory(len))?;
        entries.resize(len, Entry::default());
        Ok(KeyTable { entries, slots: empty_slots(len)?, key_bytes: 0 })
    }

    /// Creates a table of these entries; `None` if a key occurs twice.
    pub fn from_entries(entries: Vec<Entry>) -> Result<Option<KeyTable>> {
        let slots = empty_slots(entries.len())?;
        let key_bytes = entries.iter().map(|entry| entry.key.len()).sum();
        let mut table = KeyTable { entries, slots, key_bytes };
        for at in 0..table.entries.len() {
            let Entry { digest, count, key } = &table.entries[at];
            if *count > 0 && table.find(*digest, key).is_some() {
                return Ok(None);
            }
            table.index(at);
        }
        Ok(Some(table))
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the number of the entry with this key.
    #[inline]
    pub fn find(&self, digest: Digest, key: &[u8]) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mut slot = self.home(digest);
        loop {
            let at = (self.slots[slot] as usize).checked_sub(1)?;
            let entry = &self.entries[at];
            if entry.digest == digest && entry.key == key {
                return Some(at);
            }
            slot = self.behind(slot);
        }
    }

    /// Sets the count of an entry, which must stay above 0.
    #[inline]
    pub fn set_count(&mut self, at: usize, count: u64) {
        self.entries[at].count = count;
    }

    /// Appends an entry whose key is not in the table yet.
    pub fn push(&mut self, entry: Entry) {
        self.key_bytes += entry.key.len();
        self.entries.push(entry);
        if 2 * self.entries.len() > self.slots.len() {
            // Allocated infallibly, like the keys themselves.
            self.slots = vec![0; (4 * self.entries.len()).max(16)];
            (0..self.entries.len()).for_each(|at| self.index(at));
        } else {
            self.index(self.entries.len() - 1);
        }
    }

    /// Replaces an entry by one whose key is not in the table yet, and returns the old entry.
    pub fn replace(&mut self, at: usize, entry: Entry) -> Entry {
        self.remove_from_index(at);
        self.key_bytes += entry.key.len();
        let old = std::mem::replace(&mut self.entries[at], entry);
        self.key_bytes -= old.key.len();
        self.index(at);
        old
    }

    /// Swaps two entries.
    pub fn swap(&mut self, a: usize, b: usize) {
        let slots = [a, b].map(|at| self.slot_of(at));
        for (slot, at) in slots.into_iter().zip([b, a]) {
            if let Some(slot) = slot {
                self.slots[slot] = at as u32 + 1;
            }
        }
        self.entries.swap(a, b);
    }

    /// Lowers every count, and drops the entries whose count reaches 0.
    pub fn lower(&mut self, by: u64) {
        self.key_bytes = 0;
        self.entries.retain_mut(|entry| {
            entry.count = entry.count.saturating_sub(by);
            self.key_bytes += if entry.count > 0 { entry.key.len() } else { 0 };
            entry.count > 0
        });
        self.slots.fill(0);
        (0..self.entries.len()).for_each(|at| self.index(at));
    }

    /// Makes every entry free.
    pub fn free_all(&mut self) {
        self.entries.fill(Entry::default());
        self.slots.fill(0);
        self.key_bytes = 0;
    }

    /// Drops all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.slots.fill(0);
        self.key_bytes = 0;
    }

    pub fn try_clone(&self) -> Result<KeyTable> {
        let mut copy = KeyTable::default();
        copy.entries.try_reserve_exact(self.entries.len()).map_err(|_| out_of_memory(self.entries.len()))?;
        copy.slots.try_reserve_exact(self.slots.len()).map_err(|_| out_of_memory(self.entries.len()))?;
        copy.entries.extend_from_slice(&self.entries);
        copy.slots.extend_from_slice(&self.slots);
        copy.key_bytes = self.key_bytes;
        Ok(copy)
    }

    /// Allows the memory to be moved.
    pub fn relocate(&mut self, mover: &mut dyn Mover) {
        self.entries.iter_mut().for_each(|entry| relocate_vec(&mut entry.key, mover));
        relocate_vec(&mut self.entries, mover);
        relocate_vec(&mut self.slots, mover);
    }

    /// Returns the bytes of memory in use; a table that has grown may have allocated up to twice as
    /// much.
    pub fn bytes(&self) -> u64 {
        (self.key_bytes + self.entries.len() * ENTRY_BYTES) as u64
    }

    /// Returns the slot in which a search for this digest begins.
    #[inline]
    fn home(&self, digest: Digest) -> usize {
        reduce(digest.get(), self.slots.len() as u64) as usize
    }

    #[inline]
    fn behind(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    /// Assigns a slot to an entry, unless the entry is free.
    fn index(&mut self, at: usize) {
        if self.entries[at].count == 0 {
            return;
        }
        let mut slot = self.home(self.entries[at].digest);
        while self.slots[slot] != 0 {
            slot = self.behind(slot);
        }
        self.slots[slot] = at as u32 + 1;
    }

    /// Returns the slot of an entry, or `None` if the entry is free.
    fn slot_of(&self, at: usize) -> Option<usize> {
        if self.entries[at].count == 0 {
            return None;
        }
        let mut slot = self.home(self.entries[at].digest);
        while self.slots[slot] != at as u32 + 1 {
            slot = self.behind(slot);
        }
        Some(slot)
    }

    /// Frees the slot of an entry. Entries after it move up, unless that would put them before
    /// their home:
    ///
    /// ```text
    /// home      3 3 4 4 7
    /// slot      3 4 5 6 7        slot 3 is freed: 4, 5 and 6 move up by one, and 7 is at home
    /// ```
    fn remove_from_index(&mut self, at: usize) {
        let Some(mut hole) = self.slot_of(at) else { return };
        let len = self.slots.len();
        let distance = |from: usize, to: usize| if to >= from { to - from } else { to + len - from };
        let mut slot = self.behind(hole);
        while self.slots[slot] != 0 {
            let home = self.home(self.entries[self.slots[slot] as usize - 1].digest);
            if distance(home, slot) >= distance(hole, slot) {
                self.slots[hole] = self.slots[slot];
                hole = slot;
            }
            slot = self.behind(slot);
        }
        self.slots[hole] = 0;
    }
}

/// Returns empty slots for this number of entries.
fn empty_slots(entries: usize) -> Result<Vec<u32>> {
    let mut slots = Vec::new();
    slots.try_reserve_exact(2 * entries).map_err(|_| out_of_memory(entries))?;
    slots.resize(2 * entries, 0);
    Ok(slots)
}

fn out_of_memory(entries: usize) -> Error {
    Error::OutOfMemory { bytes: (entries * ENTRY_BYTES) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Returns one of few digests, so that keys share them and homes are crowded.
    fn digest(key: u8) -> Digest {
        Digest::from_hash(u64::from(key / 2 % 8) << 61)
    }

    proptest! {
        #![proptest_config(crate::fixed_cases())]

        #[test]
        fn exactly_the_inserted_keys_are_found_after_any_operations(
            size in 1..20usize,
            steps in prop::collection::vec((0..20usize, 0..60u8, any::<bool>()), 1..300),
        ) {
            let mut table = KeyTable::with_free(size as u64).unwrap();
            let mut naive: Vec<Option<u8>> = vec![None; size];
            for (at, key, swap) in steps {
                let (at, other) = (at % size, usize::from(key) % size);
                if swap {
                    table.swap(at, other);
                    naive.swap(at, other);
                } else if !naive.contains(&Some(key)) {
                    let old = table.replace(at, Entry { digest: digest(key), count: 1, key: vec![key] });
                    prop_assert_eq!(old.key.first().copied(), naive[at].replace(key));
                }
                for key in 0..60u8 {
                    let expected = naive.iter().position(|held| *held == Some(key));
                    prop_assert_eq!(table.find(digest(key), &[key]), expected);
                }
            }
        }

        #[test]
        fn a_growing_and_lowered_table_behaves_like_a_map(
            steps in prop::collection::vec((0..60u8, 1..5u64, 0..9u8), 1..200),
        ) {
            let (mut table, mut naive) = (KeyTable::default(), BTreeMap::<u8, u64>::new());
            for (key, count, step) in steps {
                match table.find(digest(key), &[key]) {
                    _ if step == 0 => {
                        table.lower(count);
                        naive.retain(|_, held| { *held = held.saturating_sub(count); *held > 0 });
                    }
                    Some(at) => {
                        let sum = table.entries()[at].count + count;
                        table.set_count(at, sum);
                        naive.insert(key, sum);
                    }
                    None => {
                        table.push(Entry { digest: digest(key), count, key: vec![key] });
                        prop_assert_eq!(naive.insert(key, count), None);
                    }
                }
                prop_assert_eq!(table.bytes() as usize, naive.len() * (ENTRY_BYTES + 1));
                let held: BTreeMap<u8, u64> = table.entries().iter().map(|entry| (entry.key[0], entry.count)).collect();
                prop_assert_eq!(&held, &naive);
                prop_assert!(held.keys().all(|key| table.find(digest(*key), &[*key]).is_some()));
            }
        }
    }
}
