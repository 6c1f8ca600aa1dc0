//! E19: the time to hash a key in each family, and the resulting rate.

use super::prelude::*;
use crate::measure::{Contestant, Rate, Time, Turns, race};
use umbel::hash::reduce;
use umbel::key::Hashed;
use umbel::literature::{Family, Literature, Scheme};
use umbel::sizing::rate;
use umbel::{Bloom, Digest, Hasher, Key, Standard};

pub struct HashFamilies;

const KEYS: Parameter = Parameter::count("n", "keys in a filter", [10_000; 2], [1000, 1_000_000]);
const BITS: Parameter = Parameter::real("bits", "bits per key", [9.586; 2], [2.0, 100.0]);
const BUILDS: Parameter = Parameter::count("builds", "filters for each rate", [10, 20], [2, 100]);
const QUERIES: Parameter =
    Parameter::count("queries", "strangers for each filter", [50_000, 200_000], [1000, 1_000_000]);
const ROUNDS: Parameter = Parameter::count("rounds", "rounds of each measurement", [31, 101], [3, 1000]);

const HASHES: u32 = 7;
/// Number of different keys, and of keys in a round.
const HASHED: u64 = 10_000;
const ROUND: usize = 500;

impl Experiment for HashFamilies {
    fn about(&self) -> About {
        About {
            id: "E19",
            chapter: Chapter::Hashing,
            title: "Hash families: the same rate at very different cost",
            sources: &[JAMBURA, WERREN, SCHIERZ, UNTITLED, HONOROFF, KIRSCH],
            claim: "Any family that spreads keys evenly gives the rate of the formula, \
                    cryptographic or not, computed once or k times. The families differ in the \
                    time they take.",
            set_up: "The three strengths of this library, which hash a key once and derive the \
                     positions from 64 bits, one by one and in batches, and the families of the \
                     literature; seven positions each, four from slices of MD5 and five from \
                     slices of SHA-1. Times for keys of 8 and 20 bytes are medians over rounds in \
                     which all take turns. Rates at 9.586 bits per key, for keys that are random, \
                     sequential, shifted by 24 bits and 1000 apart, have to agree with theory \
                     within 2 % and chance (four standard errors).",
            advice: "Hash each key once with a fast hash and derive the positions from it; pay for \
                     a keyed or sealed hash only against an adversary.",
            command: "`umbel build --hash fast`, `keyed` or `sealed`",
            seconds: [2, 20],
            timed: true,
            parameters: &[KEYS, BITS, BUILDS, QUERIES, ROUNDS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let ways = Way::all();
        let bits = (lab.number(&BITS) * lab.count(&KEYS) as f64) as u64;
        let own = Keys::of_build(0);
        let words = own.members(HASHED);
        let short = time(lab, &ways, &words, bits)?;
        let long: Vec<[u8; 20]> = words.iter().map(|word| spelled(*word)).collect();
        let long = time(lab, &ways, &long, bits)?;
        let mut times = Sweep::new("times").chart(
            "times",
            "Hashing a key to its positions",
            Axis::log("keys of 8 bytes: time per key (ns)"),
            Axis::log("keys of 20 bytes: time per key (ns)"),
        );
        for ((way, short), long) in ways.iter().zip(&short).zip(&long) {
            let colour = usize::from(matches!(way, Way::Literature(_)));
            times
                .at(short.median)
                .cell("family", way.name())
                .cell("positions", way.hashes())
                .value("ns_per_key_of_8_bytes", short.median, 2)
                .value("ns_per_key_of_20_bytes", long.median, 2)
                .drawn(Mark::Named, way.name(), colour);
        }
        for (medians, length) in [(&short, 8), (&long, 20)] {
            times_hold(&ways, medians, length, &mut times);
        }
        findings.add(times);
        rates(lab, &ways, &short, bits, &mut findings)?;
        findings.verdict =
            "Every family has the rate of the formula, for structured keys as for random ones. \
             Hashing once to 64 bits costs a fraction of hashing once per function, and a \
             cryptographic hash for each function costs most."
                .into();
        Ok(findings)
    }
}

/// Returns a key of twenty bytes that contains a number.
fn spelled(word: u64) -> [u8; 20] {
    let mut bytes = *b"/0123456789/ab/cdef/";
    bytes[12..].copy_from_slice(&word.to_le_bytes());
    bytes
}

/// A way to derive positions from a key.
enum Way {
    /// The name of a strength, its hash, and whether keys are hashed in batches.
    Library(&'static str, Hasher, bool),
    Literature(Family),
}

impl Way {
    fn all() -> Vec<Way> {
        let strengths = [
            ("fast", Hasher::fast(0)),
            ("keyed", Hasher::keyed([7; 16])),
            ("sealed", Hasher::sealed([7; 32])),
        ];
        let library = strengths
            .into_iter()
            .flat_map(|(name, hasher)| [false, true].map(|batch| Way::Library(name, hasher.clone(), batch)));
        library.chain(Family::ALL.map(Way::Literature)).collect()
    }

    fn name(&self) -> String {
        match self {
            Way::Library(name, _, batch) => format!("{name}{}", if *batch { ", batch" } else { "" }),
            Way::Literature(family) => family.to_string(),
        }
    }

    /// Returns the number of positions of a key: seven, or as many as the family has.
    fn hashes(&self) -> u32 {
        match self {
            Way::Library(..) => HASHES,
            Way::Literature(family) => family.max_hashes().min(HASHES),
        }
    }
}

/// Combines the positions of a digest into one number.
fn sum(digest: Digest, bits: u64) -> u64 {
    digest.stream().take(HASHES as usize).fold(0, |sum, x| sum ^ reduce(x, bits))
}

fn time<'a, K: Key>(lab: &Lab, ways: &'a [Way], keys: &'a [K], bits: u64) -> Result<Vec<Time>> {
    let contestant = |way: &'a Way| -> Result<Contestant<'a>> {
        let mut turns = Turns::new(keys, ROUND);
        Ok(match way {
            Way::Library(_, hasher, false) => Box::new(move || {
                turns.next_round().iter().fold(0, |all, key| all ^ sum(key.digest(hasher), bits))
            }),
            Way::Library(_, hasher, true) => Box::new(move || {
                hasher
                    .digest_batch(turns.next_round())
                    .into_iter()
                    .fold(0, |all, digest| all ^ sum(digest, bits))
            }),
            Way::Literature(family) => {
                let scheme = Scheme::new(*family, way.hashes(), bits)?;
                let positions =
                    move |bytes: &[u8]| scheme.positions(bytes).fold(0, |sum, position| sum ^ position);
                Box::new(move || {
                    turns.next_round().iter().fold(0, |all, key| all ^ key.with_bytes(positions))
                })
            }
        })
    };
    let contestants = ways.iter().map(contestant).collect::<Result<_>>()?;
    Ok(race(lab.count(&ROUNDS) as usize, keys.len().min(ROUND) as u64, contestants))
}

/// Judges lower quartiles, which other load on the machine affects least.
fn times_hold(ways: &[Way], times: &[Time], length: u32, sweep: &mut Sweep) {
    let low = |name: &str| {
        ways.iter().zip(times).find(|(way, _)| way.name() == name).map_or(f64::NAN, |(_, time)| time.low)
    };
    for (slow, fast, least) in [
        ("murmur3", "fast", 1.5),
        ("murmur3", "murmur3-double", 1.2),
        ("md5-indexed", "md5-slices", 2.0),
        ("md5-indexed", "sealed", 1.5),
        ("sealed", "fast", 3.0),
    ] {
        let claim = format!("keys of {length} bytes: time of {slow} / time of {fast}");
        sweep.at_least(claim, low(slow) / low(fast), least).timed();
    }
}

/// The name of a pattern, and the function that turns a number into a key.
type Pattern = (&'static str, fn(u64) -> u64);

const PATTERNS: [Pattern; 3] = [
    ("sequential", |number| number),
    ("shifted", |number| number << 24),
    ("strided", |number| 1000 * number),
];

/// Returns the members and strangers of a build. The numbers start at a different value for each
/// build and seed.
fn keys(lab: &Lab, build: u64, pattern: Option<Pattern>) -> (Vec<u64>, Vec<u64>) {
    let (n, queries, builds) = (lab.count(&KEYS), lab.count(&QUERIES), lab.count(&BUILDS));
    let build = lab.seed % 1000 * builds + build;
    match pattern {
        None => (Keys::of_build(build).members(n), Keys::of_build(build).strangers(queries)),
        Some((_, key)) => {
            let start = build * (n + queries);
            ((start..start + n).map(key).collect(), (start + n..start + n + queries).map(key).collect())
        }
    }
}

/// Returns the share of strangers that one filter says yes to.
fn one_rate(lab: &Lab, way: &Way, bits: u64, members: &[u64], strangers: &[u64]) -> Result<f64> {
    let positives = match way {
        Way::Library(_, hasher, _) => {
            let mut filter = Bloom::with_layout(Standard::new(bits, HASHES)?, hasher.clone())?;
            filter.insert_batch(&Hashed(&lab.digests(hasher, members)));
            filter.contains_batch(&Hashed(&lab.digests(hasher, strangers))).count()
        }
        Way::Literature(family) => {
            let mut filter = Literature::new(Scheme::new(*family, way.hashes(), bits)?)?;
            filter.insert_batch(members);
            filter.contains_batch(strangers).count()
        }
    };
    Ok(positives as f64 / strangers.len() as f64)
}

fn rates(lab: &Lab, ways: &[Way], times: &[Time], bits: u64, findings: &mut Findings) -> Result<()> {
    let (n, queries) = (lab.count(&KEYS), lab.count(&QUERIES));
    let mut sweep = Sweep::new("rates").chart(
        "rates",
        "Rate and time of hash families",
        Axis::log("keys of 8 bytes: time per key (ns)"),
        Axis::linear("measured rate / rate by the formula"),
    );
    let patterns = [None].into_iter().chain(PATTERNS.map(Some));
    for (colour, pattern) in patterns.enumerate() {
        let name = pattern.map_or("random", |pattern| pattern.0);
        for (way, time) in ways.iter().zip(times) {
            // Hashing in batches gives the same digests.
            if let Way::Library(_, _, true) = way {
                continue;
            }
            let expected = rate::classic(bits, n, way.hashes())?;
            let one = |build| {
                let (members, strangers) = keys(lab, build, pattern);
                one_rate(lab, way, bits, &members, &strangers)
            };
            let measured = (0..lab.count(&BUILDS)).map(one).collect::<Result<Vec<f64>>>()?;
            let measured = Rate::from_builds(&measured, queries);
            sweep
                .at(time.median)
                .cells([("family", &way.name()), ("keys", &name)])
                .cell("k", way.hashes())
                .value("expected", expected, 6)
                .rate("measured", &measured, 6)
                .agrees(format!("{}, {name} keys: rate", way.name()), expected, 0.02)
                .value("deviation", measured.deviation, 6)
                .hidden(measured.mean / expected)
                .dots(format!("{name} keys"), colour);
        }
    }
    let ends = times
        .iter()
        .map(|time| (time.median, 1.0))
        .fold([(f64::INFINITY, 1.0), (0.0, 1.0)], |[first, last], at| {
            [if at.0 < first.0 { at } else { first }, if at.0 > last.0 { at } else { last }]
        });
    sweep.series("theory", Mark::Line, 6, ends);
    findings.add(sweep);
    Ok(())
}
