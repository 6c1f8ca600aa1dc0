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
    /// The slip of a source document that it shows, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shows: Option<&'static str>,
    /// Whether a time was measured, which is another one in each run.
    #[serde(skip)]
    pub timed: bool,
    /// How many digits after the point mean something.
    #[serde(skip)]
    digits: usize,
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
        let digits = digits(expected, tolerance);
        Criterion {
            digits,
            ..Criterion::new(claim, measured, format!("{expected:.digits$} ± {}", short(tolerance)), holds)
        }
    }

    /// The measured value is not above this one.
    pub fn at_most(claim: impl Into<String>, measured: f64, most: f64) -> Criterion {
        Criterion::new(claim, measured, format!("at most {}", short(most)), measured <= most)
    }

    /// The measured value is not below this one.
    pub fn at_least(claim: impl Into<String>, measured: f64, least: f64) -> Criterion {
        Criterion::new(claim, measured, format!("at least {}", short(least)), measured >= least)
    }

    /// Something that is so or is not.
    pub fn that(claim: impl Into<String>, holds: bool) -> Criterion {
        Criterion::new(claim, f64::from(u8::from(holds)), "true".into(), holds)
    }

    fn new(claim: impl Into<String>, measured: f64, expected: String, holds: bool) -> Criterion {
        let digits = digits(measured, 0.0);
        Criterion { claim: claim.into(), measured, expected, holds, shows: None, timed: false, digits }
    }

    /// The same criterion, which shows a slip of a source document: the number of an [`Erratum`](crate::Erratum).
    pub fn shows(self, erratum: &'static str) -> Criterion {
        Criterion { shows: Some(erratum), ..self }
    }

    /// The same criterion, of a time.
    pub fn timed(self) -> Criterion {
        Criterion { timed: true, ..self }
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
