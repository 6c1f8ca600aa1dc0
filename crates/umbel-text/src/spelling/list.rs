//! The exact list of words, and the locations of word lists on Debian.

use crate::tokens::{nfc, to_apostrophe};
use crate::{Error, Result};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A language with a word list in a Debian package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language {
    /// The code of the language, as in `--lang de`.
    pub code: &'static str,
    /// The file name of the list.
    pub file: &'static str,
    /// The package that contains the list.
    pub package: &'static str,
}

/// The supported languages.
pub const LANGUAGES: [Language; 6] = [
    Language { code: "en", file: "american-english", package: "wamerican" },
    Language { code: "en-gb", file: "british-english", package: "wbritish" },
    Language { code: "de", file: "ngerman", package: "wngerman" },
    Language { code: "fr", file: "french", package: "wfrench" },
    Language { code: "it", file: "italian", package: "witalian" },
    Language { code: "es", file: "spanish", package: "wspanish" },
];

impl Language {
    /// Returns the language with this code, in upper or lower case.
    pub fn from_code(code: &str) -> Option<Language> {
        LANGUAGES.into_iter().find(|language| language.code.eq_ignore_ascii_case(code))
    }

    /// Returns the path of the list when its package is installed.
    pub fn path(&self) -> PathBuf {
        Path::new("/usr/share/dict").join(self.file)
    }
}

/// The maximum number of letters that suggestions try. No alphabet has more; other letters in a
/// list belong to other languages.
const MAX_LETTERS: usize = 64;

/// The sorted words of a language. The list confirms words that pass the filter.
#[derive(Clone, Debug, Default)]
pub struct List {
    text: String,
    /// The range of each word in `text`, in the order of the words.
    words: Vec<Range<u32>>,
    /// The lower-case letters of the words, the most frequent first.
    letters: Vec<char>,
}

impl List {
    /// Parses files with one entry per line, in UTF-8 or otherwise in Latin-1. Text after a slash
    /// is a note for other spell checkers and is ignored. An entry of several words, with spaces or
    /// hyphens, adds each of them.
    ///
    /// ```
    /// use umbel_text::spelling::List;
    /// let list = List::parse(&[b"apple\r\nrendez-vous\n\n", b"caf\xe9\n"])?;
    /// assert_eq!(list.len(), 4);
    /// assert!(list.contains("vous") && list.contains("café") && !list.contains("rendez-vous"));
    /// # Ok::<(), umbel_text::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the words take more than 4 GiB.
    pub fn parse(files: &[&[u8]]) -> Result<List> {
        let mut list = List::default();
        let mut frequency: HashMap<char, u64> = HashMap::new();
        for file in files {
            let file = decoded(file);
            for line in file.strip_prefix('\u{feff}').unwrap_or(&file).lines() {
                let entry = line.split('/').next().unwrap_or_default();
                for word in entry.split(|c: char| c.is_whitespace() || c == '-' || c == '\u{2010}') {
                    list.add(word)?;
                }
            }
        }
        let text = &list.text;
        list.words.sort_by(|a, b| word(text, a).cmp(word(text, b)));
        list.words.dedup_by(|a, b| word(text, a) == word(text, b));
        for letter in list.iter().flat_map(str::chars).filter(|c| c.is_lowercase() || *c == '\'') {
            *frequency.entry(letter).or_default() += 1;
        }
        list.letters = frequency.keys().copied().collect();
        list.letters.sort_by_key(|letter| (std::cmp::Reverse(frequency[letter]), *letter));
        list.letters.truncate(MAX_LETTERS);
        Ok(list)
    }

    fn add(&mut self, word: &str) -> Result<()> {
        if !word.contains(char::is_alphabetic) {
            return Ok(());
        }
        let offset = |end: usize| {
            let needs = "at most 4 GiB of words";
            u32::try_from(end).map_err(|_| Error::parameter("list", end, needs))
        };
        let start = offset(self.text.len())?;
        self.text.extend(nfc(word).chars().map(to_apostrophe));
        self.words.push(start..offset(self.text.len())?);
        Ok(())
    }

    /// Returns whether the list has this word in this spelling.
    pub fn contains(&self, sought: &str) -> bool {
        self.words.binary_search_by(|range| word(&self.text, range).cmp(sought)).is_ok()
    }

    /// Returns the words in the order of their bytes.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|range| word(&self.text, range))
    }

    /// Returns the number of distinct words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns whether the list has no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the lower-case letters of the words, the most frequent first.
    pub fn letters(&self) -> &[char] {
        &self.letters
    }
}

fn word<'a>(text: &'a str, range: &Range<u32>) -> &'a str {
    &text[range.start as usize..range.end as usize]
}

/// Decodes text as UTF-8, or as Latin-1 if it is not valid UTF-8.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
    }
}
