//! E12-icarus: a filter in the header that detects loops, and the packets outside loops that it
//! loses.

use super::prelude::*;
use crate::keys::mix;
use umbel::hash::reduce;
use umbel_net::loops::{Allowance, Header, Interface, Verdict, dropped, weight};
use umbel_net::simulate::loops::{Route, TIME_TO_LIVE};
use umbel_net::topology::Graph;

pub struct Icarus;

/// Bits, and the printed hops at which one packet in a thousand is lost: with one reprieve, and
/// with one reprieve and two failures.
const PRINTED: [(u32, f64, f64); 4] =
    [(32, 6.0, 28.0), (64, 10.0, 44.0), (128, 15.0, 68.0), (256, 28.0, 118.0)];

const PLAIN: Allowance = Allowance { failures: 0, reprieves: 0 };
const ONE_REPRIEVE: Allowance = Allowance { failures: 0, reprieves: 1 };
const TWO_FAILURES: Allowance = Allowance { failures: 2, reprieves: 1 };
const LOST_SHARE: f64 = 0.001;
const HOPS: u32 = 160;

const PACKETS: Parameter =
    Parameter::count("packets", "packets on paths without a loop", [40_000, 400_000], [20_000, 10_000_000]);

impl Experiment for Icarus {
    fn about(&self) -> About {
        About {
            id: "E12-icarus",
            chapter: Chapter::Networks,
            title: "A filter in the header ends loops, and loses few other packets",
            sources: &[WHITAKER, SCHIERZ],
            claim: "If every interface sets a few bits in the header, a packet in a loop is \
                    noticed. With reprieves and failures, 256 bits lose one packet in a thousand \
                    only after a path of 118 hops. A packet leaves a loop of eight after f + r (1 \
                    + f) / 8 further rounds: 3.5 for f = 3 and r = 1, where a time to live of 64 \
                    allows 7.",
            set_up: "40 000 packets pass interfaces with random masks until the filter drops them; \
                     the share that is lost by each hop is also computed exactly, as a Markov \
                     chain. Then packets run in loops of 1 to 32 interfaces, and on real and \
                     generated networks in which half of the routers do not know yet that a link \
                     has failed.",
            advice: "With 256 bits, two failures and one reprieve, paths of up to about a hundred \
                     hops lose fewer than one packet in a thousand, and short loops end in a fifth \
                     to a half of the hops that a time to live of 64 allows.",
            command: "`umbel net simulate loops`; the library module `umbel_net::loops`",
            seconds: [2, 15],
            timed: false,
            parameters: &[PACKETS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut sweep = Sweep::new("lost").chart(
            "lost",
            "Packets outside loops that are lost, with two failures and one reprieve",
            Axis::linear("hops"),
            Axis::log("share lost"),
        );
        for (colour, (bits, few, many)) in PRINTED.into_iter().enumerate() {
            for (allowance, printed, tolerance) in
                [(PLAIN, None, 0.0), (ONE_REPRIEVE, Some(few), 3.0), (TWO_FAILURES, Some(many), 6.0)]
            {
                let exact = dropped(bits, weight(bits), allowance, HOPS)?;
                let measured = measured(lab, bits, allowance);
                let hop =
                    |shares: &[f64]| shares.iter().position(|share| *share >= LOST_SHARE).map(|hop| hop + 1);
                let (exact_hop, measured_hop) = (hop(&exact).unwrap_or(0), hop(&measured).unwrap_or(0));
                let name = format!("{bits} bits, f = {}, r = {}", allowance.failures, allowance.reprieves);
                let (at, packets) = (2 * exact_hop.clamp(1, HOPS as usize / 2) - 1, lab.count(&PACKETS));
                let lost = (measured[at] * packets as f64).round() as u64;
                let share_lost = format!("{name}: share lost within {} hops", at + 1);
                sweep
                    .row()
                    .cells([
                        ("bits", &bits),
                        ("failures", &allowance.failures),
                        ("reprieves", &allowance.reprieves),
                    ])
                    .cell("printed_hop", printed.map(|hop| hop.to_string()).unwrap_or_default())
                    .cell("exact_hop", exact_hop)
                    .count("measured_hop", measured_hop as u64)
                    .with(printed, |point, printed| {
                        let claim = format!("{name}: hop at which one in a thousand is lost");
                        point.near(claim, printed, tolerance)
                    })
                    .judge(Criterion::share(share_lost, lost, packets, exact[at], 0.0));
                if allowance == TWO_FAILURES {
                    let points = |shares: &[f64], step| -> Vec<(f64, f64)> {
                        let shares = (1..).map(f64::from).zip(shares.iter().copied()).step_by(step);
                        shares.filter(|(_, share)| (1e-4..0.999).contains(share)).collect()
                    };
                    sweep.series(format!("{bits} bits, exact"), Mark::Line, colour, points(&exact, 1));
                    let label = format!("{bits} bits, measured");
                    sweep.series(label, Mark::Dots, colour, points(&measured, 8));
                }
            }
        }
        findings.add(sweep);
        loops(lab, &mut findings);
        networks(lab, &mut findings)?;
        findings.verdict =
            "The hops at which one packet in a thousand is lost are reproduced, and the Markov \
             chain gives them exactly. No packet in a loop escapes. The published bound leaves out \
             the hops that empty the filter: a packet leaves a loop of eight after 3.875 further \
             rounds, not 3.5. That is about half of what a time to live of 64 allows; where \
             routers disagree, most loops are of two, and there it is a fifth. In loops of more \
             than 14 interfaces the time to live ends sooner."
                .into();
        Ok(findings)
    }
}

/// Measures the share of packets that are lost by each hop.
fn measured(lab: &Lab, bits: u32, allowance: Allowance) -> Vec<f64> {
    match bits {
        32 => simulated::<1>(lab, allowance),
        64 => simulated::<2>(lab, allowance),
        128 => simulated::<4>(lab, allowance),
        _ => simulated::<8>(lab, allowance),
    }
}

fn simulated<const W: usize>(lab: &Lab, allowance: Allowance) -> Vec<f64> {
    let packets = lab.count(&PACKETS);
    let mut lost = vec![0u64; HOPS as usize];
    for packet in 0..packets {
        let mut header = Header::<W>::new(allowance);
        let dropped = (0..lost.len()).find(|hop| {
            let interface = mix(packet << 16 | *hop as u64);
            Interface::new(&interface.to_le_bytes(), lab.seed, allowance).pass(&mut header) == Verdict::Drop
        });
        if let Some(hop) = dropped {
            lost[hop] += 1;
        }
    }
    let mut sum = 0;
    lost.into_iter()
        .map(|count| {
            sum += count;
            sum as f64 / packets as f64
        })
        .collect()
}

/// Counts the further rounds of packets in a loop.
fn loops(lab: &Lab, findings: &mut Findings) {
    let allowance = Allowance { failures: 3, reprieves: 1 };
    let extra = |hops: u32, around: u32| f64::from(hops.saturating_sub(around)) / f64::from(around);
    let mut sweep = Sweep::new("rounds").chart(
        "rounds",
        "Largest number of further rounds in a loop, with three failures and one reprieve",
        Axis::linear("interfaces in the loop"),
        Axis::log("rounds"),
    );
    let mut held = true;
    for around in 1..=32u32 {
        let hops = (0..200u64).map(|build| {
            let interface = |n: u32| {
                let address = mix(build << 32 | u64::from(n)).to_le_bytes();
                Interface::<8>::new(&address, lab.seed, allowance)
            };
            let circle: Vec<_> = (0..around).map(interface).collect();
            let mut header = Header::new(allowance);
            let passes = |interface: &&Interface<8>| interface.pass(&mut header) != Verdict::Drop;
            circle.iter().cycle().take_while(passes).count() as u32
        });
        let most = hops.max().unwrap_or(0);
        held &= most <= allowance.most_hops(around);
        let x = f64::from(around);
        let (failures, reprieves) = (f64::from(allowance.failures), f64::from(allowance.reprieves));
        let literature = failures + reprieves * (1.0 + failures) / x;
        let bound = extra(allowance.most_hops(around), around);
        sweep
            .at(x)
            .cell("interfaces", around)
            .hidden(bound)
            .line("bound", 0)
            .hidden(literature)
            .dashes("published: f + r (1 + f) / length", 1)
            .value("most", extra(most, around), 3)
            .dots("measured, 256 bits, the longest of 200", 0)
            .value("bound", bound, 3)
            .value("literature", literature, 3)
            .value("time_to_live_64", (64.0 - x) / x, 3)
            // A loop of one would stretch the axis.
            .when(around > 1, |point| point.line("time to live of 64", 6));
    }
    let claim = "no packet in a loop makes more hops than (1 + f)(1 + r + length) - 1";
    sweep.that(claim, held);
    let claim = "further rounds in a loop of 8, f = 3, r = 1 (the published 3.5, plus one hop per failure)";
    let longest = sweep.points("measured, 256 bits, the longest of 200")[7].1;
    sweep.near(claim, longest, 3.875, 1e-9);
    findings.add(sweep);
}

/// Measures networks with a failed link that half of the routers do not know about yet.
fn networks(lab: &Lab, findings: &mut Findings) -> Result<()> {
    let mut sweep = Sweep::new("networks");
    let drawn = |nodes| Graph::barabasi_albert(nodes, 2, lab.seed);
    for (name, graph) in [
        ("Abilene", Graph::abilene()),
        ("NSFNET", Graph::nsfnet()),
        ("Barabasi and Albert, 200 nodes", drawn(200)?),
        ("Waxman, 200 nodes", Graph::waxman(200, 0.4, 0.1, lab.seed)?),
    ] {
        let mut sums = Sums::default();
        for round in 0..lab.either(300, 3000u64) {
            let draw = |what: u64, end: usize| {
                reduce(mix(mix(lab.seed).wrapping_add(round << 8 | what)), end as u64) as usize
            };
            let target = draw(0, graph.len());
            let near = draw(1, graph.len());
            let Some(link) = graph.neighbours(near).get(draw(2, graph.neighbours(near).len())) else {
                continue;
            };
            let after = graph.without(near, link.to);
            let (old, new) = (graph.next_hops(target), after.next_hops(target));
            let knows = |node: usize| mix(round << 32 | node as u64).is_multiple_of(2);
            // The routers at the link see that it has failed.
            let next = |node: usize| {
                if knows(node) || node == near || node == link.to { new[node] } else { old[node] }
            };
            for source in (0..graph.len()).filter(|node| *node != target) {
                sums.send(source, target, &next, lab.seed);
            }
        }
        let mean = |links: u64| links as f64 / sums.looping.max(1) as f64;
        let (alive, filtered) = (mean(sums.links_alive), mean(sums.links_filtered));
        let lost = sums.lost as f64 / (sums.packets - sums.looping).max(1) as f64;
        sweep
            .row()
            .cells([("network", &name), ("packets", &sums.packets), ("looping", &sums.looping)])
            .value("links_with_time_to_live", alive, 2)
            .value("links_with_filter", filtered, 2)
            .hidden(filtered / alive.max(1.0))
            .at_most(
                format!(
                    "{name}: links crossed by a looping packet, with the filter / with a time to live of 64"
                ),
                0.5,
            )
            .value("others_lost", lost, 6)
            .at_most(format!("{name}: share of other packets lost"), LOST_SHARE);
    }
    findings.add(sweep);
    Ok(())
}

/// Counts of packets and of the links that they crossed.
#[derive(Default)]
struct Sums {
    packets: u64,
    looping: u64,
    links_alive: u64,
    links_filtered: u64,
    lost: u64,
}

impl Sums {
    /// Sends a packet once with only a time to live, and once with the filter.
    fn send(&mut self, source: usize, target: usize, next: &dyn Fn(usize) -> Option<usize>, seed: u64) {
        let route = Route::follow(source, target, next);
        let dropped = route.pass::<8>(seed, TWO_FAILURES).dropped;
        self.packets += 1;
        if route.entry.is_some() {
            self.looping += 1;
            self.links_alive += TIME_TO_LIVE as u64;
            self.links_filtered += dropped.unwrap_or(TIME_TO_LIVE).min(TIME_TO_LIVE) as u64;
        } else {
            self.lost += u64::from(dropped.is_some());
        }
    }
}
