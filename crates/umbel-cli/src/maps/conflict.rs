//! The key that has two values: a map is built from digests, so the lines are searched again to
//! name it.

use super::pairs::line_name;
use crate::input::{InputArgs, PairArgs, Records};
use crate::pipeline;
use crate::pipeline::LineNumbers;
use crate::report::printable;
use anyhow::{Error, Result, anyhow};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use umbel::internals::sync::lock;
use umbel::{Digest, Hasher, Key};

/// The maximum number of bytes kept of an input that cannot be read again.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// The lines of an input that cannot be read again, unless they are too many.
pub struct KeptInput {
    keeping: AtomicBool,
    blocks: Mutex<Vec<KeptBlock>>,
}

/// The lines of a block.
pub struct KeptBlock {
    input: usize,
    records: usize,
    bytes: Vec<u8>,
}

impl KeptInput {
    pub fn new(input: &InputArgs) -> KeptInput {
        KeptInput { keeping: AtomicBool::new(!input.are_files()), blocks: Mutex::default() }
    }

    /// Copies a block, if the input is kept.
    pub fn copy(&self, records: &Records) -> Option<KeptBlock> {
        let block = || KeptBlock {
            input: records.input(),
            records: records.record_count(),
            bytes: records.bytes().to_vec(),
        };
        self.keeping.load(Relaxed).then(block)
    }

    /// Appends a copied block, or drops all blocks if they are too large.
    pub fn keep(&self, block: Option<KeptBlock>) {
        let Some(block) = block.filter(|_| self.keeping.load(Relaxed)) else { return };
        let mut blocks = lock(&self.blocks);
        blocks.push(block);
        if blocks.iter().map(|block| block.bytes.len()).sum::<usize>() > MAX_KEPT_BYTES {
            blocks.clear();
            self.keeping.store(false, Relaxed);
        }
    }
}

/// A line whose key has the digest in question.
struct PairLine {
    /// The index of its input, and its line number.
    at: (usize, u64),
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Returns the error for a digest with two values. It names the two lines if they can be found
/// again, and otherwise only the values.
pub fn explain_conflict(
    args: &PairArgs,
    hasher: &Hasher,
    digest: Digest,
    kept: &KeptInput,
    values: [String; 2],
) -> Result<Error> {
    let input = args.keys();
    let mut lines = Vec::new();
    if input.are_files() {
        read_again(args, &input, hasher, digest, &mut lines)?;
    } else {
        search_kept(args, hasher, digest, kept, &mut lines)?;
    }
    let Some((one, other)) = find_conflict(&lines) else {
        let [one, other] = values;
        let why = if input.are_files() {
            "the input has changed since it was read"
        } else {
            "so long an input cannot be read again unless it is a file"
        };
        return Ok(anyhow!("a key has two values, {one} and {other}: the key is unknown, since {why}"));
    };
    let [first, second] = [one, other].map(|line| printable(&line.key));
    let places = if one.at.0 == other.at.0 {
        format!("{}, lines {} and {}", input.name(one.at.0), one.at.1, other.at.1)
    } else {
        format!("{}, and {}", line_name(&input, one.at), line_name(&input, other.at))
    };
    if one.key != other.key {
        return Ok(anyhow!(
            "{first} and {second} have the same digest and different values ({places}): give another --seed"
        ));
    }
    let [one, other] = [one, other].map(|line| printable(&line.value));
    Ok(anyhow!("{first} has two values, {one} and {other} ({places}): give each key one"))
}

/// Returns the first line, and the first one after it with another value.
fn find_conflict(lines: &[PairLine]) -> Option<(&PairLine, &PairLine)> {
    let first = lines.first()?;
    Some((first, lines.iter().find(|line| line.value != first.value)?))
}

fn read_again(
    args: &PairArgs,
    input: &InputArgs,
    hasher: &Hasher,
    digest: Digest,
    found: &mut Vec<PairLine>,
) -> Result<()> {
    let mut lines = LineNumbers::default();
    pipeline::run(
        input.open()?,
        input.threads(),
        |_, records| {
            let digests = hasher.digest_batch(&records.keys()?);
            let same =
                (0..records.key_count()).filter(|key| digests[*key] == digest).map(|key| records.record(key));
            let same: Vec<_> = same.map(|(number, record)| (number, record.to_vec())).collect();
            Ok((records.input(), records.record_count(), same))
        },
        |(input, records, same), _| {
            lines.next_block(input, records);
            for (number, record) in same {
                found.extend(line(args, lines.locate(number), &record)?);
            }
            let enough = find_conflict(found).is_some();
            Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        },
    )?;
    Ok(())
}

fn search_kept(
    args: &PairArgs,
    hasher: &Hasher,
    digest: Digest,
    kept: &KeptInput,
    found: &mut Vec<PairLine>,
) -> Result<()> {
    let mut lines = LineNumbers::default();
    let end = args.keys().line_end();
    for block in lock(&kept.blocks).iter() {
        lines.next_block(block.input, block.records);
        for (number, record) in block.bytes.split_inclusive(|byte| *byte == end).enumerate() {
            let line = line(args, lines.locate(number), &record[..record.len() - 1])?;
            found.extend(line.filter(|line| line.key.digest(hasher) == digest));
        }
        if find_conflict(found).is_some() {
            break;
        }
    }
    Ok(())
}

fn line(args: &PairArgs, at: (usize, u64), record: &[u8]) -> Result<Option<PairLine>> {
    let (Some(key), Some(value)) = (args.key(record)?, args.value(record)) else { return Ok(None) };
    Ok(Some(PairLine { at, key, value: value.to_vec() }))
}
