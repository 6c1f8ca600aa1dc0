//! Whether any of several small blocked filters contains a key: for chains, where an absent key is
//! looked up in all of them.
//!
//! The bits of a digest within a line do not depend on the size of the filter. So they are computed
//! once for each key and compared with one line of each filter, which saves a third of the time.
//! Filters beyond the nearer caches gain nothing, since their lines do not arrive any faster.

use super::{Blocked, Bloom};
use crate::arch::{Kernel, Simd, prefetch};
use crate::hash::MULTIPLIER;
use crate::tile::{TILE, low_bits};
use crate::words::Line;
use crate::{Digest, Level};

/// Filters in which a key has its bits in one line, and which are small.
pub(crate) struct AnyOf<'a> {
    near: Vec<&'a [Line]>,
    far: Vec<&'a [Line]>,
}

impl<'a> AnyOf<'a> {
    pub fn new() -> AnyOf<'a> {
        AnyOf { near: Vec::new(), far: Vec::new() }
    }

    /// Takes the filter, if it is such a one.
    pub fn push(&mut self, filter: &'a Bloom<Blocked>) -> bool {
        let lines = filter.words.lines();
        let fits = filter.layout.lines_per_key() == 1 && u32::try_from(lines.len()).is_ok();
        if fits {
            let filters = if lines.len() <= Blocked::NEAR { &mut self.near } else { &mut self.far };
            filters.push(lines);
        }
        fits
    }

    /// Sets the bits of the digests that one of them may hold.
    pub fn ask(&self, level: Level, digests: &[Digest], found: &mut [u64]) {
        for filter in &self.far {
            level.run(Ask::<1, true> { filters: &[filter], digests, found });
        }
        // So many at a time that the compiler can unroll the loop over them.
        let (fours, rest) = self.near.as_chunks::<4>();
        for filters in fours {
            level.run(Ask::<4, false> { filters, digests, found });
        }
        for filter in rest {
            level.run(Ask::<1, false> { filters: &[filter], digests, found });
        }
    }
}

struct Ask<'a, const N: usize, const FETCH: bool> {
    filters: &'a [&'a [Line]; N],
    digests: &'a [Digest],
    found: &'a mut [u64],
}

/// Where the keys of a tile are in each of the filters.
#[inline(always)]
fn places<const N: usize>(filters: &[&[Line]; N], tile: &[Digest], lines: &mut [[u64; TILE]; N]) {
    for (lines, filter) in lines.iter_mut().zip(filters) {
        let range = filter.len() as u64;
        // The high half of the product, from two 32-bit multiplications that SIMD has.
        for (line, digest) in lines.iter_mut().zip(tile) {
            let x = digest.get();
            *line = ((x >> 32) * range + (((x & 0xffff_ffff) * range) >> 32)) >> 32;
        }
    }
}

impl<const N: usize, const FETCH: bool> Kernel for Ask<'_, N, FETCH> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Ask { filters, digests, found } = self;
        let mut at = [[[0; TILE]; N]; 2];
        let mut upcoming = digests.chunks(TILE);
        if FETCH {
            places(filters, upcoming.next().unwrap_or_default(), &mut at[0]);
        }
        for (turn, (tile, found)) in digests.chunks(TILE).zip(found).enumerate() {
            let [even, odd] = &mut at;
            let (now, next) = if !FETCH || turn % 2 == 0 { (even, odd) } else { (odd, even) };
            if FETCH {
                places(filters, upcoming.next().unwrap_or_default(), next);
            } else {
                places(filters, tile, now);
            }
            let mut lanes = [0; TILE];
            lanes
                .iter_mut()
                .zip(tile)
                .for_each(|(lanes, digest)| *lanes = digest.get().wrapping_mul(MULTIPLIER));
            let mut answer = 0;
            for (key, lanes) in lanes.iter().enumerate().rev() {
                if FETCH {
                    filters
                        .iter()
                        .zip(&*next)
                        .for_each(|(filter, lines)| prefetch(filter, lines[key] as usize));
                }
                answer = answer << 1 | u64::from(simd.test_any(*lanes, filters, now, key));
            }
            *found |= answer & low_bits(tile.len());
        }
    }
}
