//! Filters step by step: arrays before and after, the zero that causes a no, the keys that cause a
//! false positive.
//!
//! An [`Example`] comes from a source document, which `docs/references.md` lists. It is computed,
//! not copied: each step runs small filters with given positions. [`OwnKeys`] does the same with
//! the keys, and if wanted the hash functions, of a user. The same two renderers draw every
//! [`Trace`], as text and as a picture.
//!
//! ```
//! let trace = umbel_lab::trace::find("search").expect("the lookups of the first example").run()?;
//! assert!(trace.to_text().contains("a false positive"));
//! assert!(trace.to_svg()?.contains("<svg"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cells;
mod examples;
mod formula;
mod own;
mod picture;
mod text;

pub use examples::examples;
pub(crate) use examples::{elements, positions};
pub use formula::Formula;
pub use own::{Operation, OwnHash, OwnKeys};
use std::fmt;

/// A worked example.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Name on the command line.
    pub name: &'static str,
    /// Title, in a few words.
    pub title: &'static str,
    /// Source, with the figure or section.
    pub source: &'static str,
    steps: fn() -> crate::Result<Vec<Step>>,
}

impl Example {
    /// Computes the steps.
    ///
    /// # Errors
    ///
    /// An error of the filter library.
    pub fn run(&self) -> crate::Result<Trace> {
        let &Example { name, title, source, steps } = self;
        Ok(Trace { name, title: title.into(), source: source.into(), steps: steps()? })
    }
}

/// Returns the example with this name; upper and lower case are equal.
pub fn find(name: &str) -> Option<&'static Example> {
    examples().iter().find(|example| example.name.eq_ignore_ascii_case(name))
}

/// The steps of an example, or of a filter of a user's own keys.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Name of the example.
    pub name: &'static str,
    /// Title, in a few words.
    pub title: String,
    /// Source, with the figure or section.
    pub source: String,
    /// Steps, in order.
    pub steps: Vec<Step>,
}

/// One operation or query.
#[derive(Clone, Debug)]
pub struct Step {
    /// Description, in a sentence or two.
    pub says: String,
    /// Arrays after the step.
    pub rows: Vec<Row>,
    /// Answer of the filter, compared with the truth, if it was queried.
    pub answer: Option<Answer>,
}

impl Step {
    fn new(says: impl Into<String>, rows: Vec<Row>) -> Step {
        Step { says: says.into(), rows, answer: None }
    }

    /// Returns the array with this label as the source documents print it.
    pub fn array(&self, label: &str) -> Option<String> {
        self.rows.iter().find(|row| row.label == label).map(Row::printed)
    }
}

/// The answer of a filter for a key, compared with the truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes, and the key was inserted.
    Member,
    /// Yes, but the key was not inserted; with the keys that set its cells.
    FalsePositive(Vec<String>),
    /// No, because of these positions.
    No(Vec<usize>),
    /// No, because of these positions, although the key was inserted.
    FalseNegative(Vec<usize>),
}

impl Answer {
    /// Returns whether the filter says yes.
    pub fn is_yes(&self) -> bool {
        matches!(self, Answer::Member | Answer::FalsePositive(_))
    }
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

/// An array of a step.
#[derive(Clone, Debug)]
pub struct Row {
    /// Label.
    pub label: String,
    /// Contents before the step, if the step may change them.
    pub before: Option<Vec<String>>,
    /// Cells after the step.
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
    /// Keys that use this position.
    pub keys: String,
}

impl Cell {
    /// Returns the keys of the cell in at most this many characters, at least six: if there are too
    /// many, their number; if one is too long, its beginning.
    fn keys_within(&self, chars: usize) -> String {
        if self.keys.chars().count() <= chars {
            return self.keys.clone();
        }
        match self.keys.split(',').count() {
            1 => self.keys.chars().take(chars - 1).chain(['…']).collect(),
            count => format!("{count} keys"),
        }
    }
}

/// The effect of a step on a cell, in a few letters.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Kind of effect.
    pub touch: Touch,
    /// Text below the cell.
    pub text: String,
}

/// A kind of effect on a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The value increased.
    Set,
    /// The cell was read and agreed with a yes.
    Found,
    /// The cell was read and caused a no.
    Refused,
    /// The value decreased.
    Cleared,
}

impl Row {
    /// Creates cells with positions from 0.
    fn new<V: ToString>(label: &str, values: impl IntoIterator<Item = V>) -> Row {
        let cell = |(position, value): (usize, V)| Cell {
            head: position.to_string(),
            value: value.to_string(),
            mark: None,
            keys: String::new(),
        };
        Row { label: label.into(), before: None, cells: values.into_iter().enumerate().map(cell).collect() }
    }

    /// Returns the row with names instead of positions.
    fn under<H: ToString>(mut self, heads: impl IntoIterator<Item = H>) -> Row {
        self.cells.iter_mut().zip(heads).for_each(|(cell, head)| cell.head = head.to_string());
        self
    }

    /// Returns the row with its previous contents.
    fn after<V: ToString>(mut self, before: impl IntoIterator<Item = V>) -> Row {
        self.before = Some(before.into_iter().map(|value| value.to_string()).collect());
        self
    }

    fn mark(&mut self, position: usize, touch: Touch, text: impl Into<String>) {
        if let Some(cell) = self.cells.get_mut(position) {
            cell.mark = Some(Mark { touch, text: text.into() });
        }
    }

    /// Returns the array as the source documents print it: single digits without gaps, longer
    /// values with gaps.
    pub fn printed(&self) -> String {
        let values: Vec<&str> = self.cells.iter().map(|cell| &cell.value[..]).collect();
        values.join(if values.iter().all(|value| value.len() == 1) { "" } else { " " })
    }
}

/// Joins values as in a sentence: `1, 4 and 9`.
fn and<T: ToString>(things: &[T]) -> String {
    let mut words: Vec<String> = things.iter().map(ToString::to_string).collect();
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} and {last}", words.join(", ")) }
}
