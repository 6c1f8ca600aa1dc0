//! The memory of a quotient filter, and the search for the run of a quotient.
//!
//! The slots are grouped in blocks of 64. A block is three words of metadata, with one bit per
//! slot, followed by the 64 remainders, packed into r words. So a lookup reads a few neighbouring
//! cache lines, and 64 slots can be counted at once.
//!
//! ```text
//! block    | occupied | continuation | shifted | remainder words 0 .. r-1 |
//!              64 b         64 b         64 b            r x 64 b
//! ```
//!
//! The remainders of a quotient form a sorted *run* at the slot of the quotient or to the right of
//! it. For slot `s`:
//! - `occupied`: there is a run of quotient `s`, wherever it lies;
//! - `continuation`: the remainder here is not the first of its run;
//! - `shifted`: the remainder here is not at its own slot.
//!
//! A slot is empty when all three bits are 0. Runs are in the order of their quotients, without
//! gaps between those that had to move. So, counted from a slot that is not shifted, the i-th
//! occupied bit belongs to the i-th slot that is not a continuation.
//!
//! Nothing here trusts the words: whatever they contain, every loop ends and every index is in
//! range.

use crate::arch::{Simd, prefetch};
use crate::hash::reduce;
use crate::memory::LINE_BITS;
use crate::sizing::quotient::{BLOCK, METADATA_BITS, check_shape, overflow_blocks, range, stored_bits};
use crate::{Digest, Result};
use std::ops::Range;

/// The rows of metadata in a block.
pub(super) const OCCUPIED: u64 = 0;
pub(super) const CONTINUATION: u64 = 1;
pub(super) const SHIFTED: u64 = 2;
const ROWS: u64 = METADATA_BITS as u64;

/// The layout of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    /// The number of home slots.
    slots: u64,
    /// The number of all slots, including those behind the last home slot.
    all: u64,
    remainder_bits: u32,
    /// The number of remainders that fit in a word.
    fields: u32,
    /// The lowest bit of each of these remainders.
    ones: u64,
}

impl Slots {
    pub fn new(slots: u64, remainder_bits: u32) -> Result<Slots> {
        check_shape(slots, remainder_bits)?;
        let fields = 64 / remainder_bits;
        let ones = (0..fields).fold(0, |ones, i| ones | 1 << (i * remainder_bits));
        let all = slots + overflow_blocks(slots) * BLOCK;
        Ok(Slots { slots, all, remainder_bits, fields, ones })
    }

    /// Returns the number of home slots.
    #[inline(always)]
    pub fn homes(&self) -> u64 {
        self.slots
    }

    /// Returns the number of all slots.
    #[inline(always)]
    pub fn all(&self) -> u64 {
        self.all
    }

    #[inline(always)]
    pub fn remainder_bits(&self) -> u32 {
        self.remainder_bits
    }

    /// Returns the number of possible fingerprints.
    #[inline(always)]
    pub fn range(&self) -> u64 {
        range(self.slots, self.remainder_bits)
    }

    pub fn bits(&self) -> u64 {
        stored_bits(self.slots, self.remainder_bits)
    }

    pub fn lines(&self) -> u64 {
        self.bits().div_ceil(LINE_BITS)
    }

    #[inline(always)]
    pub fn fingerprint(&self, digest: Digest) -> u64 {
        reduce(digest.get(), self.range())
    }

    /// Splits a fingerprint into quotient and remainder.
    #[inline(always)]
    pub fn split(&self, fingerprint: u64) -> (u64, u64) {
        (fingerprint >> self.remainder_bits, fingerprint & self.remainder_mask())
    }

    #[inline(always)]
    pub fn remainder_mask(&self) -> u64 {
        (1 << self.remainder_bits) - 1
    }

    /// Returns the bit range of a block within its section of a file.
    pub fn block_bits(&self, block: u64) -> Range<u64> {
        let start = self.block_start(block) as u64 * 64;
        start..start + self.block_words() * 64
    }

    #[inline(always)]
    pub fn block_words(&self) -> u64 {
        ROWS + u64::from(self.remainder_bits)
    }

    /// Returns the index of the first word of a block.
    #[inline(always)]
    pub fn block_start(&self, block: u64) -> usize {
        (block * self.block_words()) as usize
    }

    /// Returns the index of a metadata row of a block.
    #[inline(always)]
    pub fn row(&self, block: u64, row: u64) -> usize {
        self.block_start(block) + row as usize
    }

    /// Returns the index of the first word of a block's remainders.
    #[inline(always)]
    pub fn remainders(&self, block: u64) -> usize {
        self.row(block, ROWS)
    }

