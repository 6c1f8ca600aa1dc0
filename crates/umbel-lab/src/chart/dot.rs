//! The dots of charts. Each colour has a shape of its own, for readers who cannot distinguish the
//! colours.

use super::COLOURS;
use plotters::element::{Drawable, PointCollection};
use plotters::style::Color;
use plotters_backend::{BackendCoord, DrawingBackend, DrawingErrorKind};
use std::iter::{Once, once};

/// Corners of each shape around its centre, in pixels. The circle has none.
const SHAPES: [&[BackendCoord]; 7] = [
    &[],
    &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    &[(0, -5), (5, 4), (-5, 4)],
    &[(0, -6), (6, 0), (0, 6), (-6, 0)],
    &[(0, 5), (5, -4), (-5, -4)],
    &[
        (-2, -5),
        (2, -5),
        (2, -2),
        (5, -2),
        (5, 2),
        (2, 2),
        (2, 5),
        (-2, 5),
        (-2, 2),
        (-5, 2),
        (-5, -2),
        (-2, -2),
    ],
    &[(-5, -2), (5, -2), (5, 2), (-5, 2)],
];

/// A dot of a series.
pub(super) struct Dot<C> {
    at: C,
    number: usize,
}

impl<C> Dot<C> {
    pub fn new(at: C, number: usize) -> Dot<C> {
        Dot { at, number }
    }
}

impl<'a, C> PointCollection<'a, C> for &'a Dot<C> {
    type Point = &'a C;
    type IntoIter = Once<&'a C>;

    fn point_iter(self) -> Once<&'a C> {
        once(&self.at)
    }
}

impl<C, DB: DrawingBackend> Drawable<DB> for Dot<C> {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        mut places: I,
        backend: &mut DB,
        _: (u32, u32),
    ) -> Result<(), DrawingErrorKind<DB::ErrorType>> {
        let Some((x, y)) = places.next() else { return Ok(()) };
        let colour = COLOURS[self.number % COLOURS.len()];
        let style = colour.filled();
        let corners = SHAPES[self.number % SHAPES.len()];
        if corners.is_empty() {
            return backend.draw_circle((x, y), 4, &style, true);
        }
        backend.fill_polygon(corners.iter().map(|(right, down)| (x + right, y + down)), &style)
    }
}
