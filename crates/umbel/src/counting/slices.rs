//! The counting filter of Summary Cache: the cells of a key are slices of its MD5 digest.
//!
//! A filter is filled either by keys or by slices, never by both, because the two assign different
//! cells to a key. A web cache fills a filter by slices, sends its bits to other caches, and keeps
//! their copies up to date by sending the flips.

use super::counters::{At, Rule};
use super::{Counting, Flip, Ones};
use crate::literature::Md5Slices;
use crate::{Removed, Result};

impl Counting {
    /// Inserts the key with these slices; otherwise like [`Counting::insert_flips`].
    #[doc(hidden)]
    pub fn insert_slices(&mut self, slices: &Md5Slices, flips: &mut Vec<Flip>) -> Result<bool> {
        self.insert_cells(cells(&self.rule, slices), flips)
    }

    /// Removes the key with these slices; otherwise like [`Counting::remove_flips`].
    #[doc(hidden)]
    pub fn remove_slices(&mut self, slices: &Md5Slices, flips: &mut Vec<Flip>) -> Removed {
        self.remove_cells(cells(&self.rule, slices), flips)
    }

    /// Returns whether the key with these slices may be a member.
    #[doc(hidden)]
    pub fn contains_slices(&self, slices: &Md5Slices) -> bool {
        let words = self.words.words();
        cells(&self.rule, slices).all(|at| self.rule.cells.get(words, at.cell) > 0)
    }
}

fn cells(rule: &Ones, slices: &Md5Slices) -> impl Iterator<Item = At> + Clone + use<> {
    slices.positions(rule.hashes(), rule.cells.cells()).map(|cell| At { cell, choice: 0 })
}
