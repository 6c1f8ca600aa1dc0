//! Simulations of a whole network: loop detection, traceback and routing, counted and compared with
//! theory.
//!
//! Each simulation takes a [`Graph`], which may come from a file, and returns a report: hops,
//! bandwidth, memory, false alarms, and an example that a
//! [`Picture`](crate::topology::picture::Picture) can show. The same seed gives the same report.
//!
//! Theory is exact wherever a [`Comparison`] has it, so that its deviation measures the code and
//! not the formula. For that, each packet of a simulation meets routers that have drawn their bits
//! again: packets are then independent, as they are over many networks.
//!
//! ```
//! use umbel_net::simulate::loops;
//! use umbel_net::topology::Graph;
//!
//! let options = loops::Options { packets: 500, ..loops::Options::default() };
//! let report = loops::run(&Graph::abilene(), &options)?;
//! assert_eq!(report.loops.caught, report.loops.packets);
//! assert!(report.alarms.deviations().abs() < 4.0);
//! # Ok::<(), umbel_net::Error>(())
//! ```

pub mod header;
pub mod loops;
pub mod routing;

use crate::random::Random;
use crate::topology::Graph;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A mean that was measured, beside the one that theory expects.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comparison {
    trials: u64,
    measured: f64,
    expected: f64,
    variance: f64,
}

impl Comparison {
    /// Adds a trial: the measured value, and its mean and variance by theory.
    fn add(&mut self, measured: f64, expected: f64, variance: f64) {
        self.trials += 1;
        self.measured += measured;
        self.expected += expected;
        self.variance += variance;
    }

    /// Adds several trials that succeed with the same probability.
    fn add_events(&mut self, trials: u64, events: u64, probability: f64) {
        self.trials += trials;
        self.measured += events as f64;
        self.expected += trials as f64 * probability;
        self.variance += trials as f64 * probability * (1.0 - probability);
    }

    /// Adds the trials of another comparison.
    fn merge(&mut self, other: &Comparison) {
        self.trials += other.trials;
        self.measured += other.measured;
        self.expected += other.expected;
        self.variance += other.variance;
    }

    /// Returns the number of trials.
    pub fn trials(&self) -> u64 {
        self.trials
    }

    /// Returns the measured mean, or 0 if there were no trials.
    pub fn measured(&self) -> f64 {
        self.measured / self.trials.max(1) as f64
    }

    /// Returns the mean that theory expects.
    pub fn expected(&self) -> f64 {
        self.expected / self.trials.max(1) as f64
    }

    /// Returns the difference of both in standard errors: 0 if theory leaves nothing to chance and
    /// is right, and infinite if it is wrong.
    pub fn deviations(&self) -> f64 {
        let difference = self.measured - self.expected;
        // Sums of many shares are exact only up to rounding.
        if difference.abs() <= 1e-9 * self.expected.abs().max(1e-300) {
            return 0.0;
        }
        difference / self.variance.sqrt()
    }
}

/// The number of times that each link was crossed, in either direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkUse(BTreeMap<[usize; 2], u64>);

impl LinkUse {
    /// Counts a packet that crosses all links of a path.
    fn cross(&mut self, path: &[usize]) {
        for pair in path.windows(2) {
            *self.0.entry([pair[0].min(pair[1]), pair[0].max(pair[1])]).or_default() += 1;
        }
    }

    /// Returns the links that were crossed, the lower node first, and how often.
    pub fn iter(&self) -> impl Iterator<Item = ([usize; 2], u64)> + '_ {
        self.0.iter().map(|(link, count)| (*link, *count))
    }
}

/// The number of links of several paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hops {
    paths: u64,
    total: u64,
    most: u64,
}

impl Hops {
    fn add(&mut self, hops: usize) {
        self.paths += 1;
        self.total += hops as u64;
        self.most = self.most.max(hops as u64);
    }

    /// Returns the number of paths.
    pub fn paths(&self) -> u64 {
        self.paths
    }

    /// Returns the mean number of links, or 0 if there are no paths.
    pub fn mean(&self) -> f64 {
        self.total as f64 / self.paths.max(1) as f64
    }

    /// Returns the largest number of links.
    pub fn most(&self) -> u64 {
        self.most
    }
}

/// Fails if nothing can be sent in a network.
fn check(graph: &Graph) -> Result<()> {
    if graph.links() > 0 {
        return Ok(());
    }
    let nodes = graph.len();
    let problem = format!(
        "it has {nodes} {} and no links, so nothing can be sent; a simulation needs two nodes that are linked",
        if nodes == 1 { "node" } else { "nodes" }
    );
    Err(Error::Topology { path: PathBuf::new(), line: None, problem })
}

/// The largest number of packets or queries, which take a few minutes.
pub const MAX_TRIALS: u64 = 100_000_000;

/// Fails if there would be nothing to count, or no end in sight.
fn check_trials(name: &'static str, trials: u64) -> Result<()> {
    if (1..=MAX_TRIALS).contains(&trials) {
        return Ok(());
    }
    Err(Error::parameter(name, trials, format!("a number from 1 to {MAX_TRIALS}")))
}

/// Packets between random nodes. Nodes without links neither send nor receive.
struct Pairs<'a> {
    graph: &'a Graph,
    linked: Vec<usize>,
    /// The number of packets that go to the same target, since its routes are computed for all.
    per_target: u64,
    left: u64,
    target: usize,
    next_hops: Vec<Option<usize>>,
    sources: Vec<usize>,
}

impl<'a> Pairs<'a> {
    /// Draws `packets` pairs in all.
    fn new(graph: &'a Graph, packets: u64) -> Pairs<'a> {
        /// The number of targets, unless there are fewer nodes or packets.
        const TARGETS: u64 = 200;
        let linked: Vec<usize> =
            (0..graph.len()).filter(|node| !graph.neighbours(*node).is_empty()).collect();
        let per_target = packets.div_ceil(TARGETS).max(1);
        Pairs { graph, linked, per_target, left: 0, target: 0, next_hops: Vec::new(), sources: Vec::new() }
    }

    /// Draws the next pair, and returns the shortest path with both ends.
    fn path(&mut self, random: &mut Random) -> Vec<usize> {
        if self.left == 0 {
            self.left = self.per_target;
            self.target = self.linked[random.below(self.linked.len())];
            self.next_hops = self.graph.next_hops(self.target);
            let sends = |node: &usize| self.next_hops[*node].is_some();
            self.sources = (0..self.graph.len()).filter(sends).collect();
        }
        self.left -= 1;
        let source = self.sources[random.below(self.sources.len())];
        crate::topology::along(&self.next_hops, source, self.target)
    }
}

/// Runs a generic function for a header of this many bits.
macro_rules! for_bits {
    ($bits:expr, $run:ident($($argument:expr),*)) => {
        match $bits {
            32 => $run::<1>($($argument),*),
            64 => $run::<2>($($argument),*),
            128 => $run::<4>($($argument),*),
            256 => $run::<8>($($argument),*),
            512 => $run::<16>($($argument),*),
            1024 => $run::<32>($($argument),*),
            bits => Err($crate::Error::parameter("bits", bits, "32, 64, 128, 256, 512 or 1024")),
        }
    };
}
use for_bits;
