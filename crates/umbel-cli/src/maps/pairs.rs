//! Pairs of keys and values, read by several threads and passed on in the order of the input.

use super::Values;
use super::values::InvalidValue;
use crate::input::{Blocks, InputArgs, PairArgs, Records};
use crate::pipeline::{self, LineNumbers};
use crate::report::printable;
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::ops::ControlFlow;
use umbel::{Batch, Digest, Hasher};
use umbel_text::tables::Changes;

/// The pairs of a block. Each distinct value is stored once, so that little work is left for the
/// ordered part.
pub struct PairBlock {
    pub digests: Vec<Digest>,
    /// The index of each pair's value.
    codes: Vec<u32>,
    /// The distinct values one after the other, in the order in which they appear.
    text: Vec<u8>,
    ends: Vec<usize>,
    /// The index of the record in which each value appears first.
    first_records: Vec<usize>,
    /// The first record that is not a pair, and why. Records after it are ignored.
    malformed: Option<(usize, Malformed)>,
    records: usize,
    input: usize,
}

/// Why a record is not a pair.
enum Malformed {
    /// The separator is missing.
    NoValue,
    /// The key is not hexadecimal.
    NoKey,
}

impl Malformed {
    fn explain(&self, args: &PairArgs) -> String {
        let separator = args.separator();
        match self {
            Malformed::NoValue => {
                format!("there is no {separator} in it, so it has no value: write key, {separator} and value")
            }
            Malformed::NoKey => "its key is not hexadecimal: correct it, or leave out --hex".to_string(),
        }
    }
}

impl PairBlock {
    /// Splits records into pairs and hashes the keys.
    pub fn new(args: &PairArgs, hasher: &Hasher, records: &Records) -> Result<PairBlock> {
        let mut block = PairBlock {
            digests: hasher.digest_batch(&records.keys()?),
            codes: Vec::with_capacity(records.key_count()),
            text: Vec::new(),
            ends: Vec::new(),
            first_records: Vec::new(),
            malformed: None,
            records: records.record_count(),
            input: records.input(),
        };
        let mut code_of: HashMap<&[u8], u32> = HashMap::new();
        block.malformed = each_pair(args, records, |_, number, value| {
            let next = code_of.len() as u32;
            let code = *code_of.entry(value).or_insert_with(|| {
                block.text.extend_from_slice(value);
                block.ends.push(block.text.len());
                block.first_records.push(number);
                next
            });
            block.codes.push(code);
        });
        Ok(block)
    }

    /// Returns the distinct values, in the order in which they appear.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }

    /// Returns the digests with the numbers of their values; `numbers` has one for each distinct
    /// value.
    pub fn pairs<'a>(&'a self, numbers: &'a [u64]) -> impl ExactSizeIterator<Item = (Digest, u64)> + 'a {
        self.digests.iter().zip(&self.codes).map(|(digest, code)| (*digest, numbers[*code as usize]))
    }
}

/// Calls `found` with the index of each key, the number of its record, and its value. Stops at the
/// first record that is not a pair, and returns it.
fn each_pair<'a>(
    args: &PairArgs,
    records: &'a Records,
    mut found: impl FnMut(usize, usize, &'a [u8]),
) -> Option<(usize, Malformed)> {
    // Every line has a first field, so a record without a key is one that is not hexadecimal.
    let no_key = records.skipped().first.map(|first| (first as usize, Malformed::NoKey));
    for key in 0..records.key_count() {
        let (number, record) = records.record(key);
        if no_key.as_ref().is_some_and(|(no_key, _)| *no_key < number) {
            break;
        }
        match args.value(record) {
            Some(value) => found(key, number, value),
            None => return Some((number, Malformed::NoValue)),
        }
    }
    no_key
}

/// Reads all pairs and passes them to `sink` in order, block by block, with the result of `also`
/// for the block. Fails if a line is not a pair or a value is not allowed, and names the line.
pub fn read_pairs<T: Send>(
    blocks: Blocks,
    args: &PairArgs,
    hasher: &Hasher,
    values: &mut Values,
    also: impl Fn(&Records) -> T + Sync,
    mut sink: impl FnMut(&mut Values, &PairBlock, T, &LineNumbers) -> Result<()> + Send,
) -> Result<()> {
    let input = args.keys();
    let mut lines = LineNumbers::default();
    pipeline::run(
        blocks,
        input.threads(),
        |_, records| Ok((PairBlock::new(args, hasher, records)?, also(records))),
        |(block, more), _| {
            lines.next_block(block.input, block.records);
            if let Err(InvalidValue { value, why }) = values.check(&block) {
                bail!("{}: {why}", line_name(&input, lines.locate(block.first_records[value])));
            }
            if let Some((number, why)) = &block.malformed {
                bail!("{}: {}", line_name(&input, lines.locate(*number)), why.explain(args));
            }
            sink(values, &block, more, &lines)?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(())
}

/// Reads all pairs into a batch of changes; the last value of a key counts. Fails if a line is not a
/// pair or is too long, and names the line.
pub fn read_changes(args: &PairArgs) -> Result<Changes> {
    let input = args.keys();
    let (mut changes, mut lines) = (Changes::default(), LineNumbers::default());
    pipeline::run(
        input.open()?,
        input.threads(),
        |_, records| {
            let (keys, mut pairs) = (records.keys()?, Vec::with_capacity(records.key_count()));
            let malformed = each_pair(args, records, |key, number, value| {
                pairs.push((number, keys.with_bytes(key, <[u8]>::to_vec), value.to_vec()));
            });
            Ok((pairs, malformed, records.input(), records.record_count()))
        },
        |(pairs, malformed, number, records), _| {
            lines.next_block(number, records);
            for (record, key, value) in pairs {
                changes.put(key, value).with_context(|| line_name(&input, lines.locate(record)))?;
            }
            if let Some((record, why)) = malformed {
                bail!("{}: {}", line_name(&input, lines.locate(record)), why.explain(args));
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(changes)
}

/// Returns the name of a line of an input for messages.
pub fn line_name(input: &InputArgs, (number, line): (usize, u64)) -> String {
    format!("{}, line {line}", printable(input.name(number)))
}
