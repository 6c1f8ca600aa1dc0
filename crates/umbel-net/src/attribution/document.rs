//! The parts of a document that were carried, regardless of how it was cut into payloads.
//!
//! A document is not looked up as a whole, since it may have been sent in many payloads, only in
//! part, or with changes. Instead the search finds every stretch of it that has several whole
//! blocks in one payload or stream. With blocks of equal size, the block at each byte of the
//! document is tested at all places at once; blocks that are adjacent both in the document and in a
//! payload form a stretch.

use super::epoch::{Cut, OffsetFilter};
use super::{Epoch, Listed, WINDOW};
use crate::payload::winnowing::{Block, Winnowing};
use crate::{Error, Result};
use std::collections::HashMap;
use std::ops::Range;
use umbel::internals::TILE;
use umbel::{AnyFilter, Digest, Key};

/// The parts of a document that a pair carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The pair, and the times when it communicated in the epoch.
    pub listed: Listed,
    /// The ranges of bytes in the document, in order and not touching.
    pub ranges: Vec<Range<usize>>,
}

/// The findings of an epoch about a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// The parts that were carried, one per pair.
    pub parts: Vec<Part>,
    /// The length from which stretches are always found, if they lie in one payload or in the part
    /// of a stream that the epoch has. Shorter ones could be found by chance. With
    /// [winnowing](super::Method::Winnowing), this holds only for content that does not repeat
    /// itself: repetitive content has fewer blocks.
    pub least: usize,
    /// The number of stretches expected by chance.
    pub expected: f64,
}

/// The largest number of stretches per epoch that may be expected by chance.
const MAX_EXPECTED: f64 = 1e-3;
/// The largest number of blocks required of a stretch.
const MAX_BLOCKS: usize = 64;

impl Epoch {
    /// Finds the parts of a document that pairs carried.
    ///
    /// # Errors
    ///
    /// Fails if the document is too short to contain two blocks in every alignment.
    pub fn find_parts(&self, document: &[u8]) -> Result<Parts> {
        let needed = self.needed_for(2);
        if document.len() < needed {
            let needs = format!("at least {needed} bytes, so that it surely has two whole blocks");
            return Err(Error::parameter("document", format!("{} bytes", document.len()), needs));
        }
        let mut ranges: Vec<Vec<Range<usize>>> = vec![Vec::new(); self.listed.len()];
        let (blocks, expected) = match &self.cut {
            Cut::Evenly(offset_filter) => self.find_even_parts(offset_filter, document, &mut ranges),
            Cut::Winnowed(winnowing) => self.find_winnowed_parts(winnowing, document, &mut ranges),
        };
        let parts = self.listed.iter().zip(ranges).filter(|(_, ranges)| !ranges.is_empty());
        let parts = parts.map(|(listed, ranges)| Part { listed: *listed, ranges: united(ranges) }).collect();
        Ok(Parts { parts, least: self.needed_for(blocks), expected })
    }

    /// Returns the length that contains this many adjacent whole blocks in every alignment.
    fn needed_for(&self, blocks: usize) -> usize {
        self.needed() + (blocks - 1) * self.about.block
    }

    /// Returns the number of adjacent blocks that rules out chance, given the number of chances,
    /// and the number of such runs still expected by chance.
    fn enough(&self, chances: f64) -> (usize, f64) {
        // With blocks of equal size, each block has two halves in the payload filter.
        let rate = match &self.cut {
            Cut::Evenly(offset_filter) => offset_filter.filter().stats().rate_now * self.rate().powi(2),
            Cut::Winnowed(_) => self.rate(),
        };
        let expected = |blocks: usize| chances * self.listed.len() as f64 * rate.powi(blocks as i32);
        // A single block is never enough evidence.
        let blocks = (2..MAX_BLOCKS).find(|blocks| expected(*blocks) < MAX_EXPECTED).unwrap_or(MAX_BLOCKS);
        (blocks, expected(blocks))
    }

    fn find_even_parts(
        &self,
        offset_filter: &OffsetFilter,
        document: &[u8],
        ranges: &mut [Vec<Range<usize>>],
    ) -> (usize, f64) {
        let size = self.about.block;
        let (blocks, expected) = self.enough(document.len() as f64 * WINDOW as f64);
        let (mut records, mut cache) = (Vec::new(), PairCache::default());
        // The last records that were looked up and the pairs that had them: stretches of zeros all
        // have the same.
        let mut last = Vec::new();
        let mut runs: Vec<(usize, Range<usize>)> = Vec::new();
        for prefix in 0..size {
            let digests: Vec<Digest> = document[prefix..]
                .chunks_exact(size)
                .map(|block| block.digest(self.payload_filter.hasher()))
                .collect();
            self.stretches(offset_filter.filter(), &digests, blocks, |stretch, place| {
                let start = prefix + stretch.start * size;
                let halves = document[start..prefix + stretch.end * size].chunks_exact(self.about.half());
                let digests = halves.map(|half| half.digest(self.payload_filter.hasher()));
                let record = |(digest, number)| self.about.half_scheme().record(digest, number, 0);
                records.clear();
                records.extend(digests.zip(2 * place..).map(record));
                if records != last {
                    runs.clear();
                    self.runs_of_pairs(&records, 2 * blocks, &mut cache, |at, run| runs.push((at, run)));
                    last.clone_from(&records);
                }
                let byte = |half: usize| start + half * self.about.half();
                for (at, run) in &runs {
                    put(&mut ranges[*at], byte(run.start)..byte(run.end));
                }
            });
        }
        (blocks, expected)
    }

