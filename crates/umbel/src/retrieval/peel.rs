//! Solves one shard: peels the keys off the cells, then fills the cells in the opposite order.
//!
//! A cell with a single key is assigned to that key, and the key is removed from its other cells.
//! This may leave one of them with a single key, and so on. Two keys with three cells each, A with
//! the cells 0, 1, 2 and B with 1, 2, 3:
//!
//! ```text
//! cell                    0      1      2      3        order
//!
//! entered      counts     1      2      2      1
//!              digests    A     A^B    A^B     B
//! 0 goes to A  counts     0      1      1      1        0
//!              digests    A      B      B      B
//! 3 goes to B  counts     0      0      0      0        0, 3
//!              digests    A      0      0      B
//! ```
//!
//! Keys are never looked up by cell: a cell stores only the number of its keys and the xor of their
//! digests, and when one key is left the xor *is* its digest. An assigned cell keeps the digest of
//! its key.
//!
//! Filling goes backwards through `order`. Cell 3 is set so that B decodes to its value, then cell
//! 0 so that A does. The second step cannot spoil the first: when a cell was assigned, only its own
//! key was left in it, so no key that comes later in `order` has that cell.

use super::build::Item;
use super::{CellPositions, Scalar, TableShape, read_cell, z};
use crate::arch::prefetch;
use crate::hash::reduce;
use crate::memory::{LINE_BYTES, LINE_WORDS, Words, write_bits};
use crate::retrieval::partition::partition;
use crate::{Digest, Error, Result};
use std::fmt::Debug;
use std::ops::Range;

/// The data that a key carries through the construction: nothing in filters, a value in maps.
pub(crate) trait Payload: Copy + Debug + PartialEq + Send + Sync {
    const ZERO: Self;
    fn xor(self, other: Self) -> Self;
}

impl Payload for () {
    const ZERO: () = ();
    #[inline(always)]
    fn xor(self, (): ()) {}
}

impl Payload for u64 {
    const ZERO: u64 = 0;
    #[inline(always)]
    fn xor(self, other: u64) -> u64 {
        self ^ other
    }
}

/// Determines the value that each key of a shard decodes to.
pub(crate) trait Sink<P>: Send {
    /// Returns the value for the key with this payload. `cell` is the cell of the shard that was
    /// assigned to the key, and to no other key; `which` is its index among the cells of the key.
    /// The value must fit the width of the cells.
    fn place(&mut self, cell: u64, which: u32, payload: P) -> u128;
}

/// The sink of a filter: every key decodes to 0.
pub(crate) struct Zero;

impl<P> Sink<P> for Zero {
    #[inline(always)]
    fn place(&mut self, _: u64, _: u32, _: P) -> u128 {
        0
    }
}

/// The number of keys that are entered together; a group of this size is not sorted further.
const GROUP_KEYS: usize = 1 << 12;

/// The number of keys by which the prefetch of a cell precedes its filling.
const AHEAD: usize = 24;

/// The memory for building a shard: 13 bytes for each cell, and the payload. That is 15 bytes for
/// each key of a fuse filter, and 24 for each key of a map.
pub(super) struct Scratch<P> {
    cells: usize,
    /// The number of keys that each cell still has, in a byte.
    counts: Words,
    /// The xor of their digests. Random reads of [`Words`] are faster than those of vectors.
    digests: Words,
    /// The xor of their payloads.
    payloads: Vec<P>,
    /// The cells that were assigned to a key, in order, and behind them the queue of cells that may
    /// be. No cell is entered twice. There is one extra element, which is overwritten without being
    /// entered.
    order: Vec<u32>,
}

impl<P: Payload> Scratch<P> {
    /// Allocates memory for shards of this shape.
    pub fn new(shape: &TableShape) -> Result<Scratch<P>> {
        let cells = shape.shard_cells();
        Ok(Scratch {
            cells: cells as usize,
            counts: Words::zeroed(cells.div_ceil(LINE_BYTES as u64))?,
            digests: Words::zeroed(cells.div_ceil(LINE_WORDS as u64))?,
            payloads: filled(cells as usize, P::ZERO)?,
            order: filled(cells as usize + 1, 0)?,
        })
    }

    /// Solves a shard. `words` are the words of its cells, all zero. Returns `false`, and writes
    /// nothing, if peeling gets stuck.
    pub fn solve<const K: usize>(
        &mut self,
        shape: &TableShape,
        place: impl CellPositions<K>,
        items: &mut [Item<P>],
        words: &mut [u64],
        sink: &mut impl Sink<P>,
    ) -> Result<bool> {
        let cells = |digest: u64| {
            let low = digest.wrapping_mul(shape.shards);
            place.cells::<Scalar>(low, shape.y(Digest::from_hash(digest))).map(|cell| cell as u32)
        };
        if !self.peel(shape, place, items, cells)? {
            return Ok(false);
        }
        if shape.width <= 64 {
            self.assign(items.len(), shape, cells, sink)?;
            pack(&self.digests.words()[..self.cells], shape.width, words);
        } else {
            self.assign_wide(items.len(), shape, cells, words, sink);
        }
        Ok(true)
    }

