//! Measurements: rates over several builds, and times as medians with quartiles.

use crate::{Keys, Lab, Result};
use std::time::Instant;
use umbel::internals::Structure;
use umbel::key::Hashed;
use umbel::{Digest, Filter, Hasher, Insert};

/// A false-positive rate, measured with several filters of the same size.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Mean over the filters.
    pub mean: f64,
    /// Standard deviation from filter to filter.
    pub deviation: f64,
    /// Number of filters.
    pub builds: u64,
    /// Number of strangers that were looked up in each filter.
    pub queries: u64,
}

impl Rate {
    /// Computes mean and deviation from the rate of each filter.
    pub fn from_builds(rates: &[f64], queries: u64) -> Rate {
        let builds = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / builds;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (builds - 1.0).max(1.0);
        Rate { mean, deviation: variance.sqrt(), builds: rates.len() as u64, queries }
    }

    /// Returns whether there were enough false positives for a dot in a chart.
    pub fn seen(&self) -> bool {
        self.mean * (self.builds * self.queries) as f64 >= 5.0
    }

    /// Returns four standard errors of the mean if the true rate is `rate`: the deviation that
    /// chance explains. The counting error follows from the rate. The further variation between
    /// filters is estimated from the filters, but limited to a tenth of the rate: filters that
    /// differ by more are broken, and must not widen their own tolerance.
    pub fn chance(&self, rate: f64) -> f64 {
        let counting = rate * (1.0 - rate) / self.queries as f64;
        let between = (self.deviation.powi(2) - counting).clamp(0.0, (0.1 * rate).powi(2));
        // For very rare events, chance also explains a few more of them.
        4.0 * ((counting + between) / self.builds as f64).sqrt() + 4.0 / (self.builds * self.queries) as f64
    }

    /// Returns four standard errors of the mean, for values that are not rates.
    pub fn error(&self) -> f64 {
        4.0 * self.deviation / (self.builds as f64).sqrt()
    }
}

/// Measures the rate of filters with `keys` keys. Each filter has its own hash, keys and strangers.
///
/// # Errors
///
/// The error of `build`, or of an insertion.
pub fn rate<F: Insert>(
    lab: &Lab,
    builds: u64,
    keys: u64,
    queries: u64,
    build: impl Fn(Hasher) -> umbel::Result<F>,
) -> Result<Rate> {
    let mut rates = Vec::new();
    for number in 0..builds {
        let (own, hasher) = (Keys::of_build(number), lab.hasher(number));
        let mut filter = build(hasher.clone())?;
        let inserted = filter.insert_batch(&Hashed(&lab.digests(&hasher, &own.members(keys))));
        inserted.map_err(Into::<umbel::Error>::into)?;
        rates.push(positives(lab, &filter, &own.strangers(queries)) as f64 / queries as f64);
    }
    Ok(Rate::from_builds(&rates, queries))
}

/// Returns the number of these keys that a filter contains.
pub fn positives<F: Filter>(lab: &Lab, filter: &F, keys: &[u64]) -> u64 {
    let digests = lab.digests(filter.hasher(), keys);
    filter.contains_batch(&Hashed(&digests)).count()
}

/// The number of cells that lookups of strangers read before they end.
#[derive(Clone, Copy, Debug)]
pub struct Probes {
    /// Mean number for a stranger.
    pub mean: f64,
    /// Four standard errors of the mean.
    pub chance: f64,
    /// Share of strangers that were taken for members.
    pub positives: f64,
}

/// Counts the probes of strangers one by one.
///
/// # Errors
///
/// An error of the filter library.
pub fn probes<S: Structure>(filter: &S, strangers: &[Digest]) -> Result<Probes> {
    let (mut sum, mut squares, mut positives) = (0u64, 0u64, 0u64);
    for digest in strangers {
        let mut probes = 0;
        let found = filter.trace(*digest, &mut |_| {
            probes += 1;
            Ok(())
        })?;
        sum += probes;
        squares += probes * probes;
        positives += u64::from(found);
    }
    let count = strangers.len() as f64;
    let mean = sum as f64 / count;
    let variance = squares as f64 / count - mean * mean;
    Ok(Probes { mean, chance: 4.0 * (variance / count).sqrt(), positives: positives as f64 / count })
}

