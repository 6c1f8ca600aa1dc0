//! Charts as SVG: curves, points and steps over one or two logarithmic axes, in colours that everybody can tell apart.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use std::error::Error;
use std::ops::Range;

/// A picture of an experiment; it becomes an SVG file of the same name.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The name of the file, without its ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The axis to the right.
    pub x: Axis,
    /// The axis upwards.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it is, with its unit.
    pub label: String,
    /// Whether equal steps are equal ratios.
    pub log: bool,
}

impl Axis {
    /// An axis on which equal steps are equal differences.
    pub fn linear(label: &str) -> Axis {
        Axis { label: label.into(), log: false }
    }

    /// An axis on which equal steps are equal ratios.
    pub fn log(label: &str) -> Axis {
        Axis { label: label.into(), log: true }
    }
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// What they are, for the legend.
    pub label: String,
    /// How they are drawn.
    pub mark: Mark,
    /// In which of the colours: what belongs together has the same.
    pub colour: usize,
    /// Where they are.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Points that belong together.
    pub fn new(label: impl Into<String>, mark: Mark, colour: usize, points: Vec<(f64, f64)>) -> Series {
        Series { label: label.into(), mark, colour, points }
    }
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A curve: what theory says.
    Line,
    /// Dots: what was measured.
    Dots,
}

/// Colours that people with any kind of colour blindness can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

const SIZE: (u32, u32) = (760, 460);

impl Chart {
    /// The picture.
    pub fn to_svg(&self) -> Result<String, Box<dyn Error>> {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
            area.fill(&WHITE)?;
            let (x, y) =
                (range(&self.x, self.values(|point| point.0)), range(&self.y, self.values(|point| point.1)));
            match (self.x.log, self.y.log) {
                (false, false) => self.draw(&area, x, y)?,
                (true, false) => self.draw(&area, x.log_scale(), y)?,
                (false, true) => self.draw(&area, x, y.log_scale())?,
                (true, true) => self.draw(&area, x.log_scale(), y.log_scale())?,
            }
            area.present()?;
        }
        Ok(svg)
    }

    fn values(&self, of: impl Fn(&(f64, f64)) -> f64) -> Vec<f64> {
        self.series
            .iter()
            .flat_map(|series| &series.points)
            .map(of)
            .filter(|value| value.is_finite())
            .collect()
    }

    /// The corner with the fewest points, for the legend.
    fn emptiest(&self) -> SeriesLabelPosition {
        let place = |axis: &Axis, value: f64, range: &Range<f64>| {
            let scale = |value: f64| if axis.log { value.ln() } else { value };
            (scale(value) - scale(range.start)) / (scale(range.end) - scale(range.start))
        };
        let (x, y) =
            (range(&self.x, self.values(|point| point.0)), range(&self.y, self.values(|point| point.1)));
        let points = || self.series.iter().flat_map(|series| &series.points);
        let near = |right: f64, top: f64| {
            let is_near = |point: &&(f64, f64)| {
                (place(&self.x, point.0, &x) - right).abs() < 0.35
                    && (place(&self.y, point.1, &y) - top).abs() < 0.5
            };
            points().filter(is_near).count()
        };
        let corners = [
            (near(1.0, 1.0), SeriesLabelPosition::UpperRight),
            (near(0.0, 1.0), SeriesLabelPosition::UpperLeft),
            (near(0.0, 0.0), SeriesLabelPosition::LowerLeft),
            (near(1.0, 0.0), SeriesLabelPosition::LowerRight),
        ];
        corners
            .into_iter()
            .min_by_key(|(points, _)| *points)
            .map_or(SeriesLabelPosition::UpperRight, |best| best.1)
    }

    fn draw<X, Y>(&self, area: &DrawingArea<SVGBackend<'_>, Shift>, x: X, y: Y) -> Result<(), Box<dyn Error>>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE.mix(0.0))
            .bold_line_style(BLACK.mix(0.12))
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .axis_desc_style(("sans-serif", 14))
            .label_style(("sans-serif", 12))
            .y_labels(12)
            .x_label_formatter(&|value| number(*value))
            .y_label_formatter(&|value| number(*value))
            .draw()?;
        for series in &self.series {
            let colour = COLOURS[series.colour % COLOURS.len()];
            let points = series.points.iter().copied();
            match series.mark {
                Mark::Line => chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?,
                Mark::Dots => {
                    chart.draw_series(points.map(|point| Circle::new(point, 4, colour.filled())))?
                }
            }
            .label(&series.label)
            .legend(move |(x, y)| match series.mark {
                Mark::Line => PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)).into_dyn(),
                Mark::Dots => Circle::new((x + 9, y), 4, colour.filled()).into_dyn(),
            });
        }
        chart
            .configure_series_labels()
            .position(self.emptiest())
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .label_font(("sans-serif", 13))
            .draw()?;
        Ok(())
    }
}

/// From the least to the greatest value, with a little room.
fn range(axis: &Axis, values: Vec<f64>) -> Range<f64> {
    let values = values.into_iter().filter(|value| !axis.log || *value > 0.0);
    let (least, most) = values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
    if least > most {
        return if axis.log { 0.1..1.0 } else { 0.0..1.0 };
    }
    if axis.log {
        return least / 1.5..most * 1.5;
    }
    let room = ((most - least) * 0.05).max(most.abs() * 0.01).max(1e-9);
    // Rates and counts start at nothing, if that is near.
    let start = if least >= 0.0 && least < 0.5 * most { 0.0 } else { least - room };
    start..most + room
}

/// A number as short as it can be told.
fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".to_string(),
        _ if !(1e-3..1e6).contains(&size) => format!("{value:.0e}"),
        _ => format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_string(),
    }
}
