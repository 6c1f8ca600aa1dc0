//! The estimated number of distinct keys in a scalable filter.
//!
//! The stages hold fewer keys than were inserted, because a key that the filter takes for a member
//! is not stored. [`Offered`](crate::chain::Offered) makes up for them. It needs the share of keys
//! that the stages report together. At low rates, that follows from the rate of each. At high rates
//! it does not: a stage has few hash functions then, all stages use the same ones, and so a stage
//! has hardly any keys where those before it have many. The share is measured instead.
//!
//! After a union, a key may be in two stages. Nothing shows how many are, so the estimate assumes
//! none, and the error covers the case that all are.

use super::{Part, Scalable};
use crate::chain::Offered;
use crate::hash::Hasher;
use crate::sizing::scalable::compound;
use crate::sizing::{Cardinality, Estimate};
use crate::{Digest, Stats, TILE};

/// The share of reported keys from which the stages are measured together. Below it, the difference
/// is less than a tenth of the standard error.
const MEASURED_FROM: f64 = 0.02;

/// The number of keys that are looked up to measure the stages, in tiles.
const SAMPLE_TILES: u64 = 256;

/// The seed of the keys that are looked up. Filters use others, so that these keys are strangers.
const SAMPLE_SEED: u64 = 0x7374_7261_6e67_6572;

/// The shares of all keys that a chain of stages reports.
struct Reported {
    /// For each stage, the share that it or an older one reports.
    shares: Vec<f64>,
    /// The standard error of the shares.
    error: f64,
}

impl Scalable {
    /// Estimates the number of distinct keys from the statistics of the stages, oldest first.
    pub(super) fn cardinality(&self, stages: &[Stats]) -> Cardinality {
        let reported = self.reported(stages);
        let estimate = match self.head.inserted {
            Some(inserted) => {
                let taken = self.links().fold(0, |taken: u64, link| taken.saturating_add(link.keys));
                Some(self.count_by_taken(&reported).within(taken, Some(inserted)))
            }
            None => self.count_by_bits(stages, &reported),
        };
        match estimate.filter(|estimate| estimate.value.is_finite() && estimate.standard_error.is_finite()) {
            Some(estimate) => Cardinality::Estimated(estimate),
            None => Cardinality::Saturated,
        }
    }

    /// Estimates the keys from the number that each stage took.
    fn count_by_taken(&self, reported: &Reported) -> Estimate {
        let before = std::iter::once(&0.0).chain(&reported.shares);
        let links = self.links().zip(before.zip(&reported.shares));
        let offered: Offered = links.map(|(link, (before, after))| link.offered(*before, *after)).sum();
        offered.estimate(reported.error)
    }

    /// Estimates the keys from the bits of the stages, which may have keys in common. A stage has
    /// the bits of all keys that came to it, and only older stages have kept keys from it.
    fn count_by_bits(&self, stages: &[Stats], reported: &Reported) -> Option<Estimate> {
        let before = std::iter::once(&0.0).chain(&reported.shares);
        let (mut keys, mut variance, mut largest) = (0.0, 0.0, 0.0f64);
        for ((link, stage), dropped) in self.links().zip(stages).zip(before) {
            let held = link.shape.cardinality(stage.used_cells).ok()?.estimate()?;
            let passing = 1.0 - dropped;
            keys += held.value / passing;
            variance += (held.standard_error.powi(2) + held.value * dropped) / (passing * passing);
            largest = largest.max(held.value);
        }
        // At least the keys of the largest stage are distinct. Between the two numbers, all are
        // equally likely.
        Some(Estimate::new(keys, variance + (keys - largest).powi(2) / 12.0))
    }

    /// Returns the shares of all keys that the stages report.
    fn reported(&self, stages: &[Stats]) -> Reported {
        let rates: Vec<f64> = stages.iter().map(|stage| stage.rate_now).collect();
        let shares = |rates: &[f64]| -> Vec<f64> {
            (1..=rates.len()).map(|stages| compound(rates[..stages].iter().copied())).collect()
        };
        let independent = shares(&rates);
        let all = independent.last().copied().unwrap_or(0.0);
        if all < MEASURED_FROM || rates.len() == 1 {
            return Reported { shares: independent, error: 0.0 };
        }
        let (mut each, mut joint) = (vec![0u32; rates.len()], vec![0u32; rates.len()]);
        for tile in self.strangers() {
            let mut found = 0;
            for ((Part { link, .. }, each), joint) in self.parts().zip(&mut each).zip(&mut joint) {
                let reported = link.filter.contains_tile(&tile);
                found |= reported;
                *each += reported.count_ones();
                *joint += found.count_ones();
            }
        }
        // Only the difference that the dependence makes is taken from the sample: it varies less
        // than the shares themselves.
        let samples = (SAMPLE_TILES * TILE as u64) as f64;
        let share = |count: &u32| f64::from(*count) / samples;
        let unrelated = shares(&each.iter().map(share).collect::<Vec<_>>());
        let differences = joint.iter().zip(unrelated).map(|(joint, unrelated)| share(joint) - unrelated);
        let measured = independent.iter().zip(differences).map(|(share, difference)| share + difference);
        // Each stage adds to those before it, even where the sample says otherwise.
        let rising = measured.scan(0.0f64, |before, share| {
            *before = before.max(share.min(1.0));
            Some(*before)
        });
        Reported { shares: rising.collect(), error: all / (2.0 * samples).sqrt() }
    }

    /// Returns digests of keys that the filter was not given.
    fn strangers(&self) -> impl Iterator<Item = Vec<Digest>> {
        let hasher = Hasher::fast(SAMPLE_SEED);
        (0..SAMPLE_TILES).map(move |tile| {
            let first = tile * TILE as u64;
            hasher.digest_batch(&(first..first + TILE as u64).collect::<Vec<_>>())
        })
    }
}
