//! Scalable filters: a chain of stages that grows with its keys and keeps one rate.
//!
//! Stage i holds `n_i = n_0 s^i` keys at rate `P_i = P_0 r^i` with `P_0 = P (1-r)`. A non-member is
//! reported if any stage reports it:
//!
//! > `compound rate = 1 - Π (1 - P_0 r^i) <= Σ P_0 r^i <= P_0 / (1-r) = P`
//!
//! however many stages there are. Without tightening, at r = 1, the sum has no bound. Each stage
//! costs 1.4427 log2(1/r) more bits per key than the one before.
//!
//! ```
//! use umbel::sizing::{Shape, scalable::{self, Schedule}};
//!
//! # fn main() -> umbel::Result<()> {
//! let schedule = Schedule::new(1000, 0.001, 0.5, 2)?;
//! assert_eq!(schedule.stage_rate(2), 1.25e-4);
//! assert_eq!(schedule.stage_capacity(5), 32_000);
//! assert!((schedule.compound_rate(6) - 9.841e-4).abs() < 1e-7);
//! let third = scalable::partitioned(4000, 1.25e-4)?;
//! assert_eq!(third, Shape::Partitioned { slice_bits: 5771, hashes: 13 });
//! # Ok(())
//! # }
//! ```
//!
//! # References
//!
//! * P. S. Almeida, C. Baquero, N. Preguiça and D. Hutchison. *Scalable Bloom filters.* Information
//!   Processing Letters 101(6), 2007. `ABPH07`

use super::{
    Decimal, MAX_BITS, MAX_HASHES, MAX_KEYS, PartitionedParams, Shape, blocked, check, least, partitioned,
    rate,
};
use crate::{Error, Result};

/// How a scalable filter grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    capacity: u64,
    rate: f64,
    tightening: f64,
    growth: u32,
}

impl Schedule {
    /// The largest number of stages. A chain that doubles runs out of memory long before.
    pub const MAX_STAGES: usize = 1024;

    /// Creates a schedule whose compound rate never exceeds `rate` (P).
    ///
    /// The first stage holds `capacity` keys (`n_0`). Each further stage holds `growth` (s) times
    /// the keys of the one before, at `tightening` (r) times its rate.
    ///
    /// # Errors
    ///
    /// If an argument is out of range: `tightening` must be above 0 and below 1, and `growth` from
    /// 1 to 32768.
    pub fn new(capacity: u64, rate: f64, tightening: f64, growth: u32) -> Result<Schedule> {
        check::capacity(capacity)?;
        check::rate(rate)?;
        // Written so that NaN fails.
        if !(tightening > 0.0 && tightening < 1.0) {
            let needs = "a ratio above 0 and below 1: at 1 the stages would all have the same rate, and their sum \
                         would grow without bound";
            return Err(Error::parameter("tightening", tightening, needs));
        }
        if !(1..=32_768).contains(&growth) {
            return Err(Error::parameter("growth", growth, "a factor from 1 to 32768; 2 or 4 are usual"));
        }
        Ok(Schedule { capacity, rate, tightening, growth })
    }

    /// Returns `n_0`: the keys of the first stage.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns P: the bound of the compound rate.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns r: the ratio between the rate of a stage and that of the one before.
    pub fn tightening(&self) -> f64 {
        self.tightening
    }

    /// Returns s: the ratio between the keys of a stage and those of the one before.
    pub fn growth(&self) -> u32 {
        self.growth
    }

    /// Returns `n_i`: the keys of stage `i`.
    pub fn stage_capacity(&self, i: usize) -> u64 {
        let power = u64::from(self.growth).saturating_pow(i as u32);
        self.capacity.saturating_mul(power).min(MAX_KEYS)
    }

    /// Returns `P_i`: the rate of stage `i` when it is full.
    pub fn stage_rate(&self, i: usize) -> f64 {
        self.rate * (1.0 - self.tightening) * self.tightening.powi(i as i32)
    }

    /// Returns the bound of the compound rate of the first `stages` stages, all full.
    pub fn compound_rate(&self, stages: usize) -> f64 {
        compound((0..stages).map(|i| self.stage_rate(i)))
    }
}

/// Returns the rate of several filters that report a key if any one of them does: 1 - Π (1 - p).
pub fn compound(rates: impl IntoIterator<Item = f64>) -> f64 {
    // By logarithms, because small rates would be lost in a product of numbers close to 1.
    -rates.into_iter().map(|rate| (-rate).ln_1p()).sum::<f64>().exp_m1()
}

