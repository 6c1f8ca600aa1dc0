//! Positions for the names of dots that cover neither dots nor other names.

/// Approximate width of a letter and height of a name, in pixels.
const LETTER: f64 = 6.4;
const HIGH: i32 = 12;

/// The areas of the dots and of the names that already have a position.
pub struct Names {
    /// Left, top, right and bottom edge of each area.
    taken: Vec<[i32; 4]>,
    /// Left and right edge of the area for names.
    between: [i32; 2],
}

impl Names {
    /// Creates a layout whose names must not cover these dots.
    pub fn beside(dots: impl Iterator<Item = (i32, i32)>, between: [i32; 2]) -> Names {
        Names { taken: dots.map(|(x, y)| [x - 4, y - 4, x + 4, y + 4]).collect(), between }
    }

    /// Reserves an area for a name. Returns its offset from the dot and, if the name is not right
    /// beside the dot, the end of a line that ties the two.
    pub fn place(&mut self, name: &str, (x, y): (i32, i32)) -> ((i32, i32), Option<(i32, i32)>) {
        let wide = (name.chars().count() as f64 * LETTER) as i32;
        let (right, left, middle) = (7, -7 - wide, -wide / 2);
        // Right, left, above and below the dot, and then farther away.
        let near = [(right, -6), (left, -6), (middle, -18), (middle, 6)];
        let far = [-14, 3, -26, 15, -38, 27].into_iter().flat_map(|down| [(right, down), (left, down)]);
        let mut offsets = near.into_iter().chain(far);
        let area = |(dx, dy): (i32, i32)| [x + dx, y + dy, x + dx + wide, y + dy + HIGH];
        let is_free = |offset: &(i32, i32)| {
            let [left, top, right, bottom] = area(*offset);
            let meets =
                |taken: &[i32; 4]| left < taken[2] && taken[0] < right && top < taken[3] && taken[1] < bottom;
            self.between[0] <= left && right <= self.between[1] && !self.taken.iter().any(meets)
        };
        let offset = offsets.find(is_free).unwrap_or(near[0]);
        self.taken.push(area(offset));
        let is_near = near.contains(&offset);
        (offset, (!is_near).then_some((if offset.0 < 0 { left + wide } else { right }, offset.1 + HIGH / 2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_neighbours_do_not_meet() {
        let dots = [(100, 100), (120, 100), (110, 104), (640, 50)];
        let mut names = Names::beside(dots.into_iter(), [0, 650]);
        let offsets: Vec<(i32, i32)> = dots.iter().map(|dot| names.place("standard", *dot).0).collect();
        let areas = &names.taken[4..];
        for (i, a) in areas.iter().enumerate() {
            assert!(
                names.taken[..4 + i]
                    .iter()
                    .all(|b| a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1])
            );
        }
        assert!(offsets[3].0 < 0, "there is no room to the right");
    }
}
