//! E14: how many hash functions: the rate by k, and what the formula for k rests on.

use crate::measure::Rate;
use crate::{
    About, Axis, Chart, Criterion, Experiment, Findings, Keys, Lab, Mark, Parameter, Result, Series, Table,
    measure,
};
use umbel::key::Hashed;
use umbel::sizing::{Given, KPolicy, Params, rate};
use umbel::{Bloom, Standard};

pub struct ChoiceOfK;

/// Bits per key of the three curves.
const RATIOS: [u64; 3] = [8, 10, 16];

/// The printed best numbers of hash functions for 2, 3, ... bits per key.
const PRINTED: [f64; 7] = [1.39, 2.08, 2.77, 3.46, 4.16, 4.85, 5.55];

const KEYS: Parameter = Parameter::count("n", "keys in a filter", [10_000, 100_000], [1000, 1_000_000]);
const MOST: Parameter = Parameter::count("k", "the most hash functions", [24; 2], [12, 60]);
const RATE: Parameter =
    Parameter::real("p", "the rate that filters of different k share", [0.01; 2], [0.001, 0.2]);
const BUILDS: Parameter = Parameter::count("builds", "filters of each shape", [10; 2], [5, 1000]);
const QUERIES: Parameter =
    Parameter::count("queries", "strangers for each filter", [25_000, 400_000], [20_000, 10_000_000]);

