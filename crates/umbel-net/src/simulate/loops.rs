//! Icarus on a network: packets on their shortest paths, and packets in loops that routers cause
//! when they disagree.

use super::{Comparison, Hops, LinkUse, Pairs, check, check_trials, for_bits};
use crate::loops::{Allowance, Header, Interface, Verdict, dropped, weight};
use crate::random::Random;
use crate::topology::Graph;
use crate::topology::picture::{Picture, Stroke};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// The number of links that a packet may cross without a filter in its header, as is usual for IP.
pub const TIME_TO_LIVE: usize = 64;

/// The largest number of failures and of reprieves: 4 bits of the header each.
pub const MAX_ALLOWANCE: u8 = 15;

/// The number of times that the routers of a network disagree.
const FAULTS: u64 = 400;

/// The largest number of packets that are sent while routers disagree in one way.
const PACKETS_PER_FAULT: usize = 50;

/// The parameters of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of bits in the header: a power of two from 32 to 1024.
    pub bits: u32,
    /// The number of times a packet may look as if it were in a loop.
    pub allowance: Allowance,
    /// The number of packets on shortest paths.
    pub packets: u64,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        let allowance = Allowance { failures: 2, reprieves: 1 };
        Options { bits: 256, allowance, packets: 10_000, seed: 1 }
    }
}

/// The results of a simulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// The links of the shortest paths.
    pub hops: Hops,
    /// The number of bits in the header: the filter, and the rest of the allowance.
    pub header_bits: u32,
    /// The bytes for the masks of all interfaces.
    pub memory_bytes: u64,
    /// The packets on shortest paths that looked as if they were in a loop at least once.
    pub alarms: Comparison,
    /// The packets on shortest paths that were dropped.
    pub dropped: Comparison,
    /// The packets in loops.
    pub loops: Loops,
    /// The use of links by the packets on shortest paths.
    pub uses: LinkUse,
    /// A packet in the longest loop.
    pub example: Option<Example>,
}

impl Report {
    /// Returns a picture of the network: the use of its links, and the packet in the longest loop.
    pub fn picture<'a>(&self, graph: &'a Graph) -> Picture<'a> {
        let picture = Picture::new(graph, "Packets in a loop").uses(self.uses.iter());
        let Some(Example { fault, route, target, crossed }) = &self.example else {
            return picture.note("No packet got into a loop.");
        };
        let entry = route.entry.unwrap_or(0);
        let picture = picture.mark(route.nodes[0], "sender");
        let picture = match fault {
            Fault::FailedLink(link) => {
                picture.cut(*link).note("A link failed, and half of the routers know it.")
            }
            Fault::WrongHop([router, _]) => {
                picture.note("A router sends packets to the wrong neighbour.").mark(*router, "wrong way")
            }
        };
        let length = route.loop_length().unwrap_or(0);
        let around: Vec<[usize; 2]> = route.links().skip(entry).take(length).collect();
        let last = route.links().nth(*crossed).map_or(*target, |[node, _]| node);
        picture
            .note(format!(
                "The filter in the header dropped the packet after {crossed} links; a time to live allows {TIME_TO_LIVE}."
            ))
            .route("the way into the loop", route.nodes.get(..=entry).unwrap_or_default(), Stroke::Main)
            .links(format!("the loop, of {length} links"), around, Stroke::Wrong)
            .mark(*target, "target")
            .mark(last, "dropped")
    }
}

/// Packets that were sent while routers disagreed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loops {
    /// The number of packets sent.
    pub sent: u64,
    /// The number of packets that got into a loop.
    pub packets: u64,
    /// The number of packets in a loop that the filter dropped within the bound
    /// [`Allowance::most_hops`]: all of them.
    pub caught: u64,
    /// The links of the loops.
    pub lengths: Hops,
    /// The links that packets crossed within the loop before they were dropped.
    pub within: Hops,
    /// The largest bound over all loops.
    pub bound: u32,
    /// The links that packets crossed from their source on, with the filter.
    pub crossed: Hops,
}

