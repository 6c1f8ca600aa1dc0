//! Insertion and removal: the slots from a position to the end of its cluster move by one, 64 at a
//! time.
//!
//! [`slots`](super::slots) explains runs and the three bits of a slot. An insertion and a removal,
//! with a < b < c and the fingerprints written as (quotient, remainder):
//!
//! ```text
//!                  (1,a) (1,c) (3,d)       insert (1,b)           remove (1,a)
//!
//! slot             0  1  2  3  4  5       0  1  2  3  4  5       0  1  2  3  4  5
//! remainder        .  a  c  d  .  .       .  a  b  c  d  .       .  b  c  d  .  .
//! occupied         .  1  .  1  .  .       .  1  .  1  .  .       .  1  .  1  .  .
//! continuation     .  .  1  .  .  .       .  .  1  1  .  .       .  .  1  .  .  .
//! shifted          .  .  1  .  .  .       .  .  1  1  1  .       .  .  1  .  .  .
//! ```
//!
//! The insertion finds its position in the run of quotient 1, slot 2, and the next empty slot, 4.
//! It moves slots 2 and 3 to the right by one and writes slot 2. The removal moves slots 2 to 4 to
//! the left. `b` becomes the head of its run, and `d` is at home again, so both lose their
//! `shifted` bit. The `occupied` bits never move: they belong to the quotient, not to the remainder
//! in the slot.

use super::slots::{CONTINUATION, OCCUPIED, SHIFTED, Slots};
use crate::arch::Simd;
use crate::sizing::quotient::BLOCK;

impl Slots {
    /// Adds a fingerprint and returns whether it was there before. If no slot to the right of its
    /// position is empty, changes nothing and returns `None`.
    #[inline(always)]
    pub fn insert<S: Simd>(&self, simd: S, words: &mut [u64], fingerprint: u64) -> Option<bool> {
        let (quotient, remainder) = self.split(fingerprint);
        let head = self.run_start(simd, words, quotient)?;
        let joins = self.bit(words, OCCUPIED, quotient);
        let (at, found) = if joins { self.find_in_run(words, head, remainder) } else { (head, false) };
        let empty =
            self.next(words, at, |[occupied, continuation, shifted]| !(occupied | continuation | shifted))?;
        self.shift_right(words, at, empty);
        self.set_remainder(words, at, remainder);
        self.set_bit(words, OCCUPIED, quotient, true);
        self.set_bit(words, CONTINUATION, at, at != head);
        self.set_bit(words, SHIFTED, at, at != quotient);
        // The former head is now second.
        if joins && at == head && at < empty {
            self.set_bit(words, CONTINUATION, at + 1, true);
        }
        Some(found)
    }

    /// Removes one copy of a fingerprint and returns whether it was there.
    #[inline(always)]
    pub fn remove<S: Simd>(&self, simd: S, words: &mut [u64], fingerprint: u64) -> bool {
        let (quotient, remainder) = self.split(fingerprint);
        if !self.bit(words, OCCUPIED, quotient) {
            return false;
        }
        let Some(head) = self.run_start(simd, words, quotient) else { return false };
        let (at, found) = self.find_in_run(words, head, remainder);
        if !found {
            return false;
        }
        let run_goes_on = at + 1 < self.all() && self.bit(words, CONTINUATION, at + 1);
        // Slots from the first unshifted one on stay.
        let end = self.next(words, at + 1, |[_, _, shifted]| !shifted).unwrap_or(self.all());
        self.shift_left(words, at, end);
        let mut from = at;
        if at == head {
            self.set_bit(words, OCCUPIED, quotient, run_goes_on);
            if run_goes_on {
                self.set_bit(words, CONTINUATION, at, false);
                self.set_bit(words, SHIFTED, at, at != quotient);
                from = at + 1;
            }
        }
        self.mark_homes(words, quotient, from, end - 1);
        true
    }

    /// Updates the `shifted` bits after a shift to the left: the runs of the quotients behind
    /// `quotient`, with heads in `from..end`, may be at home now.
    fn mark_homes(&self, words: &mut [u64], quotient: u64, from: u64, end: u64) {
        let (mut quotient, mut from) = (quotient, from);
        // Runs lie in the order of their quotients: the next slot that is not a continuation is the
        // head of the run of the next occupied quotient. The two are at the same slot if the run is
        // at home.
        while let Some(head) = self.next(words, from, |[_, continuation, _]| !continuation)
            && head < end
            && let Some(next) = self.next(words, quotient + 1, |[occupied, ..]| occupied)
        {
            if head == next {
                self.set_bit(words, SHIFTED, head, false);
            }
            (quotient, from) = (next, head + 1);
        }
    }

    #[inline(always)]
    pub fn set_bit(&self, words: &mut [u64], row: u64, slot: u64, value: bool) {
        let word = &mut words[self.row(slot / BLOCK, row)];
        *word = *word & !(1 << (slot % BLOCK)) | u64::from(value) << (slot % BLOCK);
    }

