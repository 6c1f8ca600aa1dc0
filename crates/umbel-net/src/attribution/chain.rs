//! Excerpts of streams that began in one epoch and ended in another.
//!
//! Of such an excerpt each epoch has some blocks only. The list of pairs tells whose streams went on from an epoch before, so that
//! only those are looked at: the last blocks in the epoch at hand, those before them in the one in which the pair spoke before, and so on,
//! backwards, until the first block is found or one is missing.

use super::{Epoch, Finding, Pair, WINDOW};
use crate::capture::Time;
use crate::payload::Hit;
use umbel::{Digest, Filter, Key, TILE};

/// The end of an excerpt whose start is to be looked for in epochs before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tail {
    pub pair: Pair,
    /// When the pair last spoke.
    last: Time,
    /// What would be reported if the start were found.
    hit: Hit,
    /// How many blocks are still to be found; never none.
    missing: usize,
    /// How many pairs are found like this one by chance.
    chance: f64,
}

impl Epoch {
    /// The ends of an excerpt that pairs have in this epoch whose streams had begun before it.
    pub(super) fn tails(&self, excerpt: &[u8]) -> Vec<Tail> {
        let continued: Vec<usize> = (0..self.listed.len()).filter(|at| self.listed[*at].continued).collect();
        let mut tails = Vec::new();
        if continued.is_empty() {
            return tails;
        }
        let rates = self.rates();
        for prefix in 0..self.about.block {
            let blocks = self.blocks(excerpt, prefix);
            let Some(last) = blocks.last() else { continue };
            let mut places = [Digest::default(); TILE];
            for (place, number) in places.iter_mut().zip(0..WINDOW) {
                *place = self.about.scheme().record(*last, number, 0);
            }
            let mut found = self.offsets.filter().contains_tile(&places);
            while found != 0 {
                let end = u64::from(found.trailing_zeros());
                found &= found - 1;
                // The number of the first block, if this is that of the last one.
                let first = end.wrapping_sub(blocks.len() as u64 - 1) % WINDOW;
                let hit = self.hit(excerpt, prefix, first);
                for &at in &continued {
                    let missing = self.reach_back(at, &blocks, first, blocks.len());
                    if missing > 0 && missing < blocks.len() {
                        let agreed = (blocks.len() - missing) as i32;
                        let chance = continued.len() as f64 * (rates.0 * rates.1).powi(agreed);
                        let listed = &self.listed[at];
                        tails.push(Tail { pair: listed.pair, last: listed.last, hit, missing, chance });
                    }
                }
            }
        }
        tails
    }

    /// Looks for the start of an excerpt here, in an epoch before. Nothing if its pair has nothing of it; else what is found, or what is still
    /// missing and may be in an epoch before this one.
    pub(super) fn complete(&self, excerpt: &[u8], tail: Tail) -> Option<Result<Finding, Tail>> {
        let at = self.place(tail.pair)?;
        let blocks = self.blocks(excerpt, tail.hit.prefix);
        let missing = self.reach_back(at, &blocks, tail.hit.block, tail.missing);
        let agreed = (tail.missing - missing) as i32;
        let rates = self.rates();
        let chance = tail.chance * (rates.0 * rates.1).powi(agreed);
        let mut listed = self.listed[at];
        match missing {
            0 => {
                listed.last = tail.last;
                Some(Ok(Finding { listed, hit: tail.hit, places: 1, chance }))
            }
            _ if agreed > 0 && listed.continued => Some(Err(Tail { missing, chance, ..tail })),
            _ => None,
        }
    }

    /// The place of a pair in the list, if it spoke.
    pub(super) fn place(&self, pair: Pair) -> Option<usize> {
        self.listed.binary_search_by_key(&pair, |listed| listed.pair).ok()
    }

    /// How many of the first `end` blocks are left when, from the last of them back, those are taken away that the pair had.
    fn reach_back(&self, at: usize, blocks: &[Digest], first: u64, end: usize) -> usize {
        let salt = self.salts[at].get();
        let had = |number: &usize| {
            let record = self.about.scheme().record(blocks[number - 1], first + *number as u64 - 1, 0);
            self.payloads.contains_digest(record.salted(salt))
                && self.offsets.filter().contains_digest(record)
        };
        (1..=end).rev().find(|number| !had(number)).unwrap_or(0)
    }

    fn blocks(&self, excerpt: &[u8], prefix: usize) -> Vec<Digest> {
        let blocks = excerpt.get(prefix..).unwrap_or_default().chunks_exact(self.about.block);
        blocks.map(|block| block.digest(self.payloads.hasher())).collect()
    }

    fn hit(&self, excerpt: &[u8], prefix: usize, block: u64) -> Hit {
        let size = self.about.block;
        let compared = (excerpt.len() - prefix) / size;
        Hit {
            position: self.offsets.position(block, prefix),
            block,
            blocks: compared as u64,
            prefix,
            suffix: excerpt.len() - prefix - compared * size,
            tail: false,
        }
    }
}
