//! The cuckoo filter of RedisBloom.
//!
//! The header of its dump has 38 bytes, and its numbers are little-endian:
//!
//! ```text
//!  0  u64  the number of items
//!  8  u64  the number of buckets of the first level, a power of two
//! 16  u64  the number of items deleted since the levels were compacted
//! 24  u64  the number of levels
//! 32  u16  the number of slots in a bucket
//! 34  u16  the most fingerprints that move to make room for one
//! 36  u16  the expansion, a power of two; 0 if there is only one level
//! ```
//!
//! The levels follow, the oldest first. Each is an array of buckets, each bucket an array of slots,
//! and each slot a byte: a fingerprint from 1 to 255, or 0. A level has `expansion` times as many
//! buckets as the one before.
//!
//! With `h` the `MurmurHash64A` of the item, seeded with 0, its fingerprint is `f = h mod 255 + 1`.
//! In a level of `n` buckets it is in bucket `h mod n` or in bucket `(h xor 0x5bd1e995 f) mod n`. `n`
//! is a power of two, so each of these follows from the other and the fingerprint, in this level
//! and in smaller ones. Therefore a fingerprint can move within its level, and to older levels.
//!
//! # References
//!
//! * Redis. *RedisBloom.* Documentation of `CF.RESERVE`, `CF.SCANDUMP` and `CF.LOADCHUNK`.
//!   RedisBloom
//! * B. Fan, D. G. Andersen, M. Kaminsky and M. D. Mitzenmacher. *Cuckoo Filter: Practically Better
//!   Than Bloom.* CoNEXT 2014. DOI 10.1145/2674005.2674994. `FanA14`

use super::bits::{Bits, Order};
use super::hash::murmur64a;
use super::scandump::{self, Dump};
use crate::file::FormatError;
use crate::file::fields::Fields;
use crate::memory::{Mover, Words, relocate_vec};
use crate::{Error, Kind, Result};
use std::io::Read;

const HEADER_BYTES: usize = 38;

/// The most levels of a filter. RedisBloom stops at as many.
const MAX_LEVELS: u64 = 32;

/// The most slots in a bucket that RedisBloom accepts.
const MAX_SLOTS: u16 = 255;

/// A cuckoo filter in the layout of RedisBloom, which changes as it would there: with equal
/// commands, both have equal bytes.
///
/// It is loaded with [`Dump::load`]. A filter to build here is a [`Cuckoo`](crate::Cuckoo), whose
/// fingerprints are longer if a lower rate needs them, and whose deletions never remove the
/// fingerprint of another item in a filter that has grown.
///
/// ```
/// use umbel::foreign::{Dump, RedisCuckoo};
/// # let header: &[u8] = &[
/// #     1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
/// #     1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 20, 0, 1, 0,
/// # ];
/// # let data: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0];
/// // Two chunks of a `CF.SCANDUMP`.
/// let mut filter = RedisCuckoo::load(header, data)?;
/// filter.insert(b"apple", filter.max_moves())?;
/// assert!(filter.contains(b"apple") && filter.count(b"apple") == 1);
/// assert!(filter.remove(b"apple") && !filter.contains(b"apple"));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Debug)]
pub struct RedisCuckoo {
    shape: Shape,
    /// The oldest first.
    levels: Vec<Level>,
    items: u64,
    deleted: u64,
}

/// The settings, which never change.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// The number of buckets of the first level.
    buckets: u64,
    slots: u16,
    max_moves: u16,
    expansion: u16,
}

impl Shape {
    /// Returns the number of buckets of a level, or `None` if it is beyond all memory.
    fn buckets_of(&self, level: u64) -> Option<u64> {
        u64::from(self.expansion).checked_pow(u32::try_from(level).ok()?)?.checked_mul(self.buckets)
    }

    /// Returns the number of bytes of a level, or `None` if it is beyond all memory.
    fn bytes_of(&self, level: u64) -> Option<u64> {
        self.buckets_of(level)?.checked_mul(self.slots.into())
    }
}

/// A parsed header.
struct Header {
    shape: Shape,
    deleted: u64,
    levels: u64,
    /// The number of bytes of all levels.
    data_bytes: u64,
}

