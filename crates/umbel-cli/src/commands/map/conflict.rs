//! Which key has two values: a map is built from digests, so the lines are looked at once more.

use super::pairs::{Lines, place};
use crate::input::{InputArgs, PairArgs, Records};
use crate::pipeline;
use crate::report::printable;
use crate::sync::lock;
use anyhow::{Error, Result, anyhow};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use umbel::{Digest, Hasher, Key};

/// So much is kept of what cannot be read again.
const MOST: usize = 64 << 20;

/// The lines of pipes, as long as they are not too many.
pub struct Kept {
    keeping: AtomicBool,
    pieces: Mutex<Vec<Piece>>,
}

/// The lines of a block.
pub struct Piece {
    input: usize,
    records: usize,
    bytes: Vec<u8>,
}

impl Kept {
    pub fn new(input: &InputArgs) -> Kept {
        Kept { keeping: AtomicBool::new(!input.are_files()), pieces: Mutex::default() }
    }

    /// What is to be kept of a block.
    pub fn copy(&self, records: &Records) -> Option<Piece> {
        let piece = || Piece {
            input: records.input(),
            records: records.record_count(),
            bytes: records.bytes().to_vec(),
        };
        self.keeping.load(Relaxed).then(piece)
    }

    /// Keeps it, after those before it, or gives up.
    pub fn keep(&self, piece: Option<Piece>) {
        let Some(piece) = piece.filter(|_| self.keeping.load(Relaxed)) else { return };
        let mut pieces = lock(&self.pieces);
        pieces.push(piece);
        if pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>() > MOST {
            pieces.clear();
            self.keeping.store(false, Relaxed);
        }
    }
}

/// A line with the digest that is looked for.
struct Line {
    /// Its input and its number there.
    at: (usize, u64),
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Looks for two lines of one digest with different values, and says which they are, or at least the values.
pub fn explain(
    args: &PairArgs,
    hasher: &Hasher,
    digest: Digest,
    kept: &Kept,
    values: [String; 2],
) -> Result<Error> {
    let input = args.keys();
    let mut lines = Vec::new();
    if input.are_files() {
        read_again(args, &input, hasher, digest, &mut lines)?;
    } else {
        look_through(args, hasher, digest, kept, &mut lines)?;
    }
    let Some((one, other)) = different(&lines) else {
        let [one, other] = values;
        let why = if input.are_files() {
            "the input has changed since it was read"
        } else {
            "so long an input cannot be read again unless it is a file"
        };
        return Ok(anyhow!("a key has two values, {one} and {other}: which one cannot be told, since {why}"));
    };
    let [first, second] = [one, other].map(|line| printable(&line.key));
    let places = if one.at.0 == other.at.0 {
        format!("{}, lines {} and {}", input.name(one.at.0), one.at.1, other.at.1)
    } else {
        format!("{}, and {}", place(&input, one.at), place(&input, other.at))
    };
    if one.key != other.key {
        return Ok(anyhow!(
            "{first} and {second} have the same digest and different values ({places}): give another --seed"
        ));
    }
    let [one, other] = [one, other].map(|line| printable(&line.value));
    Ok(anyhow!("{first} has two values, {one} and {other} ({places}): give each key one"))
}

/// The first line, and the first whose value is different.
fn different(lines: &[Line]) -> Option<(&Line, &Line)> {
    let first = lines.first()?;
    Some((first, lines.iter().find(|line| line.value != first.value)?))
}

fn read_again(
    args: &PairArgs,
    input: &InputArgs,
    hasher: &Hasher,
    digest: Digest,
    found: &mut Vec<Line>,
) -> Result<()> {
    let mut lines = Lines::default();
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
            lines.enter(input, records);
            for (number, record) in same {
                found.extend(line(args, lines.of(number), &record)?);
            }
            let enough = different(found).is_some();
            Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        },
    )?;
    Ok(())
}

fn look_through(
    args: &PairArgs,
    hasher: &Hasher,
    digest: Digest,
    kept: &Kept,
    found: &mut Vec<Line>,
) -> Result<()> {
    let mut lines = Lines::default();
    let end = args.keys().line_end();
    for piece in lock(&kept.pieces).iter() {
        lines.enter(piece.input, piece.records);
        for (number, record) in piece.bytes.split_inclusive(|byte| *byte == end).enumerate() {
            let line = line(args, lines.of(number), &record[..record.len() - 1])?;
            found.extend(line.filter(|line| line.key.digest(hasher) == digest));
        }
        if different(found).is_some() {
            break;
        }
    }
    Ok(())
}

fn line(args: &PairArgs, at: (usize, u64), record: &[u8]) -> Result<Option<Line>> {
    let (Some(key), Some(value)) = (args.key(record)?, args.value(record)) else { return Ok(None) };
    Ok(Some(Line { at, key, value: value.to_vec() }))
}
