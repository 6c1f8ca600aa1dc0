//! Routing by attenuated filters on a network: documents on all nodes, and queries for them.

use super::{Comparison, Hops, LinkUse, check, check_trials};
use crate::random::Random;
use crate::routing::{Document, FilterShape, Lookup, Network, reach};
use crate::topology::Graph;
use crate::topology::picture::{Picture, Stroke};
use crate::{Error, Result};
use std::collections::BTreeSet;
use umbel::Digest;
use umbel::sizing::rate::expected_fill;

/// The most memory for the filters of a network.
pub const MAX_FILTER_BYTES: u64 = 1 << 30;

/// The largest number of documents of a network.
pub const MAX_DOCUMENTS: u64 = 1 << 24;

/// The largest number of links whose fill is compared with theory. All pairs of them are, because
/// links with the same documents behind them are full together.
const MAX_FILLS: usize = 100;

/// The parameters of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The size of the filters.
    pub shape: FilterShape,
    /// The number of documents on each node.
    pub documents: u64,
    /// The number of queries for documents that exist, and for documents that do not.
    pub queries: u64,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        let shape = FilterShape { bits: 1024, hashes: 3, depth: 3 };
        Options { shape, documents: 10, queries: 2000, seed: 1 }
    }
}

/// The results of a simulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// The number of documents.
    pub documents: u64,
    /// The queries for documents that exist.
    pub present: Present,
    /// The queries for documents that do not exist.
    pub absent: Absent,
    /// The levels of the filters.
    pub levels: Vec<Level>,
    /// The bytes for the filters of all links.
    pub filter_bytes: u64,
    /// The number of flipped bits that were sent to fill the filters.
    pub flips: u64,
    /// The bits of a message about a flipped bit: its level, its position and its value.
    pub flip_bits: u32,
    /// The number of pointers to documents for the fall-back.
    pub pointers: u64,
    /// The number of messages over links that published the pointers.
    pub pointer_messages: u64,
    /// The use of links by the queries for documents that exist.
    pub uses: LinkUse,
    /// The query with the longest way after a false promise, or else with the longest way.
    pub example: Option<Example>,
}

impl Report {
    /// Returns a picture of the network: the use of its links, and the way of the example.
    pub fn picture<'a>(&self, graph: &'a Graph) -> Picture<'a> {
        let picture = Picture::new(graph, "A query for a document").uses(self.uses.iter());
        let Some(Example { lookup, holder, root }) = &self.example else { return picture };
        let from = lookup.search.path[0];
        let picture = picture.mark(from, "query").mark(*holder, "document");
        let Some(climb) = &lookup.fallback else {
            return picture.note("The filters lead to the document.").route(
                "by the filters",
                &lookup.search.path,
                Stroke::Main,
            );
        };
        let (up, down) = climb.path.split_at(climb.climbed.min(climb.path.len()));
        let pointer = down.first().copied().unwrap_or(*root);
        let up: Vec<usize> = up.iter().copied().chain([pointer]).collect();
        let note = match lookup.search.path.len() {
            1 => "No filter promises the document, so the query climbs towards its root.",
            _ => "The filters promise the document where it is not, so the query climbs towards its root.",
        };
        picture
            .note(note)
            .route("after a false promise of the filters", &lookup.search.path, Stroke::Wrong)
            .route("towards the root, until a node has a pointer", &up, Stroke::Second)
            .route("to the document that the pointer names", down, Stroke::Main)
            .mark(*root, "root")
    }
}

/// Queries for documents that exist on another node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Present {
    /// The number of queries.
    pub queries: u64,
    /// The number of queries that the filters led to the document.
    pub by_filters: u64,
    /// The number of queries that the filters led astray, so that the fall-back took over.
    pub false_promises: u64,
    /// The number of queries for which no filter promised anything, so that the fall-back took over.
    pub too_far: u64,
    /// The number of queries that found the document: all of them.
    pub found: u64,
    /// The links crossed by queries that the filters answered.
    pub filter_hops: Hops,
    /// The links of the shortest paths for the same queries.
    pub filter_shortest: Hops,
    /// The links crossed by queries that the fall-back answered, from their start on.
    pub fallback_hops: Hops,
    /// The links of the shortest paths for the same queries.
    pub fallback_shortest: Hops,
}

