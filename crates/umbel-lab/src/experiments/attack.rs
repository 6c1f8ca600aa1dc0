//! E12-attack: attackers that choose the keys to insert or to query. Each attack is made on a filter
//! with a public hash and on one with a secret.

use super::prelude::*;
use crate::keys::mix;
use std::collections::HashSet;
use umbel::hash::reduce;
use umbel::internals::Layout;
use umbel::{Bloom, Digest, Hasher, Key, Spec, Standard};

pub struct ChosenKeys;

const KEYS: Parameter = Parameter::count("n", "keys of a filter", [4000, 40_000], [500, 1_000_000]);
const QUERIES: Parameter =
    Parameter::count("queries", "queries from which is learned", [200_000, 2_000_000], [10_000, 50_000_000]);
const CRAFTED: Parameter =
    Parameter::count("crafted", "keys crafted to be false positives", [1000, 4000], [100, 100_000]);
const VICTIMS: Parameter = Parameter::count("victims", "keys to be covered", [200, 1000], [50, 10_000]);

const RATE: f64 = 0.01;
/// The number of points of a curve.
const STEPS: u64 = 8;
/// The share by which theory may be off besides chance, since the bits of a key are distinct only
/// nearly always.
const SLACK: f64 = 0.01;

/// The streams of keys that are not members, one for each attack.
const POLLUTING: u64 = 1;
const LEARNING: u64 = 2;
const CRAFTING: u64 = 3;
const COVERING: u64 = 4;
const STRANGERS: u64 = 5;

impl Experiment for ChosenKeys {
    fn about(&self) -> About {
        About {
            id: "E12-attack",
            chapter: Chapter::Privacy,
            title: "Chosen keys break the rate of a public hash, but not that of a keyed one",
            sources: &[HONOROFF, UNTITLED, GERBET, NAOR],
            claim: "One source says that the hash functions of a Bloom filter need no cryptographic \
                    properties. Others show that the rate means nothing if an attacker knows the \
                    hash, and that with a secret hash it holds for any choice of keys, even if \
                    each choice depends on all earlier answers.",
            set_up: "Standard filters for 4000 keys at 1 %, with a public hash (XXH3) and with a \
                     keyed one (SipHash-1-3), whose secret the attackers do not know. Pollution: \
                     the attacker chooses the keys to insert, and tries candidates until all k \
                     bits of one are new. Against the keyed filter, the attacker guesses a secret, \
                     or inserts only keys that the filter denies. Queries: the attacker knows no \
                     member, sends 200 000 queries, learns from the positive answers which bits \
                     are set, and crafts keys that have only such bits. A second attacker queries \
                     the neighbours of false positives. Covering: the attacker inserts a few keys \
                     that together set all bits of a victim, which is never inserted. Counts have \
                     to follow their law within four standard deviations, which chance exceeds \
                     once in 16 000 times.",
            advice: "Use a keyed hash wherever others choose keys to insert or to query: `fast` \
                     costs an attacker milliseconds for each colliding key.",
            command: "`umbel build --key-file`; `umbel uniq` draws a secret by itself",
            seconds: [2, 20],
            timed: false,
            parameters: &[KEYS, QUERIES, CRAFTED, VICTIMS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let public = lab.hasher(0);
        let mut findings = Findings::default();
        pollute(lab, &public, &mut findings)?;
        query(lab, &public, &mut findings)?;
        cover(lab, &public, &mut findings)?;
        findings.verdict = "The rate of a public hash breaks at little cost. After n chosen keys \
             it is more than ten times as high, for some hundred candidates per key. A few \
             harmless keys hide any other key. An attacker who only sends queries soon gets a \
             false positive with every query, without knowing a member. With a secret hash the \
             same attacks have the results of chance: answers reveal nothing about the next key. \
             The only gain is to skip keys that the filter already reports as present, which \
             saves one insertion in a hundred."
            .into();
        Ok(findings)
    }
}

/// Returns a keyed hash whose secret depends on the seed.
fn secret(lab: &Lab, number: u64) -> Hasher {
    let halves = [2 * number, 2 * number + 1].map(|half| mix(mix(lab.seed ^ 0x5ec3e7) ^ half).to_le_bytes());
    let mut key = [0; 16];
    key.copy_from_slice(halves.as_flattened());
    Hasher::keyed(key)
}

fn empty(lab: &Lab, hasher: &Hasher) -> Result<Bloom<Standard>> {
    Ok(Bloom::<Standard>::build(&Spec::new(lab.count(&KEYS), RATE)?.with_hasher(hasher.clone()))?)
}

/// The bits of keys according to the hash that an attacker assumes.
struct Model<'a> {
    lab: &'a Lab,
    hasher: &'a Hasher,
    bits: u64,
    hashes: usize,
}

impl<'a> Model<'a> {
    fn new(lab: &'a Lab, hasher: &'a Hasher, filter: &Bloom<Standard>) -> Model<'a> {
        let layout = filter.layout();
        Model { lab, hasher, bits: layout.bits(), hashes: layout.hashes() as usize }
    }

