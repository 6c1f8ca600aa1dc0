//! Networks to try things on: two that were built, and as many as one likes that are drawn from a seed.
//!
//! [`Graph::abilene`] and [`Graph::nsfnet`] are published networks with the lengths of their links;
//! [`Graph::barabasi_albert`] draws networks with a few large hubs, [`Graph::waxman`] ones whose links are mostly short,
//! and [`Graph::tree`] is what theory likes to assume. Nodes are numbers from 0 on, and each has an address.
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

mod drawn;
mod published;

use crate::{Error, Result};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// The most nodes: as many addresses as there are.
pub const MAX_NODES: usize = 1 << 20;

/// One end of a link, seen from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The node at the other end.
    pub to: usize,
    /// How long it takes, or how far it is: the sum along a path counts.
    pub length: u32,
}

/// A network: nodes, and links that can be used in both directions.
#[derive(Clone, Debug)]
pub struct Graph {
    names: &'static [&'static str],
    links: Vec<Vec<Link>>,
}

impl Graph {
    /// From the links: two nodes below `nodes`, and a length.
    pub fn new(nodes: usize, links: &[(usize, usize, u32)]) -> Result<Graph> {
        if !(1..=MAX_NODES).contains(&nodes) {
            return Err(Error::parameter("nodes", nodes, format!("a number from 1 to {MAX_NODES}")));
        }
        let mut graph = Graph { names: &[], links: vec![Vec::new(); nodes] };
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

    /// Adds a link, unless there is one.
    fn join(&mut self, a: usize, b: usize, length: u32) {
        if !self.linked(a, b) {
            self.links[a].push(Link { to: b, length });
            self.links[b].push(Link { to: a, length });
        }
    }

    fn linked(&self, a: usize, b: usize) -> bool {
        self.neighbours(a).iter().any(|link| link.to == b)
    }

    /// The same network without a link.
    pub fn without(&self, a: usize, b: usize) -> Graph {
        let mut graph = self.clone();
        for (from, to) in [(a, b), (b, a)] {
            if let Some(links) = graph.links.get_mut(from) {
                links.retain(|link| link.to != to);
            }
        }
        graph
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there are none, which never is so.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// How many links there are.
    pub fn links(&self) -> usize {
        self.links.iter().map(Vec::len).sum::<usize>() / 2
    }

    /// The links of a node; none, if there is no such node.
    pub fn neighbours(&self, node: usize) -> &[Link] {
        self.links.get(node).map_or(&[], Vec::as_slice)
    }

    /// What a node of a published network is called; otherwise nothing.
    pub fn name(&self, node: usize) -> &'static str {
        self.names.get(node).copied().unwrap_or_default()
    }

    /// The address of a node, in 10.0.0.0/8.
    pub fn address(&self, node: usize) -> IpAddr {
        Ipv4Addr::from(0x0a00_0001 + node as u32).into()
    }

    /// The bytes of that address.
    pub fn address_bytes(&self, node: usize) -> [u8; 4] {
        (0x0a00_0001 + node as u32).to_be_bytes()
    }

    /// Where each node sends packets for `target`: to the neighbour from which the way is shortest (the lower number, if
    /// two are alike). The target itself, and what is not connected to it, sends them nowhere.
    pub fn next_hops(&self, target: usize) -> Vec<Option<usize>> {
        let mut next = vec![None; self.len()];
        let mut done = vec![false; self.len()];
        // Dijkstra's algorithm; the map is ordered, so that the outcome depends on nothing else.
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

    /// The shortest path, with both ends; empty, if there is none.
    pub fn path(&self, from: usize, to: usize) -> Vec<usize> {
        along(&self.next_hops(to), from, to)
    }

    /// How many links there are to each node at least; nothing for those that are not connected.
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

/// The path that a packet takes from a node, if each sends it to its next hop; empty, if it does not arrive.
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
