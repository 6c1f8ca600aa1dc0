//! E20: filters and the exact structures that they stand in front of: time, memory and errors.

use super::prelude::*;
use crate::measure::{Contestant, Time, Turns, race};
use std::collections::{BTreeSet, HashSet};
use umbel::internals::Layout;
use umbel::{Blocked, Bloom, Spec, Standard};

pub struct ExactStructures;

const KEYS: Parameter =
    Parameter::count("n", "keys in all structures but the list", [100_000; 2], [1000, 500_000]);
const LISTED: Parameter = Parameter::count("listed", "keys in the list", [2000; 2], [100, 20_000]);
const RATE: Parameter = Parameter::real("p", "rate of the filters", [0.01; 2], [0.0001, 0.1]);
const QUERIES: Parameter =
    Parameter::count("queries", "different lookups", [10_000, 40_000], [1000, 200_000]);
const ROUNDS: Parameter = Parameter::count("rounds", "rounds of each measurement", [21, 101], [3, 1000]);

const LENGTHS: [usize; 3] = [8, 64, 1024];
/// Lookups in a round, and in a round of the list, which is scanned for each.
const LOOKUPS: usize = 500;
const LIST_LOOKUPS: usize = 20;
/// Shares of absent keys among the queries, in per cent.
const ABSENT: [u64; 4] = [0, 50, 90, 99];

