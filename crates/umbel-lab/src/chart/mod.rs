//! Charts as SVG: curves, points and spreads over linear or logarithmic axes, in colours that
//! colour-blind readers can distinguish, and with a different mark for each colour.

mod axis;
mod dot;
mod legend;
mod names;

use crate::error::{Drawn, Error, Result};
pub use axis::Axis;
use axis::Span;
use dot::Dot;
use legend::Legend;
use names::Names;
use plotters::coord::Shift;
use plotters::prelude::*;

/// A chart of an experiment; the report writes it to an SVG file of the same name.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Name of the file, without its extension.
    pub name: String,
    /// Title above the chart.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Series that are drawn, in this order.
    pub series: Vec<Series>,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// Label in the legend.
    pub label: String,
    /// Mark of each point.
    pub mark: Mark,
    /// Number of the colour; series that belong together share one.
    pub colour: usize,
    /// Coordinates of the points.
    pub points: Vec<(f64, f64)>,
    /// Lower and upper end of the bar of each point; empty if there are no bars.
    pub spread: Vec<(f64, f64)>,
}

impl Series {
    /// Creates a series without bars.
    pub fn new(label: impl Into<String>, mark: Mark, colour: usize, points: Vec<(f64, f64)>) -> Series {
        Series { label: label.into(), mark, colour, points, spread: Vec::new() }
    }
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A curve: theory.
    Line,
    /// A dashed curve: printed values, or another theory.
    Dashes,
    /// Dots: measurements.
    Dots,
    /// Joined dots: measurements whose order matters.
    Path,
    /// Dots with the label beside the first of them instead of in the legend: many items that are
    /// compared.
    Named,
}

/// Colours that people with any kind of colour blindness can distinguish (Okabe and Ito).
pub(crate) const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

const WIDTH: u32 = 760;
const HEIGHT: u32 = 440;
/// Width and height of a thumbnail.
const THUMBNAIL: (u32, u32) = (320, 190);
/// Left edge of the plane.
const LEFT: i32 = 84;

type Plane<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Span, Span>>;

impl Chart {
    /// Returns the picture as SVG.
    ///
    /// # Errors
    ///
    /// [`Error::Picture`] if the drawing library fails.
    pub fn to_svg(&self) -> Result<String> {
        self.drawn().map_err(|source| Error::Picture { name: self.name.clone(), source })
    }

    /// Returns a small picture as SVG: the series on their axes, without title, labels and legend.
    ///
    /// # Errors
    ///
    /// [`Error::Picture`] if the drawing library fails.
    pub fn to_thumbnail(&self) -> Result<String> {
        self.drawn_small().map_err(|source| Error::Picture { name: self.name.clone(), source })
    }

    fn drawn_small(&self) -> Drawn<String> {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, THUMBNAIL).into_drawing_area();
            area.fill(&WHITE)?;
            let (x, y) = self.spans();
            let mut chart = ChartBuilder::on(&area)
                .margin(10)
                .x_label_area_size(4)
                .y_label_area_size(4)
                .build_cartesian_2d(x, y)?;
            chart
                .configure_mesh()
                .light_line_style(WHITE.mix(0.0))
                .bold_line_style(BLACK.mix(0.12))
                .label_style(("sans-serif", 1).into_font().color(&WHITE))
                .set_all_tick_mark_size(0)
                .x_labels(6)
                .y_labels(6)
                .draw()?;
            for series in &self.series {
                self.draw_series(&mut chart, series, None)?;
            }
            area.present()?;
        }
        Ok(svg)
    }

    fn drawn(&self) -> Drawn<String> {
        let mut svg = String::new();
        {
            let legend = Legend::new(self);
            let size = (WIDTH, HEIGHT + legend.height());
            let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            area.fill(&WHITE)?;
            let (above, below) = area.split_vertically(HEIGHT);
            self.draw(&above)?;
            legend.draw(&below)?;
            area.present()?;
        }
        Ok(svg)
    }

    fn spans(&self) -> (Span, Span) {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let spread =
            self.series.iter().flat_map(|series| &series.spread).flat_map(|(low, high)| [*low, *high]);
        (
            self.x.spanning(points().map(|point| point.0), false),
            self.y.spanning(points().map(|point| point.1).chain(spread), true),
        )
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
        let (x, y) = self.spans();
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
            .margin_right(24)
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
            .x_labels(12)
            .y_labels(12)
            .draw()?;
        let named = self.series.iter().filter(|series| series.mark == Mark::Named);
        let dots = named.flat_map(|series| &series.points).filter(|point| self.shows(point));
        let mut names = Names::beside(dots.map(|dot| chart.backend_coord(dot)), [LEFT, WIDTH as i32 - 4]);
        for series in &self.series {
            self.draw_series(&mut chart, series, Some(&mut names))?;
        }
        Ok(())
    }

    fn shows(&self, point: &(f64, f64)) -> bool {
        self.x.shows(point.0) && self.y.shows(point.1)
    }

    /// Draws a series, with a name beside the first dot of a named one if there are `names`.
    fn draw_series(&self, chart: &mut Plane<'_>, series: &Series, names: Option<&mut Names>) -> Drawn {
        let colour = COLOURS[series.colour % COLOURS.len()];
        let style = colour.stroke_width(2);
        let shown = |point: &(f64, f64)| self.shows(point);
        let points = || series.points.iter().copied().filter(shown);
        for ((x, _), (low, high)) in series.points.iter().zip(&series.spread) {
            if shown(&(*x, *low)) && shown(&(*x, *high)) {
                chart.draw_series([PathElement::new([(*x, *low), (*x, *high)], colour.stroke_width(1))])?;
            }
        }
        match series.mark {
            Mark::Line | Mark::Path => {
                chart.draw_series(LineSeries::new(points(), style))?;
            }
            Mark::Dashes => {
                chart.draw_series(DashedLineSeries::new(points(), 6, 4, style))?;
            }
            Mark::Dots | Mark::Named => (),
        }
        if !matches!(series.mark, Mark::Line | Mark::Dashes) {
            chart.draw_series(points().map(|point| Dot::new(point, series.colour)))?;
        }
        let first = points().next().filter(|_| series.mark == Mark::Named);
        if let Some((point, names)) = first.zip(names) {
            let (offset, tie) = names.place(&series.label, chart.backend_coord(&point));
            // A line ties a name to its dot if there was no room beside it.
            let tie = PathElement::new([(0, 0), tie.unwrap_or_default()], BLACK.mix(0.4));
            let name = Text::new(series.label.clone(), offset, ("sans-serif", 12).into_font());
            chart.draw_series([EmptyElement::at(point) + tie + name])?;
        }
        Ok(())
    }
}
