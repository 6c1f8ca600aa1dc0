//! The number of distinct keys that were offered to a chain, from the number that it took.
//!
//! A key that a chain takes for a member when it comes leaves no trace. While the chain reports a
//! share F of all keys, it drops a new key with probability F, so each key that it takes stands for
//! 1 / (1 - F) keys on average, with a variance of F / (1 - F)^2. F rises with every key taken. A
//! key that comes again is found or dropped again, so repeated keys make no difference.

use super::Link;
use crate::sizing::estimate::{Estimate, discreteness};
use crate::sizing::scalable::classic_shape_rate;
use std::iter::Sum;

/// The number of distinct keys that came to a chain while one of its links took keys.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offered {
    /// The expected number.
    pub keys: f64,
    /// Its variance.
    pub variance: f64,
    /// The derivative of `keys` by the share of dropped keys.
    pub slope: f64,
}

impl Offered {
    /// Returns the estimate, if the share of dropped keys is known up to this error.
    pub fn estimate(self, share_error: f64) -> Estimate {
        let dropping = self.variance + discreteness(self.variance);
        Estimate::new(self.keys, dropping + (self.slope * share_error).powi(2))
    }
}

impl Sum for Offered {
    fn sum<I: Iterator<Item = Offered>>(links: I) -> Offered {
        links.fold(Offered::default(), |all, link| Offered {
            keys: all.keys + link.keys,
            variance: all.variance + link.variance,
            slope: all.slope + link.slope,
        })
    }
}

/// The number of points at which the share of dropped keys is computed. It rises smoothly.
const STEPS: u32 = 32;

impl Link {
    /// Returns how many distinct keys came while this link took its keys, and the chain reported a
    /// share of all keys that rose from `before` to `after`.
    pub fn offered(&self, before: f64, after: f64) -> Offered {
        // Theory gives the course of the rise, and `after` its height.
        let rate = |keys: f64| classic_shape_rate(self.shape, keys as u64).unwrap_or(1.0);
        let (taken, highest) = (self.keys as f64, rate(self.keys as f64));
        let each = taken / f64::from(STEPS);
        let step = |step: u32| {
            let risen = rate((f64::from(step) + 0.5) * each) / highest;
            let dropped = before + (after - before) * if highest > 0.0 { risen } else { 0.0 };
            let passing = 1.0 - dropped;
            let slope = each / (passing * passing);
            Offered { keys: each / passing, variance: dropped * slope, slope }
        };
        (0..STEPS).map(step).sum()
    }
}
