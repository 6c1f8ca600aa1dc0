//! Asking how often something was seen, without saying what: as far as that goes.
//!
//! Bob counts in a [`Table`] whose hash is public. Alice wants to know of X and asks for Y, which nobody cares about and
//! which shares a cell with X ([`cover`]). Bob answers with the values of Y's cells, and one of them is an upper bound for
//! X.
//!
//! This is a small disguise and no more. Bob learns that X is among the things that share a cell with Y, which are about
//! `rows` of every `cells`. If there is more than one row, whoever asks again for the same X with another cover leaves him
//! what is common to both, and after three questions mostly X alone ([`Table::candidates`]). And Bob's answer tells Alice
//! sums about all the others in those cells, whether he wants that or not.
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

/// Counters in rows, with a hash function for each row.
#[derive(Clone, Debug)]
pub struct Table {
    rows: usize,
    cells: usize,
    counts: Vec<u64>,
}

impl Table {
    /// An empty one.
    pub fn new(rows: usize, cells: usize) -> Result<Table> {
        if !(1..=64).contains(&rows) {
            return Err(Error::parameter("rows", rows, "a number from 1 to 64"));
        }
        if !(1..=1 << 24).contains(&cells) {
            return Err(Error::parameter("cells", cells, "a number from 1 to 2^24"));
        }
        Ok(Table { rows, cells, counts: vec![0; rows * cells] })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The cell of something in a row: everybody can compute it.
    pub fn cell(&self, row: usize, digest: Digest) -> usize {
        reduce(digest.salted(row as u64).get(), self.cells as u64) as usize
    }

    /// Something was seen.
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

    /// The first row in which two things share their cell.
    pub fn shared_row(&self, one: Digest, other: Digest) -> Option<usize> {
        (0..self.rows).find(|row| self.cell(*row, one) == self.cell(*row, other))
    }

    /// What Bob can conclude: which of the things he knows are perhaps what somebody is after who asked for these.
    pub fn candidates<'a>(&self, asked: &[Digest], known: &'a [Digest]) -> Vec<&'a Digest> {
        let shares = |one: &Digest| asked.iter().all(|other| self.shared_row(*one, *other).is_some());
        known.iter().filter(|one| shares(one)).collect()
    }
}

/// Something to ask for in place of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// What is asked for.
    pub digest: Digest,
    /// The row in which it shares a cell with what is wanted.
    pub row: usize,
    /// How many were tried.
    pub tries: u64,
}

/// Looks among innocent things for one that shares a cell with what is wanted. About one in `cells` / `rows` does.
pub fn cover(table: &Table, wanted: Digest, innocent: impl IntoIterator<Item = Digest>) -> Option<Cover> {
    (1..).zip(innocent).find_map(|(tries, digest)| {
        let row = table.shared_row(wanted, digest).filter(|_| digest != wanted)?;
        Some(Cover { digest, row, tries })
    })
}
