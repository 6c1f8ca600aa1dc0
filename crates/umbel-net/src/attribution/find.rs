//! The search for an excerpt in an epoch, and the weight of its findings.

use super::epoch::Cut;
use super::{Epoch, Listed, WINDOW, united};
use crate::payload::winnowing::{Block, Winnowing};
use crate::payload::{Hit, each_record};
use crate::{Error, Result};
use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use umbel::internals::TILE;
use umbel::{Digest, Key};

/// A pair that carried an excerpt, or appears to have carried it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The pair, and the times when it communicated in the epoch.
    pub listed: Listed,
    /// The match with the most blocks; `None` if payloads were
    /// [winnowed](super::Method::Winnowing). Positions are modulo [`WINDOW`] blocks.
    pub hit: Option<Hit>,
    /// The number of matching blocks; with [winnowing](super::Method::Winnowing), the number of
    /// different ones.
    pub blocks: u64,
    /// The number of bytes of the excerpt that lie in none of these blocks and may differ.
    pub not_compared: usize,
    /// The number of places and alignments at which the excerpt matched.
    pub places: u64,
    /// The number of pairs of the epoch expected to match by chance in as many blocks, if these
    /// blocks were recorded but none of the pairs carried them.
    pub chance: f64,
}

impl Finding {
    /// Returns the byte of the payload at which the excerpt begins, modulo
    /// [`WINDOW`] blocks, if it is known.
    pub fn position(&self) -> Option<u64> {
        self.hit.map(|hit| hit.position)
    }
}

/// The findings of an epoch about an excerpt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExcerptFindings {
    /// The pairs, one finding each.
    pub findings: Vec<Finding>,
    /// The number of findings expected by chance, at the places where the excerpt appears to have
    /// been.
    pub expected: f64,
    /// The number of alignments that the block filter excluded.
    pub excluded: u64,
}

impl Epoch {
    /// Finds the pairs that carried an excerpt.
    ///
    /// # Errors
    ///
    /// Fails if the excerpt is shorter than [`needed`](Epoch::needed).
    pub fn find(&self, excerpt: &[u8]) -> Result<ExcerptFindings> {
        let offset_filter = match &self.cut {
            Cut::Evenly(offset_filter) => offset_filter,
            Cut::Winnowed(winnowing) => return self.find_winnowed(excerpt, winnowing),
        };
        let excluded = Cell::new(0);
        let hits = offset_filter.find_where(excerpt, |blocks| {
            let admitted = self.admits(blocks);
            excluded.update(|excluded| excluded + u64::from(!admitted));
            admitted
        })?;
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
        let findings = best.into_iter().flatten().collect();
        Ok(ExcerptFindings { findings, expected, excluded: excluded.get() })
    }

    /// Returns the range of an excerpt that consists of whole half blocks. In streams, only whole
    /// blocks count, since the other halves may be in another epoch.
    pub(super) fn halves(&self, length: usize, hit: &Hit) -> Range<usize> {
        let half = self.about.half();
        let (start, end) = (hit.prefix, length - hit.suffix);
        if self.about.streams { start..end } else { start % half..end + hit.suffix / half * half }
    }

    /// Collects the records of the half blocks in `bytes`, which begin at byte `start` of the
    /// excerpt.
    pub(super) fn half_records(&self, bytes: &[u8], hit: &Hit, start: usize, records: &mut Vec<Digest>) {
        let half = self.about.half();
        let hasher = self.payload_filter.hasher();
        let mut halves = bytes.chunks_exact(half).map(|half| half.digest(hasher)).collect();
        // The number of halves before the first whole block.
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
        // A record that occurs several times is as likely by chance as one that occurs once.
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
        Ok(ExcerptFindings { findings, expected: chance, excluded: 0 })
    }

    /// Returns the number of bytes an excerpt needs to contain a whole block in every alignment.
    pub fn needed(&self) -> usize {
        match &self.cut {
            Cut::Evenly(_) => 2 * self.about.block - 1,
            Cut::Winnowed(winnowing) => winnowing.needed(),
        }
    }

    /// Calls `each` with the index of every pair that may have all of these records.
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

/// Returns the number of bytes of an excerpt that lie in none of its blocks.
pub(super) fn not_compared(excerpt: &[u8], blocks: &[Block]) -> usize {
    let ranges = blocks.iter().map(|block| block.start as usize..block.end as usize).collect();
    excerpt.len() - united(ranges).iter().map(ExactSizeIterator::len).sum::<usize>()
}