impl Header {
    fn parse(header: &[u8]) -> Result<Header> {
        if header.len() != HEADER_BYTES {
            return Err(FormatError::NotAFilter.into());
        }
        let mut fields = Fields(header);
        // The items are counted in the levels: a dump of a filter in use has an older number.
        let [_, buckets, deleted, levels] = [(); 4].map(|()| fields.u64().unwrap_or_default());
        let [slots, max_moves, expansion] =
            [(); 3].map(|()| u16::from_le_bytes(fields.array().unwrap_or_default()));
        let invalid = |what: String| Err(FormatError::invalid(what).into());
        if !buckets.is_power_of_two() {
            return invalid(format!("it has {buckets} buckets, and should have a power of two"));
        }
        if !(1..=MAX_SLOTS).contains(&slots) {
            return invalid(format!("its buckets have {slots} slots, and should have 1 to {MAX_SLOTS}"));
        }
        if expansion != 0 && !expansion.is_power_of_two() {
            return invalid(format!("its expansion is {expansion}, and should be a power of two or 0"));
        }
        if !(1..=MAX_LEVELS).contains(&levels) {
            return invalid(format!(
                "it has {levels} levels, and should have 1 to {MAX_LEVELS}: CF.COMPACT may merge them"
            ));
        }
        if expansion == 0 && levels > 1 {
            return invalid(format!("it has {levels} levels and does not expand"));
        }
        let shape = Shape { buckets, slots, max_moves, expansion };
        let total = (0..levels).try_fold(0u64, |sum, level| sum.checked_add(shape.bytes_of(level)?));
        match total {
            Some(data_bytes) => Ok(Header { shape, deleted, levels, data_bytes }),
            None => invalid(format!("{levels} levels from {buckets} buckets on exceed all memory")),
        }
    }
}

/// A level: an array of buckets.
#[derive(Debug)]
struct Level {
    cells: Bits,
    buckets: u64,
}

impl Level {
    fn cells(&self) -> &[u8] {
        self.cells.bytes().unwrap_or_default()
    }

    fn cells_mut(&mut self) -> &mut [u8] {
        self.cells.bytes_mut().unwrap_or_default()
    }

    fn slots(&self) -> usize {
        self.cells.len() / self.buckets as usize
    }

    /// Returns the bucket for a hash, as the index of its first slot.
    fn bucket(&self, hash: u64) -> usize {
        (hash % self.buckets) as usize * self.slots()
    }

    /// Returns the slots of the bucket for a hash that hold a byte.
    fn find(&self, hash: u64, byte: u8) -> impl Iterator<Item = usize> {
        let start = self.bucket(hash);
        let slots = self.cells().iter().enumerate().skip(start).take(self.slots());
        slots.filter(move |(_, cell)| **cell == byte).map(|(slot, _)| slot)
    }

    /// Returns the first slot for a fingerprint that holds a byte.
    fn find_first(&self, print: Print, byte: u8) -> Option<usize> {
        print.hashes().into_iter().find_map(|hash| self.find(hash, byte).next())
    }

    /// Stores a fingerprint if a slot is free.
    fn insert(&mut self, print: Print) -> bool {
        let free = self.find_first(print, 0);
        if let Some(slot) = free {
            self.cells_mut()[slot] = print.byte;
        }
        free.is_some()
    }

    /// Stores a fingerprint in its first bucket, and moves the fingerprints that are in its way
    /// until one finds a free slot. If none does, nothing changes.
    fn insert_by_moving(&mut self, print: Print, max_moves: u32) -> bool {
        let slots = self.slots();
        let (mut print, mut path) = (print, Vec::new());
        for moved in 0..max_moves as usize {
            let slot = self.bucket(print.hash) + moved % slots;
            let byte = std::mem::replace(&mut self.cells_mut()[slot], print.byte);
            path.push(slot);
            // The bucket that it leaves determines the other one.
            print = Print { byte, hash: (slot / slots) as u64 };
            print.hash = print.other_hash();
            let free = self.find(print.hash, 0).next();
            if let Some(free) = free {
                self.cells_mut()[free] = byte;
                return true;
            }
        }
        let cells = self.cells_mut();
        path.into_iter().rev().fold(print.byte, |byte, slot| std::mem::replace(&mut cells[slot], byte));
        false
    }

