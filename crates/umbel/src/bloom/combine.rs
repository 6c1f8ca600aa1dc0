//! Union, intersection and comparison of filters of the same shape.

use super::{Bloom, Layout};
use crate::Result;
use crate::algebra::{Algebra, Mismatch};
use crate::sizing::estimate::Overlap;

impl<L: Layout> Bloom<L> {
    fn combine(&mut self, other: &Bloom<L>, operation: impl Fn(u64, u64) -> u64) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        self.words.merge(&other.words, operation);
        self.head.inserted = None;
        Ok(())
    }
}

impl<L: Layout> Algebra for Bloom<L> {
    fn mismatch(&self, other: &Bloom<L>) -> Option<Mismatch> {
        Mismatch::between("number of bits", self.layout.bits(), other.layout.bits())
            .or_else(|| Mismatch::between("number of hashes", self.layout.hashes(), other.layout.hashes()))
            .or_else(|| Mismatch::between_hashes(self.head.hasher.id(), other.head.hasher.id()))
    }

    fn union(&mut self, other: &Bloom<L>) -> Result<()> {
        self.combine(other, |a, b| a | b)
    }

    fn intersect(&mut self, other: &Bloom<L>) -> Result<()> {
        self.combine(other, |a, b| a & b)
    }

    fn overlap(&self, other: &Bloom<L>) -> Result<Option<Overlap>> {
        Mismatch::refuse(self.mismatch(other))?;
        let union = self.words.count_union(&other.words);
        self.layout.shape().overlap(self.words.count_ones(), other.words.count_ones(), union)
    }
}
