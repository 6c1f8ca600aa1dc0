//! The legend, which stands below the chart and hides nothing.

use super::dot::Dot;
use super::{COLOURS, Chart, LEFT, Mark, Series, WIDTH};
use crate::error::Drawn;
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

const ROW: i32 = 22;
/// Approximate width of a letter. An entry has a sample of its mark before the text and a gap after
/// it.
const LETTER: i32 = 7;
const SAMPLE: i32 = 26;
const GAP: i32 = 22;

/// The entries of a legend with their positions.
pub(super) struct Legend<'a>(Vec<(&'a Series, i32, i32)>);

impl<'a> Legend<'a> {
    /// Lays out the entries row by row, from the left.
    pub fn new(chart: &'a Chart) -> Legend<'a> {
        let (mut x, mut y) = (LEFT, ROW / 2);
        let mut entries = Vec::new();
        for series in chart.series.iter().filter(|series| series.mark != Mark::Named) {
            let width = SAMPLE + LETTER * series.label.chars().count() as i32;
            if x > LEFT && x + width > WIDTH as i32 {
                (x, y) = (LEFT, y + ROW);
            }
            entries.push((series, x, y));
            x += width + GAP;
        }
        Legend(entries)
    }

    pub fn height(&self) -> u32 {
        self.0.last().map_or(0, |(_, _, y)| (y + ROW) as u32)
    }

    pub fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
        for (series, x, y) in &self.0 {
            let style = COLOURS[series.colour % COLOURS.len()].stroke_width(2);
            let (line, middle) = ([(*x, *y), (x + 20, *y)], (x + 10, *y));
            match series.mark {
                Mark::Line | Mark::Path => area.draw(&PathElement::new(line, style))?,
                Mark::Dashes => area.draw(&DashedPathElement::new(line, 6, 4, style))?,
                Mark::Dots | Mark::Named => (),
            }
            if matches!(series.mark, Mark::Dots | Mark::Path) {
                area.draw(&Dot::new(middle, series.colour))?;
            }
            let text = ("sans-serif", 13).into_font();
            area.draw(&Text::new(series.label.clone(), (x + SAMPLE, y - 6), text))?;
        }
        Ok(())
    }
}
