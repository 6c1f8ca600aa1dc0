//! E12-spie: routers that remember digests of packets, and the routers that are queried in vain.

use super::prelude::*;
use crate::keys::mix;
use crate::measure::Rate;
use umbel::hash::reduce;
use umbel::{Digest, Hasher};
use umbel_net::topology::Graph;
use umbel_net::traceback::spie::{Agent, Span, false_branches, trace};

pub struct Spie;

const BRANCHES: u32 = 4;
const DEPTH: u32 = 5;
/// Number of packets in a page.
const PAGE_PACKETS: u64 = 500;
/// Number of packets to trace, which all pass the victim's router.
const TRACED_PACKETS: u64 = 200;
const RATES: [f64; 6] = [0.01, 0.02, 0.05, 0.08, 0.1, 0.15];
/// The time of all packets.
const NOW: u64 = 10;

const NETWORKS: Parameter =
    Parameter::count("networks", "networks for each rate, each with its own pages", [5, 30], [2, 300]);

impl Experiment for Spie {
    fn about(&self) -> About {
        About {
            id: "E12-spie",
            chapter: Chapter::Networks,
            title: "Routers that remember packets, and those queried in vain",
            sources: &[SNOEREN, SCHIERZ],
            claim: "If every router stores digests in a page with a false-positive rate of p and \
                    has deg further neighbours, about deg p / (1 - deg p) routers are wrongly \
                    suspected for each one on the path; from p = 1/deg on, the search does not \
                    end. Pages need hash functions of their own.",
            set_up: "A tree in which every router has four upstream neighbours and the victim is \
                     at the root. Each router's page is full with 500 packets. 200 packets come \
                     from random leaves and are traced back. Then the same with routers that have \
                     all forwarded the same other packets: with a seed for each router, and with \
                     one seed for all.",
            advice: "Keep the rate of a page well below one over the number of neighbours, and \
                     give every router and page a seed of its own.",
            command: "the library module `umbel_net::traceback::spie`",
            seconds: [1, 5],
            timed: false,
            parameters: &[NETWORKS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut sweep = Sweep::new("branches").chart(
            "branches",
            "Wrongly suspected routers per router on the path, four neighbours each",
            Axis::linear("false-positive rate p of a page"),
            Axis::log("wrongly suspected routers"),
        );
        let steps = |last: u32| (2..=last).map(|step| f64::from(step) * 0.005);
        let endless = steps(44).filter_map(|p| Some((p, false_branches(BRANCHES, p)?)));
        sweep.series("deg p / (1 - deg p)", Mark::Dashes, 1, endless);
        sweep.series("in a tree of depth five", Mark::Line, 0, steps(36).map(|p| (p, in_this_tree(p))));
        let tree = Graph::tree(BRANCHES as usize, DEPTH)?;
        for rate in RATES {
            let runs =
                (0..lab.count(&NETWORKS)).map(|network| traced(lab, &tree, network, rate, Traffic::Own));
            let runs = runs.collect::<Result<Vec<Traced>>>()?;
            let innocent =
                Rate::from_builds(&runs.iter().map(|run| run.innocent).collect::<Vec<_>>(), TRACED_PACKETS);
            let expected = in_this_tree(rate);
            let endless = false_branches(BRANCHES, rate);
            // Suspects come in branches of 1 / (1 - deg p) routers on average, which widens the
            // tolerance by the same factor; and the rate of the pages is not exactly p.
            let routers = f64::from(DEPTH + 1) * (TRACED_PACKETS * innocent.builds) as f64;
            let chance = 4.0 * (expected / routers).sqrt() / (1.0 - f64::from(BRANCHES) * rate);
            let claim = |text: &str| format!("p = {rate}: {text}");
            let missed: u64 = runs.iter().map(|run| run.missed).sum();
            sweep
                .at(rate)
                .cell("rate", rate)
                .value("deg_p", f64::from(BRANCHES) * rate, 2)
                .optional("endless_tree", endless, 4)
                .value("this_tree", expected, 4)
                .value("measured", innocent.mean, 4)
                .dots("measured", 0)
                .near(
                    claim("wrongly suspected routers per router on the path"),
                    expected,
                    chance + 0.05 * expected,
                )
                .with(endless, |point, endless| {
                    point.at_most(claim("the same, at most as in an infinite network"), endless)
                })
                .hidden(missed as f64)
                .at_most(claim("paths that were not found"), 0.0);
        }
        findings.add(sweep);
        seeds(lab, &tree, &mut findings)?;
        findings.verdict =
            "The expected numbers are reproduced, with the three neighbours that a router on the \
             path leaves and the end that a real network has. Where routers have seen the same \
             packets, one seed for all makes their pages alike: a false positive in one is a false \
             positive in all, and the search goes everywhere. A seed for each router and page \
             prevents that."
                .into();
        Ok(findings)
    }
}

/// Returns the expected number of wrongly suspected routers per router on the path in this tree: a
/// router on the path has three other upstream neighbours, and each of these has four, up to the
/// leaves.
fn in_this_tree(p: f64) -> f64 {
    let branches = f64::from(BRANCHES);
    let below = |left: u32| (0..left).map(|layer| p * (branches * p).powi(layer as i32)).sum::<f64>();
    // A router at depth d has DEPTH - d layers upstream.
    let innocent: f64 = (0..DEPTH).map(|depth| (branches - 1.0) * below(DEPTH - depth)).sum();
    innocent / f64::from(DEPTH + 1)
}

/// The other packets that the routers have forwarded.
#[derive(Clone, Copy, PartialEq)]
enum Traffic {
    /// Different packets at each router.
    Own,
    /// The same packets everywhere, with a seed for each router.
    Same,
    /// The same packets everywhere, with one seed for all routers.
    SameSeed,
}

struct Traced {
    /// Wrongly suspected routers per router on the path.
    innocent: f64,
    /// Number of paths that were not found.
    missed: u64,
}

fn traced(lab: &Lab, tree: &Graph, network: u64, rate: f64, traffic: Traffic) -> Result<Traced> {
    let hasher = Hasher::fast(lab.seed);
    let packets = lab.digests(&hasher, &Keys::of_build(network).members(TRACED_PACKETS));
    let leaves = (BRANCHES as usize).pow(DEPTH);
    let paths: Vec<Vec<usize>> = (0..TRACED_PACKETS)
        .map(|packet| {
            let leaf = reduce(mix(mix(lab.seed) ^ (network << 32 | packet)), leaves as u64) as usize;
            let mut path = vec![tree.len() - leaves + leaf];
            while let Some(node) = path.last().copied().filter(|node| *node > 0) {
                path.push((node - 1) / BRANCHES as usize);
            }
            path
        })
        .collect();
    let mut seen: Vec<Vec<Digest>> = vec![Vec::new(); tree.len()];
    for (packet, path) in packets.iter().zip(&paths) {
        path.iter().for_each(|node| seen[*node].push(*packet));
    }
    let agents = seen.iter().enumerate().map(|(node, seen)| {
        let seed = if traffic == Traffic::SameSeed { 0 } else { node as u64 };
        let seed = mix(mix(lab.seed) ^ (network << 24 | seed));
        let mut agent = Agent::new(seed, PAGE_PACKETS, rate, Span { length: 60, pages: 1 })?;
        let others = if traffic == Traffic::Own { 1 + node as u64 } else { 0 };
        let others = (0..PAGE_PACKETS - seen.len() as u64).map(|n| hasher_of(lab, network, others << 16 | n));
        seen.iter().copied().chain(others).try_for_each(|packet| agent.forward(packet, NOW))?;
        Ok(agent)
    });
    let agents = agents.collect::<Result<Vec<Agent>>>()?;
    let (mut innocent, mut on_the_way, mut missed) = (0, 0, 0);
    for (packet, path) in packets.iter().zip(&paths) {
        let found = trace(tree, &agents, 0, *packet, NOW..=NOW);
        let there = path.iter().filter(|node| found.routers.contains(node)).count();
        missed += u64::from(there < path.len());
        innocent += found.routers.len() - there;
        on_the_way += path.len();
    }
    Ok(Traced { innocent: innocent as f64 / on_the_way as f64, missed })
}

/// Returns the digest of a packet that is not traced.
fn hasher_of(lab: &Lab, network: u64, number: u64) -> Digest {
    Digest::from_hash(mix(mix(lab.seed ^ network << 48).wrapping_add(number)))
}

/// Compares one seed for all routers with a seed for each.
fn seeds(lab: &Lab, tree: &Graph, findings: &mut Findings) -> Result<()> {
    let rate = 0.02;
    let mut sweep = Sweep::new("seeds");
    let mut means = Vec::new();
    for (traffic, about, seeds) in
        [(Traffic::Same, "all the same", "one each"), (Traffic::SameSeed, "all the same", "one for all")]
    {
        let runs = (0..lab.count(&NETWORKS)).map(|network| traced(lab, tree, network, rate, traffic));
        let innocent: Vec<f64> = runs.map(|run| Ok(run?.innocent)).collect::<Result<_>>()?;
        let mean = innocent.iter().sum::<f64>() / innocent.len() as f64;
        sweep.row().cell("traffic", about).cell("seeds", seeds).value("wrongly_suspected", mean, 4);
        means.push(mean);
    }
    let claim = "the same packets everywhere, p = 0.02: wrongly suspected with one seed for all / with a seed for each";
    sweep.at_least(claim, means[1] / means[0], 10.0);
    findings.add(sweep);
    Ok(())
}