    /// Returns the three metadata rows of a block.
    #[inline(always)]
    pub fn rows(&self, words: &[u64], block: u64) -> [u64; 3] {
        let start = self.block_start(block);
        let rows = &words[start..start + 3];
        [rows[0], rows[1], rows[2]]
    }

    /// Returns a mask of the slots of a block that are not empty.
    #[inline(always)]
    pub fn used(&self, words: &[u64], block: u64) -> u64 {
        let [occupied, continuation, shifted] = self.rows(words, block);
        occupied | continuation | shifted
    }

    #[inline(always)]
    pub fn bit(&self, words: &[u64], row: u64, slot: u64) -> bool {
        words[self.row(slot / BLOCK, row)] >> (slot % BLOCK) & 1 == 1
    }

    /// Returns the index of the word in which the remainder of `slot` starts.
    #[inline(always)]
    pub fn remainder_word(&self, slot: u64) -> usize {
        self.remainders(slot / BLOCK) + (slot % BLOCK * u64::from(self.remainder_bits) / 64) as usize
    }

    /// Returns the 64 bits that start with the remainder of `slot`. Bits beyond the block are not
    /// remainders.
    #[inline(always)]
    fn remainders_from(&self, words: &[u64], slot: u64) -> u64 {
        let (word, shift) = (self.remainder_word(slot), slot % BLOCK * u64::from(self.remainder_bits) % 64);
        // Read both words without a branch: a shift of 0 discards the next word.
        let next = words[(word + 1).min(words.len() - 1)];
        words[word] >> shift | next << 1 << (63 - shift)
    }

    #[inline(always)]
    pub fn remainder(&self, words: &[u64], slot: u64) -> u64 {
        self.remainders_from(words, slot) & self.remainder_mask()
    }

    /// Returns the slot at which the run of a quotient starts, or would start if it does not exist;
    /// `None` if that is beyond the last slot. If the slot of the quotient is empty, it is that
    /// slot.
    #[inline(always)]
    pub fn run_start<S: Simd>(&self, simd: S, words: &[u64], quotient: u64) -> Option<u64> {
        let skip = self.skip(words, quotient);
        let (mut block, from) = (quotient / BLOCK, quotient % BLOCK);
        let mut heads = !words[self.row(block, CONTINUATION)] & !0 << from;
        let mut skip = u32::try_from(skip).ok()?;
        loop {
            let count = heads.count_ones();
            if skip < count {
                return Some(block * BLOCK + u64::from(simd.select(heads, skip)));
            }
            skip -= count;
            // Every slot between a quotient and its run is shifted. In damaged memory, this ends a
            // search that would go on to the last block.
            if block != quotient / BLOCK && words[self.row(block, SHIFTED)] != !0 {
                return None;
            }
            block += 1;
            if block * BLOCK >= self.all() {
                return None;
            }
            heads = !words[self.row(block, CONTINUATION)];
        }
    }

    /// Returns how many heads of runs, from the slot of a quotient on, belong to smaller quotients.
    /// Counting starts at the last unshifted slot up to it: the result is the number of runs that
    /// belong to slots from there on, minus the heads that come before the slot of the quotient.
    #[inline(always)]
    fn skip(&self, words: &[u64], quotient: u64) -> i64 {
        let (block, bit) = (quotient / BLOCK, quotient % BLOCK);
        let below = (1 << bit) - 1;
        let [occupied, continuation, shifted] = self.rows(words, block);
        let unshifted = !shifted & (below | 1 << bit);
        let mut skip = excess(occupied, continuation, below & from_highest(unshifted));
        if block == 0 {
            return skip;
        }
        // At the usual loads, most clusters start in the block of the quotient, and the block
        // before is not read.
        if unshifted != 0 {
            return skip;
        }
        for block in (0..block).rev() {
            let [occupied, continuation, shifted] = self.rows(words, block);
            skip += excess(occupied, continuation, from_highest(!shifted));
            if !shifted != 0 {
                break;
            }
        }
        skip
    }

    /// Prefetches the remainders of the slot, which a lookup reads after the metadata of the block.
    #[inline(always)]
    pub fn prefetch_around(&self, words: &[u64], quotient: u64) {
        prefetch(words, self.remainder_word(quotient));
    }

    /// Returns whether the fingerprint is stored.
    #[inline(always)]
    pub fn contains<S: Simd>(&self, simd: S, words: &[u64], fingerprint: u64) -> bool {
        let (quotient, remainder) = self.split(fingerprint);
        self.prefetch_around(words, quotient);
        self.bit(words, OCCUPIED, quotient) && self.run_contains(simd, words, quotient, remainder)
    }

