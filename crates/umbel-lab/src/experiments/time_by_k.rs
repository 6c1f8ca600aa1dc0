//! E15: the time of insertions and lookups by the number of hash functions, and the probes behind
//! it.

use super::prelude::*;
use crate::measure::{self, Contestant, Probes, Time, Turns, race};
use std::f64::consts::LN_2;
use umbel::internals::Structure;
use umbel::key::Hashed;
use umbel::literature::{Family, Literature, Scheme};
use umbel::{Bloom, Digest, Standard, sizing::rate};

pub struct TimeByHashes;

const KEYS: Parameter = Parameter::count("n", "keys in a filter", [10_000; 2], [1000, 10_000_000]);
const BITS: Parameter =
    Parameter::real("bits", "bits per key where the size is fixed", [10.0; 2], [2.0, 100.0]);
const QUERIES: Parameter =
    Parameter::count("queries", "different lookups", [40_000, 100_000], [1000, 1_000_000]);
const ROUNDS: Parameter = Parameter::count("rounds", "rounds of each measurement", [31, 101], [3, 1000]);

/// The numbers of hash functions.
const HASHES: [u32; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20];
/// Lookups in a round.
const LOOKUPS: usize = 5000;
/// The smallest k for which times are compared. Below it, the fixed cost of a call dominates.
const FROM: u32 = 5;

