//! Operations on multisets of fingerprints: sum, minimum and comparison.

use super::Quotient;
use super::sorted::Aligned;
use crate::Result;
use crate::algebra::{Algebra, Mismatch};
use crate::sizing::estimate::Overlap;

impl Quotient {
    /// Replaces the contents: each fingerprint is stored `operation(counts)` times, where `counts`
    /// are its counts in the two filters.
    fn combine(&mut self, other: &Quotient, operation: impl Fn([u64; 2]) -> u64) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        let copies = || {
            let aligned = Aligned::new(self.fingerprints(), other.fingerprints());
            aligned.map(|(fingerprint, counts)| (fingerprint, operation(counts)))
        };
        let len = copies().map(|(_, count)| count).sum();
        let all = copies().flat_map(|(fingerprint, count)| (0..count).map(move |_| fingerprint));
        let combined = self.filled(self.slots, len, all)?;
        (self.words, self.len) = (combined.words, combined.len);
        Ok(())
    }
}

impl Algebra for Quotient {
    /// Resized filters can still be combined: only the ranges of the fingerprints must be equal.
    fn mismatch(&self, other: &Quotient) -> Option<Mismatch> {
        Mismatch::between("number of fingerprints", self.slots.range(), other.slots.range())
            .or_else(|| Mismatch::between_hashes(self.hasher().id(), other.hasher().id()))
    }

    /// Becomes the sum: a key is stored as often as in both filters together. The result has the
    /// slots of this filter, and is refused if they are too few.
    fn union(&mut self, other: &Quotient) -> Result<()> {
        self.combine(other, |[ours, theirs]| ours + theirs)?;
        self.head.inserted = self.head.inserted.zip(other.head.inserted).map(|_| self.len);
        Ok(())
    }

    /// Becomes the minimum: a key is stored as often as in the filter that has fewer copies of it.
    fn intersect(&mut self, other: &Quotient) -> Result<()> {
        self.combine(other, |[ours, theirs]| ours.min(theirs))?;
        self.head.inserted = None;
        Ok(())
    }

    fn overlap(&self, other: &Quotient) -> Result<Option<Overlap>> {
        Mismatch::refuse(self.mismatch(other))?;
        let aligned = Aligned::new(self.fingerprints(), other.fingerprints());
        let [left, right, union] = aligned.fold([0, 0, 0], |[left, right, union], (_, [a, b])| {
            [left + u64::from(a > 0), right + u64::from(b > 0), union + 1]
        });
        let overlap = self.shape().overlap(left, right, union)?;
        Ok(overlap.map(|overlap| overlap.with_insertions(Some(self.len), Some(other.len))))
    }
}