/// The size of the smallest blocked part, 4 KiB in bits: a sixteenth of the recommended minimum for
/// a filter on its own. At this size the rate varies by some 5 % from seed to seed. In a chain that
/// is little beside the rates of the other parts, while testing a standard filter takes more than
/// twice the time.
const SMALLEST_BLOCKED: u64 = blocked::STEADY_BITS / 16;

/// The factor over the smallest memory that a large part accepts to avoid touching another line. It
/// is higher than for a filter on its own, because a lookup touches several parts.
const WORTH_A_LINE: f64 = 1.1;

/// The largest memory of a blocked part as a multiple of a standard filter's. At rates far below
/// 1e-10 a blocked part would exceed this even with four lines.
const MAX_OVERHEAD: f64 = 1.3;

/// Returns the shape of a part that holds `n` keys at a rate of at most `p`: blocked, or standard
/// if the part would be small.
///
/// # Errors
///
/// If an argument is out of range, or the part would need more than [`MAX_BITS`].
pub fn automatic(n: u64, p: f64) -> Result<Shape> {
    check::capacity(n)?;
    check::rate(p)?;
    // Not in multiples of eight lines like filters on their own, because parts are never folded.
    let suffices = |lines, t| blocked::rate(lines, n, t).is_ok_and(|rate| rate <= p);
    let sized = |t| Some((least(1..=MAX_BITS / blocked::LINE_BITS, |lines| suffices(lines, t))?, t));
    let choices: Vec<(u64, u32)> = (1..=blocked::MAX_LINES_PER_KEY).filter_map(sized).collect();
    let fewest = choices.iter().map(|(lines, _)| lines * blocked::LINE_BITS).min().unwrap_or(0);
    if fewest < SMALLEST_BLOCKED || fewest as f64 > MAX_OVERHEAD * n as f64 * rate::bits_per_key(p)? {
        return standard(n, p);
    }
    // A small part holds few of the keys, so its further lines are seldom touched.
    let most = fewest as f64 * if fewest < blocked::STEADY_BITS { 1.0 } else { WORTH_A_LINE };
    match choices.into_iter().find(|(lines, _)| (lines * blocked::LINE_BITS) as f64 <= most) {
        Some((lines, lines_per_key)) => Ok(Shape::Blocked { lines, lines_per_key }),
        None => standard(n, p),
    }
}

/// Returns the shape of a part that holds `n` keys at a rate of at most `p` in little memory:
/// blocked only where a filter on its own would be, from 64 KiB on.
///
/// # Errors
///
/// As [`automatic`].
pub fn compact(n: u64, p: f64) -> Result<Shape> {
    match automatic(n, p)? {
        Shape::Blocked { lines, .. } if lines * blocked::LINE_BITS < blocked::STEADY_BITS => standard(n, p),
        shape => Ok(shape),
    }
}

/// Returns the shape of a stage by Almeida et al.: k = ceil(log2 1/p) slices of ceil(n / ln 2)
/// bits.
///
/// # Errors
///
/// As [`automatic`].
pub fn partitioned(n: u64, p: f64) -> Result<Shape> {
    let params = PartitionedParams::for_capacity(n, p)?;
    Ok(Shape::Partitioned { slice_bits: params.slice_bits, hashes: params.hashes })
}

/// Returns the standard filter with the fewest bits whose rate is at most `p` even where the
/// classic formula is too low, rounded up to whole words.
fn standard(n: u64, p: f64) -> Result<Shape> {
    check::capacity(n)?;
    check::rate(p)?;
    // The best k is log2(1/p) in large filters, and lower in tiny ones.
    let most = (-p.log2()).round().clamp(1.0, f64::from(MAX_HASHES)) as u32;
    let sized = (most.saturating_sub(4).max(1)..=most)
        .filter_map(|k| Some((least(1..=MAX_BITS, |m| safe_rate(m, n, k) <= p)?, k)));
    let (bits, hashes) = sized.min().ok_or_else(|| {
        Error::parameter("n", n, format!("fewer keys: at p = {} these take more than 2^48 bits", Decimal(p)))
    })?;
    Ok(Shape::Standard { bits: bits.next_multiple_of(64).min(MAX_BITS), hashes })
}

