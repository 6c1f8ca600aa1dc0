//! Deletable Bloom filters: a standard filter from which most keys can be removed. It takes a
//! quarter more memory; counters would take four times as much.
//!
//! The bits are divided into regions, and each region has a *collision bit*, which is set when any
//! bit of the region is set a second time. In a region without collisions, every set bit belongs to
//! one key, so it can be cleared together with that key:
//!
//! ```text
//! bits         0 1 0 0 | 1 0 1 0 | 0 0 0 1 | 0 0 0 0
//! collision       0    |    1    |    0    |    0
//!                           ^ a bit here was set twice: no bit of this region is ever cleared
//! ```
//!
//! A key is removed when at least one of its bits can be cleared. A key whose regions all have
//! collisions cannot be removed, and its removal reports that.
//!
//! ```
//! use umbel::{Deletable, Removed};
//! let mut filter = Deletable::with_capacity(10_000, 0.01)?;
//! filter.insert("apple");
//! filter.insert("pear");
//! assert_eq!(filter.remove("apple"), Removed::Removed);
//! assert_eq!(filter.remove("apple"), Removed::NotPresent);
//! assert!(!filter.contains("apple") && filter.contains("pear"));
//!
//! // Inserted twice, it has hit each of its bits twice: it stays for good.
//! filter.insert("pear");
//! assert_eq!(filter.remove("pear"), Removed::NotDeletable);
//! assert!(filter.contains("pear"));
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # When to use it
//!
//! Use it when memory is short and it is enough that *most* keys can be removed. It takes 12.0 bits
//! per key at 1 %, and lookups take as long as in a standard filter.
//!
//! * With [four bits per region](sizing::deletable::REGION_BITS), about 90 % of the keys can be
//!   removed from a filter that is full at 1 %, and 99.8 % from one at half its capacity. If every
//!   key must be removable, use a [cuckoo](crate::cuckoo), [quotient](crate::quotient) or
//!   [counting](crate::counting) filter.
//! * Collision bits are never cleared. Keys that come and go leave their collisions behind, and
//!   after enough rounds no key can be removed any more. `deletability` estimates the fraction of
//!   keys that can still be removed; clearing the filter is the remedy.
//! * Remove only keys that were inserted. Removing a false positive clears bits of other keys.
//! * A removed key is gone at once, but some of its bits may stay. They raise the rate a little.
//!   After a union, when the number of insertions is unknown, they also raise the estimated number
//!   of keys.
//!
//! # References
//!
//! * C. E. Rothenberg, C. A. B. Macapuna, F. L. Verdi and M. F. Magalhães. *The deletable Bloom
//!   filter: a new member of the Bloom family.* IEEE Communications Letters 14(6), 2010. `RMVM10`

#[cfg(test)]
mod tests;

use crate::arch::prefetch;
use crate::bloom::OUT_OF_CACHE;
use crate::file::FormatError;
use crate::memory::{LINE_BITS, LINE_BYTES, Mover, Words, bits};
use crate::methods::{
    absorb_methods, insert_methods, intersect_methods, overlap_methods, remove_methods, set_methods,
    structure_methods, union_methods,
};
use crate::sizing::deletable::{at_least_one_of, check_region_bits};
use crate::sizing::{self, Cardinality, Overlap};
use crate::spec::check_rate;
use crate::structure::{self, BITS, COLLISIONS, Head, Parts, Probe, sealed, small};
use crate::{
    Algebra, Answers, Batch, Bloom, Capabilities, Digest, Filter, Hasher, Insert, Key, Kind, Layout,
    Mismatch, Plan, Remove, Removed, Result, Set, Spec, Standard, Stats, Structure, TILE,
};
use std::convert::Infallible;

/// The options of a deletable filter in [`KindOptions`](crate::spec::KindOptions).
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The number of filter bits for each collision bit. With fewer, more keys can be removed, but
    /// the filter takes more memory. The default is
    /// [`REGION_BITS`](sizing::deletable::REGION_BITS).
    pub region_bits: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { region_bits: sizing::deletable::REGION_BITS }
    }
}

/// A standard Bloom filter that records in which regions of its bits keys have collided, so that a
/// key can be removed through its bits in other regions.
///
/// Lookups and rate are those of the standard filter with the same bits. The [module
/// documentation](self) describes the limits of removal.
pub struct Deletable {
    filter: Bloom<Standard>,
    regions: Regions,
    collisions: Words,
}

impl Deletable {
    /// Creates an empty filter for `capacity` keys with a false-positive rate of `rate`, hashed
    /// with the fast hash.
    ///
    /// # Errors
    ///
    /// Returns an error if `capacity` or `rate` is out of range, or if there is not enough memory.
    pub fn with_capacity(capacity: u64, rate: f64) -> Result<Deletable> {
        Deletable::build(&Spec::new(capacity, rate)?)
    }

