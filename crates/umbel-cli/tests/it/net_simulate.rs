//! `umbel net simulate`: loops, routing and header traceback on networks from files.

use crate::shell::Shell;
use serde_json::Value;

const SIMULATIONS: [&str; 3] = ["loops", "routing", "header"];

const EDGES: &str = "# a line is a link\nR1 R2\nR2 R3\nR3 R4\nR2 R5\nR3 R6\nR5 R6\n";

/// Returns the same network as GraphML, with more elements at its end.
fn graphml(more: &str) -> String {
    let nodes: String = (1..7).map(|node| format!("<node id=\"R{node}\"/>\n")).collect();
    let links = [(1, 2), (2, 3), (3, 4), (2, 5), (3, 6), (5, 6)];
    let edges: String =
        links.iter().map(|(a, b)| format!("<edge source=\"R{a}\" target=\"R{b}\"/>\n")).collect();
    format!(
        "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n<graph edgedefault=\"undirected\">\n\
         {nodes}{edges}{more}</graph></graphml>\n"
    )
}

/// Returns a folder with the network in both formats.
fn shell() -> Shell {
    let shell = Shell::new();
    shell.write("net.txt", EDGES);
    shell.write("net.graphml", graphml(""));
    shell
}

/// Returns every comparison with theory in a report.
fn comparisons(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(fields) if fields.contains_key("theory") => vec![value],
        Value::Object(fields) => fields.values().flat_map(comparisons).collect(),
        Value::Array(values) => values.iter().flat_map(comparisons).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn both_formats_give_the_same_report_and_picture() {
    let shell = shell();
    for name in SIMULATIONS {
        let run = |file: &str, svg: &str| {
            shell.run(&["net", "simulate", name, "--topology", file, "--svg", svg]).ok()
        };
        let (lines, xml) = (run("net.txt", "a.svg"), run("net.graphml", "b.svg"));
        assert_eq!(lines.text(), xml.text());
        assert!(lines.text().starts_with("network"), "{}", lines.text());
        assert!(lines.text().contains("6 nodes, 6 links, connected"), "{}", lines.text());
        assert!(lines.text().contains("theory") && lines.text().contains("deviation"));
        assert_eq!(lines.stderr, "");
        let [a, b] = ["a.svg", "b.svg"].map(|svg| String::from_utf8(shell.read(svg)).unwrap());
        assert!(a.starts_with("<svg ") && a.ends_with("</svg>\n") && a == b);
        assert!((1..7).all(|node| a.contains(&format!(">R{node}"))), "every node has its name");
        for svg in ["a.svg", "b.svg"] {
            std::fs::remove_file(shell.path(svg)).unwrap();
        }
    }
}

#[test]
fn measurements_agree_with_theory_for_every_seed() {
    let shell = shell();
    for (name, least) in [("loops", 2), ("routing", 6), ("header", 6)] {
        for seed in ["1", "2", "3"] {
            let args =
                ["net", "simulate", name, "--topology", "net.txt", "--bits", "64", "--json", "--seed", seed];
            let report = shell.run(&args).ok().json();
            assert_eq!(report["network"], serde_json::json!({ "nodes": 6, "links": 6, "parts": 1 }));
            let all = comparisons(&report);
            assert!(all.len() >= least, "{report}");
            for comparison in all {
                // A correct simulation exceeds this in 7 of a million comparisons.
                let deviation = comparison["deviation"].as_f64().expect("a number");
                assert!(deviation.abs() < 4.5, "{name}: {comparison}");
            }
            assert_eq!(report, shell.run(&args).ok().json(), "the seed determines the report");
        }
    }
}

#[test]
fn no_loop_escapes_and_no_document_is_lost() {
    let shell = shell();
    let report = shell.run("net simulate loops --topology net.txt --bits 32 --json").ok().json();
    let loops = &report["loops"];
    assert!(loops["packets"].as_u64() > Some(0) && loops["packets"] == loops["caught"], "{loops}");
    assert!(loops["hops_in_loop"]["most"].as_u64() <= loops["bound"].as_u64(), "{loops}");
    assert_eq!(report["header_bits"], 35, "one bit for a reprieve, two for the failures");
    // Tiny filters promise everything everywhere.
    let report = shell.run("net simulate routing --topology net.txt --bits 16 --json").ok().json();
    assert_eq!((&report["present"]["found"], &report["absent"]["found"]), (&2000.into(), &0.into()));
    assert!(report["present"]["false_promises"].as_u64() > Some(100), "{report}");
    let report = shell.run("net simulate header --topology net.txt --json").ok().json();
    let ways = report["ways"].as_array().unwrap();
    let path = |way: usize| ways[way]["paths_found"].as_u64().unwrap();
    assert_eq!((path(0), path(3)), (1000, 1000), "the plain filter, and the generalised one in order");
    assert!(path(2) < 1000, "the simple rule forgets routers");
}

#[test]
fn an_unknown_node_is_named_with_its_line() {
    let shell = shell();
    shell.write("bad.graphml", graphml("<edge source=\"R1\" target=\"Nowhere\"/>\n"));
    shell.write("self.txt", "a b\nb b\n");
    for name in SIMULATIONS {
        shell.run(&["net", "simulate", name, "--topology", "bad.graphml", "--svg", "x.svg"]).refused(&[
            "bad.graphml, line 15",
            "the edge leads to the unknown node \"Nowhere\"",
            "declare it",
        ]);
        assert!(!shell.path("x.svg").exists());
        shell.run(&["net", "simulate", name, "--topology", "self.txt"]).refused(&["line 2", "itself"]);
        shell.run(&["net", "simulate", name, "--topology", "none.txt"]).refused(&["none.txt"]);
    }
}

#[test]
fn parts_that_are_not_connected_are_reported_and_a_lone_node_is_refused() {
    let shell = Shell::new();
    shell.write("parts.txt", "a b\nb c\nc d\nd a\nx y\nlonely\n");
    shell.write("one.txt", "lonely\n");
    for name in SIMULATIONS {
        let answer =
            shell.run(&["net", "simulate", name, "--topology", "parts.txt", "--svg", "p.svg", "-f"]).ok();
        assert!(answer.text().contains("in 3 parts that are not connected"), "{}", answer.text());
        shell
            .run(&["net", "simulate", name, "--topology", "one.txt"])
            .refused(&["one.txt", "1 node and no links"]);
    }
}

#[test]
fn a_picture_is_replaced_only_if_that_is_asked_for() {
    let shell = shell();
    let line = "net simulate header --topology net.txt -n 10 --svg p.svg";
    shell.write("p.svg", "mine");
    let answer = shell.run(line);
    answer.refused(&["p.svg exists", "-f"]);
    assert_eq!(shell.read("p.svg"), b"mine");
    shell.run(&format!("{line} -f")).ok();
    assert!(shell.read("p.svg").starts_with(b"<svg"));
    shell.run("net simulate header --topology net.txt -f").refused(&["--svg"]);
    let chain: String = (0..1001).map(|node| format!("{node} {}\n", node + 1)).collect();
    shell.write("chain.txt", chain);
    shell
        .run("net simulate loops --topology chain.txt --svg c.svg")
        .refused(&["at most 1000 nodes", "--svg"]);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let shell = shell();
    for (line, part) in [
        ("loops --bits 100", "bits = 100"),
        ("loops --failures 16", "failures = 16"),
        ("loops --reprieves 300", "300"),
        ("routing --bits 0", "bits = 0"),
        ("routing --depth 17", "depth = 17"),
        ("routing -k 0", "hashes = 0"),
        ("routing --documents 0", "documents = 0"),
        ("routing --queries 0", "queries = 0"),
        ("loops --packets 1e12", "packets = 1000000000000"),
        ("header --packets 0", "packets = 0"),
        ("routing --documents 1e9", "documents = 1000000000"),
        ("routing --bits 4000000000 --depth 4000000000", "bits = 4000000000"),
        ("header --bits 33", "bits = 33"),
        ("header --k0 0", "k0 = 0"),
        ("header --k1 9", "k1 = 9"),
    ] {
        shell.run(&format!("net simulate {line} --topology net.txt")).refused(&[part]);
    }
    shell.run("net simulate loops").refused(&["--topology"]);
    assert_eq!(shell.run("net simulate").code, Some(2), "a simulation must be named");
}
