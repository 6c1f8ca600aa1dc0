//! E9: the accuracy of a multi-resolution space-code filter for the sizes of flows, and the reason
//! for the guard in its rule.

use super::prelude::*;
use umbel::sizing::space_code::Rule;
use umbel::space_code::Estimator;
use umbel::spec::KindOptions;
use umbel::{Count, Digest, MultiResolution, SpaceCode, Spec};

pub struct FlowSizes;

const PACKETS: Parameter =
    Parameter::count("packets", "total number of packets", [1_000_000, 10_000_000], [10_000, 100_000_000]);
const FLOWS: Parameter = Parameter::count("flows", "number of flows", [10_000, 100_000], [1000, 1_000_000]);

/// The smallest number of flows for which a decade is judged.
const MIN_FLOWS: usize = 30;

impl Experiment for FlowSizes {
    fn about(&self) -> About {
        About {
            id: "E9",
            chapter: Chapter::Counts,
            title: "Sizes of flows from a few bits per packet",
            sources: &[KUMAR, HONOROFF],
            claim: "A multi-resolution space-code filter estimates how many packets a flow has, \
                    whether ten or a million, with a small bias and a spread of about a quarter. \
                    (E9b covers smaller flows.)",
            set_up: "Flows whose sizes fall as 1, 1/2, 1/3, ..., their packets in random order, \
                     recorded and queried once. For each decade of sizes: bias, relative spread, \
                     and the share of flows whose size lies in the 95 % interval. Flows of one \
                     packet are also read by the unguarded rule, which takes the level with the \
                     smallest error. Flows of 25 packets, of twice as many, and so on, are \
                     recorded in a filter of a single resolution as well.",
            advice: "Use these counts to rank flows and to find the large ones; expect an error of \
                     about a quarter for each, and use several resolutions.",
            command: "`umbel net flows` for packets, `umbel count` for lines",
            seconds: [1, 10],
            timed: false,
            parameters: &[PACKETS, FLOWS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let (packets, flows) = (lab.count(&PACKETS), lab.count(&FLOWS));
        let harmonic: f64 = (1..=flows).map(|rank| 1.0 / rank as f64).sum();
        let size = |rank: u64| ((packets as f64 / harmonic / rank as f64).round() as u64).max(1);
        let sizes: Vec<u64> = (1..=flows).map(size).collect();
        let keys = lab.keys(0).members(flows);
        let mut arrivals: Vec<u64> = keys
            .iter()
            .zip(&sizes)
            .flat_map(|(key, size)| std::iter::repeat_n(*key, *size as usize))
            .collect();
        shuffle(&mut arrivals, lab);

        let mut options = KindOptions::default();
        options.space_code.keys = Some(flows);
        let spec = Spec::new(arrivals.len() as u64, 0.005)?.with_hasher(lab.hasher(0)).with_options(options);
        let mut filter = MultiResolution::build(&spec)?;
        let digests = |keys: &[u64]| lab.digests(spec.hasher(), keys);
        filter.insert_tile(&digests(&arrivals));
        let counts: Vec<_> = digests(&keys).into_iter().map(|digest| filter.count_digest(digest)).collect();

        let mut findings = Findings::default();
        let mut decades = Sweep::new("decades");
        let mut least = 1;
        while least <= sizes[0] {
            let of: Vec<usize> =
                (0..sizes.len()).filter(|flow| (least..10 * least).contains(&sizes[*flow])).collect();
            let errors: Vec<f64> =
                of.iter().map(|flow| counts[*flow].value / sizes[*flow] as f64 - 1.0).collect();
            let share = |holds: &dyn Fn(usize) -> bool| {
                (0..of.len()).filter(|i| holds(*i)).count() as f64 / of.len() as f64
            };
            let bias = errors.iter().sum::<f64>() / of.len() as f64;
            let spread =
                (errors.iter().map(|error| (error - bias).powi(2)).sum::<f64>() / of.len() as f64).sqrt();
            let half = share(&|i| errors[i].abs() <= 0.5);
            let inside =
                share(&|i| (counts[of[i]].low..=counts[of[i]].high).contains(&(sizes[of[i]] as f64)));
            if of.len() >= MIN_FLOWS {
                // Four standard errors of the mean.
                let chance = 4.0 * spread / (of.len() as f64).sqrt();
                decades
                    .row()
                    .cells([("from", &least), ("flows", &of.len())])
                    .signed("bias", bias, 4)
                    .hidden(bias.abs())
                    .at_most(format!("bias of flows from {least} packets"), 0.04 + chance)
                    .value("spread", spread, 4)
                    .at_most(format!("spread of flows from {least} packets"), 0.40)
                    .value("within_half", half, 4)
                    .value("in_interval", inside, 4)
                    .at_least(format!("share of flows from {least} packets in the 95 % interval"), 0.90);
            }
            least *= 10;
        }

        let points = counts.iter().zip(&sizes).step_by((flows / 500) as usize);
        let points = points.map(|(count, size)| (*size as f64, count.value.max(0.5))).collect();
        let largest = sizes[0] as f64;
        findings.charts.push(Chart {
            name: "estimates".into(),
            title: "Estimated and true sizes of flows".into(),
            x: Axis::log("packets"),
            y: Axis::log("estimate"),
            series: vec![
                Series::new("exact", Mark::Line, 6, vec![(1.0, 1.0), (largest, largest)]),
                Series::new("flows", Mark::Dots, 0, points),
            ],
        });
        resolutions(lab, &mut findings)?;
        let [guarded, unguarded] = single_packets(lab)?;
        let mut rules = Sweep::new("rules");
        let column = "mean_estimate_of_one_packet";
        let row = rules.row().cell("rule", "guarded").value(column, guarded, 4);
        row.near("mean estimate of a single packet, guarded", 1.0, 0.1);
        let row = rules.row().cell("rule", "unguarded").value(column, unguarded, 1);
        row.at_least("mean estimate of a single packet, unguarded", lab.either(3.0, 100.0));
        findings.add(decades);
        findings.add(rules);
        findings.verdict =
            "The estimates are nearly unbiased, with a spread of a seventh for small flows and a \
             quarter for large ones. Without the guard, noise on a coarse level is sometimes taken \
             for a huge flow, which ruins the mean. A single resolution has all its groups hit \
             after about 130 packets: it cannot distinguish 200 packets from 400."
                .into();
        Ok(findings)
    }
}

/// Records flows of 25, 50, 100, ... packets in a filter of one resolution and in one of several.
fn resolutions(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let sizes: Vec<u64> = (0..10).map(|doubled| 25 << doubled).collect();
    let each = 100;
    let spec = Spec::new(each * sizes.iter().sum::<u64>(), 0.005)?.with_hasher(lab.hasher(2));
    let (mut one, mut several) = (SpaceCode::build(&spec)?, MultiResolution::build(&spec)?);
    let digests = lab.digests(spec.hasher(), &lab.keys(2).members(each * sizes.len() as u64));
    let flows = digests.chunks(each as usize).zip(&sizes);
    for (digests, size) in flows.clone() {
        for digest in digests.iter().flat_map(|digest| std::iter::repeat_n(*digest, *size as usize)) {
            one.insert_digest(digest);
            several.insert_digest(digest);
        }
    }
    let mut sweep = Sweep::new("resolutions").chart(
        "resolutions",
        "One resolution and several",
        Axis::log("packets"),
        Axis::log("mean estimate"),
    );
    let largest = 25.0 * 512.0;
    sweep.series("exact", Mark::Line, 6, [(25.0, 25.0), (largest, largest)]);
    for (digests, size) in flows {
        let mean = |count: &dyn Fn(Digest) -> f64| {
            digests.iter().map(|digest| count(*digest)).sum::<f64>() / each as f64
        };
        let saturated = mean(&|digest| f64::from(u8::from(one.count_digest(digest).saturated)));
        sweep
            .at(*size as f64)
            .cell("packets", size)
            .value("one", mean(&|digest| one.count_digest(digest).value), 1)
            .path("one resolution", 0)
            .value("one_saturated", saturated, 2)
            .value("several", mean(&|digest| several.count_digest(digest).value), 1)
            .path("several", 1);
    }
    // The share of pairs of flows of 200 and 400 packets in which the larger flow has the larger
    // estimate.
    let pairs = || digests[3 * each as usize..][..each as usize].iter().zip(&digests[4 * each as usize..]);
    let ordered = |count: &dyn Fn(Digest) -> f64| {
        pairs().filter(|(small, large)| count(**small) < count(**large)).count() as f64 / each as f64
    };
    let [blind, seeing] = [
        ordered(&|digest| one.count_digest(digest).value),
        ordered(&|digest| several.count_digest(digest).value),
    ];
    sweep.at_most("share of pairs of 200 and 400 packets that one resolution orders", blind, 0.2);
    sweep.at_least("share of pairs of 200 and 400 packets that several resolutions order", seeing, 0.85);
    findings.add(sweep);
    Ok(())
}

/// Returns the mean estimate of keys that were recorded once, by the guarded and by the unguarded
/// rule. There are enough keys to put noise on every level, and enough levels for that many keys.
fn single_packets(lab: &Lab) -> Result<[f64; 2]> {
    let (n, levels) = lab.either((200_000, 6), (10_000_000, 9));
    let mut options = KindOptions::default();
    options.space_code.levels = levels;
    let mut filter =
        MultiResolution::build(&Spec::new(n, 0.005)?.with_hasher(lab.hasher(1)).with_options(options))?;
    let members: Vec<Digest> = lab.digests(filter.hasher(), &lab.keys(1).members(n));
    filter.insert_tile(&members);
    let asked = &members[..200_000];
    let mean = |rule| {
        let sum: f64 = asked.iter().map(|digest| filter.estimate(*digest, Estimator::Mve, rule).value).sum();
        sum / asked.len() as f64
    };
    Ok([mean(Rule::Guarded), mean(Rule::Unguarded)])
}

/// Shuffles packets (Fisher and Yates), with the same result for the same seed.
fn shuffle(packets: &mut [u64], lab: &Lab) {
    for i in (1..packets.len()).rev() {
        packets.swap(i, lab.draw(0, i as u64, i as u64 + 1) as usize);
    }
}
