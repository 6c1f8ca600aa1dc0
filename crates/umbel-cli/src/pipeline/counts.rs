//! The numbers of records and keys read, of records without a key, and of the lines of each input.

use crate::input::{LongLine, Records, Skipped};
use crate::terminal::output::warn;
use anyhow::{Error, Result, bail};
use umbel::foreign::Funnel;

/// The number of records and keys that were read.
#[derive(Clone, Copy, Debug, Default)]
pub struct InputCounts {
    pub records: u64,
    pub keys: u64,
    no_field: u64,
    not_hex: u64,
    unfit: u64,
    funnel: Option<Funnel>,
    /// The number of the first record without a key, from 1 over all inputs, without headers.
    first_skipped: Option<u64>,
}

impl InputCounts {
    /// Counts the records of a block.
    pub fn from_records(records: &Records) -> InputCounts {
        let Skipped { no_field, not_hex, unfit, first } = records.skipped();
        let (funnel, first_skipped) = (records.funnel(), first.map(|first| first + 1));
        let (records, keys) = (records.record_count() as u64, records.key_count() as u64);
        InputCounts { records, keys, no_field, not_hex, unfit, funnel, first_skipped }
    }

    /// Adds the counts of the next block.
    pub fn add(&mut self, next: InputCounts) {
        let first = next.first_skipped.map(|first| first + self.records);
        self.first_skipped = self.first_skipped.or(first);
        self.records += next.records;
        self.keys += next.keys;
        self.no_field += next.no_field;
        self.not_hex += next.not_hex;
        self.unfit += next.unfit;
        self.funnel = next.funnel;
    }

    /// Warns about records without a key; fails if no record has one.
    pub fn checked(self) -> Result<InputCounts> {
        let Some(first) = self.first_skipped else { return Ok(self) };
        let skipped = self.no_field + self.not_hex + self.unfit;
        let (one, lines) = (skipped == 1, if skipped == 1 { "line" } else { "lines" });
        let (are, lack) = if one { ("is", "lacks") } else { ("are", "lack") };
        let reasons = [
            (self.no_field, format!("{lack} the field")),
            (self.not_hex, format!("{are} not hexadecimal")),
            (self.unfit, format!("{are} not {}", self.funnel.map_or("", |funnel| form(funnel, one)))),
        ];
        let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
        let lack = reasons.map(|(_, lack)| lack).collect::<Vec<_>>().join(" or ");
        if self.keys == 0 {
            let see = match (self.no_field, self.not_hex) {
                (0, 0) => "--funnel",
                (0, _) => "--hex",
                _ => "-F, -d, --csv and --hex",
            };
            bail!("all {skipped} {lines} {lack}: see {see}");
        }
        warn(format_args!("skipped {skipped} {lines} that {lack}; the first is line {first} of the input"));
        Ok(self)
    }
}

/// Describes one key, or several, that the funnel takes.
fn form(funnel: Funnel, one: bool) -> &'static str {
    match funnel {
        Funnel::Long if one => "a whole number of 64 bits",
        Funnel::Long => "whole numbers of 64 bits",
        Funnel::Int if one => "a whole number of 32 bits",
        Funnel::Int => "whole numbers of 32 bits",
        _ => "UTF-8",
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
