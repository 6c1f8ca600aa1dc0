//! `umbel net flows`: the largest flows of a capture, estimates of their sizes, and the errors.

use crate::captures::{pcap, real_captures, udp};
use crate::shell::{Shell, gzip, mix, number};
use serde_json::Value;
use umbel_net::capture::Link;

/// Returns a capture of 20 000 small flows and one of 2000 packets, in random order.
fn capture() -> Vec<u8> {
    let small = (0..20_000u32).flat_map(|flow| std::iter::repeat_n(flow, 1 + flow as usize % 3));
    let mut packets: Vec<u32> = small.chain(std::iter::repeat_n(20_000, 2000)).collect();
    packets.sort_by_cached_key(|flow| *flow);
    let mut keyed: Vec<(u64, u32)> = (0..).map(mix).zip(packets).collect();
    keyed.sort_unstable();
    let frame = |flow: u32| {
        let [_, a, b, c] = flow.to_be_bytes();
        udp([10, a, b, c].into(), [192, 0, 2, 1].into(), (1000, 53), b"query")
    };
    pcap(Link::ETHERNET, keyed.into_iter().map(|(_, flow)| frame(flow)))
}

const PACKETS: u64 = 20_000 + 6666 + 2 * 6666 + 1 + 2000;

#[test]
fn the_largest_flow_is_listed_with_limits() {
    let shell = Shell::new();
    shell.write("c.pcap", capture());
    let answer = shell.run("net flows c.pcap --seed 0 --top 3").ok();
    let lines: Vec<Vec<&str>> = answer.text().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["flow", "packets", "from", "to"]);
    // Three columns name the flow.
    assert_eq!(lines[1][..3], ["10.0.78.32:1000", "192.0.2.1:53", "udp"]);
    let numbers: Vec<f64> = lines[1][3..].iter().map(|word| word.parse().unwrap()).collect();
    let [estimate, low, high] = numbers[..] else { panic!("{numbers:?}") };
    assert!(low < 2000.0 && 2000.0 < high && (1000.0..4000.0).contains(&estimate), "{numbers:?}");
    assert_eq!(lines[4], Vec::<&str>::new(), "and two others");
    assert!(answer.text().contains(&format!("{PACKETS}")), "{}", answer.text());
    assert_eq!(answer.stderr, "");
}

#[test]
fn the_hash_is_secret_unless_it_is_seeded() {
    let shell = Shell::new();
    shell.write("c.pcap", capture());
    let run = |options: &str| shell.run(&format!("net flows c.pcap --json {options}")).ok().text().to_owned();
    // Among ten estimates, at least one differs.
    assert_ne!(run(""), run(""));
    assert_eq!(run("--seed 7"), run("--seed 7"));
    assert_ne!(run("--seed 7"), run("--seed 8"));
}

#[test]
fn the_key_determines_which_packets_form_a_flow() {
    let shell = Shell::new();
    shell.write("c.pcap", capture());
    for (key, name) in [
        ("5tuple", "10.0.78.32:1000 192.0.2.1:53 udp"),
        ("src", "10.0.78.32"),
        ("dst", "192.0.2.1"),
        ("pair", "10.0.78.32 192.0.2.1"),
        ("src,dst,proto,dport", "10.0.78.32 -> 192.0.2.1 udp :53"),
    ] {
        let facts = shell.run(&["net", "flows", "c.pcap", "--key", key, "--json", "--exact"]).ok().json();
        assert_eq!(facts["key"], key);
        assert_eq!(facts["largest"][0]["flow"], name);
        let expected = if key == "dst" { PACKETS } else { 2000 };
        assert_eq!(facts["largest"][0]["exact"], expected);
        assert_eq!(facts["comparison"]["flows"], if key == "dst" { 1 } else { 20_001 });
    }
    // All sources are in one network, and the order of the list does not matter.
    let facts = shell.run("net flows c.pcap --key dport,src/16 --json --exact").ok().json();
    assert_eq!((&facts["key"], &facts["comparison"]["flows"]), (&"src/16,dport".into(), &1.into()));
    assert_eq!(facts["largest"][0]["flow"], "10.0.0.0/16 :53");
    shell.run("net flows c.pcap --key port").refused(&["port", "5tuple", "pair", "sport or dport"]);
    shell.run("net flows c.pcap --key src,dst,src/8").refused(&["src/8", "once"]);
}

