//! Criteria: the conditions that confirm a claim.

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
    /// The measured value, with as many digits as the comparison needs.
    #[serde(skip)]
    text: String,
}

impl Criterion {
    /// The measured value is at most `tolerance` away from the expected one.
    ///
    /// ```
    /// use umbel_lab::Criterion;
    /// let near = Criterion::near("rate at m/n = 8, k = 5", 0.021_84, 0.0217, 0.001);
    /// assert!(near.holds);
    /// assert_eq!((near.measured_text(), &near.expected[..]), ("0.0218", "0.0217 ± 0.0010"));
    /// assert!(!Criterion::near("rate at m/n = 8, k = 5", 0.0318, 0.0217, 0.001).holds);
    /// ```
    pub fn near(claim: impl Into<String>, measured: f64, expected: f64, tolerance: f64) -> Criterion {
        let holds = (measured - expected).abs() <= tolerance;
        if tolerance == 0.0 {
            return Criterion::compared(claim, measured, &[expected], holds, |bounds| bounds[0].clone());
        }
        // Only rounding errors are allowed.
        if tolerance <= 1e-8 * expected.abs() && is_short(expected) {
            return Criterion::new(claim, measured, short(measured), short(expected), holds);
        }
        let is_whole = [measured, expected, tolerance].iter().all(|value| value.fract() == 0.0);
        let digits = if is_whole { 0 } else { digits(expected, tolerance) };
        let spread = if is_whole {
            format!("{tolerance}")
        } else if tolerance < 1e-4 {
            format!("{tolerance:.1e}")
        } else {
            format!("{tolerance:.0$}", places(tolerance, 2).max(0) as usize)
        };
        let text = match measured.abs() {
            0.0 => "0".into(),
            size if size < 1e-5 && digits > 5 => significant(measured, 3),
            _ => format!("{measured:.digits$}"),
        };
        Criterion::new(claim, measured, text, format!("{expected:.digits$} ± {spread}"), holds)
    }

    /// The measured value is not above `most`.
    ///
    /// ```
    /// use umbel_lab::Criterion;
    /// let most = Criterion::at_most("share of hits missed", 0.001_194_95, 0.01);
    /// assert_eq!((most.measured_text(), &most.expected[..]), ("0.00119", "at most 0.01"));
    /// // As many digits as it takes to see on which side of the bound the value is.
    /// let most = Criterion::at_most("share of hits missed", 0.010_000_4, 0.01);
    /// assert_eq!((most.measured_text(), most.holds), ("0.0100004", false));
    /// ```
    pub fn at_most(claim: impl Into<String>, measured: f64, most: f64) -> Criterion {
        Criterion::compared(claim, measured, &[most], measured <= most, |most| format!("at most {}", most[0]))
    }

    /// The measured value is not below `least`.
    pub fn at_least(claim: impl Into<String>, measured: f64, least: f64) -> Criterion {
        let text = |least: &[String]| format!("at least {}", least[0]);
        Criterion::compared(claim, measured, &[least], measured >= least, text)
    }

    /// The measured value is neither below `least` nor above `most`, rounding errors aside.
    pub fn between(claim: impl Into<String>, measured: f64, least: f64, most: f64) -> Criterion {
        let rounding = 1e-9 * most.abs();
        let holds = (least - rounding..=most + rounding).contains(&measured);
        let text = |bounds: &[String]| format!("{} to {}", bounds[0], bounds[1]);
        Criterion::compared(claim, measured, &[least, most], holds, text)
    }

    /// A statement is true.
    pub fn that(claim: impl Into<String>, holds: bool) -> Criterion {
        let text = if holds { "yes" } else { "no" };
        Criterion::new(claim, f64::from(u8::from(holds)), text.into(), "true".into(), holds)
    }

