//! Excerpts of streams that began in one epoch and ended in another.
//!
//! Of such an excerpt each epoch has some blocks only. The list of pairs tells whose streams went on from an epoch before, so that
//! only those are looked at: what is not in the epoch at hand is looked for in the one in which the pair spoke before, and so on,
//! until nothing is missing or an epoch has nothing of it.

use super::epoch::Cut;
use super::find::not_compared;
use super::{Epoch, Finding, Listed, Pair, WINDOW};
use crate::payload::Hit;
use umbel::{Digest, Filter, Key};

/// What an epoch has not of an excerpt of which it has the end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tail {
    /// What would be found if nothing were missing.
    finding: Finding,
    /// The blocks that are still to be found, by number; never none.
    missing: Vec<usize>,
}

impl Tail {
    pub fn pair(&self) -> Pair {
        self.finding.listed.pair
    }
}

impl Epoch {
    /// What pairs whose streams had begun before this epoch have not of an excerpt of which they have the end.
    pub(super) fn tails(&self, excerpt: &[u8]) -> Vec<Tail> {
        let continued: Vec<usize> = (0..self.listed.len()).filter(|at| self.listed[*at].continued).collect();
        let mut tails = Vec::new();
        // Most epochs have none, or the excerpt cannot be judged anyway.
        if continued.is_empty() || excerpt.len() < self.needed() {
            return tails;
        }
        let rate = self.rate();
        for hit in self.ends(excerpt) {
            let records = self.records(excerpt, hit);
            for &at in &continued {
                let missing: Vec<usize> = (0..records.len()).filter(|i| !self.had(at, records[*i])).collect();
                let agreed = records.len() - missing.len();
                // If nothing is missing, it is found without this.
                if missing.is_empty() || agreed == 0 {
                    continue;
                }
                let chance = continued.len() as f64 * rate.powi(agreed as i32);
                let finding = self.finding(excerpt, self.listed[at], hit, chance);
                tails.push(Tail { finding, missing });
            }
        }
        tails
    }

    /// Looks here, in an epoch before, for what is missing of an excerpt. Nothing if its pair has nothing of it; else what is
    /// found, or what is still missing and may be in an epoch before this one.
    pub(super) fn complete(&self, excerpt: &[u8], mut tail: Tail) -> Option<Result<Finding, Tail>> {
        let at = self.place(tail.pair())?;
        let records = self.records(excerpt, tail.finding.hit);
        let before = tail.missing.len();
        tail.missing.retain(|i| records.get(*i).is_none_or(|record| !self.had(at, *record)));
        let agreed = before - tail.missing.len();
        let listed = &self.listed[at];
        tail.finding.listed.first = listed.first;
        tail.finding.chance *= self.rate().powi(agreed as i32);
        match tail.missing.len() {
            0 => Some(Ok(tail.finding)),
            _ if agreed > 0 && listed.continued => Some(Err(tail)),
            _ => None,
        }
    }

    /// The place of a pair in the list, if it spoke.
    pub(super) fn place(&self, pair: Pair) -> Option<usize> {
        self.listed.binary_search_by_key(&pair, |listed| listed.pair).ok()
    }

    /// Where the last block of an excerpt may have been, for each alignment. Where payloads were winnowed, there are no places.
    fn ends(&self, excerpt: &[u8]) -> Vec<Option<Hit>> {
        let Cut::Evenly(offsets) = &self.cut else { return vec![None] };
        let size = self.about.block;
        let mut hits = Vec::new();
        for prefix in 0..size {
            let compared = (excerpt.len() - prefix) / size;
            let Some(last) = excerpt[prefix..].chunks_exact(size).last() else { continue };
            let mut found = self.places(offsets.filter(), last.digest(self.payloads.hasher()));
            while found != 0 {
                let end = u64::from(found.trailing_zeros());
                found &= found - 1;
                // The number of the first block, if this is that of the last one.
                let block = end.wrapping_sub(compared as u64 - 1) % WINDOW;
                hits.push(Some(Hit {
                    position: offsets.position(block, prefix),
                    block,
                    blocks: compared as u64,
                    prefix,
                    suffix: excerpt.len() - prefix - compared * size,
                    tail: false,
                }));
            }
        }
        hits
    }

    /// The records of an excerpt's halves of blocks. Groups of them are left out, since they may lie in two epochs.
    fn records(&self, excerpt: &[u8], hit: Option<Hit>) -> Vec<Digest> {
        match (&self.cut, hit) {
            (Cut::Evenly(_), Some(hit)) => {
                let halves = excerpt[self.halves(excerpt.len(), &hit)].chunks_exact(self.about.half());
                let digests = halves.map(|half| half.digest(self.payloads.hasher()));
                let record = |(digest, number)| self.about.half_scheme().record(digest, number, 0);
                digests.zip(2 * hit.block..).map(record).collect()
            }
            (Cut::Winnowed(winnowing), None) => {
                winnowing.blocks(excerpt).iter().map(|block| self.about.winnowed(block)).collect()
            }
            // Epochs of one run are cut in one way.
            _ => Vec::new(),
        }
    }

    /// Whether the pair at this place has a record.
    fn had(&self, at: usize, record: Digest) -> bool {
        self.payloads.contains_digest(record.salted(self.salts[at].get()))
    }

    fn finding(&self, excerpt: &[u8], listed: Listed, hit: Option<Hit>, chance: f64) -> Finding {
        let (blocks, not_compared) = match (&self.cut, hit) {
            (Cut::Winnowed(winnowing), _) => {
                let blocks = winnowing.blocks(excerpt);
                (blocks.len() as u64, not_compared(excerpt, &blocks))
            }
            (_, hit) => hit.map_or((0, 0), |hit| (hit.blocks, hit.prefix + hit.suffix)),
        };
        Finding { listed, hit, blocks, not_compared, places: 1, chance }
    }
}
