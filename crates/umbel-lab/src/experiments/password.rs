//! E12-password: what a filter of passwords gives away to whoever sees it before and after a word is added.

use crate::keys::mix;
use crate::{
    About, Axis, Chart, Criterion, Experiment, Findings, Keys, Lab, Mark, Parameter, Result, Series, Table,
};

use umbel::{Bloom, Digest, Hasher, Spec, Standard};

pub struct Difference;

const WORDS: Parameter =
    Parameter::count("words", "words in the dictionary", [100_000, 1_000_000], [10_000, 10_000_000]);
const TRIALS: Parameter = Parameter::count("trials", "words that are added", [40, 200], [20, 2000]);

/// Words in the filter before, those it is made for, and its rate.
const BEFORE: u64 = 10_000;
const CAPACITY: u64 = 20_000;
const RATE: f64 = 0.01;
/// Words that are added between two looks.
const AT_ONCE: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

impl Experiment for Difference {
    fn about(&self) -> About {
        About {
            id: "E12-password",
            title: "The difference of two filters gives a password away, unless it is sealed",
            source: "Honoroff 2006 (An Examination of Bloom Filters); Spafford 1992",
            claim: "Passwords that were used before can be added to a filter of weak ones. The hash functions need no cryptographic \
                    properties, says one source; the entries leak, says another, unless the hash is a strong one with a secret.",
            set_up: "A standard filter for 20 000 words at 1 % holds 10 000. A word of a dictionary of 100 000 is added, and somebody \
                     sees the filter before and after. Candidates are the words of the dictionary to which it says no before and yes \
                     after; of these, a word explains the difference if adding it to the filter before gives the one after. \
                     With the public hash everybody can try; with the sealed one without its secret, one has to guess it; and with the \
                     secret it is as with the public one. Then several words are added between two looks.",
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
        let mut table = Table::new(
            "one_word",
            &["hash", "words_added", "filter_changed", "candidates", "explain_the_difference", "word_found"],
        );
        let mut series = Vec::new();
        let mut several = Table::new("several_words", &["hash", "added_at_once", "candidates", "found"]);
        for (colour, (name, own, tried)) in cases.into_iter().enumerate() {
            let attack = Attack::new(lab, own, tried)?;
            let one = attack.single()?;
            let trials = lab.count(&TRIALS);
            let mean = |count: u64| count as f64 / trials as f64;
            table.add([
                name.into(),
                trials.to_string(),
                one.changed.to_string(),
                format!("{:.2}", mean(one.candidates)),
                format!("{:.2}", mean(one.explaining)),
                one.found.to_string(),
            ]);
            let knows = own == tried;
            let claim = |text: &str| format!("{name}: {text}");
            let expected = if knows { one.changed as f64 } else { 0.0 };
            let text = claim("added words that are found whenever the filter changed");
            findings.criteria.push(Criterion::near(text, one.found as f64, expected, 0.0).shows("e03"));
            let text = claim("words that explain a difference, and were not added");
            let wrong = one.explaining - one.found;
            findings.criteria.push(Criterion::at_most(text, wrong as f64, 0.0).shows("e03"));
            let (mut left, mut found) = (Vec::new(), Vec::new());
            for added in AT_ONCE {
                let (candidates, hits) = attack.several(added)?;
                several.add([name.into(), added.to_string(), candidates.to_string(), hits.to_string()]);
                left.push((added as f64, candidates as f64));
                found.push((added as f64, hits as f64));
            }
            let all: f64 = found.iter().map(|(_, hits)| hits).sum();
            let added: u64 = AT_ONCE.iter().sum();
            let text = claim(&format!("of {added} words that were added several at once, found"));
            findings.criteria.push(if knows {
                // A word to which the filter says yes already changes nothing.
                let share = 1.0 - attack.rate_before();
                let chance = 4.0 * (added as f64 * share * (1.0 - share)).sqrt();
                Criterion::at_least(text, all, added as f64 * share - chance)
            } else {
                Criterion::at_most(text, all, 0.0)
            });
            if colour < 2 {
                series.push(Series::new(format!("{name}: candidates"), Mark::Line, colour, left));
                series.push(Series::new(format!("{name}: words really added"), Mark::Dots, colour, found));
            }
        }
        findings.tables.push(table);
        findings.tables.push(several);
        findings.charts.push(Chart {
            name: "several_words".into(),
            title: "What a dictionary finds in the difference of two filters".into(),
            x: Axis::linear("words added between two looks"),
            y: Axis::linear("words of the dictionary"),
            series,
        });
        findings.verdict = "With a public hash the difference names the added word: no other word of the dictionary explains it. When \
                            several are added at once, nearly all of them are among a few candidates. Without the secret of a sealed \
                            hash the word is never found, and what is found is chance. Whoever has the secret finds everything again; \
                            against that only a slow hash helps, which makes each word of the dictionary dear."
            .into();
        Ok(findings)
    }
}

/// Somebody with a dictionary, and a hash that may be the right one.
struct Attack<'a> {
    lab: &'a Lab,
    before: Bloom<Standard>,
    /// The dictionary as the filter's owner hashes it, and as the attacker does.
    own: Vec<Digest>,
    tried: Vec<Digest>,
}

/// What became of words that were added one at a time.
#[derive(Default)]
struct Single {
    changed: u64,
    candidates: u64,
    explaining: u64,
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

    /// The filter with more words of the dictionary.
    fn after(&self, words: &[usize]) -> Result<Bloom<Standard>> {
        let mut after = self.before.try_clone()?;
        for word in words {
            after.insert_digest(self.own[*word]);
        }
        Ok(after)
    }

    /// The words to which the filter said no before, and says yes after.
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

    /// How many candidates so many words leave, and how many of them are right.
    fn several(&self, added: u64) -> Result<(usize, usize)> {
        let draw = |number| self.lab.draw(4 + added, number, self.own.len() as u64) as usize;
        let words: Vec<usize> = (0..added).map(draw).collect();
        let candidates = self.candidates(&self.after(&words)?);
        let found = candidates.iter().filter(|candidate| words.contains(candidate)).count();
        Ok((candidates.len(), found))
    }
}

/// Whether two filters have the same bits.
fn same(one: &Bloom<Standard>, other: &Bloom<Standard>) -> bool {
    one.words().words() == other.words().words()
}