    /// A count of rare events follows its law, whose mean is known within the share `slack`:
    /// neither tail is rarer than four standard deviations of a normal law.
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
        Criterion::new(claim, count as f64, count.to_string(), expected, counts.contains(&count))
    }

    /// A count of rare events is not above the bound that its law exceeds only as rarely as four
    /// standard deviations.
    pub fn count_at_most(claim: impl Into<String>, count: u64, law: Law) -> Criterion {
        Criterion::at_most(claim, count as f64, law.upper_bound() as f64)
    }

    /// A count of rare events is not below the bound that its law falls short of only as rarely as
    /// four standard deviations.
    pub fn count_at_least(claim: impl Into<String>, count: u64, law: Law) -> Criterion {
        Criterion::at_least(claim, count as f64, law.lower_bound() as f64)
    }

    /// The share of successful trials agrees with the expected one within the share `slack` of it,
    /// by the binomial law of the count.
    pub fn share(claim: impl Into<String>, count: u64, trials: u64, expected: f64, slack: f64) -> Criterion {
        let counts = Law::Binomial { trials, probability: expected }.two_sided(slack);
        let share = |count: u64| count as f64 / trials as f64;
        Criterion::between(claim, share(count), share(*counts.start()), share(*counts.end()))
    }

    /// A measured rate agrees with the expected one within the share `slack` of it and chance.
    /// Rates of rare events are judged by the binomial law of their count.
    pub fn rate(claim: impl Into<String>, measured: &Rate, expected: f64, slack: f64) -> Criterion {
        let trials = measured.builds * measured.queries;
        if (Law::Binomial { trials, probability: expected }).is_rare() {
            let count = (measured.mean * trials as f64).round() as u64;
            return Criterion::share(claim, count, trials, expected, slack);
        }
        Criterion::near(claim, measured.mean, expected, slack * expected + measured.chance(expected))
    }

    fn new(
        claim: impl Into<String>,
        measured: f64,
        text: String,
        expected: String,
        holds: bool,
    ) -> Criterion {
        Criterion { claim: claim.into(), measured, expected, holds, shows: None, timed: false, text }
    }

    /// Creates a criterion that compares the measured value with bounds. Three significant digits
    /// are shown, and more where rounding would hide on which side of a bound the value is. Bounds
    /// of up to six digits are shown as they are.
    fn compared(
        claim: impl Into<String>,
        measured: f64,
        bounds: &[f64],
        holds: bool,
        expected: impl Fn(&[String]) -> String,
    ) -> Criterion {
        let bound_text = |bound: f64, digits| match is_short(bound) {
            true if bound != 0.0 && bound.abs() < 1e-4 => format!("{bound:e}"),
            true => short(bound),
            false => trimmed(significant(bound, digits)),
        };
        let keeps_order = |digits: &usize| {
            let shown: f64 = significant(measured, *digits).parse().unwrap_or(measured);
            bounds.iter().all(|bound| {
                let shown_bound = bound_text(*bound, *digits).parse().unwrap_or(*bound);
                measured.partial_cmp(bound) == shown.partial_cmp(&shown_bound)
            })
        };
        let digits = (3..9).find(keeps_order).unwrap_or(9);
        let bounds: Vec<String> = bounds.iter().map(|bound| bound_text(*bound, digits)).collect();
        Criterion::new(claim, measured, significant(measured, digits), expected(&bounds), holds)
    }

    /// Marks the criterion as evidence for an erratum of a source document, given by the number of
    /// the [`Erratum`](crate::Erratum).
    pub fn shows(&mut self, erratum: &'static str) -> &mut Criterion {
        self.shows = Some(erratum);
        self
    }

    /// Marks the measured value as a time.
    pub fn timed(&mut self) -> &mut Criterion {
        self.timed = true;
        self
    }

    /// Returns the measured value as text, or `yes` or `no` for a statement.
    pub fn measured_text(&self) -> &str {
        &self.text
    }
}

/// A collection of criteria. Each method adds one and returns it.
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

/// Adds a criterion and returns it.
pub(crate) fn added(criteria: &mut Vec<Criterion>, criterion: Criterion) -> &mut Criterion {
    let last = criteria.len();
    criteria.push(criterion);
    &mut criteria[last]
}

/// Returns the number of decimal places that show `digits` significant digits; negative for large
/// numbers.
fn places(value: f64, digits: i32) -> i32 {
    if value == 0.0 || !value.is_finite() { 0 } else { digits - 1 - value.abs().log10().floor() as i32 }
}

