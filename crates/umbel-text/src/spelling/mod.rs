//! Finds words that are not in a dictionary.
//!
//! A filter of the dictionary's words answers "certainly not" for a misspelt word, except for a
//! share, the rate, that passes as words. The exact list is read only to suggest corrections:
//! hundreds of strings are one edit away from a misspelling, and the filter lets through hardly
//! more than those that exist.
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
//! A word consists of letters of any script, with apostrophes between them; a hyphen separates two
//! words. Words with digits or underscores are skipped, and so are web and e-mail addresses, file
//! names, and paths, unless the caller asks for them. The forms of a word that count as known are:
//!
//! - any word that is in the list as it stands;
//! - a word with a capital, if the list has it in lower case;
//! - a word in capitals, if the list has it in lower case or with a capital;
//! - a word with `'s`, if the list has it without;
//! - a word with an elided article such as `l'amour`, if the list has `amour` and words that begin
//!   with `l'`, which show that its language elides, as French and Italian do.
//!
//! A noun that the list has only with a capital is unknown without it.
//!
//! Each of these forms is a query to the filter, and each lets a misspelling pass with the rate. So
//! a misspelling with a capital passes twice as often as one in lower case, and one in capitals
//! three times as often.
//!
//! Compounds are not split: German forms them freely, and those that are not in the list are
//! reported. `ß` written as `SS` is not recognised.

mod list;
mod scan;
mod suggest;

pub use list::{LANGUAGES, Language, List};
pub use scan::{Passed, Word, each_word};
pub use suggest::Suggestions;

use crate::Result;
use umbel::{AnyFilter, Hasher, Kind, Spec};

/// A filter of words, and the list from which it was built.
#[derive(Debug)]
pub struct Dictionary {
    filter: AnyFilter,
    list: List,
    /// Whether the language has words such as `l'amour`.
    elides: bool,
}

/// The start of a word that the list of every language with elision has.
const ELISION: &str = "l'";

/// The elided words of French and Italian.
const ELIDED: [&str; 27] = [
    "c'", "d'", "j'", "l'", "m'", "n'", "s'", "t'", "qu'", "jusqu'", "lorsqu'", "puisqu'", "quoiqu'",
    "quelqu'", "presqu'", "un'", "dell'", "all'", "nell'", "sull'", "dall'", "coll'", "quell'", "quest'",
    "bell'", "anch'", "com'",
];

impl Dictionary {
    /// Creates a dictionary that lets a misspelling pass with this rate.
    ///
    /// # Errors
    ///
    /// Fails if the rate is out of range or memory is short.
    pub fn new(list: List, rate: f64) -> Result<Dictionary> {
        Dictionary::hashed(list, rate, Hasher::default())
    }

    /// Creates a dictionary with this rate and this hash.
    ///
    /// # Errors
    ///
    /// Fails if the rate is out of range or memory is short.
    pub fn hashed(list: List, rate: f64, hasher: Hasher) -> Result<Dictionary> {
        let spec = Spec::new(list.len().max(1) as u64, rate)?.with_hasher(hasher);
        let mut filter = AnyFilter::build(Kind::Blocked, &spec)?;
        let words: Vec<&str> = list.iter().collect();
        filter.insert_batch(&words[..])?;
        let elides = list.iter().any(|word| word.starts_with(ELISION));
        Ok(Dictionary { filter, list, elides })
    }

    /// Creates a dictionary from a filter and further words. It recognises all of them, but can
    /// suggest only the further words.
    ///
    /// # Errors
    ///
    /// Fails if the filter cannot take the further words.
    pub fn from_filter(mut filter: AnyFilter, more: List) -> Result<Dictionary> {
        let words: Vec<&str> = more.iter().collect();
        if !words.is_empty() {
            filter.insert_batch(&words[..])?;
        }
        let elides = filter.contains(ELISION);
        Ok(Dictionary { filter, list: more, elides })
    }

    /// Returns the filter.
    pub fn filter(&self) -> &AnyFilter {
        &self.filter
    }

    /// Returns the exact list.
    pub fn list(&self) -> &List {
        &self.list
    }

    /// Returns whether the word may be in the dictionary, as it stands or in another form. "No" is
    /// certain.
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

    /// Splits a word after its apostrophe, if the part before it is an elided word.
    fn without_elision<'a>(&self, word: &'a str) -> Option<(&'a str, &'a str)> {
        let (elided, rest) = word.split_at(word.find('\'').filter(|_| self.elides)? + 1);
        ELIDED.contains(&&elided.to_lowercase()[..]).then_some((elided, rest))
    }
}

/// The case of a word's letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LetterCase {
    Lower,
    /// A capital followed by lower-case letters.
    Capitalised,
    /// Several capitals, and no lower-case letters.
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
