//! A small disguise for queries: asking how often something was seen without naming it.
//!
//! Bob counts in a [`Table`] whose hash functions are public. Alice wants the count of X. She asks
//! for Y instead, an innocent thing that shares a cell with X ([`cover`]). Bob answers with the
//! values of Y's cells, one of which is an upper bound for X.
//!
//! The disguise is weak. Bob learns that X is among the things that share a cell with Y, about
//! `rows` in every `cells`. With more than one row, a second query for the same X under another
//! cover narrows this to the things that share a cell with both, and after three queries mostly X
//! alone remains ([`Table::candidates`]). And Bob's answer reveals to Alice sums over everything
//! else in those cells, whether he wants that or not.
//!
//! This is the simplest reading of an idea in the literature, and the lab measures how little it
//! hides. For use, [`umbel::space_code::private`] asks for a whole class of keys instead: it hides a
//! key among as many others as wished, however often it is asked for, and `umbel count ask` is its
//! command.
//!
//! ```
//! use umbel::{Hasher, Key};
//! use umbel_net::privacy::{Table, cover};
//!
//! let hasher = Hasher::fast(1);
//! let mut table = Table::new(2, 100)?;
//! let wanted = "the thing".digest(&hasher);
//! (0..30).for_each(|_| table.record(wanted));
//!
//! let innocent = (0..10_000u64).map(|number| number.digest(&hasher));
//! let cover = cover(&table, wanted, innocent).expect("one in fifty will do");
//! let answer = table.query(cover.digest);
//! assert!(answer[cover.row] >= 30, "an upper bound");
//! # Ok::<(), umbel_net::Error>(())
//! ```

use crate::{Error, Result};
use umbel::Digest;
use umbel::hash::reduce;

/// A table of counters in rows, with a hash function for each row.
#[derive(Clone, Debug)]
pub struct Table {
    rows: usize,
    cells: usize,
    counts: Vec<u64>,
}

impl Table {
    /// Returns an empty table.
    ///
    /// # Errors
    ///
    /// Fails if `rows` is not within 1 to 64, or `cells` not within 1 to 2^24.
    pub fn new(rows: usize, cells: usize) -> Result<Table> {
        if !(1..=64).contains(&rows) {
            return Err(Error::parameter("rows", rows, "a number from 1 to 64"));
        }
        if !(1..=1 << 24).contains(&cells) {
            return Err(Error::parameter("cells", cells, "a number from 1 to 2^24"));
        }
        Ok(Table { rows, cells, counts: vec![0; rows * cells] })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the cell of a digest in a row. Anyone can compute it.
    pub fn cell(&self, row: usize, digest: Digest) -> usize {
        reduce(digest.salted(row as u64).get(), self.cells as u64) as usize
    }

    /// Counts one occurrence of a digest.
    pub fn record(&mut self, digest: Digest) {
        for row in 0..self.rows {
            let cell = self.cell(row, digest);
            let count = &mut self.counts[row * self.cells + cell];
            *count = count.saturating_add(1);
        }
    }

    /// Returns Bob's answer: the value of the digest's cell in each row.
    pub fn query(&self, digest: Digest) -> Vec<u64> {
        (0..self.rows).map(|row| self.counts[row * self.cells + self.cell(row, digest)]).collect()
    }

    /// Returns the first row in which two digests share a cell.
    pub fn shared_row(&self, one: Digest, other: Digest) -> Option<usize> {
        (0..self.rows).find(|row| self.cell(*row, one) == self.cell(*row, other))
    }

    /// Returns Bob's conclusion: the digests in `known` that share a cell with every digest in
    /// `asked`, one of which Alice may be after.
    pub fn candidates<'a>(&self, asked: &[Digest], known: &'a [Digest]) -> Vec<&'a Digest> {
        let shares = |one: &Digest| asked.iter().all(|other| self.shared_row(*one, *other).is_some());
        known.iter().filter(|one| shares(one)).collect()
    }
}

/// A digest to ask for in place of the wanted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The digest to ask for.
    pub digest: Digest,
    /// The row in which it shares a cell with the wanted digest.
    pub row: usize,
    /// The number of digests that were tried.
    pub tries: u64,
}

/// Searches innocent digests for one that shares a cell with the wanted digest. About one in
/// `cells` / `rows` does.
pub fn cover(table: &Table, wanted: Digest, innocent: impl IntoIterator<Item = Digest>) -> Option<Cover> {
    (1..).zip(innocent).find_map(|(tries, digest)| {
        let row = table.shared_row(wanted, digest).filter(|_| digest != wanted)?;
        Some(Cover { digest, row, tries })
    })
}