    fn count(&self) -> u64 {
        self.cells().iter().filter(|cell| **cell != 0).count() as u64
    }
}

/// A fingerprint with the hash for one of its buckets.
#[derive(Clone, Copy)]
struct Print {
    byte: u8,
    hash: u64,
}

impl Print {
    fn new(item: &[u8]) -> Print {
        let hash = murmur64a(item, 0);
        Print { byte: (hash % 255 + 1) as u8, hash }
    }

    /// Returns the hash for the other bucket.
    fn other_hash(self) -> u64 {
        self.hash ^ (u64::from(self.byte) * 0x5bd1_e995)
    }

    /// Returns the hashes for both buckets, in the order in which they are tried.
    fn hashes(self) -> [u64; 2] {
        [self.hash, self.other_hash()]
    }
}

impl RedisCuckoo {
    /// Returns whether the filter may contain an item.
    pub fn contains(&self, item: &[u8]) -> bool {
        let print = Print::new(item);
        self.levels.iter().rev().any(|level| level.find_first(print, print.byte).is_some())
    }

    /// Returns how often an item, or one that collides with it, was added. Counts a fingerprint
    /// twice whose two buckets are the same, as RedisBloom does.
    pub fn count(&self, item: &[u8]) -> u64 {
        let print = Print::new(item);
        let in_bucket = |level: &Level, hash| level.find(hash, print.byte).count() as u64;
        let count = |level: &Level| print.hashes().map(|hash| in_bucket(level, hash)).iter().sum::<u64>();
        self.levels.iter().map(count).sum()
    }

    /// Adds an item, again if it is present, in the newest level with a free slot. If none has one,
    /// at most `moves` fingerprints move in the newest level; if that is not enough, a level is
    /// added.
    ///
    /// # Errors
    ///
    /// If the filter does not expand, has as many levels as it can have, or there is not enough
    /// memory. The filter is unchanged then.
    pub fn insert(&mut self, item: &[u8], moves: u32) -> Result<()> {
        let print = Print::new(item);
        let is_stored = self.levels.iter_mut().rev().any(|level| level.insert(print))
            || self.levels.last_mut().is_some_and(|newest| newest.insert_by_moving(print, moves));
        if !is_stored {
            let mut level = self.new_level()?;
            level.insert(print);
            self.levels.push(level);
        }
        self.items += 1;
        Ok(())
    }

    /// Makes a level to follow the newest one.
    fn new_level(&self) -> Result<Level> {
        let full = |why: &str| Error::Full { kind: Kind::Cuckoo, why: why.into() };
        if self.shape.expansion == 0 {
            return Err(full("it was reserved with an expansion of 0"));
        }
        let levels = self.levels.len() as u64;
        if levels >= MAX_LEVELS {
            return Err(full("it has expanded as often as it can"));
        }
        let out_of_memory = || Error::OutOfMemory { bytes: u64::MAX };
        let buckets = self.shape.buckets_of(levels).ok_or_else(out_of_memory)?;
        let bytes = self.shape.bytes_of(levels).ok_or_else(out_of_memory)?;
        let mut cells = Bits::zero(usize::try_from(bytes).map_err(|_| out_of_memory())?, Order::Little);
        cells.bytes_mut()?;
        Ok(Level { cells, buckets })
    }

    /// Removes one occurrence of an item, from the newest level that has one, and returns whether
    /// there was one. Removing an item that was never added may remove another one.
    ///
    /// As in RedisBloom, the newest level is compacted when more than a tenth as many items have
    /// been deleted as are left.
    pub fn remove(&mut self, item: &[u8]) -> bool {
        let print = Print::new(item);
        let found = self.levels.iter_mut().rev().find_map(|level| {
            let slot = level.find_first(print, print.byte)?;
            Some(&mut level.cells_mut()[slot])
        });
        let Some(cell) = found else { return false };
        *cell = 0;
        self.items -= 1;
        self.deleted = self.deleted.saturating_add(1);
        if self.levels.len() > 1 && self.deleted as f64 > self.items as f64 * 0.1 {
            self.compact_until(|emptied| !emptied);
        }
        true
    }

