//! The estimated number of distinct keys in the window of an aging filter.
//!
//! Every generation holds the distinct keys that came in its time. A key that came again later is
//! in several, so the sum over the generations counts it more than once. All generations have the
//! same shape, so the bits that two of them share show how many keys they have in common:
//!
//! * If the pairs of generations share no more bits than chance explains, the sum is right.
//! * Otherwise the sum less the keys shared by pairs is right for keys in two generations, and too
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

/// The number of standard errors from which a difference is not put down to chance.
const SIGNIFICANT: f64 = 2.0;

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
        let distinct = if links.len() < 2 { sum } else { distinct(sum, &links) };
        let least = links.iter().map(|link| link.keys).max().unwrap_or(0);
        Cardinality::Estimated(distinct.within(least, self.filter.head.inserted))
    }
}

/// Estimates the distinct keys of generations whose numbers of keys have this sum.
fn distinct(sum: Estimate, links: &[&Link]) -> Estimate {
    let together = together(links);
    let Some(shared) = (links.len() <= MAX_COMPARED).then(|| shared(links)).flatten() else {
        // Without pairs, the sum is right unless the bits of all contradict it.
        return match together {
            Some(all) if sum.value - all.value > SIGNIFICANT * all.standard_error => all,
            Some(all) => Estimate::new(sum.value, sum.standard_error.powi(2) + all.standard_error.powi(2)),
            None => Estimate::new(sum.value, sum.standard_error.powi(2) + sum.value.powi(2) / 12.0),
        };
    };
    let variance = sum.standard_error.powi(2) + shared.standard_error.powi(2);
    if shared.value <= SIGNIFICANT * shared.standard_error {
        return Estimate::new(sum.value, variance);
    }
    // A key in r generations is in r (r - 1) / 2 pairs, but counts only r - 1 times too often.
    let fewest = shared.value * 2.0 / links.len() as f64;
    let pairs = Estimate::new(sum.value - shared.value, variance + (shared.value - fewest).powi(2) / 12.0);
    match together {
        Some(all) if all.standard_error < pairs.standard_error => all,
        _ => pairs,
    }
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
fn shared(links: &[&Link]) -> Option<Estimate> {
    let (mut value, mut variance) = (0.0, 0.0);
    for (i, newer) in links.iter().enumerate() {
        for older in &links[i + 1..] {
            let [a, b] = [newer, older].map(|link| link.filter.words());
            let overlap = newer.shape.overlap(a.count_ones(), b.count_ones(), a.count_union(b)).ok()??;
            let Overlap { left, right, union, intersection, .. } = overlap;
            value += left.value + right.value - union.value;
            variance += intersection.standard_error.powi(2);
        }
    }
    Some(Estimate::new(value, variance))
}
