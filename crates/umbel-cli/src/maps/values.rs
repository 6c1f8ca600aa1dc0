//! The values of a map and their numbers: found in the data, named beforehand, or integers.

use super::pairs::PairBlock;
use crate::args::number;
use crate::input::read_whole;
use crate::report::{printable, truncated};
use anyhow::{Context, Result, bail};
use bstr::ByteSlice;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use umbel::Digest;
use umbel::bloomier::CodeBook;
use umbel::sizing::bloomier::value_bits;

/// Integers are stored as integers if they take at most this many more bits than numbers of a code
/// book.
const MAX_EXTRA_BITS: u32 = 8;

/// The maximum number of names in a code book, if all of them are integers.
const MAX_CODE_BOOK: usize = 1 << 16;

/// The values that the user allows, `--values`.
#[derive(Clone, Debug)]
pub enum ValueSpec {
    /// These names, in this order.
    Names(Vec<String>),
    /// The lines of a file.
    File(PathBuf),
    /// Integers from 0 to this one.
    Integers(u64),
}

impl ValueSpec {
    /// Returns the file that lists the values.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            ValueSpec::File(path) => Some(path.clone()),
            _ => None,
        }
    }
}

/// Parses `red,green,blue`, `@file` or `0..255`.
pub fn value_spec(text: &str) -> Result<ValueSpec, String> {
    match text.strip_prefix('@') {
        Some("") => return Err("name the file after the @".to_string()),
        Some(file) => return Ok(ValueSpec::File(file.into())),
        None if text.is_empty() => return Err("name the values, as red,green,blue".to_string()),
        None => {}
    }
    match text.split_once("..") {
        Some(("0", last)) => return number::count(last).map(ValueSpec::Integers),
        Some((first, last)) if first.parse::<i64>().is_ok() && last.parse::<i64>().is_ok() => {
            return Err("integers start at 0: write it as 0..255".to_string());
        }
        _ => {}
    }
    Ok(ValueSpec::Names(text.split(',').map(str::to_owned).collect()))
}

/// The numbers of values.
pub enum Values {
    /// Values are numbered as they are found.
    Found(FoundValues),
    /// Only these values are allowed.
    Named(ValueNames),
    /// Integers from 0 to this one stand for themselves.
    Integers(u64),
}

/// A value that is not allowed.
pub struct InvalidValue {
    /// The index of the value in its block.
    pub value: usize,
    pub why: String,
}

impl Values {
    pub fn new(wanted: Option<&ValueSpec>) -> Result<Values> {
        Ok(match wanted {
            None => Values::Found(FoundValues::default()),
            Some(ValueSpec::Names(names)) => {
                Values::Named(ValueNames::distinct(names.iter().map(String::as_bytes))?)
            }
            Some(ValueSpec::File(path)) => {
                let text = read_whole(path)
                    .with_context(|| format!("cannot read the values in {}", path.display()))?;
                Values::Named(ValueNames::distinct(text.lines())?)
            }
            Some(ValueSpec::Integers(largest)) => Values::Integers(*largest),
        })
    }

    /// Returns the largest number of a value that is known before the pairs are read.
    pub fn largest(&self) -> u64 {
        match self {
            Values::Found(_) => 0,
            Values::Named(names) => (names.list.len() as u64).saturating_sub(1),
            Values::Integers(largest) => *largest,
        }
    }

