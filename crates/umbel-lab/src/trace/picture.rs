//! Draws a trace as a picture. Marked cells have a colour, a thick outline and a text, so that they
//! can also be distinguished in black and white.

use super::text::{CELLS, wrapped};
use super::{Cell, Row, Step, Touch, Trace};
use crate::chart::COLOURS;
use crate::error::{Drawn, Error, Result};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const WIDTH: i32 = 760;
const MARGIN: i32 = 20;
/// Left edge of the cells.
const LABEL: i32 = 110;
/// Number of characters in a line of text.
const CHARACTERS: usize = 110;
const LINE: i32 = 20;
/// Heights of a cell, and of the small lines above and below it.
const CELL: i32 = 26;
const SMALL: i32 = 15;
/// Width of a character of a key below a cell.
const KEY_CHARACTER: i32 = 6;
/// Gap between steps.
const GAP: i32 = 18;

impl Touch {
    fn colour(self) -> RGBColor {
        COLOURS[match self {
            Touch::Set => 0,
            Touch::Found => 2,
            Touch::Refused => 1,
            Touch::Cleared => 3,
        }]
    }
}

impl Trace {
    /// Returns the picture as SVG.
    ///
    /// # Errors
    ///
    /// [`Error::Picture`] if the drawing library fails.
    pub fn to_svg(&self) -> Result<String> {
        self.drawn().map_err(|source| Error::Picture { name: self.name.to_string(), source })
    }

    fn drawn(&self) -> Drawn<String> {
        let height = 3 * MARGIN + 2 * LINE + self.steps.iter().map(height).sum::<i32>();
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (WIDTH as u32, height as u32)).into_drawing_area();
            area.fill(&WHITE)?;
            write(&area, &self.title, (MARGIN, MARGIN + 8), 20, HPos::Left, &BLACK)?;
            write(&area, &self.source, (MARGIN, MARGIN + 8 + LINE), 13, HPos::Left, &GREY)?;
            let mut y = 2 * MARGIN + 2 * LINE;
            for (number, step) in (1..).zip(&self.steps) {
                draw(&area, number, step, y)?;
                y += self::height(step);
            }
            area.present()?;
        }
        Ok(svg)
    }
}

const GREY: RGBColor = RGBColor(90, 90, 90);

fn write(area: &Area<'_>, text: &str, at: (i32, i32), size: i32, side: HPos, colour: &RGBColor) -> Drawn {
    let style = ("sans-serif", size).into_font().color(colour).pos(Pos::new(side, VPos::Center));
    Ok(area.draw(&Text::new(text.to_string(), at, style))?)
}

/// The cells of a row that fit side by side, and the lines that they need.
struct Part<'row> {
    start: usize,
    cells: &'row [Cell],
    before: bool,
    marks: bool,
    keys: bool,
}

fn parts(row: &Row) -> impl Iterator<Item = Part<'_>> {
    (0..).step_by(CELLS).zip(row.cells.chunks(CELLS)).map(|(start, cells)| Part {
        start,
        cells,
        before: row.before.is_some(),
        marks: cells.iter().any(|cell| cell.mark.is_some()),
        keys: cells.iter().any(|cell| !cell.keys.is_empty()),
    })
}

impl Part<'_> {
    fn height(&self) -> i32 {
        let if_any = |any: bool, height: i32| if any { height } else { 0 };
        SMALL
            + if_any(self.before, CELL + 6)
            + CELL
            + if_any(self.marks, SMALL)
            + if_any(self.keys, SMALL)
            + 8
    }
}

fn height(step: &Step) -> i32 {
    let rows: i32 = step.rows.iter().flat_map(parts).map(|part| part.height()).sum();
    wrapped(&step.says, CHARACTERS).len() as i32 * LINE + 4 + rows + GAP
}

