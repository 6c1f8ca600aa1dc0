//! E16: the time of lookups by the size of the filter and by the number of keys, with the steps of
//! the caches.

use super::prelude::*;
use crate::measure::{Contestant, Probes, Time, Turns, probes, race};
use std::f64::consts::LN_2;
use std::fs::read_to_string;
use umbel::internals::Layout;
use umbel::key::Hashed;
use umbel::sizing::rate;
use umbel::{Blocked, Bloom, Digest, Spec, Standard};

pub struct TimeBySize;

const LARGEST: Parameter = Parameter::count("mib", "MiB of the largest filter", [256, 1024], [1, 4096]);
const KEYS: Parameter = Parameter::count(
    "n",
    "keys in the largest filter of the second part",
    [10_000_000, 100_000_000],
    [100_000, 300_000_000],
);
const ROUNDS: Parameter = Parameter::count("rounds", "rounds of each measurement", [25, 61], [3, 1000]);

const HASHES: u32 = 7;
const RATE: f64 = 0.01;
/// Lookups in a round.
const LOOKUPS: usize = 4000;
/// Number of strangers whose probes are counted.
const COUNTED: u64 = 20_000;
/// Number of keys that are looked up: enough that their cache lines do not fit into a cache.
const ASKED: usize = 1_000_000;
const KIB: u64 = 1024;

impl Experiment for TimeBySize {
    fn about(&self) -> About {
        About {
            id: "E16",
            chapter: Chapter::Hashing,
            title: "Time by size: the caches, not the formulas, make large filters slow",
            sources: &[SCHIERZ],
            claim: "Schierz 2022 (section on complexity) says that the time of a lookup depends \
                    neither on the number of bits, since all memory is equally far away, nor on \
                    the number of keys, since the share of set bits is always the same.",
            set_up: "Lookups of members with seven hash functions in filters from 16 KiB to 256 \
                     MiB (full: 1 GiB, if a quarter of the free memory is enough), each with \
                     enough keys to fill half of its bits, at most a million. Then lookups of \
                     strangers and members in filters made for 1000 to 10 million keys (full: 100 \
                     million) at 1 %. Each round uses other keys, hashed beforehand; times are \
                     medians over rounds in which all take turns. Probes of strangers are counted, \
                     in filters made for their keys and in one that is queried before it is full \
                     and after.",
            advice: "Once a filter is larger than the processor's caches, use the blocked kind and \
                     query it in batches.",
            command: "`umbel check`, which queries in batches; blocked is the default kind",
            seconds: [3, 15],
            timed: true,
            parameters: &[LARGEST, KEYS, ROUNDS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let y = || Axis::log("time per lookup (ns)");
        let by_bits = "Lookups of members by size of the filter, k = 7";
        let by_keys = "Lookups by number of keys, in filters made for them (1 %)";
        let mut times = Sweep::new("times")
            .chart("times_by_bits", by_bits, Axis::log("size (KiB)"), y())
            .chart("times_by_keys", by_keys, Axis::log("keys n"), y());
        count_probes(lab, &mut findings)?;
        self::by_bits(lab, &mut times)?;
        self::by_keys(lab, &mut times)?;
        let mut caches = Sweep::new("time_caches");
        for (name, kib) in self::caches() {
            caches.row().cell("cache", name).cell("kib", kib);
        }
        findings.add(times);
        findings.add(caches);
        findings.verdict =
            "A stranger costs two probes in every filter that holds as many keys as it was made \
             for, and fewer in one that is not full yet. But a probe does not cost the same \
             everywhere: once the filter is larger than the caches, lookups one by one take \
             longer. A blocked filter, queried in batches, is affected least."
                .into();
        Ok(findings)
    }
}

/// Returns the data caches of the first processor with their KiB, where the system reports them.
fn caches() -> Vec<(String, u64)> {
    let one = |index: u32| {
        let read =
            |what| read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}")).ok();
        let (level, size) = (read("level")?, read("size")?);
        let kib = size.trim().strip_suffix('K')?.parse().ok()?;
        (read("type")?.trim() != "Instruction").then(|| (format!("L{}", level.trim()), kib))
    };
    (0..8).filter_map(one).collect()
}

/// Returns a quarter of the free memory in KiB, or 256 MiB if the system does not report it.
fn room() -> u64 {
    let report = read_to_string("/proc/meminfo").unwrap_or_default();
    let line = report.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let free = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    free.map_or(256 * KIB, |free| free / 4)
}

fn one_by_one<'a, L: Layout>(filter: &'a Bloom<L>, digests: &'a [Digest]) -> Contestant<'a> {
    let mut asked = Turns::new(digests, LOOKUPS);
    Box::new(move || {
        asked.next_round().iter().filter(|digest| filter.contains_digest(**digest)).count() as u64
    })
}

fn in_batches<'a, L: Layout>(filter: &'a Bloom<L>, digests: &'a [Digest]) -> Contestant<'a> {
    let mut asked = Turns::new(digests, LOOKUPS);
    Box::new(move || filter.contains_batch(&Hashed(asked.next_round())).count())
}

/// The times of several operations by size.
struct Curves {
    names: &'static [&'static str],
    times: Vec<(f64, Vec<Time>)>,
}

