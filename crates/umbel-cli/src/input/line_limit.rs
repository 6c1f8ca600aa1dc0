//! The limit on the length of lines, so that an input without line ends takes little memory.

use super::source::name;
use crate::args::{headings, number};
use crate::report::size;
use anyhow::anyhow;
use clap::Args;
use std::path::Path;
use std::{fmt, io};
use umbel_text::lines::{LineTooLong, MAX_LINE_BYTES};

/// The option `--max-line`.
#[derive(Args, Clone, Copy, Debug)]
pub struct LineLimit {
    /// Fail at a line longer than SIZE, up to 2GiB; a line has to fit into memory
    #[arg(
        long = "max-line",
        value_name = "SIZE",
        value_parser = number::line_bytes,
        default_value = DEFAULT,
        help_heading = headings::INPUT
    )]
    bytes: usize,
}

/// The value of [`MAX_LINE_BYTES`] in `--help`.
const DEFAULT: &str = "16MiB";

impl LineLimit {
    /// Returns the length of the longest line in bytes, without its end.
    pub fn bytes(self) -> usize {
        self.bytes
    }
}

impl Default for LineLimit {
    fn default() -> LineLimit {
        LineLimit { bytes: MAX_LINE_BYTES }
    }
}

/// Returns the remedy for a line that is too long, to be appended to its error; empty for other
/// errors.
pub fn max_line_hint(error: &io::Error) -> &'static str {
    if LineTooLong::from_error(error).is_some() { ": give a larger --max-line" } else { "" }
}

/// Returns the error of reading an input, with the remedy for a line that is too long.
pub fn read_failed(error: io::Error, path: &Path) -> anyhow::Error {
    let context = format!("cannot read {}", name(path));
    match max_line_hint(&error) {
        "" => anyhow::Error::new(error).context(context),
        hint => anyhow!("{context}: {error}{hint}"),
    }
}

/// The error of a line that is longer than the limit.
#[derive(Debug)]
pub struct LongLine {
    /// The name of the input.
    pub name: String,
    /// The index of the input.
    pub input: usize,
    /// The number of the line, from 1: at first counted from the start of its block, then by
    /// [`LongLine::after`] from the start of its input.
    pub line: u64,
    /// Whether records are CSV, of several lines perhaps.
    pub csv: bool,
    pub limit: usize,
}

impl LongLine {
    /// Returns the error of a line that comes after this many records of its input.
    pub fn after(self, records: u64) -> LongLine {
        LongLine { line: self.line + records, ..self }
    }
}

impl fmt::Display for LongLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LongLine { name, line, csv, limit, .. } = self;
        let (record, hint) = match csv {
            true => ("record", "is a quote never closed? Otherwise give a larger --max-line"),
            false => ("line", "give a larger --max-line, or see -0 for other line ends"),
        };
        write!(f, "{name}: {record} {line} is longer than {}: {hint}", size(*limit as u64))
    }
}

impl std::error::Error for LongLine {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_the_limit_of_the_library() {
        assert_eq!(number::line_bytes(DEFAULT), Ok(MAX_LINE_BYTES));
    }
}
