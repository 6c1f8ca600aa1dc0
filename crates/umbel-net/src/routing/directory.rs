//! The slower lookup that finds every document: pointers on the way to the document's root.
//!
//! Nodes and documents have points on a ring. The *root* of a document is the node whose point is
//! the first one from the document's point on. A node that stores a document sends a message
//! towards the root, and every node on the way keeps a pointer to it. A query climbs to the root in
//! the same way, so at the latest the root has a pointer for it:
//!
//! ```text
//!   holder o---o---o---* root      publishing leaves pointers (o) on the way
//!                  |
//!   query  .---.---+               climbing meets one, and goes down to the holder
//! ```
//!
//! Every node can compute a root from the nodes of the network, and a node that leaves changes only
//! the roots it was itself.

use super::Document;
use crate::topology::{Graph, along};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use umbel::Digest;

/// The most next hops that are remembered, over all roots: 64 MiB.
const MAX_NEXT_HOPS: usize = 1 << 22;

/// A lookup by pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Climb {
    /// The nodes visited: upwards to the one with a pointer, then down to a holder.
    pub path: Vec<usize>,
    /// The number of links before the pointer was met, or to the root if there is none.
    pub climbed: usize,
    /// Whether the last node has the document. If not, no connected node has it.
    pub found: bool,
}

/// The pointers of all nodes. Each node uses only its own.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    /// The part of the network to which each node belongs. Each part has roots of its own.
    parts: Vec<usize>,
    /// The points of the nodes of each part, in order.
    rings: Vec<Vec<(u64, usize)>>,
    /// For each document, the nodes that store it.
    pointers: Vec<BTreeMap<Document, BTreeSet<usize>>>,
    /// The next hops towards roots, computed when they were first needed.
    routes: BTreeMap<usize, Vec<Option<usize>>>,
    /// The number of messages that published or withdrew documents, one for each link crossed.
    messages: u64,
}

impl Directory {
    pub(super) fn new(graph: &Graph) -> Directory {
        let parts = graph.parts();
        let mut rings = vec![Vec::new(); parts.iter().max().map_or(0, |last| last + 1)];
        for (node, part) in parts.iter().enumerate() {
            rings[*part].push((point([node as u64]), node));
        }
        rings.iter_mut().for_each(|ring| ring.sort_unstable());
        let pointers = vec![BTreeMap::new(); parts.len()];
        Directory { parts, rings, pointers, routes: BTreeMap::new(), messages: 0 }
    }

    /// Returns the root of a document, for queries from this node.
    pub(super) fn root(&self, from: usize, document: &Document) -> Option<usize> {
        let ring = self.rings.get(*self.parts.get(from)?)?;
        let positions = document.positions().iter().copied().map(u64::from);
        let point = point(positions.chain([document.digest()]));
        let next = ring.partition_point(|(own, _)| *own < point);
        ring.get(next).or_else(|| ring.first()).map(|(_, node)| *node)
    }

    /// Returns the next hops towards a root.
    fn route(&self, graph: &Graph, root: usize) -> Cow<'_, [Option<usize>]> {
        self.routes.get(&root).map_or_else(|| graph.next_hops(root).into(), |route| route.into())
    }

    /// Sends a message from a node that stores a document, or no longer does, to its root.
    pub(super) fn publish(&mut self, graph: &Graph, node: usize, document: Document, stored: bool) {
        let Some(root) = self.root(node, &document) else { return };
        if !self.routes.contains_key(&root) {
            if (self.routes.len() + 1) * graph.len() > MAX_NEXT_HOPS {
                self.routes.clear();
            }
            self.routes.insert(root, graph.next_hops(root));
        }
        let path = along(&self.route(graph, root), node, root);
        self.messages += path.len().saturating_sub(1) as u64;
        for step in path {
            let holders = self.pointers[step].entry(document).or_default();
            if stored {
                holders.insert(node);
            } else {
                holders.remove(&node);
            }
            if holders.is_empty() {
                self.pointers[step].remove(&document);
            }
        }
    }

    /// Looks a document up, beginning at a node.
    pub(super) fn climb(&self, graph: &Graph, from: usize, document: Document) -> Climb {
        let lost = Climb { path: vec![from], climbed: 0, found: false };
        let Some(root) = self.root(from, &document) else { return lost };
        let way = along(&self.route(graph, root), from, root);
        let pointer = |node: &usize| self.pointers[*node].get(&document);
        let Some((climbed, holders)) =
            way.iter().enumerate().find_map(|(step, node)| Some((step, pointer(node)?)))
        else {
            return Climb { climbed: way.len().saturating_sub(1), path: way, found: false };
        };
        let mut path = way[..=climbed].to_vec();
        let hops = graph.hops(way[climbed]);
        let nearest = holders.iter().copied().min_by_key(|holder| (hops.get(*holder).copied(), *holder));
        path.extend(nearest.into_iter().flat_map(|holder| graph.path(way[climbed], holder)).skip(1));
        Climb { path, climbed, found: true }
    }

    /// Returns the number of pointers of all nodes.
    pub(super) fn pointers(&self) -> u64 {
        self.pointers.iter().flat_map(BTreeMap::values).map(|holders| holders.len() as u64).sum()
    }

    /// Returns the number of messages sent so far.
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }
}

/// Returns the point on the ring for these numbers.
fn point(numbers: impl IntoIterator<Item = u64>) -> u64 {
    let start = Digest::from_hash(0x726f_6f74);
    numbers.into_iter().fold(start, |digest, number| digest.salted(number)).get()
}
