//! The cells of a single digest, one by one: for traces, and for maps with a second table.

use super::{Scalar, TableShape, placed, read_cell};
use crate::file::FormatError;
use crate::memory::Words;
use crate::structure::check_tail;
use crate::{Digest, Probe, Result};

impl TableShape {
    /// Returns the cell with this index among the cells of a digest; `None` if there are fewer.
    #[inline(always)]
    pub fn position(&self, digest: Digest, which: u64) -> Option<u64> {
        let which = usize::try_from(which).ok()?;
        placed!(self.arrangement, place => self.positions_in::<Scalar, _>(place, digest).get(which).copied())
    }

    /// Checks that all bits between shards and behind the last one are zero.
    pub fn check_contents(&self, words: &Words) -> Result<(), FormatError> {
        check_tail(words, self.bits())?;
        let between = |shard| shard * self.stride() + self.shard_cells()..(shard + 1) * self.stride();
        let mut unused = (0..self.shards).flat_map(between);
        if unused.any(|cell| read_cell(words.words(), cell, self.width) != 0) {
            return Err(FormatError::invalid("there is something between its shards"));
        }
        Ok(())
    }

    /// Reports the cells of a digest as probes of the given section.
    pub fn trace(
        &self,
        digest: Digest,
        section: usize,
        probe: &mut dyn FnMut(Probe) -> Result<()>,
    ) -> Result<()> {
        placed!(self.arrangement, place => {
            let mut cells = self.positions_in::<Scalar, _>(place, digest).into_iter();
            cells.try_for_each(|cell| probe(Probe { section, bits: self.cell_bits(cell) }))
        })
    }
}
