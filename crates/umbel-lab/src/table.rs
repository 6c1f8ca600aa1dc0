//! Figures in rows and columns, as CSV has them.

use crate::{Error, Result};

/// A table of an experiment; it becomes a CSV file of the same name.
#[derive(Clone, Debug)]
pub struct Table {
    /// The name of the file, without its ending. What holds times has `time` in it: it differs from run to run.
    pub name: String,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new(name: &str, columns: &[&str]) -> Table {
        Table {
            name: name.into(),
            columns: columns.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn add<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(cells.into());
    }

    /// Returns the bytes of the CSV file.
    ///
    /// # Errors
    ///
    /// [`Error::Table`] if a row has another number of cells than the header.
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
