//! Network topologies: read from a file, published, or drawn from a seed.
//!
//! [`Graph::open`] reads a network from an edge list or from GraphML. [`Graph::abilene`] and
//! [`Graph::nsfnet`] are published networks with the lengths of their links.
//! [`Graph::barabasi_albert`] draws networks with a few large hubs, [`Graph::waxman`] networks
//! whose links are mostly short, and [`Graph::tree`] is the usual assumption of theory. Nodes are
//! numbered from 0, and each has an address.
//!
//! ```
//! use umbel_net::topology::Graph;
//! let abilene = Graph::abilene();
//! assert_eq!((abilene.len(), abilene.links()), (11, 14));
//! let [seattle, new_york] = [0, 10];
//! let path = abilene.path(seattle, new_york);
//! let names: Vec<&str> = path.iter().map(|node| abilene.name(*node)).collect();
//! assert_eq!(names, ["Seattle", "Denver", "Kansas City", "Indianapolis", "Chicago", "New York"]);
//! ```

mod draft;
mod drawn;
mod edge_list;
mod graphml;
pub mod picture;
mod published;
mod read;

pub use read::MAX_FILE_BYTES;

use crate::{Error, Result};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// The largest number of nodes, which is the number of addresses.
pub const MAX_NODES: usize = 1 << 20;

/// A link, as seen from one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The node at the other end.
    pub to: usize,
    /// The latency or distance. The length of a path is the sum over its links.
    pub length: u32,
}

/// A network of nodes, and links that can be used in both directions.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The names of all nodes, or none. Shared, because networks without a link are clones.
    names: Arc<[String]>,
    links: Vec<Vec<Link>>,
}

impl Graph {
    /// Returns the network with these links, each given as two nodes below `nodes` and a length.
    ///
    /// # Errors
    ///
    /// Fails if `nodes` is not within 1 to [`MAX_NODES`], or a link does not join two different
    /// nodes.
    pub fn new(nodes: usize, links: &[(usize, usize, u32)]) -> Result<Graph> {
        if !(1..=MAX_NODES).contains(&nodes) {
            return Err(Error::parameter("nodes", nodes, format!("a number from 1 to {MAX_NODES}")));
        }
        let mut graph = Graph { names: Arc::default(), links: vec![Vec::new(); nodes] };
        for (a, b, length) in links {
            if a.max(b) >= &nodes || a == b {
                return Err(Error::parameter(
                    "link",
                    format!("{a}-{b}"),
                    "two different nodes of the network",
                ));
            }
            graph.join(*a, *b, *length);
        }
        Ok(graph)
    }

    /// Adds a link, unless the nodes are already linked.
    fn join(&mut self, a: usize, b: usize, length: u32) {
        if !self.linked(a, b) {
            self.links[a].push(Link { to: b, length });
            self.links[b].push(Link { to: a, length });
        }
    }

    fn linked(&self, a: usize, b: usize) -> bool {
        // A hub may have a million links, so search the node that has fewer.
        let [few, many] = if self.neighbours(a).len() <= self.neighbours(b).len() { [a, b] } else { [b, a] };
        self.neighbours(few).iter().any(|link| link.to == many)
    }

