//! How large the tables of static filters and maps are: cells per key, and how they are arranged so that peeling
//! succeeds.
//!
//! Peeling takes away, again and again, a key that has a cell of its own. It ends with all keys gone if there are
//! enough cells: 1.2218 per key when each has a cell in each of three segments, 1.2949 with four (Molloy 2004), and
//! fewer when the three lie in neighbouring segments of many ([`fuse`]), because peeling then eats its way in from both
//! ends (Walzer 2021; Graf and Lemire 2022).
//!
//! ```
//! use umbel::sizing::retrieval;
//! let table = retrieval::fuse(1_000_000);
//! assert_eq!((table.segment_log2, table.segments), (13, 138));
//! assert!(table.cells() < 1_131_000);
//! # Ok::<(), umbel::Error>(())
//! ```

use crate::{Error, Result};

/// The most keys of a shard. A table of more is made of shards that are built one by one or side by side, each in a
/// bounded amount of memory.
pub const SHARD_KEYS: u64 = 2 << 20;

/// The shortest and the longest segments, as powers of two.
pub const SEGMENT_LOG2: std::ops::RangeInclusive<u32> = 2..=18;

/// How many shards a table of `n` keys is made of.
pub fn shards(n: u64) -> u64 {
    n.div_ceil(SHARD_KEYS).max(1)
}

/// How many keys the fullest shard is planned to have: four standard deviations above the mean.
pub fn fullest(n: u64, shards: u64) -> u64 {
    if shards <= 1 {
        return n;
    }
    let mean = n as f64 / shards as f64;
    (mean + 4.0 * mean.sqrt()).ceil() as u64
}

/// Three cells of a key in three neighbouring segments of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuse {
    /// The cells of a segment, as a power of two.
    pub segment_log2: u32,
    /// How many segments there are, at least three.
    pub segments: u64,
}

impl Fuse {
    /// All cells.
    pub fn cells(&self) -> u64 {
        self.segments << self.segment_log2
    }
}

/// The table of one shard of `n` keys.
pub fn fuse(n: u64) -> Fuse {
    fuse_with(n, fuse_factor(n))
}

/// The same with another number of cells per key.
pub fn fuse_with(n: u64, factor: f64) -> Fuse {
    let log2 = ((n.max(1) as f64).ln() / 3.33f64.ln() + 2.25).floor() as u32;
    let segment_log2 = log2.clamp(*SEGMENT_LOG2.start(), *SEGMENT_LOG2.end());
    let cells = (n as f64 * factor).ceil() as u64;
    Fuse { segment_log2, segments: cells.div_ceil(1 << segment_log2).max(3) }
}

/// Cells per key.
fn fuse_factor(n: u64) -> f64 {
    (0.875 + 0.25 * 1e6f64.ln() / (n.max(2) as f64).ln()).max(1.125)
}

/// The cells per key with which `k` cells in `k` segments always suffice for many keys: 1.23 with three, 1.32 with
/// four, and 32 more for all together.
pub fn segments_factor(k: u32) -> Result<f64> {
    match k {
        3 => Ok(1.23),
        4 => Ok(1.32),
        _ => Err(Error::parameter("k", k, "3 or 4 cells of a key")),
    }
}

/// The length of each of `k` segments for `n` keys.
pub fn segment_len(n: u64, k: u32, factor: f64) -> u64 {
    ((n as f64 * factor + 32.0) / f64::from(k)).ceil() as u64
}
