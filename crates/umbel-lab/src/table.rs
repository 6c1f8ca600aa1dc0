//! Figures in rows and columns, as CSV has them.

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

    /// The CSV file.
    pub fn to_csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns)?;
        for row in &self.rows {
            writer.write_record(row)?;
        }
        writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))
    }
}
