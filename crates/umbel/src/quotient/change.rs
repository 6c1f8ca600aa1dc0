//! Insertion and removal: the slots from a place to the end of its cluster move by one, 64 at a time.

use super::slots::{CONTINUATION, OCCUPIED, SHIFTED, Slots};
use crate::arch::Simd;
use crate::sizing::quotient::BLOCK;

impl Slots {
    /// Adds a fingerprint; whether it was there before. `None`, and nothing has changed, when no slot to the right of
    /// its place is empty.
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
        // The former head, which is now second.
        if joins && at == head && at < empty {
            self.set_bit(words, CONTINUATION, at + 1, true);
        }
        Some(found)
    }

    /// Takes a fingerprint out, once; whether it was there.
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
        // What is not shifted stays.
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

    /// After a shift to the left: the runs of the quotients behind `quotient`, which start from `from` to `end`, may be
    /// at home now.
    fn mark_homes(&self, words: &mut [u64], quotient: u64, from: u64, end: u64) {
        let (mut quotient, mut from) = (quotient, from);
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

    /// Moves remainders and continuations of `from..to` one to the right, where all but the first are shifted then. What
    /// is in `from` afterwards is for the caller to write.
    fn shift_right(&self, words: &mut [u64], from: u64, to: u64) {
        let width = u64::from(self.remainder_bits());
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

    /// Moves everything but the occupied bits of `at + 1..end` one to the left; the last slot becomes empty.
    fn shift_left(&self, words: &mut [u64], at: u64, end: u64) {
        let (width, last) = (u64::from(self.remainder_bits()), end - 1);
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

/// The bits `low..high`, as far as a word has them.
#[inline(always)]
fn bits_of(low: u64, high: u64) -> u64 {
    let below = if high >= 64 { !0 } else { (1 << high) - 1 };
    below & !0 << low
}