/// The mistake that makes packets loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A link failed, and some routers do not know it yet.
    FailedLink([usize; 2]),
    /// A router sends packets to the wrong neighbour.
    WrongHop([usize; 2]),
}

/// A packet in a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The mistake that caused the loop.
    pub fault: Fault,
    /// The way of the packet.
    pub route: Route,
    /// The target that it does not reach.
    pub target: usize,
    /// The number of links that the packet crossed before it was dropped.
    pub crossed: usize,
}

/// The way of a packet through a network: to its end, or into a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The nodes visited, each once.
    pub nodes: Vec<usize>,
    /// The index of the node to which the last one sends the packet again, if the packet loops.
    pub entry: Option<usize>,
}

impl Route {
    /// Follows a packet from node to node until it arrives, gets stuck, or returns.
    pub fn follow(source: usize, target: usize, next: impl Fn(usize) -> Option<usize>) -> Route {
        let mut nodes = vec![source];
        let mut index = BTreeMap::from([(source, 0)]);
        let mut node = source;
        while let Some(to) = next(node).filter(|_| node != target) {
            if let Some(entry) = index.get(&to) {
                return Route { nodes, entry: Some(*entry) };
            }
            index.insert(to, nodes.len());
            nodes.push(to);
            node = to;
        }
        Route { nodes, entry: None }
    }

    /// Returns the number of links in the loop, if there is one.
    pub fn loop_length(&self) -> Option<usize> {
        self.entry.map(|entry| self.nodes.len() - entry)
    }

    /// Returns the links in the order in which the packet crosses them, without end in a loop.
    pub fn links(&self) -> impl Iterator<Item = [usize; 2]> + '_ {
        let straight = self.nodes.windows(2).map(|pair| [pair[0], pair[1]]);
        let around = self.entry.into_iter().flat_map(|entry| {
            let back = self.nodes.last().map(|last| [*last, self.nodes[entry]]);
            let round = self.nodes[entry..].windows(2).map(|pair| [pair[0], pair[1]]);
            // The straight part has crossed the links of the first round but the last one.
            back.into_iter().chain(round).cycle()
        });
        straight.chain(around)
    }

    /// Sends a packet along the route, past interfaces whose masks depend on `seed`.
    pub fn pass<const W: usize>(&self, seed: u64, allowance: Allowance) -> Passage {
        let mut header = Header::<W>::new(allowance);
        let mut alarm = None;
        for (crossed, [from, to]) in self.links().enumerate() {
            let address = ((from as u64) << 32 | to as u64).to_le_bytes();
            let verdict = Interface::new(&address, seed, allowance).pass(&mut header);
            if verdict != Verdict::Forward {
                alarm = alarm.or(Some(crossed));
            }
            if verdict == Verdict::Drop {
                return Passage { alarm, dropped: Some(crossed) };
            }
        }
        Passage { alarm, dropped: None }
    }
}

/// The fate of a packet with a filter in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The number of links crossed when the packet first looked as if it were in a loop.
    pub alarm: Option<usize>,
    /// The number of links crossed when it was dropped.
    pub dropped: Option<usize>,
}

/// Simulates loop detection.
///
/// # Errors
///
/// Fails if the network has no links, or a parameter is out of range.
pub fn run(graph: &Graph, options: &Options) -> Result<Report> {
    check(graph)?;
    check_trials("packets", options.packets)?;
    let Allowance { failures, reprieves } = options.allowance;
    for (name, value) in [("failures", failures), ("reprieves", reprieves)] {
        if value > MAX_ALLOWANCE {
            return Err(Error::parameter(name, value, format!("a number from 0 to {MAX_ALLOWANCE}")));
        }
    }
    for_bits!(options.bits, simulate(graph, options))
}

