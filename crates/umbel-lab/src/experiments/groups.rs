//! E9b: what the groups of a space-code filter tell: how many have been hit after so many packets, and back again.

use super::prelude::*;
use crate::measure::Rate;
use umbel::sizing::space_code::{Rule, coverage, inaccuracy, mle, mve};
use umbel::space_code::Estimator;
use umbel::spec::KindOptions;
use umbel::{Count, MultiResolution, SpaceCode, Spec};

pub struct Groups;

const GROUPS: u32 = 32;

/// Groups found, and the packets after which so many are expected.
const COVERAGE: [(u32, f64); 9] = [
    (1, 1.0),
    (2, 2.032),
    (8, 9.041),
    (16, 21.689),
    (20, 30.569),
    (24, 42.900),
    (28, 63.205),
    (31, 97.872),
    (32, 129.87),
];

/// Noise, groups found, most likely number of packets, and the number whose mean is that of the groups.
const ESTIMATES: [(f64, u32, f64, f64); 10] = [
    (0.0, 1, 1.0, 1.00),
    (0.0, 8, 9.0, 9.06),
    (0.0, 16, 22.0, 21.83),
    (0.0, 24, 44.0, 43.66),
    (0.0, 31, 109.0, 109.16),
    (0.01, 1, 1.0, 0.68),
    (0.01, 16, 21.0, 21.52),
    (0.05, 2, 1.0, 0.42),
    (0.05, 8, 8.0, 7.45),
    (0.05, 24, 42.0, 42.05),
];

/// Packets of a flow; bias, relative spread, and the shares within a quarter and within a half of the truth.
const ACCURACY: [(u64, [f64; 4]); 6] = [
    (1, [-0.01, 0.39, 0.86, 0.86]),
    (5, [0.0, 0.15, 0.88, 0.995]),
    (20, [0.0, 0.14, 0.91, 1.0]),
    (100, [0.02, 0.23, 0.76, 0.97]),
    (1000, [0.02, 0.27, 0.61, 0.92]),
    (10_000, [0.02, 0.24, 0.76, 0.98]),
];

const FLOWS: Parameter = Parameter::count("flows", "flows of each size", [2000, 4000], [100, 20_000]);

