//! E13: a list of words, random words that are certainly not in it, and the rounding of k.

use super::prelude::*;
use crate::measure::Rate;
use crate::{WordsReport, words};
use umbel::sizing::{KPolicy, Params, rate};
use umbel::{Bloom, Standard};

pub struct WordList;

/// n, p, m and k, the rate by the formula, and the deviation that chance explains in one filter
/// with 100 000 random words.
const PRINTED: [(u64, f64, u64, u32, f64, f64); 2] =
    [(58_110, 0.04, 389_318, 5, 0.040_221_218_1, 0.0025), (1000, 0.01, 9586, 7, 0.010_037_019_8, 0.0013)];

/// Cases where rounding up does harm: n, p, and the rates by the formula with k rounded to the
/// nearest number and rounded up.
const ROUNDED: [(u64, f64, [f64; 2]); 2] =
    [(500, 0.05, [0.050_274_642_7, 0.051_034_676_5]), (100_000, 0.03, [0.030_004_351_1, 0.031_002_974_4])];

const KEYS: Parameter = Parameter::count("n", "words in the first list", [58_110; 2], [1000, 1_000_000]);
const RATE: Parameter = Parameter::real("p", "rate of the first list", [0.04; 2], [0.0001, 0.5]);
const QUERIES: Parameter =
    Parameter::count("queries", "random words for each list", [100_000; 2], [1000, 10_000_000]);
const BUILDS: Parameter = Parameter::count("builds", "number of lists", [10, 40], [5, 1000]);

