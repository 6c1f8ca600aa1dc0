//! E12-password: the words that a filter of passwords reveals to an attacker who sees it before and
//! after they are added.

use super::prelude::*;
use crate::keys::mix;
use std::collections::BTreeSet;
use umbel::internals::Layout;
use umbel::{Bloom, Digest, Hasher, Spec, Standard};

pub struct Difference;

const WORDS: Parameter =
    Parameter::count("words", "words in the dictionary", [100_000, 1_000_000], [10_000, 10_000_000]);
const TRIALS: Parameter = Parameter::count("trials", "added words", [40, 200], [20, 2000]);

/// Words in the filter before, its capacity, and its rate.
const BEFORE: u64 = 10_000;
const CAPACITY: u64 = 20_000;
const RATE: f64 = 0.01;
/// Numbers of words that are added between two looks.
const AT_ONCE: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

impl Experiment for Difference {
    fn about(&self) -> About {
        About {
            id: "E12-password",
            chapter: Chapter::Privacy,
            title: "The difference of two filters gives a password away, unless it is sealed",
            sources: &[HONOROFF, SPAFFORD],
            claim: "Passwords that were used before can be added to a filter of weak ones. One \
                    source says that the hash functions need no cryptographic properties; another \
                    says that the entries leak, unless the hash is a strong one with a secret.",
            set_up: "A standard filter for 20 000 words at 1 % holds 10 000. A word of a \
                     dictionary of 100 000 is added, and an attacker sees the filter before and \
                     after. Candidates are the words of the dictionary to which the filter says no \
                     before and yes after; a candidate explains the difference if adding it to the \
                     filter before gives the one after. With the public hash everybody can try; \
                     with the sealed one and without its secret, an attacker has to guess the \
                     secret; with a stolen secret it is as with the public hash. Then several \
                     words are added between two looks.",
            advice: "Seal a filter of passwords, keep its secret elsewhere, and use a slow hash in \
                     case the secret leaks.",
            command: "`umbel password build`",
            seconds: [1, 30],
            timed: false,
            parameters: &[WORDS, TRIALS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let secret = |number: u64| {
            let mut key = [0; 32];
            for (place, part) in (0..).zip(key.chunks_exact_mut(8)) {
                part.copy_from_slice(&mix(mix(lab.seed ^ number) ^ place).to_le_bytes());
            }
            Hasher::sealed(key)
        };
        let public = lab.hasher(0);
        let sealed = secret(1);
        let cases = [
            ("public", &public, &public),
            ("sealed, secret guessed", &sealed, &secret(2)),
            ("sealed, taken for public", &sealed, &public),
            ("sealed, secret stolen", &sealed, &sealed),
        ];
        let mut findings = Findings::default();
        let mut one_word = Sweep::new("one_word");
        let mut several = Sweep::new("several_words").chart(
            "several_words",
            "Words that a dictionary finds in the difference of two filters",
            Axis::linear("words added between two looks"),
            Axis::linear("words of the dictionary"),
        );
        for (colour, (name, own, tried)) in cases.into_iter().enumerate() {
            let attack = Attack::new(lab, own, tried)?;
            let one = attack.single()?;
            let trials = lab.count(&TRIALS);
            let mean = |count: u64| count as f64 / trials as f64;
            let knows = own == tried;
            let claim = |text: &str| format!("{name}: {text}");
            one_word
                .row()
                .cells([("hash", &name), ("words_added", &trials), ("filter_changed", &one.changed)])
                .value("candidates", mean(one.candidates), 2)
                .value("explain_the_difference", mean(one.explaining), 2)
                .count("word_found", one.found)
                .near(
                    claim("added words found, of those that changed the filter"),
                    if knows { one.changed as f64 } else { 0.0 },
                    0.0,
                )
                .shows("e03")
                // A single new bit is explained by any word that sets it.
                .judge(Criterion::count_at_most(
                    claim("words that explain a difference but were not added"),
                    one.explaining - one.found,
                    Law::Poisson { mean: one.by_chance },
                ))
                .shows("e03");
            let (mut added, mut distinct, mut found, mut by_chance) = (0, 0, 0, 0.0);
            for at_once in AT_ONCE {
                let Several { words, candidates, found: hits } = attack.several(at_once)?;
                several
                    .at(at_once as f64)
                    .cells([("hash", &name), ("added_at_once", &at_once)])
                    .count("candidates", candidates)
                    .when(colour < 2, |point| point.line(format!("{name}: candidates"), colour))
                    .count("found", hits)
                    .when(colour < 2, |point| point.dots(format!("{name}: words really added"), colour));
                added += at_once;
                distinct += words;
                found += hits;
                by_chance += (words * candidates) as f64 / attack.own.len() as f64;
            }
            let text = claim(&format!("of {added} words added several at once, those found"));
            several.judge(if knows {
                // A word to which the filter already says yes changes nothing.
                let probability = 1.0 - attack.rate_before();
                Criterion::count_at_least(text, found, Law::Binomial { trials: distinct, probability })
            } else {
                // Candidates under a wrong hash are random words, and a few may be among the added
                // ones.
                Criterion::count_at_most(text, found, Law::Poisson { mean: by_chance })
            });
        }
        findings.add(one_word);
        findings.add(several);
        findings.verdict = "With a public hash the difference reveals the added word: no other \
             word of the dictionary explains it. When several are added at once, nearly all of \
             them are among a few candidates. Without the secret of a sealed hash the word is \
             never found, and every match is chance. An attacker with the secret finds everything \
             again; only a slow hash helps then, which makes it expensive to try each word of the \
             dictionary."
            .into();
        Ok(findings)
    }
}

/// An attacker with a dictionary and a hash that may be the right one.
struct Attack<'a> {
    lab: &'a Lab,
    before: Bloom<Standard>,
    /// Digests of the dictionary by the owner's hash, and by the attacker's.
    own: Vec<Digest>,
    tried: Vec<Digest>,
}

/// The results of adding words one at a time.
#[derive(Default)]
struct Single {
    changed: u64,
    candidates: u64,
    explaining: u64,
    found: u64,
    /// Expected number of words that explain a difference by chance.
    by_chance: f64,
}

/// The result of adding several words at once.
struct Several {
    /// Number of different words.
    words: u64,
    /// Number of words of the dictionary that the filter contains after but not before.
    candidates: u64,
    /// Number of candidates that were added.
    found: u64,
}

impl Attack<'_> {
    fn new<'a>(lab: &'a Lab, own: &Hasher, tried: &Hasher) -> Result<Attack<'a>> {
        let dictionary = Keys::of_build(1).members(lab.count(&WORDS));
        let mut before = Bloom::<Standard>::build(&Spec::new(CAPACITY, RATE)?.with_hasher(own.clone()))?;
        for digest in lab.digests(own, &lab.keys(2).members(BEFORE)) {
            before.insert_digest(digest);
        }
        let (own, tried) = (lab.digests(own, &dictionary), lab.digests(tried, &dictionary));
        Ok(Attack { lab, before, own, tried })
    }

    fn rate_before(&self) -> f64 {
        self.before.stats().rate_now
    }

    /// Returns the filter after these words of the dictionary are added.
    fn after<'a>(&self, words: impl IntoIterator<Item = &'a usize>) -> Result<Bloom<Standard>> {
        let mut after = self.before.try_clone()?;
        for word in words {
            after.insert_digest(self.own[*word]);
        }
        Ok(after)
    }

    /// Returns the words to which the filter says no before and yes after.
    fn candidates(&self, after: &Bloom<Standard>) -> Vec<usize> {
        let new = |digest: &Digest| after.contains_digest(*digest) && !self.before.contains_digest(*digest);
        self.tried.iter().enumerate().filter(|(_, digest)| new(digest)).map(|(word, _)| word).collect()
    }

    fn single(&self) -> Result<Single> {
        let mut single = Single::default();
        for trial in 0..self.lab.count(&TRIALS) {
            let word = self.lab.draw(3, trial, self.own.len() as u64) as usize;
            let after = self.after(&[word])?;
            if same(&after, &self.before) {
                continue;
            }
            single.changed += 1;
            single.by_chance += self.explained_by_chance(&after);
            let candidates = self.candidates(&after);
            single.candidates += candidates.len() as u64;
            for candidate in candidates {
                let mut guess = self.before.try_clone()?;
                guess.insert_digest(self.tried[candidate]);
                if same(&guess, &after) {
                    single.explaining += 1;
                    single.found += u64::from(candidate == word);
                }
            }
        }
        Ok(single)
    }

    /// Returns the expected number of words of the dictionary that set exactly the new bits of a
    /// filter: all their probes fall on set or new bits, and they miss none of the new ones (by
    /// inclusion and exclusion).
    fn explained_by_chance(&self, after: &Bloom<Standard>) -> f64 {
        let (bits, hashes) = (self.before.layout().bits() as f64, self.before.layout().hashes());
        let [set, all] = [&self.before, after].map(|filter| filter.words().count_ones() as f64);
        let (mut sum, mut choices) = (0.0, 1.0);
        for missed in 0..=(all - set) as u32 {
            let missed = f64::from(missed);
            sum += choices * ((all - missed) / bits).powi(hashes as i32);
            choices *= -(all - set - missed) / (missed + 1.0);
        }
        self.tried.len() as f64 * f64::max(sum, 0.0)
    }

    /// Adds this many words at once and looks for them among the candidates.
    fn several(&self, added: u64) -> Result<Several> {
        let draw = |number| self.lab.draw(4 + added, number, self.own.len() as u64) as usize;
        // A word may be drawn twice.
        let words: BTreeSet<usize> = (0..added).map(draw).collect();
        let candidates = self.candidates(&self.after(&words)?);
        let found = candidates.iter().filter(|candidate| words.contains(candidate)).count() as u64;
        Ok(Several { words: words.len() as u64, candidates: candidates.len() as u64, found })
    }
}

/// Returns whether two filters have the same bits.
fn same(one: &Bloom<Standard>, other: &Bloom<Standard>) -> bool {
    one.words().words() == other.words().words()
}
