//! Texts as values of columns, which are read once for each type of column.

use super::column_name;
use crate::input::{name, read_whole};
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use umbel::internals::sync::lock;
use umbel_parquet::values::{Value, ValueType};
use umbel_parquet::{Column, ParquetFile};

/// Texts, and the values that they are in columns of each type.
pub struct Values {
    texts: Vec<Vec<u8>>,
    /// The name of the list that the texts come from.
    list: Option<String>,
    by_type: Mutex<HashMap<ValueType, Arc<[Value]>>>,
}

impl Values {
    /// Takes a single text.
    pub fn of_text(text: Vec<u8>) -> Values {
        Values { texts: vec![text], list: None, by_type: Mutex::default() }
    }

    /// Reads a list with a text in each line; `-` is standard input.
    pub fn read(list: &Path) -> Result<Values> {
        let bytes = read_whole(list)?;
        let whole = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        if bytes.is_empty() {
            bail!("there is no value in {}", name(list));
        }
        let texts = whole.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        Ok(Values { texts, list: Some(name(list)), by_type: Mutex::default() })
    }

    /// Returns the texts.
    pub fn texts(&self) -> &[Vec<u8>] {
        &self.texts
    }

    /// Returns the values that the texts are in a column.
    pub fn of_column(&self, file: &ParquetFile, column: &Column) -> Result<Arc<[Value]>> {
        let mut by_type = lock(&self.by_type);
        if let Some(values) = by_type.get(column.values()) {
            return Ok(Arc::clone(values));
        }
        let read = |(number, text): (usize, &Vec<u8>)| {
            column.values().value(text).with_context(|| match &self.list {
                Some(list) => format!("line {} of {list}, for {}", number + 1, column_name(file, column)),
                None => column_name(file, column),
            })
        };
        let values: Result<Vec<Value>> = self.texts.iter().enumerate().map(read).collect();
        let values: Arc<[Value]> = values?.into();
        by_type.insert(column.values().clone(), Arc::clone(&values));
        Ok(values)
    }
}
