//! Bits and counters with given positions, the building blocks of the examples.

use super::{Answer, Row, Step, Touch, and};
use std::collections::HashSet;

/// An array of cells, with the keys that use each cell.
#[derive(Clone, Debug)]
pub struct Cells {
    label: &'static str,
    values: Vec<u64>,
    /// Keys that use each cell.
    keys: Vec<Vec<String>>,
    members: Vec<String>,
    /// Keys that were members once.
    former: Vec<String>,
}

impl Cells {
    /// Creates empty cells.
    pub fn new(label: &'static str, len: usize) -> Cells {
        let (values, keys) = (vec![0; len], vec![Vec::new(); len]);
        Cells { label, values, keys, members: Vec::new(), former: Vec::new() }
    }

    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Registers a key as a member without changing cells.
    pub fn join(&mut self, key: &str) {
        self.members.push(key.into());
    }

    /// Unregisters a member.
    pub fn leave(&mut self, key: &str) {
        if let Some(member) = self.members.iter().position(|known| known == key) {
            self.former.push(self.members.swap_remove(member));
        }
    }

    /// Returns whether a key is a member.
    pub fn is_member(&self, key: &str) -> bool {
        self.members.iter().any(|known| known == key)
    }

    /// Returns the keys that use a cell.
    pub fn users(&self, position: usize) -> &[String] {
        &self.keys[position]
    }

    /// Returns the present cells.
    pub fn row(&self) -> Row {
        let mut row = Row::new(self.label, &self.values);
        row.cells.iter_mut().zip(&self.keys).for_each(|(cell, keys)| cell.keys = keys.join(","));
        row
    }

    /// Replaces a cell and the keys that use it.
    pub fn replace(&mut self, position: usize, value: u64, users: &[String]) {
        self.values[position] = value;
        self.keys[position] = users.to_vec();
    }

    /// Changes cells of a key. Each change has a position, a value and the text below the cell.
    pub fn change(&mut self, key: &str, changes: &[(usize, u64, String)]) -> Row {
        let before = self.values.clone();
        let is_member = self.is_member(key);
        for (position, value, _) in changes {
            // A key that was inserted twice and removed once still uses its cells.
            if *value == 0 || *value < before[*position] && !is_member {
                self.keys[*position].retain(|known| known != key);
            } else if !self.keys[*position].iter().any(|known| known == key) {
                self.keys[*position].push(key.into());
            }
            self.values[*position] = *value;
        }
        let mut row = self.row();
        for (position, value, text) in changes {
            let touch = match value.cmp(&before[*position]) {
                std::cmp::Ordering::Greater => Touch::Set,
                std::cmp::Ordering::Equal => Touch::Found,
                std::cmp::Ordering::Less => Touch::Cleared,
            };
            row.mark(*position, touch, &text[..]);
        }
        row.after(before)
    }

    /// Sets the bits of a key.
    pub fn set(&mut self, key: &str, positions: &[usize]) -> Row {
        self.join(key);
        let changes: Vec<(usize, u64, String)> = positions
            .iter()
            .map(|position| (*position, 1, if self.values[*position] == 0 { "set" } else { "hit" }.into()))
            .collect();
        self.change(key, &changes)
    }

    /// Sets the bits of a key, and returns the changed row.
    pub fn insert(&mut self, key: &str, positions: &[usize]) -> Step {
        let row = self.set(key, positions);
        let marks = row.cells.iter().filter_map(|cell| cell.mark.as_ref());
        let effect = match marks.filter(|mark| mark.touch == Touch::Set).count() {
            0 => "all of these bits are 1 already, nothing changes".into(),
            1 => "one bit becomes 1".to_string(),
            bits => format!("{bits} bits become 1"),
        };
        Step::new(format!("Insert {key} at {}: {effect}.", and(positions)), vec![row])
    }

    /// Sets the bits of a key to 0, even if other keys share them.
    pub fn clear(&mut self, key: &str, positions: &[usize]) -> Row {
        let changes: Vec<(usize, u64, String)> =
            positions.iter().map(|position| (*position, 0, "clr".into())).collect();
        self.change(key, &changes)
    }

    /// Adds to the counters of a key.
    pub fn add(&mut self, key: &str, amounts: &[(usize, u64)]) -> Row {
        self.join(key);
        let changes: Vec<(usize, u64, String)> = amounts
            .iter()
            .map(|(position, by)| (*position, self.values[*position] + by, format!("+{by}")))
            .collect();
        self.change(key, &changes)
    }

    /// Subtracts from the counters of a key that was inserted; none falls below zero.
    pub fn subtract(&mut self, key: &str, amounts: &[(usize, u64)]) -> Row {
        self.leave(key);
        let changes: Vec<(usize, u64, String)> = amounts
            .iter()
            .map(|(position, by)| (*position, self.values[*position].saturating_sub(*by), format!("-{by}")))
            .collect();
        self.change(key, &changes)
    }

    /// Queries a key: no if one of its cells is 0.
    pub fn query(&self, key: &str, positions: &[usize]) -> Step {
        let cells: Vec<(usize, Option<String>)> = positions
            .iter()
            .map(|position| (*position, (self.values[*position] == 0).then(|| "holds 0".into())))
            .collect();
        self.query_with_reasons(key, &cells)
    }

    /// Queries a key: no if one of its cells has a reason against it.
    pub fn query_with_reasons(&self, key: &str, cells: &[(usize, Option<String>)]) -> Step {
        let (mut row, member) = (self.row(), self.is_member(key));
        let (mut refused, mut reasons, mut to_blame) = (Vec::new(), Vec::new(), Vec::new());
        for (position, reason) in cells {
            match reason {
                Some(reason) => {
                    row.mark(*position, Touch::Refused, "NO");
                    refused.push(*position);
                    reasons.push(format!("{position} {reason}"));
                }
                None => row.mark(*position, Touch::Found, "yes"),
            }
            to_blame.extend(self.keys[*position].iter().cloned());
        }
        // Keep each key once, in the order of its first cell.
        let mut met = HashSet::new();
        to_blame.retain(|key| met.insert(key.clone()));
        let positions: Vec<usize> = cells.iter().map(|(position, _)| *position).collect();
        let asked = format!("Ask for {key} at {}", and(&positions));
        // Several zeros share one sentence.
        let zeros = reasons.len() > 1 && reasons.iter().all(|reason| reason.ends_with("holds 0"));
        let because = if zeros { format!("{} hold 0", and(&refused)) } else { reasons.join(", and ") };
        let (verdict, answer) = match (refused.is_empty(), member) {
            (true, true) => ("probably a member, and it is one.".into(), Answer::Member),
            (true, false) => {
                let past =
                    if self.former.iter().any(|known| known == key) { "removed" } else { "never inserted" };
                let users = and(&to_blame);
                (
                    format!("yes, but it was {past}: a false positive. Its cells are those of {users}."),
                    Answer::FalsePositive(to_blame),
                )
            }
            (false, false) => (format!("certainly not a member, since {because}."), Answer::No(refused)),
            (false, true) => (
                format!("no, since {because}; but it was inserted: a false negative."),
                Answer::FalseNegative(refused),
            ),
        };
        Step { says: format!("{asked}: {verdict}"), rows: vec![row], answer: Some(answer) }
    }
}
