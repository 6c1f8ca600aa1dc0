//! E12-vault: encrypted documents with a filter of their words. A server tries to read the words
//! from a plain filter, and from an index with keys.

use super::prelude::*;
use crate::keys::mix;
use umbel_text::vault::insecure_demo;
use umbel_text::vault::zidx::{Id, Index, IndexKey, IndexShape, Noise, Trapdoor};

pub struct DictionaryAttack;

const DICTIONARY: Parameter =
    Parameter::count("dictionary", "words that the server tries", [4000, 50_000], [1000, 1_000_000]);
const WORDS: Parameter = Parameter::count("words", "words per document", [300, 1500], [100, 2000]);
const DOCUMENTS: Parameter = Parameter::count("documents", "number of documents", [4, 20], [2, 200]);

/// The rate of the plain filter, and a bound for that of the indexes, which is 2^-14.
const RATE: f64 = 1e-4;

impl Experiment for DictionaryAttack {
    fn about(&self) -> About {
        About {
            id: "E12-vault",
            chapter: Chapter::Privacy,
            title: "A server that guesses words",
            sources: &[SCHIERZ, GOH],
            claim: "A server can search encrypted documents by a Bloom filter of the words of \
                    each, and learns nothing about them.",
            set_up: "Documents of 300 words, drawn from a dictionary of 4000. Each has a plain \
                     filter, whose hash everybody knows, and an index with secret keys (Z-IDX), \
                     padded to the largest number of words. The server has both, and the \
                     dictionary, but no key. It queries the plain filter for every word. About the \
                     index it knows everything but the keys, so it makes up keys and queries with \
                     those.",
            advice: "Never hand out a plain filter of confidential words; use an index with secret \
                     keys, and know that each search still reveals which documents match.",
            command: "`umbel vault search`",
            seconds: [1, 7],
            timed: false,
            parameters: &[DICTIONARY, WORDS, DOCUMENTS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let (dictionary, words, documents) = (
            lab.count(&DICTIONARY),
            lab.count(&WORDS).min(lab.count(&DICTIONARY) / 2),
            lab.count(&DOCUMENTS),
        );
        let shape = IndexShape::for_rate(2000, RATE)?;
        let all: Vec<String> = (0..dictionary).map(|number| format!("w{:x}", mix(number))).collect();
        let owner = IndexKey::new(&secret(lab, 1), shape.hashes());
        let server = IndexKey::new(&secret(lab, 2), shape.hashes());
        let known: Vec<Trapdoor> = all.iter().map(|word| owner.trapdoor(word)).collect();
        let made_up: Vec<Trapdoor> = all.iter().map(|word| server.trapdoor(word)).collect();

        let mut plain = Guesses::new(dictionary);
        let mut keyed = Guesses::new(dictionary);
        let mut asked = Guesses::new(dictionary);
        // Set bits at the positions that made-up keys give, for words in the document and for
        // others.
        let (mut inside, mut outside) = (Share::default(), Share::default());
        let (mut shared, mut expected, mut variance) = (0.0, 0.0, 0.0);
        let m = shape.bits() as f64;
        for document in 0..documents {
            let (order, members) = drawn(lab, document, dictionary, words);
            let held: Vec<usize> = order.iter().copied().filter(|word| members[*word]).collect();
            let filter = insecure_demo(held.iter().map(|word| &all[*word][..]), RATE)?;
            let trapdoors: Vec<Trapdoor> = held.iter().map(|word| known[*word].clone()).collect();
            let build = |copy: u64| {
                let number = document << 1 | copy;
                let id = Id(secret(lab, 3 + number).first_chunk().copied().unwrap_or_default());
                let mut noise = Noise::new(&secret(lab, 1 << 32 | number));
                (id, Index::build(&shape, &id, 0, &trapdoors, &mut noise))
            };
            let ((id, index), (_, twin)) = (build(0), build(1));
            for (tried, word) in order.iter().enumerate() {
                let member = members[*word];
                plain.note(tried, member, filter.contains(&all[*word][..]));
                asked.note(tried, member, index.contains(&id, 0, &known[*word]));
                let set = made_up[*word].positions(&id, 0, shape.bits());
                let set = set.filter(|position| index.bit(*position)).count() as u64;
                keyed.note(tried, member, set == u64::from(shape.hashes()));
                let share = if member { &mut inside } else { &mut outside };
                share.set += set;
                share.of += u64::from(shape.hashes());
            }
            let both = index.bits().iter().zip(twin.bits()).map(|(a, b)| (a & b).count_ones()).sum::<u32>();
            let (x, y) = (index.ones() as f64, twin.ones() as f64);
            shared += f64::from(both);
            expected += x * y / m;
            variance += x * y * (m - x) * (m - y) / (m * m * (m - 1.0));
        }

        let mut findings = Findings::default();
        let total = (words * documents) as f64;
        let strangers = ((dictionary - words) * documents) as f64;
        let chance = (dictionary * documents) as f64 * shape.rate();
        let tried = dictionary * documents;
        let mut guesses = Sweep::new("guesses").chart(
            "read",
            "Words of the documents that the server reads",
            Axis::linear("share of the dictionary that was tried"),
            Axis::linear("share of the words"),
        );
        guesses.series("plain filter", Mark::Path, 0, plain.path(total));
        guesses.series("index with keys", Mark::Path, 1, keyed.path(total));
        guesses
            .row()
            .cells([
                ("who", &"server, plain filter"),
                ("tried", &tried),
                ("right", &plain.right),
                ("wrong", &plain.wrong),
            ])
            .value("share_of_words", plain.right / total, 4)
            .at_least("plain filter: share of the words that the server reads", 1.0)
            .shows("e33");
        let claim = "plain filter: words that the server reads by mistake";
        guesses.count(claim, plain.wrong as u64, Law::Poisson { mean: strangers * RATE }, 0.1);
        guesses
            .row()
            .cells([
                ("who", &"server, index"),
                ("tried", &tried),
                ("right", &keyed.right),
                ("wrong", &keyed.wrong),
            ])
            .value("share_of_words", keyed.right / total, 4);
        let claim = "index, made-up keys: words that the server believes it found";
        guesses.count(claim, (keyed.right + keyed.wrong) as u64, Law::Poisson { mean: chance }, 0.0);
        guesses
            .row()
            .cells([
                ("who", &"owner's trapdoors, index"),
                ("tried", &tried),
                ("right", &asked.right),
                ("wrong", &asked.wrong),
            ])
            .value("share_of_words", asked.right / total, 4)
            .at_least("index, owner's trapdoors: share of the words found", 1.0);
        findings.add(guesses);
        let mut bits = Sweep::new("bits");
        for (words, share) in [("in the document", &inside), ("others", &outside)] {
            let row = bits.row().cell("words", words).cell("bits_set", share.set).cell("of", share.of);
            row.value("share", share.mean(), 4);
        }
        let claim = "index, made-up keys: share of set bits for words of the document minus that for others";
        let tolerance = 4.0 * (inside.variance() + outside.variance()).sqrt();
        bits.near(claim, inside.mean() - outside.mean(), 0.0, tolerance);
        let claim = "two indexes of the same words: common bits, over all pairs";
        bits.near(claim, shared, expected, 4.0 * variance.sqrt());
        findings.add(bits);
        findings.verdict = "From a plain filter the server reads every word that is in its \
             dictionary, with hardly a mistake, in milliseconds: encryption of the document \
             protects nothing that a dictionary contains. From the index with keys it reads \
             nothing: words of the document and others look the same to it, and so do two \
             documents with the same words. Once the owner searches for a word, the server learns \
             which documents contain it, but not which word it was."
            .into();
        Ok(findings)
    }
}

/// Returns bytes that depend on the seed.
fn secret(lab: &Lab, number: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (i, eight) in (0..).zip(bytes.as_chunks_mut::<8>().0) {
        *eight = lab.draw(number, i, u64::MAX).to_le_bytes();
    }
    bytes
}

/// Returns the dictionary in a random order for a document, and a flag for each word that the
/// document contains.
fn drawn(lab: &Lab, document: u64, dictionary: u64, words: u64) -> (Vec<usize>, Vec<bool>) {
    let mut order: Vec<usize> = (0..dictionary as usize).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, lab.draw(0xd0c << 32 | document, last as u64, last as u64 + 1) as usize);
    }
    let mut members = vec![false; order.len()];
    // Spread the words over the order in which the server tries them.
    let step = dictionary / words.max(1);
    (0..words).for_each(|word| members[order[(word * step) as usize]] = true);
    (order, members)
}

