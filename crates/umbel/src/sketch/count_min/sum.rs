//! Sums of count-min sketches.

use super::CountMin;
use super::grid::{add, get};
use crate::sketch::set_total;
use crate::{Error, Mismatch, Result};

/// A sum of sketches in which each has a weight; see [`CountMin::weighted_sum`].
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
/// assert_eq!(change.into_sketch().count("apple"), 6);
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Debug)]
pub struct WeightedSum {
    cells: Vec<i64>,
    total: i128,
    /// Of the shape and hash of all terms.
    empty: CountMin,
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
        let empty = CountMin::with_dimensions(self.grid.width, self.grid.depth)?;
        Ok(WeightedSum { cells, total: 0, empty: empty.with_hasher(self.head.hasher.clone()) })
    }
}

impl WeightedSum {
    /// Adds a sketch so many times. Sums that exceed 64 bits stay at the largest or smallest value.
    ///
    /// # Errors
    ///
    /// If width, depth, hash or seed differ. The sum has not changed then.
    pub fn add(&mut self, sketch: &CountMin, weight: i64) -> Result<()> {
        Mismatch::refuse(self.empty.mismatch(sketch))?;
        let words = sketch.counters.words();
        for (place, cell) in (0..).zip(&mut self.cells) {
            *cell = cell.saturating_add(i64::from(get(words, place)).saturating_mul(weight));
        }
        self.total = self.total.saturating_add(i128::from(sketch.total()) * i128::from(weight));
        Ok(())
    }

    /// Returns the sum as a sketch. Counters below 0 become 0, and those above 2^32 - 1 become that.
    pub fn into_sketch(self) -> CountMin {
        let WeightedSum { cells, total, empty: mut sketch } = self;
        let counters = sketch.counters.words_mut();
        for (place, cell) in (0..).zip(cells) {
            add(counters, place, u32::try_from(cell.max(0)).unwrap_or(u32::MAX));
        }
        set_total(&mut sketch.head, u64::try_from(total.max(0)).unwrap_or(u64::MAX));
        sketch
    }
}