impl Curves {
    fn new(names: &'static [&'static str]) -> Curves {
        Curves { names, times: Vec::new() }
    }

    fn add(&mut self, sweep: &mut Sweep, against: &str, kib: u64, n: u64, times: Vec<Time>) {
        let (size, chart) = if against == "bits" { (kib, 0) } else { (n, 1) };
        for (colour, (name, time)) in self.names.iter().zip(&times).enumerate() {
            sweep
                .at(size as f64)
                .on(chart)
                .cells([("against", &against), ("kib", &kib), ("n", &n), ("what", &name)])
                .time(["median_ns_per_key", "lower_quartile_ns", "upper_quartile_ns"], time, 2)
                .path(*name, colour);
        }
        self.times.push((size as f64, times));
    }

    /// Returns a lower quartile, which other load on the machine affects least.
    fn low(&self, size: usize, what: usize) -> f64 {
        self.times.get(size).and_then(|(_, times)| times.get(what)).map_or(f64::NAN, |time| time.low)
    }
}

/// Times lookups by the number of bits, with seven hash functions.
fn by_bits(lab: &Lab, sweep: &mut Sweep) -> Result<()> {
    let hasher = lab.hasher(0);
    let digests = lab.digests(&hasher, &Keys::of_build(0).members(ASKED as u64));
    let (largest, step) = ((lab.count(&LARGEST) * KIB).min(room()), lab.either(4, 2));
    let sizes = std::iter::successors(Some(16), |kib| Some(kib * step)).take_while(|kib| *kib <= largest);
    let mut curves =
        Curves::new(&["standard, one by one", "standard, batch", "blocked, one by one", "blocked, batch"]);
    for kib in sizes {
        let bits = kib * KIB * 8;
        let n = ((bits as f64 / f64::from(HASHES) * LN_2) as usize).min(ASKED);
        let keys = &digests[..n];
        let mut standard = Bloom::with_layout(Standard::new(bits, HASHES)?, hasher.clone())?;
        let mut blocked = Bloom::with_layout(Blocked::new(bits / 512, 1)?, hasher.clone())?;
        standard.insert_batch(&Hashed(keys));
        blocked.insert_batch(&Hashed(keys));
        let contestants = vec![
            one_by_one(&standard, keys),
            in_batches(&standard, keys),
            one_by_one(&blocked, keys),
            in_batches(&blocked, keys),
        ];
        let times = race(lab.count(&ROUNDS) as usize, n.min(LOOKUPS) as u64, contestants);
        curves.add(sweep, "bits", kib, n as u64, times);
    }
    // Smaller filters may fit into the caches of large machines.
    if largest >= 128 * KIB {
        let last = curves.times.len() - 1;
        sweep
            .at_least(
                "standard, one by one: time in the largest filter / time in one of 16 KiB",
                curves.low(last, 0) / curves.low(0, 0),
                1.5,
            )
            .timed()
            .shows("e30");
        sweep
            .at_least(
                "largest filter: time of standard, one by one / time of blocked, in batches",
                curves.low(last, 0) / curves.low(last, 3),
                2.0,
            )
            .timed();
    }
    let ends = curves.times.iter().flat_map(|(_, times)| times).map(|time| time.median);
    let (least, most) =
        ends.fold((f64::INFINITY, 0f64), |(least, most), time| (least.min(time), most.max(time)));
    for ((name, kib), colour) in caches().into_iter().zip(4..) {
        // Only the lower half, to keep the upper half free.
        let points = [(kib as f64, least), (kib as f64, (least * most).sqrt())];
        sweep.series(format!("{name} cache: {kib} KiB"), Mark::Dashes, colour, points);
    }
    Ok(())
}

