//! The exact false-positive rate, for filters so small that the approximations fail.
//!
//! There are two models: the k positions of a key are drawn independently and may coincide, or they
//! are all different. Each is computed twice. A sum of positive terms is always accurate, but slow
//! for large filters. An alternating sum is immediate at any size, but loses digits as k grows. The
//! two check each other.
//!
//! # References
//!
//! * P. Bose et al. *On the false-positive rate of Bloom filters.* Information Processing Letters
//!   108(4), 2008. `Bose08`
//! * K. Christensen, A. Roginsky and M. Jimeno. *A new analysis of the false positive rate of a
//!   Bloom filter.* Information Processing Letters 110(21), 2010. `CRJ10`
//! * F. Grandi. *On the analysis of Bloom filters.* Information Processing Letters 129, 2018.
//!   `Grandi18`

use super::rate::check_filter;
use crate::{Error, Result};

/// The largest k·n·m for which an occupancy distribution is computed. That takes a few seconds.
const MAX_WORK: u128 = 1 << 33;

/// The largest number of hash functions in an alternating sum.
const MAX_ALTERNATING_HASHES: u32 = 20;

/// Returns the exact rate when the k positions of a key are drawn independently.
///
/// Follows the distribution of the number of set bits throw by throw, in O(knm) at most. All terms
/// are positive, so at least ten digits are right for any k.
///
/// ```
/// # use umbel::sizing::rate;
/// assert_eq!(rate::exact(2, 1, 2)?, 5.0 / 8.0);
/// assert_eq!(rate::exact_distinct(2, 1, 2)?, 1.0);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If an argument is out of range, or k·n·m exceeds 2^33.
pub fn exact(m: u64, n: u64, k: u32) -> Result<f64> {
    let set = Occupancy::after(m, n, k, Draw::Independent)?;
    Ok(set.expectation(|x| (x / m as f64).powf(f64::from(k))))
}

/// Returns the exact rate when the k positions of a key are all different. The cost is that of
/// [`exact`].
///
/// # Errors
///
/// As [`exact`]; also if `k` exceeds `m`.
pub fn exact_distinct(m: u64, n: u64, k: u32) -> Result<f64> {
    check_distinct(m, k)?;
    let set = Occupancy::after(m, n, k, Draw::Distinct)?;
    // C(x,k)/C(m,k): the query's positions are different, too.
    Ok(set.expectation(|x| (0..k).map(f64::from).map(|i| (x - i).max(0.0) / (m as f64 - i)).product()))
}

/// Computes the value of [`exact`] by Grandi's recurrence, at any size, in O(k²).
///
/// ψ(h,m) = ψ(h-1,m) - (1-1/m)^(kn+h-1) ψ(h-1,m-1), ψ(0,m) = 1; the rate is ψ(k,m). The terms
/// alternate, so rounding limits k and the rate.
///
/// ```
/// # use umbel::sizing::rate;
/// let (m, n, k) = (9_585_059, 1_000_000, 7);
/// let excess = rate::exact_recurrence(m, n, k)? / rate::classic(m, n, k)? - 1.0;
/// assert!(excess > 0.0 && excess < 1e-6, "the classic formula is fine for large filters");
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If an argument is out of range, `k` is above 20, or the rate is so small beside the terms that
/// fewer than four digits would survive.
pub fn exact_recurrence(m: u64, n: u64, k: u32) -> Result<f64> {
    check_filter(m, n, k)?;
    check_alternating(k)?;
    if n == 0 {
        return Ok(0.0);
    }
    let throws = f64::from(k) * n as f64;
    // Cell j holds ψ(h, m-j), and the same with every minus replaced by a plus: the magnitude
    // against which the rounding error is judged.
    let mut psi = vec![(1.0, 1.0); k as usize + 1];
    for h in 1..=k {
        for j in 0..=(k - h) {
            // With one cell left every throw hits it. With none left the weight is zero, too.
            let cells = m.saturating_sub(u64::from(j));
            let missed = if cells > 1 {
                ((throws + f64::from(h - 1)) * (-1.0 / cells as f64).ln_1p()).exp()
            } else {
                0.0
            };
            let (fewer, fewer_size) = psi[j as usize + 1];
            let (value, size) = &mut psi[j as usize];
            *value -= missed * fewer;
            *size += missed * fewer_size;
        }
    }
    let (value, size) = psi[0];
    surviving(value, size, k)
}

