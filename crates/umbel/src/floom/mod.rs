//! Floom filters: a standard Bloom filter with a table of the *patterns* of regions that its keys
//! have hit. **It is here to be measured, and it loses.** Use a standard or blocked Bloom filter
//! instead.
//!
//! The bits are divided into b regions. The regions that the k positions of a key fall into form a
//! pattern, and the table has a bit for each of the 2^b patterns:
//!
//! ```text
//! regions                     4     3     2     1     0
//! bits of a key            ..1.. ..... .1... ..... .1...
//! pattern                     1     0     1     0     1    = 21: sets bit 21 of 2^5 = 32
//! ```
//!
//! A non-member is a false positive only if its bits are set *and* some key had its pattern. This
//! lowers the rate, but the memory of the table would lower it more as ordinary bits: a standard
//! filter of the same total size is at least as good for every size, rate and number of regions.
//!
//! | n, at p = 0.01 with b = 16 | standard, M bits | Floom, M + 65 536 bits | standard of as many bits |
//! | --- | --- | --- | --- |
//! | 1000 | 0.01001 | 0.000471 | 2e-16 |
//! | 10 000 | 0.01004 | 0.003751 | 0.000429 |
//! | 50 000 | 0.01004 | 0.008658 | 0.005356 |
//! | 100 000 | 0.01004 | 0.009643 | 0.007301 |
//! | 300 000 | 0.01004 | 0.010026 | 0.009015 |
//!
//! Most of the table is wasted, too. A key hits at most k regions, so with k = 7 only 26 332 of the
//! 65 536 patterns can occur. The option [`ranked`](Options::ranked) leaves the others out, and the
//! filter still loses. A lookup that passes its k probes also reads one line of the table.
//!
//! ```
//! use umbel::floom::Floom;
//! use umbel::sizing::rate;
//! let mut filter = Floom::with_capacity(100_000, 0.01)?;
//! filter.insert("apple");
//! assert!(filter.contains("apple") && !filter.contains("pear"));
//!
//! // A standard filter with the same memory is better.
//! let bits = filter.stats().bits;
//! assert!(rate::classic(bits, 100_000, 7)? < umbel::internals::Structure::predicted_rate(&filter, 100_000)?);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # References
//!
//! * F. E. Schierz. *Bloomfilter: Wie zuverlässig ist Probabilismus.* UbiSys Seminar, TU
//!   Bergakademie Freiberg, 2022. `Schierz22`

mod patterns;
#[cfg(test)]
mod tests;

use crate::file::FormatError;
use crate::memory::{LINE_BYTES, Mover, Words, bits};
use crate::methods::{
    absorb_methods, insert_methods, intersect_methods, overlap_methods, set_methods, structure_methods,
    union_methods,
};
use crate::sizing::{self, Overlap};
use crate::spec::check_rate;
use crate::structure::{self, BITS, Head, PATTERNS, Parts, Probe, sealed, small};
use crate::tile::split_tile;
use crate::{
    Algebra, Bloom, Capabilities, Digest, Error, Filter, Hasher, Insert, Kind, Layout, Mismatch, Plan,
    Result, Set, Spec, Standard, Stats, Structure,
};
use patterns::Patterns;
use std::convert::Infallible;

/// The options of a Floom filter in [`KindOptions`](crate::spec::KindOptions).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The number of regions, b, from 1 to 24. The default [depends on the size of the
    /// filter](sizing::floom::default_regions).
    pub regions: Option<u32>,
    /// Whether only patterns that a key can have get a bit. The table is then 2.5 times (b = 16, k
    /// = 7) to 48 times (b = 20, k = 5) smaller, and finding a bit takes a little more work.
    pub ranked: bool,
    /// Whether a position on the boundary of two regions belongs to the lower one, as in the
    /// program behind the published figures: the region is the smallest j with position ≤ ⌊j M /
    /// b⌋.
    pub compat: bool,
}

/// A standard Bloom filter with a table of the patterns of regions that its keys have hit.
///
/// It is never better than a standard filter of the same size; see the [module
/// documentation](self).
pub struct Floom {
    filter: Bloom<Standard>,
    patterns: Patterns,
    seen: Words,
}

impl Floom {
    /// Creates an empty filter for `capacity` keys with a false-positive rate of `rate`, hashed
    /// with the fast hash.
    ///
    /// # Errors
    ///
    /// Returns an error if `capacity` or `rate` is out of range, or if there is not enough memory.
    pub fn with_capacity(capacity: u64, rate: f64) -> Result<Floom> {
        Floom::build(&Spec::new(capacity, rate)?)
    }

    /// Creates an empty filter with these bits.
    ///
    /// # Errors
    ///
    /// Returns an error if the number of regions is out of range, or if there is not enough memory.
    pub fn with_layout(layout: Standard, options: &Options, hasher: Hasher) -> Result<Floom> {
        Floom::with_patterns(Patterns::new(layout, options)?, Head::new(hasher))
    }

