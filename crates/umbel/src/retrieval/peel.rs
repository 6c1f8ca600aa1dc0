//! One shard: peel the keys off the cells, then fill the cells in the opposite order.

use super::build::Item;
use super::{Place, Shape, read_cell, z};
use crate::hash::reduce;
use crate::retrieval::partition::partition;
use crate::words::{read_bits, write_bits};
use crate::{Digest, Error, Result};
use std::fmt::Debug;

/// What a key carries to where its value is made: nothing in filters, a value in maps.
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

/// Says what the lookup of each key of a shard shall give.
pub(crate) trait Sink<P>: Send {
    /// The key with this payload was given this cell of its shard, the one with the number `which` among its own. No
    /// other key of the shard is given the same. The answer must fit the width of the cells.
    fn place(&mut self, cell: u64, which: u32, payload: P) -> u128;
}

/// Every key gives 0, as in a filter.
pub(crate) struct Zero;

impl<P> Sink<P> for Zero {
    #[inline(always)]
    fn place(&mut self, _: u64, _: u32, _: P) -> u128 {
        0
    }
}

/// Keys of a group that are put into the cells together; so many are sorted no further.
const GROUP_KEYS: usize = 1 << 14;

/// The memory in which a shard is built: 13 bytes for each cell, and the payload. That is 15 bytes for each key of a
/// fuse filter, and 24 of a map.
pub(super) struct Scratch<P> {
    /// How many keys a cell still has.
    counts: Vec<u8>,
    /// The xor of their digests, and of their payloads.
    digests: Vec<u64>,
    payloads: Vec<P>,
    /// From the left, the cells that were given to a key, in order; from the right, a stack of cells that have one key.
    /// No cell is entered twice, so they never meet, and one element between them is free.
    order: Vec<u32>,
}

impl<P: Payload> Scratch<P> {
    /// Memory for shards of this shape.
    pub fn new(shape: &Shape) -> Result<Scratch<P>> {
        let cells = shape.shard_cells() as usize;
        Ok(Scratch {
            counts: filled(cells, 0)?,
            digests: filled(cells, 0)?,
            payloads: filled(cells, P::ZERO)?,
            order: filled(cells + 1, 0)?,
        })
    }

    /// Solves a shard: `words`, all zero, are those of its cells. `false` if peeling gets stuck; nothing is written then.
    pub fn solve<const K: usize>(
        &mut self,
        shape: &Shape,
        place: impl Place<K>,
        items: &mut [Item<P>],
        words: &mut [u64],
        sink: &mut impl Sink<P>,
    ) -> bool {
        let cells = |digest: u64| {
            let low = digest.wrapping_mul(shape.shards);
            place.cells(low, shape.y(Digest::from_hash(digest)))
        };
        // In the order of their first cells, so that all cells at work are in the caches.
        let groups = items.len() / GROUP_KEYS + 1;
        partition(items, groups, |digest| reduce(digest.wrapping_mul(shape.shards), groups as u64) as usize);
        if !self.enter(items, cells) || self.peel(cells) < items.len() {
            return false;
        }
        if shape.width <= 64 {
            self.assign(items.len(), shape, cells, words, sink, &Narrow);
        } else {
            self.assign(items.len(), shape, cells, words, sink, &Wide);
        }
        true
    }

    /// Adds all keys to their cells; `false` if a cell gets more than it can count.
    fn enter<const K: usize>(&mut self, items: &[Item<P>], cells: impl Fn(u64) -> [u32; K]) -> bool {
        self.counts.fill(0);
        self.digests.fill(0);
        self.payloads.fill(P::ZERO);
        let mut overflow = false;
        for (digest, payload) in items {
            for cell in cells(digest.get()) {
                let cell = cell as usize;
                self.counts[cell] = self.counts[cell].wrapping_add(1);
                overflow |= self.counts[cell] == 0;
                self.digests[cell] ^= digest.get();
                self.payloads[cell] = self.payloads[cell].xor(*payload);
            }
        }
        !overflow
    }

