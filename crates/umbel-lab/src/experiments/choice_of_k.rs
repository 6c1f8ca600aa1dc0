//! E14: the number of hash functions: the rate by k, and the origin of the formula for k.

use super::prelude::*;
use crate::measure::Rate;
use umbel::key::Hashed;
use umbel::sizing::{Given, KPolicy, Params, rate};
use umbel::{Bloom, Standard};

pub struct ChoiceOfK;

/// Bits per key of the three curves.
const RATIOS: [u64; 3] = [8, 10, 16];

/// The printed best numbers of hash functions for 2, 3, ... bits per key.
const PRINTED: [f64; 7] = [1.39, 2.08, 2.77, 3.46, 4.16, 4.85, 5.55];

const KEYS: Parameter = Parameter::count("n", "keys in a filter", [10_000, 100_000], [1000, 1_000_000]);
const MAX_HASHES: Parameter = Parameter::count("k", "largest number of hash functions", [24; 2], [12, 60]);
const RATE: Parameter =
    Parameter::real("p", "common rate of filters with different k", [0.01; 2], [0.001, 0.2]);
const BUILDS: Parameter = Parameter::count("builds", "filters of each shape", [10; 2], [5, 1000]);
const QUERIES: Parameter =
    Parameter::count("queries", "strangers for each filter", [25_000, 400_000], [20_000, 10_000_000]);