/// Guesses of the words of documents.
struct Guesses {
    right: f64,
    wrong: f64,
    /// Number of right guesses after each tenth of the dictionary.
    tenths: [f64; 11],
    dictionary: u64,
}

impl Guesses {
    fn new(dictionary: u64) -> Guesses {
        Guesses { right: 0.0, wrong: 0.0, tenths: [0.0; 11], dictionary }
    }

    fn note(&mut self, tried: usize, member: bool, taken: bool) {
        match (taken, member) {
            (true, true) => {
                self.right += 1.0;
                let tenth = (tried as u64 * 10 / self.dictionary) as usize + 1;
                self.tenths[tenth..].iter_mut().for_each(|right| *right += 1.0);
            }
            (true, false) => self.wrong += 1.0,
            _ => {}
        }
    }

    fn path(&self, total: f64) -> Vec<(f64, f64)> {
        (0..).zip(self.tenths).map(|(tenth, right)| (f64::from(tenth) / 10.0, right / total)).collect()
    }
}

/// A number of set bits.
#[derive(Default)]
struct Share {
    set: u64,
    of: u64,
}

impl Share {
    fn mean(&self) -> f64 {
        self.set as f64 / self.of.max(1) as f64
    }

    /// Returns the variance of the mean.
    fn variance(&self) -> f64 {
        self.mean() * (1.0 - self.mean()) / self.of.max(1) as f64
    }
}
