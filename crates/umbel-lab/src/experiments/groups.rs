//! E9b: the groups of a space-code filter: how many are hit after a number of packets, and the
//! estimate of that number.

use super::prelude::*;
use crate::measure::Rate;
use umbel::sizing::space_code::{Rule, coverage, inaccuracy, mle, mve};
use umbel::space_code::Estimator;
use umbel::spec::KindOptions;
use umbel::{Count, MultiResolution, SpaceCode, Spec};

pub struct Groups;

const GROUPS: u32 = 32;

/// Numbers of groups, each with the expected packets until that many are found.
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

/// Noise, groups found, most likely number of packets, and the number whose expected groups equal
/// the groups found.
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

/// Packets of a flow; bias, relative spread, and shares within a quarter and within a half of the
/// truth.
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
            chapter: Chapter::Counts,
            title: "Packets counted by the groups that they hit",
            sources: &[KUMAR, HONOROFF],
            claim: "Each packet of a flow sets the bits of one of 32 groups, at random. According \
                    to Honoroff 2006, all of them have been hit after about 111 packets. The \
                    number of groups that are found estimates the number of packets.",
            set_up: "Keys are recorded one at a time until all groups are found, in a filter with \
                     room to spare; expected packets and estimates by formula are compared with \
                     independently computed values; and flows of equal size are recorded in a \
                     multi-resolution filter that is as full as it was made for.",
            advice: "Expect 130 packets, not 111, to saturate 32 groups, and size the levels so \
                     that flows of interest hit about 20 of them.",
            command: "`umbel count build`",
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
        findings.verdict =
            "It takes 129.9 packets on average, not 111: l ln l is only the leading term of l (1 + \
             1/2 + ... + 1/l). The estimates are as accurate as a simulation with ideal hashes \
             predicts. A level is most accurate when 20 of its 32 groups are found."
                .into();
        Ok(findings)
    }
}

/// Compares the formulas with printed values.
fn formulas(findings: &mut Findings) -> Result<()> {
    let mut sweep = Sweep::new("groups")
        .chart(
            "groups",
            "Packets until a number of the 32 groups is hit",
            Axis::linear("groups"),
            Axis::linear("mean packets"),
        )
        .chart(
            "inaccuracy",
            "The error that one group more or less causes",
            Axis::linear("groups found, of 32"),
            Axis::log("relative error of one group"),
        );
    for theta in 1..=GROUPS {
        let error = inaccuracy(GROUPS, theta)?;
        // When all groups are found, the number of further packets is unknown.
        sweep
            .at(theta.into())
            .cell("groups_found", theta)
            .value("expected_packets", coverage(GROUPS, theta)?, 3)
            .line("expected", 0)
            .optional("inaccuracy", Some(error).filter(|error| error.is_finite()), 4)
            .on(1)
            .hidden(error)
            .line("R(θ), smallest at 20", 0);
    }
    let l = f64::from(GROUPS);
    sweep.series("l ln l, as in Honoroff 2006", Mark::Dashes, 1, [(1.0, l * l.ln()), (l, l * l.ln())]);
    for (theta, packets) in COVERAGE {
        let claim = format!("packets until {theta} of 32 groups are hit");
        findings.near(claim, coverage(GROUPS, theta)?, packets, 6e-3);
    }
    for (noise, theta, likely, moment) in ESTIMATES {
        let of = format!("{theta} of 32 groups found at a noise of {noise}");
        findings.near(format!("{of}: most likely packets"), mle(GROUPS, noise, theta)?, likely, 0.5);
        findings.near(format!("{of}: packets by the mean"), mve(GROUPS, noise, theta)?, moment, 6e-3);
    }
    let errors = sweep.points("R(θ), smallest at 20").iter();
    let best = errors.min_by(|one, other| one.1.total_cmp(&other.1)).map_or(0.0, |best| best.0);
    findings.near("groups found where a level is most accurate", best, 20.0, 0.0);
    findings.add(sweep);
    Ok(())
}

/// Counts the packets until all groups are found.
fn collectors(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let keys = lab.either(1000, 10_000);
    // Very little noise, since noise would complete the groups too early.
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
    let claim = "packets until all 32 groups are found, measured";
    let leading = f64::from(GROUPS) * f64::from(GROUPS).ln();
    let mut sweep = Sweep::new("collectors");
    sweep
        .row()
        .cell("keys", keys)
        .value("mean_packets", found.mean, 2)
        .near(claim, coverage(GROUPS, GROUPS)?, found.error())
        .shows("e53")
        .value("standard_deviation", found.deviation, 2)
        .value("l_ln_l", leading, 2);
    findings.add(sweep);
    Ok(())
}

/// Measures flows of the printed sizes, each in a filter that others have filled to the noise of
/// the table.
fn flows(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let flows = lab.count(&FLOWS);
    let most = lab.either(1000, 10_000);
    let mut sweep = Sweep::new("accuracy").chart(
        "accuracy",
        "Relative spread of estimates, by packets of a flow",
        Axis::log("packets"),
        Axis::linear("standard deviation of estimate / truth"),
    );
    for (number, (packets, printed)) in (1..).zip(ACCURACY).filter(|(_, row)| row.0 <= most) {
        // Fewer large flows, to limit the time.
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
        // With fewer flows chance has more influence: four standard deviations of a share of one
        // half.
        let tolerance = f64::max(0.04, 2.0 / (errors.len() as f64).sqrt());
        let claim = |name: &str| format!("packets per flow: {packets}: {name}");
        sweep
            .at(packets as f64)
            .cell("packets", packets)
            .signed("bias", bias, 4)
            .near(claim("bias"), printed[0], tolerance)
            .hidden(printed[1])
            .dashes("simulated with ideal hashes", 1)
            .value("spread", spread, 4)
            .dots("measured", 0)
            .near(claim("spread"), printed[1], tolerance)
            .value("within_quarter", within(0.25), 4)
            .near(claim("share within a quarter of the truth"), printed[2], tolerance)
            .value("within_half", within(0.5), 4)
            .near(claim("share within a half of the truth"), printed[3], tolerance);
    }
    findings.add(sweep);
    Ok(())
}
