//! The attenuated filter of a link, with a level for each distance.

use crate::{Error, Result};
use umbel::Digest;
use umbel::hash::reduce;

/// The largest number of positions of a document.
pub const MAX_HASHES: u32 = 16;

/// The largest number of levels.
pub const MAX_DEPTH: u32 = 16;

/// The size of all filters of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterShape {
    /// The number of bits of a level (w).
    pub bits: u32,
    /// The number of bits of a document (k).
    pub hashes: u32,
    /// The number of levels (d).
    pub depth: u32,
}

impl FilterShape {
    /// Fails if a number is out of range.
    pub(super) fn check(self) -> Result<()> {
        if !(1..=1 << 24).contains(&self.bits) {
            return Err(Error::parameter("bits", self.bits, "a number from 1 to 2^24"));
        }
        if !(1..=MAX_HASHES).contains(&self.hashes) {
            return Err(Error::parameter("hashes", self.hashes, format!("a number from 1 to {MAX_HASHES}")));
        }
        if !(1..=MAX_DEPTH).contains(&self.depth) {
            return Err(Error::parameter("depth", self.depth, format!("a number from 1 to {MAX_DEPTH}")));
        }
        Ok(())
    }
}

/// A document, represented by its positions and its digest.
///
/// Filters know only positions. A node compares the digest too, so that it never mistakes one
/// document for another with the same positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Document {
    digest: u64,
    positions: [u32; MAX_HASHES as usize],
    count: usize,
}

impl Document {
    /// Returns the document with this digest.
    pub fn from_digest(digest: Digest, shape: FilterShape) -> Document {
        let position = |x| reduce(x, u64::from(shape.bits)) as u32;
        let positions = digest.stream().map(position).take(shape.hashes as usize);
        Document::from_iter(digest.get(), positions)
    }

    /// Returns the document with these positions, of which only the first [`MAX_HASHES`] count.
    pub fn from_positions(positions: &[u32]) -> Document {
        Document::from_iter(0, positions.iter().copied())
    }

    fn from_iter(digest: u64, from: impl Iterator<Item = u32>) -> Document {
        let mut document = Document { digest, positions: [0; MAX_HASHES as usize], count: 0 };
        for (own, position) in document.positions.iter_mut().zip(from) {
            *own = position;
            document.count += 1;
        }
        document
    }

    /// Returns the digest, or 0 for a document given by its positions.
    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the positions.
    pub fn positions(&self) -> &[u32] {
        self.positions.get(..self.count).unwrap_or(&self.positions)
    }
}

/// A bit of a level that has changed. The first level is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip {
    /// The level.
    pub level: u32,
    /// The position of the bit.
    pub position: u32,
    /// The new value of the bit.
    pub set: bool,
}

/// The documents reachable through a link, by their distance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attenuated {
    shape: FilterShape,
    words: Vec<u64>,
}

impl Attenuated {
    /// Returns an empty filter.
    ///
    /// # Errors
    ///
    /// Fails if a number of the shape is out of range.
    pub fn new(shape: FilterShape) -> Result<Attenuated> {
        shape.check()?;
        let words = shape.bits.div_ceil(64) as usize * shape.depth as usize;
        Ok(Attenuated { shape, words: vec![0; words] })
    }

    /// Returns the size of the filter.
    pub fn shape(&self) -> FilterShape {
        self.shape
    }

    /// Returns the word and the bit of a position, or `None` if there is no such position.
    fn place(&self, level: u32, position: u32) -> Option<(usize, u32)> {
        let there = (1..=self.shape.depth).contains(&level) && position < self.shape.bits;
        let row = self.shape.bits.div_ceil(64) as usize;
        there.then(|| ((level as usize - 1) * row + position as usize / 64, position % 64))
    }

    /// Returns whether a bit of a level is set.
    pub fn has(&self, level: u32, position: u32) -> bool {
        self.place(level, position).is_some_and(|(word, bit)| self.words[word] >> bit & 1 == 1)
    }

    /// Applies a flipped bit, and returns whether it changed anything. A bit that does not exist is
    /// ignored.
    pub fn apply(&mut self, flip: Flip) -> bool {
        let Some((word, bit)) = self.place(flip.level, flip.position) else { return false };
        let before = self.words[word];
        self.words[word] = before & !(1 << bit) | u64::from(flip.set) << bit;
        self.words[word] != before
    }

    /// Sets the bits of a document.
    pub fn insert(&mut self, level: u32, document: &Document) {
        for position in document.positions() {
            self.apply(Flip { level, position: *position, set: true });
        }
    }

    /// Returns whether a document may be at this distance.
    #[inline]
    pub fn matches(&self, level: u32, document: &Document) -> bool {
        document.positions().iter().all(|position| self.has(level, *position))
    }

    /// Returns the smallest distance at which a document may be.
    #[inline]
    pub fn nearest(&self, document: &Document) -> Option<u32> {
        (1..=self.shape.depth).find(|level| self.matches(*level, document))
    }

    /// Returns the potential of the link: the sum of 2^-level over all levels where the document
    /// may be.
    pub fn potential(&self, document: &Document) -> f64 {
        let levels = (1..=self.shape.depth).filter(|level| self.matches(*level, document));
        levels.map(|level| 0.5f64.powi(level as i32)).sum()
    }

    /// Returns the share of bits that are set on a level.
    pub fn fill(&self, level: u32) -> f64 {
        let row = self.shape.bits.div_ceil(64) as usize;
        let words = self.words.chunks(row).nth((level as usize).wrapping_sub(1)).unwrap_or_default();
        f64::from(words.iter().map(|word| word.count_ones()).sum::<u32>()) / f64::from(self.shape.bits)
    }
}