impl Experiment for ExactStructures {
    fn about(&self) -> About {
        About {
            id: "E20",
            chapter: Chapter::Hashing,
            title: "Against exact structures: a filter rejects fast and does not hold the keys",
            sources: &[BLOOM, JAMBURA, SCHIERZ, UNTITLED],
            claim: "Lists, sorted lists, trees and hash tables make no errors, but they hold the \
                    keys. A Bloom filter needs the same few bits however long the keys are, \
                    rejects most absent keys at once, and in front of an exact structure makes no \
                    error at all.",
            set_up: "100 000 keys of 8, 64 and 1024 random bytes (2000 for the list, which is read \
                     from its start) in memory. Lookups one by one, keys hashed each time; 0, 50, \
                     90 and 99 % of them are for absent keys. Filters have a rate of 1 %. Times \
                     are medians over rounds in which all take turns. Bytes are computed: the key \
                     bytes plus 16 bytes for a pointer and a length; a hash set has 8/7 slots for \
                     each key of its capacity, with one control byte each; a tree built at once \
                     has nodes of 11 keys with 16 further bytes, and 96 more if they have \
                     children.",
            advice: "Put a filter in front of an exact structure when most queries are for absent \
                     keys or the structure is far away.",
            command: "`umbel url check`, which puts a filter in front of an exact list",
            seconds: [2, 7],
            timed: true,
            parameters: &[KEYS, LISTED, RATE, QUERIES, ROUNDS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut report = Report::new();
        for length in LENGTHS {
            one_length(lab, length, &mut report)?;
        }
        room(&mut report);
        findings.add(report.figures);
        findings.add(report.times);
        findings.verdict =
            "A filter makes errors at its rate and misses nothing; the exact structures make none \
             and need the bytes of every key. A filter in front of a sorted list makes no errors, \
             and where most queries are for absent keys it is faster than the list alone."
                .into();
        Ok(findings)
    }
}

/// The measurements of all lengths.
struct Report {
    figures: Sweep,
    times: Sweep,
    /// Structure, key bytes, bytes per key.
    room: Vec<(&'static str, usize, f64)>,
}

impl Report {
    fn new() -> Report {
        let (x, y) = (Axis::log("bytes of a key"), Axis::log("bytes per key"));
        let figures = Sweep::new("structures").chart("room", "Memory by length of keys", x, y);
        let times = LENGTHS.into_iter().fold(Sweep::new("times"), |times, length| {
            times.chart(
                &format!("times_{length}"),
                format!("Lookups by share of absent keys: keys of {length} bytes"),
                Axis::linear("absent keys among the queries (%)"),
                Axis::log("time per lookup (ns)"),
            )
        });
        Report { figures, times, room: Vec::new() }
    }
}

/// Returns whether a structure contains a key.
type Contains<'a> = Box<dyn Fn(&[u8]) -> bool + 'a>;

/// A structure under test.
struct Structure<'a> {
    name: &'static str,
    keys: u64,
    bytes: f64,
    contains: Contains<'a>,
    /// Allowed share of wrong yeses.
    rate: f64,
}

/// Appends the bytes of a key: the number, and further words that a generator derives from it.
fn spell(number: u64, length: usize, bytes: &mut Vec<u8>) {
    let mut word = number;
    for _ in 0..length.div_ceil(8) {
        bytes.extend(word.to_le_bytes());
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(number | 1).rotate_left(29);
    }
}

fn spelled(numbers: &[u64], length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len() * length);
    numbers.iter().for_each(|number| spell(*number, length, &mut bytes));
    bytes
}

/// Returns queries, of which `percent` per cent are for absent keys. They are copies, so that a key
/// that is looked up does not share memory with the structure.
fn queries(members: &[u64], strangers: &[u64], percent: u64, length: usize) -> Vec<u8> {
    let pick = |stranger: &u64| match stranger % 100 < percent {
        true => *stranger,
        false => members[(stranger / 100) as usize % members.len()],
    };
    spelled(&strangers.iter().map(pick).collect::<Vec<u64>>(), length)
}

fn one_length(lab: &Lab, length: usize, report: &mut Report) -> Result<()> {
    let (n, listed, p) = (lab.count(&KEYS), lab.count(&LISTED), lab.number(&RATE));
    // Each length is a build, so that keys of different lengths differ.
    let own = Keys::of_build(length as u64);
    let (members, strangers) = (own.members(n.max(listed)), own.strangers(lab.count(&QUERIES)));
    let bytes = spelled(&members, length);
    let all: Vec<&[u8]> = bytes.chunks_exact(length).collect();
    let (keys, list) = (&all[..n as usize], &all[..listed as usize]);
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    let hashed: HashSet<&[u8]> = keys.iter().copied().collect();
    let tree: BTreeSet<&[u8]> = keys.iter().copied().collect();
    let spec = Spec::new(n, p)?.with_hasher(lab.hasher(0));
    let standard: Bloom<Standard> = filled(&spec, keys)?;
    let blocked: Bloom<Blocked> = filled(&spec, keys)?;
    let filter_bytes = |filter: &dyn Fn() -> umbel::Stats| filter().bytes as f64 / n as f64;
    let [standard_bytes, blocked_bytes] =
        [filter_bytes(&|| standard.stats()), filter_bytes(&|| blocked.stats())];
    let exact = |name, bytes, contains| Structure {
        name,
        keys: n,
        bytes: bytes + length as f64,
        contains,
        rate: 0.0,
    };
    let places = hashed.capacity() as f64 / 7.0 * 8.0;
    let structures = [
        exact("sorted list", 16.0, Box::new(|key: &[u8]| sorted.binary_search(&key).is_ok())),
        exact("B-tree", (16.0 + 11.0 * 16.0 + 96.0 / 12.0) / 11.0, Box::new(|key| tree.contains(key))),
        exact("hash set", places * 17.0 / n as f64, Box::new(|key| hashed.contains(key))),
        exact(
            "filter, then sorted list",
            16.0 + blocked_bytes,
            Box::new(|key| blocked.contains(key) && sorted.binary_search(&key).is_ok()),
        ),
        Structure {
            name: "standard filter",
            keys: n,
            bytes: standard_bytes,
            contains: Box::new(|key| standard.contains(key)),
            rate: p,
        },
        Structure {
            name: "blocked filter",
            keys: n,
            bytes: blocked_bytes,
            contains: Box::new(|key| blocked.contains(key)),
            rate: p,
        },
    ];
    let list = Structure {
        name: "list",
        keys: listed,
        bytes: 16.0 + length as f64,
        contains: Box::new(|key| list.contains(&key)),
        rate: 0.0,
    };
    let few = &strangers[..strangers.len() / 10];
    errors(&list, length, &members[..listed as usize], few, report);
    for structure in &structures {
        errors(structure, length, &members[..n as usize], &strangers, report);
    }
    let rounds = lab.count(&ROUNDS) as usize;
    let mut by_share: Vec<Vec<Time>> = Vec::new();
    for percent in ABSENT {
        let asked = queries(&members[..listed as usize], few, percent, length);
        let lookups = LIST_LOOKUPS.min(few.len()) as u64;
        let mut times = race(rounds, lookups, vec![contestant(&list, &asked, length, LIST_LOOKUPS)]);
        let asked = queries(&members[..n as usize], &strangers, percent, length);
        let contestants = structures.iter().map(|structure| contestant(structure, &asked, length, LOOKUPS));
        times.extend(race(rounds, LOOKUPS.min(strangers.len()) as u64, contestants.collect()));
        by_share.push(times);
    }
    let names: Vec<&str> = [&list].into_iter().chain(&structures).map(|structure| structure.name).collect();
    let chart = LENGTHS.iter().position(|known| *known == length).unwrap_or_default();
    for (at, name) in names.iter().enumerate() {
        for (percent, times) in ABSENT.iter().zip(&by_share) {
            report
                .times
                .at(*percent as f64)
                .on(chart)
                .cells([("structure", &name), ("key_bytes", &length), ("absent_percent", &percent)])
                .time(["median_ns", "lower_quartile_ns", "upper_quartile_ns"], &times[at], 1)
                .path(*name, at);
        }
    }
    rejections(length, listed, &by_share, &mut report.times);
    Ok(())
}

fn filled<L: Layout>(spec: &Spec, keys: &[&[u8]]) -> Result<Bloom<L>> {
    let mut filter = <Bloom<L> as umbel::internals::Set>::build(spec)?;
    filter.insert_batch(keys);
    Ok(filter)
}

/// Creates a contestant with rounds of this many lookups.
fn contestant<'a>(
    structure: &'a Structure<'_>,
    asked: &'a [u8],
    length: usize,
    lookups: usize,
) -> Contestant<'a> {
    let mut turns = Turns::new(asked, lookups * length);
    Box::new(move || {
        turns.next_round().chunks_exact(length).map(|key| u64::from((structure.contains)(key))).sum()
    })
}

