//! The values of a map and their numbers: found in the data, named beforehand, or integers.

use super::pairs::Piece;
use crate::args::number;
use crate::report::{printable, truncated};
use anyhow::{Context, Result, bail};
use bstr::ByteSlice;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use umbel::Digest;
use umbel::bloomier::CodeBook;
use umbel::sizing::bloomier::value_bits;

/// Integers that are so much longer than the numbers of a code book waste memory.
const WASTE: u32 = 8;

/// A longer code book is avoided where it can be.
const MANY: usize = 1 << 16;

/// What is said of values beforehand.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// These, in this order.
    Names(Vec<String>),
    /// Those in the lines of a file.
    File(PathBuf),
    /// Integers up to this one.
    Integers(u64),
}

impl Wanted {
    /// The file that they are in.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Wanted::File(path) => Some(path.clone()),
            _ => None,
        }
    }
}

/// `red,green,blue`, `@file` or `0..255`.
pub fn wanted(text: &str) -> Result<Wanted, String> {
    match text.strip_prefix('@') {
        Some("") => return Err("name the file after the @".to_string()),
        Some(file) => return Ok(Wanted::File(file.into())),
        None if text.is_empty() => return Err("name the values, as red,green,blue".to_string()),
        None => {}
    }
    match text.split_once("..") {
        Some(("0", last)) => return number::count(last).map(Wanted::Integers),
        Some((first, last)) if first.parse::<i64>().is_ok() && last.parse::<i64>().is_ok() => {
            return Err("integers start at 0: write it as 0..255".to_string());
        }
        _ => {}
    }
    Ok(Wanted::Names(text.split(',').map(str::to_owned).collect()))
}

/// Numbers for values.
pub enum Values {
    /// Whatever there is.
    Found(Found),
    /// These and no others.
    Named(Names),
    /// Integers up to this one, which stand for themselves.
    Integers(u64),
}

/// A value that there cannot be.
pub struct Outside {
    /// Which of the values of a piece.
    pub value: usize,
    pub why: String,
}

impl Values {
    pub fn new(wanted: Option<&Wanted>) -> Result<Values> {
        Ok(match wanted {
            None => Values::Found(Found::default()),
            Some(Wanted::Names(names)) => Values::Named(Names::distinct(names.iter().map(String::as_bytes))?),
            Some(Wanted::File(path)) => {
                let text = std::fs::read(path)
                    .with_context(|| format!("cannot read the values in {}", path.display()))?;
                Values::Named(Names::distinct(text.lines())?)
            }
            Some(Wanted::Integers(largest)) => Values::Integers(*largest),
        })
    }

    /// The largest number of a value that there can be, as far as that is known before the pairs are.
    pub fn largest(&self) -> u64 {
        match self {
            Values::Found(_) => 0,
            Values::Named(names) => (names.list.len() as u64).saturating_sub(1),
            Values::Integers(largest) => *largest,
        }
    }

    /// Refuses values that have no number.
    pub fn check(&self, piece: &Piece) -> Result<(), Outside> {
        for (value, text) in piece.values().enumerate() {
            let why = match self {
                Values::Found(_) => continue,
                Values::Named(names) if names.number(text).is_some() => continue,
                Values::Named(names) => {
                    format!("{} is not among the values of the map: {}", quoted(text), names.told())
                }
                Values::Integers(largest) => match integer(text) {
                    Some(number) if number <= *largest => continue,
                    Some(number) => {
                        format!("{number} is too large: the values of the map go up to {largest}")
                    }
                    None => format!(
                        "{} is not an integer as it would be printed again: the values of the map go from 0 to {largest}",
                        quoted(text)
                    ),
                },
            };
            return Err(Outside { value, why });
        }
        Ok(())
    }

    /// The numbers of the values of a piece, which were checked. It may turn out that other numbers are better; then those
    /// of all pairs so far are changed.
    pub fn numbers(&mut self, piece: &Piece, pairs: &mut [(Digest, u64)]) -> Vec<u64> {
        match self {
            Values::Found(found) => found.numbers(piece, pairs),
            Values::Named(names) => piece.values().map(|value| names.number(value).unwrap_or(0)).collect(),
            Values::Integers(_) => piece.values().map(|value| integer(value).unwrap_or(0)).collect(),
        }
    }

    /// The largest value that there can be, and the names of values, once all pairs are there.
    pub fn finish(&mut self, pairs: &mut [(Digest, u64)]) -> Result<(Option<u64>, Option<CodeBook>)> {
        let names = match self {
            Values::Integers(largest) => return Ok((Some(*largest), None)),
            Values::Named(names) => names,
            Values::Found(found) => match found.finish(pairs) {
                None => return Ok((None, None)),
                Some(names) => names,
            },
        };
        Ok((None, Some(CodeBook::new(&names.list)?)))
    }

    /// The value with a number.
    pub fn name(&self, number: u64) -> String {
        match self {
            Values::Found(Found { names: Some(names), .. }) | Values::Named(names) => names.name(number),
            _ => number.to_string(),
        }
    }
}