impl Experiment for TimeByHashes {
    fn about(&self) -> About {
        About {
            id: "E15",
            chapter: Chapter::Hashing,
            title: "Time by hash functions: a stranger costs two probes, whatever k",
            sources: &[SCHIERZ],
            claim: "Schierz 2022 (figures 3 to 6) says that insertions and lookups take a time \
                    linear in k, lookups of non-members too, on average, and that spikes among \
                    them are false positives. But a lookup ends at the first zero, after (1 - \
                    rho^k)/(1 - rho) probes, where rho is the share of set bits: two in a \
                    half-full filter.",
            set_up: "10 000 keys and k from 1 to 20, once with ten bits per key for every k, as in \
                     the source, and once with the size that is half full at each k. Insertions, \
                     lookups of members, of strangers, and of ten members for each stranger, one \
                     by one and in batches; also the method of the source, which hashes a key once \
                     for each function (MurmurHash3). Times are medians over rounds in which all \
                     take turns, with quartiles. Keys of library filters are hashed beforehand. \
                     Probes are counted one by one.",
            advice: "Do not fear a large k if most lookups are for absent keys: they stop after \
                     two probes; only insertions and hits pay for every function.",
            command: "`umbel plan --policy`, which rounds k",
            seconds: [2, 5],
            timed: true,
            parameters: &[KEYS, BITS, QUERIES, ROUNDS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let work = Work::new(lab);
        let fixed_bits = (lab.number(&BITS) * work.n as f64) as u64;
        let set_ups = [
            SetUp { name: "fixed", title: "of a fixed size", bits: |_, _, fixed| fixed },
            SetUp { name: "half", title: "half full at each k", bits: |n, k, _| half_full(n, k) },
        ];
        let mut probes = Sweep::new("probes").chart(
            "probes",
            "Probes of a lookup of a stranger",
            Axis::linear("hash functions k"),
            Axis::linear("probes per lookup"),
        );
        let mut times = [
            ("times_fixed", "filters of a fixed size"),
            ("times_half", "filters half full at each k"),
            ("times_source", "hashed k times, of a fixed size"),
        ]
        .into_iter()
        .fold(Sweep::new("times"), |times, (name, what)| {
            let title = format!("Time by hash functions: {what}");
            times.chart(name, title, Axis::linear("hash functions k"), Axis::linear("time per key (ns)"))
        });
        for (number, set_up) in set_ups.iter().enumerate() {
            let mut counted = Vec::new();
            let mut filters = Vec::new();
            for k in HASHES {
                let bits = (set_up.bits)(work.n, k, fixed_bits);
                let filter = work.filter(bits, k)?;
                let seen = measure::probes(&filter, &lab.digests(filter.hasher(), &work.strangers))?;
                let fill = filter.stats().fill();
                let expected = rate::expected_probes(fill, k)?;
                let claim = format!("probes for a stranger in a filter {}, k = {k}", set_up.title);
                probes
                    .at(k.into())
                    .cells([("set_up", &set_up.name), ("k", &k)])
                    .value("bits_per_key", bits as f64 / work.n as f64, 4)
                    .value("fill", fill, 6)
                    .value("probes", seen.mean, 6)
                    .dots(format!("{}, counted", set_up.title), number)
                    .near(claim, expected, seen.chance)
                    .value("expected", expected, 6)
                    .line(format!("{}, theory", set_up.title), number)
                    .value("rate", seen.positives, 6);
                counted.push(Count { k, expected, seen });
                filters.push(filter);
            }
            let curves = work.race(&filters)?;
            // All operations share one chart; batches are drawn only for half-full filters.
            let shown = if set_up.name == "half" { OURS.len() } else { OURS.len() - 2 };
            for (colour, curve) in curves.iter().enumerate() {
                curve.describe(&mut times, set_up.name, number, (colour < shown).then_some(colour));
            }
            if set_up.name == "half" {
                constant_probes(&mut probes, &counted);
                constant_time(&mut times, &curves);
            } else {
                rising_probes(&mut probes, &counted);
            }
        }
        let curves = work.race_source(fixed_bits)?;
        for (colour, curve) in curves.iter().enumerate() {
            curve.describe(&mut times, "source", set_ups.len(), Some(colour));
        }
        linear_time(&mut times, &curves);
        findings.add(times);
        findings.add(probes);
        findings.verdict =
            "Insertions and lookups of members are linear in k. A stranger costs two probes in a \
             half-full filter, whatever k, and its time hardly grows. It seems to grow with k only \
             where the size is fixed, because every further hash function makes the filter fuller."
                .into();
        Ok(findings)
    }
}

/// The dependence of the size of a filter on k.
struct SetUp {
    name: &'static str,
    title: &'static str,
    bits: fn(u64, u32, u64) -> u64,
}

/// Returns the size at which `n` keys with `k` hash functions set half of the bits.
fn half_full(n: u64, k: u32) -> u64 {
    (n as f64 * f64::from(k) / LN_2) as u64
}

/// The probes that were counted for one k.
struct Count {
    k: u32,
    expected: f64,
    seen: Probes,
}

/// The operations, in the order of the contestants.
const OURS: [&str; 6] =
    ["insertions", "members", "strangers", "10 members : 1 stranger", "members, batch", "strangers, batch"];

/// Keys and queries.
struct Work<'a> {
    lab: &'a Lab,
    n: u64,
    rounds: usize,
    /// One member per query; members repeat if the filter has fewer keys.
    members: Vec<u64>,
    strangers: Vec<u64>,
    mixed: Vec<u64>,
}

impl Work<'_> {
    fn new(lab: &Lab) -> Work<'_> {
        let (n, queries, keys) = (lab.count(&KEYS), lab.count(&QUERIES), Keys::of_build(0));
        let members: Vec<u64> = keys.members(n).into_iter().cycle().take(queries as usize).collect();
        let strangers = keys.strangers(queries);
        let mixed =
            (0..queries as usize).map(|i| if i % 11 == 10 { strangers[i] } else { members[i] }).collect();
        Work { lab, n, rounds: lab.count(&ROUNDS) as usize, members, strangers, mixed }
    }

    fn filter(&self, bits: u64, k: u32) -> Result<Bloom<Standard>> {
        let hasher = self.lab.hasher(0);
        let digests = self.lab.digests(&hasher, &Keys::of_build(0).members(self.n));
        let mut filter = Bloom::with_layout(Standard::new(bits, k)?, hasher)?;
        filter.insert_batch(&Hashed(&digests));
        Ok(filter)
    }

    /// Times the operations of [`OURS`]. Filters of all k take turns, so that other load affects
    /// all of them equally.
    fn race(&self, filters: &[Bloom<Standard>]) -> Result<Vec<Curve>> {
        let hasher = self.lab.hasher(0);
        let [members, strangers, mixed] =
            [&self.members, &self.strangers, &self.mixed].map(|keys| self.lab.digests(&hasher, keys));
        // Inserting the members again sets the same bits, so the filter does not change.
        let mut filled = filters.iter().map(Structure::try_clone).collect::<umbel::Result<Vec<_>>>()?;
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        for (filter, filled) in filters.iter().zip(&mut filled) {
            let insert = move |digest: &Digest| filled.insert_digest(*digest);
            contestants.push(each(Turns::new(&members, LOOKUPS), insert));
            for digests in [&members, &strangers, &mixed] {
                contestants
                    .push(each(Turns::new(digests, LOOKUPS), |digest| filter.contains_digest(*digest)));
            }
            for digests in [&members, &strangers] {
                let mut turns = Turns::new(digests, LOOKUPS);
                contestants
                    .push(Box::new(move || filter.contains_batch(&Hashed(turns.next_round())).count()));
            }
        }
        Ok(self.curves(&OURS, contestants))
    }

    /// Times the first four operations of [`OURS`] by the method of the source: one hash of the key
    /// per function.
    fn race_source(&self, bits: u64) -> Result<Vec<Curve>> {
        let filter = |k| {
            let mut filter = Literature::new(Scheme::new(Family::Murmur3, k, bits)?)?;
            filter.insert_batch(&Keys::of_build(0).members(self.n));
            Ok(filter)
        };
        let filters = HASHES.into_iter().map(filter).collect::<Result<Vec<_>>>()?;
        let mut filled = filters.iter().map(Literature::try_clone).collect::<umbel::Result<Vec<_>>>()?;
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        for (filter, filled) in filters.iter().zip(&mut filled) {
            let insert = move |key: &u64| filled.insert(key);
            contestants.push(each(Turns::new(&self.members, LOOKUPS), insert));
            for keys in [&self.members, &self.strangers, &self.mixed] {
                contestants.push(each(Turns::new(keys, LOOKUPS), |key| filter.contains(key)));
            }
        }
        Ok(self.curves(&OURS[..4], contestants))
    }

    /// Races the contestants, which are all operations for each k, and returns a curve per
    /// operation.
    fn curves(&self, kinds: &[&'static str], contestants: Vec<Contestant<'_>>) -> Vec<Curve> {
        let times = race(self.rounds, self.members.len().min(LOOKUPS) as u64, contestants);
        let of = |(at, what): (usize, &&'static str)| {
            let own = times.iter().skip(at).step_by(kinds.len());
            Curve { what, times: HASHES.into_iter().zip(own.copied()).collect() }
        };
        kinds.iter().enumerate().map(of).collect()
    }
}

