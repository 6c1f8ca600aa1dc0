//! The tables of static filters and maps: how many cells per key, and how they are arranged so that
//! peeling succeeds.
//!
//! Peeling repeatedly removes a key that has a cell of its own. It removes all keys if there are
//! enough cells: 1.2218 per key when each key has a cell in each of three segments, 1.2949 with
//! four. It needs fewer when the three cells lie in neighbouring segments of many ([`fuse`]),
//! because peeling then works inwards from both ends.
//!
//! ```
//! use umbel::sizing::retrieval;
//! let table = retrieval::fuse(1_000_000);
//! assert_eq!((table.shards, table.segment_log2, table.segments), (1, 13, 138));
//! assert!(table.cells() < 1_131_000);
//! ```
//!
//! An attempt also fails if two keys share all their cells, which more and longer segments make
//! rare. [`segment_log2`] weighs both, by measurement.
//!
//! # References
//!
//! * M. Molloy. *The pure literal rule threshold and cores in random hypergraphs.* SODA 2004.
//!   `Molloy04`
//! * S. Walzer. *Peeling close to the orientability threshold: spatial coupling in hashing-based
//!   data structures.* SODA 2021. `Walzer21`
//! * T. M. Graf and D. Lemire. *Binary fuse filters: fast and smaller than xor filters.* ACM
//!   Journal of Experimental Algorithmics 27, 2022. `GL22`

use crate::{Error, Result};
use std::ops::RangeInclusive;

/// The shortest and the longest segments of a fuse table, as powers of two.
pub const SEGMENT_LOG2: RangeInclusive<u32> = 2..=18;

/// The most keys of a single shard. Above it a failed attempt is so expensive that segments are
/// chosen to make failures rare.
const MAX_SINGLE_SHARD_KEYS: u64 = 1_000_000;

/// Returns the number of cells in a segment for `n` keys, as a power of two.
///
/// Measured: up to a million keys, longer segments would leave too few of them for peeling to work
/// inwards, and nine attempts in ten succeed. Two of `n` keys share all cells with a probability of
/// about `n / (2.25 * 4^s)`; with more keys this is kept below two per cent, up to the longest
/// segments.
pub fn segment_log2(n: u64) -> u32 {
    let log2 = if n <= MAX_SINGLE_SHARD_KEYS {
        ((n.max(1) as f64).ln() / 3.33f64.ln() + 1.95).floor()
    } else {
        ((n as f64 / 2.25 / 0.02).ln() / 4f64.ln()).ceil()
    };
    (log2 as u32).clamp(*SEGMENT_LOG2.start(), *SEGMENT_LOG2.end())
}

/// Returns the number of shards in a table of `n` keys. Each shard is solved separately, in its own
/// memory. Shards are as small as possible without many more cells per key, which takes some 140
/// segments.
pub fn shards(n: u64) -> u64 {
    if n <= MAX_SINGLE_SHARD_KEYS { 1 } else { (n >> (segment_log2(n) + 7)).max(1) }
}

/// Returns the number of keys that the fullest shard is planned for: three standard deviations
/// above the mean.
pub fn fullest(n: u64, shards: u64) -> u64 {
    if shards <= 1 {
        return n;
    }
    let mean = n as f64 / shards as f64;
    (mean + 3.0 * mean.sqrt()).ceil() as u64
}

/// A table in which the three cells of a key lie in three neighbouring segments of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuse {
    /// The number of shards, each a table of its own.
    pub shards: u64,
    /// The cells of a segment, as a power of two.
    pub segment_log2: u32,
    /// The number of segments in a shard, at least three.
    pub segments: u64,
}

impl Fuse {
    /// Returns the number of cells in all shards.
    pub fn cells(&self) -> u64 {
        self.shards.saturating_mul(self.segments.saturating_mul(1 << self.segment_log2))
    }
}

/// Returns the table for `n` keys.
pub fn fuse(n: u64) -> Fuse {
    fuse_with(n, shards(n))
}