/// Returns the decimal places of a value that is known within `tolerance`: two significant digits
/// of the tolerance, but three to six of the value.
fn digits(value: f64, tolerance: f64) -> usize {
    let wanted = places(tolerance, 2);
    let shown = if value == 0.0 { wanted } else { wanted.clamp(places(value, 3), places(value, 6)) };
    shown.clamp(0, 12) as usize
}

/// Formats a number with this many significant digits; whole numbers as they are.
fn significant(value: f64, digits: usize) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if value.fract() == 0.0 && size < 1e15 {
        return format!("{value:.0}");
    }
    if !(1e-4..1e9).contains(&size) {
        return format!("{value:.0$e}", digits - 1);
    }
    format!("{value:.0$}", places(value, digits as i32).max(0) as usize)
}

/// Returns whether six significant digits are the whole number.
fn is_short(value: f64) -> bool {
    short(value).parse() == Ok(value)
}

/// Removes the zeros at the end of a decimal fraction.
fn trimmed(text: String) -> String {
    let is_fraction = text.contains('.') && !text.contains('e');
    if is_fraction { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// Formats a parameter with up to six significant digits.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if !(1e-5..1e9).contains(&size) {
        return format!("{value:.3e}");
    }
    trimmed(format!("{value:.0$}", places(value, 6).clamp(0, 9) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(criterion: &Criterion) -> (&str, &str) {
        (criterion.measured_text(), &criterion.expected)
    }

    #[test]
    fn digits_follow_the_tolerance() {
        let near = |measured, expected, tolerance| Criterion::near("", measured, expected, tolerance);
        assert_eq!(texts(&near(0.393_469, 0.3935, 0.011_805)), ("0.393", "0.394 ± 0.012"));
        assert_eq!(texts(&near(799.652, 800.0, 1.9)), ("799.7", "800.0 ± 1.9"));
        assert_eq!(texts(&near(72_134.752, 72_135.0, 0.51)), ("72134.8", "72135.0 ± 0.51"));
        assert_eq!(
            texts(&near(0.247_184_956_81, 0.247_184_956_81, 2.47e-10)),
            ("0.247185", "0.247185 ± 2.5e-10")
        );
        assert_eq!(texts(&near(0.001_827_71, 0.001_829_44, 0.03)), ("0.00183", "0.00183 ± 0.030"));
        assert_eq!(texts(&near(0.000_71, 0.0, 0.007_669)), ("0.0007", "0.0000 ± 0.0077"));
        assert_eq!(texts(&near(43.0, 44.0, 6.0)), ("43", "44 ± 6"));
        assert_eq!(texts(&near(3.875, 3.875, 1e-9)), ("3.875", "3.875"));
        assert_eq!(texts(&near(15.0, 15.0, 0.0)), ("15", "15"));
        assert_eq!(texts(&near(0.375, 0.375, 0.0)), ("0.375", "0.375"));
    }

    #[test]
    fn three_digits_are_shown_unless_more_are_needed_to_compare() {
        assert_eq!(texts(&Criterion::at_least("", 287.0, 100.0)), ("287", "at least 100"));
        assert_eq!(texts(&Criterion::at_least("", 1.000_23, 1.0002)), ("1.00023", "at least 1.0002"));
        assert_eq!(texts(&Criterion::at_most("", 0.002_945_04, 0.01)), ("0.00295", "at most 0.01"));
        assert_eq!(texts(&Criterion::at_least("", 1.0103, 1.005)), ("1.01", "at least 1.005"));
        assert_eq!(texts(&Criterion::at_most("", 0.010_049, 0.010_623_471)), ("0.0100", "at most 0.0106"));
        assert_eq!(texts(&Criterion::at_most("", 0.0, 0.0)), ("0", "at most 0"));
        assert_eq!(
            texts(&Criterion::between("", 0.000_118_491, 0.000_045_732_918, 0.000_164_223_871)),
            ("0.000118", "4.57e-5 to 0.000164")
        );
        assert_eq!(texts(&Criterion::that("", true)), ("yes", "true"));
    }
}
