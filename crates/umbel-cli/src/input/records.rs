//! The records of a block, and the key of each.

use super::blocks::Block;
use super::key_spec::{KeySpec, NoKey};
use std::ops::Range;
use umbel::foreign::Funnel;
use umbel::{Arena, Batch, Result};

/// Buffers that a thread reuses to split one block after the other.
#[derive(Default)]
pub struct Scratch {
    /// The start of each record, and the end of the last one.
    records: Vec<u32>,
    keys: ByteStrings,
    printed: ByteStrings,
    /// The index of each key's record.
    key_records: Vec<u32>,
    unquoted: Vec<u8>,
    skipped: Skipped,
}

/// Byte strings stored one after the other.
#[derive(Default)]
pub struct ByteStrings {
    bytes: Vec<u8>,
    /// The start of each string, and the end of the last one.
    offsets: Vec<u32>,
}

impl ByteStrings {
    fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.clear();
        self.offsets.push(0);
    }

    /// Ends the string that was appended to `bytes`.
    fn finish_string(&mut self) {
        self.offsets.push(self.bytes.len() as u32);
    }

    /// Returns the length of all strings together.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the strings as a batch of keys.
    pub fn keys(&self) -> Result<Arena<'_, u32>> {
        Arena::new(&self.bytes, &self.offsets)
    }

    fn get(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[self.offsets[range.start] as usize..self.offsets[range.end] as usize]
    }
}

/// The records of a block that have no key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Skipped {
    /// The number of records without the key's field.
    pub no_field: u64,
    /// The number of records whose key is not hexadecimal.
    pub not_hex: u64,
    /// The number of records whose key does not have the form of the funnel.
    pub unfit: u64,
    /// The index of the first such record in the block.
    pub first: Option<u64>,
}

/// The records of a block and their keys.
pub struct Records<'a> {
    block: &'a Block,
    key_spec: &'a KeySpec,
    scratch: &'a Scratch,
}

impl<'a> Records<'a> {
    /// Splits a block into records and extracts their keys.
    pub fn new(block: &'a Block, key_spec: &'a KeySpec, scratch: &'a mut Scratch) -> Result<Records<'a>> {
        scratch.split(block, key_spec)?;
        if !key_spec.is_plain() {
            scratch.extract_keys(block, key_spec);
        }
        Ok(Records { block, key_spec, scratch })
    }

    /// Returns the number of records, with and without a key.
    pub fn record_count(&self) -> usize {
        self.scratch.records.len() - 1
    }

    /// Returns the number of records that have a key.
    pub fn key_count(&self) -> usize {
        if self.key_spec.is_plain() { self.record_count() } else { self.scratch.key_records.len() }
    }

    /// Returns the keys as a batch.
    pub fn keys(&self) -> Result<Arena<'a, u32>> {
        let scratch = self.scratch;
        if self.key_spec.is_plain() {
            Arena::separated(self.block.bytes(), &scratch.records)
        } else {
            scratch.keys.keys()
        }
    }

    /// Copies the keys, so that they outlive the block.
    pub fn to_keys(&self) -> Result<ByteStrings> {
        let keys = self.keys()?;
        let mut copies = ByteStrings::default();
        copies.clear();
        for at in 0..keys.len() {
            keys.with_bytes(at, |key| copies.bytes.extend_from_slice(key));
            copies.finish_string();
        }
        Ok(copies)
    }

    pub fn skipped(&self) -> Skipped {
        if self.key_spec.is_plain() { Skipped::default() } else { self.scratch.skipped }
    }

    /// Returns the form that every key must have, if the filter needs one.
    pub fn funnel(&self) -> Option<Funnel> {
        self.key_spec.funnel
    }

    /// Returns the index of the input that the block comes from.
    pub fn input(&self) -> usize {
        self.block.input
    }

    /// Returns the bytes of all records, each with its line end.
    pub fn bytes(&self) -> &[u8] {
        &self.block.bytes()[self.block.start()..]
    }

