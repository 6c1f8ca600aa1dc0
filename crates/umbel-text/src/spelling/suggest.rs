//! Suggests corrections: the words of the list that are one edit away.

use super::{Dictionary, LetterCase, capitalised, letter_case};
use umbel::Digest;
use umbel::internals::TILE;
use unicode_normalization::UnicodeNormalization;

/// The longest word that gets suggestions. A longer one is unlikely to be a word with one wrong
/// letter.
const MAX_WORD_LETTERS: usize = 64;

/// The shortest word for which all edits are tried. Half of all shorter words are one edit away, so
/// only capitals and the order of two letters are tried for those.
const MIN_WORD_LETTERS: usize = 3;

/// Suggestions for an unknown word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suggestions {
    /// The words, the likeliest first.
    pub words: Vec<String>,
    /// The number of candidates one edit away. The filter tested all of them.
    pub tried: u64,
    /// The number of candidates that passed the filter, so that the list was searched.
    pub read: u64,
}

/// A kind of mistake, from the likeliest to the least likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edit {
    Case,
    Accent,
    Transposition,
    Doubling,
    Vowel,
    Deletion,
    Insertion,
    Substitution,
}

impl Dictionary {
    /// Returns words of the list at edit distance 1 (one letter too many, too few or wrong, or two
    /// in the wrong order), at most `most`, the likeliest first. They are capitalised like the
    /// word.
    ///
    /// ```
    /// use umbel_text::spelling::{Dictionary, List};
    /// let dictionary = Dictionary::new(List::parse(&[b"brown\nbrow\nHaus\nletter\n"])?, 0.01)?;
    /// assert_eq!(dictionary.suggest("Brwon", 5).words, ["Brown"]);
    /// assert_eq!(dictionary.suggest("haus", 5).words, ["Haus"]);
    /// assert_eq!(dictionary.suggest("LETER", 5).words, ["LETTER"]);
    /// # Ok::<(), umbel_text::Error>(())
    /// ```
    pub fn suggest(&self, word: &str, most: usize) -> Suggestions {
        let mut trial = Trial::new(self);
        let mut found: Vec<((bool, Edit), String)> = Vec::new();
        let (elided, rest) = self.without_elision(word).unwrap_or(("", word));
        let case = letter_case(rest);
        for base in bases(rest, case) {
            let letters: Vec<char> = base.chars().collect();
            if letters.len() <= MAX_WORD_LETTERS {
                trial.edits(&letters);
            }
        }
        trial.finish();
        for (rank, candidate) in trial.found {
            let word = match case {
                LetterCase::Capitalised => capitalised(&candidate),
                LetterCase::Upper if candidate.chars().count() > 1 => candidate.to_uppercase(),
                _ => candidate,
            };
            found.push((rank, format!("{elided}{word}")));
        }
        found.sort();
        let mut words: Vec<String> = Vec::new();
        for (_, candidate) in found {
            if words.len() < most && candidate != word && !words.contains(&candidate) {
                words.push(candidate);
            }
        }
        Suggestions { words, tried: trial.tried, read: trial.read }
    }
}

/// Returns the forms in which a word may be in the list.
fn bases(word: &str, case: LetterCase) -> Vec<String> {
    let lower = word.to_lowercase();
    let mut bases = match case {
        LetterCase::Lower => vec![lower.clone()],
        LetterCase::Capitalised | LetterCase::Mixed => vec![lower.clone(), word.to_owned()],
        LetterCase::Upper => vec![lower.clone(), capitalised(&lower), word.to_owned()],
    };
    bases.dedup();
    bases
}

/// Candidates that pass through the filter, in tiles, to the list.
struct Trial<'a> {
    dictionary: &'a Dictionary,
    /// Candidates that wait until the tile is full.
    waiting: Vec<((bool, Edit), String)>,
    digests: Vec<Digest>,
    found: Vec<((bool, Edit), String)>,
    tried: u64,
    read: u64,
}

impl<'a> Trial<'a> {
    fn new(dictionary: &'a Dictionary) -> Trial<'a> {
        let (waiting, digests, found) = (Vec::with_capacity(TILE), Vec::with_capacity(TILE), Vec::new());
        Trial { dictionary, waiting, digests, found, tried: 0, read: 0 }
    }

    /// Tries every word one edit away. Edits of the first letter rank last, because it is seldom
    /// wrong.
    fn edits(&mut self, word: &[char]) {
        let letters = self.dictionary.list.letters();
        let mut edited = String::new();
        let mut join = |parts: [&[char]; 3]| {
            edited.clear();
            edited.extend(parts.into_iter().flatten());
            edited.clone()
        };
        let whole: String = word.iter().collect();
        self.tried((false, Edit::Case), capitalised(&whole));
        self.tried((false, Edit::Case), whole.to_uppercase());
        if let [first, second] = word {
            self.tried((true, Edit::Transposition), [*second, *first].iter().collect());
        }
        if word.len() < MIN_WORD_LETTERS {
            return;
        }
        for (i, letter) in word.iter().enumerate() {
            let (before, after) = (&word[..i], &word[i + 1..]);
            let doubled = before.last() == Some(letter);
            let edit = if doubled { Edit::Doubling } else { Edit::Deletion };
            self.tried((i == 0, edit), join([before, after, &[]]));
            if let Some((next, after)) = after.split_first() {
                self.tried((i == 0, Edit::Transposition), join([before, &[*next, *letter], after]));
            }
            for other in letters.iter().filter(|other| *other != letter) {
                let edit = exchange(*letter, *other);
                self.tried((i == 0 && edit != Edit::Accent, edit), join([before, &[*other], after]));
            }
        }
        for i in 0..=word.len() {
            let (before, after) = word.split_at(i);
            for letter in letters {
                let doubled = before.last() == Some(letter) || after.first() == Some(letter);
                let edit = if doubled { Edit::Doubling } else { Edit::Insertion };
                self.tried((i == 0, edit), join([before, &[*letter], after]));
            }
        }
    }

    fn tried(&mut self, rank: (bool, Edit), candidate: String) {
        self.tried += 1;
        self.digests.push(self.dictionary.filter.hasher().digest_bytes(candidate.as_bytes()));
        self.waiting.push((rank, candidate));
        if self.waiting.len() == TILE {
            self.finish();
        }
    }

    /// Tests the waiting candidates with the filter, and looks up those that pass in the list.
    fn finish(&mut self) {
        let passed = self.dictionary.filter.contains_tile(&self.digests);
        for (i, (rank, candidate)) in self.waiting.drain(..).enumerate() {
            if passed >> i & 1 == 1 {
                self.read += 1;
                if self.dictionary.list.contains(&candidate) {
                    self.found.push((rank, candidate));
                }
            }
        }
        self.digests.clear();
    }
}

/// Classifies the mistake of writing one letter for another.
fn exchange(one: char, other: char) -> Edit {
    let plain = |c: char| std::iter::once(c).nfd().next().unwrap_or(c);
    let vowel = |c: char| matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'y');
    match (plain(one), plain(other)) {
        (one, other) if one == other => Edit::Accent,
        (one, other) if vowel(one) && vowel(other) => Edit::Vowel,
        _ => Edit::Substitution,
    }
}