/// Counts the wrong answers of a structure, and reports its memory.
fn errors(structure: &Structure<'_>, length: usize, members: &[u64], strangers: &[u64], report: &mut Report) {
    let Structure { name, keys, bytes, contains, rate } = structure;
    let yes =
        |numbers: &[u64]| spelled(numbers, length).chunks_exact(length).filter(|key| contains(key)).count();
    // The list is scanned for each key, so only some of its keys are looked up.
    let asked: Vec<u64> = members.iter().copied().take(strangers.len()).collect();
    let (wrong_yes, wrong_no) = (yes(strangers) as f64 / strangers.len() as f64, asked.len() - yes(&asked));
    report.room.push((name, length, *bytes));
    let chance = 4.0 * (rate * (1.0 - rate) / strangers.len() as f64).sqrt();
    let claim = |what: &str| format!("{name}, {length} bytes: {what}");
    report
        .figures
        .row()
        .cells([("structure", &name), ("key_bytes", &length), ("keys", &keys)])
        .value("bytes_per_key", *bytes, 3)
        .value("wrong_yes", wrong_yes, 6)
        // With a single build, the fill may make the rate a little worse than the mean.
        .at_most(claim("share of absent keys taken for members"), 1.05 * rate + chance)
        .count("wrong_no", wrong_no as u64)
        .at_most(claim("members not found"), 0.0);
}

/// Judges lower quartiles of times, which other load on the machine affects least.
fn rejections(length: usize, listed: u64, by_share: &[Vec<Time>], sweep: &mut Sweep) {
    let [list, sorted, in_front, blocked] = [0, 1, 4, 6].map(|at| by_share[ABSENT.len() - 1][at].low);
    let claim =
        format!("{length} bytes, 99 % absent: time of the sorted list alone / with a filter in front");
    sweep.at_least(claim, sorted / in_front, 1.2).timed();
    if listed >= 2000 {
        let claim =
            format!("{length} bytes, 99 % absent: time of a list of {listed} / time of the blocked filter");
        sweep.at_least(claim, list / blocked, 5.0).timed();
    }
}

/// Judges and draws the bytes per key by the length of keys.
fn room(report: &mut Report) {
    let Report { figures, room, .. } = report;
    let at = |name, length| {
        room.iter().find(|(n, l, _)| (*n, *l) == (name, length)).map_or(f64::NAN, |(.., bytes)| *bytes)
    };
    for filter in ["standard filter", "blocked filter"] {
        let grows = at(filter, 1024) / at(filter, 8);
        let claim = format!("{filter}: bytes per key with keys of 1024 bytes / with keys of 8 bytes");
        figures.near(claim, grows, 1.0, 0.0);
    }
    for (length, times) in [(8, 8.0), (1024, 400.0)] {
        let least = ["list", "hash set", "B-tree"]
            .map(|name| at(name, length))
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        let ratio = least / at("blocked filter", length);
        let claim = format!(
            "keys of {length} bytes: size of the smallest exact structure / size of the blocked filter"
        );
        figures.at_least(claim, ratio, times);
    }
    let shown = [
        ("list", "list, sorted or not"),
        ("B-tree", "B-tree"),
        ("hash set", "hash set"),
        ("filter, then sorted list", "filter, then sorted list"),
        ("standard filter", "standard filter"),
        ("blocked filter", "blocked filter"),
    ];
    for (colour, (name, label)) in shown.into_iter().enumerate() {
        let points = LENGTHS.iter().map(|length| (*length as f64, at(name, *length)));
        figures.series(label, Mark::Path, colour, points);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_share_of_queries_is_for_absent_keys() {
        let own = Keys::of_build(1);
        let (members, strangers) = (own.members(50), own.strangers(10_000));
        for (percent, least, most) in [(0, 0, 0), (50, 4800, 5200), (99, 9850, 9950)] {
            let asked = queries(&members, &strangers, percent, 64);
            let known = spelled(&members, 64);
            let known: HashSet<&[u8]> = known.chunks_exact(64).collect();
            let absent = asked.chunks_exact(64).filter(|key| !known.contains(key)).count();
            assert!((least..=most).contains(&absent), "{percent} %: {absent}");
        }
    }
}
