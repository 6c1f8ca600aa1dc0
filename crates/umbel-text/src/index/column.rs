//! Indexes of a column of table files, whose keys are the values of the column.
//!
//! The index does not know the format of the tables: a [`ColumnReader`] does. A file gets one
//! filter of the distinct values of its column, or several if there are millions. Its entry names
//! the type of the column, which may differ between files, so that a query can encode a value as
//! the reader did.

use super::reading::NewFilters;
use super::settings::{HASHER, check_rate};
use super::{Block, Query};
use crate::Result;
use std::collections::HashSet;
use std::fs::File;
use std::hash::BuildHasherDefault;
use std::io;
use umbel::Digest;

/// The settings of an index of a column. They are stored in the index and apply to updates.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The name of the column.
    pub name: String,
    /// The share of filters that have a value without containing it.
    pub rate: f64,
}

impl Column {
    pub(super) fn check(&self) -> Result<()> {
        check_rate(self.rate)
    }
}

/// Reads the values of a column from table files of one format.
pub trait ColumnReader: Sync {
    /// Passes the values of a column to `values`, in any order, and returns the type of the column:
    /// the text from which a query learns how to encode a value. Returns `None` if the file is not
    /// a table, or has no such column.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is damaged. It is then not in the index.
    fn read(&self, file: &File, column: &str, values: &mut ColumnValues) -> io::Result<Option<String>>;
}

/// The number of distinct values in a filter, unless they are the last ones of a file. It bounds the
/// memory for the values of a file.
const MAX_VALUES_PER_FILTER: usize = 1 << 22;

/// The values of the column of one file, as a [`ColumnReader`] finds them.
pub struct ColumnValues {
    seen: HashSet<u64, BuildHasherDefault<super::keys::Digested>>,
    /// The number of values since the last filter, repeated ones included.
    count: u64,
    cells: u64,
    hashes: u32,
    filters: NewFilters,
}

impl ColumnValues {
    pub(super) fn new(cells: u64, hashes: u32) -> ColumnValues {
        ColumnValues { seen: HashSet::default(), count: 0, cells, hashes, filters: Vec::new() }
    }

    /// Adds a value, as the bytes that [`key`] takes.
    pub fn add(&mut self, value: &[u8]) {
        self.count += 1;
        self.seen.insert(key(value).get());
        if self.seen.len() >= MAX_VALUES_PER_FILTER {
            self.end_filter();
        }
    }

    fn end_filter(&mut self) {
        let block = Block { bytes: self.count, lines: 0, keys: self.seen.len() as u64 };
        let digests = self.seen.drain().map(Digest::from_hash);
        self.filters.push(super::reading::filter(block, digests, self.cells, self.hashes));
        self.count = 0;
    }

    pub(super) fn finish(mut self) -> NewFilters {
        if self.count > 0 {
            self.end_filter();
        }
        self.filters
    }
}

/// Returns the key of a value.
pub fn key(value: &[u8]) -> Digest {
    HASHER.digest_bytes(value)
}

impl Query {
    /// Returns the query for files with at least one of these keys of a column.
    pub fn any_key(keys: impl IntoIterator<Item = Digest>) -> Query {
        Query { alternatives: keys.into_iter().map(|key| vec![key]).collect() }
    }

    /// Returns the query for which no file can be ruled out.
    pub fn anything() -> Query {
        Query { alternatives: vec![Vec::new()] }
    }

    /// Returns the query for files that match at least one of these.
    pub fn any_of(queries: impl IntoIterator<Item = Query>) -> Query {
        Query { alternatives: queries.into_iter().flat_map(|query| query.alternatives).collect() }
    }
}
