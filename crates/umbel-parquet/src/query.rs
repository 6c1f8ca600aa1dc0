//! The row groups of a file that may hold a value.

use crate::bounds::Bounds;
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
    /// Returns the row groups that may hold each of these values, in the order of the values. A row
    /// group is excluded by its filter, or by the least and the greatest value that the footer has.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or has a damaged filter of this column.
    ///
    /// # Panics
    ///
    /// Panics if the column is of another file.
    pub fn find(&self, column: &Column, values: &[Value]) -> Result<Vec<Found>> {
        let mut all = Vec::new();
        for row_group in 0..self.row_groups() {
            // A damaged filter is an error, even if the bounds leave no value to ask it for.
            let filter = self.filter(row_group, column)?;
            let bounds = Bounds::new(self, row_group, column);
            let within =
                values.iter().enumerate().filter(|(_, value)| !bounds.exclude(column.values(), value));
            let Some(filter) = filter else {
                all.extend(within.map(|(value, _)| Found { value, row_group }));
                continue;
            };
            let (mut hashes, mut indexes) = (Vec::new(), Vec::new());
            for (index, value) in within {
                let (hash, other) = value.hashes();
                for hash in [Some(hash), other].into_iter().flatten() {
                    hashes.push(hash);
                    indexes.push(index);
                }
            }
            filter.find(&hashes, |at| all.push(Found { value: indexes[at], row_group }))?;
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}
