//! Bloom filters proper: [`Bloom`], an array of bits in one of three [`Layout`]s.
//!
//! A key sets k bits. A lookup tests the same bits: a zero means that the key was certainly not
//! inserted, k ones that it probably was. Keys cannot be removed, since a bit may belong to several
//! of them. The layouts differ in where the bits of a key are:
//!
//! | layout | bits per key at 1 % | cache lines a lookup touches | use it |
//! | --- | --- | --- | --- |
//! | [`Blocked`] | 10.1 | 1, and 2 to 4 below about 0.05 % | by default |
//! | [`Standard`] | 9.6 | up to k; 2 on average for a non-member | when space matters most, or the filter is small |
//! | [`Partitioned`] | 10.1 | like standard | when every key must set exactly k bits |
//!
//! ```
//! use umbel::{Bloom, Standard};
//! let mut filter = Bloom::<Standard>::with_capacity(10_000, 0.001)?;
//! filter.insert("apple");
//! assert!(filter.contains("apple"));
//! assert!(!filter.contains("pear"));
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # Cost
//!
//! A standard filter takes 1.44 log2(1 / rate) bits per key: 9.6 at 1 %, and 4.8 more for each
//! further decimal place. Out of cache, a batch of lookups in a blocked filter takes about as long
//! as it takes to load one cache line per key, and in a standard filter about four times as long.
//!
//! Filters of the same shape and hash can be united, intersected and compared without their keys,
//! and folded to half their size.
//!
//! # References
//!
//! * B. H. Bloom. *Space/time trade-offs in hash coding with allowable errors.* Communications of
//!   the ACM 13(7), 1970. `Bloom70`
//! * J. K. Mullin. *A second look at Bloom filters.* Communications of the ACM 26(8), 1983.
//!   `Mullin83`
//! * A. Broder and M. Mitzenmacher. *Network applications of Bloom filters: a survey.* Internet
//!   Mathematics 1(4), 2004. `BM04`
//! * F. Putze, P. Sanders and J. Singler. *Cache-, hash- and space-efficient Bloom filters.* ACM
//!   Journal of Experimental Algorithmics 14, 2009. `PSS09`

mod any_of;
mod blocked;
mod combine;
mod concurrent;
mod filter;
pub(crate) mod kernels;
pub(crate) mod layout;
pub(crate) mod scattered;
mod sorter;

pub(crate) use any_of::AnyOf;
pub use blocked::Blocked;
pub use concurrent::Concurrent;
pub(crate) use filter::Bits;
pub use filter::BloomFilter;
#[doc(hidden)]
pub use layout::Layout;
pub(crate) use scattered::OUT_OF_CACHE;
pub use scattered::{Partitioned, Standard};

use crate::arch::Simd;
use crate::file::FormatError;
use crate::memory::{LINE_BYTES, Mover, Words};
use crate::methods::{
    absorb_methods, insert_methods, intersect_methods, overlap_methods, set_methods, structure_methods,
    union_methods,
};
use crate::sizing::{Cardinality, greatest};
use crate::structure::{self, BITS, Head, Parts, Probe};
use crate::tile::{self, split_tile};
use crate::{
    Answers, Batch, Capabilities, Design, Digest, Filter, Hasher, Insert, Key, Kind, Plan, Result, Set, Spec,
    Stats, Structure,
};
use kernels::Fill;
use std::convert::Infallible;

/// A Bloom filter: an array of bits, a layout that maps digests to bits, and a hash.
///
/// There are no false negatives: an inserted key is always found. Any other key is found with at
/// most the planned rate, as long as the filter holds no more keys than planned.
pub struct Bloom<L: Layout> {
    layout: L,
    words: Words,
    head: Head,
}

impl<L: Layout> Bloom<L> {
    /// Looks up one digest in a loop that is compiled for an instruction set.
    #[inline(always)]
    pub(crate) fn contains_with<S: Simd>(&self, simd: S, digest: Digest) -> bool {
        self.layout.contains(simd, self.words.lines(), digest)
    }

    /// Makes an empty filter for `capacity` keys with a false-positive rate of `rate` and the fast
    /// hash. It has this layout even if it is small; [`AnyFilter::build`](crate::AnyFilter::build)
    /// and [`BloomFilter`] choose a better one for small filters.
    ///
    /// # Errors
    ///
    /// If `capacity` is 0, if `rate` is not between 0 and 1 or too small for 64-bit digests, or if
    /// there is not enough memory.
    pub fn with_capacity(capacity: u64, rate: f64) -> Result<Bloom<L>> {
        Bloom::build(&Spec::new(capacity, rate)?)
    }

    /// Makes an empty filter of exactly this layout.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn with_layout(layout: L, hasher: Hasher) -> Result<Bloom<L>> {
        Bloom::with_head(layout, Head::new(hasher))
    }

    pub(crate) fn with_head(layout: L, head: Head) -> Result<Bloom<L>> {
        Ok(Bloom { layout, words: Words::zeroed(layout.lines())?, head })
    }

    pub(crate) fn from_parts(layout: L, words: Words, head: Head) -> Bloom<L> {
        Bloom { layout, words, head }
    }

    /// Returns a filter of the same keys in half the memory, without needing the keys; see
    /// [`BloomFilter::fold`].
    ///
    /// # Errors
    ///
    /// If the size is odd or there is not enough memory.
    pub fn fold(&self) -> Result<Bloom<L>> {
        Set::fold(self)
    }

    /// Returns the layout.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// Returns the memory of the bits.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Returns the words for a kind that contains this filter as a part.
    #[inline(always)]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        self.words.words_mut()
    }
}