    fn with_patterns(patterns: Patterns, head: Head) -> Result<Floom> {
        let filter = Bloom::with_head(patterns.layout(), head)?;
        Ok(Floom { filter, patterns, seen: Words::zeroed(patterns.lines())? })
    }

    /// Returns the standard filter of the same keys: this one without its table.
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

    /// Returns the number of regions (b).
    pub fn regions(&self) -> u32 {
        self.patterns.regions()
    }

    /// Returns the number of bits in the table.
    pub fn pattern_bits(&self) -> u64 {
        self.patterns.bits()
    }

    /// Returns the number of different patterns that keys have had.
    pub fn seen_patterns(&self) -> u64 {
        self.seen.count_ones()
    }

    fn shape(spec: &Spec) -> Result<(Patterns, Plan)> {
        let (known, options) = (spec.given(), &spec.options().floom);
        let params = match known.m {
            None => spec.standard_part(None)?.0,
            Some(budget) => beside_the_table(spec, budget)?,
        };
        let regions = options.regions.unwrap_or_else(|| default_regions(spec, params.bits));
        // A size set by the caller is kept, as in the standard filter.
        let stored = if known.m.is_some() { params.bits } else { params.bits.next_multiple_of(64) };
        let layout = Standard::new(stored, params.hashes)?;
        let patterns = Patterns::new(layout, &Options { regions: Some(regions), ..*options })?;
        let rate = sizing::floom::rate(params.bits, params.capacity, params.hashes, regions)?;
        let bits = params.bits + patterns.bits();
        check_rate(&known, rate, params.capacity, bits, None)?;
        let plan = spec.finish(Plan {
            kind: Kind::Floom,
            capacity: params.capacity,
            bits,
            stored_bits: stored + patterns.bits(),
            bytes: (layout.lines() + patterns.lines()) * LINE_BYTES as u64,
            hashes: params.hashes,
            lines_touched: params.hashes + 1,
            rate_asked: known.p.unwrap_or(rate),
            rate,
        })?;
        Ok((patterns, plan))
    }

    /// Returns whether a key with the pattern of this digest was inserted.
    #[inline]
    fn has_seen(&self, digest: Digest) -> bool {
        bits::is_set(self.seen.words(), self.patterns.of_digest(digest))
    }

    /// Returns the probability that a non-member has a pattern that was seen.
    fn seen_share(&self) -> f64 {
        let Ok(each) = sizing::floom::pattern_probabilities(self.regions(), self.layout().hashes()) else {
            return 1.0;
        };
        let regions_hit = self.patterns.regions_hit();
        // The probability of a pattern that no key can have is 0.
        let probability = |index| each.get(regions_hit(index)).copied().unwrap_or(0.0);
        bits::ones(self.seen.words()).map(probability).sum()
    }
}

/// Returns the default number of regions, which depends on the size. It is computed from the budget
/// if there is one, because `bits` changes while the budget is divided.
fn default_regions(spec: &Spec, bits: u64) -> u32 {
    sizing::floom::default_regions(spec.given().m.unwrap_or(bits))
}

/// Finds the largest standard filter that fits in a budget together with its table. The table of
/// ranked patterns grows with k, and k grows with the bits that the table leaves, so the size is
/// found by bisection.
fn beside_the_table(spec: &Spec, budget: u64) -> Result<sizing::Params> {
    let options = &spec.options().floom;
    let regions = options.regions.unwrap_or_else(|| default_regions(spec, budget));
    sizing::floom::check_regions(regions)?;
    let total = |bits| -> Result<u64> {
        let hashes = spec.standard_part(Some(bits))?.0.hashes;
        Ok(bits + sizing::floom::pattern_bits(regions, hashes, options.ranked)?)
    };
    // Sizes that make no valid filter count as fitting; `standard_part` reports the error at the
    // end.
    let fits = |bits| total(bits).map_or(true, |total| total <= budget);
    match sizing::greatest(1..=budget, fits) {
        Some(bits) if bits >= regions.into() => Ok(spec.standard_part(Some(bits))?.0),
        _ => {
            let needs = format!("more bits than the patterns of {regions} regions take");
            Err(Error::parameter("m", budget, needs))
        }
    }
}

structure_methods!([] Floom);
set_methods!([] Floom);
insert_methods!([] Floom);
union_methods!([] Floom);
intersect_methods!([] Floom);
overlap_methods!([] Floom);
absorb_methods!([] Floom);

impl sealed::Sealed for Floom {}

impl Structure for Floom {
    const KIND: Kind = Kind::Floom;

    const CAPABILITIES: Capabilities =
        Capabilities { union: true, intersect: true, absorb: true, ..Capabilities::NOTHING };

    fn plan(spec: &Spec) -> Result<Plan> {
        Ok(Floom::shape(spec)?.1)
    }

    /// The rate of the standard filter times the probability that the pattern of a non-member was
    /// seen.
    fn predicted_rate(&self, n: u64) -> Result<f64> {
        let layout = self.layout();
        sizing::floom::rate(layout.bits(), n, layout.hashes(), self.regions())
    }

