//! A network of nodes that exchange the bits of their documents and forward queries.

use super::directory::Directory;
use super::{Attenuated, Climb, Document, FilterShape, Flip};
use crate::Result;
use crate::topology::Graph;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The nodes visited, beginning with the one that was queried.
    pub path: Vec<usize>,
    /// Whether the last node has the document. If not, the slower lookup has to find it.
    pub found: bool,
}

/// The result of a lookup: a search by the filters, and the slower lookup if that found nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The search by the filters.
    pub search: Search,
    /// The lookup by pointers that took over where the search ended, if it failed.
    pub fallback: Option<Climb>,
}

impl Lookup {
    /// Returns whether the document was found. If not, no connected node has it.
    pub fn found(&self) -> bool {
        self.search.found || self.fallback.as_ref().is_some_and(|climb| climb.found)
    }

    /// Returns the number of links that the query crossed.
    pub fn hops(&self) -> usize {
        let climb = self.fallback.as_ref().map_or(0, |climb| climb.path.len().saturating_sub(1));
        self.search.path.len().saturating_sub(1) + climb
    }
}

/// A node: its documents, the number of them that set each bit, and the filters of its links.
#[derive(Clone, Debug)]
struct Node {
    documents: BTreeSet<Document>,
    /// The number of documents that set each bit, so that removing one is exact.
    counts: BTreeMap<u32, u32>,
    links: Vec<Attenuated>,
}

/// A simulated network in which documents are searched for. All nodes are in one process, but each
/// knows only what it received.
#[derive(Clone, Debug)]
pub struct Network {
    graph: Graph,
    shape: FilterShape,
    nodes: Vec<Node>,
    directory: Directory,
    /// The number of flipped bits that were sent over links.
    flips_sent: u64,
}

impl Network {
    /// Returns a network without documents.
    ///
    /// # Errors
    ///
    /// Fails if a number of the shape is out of range.
    pub fn new(graph: Graph, shape: FilterShape) -> Result<Network> {
        let empty = Attenuated::new(shape)?;
        let node = |node| Node {
            documents: BTreeSet::new(),
            counts: BTreeMap::new(),
            links: vec![empty.clone(); graph.neighbours(node).len()],
        };
        let nodes = (0..graph.len()).map(node).collect();
        let directory = Directory::new(&graph);
        Ok(Network { graph, shape, nodes, directory, flips_sent: 0 })
    }

    /// Returns the nodes and links.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the size of the filters.
    pub fn shape(&self) -> FilterShape {
        self.shape
    }

    /// Returns the filter that a node keeps for its link with this number.
    pub fn filter(&self, node: usize, link: usize) -> Option<&Attenuated> {
        self.nodes.get(node)?.links.get(link)
    }

    /// Returns the number of flipped bits that were sent over links so far.
    pub fn flips_sent(&self) -> u64 {
        self.flips_sent
    }

    /// Returns the root of a document, to which queries from this node climb if the filters fail.
    pub fn root(&self, from: usize, document: &Document) -> Option<usize> {
        self.directory.root(from, document)
    }

    /// Returns the number of pointers to documents that all nodes keep for the slower lookup.
    pub fn pointers(&self) -> u64 {
        self.directory.pointers()
    }

    /// Returns the number of messages over links that published or withdrew pointers so far.
    pub fn pointer_messages(&self) -> u64 {
        self.directory.messages()
    }

    /// Adds a document to a node, informs the neighbours, and publishes pointers on the way to the
    /// root of the document. Returns whether it is new there.
    pub fn add(&mut self, node: usize, document: Document) -> bool {
        self.change(node, document, true)
    }

    /// Removes a document from a node, informs the neighbours, and withdraws its pointers. Returns
    /// whether it was there.
    pub fn remove(&mut self, node: usize, document: Document) -> bool {
        self.change(node, document, false)
    }

    fn change(&mut self, node: usize, document: Document, add: bool) -> bool {
        let Some(own) = self.nodes.get_mut(node) else { return false };
        if !(if add { own.documents.insert(document) } else { own.documents.remove(&document) }) {
            return false;
        }
        let mut flips = Vec::new();
        for position in document.positions() {
            let count = own.counts.entry(*position).or_default();
            *count = if add { *count + 1 } else { count.saturating_sub(1) };
            if *count == u32::from(add) {
                flips.push(Flip { level: 1, position: *position, set: add });
            }
        }
        self.propagate(node, flips);
        self.directory.publish(&self.graph, node, document, add);
        true
    }

