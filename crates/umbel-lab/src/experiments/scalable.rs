//! E6: filters that grow, with and without tightening the rate of their stages.

use super::prelude::*;
use crate::measure::Rate;

use umbel::key::Hashed;
use umbel::scalable::Stage;
use umbel::sizing::scalable::{Schedule, compound};
use umbel::sizing::{PartitionedParams, partitioned, rate};
use umbel::spec::KindOptions;
use umbel::{Bloom, Digest, Hasher, Kind, Partitioned, Scalable, Spec, Standard};

pub struct Growing;

const CAPACITY: Parameter = Parameter::count("n", "keys of the first stage", [1000; 2], [100, 5000]);
const RATE: Parameter = Parameter::real("p", "requested rate", [0.01; 2], [1e-4, 0.1]);
const TIGHTENING: Parameter =
    Parameter::real("r", "rate of a stage as a share of the previous one", [0.5; 2], [0.1, 0.95]);
const GROWTH: Parameter =
    Parameter::count("s", "size of a stage as a multiple of the previous one", [2; 2], [2, 4]);
const STAGES: Parameter = Parameter::count("stages", "number of stages to fill", [6; 2], [1, 6]);
const BUILDS: Parameter = Parameter::count("builds", "number of filters", [20, 60], [2, 200]);
const QUERIES: Parameter =
    Parameter::count("queries", "strangers for each filter", [100_000, 1_000_000], [1000, 2_000_000]);

/// Rates measured elsewhere for single stages of 1000, 2000, ... keys at p = 0.01 and r = 1/2.
const PRINTED: [f64; 6] = [0.0040, 0.0019, 0.0010, 0.0005, 0.000_23, 0.000_10];

