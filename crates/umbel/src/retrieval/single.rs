//! One digest and its cells, one by one: for traces and for maps that keep something beside a cell.

use super::{Scalar, Shape, placed};
use crate::{Digest, Probe, Result};

impl Shape {
    /// One of the cells of a digest; `None` if it has fewer.
    #[inline(always)]
    pub fn position(&self, digest: Digest, which: u64) -> Option<u64> {
        let which = usize::try_from(which).ok()?;
        placed!(self.arrangement, place => self.positions_in::<Scalar, _>(place, digest).get(which).copied())
    }

    /// Tells of the cells of a digest, in a section of this number.
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
