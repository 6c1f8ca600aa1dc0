//! Blocked filters: each key is stored in one to four lines of 512 bits, so a lookup costs that
//! many cache misses.
//!
//! A line has eight lanes of 64 bits, and a key sets one bit in each lane of each of its lines. The
//! price is memory: some lines receive more keys than others, and the full lines err by more than
//! the empty ones save. With j keys in a line its lanes are independent slices, and the line errs
//! with exactly (1-(63/64)^j)^8. The rate is the mean of that over j; a key with t lines errs when
//! all t do.
//!
//! Eight bits per line suit rates near 1 %, at 10.1 bits per key. Lower rates are met by more lines
//! per key, each sized for p^(1/t):
//!
//! ```
//! use umbel::sizing::{BlockedParams, blocked};
//!
//! # fn main() -> umbel::Result<()> {
//! let params = BlockedParams::for_capacity(1_000_000, 0.01)?;
//! assert_eq!(params.lines_per_key, 1);
//! assert!(params.rate <= 0.01 && params.overhead() < 0.06);
//!
//! let params = BlockedParams::for_capacity(1_000_000, 0.0001)?;
//! assert_eq!(params.lines_per_key, 2);
//! assert!(params.rate <= 0.0001 && params.overhead() < 0.06);
//! assert!(blocked::rate(params.lines, 500_000, 2)? < 1e-5, "half full it errs far less");
//! # Ok(())
//! # }
//! ```
//!
//! # References
//!
//! * F. Putze, P. Sanders and J. Singler. *Cache-, hash- and space-efficient Bloom filters.* ACM
//!   Journal of Experimental Algorithmics 14, 2009. `PSS09`
//! * J. Apple. *Split block Bloom filters.* arXiv:2101.01719, 2021. `Apple21`

use super::{Decimal, MAX_BITS, MAX_KEYS, check, greatest, least, rate as standard};
use crate::{Error, Result};

/// The number of bits in a line.
pub const LINE_BITS: u64 = 512;

/// The number of lanes in a line. A key sets one bit in each.
pub const LANES: u32 = 8;

/// The number of bits in a lane.
pub const LANE_BITS: u64 = LINE_BITS / LANES as u64;

/// The largest number of lines in which one key is stored.
pub const MAX_LINES_PER_KEY: u32 = 4;

/// Line counts are planned in multiples of this, so that a filter folded in half, and again, still
/// has whole lines.
pub const LINE_MULTIPLE: u64 = 8;

/// The size of the smallest blocked filter, in bits.
pub const SMALLEST_BITS: u64 = LINE_MULTIPLE * LINE_BITS;

/// The size, 64 KiB, below which the rate of a blocked filter varies by more than 1 % from seed to
/// seed (see [`relative_deviation`]), because keys spread unevenly over few lines. A standard
/// filter is steadier at such sizes, and fits into the cache anyway.
pub const STEADY_BITS: u64 = 64 * 1024 * 8;

/// The factor over the smallest memory that is accepted to avoid touching another line.
const WORTH_A_LINE: f64 = 1.03;

const MAX_LINES: u64 = MAX_BITS / LINE_BITS;

/// The parameters of a blocked filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BlockedParams {
    /// n: the number of keys planned for.
    pub capacity: u64,
    /// The number of lines of 512 bits, a multiple of 8.
    pub lines: u64,
    /// The lines in which each key is stored, from 1 to 4. A lookup costs this many cache misses,
    /// and tests eight times as many bits.
    pub lines_per_key: u32,
    /// The rate with `capacity` keys inserted.
    pub rate: f64,
    /// 512 times the lines.
    pub bits: u64,
}

impl BlockedParams {
    /// Plans a filter for `n` keys at rate `p`.
    ///
    /// Of one to four lines per key, chooses the fewest whose size is within 3 % of the smallest of
    /// the four. That is one line down to a rate of about 0.1 %, two to about 1e-5, three to about
    /// 1e-8, four below.
    ///
    /// # Errors
    ///
    /// If an argument is out of range, or the filter would need more than [`MAX_BITS`].
    pub fn for_capacity(n: u64, p: f64) -> Result<Self> {
        check::capacity(n)?;
        check::rate(p)?;
        let choices = (1..=MAX_LINES_PER_KEY).filter_map(|t| Self::with_lines_per_key(n, p, t).ok());
        choose(choices, |params| params.bits as f64).ok_or_else(|| too_large(n, p))
    }

