//! The probability that an excerpt is found by chance.

use super::Method;
use crate::{Error, Result};

/// Returns the number of records that a payload of this many blocks leaves.
///
/// ```
/// use umbel_net::payload::{Method, records_of};
/// assert_eq!(records_of(47, Method::BlockBased), 47);
/// assert_eq!(records_of(47, Method::Hierarchical), 89);
/// ```
pub fn records_of(blocks: u64, method: Method) -> u64 {
    checks(blocks, 0, method)
}

/// Returns the number of records checked for an excerpt of this many blocks, the first of which has
/// number `first`.
pub fn checks(blocks: u64, first: u64, method: Method) -> u64 {
    if method != Method::Hierarchical {
        return blocks;
    }
    let (mut checks, mut first, mut blocks) = (0, first, blocks);
    while blocks > 0 {
        checks += blocks;
        (first, blocks) = (first.div_ceil(2), blocks.saturating_sub(first & 1) / 2);
    }
    checks
}

/// Returns the probability that `excerpt` random blocks are found somewhere in payloads of
/// `longest` blocks, given that an absent record is found with probability `rate`.
///
/// ```
/// use umbel_net::payload::{Method, noise};
/// // A single block is found by chance nearly always: never attribute single blocks.
/// assert!(noise(0.237, 33, 1, Method::BlockBased)? > 0.9998);
/// assert!(noise(0.0216, 32, 4, Method::BlockBased)? < 1e-5);
/// # Ok::<(), umbel_net::Error>(())
/// ```
///
/// # Errors
///
/// Fails if `rate` is not a probability, or `excerpt` is 0.
pub fn noise(rate: f64, longest: u64, excerpt: u64, method: Method) -> Result<f64> {
    if !(0.0..=1.0).contains(&rate) {
        return Err(Error::parameter("rate", rate, "a probability"));
    }
    if excerpt == 0 {
        return Err(Error::parameter("excerpt", excerpt, "at least one block"));
    }
    let places = (longest + 1).saturating_sub(excerpt);
    let missed = |first| (-rate.powf(checks(excerpt, first, method) as f64)).ln_1p();
    Ok(-(0..places).map(missed).sum::<f64>().exp_m1())
}
