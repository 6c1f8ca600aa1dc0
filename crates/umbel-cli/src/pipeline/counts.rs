//! The numbers of records and keys read, and of records without a key.

use crate::input::{Records, Skipped};
use crate::terminal::output::warn;
use anyhow::{Result, bail};

/// The number of records and keys that were read.
#[derive(Clone, Copy, Debug, Default)]
pub struct InputCounts {
    pub records: u64,
    pub keys: u64,
    no_field: u64,
    not_hex: u64,
    /// The number of the first record without a key, from 1 over all inputs, without headers.
    first_skipped: Option<u64>,
}

impl InputCounts {
    /// Counts the records of a block.
    pub fn from_records(records: &Records) -> InputCounts {
        let Skipped { no_field, not_hex, first } = records.skipped();
        let (records, keys) = (records.record_count() as u64, records.key_count() as u64);
        InputCounts { records, keys, no_field, not_hex, first_skipped: first.map(|first| first + 1) }
    }

    /// Adds the counts of the next block.
    pub fn add(&mut self, next: InputCounts) {
        let first = next.first_skipped.map(|first| first + self.records);
        self.first_skipped = self.first_skipped.or(first);
        self.records += next.records;
        self.keys += next.keys;
        self.no_field += next.no_field;
        self.not_hex += next.not_hex;
    }

    /// Warns about records without a key; fails if no record has one.
    pub fn checked(self) -> Result<InputCounts> {
        let Some(first) = self.first_skipped else { return Ok(self) };
        let skipped = self.no_field + self.not_hex;
        let lack = match (self.no_field, self.not_hex) {
            (1, 0) => "lacks the field",
            (_, 0) => "lack the field",
            (0, 1) => "is not hexadecimal",
            (0, _) => "are not hexadecimal",
            _ => "lack the field or are not hexadecimal",
        };
        let lines = if skipped == 1 { "line" } else { "lines" };
        if self.keys == 0 {
            let see = if self.no_field == 0 { "--hex" } else { "-F, -d, --csv and --hex" };
            bail!("all {skipped} {lines} {lack}: see {see}");
        }
        warn(format_args!("skipped {skipped} {lines} that {lack}; the first is line {first} of the input"));
        Ok(self)
    }
}
