//! Exact tail probabilities of counts.
//!
//! A count of rare events is not normally distributed. If an event is expected 0.03 times, four
//! standard deviations are 0.7, and a single occurrence, which happens in three runs of a hundred,
//! lies outside. The exact law of the count gives the counts that chance explains.
//!
//! ```
//! use umbel_lab::Law;
//! let law = Law::Poisson { mean: 0.03 };
//! assert!((law.at_least(1) - 0.029_554).abs() < 1e-6);
//! assert_eq!(law.two_sided(0.0), 0..=2);
//! ```

use std::ops::RangeInclusive;

/// The probability that a normal variable is more than four standard deviations from its mean.
/// Counts are judged at the same confidence.
pub const FOUR_SIGMA: f64 = 6.334e-5;

/// The expected count from which on a normal law is as good as the exact one.
const RARE_COUNT: f64 = 100.0;

/// The law of a count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Independent trials that succeed with the same probability.
    Binomial {
        /// Number of trials.
        trials: u64,
        /// Probability that a trial succeeds.
        probability: f64,
    },
    /// Many independent trials that hardly ever succeed.
    Poisson {
        /// Expected count.
        mean: f64,
    },
}

impl Law {
    /// Returns the expected count.
    pub fn mean(self) -> f64 {
        match self {
            Law::Binomial { trials, probability } => trials as f64 * probability,
            Law::Poisson { mean } => mean,
        }
    }

    /// Returns whether too few events are expected for a normal law.
    pub fn is_rare(self) -> bool {
        self.mean() < RARE_COUNT
    }

    /// Returns the probability of at most `count` events.
    pub fn at_most(self, count: u64) -> f64 {
        self.terms().take_while(|(i, _)| *i <= count).map(|(_, term)| term).sum::<f64>().min(1.0)
    }

    /// Returns the probability of at least `count` events.
    pub fn at_least(self, count: u64) -> f64 {
        self.terms().skip_while(|(i, _)| *i < count).map(|(_, term)| term).sum::<f64>().min(1.0)
    }

    /// Returns the counts for which neither tail is rarer than half of [`FOUR_SIGMA`]. The mean is
    /// known within the share `slack` of it.
    pub fn two_sided(self, slack: f64) -> RangeInclusive<u64> {
        let [low, high] = [1.0 - slack, 1.0 + slack].map(|factor| self.scaled(factor));
        low.lowest(FOUR_SIGMA / 2.0)..=high.highest(FOUR_SIGMA / 2.0)
    }

    /// Returns the values that chance explains for the largest of several independent counts:
    /// neither tail is rarer than half of [`FOUR_SIGMA`].
    ///
    /// ```
    /// use umbel_lab::Law;
    /// // The largest of ten thousand counts with a mean of 1 is 7 about half of the time.
    /// assert_eq!(Law::Poisson { mean: 1.0 }.largest_of(10_000), 5..=11);
    /// ```
    pub fn largest_of(self, counts: u64) -> RangeInclusive<u64> {
        let tail = FOUR_SIGMA / 2.0;
        // All counts are small with the product of their probabilities; the largest one is large
        // at most with their sum.
        self.lowest((tail.ln() / counts as f64).exp())..=self.highest(tail / counts as f64)
    }

    /// Returns the expected value of the largest of several independent counts.
    pub fn mean_of_largest(self, counts: u64) -> f64 {
        let mut at_most = 0.0;
        let exceeded = |(_, term): (u64, f64)| {
            at_most += term;
            1.0 - f64::min(at_most, 1.0).powf(counts as f64)
        };
        self.terms().map(exceeded).sum()
    }

    /// Returns the law with a multiple of this mean.
    fn scaled(self, factor: f64) -> Law {
        match self {
            Law::Binomial { trials, probability } => {
                Law::Binomial { trials, probability: (probability * factor).min(1.0) }
            }
            Law::Poisson { mean } => Law::Poisson { mean: mean * factor },
        }
    }

    /// Returns the smallest count whose lower tail is not rarer than [`FOUR_SIGMA`].
    pub fn lower_bound(self) -> u64 {
        self.lowest(FOUR_SIGMA)
    }

    /// Returns the largest count whose upper tail is not rarer than [`FOUR_SIGMA`].
    pub fn upper_bound(self) -> u64 {
        self.highest(FOUR_SIGMA)
    }

    /// Returns the smallest count such that the probability of at most that many events reaches
    /// `tail`.
    fn lowest(self, tail: f64) -> u64 {
        let mut sum = 0.0;
        let reaches = |(count, term): (u64, f64)| {
            sum += term;
            (sum >= tail).then_some(count)
        };
        self.terms().find_map(reaches).unwrap_or_default()
    }

    /// Returns the largest count such that the probability of at least that many events reaches
    /// `tail`.
    fn highest(self, tail: f64) -> u64 {
        let terms: Vec<(u64, f64)> = self.terms().collect();
        let mut sum = 0.0;
        let reaches = |(count, term): &(u64, f64)| {
            sum += term;
            (sum >= tail).then_some(*count)
        };
        // Add the small terms first, so that rounding does not lose them.
        terms.iter().rev().find_map(reaches).unwrap_or_default()
    }

