//! Aging filters: g generations in a ring. Keys go into the newest, and the oldest is dropped.
//!
//! A non-member is reported if any generation reports it, with probability 1 - (1-q)^g. Each
//! generation is sized for q = p/g, which keeps this below p. A generation covers a g-th of the
//! window, and a key is forgotten when its generation is dropped: with a window of T, keys live for
//! more than T - T/g and at most T.
//!
//! ```
//! use umbel::sizing::aging;
//! let one = aging::generation(80_000, 0.01, 8)?;
//! assert!(aging::rate(one, 10_000, 8, 80_000)? <= 0.01);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # References
//!
//! * M. Yoon. *Aging Bloom filter with two active buffers for dynamic sets.* IEEE Transactions on
//!   Knowledge and Data Engineering 22(1), 2010. `Yoon10`

use super::{Shape, check, scalable};
use crate::{Error, Result};

/// The largest number of generations.
pub const MAX_GENERATIONS: u32 = 256;

/// Returns the shape of each of the `generations` parts of a filter that holds `n` keys at rate
/// `p`.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn generation(n: u64, p: f64, generations: u32) -> Result<Shape> {
    check::capacity(n)?;
    check::rate(p)?;
    check_generations(generations)?;
    scalable::automatic(n.div_ceil(generations.into()), p / f64::from(generations))
}

/// Returns the rate of a window with `n` keys in generations of this shape.
///
/// A generation is closed when it holds `capacity` keys. If a clock closes generations instead and
/// more keys than that have arrived, they are assumed to be spread evenly over the generations.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn rate(shape: Shape, capacity: u64, generations: u32, n: u64) -> Result<f64> {
    check::capacity(capacity)?;
    check_generations(generations)?;
    let each = capacity.max(n.div_ceil(generations.into()));
    let full = scalable::shape_rate(shape, each.min(n))?;
    let last = scalable::shape_rate(shape, n % each)?;
    Ok(scalable::compound((0..n / each).map(|_| full).chain([last])))
}

pub(crate) fn check_generations(generations: u32) -> Result<()> {
    if (1..=MAX_GENERATIONS).contains(&generations) {
        return Ok(());
    }
    Err(Error::parameter("generations", generations, "a number from 1 to 256"))
}