    /// Returns whether one of `count` remainders from `slot` on equals `remainder`. `count` is at
    /// most the number that fits in a word.
    #[inline(always)]
    fn holds(&self, words: &[u64], slot: u64, count: u32, remainder: u64) -> bool {
        // A field becomes 0 if it equals the remainder; the bits beyond `count` fields become ones.
        let found = self.remainders_from(words, slot) ^ (remainder * self.ones);
        let found = found | !1 << (count * self.remainder_bits - 1);
        found.wrapping_sub(self.ones) & !found & self.ones << (self.remainder_bits - 1) != 0
    }

    /// Returns whether the run of an occupied quotient contains a remainder.
    #[inline(always)]
    pub fn run_contains<S: Simd>(&self, simd: S, words: &[u64], quotient: u64, remainder: u64) -> bool {
        let Some(mut slot) = self.run_start(simd, words, quotient) else { return false };
        loop {
            // Compare as many remainders at once as fit in a word, within this block and this run.
            let later = words[self.row(slot / BLOCK, CONTINUATION)] >> (slot % BLOCK) >> 1;
            let in_run = 1 + later.trailing_ones();
            let count = in_run.min(self.fields);
            if self.holds(words, slot, count, remainder) {
                return true;
            }
            slot += u64::from(count);
            // Most runs end here. The loop goes on with the rest of a long run, or with the next
            // block.
            let crosses = slot.is_multiple_of(BLOCK);
            if (count == in_run && !crosses) || slot >= self.all() || !self.bit(words, CONTINUATION, slot) {
                return false;
            }
        }
    }

    /// Finds a remainder in the run that starts at `head`. Returns the first slot with a remainder
    /// that is not smaller, or the slot behind the run, and whether the remainder is there.
    pub fn find_in_run(&self, words: &[u64], head: u64, remainder: u64) -> (u64, bool) {
        let mut slot = head;
        loop {
            let here = self.remainder(words, slot);
            if here >= remainder {
                return (slot, here == remainder);
            }
            slot += 1;
            if slot >= self.all() || !self.bit(words, CONTINUATION, slot) {
                return (slot, false);
            }
        }
    }

    /// Returns whether the metadata in this range of words makes lookups slow: more than `most`
    /// blocks in a row have no slot at which a search could start or end, or a run goes on in slots
    /// that are not shifted. Only a very frequent key does the former to an intact filter, and
    /// nothing does the latter. Skips blocks with metadata outside the range.
    #[cfg(feature = "mmap")]
    pub fn is_crowded(&self, words: &[u64], range: Range<usize>, most: usize) -> bool {
        let size = self.block_words() as usize;
        let blocks = range.start.div_ceil(size) as u64..self.all() / BLOCK;
        let mut stretch = 0;
        for block in blocks.take_while(|block| self.remainders(*block) <= range.end) {
            let [_, continuation, shifted] = self.rows(words, block);
            stretch = if shifted == !0 { stretch + 1 } else { 0 };
            if stretch > most || continuation & !shifted != 0 {
                return true;
            }
        }
        false
    }

    /// Returns how often the fingerprint is stored.
    pub fn count<S: Simd>(&self, simd: S, words: &[u64], fingerprint: u64) -> u64 {
        let (quotient, remainder) = self.split(fingerprint);
        let Some(head) =
            self.run_start(simd, words, quotient).filter(|_| self.bit(words, OCCUPIED, quotient))
        else {
            return 0;
        };
        let (first, found) = self.find_in_run(words, head, remainder);
        let same =
            |slot: &u64| self.bit(words, CONTINUATION, *slot) && self.remainder(words, *slot) == remainder;
        u64::from(found) * (1 + (first + 1..self.all()).take_while(same).count() as u64)
    }

    /// Returns the first slot from `from` on whose bit is set in `pick(rows)`.
    #[inline(always)]
    pub fn next(&self, words: &[u64], from: u64, pick: impl Fn([u64; 3]) -> u64) -> Option<u64> {
        let mut from = from;
        while from < self.all() {
            let block = from / BLOCK;
            let picked = pick(self.rows(words, block)) & !0 << (from % BLOCK);
            if picked != 0 {
                return Some(block * BLOCK + u64::from(picked.trailing_zeros()));
            }
            from = (block + 1) * BLOCK;
        }
        None
    }
}

/// Returns a mask of the highest set bit and all bits above it; all bits if none is set.
#[inline(always)]
fn from_highest(word: u64) -> u64 {
    !0 << (63 - (word | 1).leading_zeros())
}

/// Returns the number of these slots whose quotient has a run, minus the number that are the head
/// of a run.
#[inline(always)]
fn excess(occupied: u64, continuation: u64, slots: u64) -> i64 {
    i64::from((occupied & slots).count_ones()) - i64::from((!continuation & slots).count_ones())
}
