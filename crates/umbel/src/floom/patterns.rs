//! The table of patterns, and the mapping from a key to its bit in it.

use super::Options;
use crate::file::FormatError;
use crate::memory::LINE_BITS;
use crate::sizing::floom::{self, MAX_REGIONS};
use crate::{Digest, Error, Layout, Result, Standard};

/// One more than the largest number of regions.
const ROWS: usize = MAX_REGIONS as usize + 1;

/// C(n, j) for all n up to the largest number of regions.
const BINOMIALS: [[u32; ROWS]; ROWS] = {
    let mut table = [[0; ROWS]; ROWS];
    let mut n = 0;
    while n < ROWS {
        table[n][0] = 1;
        let mut j = 1;
        while j <= n {
            table[n][j] = table[n - 1][j - 1] + table[n - 1][j];
            j += 1;
        }
        n += 1;
    }
    table
};

const RANKED: u64 = 1;
const COMPAT: u64 = 2;

/// The regions of a filter, and the table of their patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patterns {
    layout: Standard,
    regions: u32,
    ranked: bool,
    compat: bool,
    /// The number of patterns that a key can have.
    reachable: u64,
}

impl Patterns {
    pub fn new(layout: Standard, options: &Options) -> Result<Patterns> {
        let Options { regions, ranked, compat } = *options;
        let regions = regions.unwrap_or_else(|| floom::default_regions(layout.bits()));
        let reachable = floom::reachable_patterns(regions, layout.hashes())?;
        if u64::from(regions) > layout.bits() {
            let needs = format!("at most as many as the filter has bits, {}", layout.bits());
            return Err(Error::parameter("regions", regions, needs));
        }
        Ok(Patterns { layout, regions, ranked, compat, reachable })
    }

    pub fn from_flags(layout: Standard, regions: u32, flags: u64) -> Result<Patterns> {
        if flags & !(RANKED | COMPAT) != 0 {
            return Err(FormatError::Unknown { what: format!("form {flags} of patterns") }.into());
        }
        let (ranked, compat) = (flags & RANKED != 0, flags & COMPAT != 0);
        Patterns::new(layout, &Options { regions: Some(regions), ranked, compat })
    }

    pub fn flags(&self) -> u64 {
        u64::from(self.ranked) * RANKED + u64::from(self.compat) * COMPAT
    }

    /// Returns the name of the options for messages.
    pub fn form(&self) -> &'static str {
        match (self.ranked, self.compat) {
            (false, false) => "plain",
            (true, false) => "ranked",
            (false, true) => "compat",
            (true, true) => "ranked and compat",
        }
    }

    pub fn layout(&self) -> Standard {
        self.layout
    }

    pub fn regions(&self) -> u32 {
        self.regions
    }

    pub fn reachable(&self) -> u64 {
        self.reachable
    }

    /// Returns the number of bits in the table.
    pub fn bits(&self) -> u64 {
        if self.ranked { self.reachable } else { 1 << self.regions }
    }

    pub fn lines(&self) -> u64 {
        self.bits().div_ceil(LINE_BITS)
    }

    /// Returns the region of a position, ⌊position b / M⌋. In the compat form it is one less where
    /// the division is exact. Positions are below 2^48, so the product does not overflow.
    #[inline(always)]
    pub fn region(&self, position: u64) -> u64 {
        let scaled = position * u64::from(self.regions);
        let scaled = if self.compat { scaled.saturating_sub(1) } else { scaled };
        scaled / self.layout.bits()
    }

    /// Returns the pattern of these positions, with one bit per region.
    #[inline(always)]
    pub fn pattern(&self, positions: impl Iterator<Item = u64>) -> u32 {
        positions.fold(0, |pattern, position| pattern | 1 << self.region(position))
    }

    /// Returns the index of a pattern's bit in the table.
    #[inline(always)]
    pub fn index(&self, pattern: u32) -> u64 {
        if self.ranked { self.rank(pattern) } else { pattern.into() }
    }

    /// Returns the index of the bit for a digest's pattern.
    #[inline]
    pub fn of_digest(&self, digest: Digest) -> u64 {
        self.index(self.pattern(self.layout.positions(digest)))
    }

    /// Returns the rank of a pattern among those of 1 to min(k, b) regions. Patterns with fewer
    /// regions come first. Those with equally many are in the order of the combinatorial number
    /// system, Σ C(`c_i`, i) over the hit regions `c_1` < `c_2` < ...
    fn rank(&self, pattern: u32) -> u64 {
        let mut rank = self.first_of(pattern.count_ones());
        let mut rest = pattern;
        let mut i = 0;
        while rest != 0 {
            i += 1;
            rank += BINOMIALS[rest.trailing_zeros() as usize][i];
            rest &= rest - 1;
        }
        rank.into()
    }

    /// Returns the rank of the first pattern with `hit` regions.
    fn first_of(&self, hit: u32) -> u32 {
        (1..hit as usize).map(|j| BINOMIALS[self.regions as usize][j]).sum()
    }

    /// Returns a function from the index of a bit in the table to the number of regions in its
    /// pattern.
    pub fn regions_hit(&self) -> impl Fn(u64) -> usize {
        let most = self.regions.min(self.layout.hashes());
        let firsts: Vec<u64> = (1..=most).map(|hit| self.first_of(hit).into()).collect();
        let ranked = self.ranked;
        move |index| {
            if ranked { firsts.partition_point(|first| *first <= index) } else { index.count_ones() as usize }
        }
    }
}
