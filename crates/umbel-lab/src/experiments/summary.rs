//! E21: all kinds of sets side by side: bits per key, rate, and the times of insertions and
//! lookups.

use super::prelude::*;
use crate::measure::{Contestant, Rate, Time, Turns, race};
use umbel::key::Hashed;
use umbel::kind::Category;
use umbel::literature::{Family, Literature};
use umbel::sizing::rate;
use umbel::spec::{Construction, plan};
use umbel::{AnyFilter, Hasher, Kind, Spec, Stats};

pub struct Summary;

const KEYS: Parameter =
    Parameter::count("n", "keys in the largest filters", [100_000, 1_000_000], [10_000, 10_000_000]);
const BUILDS: Parameter = Parameter::count("builds", "filters of each kind for the rate", [10; 2], [2, 100]);
const QUERIES: Parameter =
    Parameter::count("queries", "strangers for each filter", [100_000, 1_000_000], [10_000, 10_000_000]);
const ROUNDS: Parameter = Parameter::count("rounds", "rounds of each measurement", [5, 11], [3, 1000]);

const RATES: [f64; 2] = [1e-2, 1e-3];
/// Keys in the smaller filters, which full runs measure first.
const SMALLER: u64 = 100_000;
/// The largest number of different lookups, and the lookups in a round.
const ASKED: usize = 200_000;
const LOOKUPS: usize = 5000;