    /// Plans a filter for `n` keys at rate `p` that stores each key in a given number of lines.
    ///
    /// # Errors
    ///
    /// As [`for_capacity`](Self::for_capacity); also if `lines_per_key` is not 1 to 4.
    pub fn with_lines_per_key(n: u64, p: f64, lines_per_key: u32) -> Result<Self> {
        check::capacity(n)?;
        check::rate(p)?;
        check_lines_per_key(lines_per_key)?;
        let suffices = |eights| unchecked_rate(eights * LINE_MULTIPLE, n, lines_per_key) <= p;
        match least(1..=MAX_LINES / LINE_MULTIPLE, suffices) {
            Some(eights) => Ok(Self::new(eights * LINE_MULTIPLE, n, lines_per_key)),
            None => Err(too_large(n, p)),
        }
    }

    /// Plans a filter for `n` keys in at most `bits` bits.
    ///
    /// The filter has a multiple of eight lines, so `bits` must be at least 4096. The lines per key
    /// follow the rule of [`for_capacity`](Self::for_capacity): the fewest whose overhead over a
    /// standard filter of the same rate is within 3 % of the smallest.
    ///
    /// # Errors
    ///
    /// If `bits` is below [`SMALLEST_BITS`], or an argument is out of range.
    pub fn for_bits(bits: u64, n: u64) -> Result<Self> {
        check::capacity(n)?;
        let lines = whole_lines(bits)?;
        let choices = (1..=MAX_LINES_PER_KEY).map(|t| Self::new(lines, n, t));
        Ok(choose(choices, |params| 1.0 + params.overhead()).unwrap_or_else(|| Self::new(lines, n, 1)))
    }

    /// Plans a filter for `n` keys in at most `bits` bits that stores each key in a given number of
    /// lines.
    ///
    /// # Errors
    ///
    /// As [`for_bits`](Self::for_bits); also if `lines_per_key` is not 1 to 4.
    pub fn for_bits_and_lines(bits: u64, n: u64, lines_per_key: u32) -> Result<Self> {
        check::capacity(n)?;
        check_lines_per_key(lines_per_key)?;
        Ok(Self::new(whole_lines(bits)?, n, lines_per_key))
    }

    /// Plans the filter of at most `bits` bits that holds the most keys at rate `p` when each is
    /// stored in a given number of lines.
    ///
    /// # Errors
    ///
    /// As [`for_bits_and_lines`](Self::for_bits_and_lines); also if not even one key fits at rate
    /// `p`.
    pub fn for_bits_lines_and_rate(bits: u64, lines_per_key: u32, p: f64) -> Result<Self> {
        let lines = whole_lines(bits)?;
        Ok(Self::new(lines, capacity(lines, lines_per_key, p)?, lines_per_key))
    }

    /// Plans the filter of at most `bits` bits that holds the most keys at rate `p`; the lines per
    /// key are those of [`for_capacity`](Self::for_capacity).
    ///
    /// # Errors
    ///
    /// As [`for_bits`](Self::for_bits); also if not even one key fits at rate `p`.
    pub fn for_bits_and_rate(bits: u64, p: f64) -> Result<Self> {
        let lines = whole_lines(bits)?;
        check::rate(p)?;
        let holding = |t| capacity(lines, t, p).map_or(0, |n| n.max(1));
        let most = (1..=MAX_LINES_PER_KEY).map(holding).max().unwrap_or(1) as f64;
        let lines_per_key = (1..=MAX_LINES_PER_KEY).find(|&t| holding(t) as f64 * WORTH_A_LINE >= most);
        let lines_per_key = lines_per_key.unwrap_or(1);
        Ok(Self::new(lines, holding(lines_per_key), lines_per_key))
    }

    /// Returns the memory beyond that of a standard filter for the same keys at the same rate: 0.05
    /// is 5 %.
    pub fn overhead(&self) -> f64 {
        // A rate that rounds to 0 or 1 has no standard filter to compare with.
        match standard::bits_per_key(self.rate) {
            Ok(bits_per_key) => self.bits as f64 / (self.capacity as f64 * bits_per_key) - 1.0,
            Err(_) => f64::INFINITY,
        }
    }

    /// Returns the expected share of set bits at capacity.
    pub fn expected_fill(&self) -> f64 {
        unchecked_fill(self.lines, self.capacity, self.lines_per_key)
    }

