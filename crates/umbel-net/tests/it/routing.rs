//! The promises of routing with attenuated filters: the worked example is reproduced, filters match
//! their definition, near documents are found by them, and all others by the fall-back.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use umbel::{Hasher, Key};
use umbel_net::routing::{Attenuated, Document, FilterShape, Flip, MAX_HASHES, Network};
use umbel_net::topology::Graph;

const SMALL: FilterShape = FilterShape { bits: 9, hashes: 3, depth: 3 };
const LARGE: FilterShape = FilterShape { bits: 1 << 16, hashes: 4, depth: 3 };

fn document(number: u64, shape: FilterShape) -> Document {
    Document::from_digest(number.digest(&Hasher::default()), shape)
}

#[test]
fn worked_example_has_a_potential_of_three_eighths() {
    let [a, b, c, d] =
        [[0, 3, 7], [1, 3, 8], [2, 5, 7], [1, 6, 8]].map(|positions| Document::from_positions(&positions));
    let mut filter = Attenuated::new(SMALL).unwrap();
    filter.insert(1, &b);
    filter.insert(2, &a);
    filter.insert(2, &c);
    filter.insert(3, &a);
    filter.insert(3, &d);
    let level_2: Vec<u32> = (0..9).filter(|position| filter.has(2, *position)).collect();
    assert_eq!(level_2, [0, 2, 3, 5, 7]);
    assert_eq!((filter.potential(&a), filter.nearest(&a)), (3.0 / 8.0, Some(2)));
    // On level 3, other documents set the bits of b.
    assert_eq!((filter.potential(&b), filter.nearest(&b)), (1.0 / 2.0 + 1.0 / 8.0, Some(1)));
    assert_eq!(filter.fill(2), 5.0 / 9.0);
}

#[test]
fn query_goes_to_the_nearest_copy_and_then_over_the_shortest_link() {
    // Node 0 is linked with 1 (long), 2 (short) and 3; node 3 with 4.
    let graph = Graph::new(5, &[(0, 1, 9), (0, 2, 2), (0, 3, 1), (3, 4, 1)]).unwrap();
    let mut network = Network::new(graph, LARGE).unwrap();
    let wanted = document(1, LARGE);
    network.add(4, wanted);
    assert_eq!(network.search(0, wanted).path, [0, 3, 4]);
    network.add(1, wanted);
    assert_eq!(network.search(0, wanted).path, [0, 1], "one hop, though over a longer link");
    network.add(2, wanted);
    assert_eq!(network.search(0, wanted).path, [0, 2]);
    assert_eq!(network.next(0, &wanted, &[2]), Some(1));
    network.remove(1, wanted);
    network.remove(2, wanted);
    assert_eq!(network.search(0, wanted).path, [0, 3, 4]);
    assert!(!network.remove(2, wanted) && !network.add(4, wanted) && !network.add(99, wanted));
}

#[test]
fn false_positive_costs_hops_but_yields_no_wrong_answer() {
    // All bits of the filter of node 1 are set, though it does not have the document.
    let graph = Graph::new(4, &[(0, 1, 1), (0, 2, 5), (2, 3, 1)]).unwrap();
    let mut network = Network::new(graph, SMALL).unwrap();
    (0..9).for_each(|position| assert!(network.add(1, Document::from_positions(&[position]))));
    let wanted = Document::from_positions(&[0, 3, 7]);
    network.add(3, wanted);
    let search = network.search(0, wanted);
    assert_eq!(
        (search.path, search.found),
        (vec![0, 1], false),
        "no backtracking: the slower lookup takes over"
    );
}