impl Experiment for Summary {
    fn about(&self) -> About {
        About {
            id: "E21",
            chapter: Chapter::Kinds,
            title: "All kinds of sets: bits per key, rate and time",
            sources: &[JAMBURA, WERREN, SCHIERZ, UNTITLED, HONOROFF, BLOOM, CARTER, PUTZE, GRAF],
            claim: "No set with a rate of p needs fewer than log2(1/p) bits per key. A Bloom \
                    filter needs 1.44 times as many, a filter that is constructed from all its \
                    keys at once comes close to the bound, and a filter with more abilities needs \
                    more. Filters that touch a single cache line are the fastest.",
            set_up: "Every kind of set for 100 000 keys (full: also a million) and rates of 1 % \
                     and 0.1 %, with the same keys, each as this library plans it; \"literature\" \
                     is MurmurHash3 with one hash per function. The aging filter promises only the \
                     last seven eighths of its keys, and is queried for those. Maps and multisets \
                     answer other questions and are left out. Rates are means over several builds, \
                     with strangers that are certainly not members. Times are medians over rounds \
                     in which all kinds take turns, for keys of 8 bytes, hashing included; the \
                     fuse filter takes all its keys at once, on one thread.",
            advice: "Take the blocked filter unless memory matters more than speed (standard), the \
                     set never changes (fuse), or keys have to be removed (cuckoo).",
            command: "`umbel plan -n 1M -p 1% --compare`",
            seconds: [5, 90],
            timed: true,
            parameters: &[KEYS, BUILDS, QUERIES, ROUNDS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut figures = Sweep::new("kinds");
        let mut times = Sweep::new("times");
        let n = lab.count(&KEYS);
        let sizes = if n > SMALLER && lab.either(false, true) { vec![SMALLER, n] } else { vec![n] };
        let mut shown = Vec::new();
        for n in sizes {
            shown.clear();
            for p in RATES {
                let measured = measure(lab, n, p)?;
                for one in &measured {
                    figures
                        .row()
                        .cells([("n", &n), ("asked_rate", &p), ("kind", &one.kind)])
                        .value("bits_per_key", one.bits, 4)
                        .value("measured_rate", one.rate.mean, 7)
                        .at_most(
                            format!("{}, {n} keys: rate where {p} is requested", one.kind),
                            1.02 * p + one.rate.chance(p),
                        )
                        .value("deviation", one.rate.deviation, 7)
                        .value("bits_over_least", one.bits / -one.rate.mean.log2(), 4);
                }
                figures_hold(&measured, n, p, &mut figures)?;
                let timed = time(lab, n, p)?;
                for (kind, row_times) in &timed {
                    let row = times.row().cell("n", n).cell("asked_rate", p).cell("kind", kind);
                    WORK.iter().zip(row_times).fold(row, |row, (work, time)| {
                        let column = format!("{work}_ns_per_key");
                        row.optional(&column, time.map(|time| time.median), 2)
                    });
                }
                // The library builds a small blocked filter as a standard one.
                if plan(Kind::Blocked, &Spec::new(n, p)?)?.kind == Kind::Blocked {
                    times_hold(&timed, n, p, &mut times);
                }
                shown.push((measured, timed));
            }
        }
        // Only the larger filters are drawn.
        findings.charts.extend(charts(n, &shown)?);
        findings.add(figures);
        findings.add(times);
        findings.verdict =
            "Every kind keeps its rate and finds every key that it promises to find. The fuse \
             filter is the smallest, but cannot be changed. Counters cost three to four times the \
             bits of a standard filter; cuckoo and quotient filters, which also remove keys, cost \
             a little more than a standard filter at 1 %, and the cuckoo filter less at 0.1 %. In \
             batches the blocked filter is the fastest of those that accept insertions, or close \
             to the fastest."
                .into();
        Ok(findings)
    }
}

fn kinds() -> impl Iterator<Item = Kind> {
    Kind::ALL.iter().copied().filter(|kind| kind.category() == Category::Set)
}

/// A set of any kind, including those with hashes of the literature.
enum AnySet {
    Digests(AnyFilter),
    Keys(Literature),
}

impl AnySet {
    fn empty(kind: Kind, n: u64, p: f64, hasher: &Hasher) -> Result<AnySet> {
        if kind == Kind::Literature {
            return Ok(AnySet::Keys(Literature::with_capacity(Family::Murmur3, n, p)?));
        }
        Ok(AnySet::Digests(AnyFilter::build(kind, &Spec::new(n, p)?.with_hasher(hasher.clone()))?))
    }

    /// Builds a set of these keys from the digests that the lab computes.
    fn with_keys(lab: &Lab, kind: Kind, keys: &[u64], p: f64, hasher: &Hasher) -> Result<AnySet> {
        let n = keys.len() as u64;
        if kind.capabilities().fixed {
            let spec = Spec::new(n, p)?.with_hasher(hasher.clone());
            let construction = Construction { threads: 1, ..Construction::default() };
            return Ok(AnySet::Digests(AnyFilter::from_digests(
                kind,
                &spec,
                lab.digests(hasher, keys),
                &construction,
            )?));
        }
        let mut set = AnySet::empty(kind, n, p, hasher)?;
        match &mut set {
            AnySet::Digests(filter) => filter.insert_batch(&Hashed(&lab.digests(hasher, keys)))?,
            AnySet::Keys(filter) => filter.insert_batch(keys),
        }
        Ok(set)
    }

    /// Inserts keys one by one, and returns the number of new ones.
    fn insert_each(&mut self, keys: &[u64]) -> u64 {
        let new = |key: &&u64| match self {
            AnySet::Digests(filter) => filter.insert(*key).is_ok_and(|new| new),
            AnySet::Keys(filter) => filter.insert(*key),
        };
        keys.iter().filter(new).count() as u64
    }

    fn insert_batch(&mut self, keys: &[u64]) -> u64 {
        u64::from(match self {
            AnySet::Digests(filter) => filter.insert_batch(keys).is_ok(),
            AnySet::Keys(filter) => {
                filter.insert_batch(keys);
                true
            }
        })
    }

    fn count_each(&self, keys: &[u64]) -> u64 {
        match self {
            AnySet::Digests(filter) => keys.iter().map(|key| u64::from(filter.contains(key))).sum(),
            AnySet::Keys(filter) => keys.iter().map(|key| u64::from(filter.contains(key))).sum(),
        }
    }

    fn count_batch(&self, keys: &[u64]) -> u64 {
        match self {
            AnySet::Digests(filter) => filter.contains_batch(keys).count(),
            AnySet::Keys(filter) => filter.contains_batch(keys).count(),
        }
    }

    /// Returns the number of these keys that it contains, by the digests that the lab computes.
    fn positives(&self, lab: &Lab, keys: &[u64]) -> u64 {
        match self {
            AnySet::Digests(filter) => crate::measure::positives(lab, filter, keys),
            AnySet::Keys(filter) => filter.contains_batch(keys).count(),
        }
    }

    fn stats(&self) -> Stats {
        match self {
            AnySet::Digests(filter) => filter.stats(),
            AnySet::Keys(filter) => filter.stats(),
        }
    }
}

/// Returns the members that a kind promises to find. A filter that forgets has lost the oldest
/// ones.
fn promised(kind: Kind, members: &[u64]) -> &[u64] {
    if kind.capabilities().forget { &members[members.len().div_ceil(8)..] } else { members }
}

/// The measurements of a kind, except times.
struct Measured {
    kind: Kind,
    bits: f64,
    rate: Rate,
    missed: u64,
}

fn measure(lab: &Lab, n: u64, p: f64) -> Result<Vec<Measured>> {
    let (builds, queries) = (lab.count(&BUILDS), lab.count(&QUERIES));
    kinds()
        .map(|kind| {
            let (mut rates, mut missed, mut bits) = (Vec::new(), 0, 0.0);
            for number in 0..builds {
                let (own, hasher) = (Keys::of_build(number), lab.hasher(number));
                let members = own.members(n);
                let set = AnySet::with_keys(lab, kind, &members, p, &hasher)?;
                let promised = promised(kind, &members);
                missed += promised.len() as u64 - set.positives(lab, promised);
                rates.push(set.positives(lab, &own.strangers(queries)) as f64 / queries as f64);
                bits += set.stats().bytes as f64 * 8.0 / (n * builds) as f64;
            }
            Ok(Measured { kind, bits, rate: Rate::from_builds(&rates, queries), missed })
        })
        .collect()
}

fn figures_hold(measured: &[Measured], n: u64, p: f64, sweep: &mut Sweep) -> Result<()> {
    let at = format!("{n} keys, rate {p}");
    let missed: u64 = measured.iter().map(|one| one.missed).sum();
    sweep.at_most(format!("{at}: members not found, over all kinds"), missed as f64, 0.0);
    let over = |one: &Measured| one.bits / -(one.rate.mean + one.rate.chance(one.rate.mean)).log2();
    let least = measured.iter().map(over).fold(f64::INFINITY, f64::min);
    sweep.at_least(format!("{at}: bits per key / log2(1 / rate), the smallest of all kinds"), least, 1.0);
    let bits = |wanted| measured.iter().find(|one| one.kind == wanted).map_or(f64::NAN, |one| one.bits);
    let others = measured.iter().filter(|one| one.kind != Kind::Fuse).map(|one| one.bits);
    sweep.at_most(
        format!("{at}: bits per key of the fuse filter / the smallest of all others"),
        bits(Kind::Fuse) / others.fold(f64::INFINITY, f64::min),
        1.0,
    );
    sweep.near(
        format!("{at}: bits per key of the standard filter / (1.4427 log2(1 / rate))"),
        bits(Kind::Standard) / rate::bits_per_key(p)?,
        1.0,
        0.02,
    );
    Ok(())
}

/// The operations that are timed.
const WORK: [&str; 6] =
    ["insert_one", "insert_batch", "member_one", "stranger_one", "member_batch", "stranger_batch"];

type Times = [Option<Time>; WORK.len()];

fn time(lab: &Lab, n: u64, p: f64) -> Result<Vec<(Kind, Times)>> {
    let (rounds, hasher, own) = (lab.count(&ROUNDS) as usize, lab.hasher(0), Keys::of_build(0));
    let members = own.members(n);
    let kinds: Vec<Kind> = kinds().collect();
    let sets: Vec<AnySet> = kinds
        .iter()
        .map(|kind| AnySet::with_keys(lab, *kind, &members, p, &hasher))
        .collect::<Result<_>>()?;
    // Every kind contains these members, even a filter that forgets.
    let newest = &members[members.len().div_ceil(8)..];
    let asked = &newest[newest.len().saturating_sub(ASKED)..];
    let strangers = own.strangers(asked.len() as u64);
    let strangers = &strangers[..];
    let mut times: Vec<(Kind, Times)> = kinds.iter().map(|kind| (*kind, [None; WORK.len()])).collect();
    for (work, _) in WORK.iter().enumerate() {
        let takes_part: Vec<usize> =
            (0..kinds.len()).filter(|at| work != 0 || !kinds[*at].capabilities().fixed).collect();
        let contestant = |at: &usize| -> Contestant<'_> {
            let (kind, set, members, hasher) = (kinds[*at], &sets[*at], &members[..], &hasher);
            let [mut members_asked, mut strangers_asked] =
                [asked, strangers].map(|keys| Turns::new(keys, LOOKUPS));
            // A filter that was built once can be built again; an error would count as zero.
            let empty = move || AnySet::empty(kind, n, p, hasher);
            match work {
                0 => Box::new(move || empty().map_or(0, |mut set| set.insert_each(members))),
                1 if kind.capabilities().fixed => Box::new(move || {
                    AnySet::with_keys(lab, kind, members, p, hasher)
                        .map_or(0, |set| u64::from(set.stats().hashes))
                }),
                1 => Box::new(move || empty().map_or(0, |mut set| set.insert_batch(members))),
                2 => Box::new(move || set.count_each(members_asked.next_round())),
                3 => Box::new(move || set.count_each(strangers_asked.next_round())),
                4 => Box::new(move || set.count_batch(members_asked.next_round())),
                _ => Box::new(move || set.count_batch(strangers_asked.next_round())),
            }
        };
        let operations = if work < 2 { n } else { asked.len().min(LOOKUPS) as u64 };
        // Lookups take less time than insertions, so more rounds are possible.
        let rounds = if work < 2 { rounds } else { 5 * rounds };
        let raced = race(rounds, operations, takes_part.iter().map(contestant).collect());
        for (at, time) in takes_part.into_iter().zip(raced) {
            times[at].1[work] = Some(time);
        }
    }
    Ok(times)
}

/// Judges lower quartiles, which other load on the machine affects least.
fn times_hold(timed: &[(Kind, Times)], n: u64, p: f64, sweep: &mut Sweep) {
    let batch = |times: &Times| times[4].zip(times[5]).map_or(f64::NAN, |(hit, miss)| hit.low + miss.low);
    let of =
        |wanted| timed.iter().find(|(kind, _)| *kind == wanted).map_or(f64::NAN, |(_, times)| batch(times));
    let fillable = timed.iter().filter(|(kind, _)| !kind.capabilities().fixed);
    let fastest = fillable.map(|(_, times)| batch(times)).fold(f64::INFINITY, f64::min);
    sweep
        .at_most(
            format!(
                "{n} keys, rate {p}: batch lookups, time of blocked / time of the fastest kind that accepts insertions"
            ),
            of(Kind::Blocked) / fastest,
            1.5,
        )
        .timed();
    sweep.at_least(
            format!("{n} keys, rate {p}: batch lookups, time of literature (one hash per function) / time of blocked"),
            of(Kind::Literature) / of(Kind::Blocked),
            3.0,
        ).timed();
}

type Shown = (Vec<Measured>, Vec<(Kind, Times)>);

fn charts(n: u64, shown: &[Shown]) -> Result<Vec<Chart>> {
    let mut charts = Vec::new();
    for (p, (measured, timed)) in RATES.iter().zip(shown) {
        let points = measured.iter().map(|one| (one.kind, (one.bits, one.rate.mean))).collect();
        let mut series = bounds(*p)?;
        series.extend(named(points));
        charts.push(Chart {
            name: format!("space_{p:e}"),
            title: format!("Bits per key and measured rate: {n} keys, {p} asked for"),
            x: Axis::log("bits per key"),
            y: Axis::log("false-positive rate"),
            series,
        });
        for (work, name, way) in [(3, "one", "one by one"), (5, "batch", "in batches")] {
            let points = measured.iter().zip(timed);
            let points =
                points.filter_map(|(one, (_, times))| Some((one.kind, (one.bits, times[work]?.median))));
            charts.push(Chart {
                name: format!("times_{name}_{p:e}"),
                title: format!("Bits per key and lookups of strangers {way}: {n} keys, rate {p}"),
                x: Axis::log("bits per key"),
                y: Axis::log("time per lookup (ns)"),
                series: named(points.collect()),
            });
        }
    }
    Ok(charts)
}

/// Returns the lower bound of bits for rates around this one, and the bits of the best Bloom
/// filter.
fn bounds(p: f64) -> Result<Vec<Series>> {
    let rates = || (-10..=5).map(|step| p * 10f64.powf(0.1 * f64::from(step)));
    let least = rates().map(|rate| Ok((rate::information_minimum(rate)?, rate))).collect::<Result<_>>()?;
    let bloom = rates().map(|rate| Ok((rate::bits_per_key(rate)?, rate))).collect::<Result<_>>()?;
    Ok(vec![
        Series::new("least possible", Mark::Line, 6, least),
        Series::new("best Bloom filter, 1.44 times that", Mark::Dashes, 1, bloom),
    ])
}

/// Returns a series with a name for each dot; kinds at nearly the same place share one.
fn named(points: Vec<(Kind, (f64, f64))>) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for (kind, (x, y)) in points {
        let near = |other: &&mut Series| {
            other
                .points
                .iter()
                .any(|point| (point.0 / x).ln().abs() < 0.01 && (point.1 / y).ln().abs() < 0.05)
        };
        match series.iter_mut().find(near) {
            Some(other) => {
                other.label = format!("{}, {kind}", other.label);
                other.points.push((x, y));
            }
            None => series.push(Series::new(kind.to_string(), Mark::Named, 0, vec![(x, y)])),
        }
    }
    series
}