/// Returns an upper bound of the rate of a standard filter: the classic formula with twice its
/// second-order term, since in filters with a few keys the higher orders matter as well.
fn safe_rate(m: u64, n: u64, k: u32) -> f64 {
    let classic = rate::formula(m, n, k);
    rate::second_order(m, n, k).map_or(1.0, |better| classic + 2.0 * (better - classic).max(0.0))
}

/// Returns the rate of a part of this shape with `n` keys inserted.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn shape_rate(shape: Shape, n: u64) -> Result<f64> {
    match shape {
        Shape::Standard { bits, hashes } => rate::expected(bits, n, hashes),
        Shape::Partitioned { slice_bits, hashes } => partitioned::rate(slice_bits, n, hashes),
        Shape::Blocked { lines, lines_per_key } => blocked::rate(lines, n, lines_per_key),
    }
}

/// Returns the rate of a part as [`shape_rate`] does, but by the classic formula in a standard
/// part. The exact rate of a small filter takes a millisecond, too long where many rates are
/// compared with each other.
pub(crate) fn classic_shape_rate(shape: Shape, n: u64) -> Result<f64> {
    match shape {
        Shape::Standard { bits, hashes } => rate::classic(bits, n, hashes),
        Shape::Partitioned { .. } | Shape::Blocked { .. } => shape_rate(shape, n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiny_standard_parts_keep_their_rate_exactly() {
        for n in (1..=12).chain([20, 50, 100, 200]) {
            for p in [0.5, 0.1, 0.015, 0.0015, 1e-4, 1e-6] {
                let Shape::Standard { bits, hashes } = standard(n, p).unwrap() else { panic!() };
                // Also before rounding up to whole words.
                let fewest = least(1..=bits, |m| safe_rate(m, n, hashes) <= p).unwrap();
                for m in [fewest, bits] {
                    let exact = rate::exact(m, n, hashes).unwrap();
                    assert!(exact <= p, "n {n}, p {p}, m {m}, k {hashes}: {exact}");
                }
                let ideal = rate::optimal_bits(n, p).unwrap() as f64;
                assert!(
                    (fewest as f64) < ideal * (1.05 + 2.0 / n as f64) + 8.0,
                    "n {n}, p {p}: {fewest} {ideal}"
                );
            }
        }
    }

    #[test]
    fn parts_of_every_size_keep_their_rate_by_theory() {
        for n in [1, 10, 100, 1000, 3000, 10_000, 100_000, 10_000_000, 1 << 36] {
            for p in [0.3, 0.01, 0.0015, 1e-4, 1e-8] {
                for shape in [automatic(n, p), compact(n, p), partitioned(n, p)].map(Result::unwrap) {
                    let rate = shape_rate(shape, n).unwrap();
                    assert!(rate <= p, "{n} {p} {shape:?}: {rate}");
                }
            }
        }
        assert!(matches!(automatic(1000, 0.001).unwrap(), Shape::Standard { .. }));
        assert!(matches!(automatic(100_000, 0.001).unwrap(), Shape::Blocked { lines_per_key: 1, .. }));
        assert!(matches!(automatic(10_000, 0.001).unwrap(), Shape::Blocked { .. }));
        assert!(matches!(compact(10_000, 0.001).unwrap(), Shape::Standard { .. }));
        assert_eq!(compact(100_000, 0.001).unwrap(), automatic(100_000, 0.001).unwrap());
        assert!(
            automatic(1 << 48, 0.001).is_err() && automatic(0, 0.1).is_err() && automatic(1, 0.0).is_err()
        );
    }

    #[test]
    fn the_compound_rate_is_bounded_only_with_tightening() {
        for (tightening, growth) in [(0.5, 2), (0.85, 2), (0.9, 4), (0.99, 1)] {
            let schedule = Schedule::new(100, 0.01, tightening, growth).unwrap();
            let rates: Vec<f64> = (0..1000).map(|stages| schedule.compound_rate(stages)).collect();
            assert!(rates.is_sorted() && rates[999] <= 0.01, "{}", rates[999]);
            assert_eq!(schedule.stage_capacity(1000), if growth == 1 { 100 } else { MAX_KEYS });
        }
        assert!((compound([0.01; 6]) - 0.0585).abs() < 5e-5);
        assert_eq!((compound([]), compound([1e-20, 1e-20])), (0.0, 2e-20));
        assert!(compound([1.0, 0.5]) == 1.0);
    }
}
