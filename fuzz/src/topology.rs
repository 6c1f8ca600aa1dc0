//! Networks from edge lists and GraphML.
//!
//! For any input: a network that was read is the same after it was written as an edge list and read
//! again, its parts and paths agree, and a small one can be drawn.

use umbel_net::topology::Graph;
use umbel_net::topology::picture::Picture;

/// The largest network that is drawn, since a layout compares all pairs of nodes.
const MAX_DRAWN_NODES: usize = 12;

/// Tests any bytes.
pub fn run(bytes: &[u8]) {
    let Ok(graph) = Graph::parse(bytes) else { return };
    let names: Vec<&str> = (0..graph.len()).map(|node| graph.name(node)).collect();
    assert!(names.iter().all(|name| !name.is_empty()));
    let parts = graph.parts();
    for (node, hops) in graph.hops(0).iter().enumerate() {
        assert_eq!(hops.is_some(), parts[node] == parts[0]);
    }
    // An edge list has no names with spaces, or that look like a comment or like XML.
    let plain =
        |name: &&str| !name.contains(char::is_whitespace) && !name.starts_with(['#', '<', '\u{feff}']);
    if names.iter().all(plain) {
        let again = Graph::parse(edge_list(&graph).as_bytes()).expect("an edge list");
        for node in 0..graph.len() {
            assert_eq!(graph.name(node), again.name(node));
            let mut links = [graph.neighbours(node).to_vec(), again.neighbours(node).to_vec()];
            links.iter_mut().for_each(|links| links.sort_by_key(|link| link.to));
            assert_eq!(links[0], links[1]);
        }
    }
    if graph.len() <= MAX_DRAWN_NODES {
        assert!(Picture::new(&graph, "").to_svg().expect("a picture").ends_with("</svg>\n"));
    }
}

/// Returns whether the bytes are a network.
pub fn loads(bytes: &[u8]) -> bool {
    Graph::parse(bytes).is_ok()
}

/// Writes a network as an edge list.
fn edge_list(graph: &Graph) -> String {
    let mut text: String = (0..graph.len()).map(|node| format!("{}\n", graph.name(node))).collect();
    for node in 0..graph.len() {
        for link in graph.neighbours(node).iter().filter(|link| node < link.to) {
            text += &format!("{} {} {}\n", graph.name(node), graph.name(link.to), link.length);
        }
    }
    text
}