impl Experiment for ChoiceOfK {
    fn about(&self) -> About {
        About {
            id: "E14",
            chapter: Chapter::Sizing,
            title: "The best number of hash functions leaves half of the bits zero",
            sources: &[JAMBURA, WERREN, SCHIERZ, UNTITLED, HONOROFF],
            claim: "The rate is lowest with (m/n) ln 2 hash functions, which set half of the bits. \
                    The source documents also say that the rate rises with the number of hash \
                    functions, that only too few of them make it worse, that m and k follow from p \
                    alone, and that k follows from a rate of zero.",
            set_up: "Filters of 8, 10 and 16 bits per key with 1 to 24 hash functions: the share \
                     of set bits and the rate, measured and by theory. Then filters that share one \
                     rate, one size for each number of hash functions.",
            advice: "Take k = (m/n) ln 2, rounded to the nearest whole number; more hash functions \
                     than that cost time and raise the rate.",
            command: "`umbel plan`",
            seconds: [1, 7],
            timed: false,
            parameters: &[KEYS, MAX_HASHES, RATE, BUILDS, QUERIES],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        curves(lab, &mut findings)?;
        formulas(&mut findings)?;
        one_rate(lab, &mut findings)?;
        findings.verdict =
            "The rate falls with each further hash function until half of the bits are set, and \
             rises with each one after that. It is never zero. Any number of hash functions can \
             give a certain rate if the number of bits fits; the formula for k picks the one that \
             needs the fewest bits."
                .into();
        Ok(findings)
    }
}

/// The measurements with filters of one size.
struct Measured {
    /// Mean share of set bits.
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

/// Measures rate and fill by k, for each number of bits per key.
fn curves(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (n, most) = (lab.count(&KEYS), lab.count(&MAX_HASHES) as u32);
    let x = || Axis::linear("hash functions k");
    let title = "False-positive rate by hash functions: theory (curves), measured (dots)";
    let mut sweep = Sweep::new("by_k").chart("rates", title, x(), Axis::log("false-positive rate")).chart(
        "fill",
        "Share of set bits by hash functions",
        x(),
        Axis::linear("share of set bits"),
    );
    for (colour, ratio) in RATIOS.into_iter().enumerate() {
        let m = ratio * n;
        let theory: Vec<f64> = (1..=most).map(|k| rate::classic(m, n, k)).collect::<umbel::Result<_>>()?;
        let best = KPolicy::Best.hashes(m, n)?;
        let found: Vec<Measured> = (1..=most).map(|k| measured(lab, m, n, k)).collect::<Result<_>>()?;
        let (mut farthest, mut farthest_fill) = (0.0f64, 0.0f64);
        let line = (10..=10 * most).map(|k| f64::from(k) / 10.0);
        let fill_at = |k: f64| 1.0 - (-k / ratio as f64).exp();
        // The curves leave no room for a long legend, so the title explains the dots.
        let rates = line.clone().map(|k| (k, fill_at(k).powf(k)));
        sweep.series(format!("m/n = {ratio}"), Mark::Line, colour, rates);
        let fills = line.map(|k| (k, fill_at(k)));
        sweep.series_on(1, format!("m/n = {ratio}, theory"), Mark::Line, colour, fills);
        for (k, (found, theory)) in (1..).zip(found.iter().zip(&theory)) {
            let fill = rate::expected_fill(m, n, k)?;
            let allowed = 0.02 * theory + found.rate.chance(*theory);
            farthest = farthest.max((found.rate.mean - theory).abs() / allowed);
            farthest_fill = farthest_fill.max((found.fill - fill).abs());
            sweep
                .at(k.into())
                .cells([("bits_per_key", &ratio), ("k", &k)])
                .value("theory_fill", fill, 4)
                .value("measured_fill", found.fill, 4)
                .on(1)
                .dots(format!("m/n = {ratio}, measured"), colour)
                .value("theory_rate", *theory, 6)
                .value("measured_rate", found.rate.mean, 6)
                .on(0)
                .drawn(Mark::Named, "", colour);
        }
        let at = |k: u32| found[k as usize - 1].rate.mean;
        let claim = |text: &str| format!("m/n = {ratio}: {text}");
        sweep.at_most(claim("largest deviation of a rate from theory / (2 % and chance)"), farthest, 1.0);
        // The standard deviation from filter to filter is at most 0.32 / sqrt(m).
        sweep.at_most(
            claim("largest deviation of the share of set bits from theory"),
            farthest_fill,
            5.0 * 0.32 / ((m * lab.count(&BUILDS)) as f64).sqrt(),
        );
        // The nearest whole number is up to half a hash function away.
        sweep.near(
            claim(&format!("share of set bits with the best k, {best}")),
            found[best as usize - 1].fill,
            0.5,
            0.25 / ratio as f64 * 1.2,
        );
        let (falling, rising) = theory.split_at(best as usize);
        let unimodal = falling.windows(2).all(|pair| pair[0] > pair[1])
            && rising.windows(2).all(|pair| pair[0] < pair[1])
            && rising.first().is_none_or(|first| *first > theory[best as usize - 1]);
        let text = format!("the rate falls up to k = {best} and rises from there");
        sweep.that(claim(&text), unimodal).shows("e11");
        sweep
            .at_least(claim("measured rate with one hash function / with the best"), at(1) / at(best), 3.0)
            .shows("e11");
        if 2 * best <= most {
            let text = format!("measured rate with k = {} / with k = {best}", 2 * best);
            sweep.at_least(claim(&text), at(2 * best) / at(best), 1.5).shows("e41");
        }
    }
    sweep.series_on(1, "half of the bits", Mark::Dashes, 6, [(1.0, 0.5), (most.into(), 0.5)]);
    findings.add(sweep);
    Ok(())
}

/// Checks the best k by the formula, and its derivation.
fn formulas(findings: &mut Findings) -> Result<()> {
    let mut sweep = Sweep::new("best_k");
    for (ratio, printed) in (2..).zip(PRINTED) {
        // The value 3.4657 is printed as 3.46.
        let (expected, is_wrong) = if ratio == 5 { (3.47, true) } else { (printed, false) };
        sweep
            .row()
            .cells([("bits_per_key", &ratio), ("printed", &printed)])
            .value("computed", rate::optimal_hashes(f64::from(ratio))?, 4)
            .near(format!("best k for {ratio} bits per key"), expected, 0.005)
            .when(is_wrong, |point| point.shows("e60"));
    }
    findings.add(sweep);
    let m = rate::optimal_bits(1000, 0.01)?;
    let claim = "k by the formula without the minus, for 1000 keys at 1 %, rounded";
    let hashes = KPolicy::Round.hashes(m, 1000)?;
    findings.near(claim, hashes.into(), 7.0, 0.0).shows("e20");
    // ln of the rate as a function of a real k, for ten bits per key, and its slope.
    let log_rate = |k: f64| k * (-(-k / 10.0).exp()).ln_1p();
    let best = rate::optimal_hashes(10.0)?;
    let slope = |k: f64| (log_rate(k + 1e-4) - log_rate(k - 1e-4)) / 2e-4;
    let claim = "slope of ln(rate) at k = 10 ln 2, for ten bits per key";
    findings.near(claim, slope(best), 0.0, 1e-6).shows("e02");
    let least = (1..=2000).map(|k| log_rate(f64::from(k) / 10.0)).fold(f64::INFINITY, f64::min).exp();
    let claim = "smallest rate for ten bits per key over all k: not zero";
    findings.near(claim, least, rate::minimum_rate(10.0)?, 1e-5).shows("e02");
    Ok(())
}

/// Compares filters of one rate with different numbers of hash functions.
fn one_rate(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (n, p) = (lab.count(&KEYS), lab.number(&RATE));
    let most = lab.count(&MAX_HASHES) as u32;
    let shapes: Vec<Params> = (1..=most)
        .map(|k| Given { n: Some(n), p: Some(p), k: Some(k), m: None }.solve(KPolicy::Round))
        .collect::<umbel::Result<_>>()?;
    let mut sweep = Sweep::new("one_rate").chart(
        "one_rate",
        format!("Filters of one rate, p = {p}: bits per key by hash functions"),
        Axis::linear("hash functions k"),
        Axis::linear("bits per key"),
    );
    let least = shapes.iter().min_by_key(|shape| shape.bits).map_or(1, |shape| shape.hashes);
    let ends = [2, least, (2 * least + 2).min(most)];
    for shape in &shapes {
        let found = ends.contains(&shape.hashes).then(|| measured(lab, shape.bits, n, shape.hashes));
        let claim = format!("rate with k = {} and {:.2} bits per key", shape.hashes, shape.bits_per_key());
        sweep
            .at(shape.hashes.into())
            .cell("k", shape.hashes)
            .value("bits_per_key", shape.bits_per_key(), 4)
            // One hash function needs ten times as many bits, and would squeeze the rest.
            .when(shape.hashes > 1, |point| point.path("filters of this rate", 0))
            .value("theory", shape.rate, 6)
            .cell("measured", "")
            .with(found.transpose()?, |point, found| {
                point.rate("measured", &found.rate, 6).agrees(claim, p, 0.02).shows("e42")
            });
    }
    let farthest = shapes.iter().map(|shape| (shape.rate / p - 1.0).abs()).fold(0.0, f64::max);
    let claim = format!("largest relative deviation from p = {p} among filters of {most} different k");
    sweep.at_most(claim, farthest, 0.005).shows("e42");
    let ideal = -p.log2();
    let claim = format!("k of the smallest filter; log2 1/p = {ideal:.2}");
    sweep.near(claim, least.into(), ideal, 1.0).shows("e42");
    let bits = rate::bits_per_key(p)?;
    sweep.series("1.44 log2 1/p", Mark::Dashes, 6, [(2.0, bits), (most.into(), bits)]);
    findings.add(sweep);
    Ok(())
}
