//! E9: how well a multi-resolution space-code filter tells the sizes of flows, and why its rule is guarded.

use crate::{About, Axis, Chart, Criterion, Experiment, Findings, Lab, Mark, Parameter, Series, Table};
use umbel::sizing::space_code::Rule;
use umbel::space_code::Estimator;
use umbel::{Count, Digest, MultiResolution, Result, Spec, Tuning};

pub struct FlowSizes;

const PACKETS: Parameter =
    Parameter::count("packets", "packets in all", [1_000_000, 10_000_000], [10_000, 100_000_000]);
const FLOWS: Parameter = Parameter::count("flows", "flows", [10_000, 100_000], [1000, 1_000_000]);

/// Of decades with fewer flows nothing is claimed.
const ENOUGH: usize = 30;

impl Experiment for FlowSizes {
    fn about(&self) -> About {
        About {
            id: "E9",
            title: "Sizes of flows from a few bits per packet",
            source: "Kumar et al. 2004; the lecture slides",
            claim: "A multi-resolution space-code filter tells how many packets a flow has, whether ten or a million, with a \
                    small bias and a spread of about a quarter. (Flows of fewer packets: E9b.)",
            set_up: "Flows whose sizes fall as 1, 1/2, 1/3, ..., their packets in random order, recorded and asked for once. By \
                     decade of size: bias, relative spread, and the share that lies in its 95 % interval. Flows of one packet \
                     are also read by the rule that takes the level with the smallest error, unguarded.",
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

        let mut tuning = Tuning::default();
        tuning.space_code.keys = Some(flows);
        let spec = Spec::new(arrivals.len() as u64, 0.005)?.with_hasher(lab.hasher(0)).with_tuning(tuning);
        let mut filter = MultiResolution::build(&spec)?;
        let digests = |keys: &[u64]| lab.digests(spec.hasher(), keys);
        filter.record_tile(&digests(&arrivals))?;
        let counts: Vec<_> = digests(&keys).into_iter().map(|digest| filter.count_digest(digest)).collect();

        let mut findings = Findings::default();
        let mut table =
            Table::new("decades", &["from", "flows", "bias", "spread", "within_half", "in_interval"]);
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
            if of.len() >= ENOUGH {
                table.add([
                    least.to_string(),
                    of.len().to_string(),
                    format!("{bias:+.4}"),
                    format!("{spread:.4}"),
                    format!("{half:.4}"),
                    format!("{inside:.4}"),
                ]);
                // What chance does to a mean of so many.
                let chance = 4.0 * spread / (of.len() as f64).sqrt();
                findings.criteria.push(Criterion::at_most(
                    format!("bias from {least}"),
                    bias.abs(),
                    0.04 + chance,
                ));
                findings.criteria.push(Criterion::at_most(format!("spread from {least}"), spread, 0.40));
                findings.criteria.push(Criterion::at_least(
                    format!("in the interval, from {least}"),
                    inside,
                    0.90,
                ));
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
        let [guarded, unguarded] = single_packets(lab)?;
        findings.criteria.push(Criterion::near(
            "mean estimate of a single packet, guarded",
            guarded,
            1.0,
            0.1,
        ));
        findings.criteria.push(Criterion::at_least("the same, unguarded", unguarded, lab.either(3.0, 100.0)));
        let mut rules = Table::new("rules", &["rule", "mean_estimate_of_one_packet"]);
        rules.add(["guarded".into(), format!("{guarded:.4}")]);
        rules.add(["unguarded".into(), format!("{unguarded:.1}")]);
        findings.tables.extend([table, rules]);
        findings.verdict = "The estimates are nearly unbiased, with a spread of a seventh for small flows and a quarter for large \
                            ones. Without the guard, noise on a coarse level is taken for a huge flow now and then, and ruins \
                            the mean."
            .into();
        Ok(findings)
    }
}

/// The mean estimate of many keys that were recorded once, by the guarded and the unguarded rule. There are as many that
/// every level has its noise, and as many levels as that takes.
fn single_packets(lab: &Lab) -> Result<[f64; 2]> {
    let (n, levels) = lab.either((200_000, 6), (10_000_000, 9));
    let mut tuning = Tuning::default();
    tuning.space_code.levels = levels;
    let mut filter =
        MultiResolution::build(&Spec::new(n, 0.005)?.with_hasher(lab.hasher(1)).with_tuning(tuning))?;
    let members: Vec<Digest> = lab.digests(filter.hasher(), &lab.keys(1).members(n));
    filter.record_tile(&members)?;
    let asked = &members[..200_000];
    let mean = |rule| {
        let sum: f64 = asked.iter().map(|digest| filter.estimate(*digest, Estimator::Mve, rule).value).sum();
        sum / asked.len() as f64
    };
    Ok([mean(Rule::Guarded), mean(Rule::Unguarded)])
}

/// Puts packets into a random order, the same for the same seed (Fisher and Yates).
fn shuffle(packets: &mut [u64], lab: &Lab) {
    for i in (1..packets.len()).rev() {
        packets.swap(i, lab.draw(0, i as u64, i as u64 + 1) as usize);
    }
}
