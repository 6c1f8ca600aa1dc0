//! The decay of a cell: how often the count of one key is lowered while another contends for the
//! cell.

use crate::sizing::least;
use std::array;

/// The decay of a cell: its count is lowered with probability base^count when another key contends
/// for it.
///
/// Most contended counts are small, so their powers are in a table. For a larger count the
/// probability is usually so low that the exponent of the random number decides, without computing
/// a power.
pub(super) struct Decay {
    base: f64,
    /// -log2 of the base: the bits of probability that a count costs.
    bits: f64,
    /// The smallest count whose probability is below [`NEVER`].
    never_from: u64,
    /// The powers of the base, starting at 0. Each is computed by `powf`: repeated multiplication
    /// would round differently.
    powers: [f64; 32],
}

/// The probability below which a count is not contended for repeatedly.
const NEVER: f64 = 1e-12;

/// The number of attempts that draw a number each. Further attempts are decided together, so that
/// the time of an insertion does not grow with its count.
const SINGLE_ATTEMPTS: u32 = 256;

/// The number of successes from which the attempts they take are normally distributed.
const MANY_SUCCESSES: f64 = 512.0;

/// The outcome of a contention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Contention {
    /// The cell stays with its key, at this count.
    Held(u32),
    /// The cell goes to the other key, at this count: the attempts that are left, and the one that
    /// lowered the old count to 0.
    Lost(u32),
}

impl Decay {
    pub fn new(base: f64) -> Decay {
        let never = |count| base.powf(count as f64) < NEVER;
        Decay {
            base,
            bits: -base.log2(),
            never_from: least(0..=u32::MAX.into(), never).unwrap_or(u64::MAX),
            powers: array::from_fn(|count| base.powf(count as f64)),
        }
    }

    /// Returns the outcome of this many attempts to lower a count; `draw` returns random numbers in
    /// 0..1.
    #[inline]
    pub fn contend(&self, mut count: u32, attempts: u32, mut draw: impl FnMut() -> f64) -> Contention {
        let single = attempts.min(SINGLE_ATTEMPTS);
        for done in 0..single {
            // Decided before the count changes: once a lower count is out of reach, so are the
            // remaining attempts.
            let out_of_reach = u64::from(count) >= self.never_from;
            if self.lowers(count, draw()) {
                count -= 1;
                if count == 0 {
                    return Contention::Lost(attempts - done);
                }
            }
            if out_of_reach {
                return Contention::Held(count);
            }
        }
        match attempts - single {
            0 => Contention::Held(count),
            left => self.contend_together(count, left, &mut draw),
        }
    }

    /// Returns whether a random number in 0..1 lowers this count: whether it is below base^count.
    #[inline]
    fn lowers(&self, count: u32, chance: f64) -> bool {
        if let Some(power) = self.powers.get(count as usize) {
            return chance < *power;
        }
        // A number with exponent e is at least 2^e. The power is lower than that, with one bit to
        // spare for rounding.
        let exponent = (chance.to_bits() >> 52) as i32 - 1023;
        if f64::from(count) * self.bits > f64::from(1 - exponent) {
            return false;
        }
        chance < self.base.powf(count.into())
    }

    /// Returns the outcome of many attempts. The number of attempts until one succeeds has a
    /// geometric distribution, so one random number is enough for each success.
    fn contend_together(&self, mut count: u32, mut left: u32, draw: &mut dyn FnMut() -> f64) -> Contention {
        while left > 0 && u64::from(count) < self.never_from {
            let chance = self.base.powf(count.into());
            if f64::from(count).min(chance * f64::from(left)) >= MANY_SUCCESSES {
                return self.contend_normally(count, left, normal(draw(), draw()));
            }
            let attempts = until_success(chance, draw());
            if attempts > u64::from(left) {
                break;
            }
            left -= attempts as u32;
            count -= 1;
            if count == 0 {
                return Contention::Lost(left + 1);
            }
        }
        Contention::Held(count)
    }

    /// Returns the outcome of attempts of which hundreds succeed. The attempts that the first m
    /// successes take are a sum of m geometric distributions, which is close to a normal one with
    ///
    /// ```text
    /// mean      sum of 1/p            p = base^count, base^(count-1), ...
    /// variance  sum of (1 - p)/p²     both are geometric series in 1/p
    /// ```
    ///
    /// `deviation` is a number with the standard normal distribution.
    fn contend_normally(&self, count: u32, left: u32, deviation: f64) -> Contention {
        let ln = self.base.ln();
        let first = (-ln * f64::from(count)).exp();
        let attempts = |successes: u64| {
            let mean = first * geometric_series(ln, successes as f64);
            let variance = first * first * geometric_series(2.0 * ln, successes as f64) - mean;
            // Each success takes at least one attempt.
            (mean + deviation * variance.max(0.0).sqrt()).round().max(successes as f64)
        };
        match least(1..=count.into(), |successes| attempts(successes) > f64::from(left)) {
            Some(failed) => Contention::Held(count - (failed - 1) as u32),
            None => Contention::Lost(left - attempts(count.into()) as u32 + 1),
        }
    }
}

