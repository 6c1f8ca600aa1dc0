//! The bit array of one level, and the bits of a key's groups.

use crate::arch::{Kernel, Simd, prefetch};
use crate::bloom::scattered::{self, Scatter};
use crate::bloom::{Layout, OUT_OF_CACHE};
use crate::hash::reduce;
use crate::memory::{Mover, Words, bits};
use crate::sizing::space_code::MAX_LEVELS;
use crate::structure::Probe;
use crate::{Digest, Level, Result, Standard, TILE};
use std::sync::OnceLock;

/// The bits of one level. Each group of a key has a digest of its own, which is stored as in a
/// standard filter.
#[derive(Debug)]
pub(super) struct Array {
    layout: Standard,
    words: Words,
    /// The salts that turn a key's digest into those of its groups.
    salts: Vec<u64>,
    /// The number of set bits, counted on the first query.
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

    /// Returns the number of set bits. They are counted once, and the count is then kept up to
    /// date.
    pub fn ones(&self) -> u64 {
        *self.ones.get_or_init(|| self.words.count_ones())
    }

    /// Returns the probability that a group is found although it was not hit.
    pub fn noise(&self) -> f64 {
        self.noise_of(self.ones())
    }

    /// Returns the noise for this number of set bits.
    pub fn noise_of(&self, ones: u64) -> f64 {
        noise(ones, self.layout.bits(), self.layout.hashes())
    }

    /// Returns the digest of a key's group.
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

    /// Returns whether the bits are assumed to be outside the caches.
    pub fn is_far(&self) -> bool {
        self.words.words().len() >= OUT_OF_CACHE
    }

    /// Prefetches the bits of groups that are about to be set, if they are outside the caches.
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

    /// Returns the number of a key's groups that are found.
    #[inline]
    pub fn found(&self, level: Level, digest: Digest) -> u32 {
        level.run(CountGroups { array: self, digest })
    }

    /// Returns the digests of all groups of some keys, key by key; they must fit in a tile.
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

    /// Returns the number of a key's groups that are found, and reports every bit before it is
    /// read.
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

/// Returns the noise of a level of `bits` bits, `ones` of which are set, with `hashes` hash functions
/// for each group.
pub(super) fn noise(ones: u64, bits: u64, hashes: u32) -> f64 {
    // Damaged files may have set bits beyond the last one.
    (ones as f64 / bits as f64).min(1.0).powi(hashes as i32)
}

/// Counts the groups of one key that are found.
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

/// The groups that one recording hits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hits {
    /// A mask of the levels that sample the recording.
    levels: u16,
    /// The group on each of these levels.
    groups: [u8; MAX_LEVELS as usize],
}

impl Hits {
    /// Draws the levels and groups of a recording. Each level samples it with probability 4^-level,
    /// independently of the others: if `2 * level` random bits of its own are all zero. A group is
    /// drawn for each level that samples the recording.
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

    /// Returns the group on the first level, which samples every recording.
    #[inline(always)]
    pub fn first(&self) -> usize {
        self.groups[0].into()
    }

    /// Iterates over the pairs of level and group.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        crate::tile::ones(self.levels.into()).map(|level| (level, self.groups[level].into()))
    }
}