    fn bits_of(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        let (bits, digest) = (self.bits, digest(self.lab, self.hasher, key));
        digest.stream().take(self.hashes).map(move |x| reduce(x, bits) as usize)
    }
}

/// Returns the digest of a key as filters see it.
fn digest(lab: &Lab, hasher: &Hasher, key: u64) -> Digest {
    (lab.spoil)(key.digest(hasher))
}

/// A number of trials until a success, summed over several successes: its mean and variance.
#[derive(Clone, Copy, Default)]
struct Effort {
    mean: f64,
    variance: f64,
}

impl Effort {
    /// Adds the trials until a success of this probability.
    fn add(&mut self, probability: f64) {
        self.mean += 1.0 / probability;
        self.variance += (1.0 - probability) / probability.powi(2);
    }

    fn tolerance(self) -> f64 {
        4.0 * self.variance.sqrt() + SLACK * self.mean
    }
}

// ---- Pollution

/// A way to choose the keys to insert.
enum Choice<'a> {
    /// All bits have to be new under this hash.
    AllNew(&'a Hasher),
    /// The filter has to deny the key.
    Denied,
}

/// The set bits after each eighth of the keys, and the number of candidates.
struct Pollution {
    filter: Bloom<Standard>,
    ones: Vec<u64>,
    tried: u64,
}

fn polluted(lab: &Lab, own: &Hasher, choice: &Choice<'_>) -> Result<Pollution> {
    let (mut filter, n) = (empty(lab, own)?, lab.count(&KEYS));
    let model = match choice {
        Choice::AllNew(hasher) => Some(Model::new(lab, hasher, &filter)),
        Choice::Denied => None,
    };
    let mut believed = vec![false; filter.layout().bits() as usize];
    let (mut inserted, mut tried, mut ones) = (0, 0, Vec::new());
    while inserted < n {
        let key = lab.keys(POLLUTING).stranger(tried);
        tried += 1;
        let chosen = match &model {
            Some(model) => take_new(&mut believed, model.bits_of(key)),
            None => !filter.contains_digest(digest(lab, own, key)),
        };
        if chosen {
            filter.insert_digest(digest(lab, own, key));
            inserted += 1;
            if inserted * STEPS / n > (inserted - 1) * STEPS / n {
                ones.push(filter.words().count_ones());
            }
        }
    }
    Ok(Pollution { filter, ones, tried })
}

/// Sets these bits if they are all different and new. Returns whether they are.
fn take_new(set: &mut [bool], bits: impl Iterator<Item = usize>) -> bool {
    let (mut taken, mut all_new) = (Vec::new(), true);
    for bit in bits {
        if std::mem::replace(&mut set[bit], true) {
            all_new = false;
            break;
        }
        taken.push(bit);
    }
    if !all_new {
        taken.into_iter().for_each(|bit| set[bit] = false);
    }
    all_new
}

