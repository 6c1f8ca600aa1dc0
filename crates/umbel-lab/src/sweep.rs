//! Sweeps: a measurement that is repeated for several values of a parameter, described once.
//!
//! A row of a sweep names each number once, and yields the row of the table, the points of the
//! chart and the criteria:
//!
//! ```
//! use umbel_lab::{Axis, Findings, Sweep};
//! let mut sweep = Sweep::new("rates").chart(
//!     "rates",
//!     "False-positive rate by hash functions",
//!     Axis::linear("hash functions k"),
//!     Axis::log("false-positive rate"),
//! );
//! for (k, measured) in [(1, 0.1176), (2, 0.0488), (3, 0.0307)] {
//!     let theory = (1.0 - (-f64::from(k) / 8.0).exp()).powi(k);
//!     sweep
//!         .at(k.into())
//!         .cell("k", k)
//!         .value("theory", theory, 6).line("theory", 0)
//!         .value("measured", measured, 4).dots("measured", 0)
//!         .near(format!("rate with k = {k}"), theory, 0.01 * theory);
//! }
//! let mut findings = Findings::default();
//! findings.add(sweep);
//! assert_eq!(findings.tables[0].columns, ["k", "theory", "measured"]);
//! assert_eq!(findings.tables[0].rows[1], ["2", "0.048929", "0.0488"]);
//! assert_eq!(findings.charts[0].series[1].points[1], (2.0, 0.0488));
//! assert!(findings.criteria.iter().all(|criterion| criterion.holds));
//! ```
//!
//! [`value`](Point::value) and its relatives put a number into a column. The calls that follow, up
//! to the next number, draw it ([`line`](Point::line) for theory, [`dots`](Point::dots) for
//! measurements, with bars if the number has a spread) and judge it ([`near`](Point::near),
//! [`at_most`](Point::at_most)). Columns and series appear in the order of their first use. A row
//! that does not mention a column leaves its cell empty.

use crate::criterion::added;
use crate::measure::{Rate, Time};
use crate::{Axis, Chart, Criterion, Findings, Judge, Mark, Series, Table};
use std::fmt::Display;

/// A table, the charts that show its rows, and the criteria that the rows have to meet.
#[derive(Clone, Debug)]
pub struct Sweep {
    table: Table,
    charts: Vec<Chart>,
    criteria: Vec<Criterion>,
}

impl Sweep {
    /// Creates an empty sweep with a table of this name.
    pub fn new(table: &str) -> Sweep {
        Sweep { table: Table::new(table, &[]), charts: Vec::new(), criteria: Vec::new() }
    }

    /// Returns the sweep with one more chart. Points are drawn in the first chart unless
    /// [`on`](Point::on) selects another.
    pub fn chart(mut self, name: &str, title: impl Into<String>, x: Axis, y: Axis) -> Sweep {
        self.charts.push(Chart { name: name.into(), title: title.into(), x, y, series: Vec::new() });
        self
    }

    /// Adds a row whose numbers are drawn at `x`.
    pub fn at(&mut self, x: f64) -> Point<'_> {
        self.table.rows.push(vec![String::new(); self.table.columns.len()]);
        Point { sweep: self, chart: 0, x, value: f64::NAN, spread: None, rate: None }
    }

    /// Adds a row that is not drawn.
    pub fn row(&mut self) -> Point<'_> {
        self.at(f64::NAN)
    }

    /// Adds a series that does not come from the rows to the first chart.
    ///
    /// # Panics
    ///
    /// If the sweep has no chart.
    pub fn series(
        &mut self,
        label: impl Into<String>,
        mark: Mark,
        colour: usize,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) {
        self.series_on(0, label, mark, colour, points);
    }

    /// Adds a series that does not come from the rows to the chart with this number.
    ///
    /// # Panics
    ///
    /// If the sweep has no chart with this number.
    pub fn series_on(
        &mut self,
        chart: usize,
        label: impl Into<String>,
        mark: Mark,
        colour: usize,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) {
        let series = Series::new(label, mark, colour, points.into_iter().collect());
        self.charts[chart].series.push(series);
    }

    /// Returns the points of the first series with this label.
    pub fn points(&self, label: &str) -> &[(f64, f64)] {
        let mut all = self.charts.iter().flat_map(|chart| &chart.series);
        all.find(|series| series.label == label).map_or(&[], |series| &series.points)
    }

    fn draw(&mut self, chart: usize, key: (String, Mark, usize), at: (f64, f64), spread: Option<(f64, f64)>) {
        let all = &mut self.charts[chart].series;
        let (label, mark, colour) = key;
        let same = |series: &Series| series.label == label && series.mark == mark && series.colour == colour;
        let number = all.iter().position(same).unwrap_or_else(|| {
            all.push(Series::new(label, mark, colour, Vec::new()));
            all.len() - 1
        });
        all[number].points.push(at);
        all[number].spread.extend(spread);
    }
}