impl Experiment for Growing {
    fn about(&self) -> About {
        About {
            id: "E6",
            chapter: Chapter::Kinds,
            title: "A filter that grows keeps its rate only if its stages get stricter",
            sources: &[ALMEIDA, SCHIERZ],
            claim: "Stage i of a scalable filter holds n s^i keys at the rate P (1 - r) r^i. One \
                    yes is enough, so the rate of all stages is 1 - Π (1 - P_i), which never \
                    exceeds P. If every stage has the same rate P, the rate of the whole grows \
                    without bound. Schierz 2022 leaves out the formula.",
            set_up: "A scalable filter is filled from the first key to the end of its sixth stage, \
                     and queried with strangers on the way. For comparison, standard filters of \
                     the same capacities, each with the rate that is asked of the whole.",
            advice: "If you do not know how many keys will come, use a scalable filter; if you do \
                     know, size a fixed filter and save a third of the memory.",
            command: "`umbel build --kind scalable`",
            seconds: [1, 25],
            timed: false,
            parameters: &[CAPACITY, RATE, TIGHTENING, GROWTH, STAGES, BUILDS, QUERIES],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        examples(&mut findings)?;
        growth(lab, &mut findings)?;
        findings.verdict =
            "With stricter stages the rate stays below the one asked for, however much the filter \
             grows; it is lower than necessary, as the number of slices is rounded up. Without \
             them, six stages have nearly six times the rate. The price is memory: each stage \
             takes 1.4427 log2(1/r) bits per key more than the one before."
                .into();
        Ok(findings)
    }
}

/// Returns the stages of a schedule, as in Almeida et al. 2007: keys, bits per slice, slices.
fn stages(schedule: &Schedule, count: usize) -> Result<Vec<(u64, u64, u32)>> {
    let stage = |i| {
        let keys = schedule.stage_capacity(i);
        let params = PartitionedParams::for_capacity(keys, schedule.stage_rate(i))?;
        Ok((keys, params.slice_bits, params.hashes))
    };
    (0..count).map(stage).collect()
}

fn bits_per_key(stages: &[(u64, u64, u32)]) -> f64 {
    let bits: u64 = stages.iter().map(|(_, slice_bits, hashes)| slice_bits * u64::from(*hashes)).sum();
    bits as f64 / stages.iter().map(|stage| stage.0).sum::<u64>() as f64
}

/// Checks the examples of Almeida et al. 2007: p = 0.001, 1000 keys in the first of six stages.
fn examples(findings: &mut Findings) -> Result<()> {
    let mut sweep = Sweep::new("examples").chart(
        "memory",
        "Memory of filters that grow, p = 0.001",
        Axis::log("keys, all stages full"),
        Axis::linear("bits per key"),
    );
    let fixed = rate::bits_per_key(0.001)?;
    for (colour, (r, s, bits, ratio)) in
        [(0.5, 2, 21.78, 1.515), (0.9, 2, 20.93, 1.456), (0.85, 4, 20.19, 1.404)].into_iter().enumerate()
    {
        let schedule = Schedule::new(1000, 0.001, r, s)?;
        let (mut points, mut keys) = (Vec::new(), 0);
        for count in 1..=6 {
            let all = stages(&schedule, count)?;
            keys = all.iter().map(|stage| stage.0).sum::<u64>();
            points.push((keys as f64, bits_per_key(&all)));
        }
        let (found, claim) = (points[5].1, format!("bits per key of six stages, r = {r}, s = {s}"));
        sweep.series(format!("r = {r}, s = {s}"), Mark::Path, colour, points);
        sweep
            .row()
            .cells([("r", &r), ("s", &s), ("stages", &6), ("keys", &keys)])
            .scientific("compound_bound", schedule.compound_rate(6), 4)
            .value("bits_per_key", found, 2)
            .near(claim.clone(), bits, 0.005)
            .value("over_static", found / fixed, 3)
            .near(format!("{claim} / bits per key of a fixed filter"), ratio, 0.0006);
    }
    sweep.series("fixed filter", Mark::Dashes, 6, [(1000.0, fixed), (1.4e6, fixed)]);
    let halves = Schedule::new(1000, 0.001, 0.5, 2)?;
    let all = stages(&halves, 6)?;
    sweep.that(
        "r = 0.5: 11 to 16 slices of 1443, 2886, 5771, 11542, 23084 and 46167 bits",
        all.iter().map(|stage| stage.1).eq([1443, 2886, 5771, 11_542, 23_084, 46_167])
            && all.iter().map(|stage| stage.2).eq(11..=16),
    );
    let claim = "the missing formula: bound of six stages, in 1e-4";
    sweep.near(claim, halves.compound_rate(6) * 1e4, 9.841, 5e-4).shows("e25");
    let nines = Schedule::new(1000, 0.001, 0.9, 2)?;
    let claim = "the same for r = 0.9, in 1e-4";
    sweep.near(claim, nines.compound_rate(6) * 1e4, 4.685, 5e-4).shows("e25");
    let steps = all.windows(2).map(|pair| bits_per_key(&pair[1..]) - bits_per_key(&pair[..1]));
    let farthest = steps.map(|step| (step - 1.0 / std::f64::consts::LN_2).abs()).fold(0.0, f64::max);
    let claim = "r = 0.5: extra bits per key of a stage over the previous one, deviation from 1.4427";
    sweep.at_most(claim, farthest, 0.01).shows("e25");
    findings.add(sweep);
    Ok(())
}

/// Inserts keys until the filter has `count` of them; a key that it already takes for a member does
/// not count. Returns the number of digests that were tried.
fn fill_to(filter: &mut Scalable, digests: &[Digest], mut next: usize, count: u64) -> Result<usize> {
    loop {
        let missing = count.saturating_sub(filter.stages().map(|stage| stage.keys).sum());
        let end = digests.len().min(next + missing as usize);
        if next == end {
            return Ok(next);
        }
        filter.insert_batch(&Hashed(&digests[next..end]))?;
        next = end;
    }
}

/// Standard filters of growing capacities that all have the same rate. New keys go into the last
/// one.
struct Untightened {
    schedule: Schedule,
    rate: f64,
    hasher: Hasher,
    newest: Bloom<Standard>,
    full: usize,
    keys: u64,
    /// Bit set of the strangers that the full stages contain.
    found: Vec<u64>,
}

impl Untightened {
    fn stage(schedule: &Schedule, rate: f64, hasher: &Hasher, i: usize) -> Result<Bloom<Standard>> {
        Ok(Bloom::build(&Spec::new(schedule.stage_capacity(i), rate)?.with_hasher(hasher.clone()))?)
    }

    /// Returns the rate of stage `i` with `keys` keys.
    fn rate_with(schedule: &Schedule, rate: f64, i: usize, keys: u64) -> Result<f64> {
        let plan = umbel::spec::plan(Kind::Standard, &Spec::new(schedule.stage_capacity(i), rate)?)?;
        Ok(rate::classic(plan.stored_bits, keys, plan.hashes)?)
    }

    fn new(schedule: Schedule, rate: f64, hasher: Hasher, strangers: usize) -> Result<Untightened> {
        let newest = Untightened::stage(&schedule, rate, &hasher, 0)?;
        let found = vec![0; strangers.div_ceil(64)];
        Ok(Untightened { schedule, rate, hasher, newest, full: 0, keys: 0, found })
    }

