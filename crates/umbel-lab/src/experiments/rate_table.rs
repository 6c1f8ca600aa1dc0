//! E1: the table of false-positive rates by bits per key and number of hash functions.

use super::prelude::*;
use umbel::{Bloom, Standard, sizing::rate};

pub struct RateTable;

/// Bits per key, and the printed rates for k = 1, 2, 3, and so on.
const PRINTED: [(u64, &[f64]); 7] = [
    (2, &[0.3935, 0.3996]),
    (3, &[0.2835, 0.2368, 0.2526]),
    (4, &[0.2212, 0.1548, 0.1469, 0.1597]),
    (5, &[0.1813, 0.1087, 0.0918, 0.0920, 0.1009]),
    (6, &[0.1535, 0.0804, 0.0609, 0.0561, 0.0578]),
    (7, &[0.1331, 0.0618, 0.0423, 0.0359, 0.0347]),
    (8, &[0.1175, 0.0489, 0.0306, 0.0240, 0.0217]),
];

const BUILDS: u64 = 10;
const KEYS: Parameter = Parameter::count("n", "keys in a filter", [10_000; 2], [1000, 10_000_000]);
const QUERIES: Parameter =
    Parameter::count("queries", "strangers for each filter", [100_000, 1_000_000], [1000, 100_000_000]);

impl Experiment for RateTable {
    fn about(&self) -> About {
        About {
            id: "E1",
            chapter: Chapter::Sizing,
            title: "False-positive rates by bits per key and hash functions",
            sources: &[BLOOM, HONOROFF],
            claim: "A filter of m bits with k hash functions and n keys says yes to a share of (1 \
                    - e^(-kn/m))^k of all other keys. Honoroff 2006 prints this rate for 2 to 8 \
                    bits per key and 1 to 5 hash functions.",
            set_up: "Ten filters for each of the 29 cells of the table, queried with keys that are \
                     certainly not in them. A cell holds if the mean rate is within 3 % of the \
                     printed one, or within 5 % where the printed rate is below 0.03.",
            advice: "Choose bits per key and k by the formula; real filters keep the rate that it \
                     predicts.",
            command: "`umbel plan -n 1M -p 1%`",
            seconds: [4, 20],
            timed: false,
            parameters: &[KEYS, QUERIES],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let (n, queries) = (lab.count(&KEYS), lab.count(&QUERIES));
        let mut findings = Findings::default();
        let mut sweep = Sweep::new("rates").chart(
            "rates",
            "False-positive rate by hash functions",
            Axis::linear("hash functions k"),
            Axis::log("false-positive rate"),
        );
        for (ratio, printed) in PRINTED {
            let (is_drawn, colour) = (ratio % 2 == 0, (ratio as usize / 2).saturating_sub(1));
            if is_drawn {
                let curve = (10..=50u32).map(|k| f64::from(k) / 10.0);
                let curve = curve.map(|k| (k, (1.0 - (-k / ratio as f64).exp()).powf(k)));
                sweep.series(format!("m/n = {ratio}, theory"), Mark::Line, colour, curve);
            }
            for (k, printed) in (1..).zip(printed) {
                let m = ratio * n;
                let build = |hasher| Bloom::with_layout(Standard::new(m, k)?, hasher);
                let measured = measure::rate(lab, BUILDS, n, queries, build)?;
                let stated = printed * if *printed < 0.03 { 0.05 } else { 0.03 };
                // With fewer keys or queries than the claim is about, chance has more influence.
                let is_small = n < 10_000 || queries < 100_000;
                let tolerance = if is_small { stated.max(measured.chance(*printed)) } else { stated };
                let claim = format!("m/n = {ratio}, k = {k}");
                let measured_claim = format!("{claim}: measured rate");
                let formula = format!("{claim}: rate by the formula, to the last printed digit");
                let label = format!("m/n = {ratio}, measured");
                sweep
                    .at(k.into())
                    .cells([("bits_per_key", &ratio), ("k", &k)])
                    .value("printed", *printed, 4)
                    .value("asymptotic", rate::asymptotic(m, n, k)?, 6)
                    .near(formula, *printed, 5.01e-5)
                    .value("measured", measured.mean, 6)
                    .near(measured_claim, *printed, tolerance)
                    .when(is_drawn, |point| point.dots(label, colour))
                    .scientific("standard_deviation", measured.deviation, 2)
                    .cells([("builds", &BUILDS), ("queries_each", &queries)]);
            }
        }
        findings.add(sweep);
        findings.verdict =
            "The asymptotic formula reproduces the printed digits, and the filters have these \
             rates."
                .into();
        Ok(findings)
    }
}
