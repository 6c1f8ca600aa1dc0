//! Breaks words at the ends of lines: rules for most words, and an exact list for the others.
//!
//! This is the example with which Bloom introduced his filter. A few rules hyphenate most words, and
//! a dictionary has the exceptions. The dictionary is slow, so a filter of its words in memory says
//! whether it has to be read at all. Here the rules are the patterns of TeX, which get all but one
//! word in a hundred or so right, and the exceptions are those that TeX users have collected.
//!
//! ```
//! use umbel_text::hyphenation::{Hyphenator, Language};
//!
//! let mut english = Hyphenator::new(Language::English)?;
//! assert_eq!(english.breaks("Programs"), [3], "Pro-grams, by the patterns");
//! assert_eq!(english.breaks("table"), [2], "ta-ble, by the list");
//! english.add_exceptions("bloom-ier")?;
//! assert_eq!(english.breaks("Bloomier"), [5]);
//!
//! let german = Hyphenator::new(Language::German)?;
//! let mut out = Vec::new();
//! german.hyphenate("Süße Silbentrennung".as_bytes(), &mut out, "-")?;
//! assert_eq!(out, "Sü-ße Sil-ben-tren-nung".as_bytes());
//! # Ok::<(), umbel_text::Error>(())
//! ```
//!
//! # The words
//!
//! A word is looked up in lower case; its own case stays. It is broken after at least two letters,
//! and before at least three in English and two in German. Decomposed letters, such as an `a` with
//! a combining diaeresis, are copied as they are, and the letters around them count as words.
//!
//! # References
//!
//! - B. H. Bloom. Space/time trade-offs in hash coding with allowable errors. Communications of the
//!   ACM 13(7), 1970.
//! - F. M. Liang. Word Hy-phen-a-tion by Com-put-er. PhD thesis, Stanford University, 1983.
//! - The patterns are those of the package hyph-utf8: American English by G. D. C. Kuiken, German by
//!   the Deutschsprachige Trennmustermannschaft. The exceptions are those of the Hyphenation
//!   Exception Log of TUGboat. Their licences are in the files.

mod exceptions;
mod patterns;
mod text;

use crate::{Error, Result};
use exceptions::{Answer, Exceptions, List};
use patterns::Patterns;
use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;
use umbel::AnyFilter;

/// A language with patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// American English.
    English,
    /// German in the spelling of 1996 and 2006.
    German,
}

impl Language {
    /// All languages.
    pub const ALL: [Language; 2] = [Language::English, Language::German];

    /// Returns the code of the language: `en` or `de`.
    pub fn code(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::German => "de",
        }
    }

    /// Returns the smallest numbers of letters before the first break and after the last.
    fn min_letters(self) -> [usize; 2] {
        match self {
            Language::English => [2, 3],
            Language::German => [2, 2],
        }
    }

    fn patterns(self) -> &'static str {
        match self {
            Language::English => include_str!("data/en.patterns"),
            Language::German => include_str!("data/de.patterns"),
        }
    }

    fn exceptions(self) -> &'static str {
        match self {
            Language::English => include_str!("data/en.exceptions"),
            // None are published for these patterns.
            Language::German => "",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for Language {
    type Err = Error;

    fn from_str(code: &str) -> Result<Language> {
        let language = Language::ALL.into_iter().find(|language| language.code() == code);
        language.ok_or_else(|| Error::parameter("language", code, "en or de"))
    }
}

/// Counts of words, and of reads of the list of exceptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of words that are long enough to be broken.
    pub words: u64,
    /// The number of words that the filter let pass, so that the list was read.
    pub read: u64,
    /// The number of words that the list had.
    pub found: u64,
}

impl Counts {
    /// Returns the number of words for which the list was not read.
    pub fn saved(&self) -> u64 {
        self.words - self.read
    }

    /// Returns the number of reads in vain, for false positives of the filter.
    pub fn wasted(&self) -> u64 {
        self.read - self.found
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.words += more.words;
        self.read += more.read;
        self.found += more.found;
    }
}

/// The rules and exceptions of a language.
#[derive(Debug)]
pub struct Hyphenator {
    language: Language,
    patterns: Patterns,
    exceptions: Exceptions,
}

impl Hyphenator {
    /// Creates the hyphenator of a language.
    ///
    /// # Errors
    ///
    /// Fails if memory is short.
    pub fn new(language: Language) -> Result<Hyphenator> {
        let mut list = List::default();
        list.add(language.exceptions())?;
        let (patterns, exceptions) = (Patterns::parse(language.patterns()), Exceptions::new(list)?);
        Ok(Hyphenator { language, patterns, exceptions })
    }

