//! How rates and times are measured: rates over several builds, times as medians with their spread.

use crate::{Keys, Lab};
use std::time::Instant;
use umbel::{Filter, Hashed, Hasher, Insert, Result};

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

    /// Four standard errors of the mean, if the true rate is this one: what chance may do. The error of counting is known from
    /// the rate; what filters differ by among themselves is estimated from them.
    pub fn chance(&self, rate: f64) -> f64 {
        let counting = rate * (1.0 - rate) / (self.builds * self.queries) as f64;
        let between = self.deviation.powi(2) / self.builds as f64;
        4.0 * counting.max(between).sqrt()
    }
}

/// Measures the rate of filters with `keys` keys. Each has its own hash, its own keys and its own strangers.
pub fn rate<F: Insert>(
    lab: &Lab,
    builds: u64,
    keys: u64,
    queries: u64,
    build: impl Fn(Hasher) -> Result<F>,
) -> Result<Rate> {
    let mut rates = Vec::new();
    for number in 0..builds {
        let (own, hasher) = (Keys::of_build(number), lab.hasher(number));
        let mut filter = build(hasher.clone())?;
        filter.insert_batch(&Hashed(&lab.digests(&hasher, &own.members(keys))))?;
        rates.push(positives(lab, &filter, &own.strangers(queries)) as f64 / queries as f64);
    }
    Ok(Rate::of(&rates, queries))
}

/// How many of these keys a filter says yes to.
pub fn positives<F: Filter>(lab: &Lab, filter: &F, keys: &[u64]) -> u64 {
    let digests = lab.digests(filter.hasher(), keys);
    filter.contains_batch(&Hashed(&digests)).count()
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

    /// From where to where it lay, as [`Series`](crate::Series) draw it.
    pub fn spread(&self) -> (f64, f64) {
        (self.low, self.high)
    }
}

/// Times `rounds` rounds of `operations` operations each. What the round returns is looked at, so that it is not left out.
pub fn time<T>(rounds: usize, operations: u64, mut round: impl FnMut() -> T) -> Time {
    let one = |_| {
        let start = Instant::now();
        std::hint::black_box(round());
        start.elapsed().as_secs_f64() * 1e9 / operations as f64
    };
    Time::of((0..rounds.max(1)).map(one).collect())
}
