//! The values of a column, decoded from its pages.

use crate::catch::catch;
use crate::error::{Error, Result};
use crate::file::{Column, ParquetFile};
use crate::pages::{Pages, Wanted};
use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{AsBytes, DataType};
use parquet::errors::{ParquetError, Result as Decoded};

/// The number of rows that are decoded at once.
const ROWS: usize = 1024;

impl ParquetFile {
    /// Calls `each` with every value of a column in a row group, in the order of the rows, in the
    /// bytes that a filter hashes. Nulls have no value, and a list has one for each element.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, the pages are damaged, encrypted or compressed in an
    /// unsupported way, or the column holds truth values.
    ///
    /// # Panics
    ///
    /// Panics if there is no such row group, or the column is of another file.
    pub fn each_value(&self, row_group: usize, column: &Column, each: impl FnMut(&[u8])) -> Result<()> {
        self.decode(row_group, column, Wanted::All, each)
    }

    /// Calls `each` with every value of a column in a row group, in any order and in fewer calls than
    /// [`each_value`](ParquetFile::each_value): values that the file stores once, in a dictionary, are
    /// passed once.
    ///
    /// # Errors
    ///
    /// Fails like [`each_value`](ParquetFile::each_value).
    ///
    /// # Panics
    ///
    /// Panics if there is no such row group, or the column is of another file.
    pub fn each_distinct(&self, row_group: usize, column: &Column, each: impl FnMut(&[u8])) -> Result<()> {
        self.decode(row_group, column, Wanted::Distinct, each)
    }

    fn decode(
        &self,
        row_group: usize,
        column: &Column,
        wanted: Wanted,
        mut each: impl FnMut(&[u8]),
    ) -> Result<()> {
        let chunk = self.metadata().row_group(row_group).column(column.index());
        let damaged = |what: String| {
            let what = format!("column {} in row group {row_group}: {what}", column.path());
            Error::damaged(self.path(), what)
        };
        if chunk.column_type() == Type::BOOLEAN {
            let (path, column) = (self.path().to_owned(), column.path().to_owned());
            return Err(Error::NoText { path, column, values: "boolean".to_string() });
        }
        // Some writers give 0 for a dictionary that is not there.
        let dictionary = chunk.dictionary_page_offset().filter(|offset| *offset >= 4);
        let start = dictionary.unwrap_or(i64::MAX).min(chunk.data_page_offset());
        let start = u64::try_from(start).ok().filter(|start| *start >= 4);
        let end = start.and_then(|start| start.checked_add_signed(chunk.compressed_size()));
        let range = start.zip(end).filter(|(start, end)| start <= end && *end <= self.footer_start());
        let range = range.ok_or_else(|| damaged("its pages are not before the footer".to_string()))?;
        let width = match chunk.column_type() {
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            _ => u64::try_from(chunk.column_descr().type_length()).unwrap_or(0),
        };
        let file = self.file().try_clone().map_err(Error::io(self.path(), "open"))?;
        let mut pages = Pages::new(file, chunk.compression(), range, wanted, width);
        let decoded = catch(|| {
            if wanted == Wanted::Distinct
                && let Some(dictionary) = pages.take_dictionary()?
            {
                each_plain(&dictionary, chunk.column_type(), width as usize, &mut each)?;
            }
            each_in_pages(get_column_reader(chunk.column_descr_ptr(), Box::new(pages)), &mut each)
        });
        decoded.map_err(|error| match error {
            ParquetError::General(what) | ParquetError::EOF(what) => damaged(what),
            error => damaged(error.to_string()),
        })
    }
}

/// Calls `each` with every value in plain encoding.
fn each_plain(mut bytes: &[u8], physical: Type, width: usize, each: &mut impl FnMut(&[u8])) -> Decoded<()> {
    if physical != Type::BYTE_ARRAY {
        bytes.chunks_exact(width.max(1)).for_each(each);
        return Ok(());
    }
    while !bytes.is_empty() {
        let value = bytes
            .split_first_chunk()
            .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
        let (value, rest) =
            value.ok_or_else(|| ParquetError::General("a value is longer than its page".into()))?;
        each(value);
        bytes = rest;
    }
    Ok(())
}

/// Calls `each` with every value in the pages that a reader gets.
fn each_in_pages(reader: ColumnReader, each: &mut impl FnMut(&[u8])) -> Decoded<()> {
    match reader {
        // Refused before.
        ColumnReader::BoolColumnReader(_) => Ok(()),
        ColumnReader::Int32ColumnReader(reader) => each_typed(reader, each),
        ColumnReader::Int64ColumnReader(reader) => each_typed(reader, each),
        ColumnReader::Int96ColumnReader(reader) => each_typed(reader, each),
        ColumnReader::FloatColumnReader(reader) => each_typed(reader, each),
        ColumnReader::DoubleColumnReader(reader) => each_typed(reader, each),
        ColumnReader::ByteArrayColumnReader(reader) => each_typed(reader, each),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => each_typed(reader, each),
    }
}

fn each_typed<T: DataType>(mut reader: ColumnReaderImpl<T>, each: &mut impl FnMut(&[u8])) -> Decoded<()> {
    let (mut levels, mut lists, mut values) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        levels.clear();
        lists.clear();
        values.clear();
        let (rows, _, _) = reader.read_records(ROWS, Some(&mut levels), Some(&mut lists), &mut values)?;
        values.iter().for_each(|value| each(value.as_bytes()));
        if rows == 0 {
            return Ok(());
        }
    }
}
