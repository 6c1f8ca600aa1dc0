//! Places for the names of nodes that cover neither nodes nor other names, and as few links as
//! possible.

use super::layout::Point;

/// A rectangle: left, top, right and bottom edge.
pub(super) type Area = [f64; 4];

/// The areas that are taken, and the links that names avoid.
pub(super) struct Labels<'a> {
    taken: Vec<Area>,
    links: &'a [[Point; 2]],
    edges: Area,
}

impl<'a> Labels<'a> {
    /// Returns a place finder that avoids nodes with this radius, and stays within `edges`.
    pub(super) fn new(nodes: &[Point], radius: f64, links: &'a [[Point; 2]], edges: Area) -> Labels<'a> {
        let area = |[x, y]: &Point| [x - radius, y - radius, x + radius, y + radius];
        Labels { taken: nodes.iter().map(area).collect(), links, edges }
    }

    /// Reserves a place for a text of this size beside a node, and returns its anchor and the point
    /// of the anchor: its start, middle or end, on its middle line. If there is no free place, returns `None`, or the place that covers least if the
    /// text `must` be shown.
    pub(super) fn place(
        &mut self,
        [x, y]: Point,
        [wide, high]: Point,
        radius: f64,
        must: bool,
    ) -> Option<(&'static str, Point)> {
        let gap = radius + 3.0;
        let (right, left, middle) = (x + gap, x - gap - wide, x - wide / 2.0);
        let (above, below, beside) = (y - gap - high, y + gap, y - high / 2.0);
        let near = [
            [right, beside],
            [left, beside],
            [middle, above],
            [middle, below],
            [x + 0.6 * gap, y - gap - 0.6 * high],
            [x + 0.6 * gap, y + gap - 0.4 * high],
            [x - 0.6 * gap - wide, y - gap - 0.6 * high],
            [x - 0.6 * gap - wide, y + gap - 0.4 * high],
        ];
        let area = |[left, top]: Point| [left, top, left + wide, top + high];
        let is_inside = |place: &Point| {
            let [left, top, right, bottom] = area(*place);
            left >= self.edges[0] && top >= self.edges[1] && right <= self.edges[2] && bottom <= self.edges[3]
        };
        let covered =
            |place: &Point| self.taken.iter().filter(|other| overlap(area(*place), **other)).count();
        let crossings =
            |place: &Point| self.links.iter().filter(|link| crosses(**link, area(*place))).count();
        let inside = || near.into_iter().filter(is_inside);
        // The first of equals is the more usual place.
        let mut best = inside().filter(|place| covered(place) == 0).min_by_key(crossings);
        if must {
            best = best
                .or_else(|| inside().min_by_key(|place| (covered(place), crossings(place))))
                .or(Some(near[0]));
        }
        let place = best?;
        self.taken.push(area(place));
        let line = place[1] + high / 2.0;
        // The width is an estimate, so the end nearest to the node is fixed.
        Some(if place[0] >= x {
            ("start", [place[0], line])
        } else if place[0] + wide <= x {
            ("end", [place[0] + wide, line])
        } else {
            ("middle", [place[0] + wide / 2.0, line])
        })
    }
}

fn overlap(a: Area, b: Area) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

/// Returns whether a line meets an area, by cutting off what lies beyond each edge.
fn crosses([from, to]: [Point; 2], area: Area) -> bool {
    let [mut start, mut end] = [0.0f64, 1.0f64];
    for axis in 0..2 {
        let [step, low, high] = [to[axis] - from[axis], area[axis] - from[axis], area[axis + 2] - from[axis]];
        if step.abs() < 1e-9 {
            if low > 0.0 || high < 0.0 {
                return false;
            }
            continue;
        }
        let [near, far] = if step > 0.0 { [low / step, high / step] } else { [high / step, low / step] };
        start = start.max(near);
        end = end.min(far);
    }
    start < end
}
