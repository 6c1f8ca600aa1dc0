//! Traceback by filters in headers on a network: packets between random nodes, and the routers that
//! the victim finds.

use super::{Comparison, Hops, LinkUse, Pairs, check, check_trials, for_bits};
use crate::loops::weight;
use crate::mask::Mask;
use crate::random::Random;
use crate::topology::Graph;
use crate::topology::picture::{Picture, Stroke};
use crate::traceback::generalized::Touched;
use crate::traceback::{Trace, chance, generalized, header, walk, walk_paths};
use crate::{Error, Result};
use std::collections::BTreeSet;

/// The number of queries after which a walk gives up.
pub const MAX_QUERIES: usize = 50_000;

/// The largest number of functions of a router in the generalized filter, of each kind.
pub const MAX_FUNCTIONS: u32 = 8;

/// The parameters of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of bits in the header: a power of two from 32 to 1024.
    pub bits: u32,
    /// The number of bits that a router resets in the generalized filter.
    pub k0: u32,
    /// The number of bits that a router sets in the generalized filter.
    pub k1: u32,
    /// The number of packets whose path is traced, in each way.
    pub packets: u64,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { bits: 256, k0: 2, k1: 3, packets: 1000, seed: 1 }
    }
}

/// A way to trace a packet, and the header that its sender wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The plain filter, which an honest sender left empty.
    Plain,
    /// The plain filter, which the sender filled with ones.
    PlainFull,
    /// The generalized filter filled with ones, read by the simple rule.
    Generalized,
    /// The generalized filter filled with ones, read in order: bits that routers further downstream
    /// touched are ignored.
    InOrder,
}

impl Way {
    /// All ways.
    pub const ALL: [Way; 4] = [Way::Plain, Way::PlainFull, Way::Generalized, Way::InOrder];

    /// Returns the name of the way.
    pub fn as_str(self) -> &'static str {
        match self {
            Way::Plain => "plain, honest sender",
            Way::PlainFull => "plain, all ones",
            Way::Generalized => "generalised, all ones",
            Way::InOrder => "generalised in order, all ones",
        }
    }
}

/// The routers of a network, each with its bits in both filters.
#[derive(Clone, Debug)]
pub struct Routers<const W: usize> {
    plain: Vec<header::Router<W>>,
    generalized: Vec<generalized::Router<W>>,
    weight: u32,
    k: [u32; 2],
}

/// The routers that a victim finds for a packet.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The result of the walk.
    pub trace: Trace,
    /// The routers beside the path that were asked for the first time, and whether they matched by
    /// chance. What a router answers when it is asked again depends on its first answer.
    pub wrong: Comparison,
    /// The number of bits that were set when the packet arrived.
    pub bits_set: u32,
}

impl<const W: usize> Routers<W> {
    /// Returns the routers of a network, whose bits depend on `seed`. In the plain filter they set
    /// `weight` bits; in the generalized one they reset `k[0]` and set `k[1]`.
    pub fn new(graph: &Graph, seed: u64, weight: u32, k: [u32; 2]) -> Routers<W> {
        let addresses = || (0..graph.len()).map(|node| graph.address_bytes(node));
        Routers {
            plain: addresses().map(|address| header::Router::new(&address, seed, weight)).collect(),
            generalized: addresses()
                .map(|address| generalized::Router::new(&address, seed, k[0], k[1]))
                .collect(),
            weight,
            k,
        }
    }

