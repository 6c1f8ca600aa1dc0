//! Which parts of a document passed, whoever cut it into payloads.
//!
//! A document is not looked up as a whole, since it may have been sent in many payloads, in part, or changed. Every stretch of it is
//! found that has some whole blocks in one payload or stream: a block at every byte of the document is asked for at all places at
//! once, and those that follow each other in the document and in a payload make a stretch.

use super::{Epoch, Listed, WINDOW};
use std::ops::Range;
use umbel::{Digest, Error, Filter, Key, Result, TILE};

/// What a pair carried of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Who, and when they spoke in the epoch.
    pub listed: Listed,
    /// The bytes of the document, in order and apart from each other.
    pub ranges: Vec<Range<usize>>,
}

/// What an epoch says about a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// What pairs carried, one each.
    pub parts: Vec<Part>,
    /// Stretches of so many bytes are always found; shorter ones could be there by chance.
    pub least: usize,
    /// How many stretches are to be expected by chance.
    pub expected: f64,
}

/// Stretches that are found by chance, in an epoch, are to be rarer than this.
const RARE: f64 = 1e-3;

impl Epoch {
    /// The parts of a document that pairs carried. One that has no two whole blocks is refused.
    pub fn find_parts(&self, document: &[u8]) -> Result<Parts> {
        let rates = self.rates();
        let size = self.about.block;
        if document.len() < 2 * size {
            let needs = format!("at least two blocks of {size} bytes");
            return Err(Error::parameter("document", format!("{} bytes", document.len()), needs));
        }
        // How many stretches of so many blocks there are by chance.
        let chances = document.len() as f64 * WINDOW as f64 * self.listed.len() as f64;
        let expected = |blocks: usize| chances * (rates.0 * rates.1).powi(blocks as i32);
        // Of a single block nothing should be concluded.
        let blocks = (2..64).find(|blocks| expected(*blocks) < RARE).unwrap_or(64);
        let mut ranges: Vec<Vec<Range<usize>>> = vec![Vec::new(); self.listed.len()];
        let mut records = Vec::new();
        for prefix in 0..size {
            let digests: Vec<Digest> = document[prefix..]
                .chunks_exact(size)
                .map(|block| block.digest(self.payloads.hasher()))
                .collect();
            self.stretches(&digests, blocks, |stretch, place| {
                records.clear();
                let numbers = place..;
                let record =
                    |(digest, number): (&Digest, u64)| self.about.scheme().record(*digest, number, 0);
                records.extend(digests[stretch.clone()].iter().zip(numbers).map(record));
                self.runs_of_pairs(&records, blocks, |at, run| {
                    let byte = |block: usize| prefix + (stretch.start + block) * size;
                    ranges[at].push(byte(run.start)..byte(run.end));
                });
            });
        }
        let parts = self.listed.iter().zip(ranges).filter(|(_, ranges)| !ranges.is_empty());
        let parts = parts.map(|(listed, ranges)| Part { listed: *listed, ranges: united(ranges) }).collect();
        // One block more, less a byte, has so many whole blocks in every alignment.
        Ok(Parts { parts, least: (blocks + 1) * size - 1, expected: expected(blocks) })
    }

    /// The stretches of blocks that follow each other in some payload, with the place of their first.
    fn stretches(&self, blocks: &[Digest], least: usize, mut each: impl FnMut(Range<usize>, u64)) {
        // How many blocks that follow each other end at each place.
        let mut lengths = [0; WINDOW as usize];
        for at in 0..=blocks.len() {
            let found = blocks.get(at).map_or(0, |block| self.places(*block));
            // What ends at a place goes on at the next one.
            let mut longer = [0; WINDOW as usize];
            for (place, &length) in lengths.iter().enumerate() {
                let next = (place + 1) % WINDOW as usize;
                if found >> next & 1 == 1 {
                    longer[next] = length + 1;
                } else if length >= least {
                    each(at - length..at, (place as u64 + 1).wrapping_sub(length as u64) % WINDOW);
                }
            }
            lengths = longer;
        }
    }

    /// The places at which a block was, a bit for each.
    fn places(&self, block: Digest) -> u64 {
        let mut tile = [Digest::default(); TILE];
        for (record, number) in tile.iter_mut().zip(0..WINDOW) {
            *record = self.about.scheme().record(block, number, 0);
        }
        self.offsets.filter().contains_tile(&tile)
    }

    /// The runs of records, of this length at least, that a pair has.
    fn runs_of_pairs(&self, records: &[Digest], least: usize, mut each: impl FnMut(usize, Range<usize>)) {
        for (pairs, start) in self.salts.chunks(TILE).zip((0..).step_by(TILE)) {
            let mut lengths = [0; TILE];
            for at in 0..=records.len() {
                let found = records.get(at).map_or(0, |record| self.had_by(pairs, *record));
                for (pair, length) in lengths[..pairs.len()].iter_mut().enumerate() {
                    if found >> pair & 1 == 1 {
                        *length += 1;
                    } else {
                        if *length >= least {
                            each(start + pair, at - *length..at);
                        }
                        *length = 0;
                    }
                }
            }
        }
    }

    /// Which of at most 64 pairs have a record, a bit for each.
    pub(super) fn had_by(&self, pairs: &[Digest], record: Digest) -> u64 {
        let mut tile = [Digest::default(); TILE];
        for (salted, pair) in tile.iter_mut().zip(pairs) {
            *salted = record.salted(pair.get());
        }
        self.payloads.contains_tile(&tile[..pairs.len()])
    }
}

/// The same bytes in ranges that are in order and do not touch.
pub fn united(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut united: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match united.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => united.push(range),
        }
    }
    united
}