    /// Adds exceptions, one per line, such as `ta-ble`. They take precedence over those of the
    /// language. A word without hyphens is never broken. Empty lines and lines that start with `%`
    /// or `#` are comments.
    ///
    /// # Errors
    ///
    /// Fails if a line is not a word with hyphens, or memory is short. Some of the lines before it
    /// may be in effect then.
    pub fn add_exceptions(&mut self, text: &str) -> Result<()> {
        let mut list = std::mem::take(&mut self.exceptions.list);
        let added = list.add(text);
        self.exceptions = Exceptions::new(list)?;
        added
    }

    /// Returns the number of exceptions.
    pub fn exceptions(&self) -> usize {
        self.exceptions.list.len()
    }

    /// Returns the filter of the exceptions.
    pub fn filter(&self) -> &AnyFilter {
        &self.exceptions.filter
    }

    /// Returns the byte offsets in a word where it may be broken.
    pub fn breaks(&self, word: &str) -> Vec<usize> {
        self.breaks_counted(word, &mut Counts::default())
    }

    /// Returns the breaks that the patterns of at most `max_letters` letters allow, without the
    /// exceptions. The end of the word counts as a letter.
    ///
    /// ```
    /// use umbel_text::hyphenation::{Hyphenator, Language};
    /// let english = Hyphenator::new(Language::English)?;
    /// assert_eq!(english.breaks("hyphenation"), [2, 6, 7]);
    /// assert_eq!(english.breaks_by_rule("hyphenation", 9), [2, 6]);
    /// assert_eq!(english.breaks_by_rule("hyphenation", 4), [2]);
    /// # Ok::<(), umbel_text::Error>(())
    /// ```
    pub fn breaks_by_rule(&self, word: &str, max_letters: usize) -> Vec<usize> {
        let Some(folded) = Folded::new(word, self.language.min_letters()) else { return Vec::new() };
        self.by_rule(&folded, max_letters)
    }

    fn by_rule(&self, word: &Folded, max_letters: usize) -> Vec<usize> {
        let digits = self.patterns.digits(&word.lower, max_letters);
        word.breaks(|place| digits[place] % 2 == 1)
    }

    fn breaks_counted(&self, word: &str, counts: &mut Counts) -> Vec<usize> {
        let Some(folded) = Folded::new(word, self.language.min_letters()) else { return Vec::new() };
        counts.words += 1;
        match self.exceptions.get(&folded.lower) {
            Answer::RuledOut => self.by_rule(&folded, usize::MAX),
            Answer::FalsePositive => {
                counts.read += 1;
                self.by_rule(&folded, usize::MAX)
            }
            Answer::Found(breaks) => {
                counts.read += 1;
                counts.found += 1;
                folded.breaks(|place| breaks.contains(&(place as u8)))
            }
        }
    }
}

/// A word in lower case, letter by letter.
struct Folded {
    lower: String,
    /// The places where the word is long enough on both sides: offsets in `lower` and in the word.
    places: Vec<(usize, usize)>,
}

impl Folded {
    /// Returns `None` if the word is too short or too long to be broken, or if a letter becomes
    /// several in lower case.
    fn new(word: &str, [before, after]: [usize; 2]) -> Option<Folded> {
        /// The length of the longest word in bytes. A longer one is not a word of these languages.
        const MAX_WORD_BYTES: usize = 255;
        let count = word.chars().count();
        if count < before + after || word.len() > MAX_WORD_BYTES {
            return None;
        }
        let (mut lower, mut places) = (String::with_capacity(word.len()), Vec::with_capacity(count));
        for (number, (offset, c)) in word.char_indices().enumerate() {
            if (before..=count - after).contains(&number) {
                places.push((lower.len(), offset));
            }
            let mut letters = c.to_lowercase();
            lower.extend(letters.next());
            if letters.next().is_some() {
                return None;
            }
        }
        Some(Folded { lower, places })
    }

    /// Returns the places in the word where `allowed` holds of the offset in lower case.
    fn breaks(&self, allowed: impl Fn(usize) -> bool) -> Vec<usize> {
        self.places.iter().filter(|(place, _)| allowed(*place)).map(|(_, offset)| *offset).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exception_differs_from_the_rules() {
        let english = Hyphenator::new(Language::English).expect("English");
        let list = Language::English.exceptions();
        let words = list.lines().filter(|line| !line.starts_with('%'));
        for entry in words {
            let word = entry.replace('-', "");
            let by_rule = english.breaks_by_rule(&word, usize::MAX);
            assert_ne!(english.breaks(&word), by_rule, "{entry}");
        }
    }
}