    /// Assigns a cell of its own to each key; returns `false` if that is not possible.
    ///
    /// This is one sweep over the cells, from the left: keys are entered in the order of their
    /// first cells, and as soon as no later key can have a cell, it may be assigned. So all cells
    /// in use are in the caches.
    #[inline(never)]
    fn peel<const K: usize>(
        &mut self,
        shape: &TableShape,
        place: impl CellPositions<K>,
        items: &mut [Item<P>],
        cells: impl Fn(u64) -> [u32; K],
    ) -> Result<bool> {
        let groups = items.len() / GROUP_KEYS + 1;
        let ends = partition(items, groups, |digest| {
            reduce(digest.wrapping_mul(shape.shards), groups as u64) as usize
        });
        let mut queue = Queue {
            counts: &mut self.counts.as_bytes_mut()[..self.cells],
            digests: &mut self.digests.words_mut()[..self.cells],
            payloads: &mut self.payloads,
            order: &mut self.order,
            tail: 0,
            complete: 0,
        };
        // The groups come in the order of their first cells. While a group is entered and peeled:
        //
        //   cells   |----------------------------|-----------------|--------------------------|
        //           0                        complete     reach (= cleared)             self.cells
        //             no later group has keys      keys are still     not yet cleared, and no
        //             here: may be assigned        to come            key has been entered
        //
        // `order` has the result and the queue one behind the other. The result cannot overtake the
        // head of the queue, since each cell of the result was taken from the queue:
        //
        //   order   |--------------------|--------|--------------------|----------------------|
        //           0                 peeled     head             queue.tail
        //             assigned to a key,  used up  waiting: had one key
        //             in order                     when they were queued
        //
        // A waiting cell may have lost its key by the time it is its turn (count 0).
        let (mut peeled, mut head, mut cleared, mut start) = (0, 0, 0, 0);
        for (group, end) in (1..).zip(ends) {
            // The `low` with which the next group starts, if there is one.
            let next = ((group << 64) / groups as u128) as u64;
            let (reach, complete) =
                if next == 0 { (self.cells, self.cells) } else { (place.reach(next), place.complete(next)) };
            queue.clear(cleared..reach);
            cleared = reach;
            let mut overflow = false;
            for (digest, payload) in &items[start..end] {
                for cell in cells(digest.get()) {
                    overflow |= !queue.enter(cell as usize, digest.get(), *payload);
                }
            }
            if overflow {
                return Ok(false);
            }
            start = end;
            queue.scan(complete);
            // First in, first out: neighbours in the queue seldom share cells, so the processor
            // works on several at once. With a stack, each would wait for the one before.
            while head < queue.tail {
                let own = queue.order[head] as usize;
                head += 1;
                if queue.counts[own] != 1 {
                    continue;
                }
                queue.order[peeled] = own as u32;
                peeled += 1;
                let (digest, payload) = (queue.digests[own], queue.payloads[own]);
                for cell in cells(digest) {
                    queue.leave(cell, digest, payload);
                }
                // The key's own cell keeps the digest: no other key has this cell now, and the
                // digest is needed to fill the table.
                queue.digests[own] = digest;
                queue.payloads[own] = payload;
            }
        }
        Ok(peeled == items.len())
    }

    /// Fills the cells, the last assigned one first: the other cells of its key are already filled,
    /// or were assigned to no key and are 0.
    ///
    /// The values replace the digests, which are read for the last time here: writing whole words
    /// and reading them again soon is much faster than with parts of words.
    #[inline(never)]
    fn assign<const K: usize>(
        &mut self,
        keys: usize,
        shape: &TableShape,
        cells: impl Fn(u64) -> [u32; K],
        sink: &mut impl Sink<P>,
    ) -> Result<()> {
        let digests = &mut self.digests.words_mut()[..self.cells];
        // The contents of `digests` while the loop goes backwards through `order`:
        //
        //   assigned to a key earlier in `order`  the digest of that key, not read before its turn
        //   `own`                                 the digest of its key, replaced in this step
        //   assigned to a key later in `order`    its final value
        //   assigned to no key                    0, its final value
        //
        // A key has no cells of the first sort, so the xor over its other cells is final.
        for (i, own) in self.order[..keys].iter().enumerate().rev() {
            prefetch(digests, self.order[i.saturating_sub(AHEAD)] as usize);
            let (digest, payload) = (digests[*own as usize], self.payloads[*own as usize]);
            let cells = cells(digest);
            let value = sink.place(u64::from(*own), which(cells, *own), payload) as u64;
            let mask = z(shape.y(Digest::from_hash(digest)), K) >> (64 - shape.width);
            // One of the cells is the key's own, which still holds the digest.
            digests[*own as usize] =
                cells.iter().fold(digest ^ mask ^ value, |sum, cell| sum ^ digests[*cell as usize]);
        }
        Ok(())
    }

