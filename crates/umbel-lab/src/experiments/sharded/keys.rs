//! The keys of each shard: how many there are, and what that means for the rate.

use super::service::{answers, digests};
use super::{KEYS, RATE};
use crate::experiments::prelude::*;
use crate::measure::Rate;
use umbel::key::Hashed;
use umbel::sharded::{ShardPlan, Sharded, ShardedBuilder, shard_of, shard_path};
use umbel::{Digest, Kind, Spec};

/// Numbers of shards among which keys are counted.
const COUNTED: [u32; 5] = [4, 16, 64, 256, 1024];
/// Number of shards of the filter that is built: few enough that each has the kind blocked.
const BUILT: u32 = 16;

/// Counts the keys of each shard, in several builds.
pub fn count(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (n, builds) = (lab.count(&KEYS), lab.either(10, 20));
    let counts = counts(lab, n, builds);
    let mut sweep = Sweep::new("keys").chart(
        "keys",
        format!("The shard with the most of {n} keys"),
        Axis::log("shards"),
        Axis::linear("standard deviations above the mean"),
    );
    for (shards, counts) in COUNTED.into_iter().zip(counts) {
        let plan = ShardPlan::new(Kind::Standard, &Spec::new(n, lab.number(&RATE))?, shards)?;
        let room = plan.shard_spec().given().n.unwrap_or_default();
        let each = f64::from(shards);
        let mean = n as f64 / each;
        let law = Law::Binomial { trials: n, probability: 1.0 / each };
        let trials = counts.len() as u64;
        let above = |room: u64| counts.iter().filter(|count| **count > room).count() as u64;
        let exceeding = |room: u64| Law::Binomial { trials, probability: law.at_least(room + 1) };
        let deviations = |count: f64| (count - mean) / mean.sqrt();
        let largest = counts.iter().max().copied().unwrap_or_default();
        let (low, high) = law.largest_of(trials).into_inner();
        let each_largest = counts.chunks(shards as usize).filter_map(|counts| counts.iter().max());
        let each_largest: Vec<f64> = each_largest.map(|count| deviations(*count as f64)).collect();
        let each_largest = Rate::from_builds(&each_largest, 1);
        let three = (mean + 3.0 * mean.sqrt()) as u64;
        // With a known total, the counts are as far above their mean as independent ones are above
        // theirs, a Poisson law each.
        let poisson = Law::Poisson { mean };
        let asymptotic = raab_steger(each);
        sweep
            .at(each)
            .cells([("shards", &shards), ("builds", &builds), ("room", &room)])
            .value("theory", deviations(poisson.mean_of_largest(u64::from(shards))), 3)
            .line("mean of the largest of as many counts", 0)
            .value("measured", each_largest.mean, 3)
            .spread(each_largest.mean - each_largest.error(), each_largest.mean + each_largest.error())
            .dots("measured", 0)
            .value("raab_steger", asymptotic, 3)
            .dashes("Raab and Steger 1998, for ever more keys", 1)
            .hidden(deviations(room as f64))
            .dashes("room of a shard", 6)
            .judge(Criterion::between(
                format!("{shards} shards: the largest of {builds} filters, in standard deviations"),
                deviations(largest as f64),
                deviations(low as f64),
                deviations(high as f64),
            ))
            .count("above_three", above(three))
            .judge(Criterion::count(
                format!("{shards} shards: three standard deviations above the mean, of {trials}"),
                above(three),
                exceeding(three),
                0.0,
            ))
            .count("above_room", above(room))
            .judge(Criterion::count_at_most(
                format!("{shards} shards: with more keys than there is room for, of {trials}"),
                above(room),
                exceeding(room),
            ));
    }
    findings.add(sweep);
    Ok(())
}

/// Returns the number of keys of each shard in each build, for each number of shards.
fn counts(lab: &Lab, n: u64, builds: u64) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new(); COUNTED.len()];
    for build in 0..builds {
        let [members, _] = digests(lab, build, n, 0);
        for (all, shards) in all.iter_mut().zip(COUNTED) {
            let start = all.len();
            all.resize(start + shards as usize, 0);
            members.iter().for_each(|digest| all[start + shard_of(*digest, shards as usize)] += 1);
        }
    }
    all
}

/// Returns by how many standard deviations the largest of many bins exceeds the mean, for a number
/// of balls that grows beyond all bounds.
fn raab_steger(bins: f64) -> f64 {
    (2.0 * bins.ln() * (1.0 - bins.ln().ln() / (2.0 * bins.ln()))).sqrt()
}