impl Experiment for WordList {
    fn about(&self) -> About {
        About {
            id: "E13",
            chapter: Chapter::Documents,
            title: "A list of words, and random words that are not in it",
            sources: &[WERREN],
            claim: "With m and k rounded up, 58 110 words at p = 0.04 take 389 318 bits and 5 hash \
                    functions, and 4.02 % of random words are taken for words of the list; 1000 \
                    words at p = 0.01 have a computed rate of 0.01. Any p up to and including 1 is \
                    accepted.",
            set_up: "Lists of generated words, and for each 100 000 random words of which none is \
                     in the list. Four of five lists have to be within 0.0025 or 0.0013 of the \
                     formula, and their mean within 2 % and chance. Then k rounded up and rounded \
                     to the nearest number, where the two differ: 500 keys at 5 % and 100 000 keys \
                     at 3 %, by the formula and measured.",
            advice: "Round k to the nearest whole number instead of up: it is never slower, and \
                     sometimes has the lower rate.",
            command: "`umbel lab words words.txt -p 4%`",
            seconds: [1, 10],
            timed: false,
            parameters: &[KEYS, RATE, QUERIES, BUILDS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        lists(lab, &mut findings)?;
        rounding(lab, &mut findings)?;
        let refused = [0.0, 1.0].iter().all(|p| Params::for_capacity(1000, *p, KPolicy::Ceil).is_err());
        findings.that("p = 0 and p = 1 are refused", refused).shows("e13");
        findings.verdict =
            "Random words are found at the rate of the formula, which is 0.010037, not 0.01, for a \
             thousand words at 1 %. Rounding k up costs time, and where the fraction is small it \
             also raises the rate. A rate of 1 would need no bits: no such filter exists."
                .into();
        Ok(findings)
    }
}

/// Returns words that differ from all random words, which have only lower-case letters.
fn list(seed: u64, n: u64) -> Vec<String> {
    (0..n).map(|number| format!("Word {seed} {number}")).collect()
}

/// Measures the two lists of Werren and Suter 2024.
fn lists(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let (builds, queries) = (lab.count(&BUILDS), lab.count(&QUERIES));
    let mut sweep = Sweep::new("lists");
    let asked = (lab.count(&KEYS), lab.number(&RATE));
    for (n, p) in [asked, (1000, 0.01)] {
        let seed = |build| lab.seed.wrapping_mul(1000).wrapping_add(build);
        let reports: Vec<WordsReport> = (0..builds)
            .map(|build| words(&list(seed(build), n), p, queries, seed(build)))
            .collect::<Result<_>>()?;
        let Some(WordsReport { m, k, computed, .. }) = reports.first().cloned() else { continue };
        let claim = |text: &str| format!("n = {n}, p = {p}: {text}");
        let rates: Vec<f64> = reports.iter().map(WordsReport::measured).collect();
        let found = Rate::from_builds(&rates, queries);
        sweep.rate(claim("mean rate of all lists"), &found, computed, 0.02);
        for (number, rate) in rates.iter().enumerate() {
            sweep
                .row()
                .cells([("n", &n), ("p", &p), ("m", &m), ("k", &k), ("list", &number)])
                .value("computed", computed, 8)
                .value("measured", *rate, 6);
        }
        let Some(printed) = PRINTED.iter().find(|printed| (printed.0, printed.1) == (n, p)) else { continue };
        let sizes = claim(&format!("{} bits and {} hash functions", printed.2, printed.3));
        sweep.that(sizes, (m, k) == (printed.2, printed.3));
        let by_formula = sweep.near(claim("rate by the formula"), computed, printed.4, 6e-11);
        if n == 1000 {
            by_formula.shows("e15");
        }
        if n == 58_110 {
            let written = rate::classic_as_written(m, n, k)?;
            let text = claim("the formula as printed gives 0.04022121808446685, to the last bit");
            sweep.that(text, written == 0.040_221_218_084_466_85);
        }
        if queries >= 100_000 {
            let near = rates.iter().filter(|rate| (*rate - computed).abs() <= printed.5).count();
            let text = claim(&format!("share of lists within {} of the formula", printed.5));
            // Four standard deviations for the larger list; about 2.6 for the smaller one, so one
            // list in a hundred is outside.
            let least = if n == 1000 { 0.8 } else { 1.0 };
            sweep.at_least(text, near as f64 / rates.len() as f64, least);
        }
    }
    findings.add(sweep);
    Ok(())
}

/// Compares k rounded up with k rounded to the nearest number.
fn rounding(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let mut sweep = Sweep::new("rounding").chart(
        "rounding",
        "The cost of rounding k up",
        Axis::linear("hash functions k"),
        Axis::linear("false-positive rate"),
    );
    for (colour, (n, p, printed)) in ROUNDED.into_iter().enumerate() {
        let ratio = rate::optimal_bits(n, p)? as f64 / n as f64;
        let curve = (20..=90).map(|k| f64::from(k) / 10.0);
        let curve = curve.map(|k| (k, (1.0 - (-k / ratio).exp()).powf(k)));
        let best = rate::optimal_hashes(ratio)?;
        sweep.series(format!("p = {p}, best k = {best:.2}"), Mark::Line, colour, curve);
        let label = format!("p = {p}, k rounded and rounded up");
        for (policy, printed) in [KPolicy::Round, KPolicy::Ceil].into_iter().zip(printed) {
            let Params { bits: m, hashes: k, rate: computed, .. } = Params::for_capacity(n, p, policy)?;
            let build = |hasher| Bloom::with_layout(Standard::new(m, k)?, hasher);
            // Small filters vary more, so more of them are built.
            let (builds, queries) = if n < 1000 { (800, 20_000) } else { (10, 400_000) };
            let found = measure::rate(lab, builds * lab.either(1, 4), n, queries, build)?;
            let claim = format!("n = {n}, p = {p}, k = {k}");
            sweep
                .at(k.into())
                .cells([("n", &n), ("p", &p), ("m", &m), ("k", &k), ("policy", &policy.name())])
                .value("computed", computed, 8)
                .near(format!("{claim}, computed"), printed, 6e-11)
                .shows("e14")
                .rate("measured", &found, 6)
                .dots(label.clone(), colour)
                .agrees(format!("{claim}, measured"), computed, 0.02)
                .shows("e14");
        }
        let [rounded, rounded_up] = [0, 1].map(|number| sweep.points(&label)[number].1);
        let claim = format!("n = {n}, p = {p}: measured rate with k rounded up / with k rounded");
        sweep.at_least(claim, rounded_up / rounded, 1.0).shows("e14");
    }
    findings.add(sweep);
    Ok(())
}