#[test]
fn fallback_finds_the_document_that_a_false_promise_hides() {
    let graph = Graph::new(4, &[(0, 1, 1), (0, 2, 5), (2, 3, 1)]).unwrap();
    let mut network = Network::new(graph, SMALL).unwrap();
    (0..9).for_each(|position| assert!(network.add(1, Document::from_positions(&[position]))));
    let wanted = Document::from_positions(&[0, 3, 7]);
    network.add(3, wanted);
    let lookup = network.lookup(0, wanted);
    assert_eq!((lookup.search.path.as_slice(), lookup.search.found), (&[0, 1][..], false));
    let climb = lookup.fallback.as_ref().unwrap();
    assert!(lookup.found() && climb.found && climb.path.starts_with(&[1]) && climb.path.ends_with(&[2, 3]));
    assert_eq!(lookup.hops(), climb.path.len());
    let missing = network.lookup(0, Document::from_positions(&[1, 2, 3]));
    assert!(!missing.found(), "the root has no pointer, so the answer is certain");
    assert!(!network.lookup(99, wanted).found());
}

#[test]
fn roots_are_spread_over_the_network() {
    let network = Network::new(Graph::nsfnet(), LARGE).unwrap();
    let mut roots = [0; 14];
    for number in 0..1400 {
        let root = network.root(0, &document(number, LARGE)).unwrap();
        assert_eq!(network.root(13, &document(number, LARGE)), Some(root), "the same from every node");
        roots[root] += 1;
    }
    // With one point each, arcs of the ring are exponentially distributed: the longest of 14 is
    // below half of the ring with a probability of 99.8 %.
    assert!(roots.iter().all(|count| *count < 700) && roots.iter().filter(|count| **count > 0).count() > 9);
}

#[test]
fn only_flipped_bits_are_sent() {
    let mut network = Network::new(Graph::new(3, &[(0, 1, 1), (1, 2, 1)]).unwrap(), SMALL).unwrap();
    network.add(0, Document::from_positions(&[0, 3, 7]));
    // Three bits over two links each.
    assert_eq!(network.flips_sent(), 6);
    network.add(0, Document::from_positions(&[0, 3, 8]));
    assert_eq!(network.flips_sent(), 8, "one new bit");
    network.remove(0, Document::from_positions(&[0, 3, 7]));
    assert_eq!(network.flips_sent(), 10, "one bit that no other document sets");
}