    /// Returns the standard deviation of the rate from seed to seed at capacity, as a share of the
    /// rate: see [`relative_deviation`].
    pub fn relative_deviation(&self) -> f64 {
        unchecked_deviation(self.lines, self.capacity, self.lines_per_key)
    }

    fn new(lines: u64, n: u64, lines_per_key: u32) -> Self {
        Self {
            capacity: n,
            lines,
            lines_per_key,
            rate: unchecked_rate(lines, n, lines_per_key),
            bits: lines * LINE_BITS,
        }
    }
}

/// Returns the number of lines in this many bits, in whole multiples.
fn whole_lines(bits: u64) -> Result<u64> {
    check::bits(bits)?;
    match bits / LINE_BITS / LINE_MULTIPLE * LINE_MULTIPLE {
        0 => {
            let needs = format!("at least {SMALLEST_BITS} bits, eight lines, for a blocked filter");
            Err(Error::parameter("m", bits, needs))
        }
        lines => Ok(lines),
    }
}

/// Returns the first choice that costs little more than the cheapest; choices come in order of
/// lines per key.
fn choose(
    choices: impl Iterator<Item = BlockedParams> + Clone,
    cost: impl Fn(&BlockedParams) -> f64,
) -> Option<BlockedParams> {
    let least = choices.clone().map(|params| cost(&params)).min_by(f64::total_cmp)?;
    choices.clone().find(|params| cost(params) <= WORTH_A_LINE * least)
}

/// Returns the rate of a filter with this many lines after `n` keys, each stored in `lines_per_key`
/// of them.
///
/// Exact for one line per key. For more, the t-th power of the mean stands in for the mean of the
/// t-th power. The result is too low by t(t-1)/2 squared deviations of a line's rate from seed to
/// seed: nothing at the sizes that blocked filters are made for, and a few per cent at eight lines.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn rate(lines: u64, n: u64, lines_per_key: u32) -> Result<f64> {
    check_shape(lines, n, lines_per_key)?;
    Ok(unchecked_rate(lines, n, lines_per_key))
}

/// Returns the most keys that this many lines hold at rate `p`.
///
/// # Errors
///
/// If an argument is out of range, or not even one key fits at rate `p`.
pub fn capacity(lines: u64, lines_per_key: u32, p: f64) -> Result<u64> {
    check_shape(lines, 0, lines_per_key)?;
    check::rate(p)?;
    let fits = |n| unchecked_rate(lines, n, lines_per_key) <= p;
    let no_room =
        || Error::parameter("lines", lines, format!("room for at least one key at p = {}", Decimal(p)));
    greatest(1..=MAX_KEYS, fits).ok_or_else(no_room)
}

/// Returns the expected share of set bits after `n` keys: lane i of all L lines together is a slice
/// of 64 L bits.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn expected_fill(lines: u64, n: u64, lines_per_key: u32) -> Result<f64> {
    check_shape(lines, n, lines_per_key)?;
    Ok(unchecked_fill(lines, n, lines_per_key))
}

/// Returns the standard deviation of the true rate from seed to seed, as a share of the rate.
///
/// The true rate of one build with one line per key is the mean, over its L lines, of Y = Π fill of
/// lane i. If the number of keys j in a line is Poisson with mean λ and the total is then held
/// fixed, the variance of that mean is (Var Y - Cov(Y,j)²/λ)/L. At 1 % this makes 0.33/√L: 23 % for
/// a hundred keys in two lines (where the model is coarse and overstates it by a fifth), 7 % for a
/// thousand, 1 % at 64 KiB. Lines with independent loads would deviate twice as much; the fixed
/// total steadies them. The t-th power deviates t times as much.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn relative_deviation(lines: u64, n: u64, lines_per_key: u32) -> Result<f64> {
    check_shape(lines, n, lines_per_key)?;
    Ok(unchecked_deviation(lines, n, lines_per_key))
}

fn unchecked_fill(lines: u64, n: u64, lines_per_key: u32) -> f64 {
    standard::fill(lines * LANE_BITS, n * u64::from(lines_per_key), 1)
}