    /// Sends flipped bits from a node to all its neighbours, and further on until nothing changes
    /// or the last level is reached.
    fn propagate(&mut self, node: usize, flips: Vec<Flip>) {
        let mut messages: VecDeque<(usize, usize, Flip)> = VecDeque::new();
        for flip in flips {
            messages.extend(self.graph.neighbours(node).iter().map(|link| (node, link.to, flip)));
        }
        while let Some((from, to, flip)) = messages.pop_front() {
            self.flips_sent += 1;
            let links = self.graph.neighbours(to);
            let Some(back) = links.iter().position(|link| link.to == from) else { continue };
            if !self.nodes[to].links[back].apply(flip) || flip.level == self.shape.depth {
                continue;
            }
            // A neighbour receives as level i + 1 the union of level i over all other links. So the
            // bit flips unless another link sets it.
            for (out, link) in links.iter().enumerate().filter(|(out, _)| *out != back) {
                let others = self.nodes[to].links.iter().enumerate();
                let held = others
                    .filter(|(other, _)| *other != out && *other != back)
                    .any(|(_, filter)| filter.has(flip.level, flip.position));
                if !held {
                    messages.push_back((to, link.to, Flip { level: flip.level + 1, ..flip }));
                }
            }
        }
    }

    /// Returns the neighbour to which a node forwards a query: the unvisited one whose link reports
    /// the document nearest, and among equals the one with the shortest link.
    pub fn next(&self, node: usize, document: &Document, visited: &[usize]) -> Option<usize> {
        let links = self.graph.neighbours(node).iter().zip(&self.nodes.get(node)?.links);
        let open = links.filter(|(link, _)| !visited.contains(&link.to));
        let matching =
            open.filter_map(|(link, filter)| Some((filter.nearest(document)?, link.length, link.to)));
        matching.min().map(|(_, _, to)| to)
    }

    /// Searches for a document, without backtracking, for as many hops as there are levels.
    pub fn search(&self, from: usize, document: Document) -> Search {
        let mut path = vec![from];
        loop {
            let node = path.last().copied().unwrap_or(from);
            let found = self.nodes.get(node).is_some_and(|node| node.documents.contains(&document));
            let next = if found || path.len() > self.shape.depth as usize {
                None
            } else {
                self.next(node, &document, &path)
            };
            match next {
                Some(next) => path.push(next),
                None => return Search { path, found },
            }
        }
    }
    /// Searches for a document, and looks it up by pointers if the search fails. A document that a
    /// connected node has is always found.
    ///
    /// ```
    /// use umbel::{Hasher, Key};
    /// use umbel_net::routing::{Document, FilterShape, Network};
    /// use umbel_net::topology::Graph;
    ///
    /// let shape = FilterShape { bits: 4096, hashes: 3, depth: 3 };
    /// let mut network = Network::new(Graph::abilene(), shape)?;
    /// let document = Document::from_digest("plans.pdf".digest(&Hasher::default()), shape);
    /// network.add(9, document);
    /// // From Seattle it is too far for the filters.
    /// let lookup = network.lookup(0, document);
    /// assert!(!lookup.search.found && lookup.found());
    /// assert_eq!(lookup.fallback.and_then(|climb| climb.path.last().copied()), Some(9));
    /// # Ok::<(), umbel_net::Error>(())
    /// ```
    pub fn lookup(&self, from: usize, document: Document) -> Lookup {
        let search = self.search(from, document);
        let last = search.path.last().copied().unwrap_or(from);
        let fallback = (!search.found).then(|| self.directory.climb(&self.graph, last, document));
        Lookup { search, fallback }
    }
}

/// Returns the nodes behind a link, by distance: those that can be reached in exactly 1, 2, ...
/// `depth` hops through it without turning back at once. Their documents are what the levels of the
/// filter of this link hold.
///
/// ```
/// use std::collections::BTreeSet;
/// use umbel_net::routing::reach;
/// use umbel_net::topology::Graph;
/// let ring = Graph::new(4, &[(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)])?;
/// let nodes: Vec<BTreeSet<usize>> = reach(&ring, 0, 0, 4);
/// assert_eq!(nodes, [1, 2, 3, 0].map(|node| BTreeSet::from([node])));
/// # Ok::<(), umbel_net::Error>(())
/// ```
pub fn reach(graph: &Graph, node: usize, link: usize, depth: u32) -> Vec<BTreeSet<usize>> {
    // The links that walks of this length end with, each as its two nodes.
    let mut ends: BTreeSet<[usize; 2]> =
        graph.neighbours(node).get(link).map(|link| [node, link.to]).into_iter().collect();
    let mut levels = Vec::new();
    for _ in 0..depth {
        levels.push(ends.iter().map(|[_, to]| *to).collect());
        let onward = |[from, node]: &[usize; 2]| {
            let (from, node) = (*from, *node);
            let links = graph.neighbours(node).iter().filter(move |link| link.to != from);
            links.map(move |link| [node, link.to])
        };
        ends = ends.iter().flat_map(onward).collect();
    }
    levels
}