    /// Creates an empty filter with these bits, in regions of `region_bits`; the last region may be
    /// shorter.
    ///
    /// In the notation of Rothenberg et al. 2010, a budget of m bits with r collision bits is
    /// `Standard::new(m - r, k)` with regions of (m - r) / r bits, rounded up.
    ///
    /// # Errors
    ///
    /// Returns an error if `region_bits` is out of range, or if there is not enough memory.
    pub fn with_layout(layout: Standard, region_bits: u64, hasher: Hasher) -> Result<Deletable> {
        Deletable::with_head(layout, region_bits, Head::new(hasher))
    }

    fn with_head(layout: Standard, region_bits: u64, head: Head) -> Result<Deletable> {
        let regions = Regions::new(region_bits)?;
        let collisions = Words::zeroed(regions.lines(layout))?;
        Ok(Deletable { filter: Bloom::with_head(layout, head)?, regions, collisions })
    }

    /// Returns the standard filter of the same keys: this one without its collision bits.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub fn to_standard(&self) -> Result<Bloom<Standard>> {
        self.filter.try_clone()
    }

    /// Returns the numbers of bits and hashes.
    pub fn layout(&self) -> &Standard {
        self.filter.layout()
    }

    /// Returns the number of filter bits in a region.
    pub fn region_bits(&self) -> u64 {
        self.regions.bits
    }

    /// Returns the number of regions (r).
    pub fn regions(&self) -> u64 {
        self.regions.count(*self.layout())
    }

    /// Returns the number of regions with a collision. Removals never lower it.
    pub fn collided_regions(&self) -> u64 {
        self.collisions.count_ones()
    }

    /// Estimates the fraction of keys that can be removed, from the number of regions without a
    /// collision and the number of keys.
    ///
    /// With λ hits per cell, a region without a collision has λ/(1+λ) of its cells set. If f is the
    /// fraction of such regions, f/(1+λ) of all hits are in them. This is the
    /// [formula](sizing::deletable::deletability) for a filter that was only filled. It remains
    /// true after removals, which leave fewer regions without a collision.
    pub fn deletability(&self) -> f64 {
        let free = 1.0 - self.collided_regions() as f64 / self.regions() as f64;
        let estimated = || self.filter.stats().estimate.estimate().map_or(f64::INFINITY, |keys| keys.value);
        let keys = self.inserted().map_or_else(estimated, |keys| keys as f64);
        let load = keys * f64::from(self.layout().hashes()) / self.layout().bits() as f64;
        at_least_one_of(free / (1.0 + load), self.layout().hashes())
    }

    /// Predicts the fraction of keys that can be removed after `n` insertions, by
    /// [formula](sizing::deletable::deletability).
    ///
    /// # Errors
    ///
    /// Returns an error if `n` is out of range.
    pub fn predicted_deletability(&self, n: u64) -> Result<f64> {
        let layout = self.layout();
        sizing::deletable::deletability(layout.bits(), self.regions(), n, layout.hashes())
    }

    /// Returns the result that removing `key` would have, without removing it.
    pub fn would_remove<K: Key + ?Sized>(&self, key: &K) -> Removed {
        self.would_remove_digest(key.digest(self.hasher()))
    }

    /// Returns the result that removing the key with this digest would have, without removing it.
    pub fn would_remove_digest(&self, digest: Digest) -> Removed {
        let (words, collisions) = (self.filter.words().words(), self.collisions.words());
        self.regions.verdict(words, collisions, || self.layout().positions(digest))
    }

    fn shape(spec: &Spec) -> Result<(Standard, Plan)> {
        let region_bits = spec.options().deletable.region_bits;
        let regions = Regions::new(region_bits)?;
        let share = spec.given().m.map(|m| sizing::deletable::filter_bits(m, region_bits)).transpose()?;
        let (params, rate) = spec.standard_part(share)?;
        // A size set by the caller is kept, as in the standard filter.
        let stored = if share.is_some() { params.bits } else { params.bits.next_multiple_of(64) };
        let layout = Standard::new(stored, params.hashes)?;
        let bits = params.bits + sizing::deletable::regions(params.bits, region_bits)?;
        check_rate(&spec.given(), rate, params.capacity, bits, None)?;
        let plan = spec.finish(Plan {
            kind: Kind::Deletable,
            capacity: params.capacity,
            bits,
            stored_bits: stored + regions.count(layout),
            bytes: (layout.lines() + regions.lines(layout)) * LINE_BYTES as u64,
            hashes: params.hashes,
            // Lookups do not read the collision bits.
            lines_touched: params.hashes,
            rate_asked: spec.given().p.unwrap_or(rate),
            rate,
        })?;
        Ok((layout, plan))
    }

    /// Prefetches the memory of a tile if the filter is larger than the cache.
    fn prefetch(&self, tile: &[Digest]) {
        let words = self.filter.words().words();
        if words.len() >= OUT_OF_CACHE {
            for position in tile.iter().flat_map(|digest| self.layout().positions(*digest)) {
                prefetch(words, (position / 64) as usize);
                prefetch(self.collisions.words(), (self.regions.region_of(position) / 64) as usize);
            }
        }
    }

    /// Returns the bits and the collision bits for changes.
    fn cells(&mut self) -> (&mut [u64], &mut [u64]) {
        (self.filter.words_mut(), self.collisions.words_mut())
    }
}