    /// Returns the same network without a link.
    pub fn without(&self, a: usize, b: usize) -> Graph {
        let mut graph = self.clone();
        for (from, to) in [(a, b), (b, a)] {
            if let Some(links) = graph.links.get_mut(from) {
                links.retain(|link| link.to != to);
            }
        }
        graph
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns whether there are no nodes, which is never the case.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns the number of links.
    pub fn links(&self) -> usize {
        self.links.iter().map(Vec::len).sum::<usize>() / 2
    }

    /// Returns the links of a node; none if there is no such node.
    pub fn neighbours(&self, node: usize) -> &[Link] {
        self.links.get(node).map_or(&[], Vec::as_slice)
    }

    /// Returns the name of a node. It is empty in networks that were drawn or given by numbers.
    pub fn name(&self, node: usize) -> &str {
        self.names.get(node).map_or("", String::as_str)
    }

    /// Returns the node with this name.
    ///
    /// ```
    /// use umbel_net::topology::Graph;
    /// let abilene = Graph::abilene();
    /// assert_eq!(abilene.find("Denver"), Some(3));
    /// assert_eq!(abilene.find("Boston"), None);
    /// ```
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|own| own == name)
    }

    /// Returns the address of a node, in 10.0.0.0/8.
    pub fn address(&self, node: usize) -> IpAddr {
        Ipv4Addr::from(0x0a00_0001 + node as u32).into()
    }

    /// Returns the octets of the address of a node.
    pub fn address_bytes(&self, node: usize) -> [u8; 4] {
        (0x0a00_0001 + node as u32).to_be_bytes()
    }

    /// Returns where each node sends packets for `target`: to the neighbour on the shortest path,
    /// or to the one with the lower number if two are equal. The target itself, and nodes that are
    /// not connected to it, have `None`.
    pub fn next_hops(&self, target: usize) -> Vec<Option<usize>> {
        let mut next = vec![None; self.len()];
        let mut done = vec![false; self.len()];
        // Dijkstra's algorithm; the map is ordered, so the result is deterministic.
        let mut waiting = BTreeMap::from([((0u64, target), None)]);
        while let Some(((length, node), via)) = waiting.pop_first() {
            if done.get(node).copied().unwrap_or(true) {
                continue;
            }
            done[node] = true;
            next[node] = via;
            for link in self.neighbours(node).iter().filter(|link| !done[link.to]) {
                let entry = waiting.entry((length + u64::from(link.length), link.to)).or_insert(Some(node));
                *entry = (*entry).min(Some(node));
            }
        }
        next
    }

    /// Returns the part of the network to which each node belongs. Parts are numbered from 0, and
    /// nodes of different parts are not connected.
    ///
    /// ```
    /// use umbel_net::topology::Graph;
    /// let graph = Graph::parse(b"a b\nc d\nb e\n")?;
    /// assert_eq!(graph.parts(), [0, 0, 1, 1, 0]);
    /// # Ok::<(), umbel_net::Error>(())
    /// ```
    pub fn parts(&self) -> Vec<usize> {
        let mut parts = vec![None; self.len()];
        let mut part = 0;
        for start in 0..self.len() {
            let mut waiting = vec![start];
            let before = part;
            while let Some(node) = waiting.pop() {
                if parts[node].is_none() {
                    (parts[node], part) = (Some(before), before + 1);
                    waiting.extend(self.neighbours(node).iter().map(|link| link.to));
                }
            }
        }
        parts.into_iter().flatten().collect()
    }

    /// Returns the shortest path with both ends, or an empty one if there is none.
    pub fn path(&self, from: usize, to: usize) -> Vec<usize> {
        along(&self.next_hops(to), from, to)
    }

    /// Returns the smallest number of links to each node, or `None` for nodes that are not
    /// connected.
    pub fn hops(&self, from: usize) -> Vec<Option<u32>> {
        let mut hops = vec![None; self.len()];
        let mut layer = vec![from];
        for distance in 0.. {
            layer.retain(|node| hops.get(*node) == Some(&None));
            layer.sort_unstable();
            layer.dedup();
            if layer.is_empty() {
                break;
            }
            layer.iter().for_each(|node| hops[*node] = Some(distance));
            layer = layer.iter().flat_map(|node| self.neighbours(*node)).map(|link| link.to).collect();
        }
        hops
    }
}

/// Returns the path of a packet that every node sends to its next hop; empty if the packet does not
/// arrive.
pub fn along(next_hops: &[Option<usize>], from: usize, to: usize) -> Vec<usize> {
    let mut path = vec![from];
    while let Some(node) = path.last().copied().filter(|node| *node != to) {
        match next_hops.get(node) {
            Some(Some(next)) if path.len() <= next_hops.len() => path.push(*next),
            _ => return Vec::new(),
        }
    }
    path
}