    fn insert(&mut self, mut digests: &[Digest], strangers: &[Digest]) -> Result<()> {
        while !digests.is_empty() {
            let room = self.schedule.stage_capacity(self.full) - self.keys;
            if room == 0 {
                self.found = self.query(strangers);
                self.full += 1;
                self.keys = 0;
                self.newest = Untightened::stage(&self.schedule, self.rate, &self.hasher, self.full)?;
                continue;
            }
            let (now, later) = digests.split_at(digests.len().min(room as usize));
            self.newest.insert_batch(&Hashed(now));
            self.keys += now.len() as u64;
            digests = later;
        }
        Ok(())
    }

    /// Returns the bit set of the strangers that any stage contains.
    fn query(&self, strangers: &[Digest]) -> Vec<u64> {
        let answers = self.newest.contains_batch(&Hashed(strangers));
        self.found.iter().zip(answers.as_words()).map(|(old, new)| old | new).collect()
    }
}

/// The rates of filters that grow, over several builds.
struct Growth {
    /// Rates at each of the sizes, with stages that get stricter.
    tight: Vec<Rate>,
    /// Rates at each of the sizes, with stages of one rate.
    loose: Vec<Rate>,
    /// Rate of each stage alone.
    single: Vec<Rate>,
}

impl Growth {
    fn measure(lab: &Lab, schedule: Schedule, shapes: &[(u64, u64, u32)], sizes: &[u64]) -> Result<Growth> {
        let (n, p, queries) = (lab.count(&CAPACITY), lab.number(&RATE), lab.count(&QUERIES));
        let total = sizes[sizes.len() - 1];
        let mut options = KindOptions::default();
        options.scalable.tightening = lab.number(&TIGHTENING);
        options.scalable.growth = lab.count(&GROWTH) as u32;
        options.scalable.stage = Stage::Partitioned;
        let mut tight = vec![Vec::new(); sizes.len()];
        let mut loose = tight.clone();
        let mut single = vec![Vec::new(); shapes.len()];
        for build in 0..lab.count(&BUILDS) {
            let (keys, hasher) = (Keys::of_build(build), lab.hasher(build));
            // A few more than fit, since the filter skips keys that it takes for members.
            let members = lab.digests(&hasher, &keys.members(total + (2.0 * p * total as f64) as u64 + 100));
            let strangers = lab.digests(&hasher, &keys.strangers(queries));
            let spec = Spec::new(n, p)?.with_hasher(hasher.clone()).with_options(options.clone());
            let mut filter = Scalable::build(&spec)?;
            let mut control = Untightened::new(schedule, p, hasher.clone(), strangers.len())?;
            let (mut next, mut done) = (0, 0);
            for (at, size) in sizes.iter().enumerate() {
                next = fill_to(&mut filter, &members, next, *size)?;
                let found = filter.contains_batch(&Hashed(&strangers)).count();
                tight[at].push(found as f64 / queries as f64);
                control.insert(&members[done..*size as usize], &strangers)?;
                done = *size as usize;
                let found: u64 =
                    control.query(&strangers).iter().map(|word| u64::from(word.count_ones())).sum();
                loose[at].push(found as f64 / queries as f64);
            }
            // The stages one by one, as filters of their own.
            let mut start = 0;
            for (rates, (keys, slice_bits, hashes)) in single.iter_mut().zip(shapes) {
                let mut stage = Bloom::with_layout(Partitioned::new(*slice_bits, *hashes)?, hasher.clone())?;
                stage.insert_batch(&Hashed(&members[start..start + *keys as usize]));
                start += *keys as usize;
                rates.push(stage.contains_batch(&Hashed(&strangers)).count() as f64 / queries as f64);
            }
        }
        let [tight, loose, single] = [tight, loose, single]
            .map(|all| all.iter().map(|rates: &Vec<f64>| Rate::from_builds(rates, queries)).collect());
        Ok(Growth { tight, loose, single })
    }
}

fn growth(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (n, p, r) = (lab.count(&CAPACITY), lab.number(&RATE), lab.number(&TIGHTENING));
    let (s, count) = (lab.count(&GROWTH) as u32, lab.count(&STAGES) as usize);
    let schedule = Schedule::new(n, p, r, s)?;
    let shapes = stages(&schedule, count)?;
    let ends: Vec<u64> = (1..=count).map(|to| shapes[..to].iter().map(|stage| stage.0).sum()).collect();
    // The middle and the end of each stage.
    let sizes: Vec<u64> =
        shapes.iter().zip(&ends).flat_map(|(stage, end)| [end - stage.0 / 2, *end]).collect();
    let total = sizes[sizes.len() - 1];
    let Growth { tight, loose, single } = Growth::measure(lab, schedule, &shapes, &sizes)?;

    let literature = (n, p, r, s, count) == (1000, 0.01, 0.5, 2, 6);
    let mut per_stage = Sweep::new("stages");
    let mut rates = Vec::new();
    for (i, (found, (keys, slice_bits, hashes))) in single.iter().zip(&shapes).enumerate() {
        let theory = partitioned::rate(*slice_bits, *keys, *hashes)?;
        rates.push(theory);
        per_stage
            .row()
            .cells([("stage", &i), ("keys", &keys)])
            .scientific("asked", schedule.stage_rate(i), 3)
            .scientific("theory", theory, 3)
            .cell("printed", if literature { format!("{:.2e}", PRINTED[i]) } else { String::new() })
            .scientific("measured", found.mean, 3)
            .judge(Criterion::rate(format!("rate of stage {i} alone"), found, theory, 0.01));
    }
    let mut sweep = Sweep::new("growth").chart(
        "growth",
        "Rate of a filter that grows",
        Axis::log("keys"),
        Axis::linear("false-positive rate"),
    );
    sweep.series("requested", Mark::Dashes, 6, [(sizes[0] as f64, p), (total as f64, p)]);
    let mut below = true;
    for ((size, tight), loose) in sizes.iter().zip(&tight).zip(&loose) {
        below &= tight.mean <= p + tight.chance(p);
        sweep
            .at(*size as f64)
            .cell("keys", size)
            .value("tightened", tight.mean, 6)
            .dots("stricter stages, measured", 0)
            .value("untightened", loose.mean, 6)
            .dots("stages with one rate, measured", 1);
    }
    let (tight, loose) = (tight[sizes.len() - 1], loose[sizes.len() - 1]);
    let theory = compound(rates.iter().copied());
    let claim = format!("rate of all {count} stages");
    // The filter skips keys that it takes for members. The others set a few more bits than random
    // keys, by about the share of the skipped keys.
    sweep.rate(claim.clone(), &tight, theory, 0.01 + theory);
    let loose_rates: Vec<f64> = (0..count)
        .map(|i| Untightened::rate_with(&schedule, p, i, schedule.stage_capacity(i)))
        .collect::<Result<_>>()?;
    let loose_theory = compound(loose_rates.iter().copied());
    sweep.rate(format!("{claim} without tightening"), &loose, loose_theory, 0.01).shows("e25");
    if literature {
        sweep.near(format!("{claim}, as measured elsewhere"), tight.mean, 0.0077, 0.0008);
        let claim = format!("{claim} without tightening, as measured elsewhere");
        sweep.near(claim, loose.mean, 0.0585, 0.0015);
    }
    sweep.that("the requested rate is not exceeded at any size", below);
    // Theory at twelve sizes of each stage, with the previous stages full.
    let curve = |full: &[f64], newest: &dyn Fn(usize, u64) -> Result<f64>| -> Result<Vec<(f64, f64)>> {
        let mut points = Vec::new();
        for (i, (end, (keys, ..))) in ends.iter().zip(&shapes).enumerate() {
            for twelfth in 1..=12 {
                let within = keys * twelfth / 12;
                let before = full[..i].iter().copied();
                let rate = compound(before.chain([newest(i, within)?]));
                points.push(((end - keys + within) as f64, rate));
            }
        }
        Ok(points)
    };
    let tight_curve = curve(&rates, &|i, keys| {
        let (_, slice_bits, hashes) = shapes[i];
        Ok(partitioned::rate(slice_bits, keys, hashes)?)
    })?;
    let loose_curve = curve(&loose_rates, &|i, keys| Untightened::rate_with(&schedule, p, i, keys))?;
    for (label, colour, curve) in
        [("stages with one rate, theory", 1, loose_curve), ("stricter stages, theory", 0, tight_curve)]
    {
        // The first quarter of the first stage has hardly any false positives.
        let shown = curve.into_iter().filter(|at| at.0 >= n as f64 / 4.0);
        sweep.series(label, Mark::Line, colour, shown);
    }
    findings.add(sweep);
    findings.add(per_stage);
    Ok(())
}
