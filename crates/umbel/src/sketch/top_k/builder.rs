//! The shape of a [`TopK`].

use super::TopK;
use crate::hash::reduce;
use crate::memory::{Packed, Words};
use crate::sketch::table::{KeyTable, MAX_ENTRIES};
use crate::structure::Head;
use crate::{Digest, Error, Hasher, Result};

/// Collects the settings of a [`TopK`].
///
/// ```
/// use umbel::sketch::TopK;
/// let top = TopK::builder(100).width(10_000).depth(3).decay(0.9).build()?;
/// assert_eq!((top.k(), top.width(), top.depth()), (100, 10_000, 3));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder makes a sketch only when `build` is called"]
pub struct TopKBuilder {
    pub(super) k: u64,
    pub(super) width: u64,
    pub(super) depth: u32,
    pub(super) decay: f64,
}

const MAX_DEPTH: u32 = 32;

/// The inverse of 1.08, the base in the experiments on HeavyKeeper.
const DEFAULT_DECAY: f64 = 0.925;

impl TopKBuilder {
    pub(super) fn new(k: u64) -> TopKBuilder {
        TopKBuilder { k, width: k.saturating_mul(8).max(1024), depth: 4, decay: DEFAULT_DECAY }
    }

    /// Sets the number of cells in a row (w).
    pub fn width(mut self, cells: u64) -> TopKBuilder {
        self.width = cells;
        self
    }

    /// Sets the number of rows (d), 1 to 32.
    pub fn depth(mut self, rows: u32) -> TopKBuilder {
        self.depth = rows;
        self
    }

    /// Sets the base of the probability that another key lowers a count: above 0, at most 1. The
    /// higher it is, the sooner new keys displace old ones.
    pub fn decay(mut self, base: f64) -> TopKBuilder {
        self.decay = base;
        self
    }

    /// Creates the empty sketch.
    ///
    /// # Errors
    ///
    /// If a setting is out of range or there is not enough memory.
    pub fn build(self) -> Result<TopK> {
        self.build_with_hasher(Hasher::default())
    }

    /// Creates the empty sketch with this hash function. Unlike [`TopK::with_hasher`], this does
    /// not write to the new memory, so its pages cost nothing until a key needs them.
    #[doc(hidden)]
    pub fn build_with_hasher(self, hasher: Hasher) -> Result<TopK> {
        let cells = Words::zeroed(self.cells()?.lines())?;
        let heap = KeyTable::with_free(self.k)?;
        Ok(TopK::new_with(Head::new(hasher), self, cells, heap, 0))
    }

    /// Checks all settings and returns the layout of the cells.
    pub(super) fn cells(&self) -> Result<Packed> {
        let TopKBuilder { k, width, depth, decay } = *self;
        if !(1..=MAX_ENTRIES).contains(&k) {
            return Err(Error::parameter("k", k, format!("1 to {MAX_ENTRIES} keys")));
        }
        if !(1..=MAX_DEPTH).contains(&depth) {
            return Err(Error::parameter("depth", depth, format!("1 to {MAX_DEPTH} rows")));
        }
        if !(decay > 0.0 && decay <= 1.0) {
            return Err(Error::parameter("decay", decay, "a number above 0 and at most 1"));
        }
        let cells = width.checked_mul(depth.into()).and_then(|cells| Packed::new(cells, 64).ok());
        cells.ok_or_else(|| {
            Error::parameter("width", width, format!("at least 1, and at most 2^42 cells in {depth} rows"))
        })
    }

    /// Returns the cells of a digest, one in each row.
    #[inline]
    pub(super) fn places(self, digest: Digest) -> impl Iterator<Item = usize> {
        (0..u64::from(self.depth))
            .map(move |row| (row * self.width + reduce(digest.salted(row).get(), self.width)) as usize)
    }
}
