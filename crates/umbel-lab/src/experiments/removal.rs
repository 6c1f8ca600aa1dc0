//! E17: kinds that support removal: their memory, and the share of keys that can be removed.

use super::prelude::*;
use crate::measure::{Rate, positives};
use umbel::cuckoo::Form;
use umbel::internals::Layout;
use umbel::key::Hashed;
use umbel::sizing::deletable;
use umbel::spec::{KindOptions, plan};
use umbel::{AnyFilter, Deletable, Digest, Hasher, Kind, Removed, Spec};

pub struct Removal;

const KEYS: Parameter = Parameter::count("n", "keys in a filter", [20_000, 100_000], [1000, 1_000_000]);
const BUILDS: Parameter = Parameter::count("builds", "filters of each shape", [10; 2], [5, 1000]);
const QUERIES: Parameter =
    Parameter::count("queries", "strangers for each filter", [100_000, 500_000], [1000, 10_000_000]);

/// A kind of filter with its name and options.
struct Contestant {
    name: &'static str,
    kind: Kind,
    options: KindOptions,
}

fn contestants() -> Vec<Contestant> {
    let with = |name, kind| Contestant { name, kind, options: KindOptions::default() };
    let mut semi_sorted = with("cuckoo, semi-sorted", Kind::Cuckoo);
    semi_sorted.options.cuckoo.form = Form::SemiSorted;
    vec![
        with("standard", Kind::Standard),
        with("deletable", Kind::Deletable),
        with("counting", Kind::Counting),
        with("variable-increment", Kind::VariableIncrement),
        with("quotient", Kind::Quotient),
        with("cuckoo, plain", Kind::Cuckoo),
        semi_sorted,
    ]
}

