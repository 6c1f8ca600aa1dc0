//! Tables of text: rows of a name and a value, and columns under a heading.

use crate::terminal::style::{DIM, Styled};
use std::fmt;

/// Rows of a name and a value.
#[derive(Default)]
pub struct Rows(Vec<(String, String)>);

impl Rows {
    pub fn add(&mut self, name: &str, value: impl ToString) {
        self.0.push((name.to_string(), value.to_string()));
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) + 2;
        for (name, value) in &self.0 {
            writeln!(f, "{}{value}", Styled(DIM, format!("{name:<width$}")))?;
        }
        Ok(())
    }
}

/// Columns under a heading; all but the first are right-aligned.
pub struct Columns {
    rows: Vec<Vec<String>>,
}

impl Columns {
    pub fn new(heading: &[&str]) -> Columns {
        Columns { rows: vec![heading.iter().map(ToString::to_string).collect()] }
    }

    pub fn add(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (i, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                line += &match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("  {cell:>width$}"),
                };
            }
            match i {
                0 => writeln!(f, "{}", Styled(DIM, line))?,
                _ => writeln!(f, "{line}")?,
            }
        }
        Ok(())
    }
}
