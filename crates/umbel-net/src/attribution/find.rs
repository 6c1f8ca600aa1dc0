//! Who carried an excerpt in an epoch, and how much that is worth.

use super::{Epoch, Listed, WINDOW};
use crate::payload::{Hit, checks};
use umbel::{Digest, Filter, Result, TILE};

/// A pair that carried an excerpt, or seems to have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// Who, and when they spoke in the epoch.
    pub listed: Listed,
    /// Where the excerpt was, with the most blocks that agree. Positions are modulo [`WINDOW`] blocks.
    pub hit: Hit,
    /// At how many places and alignments it was.
    pub places: u64,
    /// How many pairs of the epoch would be named by chance, by as many blocks, if the blocks were there but in none of their
    /// payloads.
    pub chance: f64,
}

/// What an epoch says about an excerpt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The pairs, one finding each.
    pub findings: Vec<Finding>,
    /// How many of them are to be expected by chance.
    pub expected: f64,
}

impl Epoch {
    /// The pairs that carried an excerpt. Fewer than 2s - 1 bytes, where s is the size of a block, are refused.
    pub fn find(&self, excerpt: &[u8]) -> Result<Found> {
        let hits = self.offsets.find(excerpt)?;
        let rates = self.rates();
        let mut expected = self.by_chance(excerpt.len(), rates);
        let mut best: Vec<Option<Finding>> = vec![None; self.listed.len()];
        let mut records = Vec::new();
        for hit in hits {
            self.offsets.records(excerpt, &hit, &mut records);
            let chance = self.listed.len() as f64 * rates.1.powi(records.len() as i32);
            expected += chance;
            self.each_pair(&records, |at| {
                let found =
                    best[at].get_or_insert(Finding { listed: self.listed[at], hit, places: 0, chance });
                found.places += 1;
                if hit.blocks > found.hit.blocks {
                    (found.hit, found.chance) = (hit, chance);
                }
            });
        }
        Ok(Found { findings: best.into_iter().flatten().collect(), expected })
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
                if others.iter().all(|record| self.payloads.contains_digest(record.salted(salt))) {
                    each(start + at);
                }
            }
        }
    }

    /// How many pairs are named by chance for an excerpt of so many bytes that was never there, when records are found at
    /// these rates that were never made.
    fn by_chance(&self, length: usize, (offsets, payloads): (f64, f64)) -> f64 {
        let method = self.about.method.of_blocks();
        let rate = offsets * payloads;
        let named = |prefix: usize| {
            let blocks = (length.saturating_sub(prefix) / self.about.block) as u64;
            let places = WINDOW.min((self.about.longest + 1).saturating_sub(blocks));
            let at = |first| rate.powf(checks(blocks, first, method) as f64);
            (0..places).map(at).sum::<f64>()
        };
        self.listed.len() as f64 * (0..self.about.block).map(named).sum::<f64>()
    }
}