fn unchecked_rate(lines: u64, n: u64, lines_per_key: u32) -> f64 {
    let (lines, pairs) = (lines as f64, n as f64 * f64::from(lines_per_key));
    let in_line = if crowded(pairs / lines) {
        1.0
    } else if lines == 1.0 {
        line_rate(pairs)
    } else {
        // Binomial(pairs, 1/lines).
        let ratio = |j: f64| (pairs - j) / ((j + 1.0) * (lines - 1.0));
        mean(((pairs + 1.0) / lines).floor(), ratio, line_rate)
    };
    in_line.powf(f64::from(lines_per_key))
}

fn unchecked_deviation(lines: u64, n: u64, lines_per_key: u32) -> f64 {
    let (lines, pairs) = (lines as f64, n as f64 * f64::from(lines_per_key));
    let load = pairs / lines;
    if n == 0 || crowded(load) {
        return 0.0;
    }
    let poisson = |value: &dyn Fn(f64) -> f64| mean(load.floor(), |j| load / (j + 1.0), value);
    let average = poisson(&line_rate);
    let variance = poisson(&line_rate_squared) - average * average;
    let covariance = poisson(&|j| (j - load) * line_rate(j));
    let per_line = (variance - covariance * covariance / load).max(0.0);
    f64::from(lines_per_key) * (per_line / lines).sqrt() / average
}

/// Returns whether lines with this many keys have no zero bit that `f64` could represent: e^(-λ/64)
/// is then far below 2^-53, even nine deviations below the mean. This bounds the number of terms in
/// [`mean`].
fn crowded(load: f64) -> bool {
    load > 8192.0
}

/// Returns the rate of a line that holds j keys: (1-(63/64)^j)^8.
fn line_rate(j: f64) -> f64 {
    lane_fill(j).powi(LANES as i32)
}

/// Returns `E[Y²]` of a line that holds j keys: two bits drawn independently in each lane must both
/// be set.
fn line_rate_squared(j: f64) -> f64 {
    let bits = LANE_BITS as f64;
    let zero = 1.0 - lane_fill(j);
    let both_zero = zero / bits + (1.0 - 1.0 / bits) * (1.0 - 2.0 / bits).powf(j);
    (1.0 - 2.0 * zero + both_zero).powi(LANES as i32)
}

fn lane_fill(j: f64) -> f64 {
    -(j * (-1.0 / LANE_BITS as f64).ln_1p()).exp_m1()
}

/// Returns the mean of a value over a distribution on 0, 1, 2, ..., given its mode and the ratio
/// P(j+1)/P(j).
///
/// The sum runs outwards from the mode, whose weight is set to 1, and is divided by the sum of the
/// weights. This needs no factorials or their logarithms, and nothing underflows. It ends where the
/// terms become negligible.
fn mean(mode: f64, ratio: impl Fn(f64) -> f64, value: impl Fn(f64) -> f64) -> f64 {
    const NEGLIGIBLE: f64 = 1e-18;
    let (mut total, mut sum) = (1.0, value(mode));
    let (mut j, mut weight) = (mode, 1.0);
    while j > 0.0 && weight > NEGLIGIBLE {
        j -= 1.0;
        weight /= ratio(j);
        total += weight;
        sum += weight * value(j);
    }
    (j, weight) = (mode, 1.0);
    loop {
        weight *= ratio(j);
        j += 1.0;
        let term = weight * value(j);
        total += weight;
        sum += term;
        // Upwards the value grows as fast as j^16 while the weight falls, so check both.
        if weight <= NEGLIGIBLE && term.abs() <= NEGLIGIBLE * sum.abs() {
            return sum / total;
        }
    }
}

fn check_lines_per_key(lines_per_key: u32) -> Result<()> {
    if (1..=MAX_LINES_PER_KEY).contains(&lines_per_key) {
        return Ok(());
    }
    Err(Error::parameter("lines per key", lines_per_key, "1, 2, 3 or 4"))
}

pub(super) fn check_shape(lines: u64, n: u64, lines_per_key: u32) -> Result<()> {
    if !(1..=MAX_LINES).contains(&lines) {
        return Err(Error::parameter("lines", lines, "a number of lines from 1 to 2^39"));
    }
    check::load(n)?;
    check_lines_per_key(lines_per_key)
}

fn too_large(n: u64, p: f64) -> Error {
    Error::parameter(
        "n",
        n,
        format!("fewer keys or a higher rate: at p = {} these take more than 2^48 bits", Decimal(p)),
    )
}

#[cfg(test)]
mod tests;