    /// Gives cells to keys until no cell has a single key; how many keys were given one.
    fn peel<const K: usize>(&mut self, cells: impl Fn(u64) -> [u32; K]) -> usize {
        let (mut peeled, mut top) = (0, self.order.len());
        for (cell, count) in self.counts.iter().enumerate() {
            self.order[top - 1] = cell as u32;
            top -= usize::from(*count == 1);
        }
        while top < self.order.len() {
            let own = self.order[top] as usize;
            top += 1;
            if self.counts[own] != 1 {
                continue;
            }
            self.order[peeled] = own as u32;
            peeled += 1;
            let (digest, payload) = (self.digests[own], self.payloads[own]);
            for cell in cells(digest) {
                let cell = cell as usize;
                let count = self.counts[cell].wrapping_sub(1);
                self.counts[cell] = count;
                self.digests[cell] ^= digest;
                self.payloads[cell] = self.payloads[cell].xor(payload);
                self.order[top - 1] = cell as u32;
                top -= usize::from(count == 1);
            }
            // The key's own cell keeps it: nobody else has it any more, and it is needed to fill the table.
            self.digests[own] = digest;
            self.payloads[own] = payload;
        }
        peeled
    }

    /// Fills the cells, the last given one first: the other cells of its key have been filled before, or never will be.
    fn assign<const K: usize>(
        &self,
        keys: usize,
        shape: &Shape,
        cells: impl Fn(u64) -> [u32; K],
        words: &mut [u64],
        sink: &mut impl Sink<P>,
        width: &impl Width,
    ) {
        for own in self.order[..keys].iter().rev() {
            let digest = self.digests[*own as usize];
            let cells = cells(digest);
            let which = cells.iter().position(|cell| cell == own).unwrap_or(0);
            let value = sink.place(u64::from(*own), which as u32, self.payloads[*own as usize]);
            width.solve(shape, words, digest, &cells, u64::from(*own), value);
        }
    }
}

/// Cells of up to 64 bits are handled without 128-bit arithmetic.
trait Width {
    /// Sets the cell `own`, which is zero, so that the cells of a digest give the value.
    fn solve(&self, shape: &Shape, words: &mut [u64], digest: u64, cells: &[u32], own: u64, value: u128);
}

struct Narrow;
struct Wide;

impl Width for Narrow {
    #[inline(always)]
    fn solve(&self, shape: &Shape, words: &mut [u64], digest: u64, cells: &[u32], own: u64, value: u128) {
        let width = shape.width;
        let mask = z(shape.y(Digest::from_hash(digest)), cells.len()) >> (64 - width);
        let sum = cells.iter().fold(value as u64 ^ mask, |sum, cell| {
            sum ^ read_bits(words, u64::from(*cell) * u64::from(width), width)
        });
        write_bits(words, own * u64::from(width), width, sum & !0 >> (64 - width));
    }
}

impl Width for Wide {
    #[inline(always)]
    fn solve(&self, shape: &Shape, words: &mut [u64], digest: u64, cells: &[u32], own: u64, value: u128) {
        let width = shape.width;
        let sum = cells.iter().fold(value ^ shape.mask(Digest::from_hash(digest)), |sum, cell| {
            sum ^ read_cell(words, u64::from(*cell), width)
        });
        let start = own * u64::from(width);
        write_bits(words, start, 64, sum as u64);
        write_bits(words, start + 64, width - 64, (sum >> 64) as u64 & !0 >> (128 - width));
    }
}

/// A vector of so many equal elements, or an error where there is no memory for it.
fn filled<T: Copy>(len: usize, value: T) -> Result<Vec<T>> {
    let mut vec = Vec::new();
    let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
    vec.try_reserve_exact(len).map_err(|_| Error::OutOfMemory { bytes })?;
    vec.resize(len, value);
    Ok(vec)
}
