//! How rates and times are measured: rates over several builds, times as medians with their spread.

use crate::{Keys, Lab, Result};
use std::time::Instant;
use umbel::internals::Structure;
use umbel::key::Hashed;
use umbel::{Digest, Filter, Hasher, Insert};

/// A rate of false positives over several filters of the same shape.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// The mean of the filters.
    pub mean: f64,
    /// The standard deviation from filter to filter, of a single one.
    pub deviation: f64,
    /// How many filters.
    pub builds: u64,
    /// How many strangers each was asked for.
    pub queries: u64,
}

impl Rate {
    /// From the rate of each filter.
    pub fn of(rates: &[f64], queries: u64) -> Rate {
        let builds = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / builds;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (builds - 1.0).max(1.0);
        Rate { mean, deviation: variance.sqrt(), builds: rates.len() as u64, queries }
    }

    /// Whether there were enough false positives for a dot in a chart to be more than chance.
    pub fn seen(&self) -> bool {
        self.mean * (self.builds * self.queries) as f64 >= 5.0
    }

    /// Four standard errors of the mean, if the true rate is this one: what chance may do. The error of counting is known from
    /// the rate. What filters of one shape differ by beyond that is estimated from them, but to no more than a tenth of the rate:
    /// filters that differ by more are broken, and must not excuse themselves.
    pub fn chance(&self, rate: f64) -> f64 {
        let counting = rate * (1.0 - rate) / self.queries as f64;
        let between = (self.deviation.powi(2) - counting).clamp(0.0, (0.1 * rate).powi(2));
        // Where hardly anything happens, a few times more are chance as well.
        4.0 * ((counting + between) / self.builds as f64).sqrt() + 4.0 / (self.builds * self.queries) as f64
    }

    /// Four standard errors of the mean of values that are no rates.
    pub fn error(&self) -> f64 {
        4.0 * self.deviation / (self.builds as f64).sqrt()
    }
}

/// Measures the rate of filters with `keys` keys. Each has its own hash, its own keys and its own strangers.
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
    Ok(Rate::of(&rates, queries))
}

/// How many of these keys a filter says yes to.
pub fn positives<F: Filter>(lab: &Lab, filter: &F, keys: &[u64]) -> u64 {
    let digests = lab.digests(filter.hasher(), keys);
    filter.contains_batch(&Hashed(&digests)).count()
}

/// How many cells lookups of strangers read before they end.
#[derive(Clone, Copy, Debug)]
pub struct Probes {
    /// For a stranger, on average.
    pub mean: f64,
    /// Four standard errors of that.
    pub chance: f64,
    /// The share of strangers that were taken for members.
    pub positives: f64,
}

/// Counts the probes of strangers one by one.
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

/// A time for one of many operations, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Half of the rounds were faster.
    pub median: f64,
    /// A quarter of the rounds were faster.
    pub low: f64,
    /// A quarter of the rounds were slower.
    pub high: f64,
}

impl Time {
    /// Of rounds that took so long.
    pub fn of(mut rounds: Vec<f64>) -> Time {
        rounds.sort_by(f64::total_cmp);
        let at = |share: f64| rounds[((rounds.len() - 1) as f64 * share).round() as usize];
        Time { median: at(0.5), low: at(0.25), high: at(0.75) }
    }

    /// Median and quartiles with so many digits, as tables have them.
    pub fn told(&self, digits: usize) -> [String; 3] {
        [self.median, self.low, self.high].map(|time| format!("{time:.digits$}"))
    }
}

/// Things of which each round takes the next, so that a round is short and no cache holds what the last one asked for.
#[derive(Clone, Copy, Debug)]
pub struct Turns<'a, T> {
    all: &'a [T],
    size: usize,
    next: usize,
}

impl<'a, T> Turns<'a, T> {
    /// Rounds of so many; of all, if there are fewer.
    pub fn of(all: &'a [T], size: usize) -> Turns<'a, T> {
        Turns { all, size: size.clamp(1, all.len().max(1)), next: 0 }
    }

    /// What the next round takes. After the last, the first come again.
    pub fn take(&mut self) -> &'a [T] {
        let start = if self.next + self.size > self.all.len() { 0 } else { self.next };
        self.next = start + self.size;
        self.all.get(start..self.next).unwrap_or_default()
    }
}

/// What takes part in a [`race`]: a round of operations, of which something is returned that depends on all of them.
pub type Contestant<'a> = Box<dyn FnMut() -> u64 + 'a>;

/// Times contestants of `operations` operations each. They take turns, so that whatever else the machine does meanwhile
/// disturbs all of them alike; a first round that fills the caches is not counted.
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
    taken.into_iter().map(Time::of).collect()
}

/// Nanoseconds for each of `operations` operations, done once. What the round returns is looked at, so that it is not left out.
pub fn once<T>(operations: u64, round: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    std::hint::black_box(round());
    start.elapsed().as_secs_f64() * 1e9 / operations as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_take_the_next_until_all_have_been_taken() {
        let mut turns = Turns::of(&[1, 2, 3, 4, 5], 2);
        assert_eq!([turns.take(), turns.take(), turns.take()], [&[1, 2], &[3, 4], &[1, 2]]);
        assert_eq!(Turns::of(&[1], 2).take(), [1]);
        assert!(Turns::<u64>::of(&[], 2).take().is_empty());
    }

    #[test]
    fn broken_filters_do_not_excuse_themselves() {
        let good = Rate::of(&[0.0099, 0.0101, 0.0100, 0.0102], 1_000_000);
        assert!((good.mean - 0.01).abs() < good.chance(0.01) && good.chance(0.01) < 0.0003);
        // One filter of ten says yes to everything.
        let broken = Rate::of(&[0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 1.0], 100_000);
        assert!((broken.mean - 0.01).abs() > 10.0 * broken.chance(0.01));
    }
}
