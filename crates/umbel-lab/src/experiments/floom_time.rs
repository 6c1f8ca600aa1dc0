//! E7b: the time of a Floom filter, compared with standard filters.

use super::prelude::*;
use crate::measure::{Time, once};
use umbel::floom::Floom;
use umbel::floom::Options;
use umbel::sizing::{KPolicy, Params};
use umbel::{Bloom, Digest, Insert, Standard};

pub struct PatternTimes;

const NAMES: [&str; 3] = ["standard", "Floom", "standard of equal memory"];

const RATE: Parameter = Parameter::real("p", "rate of the standard filter", [0.05; 2], [0.001, 0.3]);
const REGIONS: Parameter = Parameter::count("b", "regions of the filter", [8; 2], [2, 14]);
const ROUNDS: Parameter = Parameter::count("rounds", "rounds of each measurement", [9, 25], [3, 1000]);

/// The names of the charts, and the operations that they show.
const CHARTS: [(&str, &str); 3] = [
    ("insert_time", "insert a key"),
    ("member_time", "look up a member"),
    ("stranger_time", "look up a stranger"),
];

impl Experiment for PatternTimes {
    fn about(&self) -> About {
        About {
            id: "E7b",
            chapter: Chapter::Kinds,
            title: "The Floom filter is slower, too",
            sources: &[SCHIERZ],
            claim: "Inserting into a Floom filter takes longer than into a standard one. A \
                    standard filter that also gets the memory of the Floom filter's table is as \
                    fast as one without it.",
            set_up: "The time to insert n keys into an empty filter one by one, to look up members \
                     and to look up strangers, for a standard filter, for the Floom filter with \
                     the same bits and 2^b patterns, and for the standard filter of equal memory. \
                     Keys are hashed beforehand. In each round the three take turns; the reported \
                     time is the median of all rounds.",
            advice: "Take the larger standard filter: it has the lower rate and costs no extra \
                     time.",
            command: "`umbel build --kind floom`",
            seconds: [1, 6],
            timed: true,
            parameters: &[RATE, REGIONS, ROUNDS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let (p, b, rounds) = (lab.number(&RATE), lab.count(&REGIONS) as u32, lab.count(&ROUNDS));
        let counts: &[u64] = lab.either(
            &[1000, 10_000, 50_000, 200_000],
            &[1000, 3000, 10_000, 30_000, 100_000, 300_000, 500_000],
        );
        let mut findings = Findings::default();
        let mut shapes = Sweep::new("shapes");
        let mut times = CHARTS.into_iter().fold(Sweep::new("times"), |times, (name, done)| {
            let title = format!("Time to {done}, p = {p}, b = {b}");
            times.chart(name, title, Axis::log("keys n"), Axis::linear("nanoseconds"))
        });
        // Ratios to the standard filter, by filter and by operation.
        let mut ratios: [[Vec<f64>; 3]; 3] = Default::default();
        for n in counts {
            let params = Params::for_capacity(*n, p, KPolicy::Round)?;
            let bits = params.bits.next_multiple_of(8);
            let equal = Params::for_bits(bits + (1 << b), *n, KPolicy::Round)?;
            shapes
                .row()
                .cells([("n", &n), ("bits", &bits), ("hashes", &params.hashes)])
                .cell("pattern_bits", 1u64 << b)
                .cell("equal_hashes", equal.hashes);
            let hasher = lab.hasher(0);
            let keys = Keys::of_build(lab.seed);
            let members = lab.digests(&hasher, &keys.members(*n));
            let strangers = lab.digests(&hasher, &keys.strangers(*n));
            let options = Options { regions: Some(b), ..Options::default() };
            let standard = || Bloom::with_layout(Standard::new(bits, params.hashes)?, hasher.clone());
            let floom = || Floom::with_layout(Standard::new(bits, params.hashes)?, &options, hasher.clone());
            let large = || Bloom::with_layout(Standard::new(equal.bits, equal.hashes)?, hasher.clone());
            // Times by filter and by operation.
            let mut all: [[Vec<f64>; 3]; 3] = Default::default();
            for _ in 0..rounds {
                let of = [
                    round(standard()?, &members, &strangers)?,
                    round(floom()?, &members, &strangers)?,
                    round(large()?, &members, &strangers)?,
                ];
                for (all, times) in all.iter_mut().zip(of) {
                    all.iter_mut().zip(times).for_each(|(all, time)| all.push(time));
                }
            }
            let all = all.map(|filter| filter.map(Time::from_rounds));
            for (i, filter) in all.iter().enumerate() {
                let columns = ["insert_ns_per_key", "member_ns_per_key", "stranger_ns_per_key"];
                let row = times.at(*n as f64).cell("n", n).cell("filter", NAMES[i]);
                (0..).zip(columns).zip(filter).fold(row, |row, ((chart, column), time)| {
                    let row = row.on(chart).value(column, time.median, 2);
                    row.spread(time.low, time.high).path(NAMES[i], i)
                });
                for (what, time) in filter.iter().enumerate() {
                    ratios[i][what].push(time.median / all[0][what].median);
                }
            }
        }
        let median = |filter: usize, what: usize| Time::from_rounds(ratios[filter][what].clone()).median;
        for (what, done) in ["insertions", "lookups of members"].into_iter().enumerate() {
            let claim = format!("{done}: time of the Floom / standard filter, median over n");
            findings.at_least(claim, median(1, what), 1.1).timed();
        }
        let claim = "insertions: time of the larger standard / standard filter, median over n";
        findings.near(claim, median(2, 0), 1.0, 0.5).timed();
        findings.add(shapes);
        findings.add(times);
        findings.verdict =
            "The regions of a key have to be computed for every insertion, and for every key that \
             has passed the filter, which takes longer. The larger standard filter is as fast as \
             the smaller one."
                .into();
        Ok(findings)
    }
}

/// Returns the nanoseconds per key of an insertion, of a lookup of a member and of a lookup of a
/// stranger.
fn round<F: Insert>(mut filter: F, members: &[Digest], strangers: &[Digest]) -> Result<[f64; 3]> {
    let keys = members.len() as u64;
    let mut inserted = Ok(());
    let insert = once(keys, || {
        inserted = members.iter().try_for_each(|digest| filter.insert_digest(*digest).map(drop));
    });
    inserted.map_err(Into::<umbel::Error>::into)?;
    let asked = |digests: &[Digest]| {
        once(keys, || digests.iter().filter(|digest| filter.contains_digest(**digest)).count())
    };
    Ok([insert, asked(members), asked(strangers)])
}
