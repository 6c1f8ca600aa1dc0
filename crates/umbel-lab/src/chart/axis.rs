//! The axes of charts: the position of a value, and the choice of the tick labels.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// An axis of a chart.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Label, with the unit.
    pub label: String,
    /// Whether the axis is logarithmic.
    pub log: bool,
}

impl Axis {
    /// Creates a linear axis.
    pub fn linear(label: &str) -> Axis {
        Axis { label: label.into(), log: false }
    }

    /// Creates a logarithmic axis.
    pub fn log(label: &str) -> Axis {
        Axis { label: label.into(), log: true }
    }

    /// Returns whether the axis can show this value.
    pub(super) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }

    /// Returns the span of an axis for these values, with a little room at the ends. With
    /// `from_nothing`, it starts at zero if the values come near it.
    pub(super) fn spanning(&self, values: impl Iterator<Item = f64>, from_nothing: bool) -> Span {
        let values: Vec<f64> = values.filter(|value| self.shows(*value)).collect();
        let whole = values.iter().all(|value| value.fract() == 0.0);
        let (least, most) =
            values.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
                (least.min(value), most.max(value))
            });
        let ends = if least > most {
            0.1..1.0
        } else if self.log {
            let room = (most / least).powf(0.04).max(1.2);
            least / room..most * room
        } else {
            let room = ((most - least) * 0.05).max(most.abs() * 0.01).max(1e-9);
            let start = if from_nothing && least >= 0.0 && least < 0.5 * most { 0.0 } else { least - room };
            start..most + room
        };
        Span { ends, log: self.log, whole }
    }
}

/// The range of an axis.
#[derive(Clone, Debug)]
pub(super) struct Span {
    ends: Range<f64>,
    log: bool,
    /// Whether all values are whole numbers, so that ticks have to be whole numbers too.
    whole: bool,
}

impl Span {
    /// Returns the position of a value: 0 at the start of the axis, 1 at the end.
    pub fn place(&self, value: f64) -> f64 {
        let (at, start, end) = (self.scaled(value), self.scaled(self.ends.start), self.scaled(self.ends.end));
        (at - start) / (end - start)
    }

    fn scaled(&self, value: f64) -> f64 {
        if self.log { value.log10() } else { value }
    }

    /// Returns at most `most` round numbers on the axis.
    fn ticks(&self, most: usize) -> Vec<f64> {
        let Range { start, end } = self.ends;
        let inside = |ticks: Vec<f64>| -> Vec<f64> {
            ticks.into_iter().filter(|tick| (start..=end).contains(tick)).collect()
        };
        if self.log && end > 4.0 * start {
            let (first, last) = (self.scaled(start).floor() as i32, self.scaled(end).floor() as i32);
            let every = |multiples: &[f64]| {
                let all = (first..=last)
                    .flat_map(|decade| multiples.iter().map(move |multiple| multiple * 10f64.powi(decade)));
                inside(all.collect())
            };
            let candidates =
                [&[1.0, 2.0, 3.0, 4.0, 6.0, 8.0][..], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]].map(every);
            let fitting = candidates.iter().find(|ticks| ticks.len() <= most).cloned();
            return fitting.unwrap_or_else(|| {
                let ticks = every(&[1.0]);
                let step = ticks.len().div_ceil(most.max(1));
                ticks.into_iter().step_by(step).collect()
            });
        }
        // A short range has evenly spaced ticks, even on a logarithmic axis.
        let rough = (end - start) / most.max(1) as f64;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * decade).find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * decade).max(if self.whole { 1.0 } else { 0.0 });
        let first = (start / step).ceil() as i64;
        inside((first..=first + most as i64 + 1).map(|number| number as f64 * step).collect())
    }
}

impl Ranged for Span {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        limit.0 + (f64::from(limit.1 - limit.0) * self.place(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        self.ticks(hint.max_num_points().min(12))
    }

    fn range(&self) -> Range<f64> {
        self.ends.clone()
    }
}

impl ValueFormatter<f64> for Span {
    fn format(value: &f64) -> String {
        number(*value)
    }
}

/// Formats a number as short as possible.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".to_string(),
        _ if !(1e-4..1e6).contains(&size) => {
            let text = format!("{value:.1e}");
            text.replace(".0e", "e")
        }
        _ => format!("{value:.6}").trim_end_matches('0').trim_end_matches('.').to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: Axis, ends: [f64; 2]) -> Vec<String> {
        axis.spanning(ends.into_iter(), true).ticks(12).into_iter().map(number).collect()
    }

    #[test]
    fn ticks_are_round_numbers_over_the_whole_axis() {
        assert_eq!(ticks(Axis::linear(""), [1.0, 5.0]), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(
            ticks(Axis::linear(""), [0.1, 0.5]),
            ["0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35", "0.4", "0.45", "0.5"]
        );
        assert_eq!(
            ticks(Axis::log(""), [1e-4, 0.4]),
            [
                "0.0001", "0.0002", "0.0005", "0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1",
                "0.2", "0.5"
            ]
        );
        assert_eq!(ticks(Axis::log(""), [0.02, 0.5])[..3], ["0.02", "0.03", "0.04"]);
        assert_eq!(ticks(Axis::log(""), [2e-7, 0.4]), ["1e-6", "1e-5", "0.0001", "0.001", "0.01", "0.1"]);
        assert_eq!(ticks(Axis::log(""), [30.0, 47.0])[..3], ["25", "30", "35"]);
        assert!(ticks(Axis::log(""), [1e-30, 1.0]).len() <= 12);
    }

    #[test]
    fn an_axis_without_values_has_ticks() {
        assert!(!ticks(Axis::log(""), [0.0, f64::NAN]).is_empty());
        assert!(!ticks(Axis::linear(""), [0.0, 0.0]).is_empty());
    }
}
