//! A block taken apart: records, and the key of each.

use super::blocks::Block;
use super::shape::{Lack, Shape};
use std::ops::Range;
use umbel::{Arena, Batch, Result};

/// Memory that a thread needs to take blocks apart, again and again.
#[derive(Default)]
pub struct Scratch {
    /// Where each record starts, and where the last one ends.
    records: Vec<u32>,
    keys: Strings,
    printed: Strings,
    /// The record of each key.
    kept: Vec<u32>,
    unquoted: Vec<u8>,
    skipped: Skipped,
}

/// Byte strings one after the other.
#[derive(Default)]
pub struct Strings {
    bytes: Vec<u8>,
    /// Where each string starts, and where the last one ends.
    offsets: Vec<u32>,
}

impl Strings {
    fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.clear();
        self.offsets.push(0);
    }

    /// Ends a string.
    fn end(&mut self) {
        self.offsets.push(self.bytes.len() as u32);
    }

    /// Returns the strings as a batch of keys.
    pub fn keys(&self) -> Result<Arena<'_, u32>> {
        Arena::new(&self.bytes, &self.offsets)
    }

    fn get(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[self.offsets[range.start] as usize..self.offsets[range.end] as usize]
    }
}

/// Records without a key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Skipped {
    /// How many lack the field, and how many are not hexadecimal.
    pub no_field: u64,
    pub not_hex: u64,
    /// The first of them, counted from the start of the block.
    pub first: Option<u64>,
}

/// The records of a block and their keys.
pub struct Lot<'a> {
    block: &'a Block,
    shape: &'a Shape,
    scratch: &'a Scratch,
}

impl<'a> Lot<'a> {
    /// Takes a block apart.
    pub fn new(block: &'a Block, shape: &'a Shape, scratch: &'a mut Scratch) -> Result<Lot<'a>> {
        scratch.split(block, shape)?;
        if !shape.is_plain() {
            scratch.shape(block, shape);
        }
        Ok(Lot { block, shape, scratch })
    }

    /// How many records there are, with and without a key.
    pub fn records(&self) -> usize {
        self.scratch.records.len() - 1
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        if self.shape.is_plain() { self.records() } else { self.scratch.kept.len() }
    }

    /// The keys.
    pub fn keys(&self) -> Result<Arena<'a, u32>> {
        let scratch = self.scratch;
        if self.shape.is_plain() {
            Arena::separated(self.block.bytes(), &scratch.records)
        } else {
            scratch.keys.keys()
        }
    }

    /// Copies the keys, so that they outlive the block.
    pub fn to_keys(&self) -> Result<Strings> {
        let keys = self.keys()?;
        let mut copies = Strings::default();
        copies.clear();
        for at in 0..keys.len() {
            keys.with_bytes(at, |key| copies.bytes.extend_from_slice(key));
            copies.end();
        }
        Ok(copies)
    }

    pub fn skipped(&self) -> Skipped {
        if self.shape.is_plain() { Skipped::default() } else { self.scratch.skipped }
    }

    /// Which of the inputs this comes from, the first being 0.
    pub fn input(&self) -> usize {
        self.block.input
    }

    /// All records, each with its end.
    pub fn bytes(&self) -> &[u8] {
        &self.block.bytes()[self.block.start()..]
    }

    /// The record of a key, without its end, and its number in the block, from 0.
    pub fn record(&self, key: usize) -> (usize, &[u8]) {
        let record = self.record_of(key);
        let [start, end] = [record, record + 1].map(|record| self.scratch.records[record] as usize);
        (record, &self.block.bytes()[start..end - 1])
    }

    /// Appends what is printed for one key, without a line end.
    pub fn print(&self, key: usize, out: &mut Vec<u8>) {
        if self.shape.print_field {
            out.extend_from_slice(self.scratch.printed.get(key..key + 1));
        } else {
            out.extend_from_slice(self.record(key).1);
        }
    }

    /// Appends what is printed for a run of keys, each with its line end.
    pub fn print_lines(&self, keys: Range<usize>, out: &mut Vec<u8>) {
        let [first, last] = [keys.start, keys.end - 1].map(|key| self.record_of(key));
        if !self.shape.print_field && last - first == keys.len() - 1 {
            // Neighbours: one copy for all of them.
            let [start, end] = [first, last + 1].map(|record| self.scratch.records[record] as usize);
            out.extend_from_slice(&self.block.bytes()[start..end]);
        } else {
            for key in keys {
                self.print(key, out);
                out.push(self.shape.line_end);
            }
        }
    }

    /// Everything that can be printed, in a form that outlives the block.
    pub fn to_lines(&self) -> Lines {
        let mut lines = Lines { bytes: Vec::with_capacity(self.block.bytes().len()), starts: vec![0] };
        if self.shape.is_plain() {
            let start = self.block.start() as u32;
            lines.bytes.extend_from_slice(&self.block.bytes()[self.block.start()..]);
            lines.starts = self.scratch.records.iter().map(|record| record - start).collect();
        } else {
            for key in 0..self.len() {
                self.print(key, &mut lines.bytes);
                lines.bytes.push(self.shape.line_end);
                lines.starts.push(lines.bytes.len() as u32);
            }
        }
        lines
    }

    fn record_of(&self, key: usize) -> usize {
        if self.shape.is_plain() { key } else { self.scratch.kept[key] as usize }
    }
}

/// Lines to print, each with its end.
pub struct Lines {
    bytes: Vec<u8>,
    /// Where each starts, and where the last one ends.
    starts: Vec<u32>,
}

impl Lines {
    pub fn get(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[self.starts[range.start] as usize..self.starts[range.end] as usize]
    }
}

impl Scratch {
    fn split(&mut self, block: &Block, shape: &Shape) -> Result<()> {
        self.records.clear();
        self.records.push(block.start() as u32);
        if shape.csv {
            self.records.extend_from_slice(block.ends());
        } else {
            umbel::key::split_lines(block.bytes(), shape.line_end, &mut self.records)?;
            // A header is a line too, but not a record.
            let header = self.records.get(1) == Some(&(block.start() as u32)) && block.start() > 0;
            self.records.drain(1..1 + usize::from(header));
        }
        Ok(())
    }

    fn shape(&mut self, block: &Block, shape: &Shape) {
        let Scratch { records, keys, printed, kept, unquoted, skipped } = self;
        keys.clear();
        printed.clear();
        kept.clear();
        *skipped = Skipped::default();
        for (number, ends) in records.windows(2).enumerate() {
            let record = &block.bytes()[ends[0] as usize..ends[1] as usize - 1];
            match shape.key(record, block.field(), &mut keys.bytes, &mut printed.bytes, unquoted) {
                Ok(()) => {
                    keys.end();
                    printed.end();
                    kept.push(number as u32);
                }
                Err(lack) => {
                    match lack {
                        Lack::Field => skipped.no_field += 1,
                        Lack::Hex => skipped.not_hex += 1,
                    }
                    skipped.first.get_or_insert(number as u64);
                }
            }
        }
    }
}