/// Values by number and numbers by value.
#[derive(Default)]
pub struct Names {
    list: Vec<Arc<[u8]>>,
    numbers: HashMap<Arc<[u8]>, u64>,
}

impl Names {
    /// Each of these once.
    fn distinct<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<Names> {
        let mut names = Names::default();
        for (number, value) in values.enumerate() {
            if names.add(value) < number as u64 {
                bail!("{} is given twice among the values: name each once", quoted(value));
            }
        }
        if names.list.is_empty() {
            bail!("there are no values in the list of values: name at least one");
        }
        Ok(names)
    }

    fn number(&self, value: &[u8]) -> Option<u64> {
        self.numbers.get(value).copied()
    }

    fn add(&mut self, value: &[u8]) -> u64 {
        if let Some(number) = self.number(value) {
            return number;
        }
        let (number, value): (_, Arc<[u8]>) = (self.list.len() as u64, value.into());
        self.list.push(Arc::clone(&value));
        self.numbers.insert(value, number);
        number
    }

    fn name(&self, number: u64) -> String {
        self.list.get(number as usize).map(printable).unwrap_or_default()
    }

    /// As many as one can read at once.
    fn told(&self) -> String {
        const FEW: usize = 20;
        let told: Vec<String> = self.list.iter().take(FEW).map(printable).collect();
        match self.list.len().saturating_sub(FEW) {
            0 => told.join(", "),
            more => format!("{} and {more} more", told.join(", ")),
        }
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Names {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Names {
        let mut names = Names::default();
        for value in values {
            names.add(value.as_ref());
        }
        names
    }
}

/// Values as they are found: names, as long as there may be others than integers or few of them.
pub struct Found {
    /// `None` while integers stand for themselves.
    names: Option<Names>,
    /// Whether all are integers.
    integers: bool,
    largest: u64,
}

impl Default for Found {
    fn default() -> Found {
        Found { names: Some(Names::default()), integers: true, largest: 0 }
    }
}

impl Found {
    fn numbers(&mut self, piece: &Piece, pairs: &mut [(Digest, u64)]) -> Vec<u64> {
        for value in piece.values() {
            match integer(value) {
                Some(number) => self.largest = self.largest.max(number),
                None => self.integers = false,
            }
        }
        if self.names.is_none() && !self.integers {
            // They were read in this order, so names are numbered as if they had had them from the start.
            let mut names = Names::default();
            pairs.iter_mut().for_each(|(_, value)| *value = names.add(value.to_string().as_bytes()));
            self.names = Some(names);
        }
        let Some(names) = &mut self.names else { return piece.values().filter_map(integer).collect() };
        let numbers = piece.values().map(|value| names.add(value)).collect();
        if self.integers && names.list.len() > MANY {
            self.become_integers(pairs);
            return piece.values().filter_map(integer).collect();
        }
        numbers
    }

    fn become_integers(&mut self, pairs: &mut [(Digest, u64)]) {
        let Some(names) = self.names.take() else { return };
        for (_, value) in pairs {
            *value = integer(&names.list[*value as usize]).unwrap_or(0);
        }
    }

    /// The names, unless integers stand for themselves.
    fn finish(&mut self, pairs: &mut [(Digest, u64)]) -> Option<&Names> {
        let different = self.names.as_ref().map_or(0, |names| names.list.len() as u64);
        let short = value_bits(self.largest) <= value_bits(different.saturating_sub(1)) + WASTE;
        if self.integers && short {
            self.become_integers(pairs);
        }
        self.names.as_ref()
    }
}

/// An integer that is printed as it was written.
fn integer(text: &[u8]) -> Option<u64> {
    let canonical = text == b"0" || text.first().is_some_and(|first| (b'1'..=b'9').contains(first));
    if canonical { text.to_str().ok()?.parse().ok() } else { None }
}

/// A value in a message.
fn quoted(text: &[u8]) -> String {
    format!("{:?}", truncated(text).as_bstr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_that_come_out_as_they_went_in() {
        for (text, number) in [("0", 0), ("7", 7), ("255", 255), ("18446744073709551615", u64::MAX)] {
            assert_eq!(integer(text.as_bytes()), Some(number));
        }
        for text in ["", "00", "07", "-1", "+1", "1.0", " 1", "1 ", "18446744073709551616", "x", "1e3"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn values_are_wanted_as_lists_files_or_integers() {
        assert!(matches!(wanted("red,green"), Ok(Wanted::Names(names)) if names == ["red", "green"]));
        assert!(matches!(wanted("0..255"), Ok(Wanted::Integers(255))));
        assert!(matches!(wanted("0..1e6"), Ok(Wanted::Integers(1_000_000))));
        assert!(matches!(wanted("@a,b"), Ok(Wanted::File(path)) if path.as_os_str() == "a,b"));
        assert!(matches!(wanted("a..b"), Ok(Wanted::Names(names)) if names == ["a..b"]));
        assert!(wanted("1..5").is_err() && wanted("0..x").is_err());
    }
}
