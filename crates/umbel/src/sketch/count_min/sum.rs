//! Sums of count-min sketches.

use super::grid::{Grid, get, set};
use super::{CountMin, mismatch};
use crate::memory::Words;
use crate::sketch::set_total;
use crate::structure::Head;
use crate::{Error, Hasher, Mismatch, Result};

/// A weighted sum of sketches; see [`CountMin::weighted_sum`].
///
/// ```
/// use umbel::sketch::CountMin;
/// let mut today = CountMin::with_dimensions(1000, 5)?;
/// today.insert_times("apple", 10);
/// let mut yesterday = CountMin::with_dimensions(1000, 5)?;
/// yesterday.insert_times("apple", 4);
///
/// let mut change = today.weighted_sum()?;
/// change.add(&today, 1)?;
/// change.add(&yesterday, -1)?;
/// assert_eq!(change.into_sketch()?.count("apple"), 6);
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Debug)]
pub struct WeightedSum {
    cells: Vec<i64>,
    total: i128,
    /// The shape of all terms.
    grid: Grid,
    /// The hash function of all terms.
    hasher: Hasher,
}

impl CountMin {
    /// Returns an empty weighted sum of sketches of this shape and hash.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for it.
    pub fn weighted_sum(&self) -> Result<WeightedSum> {
        let counters = (self.grid.width * u64::from(self.grid.depth)) as usize;
        let mut cells = Vec::new();
        let out_of_memory = |_| Error::OutOfMemory { bytes: 8 * counters as u64 };
        cells.try_reserve_exact(counters).map_err(out_of_memory)?;
        cells.resize(counters, 0);
        Ok(WeightedSum { cells, total: 0, grid: self.grid, hasher: self.head.hasher.clone() })
    }
}

impl WeightedSum {
    /// Adds a sketch, multiplied by a weight. Sums that exceed 64 bits saturate.
    ///
    /// # Errors
    ///
    /// If width, depth, hash or seed differ. The sum is not changed then.
    pub fn add(&mut self, sketch: &CountMin, weight: i64) -> Result<()> {
        self.check(sketch)?;
        let words = sketch.counters.words();
        for (place, cell) in (0..).zip(&mut self.cells) {
            *cell = cell.saturating_add(i64::from(get(words, place)).saturating_mul(weight));
        }
        self.total = self.total.saturating_add(i128::from(sketch.total()) * i128::from(weight));
        Ok(())
    }

    /// Returns the sum as a sketch. Counters are clamped to 0 and 2^32 - 1.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for the sketch.
    pub fn into_sketch(self) -> Result<CountMin> {
        let counters = Words::zeroed(self.grid.cells()?.lines())?;
        let mut sketch = CountMin { head: Head::new(self.hasher.clone()), grid: self.grid, counters };
        self.store(&mut sketch)?;
        Ok(sketch)
    }

    /// Replaces the contents of a sketch with the sum, as [`into_sketch`](WeightedSum::into_sketch)
    /// returns it but without allocating memory.
    ///
    /// # Errors
    ///
    /// If width, depth, hash or seed differ. The sketch is not changed then.
    pub fn store(&self, sketch: &mut CountMin) -> Result<()> {
        self.check(sketch)?;
        let counters = sketch.counters.words_mut();
        for (place, cell) in (0..).zip(&self.cells) {
            set(counters, place, u32::try_from((*cell).max(0)).unwrap_or(u32::MAX));
        }
        set_total(&mut sketch.head, u64::try_from(self.total.max(0)).unwrap_or(u64::MAX));
        Ok(())
    }

    /// Rejects a sketch of another shape or hash.
    fn check(&self, sketch: &CountMin) -> Result<()> {
        Mismatch::refuse(mismatch((self.grid, &self.hasher), (sketch.grid, &sketch.head.hasher)))
    }
}