    /// Returns the index of a key's record in the block, and the record without its line end.
    pub fn record(&self, key: usize) -> (usize, &[u8]) {
        let record = self.record_of(key);
        let [start, end] = [record, record + 1].map(|record| self.scratch.records[record] as usize);
        (record, &self.block.bytes()[start..end - 1])
    }

    /// Appends the printed form of one key's record, without a line end.
    pub fn print(&self, key: usize, out: &mut Vec<u8>) {
        if self.key_spec.print_field {
            out.extend_from_slice(self.scratch.printed.get(key..key + 1));
        } else {
            out.extend_from_slice(self.record(key).1);
        }
    }

    /// Appends the printed form of a range of keys, each with its line end.
    pub fn print_lines(&self, keys: Range<usize>, out: &mut Vec<u8>) {
        let [first, last] = [keys.start, keys.end - 1].map(|key| self.record_of(key));
        if !self.key_spec.print_field && last - first == keys.len() - 1 {
            // The records are adjacent: copy them all at once.
            let [start, end] = [first, last + 1].map(|record| self.scratch.records[record] as usize);
            out.extend_from_slice(&self.block.bytes()[start..end]);
        } else {
            for key in keys {
                self.print(key, out);
                out.push(self.key_spec.line_end);
            }
        }
    }

    /// Copies the printed form of all keys, so that it outlives the block.
    pub fn to_lines(&self) -> OutputLines {
        let mut lines = OutputLines { bytes: Vec::with_capacity(self.block.bytes().len()), starts: vec![0] };
        if self.key_spec.is_plain() {
            let start = self.block.start() as u32;
            lines.bytes.extend_from_slice(&self.block.bytes()[self.block.start()..]);
            lines.starts = self.scratch.records.iter().map(|record| record - start).collect();
        } else {
            for key in 0..self.key_count() {
                self.print(key, &mut lines.bytes);
                lines.bytes.push(self.key_spec.line_end);
                lines.starts.push(lines.bytes.len() as u32);
            }
        }
        lines
    }

    fn record_of(&self, key: usize) -> usize {
        if self.key_spec.is_plain() { key } else { self.scratch.key_records[key] as usize }
    }
}

/// Lines to print, each with its line end.
pub struct OutputLines {
    bytes: Vec<u8>,
    /// The start of each line, and the end of the last one.
    starts: Vec<u32>,
}

impl OutputLines {
    pub fn get(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[self.starts[range.start] as usize..self.starts[range.end] as usize]
    }
}

impl Scratch {
    fn split(&mut self, block: &Block, key_spec: &KeySpec) -> Result<()> {
        self.records.clear();
        self.records.push(block.start() as u32);
        if key_spec.csv {
            self.records.extend_from_slice(block.ends());
        } else {
            umbel::key::split_lines(block.bytes(), key_spec.line_end, &mut self.records)?;
            // A header is a line, but not a record.
            let header = self.records.get(1) == Some(&(block.start() as u32)) && block.start() > 0;
            self.records.drain(1..1 + usize::from(header));
        }
        Ok(())
    }

    fn extract_keys(&mut self, block: &Block, key_spec: &KeySpec) {
        let Scratch { records, keys, printed, key_records, unquoted, skipped } = self;
        keys.clear();
        printed.clear();
        key_records.clear();
        *skipped = Skipped::default();
        for (number, ends) in records.windows(2).enumerate() {
            let record = &block.bytes()[ends[0] as usize..ends[1] as usize - 1];
            match key_spec.append_key(record, block.field(), &mut keys.bytes, &mut printed.bytes, unquoted) {
                Ok(()) => {
                    keys.finish_string();
                    printed.finish_string();
                    key_records.push(number as u32);
                }
                Err(reason) => {
                    match reason {
                        NoKey::MissingField => skipped.no_field += 1,
                        NoKey::NotHex => skipped.not_hex += 1,
                        NoKey::Unfit => skipped.unfit += 1,
                    }
                    skipped.first.get_or_insert(number as u64);
                }
            }
        }
    }
}
