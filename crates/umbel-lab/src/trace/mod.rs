//! The worked examples of the source documents, step by step: arrays before and after, the zero that
//! made a no, the keys that made a false positive. `docs/references.md` lists the documents.
//!
//! An [`Example`] is run, not copied: each step is what small filters with positions given by hand have done. Its
//! [`Trace`] is drawn as text and as a picture by the same two renderers as every other.
//!
//! ```
//! let trace = umbel_lab::trace::find("search").expect("the lookups of the first example").run()?;
//! assert!(trace.to_text().contains("a false positive"));
//! assert!(trace.to_svg()?.contains("<svg"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cells;
mod examples;
mod picture;
mod text;

pub use examples::examples;
pub(crate) use examples::{elements, positions};
use std::fmt;

/// A worked example.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// By which it is asked for.
    pub name: &'static str,
    /// In a few words.
    pub title: &'static str,
    /// Where it is printed.
    pub source: &'static str,
    steps: fn() -> crate::Result<Vec<Step>>,
}

impl Example {
    /// Goes through it.
    pub fn run(&self) -> crate::Result<Trace> {
        let &Example { name, title, source, steps } = self;
        Ok(Trace { name, title, source, steps: steps()? })
    }
}

/// The example of this name, in capitals or not.
pub fn find(name: &str) -> Option<&'static Example> {
    examples().iter().find(|example| example.name.eq_ignore_ascii_case(name))
}

/// The steps of an example.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The name of the example.
    pub name: &'static str,
    /// In a few words.
    pub title: &'static str,
    /// Where it is printed.
    pub source: &'static str,
    /// In order.
    pub steps: Vec<Step>,
}

/// One thing that is done, or asked.
#[derive(Clone, Debug)]
pub struct Step {
    /// In a sentence or two.
    pub says: String,
    /// Arrays after the step.
    pub rows: Vec<Row>,
    /// Answer of the filter beside the truth, if it was queried.
    pub answer: Option<Answer>,
}

impl Step {
    fn new(says: impl Into<String>, rows: Vec<Row>) -> Step {
        Step { says: says.into(), rows, answer: None }
    }

    /// The array of this label as the source documents print it.
    pub fn array(&self, label: &str) -> Option<String> {
        self.rows.iter().find(|row| row.label == label).map(Row::printed)
    }
}

/// The answer of a filter about a key, beside the truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes, and it was inserted.
    Member,
    /// Yes, and it was not; the keys that are to blame.
    FalsePositive(Vec<String>),
    /// No, because of these positions.
    No(Vec<usize>),
    /// No, because of these positions, although it was inserted.
    FalseNegative(Vec<usize>),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Member => f.write_str("yes"),
            Answer::FalsePositive(keys) => write!(f, "false positive by {}", and(keys)),
            Answer::No(cells) => write!(f, "no by {}", and(cells)),
            Answer::FalseNegative(cells) => write!(f, "false negative by {}", and(cells)),
        }
    }
}

/// An array.
#[derive(Clone, Debug)]
pub struct Row {
    /// Contents.
    pub label: String,
    /// Contents before the step, if the step may change them.
    pub before: Option<Vec<String>>,
    /// The cells, as they are after it.
    pub cells: Vec<Cell>,
}

/// A cell of an array.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Heading: the position, or a name.
    pub head: String,
    /// Contents.
    pub value: String,
    /// Effect of the step.
    pub mark: Option<Mark>,
    /// The keys that have this position.
    pub keys: String,
}

/// The effect of a step on a cell, in a few letters.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Which of four things.
    pub touch: Touch,
    /// The letters.
    pub text: String,
}

/// A kind of effect on a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It became more.
    Set,
    /// It was looked at, and it was there.
    Found,
    /// It was looked at, and made the answer no.
    Refused,
    /// It became less.
    Cleared,
}

impl Row {
    /// Cells with positions from 0.
    fn new<V: ToString>(label: &str, values: impl IntoIterator<Item = V>) -> Row {
        let cell = |(position, value): (usize, V)| Cell {
            head: position.to_string(),
            value: value.to_string(),
            mark: None,
            keys: String::new(),
        };
        Row { label: label.into(), before: None, cells: values.into_iter().enumerate().map(cell).collect() }
    }

    /// Names instead of positions.
    fn under<H: ToString>(mut self, heads: impl IntoIterator<Item = H>) -> Row {
        self.cells.iter_mut().zip(heads).for_each(|(cell, head)| cell.head = head.to_string());
        self
    }

    /// Previous contents.
    fn after<V: ToString>(mut self, before: impl IntoIterator<Item = V>) -> Row {
        self.before = Some(before.into_iter().map(|value| value.to_string()).collect());
        self
    }

    fn mark(&mut self, position: usize, touch: Touch, text: impl Into<String>) {
        if let Some(cell) = self.cells.get_mut(position) {
            cell.mark = Some(Mark { touch, text: text.into() });
        }
    }

    /// The array as the source documents print it: digits without gaps, longer values with.
    pub fn printed(&self) -> String {
        let values: Vec<&str> = self.cells.iter().map(|cell| &cell.value[..]).collect();
        values.join(if values.iter().all(|value| value.len() == 1) { "" } else { " " })
    }
}

/// Things in a row, as a sentence has them.
fn and<T: ToString>(things: &[T]) -> String {
    let mut words: Vec<String> = things.iter().map(ToString::to_string).collect();
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} and {last}", words.join(", ")) }
}