    /// Sends a packet along a path, and walks back from the last node of it.
    pub fn trace(&self, graph: &Graph, path: &[usize], way: Way) -> Outcome {
        let mut filter = if way == Way::Plain { Mask::EMPTY } else { Mask::FULL };
        for node in path {
            match way {
                Way::Plain | Way::PlainFull => self.plain[*node].mark(&mut filter),
                Way::Generalized | Way::InOrder => self.generalized[*node].mark(&mut filter),
            }
        }
        let victim = path.last().copied().unwrap_or(usize::MAX);
        let mut asked = vec![false; graph.len()];
        path.iter().for_each(|node| asked[*node] = true);
        let mut wrong = Comparison::default();
        // Computing a chance takes longer than asking, so it is computed only if it counts.
        let mut count = |node: usize, matches: bool, chance: &dyn Fn() -> f64| {
            if !std::mem::replace(&mut asked[node], true) {
                wrong.add_events(1, u64::from(matches), chance());
            }
        };
        let untouched = Touched::default();
        let [k0, k1] = self.k;
        let trace = match way {
            Way::Plain | Way::PlainFull => {
                let by_chance = chance::plain_match(&filter, self.weight);
                walk(graph, victim, (), |node, ()| {
                    let matches = self.plain[node].may_have_marked(&filter);
                    count(node, matches, &|| by_chance);
                    matches.then_some(())
                })
            }
            Way::Generalized => {
                let by_chance = chance::generalized_match(&filter, &untouched, k0, k1);
                walk(graph, victim, (), |node, ()| {
                    let matches = self.generalized[node].may_have_marked(&filter);
                    count(node, matches, &|| by_chance);
                    matches.then_some(())
                })
            }
            Way::InOrder => walk_paths(graph, victim, untouched, MAX_QUERIES, |node, later| {
                let answer = self.generalized[node].trace(&filter, later);
                count(node, answer.is_some(), &|| chance::generalized_match(&filter, later, k0, k1));
                answer
            }),
        };
        Outcome { trace, wrong, bits_set: filter.count_ones() }
    }

    /// Returns whether a generalized filter no longer matches the first router of a path when the
    /// packet arrives.
    fn forgets_first(&self, path: &[usize]) -> bool {
        let mut filter = Mask::FULL;
        path.iter().for_each(|node| self.generalized[*node].mark(&mut filter));
        path.first().is_some_and(|first| !self.generalized[*first].may_have_marked(&filter))
    }
}

/// The results of a simulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// The links of the paths.
    pub hops: Hops,
    /// The number of bits in the header.
    pub header_bits: u32,
    /// The number of bits that a router sets in the plain filter.
    pub weight: u32,
    /// The bits that are set when a packet of an honest sender arrives.
    pub bits_set: Comparison,
    /// The packets whose first router a generalized filter has forgotten on arrival.
    pub forgotten: Comparison,
    /// The results of each way.
    pub ways: Vec<WayReport>,
    /// The use of links by the packets.
    pub uses: LinkUse,
    /// The packet of the plain way with the most routers found by mistake, or else with the longest
    /// path.
    pub example: Option<Example>,
}

impl Report {
    /// Returns a picture of the network: the use of its links, and the routers found for the
    /// example.
    pub fn picture<'a>(&self, graph: &'a Graph) -> Picture<'a> {
        let picture = Picture::new(graph, "The path of a packet, from a filter in its header");
        let picture = picture.uses(self.uses.iter());
        let Some(example) = &self.example else { return picture };
        let wrong: BTreeSet<usize> = example.false_routers().collect();
        let found = |node: usize| example.trace.routers.binary_search(&node).is_ok();
        let branches: BTreeSet<[usize; 2]> = wrong
            .iter()
            .flat_map(|node| graph.neighbours(*node).iter().map(|link| [link.to, *node]))
            // Upstream, away from the path; a link between two routers found by mistake once.
            .filter(|[from, to]| found(*from) && (!wrong.contains(from) || from < to))
            .collect();
        let note = match wrong.len() {
            0 => "The victim finds the routers of the path, and no others.".to_owned(),
            1 => "The victim finds the routers of the path, and another one by mistake.".to_owned(),
            more => format!("The victim finds the routers of the path, and {more} others by mistake."),
        };
        let picture = picture.note(note).route("the path of the packet", &example.path, Stroke::Main).links(
            "branches that are followed by mistake",
            branches.into_iter().collect(),
            Stroke::Wrong,
        );
        match (example.path.first(), example.path.last()) {
            (Some(first), Some(last)) => picture.mark(*first, "sender").mark(*last, "victim"),
            _ => picture,
        }
    }
}

