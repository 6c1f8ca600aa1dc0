//! Union, intersection, comparison and folding of filters of the same shape.

use super::{Bloom, Design, Layout};
use crate::algebra::{Algebra, Mismatch};
use crate::sizing::{estimate::Overlap, greatest};
use crate::{Error, Result};

impl<L: Layout> Bloom<L> {
    /// The filter of the same keys in half the memory, without the keys: every bit becomes the union of two
    /// neighbours. The rate rises accordingly. Refused when the size is odd.
    ///
    /// ```
    /// use umbel::{Blocked, Bloom, Filter, Insert};
    /// let mut roomy = Bloom::<Blocked>::with_capacity(1_000_000, 0.001)?;
    /// roomy.insert_batch(&(0..100_000u64).collect::<Vec<_>>())?;
    /// let folded = roomy.fold()?;
    /// assert_eq!(folded.words().lines().len() * 2, roomy.words().lines().len());
    /// assert!((0..100_000u64).all(|key| folded.contains(&key)));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    pub fn fold(&self) -> Result<Bloom<L>> {
        let layout = self.layout.folded()?;
        let mut folded = Bloom::with_layout(layout, self.hasher.clone())?;
        L::fold(self.words.lines(), folded.words.lines_mut()?);
        folded.inserted = self.inserted;
        // The rate it was planned for is now reached with fewer keys, or never.
        folded.design = self.design.and_then(|design| {
            let keeps = |n| layout.predicted_rate(n).is_ok_and(|rate| rate <= design.rate);
            greatest(1..=design.capacity, keeps).map(|capacity| Design { capacity, ..design })
        });
        folded.level = self.level;
        Ok(folded)
    }

    /// Takes in what was inserted into another filter of the same shape, as threads do that each fill one of their own.
    /// It is a [union](Algebra::union) of which it is known that both counts of insertions add up.
    ///
    /// ```
    /// use umbel::{Blocked, Bloom, Filter, Insert};
    /// let mut whole = Bloom::<Blocked>::with_capacity(100_000, 0.01)?;
    /// let mut part = whole.try_clone_empty()?;
    /// whole.insert("apple")?;
    /// part.insert("pear")?;
    /// whole.absorb(&part)?;
    /// assert!(whole.contains("pear") && whole.inserted() == Some(2));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    pub fn absorb(&mut self, part: &Bloom<L>) -> Result<()> {
        let inserted = self.inserted.zip(part.inserted).map(|(ours, theirs)| ours.saturating_add(theirs));
        self.union(part)?;
        self.inserted = inserted;
        Ok(())
    }

    fn check(&self, other: &Bloom<L>) -> Result<()> {
        self.mismatch(other).map_or(Ok(()), |mismatch| Err(Error::Mismatch(mismatch)))
    }

    fn combine(&mut self, other: &Bloom<L>, operation: impl Fn(u64, u64) -> u64) -> Result<()> {
        self.check(other)?;
        self.words.merge(&other.words, operation)?;
        self.inserted = None;
        Ok(())
    }
}

impl<L: Layout> Algebra for Bloom<L> {
    fn mismatch(&self, other: &Bloom<L>) -> Option<Mismatch> {
        Mismatch::of("number of bits", self.layout.bits(), other.layout.bits())
            .or_else(|| Mismatch::of("number of hashes", self.layout.hashes(), other.layout.hashes()))
            .or_else(|| Mismatch::of_hashes(self.hasher.id(), other.hasher.id()))
    }

    fn union(&mut self, other: &Bloom<L>) -> Result<()> {
        self.combine(other, |a, b| a | b)
    }

    fn intersect(&mut self, other: &Bloom<L>) -> Result<()> {
        self.combine(other, |a, b| a & b)
    }

    fn overlap(&self, other: &Bloom<L>) -> Result<Option<Overlap>> {
        self.check(other)?;
        let union = self.words.count_union(&other.words);
        self.layout.shape().overlap(self.words.count_ones(), other.words.count_ones(), union)
    }
}