fn pollute(lab: &Lab, public: &Hasher, findings: &mut Findings) -> Result<()> {
    let (keyed, guessed, n) = (secret(lab, 0), secret(lab, 1), lab.count(&KEYS));
    let mut sweep = Sweep::new("pollution").chart(
        "pollution",
        "False-positive rate of a filter whose keys an attacker chooses",
        Axis::linear("keys inserted / capacity"),
        Axis::log("false-positive rate"),
    );
    let cases = [
        ("public, all bits new", public, Choice::AllNew(public)),
        ("keyed, all bits new by a guessed secret", &keyed, Choice::AllNew(&guessed)),
        ("keyed, denied by the filter", &keyed, Choice::Denied),
    ];
    for (colour, (name, own, choice)) in cases.iter().enumerate() {
        let found = polluted(lab, own, choice)?;
        let (m, k) = (found.filter.layout().bits() as f64, found.filter.layout().hashes());
        let knows = colour == 0;
        let (mut mean, mut effort, mut steps) = (0.0, Effort::default(), Vec::new());
        for inserted in 1..=n {
            let all_new: f64 =
                (0..k).map(|bit| 1.0 - ((inserted - 1) as f64 * f64::from(k) + f64::from(bit)) / m).product();
            // A random key sets this many new bits, and a key that is denied proportionally more.
            let random = (m - mean) * (1.0 - (1.0 - 1.0 / m).powi(k as i32));
            let denied = 1.0 - (mean / m).powi(k as i32);
            mean += match choice {
                _ if knows => f64::from(k),
                Choice::AllNew(_) => random,
                Choice::Denied => random / denied,
            };
            effort.add(match choice {
                Choice::AllNew(_) => all_new,
                Choice::Denied => denied,
            });
            if inserted * STEPS / n > (inserted - 1) * STEPS / n {
                steps.push((inserted, mean));
            }
        }
        let tried = found.tried as f64 / n as f64;
        let (expected_tries, tolerance) = (effort.mean / n as f64, effort.tolerance() / n as f64);
        for ((inserted, mean), ones) in steps.into_iter().zip(&found.ones) {
            let rate = |ones: f64| (ones / m).powi(k as i32);
            let last = inserted == n;
            // The law of the number of occupied cells.
            let load = inserted as f64 * f64::from(k) / m;
            let chance = m * ((-load).exp() - (1.0 + load) * (-2.0 * load).exp());
            let tolerance = if knows { 0.0 } else { 4.0 * chance.sqrt() + 1.0 };
            sweep
                .at(inserted as f64 / n as f64)
                .cells([("attack", name), ("keys", &inserted)])
                .value("bits_theory", mean, 1)
                .count("bits_set", *ones)
                .when(last, |point| point.near(format!("{name}: set bits after {n} keys"), mean, tolerance))
                .when(last && knows, |point| point.shows("e03"))
                .scientific("rate_theory", rate(mean), 3)
                .line(format!("{name}: theory"), colour)
                .scientific("rate", rate(*ones as f64), 3)
                .dots(*name, colour);
        }
        sweep.near(format!("{name}: candidates tried per key"), tried, expected_tries, tolerance);
        // The rate is that of the set bits, so that nothing else depends on the choice.
        let strangers = lab.either(100_000, 1_000_000);
        let keys = lab.keys(STRANGERS).strangers(strangers);
        let positives = measure::positives(lab, &found.filter, &keys);
        let expected = (*found.ones.last().unwrap_or(&0) as f64 / m).powi(k as i32);
        let law = Law::Binomial { trials: strangers, probability: expected };
        sweep.count(format!("{name}: false positives of {strangers} other keys"), positives, law, SLACK);
    }
    findings.add(sweep);
    Ok(())
}

// ---- Queries