/// Queries for documents that do not exist.
#[derive(Clone, Copy, Debug, Default)]
pub struct Absent {
    /// The number of queries.
    pub queries: u64,
    /// The number of queries that a filter sent to another node.
    pub sent_on: u64,
    /// The number of queries that found a document: none.
    pub found: u64,
    /// The links crossed before the answer was certain.
    pub hops: Hops,
}

/// A level of the filters.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// The distance of the documents.
    pub level: u32,
    /// The mean number of documents behind a link.
    pub documents: f64,
    /// The mean share of set bits.
    pub fill: Comparison,
    /// The documents that are not there, and that the filter of a random link has nevertheless.
    pub wrong: Comparison,
}

/// A query and its way.
#[derive(Clone, Debug)]
pub struct Example {
    /// The way of the query.
    pub lookup: Lookup,
    /// The node that has the document.
    pub holder: usize,
    /// The root of the document, to which the fall-back climbs.
    pub root: usize,
}

/// Simulates routing.
///
/// # Errors
///
/// Fails if the network has no links, the filters or documents would take too much memory, or a
/// parameter is out of range.
pub fn run(graph: &Graph, options: &Options) -> Result<Report> {
    check(graph)?;
    let Options { shape, documents, queries, seed } = *options;
    let filter_bytes = check_size(graph, options)?;
    let mut random = Random::new(seed);
    let mut network = Network::new(graph.clone(), shape)?;
    for node in 0..graph.len() {
        for number in 0..documents {
            network.add(node, document(options, node, number));
        }
    }
    let mut report = Report {
        documents: graph.len() as u64 * documents,
        present: Present::default(),
        absent: Absent::default(),
        levels: levels(&network, options, &mut random)?,
        filter_bytes,
        flips: network.flips_sent(),
        flip_bits: 1 + bits_below(shape.depth) + bits_below(shape.bits),
        pointers: network.pointers(),
        pointer_messages: network.pointer_messages(),
        uses: LinkUse::default(),
        example: None,
    };
    let parts = graph.parts();
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); graph.len()];
    parts.iter().enumerate().for_each(|(node, part)| members[*part].push(node));
    let linked: Vec<usize> = (0..graph.len()).filter(|node| !graph.neighbours(*node).is_empty()).collect();
    let mut rank = None;
    for query in 0..queries {
        let from = linked[random.below(linked.len())];
        // Another node that is connected: there is one, since this one has a link.
        let others = &members[parts[from]];
        let holder = match others[random.below(others.len() - 1)] {
            node if node == from => others[others.len() - 1],
            node => node,
        };
        let wanted = document(options, holder, random.below(documents as usize) as u64);
        let lookup = network.lookup(from, wanted);
        let shortest = graph.hops(from)[holder].unwrap_or(0) as usize;
        report.present.add(&lookup, shortest);
        report.uses.cross(&lookup.search.path);
        report.uses.cross(lookup.fallback.as_ref().map_or(&[], |climb| &climb.path));
        let astray = lookup.fallback.is_some() && lookup.search.path.len() > 1;
        if rank < Some((astray, lookup.hops())) {
            rank = Some((astray, lookup.hops()));
            let root = network.root(from, &wanted).unwrap_or(holder);
            report.example = Some(Example { lookup, holder, root });
        }
        // Numbers from `documents` on are on no node.
        let missing = document(options, from, documents + query);
        report.absent.add(&network.lookup(from, missing));
        let at = linked[random.below(linked.len())];
        let link = random.below(graph.neighbours(at).len());
        let Some(filter) = network.filter(at, link) else { continue };
        for level in &mut report.levels {
            let chance = filter.fill(level.level).powi(shape.hashes as i32);
            level.wrong.add_events(1, u64::from(filter.matches(level.level, &missing)), chance);
        }
    }
    Ok(report)
}

/// Returns a document of a node.
fn document(options: &Options, node: usize, number: u64) -> Document {
    let digest = Digest::from_hash(options.seed).salted(0x646f_6373).salted(node as u64).salted(number);
    Document::from_digest(digest, options.shape)
}

/// Returns the number of bits of a number below `end`.
fn bits_below(end: u32) -> u32 {
    u32::BITS - end.saturating_sub(1).leading_zeros()
}

