//! E1c: the classic formula beside the exact rate of small filters.

use super::prelude::*;
use umbel::sizing::rate;

pub struct ExactRate;

/// m, n, k; exact with repeated bits, exact with different bits, the classic formula, its asymptotic form, the second order.
const PRINTED: [(u64, u64, u32, [f64; 5]); 6] = [
    (10, 3, 3, [0.247_184_956_81, 0.251_076_967_59, 0.229_872_702, 0.208_982_173, 0.247_227_145]),
    (128, 16, 5, [0.022_539_072_954, 0.021_799_885_630, 0.021_986_968, 0.021_679_217, 0.022_538_143]),
    (128, 8, 11, [0.000_537_365_905, 0.000_471_504_946, 0.000_472_658, 0.000_458_711, 0.000_534_941]),
    (128, 8, 10, [0.000_539_573_636, 0.000_464_233_394, 0.000_483_427, 0.000_469_988, 0.000_537_961]),
    (64, 8, 6, [0.023_809_224_708, 0.022_710_058_890, 0.022_270_492, 0.021_577_141, 0.023_792_946]),
    (1024, 100, 7, [0.007_366_257_831, 0.007_317_868_284, 0.007_319_840, 0.007_302_421, 0.007_366_202]),
];

const NAMES: [&str; 5] =
    ["exact, repeated bits", "exact, different bits", "classic", "asymptotic", "second order"];

impl Experiment for ExactRate {
    fn about(&self) -> About {
        About {
            id: "E1c",
            title: "The classic formula is too low for small filters",
            source: "Bose et al. 2008, Christensen et al. 2010, Grandi 2018",
            claim: "(1 - (1 - 1/m)^(kn))^k, which textbooks call exact, is below the truth: by 10 to 12 % at 128 bits and 8 \
                    keys, in its asymptotic form by 13 to 15 %; and by less the larger the filter is.",
            set_up: "Exact rates by the distribution of the number of set bits, for six shapes, against values that were computed independently; \
                     and the ratio of the classic formula to the exact rate for growing filters of 10 bits per key.",
            seconds: [1, 3],
            timed: false,
            parameters: &[],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut table = Table::new("formulas", &["m", "n", "k", "formula", "printed", "computed"]);
        let mut findings = Findings::default();
        for (m, n, k, printed) in PRINTED {
            let computed = [
                rate::exact(m, n, k)?,
                rate::exact_distinct(m, n, k)?,
                rate::classic(m, n, k)?,
                rate::asymptotic(m, n, k)?,
                rate::second_order(m, n, k)?,
            ];
            for ((name, printed), computed) in NAMES.iter().zip(printed).zip(computed) {
                let claim = format!("{name}, m = {m}, n = {n}, k = {k}");
                // To the last printed digit.
                let tolerance = if name.starts_with("exact") { 1e-9 * printed.max(0.01) } else { 6e-10 };
                findings.near(claim, computed, printed, tolerance);
                table.add([
                    m.to_string(),
                    n.to_string(),
                    k.to_string(),
                    (*name).to_string(),
                    printed.to_string(),
                    format!("{computed:.12}"),
                ]);
            }
        }
        let sizes: &[u64] =
            lab.either(&[4, 8, 16, 32, 64, 128, 256], &[4, 8, 16, 32, 64, 128, 256, 512, 1024]);
        let mut curve = Table::new("ratio", &["m", "n", "k", "classic_over_exact"]);
        let mut points = Vec::new();
        for n in sizes {
            let (m, k) = (10 * n, 7);
            let ratio = rate::classic(m, *n, k)? / rate::exact(m, *n, k)?;
            curve.add([m.to_string(), n.to_string(), k.to_string(), format!("{ratio:.6}")]);
            points.push((m as f64, ratio));
        }
        let rises = points.windows(2).all(|pair| pair[0].1 < pair[1].1);
        findings
            .that("the classic formula is too low, and less so the larger the filter", rises)
            .shows("e07");
        findings.at_most("it is never above the exact rate", points[points.len() - 1].1, 1.0);
        findings.tables.extend([table, curve]);
        findings.charts.push(Chart {
            name: "ratio".into(),
            title: "What the classic formula says of the exact rate".into(),
            x: Axis::log("bits of the filter, 10 for each key"),
            y: Axis::linear("classic / exact"),
            series: vec![Series::new("k = 7", Mark::Line, 0, points)],
        });
        findings.verdict =
            "For filters of a few hundred bits the exact rate should be used; above ten thousand bits the \
                            classic formula is as good."
                .into();
        Ok(findings)
    }
}
