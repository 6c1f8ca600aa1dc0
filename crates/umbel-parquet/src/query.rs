//! The row groups of a file that may hold a value.

use crate::error::Result;
use crate::file::{Column, ParquetFile};
use crate::values::Value;

/// A row group that may hold a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The index of the value.
    pub value: usize,
    /// The number of the row group, from 0.
    pub row_group: usize,
}

impl ParquetFile {
    /// Returns the row groups that may hold each of these values: those whose filter has it, and
    /// those without a filter. The pairs are in the order of the values.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or has a damaged filter of this column.
    ///
    /// # Panics
    ///
    /// Panics if the column is of another file.
    pub fn find(&self, column: &Column, values: &[Value]) -> Result<Vec<Found>> {
        let hashes: Vec<u64> = values.iter().map(|value| value.hashes().0).collect();
        // Only zeros have a second hash, so that there are few.
        let others: Vec<(usize, u64)> =
            values.iter().enumerate().filter_map(|(index, value)| Some((index, value.hashes().1?))).collect();
        let mut all = Vec::new();
        for row_group in 0..self.row_groups() {
            let mut found = |value| all.push(Found { value, row_group });
            match self.filter(row_group, column)? {
                None => (0..values.len()).for_each(found),
                Some(filter) => {
                    filter.find(hashes.iter().copied(), &mut found)?;
                    filter.find(others.iter().map(|(_, hash)| *hash), |index| found(others[index].0))?;
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}