structure_methods!([L: Layout] Bloom<L>);
set_methods!([L: Layout] Bloom<L>);
insert_methods!([L: Layout] Bloom<L>);
union_methods!([L: Layout] Bloom<L>);
intersect_methods!([L: Layout] Bloom<L>);
overlap_methods!([L: Layout] Bloom<L>);
absorb_methods!([L: Layout] Bloom<L>);

impl<L: Layout> structure::sealed::Sealed for Bloom<L> {}

impl<L: Layout> Structure for Bloom<L> {
    const KIND: Kind = L::KIND;

    const CAPABILITIES: Capabilities = Capabilities {
        union: true,
        intersect: true,
        fold: true,
        absorb: true,
        share: true,
        ..Capabilities::NOTHING
    };

    fn plan(spec: &Spec) -> Result<Plan> {
        Ok(L::plan(spec)?.1)
    }

    fn predicted_rate(&self, n: u64) -> Result<f64> {
        self.layout.predicted_rate(n)
    }

    fn try_clone(&self) -> Result<Bloom<L>> {
        Ok(Bloom { layout: self.layout, words: self.words.try_clone()?, head: self.head.clone() })
    }

    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        let mut answer = Ok(true);
        self.layout.visit(digest, &mut |bit| {
            if let Ok(true) = answer {
                let at = Probe::bit(bit);
                answer = probe(at.clone()).map(|()| at.value(&self.words) == 1);
            }
        });
        answer
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    fn params(&self) -> Vec<u64> {
        self.layout.params().to_vec()
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        vec![(BITS, &self.words)]
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.words.relocate(mover);
    }

    fn restore(mut parts: Parts) -> Result<Bloom<L>> {
        let layout = L::from_params(parts.params()?)?;
        let words = parts.section(BITS, layout.lines())?;
        Ok(Bloom::from_parts(layout, words, parts.finish()?))
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        structure::check_tail(&self.words, self.layout.bits())
    }
}

impl<L: Layout> Set for Bloom<L> {
    fn build(spec: &Spec) -> Result<Bloom<L>> {
        let (layout, plan) = L::plan(spec)?;
        Bloom::with_head(layout, Head::planned(spec, &plan))
    }

    fn clear(&mut self) {
        self.words.words_mut().fill(0);
        self.head = self.head.emptied();
    }

    fn try_clone_empty(&self) -> Result<Bloom<L>> {
        Bloom::with_head(self.layout, self.head.emptied())
    }

    fn fold(&self) -> Result<Bloom<L>> {
        let layout = self.layout.folded()?;
        let mut folded = Bloom::with_head(layout, self.head.clone())?;
        L::fold(self.words.lines(), folded.words.lines_mut());
        // With half the bits, the planned rate allows fewer keys, or none.
        folded.head.design = self.head.design.and_then(|design| {
            let keeps = |n| layout.predicted_rate(n).is_ok_and(|rate| rate <= design.rate);
            greatest(1..=design.capacity, keeps).map(|capacity| Design { capacity, ..design })
        });
        Ok(folded)
    }
}

impl<L: Layout> Filter for Bloom<L> {
    fn kind(&self) -> Kind {
        L::KIND
    }

    #[inline(always)]
    fn hasher(&self) -> &Hasher {
        &self.head.hasher
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.head.level.run(kernels::ContainsDigest { filter: self, digest })
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        tile::contains_tile(self.head.level, &self.layout, self.words.lines(), tile)
    }

    fn stats(&self) -> Stats {
        let set_bits = self.words.count_ones();
        let estimate = self.layout.shape().cardinality(set_bits).unwrap_or(Cardinality::Saturated);
        // A key sets at most k bits.
        let least = set_bits.div_ceil(self.layout.hashes().into());
        Stats {
            cells: self.layout.bits(),
            used_cells: set_bits,
            bits: self.layout.bits(),
            hashes: self.layout.hashes(),
            bytes: self.layout.lines() * LINE_BYTES as u64,
            estimate: estimate.within(least, self.head.inserted),
            rate_now: self.layout.rate_of(self.words.lines()),
            ..Stats::from_structure(self)
        }
    }

    #[inline]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        // Hash outside the kernel, so that a caller's loop computes values that depend only on the
        // seed once.
        self.contains_digest(key.digest(self.hasher()))
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        tile::contains_batch(self.head.level, &self.layout, self.words.lines(), &self.head.hasher, keys)
    }
}

impl<L: Layout> Insert for Bloom<L> {
    type Error = Infallible;

    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Infallible> {
        Ok(self.head.level.run(kernels::InsertDigest { filter: self, digest }))
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<(), Infallible> {
        let lines = self.words.lines_mut();
        self.head.level.run(kernels::InsertTile { layout: &self.layout, lines, tile });
        self.head.count_inserted(tile.len());
        Ok(())
    }

    fn insert_tile_new(&mut self, tile: &[Digest]) -> Result<u64, Infallible> {
        let (tile, rest) = split_tile(tile);
        let lines = self.words.lines_mut();
        let new = self.head.level.run(kernels::InsertTileNew { layout: &self.layout, lines, tile });
        self.head.count_inserted(tile.len());
        self.insert_tile(rest);
        Ok(new)
    }

    fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<(), Infallible> {
        let work = Fill { lines: self.words.lines_mut() };
        tile::run(self.head.level, &self.layout, &self.head.hasher, keys, work)?;
        self.head.count_inserted(keys.len());
        Ok(())
    }
}
