//! The promises of pictures: well-formed, within their edges, legible, and the same every time.

use std::collections::BTreeSet;
use umbel_net::topology::Graph;
use umbel_net::topology::picture::{MAX_PICTURE_NODES, Picture, Stroke};

/// Returns the elements with this name and class, each as its attributes by name.
fn elements<'a>(
    document: &'a roxmltree::Document<'a>,
    name: &str,
    class: &str,
) -> Vec<roxmltree::Node<'a, 'a>> {
    let is_class =
        |node: &roxmltree::Node| node.attribute("class").unwrap_or("").split(' ').any(|own| own == class);
    document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name)) && is_class(node))
        .collect()
}

fn number(node: roxmltree::Node, attribute: &str) -> f64 {
    node.attribute(attribute).unwrap().parse().unwrap()
}

/// Returns networks of all sizes and shapes, the last one not connected.
fn networks() -> Vec<Graph> {
    let ring: String = (0..40).map(|node| format!("r{node} r{}\n", (node + 1) % 40)).collect();
    let split: String =
        (0..9).map(|part| format!("a{part} b{part}\nb{part} c{part}\nalone{part}\n")).collect();
    vec![
        Graph::parse(b"R1 R2\nR2 R3\nR3 R4\nR2 R5\nR3 R6\nR5 R6\n").unwrap(),
        Graph::abilene(),
        Graph::tree(40, 1).unwrap(),
        Graph::parse(ring.as_bytes()).unwrap(),
        Graph::barabasi_albert(150, 2, 1).unwrap(),
        Graph::new(1, &[]).unwrap(),
        Graph::new(2, &[(0, 1, 1)]).unwrap(),
        Graph::parse(split.as_bytes()).unwrap(),
    ]
}

#[test]
fn every_network_has_a_picture_with_all_nodes_and_links_apart_and_inside() {
    for graph in networks() {
        let path = graph.path(0, graph.len() - 1);
        let picture = Picture::new(&graph, "A title").note("A note").route("a path", &path, Stroke::Main);
        let svg = picture.mark(0, "start").to_svg().unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let root = document.root_element();
        let [width, height] = ["width", "height"].map(|side| number(root, side));
        assert!(width >= 400.0 && height >= 100.0 && width < 3000.0 && height < 3000.0, "{width} {height}");
        let nodes = elements(&document, "circle", "node");
        assert_eq!(nodes.len(), graph.len());
        assert_eq!(elements(&document, "path", "link").len(), graph.links());
        assert_eq!(elements(&document, "path", "head").len(), path.len().saturating_sub(1));
        let places: Vec<[f64; 3]> =
            nodes.iter().map(|node| ["cx", "cy", "r"].map(|of| number(*node, of))).collect();
        for (index, [x, y, r]) in places.iter().enumerate() {
            assert!(x - r >= 0.0 && y - r >= 60.0 && x + r <= width && y + r <= height);
            for [a, b, s] in &places[..index] {
                assert!((x - a).hypot(y - b) > r + s, "two nodes touch in a network of {}", graph.len());
            }
        }
        // Small networks show all names.
        let names: BTreeSet<&str> =
            elements(&document, "text", "name").iter().filter_map(|text| text.text()).collect();
        if graph.len() <= 11 {
            assert!(
                (1..graph.len()).all(|node| names.contains(graph.name(node)) || graph.name(node).is_empty())
            );
        }
        assert!(names.iter().any(|name| name.ends_with("(start)")), "{names:?}");
        assert!(names.len() as f64 > 0.6 * graph.len() as f64, "{} of {}", names.len(), graph.len());
    }
}

#[test]
fn neighbours_are_nearer_than_others() {
    let ring: String = (0..20).map(|node| format!("r{node} r{}\n", (node + 1) % 20)).collect();
    let graph = Graph::parse(ring.as_bytes()).unwrap();
    let svg = Picture::new(&graph, "").to_svg().unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let places: Vec<[f64; 2]> = elements(&document, "circle", "node")
        .iter()
        .map(|node| ["cx", "cy"].map(|of| number(*node, of)))
        .collect();
    let distance = |a: usize, b: usize| (places[a][0] - places[b][0]).hypot(places[a][1] - places[b][1]);
    for node in 0..20 {
        let next = distance(node, (node + 1) % 20);
        assert!(
            (2..19).all(|step| distance(node, (node + step) % 20) > 1.2 * next),
            "the ring is drawn as one"
        );
    }
}

#[test]
fn names_from_files_cannot_leave_their_place() {
    let text = "<graphml><graph><node id='&lt;script&gt;&amp;&quot;'/><node id='\u{202e}\u{4e2d}\u{6587}'/>\
                <edge source='&lt;script&gt;&amp;&quot;' target='\u{202e}\u{4e2d}\u{6587}'/></graph></graphml>";
    let graph = Graph::parse(text.as_bytes()).unwrap();
    let svg = Picture::new(&graph, "</title><script>").mark(0, "<b>\u{0}").to_svg().unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    assert!(!document.descendants().any(|node| node.tag_name().name() == "script"));
    let long = Graph::parse(format!("{} b", "x".repeat(5000)).as_bytes()).unwrap();
    assert!(Picture::new(&long, "").to_svg().unwrap().len() < 6000);
}

#[test]
fn picture_depends_on_the_network_only_and_has_a_limit() {
    let graph = Graph::nsfnet();
    assert_eq!(
        Picture::new(&graph, "a").to_svg().unwrap(),
        Picture::new(&graph.clone(), "a").to_svg().unwrap()
    );
    let large = Graph::tree(1, MAX_PICTURE_NODES as u32).unwrap();
    assert!(Picture::new(&large, "a").to_svg().unwrap_err().to_string().contains("1000"));
}

#[test]
fn broken_links_and_uses_are_drawn_and_explained() {
    let graph = Graph::abilene();
    let picture = Picture::new(&graph, "").cut([3, 0]).uses([([1, 0], 9), ([0, 3], 1)].into_iter());
    let svg = picture.links("loop", vec![[0, 1], [1, 0]], Stroke::Wrong).to_svg().unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    // One of each is in the legend.
    assert_eq!(elements(&document, "path", "cut").len(), 2);
    assert_eq!(elements(&document, "path", "cross").len(), 1);
    let widths: Vec<f64> =
        elements(&document, "path", "link").iter().map(|link| number(*link, "stroke-width")).collect();
    assert_eq!(widths[0], widths[..14].iter().copied().fold(0.0, f64::max), "the link that is used most");
    assert_eq!(elements(&document, "path", "head").len(), 2, "both directions");
}