/// Returns the bytes of all filters, or fails if they or the documents are too many.
fn check_size(graph: &Graph, options: &Options) -> Result<u64> {
    let Options { shape, documents, .. } = options;
    check_trials("queries", options.queries)?;
    if *documents == 0 || documents.saturating_mul(graph.len() as u64) > MAX_DOCUMENTS {
        let needs = format!("at least 1 for each node, and at most {MAX_DOCUMENTS} in the network");
        return Err(Error::parameter("documents", documents, needs));
    }
    let words = u64::from(shape.bits.div_ceil(64)) * u64::from(shape.depth);
    let bytes = (2 * graph.links() as u64).saturating_mul(words * 8);
    if bytes > MAX_FILTER_BYTES {
        let needs = format!("fewer: the filters of all {} links would take more than 1 GiB", graph.links());
        return Err(Error::parameter("bits", shape.bits, needs));
    }
    Ok(bytes)
}

/// Compares the fill of each level with theory, on as many links as are drawn.
fn levels(network: &Network, options: &Options, random: &mut Random) -> Result<Vec<Level>> {
    let (graph, shape) = (network.graph(), options.shape);
    let mut links: Vec<(usize, usize)> = (0..graph.len())
        .flat_map(|node| (0..graph.neighbours(node).len()).map(move |link| (node, link)))
        .collect();
    while links.len() > MAX_FILLS {
        links.swap_remove(random.below(links.len()));
    }
    let behind: Vec<Vec<BTreeSet<usize>>> =
        links.iter().map(|(node, link)| reach(graph, *node, *link, shape.depth)).collect();
    (1..=shape.depth)
        .map(|level| {
            let sets: Vec<&BTreeSet<usize>> =
                behind.iter().map(|levels| &levels[level as usize - 1]).collect();
            let (mut documents, mut measured, mut expected) = (0.0, 0.0, 0.0);
            for ((node, link), nodes) in links.iter().zip(&sets) {
                let count = nodes.len() as u64 * options.documents;
                documents += count as f64;
                measured += network.filter(*node, *link).map_or(0.0, |filter| filter.fill(level));
                if count > 0 {
                    expected += expected_fill(shape.bits.into(), count, shape.hashes)?;
                }
            }
            let count = links.len() as f64;
            let mut fill = Comparison::default();
            fill.add(measured / count, expected / count, covariance(&sets, options) / (count * count));
            Ok(Level { level, documents: documents / count, fill, wrong: Comparison::default() })
        })
        .collect()
}

/// Returns the sum of the covariances of the fills of filters with the documents of these nodes.
///
/// If A and B are the documents of two filters, a bit is unset in both with probability q^|A∪B|,
/// with q the chance that a document leaves a bit alone. Two different bits, one in each filter,
/// stay unset with probability q^|A∖B| q^|B∖A| p^|A∩B|, with p the chance that a document leaves
/// both alone.
fn covariance(sets: &[&BTreeSet<usize>], options: &Options) -> f64 {
    let (m, k) = (f64::from(options.shape.bits), f64::from(options.shape.hashes));
    let q = (1.0 - 1.0 / m).powf(k);
    let p = (1.0 - 2.0 / m).max(0.0).powf(k);
    let documents = options.documents as f64;
    let mut sum = 0.0;
    for (index, a) in sets.iter().enumerate() {
        for b in &sets[index..] {
            let both = a.intersection(b).count() as f64 * documents;
            let either = (a.len() + b.len()) as f64 * documents - both;
            let apart = q.powf(either + both);
            let same = q.powf(either) - apart;
            let different = q.powf(either - both) * p.powf(both) - apart;
            // Each pair of two filters counts twice.
            let times = if std::ptr::eq(*a, *b) { 1.0 } else { 2.0 };
            sum += times * (same / m + different * (m - 1.0) / m);
        }
    }
    sum.max(0.0)
}

impl Present {
    fn add(&mut self, lookup: &Lookup, shortest: usize) {
        self.queries += 1;
        self.found += u64::from(lookup.found());
        if lookup.fallback.is_none() {
            self.by_filters += 1;
            self.filter_hops.add(lookup.hops());
            self.filter_shortest.add(shortest);
            return;
        }
        if lookup.search.path.len() > 1 {
            self.false_promises += 1;
        } else {
            self.too_far += 1;
        }
        self.fallback_hops.add(lookup.hops());
        self.fallback_shortest.add(shortest);
    }
}

impl Absent {
    fn add(&mut self, lookup: &Lookup) {
        self.queries += 1;
        self.sent_on += u64::from(lookup.search.path.len() > 1);
        self.found += u64::from(lookup.found());
        self.hops.add(lookup.hops());
    }
}
