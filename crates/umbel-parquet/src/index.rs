//! An index of a column: which of thousands of files may hold a value, without opening any.
//!
//! The index is one file beside the data, as [`umbel_text::index`] describes it. It has a filter of
//! the values of each file, and the type of the column there, because files of one directory may
//! store a column in different types.
//!
//! ```no_run
//! use umbel_parquet::index::{Tables, query};
//! use umbel_text::index::{Column, Index, Options, build_column};
//!
//! let column = Column { name: "customer".into(), rate: 0.01 };
//! build_column("orders.idx".as_ref(), &["orders".into()], &column, &Tables::default(), &Options::default())?;
//! let index = Index::open("orders.idx")?;
//! for file in index.select(&query(&index, b"1042")?)?.named() {
//!     println!("{} may have it", file.display());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::error::{Error, Result};
use crate::file::ParquetFile;
use crate::footer::SIGNATURE;
use crate::values::ValueType;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use umbel::internals::sync;
use umbel_text::index::{ColumnReader, ColumnValues, Index, Query, key};

/// Reads the values of a column for an index. A file that does not begin like a Parquet file is not a
/// table, whatever its name is.
#[derive(Default)]
pub struct Tables {
    /// The columns of a table without the one that was asked for.
    others: Mutex<Option<Vec<String>>>,
}

impl Tables {
    /// Returns the columns of a table that did not have the column, if there was one.
    pub fn other_columns(&self) -> Option<Vec<String>> {
        sync::lock(&self.others).clone()
    }
}

impl ColumnReader for Tables {
    fn read(&self, file: &File, column: &str, values: &mut ColumnValues) -> io::Result<Option<String>> {
        if !has_signature(file)? {
            return Ok(None);
        }
        let mut read = || -> Result<Option<String>> {
            let copy = file.try_clone().map_err(Error::io(Path::new(""), "open"))?;
            let file = ParquetFile::from_file(PathBuf::new(), copy)?;
            let column = match file.column(column) {
                Ok(column) => column,
                Err(Error::NoColumn { columns, .. }) => {
                    *sync::lock(&self.others) = Some(columns);
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            column.check_text(&file)?;
            for row_group in 0..file.row_groups() {
                file.each_distinct(row_group, &column, |value| values.add(value))?;
            }
            Ok(Some(column.values().name()))
        };
        // The index names the path.
        read().map_err(|error| match error {
            Error::Io { source, .. } => source,
            error => io::Error::new(io::ErrorKind::InvalidData, error.without_path()),
        })
    }
}

/// Returns whether a file begins like a Parquet file.
fn has_signature(file: &File) -> io::Result<bool> {
    let mut start = [0; SIGNATURE.len()];
    match file.read_exact_at(&mut start, 0) {
        Ok(()) => Ok(start == SIGNATURE),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns whether a file of which nothing else is known may be a table: its name ends like that of
/// a Parquet file, or it begins like one, or it cannot be read.
pub fn may_be_table(path: &Path) -> bool {
    let by_name = path.extension().is_some_and(|extension| {
        ["parquet", "parq", "pq"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    });
    by_name || File::open(path).and_then(|file| has_signature(&file)).unwrap_or(true)
}

/// Returns the query for files that may hold the value for which a text stands.
///
/// # Errors
///
/// Fails if the index is not one of a column, or the text is not a value of any type that the column
/// has in the files.
pub fn query(index: &Index, text: &[u8]) -> Result<Query> {
    index.column().map_err(Error::Index)?;
    let (mut keys, mut refused) = (Vec::new(), None);
    for name in index.column_types() {
        // A newer version may know more types, whose files cannot be ruled out.
        let Some(values) = ValueType::from_name(name) else { return Ok(Query::anything()) };
        match values.value(text) {
            Ok(value) => keys.extend(value.encodings().map(key)),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match refused {
        Some(error) if keys.is_empty() => Err(error),
        _ => Ok(Query::any_key(keys)),
    }
}
