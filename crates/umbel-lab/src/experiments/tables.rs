//! E12-tables: a filter for each table on disk, and the number of tables that are read.

use super::prelude::*;
use umbel::sizing::rate::classic;
use umbel::spec::{Construction, plan};
use umbel::{AnyFilter, Kind, Plan, Spec};
use umbel_text::tables::{Options, Store, share};

pub struct Tables;

/// Number of tables, and the rate of their filters.
const SHAPES: [(u64, f64); 3] = [(3, 0.01), (3, 0.1), (8, 0.05)];
/// Keys of tables of growing size, and bits per key.
const LEVELS: [u64; 3] = [500, 5000, 50_000];
const BITS: [f64; 3] = [2.0, 5.0, 10.0];

const KEYS: Parameter = Parameter::count("n", "keys per table", [500, 2000], [100, 100_000]);
const ABSENT: Parameter =
    Parameter::count("queries", "lookups of absent keys", [10_000, 50_000], [5000, 10_000_000]);
const BUILDS: Parameter = Parameter::count("builds", "number of stores", [4, 12], [2, 100]);

impl Experiment for Tables {
    fn about(&self) -> About {
        About {
            id: "E12-tables",
            chapter: Chapter::Caches,
            title: "A filter for each table on disk, and how many tables are read",
            sources: &[JAMBURA, CHANG, DAYAN],
            claim: "With T tables and a rate of p, a lookup of an absent key reads T p tables \
                    instead of T: 0.03 instead of 3. A key that is in one table takes 1 + p for \
                    each newer table, and 1 + (T - 1) p if all have to be consulted. If tables \
                    have different sizes, the rates of their filters should be proportional to the \
                    sizes.",
            set_up: "Stores on disk, of tables with different keys. Absent keys are looked up, \
                     then all keys, newest first and with their whole history; the store counts \
                     the tables that it reads. Then filters of three tables, each ten times as \
                     large as the one before, with the same memory divided evenly by key and as \
                     Monkey does.",
            advice: "Give every table a filter, and the small tables the lower rates: with the \
                     same memory this halves the reads in vain.",
            command: "`umbel table`; for files, `umbel index` and `umbel grep`",
            seconds: [1, 12],
            timed: false,
            parameters: &[KEYS, ABSENT, BUILDS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        reads(lab, &mut findings)?;
        shared(lab, &mut findings)?;
        findings.verdict =
            "Tables are read as rarely as the formulas say, and no answer changes. Absent keys \
             save most: a filter of 1 % causes 0.03 reads instead of 3. Rates in proportion to the \
             sizes of the tables cause fewer reads with the same memory, since a low rate costs \
             little in a small table, and a small table is read in vain as easily as a large one."
                .into();
        Ok(findings)
    }
}

/// Mean number of tables read per lookup, in one store.
struct Reads {
    absent: f64,
    /// Keys of each table, from the newest to the oldest.
    early: Vec<f64>,
    history: f64,
    right: bool,
}

fn reads(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (keys, absent, builds) = (lab.count(&KEYS), lab.count(&ABSENT), lab.count(&BUILDS));
    let mut sweep = Sweep::new("reads").chart(
        "reads",
        "Tables read for a key in one of eight tables, at 5 %",
        Axis::linear("newer tables"),
        Axis::linear("tables read"),
    );
    let mut right = true;
    for (tables, rate) in SHAPES {
        let theory = Theory::new(Kind::Blocked, keys, rate)?;
        let p = theory.rate;
        let runs =
            (0..builds).map(|build| in_a_store(lab, tables, rate, build)).collect::<Result<Vec<_>>>()?;
        right &= runs.iter().all(|run| run.right);
        let mut judge =
            |lookup: String, of: &dyn Fn(&Reads) -> f64, lookups: u64, certain: f64, filters: u64| {
                let measured = runs.iter().map(of).sum::<f64>() / builds as f64;
                let claim = format!("T = {tables}, p = {rate}: tables read, {lookup}");
                let without = if certain == 0.0 { tables } else { 1 + filters };
                sweep
                    .row()
                    .cells([("tables", &tables), ("p", &rate), ("lookup", &lookup)])
                    .value("expected", certain + filters as f64 * p, 6)
                    .value("measured", measured, 6)
                    .judge(theory.judge(claim, measured, certain, filters, [lookups, builds]))
                    .cell("without_filters", without);
            };
        judge("absent key".into(), &|run| run.absent, absent, 0.0, tables);
        for newer in [0, tables / 2, tables - 1] {
            let lookup = format!("key, newer tables: {newer}");
            judge(lookup, &|run| run.early[newer as usize], keys, 1.0, newer);
        }
        judge("whole history".into(), &|run| run.history, tables * keys, 1.0, tables - 1);
        if (tables, rate) == (8, 0.05) {
            let mean = |newer: usize| runs.iter().map(|run| run.early[newer]).sum::<f64>() / builds as f64;
            let line = (0..tables).map(|newer| (newer as f64, 1.0 + p * newer as f64));
            sweep.series("1 + p per newer table", Mark::Line, 0, line);
            let dots = (0..tables).map(|newer| (newer as f64, mean(newer as usize)));
            sweep.series("measured", Mark::Dots, 0, dots);
        }
    }
    sweep.that("every lookup returns the value that was written, or nothing for an absent key", right);
    let without = (0..8).map(|newer| (f64::from(newer), 1.0 + f64::from(newer)));
    sweep.series("without filters", Mark::Dashes, 6, without);
    findings.add(sweep);
    Ok(())
}

/// The theoretical rate of filters with the bits that they really have: whole words, a little more
/// than they need.
struct Theory {
    rate: f64,
    /// Standard deviation of the rate from filter to filter, due to the variation of the fill.
    between: f64,
}

impl Theory {
    fn new(kind: Kind, keys: u64, rate: f64) -> Result<Theory> {
        let Plan { stored_bits, hashes, .. } = plan(kind, &Spec::new(keys, rate)?)?;
        let (bits, k) = (stored_bits as f64, f64::from(hashes));
        let load = k * keys as f64 / bits;
        let zeros = (-load).exp();
        let rate = classic(stored_bits, keys, hashes)?;
        let fill = (zeros * (1.0 - (1.0 + load) * zeros) / bits).sqrt();
        Ok(Theory { rate, between: rate * k * fill / (1.0 - zeros) })
    }

    /// Judges the mean number of tables that a lookup reads: `certain` ones, and others in vain.
    /// Few reads in vain are judged by their binomial law.
    fn judge(
        &self,
        claim: String,
        measured: f64,
        certain: f64,
        filters: u64,
        [lookups, builds]: [u64; 2],
    ) -> Criterion {
        let (all, expected) = (lookups * builds, filters as f64 * self.rate);
        let law = Law::Binomial { trials: filters * all, probability: self.rate };
        if law.is_rare() {
            let counts = law.two_sided(0.01);
            let [least, most] = [counts.start(), counts.end()].map(|count| *count as f64 / all as f64);
            return Criterion::between(claim, measured, certain + least, certain + most);
        }
        let tolerance = 0.01 * expected + self.chance(filters as f64, lookups, builds);
        Criterion::near(claim, measured, certain + expected, tolerance)
    }

    /// Returns four standard errors of the reads of a lookup that queries this many filters of a
    /// store.
    fn chance(&self, filters: f64, lookups: u64, builds: u64) -> f64 {
        let counting = self.rate * (1.0 - self.rate) / lookups as f64;
        4.0 * (filters * (counting + self.between.powi(2)) / builds as f64).sqrt()
    }
}

fn in_a_store(lab: &Lab, tables: u64, rate: f64, build: u64) -> Result<Reads> {
    let failed = |source| umbel::Error::Io { path: std::env::temp_dir(), doing: "make a folder in", source };
    let folder = tempfile::tempdir().map_err(failed)?;
    let options = Options { rate, memory: usize::MAX, hasher: Some(lab.hasher(build)), ..Options::default() };
    let mut store = Store::open(folder.path(), options)?;
    let (own, per_table) = (lab.keys(build), lab.count(&KEYS));
    let members = own.members(tables * per_table);
    for keys in members.chunks(per_table as usize) {
        keys.iter().try_for_each(|key| store.put(&key.to_le_bytes(), &key.to_be_bytes()))?;
        store.flush()?;
    }
    let mut right = true;
    let mut reads = |keys: &[u64], look: &mut dyn FnMut(u64) -> Result<bool>| -> Result<f64> {
        let before = store.counts().read;
        for key in keys {
            right &= look(*key)?;
        }
        Ok((store.counts().read - before) as f64 / keys.len() as f64)
    };
    let has = |key: u64| Ok(store.get(&key.to_le_bytes())? == Some(key.to_be_bytes().to_vec()));
    let absent =
        reads(&own.strangers(lab.count(&ABSENT)), &mut |key| Ok(store.get(&key.to_le_bytes())?.is_none()))?;
    let newest_first = members.chunks(per_table as usize).rev();
    let early = newest_first.map(|keys| reads(keys, &mut |key| has(key))).collect::<Result<_>>()?;
    let history = reads(&members, &mut |key| Ok(store.history(&key.to_le_bytes())?.len() == 1))?;
    Ok(Reads { absent, early, history, right })
}

/// Compares the same memory divided evenly by key with the division of Monkey.
fn shared(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let mut sweep = Sweep::new("shared").chart(
        "shared",
        "Tables read for an absent key, of three tables of 500 to 50 000 keys",
        Axis::linear("bits per key"),
        Axis::log("tables read"),
    );
    let total: u64 = LEVELS.iter().sum();
    let quarters = || (4..=48).map(|quarter| f64::from(quarter) / 4.0);
    let evenly = |bits: f64| (-bits * std::f64::consts::LN_2.powi(2)).exp();
    let even = quarters().map(|bits| (bits, LEVELS.len() as f64 * evenly(bits)));
    sweep.series("divided evenly", Mark::Line, 0, even);
    let by_size = |bits: f64| -> Result<Vec<f64>> { Ok(share(&LEVELS, bits * total as f64)?) };
    let shared = quarters().map(|bits| Ok((bits, by_size(bits)?.iter().sum())));
    sweep.series("divided by size", Mark::Line, 1, shared.collect::<Result<Vec<_>>>()?);
    for bits in BITS {
        let [even, shared] = [vec![evenly(bits); LEVELS.len()], by_size(bits)?];
        let claim = |text: &str| format!("{bits} bits per key{text}");
        let judged = |what: &str| claim(&format!(", divided {what}: tables read for an absent key"));
        // Bits and hash functions are whole numbers, which matters by a few per cent in small
        // filters.
        let tolerance =
            |expected: f64, rates: &[f64]| -> Result<f64> { Ok(0.05 * expected + chance(lab, rates)?) };
        let [expected_even, expected] = [&even, &shared].map(|rates| rates.iter().sum::<f64>());
        let (found_even, found) = (in_filters(lab, &even)?, in_filters(lab, &shared)?);
        sweep
            .at(bits)
            .cell("bits_per_key", bits)
            .value("expected_even", expected_even, 6)
            .value("measured_even", found_even, 6)
            .dots("divided evenly, measured", 0)
            .near(judged("evenly"), expected_even, tolerance(expected_even, &even)?)
            .value("expected_shared", expected, 6)
            .value("measured_shared", found, 6)
            .dots("divided by size, measured", 1)
            .near(judged("by size"), expected, tolerance(expected, &shared)?)
            .hidden(found / found_even)
            .at_most(claim(": reads if divided by size / if divided evenly"), 0.6);
    }
    findings.add(sweep);
    Ok(())
}

/// Returns four standard errors of the reads of an absent key, with filters of these rates.
fn chance(lab: &Lab, rates: &[f64]) -> Result<f64> {
    let (lookups, builds, mut squares) = (lab.count(&ABSENT), lab.count(&BUILDS), 0.0);
    for (keys, rate) in LEVELS.into_iter().zip(rates).filter(|(_, rate)| **rate < 1.0) {
        squares += Theory::new(Kind::Standard, keys, *rate)?.chance(1.0, lookups, builds).powi(2);
    }
    Ok(squares.sqrt())
}

/// Measures the mean number of filters of these tables that say yes to an absent key.
fn in_filters(lab: &Lab, rates: &[f64]) -> Result<f64> {
    let (absent, builds) = (lab.count(&ABSENT), lab.count(&BUILDS));
    let mut sum = 0;
    for build in 0..builds {
        let (hasher, own) = (lab.hasher(build), lab.keys(build));
        let strangers = lab.digests(&hasher, &own.strangers(absent));
        let members = lab.digests(&hasher, &own.members(LEVELS.iter().sum()));
        let (mut yes, mut rest) = (0, &members[..]);
        for (keys, rate) in LEVELS.into_iter().zip(rates) {
            let (own, others) = rest.split_at(keys as usize);
            rest = others;
            // A table without a filter is always read.
            if *rate >= 1.0 {
                yes += absent;
                continue;
            }
            let spec = Spec::new(keys, *rate)?.with_hasher(hasher.clone());
            let filter =
                AnyFilter::from_digests(Kind::Standard, &spec, own.to_vec(), &Construction::default())?;
            yes += filter.contains_batch(&umbel::key::Hashed(&strangers)).count();
        }
        sum += yes;
    }
    Ok(sum as f64 / (absent * builds) as f64)
}