/// Times lookups by the number of keys, in filters that were made for them.
fn by_keys(lab: &Lab, sweep: &mut Sweep) -> Result<()> {
    let hasher = lab.hasher(0);
    let strangers = lab.digests(&hasher, &Keys::of_build(0).strangers(ASKED as u64));
    let largest = lab.count(&KEYS);
    let mut curves = Curves::new(&[
        "standard, strangers",
        "standard, members",
        "standard, strangers, batch",
        "blocked, strangers, batch",
    ]);
    for n in std::iter::successors(Some(1000), |n| Some(n * 10)).take_while(|n| *n <= largest) {
        let spec = Spec::new(n, RATE)?.with_hasher(hasher.clone());
        let mut standard = Bloom::<Standard>::build(&spec)?;
        let mut blocked = Bloom::<Blocked>::build(&spec)?;
        let mut members = Vec::new();
        // Take the keys from several builds, which needs less memory at a time.
        for (number, start) in (0..n).step_by(ASKED).enumerate() {
            let keys = Keys::of_build(1 + number as u64).members((n - start).min(ASKED as u64));
            let digests = lab.digests(&hasher, &keys);
            standard.insert_batch(&Hashed(&digests));
            blocked.insert_batch(&Hashed(&digests));
            if number == 0 {
                members = digests;
            }
        }
        let members: Vec<Digest> =
            members.into_iter().cycle().take(LOOKUPS.max(n.min(ASKED as u64) as usize)).collect();
        let contestants = vec![
            one_by_one(&standard, &strangers),
            one_by_one(&standard, &members),
            in_batches(&standard, &strangers),
            in_batches(&blocked, &strangers),
        ];
        let times = race(lab.count(&ROUNDS) as usize, LOOKUPS as u64, contestants);
        curves.add(sweep, "keys", standard.stats().bytes / KIB, n, times);
    }
    sweep
        .at_most(
            "within the caches n matters little: time of a stranger with 10 000 keys / with 1000",
            curves.low(1, 0) / curves.low(0, 0),
            2.5,
        )
        .timed();
    Ok(())
}

/// Counts probes by the number of keys: in filters that were made for them, and in one that was
/// made for 100 000.
fn count_probes(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let mut sweep = Sweep::new("probes");
    let hasher = lab.hasher(1);
    let strangers = lab.digests(&hasher, &Keys::of_build(0).strangers(COUNTED));
    let made = 100_000;
    let cases = [1000, 10_000, 100_000, 1_000_000].map(|n| (n, n));
    let cases = cases.into_iter().chain([10, 50, 200, 300].map(|percent| (made, made / 100 * percent)));
    let mut found = Vec::new();
    for (made_for, n) in cases {
        let mut filter = Bloom::<Standard>::build(&Spec::new(made_for, RATE)?.with_hasher(hasher.clone()))?;
        filter.insert_batch(&Hashed(&lab.digests(&hasher, &Keys::of_build(0).members(n))));
        let fill = filter.stats().fill();
        let Probes { mean, chance, .. } = probes(&filter, &strangers)?;
        let expected = rate::expected_probes(fill, filter.layout().hashes())?;
        let claim = format!("probes for a stranger in a filter made for {made_for} keys that holds {n}");
        sweep
            .row()
            .cells([("made_for", &made_for), ("n", &n)])
            .value("fill", fill, 6)
            .value("probes", mean, 6)
            .near(claim, expected, chance)
            .value("expected", expected, 6);
        found.push((made_for, n, mean));
    }
    let at = |wanted| {
        found.iter().find(|(made_for, n, _)| (*made_for, *n) == wanted).map_or(f64::NAN, |found| found.2)
    };
    for (what, n, least, most) in
        [("a tenth of its keys", made / 10, 0.0, 0.7), ("three times its keys", made * 3, 1.5, 9.0)]
    {
        let claim = format!("n does matter: probes in a filter with {what} / probes in a full one");
        let ratio = at((made, n)) / at((made, made));
        sweep.judge(Criterion::between(claim, ratio, least, most)).shows("e30");
    }
    findings.add(sweep);
    Ok(())
}
