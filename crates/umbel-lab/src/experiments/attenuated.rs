//! E12-attenuated: documents found by the summaries of neighbours, and the fill of the deeper
//! levels.

use super::prelude::*;
use crate::keys::mix;
use std::collections::BTreeSet;
use umbel::Digest;
use umbel::hash::reduce;
use umbel::sizing::rate::expected_fill;
use umbel_net::routing::{Attenuated, Document, FilterShape, Network, reach};
use umbel_net::topology::Graph;

pub struct AttenuatedRouting;

const NODES: Parameter = Parameter::count("nodes", "nodes in the network", [120, 300], [20, 1000]);
const DOCUMENTS: Parameter = Parameter::count("documents", "documents per node", [10, 20], [1, 100]);
const DEPTH: u32 = 4;
const HASHES: u32 = 3;
const WIDTHS: [u32; 4] = [256, 1024, 4096, 16384];

impl Experiment for AttenuatedRouting {
    fn about(&self) -> About {
        About {
            id: "E12-attenuated",
            chapter: Chapter::Networks,
            title: "Documents found by the summaries of neighbours",
            sources: &[RHEA],
            claim: "If a node stores, for each link, one filter per distance, queries find nearby \
                    documents on short paths. Deeper levels hold the documents of many nodes and \
                    soon fill up.",
            set_up: "A Barabási–Albert network with two links per node, ten documents on each \
                     node, filters of four levels with 256 to 16384 bits. The fill of each level \
                     is compared with the value expected for the documents behind the link; then \
                     documents are searched for from random nodes.",
            advice: "Make the filters wide enough that the deepest level stays below half full, or \
                     use fewer levels; keep a slower lookup for the rest.",
            command: "`umbel net simulate routing`; the library module `umbel_net::routing`",
            seconds: [1, 3],
            timed: false,
            parameters: &[NODES, DOCUMENTS],
        }
    }

    fn run(&self, lab: &Lab) -> Result<Findings> {
        let mut findings = Findings::default();
        worked_example(&mut findings)?;
        let nodes = lab.count(&NODES) as usize;
        let graph = Graph::barabasi_albert(nodes, 2, lab.seed)?;
        let behind = behind(&graph);
        let mut fills = Sweep::new("fill").chart(
            "fill",
            "Mean fill of the levels over all links",
            Axis::linear("level"),
            Axis::linear("share of set bits"),
        );
        let mut searches = Sweep::new("searches").chart(
            "found",
            "Documents found by the filters alone, by distance",
            Axis::linear("hops to the document"),
            Axis::linear("share found"),
        );
        let mut near = Vec::new();
        for (colour, bits) in WIDTHS.into_iter().enumerate() {
            let shape = FilterShape { bits, hashes: HASHES, depth: DEPTH };
            let network = filled(lab, &graph, shape)?;
            for level in 1..=DEPTH {
                let of = fill_of(lab, &network, &behind, level)?;
                fills
                    .at(level.into())
                    .cells([("bits", &bits), ("level", &level)])
                    .value("documents_behind", of.documents, 1)
                    .value("expected_fill", of.expected, 4)
                    .line(format!("{bits} bits, expected"), colour)
                    .value("fill", of.measured, 4)
                    .dots(format!("{bits} bits, measured"), colour)
                    // All links share the same documents, so their fills are not independent.
                    .near(format!("{bits} bits, level {level}: fill"), of.expected, 0.03);
            }
            let sent = network.flips_sent() as f64 / (nodes as u64 * lab.count(&DOCUMENTS)) as f64;
            for (distance, of) in (1..).zip(search(lab, &network)) {
                let share = of.found as f64 / of.searches.max(1) as f64;
                let hops = of.hops as f64 / of.found.max(1) as f64;
                searches
                    .at(distance.into())
                    .cells([("bits", &bits), ("distance", &distance), ("searches", &of.searches)])
                    .value("found", share, 4)
                    .path(format!("{bits} bits"), colour)
                    .value("hops_if_found", hops, 3)
                    .value("bits_told_for_a_document", sent, 0);
            }
            near.push(searches.points(&format!("{bits} bits")).first().map_or(0.0, |point| point.1));
        }
        let claim = "share of documents one hop away that are found, with the widest filters";
        searches.at_least(claim, near[3], 0.98);
        let claim = "the wider the filters, the more documents are found one hop away";
        searches.that(claim, near.windows(2).all(|pair| pair[0] <= pair[1] + 0.02));
        findings.add(fills);
        findings.add(searches);
        findings.verdict =
            "Levels are as full as the documents behind them predict, and each is much fuller than \
             the one before. A level that is nearly full says yes to everything, and queries that \
             follow it get lost; wide filters find nearly all documents, on paths that are hardly \
             longer than the shortest. Documents that are not found are left to the slower lookup, \
             so no answer is wrong."
                .into();
        Ok(findings)
    }
}

