//! Criteria: what has to hold for a claim to be confirmed.

use crate::Law;
use crate::measure::Rate;
use serde::Serialize;

/// A claim with a number, and whether the measurement agrees with it.
#[derive(Clone, Debug, Serialize)]
pub struct Criterion {
    /// The claim, in words.
    pub claim: String,
    /// The measured value.
    pub measured: f64,
    /// The values for which the claim holds, in words.
    pub expected: String,
    /// Whether the measured value is one of them.
    pub holds: bool,
    /// The erratum of a source document that the criterion shows, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shows: Option<&'static str>,
    /// Whether the measured value is a time, which differs from run to run.
    #[serde(skip)]
    pub timed: bool,
    /// Number of significant digits after the point.
    #[serde(skip)]
    digits: usize,
}

impl Criterion {
    /// The measured value is at most `tolerance` away from the expected one.
    ///
    /// ```
    /// use umbel_lab::Criterion;
    /// assert!(Criterion::near("rate at m/n = 8, k = 5", 0.0218, 0.0217, 0.001).holds);
    /// assert!(!Criterion::near("rate at m/n = 8, k = 5", 0.0318, 0.0217, 0.001).holds);
    /// ```
    pub fn near(claim: impl Into<String>, measured: f64, expected: f64, tolerance: f64) -> Criterion {
        let holds = (measured - expected).abs() <= tolerance;
        let digits = digits(expected, tolerance);
        Criterion {
            digits,
            ..Criterion::new(claim, measured, format!("{expected:.digits$} ± {}", short(tolerance)), holds)
        }
    }

    /// The measured value is not above `most`.
    pub fn at_most(claim: impl Into<String>, measured: f64, most: f64) -> Criterion {
        Criterion::new(claim, measured, format!("at most {}", short(most)), measured <= most)
    }

    /// The measured value is not below `least`.
    pub fn at_least(claim: impl Into<String>, measured: f64, least: f64) -> Criterion {
        Criterion::new(claim, measured, format!("at least {}", short(least)), measured >= least)
    }

    /// The measured value is neither below `least` nor above `most`, rounding errors aside.
    pub fn between(claim: impl Into<String>, measured: f64, least: f64, most: f64) -> Criterion {
        let rounding = 1e-9 * most.abs();
        let holds = (least - rounding..=most + rounding).contains(&measured);
        Criterion::new(claim, measured, format!("{} to {}", short(least), short(most)), holds)
    }

    /// A statement is true.
    pub fn that(claim: impl Into<String>, holds: bool) -> Criterion {
        Criterion::new(claim, f64::from(u8::from(holds)), "true".into(), holds)
    }

    /// A count of rare events follows its law within the share `slack` of its mean: neither tail is rarer than four standard
    /// deviations of a normal law.
    ///
    /// ```
    /// use umbel_lab::{Criterion, Law};
    /// let law = Law::Poisson { mean: 0.03 };
    /// assert!(Criterion::count("collisions", 1, law, 0.0).holds);
    /// assert!(!Criterion::count("collisions", 4, law, 0.0).holds);
    /// ```
    pub fn count(claim: impl Into<String>, count: u64, law: Law, slack: f64) -> Criterion {
        let counts = law.two_sided(slack);
        let expected = format!("{} to {}", counts.start(), counts.end());
        Criterion::new(claim, count as f64, expected, counts.contains(&count))
    }

    /// A count of rare events is not above the bound that its law exceeds as rarely as four standard deviations.
    pub fn count_at_most(claim: impl Into<String>, count: u64, law: Law) -> Criterion {
        Criterion::at_most(claim, count as f64, law.upper_bound() as f64)
    }

    /// A count of rare events is not below the bound that its law falls short of as rarely as four standard deviations.
    pub fn count_at_least(claim: impl Into<String>, count: u64, law: Law) -> Criterion {
        Criterion::at_least(claim, count as f64, law.lower_bound() as f64)
    }

    /// A share of `trials` trials is the expected one within the share `slack` of it, by the binomial law of the count.
    pub fn share(claim: impl Into<String>, count: u64, trials: u64, expected: f64, slack: f64) -> Criterion {
        let counts = Law::Binomial { trials, probability: expected }.two_sided(slack);
        let share = |count: u64| count as f64 / trials as f64;
        Criterion::between(claim, share(count), share(*counts.start()), share(*counts.end()))
    }

