//! The number of blocks for a number of keys and a rate.

use crate::{Error, Result};

/// The most blocks that a filter can have: 1 GiB, the largest power of two that a header can name.
pub const MAX_BLOCKS: u64 = 1 << 25;

/// Returns the smallest power of two of blocks with which `keys` distinct keys keep the rate.
///
/// It is a power of two because some readers of Parquet accept nothing else. The usual formula,
/// m = -8 n / ln(1 - p^(1/8)) bits, assumes that all blocks are equally full. They are not, and at
/// 1 % the rate would be 1.5 times as high. This function takes the [exact rate](rate).
///
/// ```
/// use umbel::foreign::sbbf;
/// assert_eq!(sbbf::blocks_for(10_000, 0.01)?, 512);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If the rate is not between 0 and 1, or no filter is large enough.
pub fn blocks_for(keys: u64, target: f64) -> Result<u64> {
    if !(target > 0.0 && target < 1.0) {
        return Err(Error::parameter("p", target, "a rate above 0 and below 1"));
    }
    let sizes = (0..).map(|log2| 1 << log2).take_while(|blocks| *blocks <= MAX_BLOCKS);
    let mut fitting = sizes.filter(|blocks| rate(*blocks, keys) <= target);
    fitting.next().ok_or_else(|| {
        let needs = "fewer keys or a higher rate: a split-block filter has at most 1 GiB";
        Error::parameter("n", keys, needs)
    })
}

/// Returns the expected false-positive rate of this many blocks with this many distinct keys.
///
/// The keys of a block have a Poisson distribution with the mean n / blocks. After j keys, a bit of
/// a word is set with probability 1 - (31/32)^j, and a lookup tests eight words:
///
/// ```text
/// rate = sum over j of Poisson(j; n / blocks) (1 - (31/32)^j)^8
/// ```
///
/// ```
/// let rate = umbel::foreign::sbbf::rate(1024, 24_000);
/// assert!((0.0084..0.0085).contains(&rate), "{rate}");
/// ```
pub fn rate(blocks: u64, keys: u64) -> f64 {
    let mean = keys as f64 / blocks.max(1) as f64;
    // Beyond these loads, nearly all bits are set.
    if mean > 4096.0 {
        return 1.0;
    }
    // The terms that matter are within some standard deviations of the mean.
    let reach = 12.0 * mean.sqrt() + 40.0;
    let (first, last) = ((mean - reach).max(0.0) as u64, (mean + reach) as u64);
    let mut log_weight = first as f64 * mean.max(f64::MIN_POSITIVE).ln()
        - mean
        - (1..=first).map(|j| (j as f64).ln()).sum::<f64>();
    let mut sum = 0.0;
    for j in first..=last {
        let set = -(j as f64 * (31.0f64 / 32.0).ln()).exp_m1();
        sum += log_weight.exp() * set.powi(8);
        log_weight += (mean / (j + 1) as f64).max(f64::MIN_POSITIVE).ln();
    }
    sum.min(1.0)
}
