//! The bit array of one level, and the bits that belong to the groups of a key.

use crate::arch::{Kernel, Simd, prefetch};
use crate::bloom::scattered::{self, Scatter};
use crate::bloom::{Layout, OUT_OF_CACHE};
use crate::hash::reduce;
use crate::memory::{Mover, Words, bits};
use crate::sizing::space_code::MAX_LEVELS;
use crate::structure::Probe;
use crate::{Digest, Level, Result, Standard, TILE};
use std::sync::OnceLock;

/// The bits of one level. A group of a key is a digest of its own, which is in the array as in a standard filter.
#[derive(Debug)]
pub(super) struct Array {
    layout: Standard,
    words: Words,
    /// What makes a group's digest of a key's.
    salts: Vec<u64>,
    /// How many bits are set, once somebody wanted to know.
    ones: OnceLock<u64>,
}

impl Array {
    pub fn new(layout: Standard, salts: Vec<u64>) -> Result<Array> {
        Ok(Array { layout, words: Words::zeroed(layout.lines())?, salts, ones: OnceLock::from(0) })
    }

    pub fn from_words(layout: Standard, salts: Vec<u64>, words: Words) -> Array {
        Array { layout, words, salts, ones: OnceLock::new() }
    }

    pub fn try_clone(&self) -> Result<Array> {
        let (salts, ones) = (self.salts.clone(), self.ones.clone());
        Ok(Array { layout: self.layout, words: self.words.try_clone()?, salts, ones })
    }

    pub fn relocate(&mut self, mover: &mut dyn Mover) {
        self.words.relocate(mover);
    }

    pub fn layout(&self) -> Standard {
        self.layout
    }

    pub fn words(&self) -> &Words {
        &self.words
    }

    #[cfg(test)]
    pub fn salts(&self) -> &[u64] {
        &self.salts
    }

    /// How many bits are set. They are counted once, and then kept count of.
    pub fn ones(&self) -> u64 {
        *self.ones.get_or_init(|| self.words.count_ones())
    }

    /// The probability that a group that was not hit is found.
    pub fn noise(&self) -> f64 {
        self.noise_of(self.ones())
    }

    /// The noise of so many set bits.
    pub fn noise_of(&self, ones: u64) -> f64 {
        // Damaged files may have ones beyond the last bit.
        (ones as f64 / self.layout.bits() as f64).min(1.0).powi(self.layout.hashes() as i32)
    }

    /// The digest of a key's group.
    #[inline(always)]
    pub fn group(&self, digest: Digest, group: usize) -> Digest {
        digest.salted(self.salts[group])
    }

    /// Sets the bits of a group.
    #[inline(always)]
    pub fn set(&mut self, group: Digest) {
        let words = self.words.words_mut();
        let before = |position| u64::from(!bits::set(words, position));
        let new: u64 = self.layout.positions(group).map(before).sum();
        if let Some(ones) = self.ones.get_mut() {
            *ones += new;
        }
    }

    /// Whether the bits are taken to be outside the caches.
    pub fn is_far(&self) -> bool {
        self.words.words().len() >= OUT_OF_CACHE
    }

    /// Asks for the bits of groups that are about to be set, if they are far away.
    pub fn fetch(&self, groups: &[Digest]) {
        scattered::fetch_to_insert(self.layout, self.words.words(), groups);
    }

    pub fn clear(&mut self) {
        self.words.words_mut().fill(0);
        self.ones = OnceLock::from(0);
    }

    pub fn unite(&mut self, other: &Array) {
        self.words.merge(&other.words, |a, b| a | b);
        self.ones = OnceLock::new();
    }

    /// How many of a key's groups are found.
    #[inline]
    pub fn found(&self, level: Level, digest: Digest) -> u32 {
        level.run(CountGroups { array: self, digest })
    }

    /// The digests of all groups of some keys, key by key; they fit into a tile.
    #[inline]
    pub fn groups_of<'a>(&self, keys: &[Digest], tile: &'a mut [Digest; TILE]) -> &'a [Digest] {
        let groups = keys.iter().flat_map(|key| self.salts.iter().map(|salt| key.salted(*salt)));
        let mut len = 0;
        for (place, group) in tile.iter_mut().zip(groups) {
            *place = group;
            len += 1;
        }
        &tile[..len]
    }

    /// How many of a key's groups are found, with every bit told before it is read.
    pub fn trace(
        &self,
        section: usize,
        digest: Digest,
        probe: &mut dyn FnMut(Probe) -> Result<()>,
    ) -> Result<u32> {
        let mut found = 0;
        for group in 0..self.salts.len() {
            let mut all = true;
            for bit in self.layout.positions(self.group(digest, group)) {
                probe(Probe { section, bits: bit..bit + 1 })?;
                if !bits::is_set(self.words.words(), bit) {
                    all = false;
                    break;
                }
            }
            found += u32::from(all);
        }
        Ok(found)
    }
}

/// Counts the groups in which one key is found.
struct CountGroups<'a> {
    array: &'a Array,
    digest: Digest,
}

impl Kernel for CountGroups<'_> {
    type Output = u32;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> u32 {
        let Array { layout, words, salts, .. } = self.array;
        let words = words.words();
        let mut groups = [Digest::default(); TILE];
        for (group, salt) in groups.iter_mut().zip(salts) {
            *group = self.digest.salted(*salt);
            prefetch(words, layout.word(layout.position(0, group.get())));
        }
        let mut found = 0;
        for group in &groups[..salts.len().min(TILE)] {
            found += u32::from(scattered::contains(*layout, words, *group));
        }
        found
    }
}

/// What one recording hits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hits {
    /// A bit for each level that takes it in.
    levels: u16,
    /// The group on each of these.
    groups: [u8; MAX_LEVELS as usize],
}

impl Hits {
    /// Every level takes a recording in with probability 4^-level, independently of the others: if as many pairs of
    /// bits, its own, are zero. On each that does, a group is drawn.
    #[inline]
    pub fn draw(levels: usize, groups: u32, random: &mut impl FnMut() -> u64) -> Hits {
        let mut hits = Hits::default();
        let (mut word, mut left) = (0u64, 0);
        for level in 0..levels {
            let width = 2 * level as u32;
            if left < width {
                (word, left) = (random(), 64);
            }
            let chosen = word & ((1 << width) - 1) == 0;
            (word, left) = (word >> width, left - width);
            if chosen {
                hits.levels |= 1 << level;
                hits.groups[level] = reduce(random(), groups.into()) as u8;
            }
        }
        hits
    }

    /// The group on the first level, which takes everything in.
    #[inline(always)]
    pub fn first(&self) -> usize {
        self.groups[0].into()
    }

    /// Level and group.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        crate::tile::ones(self.levels.into()).map(|level| (level, self.groups[level].into()))
    }
}
