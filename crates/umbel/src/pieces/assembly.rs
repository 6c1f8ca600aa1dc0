//! A whole filter in memory, put together from its ranges.

use super::bits;
use super::piece::Piece;
use super::plan::PiecePlan;
use crate::structure::MAX_INSERTED;
use crate::{BloomFilter, Result};

/// Puts a filter together from its ranges, in any order. Ranges without keys may be left out.
///
/// See the [module](super) for an example.
#[derive(Debug)]
pub struct Assembly {
    plan: PiecePlan,
    filter: BloomFilter,
    inserted: u64,
}

impl Assembly {
    /// Creates an empty filter.
    ///
    /// # Errors
    ///
    /// If it is planned in shards, or there is not enough memory.
    pub fn new(plan: &PiecePlan) -> Result<Assembly> {
        plan.ranges()?;
        Ok(Assembly { plan: plan.clone(), filter: plan.build()?, inserted: 0 })
    }

    /// Sets the bits of a range, which [`Merge::bits`](super::Merge::bits) returned.
    ///
    /// # Errors
    ///
    /// If they cannot be the bits of this range.
    pub fn set_range(&mut self, range: u32, bytes: &[u8]) -> Result<()> {
        self.plan.check_part(range)?;
        let ranges = self.plan.ranges()?;
        let lines = &mut self.filter.words_mut().lines_mut()[ranges.lines_of(range)];
        bits::copy_from(ranges, range, bytes, lines)
    }

    /// Adds a piece of any range, and the insertions that it stands for.
    ///
    /// # Errors
    ///
    /// If it is not a piece of this filter, or it is damaged.
    pub fn add(&mut self, piece: &[u8]) -> Result<()> {
        let piece = Piece::parse(piece, &self.plan)?;
        self.plan.check_part(piece.part)?;
        let ranges = self.plan.ranges()?;
        let lines = &mut self.filter.words_mut().lines_mut()[ranges.lines_of(piece.part)];
        bits::apply(ranges, &piece, lines)?;
        self.inserted = self.inserted.saturating_add(piece.inserted);
        Ok(())
    }

    /// Returns the filter. `inserted` is the number of insertions that
    /// [`set_range`](Assembly::set_range) could not count: the sum over all merges.
    pub fn finish(mut self, inserted: u64) -> BloomFilter {
        self.filter.set_inserted(self.inserted.saturating_add(inserted).min(MAX_INSERTED));
        self.filter
    }
}
