//! Draws a trace as text, in 80 columns and without colours.

use super::{Cell, Row, Trace};
use std::fmt::Write as _;

const WIDTH: usize = 80;
/// Columns before the text of a step.
const INDENT: usize = 4;
/// Columns before the first cell: the indent and a label.
const LABEL: usize = 16;
/// Number of cells in a line, here and in pictures.
pub(super) const CELLS: usize = 16;
/// Number of characters for the keys of a cell.
const KEYS: usize = 7;

impl Trace {
    /// Returns the whole trace as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}: {}\n{}\n", self.name, self.title, self.source);
        for (number, step) in (1..).zip(&self.steps) {
            text.push('\n');
            for (line, words) in wrapped(&step.says, WIDTH - INDENT).into_iter().enumerate() {
                let number = if line == 0 { format!("{number:>2}.") } else { String::new() };
                let _ = writeln!(text, "{number:<INDENT$}{words}");
            }
            step.rows.iter().for_each(|row| draw(&mut text, row, self.widest(&row.label)));
        }
        text
    }

    /// Returns the largest number of characters in a cell of the arrays with this label, so that
    /// they look alike in every step.
    fn widest(&self, label: &str) -> usize {
        let alike = self.steps.iter().flat_map(|step| &step.rows).filter(|row| row.label == label);
        let texts = |cell: &Cell| {
            let mark = cell.mark.as_ref().map_or(0, |mark| mark.text.len());
            let keys = cell.keys_within(KEYS).chars().count();
            [cell.head.len(), cell.value.len(), mark, keys].into_iter().max().unwrap_or(0)
        };
        alike.flat_map(|row| &row.cells).map(texts).max().unwrap_or(0)
    }
}

/// Splits a text into lines of at most `width` characters.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

fn draw(text: &mut String, row: &Row, widest: usize) {
    let each = widest.max(3) + 1;
    let cells = CELLS.min((WIDTH - LABEL) / each).max(1);
    for (start, part) in (0..).step_by(cells).zip(row.cells.chunks(cells)) {
        let mut line = |label: &str, values: Vec<&str>| {
            if values.iter().all(|value| value.is_empty()) {
                return;
            }
            let mut line = format!("{:INDENT$}{label:<1$}", "", LABEL - INDENT);
            values.iter().for_each(|value| {
                let _ = write!(line, "{value:>each$}");
            });
            let _ = writeln!(text, "{}", line.trim_end());
        };
        let values = part.iter().map(|cell| &cell.value[..]).collect();
        let heads: Vec<&str> = part.iter().map(|cell| &cell.head[..]).collect();
        let label = if heads.iter().all(|head| head.is_empty()) { &row.label } else { "" };
        line(&row.label, heads);
        match &row.before {
            Some(before) => {
                line("  before", before.iter().skip(start).take(cells).map(|value| &value[..]).collect());
                line("  after", values);
            }
            None => line(label, values),
        }
        line("", part.iter().map(|cell| cell.mark.as_ref().map_or("", |mark| &mark.text)).collect());
        let keys: Vec<String> = part.iter().map(|cell| cell.keys_within(KEYS)).collect();
        line("  keys", keys.iter().map(|keys| &keys[..]).collect());
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::examples;

    #[test]
    fn every_example_fits_into_eighty_columns_and_describes_every_step() {
        for example in examples() {
            let trace = example.run().unwrap();
            let text = trace.to_text();
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{}", example.name);
            assert!(trace.steps.len() >= 2 && trace.steps.iter().all(|step| !step.says.is_empty()));
            assert!(trace.steps.iter().any(|step| !step.rows.is_empty()), "{}", example.name);
        }
    }

    #[test]
    fn a_lookup_shows_the_zero_that_causes_the_no_and_the_keys_of_the_other_bits() {
        let text = crate::trace::find("search").unwrap().run().unwrap().to_text();
        let step = "
 3. Ask for 5 at 5, 3 and 2: certainly not a member, since 5 holds 0.
    bits           0   1   2   3   4   5   6   7   8   9
                   0   1   1   1   1   0   0   1   0   1
                         yes yes      NO
      keys           4,9   2   2 4,9           2     4,9
";
        assert!(text.contains(step), "{text}");
    }
}
