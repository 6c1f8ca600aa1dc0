//! The promises of networks from files: both formats mean the same, every mistake is named with its
//! line, and no input makes the reader panic.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use umbel_net::topology::Graph;

/// Returns GraphML with these nodes and edges inside.
fn graphml(keys: &str, body: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n{keys}\n\
         <graph edgedefault=\"undirected\">\n{body}\n</graph>\n</graphml>\n"
    )
}

fn parse(text: &str) -> Graph {
    Graph::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// Returns the message about a text that is refused.
fn refused(text: &str) -> String {
    let error = Graph::parse(text.as_bytes()).expect_err(text);
    error.to_string()
}

/// Returns the names of the nodes in order.
fn names(graph: &Graph) -> Vec<&str> {
    (0..graph.len()).map(|node| graph.name(node)).collect()
}

/// Returns all links by name, the lower name first, with their lengths.
fn links(graph: &Graph) -> BTreeMap<(&str, &str), u32> {
    let ends = (0..graph.len()).flat_map(|node| graph.neighbours(node).iter().map(move |link| (node, link)));
    ends.filter_map(|(node, link)| {
        let pair = (graph.name(node), graph.name(link.to));
        (pair.0 < pair.1).then_some((pair, link.length))
    })
    .collect()
}

#[test]
fn edge_list_has_links_lengths_comments_and_lone_nodes() {
    let graph = parse("\u{feff}# a line is a link\r\nR1 R2\r\n\r\n  R2\tR3  40 # fibre\nR9\nR3 R1 7");
    assert_eq!(names(&graph), ["R1", "R2", "R3", "R9"]);
    let expected = BTreeMap::from([(("R1", "R2"), 1), (("R2", "R3"), 40), (("R1", "R3"), 7)]);
    assert_eq!((links(&graph), graph.links()), (expected, 3));
    assert!(graph.neighbours(3).is_empty());
    assert_eq!((graph.find("R3"), graph.find("R4")), (Some(2), None));
}

#[test]
fn graphml_is_the_same_network_as_its_edge_list() {
    let keys =
        "<key id=\"d0\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"><default>3</default></key>";
    let body = "<desc>a ring</desc><node id=\"A\"/><node id=\"B\"><data key=\"x\">1</data></node>\n\
                <node id=\"C &amp; D\"/>\n\
                <edge source=\"A\" target=\"B\" directed=\"true\"/>\n\
                <edge id=\"e\" source=\"C &amp; D\" target=\"B\"><data key=\"d0\"> 12.0 </data></edge>\n\
                <edge source=\"B\" target=\"A\"/>";
    let graph = parse(&graphml(keys, body));
    assert_eq!(names(&graph), ["A", "B", "C & D"]);
    assert_eq!(links(&graph), BTreeMap::from([(("A", "B"), 3), (("B", "C & D"), 12)]));
}

#[test]
fn graphml_is_read_with_any_prefix_or_no_namespace() {
    let plain = "<graphml><graph><edge source='a' target='b'/><node id='a'/><node id='b'/></graph></graphml>";
    let prefixed = "<g:graphml xmlns:g='urn:any' xmlns:y='urn:y'><g:graph><g:node id='a'><y:node id='no'/></g:node>\
                    <g:node id='b'/><y:edge source='no' target='no'/><g:edge source='a' target='b'/></g:graph></g:graphml>";
    for text in [plain, prefixed] {
        let graph = parse(text);
        assert_eq!((names(&graph), graph.links()), (vec!["a", "b"], 1), "{text}");
    }
}

#[test]
fn labels_are_names_if_they_stand_for_one_node() {
    let keys = "<key id='l' for='node' attr.name='Label' attr.type='string'/>";
    let node = |id: &str, label: &str| format!("<node id='{id}'><data key='l'>{label}</data></node>");
    let body = [
        node("0", "New\n York"),
        node("1", "?"),
        node("2", "?"),
        node("3", "4"),
        node("4", "Oslo"),
        "<node id='5'/>".into(),
    ];
    let edge = "<edge source='0' target='4'/>";
    let graph = parse(&graphml(keys, &format!("{}{edge}", body.concat())));
    assert_eq!(names(&graph), ["New York", "1", "2", "3", "Oslo", "5"]);
    assert_eq!(graph.find("Oslo"), Some(4));

    // The label that yEd draws is in an element of its own.
    let yed = "<node id='n0'><data key='d5'><y:ShapeNode xmlns:y='urn:y'><y:NodeLabel>Rome<y:Model/></y:NodeLabel>\
               </y:ShapeNode></data></node>";
    assert_eq!(names(&parse(&graphml("", yed))), ["Rome"]);
}

#[test]
fn lengths_with_decimals_are_stored_in_thousandths() {
    let graph = parse("a b 0.25\nb c 2\nc d 1e1");
    let expected = BTreeMap::from([(("a", "b"), 250), (("b", "c"), 2000), (("c", "d"), 10_000)]);
    assert_eq!(links(&graph), expected);
    // The first key in the order of the documentation counts, not the first one of the file.
    let keys = "<key id='w' for='edge' attr.name='weight'/><key id='n' for='node' attr.name='length'/>\
                <key id='l' for='all' attr.name='LENGTH'/>";
    let body = "<node id='a'/><node id='b'/>\
                <edge source='a' target='b'><data key='w'>9</data><data key='l'>4</data></edge>";
    assert_eq!(links(&parse(&graphml(keys, body))), BTreeMap::from([(("a", "b"), 4)]));
}

#[test]
fn mistakes_are_named_with_their_line() {
    let xml = |body: &str| graphml("<key id='w' for='edge' attr.name='weight'/>", body);
    let nodes = "<node id='a'/><node id='b'/>\n";
    for (text, line, parts) in [
        ("a b\nb b\n".into(), 2, &["\"b\"", "itself"][..]),
        ("a b\n\na c x\n".into(), 3, &["\"x\"", "above 0"]),
        ("a b -1".into(), 1, &["\"-1\""]),
        ("a b 0".into(), 1, &["\"0\""]),
        ("a b nan".into(), 1, &["\"nan\""]),
        ("a b inf".into(), 1, &["\"inf\""]),
        ("a b 1\nb c 5000000000".into(), 2, &["5000000000", "4294967295"]),
        ("a b 1\nb c 0.0001".into(), 2, &["0.0001", "another unit"]),
        ("a b 1\nb c\nb a 2\n".into(), 3, &["\"a\"", "\"b\"", "2", "1 in line 1"]),
        ("New York Boston 5\n".into(), 1, &["4 words", "GraphML"]),
        ("a b\nc\u{7}d a\n".into(), 2, &["c\\u{7}d"]),
        (xml(&format!("{nodes}<edge source='a' target='Nowhere'/>")), 6, &["\"Nowhere\"", "<node>"]),
        (xml(&format!("{nodes}<edge source='a'/>")), 6, &["<edge>", "target"]),
        (xml(&format!("{nodes}\n<edge source='b' target='b'/>")), 7, &["\"b\"", "itself"]),
        (
            xml(&format!("{nodes}<edge source='a' target='b'><data key='w'>far</data></edge>")),
            6,
            &["\"far\""],
        ),
        (xml("<node id='a'/>\n<node id='a'/>"), 6, &["\"a\"", "twice"]),
        (xml("<node/>"), 5, &["<node>", "id"]),
        (xml("<node id=''/>"), 5, &["\"\""]),
        (xml("<node id='a'>\n<graph/></node>"), 6, &["\"a\"", "nested"]),
        (xml(&format!("{nodes}<edge id='e' source='a' target='b'><graph/></edge>")), 6, &["\"e\"", "nested"]),
        (xml(&format!("{nodes}<hyperedge/>")), 6, &["<hyperedge>"]),
        (xml("</graph>\n<graph>"), 6, &["second <graph>"]),
        (xml("<node id='a'>"), 6, &["well-formed"]),
        (xml("<node id='&bomb;'/>"), 5, &["well-formed", "bomb"]),
        ("<!DOCTYPE graphml [<!ENTITY a 'x'>]>\n<graphml/>".into(), 1, &["<!DOCTYPE"]),
        ("\n<gexf/>".into(), 2, &["<gexf>", "<graphml>"]),
        ("<graphml></graphml>".into(), 1, &["no <graph>"]),
    ] {
        let line = format!("cannot read the network, line {line}: ");
        // A byte order mark makes no difference.
        for text in [text.clone(), format!("\u{feff}{text}")] {
            let message = refused(&text);
            assert!(message.starts_with(&line), "{message}\n{text}");
            assert!(parts.iter().all(|part| message.contains(part)), "{message}\n{text}");
        }
    }
    for text in ["", "# nothing\n\n", "<graphml><graph/></graphml>"] {
        let message = refused(text);
        assert!(message.starts_with("cannot read the network: it has no nodes"), "{message}");
    }
    let message = Graph::parse(b"a b\n\xd4\xc3\xb2\xa1").unwrap_err().to_string();
    assert!(message.contains("line 2") && message.contains("UTF-8"), "{message}");
}

#[test]
fn file_is_named_in_the_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.txt");
    std::fs::write(&path, "a b\nb b\n").unwrap();
    let message = Graph::open(&path).unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("cannot read the network {}, line 2: ", path.display())),
        "{message}"
    );
    std::fs::write(&path, "a b\n").unwrap();
    assert_eq!(Graph::open(&path).unwrap().links(), 1);
}