    /// A measured rate is the expected one within the share `slack` of it and chance. Rates of rare events are judged by the
    /// binomial law of their count.
    pub fn rate(claim: impl Into<String>, measured: &Rate, expected: f64, slack: f64) -> Criterion {
        let trials = measured.builds * measured.queries;
        if (Law::Binomial { trials, probability: expected }).is_rare() {
            let count = (measured.mean * trials as f64).round() as u64;
            return Criterion::share(claim, count, trials, expected, slack);
        }
        Criterion::near(claim, measured.mean, expected, slack * expected + measured.chance(expected))
    }

    fn new(claim: impl Into<String>, measured: f64, expected: String, holds: bool) -> Criterion {
        let digits = digits(measured, 0.0);
        Criterion { claim: claim.into(), measured, expected, holds, shows: None, timed: false, digits }
    }

    /// Marks the criterion as one that shows an erratum of a source document: the number of an
    /// [`Erratum`](crate::Erratum).
    pub fn shows(&mut self, erratum: &'static str) -> &mut Criterion {
        self.shows = Some(erratum);
        self
    }

    /// Marks the measured value as a time.
    pub fn timed(&mut self) -> &mut Criterion {
        self.timed = true;
        self
    }

    /// Returns the measured value as text, or yes or no for a statement.
    pub fn measured_text(&self) -> String {
        match self.expected.as_str() {
            "true" => if self.holds { "yes" } else { "no" }.into(),
            _ if self.measured.abs() < 1e-5 => short(self.measured),
            _ => format!("{:.*}", self.digits, self.measured),
        }
    }
}

/// A place where criteria are collected: each method adds one and returns it.
///
/// ```
/// use umbel_lab::{Findings, Judge};
/// let mut findings = Findings::default();
/// findings.near("rate at m/n = 8, k = 5", 0.0218, 0.0217, 0.001).shows("e07");
/// findings.that("the rate falls up to k = 6", true);
/// assert_eq!(findings.criteria.len(), 2);
/// ```
pub trait Judge {
    /// Adds a criterion.
    fn judge(&mut self, criterion: Criterion) -> &mut Criterion;

    /// Adds [`Criterion::near`].
    fn near(
        &mut self,
        claim: impl Into<String>,
        measured: f64,
        expected: f64,
        tolerance: f64,
    ) -> &mut Criterion {
        self.judge(Criterion::near(claim, measured, expected, tolerance))
    }

    /// Adds [`Criterion::at_most`].
    fn at_most(&mut self, claim: impl Into<String>, measured: f64, most: f64) -> &mut Criterion {
        self.judge(Criterion::at_most(claim, measured, most))
    }

    /// Adds [`Criterion::at_least`].
    fn at_least(&mut self, claim: impl Into<String>, measured: f64, least: f64) -> &mut Criterion {
        self.judge(Criterion::at_least(claim, measured, least))
    }

    /// Adds [`Criterion::that`].
    fn that(&mut self, claim: impl Into<String>, holds: bool) -> &mut Criterion {
        self.judge(Criterion::that(claim, holds))
    }

    /// Adds [`Criterion::rate`].
    fn rate(
        &mut self,
        claim: impl Into<String>,
        measured: &Rate,
        expected: f64,
        slack: f64,
    ) -> &mut Criterion {
        self.judge(Criterion::rate(claim, measured, expected, slack))
    }

    /// Adds [`Criterion::count`].
    fn count(&mut self, claim: impl Into<String>, count: u64, law: Law, slack: f64) -> &mut Criterion {
        self.judge(Criterion::count(claim, count, law, slack))
    }
}

/// The last of these criteria after `criterion` was added.
pub(crate) fn added(criteria: &mut Vec<Criterion>, criterion: Criterion) -> &mut Criterion {
    let last = criteria.len();
    criteria.push(criterion);
    &mut criteria[last]
}

/// Digits after the point: six that count, and as many as the tolerance has.
fn digits(value: f64, tolerance: f64) -> usize {
    let places = |value: f64, count: f64| {
        if value == 0.0 || !value.is_finite() { 0.0 } else { count - value.abs().log10().floor() }
    };
    places(value, 5.0).max(places(tolerance, 1.0)).clamp(0.0, 17.0) as usize
}

/// Six digits that mean something.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if !(1e-5..1e9).contains(&size) {
        return format!("{value:.3e}");
    }
    let digits = (5 - size.log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}
