//! Words that are certainly not in a dictionary.
//!
//! A filter of the dictionary's words says "certainly not" of a word that is misspelt, and a misspelling passes as a
//! word with the rate of the filter. The exact list is read only to suggest what was meant: hundreds of words are one edit
//! away from a misspelling, and the filter lets through hardly more than those that exist.
//!
//! ```
//! use std::ops::ControlFlow;
//! use umbel_text::spelling::{Dictionary, List, each_word};
//!
//! let list = List::parse(&[b"the\nquick\nbrown\nfox\n"])?;
//! let dictionary = Dictionary::new(list, 0.001)?;
//! let mut unknown = Vec::new();
//! each_word(&b"The quick\nbrwon fox"[..], false, |word| {
//!     if !dictionary.knows(&word.text) {
//!         unknown.push((word.text.to_string(), word.line, word.column));
//!     }
//!     ControlFlow::<()>::Continue(())
//! })?;
//! assert_eq!(unknown, [("brwon".to_string(), 2, 1)]);
//! assert_eq!(dictionary.suggest("brwon", 3).words, ["brown"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a word is
//!
//! Letters of any script, with apostrophes between them; a hyphen parts two words. Words with digits or underscores are left
//! out, and so are addresses of pages and people, names of files, and paths, unless they are asked for. Whatever is in
//! the list as it stands is known. A word with a capital is known if it is in small letters; a word in capitals if it is in
//! small ones or with a capital; a word with `'s` if it is without. If the list has words that begin with `l'`, its language elides, as French and
//! Italian do, and `l'amour` is known if `amour` is. A noun that the list has only with a capital is unknown without it.
//!
//! Each of these forms is a question to the filter, and each lets a misspelling pass with the rate: one of small letters
//! once, one with a capital twice, one in capitals three times as often.
//!
//! What is not done: compounds are not taken apart (German makes them at will, and those that are not in the list are told),
//! and `ß` written `SS` is not recognised.

mod list;
mod scan;
mod suggest;

pub use list::{LANGUAGES, Language, List};
pub use scan::{Passed, Word, each_word};
pub use suggest::Suggestions;

use crate::Result;
use umbel::{AnyFilter, Hasher, Kind, Spec};

/// A filter of words, and the list they come from.
#[derive(Debug)]
pub struct Dictionary {
    filter: AnyFilter,
    list: List,
    /// Whether the language has words such as `l'amour`.
    elides: bool,
}

/// A word that every language has which elides.
const ELISION: &str = "l'";

/// What French and Italian elide.
const ELIDED: [&str; 27] = [
    "c'", "d'", "j'", "l'", "m'", "n'", "s'", "t'", "qu'", "jusqu'", "lorsqu'", "puisqu'", "quoiqu'",
    "quelqu'", "presqu'", "un'", "dell'", "all'", "nell'", "sull'", "dall'", "coll'", "quell'", "quest'",
    "bell'", "anch'", "com'",
];

impl Dictionary {
    /// A dictionary that lets a misspelling pass with this rate.
    pub fn new(list: List, rate: f64) -> Result<Dictionary> {
        Dictionary::hashed(list, rate, Hasher::default())
    }

    /// The same, hashed in this way.
    pub fn hashed(list: List, rate: f64, hasher: Hasher) -> Result<Dictionary> {
        let spec = Spec::new(list.len().max(1) as u64, rate)?.with_hasher(hasher);
        let mut filter = AnyFilter::build(Kind::Blocked, &spec)?;
        let words: Vec<&str> = list.iter().collect();
        filter.insert_batch(&words[..])?;
        let elides = list.iter().any(|word| word.starts_with(ELISION));
        Ok(Dictionary { filter, list, elides })
    }

    /// A dictionary that is a filter and nothing else, with further words: it knows, but it cannot suggest, except those.
    pub fn from_filter(mut filter: AnyFilter, more: List) -> Result<Dictionary> {
        let words: Vec<&str> = more.iter().collect();
        if !words.is_empty() {
            filter.insert_batch(&words[..])?;
        }
        let elides = filter.contains(ELISION);
        Ok(Dictionary { filter, list: more, elides })
    }

    /// The filter.
    pub fn filter(&self) -> &AnyFilter {
        &self.filter
    }

    /// The exact list.
    pub fn list(&self) -> &List {
        &self.list
    }

    /// Whether the word may be in the dictionary, as it stands or in a form that it stands for. "No" is certain.
    pub fn knows(&self, word: &str) -> bool {
        self.knows_form(word)
            || word
                .strip_suffix("'s")
                .or_else(|| word.strip_suffix("'S"))
                .is_some_and(|owner| self.knows_form(owner))
            || self.without_elision(word).is_some_and(|(_, rest)| self.knows_form(rest))
    }

    fn knows_form(&self, word: &str) -> bool {
        self.filter.contains(word)
            || match letter_case(word) {
                LetterCase::Lower | LetterCase::Mixed => false,
                LetterCase::Capitalised => self.filter.contains(&word.to_lowercase()[..]),
                LetterCase::Upper => {
                    let lower = word.to_lowercase();
                    self.filter.contains(&lower[..]) || self.filter.contains(&capitalised(&lower)[..])
                }
            }
    }

    /// A word taken apart behind an apostrophe, if there something is elided.
    fn without_elision<'a>(&self, word: &'a str) -> Option<(&'a str, &'a str)> {
        let (elided, rest) = word.split_at(word.find('\'').filter(|_| self.elides)? + 1);
        ELIDED.contains(&&elided.to_lowercase()[..]).then_some((elided, rest))
    }
}

/// The case of a word's letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LetterCase {
    Lower,
    /// A capital first, and small letters.
    Capitalised,
    /// Only capitals, and more than one.
    Upper,
    Mixed,
}

fn letter_case(word: &str) -> LetterCase {
    let mut letters = word.chars().filter(|c| c.is_alphabetic());
    let first = letters.next().is_some_and(char::is_uppercase);
    let (mut capitals, mut others) = (0, 0);
    for letter in letters {
        *if letter.is_uppercase() { &mut capitals } else { &mut others } += 1;
    }
    match (first, capitals, others) {
        (false, 0, _) => LetterCase::Lower,
        (true, 0, _) => LetterCase::Capitalised,
        (true, _, 0) => LetterCase::Upper,
        _ => LetterCase::Mixed,
    }
}

/// Returns a word with its first letter as a capital.
fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