/// The results of one way to trace packets.
#[derive(Clone, Copy, Debug)]
pub struct WayReport {
    /// The way.
    pub way: Way,
    /// The number of packets.
    pub packets: u64,
    /// The number of packets whose first router is named as an origin.
    pub origins_found: u64,
    /// The number of packets with all routers of their path among those found.
    pub paths_found: u64,
    /// The number of packets for which the walk ended at [`MAX_QUERIES`].
    pub unfinished: u64,
    /// The routers found that are not on the path, over all packets.
    pub false_routers: u64,
    /// The answers of routers beside the path that were asked for the first time.
    pub wrong: Comparison,
}

/// A packet that was traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The path of the packet, with both ends.
    pub path: Vec<usize>,
    /// The routers found.
    pub trace: Trace,
}

impl Example {
    /// Returns the routers found that are not on the path.
    pub fn false_routers(&self) -> impl Iterator<Item = usize> + '_ {
        self.trace.routers.iter().copied().filter(|node| !self.path.contains(node))
    }
}

/// Simulates traceback by filters in headers.
///
/// # Errors
///
/// Fails if the network has no links, or a parameter is out of range.
pub fn run(graph: &Graph, options: &Options) -> Result<Report> {
    check(graph)?;
    check_trials("packets", options.packets)?;
    for (name, k) in [("k0", options.k0), ("k1", options.k1)] {
        if !(1..=MAX_FUNCTIONS).contains(&k) {
            return Err(Error::parameter(name, k, format!("a number from 1 to {MAX_FUNCTIONS}")));
        }
    }
    for_bits!(options.bits, simulate(graph, options))
}

fn simulate<const W: usize>(graph: &Graph, options: &Options) -> Result<Report> {
    let Options { bits, k0, k1, packets, seed } = *options;
    let weight = weight(bits);
    let mut random = Random::new(seed);
    let empty = |way| WayReport {
        way,
        packets: 0,
        origins_found: 0,
        paths_found: 0,
        unfinished: 0,
        false_routers: 0,
        wrong: Comparison::default(),
    };
    let mut report = Report {
        hops: Hops::default(),
        header_bits: bits,
        weight,
        bits_set: Comparison::default(),
        forgotten: Comparison::default(),
        ways: Way::ALL.map(empty).to_vec(),
        uses: LinkUse::default(),
        example: None,
    };
    let mut pairs = Pairs::new(graph, packets);
    let mut rank = None;
    for _ in 0..packets {
        let path = pairs.path(&mut random);
        let routers = Routers::<W>::new(graph, random.next(), weight, [k0, k1]);
        report.hops.add(path.len().saturating_sub(1));
        report.uses.cross(&path);
        let later = path.len().saturating_sub(1) as u32;
        let miss = chance::generalized_miss(bits, k0, k1, later);
        report.forgotten.add_events(1, u64::from(routers.forgets_first(&path)), miss);
        for sums in &mut report.ways {
            let Outcome { trace, wrong, bits_set } = routers.trace(graph, &path, sums.way);
            let false_routers = sums.add(&path, &trace, &wrong);
            if sums.way == Way::Plain {
                let (expected, variance) = chance::bits_set(bits, weight, path.len() as u32);
                report.bits_set.add(f64::from(bits_set), expected, variance);
                if rank < Some((false_routers, path.len())) {
                    rank = Some((false_routers, path.len()));
                    report.example = Some(Example { path: path.clone(), trace });
                }
            }
        }
    }
    Ok(report)
}

impl WayReport {
    /// Adds a packet, and returns the number of routers found that are not on its path.
    fn add(&mut self, path: &[usize], trace: &Trace, wrong: &Comparison) -> u64 {
        let found = |node: &&usize| trace.routers.binary_search(node).is_ok();
        let on_path = path.iter().filter(found).count();
        let false_routers = (trace.routers.len() - on_path) as u64;
        self.packets += 1;
        self.origins_found += u64::from(path.first().is_some_and(|first| trace.origins.contains(first)));
        self.paths_found += u64::from(on_path == path.len());
        self.unfinished += u64::from(!trace.complete);
        self.false_routers += false_routers;
        self.wrong.merge(wrong);
        false_routers
    }
}