impl Experiment for ChoiceOfK {
    fn about(&self) -> About {
        About {
            id: "E14",
            title: "The best number of hash functions leaves half of the bits zero",
            source: "all five source documents",
            claim: "The rate is lowest with (m/n) ln 2 hash functions, where half of the bits are set. The source documents \
                    also say that it rises with the number of hash functions, that only fewer of them make it worse, that m \
                    and k follow from p alone, and that k comes from a rate of zero.",
            set_up: "Filters of 8, 10 and 16 bits per key with 1 to 24 hash functions: the share of set bits and the rate, \
                     measured and by theory. Then filters of one rate and as many sizes as there are numbers of hash functions.",
            seconds: [1, 7],
            timed: false,
            parameters: &[KEYS, MOST, RATE, BUILDS, QUERIES],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        curves(lab, &mut findings)?;
        formulas(&mut findings)?;
        one_rate(lab, &mut findings)?;
        findings.verdict = "The rate falls with each further hash function until half of the bits are set, and rises with each \
                            after that. It is never zero. One rate can be had with any number of hash functions, if the bits \
                            are right; the formula for k picks the one that needs fewest."
            .into();
        Ok(findings)
    }
}

/// What was measured with filters of one shape.
struct Measured {
    fill: f64,
    rate: Rate,
}

fn measured(lab: &Lab, m: u64, n: u64, k: u32) -> Result<Measured> {
    let (builds, queries) = (lab.count(&BUILDS), lab.count(&QUERIES));
    let (mut fill, mut rates) = (0.0, Vec::new());
    for build in 0..builds {
        let (keys, hasher) = (Keys::of_build(build), lab.hasher(build));
        let mut filter = Bloom::with_layout(Standard::new(m, k)?, hasher.clone())?;
        filter.insert_batch(&Hashed(&lab.digests(&hasher, &keys.members(n))));
        fill += filter.words().count_ones() as f64 / (m * builds) as f64;
        rates.push(measure::positives(lab, &filter, &keys.strangers(queries)) as f64 / queries as f64);
    }
    Ok(Measured { fill, rate: Rate::from_builds(&rates, queries) })
}

/// Rate and fill by k, for each number of bits per key.
fn curves(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (n, most) = (lab.count(&KEYS), lab.count(&MOST) as u32);
    let mut table = Table::new(
        "by_k",
        &["bits_per_key", "k", "theory_fill", "measured_fill", "theory_rate", "measured_rate"],
    );
    let (mut rates, mut fills) = (Vec::new(), Vec::new());
    for (colour, ratio) in RATIOS.into_iter().enumerate() {
        let m = ratio * n;
        let theory: Vec<f64> = (1..=most).map(|k| rate::classic(m, n, k)).collect::<umbel::Result<_>>()?;
        let best = KPolicy::Best.hashes(m, n)?;
        let found: Vec<Measured> = (1..=most).map(|k| measured(lab, m, n, k)).collect::<Result<_>>()?;
        let (mut farthest, mut farthest_fill) = (0.0f64, 0.0f64);
        for (k, (found, theory)) in (1..).zip(found.iter().zip(&theory)) {
            let fill = rate::expected_fill(m, n, k)?;
            let allowed = 0.02 * theory + found.rate.chance(*theory);
            farthest = farthest.max((found.rate.mean - theory).abs() / allowed);
            farthest_fill = farthest_fill.max((found.fill - fill).abs());
            table.add([
                ratio.to_string(),
                k.to_string(),
                format!("{fill:.4}"),
                format!("{:.4}", found.fill),
                format!("{theory:.6}"),
                format!("{:.6}", found.rate.mean),
            ]);
        }
        let at = |k: u32| found[k as usize - 1].rate.mean;
        let claim = |text: &str| format!("m/n = {ratio}: {text}");
        findings.criteria.push(Criterion::at_most(
            claim("largest deviation of a rate from theory, as a share of 2 % and chance"),
            farthest,
            1.0,
        ));
        // From filter to filter it varies by no more than 0.32 / sqrt(m).
        findings.criteria.push(Criterion::at_most(
            claim("largest deviation of the share of set bits from theory"),
            farthest_fill,
            5.0 * 0.32 / ((m * lab.count(&BUILDS)) as f64).sqrt(),
        ));
        // A whole number is up to half a hash function away.
        findings.criteria.push(Criterion::near(
            claim(&format!("share of set bits with the best k, {best}")),
            found[best as usize - 1].fill,
            0.5,
            0.25 / ratio as f64 * 1.2,
        ));
        let (falling, rising) = theory.split_at(best as usize);
        let unimodal = falling.windows(2).all(|pair| pair[0] > pair[1])
            && rising.windows(2).all(|pair| pair[0] < pair[1])
            && rising.first().is_none_or(|first| *first > theory[best as usize - 1]);
        let text = format!("the rate falls up to k = {best} and rises from there");
        findings.criteria.push(Criterion::that(claim(&text), unimodal).shows("e11"));
        findings.criteria.push(
            Criterion::at_least(
                claim("measured rate with one hash function / with the best"),
                at(1) / at(best),
                3.0,
            )
            .shows("e11"),
        );
        if 2 * best <= most {
            let text = format!("measured rate with k = {} / with k = {best}", 2 * best);
            findings
                .criteria
                .push(Criterion::at_least(claim(&text), at(2 * best) / at(best), 1.5).shows("e41"));
        }
        let line = (10..=10 * most).map(|k| f64::from(k) / 10.0);
        let fill_at = |k: f64| 1.0 - (-k / ratio as f64).exp();
        let label = |what: &str| format!("m/n = {ratio}, {what}");
        let dots = |of: &dyn Fn(&Measured) -> f64| {
            (1u32..).map(f64::from).zip(found.iter().map(of)).filter(|point| point.1 > 0.0).collect()
        };
        // The curves leave no corner for a long legend: the title says what the dots are.
        rates.push(Series::new(
            format!("m/n = {ratio}"),
            Mark::Line,
            colour,
            line.clone().map(|k| (k, fill_at(k).powf(k))).collect(),
        ));
        rates.push(Series::new("", Mark::Named, colour, dots(&|found| found.rate.mean)));
        fills.push(Series::new(label("theory"), Mark::Line, colour, line.map(|k| (k, fill_at(k))).collect()));
        fills.push(Series::new(label("measured"), Mark::Dots, colour, dots(&|found| found.fill)));
    }
    fills.push(Series::new("half of the bits", Mark::Dashes, 6, vec![(1.0, 0.5), (most.into(), 0.5)]));
    findings.tables.push(table);
    let x = || Axis::linear("hash functions k");
    findings.charts.push(Chart {
        name: "rates".into(),
        title: "False-positive rate by hash functions: curves of theory, dots of measurement".into(),
        x: x(),
        y: Axis::log("false-positive rate"),
        series: rates,
    });
    findings.charts.push(Chart {
        name: "fill".into(),
        title: "Share of set bits by hash functions".into(),
        x: x(),
        y: Axis::linear("share of set bits"),
        series: fills,
    });
    Ok(())
}

/// The best k by the formula, and where it comes from.
fn formulas(findings: &mut Findings) -> Result<()> {
    let mut table = Table::new("best_k", &["bits_per_key", "printed", "computed"]);
    for (ratio, printed) in (2..).zip(PRINTED) {
        let computed = rate::optimal_hashes(f64::from(ratio))?;
        let claim = format!("best k for {ratio} bits per key");
        // 3.4657 is printed as 3.46.
        findings.criteria.push(match ratio {
            5 => Criterion::near(claim, computed, 3.47, 0.005).shows("e60"),
            _ => Criterion::near(claim, computed, printed, 0.005),
        });
        table.add([ratio.to_string(), printed.to_string(), format!("{computed:.4}")]);
    }
    findings.tables.push(table);
    let m = rate::optimal_bits(1000, 0.01)?;
    let claim = "k by the formula without the minus, for 1000 keys at 1 %, rounded";
    let hashes = KPolicy::Round.hashes(m, 1000)?;
    findings.criteria.push(Criterion::near(claim, hashes.into(), 7.0, 0.0).shows("e20"));
    // ln of the rate as a function of a real k, for ten bits per key, and its slope.
    let log_rate = |k: f64| k * (-(-k / 10.0).exp()).ln_1p();
    let best = rate::optimal_hashes(10.0)?;
    let slope = |k: f64| (log_rate(k + 1e-4) - log_rate(k - 1e-4)) / 2e-4;
    let claim = "slope of ln(rate) at k = 10 ln 2, for ten bits per key";
    findings.criteria.push(Criterion::near(claim, slope(best), 0.0, 1e-6).shows("e02"));
    let least = (1..=2000).map(|k| log_rate(f64::from(k) / 10.0)).fold(f64::INFINITY, f64::min).exp();
    let claim = "least rate for ten bits per key, whatever k: not zero";
    findings.criteria.push(Criterion::near(claim, least, rate::minimum_rate(10.0)?, 1e-5).shows("e02"));
    Ok(())
}

/// Filters of one rate: as many as there are numbers of hash functions.
fn one_rate(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (n, p) = (lab.count(&KEYS), lab.number(&RATE));
    let most = lab.count(&MOST) as u32;
    let shapes: Vec<Params> = (1..=most)
        .map(|k| Given { n: Some(n), p: Some(p), k: Some(k), m: None }.solve(KPolicy::Round))
        .collect::<umbel::Result<_>>()?;
    let mut table = Table::new("one_rate", &["k", "bits_per_key", "theory", "measured"]);
    let least = shapes.iter().min_by_key(|shape| shape.bits).map_or(1, |shape| shape.hashes);
    let ends = [2, least, (2 * least + 2).min(most)];
    for shape in &shapes {
        let mut cell = String::new();
        if ends.contains(&shape.hashes) {
            let found = measured(lab, shape.bits, n, shape.hashes)?.rate;
            let claim =
                format!("rate with k = {} and {:.2} bits per key", shape.hashes, shape.bits_per_key());
            let tolerance = 0.02 * p + found.chance(p);
            findings.criteria.push(Criterion::near(claim, found.mean, p, tolerance).shows("e42"));
            cell = format!("{:.6}", found.mean);
        }
        table.add([
            shape.hashes.to_string(),
            format!("{:.4}", shape.bits_per_key()),
            format!("{:.6}", shape.rate),
            cell,
        ]);
    }
    let farthest = shapes.iter().map(|shape| (shape.rate / p - 1.0).abs()).fold(0.0, f64::max);
    let claim = format!("largest relative deviation from p = {p} among filters of {most} different k");
    findings.criteria.push(Criterion::at_most(claim, farthest, 0.005).shows("e42"));
    let ideal = -p.log2();
    let claim = format!("k of the smallest of them; log2 1/p = {ideal:.2}");
    findings.criteria.push(Criterion::near(claim, least.into(), ideal, 1.0).shows("e42"));
    findings.tables.push(table);
    // One hash function needs ten times as many bits, and would hide the rest.
    let points = shapes.iter().skip(1).map(|shape| (f64::from(shape.hashes), shape.bits_per_key())).collect();
    findings.charts.push(Chart {
        name: "one_rate".into(),
        title: format!("Filters of one rate, p = {p}: bits per key by hash functions"),
        x: Axis::linear("hash functions k"),
        y: Axis::linear("bits per key"),
        series: vec![
            Series::new("filters of this rate", Mark::Path, 0, points),
            Series::new(
                "1.44 log2 1/p",
                Mark::Dashes,
                6,
                vec![(2.0, rate::bits_per_key(p)?), (most.into(), rate::bits_per_key(p)?)],
            ),
        ],
    });
    Ok(())
}
