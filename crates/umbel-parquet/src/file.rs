//! A Parquet file: its columns, its row groups and their filters.

use crate::error::{Error, Result};
use crate::filter::ChunkFilter;
use crate::footer::{self, Footer};
use crate::values::ValueType;
use parquet::file::metadata::ParquetMetaData;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A Parquet file whose footer was read.
///
/// Filters are read when they are asked for, and data pages never.
pub struct ParquetFile {
    path: PathBuf,
    file: File,
    footer: Footer,
}

/// A column of a file.
#[derive(Clone, Debug)]
pub struct Column {
    index: usize,
    path: String,
    values: ValueType,
}

impl Column {
    /// Returns the place of the column among those of its file, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the dotted path of the column, such as `tags.list.element`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the type of its values.
    pub fn values(&self) -> &ValueType {
        &self.values
    }

    /// Fails if values of this column have no text: truth values, intervals and nested types.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::NoText`].
    pub fn check_text(&self, file: &ParquetFile) -> Result<()> {
        match self.values {
            ValueType::Boolean | ValueType::Other(_) => Err(Error::NoText {
                path: file.path.clone(),
                column: self.path.clone(),
                values: self.values.to_string(),
            }),
            _ => Ok(()),
        }
    }
}

impl ParquetFile {
    /// Opens a file and reads its footer.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is not a Parquet file, or has a footer that is encrypted,
    /// damaged, or describes columns in other files.
    pub fn open(path: impl Into<PathBuf>) -> Result<ParquetFile> {
        let path = path.into();
        let file = File::open(&path).map_err(Error::io(&path, "open"))?;
        ParquetFile::from_file(path, file)
    }

    /// Reads the footer of an open file. The path is for messages.
    ///
    /// # Errors
    ///
    /// Fails like [`open`](ParquetFile::open).
    pub fn from_file(path: PathBuf, file: File) -> Result<ParquetFile> {
        let about = file.metadata().map_err(Error::io(&path, "examine"))?;
        if !about.is_file() {
            return Err(Error::NotParquet { path });
        }
        let footer = footer::read(&path, &file, about.len())?;
        Ok(ParquetFile { path, file, footer })
    }

    /// Returns the path that the file was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the decoded footer.
    pub fn metadata(&self) -> &ParquetMetaData {
        &self.footer.metadata
    }

    /// Returns the position of the footer. Pages and filters end before it.
    pub fn footer_start(&self) -> u64 {
        self.footer.start
    }

    /// Returns the length of the footer.
    pub fn footer_length(&self) -> u64 {
        self.footer.length
    }

    /// Returns the number of row groups.
    pub fn row_groups(&self) -> usize {
        self.metadata().num_row_groups()
    }

    /// Returns the columns in the order of the file.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        let columns = self.metadata().file_metadata().schema_descr().columns();
        columns.iter().enumerate().map(|(index, column)| Column {
            index,
            path: column.path().string(),
            values: ValueType::of_column(column),
        })
    }

    /// Returns the column with this dotted path, or the only column below it: `tags` stands for
    /// `tags.list.element`.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::NoColumn`] if there is not exactly one.
    pub fn column(&self, path: &str) -> Result<Column> {
        let below =
            |column: &Column| column.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        let single = |wanted: &dyn Fn(&Column) -> bool| {
            let mut found = self.columns().filter(wanted);
            found.next().filter(|_| found.next().is_none())
        };
        single(&|column| column.path == path).or_else(|| single(&below)).ok_or_else(|| Error::NoColumn {
            path: self.path.clone(),
            column: path.to_owned(),
            columns: self.columns().map(|column| column.path).collect(),
        })
    }

    /// Returns the filter of a column in a row group, or `None` if it has none. Reads the header of
    /// the filter, and not its blocks.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or the filter does not lie between the start of the file
    /// and the footer, or is damaged or of an unknown kind.
    ///
    /// # Panics
    ///
    /// Panics if there is no such row group, or the column is of another file.
    pub fn filter(&self, row_group: usize, column: &Column) -> Result<Option<ChunkFilter<'_>>> {
        ChunkFilter::open(self, row_group, column)
    }
}
