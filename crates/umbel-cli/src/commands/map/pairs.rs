//! Pairs of keys and values, read by many threads and handed on in the order of the input.

use super::values::{Outside, Values};
use crate::input::{Blocks, InputArgs, PairArgs, Records};
use crate::pipeline;
use crate::report::printable;
use anyhow::{Result, bail};
use std::collections::HashMap;
use std::ops::ControlFlow;
use umbel::{Digest, Hasher};

/// The pairs of a block. Each of its values is there once: where there are few, little is left to do in order.
pub struct Piece {
    pub digests: Vec<Digest>,
    /// For each pair, which of the values it has.
    codes: Vec<u32>,
    /// The values one after the other, in the order in which they appear.
    text: Vec<u8>,
    ends: Vec<usize>,
    /// The record in which each value appears first.
    firsts: Vec<usize>,
    /// The first record that is no pair, and why; those after it are not read.
    broken: Option<(usize, Broken)>,
    records: usize,
    input: usize,
}

/// Why a record is no pair.
enum Broken {
    /// Nothing separates key and value.
    NoValue,
    /// The key should be hexadecimal.
    NoKey,
}

impl Piece {
    pub fn of(args: &PairArgs, hasher: &Hasher, records: &Records) -> Result<Piece> {
        let mut piece = Piece {
            digests: hasher.digest_batch(&records.keys()?),
            codes: Vec::with_capacity(records.key_count()),
            text: Vec::new(),
            ends: Vec::new(),
            firsts: Vec::new(),
            // Every line has a first field, so that one without a key is not hexadecimal.
            broken: records.skipped().first.map(|first| (first as usize, Broken::NoKey)),
            records: records.record_count(),
            input: records.input(),
        };
        let mut known: HashMap<&[u8], u32> = HashMap::new();
        for key in 0..records.key_count() {
            let (number, record) = records.record(key);
            if piece.broken.as_ref().is_some_and(|(broken, _)| *broken < number) {
                break;
            }
            let Some(value) = args.value(record) else {
                piece.broken = Some((number, Broken::NoValue));
                break;
            };
            let next = known.len() as u32;
            let code = *known.entry(value).or_insert_with(|| {
                piece.text.extend_from_slice(value);
                piece.ends.push(piece.text.len());
                piece.firsts.push(number);
                next
            });
            piece.codes.push(code);
        }
        Ok(piece)
    }

    /// The different values, in the order in which they appear.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }

    /// The digests with their values, of which these are the numbers.
    pub fn pairs<'a>(&'a self, numbers: &'a [u64]) -> impl ExactSizeIterator<Item = (Digest, u64)> + 'a {
        self.digests.iter().zip(&self.codes).map(|(digest, code)| (*digest, numbers[*code as usize]))
    }
}

/// Counts the lines of each input, so that one can be named.
#[derive(Default)]
pub struct Lines {
    input: usize,
    before: u64,
    records: u64,
}

impl Lines {
    /// Goes on to the next block, of so many records of this input.
    pub fn enter(&mut self, input: usize, records: usize) {
        self.before = if input == self.input { self.before + self.records } else { 0 };
        (self.input, self.records) = (input, records as u64);
    }

    /// The input and the line, from 1, of a record of this block.
    pub fn of(&self, record: usize) -> (usize, u64) {
        (self.input, self.before + record as u64 + 1)
    }
}

/// Reads all pairs of blocks of these lines with the numbers of their values, block by block; a line that is none, and a value that there cannot
/// be, are refused by name. `also` makes something more of a block, for `sink`.
pub fn read<T: Send>(
    blocks: Blocks,
    args: &PairArgs,
    hasher: &Hasher,
    values: &mut Values,
    also: impl Fn(&Records) -> T + Sync,
    mut sink: impl FnMut(&mut Values, &Piece, T, &Lines) -> Result<()> + Send,
) -> Result<()> {
    let input = args.keys();
    let mut lines = Lines::default();
    pipeline::run(
        blocks,
        input.threads(),
        |_, records| Ok((Piece::of(args, hasher, records)?, also(records))),
        |(piece, more), _| {
            lines.enter(piece.input, piece.records);
            if let Err(Outside { value, why }) = values.check(&piece) {
                bail!("{}: {why}", place(&input, lines.of(piece.firsts[value])));
            }
            if let Some((broken, why)) = &piece.broken {
                let (at, separator) = (place(&input, lines.of(*broken)), args.separator());
                match why {
                    Broken::NoValue => bail!(
                        "{at}: there is no {separator} in it, so it has no value: write key, {separator} and value"
                    ),
                    Broken::NoKey => {
                        bail!("{at}: its key is not hexadecimal: correct it, or leave out --hex")
                    }
                }
            }
            sink(values, &piece, more, &lines)?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(())
}

/// A line of an input, in words.
pub fn place(input: &InputArgs, (number, line): (usize, u64)) -> String {
    format!("{}, line {line}", printable(input.name(number)))
}