/// The division of the bits into regions, and the operations on the bits of a key.
///
/// The invariant, whatever is inserted and removed: each cell of a region without a collision is
/// hit at most once by the keys in the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Regions {
    /// The size of each region in bits; the last may be smaller.
    bits: u64,
}

impl Regions {
    fn new(bits: u64) -> Result<Regions> {
        check_region_bits(bits)?;
        Ok(Regions { bits })
    }

    fn count(self, layout: Standard) -> u64 {
        layout.bits().div_ceil(self.bits)
    }

    /// Returns the number of lines for the collision bits.
    fn lines(self, layout: Standard) -> u64 {
        self.count(layout).div_ceil(LINE_BITS)
    }

    #[inline(always)]
    fn region_of(self, position: u64) -> u64 {
        position / self.bits
    }

    /// Sets the bits of a key and returns whether one of them was clear. Two hashes of one key at
    /// the same cell are a collision, too, so the result does not depend on the order of insertions
    /// and removal does not have to compare positions.
    #[inline(always)]
    fn insert(self, words: &mut [u64], collisions: &mut [u64], positions: impl Iterator<Item = u64>) -> bool {
        let mut new = false;
        for position in positions {
            let hit_before = bits::set(words, position);
            // Half of the bits of a full filter are set, so a branch would often be mispredicted.
            bits::or(collisions, self.region_of(position), hit_before);
            new |= !hit_before;
        }
        new
    }

    fn verdict<I: Iterator<Item = u64>>(
        self,
        words: &[u64],
        collisions: &[u64],
        positions: impl Fn() -> I,
    ) -> Removed {
        let mut free = positions().filter(|position| !bits::is_set(collisions, self.region_of(*position)));
        if !positions().all(|position| bits::is_set(words, position)) {
            Removed::NotPresent
        } else if free.next().is_some() {
            Removed::Removed
        } else {
            Removed::NotDeletable
        }
    }

    /// Removes a key if the verdict allows it.
    fn remove<I: Iterator<Item = u64>>(
        self,
        words: &mut [u64],
        collisions: &[u64],
        positions: impl Fn() -> I,
    ) -> Removed {
        let verdict = self.verdict(words, collisions, &positions);
        if verdict == Removed::Removed {
            let free = positions().filter(|position| !bits::is_set(collisions, self.region_of(*position)));
            free.for_each(|position| bits::clear(words, position));
        }
        verdict
    }
}

structure_methods!([] Deletable);
set_methods!([] Deletable);
insert_methods!([] Deletable);
remove_methods!([] Deletable);
union_methods!([] Deletable);
intersect_methods!([] Deletable);
overlap_methods!([] Deletable);
absorb_methods!([] Deletable);

impl sealed::Sealed for Deletable {}

impl Structure for Deletable {
    const KIND: Kind = Kind::Deletable;

    const CAPABILITIES: Capabilities =
        Capabilities { remove: true, union: true, intersect: true, absorb: true, ..Capabilities::NOTHING };

    fn plan(spec: &Spec) -> Result<Plan> {
        Ok(Deletable::shape(spec)?.1)
    }

    /// Predicts the rate of a standard filter with the same bits; the collision bits do not affect
    /// it.
    fn predicted_rate(&self, n: u64) -> Result<f64> {
        self.filter.predicted_rate(n)
    }

    fn try_clone(&self) -> Result<Deletable> {
        let (filter, collisions) = (self.filter.try_clone()?, self.collisions.try_clone()?);
        Ok(Deletable { filter, regions: self.regions, collisions })
    }

    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        self.filter.trace(digest, probe)
    }

    fn head(&self) -> &Head {
        self.filter.head()
    }

    fn head_mut(&mut self) -> &mut Head {
        self.filter.head_mut()
    }

    fn params(&self) -> Vec<u64> {
        vec![self.layout().bits(), self.layout().hashes().into(), self.regions.bits]
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        vec![(BITS, self.filter.words()), (COLLISIONS, &self.collisions)]
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.filter.relocate(mover);
        self.collisions.relocate(mover);
    }

    fn restore(mut parts: Parts) -> Result<Deletable> {
        let [bits, hashes, region_bits] = parts.params()?;
        let layout = Standard::new(bits, small(hashes))?;
        let regions = Regions::new(region_bits)?;
        let words = parts.section(BITS, layout.lines())?;
        let collisions = parts.section(COLLISIONS, regions.lines(layout))?;
        Ok(Deletable { filter: Bloom::from_parts(layout, words, parts.finish()?), regions, collisions })
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        self.filter.check_contents()?;
        structure::check_tail(&self.collisions, self.regions())
    }
}