#[test]
fn errors_are_reported_by_decade_at_equal_memory() {
    let shell = Shell::new();
    shell.write("c.pcap", capture());
    let facts = shell.run("net flows c.pcap --seed 0 --exact --json --memory 48KiB").ok().json();
    let bytes = number(&facts, "bytes");
    assert!((40_000.0..=49_152.0).contains(&bytes), "{bytes}");
    let comparison = &facts["comparison"];
    assert_eq!(number(comparison, "counters"), (bytes / 16.0).floor());
    assert!(number(comparison, "hash_table_bytes") > 20.0 * bytes);
    let decades = comparison["decades"].as_array().unwrap();
    let flows: Vec<u64> = decades.iter().map(|decade| decade["flows"].as_u64().unwrap()).collect();
    assert_eq!(flows, [20_000, 0, 0, 1]);
    let few = &decades[0];
    let error = |of: &str, what: &str| few[of][what].as_f64().unwrap();
    assert!(error("filter", "bias").abs() < 0.1 && error("filter", "spread") < 1.0, "{few}");
    assert!(error("sample", "spread") > 5.0, "{few}");
    assert!(error("table", "bias") < -0.7 && number(few, "counted") < 0.3, "{few}");
    assert!(number(few, "inside") > 0.9, "{few}");

    let answer = shell.run("net flows c.pcap --exact").ok();
    let text = answer.text();
    for word in
        ["exactly", "hash table", "sample of 1 %", "exact counters", "1 to 9", "1000 to 9999", "in limits"]
    {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn a_pipe_and_a_compressed_file_give_the_same_result() {
    let shell = Shell::new();
    let capture = capture();
    shell.write("c.pcap", &capture);
    shell.write("c.pcap.gz", gzip(&capture));
    let expected = shell.run("net flows c.pcap --seed 0 -n 50000").ok().text().to_owned();
    assert_eq!(shell.run("net flows c.pcap.gz --seed 0 -n 50000").ok().text(), expected);
    assert_eq!(shell.pipe("net flows - --seed 0 -n 50000", &capture).ok().text(), expected);
    assert_eq!(shell.pipe("net flows - --seed 0 -n 50000", gzip(&capture)).ok().text(), expected);
    // More packets than the filter is sized for.
    let answer = shell.pipe("net flows - -n 1000", &capture).code(0);
    assert!(answer.stderr.contains("more than the 1000"), "{}", answer.stderr);
}

#[test]
fn a_capture_cut_in_the_middle_is_counted_up_to_the_cut() {
    let shell = Shell::new();
    let capture = capture();
    shell.write("cut.pcap", &capture[..50_001]);
    let answer = shell.run("net flows cut.pcap --json").code(0);
    assert!(answer.stderr.contains("cut.pcap is truncated"), "{}", answer.stderr);
    // Each frame of 47 bytes has a header of 16 bytes.
    assert_eq!(answer.json()["packets"], (50_001 - 24) / (16 + 47));
    let answer = shell.pipe("net flows -", &capture[..50_001]).code(0);
    assert!(answer.stderr.contains("standard input is truncated"), "{}", answer.stderr);
}

#[test]
fn the_exit_code_is_1_without_packets_and_2_without_a_capture() {
    let shell = Shell::new();
    shell.write("empty.pcap", pcap(Link::ETHERNET, []));
    shell.run("net flows empty.pcap").code(1);
    shell.write("strange.pcap", pcap(Link(105), [vec![0; 60]]));
    let answer = shell.run("net flows strange.pcap").code(1);
    assert!(answer.stderr.contains("1 unknown link type"), "{}", answer.stderr);
    shell.write("text", "not a capture\n");
    shell.run("net flows text").failed(&["text", "neither pcap nor pcapng"]);
    shell.run("net flows nowhere").failed(&["nowhere"]);
    shell.run("net flows empty.pcap --memory 0").refused(&[]);
}

#[test]
fn real_captures_are_counted() {
    let shell = Shell::new();
    let mut flows = 0;
    for path in real_captures().into_iter().step_by(8) {
        let path = path.to_str().unwrap();
        let answer = shell.run(&["net", "flows", path, "--exact", "--json"]);
        let facts: Value = answer.json();
        let largest = facts["largest"].as_array().unwrap();
        let exact: Vec<u64> = largest.iter().map(|flow| flow["exact"].as_u64().unwrap()).collect();
        assert!(exact.is_sorted_by(|a, b| a >= b), "{path}: {exact:?}");
        assert!(exact.iter().sum::<u64>() <= facts["packets"].as_u64().unwrap());
        flows += exact.len();
    }
    assert!(flows > 20, "{flows}");
}