/// Returns 1 + r + r² + ..., where `ln` is the logarithm of r.
fn geometric_series(ln: f64, terms: f64) -> f64 {
    if ln == 0.0 { terms } else { (ln * terms).exp_m1() / ln.exp_m1() }
}

/// Returns the number of attempts until one succeeds that has this chance, from a random number in
/// 0..1.
fn until_success(chance: f64, random: f64) -> u64 {
    // Certain success leaves no number, and `max` ignores it.
    (1.0 + ((-random).ln_1p() / (-chance).ln_1p()).floor()).max(1.0) as u64
}

/// Returns a number with the standard normal distribution from two in 0..1, by Box and Muller.
fn normal(one: f64, other: f64) -> f64 {
    let radius = (-2.0 * (1.0 - one).max(f64::MIN_POSITIVE).ln()).sqrt();
    radius * (std::f64::consts::TAU * other).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    /// Returns a source of random numbers, which counts them.
    fn source(seed: u64, drawn: &mut u64) -> impl FnMut() -> f64 {
        move || {
            *drawn += 1;
            Digest::from_hash(*drawn).salted(seed).get() as f64 / 2f64.powi(64)
        }
    }

    /// Contends once at a time.
    fn contend_singly(
        decay: &Decay,
        mut count: u32,
        attempts: u32,
        mut draw: impl FnMut() -> f64,
    ) -> Contention {
        for left in (1..=attempts).rev() {
            if decay.lowers(count, draw()) {
                count -= 1;
                if count == 0 {
                    return Contention::Lost(left);
                }
            }
        }
        Contention::Held(count)
    }

    /// Returns mean and variance of the count of the old key, or of that of the new one as a negative
    /// number.
    fn moments(contend: impl Fn(u64) -> Contention, runs: u64) -> (f64, f64) {
        let numbers: Vec<f64> = (0..runs)
            .map(|seed| match contend(seed) {
                Contention::Held(count) => count.into(),
                Contention::Lost(count) => -f64::from(count),
            })
            .collect();
        let mean = numbers.iter().sum::<f64>() / runs as f64;
        (mean, numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / (runs - 1) as f64)
    }

    #[test]
    fn attempts_together_have_the_distribution_of_single_ones() {
        const RUNS: u64 = 600;
        // The last four have hundreds of successes.
        let cases = [
            (0.5, 4, 20),
            (0.9, 3, 1000),
            (0.9, 40, 3000),
            (0.99, 300, 5000),
            (0.999, 1500, 6000),
            (0.999, 1000, 2000),
            (0.9999, 6000, 9000),
            (0.9999, 1000, 3000),
        ];
        for (base, count, attempts) in cases {
            let decay = Decay::new(base);
            let single = moments(|seed| contend_singly(&decay, count, attempts, source(seed, &mut 0)), RUNS);
            let apart = |seed: u64| decay.contend_together(count, attempts, &mut source(!seed, &mut 0));
            let together = moments(apart, RUNS);
            // A chance of one in a million for a mean five standard deviations off, and less for a
            // variance: its relative standard error is 6 %.
            let error = ((single.1 + together.1) / RUNS as f64).sqrt();
            let text = format!("{base}, {count}, {attempts}: {single:?} and {together:?}");
            assert!((single.0 - together.0).abs() <= 5.0 * error + 0.01, "{text}");
            assert!((single.1 + 0.01) / (together.1 + 0.01) < 1.5, "{text}");
            assert!((together.1 + 0.01) / (single.1 + 0.01) < 1.5, "{text}");
        }
    }

    #[test]
    fn certain_attempts_lower_a_count_one_by_one() {
        let decay = Decay::new(1.0);
        for (count, attempts) in
            [(1, 1), (5, 9), (9, 5), (700, 1000), (5000, 5000), (9_000_000, 4_000_000_000)]
        {
            let expected = match count {
                count if count > attempts => Contention::Held(count - attempts),
                count => Contention::Lost(attempts - count + 1),
            };
            assert_eq!(decay.contend(count, attempts, || 0.999), expected, "{count}, {attempts}");
        }
    }

    #[test]
    fn the_numbers_drawn_do_not_grow_with_the_attempts() {
        for base in [0.01, 0.5, 0.9, 0.925, 0.99, 0.999, 0.99999, 1.0 - f64::EPSILON, 1.0] {
            let decay = Decay::new(base);
            for count in [1, 30, 300, 5000, 100_000, 10_000_000, u32::MAX] {
                let mut drawn = 0;
                decay.contend(count, u32::MAX, source(7, &mut drawn));
                assert!(drawn < 5000, "{drawn} for {count} at {base}");
            }
        }
    }

    #[test]
    fn every_random_number_has_an_outcome() {
        for random in [0.0, f64::MIN_POSITIVE, 0.5, 1.0] {
            for chance in [NEVER, 0.3, 1.0 - f64::EPSILON, 1.0] {
                assert!(until_success(chance, random) >= 1, "{chance}, {random}");
            }
            assert!(normal(random, 0.25).is_finite());
        }
        assert_eq!(until_success(0.25, 0.2), 1);
        assert_eq!(until_success(0.25, 0.26), 2);
    }
}
