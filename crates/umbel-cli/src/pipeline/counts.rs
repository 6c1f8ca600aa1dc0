//! The numbers of records and keys read, of records without a key, and of the lines of each input.

use crate::input::{LongLine, Records, Skipped};
use crate::terminal::output::warn;
use anyhow::{Error, Result, bail};

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

/// Counts the lines of each input, to name a line in a message.
#[derive(Default)]
pub struct LineNumbers {
    input: usize,
    before: u64,
    records: u64,
}

impl LineNumbers {
    /// Moves on to the next block, which has this many records of this input.
    pub fn next_block(&mut self, input: usize, records: usize) {
        self.before = if input == self.input { self.before + self.records } else { 0 };
        (self.input, self.records) = (input, records as u64);
    }

    /// Returns the input and the line number, from 1, of a record of the present block.
    pub fn locate(&self, record: usize) -> (usize, u64) {
        (self.input, self.before + record as u64 + 1)
    }

    /// Completes the error of a line that is too long, which comes after all blocks so far, with
    /// the number of the line. Returns other errors unchanged.
    pub fn complete(&self, error: Error) -> Error {
        match error.downcast::<LongLine>() {
            Ok(long) if long.input == self.input => long.after(self.before + self.records).into(),
            Ok(long) => long.into(),
            Err(error) => error,
        }
    }
}