impl Judge for Sweep {
    fn judge(&mut self, criterion: Criterion) -> &mut Criterion {
        added(&mut self.criteria, criterion)
    }
}

impl Judge for Findings {
    fn judge(&mut self, criterion: Criterion) -> &mut Criterion {
        added(&mut self.criteria, criterion)
    }
}

impl Findings {
    /// Adds the table, the charts and the criteria of a sweep.
    pub fn add(&mut self, sweep: Sweep) {
        self.tables.push(sweep.table);
        self.charts.extend(sweep.charts);
        self.criteria.extend(sweep.criteria);
    }
}

/// A row of a sweep, with the number that was named last.
#[derive(Debug)]
pub struct Point<'a> {
    sweep: &'a mut Sweep,
    chart: usize,
    x: f64,
    /// The number that was named last, the ends of its bar, and the rate whose mean it is.
    value: f64,
    spread: Option<(f64, f64)>,
    rate: Option<Rate>,
}

impl Point<'_> {
    /// Fills a cell with content that is not measured.
    pub fn cell(self, column: &str, content: impl Display) -> Self {
        let Table { columns, rows, .. } = &mut self.sweep.table;
        let number = columns.iter().position(|known| known == column).unwrap_or_else(|| {
            columns.push(column.into());
            rows.iter_mut().for_each(|row| row.push(String::new()));
            columns.len() - 1
        });
        if let Some(cell) = rows.last_mut().and_then(|row| row.get_mut(number)) {
            *cell = content.to_string();
        }
        self
    }

    /// Fills several cells, such as the parameters of the row.
    pub fn cells<const N: usize>(self, cells: [(&str, &dyn Display); N]) -> Self {
        cells.into_iter().fold(self, |point, (column, content)| point.cell(column, content))
    }

    /// Names a number that is not in the table.
    pub fn hidden(self, value: f64) -> Self {
        Point { value, spread: None, rate: None, ..self }
    }

    /// Puts a number into a column, with this many digits after the point.
    pub fn value(self, column: &str, value: f64, digits: usize) -> Self {
        self.cell(column, format_args!("{value:.digits$}")).hidden(value)
    }

    /// Puts a number into a column, with its sign and this many digits after the point.
    pub fn signed(self, column: &str, value: f64, digits: usize) -> Self {
        self.cell(column, format_args!("{value:+.digits$}")).hidden(value)
    }

    /// Puts a number into a column, in scientific notation with this many digits after the point.
    pub fn scientific(self, column: &str, value: f64, digits: usize) -> Self {
        self.cell(column, format_args!("{value:.digits$e}")).hidden(value)
    }

    /// Puts a number into a column, with all its digits.
    pub fn exact(self, column: &str, value: impl Display + Copy + Into<f64>) -> Self {
        self.cell(column, value).hidden(value.into())
    }

    /// Puts a count into a column.
    pub fn count(self, column: &str, count: u64) -> Self {
        self.cell(column, count).hidden(count as f64)
    }

    /// Puts a number into a column, or leaves the cell empty if there is none.
    pub fn optional(self, column: &str, value: Option<f64>, digits: usize) -> Self {
        match value {
            Some(value) => self.value(column, value, digits),
            None => self.cell(column, "").hidden(f64::NAN),
        }
    }

    /// Puts the mean of a rate into a column.
    pub fn rate(self, column: &str, rate: &Rate, digits: usize) -> Self {
        Point { rate: Some(*rate), ..self.value(column, rate.mean, digits) }
    }

    /// Puts the median and the quartiles of a time into three columns.
    pub fn time(self, columns: [&str; 3], time: &Time, digits: usize) -> Self {
        let Time { median, low, high } = *time;
        let cells = columns.into_iter().zip([median, low, high]);
        let point = cells.fold(self, |point, (column, time)| point.value(column, time, digits));
        point.hidden(median).spread(low, high)
    }

    /// Gives the number a bar between these two values.
    pub fn spread(self, low: f64, high: f64) -> Self {
        Point { spread: Some((low, high)), ..self }
    }

    /// Draws the following points in the chart with this number.
    pub fn on(self, chart: usize) -> Self {
        Point { chart, ..self }
    }

    /// Draws the number with this mark. NaN is not drawn.
    ///
    /// # Panics
    ///
    /// If the sweep has no chart, or not the one that [`on`](Point::on) selected.
    pub fn drawn(self, mark: Mark, label: impl Into<String>, colour: usize) -> Self {
        if !self.value.is_nan() {
            let at = (self.x, self.value);
            self.sweep.draw(self.chart, (label.into(), mark, colour), at, self.spread);
        }
        self
    }

    /// Draws the number as part of a curve: theory.
    ///
    /// # Panics
    ///
    /// As [`drawn`](Point::drawn).
    pub fn line(self, label: impl Into<String>, colour: usize) -> Self {
        self.drawn(Mark::Line, label, colour)
    }

    /// Draws the number as part of a dashed curve: a printed number, or another theory.
    ///
    /// # Panics
    ///
    /// As [`drawn`](Point::drawn).
    pub fn dashes(self, label: impl Into<String>, colour: usize) -> Self {
        self.drawn(Mark::Dashes, label, colour)
    }

    /// Draws the number as a dot: a measurement.
    ///
    /// # Panics
    ///
    /// As [`drawn`](Point::drawn).
    pub fn dots(self, label: impl Into<String>, colour: usize) -> Self {
        self.drawn(Mark::Dots, label, colour)
    }

    /// Draws the number as a dot that a line joins to the others of its series.
    ///
    /// # Panics
    ///
    /// As [`drawn`](Point::drawn).
    pub fn path(self, label: impl Into<String>, colour: usize) -> Self {
        self.drawn(Mark::Path, label, colour)
    }

    /// Requires that the number is at most `tolerance` away from the expected one.
    pub fn near(self, claim: impl Into<String>, expected: f64, tolerance: f64) -> Self {
        self.sweep.near(claim, self.value, expected, tolerance);
        self
    }

    /// Requires that the number is not above `most`.
    pub fn at_most(self, claim: impl Into<String>, most: f64) -> Self {
        self.sweep.at_most(claim, self.value, most);
        self
    }

    /// Requires that the number is not below `least`.
    pub fn at_least(self, claim: impl Into<String>, least: f64) -> Self {
        self.sweep.at_least(claim, self.value, least);
        self
    }

    /// Adds another criterion about the row.
    pub fn judge(self, criterion: Criterion) -> Self {
        self.sweep.judge(criterion);
        self
    }

    /// Requires that a statement about the row is true.
    pub fn that(self, claim: impl Into<String>, holds: bool) -> Self {
        self.sweep.that(claim, holds);
        self
    }

    /// Requires that the rate agrees with the expected one within the share `slack` of it and
    /// chance.
    pub fn agrees(self, claim: impl Into<String>, expected: f64, slack: f64) -> Self {
        match &self.rate {
            Some(rate) => self.sweep.judge(Criterion::rate(claim, rate, expected, slack)),
            None => self.sweep.near(claim, self.value, expected, slack * expected),
        };
        self
    }

    /// Applies `then` if a condition is met.
    pub fn when(self, condition: bool, then: impl FnOnce(Self) -> Self) -> Self {
        if condition { then(self) } else { self }
    }

    /// Applies `then` if there is a value.
    pub fn with<T>(self, value: Option<T>, then: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => then(self, value),
            None => self,
        }
    }

    /// Marks the last criterion as evidence for an erratum.
    pub fn shows(self, erratum: &'static str) -> Self {
        self.sweep.criteria.last_mut().map(|criterion| criterion.shows(erratum));
        self
    }

    /// Marks the last criterion as one about a time.
    pub fn timed(self) -> Self {
        self.sweep.criteria.last_mut().map(Criterion::timed);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_a_row_lacks_are_empty() {
        let mut sweep = Sweep::new("rates");
        sweep.row().cell("k", 1).value("measured", 0.125, 2);
        sweep.row().cell("k", 2);
        sweep.row().cell("k", 3).optional("bound", None, 1).optional("measured", Some(0.5), 2);
        assert_eq!(sweep.table.columns, ["k", "measured", "bound"]);
        assert_eq!(sweep.table.rows, [["1", "0.12", ""], ["2", "", ""], ["3", "0.50", ""]]);
    }

    #[test]
    fn points_are_drawn_in_the_series_of_their_label_mark_and_colour() {
        let axis = || Axis::linear("");
        let mut sweep = Sweep::new("").chart("a", "", axis(), axis()).chart("b", "", axis(), axis());
        for x in [1.0, 2.0] {
            sweep.at(x).hidden(x).line("rate", 0).spread(0.0, 3.0).dots("rate", 0).on(1).dots("rate", 0);
        }
        sweep.at(3.0).hidden(f64::NAN).line("rate", 0);
        let [a, b] = &sweep.charts[..] else { panic!("two charts") };
        assert_eq!(a.series.len(), 2);
        assert_eq!(a.series[0].points, [(1.0, 1.0), (2.0, 2.0)]);
        assert_eq!(a.series[1].spread, [(0.0, 3.0); 2]);
        assert_eq!(b.series.len(), 1);
    }

    #[test]
    fn a_rare_rate_is_judged_by_its_count() {
        // One event in 1000, where 0.03 are expected: four standard deviations of a normal law are
        // 0.69.
        let rare = Rate::from_builds(&[0.0, 0.002], 500);
        let mut sweep = Sweep::new("rates");
        sweep.row().rate("measured", &rare, 4).agrees("rate", 3e-5, 0.0).shows("e01");
        sweep.row().rate("measured", &rare, 4).agrees("rate", 0.05, 0.0);
        let [holds, fails] = &sweep.criteria[..] else { panic!("two criteria") };
        assert!(holds.holds && holds.shows == Some("e01") && !fails.holds);
    }
}
