//! Excerpts of streams that began in one epoch and ended in another.
//!
//! Each epoch has only some blocks of such an excerpt. The list of pairs marks those with streams
//! that continue from an earlier epoch, and only those are considered. The blocks of a stream are
//! recorded in order. So the latest epoch has the last blocks, and each earlier epoch has the last
//! of the blocks that are still missing, or none if the stream was silent then.

use super::epoch::Cut;
use super::find::not_compared;
use super::{Epoch, EpochInfo, ExcerptFindings, Finding, Listed, Pair, WINDOW};
use crate::payload::Hit;
use std::collections::HashSet;
use umbel::{Digest, Key};

/// An excerpt that ends in an epoch, and whose start is searched for in the epochs before it.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The epoch with the end of the excerpt.
    about: EpochInfo,
    /// The number of pairs with streams that continue from an earlier epoch.
    continued: usize,
    places: Vec<ExcerptEnd>,
    tails: Vec<Tail>,
    /// `odds[i]` is the chance that the last `i` blocks of an excerpt are found by chance in the
    /// epochs searched so far, in order.
    odds: Vec<f64>,
    /// The number of pairs expected by chance before any earlier epoch was searched.
    expected: f64,
}

/// A place where an excerpt may have ended.
#[derive(Clone, Debug)]
struct ExcerptEnd {
    /// The position; `None` if payloads were winnowed.
    hit: Option<Hit>,
    /// The number of different blocks in each row.
    blocks: Vec<usize>,
    /// The number of blocks at the start of each row that no pair has.
    missing: Vec<usize>,
}

/// A pair that has the end of an excerpt.
#[derive(Clone, Debug)]
struct Tail {
    listed: Listed,
    /// The index of the place where the excerpt ends.
    place: usize,
    /// The number of records at the start of each row that are still missing.
    missing: Vec<usize>,
}

/// A record, or `None` if no pair can have it.
type Record = Option<Digest>;

impl Chain {
    /// Returns whether an earlier epoch may have the missing blocks.
    pub fn is_open(&self, earlier: &EpochInfo) -> bool {
        !self.tails.is_empty() && earlier.run == self.about.run && earlier.number < self.about.number
    }

    /// Searches for the missing blocks in an epoch that precedes all epochs searched so far.
    pub fn look_back(&mut self, excerpt: &[u8], epoch: &Epoch, found: &mut ExcerptFindings) {
        let rows: Vec<_> = self.places.iter().map(|place| epoch.rows(excerpt, place.hit)).collect();
        for (place, rows) in self.places.iter_mut().zip(&rows) {
            lessen(&mut place.missing, rows, Option::is_none);
        }
        let mut most = 1;
        for Tail { listed, place, missing } in &mut self.tails {
            let names = epoch.names_of(listed.pair);
            most = most.max(names.len());
            for at in names {
                if lessen(missing, &rows[*place], |record| !epoch.had(at, record)) {
                    listed.first = listed.first.min(epoch.listed[at].first);
                }
            }
        }
        self.pass(epoch.rate_of_blocks() * most as f64);
        self.settle(excerpt, epoch, found);
    }

    /// Returns the number of pairs expected by chance as a result of searching earlier epochs.
    pub fn expected(&self) -> f64 {
        self.by_chance() - self.expected
    }

    fn by_chance(&self) -> f64 {
        let seen = self.places.iter().filter(|place| is_all(&place.missing));
        seen.map(|place| self.chance(place)).sum()
    }

    /// Updates the odds for one more epoch. It may have any number of blocks, all of which precede
    /// the blocks of the later epochs.
    fn pass(&mut self, rate: f64) {
        for agreed in 1..self.odds.len() {
            self.odds[agreed] = (self.odds[agreed] + rate * self.odds[agreed - 1]).min(1.0);
        }
    }