/// Creates a contestant that applies a predicate to the elements of a round one by one, and counts
/// the true ones.
fn each<'a, T>(mut turns: Turns<'a, T>, mut is_true: impl FnMut(&T) -> bool + 'a) -> Contestant<'a> {
    Box::new(move || turns.next_round().iter().map(|one| u64::from(is_true(one))).sum())
}

/// The times of an operation by k.
struct Curve {
    what: &'static str,
    times: Vec<(u32, Time)>,
}

impl Curve {
    /// Adds a row for each k, drawn in the chart with this number if there is a colour.
    fn describe(&self, sweep: &mut Sweep, set_up: &str, chart: usize, colour: Option<usize>) {
        for (k, time) in &self.times {
            sweep
                .at((*k).into())
                .on(chart)
                .cells([("set_up", &set_up), ("k", &k), ("what", &self.what)])
                .time(["median_ns_per_key", "lower_quartile_ns", "upper_quartile_ns"], time, 2)
                .with(colour, |point, colour| point.path(self.what, colour));
        }
    }

    /// Returns the nanoseconds that a further hash function costs, by least squares over the lower
    /// quartiles, which other load on the machine affects least.
    fn slope(&self) -> f64 {
        let times = self.times.iter().filter(|(k, _)| *k >= FROM);
        slope(times.map(|(k, time)| (f64::from(*k), time.low)))
    }
}

/// Returns the slope of points by least squares.
fn slope(points: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut count, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for point in points {
        count += 1.0;
        x += point.0;
        y += point.1;
        xx += point.0 * point.0;
        xy += point.0 * point.1;
    }
    (count * xy - x * y) / (count * xx - x * x)
}

/// Judges the probes in half-full filters.
fn constant_probes(sweep: &mut Sweep, counted: &[Count]) {
    for Count { k, seen, .. } in counted.iter().filter(|count| [7, 20].contains(&count.k)) {
        let claim = format!("probes for a stranger in a half-full filter, k = {k}: two");
        let two = 2.0 - 2.0 * 0.5f64.powi(*k as i32);
        // The fill of one filter differs a little from a half; and chance.
        sweep.near(claim, seen.mean, two, 0.03 * two + seen.chance).shows("e29");
    }
    if let Some(Count { seen, .. }) = counted.iter().find(|count| count.k == 20) {
        let share = 20.0 * seen.positives / seen.mean;
        let claim = "share of probes due to false positives in a half-full filter, k = 20";
        sweep.at_most(claim, share, 0.01).shows("e29");
    }
}

/// Judges the probes in filters of a fixed size, which get fuller with k.
fn rising_probes(sweep: &mut Sweep, counted: &[Count]) {
    let at = |k| counted.iter().find(|count| count.k == k).map_or(f64::NAN, |count| count.expected);
    sweep
        .at_least(
            "filters of a fixed size get fuller: expected probes for a stranger, k = 20 / k = 5",
            at(20) / at(5),
            1.05,
        )
        .shows("e29");
}

/// Judges the times in half-full filters: members get slower with k, strangers do not.
fn constant_time(sweep: &mut Sweep, curves: &[Curve]) {
    let [insertions, members, strangers] = [0, 1, 2].map(|curve| curves[curve].slope());
    let than = |what| format!("half full: cost of a further hash function for a stranger / for {what}");
    sweep.at_most(than("a member"), strangers / members, 0.5).timed().shows("e29");
    sweep.at_most(than("an insertion"), strangers / insertions, 0.5).timed();
}

/// Judges the times of the method of the source.
fn linear_time(sweep: &mut Sweep, curves: &[Curve]) {
    for (curve, what) in [(0, "insertions"), (1, "lookups of members"), (3, "ten members for each stranger")]
    {
        let at = |wanted| curves[curve].times.iter().find(|(k, _)| *k == wanted);
        let ratio = at(20).zip(at(FROM)).map_or(f64::NAN, |(many, few)| many.1.low / few.1.low);
        let claim = format!("hashed k times: {what}, time at k = 20 / time at k = {FROM}");
        sweep.at_least(claim, ratio, 2.0).timed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_of_points_on_a_line_is_that_of_the_line() {
        assert!((slope([(1.0, 5.0), (2.0, 8.0), (4.0, 14.0)].into_iter()) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_filter_of_the_half_full_size_is_half_full() {
        for k in [1, 7, 20] {
            let fill = rate::expected_fill(half_full(10_000, k), 10_000, k).unwrap();
            assert!((fill - 0.5).abs() < 1e-4, "{k}: {fill}");
        }
    }
}
