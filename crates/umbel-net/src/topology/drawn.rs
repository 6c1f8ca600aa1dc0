//! Random networks, drawn from a seed.
//!
//! # References
//!
//! * A.-L. Barabási and R. Albert. *Emergence of scaling in random networks.* Science 286, 1999.
//!   `BA99`
//! * B. M. Waxman. *Routing of multipoint connections.* IEEE Journal on Selected Areas in
//!   Communications 6(9), 1988. `Waxman88`

use super::{Graph, MAX_NODES};
use crate::random::Random;
use crate::{Error, Result};

impl Graph {
    /// Draws a network that grew by preferential attachment: each new node has `links` links, and
    /// joins existing nodes with a probability proportional to their number of links (Barabási and
    /// Albert 1999). The lengths of links are drawn from 1 to 100.
    ///
    /// # Errors
    ///
    /// Fails if `links` is 0 or not below `nodes`, or `nodes` exceeds [`MAX_NODES`].
    pub fn barabasi_albert(nodes: usize, links: usize, seed: u64) -> Result<Graph> {
        if links == 0 || links >= nodes || nodes > MAX_NODES {
            return Err(Error::parameter(
                "links",
                links,
                "at least 1 and fewer than the number of nodes, which is at most 2^20",
            ));
        }
        let mut random = Random::new(seed);
        let mut graph = Graph::new(nodes, &[])?;
        // Every node as often as it has links, so that drawing from this list is proportional to
        // links.
        let mut ends: Vec<usize> = Vec::new();
        for node in 1..nodes {
            let wanted = links.min(node);
            while graph.neighbours(node).len() < wanted {
                // The first nodes join all nodes before them.
                let other = if node <= links || ends.is_empty() {
                    graph.neighbours(node).len()
                } else {
                    ends[random.below(ends.len())]
                };
                if !graph.linked(node, other) {
                    graph.join(node, other, 1 + random.below(100) as u32);
                }
            }
            let joined: Vec<usize> = graph.neighbours(node).iter().flat_map(|link| [node, link.to]).collect();
            ends.extend(joined);
        }
        Ok(graph)
    }

    /// Draws a network of nodes in a square, where two nodes are linked with probability `alpha`
    /// e^(-d / (`beta` L)), with d their distance and L the diagonal of the square (Waxman 1988).
    /// Nodes that are not connected are then linked to the nearest node that is. Lengths are in
    /// thousandths of the side.
    ///
    /// # Errors
    ///
    /// Fails if `nodes` is not within 1 to 16384, or if `alpha` or `beta` is not above 0 and at
    /// most 1.
    pub fn waxman(nodes: usize, alpha: f64, beta: f64, seed: u64) -> Result<Graph> {
        if nodes > 1 << 14 {
            return Err(Error::parameter("nodes", nodes, "at most 16384, since every pair is looked at"));
        }
        for (name, value) in [("alpha", alpha), ("beta", beta)] {
            if !(value > 0.0 && value <= 1.0) {
                return Err(Error::parameter(name, value, "a number above 0, and at most 1"));
            }
        }
        let mut random = Random::new(seed);
        let mut graph = Graph::new(nodes, &[])?;
        let places: Vec<[f64; 2]> = (0..nodes).map(|_| [random.share(), random.share()]).collect();
        let distance = |a: usize, b: usize| (places[a][0] - places[b][0]).hypot(places[a][1] - places[b][1]);
        let length = |a, b| (1000.0 * distance(a, b)).round().max(1.0) as u32;
        for a in 0..nodes {
            for b in a + 1..nodes {
                if random.share() < alpha * (-distance(a, b) / (beta * 2f64.sqrt())).exp() {
                    graph.join(a, b, length(a, b));
                }
            }
        }
        loop {
            let hops = graph.hops(0);
            let Some(lonely) = hops.iter().position(Option::is_none) else { break };
            let reached = (0..nodes).filter(|node| hops[*node].is_some());
            let nearest = reached.min_by(|a, b| distance(lonely, *a).total_cmp(&distance(lonely, *b)));
            let Some(nearest) = nearest else { break };
            graph.join(lonely, nearest, length(lonely, nearest));
        }
        Ok(graph)
    }

    /// Returns a tree: node 0 has `branches` children, each of them as many again, `depth` levels
    /// deep. All links have length 1.
    ///
    /// # Errors
    ///
    /// Fails if the tree would have more than [`MAX_NODES`] nodes.
    pub fn tree(branches: usize, depth: u32) -> Result<Graph> {
        let mut layers = (0..=depth.min(MAX_NODES as u32)).map(|layer| branches.checked_pow(layer));
        let fits = |nodes: &usize| *nodes <= MAX_NODES;
        let nodes = layers.try_fold(0, |sum: usize, layer| sum.checked_add(layer?).filter(fits));
        let Some(nodes) = nodes else {
            return Err(Error::parameter("depth", depth, "less: the tree would have more than 2^20 nodes"));
        };
        let links: Vec<_> = (1..nodes).map(|node| ((node - 1) / branches, node, 1)).collect();
        Graph::new(nodes, &links)
    }
}