/// The time of one operation, in nanoseconds, measured in rounds of many.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Median of the rounds.
    pub median: f64,
    /// Lower quartile of the rounds.
    pub low: f64,
    /// Upper quartile of the rounds.
    pub high: f64,
}

impl Time {
    /// Computes the median and the quartiles of the times of all rounds.
    pub fn from_rounds(mut rounds: Vec<f64>) -> Time {
        rounds.sort_by(f64::total_cmp);
        let at = |share: f64| rounds[((rounds.len() - 1) as f64 * share).round() as usize];
        Time { median: at(0.5), low: at(0.25), high: at(0.75) }
    }
}

/// Splits a slice into rounds, so that rounds are short and no cache holds the keys of the previous
/// round.
#[derive(Clone, Copy, Debug)]
pub struct Turns<'a, T> {
    all: &'a [T],
    size: usize,
    next: usize,
}

impl<'a, T> Turns<'a, T> {
    /// Creates rounds of `size` elements, or of all if there are fewer.
    pub fn new(all: &'a [T], size: usize) -> Turns<'a, T> {
        Turns { all, size: size.clamp(1, all.len().max(1)), next: 0 }
    }

    /// Returns the elements of the next round. The first round follows the last.
    pub fn next_round(&mut self) -> &'a [T] {
        let start = if self.next + self.size > self.all.len() { 0 } else { self.next };
        self.next = start + self.size;
        self.all.get(start..self.next).unwrap_or_default()
    }
}

/// A participant of a [`race`]: runs a round of operations and returns a number that depends on all
/// of them.
pub type Contestant<'a> = Box<dyn FnMut() -> u64 + 'a>;

/// Times contestants of `operations` operations each. They take turns, so that other load on the
/// machine affects all of them equally. The first round, which fills the caches, is not counted.
///
/// ```
/// use umbel_lab::measure::race;
/// let times = race(5, 1000, vec![Box::new(|| (0..1000).sum()), Box::new(|| 1)]);
/// assert!(times.len() == 2 && times[0].low <= times[0].median);
/// ```
pub fn race(rounds: usize, operations: u64, mut contestants: Vec<Contestant<'_>>) -> Vec<Time> {
    let mut taken = vec![Vec::new(); contestants.len()];
    for round in 0..=rounds.max(1) {
        for (contestant, taken) in contestants.iter_mut().zip(&mut taken) {
            let time = once(operations, contestant);
            if round > 0 {
                taken.push(time);
            }
        }
    }
    taken.into_iter().map(Time::from_rounds).collect()
}

/// Runs a round of `operations` operations once and returns the nanoseconds per operation. The
/// result goes through a black box, so that the compiler cannot remove the work.
pub fn once<T>(operations: u64, round: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    std::hint::black_box(round());
    start.elapsed().as_secs_f64() * 1e9 / operations as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_go_through_the_slice_and_start_again() {
        let mut turns = Turns::new(&[1, 2, 3, 4, 5], 2);
        assert_eq!([turns.next_round(), turns.next_round(), turns.next_round()], [&[1, 2], &[3, 4], &[1, 2]]);
        assert_eq!(Turns::new(&[1], 2).next_round(), [1]);
        assert!(Turns::<u64>::new(&[], 2).next_round().is_empty());
    }

    #[test]
    fn broken_filters_do_not_excuse_themselves() {
        let good = Rate::from_builds(&[0.0099, 0.0101, 0.0100, 0.0102], 1_000_000);
        assert!((good.mean - 0.01).abs() < good.chance(0.01) && good.chance(0.01) < 0.0003);
        // One filter of ten says yes to everything.
        let broken = Rate::from_builds(&[0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 1.0], 100_000);
        assert!((broken.mean - 0.01).abs() > 10.0 * broken.chance(0.01));
    }
}