/// Returns the table for `n` keys in a given number of shards.
pub fn fuse_with(n: u64, shards: u64) -> Fuse {
    let keys = fullest(n, shards);
    let segment_log2 = segment_log2(if keys <= MAX_SINGLE_SHARD_KEYS { keys } else { n });
    let segment = 2f64.powi(segment_log2 as i32);
    let segments = (fuse_cells(keys as f64, segment) / segment).ceil() as u64;
    Fuse { shards, segment_log2, segments: segments.max(3) }
}

/// Returns the number of cells in a shard. For few keys this is the rule of Graf and Lemire, with a
/// few more where few segments make that too tight. For many keys it is a measured value: the cells
/// that peeling from both ends needs with this number of segments.
fn fuse_cells(keys: f64, segment: f64) -> f64 {
    let few = keys * (0.875 + 0.25 * 1e6f64.ln() / keys.max(2.0).ln());
    if keys < 100_000.0 {
        return few + 0.2 * segment;
    }
    let segments = 1.125 * keys / segment;
    few.max(keys * (1.115 + 1.75 / segments))
}

/// Returns the cells per key that suffice for many keys when each has `k` cells in `k` segments:
/// 1.23 with three, 1.32 with four. The table has 32 more cells in total.
///
/// # Errors
///
/// If `k` is not 3 or 4.
pub fn segments_factor(k: u32) -> Result<f64> {
    match k {
        3 => Ok(1.23),
        4 => Ok(1.32),
        _ => Err(Error::parameter("k", k, "3 or 4 cells of a key")),
    }
}

/// Returns the length of each of `k` segments for `n` keys.
pub fn segment_len(n: u64, k: u32, factor: f64) -> u64 {
    ((n as f64 * factor + 32.0) / f64::from(k)).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the cells of `BinaryFuse` as published by Graf and Lemire.
    fn published(n: u64) -> u64 {
        let n = n as f64;
        let segment = 2f64.powi((n.ln() / 3.33f64.ln() + 2.25).floor().min(18.0) as i32);
        let cells = (n * (0.875 + 0.25 * 1e6f64.ln() / n.ln()).max(1.125)).round();
        ((cells / segment).ceil().max(3.0) * segment) as u64
    }

    #[test]
    fn tables_are_hardly_larger_than_the_published_ones() {
        let mut n = 100_000.0f64;
        let (mut sum, mut count) = (0.0, 0);
        while n < 1e10 {
            let (ours, theirs) = (fuse(n as u64).cells() as f64, published(n as u64) as f64);
            // Both round up to whole segments, so either may need one more here and there.
            assert!(ours < 1.02 * theirs, "{n}: {} and {}", ours / n, theirs / n);
            sum += ours / theirs;
            count += 1;
            n *= 1.01;
        }
        let mean = sum / f64::from(count);
        assert!(mean < 1.01, "{mean}");
    }

    #[test]
    fn every_number_of_keys_has_a_table() {
        for n in (0..10_000).chain((4..48).flat_map(|bit| [(1 << bit) - 1, 1 << bit, 3 << (bit - 1)])) {
            let table = fuse(n);
            assert!(table.segments >= 3 && SEGMENT_LOG2.contains(&table.segment_log2), "{n}: {table:?}");
            assert!(table.cells() as f64 > 1.115 * n as f64, "{n}: {table:?}");
            assert!(table.segments << table.segment_log2 < 1 << 31, "{n}: {table:?}");
        }
    }

    #[test]
    fn shards_are_large_enough_to_be_tight_and_small_enough_to_be_many() {
        assert_eq!([1, 1_000_000, 3_000_000, 10_000_000, 100_000_000].map(shards), [1, 1, 2, 4, 11]);
        for bit in 20..48 {
            let table = fuse(1 << bit);
            assert!((130..500).contains(&table.segments), "{table:?}");
        }
        assert_eq!((fullest(1000, 1), fullest(1_000_000, 100)), (1000, 10_300));
    }

    #[test]
    fn segments_match_the_literature() {
        assert_eq!((segment_len(1000, 3, 1.23), segment_len(100, 4, 1.32)), (421, 41));
        assert!(segments_factor(2).is_err() && segments_factor(5).is_err());
    }
}
