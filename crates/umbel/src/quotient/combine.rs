//! Operations on multisets of fingerprints: sum, minimum and comparison.

use super::Quotient;
use super::slots::Slots;
use super::sorted::Aligned;
use crate::Result;
use crate::algebra::{Algebra, Mismatch};
use crate::sizing::estimate::Overlap;

impl Quotient {
    /// Replaces the contents: each fingerprint is stored `operation(counts)` times, where `counts`
    /// are its counts in the two filters. `room` returns the slots for a number of fingerprints.
    fn combine(
        &mut self,
        other: &Quotient,
        operation: impl Fn([u64; 2]) -> u64,
        room: impl Fn(&Quotient, u64) -> Result<Slots>,
    ) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        let copies = || {
            let aligned = Aligned::new(self.fingerprints(), other.fingerprints());
            aligned.map(|(fingerprint, counts)| (fingerprint, operation(counts)))
        };
        let len = copies().map(|(_, count)| count).sum();
        let all = copies().flat_map(|(fingerprint, count)| (0..count).map(move |_| fingerprint));
        let combined = self.filled(room(self, len)?, len, all)?;
        (self.slots, self.words, self.len) = (combined.slots, combined.words, combined.len);
        Ok(())
    }

    /// Becomes the sum in the slots of this filter, for threads that each fill a part of it.
    pub(super) fn add(&mut self, part: &Quotient) -> Result<()> {
        self.sum(part, |filter, _| Ok(filter.slots))
    }

    fn sum(&mut self, other: &Quotient, room: impl Fn(&Quotient, u64) -> Result<Slots>) -> Result<()> {
        self.combine(other, |[ours, theirs]| ours + theirs, room)?;
        self.head.inserted = self.head.inserted.zip(other.head.inserted).map(|_| self.len);
        Ok(())
    }
}

impl Algebra for Quotient {
    /// Resized filters can still be combined: only the ranges of the fingerprints must be equal.
    fn mismatch(&self, other: &Quotient) -> Option<Mismatch> {
        Mismatch::between("number of fingerprints", self.slots.range(), other.slots.range())
            .or_else(|| Mismatch::between_hashes(self.hasher().id(), other.hasher().id()))
    }

    /// Becomes the sum: a key is stored as often as in both filters together. If the slots of this
    /// filter are too few, it [grows](Quotient::grow), so its rate is that of a filter with all
    /// keys. Fails if its remainders are too short for that.
    fn union(&mut self, other: &Quotient) -> Result<()> {
        self.sum(other, Quotient::roomy)
    }

    /// Becomes the minimum: a key is stored as often as in the filter that has fewer copies of it.
    fn intersect(&mut self, other: &Quotient) -> Result<()> {
        self.combine(other, |[ours, theirs]| ours.min(theirs), |filter, _| Ok(filter.slots))?;
        self.head.inserted = None;
        Ok(())
    }

    fn overlap(&self, other: &Quotient) -> Result<Option<Overlap>> {
        Mismatch::refuse(self.mismatch(other))?;
        let aligned = Aligned::new(self.fingerprints(), other.fingerprints());
        let [left, right, union] = aligned.fold([0, 0, 0], |[left, right, union], (_, [a, b])| {
            [left + u64::from(a > 0), right + u64::from(b > 0), union + 1]
        });
        self.shape().overlap(left, right, union)
    }
}
