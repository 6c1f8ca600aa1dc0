//! Tables of numbers, written as CSV.

use crate::{Error, Result};

/// A table of an experiment; the report writes it to a CSV file of the same name.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name of the file, without its extension. Tables of times have `time` in their name, because
    /// they differ from run to run.
    pub name: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Cells of each row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table.
    pub fn new(name: &str, columns: &[&str]) -> Table {
        Table {
            name: name.into(),
            columns: columns.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// Returns the bytes of the CSV file.
    ///
    /// # Errors
    ///
    /// [`Error::Table`] if the number of cells of a row differs from that of the header.
    pub fn to_csv(&self) -> Result<Vec<u8>> {
        let write = || {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(&self.columns)?;
            for row in &self.rows {
                writer.write_record(row)?;
            }
            writer.into_inner().map_err(|error| error.into_error())
        };
        write().map_err(|source| Error::Table { name: self.name.clone(), source })
    }
}
