//! What has to hold for a claim to be confirmed.

use serde::Serialize;

/// A claim with a number, and whether the measurement agrees with it.
#[derive(Clone, Debug, Serialize)]
pub struct Criterion {
    /// What is claimed.
    pub claim: String,
    /// What was measured.
    pub measured: f64,
    /// In words, what it may be.
    pub expected: String,
    /// Whether it is.
    pub holds: bool,
}

impl Criterion {
    /// The measured value is the expected one, give or take.
    ///
    /// ```
    /// use umbel_lab::Criterion;
    /// assert!(Criterion::near("rate at m/n = 8, k = 5", 0.0218, 0.0217, 0.001).holds);
    /// assert!(!Criterion::near("rate at m/n = 8, k = 5", 0.0318, 0.0217, 0.001).holds);
    /// ```
    pub fn near(claim: impl Into<String>, measured: f64, expected: f64, tolerance: f64) -> Criterion {
        let holds = (measured - expected).abs() <= tolerance;
        Criterion {
            claim: claim.into(),
            measured,
            expected: format!("{expected:.6} ± {tolerance:.2e}"),
            holds,
        }
    }

    /// The measured value is not above this one.
    pub fn at_most(claim: impl Into<String>, measured: f64, most: f64) -> Criterion {
        let expected = format!("at most {most:.6}");
        Criterion { claim: claim.into(), measured, expected, holds: measured <= most }
    }

    /// The measured value is not below this one.
    pub fn at_least(claim: impl Into<String>, measured: f64, least: f64) -> Criterion {
        let expected = format!("at least {least:.6}");
        Criterion { claim: claim.into(), measured, expected, holds: measured >= least }
    }

    /// Something that is so or is not.
    pub fn that(claim: impl Into<String>, holds: bool) -> Criterion {
        Criterion {
            claim: claim.into(),
            measured: f64::from(u8::from(holds)),
            expected: "true".into(),
            holds,
        }
    }
}