fn simulate<const W: usize>(graph: &Graph, options: &Options) -> Result<Report> {
    let Options { bits, allowance, packets, seed } = *options;
    let mut random = Random::new(seed);
    let mut report = Report {
        hops: Hops::default(),
        header_bits: bits + counter_bits(allowance.failures) + counter_bits(allowance.reprieves),
        memory_bytes: 2 * graph.links() as u64 * u64::from(bits / 8),
        alarms: Comparison::default(),
        dropped: Comparison::default(),
        loops: Loops::default(),
        uses: LinkUse::default(),
        example: None,
    };
    // Packets, alarms and drops, by the number of links.
    let mut by_hops: BTreeMap<usize, [u64; 3]> = BTreeMap::new();
    let mut pairs = Pairs::new(graph, packets);
    for _ in 0..packets {
        let route = Route { nodes: pairs.path(&mut random), entry: None };
        let passage = route.pass::<W>(random.next(), allowance);
        let hops = route.nodes.len().saturating_sub(1);
        let counts = by_hops.entry(hops).or_default();
        counts[0] += 1;
        counts[1] += u64::from(passage.alarm.is_some());
        counts[2] += u64::from(passage.dropped.is_some());
        report.hops.add(hops);
        report.uses.cross(&route.nodes);
    }
    let most = report.hops.most() as u32;
    let first_alarm = dropped(bits, weight(bits), Allowance::default(), most)?;
    let last_drop = dropped(bits, weight(bits), allowance, most)?;
    for (hops, [packets, alarms, drops]) in by_hops {
        let chance = |shares: &[f64]| shares.get(hops.wrapping_sub(1)).copied().unwrap_or(0.0);
        report.alarms.add_events(packets, alarms, chance(&first_alarm));
        report.dropped.add_events(packets, drops, chance(&last_drop));
    }
    for fault in 0..FAULTS {
        disagree::<W>(graph, fault, options, &mut random, &mut report);
    }
    Ok(report)
}

/// Returns the number of bits of a counter that starts at `most`.
fn counter_bits(most: u8) -> u32 {
    u8::BITS - most.leading_zeros()
}

/// Makes the routers disagree about the way to a target, and sends packets there.
fn disagree<const W: usize>(
    graph: &Graph,
    number: u64,
    options: &Options,
    random: &mut Random,
    report: &mut Report,
) {
    let target = random.below(graph.len());
    let old = graph.next_hops(target);
    let mut sources: Vec<usize> = (0..graph.len()).filter(|node| old[*node].is_some()).collect();
    if sources.is_empty() {
        return;
    }
    let router = sources[random.below(sources.len())];
    let links = graph.neighbours(router);
    let other = links[random.below(links.len())].to;
    let (fault, next): (Fault, Vec<Option<usize>>) = if number.is_multiple_of(2) {
        let new = graph.without(router, other).next_hops(target);
        let next = (0..graph.len()).map(|node| {
            // The routers at the link see that it has failed; half of the others were told.
            let knows = random.next().is_multiple_of(2) || node == router || node == other;
            if knows { new[node] } else { old[node] }
        });
        (Fault::FailedLink([router, other]), next.collect())
    } else {
        let mut next = old;
        next[router] = Some(other);
        (Fault::WrongHop([router, other]), next)
    };
    while sources.len() > PACKETS_PER_FAULT {
        sources.swap_remove(random.below(sources.len()));
    }
    for source in sources {
        let route = Route::follow(source, target, |node| next[node]);
        let seed = random.next();
        report.loops.sent += 1;
        let Some((length, entry)) = route.loop_length().zip(route.entry) else { continue };
        let passage = route.pass::<W>(seed, options.allowance);
        let loops = &mut report.loops;
        let bound = options.allowance.most_hops(length as u32);
        // Without an end, the route would not have ended either.
        let crossed = passage.dropped.unwrap_or(usize::MAX);
        let within = crossed.saturating_sub(entry);
        loops.packets += 1;
        loops.caught += u64::from(within <= bound as usize);
        loops.lengths.add(length);
        loops.within.add(within);
        loops.bound = loops.bound.max(bound);
        loops.crossed.add(crossed);
        if report.example.as_ref().and_then(|example| example.route.loop_length()) < Some(length) {
            report.example = Some(Example { fault, route, target, crossed });
        }
    }
}