    /// Returns the number of pairs expected to have all blocks of a place by chance.
    fn chance(&self, place: &ExcerptEnd) -> f64 {
        self.continued as f64 * place.blocks.iter().map(|blocks| self.odds[*blocks]).product::<f64>()
    }

    /// Reports the pairs that have all blocks.
    fn settle(&mut self, excerpt: &[u8], epoch: &Epoch, found: &mut ExcerptFindings) {
        let mut settled = HashSet::new();
        for Tail { listed, place, missing } in &self.tails {
            if is_all(missing) && settled.insert(listed.pair) {
                let place = &self.places[*place];
                found.findings.push(epoch.finding(excerpt, *listed, place, self.chance(place)));
            }
        }
        self.tails.retain(|tail| !settled.contains(&tail.listed.pair));
    }
}

/// Returns whether no record is missing.
fn is_all(missing: &[usize]) -> bool {
    missing.iter().all(|missing| *missing == 0)
}

/// Shortens the missing start of each row to its last record that is still missing, and returns
/// whether any row got shorter.
fn lessen(missing: &mut [usize], rows: &[Vec<Record>], is_missing: impl Fn(&Record) -> bool) -> bool {
    let mut is_less = false;
    for (missing, row) in missing.iter_mut().zip(rows) {
        let left = row.iter().take(*missing).rposition(&is_missing).map_or(0, |last| last + 1);
        is_less |= left < *missing;
        *missing = left;
    }
    is_less
}

impl Epoch {
    /// Returns the pairs that have the end of an excerpt in a stream from before this epoch, except
    /// those already found with the whole excerpt.
    pub(super) fn chain(&self, excerpt: &[u8], found: &mut ExcerptFindings) -> Chain {
        let whole: HashSet<Pair> = found.findings.iter().map(|finding| finding.listed.pair).collect();
        let continued: Vec<usize> = (0..self.listed.len()).filter(|at| self.listed[*at].continued).collect();
        let hits = if continued.is_empty() { Vec::new() } else { self.ends(excerpt) };
        let (mut places, mut tails) = (Vec::new(), Vec::new());
        for hit in hits {
            let rows = self.rows(excerpt, hit);
            let lengths: Vec<usize> = rows.iter().map(Vec::len).collect();
            for &at in continued.iter().filter(|at| !whole.contains(&self.listed[**at].pair)) {
                let mut missing = lengths.clone();
                if lessen(&mut missing, &rows, |record| !self.had(at, record)) {
                    tails.push(Tail { listed: self.listed[at], place: places.len(), missing });
                }
            }
            let mut missing = lengths.clone();
            lessen(&mut missing, &rows, Option::is_none);
            let different = |row: &Vec<Record>| row.iter().collect::<HashSet<_>>().len();
            let blocks = match hit {
                Some(hit) => vec![hit.blocks as usize],
                None => rows.iter().map(different).collect(),
            };
            places.push(ExcerptEnd { hit, blocks, missing });
        }
        let longest = places.iter().flat_map(|place| &place.blocks).max().map_or(0, |longest| *longest);
        let mut odds = vec![0.0; longest + 1];
        odds[0] = 1.0;
        let continued = continued.len();
        let mut chain = Chain { about: self.about, continued, places, tails, odds, expected: 0.0 };
        chain.pass(self.rate_of_blocks());
        // With a single row, its last block is in this epoch; with several, some rows may have no
        // block here.
        chain.odds[0] = if matches!(self.cut, Cut::Evenly(_)) { 0.0 } else { 1.0 };
        chain.expected = chain.by_chance();
        // The groups of a hierarchy may span two epochs even if all blocks seem to be in this one.
        chain.settle(excerpt, self, found);
        chain
    }

