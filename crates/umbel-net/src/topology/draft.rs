//! A network while it is read: nodes by name, and links with the place where the file states them.

use super::{Graph, Link, MAX_NODES};
use crate::Error;
use crate::network::quoted;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;

/// The parts of one unit in which lengths are stored if one of them has decimals.
const PARTS: f64 = 1000.0;

/// A mistake in a text, and the byte at which it is, unless it is the text as a whole.
#[derive(Debug)]
pub(super) struct Mistake {
    at: Option<usize>,
    problem: String,
}

impl Mistake {
    /// Returns a mistake at a byte of the text.
    pub(super) fn at(at: usize, problem: impl Into<String>) -> Mistake {
        Mistake { at: Some(at), problem: problem.into() }
    }

    /// Returns the error with the line of the mistake.
    pub(super) fn in_file(self, text: &[u8]) -> Error {
        Error::Topology {
            path: PathBuf::new(),
            line: self.at.map(|at| line_at(text, at)),
            problem: self.problem,
        }
    }
}

/// Returns the number of the line that has this byte.
fn line_at(text: &[u8], at: usize) -> usize {
    1 + text.iter().take(at).filter(|byte| **byte == b'\n').count()
}

/// A link, and the byte at which the file states it.
#[derive(Clone, Copy, Debug)]
struct DraftLink {
    ends: [usize; 2],
    length: f64,
    at: usize,
}

/// The nodes and links read so far.
#[derive(Debug, Default)]
pub(super) struct Draft {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    links: Vec<DraftLink>,
    /// The number of the link between two nodes, of which the lower one is first.
    linked: HashMap<[usize; 2], usize>,
}

impl Draft {
    /// Returns the node with this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// Returns the node with this name, which is added if it is not there yet.
    pub(super) fn node(&mut self, name: &str, at: usize) -> Result<usize, Mistake> {
        if let Some(known) = self.find(name) {
            return Ok(known);
        }
        if name.is_empty() || name.contains(char::is_control) {
            let problem = format!("{} is not the name of a node; use letters and digits", quoted(name));
            return Err(Mistake::at(at, problem));
        }
        let number = self.names.len();
        if number == MAX_NODES {
            let problem = format!("the node {} is one too many; a network has at most 2^20", quoted(name));
            return Err(Mistake::at(at, problem));
        }
        self.numbers.insert(name.to_owned(), number);
        self.names.push(name.to_owned());
        Ok(number)
    }

    /// Adds a link between two nodes, stated at the byte `at`.
    pub(super) fn link(
        &mut self,
        text: &str,
        ends: [usize; 2],
        length: f64,
        at: usize,
    ) -> Result<(), Mistake> {
        let name = |end: usize| quoted(self.names.get(end).map_or("", String::as_str));
        if ends[0] == ends[1] {
            return Err(Mistake::at(at, format!("the link joins {} with itself; remove it", name(ends[0]))));
        }
        match self.linked.entry([ends[0].min(ends[1]), ends[0].max(ends[1])]) {
            Entry::Vacant(place) => {
                place.insert(self.links.len());
                self.links.push(DraftLink { ends, length, at });
            }
            Entry::Occupied(known) => {
                let first = self.links[*known.get()];
                if first.length != length {
                    let [a, b] = ends.map(name);
                    let line = line_at(text.as_bytes(), first.at);
                    let problem = format!(
                        "the link of {a} and {b} has the length {length}, but {} in line {line}; \
                         remove one of them",
                        first.length
                    );
                    return Err(Mistake::at(at, problem));
                }
            }
        }
        Ok(())
    }

    /// Replaces the names of nodes by labels where a label stands for one node only.
    pub(super) fn label(&mut self, labels: &[Option<String>]) {
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for label in labels.iter().flatten() {
            *uses.entry(label).or_default() += 1;
        }
        for (number, label) in labels.iter().enumerate() {
            let Some(label) = label.as_deref().filter(|label| uses.get(label) == Some(&1)) else { continue };
            // A label that is the identifier of another node would make two nodes of one name.
            if self.numbers.get(label).is_none_or(|other| *other == number)
                && let Some(name) = self.names.get_mut(number)
            {
                label.clone_into(name);
            }
        }
    }

    /// Returns the network.
    pub(super) fn finish(self) -> Result<Graph, Mistake> {
        if self.names.is_empty() {
            let problem = "it has no nodes; an edge list has lines with the names of two linked nodes";
            return Err(Mistake { at: None, problem: problem.into() });
        }
        let whole = self.links.iter().all(|link| link.length.fract() == 0.0);
        let parts = if whole { 1.0 } else { PARTS };
        let mut links = vec![Vec::new(); self.names.len()];
        for DraftLink { ends: [a, b], length, at } in self.links {
            let stored = (length * parts).round();
            if !(1.0..=f64::from(u32::MAX)).contains(&stored) {
                let most = (f64::from(u32::MAX) / parts).floor();
                let problem = format!(
                    "the length {length} is out of range; lengths are from {} to {most}, so use another unit",
                    1.0 / parts
                );
                return Err(Mistake::at(at, problem));
            }
            let length = stored as u32;
            links[a].push(Link { to: b, length });
            links[b].push(Link { to: a, length });
        }
        Ok(Graph { names: self.names.into(), links })
    }
}

/// Parses the length of a link.
pub(super) fn parse_length(text: &str, at: usize) -> Result<f64, Mistake> {
    let length = text.parse().ok().filter(|length: &f64| length.is_finite() && *length > 0.0);
    length.ok_or_else(|| {
        Mistake::at(at, format!("the length {} of the link is not a number above 0", quoted(text)))
    })
}
