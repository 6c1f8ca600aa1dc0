//! The filters that are an array of bits: [`Bloom`] in one of three [`Layout`]s.
//!
//! ```
//! use umbel::{Bloom, Filter, Insert, Standard};
//! let mut filter = Bloom::<Standard>::with_capacity(10_000, 0.001)?;
//! filter.insert("apple")?;
//! assert!(filter.contains("apple"));
//! assert!(!filter.contains("pear"));
//! # Ok::<(), umbel::Error>(())
//! ```

mod blocked;
mod combine;
mod concurrent;
mod kernels;
mod layout;
mod scattered;
mod sorter;

pub use blocked::Blocked;
pub use concurrent::Concurrent;
pub use layout::Layout;
pub use scattered::{Partitioned, Standard};

use crate::words::{LINE_BYTES, Words};
use crate::{
    Answers, Batch, Digest, Error, Filter, Hasher, Insert, Key, Kind, Level, Plan, Result, Spec, Stats, TILE,
};
use kernels::{Ask, Fill, Pipeline};

/// A Bloom filter: bits, a layout that says which of them belong to a digest, and a hash.
///
/// There are no false negatives: what was inserted is always found. What was not is found with the rate the filter
/// was planned for, as long as it holds no more keys than that.
pub struct Bloom<L: Layout> {
    layout: L,
    words: Words,
    hasher: Hasher,
    design: Option<Design>,
    /// How often something was inserted; unknown after a union.
    inserted: Option<u64>,
    level: Level,
}

/// What a filter was planned for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Design {
    /// Keys.
    pub capacity: u64,
    /// The false-positive rate once it holds so many.
    pub rate: f64,
}

impl<L: Layout> Bloom<L> {
    /// An empty filter for `capacity` keys with a false-positive rate of `rate`, hashed with the fast hash. It has
    /// this layout however small it is; [`AnyFilter::build`](crate::AnyFilter::build) knows better for small ones.
    pub fn with_capacity(capacity: u64, rate: f64) -> Result<Bloom<L>> {
        Bloom::build(&Spec::new(capacity, rate)?)
    }

    /// An empty filter as specified.
    pub fn build(spec: &Spec) -> Result<Bloom<L>> {
        let (layout, plan) = L::plan(spec)?;
        Bloom::planned(layout, spec, &plan)
    }

    /// An empty filter of the layout that a plan has.
    pub(crate) fn planned(layout: L, spec: &Spec, plan: &Plan) -> Result<Bloom<L>> {
        let mut filter = Bloom::with_layout(layout, spec.hasher().clone())?;
        filter.design = Some(Design { capacity: plan.capacity, rate: plan.rate_asked });
        Ok(filter)
    }

    /// An empty filter of exactly this layout.
    pub fn with_layout(layout: L, hasher: Hasher) -> Result<Bloom<L>> {
        let words = Words::zeroed(layout.lines())?;
        Ok(Bloom { layout, words, hasher, design: None, inserted: Some(0), level: Level::detect() })
    }

    /// A filter from its parts, as a file holds them.
    pub(crate) fn from_parts(
        layout: L,
        words: Words,
        hasher: Hasher,
        design: Option<Design>,
        inserted: Option<u64>,
    ) -> Bloom<L> {
        Bloom { layout, words, hasher, design, inserted, level: Level::detect() }
    }

    /// The layout.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// The memory.
    pub fn words(&self) -> &Words {
        &self.words
    }

    pub(crate) fn words_mut(&mut self) -> &mut Words {
        &mut self.words
    }

    /// What the filter was planned for.
    pub fn design(&self) -> Option<Design> {
        self.design
    }

    /// How often something was inserted; `None` after a union, when nobody knows.
    pub fn inserted(&self) -> Option<u64> {
        self.inserted
    }

    /// Forgets everything.
    pub fn clear(&mut self) -> Result<()> {
        self.words.words_mut()?.fill(0);
        self.inserted = Some(0);
        Ok(())
    }