/// Checks the worked example of nine bits, with documents on the second and third level.
fn worked_example(findings: &mut Findings) -> Result<()> {
    let mut filter = Attenuated::new(FilterShape { bits: 9, hashes: 3, depth: 3 })?;
    let [a, b, c, d] =
        [[0, 3, 7], [1, 3, 8], [2, 5, 7], [1, 6, 8]].map(|positions| Document::from_positions(&positions));
    for (level, document) in [(1, b), (2, a), (2, c), (3, a), (3, d)] {
        filter.insert(level, &document);
    }
    let union: Vec<u32> = (0..9).filter(|position| filter.has(2, *position)).collect();
    findings.that("worked example: level 2 has bits 0, 2, 3, 5, 7", union == [0, 2, 3, 5, 7]);
    findings.near("worked example: potential", filter.potential(&a), 3.0 / 8.0, 0.0);
    Ok(())
}

/// Returns the nodes behind each link of each node, by distance.
fn behind(graph: &Graph) -> Vec<Vec<Vec<BTreeSet<usize>>>> {
    let links = |node| 0..graph.neighbours(node).len();
    (0..graph.len()).map(|node| links(node).map(|link| reach(graph, node, link, DEPTH)).collect()).collect()
}

fn document(lab: &Lab, node: usize, number: u64, shape: FilterShape) -> Document {
    Document::from_digest(
        (lab.spoil)(Digest::from_hash(mix(mix(lab.seed).wrapping_add((node as u64) << 20 | number)))),
        shape,
    )
}

fn filled(lab: &Lab, graph: &Graph, shape: FilterShape) -> Result<Network> {
    let mut network = Network::new(graph.clone(), shape)?;
    for node in 0..graph.len() {
        for number in 0..lab.count(&DOCUMENTS) {
            network.add(node, document(lab, node, number, shape));
        }
    }
    Ok(network)
}

/// The fill of a level, averaged over all links.
struct Fill {
    documents: f64,
    expected: f64,
    measured: f64,
}

fn fill_of(lab: &Lab, network: &Network, behind: &[Vec<Vec<BTreeSet<usize>>>], level: u32) -> Result<Fill> {
    let mut sums = Fill { documents: 0.0, expected: 0.0, measured: 0.0 };
    let mut links = 0.0;
    for (node, own) in behind.iter().enumerate() {
        for (number, levels) in own.iter().enumerate() {
            let Some(filter) = network.filter(node, number) else { continue };
            let documents = levels[level as usize - 1].len() as u64 * lab.count(&DOCUMENTS);
            links += 1.0;
            sums.documents += documents as f64;
            sums.measured += filter.fill(level);
            if documents > 0 {
                sums.expected += expected_fill(u64::from(filter.shape().bits), documents, HASHES)?;
            }
        }
    }
    Ok(Fill {
        documents: sums.documents / links,
        expected: sums.expected / links,
        measured: sums.measured / links,
    })
}

/// Results of searches for documents at a distance.
#[derive(Clone, Default)]
struct Searches {
    searches: u64,
    found: u64,
    hops: u64,
}

fn search(lab: &Lab, network: &Network) -> Vec<Searches> {
    let graph = network.graph();
    let mut by_distance = vec![Searches::default(); DEPTH as usize];
    for question in 0..lab.either(4000u64, 20_000) {
        let draw =
            |what: u64, end: u64| reduce(mix(mix(lab.seed ^ 1).wrapping_add(question << 2 | what)), end);
        let (from, at) = (draw(0, graph.len() as u64) as usize, draw(1, graph.len() as u64) as usize);
        let distance = graph.hops(from)[at].unwrap_or(0) as usize;
        let Some(sums) = by_distance.get_mut(distance.wrapping_sub(1)) else { continue };
        let wanted = document(lab, at, draw(2, lab.count(&DOCUMENTS)), network.shape());
        let search = network.search(from, wanted);
        sums.searches += 1;
        if search.found {
            sums.found += 1;
            sums.hops += search.path.len() as u64 - 1;
        }
    }
    by_distance
}