    /// Returns the probability of each count, from zero up to where it vanishes. Each term follows
    /// from the previous one by their ratio; logarithms keep the first terms from underflowing.
    fn terms(self) -> impl Iterator<Item = (u64, f64)> {
        let (none, end) = match self {
            Law::Binomial { trials, probability } => (trials as f64 * (-probability).ln_1p(), trials),
            Law::Poisson { mean } => (-mean, u64::MAX),
        };
        let ratio = move |next: u64| match self {
            Law::Binomial { trials, probability } => {
                (trials - next + 1) as f64 * probability / (next as f64 * (1.0 - probability))
            }
            Law::Poisson { mean } => mean / next as f64,
        };
        // If success is certain, the only possible count is `end`, which the ratios cannot reach
        // from zero.
        let certain = matches!(self, Law::Binomial { probability, .. } if probability >= 1.0);
        let first = if certain { (end, 0.0) } else { (0, if end == 0 { 0.0 } else { none }) };
        let following =
            move |(count, log): &(u64, f64)| (*count < end).then(|| (count + 1, log + ratio(count + 1).ln()));
        let mean = self.mean();
        std::iter::successors(Some(first), following)
            .map(|(count, log)| (count, log.exp()))
            .take_while(move |(count, term)| *count as f64 <= mean || *term > 1e-300)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-9 * other.abs()
    }

    #[test]
    fn tails_are_those_of_a_direct_sum() {
        // Ten throws of a coin: the binomial coefficients over 1024.
        let coin = Law::Binomial { trials: 10, probability: 0.5 };
        assert!(near(coin.at_most(2), 56.0 / 1024.0) && near(coin.at_least(8), 56.0 / 1024.0));
        assert!(near(coin.at_least(0), 1.0) && near(coin.at_most(10), 1.0));
        // Four throws of a die: the probability of at least one six is 1 - (5/6)^4.
        let six = Law::Binomial { trials: 4, probability: 1.0 / 6.0 };
        assert!(near(six.at_least(1), 671.0 / 1296.0) && near(six.at_most(0), 625.0 / 1296.0));
        // e^-2 (1 + 2 + 2), and the rest.
        let two = Law::Poisson { mean: 2.0 };
        assert!(near(two.at_most(2), 5.0 * (-2.0f64).exp()));
        assert!(near(two.at_least(3), 1.0 - 5.0 * (-2.0f64).exp()));
    }

    #[test]
    fn rare_events_happen_and_frequent_ones_are_normal() {
        // Upper tails of 3.2e-5: P(X >= 3) is 4.4e-6, P(X >= 2) is 4.4e-4.
        assert_eq!(Law::Poisson { mean: 0.03 }.two_sided(0.0), 0..=2);
        // P(X >= 8) is 1.0e-5, P(X >= 7) is 8.3e-5.
        assert_eq!(Law::Poisson { mean: 1.0 }.upper_bound(), 7);
        let frequent = Law::Binomial { trials: 1_000_000, probability: 0.01 };
        let (low, high) = frequent.two_sided(0.0).into_inner();
        let sigma = frequent.mean().sqrt();
        assert!((low as f64 - (1e4 - 4.0 * sigma)).abs() < 10.0, "{low}");
        assert!((high as f64 - (1e4 + 4.0 * sigma)).abs() < 10.0, "{high}");
    }

    #[test]
    fn slack_widens_the_range_by_the_bounds_of_the_mean() {
        let law = |mean| Law::Poisson { mean };
        let (low, high) = (*law(9.0).two_sided(0.0).start(), *law(11.0).two_sided(0.0).end());
        assert_eq!(law(10.0).two_sided(0.1), low..=high);
        assert_eq!(Law::Binomial { trials: 3, probability: 0.9 }.two_sided(0.2).end(), &3);
    }

    #[test]
    fn events_that_never_or_always_happen_have_one_count() {
        for (law, count) in [
            (Law::Poisson { mean: 0.0 }, 0),
            (Law::Binomial { trials: 0, probability: 0.5 }, 0),
            (Law::Binomial { trials: 7, probability: 0.0 }, 0),
            (Law::Binomial { trials: 7, probability: 1.0 }, 7),
        ] {
            assert_eq!(law.two_sided(0.0), count..=count, "{law:?}");
            assert_eq!((law.lower_bound(), law.upper_bound()), (count, count), "{law:?}");
        }
    }

    #[test]
    fn the_largest_count_has_the_law_of_all_counts_together() {
        // Two throws of a coin with the sides 0 and 1: the larger one is 1 in three cases of four.
        let coin = Law::Binomial { trials: 1, probability: 0.5 };
        assert!(near(coin.mean_of_largest(2), 0.75) && near(coin.mean_of_largest(1), 0.5));
        let law = Law::Poisson { mean: 400.0 };
        assert!(near(law.mean_of_largest(1), 400.0));
        // The larger of two normal variables is 1 / sqrt(pi) deviations above the mean.
        assert!((law.mean_of_largest(2) - 400.0 - 20.0 / std::f64::consts::PI.sqrt()).abs() < 0.1);
        let one = law.largest_of(1);
        assert_eq!(one, law.two_sided(0.0));
        let (low, high) = law.largest_of(1000).into_inner();
        assert!(low > 440 && high > *one.end() && high < 400 + 7 * 20, "{low} to {high}");
    }

    #[test]
    fn bounds_are_the_last_counts_whose_tails_are_not_too_rare() {
        for law in [Law::Poisson { mean: 12.5 }, Law::Binomial { trials: 127, probability: 0.99 }] {
            let (low, high) = (law.lower_bound(), law.upper_bound());
            assert!(law.at_most(low) >= FOUR_SIGMA && law.at_most(low - 1) < FOUR_SIGMA, "{law:?}");
            assert!(law.at_least(high) >= FOUR_SIGMA && law.at_least(high + 1) < FOUR_SIGMA, "{law:?}");
        }
    }
}