impl Experiment for Groups {
    fn about(&self) -> About {
        About {
            id: "E9b",
            title: "Packets counted by the groups that they hit",
            source: "Kumar et al. 2004; Honoroff 2006 (An Examination of Bloom Filters)",
            claim: "Each packet of a flow sets the bits of one of 32 groups, at random. All of them have been hit after about 111 \
                    packets, as Honoroff 2006 has it, and the number of groups that are found tells the number of packets.",
            set_up: "Keys recorded one at a time until all groups are found, in a filter with room to spare; expected packets and \
                     estimates by formula against values that were computed independently; and flows of equal size in a multi-resolution filter that is \
                     as full as it was made for.",
            seconds: [2, 12],
            timed: false,
            parameters: &[FLOWS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        formulas(&mut findings)?;
        collectors(lab, &mut findings)?;
        flows(lab, &mut findings)?;
        findings.verdict = "It takes 129.9 packets on average, not 111: l ln l is only the leading term of l (1 + 1/2 + ... + 1/l). \
                            The estimates are as accurate as a simulation with ideal hashes says. A level tells \
                            most when 20 of its 32 groups are found."
            .into();
        Ok(findings)
    }
}

/// What the formulas say, and what is printed.
fn formulas(findings: &mut Findings) -> Result<()> {
    let mut table = Table::new("groups", &["groups_found", "expected_packets", "inaccuracy"]);
    let mut curves = [Vec::new(), Vec::new()];
    for theta in 1..=GROUPS {
        let (packets, error) = (coverage(GROUPS, theta)?, inaccuracy(GROUPS, theta)?);
        // When all are found, nothing is known of how many more packets there were.
        let told = if error.is_finite() { format!("{error:.4}") } else { String::new() };
        table.add([theta.to_string(), format!("{packets:.3}"), told]);
        curves[0].push((f64::from(theta), packets));
        curves[1].push((f64::from(theta), error));
    }
    for (theta, packets) in COVERAGE {
        let claim = format!("packets until {theta} groups are hit");
        findings.near(claim, coverage(GROUPS, theta)?, packets, 6e-3);
    }
    for (noise, theta, likely, moment) in ESTIMATES {
        let of = format!("{theta} groups found at a noise of {noise}");
        findings.near(format!("{of}: most likely packets"), mle(GROUPS, noise, theta)?, likely, 0.5);
        findings.near(format!("{of}: packets by the mean"), mve(GROUPS, noise, theta)?, moment, 6e-3);
    }
    let best = curves[1].iter().min_by(|one, other| one.1.total_cmp(&other.1)).map_or(0.0, |best| best.0);
    findings.near("groups found where a level tells most", best, 20.0, 0.0);
    let [expected, errors] = curves;
    findings.tables.push(table);
    let l = f64::from(GROUPS);
    findings.charts.push(Chart {
        name: "groups".into(),
        title: "Packets until so many of 32 groups are hit".into(),
        x: Axis::linear("groups"),
        y: Axis::linear("packets, on average"),
        series: vec![
            Series::new("expected", Mark::Line, 0, expected),
            Series::new(
                "l ln l, as Honoroff 2006 has it",
                Mark::Dashes,
                1,
                vec![(1.0, l * l.ln()), (l, l * l.ln())],
            ),
        ],
    });
    findings.charts.push(Chart {
        name: "inaccuracy".into(),
        title: "How much one group more or less means".into(),
        x: Axis::linear("groups found, of 32"),
        y: Axis::log("relative error of one group"),
        series: vec![Series::new("R(θ), smallest at 20", Mark::Line, 0, errors)],
    });
    Ok(())
}

/// How many packets it really takes until all groups are found.
fn collectors(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let keys = lab.either(1000, 10_000);
    // As little noise as this, since noise would find groups too soon.
    let spec = Spec::new(keys * 200, 1e-6)?.with_hasher(lab.hasher(0));
    let mut filter = SpaceCode::build(&spec)?;
    let mut needed = Vec::new();
    for digest in lab.digests(&lab.hasher(0), &lab.keys(0).members(keys)) {
        let mut packets = 0.0;
        while filter.groups_found(digest) < GROUPS {
            filter.insert_digest(digest);
            packets += 1.0;
        }
        needed.push(packets);
    }
    let found = Rate::from_builds(&needed, 1);
    let (mean, deviation, tolerance) = (found.mean, found.deviation, found.error());
    let claim = "packets until all 32 groups are found, measured";
    findings.near(claim, mean, coverage(GROUPS, GROUPS)?, tolerance).shows("e53");
    let mut table = Table::new("collectors", &["keys", "mean_packets", "standard_deviation", "l_ln_l"]);
    let leading = f64::from(GROUPS) * f64::from(GROUPS).ln();
    table.add([keys.to_string(), format!("{mean:.2}"), format!("{deviation:.2}"), format!("{leading:.2}")]);
    findings.tables.push(table);
    Ok(())
}

/// Flows of the printed sizes, each in a filter that others have filled to the noise of the table.
fn flows(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let flows = lab.count(&FLOWS);
    let most = lab.either(1000, 10_000);
    let mut table = Table::new("accuracy", &["packets", "bias", "spread", "within_quarter", "within_half"]);
    let mut points = [Vec::new(), Vec::new()];
    for (number, (packets, printed)) in (1..).zip(ACCURACY).filter(|(_, row)| row.0 <= most) {
        // Large flows are fewer, so that a run ends.
        let flows = flows.min(4_000_000 * lab.either(1, 10) / packets);
        let mut options = KindOptions::default();
        options.space_code.keys = Some(flows);
        let spec = Spec::new(flows * packets, 0.005)?.with_hasher(lab.hasher(number)).with_options(options);
        let mut filter = MultiResolution::build(&spec)?;
        let digests = lab.digests(spec.hasher(), &lab.keys(number).members(flows));
        for _ in 0..packets {
            filter.insert_tile(&digests);
        }
        let error = |digest: &umbel::Digest| {
            filter.estimate(*digest, Estimator::Mve, Rule::Guarded).value / packets as f64 - 1.0
        };
        let errors: Vec<f64> = digests.iter().map(error).collect();
        let within = |limit: f64| {
            errors.iter().filter(|error| error.abs() <= limit).count() as f64 / errors.len() as f64
        };
        let Rate { mean: bias, deviation: spread, .. } = Rate::from_builds(&errors, 1);
        let measured = [bias, spread, within(0.25), within(0.5)];
        for ((name, measured), printed) in
            ["bias", "spread", "within a quarter", "within a half"].into_iter().zip(measured).zip(printed)
        {
            // Of fewer flows, chance may do more: four standard deviations of a share of one half.
            let tolerance = f64::max(0.04, 2.0 / (errors.len() as f64).sqrt());
            let claim = format!("{name}, flows of {packets}");
            findings.near(claim, measured, printed, tolerance);
        }
        table.add([
            packets.to_string(),
            format!("{bias:+.4}"),
            format!("{spread:.4}"),
            format!("{:.4}", measured[2]),
            format!("{:.4}", measured[3]),
        ]);
        points[0].push((packets as f64, spread));
        points[1].push((packets as f64, printed[1]));
    }
    let [measured, printed] = points;
    findings.tables.push(table);
    findings.charts.push(Chart {
        name: "accuracy".into(),
        title: "Relative spread of estimates, by packets of a flow".into(),
        x: Axis::log("packets"),
        y: Axis::linear("standard deviation of estimate / truth"),
        series: vec![
            Series::new("simulated with ideal hashes", Mark::Dashes, 1, printed),
            Series::new("measured", Mark::Dots, 0, measured),
        ],
    });
    Ok(())
}