/// What an attacker has learned from the answers to queries.
struct Learned {
    /// The keys that were answered with yes.
    positives: Vec<u64>,
    /// The bits of these keys by the attacker's hash.
    set: Vec<bool>,
    known: u64,
}

fn learn(lab: &Lab, filter: &Bloom<Standard>, own: &Hasher, model: &Model<'_>) -> Learned {
    let keys = (0..lab.count(&QUERIES)).map(|number| lab.keys(LEARNING).stranger(number));
    let positives: Vec<u64> = keys.filter(|key| filter.contains_digest(digest(lab, own, *key))).collect();
    let mut set = vec![false; model.bits as usize];
    positives.iter().flat_map(|key| model.bits_of(*key)).for_each(|bit| set[bit] = true);
    let known = set.iter().filter(|bit| **bit).count() as u64;
    Learned { positives, set, known }
}

fn query(lab: &Lab, public: &Hasher, findings: &mut Findings) -> Result<()> {
    let (keyed, guessed) = (secret(lab, 2), secret(lab, 3));
    let (queries, crafted) = (lab.count(&QUERIES), lab.count(&CRAFTED));
    let mut sweep = Sweep::new("queries");
    for (name, own, believed) in [("public", public, public), ("keyed", &keyed, &guessed)] {
        let mut filter = empty(lab, own)?;
        for key in lab.keys(0).members(lab.count(&KEYS)) {
            filter.insert_digest(digest(lab, own, key));
        }
        let knows = own == believed;
        let model = Model::new(lab, believed, &filter);
        let learned = learn(lab, &filter, own, &model);
        let ones = filter.words().count_ones() as f64;
        let (m, k) = (model.bits as f64, model.hashes as i32);
        let rate = (ones / m).powi(k);
        let law = |trials| Law::Binomial { trials, probability: rate };
        let claim = |text: &str| format!("{name}: {text}");

        // Each yes reveals k of the set bits. A wrong hash reveals random bits.
        let cells = if knows { ones } else { m };
        let load = (learned.positives.len() * model.hashes) as f64 / cells;
        let known = cells * (1.0 - (-load).exp());
        let chance = cells * ((-load).exp() - (1.0 + load) * (-2.0 * load).exp());

        // Keys of known bits only.
        let probability = (learned.known as f64 / m).powi(k);
        let mut effort = Effort::default();
        (0..crafted).for_each(|_| effort.add(probability));
        let (mut tried, mut sent, mut yes) = (0u64, 0, 0);
        while sent < crafted {
            let key = lab.keys(CRAFTING).stranger(tried);
            tried += 1;
            if model.bits_of(key).all(|bit| learned.set[bit]) {
                sent += 1;
                yes += u64::from(filter.contains_digest(digest(lab, own, key)));
            }
        }
        let (asked, adaptive) = ask_neighbours(lab, &filter, own, &learned.positives);
        let per_key = |total: f64| total / crafted as f64;
        sweep
            .row()
            .cells([("hash", &name), ("queries", &queries), ("yes", &learned.positives.len())])
            .value("bits_known_theory", known, 1)
            .count("bits_known", learned.known)
            .near(
                claim("bits that the attacker believes to be set"),
                known,
                4.0 * chance.sqrt() + SLACK * known,
            )
            .value("tries_theory", per_key(effort.mean), 1)
            .value("tries_per_crafted_key", per_key(tried as f64), 1)
            .near(
                claim("candidates tried per crafted key"),
                per_key(effort.mean),
                per_key(effort.tolerance()),
            )
            .value("rate", rate, 5)
            .value("rate_of_crafted_keys", yes as f64 / crafted as f64, 5)
            .judge(if knows {
                Criterion::at_least(
                    claim("crafted keys that are false positives, as a share"),
                    yes as f64 / crafted as f64,
                    1.0,
                )
            } else {
                Criterion::count(
                    claim(&format!("false positives among {crafted} crafted keys")),
                    yes,
                    law(crafted),
                    SLACK,
                )
            })
            .when(knows, |point| point.shows("e03"))
            .value("rate_of_neighbours", adaptive as f64 / asked as f64, 5)
            .judge(Criterion::count(
                claim(&format!("false positives among {asked} neighbours of false positives")),
                adaptive,
                law(asked),
                SLACK,
            ));
        let claim = claim(&format!("false positives among {queries} queries"));
        sweep.count(claim, learned.positives.len() as u64, law(queries), SLACK);
    }
    findings.add(sweep);
    Ok(())
}