    fn find_winnowed_parts(
        &self,
        winnowing: &Winnowing,
        document: &[u8],
        ranges: &mut [Vec<Range<usize>>],
    ) -> (usize, f64) {
        let all = winnowing.blocks(document);
        let (blocks, expected) = self.enough(all.len() as f64);
        let mut cache = PairCache::default();
        for instance in 0..winnowing.instances() {
            let cut: Vec<&Block> = all.iter().filter(|block| block.instance == instance).collect();
            let records: Vec<Digest> = cut.iter().map(|block| self.about.winnowed(block)).collect();
            self.runs_of_pairs(&records, blocks, &mut cache, |at, run| {
                put(&mut ranges[at], cut[run.start].start as usize..cut[run.end - 1].end as usize);
            });
        }
        (blocks, expected)
    }

    /// Calls `each` with every stretch of blocks that are adjacent in some payload, and with the
    /// place of its first block.
    fn stretches(
        &self,
        offsets: &AnyFilter,
        blocks: &[Digest],
        least: usize,
        mut each: impl FnMut(Range<usize>, u64),
    ) {
        // `lengths[place]` is the number of adjacent blocks that end at this place.
        let mut lengths = [0; WINDOW as usize];
        for at in 0..=blocks.len() {
            let found = blocks.get(at).map_or(0, |block| self.places(offsets, *block));
            // A stretch that ends at one place continues at the next.
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

    /// Returns the places where a block occurred, one bit each.
    pub(super) fn places(&self, offsets: &AnyFilter, block: Digest) -> u64 {
        if !self.admits(&[block]) {
            return 0;
        }
        let mut tile = [Digest::default(); TILE];
        for (record, number) in tile.iter_mut().zip(0..WINDOW) {
            *record = self.about.scheme().record(block, number, 0);
        }
        offsets.contains_tile(&tile)
    }

    /// Calls `each` with every run of at least `least` records that a pair has.
    fn runs_of_pairs(
        &self,
        records: &[Digest],
        least: usize,
        cache: &mut PairCache,
        mut each: impl FnMut(usize, Range<usize>),
    ) {
        // Every such run contains one of these records, so most pairs are tested for few records.
        for middle in (least - 1..records.len()).step_by(least) {
            for &at in cache.pairs(self, records[middle]) {
                let salt = self.salts[at].get();
                let had = |record: &Digest| self.payload_filter.contains_digest(record.salted(salt));
                let (before, after) = records.split_at(middle);
                // A run that extends this far back was reported before.
                let earlier = before.iter().rev().take(least).take_while(|record| had(record)).count();
                if earlier < least {
                    let start = middle - earlier;
                    let end = middle + after.iter().take_while(|record| had(record)).count();
                    if end - start >= least {
                        each(at, start..end);
                    }
                }
            }
        }
    }

    /// Returns which of at most 64 pairs have a record, one bit each.
    pub(super) fn had_by(&self, pairs: &[Digest], record: Digest) -> u64 {
        let mut tile = [Digest::default(); TILE];
        for (salted, pair) in tile.iter_mut().zip(pairs) {
            *salted = record.salted(pair.get());
        }
        self.payload_filter.contains_tile(&tile[..pairs.len()])
    }
}

/// A cache of the pairs that have a record. Repetitive content, such as zeros, has the same records
/// at all places and in all alignments.
#[derive(Default)]
struct PairCache {
    pairs: HashMap<Digest, Vec<usize>>,
    /// The number of cached entries, weighted by their size.
    size: usize,
}

impl PairCache {
    /// The size at which the cache is emptied.
    const MAX_SIZE: usize = 1 << 22;

    fn pairs(&mut self, epoch: &Epoch, record: Digest) -> &[usize] {
        if self.size > PairCache::MAX_SIZE {
            *self = PairCache::default();
        }
        let size = &mut self.size;
        self.pairs.entry(record).or_insert_with(|| {
            let mut had = Vec::new();
            for (pairs, start) in epoch.salts.chunks(TILE).zip((0..).step_by(TILE)) {
                let mut found = epoch.had_by(pairs, record);
                while found != 0 {
                    had.push(start + found.trailing_zeros() as usize);
                    found &= found - 1;
                }
            }
            *size += 8 + had.len();
            had
        })
    }
}

/// Adds a range; extends the last range instead if the two touch or overlap.
fn put(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if (last.start..=last.end).contains(&range.start) => last.end = last.end.max(range.end),
        _ => ranges.push(range),
    }
}

/// Merges ranges that overlap or touch, and returns them in order.
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
