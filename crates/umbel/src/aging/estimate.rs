//! The estimated number of distinct keys in the window of an aging filter.
//!
//! Every generation holds the distinct keys that came in its time. A key that came again later is
//! in several, so the sum over the generations counts it more than once. All generations have the
//! same shape, so the bits that two of them share show how many keys they have in common:
//!
//! * The sum less the keys shared by pairs of generations is right for keys in one or two, and too
//!   low for keys in more.
//! * The bits of all generations together are those of a filter of the distinct keys. It is very
//!   full, so this estimate is rough, but it is right however often the keys came.

use super::At;
use crate::Stats;
use crate::chain::{Link, Offered};
use crate::sizing::{Cardinality, Estimate, Overlap};

/// The largest number of generations that are compared in pairs. Beyond it the comparison would
/// read the memory too often.
const MAX_COMPARED: usize = 16;

/// The number of standard errors up to which a difference may be due to chance.
const CHANCE: f64 = 2.0;

/// The share of its error that a difference keeps if it may be due to chance. It cannot be negative,
/// which excludes a part of the errors.
const KEPT_ERROR: f64 = 0.9;

impl At<'_> {
    /// Estimates the number of distinct keys from the statistics of the live generations.
    pub(super) fn cardinality(self, live: &[Stats]) -> Cardinality {
        let links: Vec<&Link> = self.live().map(|(_, link)| link).collect();
        let offered: Offered =
            links.iter().zip(live).map(|(link, stats)| link.offered(0.0, stats.rate_now)).sum();
        let sum = offered.estimate(0.0);
        if !(sum.value.is_finite() && sum.standard_error.is_finite()) {
            return Cardinality::Saturated;
        }
        let distinct = if links.len() < 2 { sum } else { distinct(sum, &links, live) };
        let least = links.iter().map(|link| link.keys).max().unwrap_or(0);
        Cardinality::Estimated(distinct.within(least, self.filter.head.inserted))
    }
}

/// Estimates the distinct keys of generations with these statistics, whose numbers of keys have this
/// sum.
fn distinct(sum: Estimate, links: &[&Link], live: &[Stats]) -> Estimate {
    let together = together(links);
    let Some(shared) = (links.len() <= MAX_COMPARED).then(|| shared(links, live)).flatten() else {
        // Without pairs, the sum is right unless the bits of all contradict it.
        return match together {
            Some(all) if sum.value - all.value > CHANCE * all.standard_error => all,
            Some(all) => with_error(sum, all.standard_error),
            None => with_error(sum, sum.value / 12f64.sqrt()),
        };
    };
    let by_chance = shared.value <= CHANCE * shared.standard_error;
    let error = shared.standard_error * if by_chance { KEPT_ERROR } else { 1.0 };
    // A key in r generations is in r (r - 1) / 2 pairs, but counts only r - 1 times too often.
    let most = shared.value.max(0.0);
    let fewest = most * 2.0 / links.len() as f64;
    let pairs = with_error(with_error(sum, error), (most - fewest) / 12f64.sqrt());
    match together {
        // The law of a nearly full filter is skewed, so its error has to be much smaller.
        Some(all) if !by_chance && all.standard_error < pairs.standard_error / 4.0 => all,
        _ => Estimate { value: sum.value - most, ..pairs },
    }
}

/// Returns an estimate with an independent error added to its own.
fn with_error(estimate: Estimate, error: f64) -> Estimate {
    Estimate::new(estimate.value, estimate.standard_error.powi(2) + error.powi(2))
}

/// Estimates the distinct keys from the bits of all generations together, unless these are
/// saturated.
fn together(links: &[&Link]) -> Option<Estimate> {
    let words: Vec<&[u64]> = links.iter().map(|link| link.filter.words().words()).collect();
    let any = |i: usize| words.iter().fold(0, |any, words| any | words[i]);
    let set_bits = (0..words[0].len()).map(|i| u64::from(any(i).count_ones())).sum();
    links[0].shape.cardinality(set_bits).ok()?.estimate()
}

/// Estimates the number of keys that two generations share, summed over all pairs. By chance it may
/// be negative.
fn shared(links: &[&Link], live: &[Stats]) -> Option<Estimate> {
    let (mut value, mut variance) = (0.0, 0.0);
    for i in 0..links.len() {
        for j in i + 1..links.len() {
            let union = links[i].filter.words().count_union(links[j].filter.words());
            let overlap = links[i].shape.overlap(live[i].used_cells, live[j].used_cells, union).ok()??;
            let Overlap { left, right, union, intersection, .. } = overlap;
            value += left.value + right.value - union.value;
            variance += intersection.standard_error.powi(2);
        }
    }
    Some(Estimate::new(value, variance))
}
