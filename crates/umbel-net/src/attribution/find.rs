//! Who carried an excerpt in an epoch, and how much that is worth.

use super::epoch::Cut;
use super::{Epoch, Listed, WINDOW, united};
use crate::payload::winnowing::{Block, Winnowing};
use crate::payload::{Hit, each_record};
use crate::{Error, Result};
use std::ops::{ControlFlow, Range};
use umbel::internals::TILE;
use umbel::{Digest, Key};

/// A pair that carried an excerpt, or seems to have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The pair, and when it spoke in the epoch.
    pub listed: Listed,
    /// Where the excerpt was, with the most blocks that agree; nothing if payloads were [winnowed](super::Method::Winnowing). Positions
    /// are modulo [`WINDOW`](super::WINDOW) blocks.
    pub hit: Option<Hit>,
    /// How many blocks agree; of [winnowing](super::Method::Winnowing), how many that differ.
    pub blocks: u64,
    /// How many bytes of the excerpt are in none of them, and may be others.
    pub not_compared: usize,
    /// At how many places and alignments it was.
    pub places: u64,
    /// How many pairs of the epoch would be named by chance, by as many blocks, if the blocks were there but in none of their
    /// payloads.
    pub chance: f64,
}

impl Finding {
    /// The byte of the payload, modulo [`WINDOW`](super::WINDOW) blocks, at which the excerpt begins, if it is known.
    pub fn position(&self) -> Option<u64> {
        self.hit.map(|hit| hit.position)
    }
}

/// The findings of an epoch about an excerpt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExcerptFindings {
    /// The pairs, one finding each.
    pub findings: Vec<Finding>,
    /// The number of findings expected by chance, at the places where the excerpt seems to have been.
    pub expected: f64,
}

impl Epoch {
    /// The pairs that carried an excerpt. Fewer bytes than [`needed`](Epoch::needed) are refused.
    pub fn find(&self, excerpt: &[u8]) -> Result<ExcerptFindings> {
        let offset_filter = match &self.cut {
            Cut::Evenly(offset_filter) => offset_filter,
            Cut::Winnowed(winnowing) => return self.find_winnowed(excerpt, winnowing),
        };
        let hits = offset_filter.find(excerpt)?;
        let rate = self.rate();
        let mut expected = 0.0;
        let mut best: Vec<Option<Finding>> = vec![None; self.listed.len()];
        let mut records = Vec::new();
        for hit in hits {
            let compared = self.halves(excerpt.len(), &hit);
            self.half_records(&excerpt[compared.clone()], &hit, compared.start, &mut records);
            let chance = self.listed.len() as f64 * rate.powi(records.len() as i32);
            expected += chance;
            self.each_pair(&records, |at| {
                let finding = Finding {
                    listed: self.listed[at],
                    hit: Some(hit),
                    blocks: hit.blocks,
                    not_compared: excerpt.len() - compared.len(),
                    places: 1,
                    chance,
                };
                match &mut best[at] {
                    Some(before) => {
                        let places = before.places + 1;
                        if finding.blocks > before.blocks {
                            *before = finding;
                        }
                        before.places = places;
                    }
                    none => *none = Some(finding),
                }
            });
        }
        Ok(ExcerptFindings { findings: best.into_iter().flatten().collect(), expected })
    }

    /// The bytes of an excerpt of this length that are in whole halves of blocks. In streams only those that are in whole blocks, since
    /// others may be in another epoch.
    pub(super) fn halves(&self, length: usize, hit: &Hit) -> Range<usize> {
        let half = self.about.half();
        let (start, end) = (hit.prefix, length - hit.suffix);
        if self.about.streams { start..end } else { start % half..end + hit.suffix / half * half }
    }

    /// The records of the halves of blocks in these bytes, which begin at byte `start` of the excerpt.
    pub(super) fn half_records(&self, bytes: &[u8], hit: &Hit, start: usize, records: &mut Vec<Digest>) {
        let half = self.about.half();
        let hasher = self.payload_filter.hasher();
        let mut halves = bytes.chunks_exact(half).map(|half| half.digest(hasher)).collect();
        // Halves before the first whole block.
        let before = (hit.prefix - start) / half;
        let first = (2 * hit.block).wrapping_sub(before as u64) % (2 * WINDOW);
        records.clear();
        let mut put = |record| {
            records.push(record);
            ControlFlow::<()>::Continue(())
        };
        let _ = each_record(&mut halves, first, self.about.half_scheme(), &mut put);
    }

    fn find_winnowed(&self, excerpt: &[u8], winnowing: &Winnowing) -> Result<ExcerptFindings> {
        if excerpt.len() < self.needed() {
            let needs = format!("at least {} bytes, so that it surely has a whole block", self.needed());
            return Err(Error::parameter("excerpt", format!("{} bytes", excerpt.len()), needs));
        }
        let blocks = winnowing.blocks(excerpt);
        let mut records: Vec<Digest> = blocks.iter().map(|block| self.about.winnowed(block)).collect();
        // What is there several times is found by chance as easily as if it were there once.
        records.sort_unstable();
        records.dedup();
        let chance = self.listed.len() as f64 * self.rate().powi(records.len() as i32);
        let not_compared = not_compared(excerpt, &blocks);
        let mut findings = Vec::new();
        self.each_pair(&records, |at| {
            let listed = self.listed[at];
            findings.push(Finding {
                listed,
                hit: None,
                blocks: records.len() as u64,
                not_compared,
                places: 1,
                chance,
            });
        });
        Ok(ExcerptFindings { findings, expected: chance })
    }

    /// How many bytes an excerpt must have, so that a whole block is left whatever the alignment.
    pub fn needed(&self) -> usize {
        match &self.cut {
            Cut::Evenly(_) => 2 * self.about.block - 1,
            Cut::Winnowed(winnowing) => winnowing.needed(),
        }
    }

    /// The pairs for which all of these records may have been made.
    fn each_pair(&self, records: &[Digest], mut each: impl FnMut(usize)) {
        let Some((first, others)) = records.split_first() else { return };
        for (pairs, start) in self.salts.chunks(TILE).zip((0..).step_by(TILE)) {
            let mut found = self.had_by(pairs, *first);
            while found != 0 {
                let at = found.trailing_zeros() as usize;
                found &= found - 1;
                let salt = pairs[at].get();
                if others.iter().all(|record| self.payload_filter.contains_digest(record.salted(salt))) {
                    each(start + at);
                }
            }
        }
    }
}

/// How many bytes of an excerpt are in none of its blocks.
pub(super) fn not_compared(excerpt: &[u8], blocks: &[Block]) -> usize {
    let ranges = blocks.iter().map(|block| block.start as usize..block.end as usize).collect();
    excerpt.len() - united(ranges).iter().map(ExactSizeIterator::len).sum::<usize>()
}