/// Builds a filter in shards, measures the rate of each, and loses some of them.
pub fn build(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (n, p) = (lab.count(&KEYS), lab.number(&RATE));
    let strangers = lab.either(1_000_000, 10_000_000);
    let spec = Spec::new(n, p)?.with_hasher(lab.hasher(0));
    let builder = ShardedBuilder::new(ShardPlan::new(Kind::Blocked, &spec, BUILT)?)?;
    let [members, strangers] = digests(lab, 0, n, strangers);
    builder.insert_batch(&Hashed(&members))?;
    let failed = |source| umbel::Error::Io { path: std::env::temp_dir(), doing: "make a folder in", source };
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = folder.path().join("shards");
    builder.save(&path)?;
    let filter = Sharded::open(&path)?;
    let found = answers(&filter, &members)?.into_iter().filter(|found| *found).count();
    findings.that("every member is found in its shard", found == members.len());
    let asked = Asked::new(&filter, &strangers)?;
    rates(&asked, p, findings);
    losses(&asked, p, findings);
    refusal(&path, findings)
}

/// The answers of each shard to strangers.
struct Asked {
    /// Strangers of each shard, and those that it contains.
    asked: Vec<u64>,
    found: Vec<u64>,
    /// The rate of each shard, computed from its bits.
    computed: Vec<f64>,
}

impl Asked {
    fn new(filter: &Sharded, strangers: &[Digest]) -> Result<Asked> {
        let shards = filter.shards().len();
        let (mut asked, mut found) = (vec![0; shards], vec![0; shards]);
        for (digest, answer) in strangers.iter().zip(answers(filter, strangers)?) {
            let shard = shard_of(*digest, shards);
            asked[shard] += 1;
            found[shard] += u64::from(answer);
        }
        let rate = |shard: &umbel::file::Mapped| Ok(shard.verified()?.stats().rate_now);
        let computed = filter.shards().iter().map(rate).collect::<umbel::Result<_>>()?;
        Ok(Asked { asked, found, computed })
    }

    fn shards(&self) -> usize {
        self.asked.len()
    }

    /// Returns the computed share of strangers that are taken for members, if a lost shard answers
    /// "maybe" to all keys.
    fn expected(&self, lost: usize) -> f64 {
        let live: f64 = self.computed[lost..].iter().sum();
        (live + lost as f64) / self.shards() as f64
    }
}

/// Judges the rate of each shard.
fn rates(asked: &Asked, p: f64, findings: &mut Findings) {
    let mut sweep = Sweep::new("rates");
    let mut above = 0;
    for shard in 0..asked.shards() {
        let (trials, found) = (asked.asked[shard], asked.found[shard]);
        above += u64::from(found > Law::Binomial { trials, probability: p }.upper_bound());
        sweep
            .row()
            .cells([("shard", &shard), ("strangers", &trials)])
            .value("measured", found as f64 / trials as f64, 6)
            .value("computed", asked.computed[shard], 6);
    }
    sweep.at_most("shards with a rate above the one that was planned, beyond chance", above as f64, 0.0);
    let most = asked.computed.iter().copied().fold(0.0, f64::max);
    sweep.at_most("largest rate of a shard, computed from its bits", most, p);
    let (found, all) = (asked.found.iter().sum(), asked.asked.iter().sum());
    let claim = "rate of the whole filter: the mean of its shards";
    sweep.judge(Criterion::share(claim, found, all, asked.expected(0), 0.02));
    findings.add(sweep);
}

/// Judges the share of wrong answers if lost shards answer "maybe".
fn losses(asked: &Asked, p: f64, findings: &mut Findings) {
    let mut sweep = Sweep::new("maybe").chart(
        "maybe",
        format!("Absent keys that are taken for members, if lost shards of {BUILT} answer maybe"),
        Axis::linear("lost shards"),
        Axis::linear("share of absent keys"),
    );
    let all: u64 = asked.asked.iter().sum();
    for lost in [0, 1, 2, 4, 8] {
        let rest: u64 = asked.found[lost..].iter().sum();
        let wrong = asked.asked[..lost].iter().sum::<u64>() + rest;
        let planned = p + (1.0 - p) * lost as f64 / asked.shards() as f64;
        sweep
            .at(lost as f64)
            .cell("lost", lost)
            .value("planned", planned, 5)
            .line("p + (1 - p) L / S", 0)
            .value("measured", wrong as f64 / all as f64, 5)
            .dots("measured", 0)
            .judge(Criterion::share(
                format!("{lost} of {BUILT} shards lost: absent keys that are taken for members"),
                wrong,
                all,
                asked.expected(lost),
                0.02 * asked.expected(0) / asked.expected(lost),
            ));
    }
    findings.add(sweep);
}

/// Judges that a folder without one of its shards is refused.
fn refusal(path: &std::path::Path, findings: &mut Findings) -> Result<()> {
    let lost = shard_path(path, 3);
    std::fs::remove_file(&lost).map_err(|source| umbel::Error::Io {
        path: lost.clone(),
        doing: "remove",
        source,
    })?;
    let is_named = match Sharded::open(path) {
        Err(error) => error.to_string().contains(&lost.display().to_string()),
        Ok(_) => false,
    };
    findings.that("a folder without one of its shards is refused, and the error names the file", is_named);
    Ok(())
}