/// Computes the value of [`exact_distinct`] by inclusion and exclusion, at any size, in O(k²).
///
/// Σ (-1)^j C(k,j) [C(m-j,k)/C(m,k)]^n over j = 0..=k.
///
/// # Errors
///
/// As [`exact_recurrence`]; also if `k` exceeds `m`.
pub fn exact_distinct_sum(m: u64, n: u64, k: u32) -> Result<f64> {
    check_filter(m, n, k)?;
    check_distinct(m, k)?;
    check_alternating(k)?;
    if n == 0 {
        return Ok(0.0);
    }
    let (mut value, mut size, mut choose) = (0.0, 0.0, 1.0);
    for j in 0..=k {
        // ln C(m-j,k)/C(m,k) as a sum of k logarithms near zero: no factorial, no log-gamma, no
        // cancellation. A factor that reaches zero makes the sum minus infinity and the term zero,
        // as required.
        let avoid: f64 = (0..k).map(|i| (-f64::from(j) / (m - u64::from(i)) as f64).max(-1.0).ln_1p()).sum();
        let term = choose * (n as f64 * avoid).exp();
        value += if j % 2 == 0 { term } else { -term };
        size += term;
        choose *= f64::from(k - j) / f64::from(j + 1);
    }
    surviving(value, size, k)
}

/// How the positions of one key are drawn.
#[derive(Clone, Copy, PartialEq)]
enum Draw {
    Independent,
    Distinct,
}

/// The distribution of the number of set bits: `weights[i]` is the probability of `first + i`.
struct Occupancy {
    first: usize,
    weights: Vec<f64>,
}

impl Occupancy {
    /// Probabilities below this are dropped at both ends. They are far too small to matter, and
    /// would soon become subnormal numbers, which most processors handle a hundred times slower.
    const NEGLIGIBLE: f64 = 1e-290;

    fn after(m: u64, n: u64, k: u32, draw: Draw) -> Result<Self> {
        check_filter(m, n, k)?;
        let work = u128::from(m) * u128::from(n) * u128::from(k);
        if work > MAX_WORK {
            let needs = "at most 2^33 steps; for filters of such sizes the classic formula is right";
            return Err(Error::parameter("k*n*m", work, needs));
        }
        let throws = n * u64::from(k);
        // At most the square root of 2^33.
        let most = throws.min(m) as usize;
        let cells = m as f64;
        let mut weights = vec![0.0; most + 1];
        weights[0] = 1.0;
        let (mut low, mut high) = (0, 0);
        for throw in 0..throws {
            if low as u64 == m {
                break; // every bit is set and stays set
            }
            // A distinct position avoids those that this key has already drawn. They are among the
            // set bits, so the next step still depends on the number of set bits alone.
            let drawn = if draw == Draw::Distinct { (throw % u64::from(k)) as f64 } else { 0.0 };
            let open = cells - drawn;
            high = (high + 1).min(most);
            for x in (low.max(1)..=high).rev() {
                let set = x as f64;
                weights[x] = (weights[x] * (set - drawn) + weights[x - 1] * (cells - set + 1.0)) / open;
            }
            // The lowest cell has no neighbour below it, and the first throw always leaves the
            // empty state.
            if low == 0 {
                weights[0] = 0.0;
            }
            while low < high && weights[low] < Self::NEGLIGIBLE {
                weights[low] = 0.0;
                low += 1;
            }
            while low < high && weights[high] < Self::NEGLIGIBLE {
                weights[high] = 0.0;
                high -= 1;
            }
        }
        weights.truncate(high + 1);
        Ok(Self { first: low, weights: weights.split_off(low) })
    }

    fn expectation(&self, value: impl Fn(f64) -> f64) -> f64 {
        (self.first..).zip(&self.weights).map(|(x, weight)| weight * value(x as f64)).sum()
    }
}

fn check_distinct(m: u64, k: u32) -> Result<()> {
    if u64::from(k) <= m {
        return Ok(());
    }
    Err(Error::parameter("k", k, format!("at most m = {m} different positions")))
}

fn check_alternating(k: u32) -> Result<()> {
    if k <= MAX_ALTERNATING_HASHES {
        return Ok(());
    }
    Err(Error::parameter("k", k, "at most 20 hash functions: beyond, the alternating sum has no digits left"))
}

