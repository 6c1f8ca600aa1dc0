//! The words that the rules hyphenate wrongly: an exact list, and a filter in front of it.

use crate::{Error, Result};
use std::collections::HashMap;
use umbel::spec::Construction;
use umbel::{AnyFilter, Hasher, Kind, Spec};

/// The rate of the filter. Bloom's example goes down to 1/64.
const RATE: f64 = 0.01;

/// The length of the longest word that can be an exception.
const MAX_WORD_BYTES: usize = 255;

/// Words in lower case with their breaks, as byte offsets.
#[derive(Debug, Default)]
pub(super) struct List(HashMap<String, Vec<u8>>);

impl List {
    /// Adds words, one per line, with hyphens or soft hyphens where they may be broken. A word that
    /// is there already is replaced. Empty lines and lines that start with `%` or `#` are comments.
    pub fn add(&mut self, text: &str) -> Result<()> {
        for (number, line) in text.lines().enumerate() {
            let entry = line.trim();
            if entry.is_empty() || entry.starts_with(['%', '#']) {
                continue;
            }
            let (mut word, mut breaks) = (String::new(), Vec::new());
            for c in entry.chars().flat_map(char::to_lowercase) {
                match c {
                    '-' | '\u{ad}' => breaks.push(word.len() as u8),
                    c => word.push(c),
                }
            }
            if word.is_empty() || word.len() > MAX_WORD_BYTES || !word.chars().all(char::is_alphabetic) {
                return Err(Error::NotAnException { line: number as u64 + 1 });
            }
            self.0.insert(word, breaks);
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Builds the filter of all words.
    fn filter(&self, hasher: Hasher) -> Result<AnyFilter> {
        let digests = self.0.keys().map(|word| hasher.digest_bytes(word.as_bytes())).collect();
        let spec = Spec::new((self.len() as u64).max(1), RATE)?.with_hasher(hasher);
        Ok(AnyFilter::from_digests(Kind::Blocked, &spec, digests, &Construction::default())?)
    }
}

/// The list and its filter.
#[derive(Debug)]
pub(super) struct Exceptions {
    pub list: List,
    pub filter: AnyFilter,
}

/// The answer about a word.
pub(super) enum Answer<'a> {
    /// The filter ruled the word out, so the list was not read.
    RuledOut,
    /// The list does not have the word.
    FalsePositive,
    /// The breaks of the word.
    Found(&'a [u8]),
}

impl Exceptions {
    pub fn new(list: List) -> Result<Exceptions> {
        let filter = list.filter(Hasher::default())?;
        Ok(Exceptions { list, filter })
    }

    /// Looks a word in lower case up, in the list only if the filter has it.
    pub fn get(&self, word: &str) -> Answer<'_> {
        if !self.filter.contains_digest(self.filter.hasher().digest_bytes(word.as_bytes())) {
            return Answer::RuledOut;
        }
        self.list.0.get(word).map_or(Answer::FalsePositive, |breaks| Answer::Found(breaks))
    }
}
