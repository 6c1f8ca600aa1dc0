//! Lines that are a key and its value.

use super::{InputArgs, LineLimit, Separator, separator};
use crate::args::{headings, number};
use anyhow::Result;
use clap::Args;
use memchr::memmem;
use std::path::PathBuf;

/// Where pairs come from, and how a line is split into key and value.
#[derive(Args, Clone, Debug)]
pub struct PairArgs {
    /// Files with a key, a tab and a value on each line; `-` or no file means standard input. Files
    /// compressed with gzip or zstd are decompressed
    #[arg(value_name = "PAIRS")]
    inputs: Vec<PathBuf>,

    /// Separate key and value by the first TEXT in the line (default: a tab; \t, \n, \0 and \\ are
    /// understood)
    #[arg(short, long, value_name = "TEXT", value_parser = separator, help_heading = headings::KEYS)]
    delimiter: Option<Separator>,

    /// Remove white space, including a carriage return, from both ends of key and value
    #[arg(long, help_heading = headings::KEYS)]
    trim: bool,

    /// Convert the key to lower case
    #[arg(long, help_heading = headings::KEYS)]
    lower: bool,

    /// Decode the key from hexadecimal
    #[arg(long, help_heading = headings::KEYS)]
    hex: bool,

    /// End lines with a zero byte instead of a newline
    #[arg(short = '0', long, help_heading = headings::INPUT)]
    null: bool,

    #[command(flatten)]
    max_line: LineLimit,

    /// Number of threads (default: all processors)
    #[arg(short = 'j', long, value_name = "N", value_parser = number::threads, help_heading = headings::INPUT)]
    threads: Option<usize>,
}

impl PairArgs {
    /// Returns the same inputs, with the first field as the key.
    pub fn keys(&self) -> InputArgs {
        InputArgs {
            inputs: self.inputs.clone(),
            keys: None,
            funnel: None,
            null: self.null,
            delimiter: self.delimiter.clone(),
            field: Some("1".to_string()),
            header: false,
            print_field: false,
            csv: false,
            parquet: None,
            trim: self.trim,
            lower: self.lower,
            hex: self.hex,
            max_line: self.max_line,
            threads: self.threads,
        }
    }

    /// Returns the value in a record; `None` if the separator is missing.
    pub fn value<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let separator = self.delimiter.as_ref().map_or(&b"\t"[..], |Separator(bytes)| bytes);
        let end = match separator {
            &[byte] => memchr::memchr(byte, record)?,
            _ => memmem::find(record, separator)?,
        };
        let value = &record[end + separator.len()..];
        Some(if self.trim { value.trim_ascii() } else { value })
    }

    /// Returns the separator for messages.
    pub fn separator(&self) -> String {
        match &self.delimiter {
            Some(Separator(bytes)) => format!("{:?}", String::from_utf8_lossy(bytes)),
            None => "tab".to_string(),
        }
    }

    /// Returns the key of a record; `None` if it has none.
    pub fn key(&self, record: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut key = Vec::new();
        let found = self.keys().key_spec()?.append_key(record, 0, &mut key, &mut Vec::new(), &mut Vec::new());
        Ok(found.ok().map(|()| key))
    }
}