#[test]
fn hostile_files_are_read_in_linear_time_and_without_recursion() {
    // A star, in which a search of the links of the hub would take hours.
    let star: String = (0..200_000).map(|leaf| format!("hub {leaf}\n")).collect();
    assert_eq!(parse(&star).links(), 200_000);
    let deep = format!("<graphml><graph>{}", "<node>".repeat(500_000));
    assert!(refused(&deep).contains("well-formed"));
    let closed = "<node id='a'>".to_owned() + &"<x>".repeat(100_000) + &"</x>".repeat(100_000) + "</node>";
    assert_eq!(names(&parse(&graphml("", &closed))), ["a"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, rng_seed: RngSeed::Fixed(8), failure_persistence: None, ..Default::default() })]

    /// Any links in any order are what both formats read.
    #[test]
    fn both_formats_read_the_links_that_were_written(
        wanted in prop::collection::btree_map((0usize..30, 0usize..30), 1u32..1000, 0..60),
    ) {
        let wanted: BTreeMap<_, _> = wanted.into_iter().filter(|((a, b), _)| a < b).collect();
        let nodes: String = (0..30).map(|node| format!("n{node:02}\n")).collect();
        let lines: String = wanted.iter().map(|((a, b), length)| format!("n{b:02} n{a:02} {length}\n")).collect();
        let declared: String = (0..30).map(|node| format!("<node id='n{node:02}'/>")).collect();
        let edges: String = wanted
            .iter()
            .map(|((a, b), length)| {
                format!("<edge source='n{a:02}' target='n{b:02}'><data key='w'>{length}</data></edge>")
            })
            .collect();
        let xml = graphml("<key id='w' for='edge' attr.name='weight'/>", &(edges + &declared));
        for graph in [parse(&(nodes + &lines)), parse(&xml)] {
            prop_assert_eq!(graph.len(), 30);
            let read: BTreeMap<_, _> = links(&graph)
                .into_iter()
                .map(|((a, b), length)| ((graph.find(a).unwrap(), graph.find(b).unwrap()), length))
                .collect();
            prop_assert_eq!(read, wanted.clone());
        }
    }

    /// Damaged GraphML is read or refused, and never panics.
    #[test]
    fn no_damage_makes_the_reader_panic(at in 0usize..300, byte: u8, cut in 0usize..300, noise: Vec<u8>) {
        let body = "<node id='a'/><node id='b'/><edge source='a' target='b'><data key='w'>4</data></edge>";
        let mut bytes = graphml("<key id='w' for='edge' attr.name='weight'/>", body).into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = Graph::parse(&bytes);
        bytes.truncate(cut);
        let _ = Graph::parse(&bytes);
        let _ = Graph::parse(&noise);
    }
}
