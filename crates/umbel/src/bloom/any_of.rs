//! Tests whether any of several small blocked filters contains a key. Chains need this, because an
//! absent key is looked up in all of their filters.
//!
//! The bits of a digest within a line do not depend on the size of the filter, so they are computed
//! once per key and compared with one line of each filter. This saves a third of the time for
//! filters that fit in the nearer caches. Larger filters gain nothing, since their lines do not
//! arrive any faster.

use super::{Blocked, Bloom};
use crate::arch::{Simd, prefetch};
use crate::hash::MULTIPLIER;
use crate::memory::CacheLine;
use crate::tile::{self, Lookup, Pair, Places, TILE, Tile, Tiled};
use crate::{Digest, Level};

/// A set of filters that have each key in one line.
pub(crate) struct AnyOf<'a> {
    near: Vec<&'a [CacheLine]>,
    far: Vec<&'a [CacheLine]>,
}

impl<'a> AnyOf<'a> {
    pub fn new() -> AnyOf<'a> {
        AnyOf { near: Vec::new(), far: Vec::new() }
    }

    /// Adds a filter if each of its keys is in one line and it has fewer than 2^32 lines. Returns
    /// whether it was added.
    pub fn push(&mut self, filter: &'a Bloom<Blocked>) -> bool {
        let lines = filter.words.lines();
        let fits = filter.layout.lines_per_key() == 1 && u32::try_from(lines.len()).is_ok();
        if fits {
            let filters = if lines.len() <= Blocked::NEAR { &mut self.near } else { &mut self.far };
            filters.push(lines);
        }
        fits
    }

    /// Sets the bit of each digest that one of the filters may contain.
    pub fn query(&self, level: Level, digests: &[Digest], found: &mut [u64]) {
        for filter in &self.far {
            Filters::<1, true>([filter]).query(level, digests, found);
        }
        // Four at a time: the compiler unrolls a loop of this length.
        let (fours, rest) = self.near.as_chunks::<4>();
        for filters in fours {
            Filters::<4, false>(*filters).query(level, digests, found);
        }
        for filter in rest {
            Filters::<1, false>([filter]).query(level, digests, found);
        }
    }
}

/// `N` filters that are queried together. `FETCH` means that their lines have to be prefetched.
#[derive(Clone, Copy)]
struct Filters<'a, const N: usize, const FETCH: bool>([&'a [CacheLine]; N]);

/// The line of each key of a tile in each filter.
type LinesOfAll<const N: usize> = [[u64; TILE]; N];

impl<const N: usize> Places for LinesOfAll<N> {
    const EMPTY: LinesOfAll<N> = [[0; TILE]; N];
}

impl<const N: usize, const FETCH: bool> Tiled for Filters<'_, N, FETCH> {
    type Places = LinesOfAll<N>;

    #[inline(always)]
    fn places(&self, tile: &Tile, places: &mut LinesOfAll<N>) {
        for (lines, filter) in places.iter_mut().zip(&self.0) {
            let range = filter.len() as u64;
            // The high half of the product, from two 32-bit multiplications, which SIMD supports.
            for (line, digest) in lines.iter_mut().zip(tile) {
                let x = digest.get();
                *line = ((x >> 32) * range + (((x & 0xffff_ffff) * range) >> 32)) >> 32;
            }
        }
    }
}

impl<const N: usize, const FETCH: bool> Lookup for Filters<'_, N, FETCH> {
    /// Empty, because the filters themselves hold the lines.
    type Memory = ();

    #[inline(always)]
    fn prefetch(&self, (): &(), places: &LinesOfAll<N>) {
        (0..if FETCH { TILE } else { 0 }).for_each(|key| self.prefetch_key(places, key));
    }

    #[inline(always)]
    fn contains_tile<S: Simd>(&self, simd: S, (): &(), tile: &Tile, at: Pair<'_, LinesOfAll<N>>) -> u64 {
        // The 64 bits that contain the positions of a key in the lanes of a line, the same for all
        // filters.
        let mut lanes = [0; TILE];
        for (lanes, digest) in lanes.iter_mut().zip(tile) {
            *lanes = digest.get().wrapping_mul(MULTIPLIER);
        }
        let mut answers = 0;
        for (key, lanes) in lanes.iter().enumerate().rev() {
            if FETCH {
                self.prefetch_key(at.next, key);
            }
            answers = answers << 1 | u64::from(simd.test_any(*lanes, &self.0, at.now, key));
        }
        answers
    }
}

impl<const N: usize, const FETCH: bool> Filters<'_, N, FETCH> {
    #[inline(always)]
    fn prefetch_key(&self, places: &LinesOfAll<N>, key: usize) {
        for (filter, lines) in self.0.iter().zip(places) {
            prefetch(filter, lines[key] as usize);
        }
    }

    /// Sets the bit of each digest that one of the filters may contain.
    fn query(&self, level: Level, digests: &[Digest], found: &mut [u64]) {
        tile::mark_found(level, self, &(), digests, found);
    }
}