    /// A copy. Mapped and static memory is shared, owned memory is copied.
    pub fn try_clone(&self) -> Result<Bloom<L>> {
        Ok(self.with_words(self.words.try_clone()?))
    }

    /// A copy in memory of its own, which can be changed whatever this one is.
    pub fn try_clone_owned(&self) -> Result<Bloom<L>> {
        Ok(self.with_words(self.words.try_clone_owned()?))
    }

    /// An empty filter of the same shape, hash and design.
    pub fn try_clone_empty(&self) -> Result<Bloom<L>> {
        let empty = self.with_words(Words::zeroed(self.layout.lines())?);
        Ok(Bloom { inserted: Some(0), ..empty })
    }

    /// The same filter over other memory.
    fn with_words(&self, words: Words) -> Bloom<L> {
        let Bloom { layout, ref hasher, design, inserted, level, .. } = *self;
        Bloom { layout, words, hasher: hasher.clone(), design, inserted, level }
    }

    /// Runs this filter's kernels on another instruction set than the best one; the answers are the same.
    pub fn set_level(&mut self, level: Level) {
        self.level = level;
    }

    fn count_inserted(&mut self, keys: usize) {
        self.inserted = self.inserted.map(|before| before.saturating_add(keys as u64));
    }
}

impl<L: Layout> Filter for Bloom<L> {
    fn kind(&self) -> Kind {
        L::KIND
    }

    #[inline(always)]
    fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.level.run(kernels::ContainsDigest { filter: self, digest })
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        self.level.run(kernels::ContainsTile { filter: self, tile: &tile[..tile.len().min(TILE)] })
    }

    fn stats(&self) -> Stats {
        let set_bits = self.words.count_ones();
        let estimate = self.layout.shape().cardinality(set_bits);
        Stats {
            kind: L::KIND,
            bits: self.layout.bits(),
            hashes: self.layout.hashes(),
            bytes: self.layout.lines() * LINE_BYTES as u64,
            capacity: self.design.map(|design| design.capacity),
            rate_target: self.design.map(|design| design.rate),
            inserted: self.inserted,
            set_bits,
            estimate: estimate.unwrap_or(crate::sizing::estimate::Cardinality::Saturated),
            rate_now: self.layout.rate_of(self.words.lines()),
        }
    }

    #[inline]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        // Hashed outside the kernel: in the caller's loop what depends only on the seed is computed once.
        self.contains_digest(key.digest(&self.hasher))
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        let work = Ask { lines: self.words.lines(), answers: Answers::with_capacity(keys.len()) };
        self.level.run(Pipeline { layout: &self.layout, hasher: &self.hasher, keys, work }).answers
    }
}

impl<L: Layout> Insert for Bloom<L> {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool> {
        self.level.run(kernels::InsertDigest { filter: self, digest })
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<()> {
        let lines = self.words.lines_mut()?;
        self.level.run(kernels::InsertTile { layout: &self.layout, lines, tile });
        self.count_inserted(tile.len());
        Ok(())
    }

    fn insert_tile_new(&mut self, tile: &[Digest]) -> Result<u64> {
        if tile.len() > TILE {
            return Err(Error::parameter(
                "tile",
                tile.len(),
                "at most 64 digests, whose answers fit into a word",
            ));
        }
        let lines = self.words.lines_mut()?;
        let new = self.level.run(kernels::InsertTileNew { layout: &self.layout, lines, tile });
        self.count_inserted(tile.len());
        Ok(new)
    }

    fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<()> {
        let work = Fill { lines: self.words.lines_mut()? };
        self.level.run(Pipeline { layout: &self.layout, hasher: &self.hasher, keys, work });
        self.count_inserted(keys.len());
        Ok(())
    }
}

impl<L: Layout> std::fmt::Debug for Bloom<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Bloom { layout, words, hasher, design, inserted, level } = self;
        f.debug_struct("Bloom")
            .field("layout", layout)
            .field("words", words)
            .field("hasher", hasher)
            .field("design", design)
            .field("inserted", inserted)
            .field("level", level)
            .finish()
    }
}