/// Queries the neighbours of false positives, starting with those that were found last. Returns the
/// number of queries and the number of false positives among them.
fn ask_neighbours(lab: &Lab, filter: &Bloom<Standard>, own: &Hasher, positives: &[u64]) -> (u64, u64) {
    let (limit, mut yes) = (lab.count(&QUERIES) / 4, 0);
    let (mut parents, mut asked) = (positives.to_vec(), HashSet::new());
    let known = positives.len();
    asked.extend(positives.iter().copied());
    'all: while let Some(parent) = parents.pop() {
        let flipped = (0..64).map(|bit| parent ^ 1 << bit);
        for key in flipped.chain([parent.wrapping_add(1), parent.wrapping_sub(1)]) {
            if !asked.insert(key) {
                continue;
            }
            if filter.contains_digest(digest(lab, own, key)) {
                yes += 1;
                parents.push(key);
            }
            if (asked.len() - known) as u64 >= limit {
                break 'all;
            }
        }
    }
    ((asked.len() - known) as u64, yes)
}

// ---- Covering

fn cover(lab: &Lab, public: &Hasher, findings: &mut Findings) -> Result<()> {
    let (keyed, guessed, victims) = (secret(lab, 4), secret(lab, 5), lab.count(&VICTIMS));
    let mut sweep = Sweep::new("covering");
    for (name, own, believed) in [("public", public, public), ("keyed", &keyed, &guessed)] {
        let knows = own == believed;
        let (mut effort, mut tried, mut inserted, mut hidden, mut chance) = (Effort::default(), 0, 0, 0, 0.0);
        for victim in lab.keys(0).members(victims) {
            let mut filter = empty(lab, own)?;
            let model = Model::new(lab, believed, &filter);
            let mut left: HashSet<usize> = model.bits_of(victim).collect();
            for bits in 1..=left.len() {
                effort.add(1.0 - (1.0 - bits as f64 / model.bits as f64).powi(model.hashes as i32));
            }
            while !left.is_empty() {
                let key = lab.keys(COVERING).stranger(tried);
                tried += 1;
                let before = left.len();
                left.retain(|bit| model.bits_of(key).all(|set| set != *bit));
                if left.len() < before {
                    filter.insert_digest(digest(lab, own, key));
                    inserted += 1;
                }
            }
            hidden += u64::from(filter.contains_digest(digest(lab, own, victim)));
            chance += filter.stats().rate_now;
        }
        let mean = |total: f64| total / victims as f64;
        let claim = |text: &str| format!("{name}: {text}");
        sweep
            .row()
            .cells([("hash", &name), ("victims", &victims)])
            .value("keys_inserted_per_victim", mean(inserted as f64), 2)
            .value("tries_theory", mean(effort.mean), 0)
            .value("tries_per_victim", mean(tried as f64), 0)
            .near(claim("candidates tried per victim"), mean(effort.mean), mean(effort.tolerance()))
            .count("victims_hidden", hidden)
            .judge(if knows {
                let claim = claim("victims that are reported as present, as a share");
                Criterion::at_least(claim, mean(hidden as f64), 1.0)
            } else {
                let claim = claim(&format!("victims of {victims} that are reported as present"));
                Criterion::count_at_most(claim, hidden, Law::Poisson { mean: chance })
            })
            .when(knows, |point| point.shows("e03"));
    }
    findings.add(sweep);
    Ok(())
}