    fn try_clone(&self) -> Result<Floom> {
        let (filter, seen) = (self.filter.try_clone()?, self.seen.try_clone()?);
        Ok(Floom { filter, patterns: self.patterns, seen })
    }

    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        if !self.filter.trace(digest, probe)? {
            return Ok(false);
        }
        let index = self.patterns.of_digest(digest);
        probe(Probe { section: 1, bits: index..index + 1 })?;
        Ok(bits::is_set(self.seen.words(), index))
    }

    fn head(&self) -> &Head {
        self.filter.head()
    }

    fn head_mut(&mut self) -> &mut Head {
        self.filter.head_mut()
    }

    fn params(&self) -> Vec<u64> {
        let layout = self.layout();
        vec![layout.bits(), layout.hashes().into(), self.regions().into(), self.patterns.flags()]
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        vec![(BITS, self.filter.words()), (PATTERNS, &self.seen)]
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.filter.relocate(mover);
        self.seen.relocate(mover);
    }

    fn restore(mut parts: Parts) -> Result<Floom> {
        let [bits, hashes, regions, flags] = parts.params()?;
        let layout = Standard::new(bits, small(hashes))?;
        let patterns = Patterns::from_flags(layout, small(regions), flags)?;
        let words = parts.section(BITS, layout.lines())?;
        let seen = parts.section(PATTERNS, patterns.lines())?;
        Ok(Floom { filter: Bloom::from_parts(layout, words, parts.finish()?), patterns, seen })
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        self.filter.check_contents()?;
        structure::check_tail(&self.seen, self.patterns.bits())
    }
}

impl Set for Floom {
    fn build(spec: &Spec) -> Result<Floom> {
        let (patterns, plan) = Floom::shape(spec)?;
        Floom::with_patterns(patterns, Head::planned(spec, &plan))
    }

    fn clear(&mut self) {
        self.seen.words_mut().fill(0);
        self.filter.clear();
    }

    fn try_clone_empty(&self) -> Result<Floom> {
        Floom::with_patterns(self.patterns, self.head().emptied())
    }
}

impl Filter for Floom {
    fn kind(&self) -> Kind {
        Kind::Floom
    }

    #[inline(always)]
    fn hasher(&self) -> &Hasher {
        self.filter.hasher()
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        self.filter.contains_digest(digest) && self.has_seen(digest)
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        let found = self.filter.contains_tile(tile);
        let passes = |i: &u64| self.has_seen(tile[*i as usize]);
        bits::ones(&[found]).filter(passes).fold(0, |answer, i| answer | 1 << i)
    }

    fn stats(&self) -> Stats {
        let of_the_filter = self.filter.stats();
        Stats {
            kind: Kind::Floom,
            bits: of_the_filter.bits + self.patterns.bits(),
            bytes: of_the_filter.bytes + self.patterns.lines() * LINE_BYTES as u64,
            rate_now: of_the_filter.rate_now * self.seen_share(),
            details: vec![
                ("regions", self.regions().into()),
                ("reachable patterns", self.patterns.reachable() as f64),
                ("seen patterns", self.seen_patterns() as f64),
            ],
            ..of_the_filter
        }
    }
}

impl Insert for Floom {
    type Error = Infallible;

    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Infallible> {
        let seen = self.seen.words_mut();
        let new = self.filter.insert_digest(digest);
        Ok(!bits::set(seen, self.patterns.of_digest(digest)) | new)
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<(), Infallible> {
        let seen = self.seen.words_mut();
        self.filter.insert_tile(tile);
        for digest in tile {
            bits::set(seen, self.patterns.of_digest(*digest));
        }
        Ok(())
    }

    fn insert_tile_new(&mut self, tile: &[Digest]) -> Result<u64, Infallible> {
        let (tile, rest) = split_tile(tile);
        let seen = self.seen.words_mut();
        let mut new = self.filter.insert_tile_new(tile);
        for (i, digest) in tile.iter().enumerate() {
            new |= u64::from(!bits::set(seen, self.patterns.of_digest(*digest))) << i;
        }
        self.insert_tile(rest);
        Ok(new)
    }
}

impl Algebra for Floom {
    fn mismatch(&self, other: &Floom) -> Option<Mismatch> {
        let (ours, theirs) = (self.patterns, other.patterns);
        self.filter
            .mismatch(&other.filter)
            .or_else(|| Mismatch::between("number of regions", ours.regions(), theirs.regions()))
            .or_else(|| Mismatch::between("form of the patterns", ours.form(), theirs.form()))
    }

    fn union(&mut self, other: &Floom) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        self.seen.merge(&other.seen, |a, b| a | b);
        self.filter.union(&other.filter)
    }

    /// A key that is in both filters has its pattern in both tables.
    fn intersect(&mut self, other: &Floom) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        self.seen.merge(&other.seen, |a, b| a & b);
        self.filter.intersect(&other.filter)
    }

    /// Estimated from the bits alone.
    fn overlap(&self, other: &Floom) -> Result<Option<Overlap>> {
        Mismatch::refuse(self.mismatch(other))?;
        self.filter.overlap(&other.filter)
    }
}