    /// Fails if a value of the block is not allowed.
    pub fn check(&self, block: &PairBlock) -> Result<(), InvalidValue> {
        for (value, text) in block.values().enumerate() {
            let why = match self {
                Values::Found(_) => continue,
                Values::Named(names) if names.number(text).is_some() => continue,
                Values::Named(names) => {
                    format!("{} is not among the values of the map: {}", quoted(text), names.listed())
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
            return Err(InvalidValue { value, why });
        }
        Ok(())
    }

    /// Returns the numbers of the values of a checked block. If the numbering changes from names to
    /// integers or back, the numbers in `pairs`, which were read before, are changed too.
    pub fn numbers(&mut self, block: &PairBlock, pairs: &mut [(Digest, u64)]) -> Vec<u64> {
        match self {
            Values::Found(found) => found.numbers(block, pairs),
            Values::Named(names) => block.values().map(|value| names.number(value).unwrap_or(0)).collect(),
            Values::Integers(_) => block.values().map(|value| integer(value).unwrap_or(0)).collect(),
        }
    }

    /// Returns the largest value and the names of values, after all pairs have been read.
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

    /// Returns the value with this number.
    pub fn name(&self, number: u64) -> String {
        match self {
            Values::Found(FoundValues { names: Some(names), .. }) | Values::Named(names) => {
                names.name(number)
            }
            _ => number.to_string(),
        }
    }
}

/// Names of values by number, and numbers by name.
#[derive(Default)]
pub struct ValueNames {
    list: Vec<Arc<[u8]>>,
    numbers: HashMap<Arc<[u8]>, u64>,
}

impl ValueNames {
    /// Numbers the names in order. Fails if one is given twice.
    fn distinct<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<ValueNames> {
        let mut names = ValueNames::default();
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

    /// Lists the first names for a message.
    fn listed(&self) -> String {
        const MAX_LISTED: usize = 20;
        let listed: Vec<String> = self.list.iter().take(MAX_LISTED).map(printable).collect();
        match self.list.len().saturating_sub(MAX_LISTED) {
            0 => listed.join(", "),
            more => format!("{} and {more} more", listed.join(", ")),
        }
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for ValueNames {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> ValueNames {
        let mut names = ValueNames::default();
        for value in values {
            names.add(value.as_ref());
        }
        names
    }
}

/// Values numbered as they are found. They are names until it is clear that integers can stand for
/// themselves.
pub struct FoundValues {
    /// `None` while integers stand for themselves.
    names: Option<ValueNames>,
    /// Whether all values so far are integers.
    integers: bool,
    largest: u64,
}

impl Default for FoundValues {
    fn default() -> FoundValues {
        FoundValues { names: Some(ValueNames::default()), integers: true, largest: 0 }
    }
}

impl FoundValues {
    fn numbers(&mut self, block: &PairBlock, pairs: &mut [(Digest, u64)]) -> Vec<u64> {
        for value in block.values() {
            match integer(value) {
                Some(number) => self.largest = self.largest.max(number),
                None => self.integers = false,
            }
        }
        if self.names.is_none() && !self.integers {
            // The pairs are in the order of the input, so the names get the numbers that they would
            // have got at once.
            let mut names = ValueNames::default();
            pairs.iter_mut().for_each(|(_, value)| *value = names.add(value.to_string().as_bytes()));
            self.names = Some(names);
        }
        let Some(names) = &mut self.names else { return block.values().filter_map(integer).collect() };
        let numbers = block.values().map(|value| names.add(value)).collect();
        if self.integers && names.list.len() > MAX_CODE_BOOK {
            self.become_integers(pairs);
            return block.values().filter_map(integer).collect();
        }
        numbers
    }

    fn become_integers(&mut self, pairs: &mut [(Digest, u64)]) {
        let Some(names) = self.names.take() else { return };
        for (_, value) in pairs {
            *value = integer(&names.list[*value as usize]).unwrap_or(0);
        }
    }

    /// Returns the names, unless integers stand for themselves.
    fn finish(&mut self, pairs: &mut [(Digest, u64)]) -> Option<&ValueNames> {
        let different = self.names.as_ref().map_or(0, |names| names.list.len() as u64);
        let short = value_bits(self.largest) <= value_bits(different.saturating_sub(1)) + MAX_EXTRA_BITS;
        if self.integers && short {
            self.become_integers(pairs);
        }
        self.names.as_ref()
    }
}

/// Parses an integer that would be printed exactly as it is written.
fn integer(text: &[u8]) -> Option<u64> {
    let canonical = text == b"0" || text.first().is_some_and(|first| (b'1'..=b'9').contains(first));
    if canonical { text.to_str().ok()?.parse().ok() } else { None }
}

/// Quotes a value for a message.
fn quoted(text: &[u8]) -> String {
    format!("{:?}", truncated(text).as_bstr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_printed_as_they_were_written() {
        for (text, number) in [("0", 0), ("7", 7), ("255", 255), ("18446744073709551615", u64::MAX)] {
            assert_eq!(integer(text.as_bytes()), Some(number));
        }
        for text in ["", "00", "07", "-1", "+1", "1.0", " 1", "1 ", "18446744073709551616", "x", "1e3"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn values_are_given_as_lists_files_or_integers() {
        assert!(matches!(value_spec("red,green"), Ok(ValueSpec::Names(names)) if names == ["red", "green"]));
        assert!(matches!(value_spec("0..255"), Ok(ValueSpec::Integers(255))));
        assert!(matches!(value_spec("0..1e6"), Ok(ValueSpec::Integers(1_000_000))));
        assert!(matches!(value_spec("@a,b"), Ok(ValueSpec::File(path)) if path.as_os_str() == "a,b"));
        assert!(matches!(value_spec("a..b"), Ok(ValueSpec::Names(names)) if names == ["a..b"]));
        assert!(value_spec("1..5").is_err() && value_spec("0..x").is_err());
    }
}