    /// Like `assign`, for cells of more than 64 bits, in the table itself.
    fn assign_wide<const K: usize>(
        &self,
        keys: usize,
        shape: &TableShape,
        cells: impl Fn(u64) -> [u32; K],
        words: &mut [u64],
        sink: &mut impl Sink<P>,
    ) {
        let width = shape.width;
        for own in self.order[..keys].iter().rev() {
            let digest = self.digests.words()[*own as usize];
            let cells = cells(digest);
            let value = sink.place(u64::from(*own), which(cells, *own), self.payloads[*own as usize]);
            let sum = cells.iter().fold(value ^ shape.mask(Digest::from_hash(digest)), |sum, cell| {
                sum ^ read_cell(words, u64::from(*cell), width)
            });
            let start = u64::from(*own) * u64::from(width);
            write_bits(words, start, 64, sum as u64);
            write_bits(words, start + 64, width - 64, (sum >> 64) as u64 & !0 >> (128 - width));
        }
    }
}

/// The cells of a shard while keys are entered and peeled.
struct Queue<'a, P> {
    counts: &'a mut [u8],
    digests: &'a mut [u64],
    payloads: &'a mut [P],
    /// Cells that had a single key when they were queued, up to `tail`.
    order: &'a mut [u32],
    tail: usize,
    /// The number of cells, from the left, that get no more keys.
    complete: usize,
}

impl<P: Payload> Queue<'_, P> {
    fn clear(&mut self, cells: Range<usize>) {
        self.counts[cells.clone()].fill(0);
        self.digests[cells.clone()].fill(0);
        self.payloads[cells].fill(P::ZERO);
    }

    /// Adds a key to a cell; returns `false` if the count overflows.
    #[inline(always)]
    fn enter(&mut self, cell: usize, digest: u64, payload: P) -> bool {
        self.counts[cell] = self.counts[cell].wrapping_add(1);
        self.digests[cell] ^= digest;
        self.payloads[cell] = self.payloads[cell].xor(payload);
        self.counts[cell] != 0
    }

    /// Removes a key from a cell, and queues the cell if it has one key left.
    #[inline(always)]
    fn leave(&mut self, cell: u32, digest: u64, payload: P) {
        let index = cell as usize;
        let count = self.counts[index].wrapping_sub(1);
        self.counts[index] = count;
        self.digests[index] ^= digest;
        self.payloads[index] = self.payloads[index].xor(payload);
        self.order[self.tail] = cell;
        self.tail += usize::from((count == 1) & (index < self.complete));
    }

    /// Queues the cells with one key among those that get no more keys from now on.
    fn scan(&mut self, complete: usize) {
        for cell in self.complete..complete {
            self.order[self.tail] = cell as u32;
            self.tail += usize::from(self.counts[cell] == 1);
        }
        self.complete = complete;
    }
}

/// Returns the index of a cell among those of its key.
#[inline(always)]
fn which<const K: usize>(cells: [u32; K], own: u32) -> u32 {
    cells.iter().position(|cell| *cell == own).unwrap_or(0) as u32
}

/// Writes values of `width` bits, one after the other.
fn pack(values: &[u64], width: u32, words: &mut [u64]) {
    // `word` is the word that is being filled, from its lowest bit up:
    //
    //   bit 63                               bit 0
    //   [ value 3 (low part) | value 2 | value 1 | value 0 ]      filled = 4 * width >= 64: is written
    //   [              ...            | value 3 (high part) ]      filled = 4 * width - 64
    let (mut word, mut filled, mut words) = (0, 0, words.iter_mut());
    for value in values {
        word |= value << filled;
        filled += width;
        if filled >= 64 {
            if let Some(next) = words.next() {
                *next = word;
            }
            filled -= 64;
            // The part of the value that did not fit.
            word = value.checked_shr(width - filled).unwrap_or(0);
        }
    }
    if let (true, Some(last)) = (filled > 0, words.next()) {
        *last = word;
    }
}

/// Returns a vector of `len` equal elements, or an error if there is not enough memory.
fn filled<T: Copy>(len: usize, value: T) -> Result<Vec<T>> {
    let mut vec = Vec::new();
    let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
    vec.try_reserve_exact(len).map_err(|_| Error::OutOfMemory { bytes })?;
    vec.resize(len, value);
    Ok(vec)
}