impl Set for Deletable {
    fn build(spec: &Spec) -> Result<Deletable> {
        let (layout, plan) = Deletable::shape(spec)?;
        Deletable::with_head(layout, spec.options().deletable.region_bits, Head::planned(spec, &plan))
    }

    fn clear(&mut self) {
        self.collisions.words_mut().fill(0);
        self.filter.clear();
    }

    fn try_clone_empty(&self) -> Result<Deletable> {
        Deletable::with_head(*self.layout(), self.regions.bits, self.head().emptied())
    }

    fn remove_if_able(&mut self, digest: Digest) -> Result<Removed> {
        Ok(self.remove_digest(digest))
    }
}

impl Filter for Deletable {
    fn kind(&self) -> Kind {
        Kind::Deletable
    }

    #[inline(always)]
    fn hasher(&self) -> &Hasher {
        self.filter.hasher()
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.filter.contains_digest(digest)
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        self.filter.contains_tile(tile)
    }

    fn stats(&self) -> Stats {
        let of_the_filter = self.filter.stats();
        // Bits of removed keys may remain, so the keys can be fewer than the bits suggest.
        let estimate = self.layout().shape().cardinality(of_the_filter.used_cells);
        Stats {
            kind: Kind::Deletable,
            bits: of_the_filter.bits + self.regions(),
            bytes: of_the_filter.bytes + self.regions.lines(*self.layout()) * LINE_BYTES as u64,
            details: vec![
                ("regions", self.regions() as f64),
                ("collided regions", self.collided_regions() as f64),
                ("deletability", self.deletability()),
            ],
            estimate: estimate.unwrap_or(Cardinality::Saturated).within(0, of_the_filter.inserted),
            ..of_the_filter
        }
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        self.filter.contains_batch(keys)
    }
}

impl Insert for Deletable {
    type Error = Infallible;

    /// A key that is inserted again can no longer be removed.
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Infallible> {
        let (regions, positions) = (self.regions, self.layout().positions(digest));
        let (words, collisions) = self.cells();
        let new = regions.insert(words, collisions, positions);
        self.head_mut().count_inserted(1);
        Ok(new)
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<(), Infallible> {
        for tile in tile.chunks(TILE) {
            self.prefetch(tile);
            for digest in tile {
                self.insert_digest(*digest);
            }
        }
        Ok(())
    }
}

impl Remove for Deletable {
    fn remove_digest(&mut self, digest: Digest) -> Removed {
        let (regions, layout) = (self.regions, *self.layout());
        let (words, collisions) = self.cells();
        let removed = regions.remove(words, collisions, || layout.positions(digest));
        if removed == Removed::Removed {
            self.head_mut().count_removed();
        }
        removed
    }
}

impl Algebra for Deletable {
    fn mismatch(&self, other: &Deletable) -> Option<Mismatch> {
        let regions = || Mismatch::between("bits of a region", self.regions.bits, other.regions.bits);
        self.filter.mismatch(&other.filter).or_else(regions)
    }

    /// A bit that is set in both was hit twice, so the result has the same collisions as if all
    /// keys had been inserted into one filter. A key that is in both can no longer be removed.
    fn union(&mut self, other: &Deletable) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        let regions = self.regions;
        let (words, collisions) = self.cells();
        for (word, (ours, theirs)) in (0..).zip(words.iter().zip(other.filter.words().words())) {
            for bit in bits::ones(&[ours & theirs]) {
                bits::set(collisions, regions.region_of(word * 64 + bit));
            }
        }
        self.collisions.merge(&other.collisions, |a, b| a | b);
        self.filter.union(&other.filter)
    }

    /// Only keys that are in both may be removed afterwards. A cell that two such keys share was
    /// hit twice in each filter, so a region needs a collision bit only if it has one in both.
    fn intersect(&mut self, other: &Deletable) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        self.collisions.merge(&other.collisions, |a, b| a & b);
        self.filter.intersect(&other.filter)
    }

    fn overlap(&self, other: &Deletable) -> Result<Option<Overlap>> {
        Mismatch::refuse(self.mismatch(other))?;
        self.filter.overlap(&other.filter)
    }
}