    #[inline(always)]
    pub fn set_remainder(&self, words: &mut [u64], slot: u64, remainder: u64) {
        let (word, shift) = (self.remainder_word(slot), slot % BLOCK * u64::from(self.remainder_bits()) % 64);
        words[word] = words[word] & !(self.remainder_mask() << shift) | remainder << shift;
        if shift + u64::from(self.remainder_bits()) > 64 {
            let above = 64 - shift;
            words[word + 1] = words[word + 1] & !(self.remainder_mask() >> above) | remainder >> above;
        }
    }

    /// Moves the remainders and continuation bits of `from..to` one slot to the right, and marks
    /// all slots of `from..=to` as shifted. The caller then writes slot `from`.
    fn shift_right(&self, words: &mut [u64], from: u64, to: u64) {
        let width = u64::from(self.remainder_bits());
        // Goes from the last block to the first, and in a block from the last word to the first, so
        // that every word is read before it is overwritten. The slots `low..=high` of a block get
        // new contents:
        //
        //                    slot 63           high          low         slot 0
        //   row               ......|##################################|......     1 bit per slot
        //   slots             000000 1111111111111111111111111111111111 000000
        //
        // A row moves by one bit. Bit `low` gets the bit of the slot before it. If that slot is in
        // the block before, the bit is `last`.
        //
        // The 64 remainders of a block are one string of bits in `width` words, in which slot s has
        // the bits s * width .. (s + 1) * width. The string moves by `width` bits. Word by word,
        // with remainders e, f, g, h:
        //
        //   word i + 1                      word i
        //   [ ............. h | g (high) ]  [ g (low) | f | e ............. ]     before
        //   [ ......... h | g | f (high) ]  [ f (low) | e ................. ]     after
        //
        // So a word is shifted left by `width`, and `below`, the `width` highest bits of the word
        // below it, comes in from the right. Below the first word of a block is `carried`, the last
        // remainder of the block before. `bits` are the bits of a word that belong to moving slots.
        for block in (from / BLOCK..=to / BLOCK).rev() {
            let first = block == from / BLOCK;
            let low = if first { from % BLOCK } else { 0 };
            let high = if block == to / BLOCK { to % BLOCK } else { BLOCK - 1 };
            let (carried, last) = if first {
                (0, false)
            } else {
                let last = block * BLOCK - 1;
                (self.remainder(words, last), self.bit(words, CONTINUATION, last))
            };
            let slots = bits_of(low, high + 1);
            let row = &mut words[self.row(block, CONTINUATION)];
            *row = *row & !slots | (*row << 1 | u64::from(last)) & slots;
            words[self.row(block, SHIFTED)] |= slots;
            let start = self.remainders(block);
            let (low, high) = (low * width, (high + 1) * width);
            for word in (low / 64..high.div_ceil(64)).rev() {
                let here = start + word as usize;
                let below = if word == 0 { carried } else { words[here - 1] >> (64 - width) };
                let bits = bits_of(low.saturating_sub(word * 64), high - word * 64);
                words[here] = words[here] & !bits | (words[here] << width | below) & bits;
            }
        }
    }

    /// Moves everything but the occupied bits of `at + 1..end` one slot to the left; the last slot
    /// becomes empty.
    fn shift_left(&self, words: &mut [u64], at: u64, end: u64) {
        let (width, last) = (u64::from(self.remainder_bits()), end - 1);
        // The mirror image of `shift_right`: from the first block to the last, each word is shifted
        // right by one bit or by `width` bits, and the lowest bits of the word above it come in
        // from the left. Above the last word of a block, `next` and `carried` come from the first
        // slot of the block behind it.
        for block in at / BLOCK..=last / BLOCK {
            let low = if block == at / BLOCK { at % BLOCK } else { 0 };
            let ends = block == last / BLOCK;
            let high = if ends { last % BLOCK } else { BLOCK - 1 };
            let slots = bits_of(low, high + 1);
            for row in [CONTINUATION, SHIFTED] {
                let next = !ends && self.bit(words, row, (block + 1) * BLOCK);
                let row = &mut words[self.row(block, row)];
                *row = *row & !slots | (*row >> 1 | u64::from(next) << 63) & slots;
            }
            let carried = if ends { 0 } else { self.remainder(words, (block + 1) * BLOCK) };
            let start = self.remainders(block);
            let (low, high) = (low * width, (high + 1) * width);
            for word in low / 64..high.div_ceil(64) {
                let here = start + word as usize;
                let above = if word == width - 1 { carried } else { words[here + 1] };
                let bits = bits_of(low.saturating_sub(word * 64), high - word * 64);
                words[here] = words[here] & !bits | (words[here] >> width | above << (64 - width)) & bits;
            }
        }
        self.set_remainder(words, last, 0);
        self.set_bit(words, CONTINUATION, last, false);
        self.set_bit(words, SHIFTED, last, false);
    }
}

/// Returns a mask of the bits `low..high` of a word; `high` may exceed 64.
#[inline(always)]
fn bits_of(low: u64, high: u64) -> u64 {
    let below = if high >= 64 { !0 } else { (1 << high) - 1 };
    below & !0 << low
}