    /// Moves fingerprints to older levels where these have free slots, and drops the newest levels
    /// that are then empty.
    pub fn compact(&mut self) {
        self.compact_until(|_| false);
    }

    /// Compacts level by level, the newest first, until `stop` returns true; it gets whether the
    /// level is empty now.
    fn compact_until(&mut self, stop: impl Fn(bool) -> bool) {
        for newer in (1..self.levels.len()).rev() {
            let (older, rest) = self.levels.split_at_mut(newer);
            let Some(level) = rest.first_mut() else { break };
            let slots = level.slots();
            let mut emptied = true;
            for (slot, cell) in level.cells_mut().iter_mut().enumerate().filter(|(_, cell)| **cell != 0) {
                let print = Print { byte: *cell, hash: (slot / slots) as u64 };
                if older.iter_mut().any(|older| older.insert(print)) {
                    *cell = 0;
                } else {
                    emptied = false;
                }
            }
            if emptied && newer + 1 == self.levels.len() {
                self.levels.pop();
            }
            if stop(emptied) {
                break;
            }
        }
        self.deleted = 0;
    }

    /// Returns the number of items.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Returns the number of items deleted since the levels were compacted.
    pub fn deleted(&self) -> u64 {
        self.deleted
    }

    /// Returns the number of levels.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Returns the number of buckets of the first level.
    pub fn buckets(&self) -> u64 {
        self.shape.buckets
    }

    /// Returns the number of slots in a bucket.
    pub fn slots(&self) -> u32 {
        self.shape.slots.into()
    }

    /// Returns the most fingerprints that RedisBloom moves to make room for one.
    pub fn max_moves(&self) -> u32 {
        self.shape.max_moves.into()
    }

    /// Returns the factor from the number of buckets of one level to the next; 0 if there is only
    /// one level.
    pub fn expansion(&self) -> u32 {
        self.shape.expansion.into()
    }
}

impl Dump for RedisCuckoo {
    fn data_bytes(header: &[u8]) -> Result<u64> {
        Header::parse(header).map(|header| header.data_bytes)
    }

    fn load(header: &[u8], mut data: impl Read) -> Result<RedisCuckoo> {
        let Header { shape, deleted, levels, .. } = Header::parse(header)?;
        let mut level = |number| {
            let (buckets, bytes) = (shape.buckets_of(number), shape.bytes_of(number));
            let cells = scandump::read_array(&mut data, bytes.unwrap_or(u64::MAX))?;
            Ok(Level { cells, buckets: buckets.unwrap_or(u64::MAX) })
        };
        let levels = (0..levels).map(&mut level).collect::<Result<Vec<Level>>>()?;
        let items = levels.iter().map(Level::count).sum();
        Ok(RedisCuckoo { shape, levels, items, deleted })
    }

    fn header(&self) -> Vec<u8> {
        let Shape { buckets, slots, max_moves, expansion } = self.shape;
        let mut header = Vec::with_capacity(HEADER_BYTES);
        let numbers = [self.items, buckets, self.deleted, self.levels.len() as u64];
        numbers.iter().for_each(|number| header.extend(number.to_le_bytes()));
        [slots, max_moves, expansion].iter().for_each(|number| header.extend(number.to_le_bytes()));
        header
    }

    fn chunk(&self, iterator: u64) -> (u64, Vec<u8>) {
        scandump::chunk(|| self.header(), self.levels.iter().map(|level| &level.cells), iterator)
    }

    fn sections(&self) -> Vec<&Words> {
        self.levels.iter().filter_map(|level| level.cells.words()).collect()
    }

    fn try_clone(&self) -> Result<RedisCuckoo> {
        let copy = |level: &Level| Ok(Level { cells: level.cells.try_clone()?, buckets: level.buckets });
        let levels = self.levels.iter().map(copy).collect::<Result<Vec<Level>>>()?;
        Ok(RedisCuckoo { levels, ..*self })
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.levels.iter_mut().for_each(|level| level.cells.relocate(mover));
        relocate_vec(&mut self.levels, mover);
    }
}
