//! Columns of Parquet files: found by name, and asked for values given as text.

mod lines;
mod values;

pub use lines::ColumnLines;
pub use values::Values;

use crate::input::name;
use crate::report::other_names;
use crate::terminal::output;
use anyhow::{Error, Result};
use rayon::prelude::*;
use std::path::PathBuf;
use umbel_parquet::{Column, ParquetFile};

/// The number of files that are read in parallel before their results are printed.
const FILES_PER_BATCH: usize = 256;

/// Returns a column by its dotted path; the error lists columns with similar names.
pub fn find(file: &ParquetFile, path: &str) -> Result<Column> {
    file.column(path).map_err(|error| match &error {
        umbel_parquet::Error::NoColumn { columns, .. } => {
            let names: Vec<&str> = columns.iter().map(String::as_str).collect();
            Error::msg(format!("{error}; {}", other_names(path, &names)))
        }
        _ => error.into(),
    })
}

/// Calls `read` for all files, many at a time, and passes the results to `print` in the order of the
/// files. A file that cannot be read is reported, and the others are read nevertheless; any other
/// error ends this. Returns whether all files were read.
pub fn for_each_file<T: Send>(
    files: &[PathBuf],
    read: impl Fn(ParquetFile) -> Result<T> + Sync,
    mut print: impl FnMut(&PathBuf, T) -> Result<()>,
) -> Result<bool> {
    let mut all = true;
    for batch in files.chunks(FILES_PER_BATCH) {
        let results: Vec<_> = batch.par_iter().map(|path| read(ParquetFile::open(path)?)).collect();
        for (path, result) in batch.iter().zip(results) {
            match result {
                Ok(result) => print(path, result)?,
                Err(error) if is_of_one_file(&error) => {
                    output::error(format_args!("{error:#}"));
                    all = false;
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(all)
}

/// Returns whether an error is about the contents of a single file. A value of the wrong type is
/// wrong for all.
fn is_of_one_file(error: &Error) -> bool {
    error.downcast_ref().is_none_or(|error| !matches!(error, umbel_parquet::Error::NotAValue { .. }))
}

/// Returns the name of a column in a file, for messages.
fn column_name(file: &ParquetFile, column: &Column) -> String {
    format!("column {} of {}", column.path(), name(file.path()))
}
