//! E18: rate and lookup time of filters that get more keys than they were made for.

use super::prelude::*;
use crate::measure::{self, Rate, Time};
use umbel::key::Hashed;
use umbel::{AnyFilter, Digest, Error, Kind, Spec};

pub struct Load;

const CAPACITY: Parameter = Parameter::count("n", "capacity of the filters", [100_000; 2], [1000, 1_000_000]);
const RATE: Parameter = Parameter::real("p", "rate at capacity", [0.01; 2], [1e-4, 0.1]);
const BUILDS: Parameter = Parameter::count("builds", "filters of each kind", [20, 20], [2, 100]);
const QUERIES: Parameter =
    Parameter::count("queries", "strangers for each filter", [50_000, 500_000], [1000, 1_000_000]);
const ROUNDS: Parameter = Parameter::count("rounds", "timed rounds", [15, 51], [3, 1000]);

const KINDS: [Kind; 5] = [Kind::Standard, Kind::Blocked, Kind::Scalable, Kind::Cuckoo, Kind::Quotient];

/// Numbers of keys, as multiples of the capacity.
const LOADS: [f64; 10] = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0];

/// Lookups of a timed round.
const LOOKUPS: usize = 10_000;

impl Experiment for Load {
    fn about(&self) -> About {
        About {
            id: "E18",
            chapter: Chapter::Kinds,
            title: "Filters beyond their capacity: rate and lookup time",
            sources: &[JAMBURA, SCHIERZ, ALMEIDA, FAN_ANDERSEN, BENDER],
            claim: "A Bloom filter takes any number of keys, and its rate rises with them. A \
                    scalable filter keeps its rate; cuckoo and quotient filters refuse keys when \
                    they are full. The time of a lookup does not depend on the number of keys.",
            set_up: "Filters for 100 000 keys at 1 % are given up to three times as many keys, and \
                     queried with strangers on the way. Times are of single lookups of strangers, \
                     in rounds that alternate between all kinds and loads.",
            advice: "Watch the number of keys of a Bloom filter, because nothing fails when it is \
                     exceeded; where an error is better than a rising rate, take a cuckoo or \
                     quotient filter.",
            command: "`umbel info`, which reports keys, capacity and the present rate",
            seconds: [3, 6],
            timed: true,
            parameters: &[CAPACITY, RATE, BUILDS, QUERIES, ROUNDS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut histories = Vec::new();
        for kind in KINDS {
            histories.push(history(lab, kind)?);
        }
        rates(lab, &histories, &mut findings)?;
        times(lab, &histories, &mut findings);
        findings.verdict =
            "Standard and blocked filters say yes more and more often, as the formula predicts; \
             the scalable filter keeps to the rate asked for; cuckoo filters take 1 to 2 % and \
             quotient filters 19 % more keys than they were made for, and then refuse the next one \
             without losing any. A lookup in a standard filter ends at the first zero bit, so \
             strangers take longer in a full filter than in a nearly empty one."
                .into();
        Ok(findings)
    }
}

/// A filter at one of the loads.
struct Moment {
    /// Keys in the filter.
    keys: u64,
    /// Rate in each build.
    rates: Vec<f64>,
    /// Filter of the first build.
    filter: AnyFilter,
}

/// The measurements of the filters of a kind.
struct History {
    kind: Kind,
    moments: Vec<Moment>,
    /// Number of keys in each build when it refused one, and its rate at that time.
    refused_at: Vec<u64>,
    full_rates: Vec<f64>,
    /// Members that were not found at the end.
    lost: u64,
}

fn history(lab: &Lab, kind: Kind) -> Result<History> {
    let (n, queries) = (lab.count(&CAPACITY), lab.count(&QUERIES));
    let mut history =
        History { kind, moments: Vec::new(), refused_at: Vec::new(), full_rates: Vec::new(), lost: 0 };
    for build in 0..lab.count(&BUILDS) {
        let (keys, hasher) = (Keys::of_build(build), lab.hasher(build));
        let sizes = LOADS.map(|load| (load * n as f64).round() as usize);
        let members = lab.digests(&hasher, &keys.members(sizes[LOADS.len() - 1] as u64));
        let strangers = keys.strangers(queries);
        let spec = Spec::new(n, lab.number(&RATE))?.with_hasher(hasher);
        let mut filter = AnyFilter::build(kind, &spec)?;
        let mut inside = 0;
        for (i, size) in sizes.into_iter().enumerate() {
            let full = match filter.insert_batch(&Hashed(&members[inside..size])) {
                Ok(()) => false,
                Err(Error::Full { .. }) => true,
                Err(error) => return Err(error.into()),
            };
            inside = if full { filter.inserted().unwrap_or_default() as usize } else { size };
            let rate = measure::positives(lab, &filter, &strangers) as f64 / queries as f64;
            if full {
                history.refused_at.push(inside as u64);
                history.full_rates.push(rate);
                break;
            }
            match history.moments.get_mut(i) {
                Some(moment) => moment.rates.push(rate),
                None => {
                    let filter = filter.try_clone()?;
                    history.moments.push(Moment { keys: size as u64, rates: vec![rate], filter });
                }
            }
        }
        let found = filter.contains_batch(&Hashed(&members[..inside])).count();
        history.lost += inside as u64 - found;
    }
    Ok(history)
}

/// Judges and draws the rates, which do not depend on the machine.
fn rates(lab: &Lab, histories: &[History], findings: &mut Findings) -> Result<()> {
    let (n, p, queries) = (lab.count(&CAPACITY), lab.number(&RATE), lab.count(&QUERIES));
    let mut sweep = Sweep::new("rates").chart(
        "rates",
        format!("Rate of filters for {n} keys"),
        Axis::linear("keys / capacity"),
        Axis::log("false-positive rate"),
    );
    let mut refusals = Sweep::new("refusals");
    for (colour, History { kind, moments, refused_at, full_rates, lost }) in histories.iter().enumerate() {
        let mut kept = true;
        let has_theory = matches!(kind, Kind::Standard | Kind::Blocked);
        let mark = if has_theory { Mark::Dots } else { Mark::Path };
        let end = if has_theory || refused_at.is_empty() { "" } else { ", until full" };
        let label = format!("{kind}{end}");
        for moment in moments {
            let load = moment.keys as f64 / n as f64;
            let found = Rate::from_builds(&moment.rates, queries);
            let predicted = moment.filter.predicted_rate(moment.keys)?;
            kept &= found.mean <= p * 1.02 + found.chance(p);
            sweep
                .at(load)
                .cell("kind", kind)
                .value("load", load, 2)
                .cell("keys", moment.keys)
                .value("predicted", predicted, 6)
                .when(has_theory, |point| point.line(format!("{kind}, theory"), colour))
                .rate("measured", &found, 6)
                // Fewer than ten expected events say nothing.
                .when(predicted * (found.builds * queries) as f64 >= 10.0, |point| {
                    point.drawn(mark, label.clone(), colour)
                })
                .when(has_theory && load >= 0.5, |point| {
                    point.agrees(format!("{kind}, load {load}: rate"), predicted, 0.02)
                });
        }
        let ends = |end: Option<&u64>| end.map_or(f64::NAN, |keys| *keys as f64 / n as f64);
        let (first, last) = (ends(refused_at.iter().min()), ends(refused_at.iter().max()));
        let builds = lab.count(&BUILDS);
        if !refused_at.is_empty() {
            let load = refused_at.iter().sum::<u64>() as f64 / (refused_at.len() as u64 * n) as f64;
            let found = Rate::from_builds(full_rates, queries);
            let most = 1.02 * load.max(1.0) + found.chance(p) / p;
            sweep
                .at(load)
                .cell("kind", kind)
                .value("load", load, 4)
                .value("measured", found.mean, 6)
                .drawn(mark, label, colour)
                .hidden(found.mean / p)
                .at_most(format!("{kind}: rate when full / requested rate"), most);
        }
        match kind {
            Kind::Standard | Kind::Blocked => (),
            Kind::Scalable => {
                let claim =
                    format!("{kind}: keeps the requested rate up to three times the keys of the first stage");
                sweep.that(claim, kept && refused_at.is_empty());
            }
            _ => {
                let claim = format!("{kind}: filters that refuse a key before three times the capacity");
                sweep.near(claim, refused_at.len() as f64, builds as f64, 0.0);
                sweep.at_least(format!("{kind}: smallest load at a refusal"), first, 1.0);
            }
        }
        let finite = |load: f64| Some(load).filter(|load| !load.is_nan());
        refusals
            .row()
            .cells([("kind", &kind), ("filters_that_refused", &refused_at.len())])
            .optional("first_at_load", finite(first), 4)
            .optional("last_at_load", finite(last), 4)
            .count("members_lost", *lost)
            .at_most(format!("{kind}: members not found"), 0.0);
    }
    findings.add(sweep);
    findings.add(refusals);
    Ok(())
}

fn times(lab: &Lab, histories: &[History], findings: &mut Findings) {
    let hasher = lab.hasher(0);
    let strangers: Vec<Digest> = lab.digests(&hasher, &Keys::of_build(0).strangers(LOOKUPS as u64));
    let mut rounds: Vec<Vec<Vec<f64>>> =
        histories.iter().map(|history| vec![Vec::new(); history.moments.len()]).collect();
    for _ in 0..lab.count(&ROUNDS) {
        for (history, rounds) in histories.iter().zip(&mut rounds) {
            for (moment, rounds) in history.moments.iter().zip(rounds) {
                let look =
                    || strangers.iter().filter(|digest| moment.filter.contains_digest(**digest)).count();
                // One run to bring the filter into the caches.
                std::hint::black_box(look());
                rounds.push(measure::once(LOOKUPS as u64, look));
            }
        }
    }
    let n = lab.count(&CAPACITY);
    let mut sweep = Sweep::new("lookup_times").chart(
        "lookup_times",
        "Time of a lookup of a stranger",
        Axis::linear("keys / capacity"),
        Axis::linear("nanoseconds per lookup"),
    );
    for (colour, (history, rounds)) in histories.iter().zip(rounds).enumerate() {
        let times: Vec<Time> = rounds.into_iter().map(Time::from_rounds).collect();
        for (moment, time) in history.moments.iter().zip(&times) {
            let load = moment.keys as f64 / n as f64;
            sweep
                .at(load)
                .cell("kind", history.kind)
                .value("load", load, 2)
                .time(["ns_per_lookup", "quarter", "three_quarters"], time, 2)
                .path(history.kind.to_string(), colour);
        }
        if history.kind == Kind::Standard {
            let claim = "standard: time of a lookup at three times the capacity / at a quarter of it";
            let ratio = times[times.len() - 1].median / times[1].median;
            sweep.at_least(claim, ratio, 1.1).timed();
        }
    }
    findings.add(sweep);
}