fn draw(area: &Area<'_>, number: usize, step: &Step, top: i32) -> Drawn {
    let mut y = top;
    for (line, words) in wrapped(&step.says, CHARACTERS).into_iter().enumerate() {
        if line == 0 {
            write(area, &format!("{number}."), (MARGIN, y), 14, HPos::Left, &BLACK)?;
        }
        write(area, &words, (MARGIN + 24, y), 14, HPos::Left, &BLACK)?;
        y += LINE;
    }
    y += 4;
    for row in &step.rows {
        let longest = row.cells.iter().map(|cell| cell.value.len()).max().unwrap_or(0) as i32;
        let room = (WIDTH - LABEL - MARGIN) / row.cells.len().clamp(1, CELLS) as i32;
        let width = room.min(64.max(10 * longest + 12));
        for part in parts(row) {
            let x = |column: i32| LABEL + column * width;
            let label = |text, y| write(area, text, (MARGIN + 24, y), 12, HPos::Left, &GREY);
            label(&row.label, y)?;
            for (column, cell) in (0..).zip(part.cells) {
                write(area, &cell.head, (x(column) + width / 2, y), 11, HPos::Center, &GREY)?;
            }
            let mut cells = y + SMALL - 4;
            if let Some(before) = &row.before {
                label("before", cells + CELL / 2)?;
                for (column, value) in (0..).zip(before.iter().skip(part.start).take(part.cells.len())) {
                    square(area, (x(column), cells), width, value, None)?;
                }
                cells += CELL + 6;
                label("after", cells + CELL / 2)?;
            }
            let marks = cells + CELL + 10;
            let keys = if part.marks { marks + SMALL } else { marks };
            if part.keys {
                label("keys", keys)?;
            }
            for (column, cell) in (0..).zip(part.cells) {
                let (at, mark) = (x(column), cell.mark.as_ref());
                square(area, (at, cells), width, &cell.value, mark.map(|mark| mark.touch))?;
                if let Some(mark) = mark {
                    let colour = mark.touch.colour();
                    write(area, &mark.text, (at + width / 2, marks), 12, HPos::Center, &colour)?;
                }
                let names = cell.keys_within((width / KEY_CHARACTER).max(6) as usize);
                write(area, &names, (at + width / 2, keys), 11, HPos::Center, &GREY)?;
            }
            y += part.height();
        }
    }
    Ok(())
}

/// Draws a cell with its value.
fn square(area: &Area<'_>, (x, y): (i32, i32), width: i32, value: &str, touch: Option<Touch>) -> Drawn {
    let (left, top, right, bottom) = (x + 2, y, x + width - 2, y + CELL);
    let (fill, line) = match touch {
        Some(touch) => (touch.colour().mix(0.18), touch.colour().stroke_width(3)),
        None => (WHITE.mix(1.0), BLACK.mix(0.45).stroke_width(1)),
    };
    area.draw(&Rectangle::new([(left, top), (right, bottom)], fill.filled()))?;
    // A separate outline, because the outlines of rectangles are always thin.
    let outline = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top), (right, top)];
    area.draw(&PathElement::new(outline, line))?;
    write(area, value, (x + width / 2, y + CELL / 2), 13, HPos::Center, &BLACK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::examples;

    /// Returns the values of an attribute, such as the positions of texts and shapes.
    fn places(svg: &str, attribute: &str) -> Vec<i32> {
        let start = format!(" {attribute}=\"");
        svg.split(&start).skip(1).filter_map(|part| part.split('"').next()?.parse().ok()).collect()
    }

    #[test]
    fn every_picture_shows_all_marks_and_cells_within_its_edges() {
        for example in examples() {
            let trace = example.run().unwrap();
            let svg = trace.to_svg().unwrap();
            let height = places(&svg, "height")[0];
            let lowest = places(&svg, "y").into_iter().max().unwrap();
            assert!(lowest < height && lowest > height - 80, "{}: {lowest} of {height}", trace.name);
            assert!(places(&svg, "x").into_iter().all(|x| (0..WIDTH).contains(&x)), "{}", trace.name);
            let cells = || trace.steps.iter().flat_map(|step| &step.rows).flat_map(|row| &row.cells);
            for text in cells().filter_map(|cell| cell.mark.as_ref()).map(|mark| &mark.text) {
                assert!(svg.contains(&format!("\n{text}\n")), "{}: {text}", trace.name);
            }
            let drawn = svg.matches("<polyline").count();
            let before = trace.steps.iter().flat_map(|step| &step.rows).filter_map(|row| row.before.as_ref());
            assert_eq!(drawn, cells().count() + before.map(Vec::len).sum::<usize>(), "{}", trace.name);
        }
    }
}
