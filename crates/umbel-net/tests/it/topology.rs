//! The promises of topologies: they match the published networks, are connected, and are the same
//! for the same seed.

use umbel_net::topology::Graph;

fn connected(graph: &Graph) -> bool {
    graph.hops(0).iter().all(Option::is_some)
}

fn degrees(graph: &Graph) -> Vec<usize> {
    (0..graph.len()).map(|node| graph.neighbours(node).len()).collect()
}

#[test]
fn published_networks_have_their_nodes_and_links() {
    let (abilene, nsfnet) = (Graph::abilene(), Graph::nsfnet());
    assert_eq!((abilene.len(), abilene.links()), (11, 14));
    assert_eq!((nsfnet.len(), nsfnet.links()), (14, 21));
    assert!(connected(&abilene) && connected(&nsfnet));
    // Every node of both networks can lose a link and still be reached.
    for graph in [abilene, nsfnet] {
        for node in 0..graph.len() {
            assert!(graph.neighbours(node).iter().all(|link| connected(&graph.without(node, link.to))));
        }
        assert!(!graph.name(0).is_empty() && graph.name(99).is_empty());
    }
}

#[test]
fn grown_networks_have_hubs() {
    let graph = Graph::barabasi_albert(2000, 2, 7).unwrap();
    // One link of the second node, and two of every later node.
    assert_eq!(graph.links(), 1 + 2 * 1998);
    assert!(connected(&graph));
    let degrees = degrees(&graph);
    assert!(degrees.iter().all(|degree| *degree >= 1));
    // A network with as many links but without preference would have no node with more than about
    // 15.
    assert!(*degrees.iter().max().unwrap() > 40, "{:?}", degrees.iter().max());
}

#[test]
fn waxman_networks_prefer_short_links() {
    let graph = Graph::waxman(300, 0.4, 0.1, 7).unwrap();
    assert!(connected(&graph));
    let lengths: Vec<u32> =
        (0..300).flat_map(|node| graph.neighbours(node)).map(|link| link.length).collect();
    let mean = f64::from(lengths.iter().sum::<u32>()) / lengths.len() as f64;
    // Two random points of a square are 521 apart.
    assert!(mean < 300.0, "{mean}");
}

#[test]
fn seed_determines_the_network() {
    let of = |seed| {
        let [grown, near] = [Graph::barabasi_albert(100, 2, seed), Graph::waxman(100, 0.4, 0.2, seed)];
        (format!("{:?}", grown.unwrap()), format!("{:?}", near.unwrap()))
    };
    assert_eq!(of(1), of(1));
    assert!(of(1).0 != of(2).0 && of(1).1 != of(2).1);
}

#[test]
fn paths_are_shortest_and_next_hops_agree_with_them() {
    let graph = Graph::nsfnet();
    for to in 0..graph.len() {
        let length = |node: usize| {
            let path = graph.path(node, to);
            let of = |pair: &[usize]| {
                graph.neighbours(pair[0]).iter().find(|link| link.to == pair[1]).unwrap().length
            };
            path.windows(2).map(of).sum::<u32>()
        };
        for from in 0..graph.len() {
            // No detour over a neighbour is shorter.
            for link in graph.neighbours(from) {
                assert!(length(from) <= link.length + length(link.to), "{from} to {to}");
            }
        }
    }
    let split = Graph::new(3, &[(0, 1, 1)]).unwrap();
    assert!(split.path(0, 2).is_empty() && split.path(0, 9).is_empty() && split.path(9, 0).is_empty());
    assert_eq!((split.path(1, 1), split.hops(0)), (vec![1], vec![Some(0), Some(1), None]));
}

#[test]
fn trees_have_the_requested_depth() {
    let tree = Graph::tree(3, 4).unwrap();
    assert_eq!((tree.len(), tree.links()), (121, 120));
    assert_eq!(tree.hops(0).iter().flatten().max(), Some(&4));
    assert!((1..40).all(|node| tree.neighbours(node).len() == 4));
}

#[test]
fn invalid_networks_are_refused() {
    assert!(
        Graph::new(0, &[]).is_err()
            && Graph::new(2, &[(0, 2, 1)]).is_err()
            && Graph::new(2, &[(1, 1, 1)]).is_err()
    );
    assert!(Graph::barabasi_albert(5, 5, 1).is_err() && Graph::barabasi_albert(5, 0, 1).is_err());
    assert!(Graph::waxman(10, f64::NAN, 0.1, 1).is_err() && Graph::waxman(10, 0.1, 0.0, 1).is_err());
    assert!(Graph::waxman(0, 0.1, 0.1, 1).is_err() && Graph::waxman(1 << 15, 0.1, 0.1, 1).is_err());
    assert!(Graph::tree(10, 30).is_err() && Graph::tree(1000, 9).is_err());
    assert_eq!(Graph::tree(0, 3).unwrap().len(), 1);
}
