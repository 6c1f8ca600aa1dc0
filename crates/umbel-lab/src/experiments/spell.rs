//! E12-spell: a dictionary in a filter, the misspellings that it misses, and suggestions that
//! hardly read the list.

use super::prelude::*;
use crate::keys::mix;
use crate::measure::Rate;
use std::collections::HashSet;
use umbel_text::spelling::{Dictionary, List};

pub struct Spelling;

const WORDS: Parameter = Parameter::count("n", "words in the list", [50_000, 200_000], [1000, 1_000_000]);
const WRONG: Parameter =
    Parameter::count("queries", "number of misspellings", [100_000, 1_000_000], [1000, 10_000_000]);
const BUILDS: Parameter = Parameter::count("builds", "filters for each rate", [5, 10], [3, 100]);
const RATES: [f64; 4] = [0.1, 0.01, 0.001, 0.0001];

/// Number of misspellings for which words are suggested.
const SUGGESTED: usize = 300;

impl Experiment for Spelling {
    fn about(&self) -> About {
        About {
            id: "E12-spell",
            chapter: Chapter::Documents,
            title: "A spell checker that reads its dictionary only to suggest",
            sources: &[JAMBURA, SCHIERZ],
            claim: "A filter of the dictionary finds misspelt words: a word that it does not know \
                    is certainly not in the dictionary.",
            set_up: "A list of made-up words of two to four syllables, and misspellings of its \
                     words, one or two letters away, none of which is in the list. Filters of the \
                     list at rates from 10 % to 0.01 %, with different hashes: the share of the \
                     misspellings that each takes for words. Then suggestions for misspellings: \
                     every word one letter away is tried, by the list alone, and by the filter \
                     first.",
            advice: "Give the dictionary filter a rate of 0.1 %: it overlooks one misspelling in a \
                     thousand, and suggestions hardly read the list.",
            command: "`umbel spell README.md`",
            seconds: [1, 12],
            timed: false,
            parameters: &[WORDS, WRONG, BUILDS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let words: HashSet<String> = (0..lab.count(&WORDS)).map(|number| made_up(lab, number)).collect();
        let list = words.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        let list = List::parse(&[list.as_bytes()])?;
        let wrong = misspellings(lab, &list, &words);
        let mut findings = Findings::default();
        let mut sweep = Sweep::new("misspellings").chart(
            "misspellings",
            "Missed misspellings, and remaining reads of the list",
            Axis::log("rate of the filter"),
            Axis::log("share"),
        );
        for rate in RATES {
            let (mut missed, mut reported, mut tried, mut read, mut found) = (Vec::new(), 0, 0, 0, 0);
            let mut same = true;
            for build in 0..lab.count(&BUILDS) {
                let dictionary = Dictionary::hashed(list.clone(), rate, lab.hasher(build))?;
                reported += words.iter().filter(|word| !dictionary.knows(word)).count();
                let known = wrong.iter().filter(|word| dictionary.knows(word)).count();
                missed.push(known as f64 / wrong.len() as f64);
                if build == 0 {
                    for word in wrong.iter().take(SUGGESTED) {
                        let suggestions = dictionary.suggest(word, usize::MAX);
                        tried += suggestions.tried;
                        read += suggestions.read;
                        found += suggestions.words.len();
                        same &= suggestions.words.iter().all(|word| words.contains(word));
                    }
                }
            }
            let missed = Rate::from_builds(&missed, wrong.len() as u64);
            let claim = |what: &str| format!("rate {rate}: {what}");
            let asked = SUGGESTED.min(wrong.len()) as f64;
            let [tried, read, found] = [tried as f64, read as f64, found as f64].map(|count| count / asked);
            // The list is read for words that exist, some of them twice, and for false positives.
            let most = 2.5 * found + 1.5 * rate * tried + 1.0;
            sweep
                .at(rate)
                .exact("rate", rate)
                .line("the rate", 0)
                .rate("missed", &missed, 6)
                .dots("misspellings missed", 0)
                .agrees(claim("share of misspellings that are missed"), rate, 0.02)
                .that(claim("no word of the list is reported"), reported == 0)
                .that(claim("everything suggested is in the list"), same)
                .value("missed_sd", missed.deviation, 6)
                .cell("words_told", reported)
                .value("tried_per_word", tried, 1)
                .hidden(read / tried)
                .dots("share of tried words for which the list was read", 1)
                .value("read_per_word", read, 2)
                .at_most(claim("reads of the list per misspelling"), most)
                .value("of_which_exist", found, 2);
        }
        findings.add(sweep);
        findings.verdict =
            "Misspellings are missed at the rate of the filter, and no word of the list is ever \
             reported. Of the hundreds of words that are one letter away from a misspelling, the \
             list is read for only a few: those that exist, and a share as large as the rate. \
             Suggestions are exact."
                .into();
        Ok(findings)
    }
}

/// Returns a word of two to four syllables.
fn made_up(lab: &Lab, number: u64) -> String {
    let mut draws = 0;
    let mut take = |from: &[u8]| {
        draws += 1;
        char::from(from[lab.draw(draws, number, from.len() as u64) as usize])
    };
    let mut word = String::new();
    for _ in 0..2 + number % 3 {
        word.extend([take(b"bcdfghklmnprstvw"), take(b"aeiou"), take(b"nrstlmk")]);
    }
    word
}

/// Returns different words that are one or two letters away from words of the list but not in it.
fn misspellings(lab: &Lab, list: &List, words: &HashSet<String>) -> Vec<String> {
    let originals: Vec<&str> = list.iter().collect();
    let mut seen = HashSet::new();
    let count = lab.count(&WRONG);
    let made = (0..count).map(|number| {
        let original = originals[lab.draw(50, number, originals.len() as u64) as usize];
        let once = misspelt(original, mix(lab.seed.wrapping_add(number)));
        if number % 2 == 0 { once } else { misspelt(&once, mix(lab.seed.wrapping_add(number + count))) }
    });
    made.filter(|word| !words.contains(word) && seen.insert(word.clone())).collect()
}

/// Removes, inserts or replaces a letter, or swaps two.
fn misspelt(word: &str, random: u64) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let [kind, at, letter] = [1, 2, 3].map(|draw: u64| mix(random ^ draw << 60));
    let at = (at % letters.len() as u64) as usize;
    let letter = char::from(b'a' + (letter % 26) as u8);
    match kind % 4 {
        0 => drop(letters.remove(at)),
        1 => letters.insert(at, letter),
        2 => letters[at] = letter,
        _ => letters.swap(at, (at + 1).min(word.len() - 1)),
    }
    letters.into_iter().collect()
}