    /// Returns the indices in the list under which a pair may appear. This epoch may list it in
    /// less detail (without its source, or without both hosts), or in more.
    fn names_of(&self, pair: Pair) -> Vec<usize> {
        let Pair { source, destination } = pair;
        if source.is_some() {
            let names = [pair, Pair { source: None, destination }, Pair { source: None, destination: None }];
            let place = |name| self.listed.binary_search_by_key(name, |listed| listed.pair).ok();
            return names.iter().filter_map(place).collect();
        }
        let may_be = |other: Pair| {
            destination.is_none() || other.destination.is_none() || destination == other.destination
        };
        (0..self.listed.len()).filter(|at| may_be(self.listed[*at].pair)).collect()
    }

    /// Returns the places where the last block of an excerpt may have been, in each alignment.
    /// Winnowed payloads have no places.
    fn ends(&self, excerpt: &[u8]) -> Vec<Option<Hit>> {
        let Cut::Evenly(offset_filter) = &self.cut else { return vec![None] };
        let size = self.about.block;
        let mut hits = Vec::new();
        for prefix in 0..size {
            let compared = (excerpt.len() - prefix) / size;
            let Some(last) = excerpt[prefix..].chunks_exact(size).last() else { continue };
            let mut found = self.places(offset_filter.filter(), last.digest(self.payload_filter.hasher()));
            while found != 0 {
                let end = u64::from(found.trailing_zeros());
                found &= found - 1;
                // The number of the first block, if the last block has number `end`.
                let block = end.wrapping_sub(compared as u64 - 1) % WINDOW;
                hits.push(Some(Hit {
                    position: offset_filter.position(block, prefix),
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

    /// Returns the records of an excerpt in order: one row of half blocks, or a row of blocks for
    /// each winnowing. Groups of halves are omitted, since they may span two epochs.
    fn rows(&self, excerpt: &[u8], hit: Option<Hit>) -> Vec<Vec<Record>> {
        match (&self.cut, hit) {
            (Cut::Evenly(offset_filter), Some(hit)) => {
                let hasher = self.payload_filter.hasher();
                let compared = &excerpt[hit.prefix..excerpt.len() - hit.suffix];
                let mut row = Vec::new();
                for (block, number) in compared.chunks_exact(self.about.block).zip(hit.block..) {
                    let place = self.about.scheme().record(block.digest(hasher), number, 0);
                    let is_there = offset_filter.filter().contains_digest(place);
                    let halves = block.chunks_exact(self.about.half()).zip(2 * number..);
                    row.extend(halves.map(|(half, number)| {
                        is_there.then(|| self.about.half_scheme().record(half.digest(hasher), number, 0))
                    }));
                }
                vec![row]
            }
            (Cut::Winnowed(winnowing), None) => {
                let mut rows = vec![Vec::new(); winnowing.instances() as usize];
                for block in winnowing.blocks(excerpt) {
                    rows[block.instance as usize].push(Some(self.about.winnowed(&block)));
                }
                rows
            }
            // All epochs of a run are cut in the same way.
            _ => Vec::new(),
        }
    }

    /// Returns the rate at which a pair has all records of a block by chance.
    fn rate_of_blocks(&self) -> f64 {
        self.rate().powi(if matches!(self.cut, Cut::Evenly(_)) { 2 } else { 1 })
    }

    /// Returns whether the pair at this index of the list has a record.
    fn had(&self, at: usize, record: &Record) -> bool {
        record.is_some_and(|record| self.payload_filter.contains_digest(record.salted(self.salts[at].get())))
    }

    fn finding(&self, excerpt: &[u8], listed: Listed, place: &ExcerptEnd, chance: f64) -> Finding {
        let (blocks, not_compared) = match (&self.cut, place.hit) {
            (Cut::Winnowed(winnowing), _) => {
                let blocks: usize = place.blocks.iter().sum();
                (blocks as u64, not_compared(excerpt, &winnowing.blocks(excerpt)))
            }
            (_, hit) => hit.map_or((0, 0), |hit| (hit.blocks, hit.prefix + hit.suffix)),
        };
        Finding { listed, hit: place.hit, blocks, not_compared, places: 1, chance }
    }
}