#[test]
fn invalid_shapes_are_refused_and_missing_bits_ignored() {
    let bad = |shape| Attenuated::new(shape).is_err() && Network::new(Graph::abilene(), shape).is_err();
    assert!(
        bad(FilterShape { bits: 0, ..SMALL })
            && bad(FilterShape { hashes: 0, ..SMALL })
            && bad(FilterShape { depth: 0, ..SMALL })
    );
    assert!(
        bad(FilterShape { bits: u32::MAX, ..SMALL })
            && bad(FilterShape { hashes: 99, ..SMALL })
            && bad(FilterShape { depth: 99, ..SMALL })
    );
    let mut filter = Attenuated::new(SMALL).unwrap();
    for (level, position) in [(0, 1), (4, 1), (1, 9), (u32::MAX, u32::MAX)] {
        assert!(!filter.apply(Flip { level, position, set: true }) && !filter.has(level, position));
    }
    assert_eq!([0, 1, 9].map(|level| filter.fill(level)), [0.0; 3]);
    assert_eq!(Document::from_positions(&[1; 99]).positions().len(), MAX_HASHES as usize);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, rng_seed: RngSeed::Fixed(8), failure_persistence: None, ..Default::default() })]

    /// After any changes, every filter matches its definition: the neighbour's documents on level
    /// 1, and on each further level the union of the level before over the neighbour's other links.
    #[test]
    fn filters_match_their_definition(
        nodes in 2usize..12, links in 1usize..3, seed: u64,
        changes in prop::collection::vec((0usize..12, 0u64..20, any::<bool>()), 0..60),
    ) {
        let shape = FilterShape { bits: 40, hashes: 3, depth: 4 };
        let graph = Graph::barabasi_albert(nodes, links.min(nodes - 1), seed).unwrap();
        let mut network = Network::new(graph.clone(), shape).unwrap();
        let mut held = vec![std::collections::BTreeSet::new(); nodes];
        for (node, number, add) in changes {
            let node = node % nodes;
            if add {
                prop_assert_eq!(network.add(node, document(number, shape)), held[node].insert(number));
            } else {
                prop_assert_eq!(network.remove(node, document(number, shape)), held[node].remove(&number));
            }
        }
        for node in 0..nodes {
            for (number, link) in graph.neighbours(node).iter().enumerate() {
                let mut expected = Attenuated::new(shape).unwrap();
                held[link.to].iter().for_each(|number| expected.insert(1, &document(*number, shape)));
                let beyond = graph.neighbours(link.to).iter().enumerate().filter(|(_, far)| far.to != node);
                for (other, _) in beyond {
                    let known = network.filter(link.to, other).unwrap();
                    for (level, position) in (1..4).flat_map(|level| (0..40).map(move |position| (level, position))) {
                        if known.has(level, position) {
                            expected.apply(Flip { level: level + 1, position, set: true });
                        }
                    }
                }
                prop_assert_eq!(network.filter(node, number).unwrap(), &expected);
            }
        }
    }

    /// In a tree with large filters, every document within the depth is found on the shortest path.
    #[test]
    fn near_documents_are_found_on_the_shortest_path(nodes in 2usize..60, seed: u64, ends: [u16; 2]) {
        let graph = Graph::barabasi_albert(nodes, 1, seed).unwrap();
        let [from, to] = ends.map(|end| usize::from(end) % nodes);
        let mut network = Network::new(graph.clone(), LARGE).unwrap();
        network.add(to, document(1, LARGE));
        let search = network.search(from, document(1, LARGE));
        let distance = graph.hops(from)[to].unwrap();
        prop_assert_eq!(search.found, distance <= LARGE.depth);
        if search.found {
            prop_assert_eq!(search.path, graph.path(from, to));
        }
    }
    /// In any network, connected or not, and with tiny filters full of false promises, a lookup
    /// finds a document exactly if a connected node has it, and pointers leave nothing behind.
    #[test]
    fn lookup_finds_every_document_of_a_connected_node(
        nodes in 1usize..16, links in prop::collection::vec((0usize..16, 0usize..16, 1u32..9), 0..24),
        changes in prop::collection::vec((0usize..16, 0u64..12, any::<bool>()), 0..60),
    ) {
        let shape = FilterShape { bits: 24, hashes: 3, depth: 3 };
        let links: Vec<_> = links.into_iter().map(|(a, b, length)| (a % nodes, b % nodes, length)).filter(|(a, b, _)| a != b).collect();
        let graph = Graph::new(nodes, &links).unwrap();
        let parts = graph.parts();
        let mut network = Network::new(graph.clone(), shape).unwrap();
        let mut held = std::collections::BTreeSet::new();
        for (node, number, add) in changes {
            let (node, document) = (node % nodes, document(number, shape));
            if add { network.add(node, document) } else { network.remove(node, document) };
            if add { held.insert((node, number)) } else { held.remove(&(node, number)) };
        }
        for (from, number) in (0..nodes).flat_map(|from| (0..12).map(move |number| (from, number))) {
            let lookup = network.lookup(from, document(number, shape));
            let is_held = |node: usize| held.contains(&(node, number));
            let expected = (0..nodes).any(|node| parts[node] == parts[from] && is_held(node));
            prop_assert_eq!(lookup.found(), expected);
            let mut path = lookup.search.path.clone();
            path.extend(lookup.fallback.iter().flat_map(|climb| climb.path.iter().skip(1)));
            prop_assert_eq!(path.len(), lookup.hops() + 1);
            for pair in path.windows(2) {
                prop_assert!(graph.neighbours(pair[0]).iter().any(|link| link.to == pair[1]));
            }
            prop_assert_eq!(is_held(path[path.len() - 1]), lookup.found());
        }
        for (node, number) in held {
            network.remove(node, document(number, shape));
        }
        prop_assert_eq!(network.pointers(), 0);
    }
}