impl Experiment for Removal {
    fn about(&self) -> About {
        About {
            id: "E17",
            chapter: Chapter::Kinds,
            title: "The cost of removing keys",
            sources: &[FAN_CAO, ROTTENSTREICH, ROTHENBERG, FAN_ANDERSEN, BENDER],
            claim: "Keys can be removed from counting, variable-increment, cuckoo and quotient \
                    filters, and most of them from a deletable filter, but none from a standard \
                    filter.",
            set_up: "Each kind for the same number of keys at 1 % and 0.1 %, as the library plans \
                     it. All keys are inserted; half of them are removed in random order, and the \
                     other half must still be found; then the rest is removed. The deletable \
                     filter is also tried with regions of other sizes.",
            advice: "To remove keys, take a cuckoo filter, or a quotient filter if the same key \
                     may be inserted often; take counters only if you need their counts.",
            command: "`umbel build --kind cuckoo` and `umbel remove`",
            seconds: [1, 12],
            timed: false,
            parameters: &[KEYS, BUILDS, QUERIES],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut sweep = Sweep::new("removal");
        let mut named = Vec::new();
        for p in [0.01, 0.001] {
            let mut sizes = Vec::new();
            for contestant in contestants() {
                let found = measured(lab, p, &contestant)?;
                let claim = |text: &str| format!("{}, p = {p}: {text}", contestant.name);
                let share = claim("share of keys removed");
                let predicted = match contestant.kind {
                    Kind::Deletable => Some(predicted(lab, p, &contestant.options)?),
                    _ => None,
                };
                let is_standard = contestant.kind == Kind::Standard;
                let removes_all = !is_standard && predicted.is_none();
                sweep
                    .row()
                    .cells([("p", &p), ("filter", &contestant.name)])
                    .value("bits_per_key", found.bits_per_key, 3)
                    .value("rate", found.rate.mean, 6)
                    .at_most(claim("rate"), 1.02 * p + found.rate.chance(p))
                    .value("rate_after_half", found.after_half, 6)
                    .value("removed", found.removed, 4)
                    .when(is_standard, |point| point.at_most(share.clone(), 0.0))
                    .when(removes_all, |point| point.at_least(share.clone(), 1.0))
                    .with(predicted, |point, predicted| point.near(share.clone(), predicted, deviation(lab)))
                    .count("lost", found.lost)
                    .at_most(claim("keys lost through the removal of others"), 0.0)
                    .count("strangers_after_all", found.after_all)
                    .when(removes_all, |point| {
                        point.at_most(claim("strangers found after all keys are removed"), 0.0)
                    });
                sizes.push((contestant.name, found.bits_per_key));
                if p == 0.01 {
                    named.push((contestant.name, found.bits_per_key, found.removed));
                }
            }
            compare(p, &sizes, &mut sweep);
        }
        findings.add(sweep);
        regions(lab, &named, &mut findings)?;
        by_rate(lab, &mut findings)?;
        findings.verdict =
            "A counting filter takes four times the memory of the standard one to make every key \
             removable, a variable-increment filter a quarter less than that. Cuckoo and quotient \
             filters do the same in about a third of the memory of a counting filter, or less. The \
             deletable filter takes a quarter more memory than the standard one, and releases most \
             keys, not all. No removal of a key has made a filter forget another."
                .into();
        Ok(findings)
    }
}

/// The measurements of removals from one kind of filter.
struct Removals {
    bits_per_key: f64,
    rate: Rate,
    /// Rate after half of the removals.
    after_half: f64,
    /// Share of keys that were removed.
    removed: f64,
    /// Number of keys that were neither removed nor found.
    lost: u64,
    /// Number of strangers found after all removals.
    after_all: u64,
}

/// Removes these keys, and returns those that could not be removed: all of them if the kind does
/// not support removal.
fn remove(filter: &mut AnyFilter, digests: &[Digest]) -> Result<Vec<Digest>> {
    if !filter.kind().capabilities().remove {
        return Ok(digests.to_vec());
    }
    let mut kept = Vec::new();
    for digest in digests {
        if filter.remove_digest(*digest)? != Removed::Removed {
            kept.push(*digest);
        }
    }
    Ok(kept)
}

fn measured(lab: &Lab, p: f64, contestant: &Contestant) -> Result<Removals> {
    let (n, builds, queries) = (lab.count(&KEYS), lab.count(&BUILDS), lab.count(&QUERIES));
    let (mut rates, mut after_half, mut kept, mut lost, mut after_all) = (Vec::new(), 0, 0, 0, 0);
    let mut bits = 0;
    for build in 0..builds {
        let (keys, hasher) = (Keys::of_build(build), lab.hasher(build));
        let spec = spec(n, p, &contestant.options, hasher.clone())?;
        let mut filter = AnyFilter::build(contestant.kind, &spec)?;
        bits = filter.stats().bits;
        let mut members = lab.digests(&hasher, &keys.members(n));
        filter.insert_batch(&Hashed(&members))?;
        let strangers = keys.strangers(queries);
        rates.push(positives(lab, &filter, &strangers) as f64 / queries as f64);
        members.sort_by_key(|digest| digest.salted(lab.seed).get());
        let (first, second) = members.split_at(members.len() / 2);
        let stay = remove(&mut filter, first)?;
        after_half += positives(lab, &filter, &strangers);
        for left in [&stay[..], second] {
            lost += left.len() as u64 - filter.contains_batch(&Hashed(left)).count();
        }
        let stay_too = remove(&mut filter, second)?;
        kept += stay.len() + stay_too.len();
        for left in [&stay, &stay_too] {
            lost += left.len() as u64 - filter.contains_batch(&Hashed(left)).count();
        }
        after_all += positives(lab, &filter, &strangers);
    }
    let all = (n * builds) as f64;
    Ok(Removals {
        bits_per_key: bits as f64 / n as f64,
        rate: Rate::from_builds(&rates, queries),
        after_half: after_half as f64 / (queries * builds) as f64,
        removed: 1.0 - kept as f64 / all,
        lost,
        after_all,
    })
}

fn spec(n: u64, p: f64, options: &KindOptions, hasher: Hasher) -> Result<Spec> {
    Ok(Spec::new(n, p)?.with_options(options.clone()).with_hasher(hasher))
}

/// Returns the share of keys of a full deletable filter that can be removed, by theory.
fn predicted(lab: &Lab, p: f64, options: &KindOptions) -> Result<f64> {
    let n = lab.count(&KEYS);
    let filter = Deletable::build(&spec(n, p, options, lab.hasher(0))?)?;
    Ok(deletable::deletability(filter.layout().bits(), filter.regions(), n, filter.layout().hashes())?)
}

/// Returns the tolerance of a share: theory treats the k bits of a key as independent, which is a
/// little wrong; and chance.
fn deviation(lab: &Lab) -> f64 {
    0.02 + 4.0 * 0.5 / ((lab.count(&KEYS) * lab.count(&BUILDS)) as f64).sqrt()
}

fn compare(p: f64, sizes: &[(&str, f64)], sweep: &mut Sweep) {
    let of = |name: &str| sizes.iter().find(|size| size.0 == name).map_or(f64::NAN, |size| size.1);
    let mut ratio = |name: &str, other: &str, expected: f64, tolerance: f64| {
        let claim = format!("p = {p}: bits of the {name} / {other} filter");
        sweep.near(claim, of(name) / of(other), expected, tolerance);
    };
    ratio("counting", "standard", 4.0, 0.05);
    ratio("deletable", "standard", 1.25, 0.02);
    ratio("variable-increment", "counting", 0.725, 0.1);
    for name in ["quotient", "cuckoo, plain", "cuckoo, semi-sorted"] {
        let claim = format!("p = {p}: bits of the {name} / counting filter");
        sweep.at_most(claim, of(name) / of("counting"), 0.5);
    }
}

/// Measures the deletable filter with regions of other sizes, and draws it next to the other kinds.
fn regions(lab: &Lab, named: &[(&str, f64, f64)], findings: &mut Findings) -> Result<()> {
    let p = 0.01;
    let mut sweep = Sweep::new("regions").chart(
        "removed",
        "Share of keys that can be removed, by bits per key, p = 0.01",
        Axis::log("bits per key"),
        Axis::linear("share of keys removed"),
    );
    for region_bits in [1, 2, 3, 4, 6, 8, 12, 16, 32, 64] {
        let mut contestant =
            Contestant { name: "deletable", kind: Kind::Deletable, options: KindOptions::default() };
        contestant.options.deletable.region_bits = region_bits;
        let (found, theory) = (measured(lab, p, &contestant)?, predicted(lab, p, &contestant.options)?);
        let claim = format!("share removed from a deletable filter with {region_bits}-bit regions");
        sweep
            .at(found.bits_per_key)
            .cell("bits_of_a_region", region_bits)
            .value("bits_per_key", found.bits_per_key, 3)
            .value("theory", theory, 4)
            .line("deletable, regions of 64 to 1 bits, theory", 1)
            .value("measured", found.removed, 4)
            .dots("deletable, measured", 1)
            .near(claim, theory, deviation(lab));
    }
    let others = named.iter().filter(|named| named.0 != "deletable");
    for (colour, (name, bits, share)) in [6, 0, 2, 3, 4, 5].into_iter().zip(others) {
        sweep.series(*name, Mark::Dots, colour, [(*bits, *share)]);
    }
    findings.add(sweep);
    Ok(())
}

/// Draws the memory by rate.
fn by_rate(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let n = lab.count(&KEYS);
    let mut series = Vec::new();
    for (colour, contestant) in contestants().into_iter().enumerate() {
        let mut points = Vec::new();
        for step in 0..=120 {
            let p = 0.1 * 0.001f64.powf(f64::from(step) / 120.0);
            let plan = plan(contestant.kind, &spec(n, p, &contestant.options, lab.hasher(0))?)?;
            points.push((p, plan.bits as f64 / n as f64));
        }
        let mark = if contestant.kind == Kind::Standard { Mark::Dashes } else { Mark::Line };
        series.push(Series::new(contestant.name, mark, if colour == 0 { 6 } else { colour - 1 }, points));
    }
    findings.charts.push(Chart {
        name: "bits_per_key".into(),
        title: "Bits per key by rate, for filters that support removal".into(),
        x: Axis::log("false-positive rate"),
        y: Axis::linear("bits per key"),
        series,
    });
    Ok(())
}