/// Returns the value of an alternating sum if enough of it survives rounding; `size` is the sum of
/// its absolute terms.
fn surviving(value: f64, size: f64, k: u32) -> Result<f64> {
    let noise = 8.0 * f64::EPSILON * size;
    if noise <= 1e-4 * value {
        return Ok(value);
    }
    let needs = format!("a rate well above {noise:.0e}, below which the alternating sum is rounding noise");
    Err(Error::parameter("k", k, needs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::rate::{asymptotic, classic, second_order};

    fn close(value: f64, expected: f64, relative: f64) -> bool {
        (value / expected - 1.0).abs() <= relative
    }

    /// m, n, k; then the exact rate for independent and for different positions.
    const REFERENCE: [(u64, u64, u32, f64, f64); 7] = [
        (2, 1, 2, 0.625, 1.0),
        (10, 3, 3, 0.24718495681, 0.25107696759),
        (128, 16, 5, 0.022539072954, 0.021799885630),
        (128, 8, 11, 0.000537365905, 0.000471504946),
        (128, 8, 10, 0.000539573636, 0.000464233394),
        (64, 8, 6, 0.023809224708, 0.022710058890),
        (1024, 100, 7, 0.007366257831, 0.007317868284),
    ];

    #[test]
    fn both_models_have_their_reference_values_by_both_methods() {
        for (m, n, k, independent, distinct) in REFERENCE {
            assert!(close(exact(m, n, k).unwrap(), independent, 1e-9), "exact {m} {n} {k}");
            assert!(close(exact_recurrence(m, n, k).unwrap(), independent, 1e-8), "recurrence {m} {n} {k}");
            assert!(close(exact_distinct(m, n, k).unwrap(), distinct, 1.1e-9), "distinct {m} {n} {k}");
            assert!(close(exact_distinct_sum(m, n, k).unwrap(), distinct, 1e-8), "sum {m} {n} {k}");
        }
    }

    #[test]
    fn the_two_methods_agree_wherever_both_answer() {
        for m in [1, 2, 3, 7, 64, 500] {
            for n in [0, 1, 2, 30] {
                for k in [1, 2, 5, 12, 20] {
                    let slow = exact(m, n, k).unwrap();
                    if let Ok(fast) = exact_recurrence(m, n, k) {
                        assert!((fast - slow).abs() <= 1e-4 * slow, "{m} {n} {k}: {fast} {slow}");
                    }
                    if u64::from(k) > m {
                        assert!(exact_distinct(m, n, k).is_err() && exact_distinct_sum(m, n, k).is_err());
                        continue;
                    }
                    let slow = exact_distinct(m, n, k).unwrap();
                    if let Ok(fast) = exact_distinct_sum(m, n, k) {
                        assert!((fast - slow).abs() <= 1e-4 * slow, "distinct {m} {n} {k}: {fast} {slow}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_best_number_of_hashes_of_a_small_filter_depends_on_the_model() {
        let best = |rate: fn(u64, u64, u32) -> Result<f64>, n| {
            (1..=24).min_by(|&a, &b| rate(128, n, a).unwrap().total_cmp(&rate(128, n, b).unwrap())).unwrap()
        };
        assert_eq!((best(exact, 16), best(exact_distinct, 16)), (5, 5));
        assert_eq!((best(exact, 8), best(exact_distinct, 8)), (11, 10));
    }

    #[test]
    fn the_approximations_are_far_too_low_for_small_filters_only() {
        let low = |rate: f64, truth: f64| 100.0 * (1.0 - rate / truth);
        let truth = exact(128, 8, 11).unwrap();
        assert!((low(classic(128, 8, 11).unwrap(), truth) - 12.0).abs() < 0.1);
        assert!((low(asymptotic(128, 8, 11).unwrap(), truth) - 14.6).abs() < 0.1);
        assert!((low(second_order(128, 8, 11).unwrap(), truth) - 0.45).abs() < 0.01);
        let truth = exact(9586, 1000, 7).unwrap();
        assert!((low(classic(9586, 1000, 7).unwrap(), truth) - 0.07).abs() < 0.005);
        assert!(close(exact_recurrence(9586, 1000, 7).unwrap(), truth, 1e-9));
        for (m, n, k, truth, _) in REFERENCE {
            assert!(asymptotic(m, n, k).unwrap() < classic(m, n, k).unwrap(), "{m} {n} {k}");
            assert!(classic(m, n, k).unwrap() < truth, "{m} {n} {k}");
        }
    }

    #[test]
    fn inaccurate_computations_are_refused() {
        assert!(exact(1 << 20, 1 << 12, 7).is_err(), "too much work");
        assert!(exact(1 << 20, 10, 7).is_ok(), "large but nearly empty");
        assert_eq!(exact(1, 1 << 33, 1).unwrap(), 1.0, "small and full immediately");
        assert!(exact_recurrence(1 << 20, 100_000, 21).is_err(), "too many hash functions");
        assert!(exact_recurrence(1 << 20, 10, 12).is_err(), "a rate of 1e-48 is below the rounding");
        assert!(exact_distinct_sum(1 << 20, 10, 12).is_err());
        assert!(exact_recurrence(1 << 48, 1 << 44, 10).is_ok());
        assert!(exact_distinct_sum(1 << 48, 1 << 44, 10).is_ok());
        assert!(exact(0, 1, 1).is_err() && exact(10, 1, 0).is_err());
        assert_eq!(exact(10, 0, 3).unwrap(), 0.0);
    }
}
