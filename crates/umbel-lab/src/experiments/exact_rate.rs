//! E1c: the classic formula and the exact rate of small filters.

use super::prelude::*;
use umbel::sizing::rate;

pub struct ExactRate;

/// m, n and k; the exact rate with repeated bits, the exact rate with distinct bits, the classic
/// formula, its asymptotic form, and the second-order formula.
const PRINTED: [(u64, u64, u32, [f64; 5]); 6] = [
    (10, 3, 3, [0.247_184_956_81, 0.251_076_967_59, 0.229_872_702, 0.208_982_173, 0.247_227_145]),
    (128, 16, 5, [0.022_539_072_954, 0.021_799_885_630, 0.021_986_968, 0.021_679_217, 0.022_538_143]),
    (128, 8, 11, [0.000_537_365_905, 0.000_471_504_946, 0.000_472_658, 0.000_458_711, 0.000_534_941]),
    (128, 8, 10, [0.000_539_573_636, 0.000_464_233_394, 0.000_483_427, 0.000_469_988, 0.000_537_961]),
    (64, 8, 6, [0.023_809_224_708, 0.022_710_058_890, 0.022_270_492, 0.021_577_141, 0.023_792_946]),
    (1024, 100, 7, [0.007_366_257_831, 0.007_317_868_284, 0.007_319_840, 0.007_302_421, 0.007_366_202]),
];

const NAMES: [&str; 5] =
    ["exact, repeated bits", "exact, distinct bits", "classic", "asymptotic", "second order"];

impl Experiment for ExactRate {
    fn about(&self) -> About {
        About {
            id: "E1c",
            chapter: Chapter::Sizing,
            title: "The classic formula is too low for small filters",
            sources: &[BOSE, CHRISTENSEN, GRANDI, HONOROFF],
            claim: "Textbooks call (1 - (1 - 1/m)^(kn))^k exact, but it is below the true rate: by \
                    10 to 12 % at 128 bits and 8 keys, and by 13 to 15 % in its asymptotic form. \
                    The larger the filter, the smaller the error. The asymptotic form rests on (1 \
                    - 1/x)^(-x), which Honoroff 2006 prints for eleven x and which falls to e.",
            set_up: "Exact rates from the distribution of the number of set bits, for six shapes, \
                     compared with independently computed values; then the ratio of the classic \
                     formula to the exact rate for growing filters of 10 bits per key. Last, the \
                     printed table of (1 - 1/x)^(-x), to all six decimals.",
            advice: "Use the classic formula for every filter above ten thousand bits, and the \
                     exact rate for filters of a few hundred.",
            command: "`umbel plan`",
            seconds: [1, 3],
            timed: false,
            parameters: &[],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut formulas = Sweep::new("formulas");
        for (m, n, k, printed) in PRINTED {
            let computed = [
                rate::exact(m, n, k)?,
                rate::exact_distinct(m, n, k)?,
                rate::classic(m, n, k)?,
                rate::asymptotic(m, n, k)?,
                rate::second_order(m, n, k)?,
            ];
            for ((name, printed), computed) in NAMES.iter().zip(printed).zip(computed) {
                // As precise as the printed digits.
                let tolerance = if name.starts_with("exact") { 1e-9 * printed.max(0.01) } else { 6e-10 };
                formulas
                    .row()
                    .cells([("m", &m), ("n", &n), ("k", &k), ("formula", &name), ("printed", &printed)])
                    .value("computed", computed, 12)
                    .near(format!("rate, {name}: m = {m}, n = {n}, k = {k}"), printed, tolerance);
            }
        }
        findings.add(formulas);
        let sizes: &[u64] =
            lab.either(&[4, 8, 16, 32, 64, 128, 256], &[4, 8, 16, 32, 64, 128, 256, 512, 1024]);
        let mut sweep = Sweep::new("ratio").chart(
            "ratio",
            "The classic formula as a share of the exact rate",
            Axis::log("bits of the filter, 10 per key"),
            Axis::linear("classic / exact"),
        );
        for n in sizes {
            let (m, k) = (10 * n, 7);
            let ratio = rate::classic(m, *n, k)? / rate::exact(m, *n, k)?;
            let point = sweep.at(m as f64).cell("m", m).cell("n", n).cell("k", k);
            point.value("classic_over_exact", ratio, 6).line("k = 7", 0);
        }
        let ratios: Vec<f64> = sweep.points("k = 7").iter().map(|point| point.1).collect();
        let claim = "the classic formula is too low, by less the larger the filter";
        sweep.that(claim, ratios.is_sorted_by(|one, next| one < next)).shows("e07");
        sweep.at_most("classic formula / exact rate, at its largest", ratios[ratios.len() - 1], 1.0);
        findings.add(sweep);
        limit(&mut findings);
        findings.verdict =
            "Filters of a few hundred bits need the exact formula; above ten thousand bits the \
             classic one is as good, and above a million bits e is as good as (1 - 1/x)^(-x)."
                .into();
        Ok(findings)
    }
}

/// Values of x and the printed values of (1 - 1/x)^(-x).
#[expect(clippy::approx_constant, reason = "the last printed value rounds to e")]
const PRINTED_LIMIT: [(u64, f64); 11] = [
    (4, 3.160_494),
    (16, 2.808_404),
    (64, 2.739_827),
    (256, 2.723_610),
    (1024, 2.719_610),
    (4096, 2.718_614),
    (16_384, 2.718_365),
    (65_536, 2.718_303),
    (262_144, 2.718_287),
    (1_048_576, 2.718_283),
    (4_194_304, 2.718_282),
];

/// Computes the printed values of (1 - 1/x)^(-x), and their distance from e.
fn limit(findings: &mut Findings) {
    let mut sweep = Sweep::new("limit").chart(
        "limit",
        "(1 - 1/x)^(-x) above its limit e",
        Axis::log("x"),
        Axis::log("distance from e"),
    );
    for (x, printed) in PRINTED_LIMIT {
        let inverse = 1.0 / x as f64;
        // The logarithm of 1 - 1/x as such would lose the digits of 1/x.
        let value = (-(-inverse).ln_1p() / inverse).exp();
        let distance = value - std::f64::consts::E;
        sweep
            .at(x as f64)
            .cell("x", x)
            .value("printed", printed, 6)
            .value("computed", value, 6)
            .near(format!("(1 - 1/x)^(-x) at x = {x}, to the last printed digit"), printed, 5.01e-7)
            .scientific("distance_from_e", distance, 3)
            .dots("computed", 0)
            .scientific("e_over_2x", std::f64::consts::E * inverse / 2.0, 3)
            .line("e / 2x", 0);
    }
    let distances: Vec<f64> = sweep.points("computed").iter().map(|point| point.1).collect();
    sweep.that(
        "(1 - 1/x)^(-x) falls towards e, and is above it at every x",
        distances.is_sorted_by(|one, next| one > next) && distances.iter().all(|distance| *distance > 0.0),
    );
    findings.add(sweep);
}
