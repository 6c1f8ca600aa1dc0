//! Fingerprints in sorted order: reading them from a filter, and writing them into an empty one.
//! Merging and resizing combine the two.

use super::slots::{CONTINUATION, OCCUPIED, SHIFTED, Slots};
use crate::file::FormatError;
use crate::memory::Words;
use crate::sizing::quotient::BLOCK;
use crate::structure::check_tail;
use std::cmp::Ordering;
use std::iter::Peekable;

/// An iterator over the fingerprints of a [`Quotient`](crate::Quotient) in ascending order;
/// repeated ones occur as often as they are stored.
#[derive(Clone, Debug)]
pub struct Fingerprints<'a> {
    slots: Slots,
    words: &'a [u64],
    /// The next slot to read.
    slot: u64,
    /// The slot from which to search for the quotient of the next run.
    quotients: u64,
    /// The quotient of the current run.
    quotient: u64,
}

impl<'a> Fingerprints<'a> {
    pub(super) fn new(slots: Slots, words: &'a [u64]) -> Fingerprints<'a> {
        Fingerprints { slots, words, slot: 0, quotients: 0, quotient: 0 }
    }
}

impl Iterator for Fingerprints<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let Fingerprints { slots, words, .. } = *self;
        let slot = slots.next(words, self.slot, |[a, b, c]| a | b | c)?;
        self.slot = slot + 1;
        if !slots.bit(words, CONTINUATION, slot) {
            self.quotient = slots.next(words, self.quotients, |[occupied, ..]| occupied)?;
            self.quotients = self.quotient + 1;
        }
        Some(self.quotient << slots.remainder_bits() | slots.remainder(words, slot))
    }
}

/// Fills empty slots with fingerprints in ascending order.
pub(super) struct Builder<'a> {
    slots: Slots,
    words: &'a mut [u64],
    /// The first slot that can still be filled. Slots before it are full or stay empty.
    end: u64,
    /// The quotient of the last run.
    last: Option<u64>,
}

impl<'a> Builder<'a> {
    /// Creates a builder; `words` must be those of an empty filter.
    pub fn new(slots: Slots, words: &'a mut [u64]) -> Builder<'a> {
        Builder { slots, words, end: 0, last: None }
    }

    /// Appends a fingerprint; returns `None` if there is no room.
    #[inline(always)]
    pub fn push(&mut self, fingerprint: u64) -> Option<()> {
        let Builder { slots, ref mut words, end, last } = *self;
        let (quotient, remainder) = slots.split(fingerprint);
        let continues = last == Some(quotient);
        let slot = end.max(quotient);
        if slot >= slots.all() || quotient >= slots.homes() {
            return None;
        }
        slots.set_remainder(words, slot, remainder);
        slots.set_bit(words, OCCUPIED, quotient, true);
        slots.set_bit(words, CONTINUATION, slot, continues);
        slots.set_bit(words, SHIFTED, slot, slot != quotient);
        (self.end, self.last) = (slot + 1, Some(quotient));
        Some(())
    }
}

/// Two ascending sequences side by side: iterates over the values that occur in either, with their
/// counts in both.
pub(super) struct Aligned<A: Iterator, B: Iterator>(Peekable<A>, Peekable<B>);

impl<A: Iterator<Item = u64>, B: Iterator<Item = u64>> Aligned<A, B> {
    pub fn new(left: A, right: B) -> Aligned<A, B> {
        Aligned(left.peekable(), right.peekable())
    }
}

impl<A: Iterator<Item = u64>, B: Iterator<Item = u64>> Iterator for Aligned<A, B> {
    type Item = (u64, [u64; 2]);

    fn next(&mut self) -> Option<(u64, [u64; 2])> {
        let value = match (self.0.peek(), self.1.peek()) {
            (Some(a), Some(b)) => *a.min(b),
            (a, b) => *a.or(b)?,
        };
        Some((value, [repeats(&mut self.0, value), repeats(&mut self.1, value)]))
    }
}

/// Removes all copies of a value from the front of a sequence and returns their number.
fn repeats<I: Iterator<Item = u64>>(sequence: &mut Peekable<I>, value: u64) -> u64 {
    let mut count = 0;
    while sequence.next_if_eq(&value).is_some() {
        count += 1;
    }
    count
}

impl Slots {
    /// Checks that the words are the result of inserting `len` fingerprints: there is exactly one
    /// valid memory for each multiset.
    pub fn check(&self, words: &Words, len: u64) -> Result<(), FormatError> {
        check_tail(words, self.bits())?;
        let words = words.words();
        let broken = |slot, what| Err(FormatError::invalid(format!("slot {slot} {what}")));
        let (mut used, mut quotients) = (0, 0);
        // The quotient and the remainder of the slot before this one, if it is full.
        let mut before: Option<(u64, u64)> = None;
        for slot in 0..self.all() {
            let here = self.remainder(words, slot);
            if self.used(words, slot / BLOCK) >> (slot % BLOCK) & 1 == 0 {
                if here != 0 {
                    return broken(slot, "is empty and has a remainder");
                }
                before = None;
                continue;
            }
            used += 1;
            let shifted = self.bit(words, SHIFTED, slot);
            let quotient = if self.bit(words, CONTINUATION, slot) {
                let Some((quotient, last)) = before else {
                    return broken(slot, "continues a run that has not started");
                };
                if !shifted || last.cmp(&here) == Ordering::Greater {
                    return broken(slot, "continues a run that is not in order");
                }
                quotient
            } else {
                let Some(quotient) = self.next(words, quotients, |[occupied, ..]| occupied) else {
                    return broken(slot, "starts a run that belongs to no slot");
                };
                quotients = quotient + 1;
                if quotient > slot || shifted != (quotient < slot) || (shifted && before.is_none()) {
                    return broken(slot, "is not where the run of its quotient belongs");
                }
                quotient
            };
            before = Some((quotient, here));
        }
        let without_run = self.next(words, quotients, |[occupied, ..]| occupied);
        if without_run.is_some() || quotients > self.homes() {
            return Err(FormatError::invalid("there are slots without the run they should have"));
        }
        if used != len {
            return Err(FormatError::invalid(format!("{used} slots are full instead of {len}")));
        }
        Ok(())
    }
}
