//! E12-header: the path of a packet from a filter in its header, and a sender who fills it with
//! ones.

use super::prelude::*;
use crate::keys::mix;
use umbel::Timestamp;
use umbel::hash::reduce;
use umbel_net::blocklist::{Blocklist, Options};
use umbel_net::network::Prefix;
use umbel_net::simulate::header::{Routers, Way};
use umbel_net::topology::Graph;

pub struct HeaderFilter;

const PACKETS: Parameter =
    Parameter::count("packets", "packets whose path is traced", [300, 3000], [50, 100_000]);
/// Number of words of a header of 256 bits.
const W: usize = 8;
/// The number of bits that a router sets; and in the generalised filter, that it resets and sets.
const WEIGHT: u32 = 5;
const K: [u32; 2] = [2, 3];

impl Experiment for HeaderFilter {
    fn about(&self) -> About {
        About {
            id: "E12-header",
            chapter: Chapter::Networks,
            title: "The path of a packet, from a filter in its header",
            sources: &[LAUFER_2007, SCHIERZ],
            claim: "If every router sets its bits in a packet's header, the victim can follow them \
                    back to the sender, from one packet and without any memory in routers. Schierz \
                    2022 does not mention that a sender who fills the header with ones makes every \
                    router a suspect.",
            set_up: "Packets between random nodes of Abilene, NSFNET and two generated networks, \
                     with 256 bits in the header. The routers that are found are compared with the \
                     true path: with the plain filter and an honest sender, with the plain filter \
                     and a header full of ones, and with the generalised filter (two bits reset, \
                     three set) and all ones, by the simple rule and by the one that knows which \
                     bits later routers touched. Then the address at the end of each branch that \
                     was followed is blocked, and the blocklist is queried for all addresses of \
                     the network.",
            advice: "Use the generalised filter, read in order; a plain header filter lets an \
                     attacker accuse everybody.",
            command: "`umbel net simulate header`; the library module `umbel_net::traceback`; to block \
                      what was found, `umbel net block`",
            seconds: [1, 5],
            timed: false,
            parameters: &[PACKETS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        let mut paths = Sweep::new("paths").chart(
            "innocent",
            "Routers found that are not on the path: Waxman, 500 nodes, 256 bits",
            Axis::linear("routers on the path"),
            Axis::log("innocent routers per packet (0.001 is none)"),
        );
        let mut blocked = Sweep::new("blocked");
        let networks = [
            ("Abilene", Graph::abilene()),
            ("NSFNET", Graph::nsfnet()),
            ("Barabasi and Albert", Graph::barabasi_albert(500, 2, lab.seed)?),
            ("Waxman", Graph::waxman(500, 0.2, 0.08, lab.seed)?),
        ];
        for (name, graph) in &networks {
            for (colour, way) in Way::ALL.into_iter().enumerate() {
                let way_name = way.as_str();
                let sums = follow(lab, graph, way)?;
                let all = sums.packets as f64;
                let (found, innocent) = (sums.found as f64 / all, sums.innocent as f64 / all);
                paths
                    .row()
                    .cells([("network", &name), ("nodes", &graph.len()), ("way", &way_name)])
                    .value("path_found", found, 4)
                    .value("innocent_routers", innocent, 3)
                    .cell("unfinished", sums.unfinished);
                blocked
                    .row()
                    .cells([("network", &name), ("way", &way_name)])
                    .value("senders_blocked", sums.senders_blocked as f64 / all, 4)
                    .value("innocents_blocked", sums.innocents_blocked as f64 / all, 3);
                judge(&mut paths, name, way, graph, &sums);
                if *name == "Waxman" {
                    let points = sums.by_length.iter().filter(|(_, (count, _))| *count >= 10);
                    // Zero has no place on a logarithmic axis.
                    let points = points.map(|(length, (count, innocent))| {
                        (*length as f64, (*innocent as f64 / *count as f64).max(0.001))
                    });
                    paths.series(way_name, Mark::Path, colour, points);
                }
            }
        }
        findings.add(paths);
        findings.add(blocked);
        findings.verdict = "An honest sender is found, with few others. All ones make every router \
             of every network a suspect. The generalised filter is immune to them: by its simple \
             rule paths get lost, because later routers undo the bits of earlier ones; in order \
             none is lost, at the price of a few innocent routers. A blocklist that is filled from \
             the result blocks, on average, a quarter of the network and more for a packet whose \
             plain header was full of ones, and fewer than two innocent addresses with a \
             generalised one."
            .into();
        Ok(findings)
    }
}

const INNOCENTS: &str = "innocent addresses blocked per packet";

/// Adds the criteria of a way.
fn judge(paths: &mut Sweep, network: &str, way: Way, graph: &Graph, sums: &Sums) {
    let [found, innocent, blocked] =
        [sums.found, sums.innocent, sums.innocents_blocked].map(|count| count as f64 / sums.packets as f64);
    let nodes = graph.len() as f64;
    let claim = |what: &str| format!("{network}, {}: {what}", way.as_str());
    let (innocents, share_innocent) = (claim(INNOCENTS), claim("share of innocent routers"));
    match way {
        Way::Plain => {
            paths.at_least(claim("share of paths found"), found, 1.0);
            paths.at_most(innocents, blocked, 1.0);
        }
        Way::PlainFull => {
            let suspects = innocent + sums.routers as f64 / sums.packets as f64;
            let share = claim("share of all routers that are suspects");
            paths.near(share, suspects / nodes, 1.0, 1e-9).shows("e34");
            let share = claim("share of innocent addresses blocked per packet");
            paths.at_least(share, blocked / nodes, 0.25);
        }
        Way::Generalized => {
            paths.at_most(share_innocent, innocent / nodes, 0.05);
            paths.at_most(innocents, blocked, 2.0);
        }
        Way::InOrder => {
            let found = (sums.found + sums.unfinished) as f64 / sums.packets as f64;
            paths.at_least(claim("share of paths found"), found, 1.0);
            paths.at_most(share_innocent, innocent / nodes, 0.25);
            paths.at_most(innocents, blocked, 2.0);
        }
    }
}

/// Counts of the packets of a network.
#[derive(Default)]
struct Sums {
    packets: u64,
    found: u64,
    innocent: u64,
    routers: u64,
    unfinished: u64,
    /// Addresses blocked at the ends of the branches that were followed.
    senders_blocked: u64,
    innocents_blocked: u64,
    /// Packets and innocent routers, by the number of routers on the path.
    by_length: std::collections::BTreeMap<usize, (u64, u64)>,
}

fn follow(lab: &Lab, graph: &Graph, way: Way) -> Result<Sums> {
    let options = Options { capacity: graph.len() as u64, ..Options::default() };
    let mut list = Blocklist::new(&options, Timestamp::from_millis(0))?;
    let everybody: Vec<_> = (0..graph.len()).map(|node| graph.address(node)).collect();
    let routers = Routers::<W>::new(graph, lab.seed, WEIGHT, K);
    let mut sums = Sums::default();
    for packet in 0..lab.count(&PACKETS) {
        let draw = |what: u64| {
            reduce(mix(mix(lab.seed).wrapping_add(packet << 1 | what)), graph.len() as u64) as usize
        };
        let (from, to) = (draw(0), draw(1));
        let path = graph.path(from, to);
        let found = routers.trace(graph, &path, way).trace;
        let innocent = found.routers.iter().filter(|node| !path.contains(node)).count() as u64;
        let whole = path.iter().all(|node| found.routers.contains(node));
        sums.packets += 1;
        sums.found += u64::from(whole);
        sums.unfinished += u64::from(!whole && !found.complete);
        sums.innocent += innocent;
        sums.routers += path.len() as u64;
        let (count, sum) = sums.by_length.entry(path.len()).or_default();
        (*count, *sum) = (*count + 1, *sum + innocent);
        for node in &found.origins {
            list.block(Prefix::host(graph.address(*node)), None)?;
        }
        let verdicts = list.check_all(&everybody);
        let guilty = u64::from(verdicts[from].is_blocked());
        sums.senders_blocked += guilty;
        sums.innocents_blocked +=
            verdicts.iter().filter(|verdict| verdict.is_blocked()).count() as u64 - guilty;
        for node in &found.origins {
            list.unblock(Prefix::host(graph.address(*node)))?;
        }
    }
    Ok(sums)
}
