//! `umbel net attribute` finds every pair that carried an excerpt, in a store that another process
//! recorded, and names epochs that cannot be judged or read.

use crate::captures::{pcap, tcp, udp};
use crate::shell::{Answer, Shell, mix};
use serde_json::Value;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use umbel::Hasher;
use umbel_net::capture::{Link, Timestamp, Writer};

/// Returns bytes that occur nowhere else.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| mix(seed << 32 | i) as u8).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn datagram(source: &str, destination: &str, payload: &[u8]) -> Vec<u8> {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    udp(address(source), address(destination), (1000, 53), payload)
}

/// Returns 200 packets of 500 bytes, two seconds apart, between 20 hosts.
fn capture() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), Link::ETHERNET).unwrap();
    for number in 0..200 {
        let frame = datagram(&format!("10.0.0.{}", 1 + number % 20), "192.0.2.1", &bytes(number, 500));
        writer.write(Timestamp::from_secs(1_700_000_000 + 2 * number), &frame).unwrap();
    }
    writer.into_inner()
}

/// Returns a shell with this capture, recorded with these options.
fn recorded(capture: Vec<u8>, args: &str) -> Shell {
    let shell = Shell::new();
    shell.write("c.pcap", capture);
    shell.run(&format!("net record c.pcap -o store --seed 1 {args}")).ok();
    shell
}

fn ask(shell: &Shell, excerpt: &[u8], args: &str) -> Answer {
    shell.pipe(&format!("net attribute store --excerpt - {args}"), excerpt)
}

/// Returns the pairs in a JSON report.
fn pairs(facts: &Value) -> Vec<(String, String)> {
    let host = |finding: &Value, end: &str| finding[end].as_str().unwrap_or("unlisted").to_owned();
    let findings = facts["findings"].as_array().unwrap().iter();
    findings.map(|finding| (host(finding, "source"), host(finding, "destination"))).collect()
}

#[test]
fn another_process_finds_the_pair_that_carried_the_excerpt() {
    let shell = recorded(capture(), "");
    let answer = ask(&shell, &bytes(77, 500)[100..300], "").code(0);
    let lines: Vec<&str> = answer.text().lines().collect();
    let words: Vec<&str> = lines[0].split_whitespace().collect();
    let headings = "source destination from to offset blocks not compared by chance";
    assert_eq!(words.join(" "), headings);
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(words[..2], ["10.0.0.18", "192.0.2.1"]);
    // The pair was active from the 18th packet to the 198th.
    assert!("2023-11-14T22:13:20Z" < words[2] && words[2] <= "2023-11-14T22:13:54Z", "{}", lines[1]);
    assert!("2023-11-14T22:19:54Z" <= words[3] && words[3] < "2023-11-14T22:20:00Z", "{}", lines[1]);
    // Blocks begin at byte 128, halves at byte 112: 12 bytes before and 12 after 176 are not part
    // of a whole one.
    assert_eq!(words[4..8], ["100", "5", "24", "bytes"]);
    assert!(words[8].parse::<f64>().unwrap() < 1e-6, "{}", lines[1]);
    assert_eq!(lines.len(), 2);
    assert!(answer.stderr.starts_with("1 finding in 1 epoch; "), "{}", answer.stderr);

    let facts = ask(&shell, &bytes(77, 500)[100..300], "--json").ok().json();
    assert_eq!((&facts["epochs_searched"], &facts["epochs_unread"]), (&1.into(), &0.into()));
    assert!(facts["expected_by_chance"].as_f64().unwrap() < 1e-6);
    let finding = &facts["findings"][0];
    for (name, value) in [
        ("source", Value::from("10.0.0.18")),
        ("destination", "192.0.2.1".into()),
        ("offset", 100.into()),
        ("modulo", Value::Null),
        ("places", 1.into()),
        ("blocks", 5.into()),
        ("not_compared", 24.into()),
        ("trust", Value::Null),
        ("epoch", "00000001.epoch".into()),
    ] {
        assert_eq!(finding[name], value, "{name} in {finding}");
    }

    let answer = ask(&shell, &bytes(7777, 200), "").code(1);
    assert_eq!(answer.text(), "");
    assert!(answer.stderr.starts_with("0 findings in 1 epoch; "), "{}", answer.stderr);
    let facts = ask(&shell, &bytes(7777, 200), "--json").code(1).json();
    assert_eq!(facts["findings"], Value::Array(Vec::new()));
}

#[test]
fn an_excerpt_comes_from_a_file_a_pipe_or_the_command_line() {
    let shell = recorded(capture(), "");
    let excerpt = &bytes(3, 500)[11..111];
    shell.write("excerpt", excerpt);
    let expected = shell.run("net attribute store --excerpt excerpt").code(0);
    let written = hex(excerpt);
    let spaced = format!(" {}\n{} ", &written[..20], &written[20..]).to_uppercase();
    for hex in [&written, &spaced] {
        let answer = shell.run(&["net", "attribute", "store", "--excerpt-hex", hex]).code(0);
        assert_eq!(answer.text(), expected.text());
    }
    for wrong in [&written[1..], "0x0a", "zz", &format!("{written} ä")] {
        shell
            .run(&["net", "attribute", "store", "--excerpt-hex", wrong])
            .refused(&["--excerpt-hex", "two digits"]);
    }
    shell.run("net attribute store").refused(&["--excerpt"]);
    shell.run("net attribute store --excerpt excerpt --excerpt-hex 00").refused(&["--excerpt-hex"]);
    shell.run("net attribute store --excerpt excerpt --document excerpt").refused(&["--document"]);
    shell.run("net attribute store --excerpt nowhere").refused(&["nowhere"]);
    shell.run("net attribute store --excerpt store").refused(&["store is a directory"]);
}

#[test]
fn an_excerpt_that_is_too_short_is_refused_with_the_reason() {
    for (args, needed) in [
        ("--block 32", 63),
        ("--method hierarchical --block 64", 127),
        ("--method winnowing", 135),
        ("--method winnowing --block 16", 39),
    ] {
        let shell = recorded(capture(), args);
        let excerpt = &bytes(5, 500)[3..3 + needed];
        for short in [0, 1, needed - 1] {
            let answer = ask(&shell, &excerpt[..short], "");
            answer.refused(&[&format!("{short} bytes"), &format!("at least {needed} bytes"), "whole block"]);
        }
        let facts = ask(&shell, excerpt, "--json").code(0).json();
        assert!(pairs(&facts).contains(&("10.0.0.6".into(), "192.0.2.1".into())), "{args}: {facts}");
    }
    let shell = recorded(capture(), "");
    shell.pipe("net attribute store --document -", bytes(5, 94)).refused(&["94 bytes", "at least 95 bytes"]);
}

#[test]
fn every_method_finds_it_at_every_alignment() {
    for method in ["block", "hierarchical", "winnowing"] {
        let shell = recorded(capture(), &format!("--method {method} --epoch 60s"));
        for at in 0..40 {
            let facts = ask(&shell, &bytes(at, 500)[at as usize..at as usize + 400], "--json").ok().json();
            let source = format!("10.0.0.{}", 1 + at % 20);
            assert!(pairs(&facts).iter().any(|pair| pair.0 == source), "{method} at {at}: {facts}");
            assert!(facts["expected_by_chance"].as_f64().unwrap() < 0.05, "{method}: {facts}");
            let offset = &facts["findings"][0]["offset"];
            assert_eq!(*offset, if method == "winnowing" { Value::Null } else { at.into() }, "{facts}");
        }
        let answer = ask(&shell, &bytes(9, 500)[..400], "").code(0);
        let offset = answer.text().lines().nth(1).unwrap().split_whitespace().nth(4).unwrap();
        assert_eq!(offset, if method == "winnowing" { "?" } else { "0" });
    }
}

#[test]
fn times_choose_among_epochs() {
    let shell = recorded(capture(), "--epoch 60s");
    // Packet 77 was sent at 22:15:54.
    let excerpt = bytes(77, 500);
    let searched = |args: &str, code| {
        let facts = ask(&shell, &excerpt, &format!("--json {args}")).code(code).json();
        facts["epochs_searched"].as_u64().unwrap()
    };
    assert_eq!(searched("", 0), 7);
    assert_eq!(searched("--from 2023-11-14T22:15:54Z --to 2023-11-14T22:15:54Z", 0), 1);
    assert_eq!(searched("--from 1700000154 --to 1700000154", 0), 1);
    assert_eq!(searched("--from 2023-11-14", 0), 7);
    assert_eq!(searched("--to 2023-11-14T22:14:59Z", 1), 2);
    assert_eq!(searched("--from 2023-11-14T22:16:00Z", 1), 4);
    assert_eq!(searched("--from 2024-01-01", 1), 0);
    let answer = ask(&shell, &excerpt, "--from 2024-01-01").code(1);
    assert_eq!(answer.stderr, "0 findings in 0 epochs; 0 to be expected by chance\n");
    ask(&shell, &excerpt, "--from 2024-01-01 --to 2023-01-01").refused(&["--from", "after --to"]);
    for wrong in
        ["yesterday", "2023-13-01", "2023-02-30", "2023-11-14T25:00:00Z", "-1", "", "99999999999999999999"]
    {
        let option = format!("--from={wrong}");
        shell.run(&["net", "attribute", "store", "--excerpt", "c.pcap", &option]).refused(&["--from"]);
    }
    let answer = shell.pipe("net attribute store --document - --from 2024-01-01", &excerpt).code(1);
    assert!(answer.stderr.contains("no epoch of this time"), "{}", answer.stderr);
    assert!(!answer.stderr.contains("-0"), "{}", answer.stderr);
}

/// A packet from a local host, to one, and between others; for both address families, and for IPv4
/// in IPv6.
#[test]
fn local_networks_determine_the_trust_in_a_source() {
    let cases = [
        ("10.0.0.1", "192.0.2.1", "local source"),
        ("192.0.2.1", "10.0.0.1", "foreign source, local destination"),
        ("192.0.2.1", "198.51.100.1", "foreign source"),
        ("2001:db8::1", "2001:db9::1", "local source"),
        ("2001:db9::1", "2001:db8::1", "foreign source, local destination"),
        ("::ffff:10.0.0.7", "2001:db9::1", "local source"),
    ];
    let frames = cases.iter().zip(0..).map(|((from, to, _), number)| datagram(from, to, &bytes(number, 300)));
    let capture = pcap(Link::ETHERNET, frames);
    let local = "--local 10.0.0.0/8 --local 2001:db8::/32";
    let trust = |shell: &Shell, number: u64, args: &str| {
        let facts = ask(shell, &bytes(number, 300), &format!("--json {args}")).ok().json();
        assert_eq!(facts["findings"].as_array().unwrap().len(), 1, "{facts}");
        facts["findings"][0]["trust"].clone()
    };
    let (unknown, known) = (recorded(capture.clone(), ""), recorded(capture, local));
    for ((from, _, expected), number) in cases.iter().zip(0..) {
        assert_eq!(trust(&unknown, number, ""), Value::Null);
        assert_eq!(trust(&unknown, number, local), *expected, "{from}");
        assert_eq!(trust(&known, number, ""), *expected, "{from}");
        let answer = ask(&known, &bytes(number, 300), "").code(0);
        let lines: Vec<&str> = answer.text().lines().collect();
        assert!(lines[0].ends_with("  trust") && lines[1].ends_with(&format!("  {expected}")), "{lines:?}");
    }
    // The option of this command overrides the recorded networks.
    assert_eq!(trust(&known, 0, "--local 192.0.2.0/24"), "foreign source, local destination");
    assert_eq!(trust(&known, 0, "--local 0.0.0.0/0"), "local source");
    assert_eq!(trust(&known, 3, "--local 0.0.0.0/0"), "foreign source", "IPv4 is not IPv6");
    ask(&known, &bytes(0, 300), "--local 10.0.0.0/99").refused(&["--local"]);
}

#[test]
fn only_parts_of_a_document_that_left_the_network_are_reported() {
    let document = bytes(1, 20_000);
    let sent = |from: &str, to: &str, range: std::ops::Range<usize>| datagram(from, to, &document[range]);
    let shell = Shell::new();
    shell.write("document", &document);
    let inside = [
        sent("10.0.0.1", "10.0.0.2", 0..1400),
        sent("10.0.0.1", "10.0.0.2", 1400..2800),
        datagram("10.0.0.1", "192.0.2.1", &bytes(2, 1000)),
    ];
    // Inside other bytes, so that it is not aligned to blocks.
    let wrapped = [&bytes(3, 77)[..], &document[5001..6001], &bytes(4, 77)].concat();
    let outside = [sent("10.0.0.1", "192.0.2.1", 1000..2003), datagram("10.0.0.9", "192.0.2.9", &wrapped)];
    shell.write("inside.pcap", pcap(Link::ETHERNET, inside.clone()));
    shell.write("all.pcap", pcap(Link::ETHERNET, inside.into_iter().chain(outside)));
    for (method, block) in [("block", 32), ("hierarchical", 32), ("winnowing", 64)] {
        let store = |capture: &str, args: &str| {
            let store = format!("{capture}-{method}{}", args.len());
            shell
                .run(&format!(
                    "net record {capture}.pcap -o {store} --method {method} --bits-per-block 50 --seed 1 {args}"
                ))
                .ok();
            store
        };
        let ask =
            |store: &str, args: &str| shell.run(&format!("net attribute {store} --document document {args}"));
        let known = store("all", "--local 10.0.0.0/8");
        let facts = ask(&known, "--json").ok().json();
        assert_eq!(facts["stayed_inside"], 1, "{facts}");
        assert_eq!(facts["document_bytes"], 20_000);
        let found = pairs(&facts);
        let hosts = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        assert_eq!(found.len(), 2, "{facts}");
        for ((from, to), start, end) in
            [(hosts("10.0.0.1", "192.0.2.1"), 1000, 2003), (hosts("10.0.0.9", "192.0.2.9"), 5001, 6001)]
        {
            let at = found.iter().position(|pair| *pair == (from.clone(), to.clone())).unwrap();
            let ranges = facts["findings"][at]["ranges"].as_array().unwrap();
            let ends = |range: &Value| [range[0].as_u64().unwrap(), range[1].as_u64().unwrap()];
            let [[first, last]] = ranges.iter().map(ends).collect::<Vec<_>>()[..] else { panic!("{facts}") };
            // Bytes that are not part of a whole block cannot be found.
            assert!((start..start + 2 * block).contains(&first), "{method}: {facts}");
            assert!((end - 2 * block..=end).contains(&last), "{method}: {facts}");
            assert_eq!(facts["findings"][at]["bytes"], last - first);
            assert_eq!(facts["findings"][at]["trust"], "local source");
        }
        let answer = ask(&known, "").code(0);
        assert!(answer.text().starts_with("source"), "{}", answer.text());
        assert_eq!(answer.text().lines().count(), 3);
        assert!(answer.stderr.contains(
            "of 20000 bytes of the document left the network, in 2 findings; 1 finding stayed inside"
        ));
        // Without local networks, everything is reported.
        let answer = ask(&store("all", ""), "").code(0);
        assert_eq!(answer.text().lines().count(), 4);
        assert!(
            answer.stderr.contains("of the document passed, in 3 findings; parts of"),
            "{}",
            answer.stderr
        );
        // Nothing left the network.
        let answer = ask(&store("inside", ""), "--local 10.0.0.0/8").code(1);
        assert_eq!(answer.text(), "");
        assert!(
            answer.stderr.starts_with("0 of 20000 bytes of the document left the network"),
            "{}",
            answer.stderr
        );
        assert!(answer.stderr.contains("1 finding stayed inside"), "{}", answer.stderr);
    }
}

#[test]
fn splitting_a_text_hides_it_from_packets_but_not_from_streams() {
    let text = bytes(1, 3000);
    let (from, to, ports) = ([10, 0, 0, 1], [192, 0, 2, 1], (1000, 80));
    let mut frames = vec![tcp(from, to, ports, 0, "S", b"")];
    let segments = text.chunks(7).zip((1..).step_by(7));
    frames.extend(segments.map(|(bytes, seq)| tcp(from, to, ports, seq, "", bytes)));
    frames.extend((0..20).map(|number| datagram("10.0.0.3", "10.0.0.4", &bytes(100 + number, 500))));
    let capture = pcap(Link::ETHERNET, frames);
    for method in ["block", "hierarchical", "winnowing"] {
        let hidden = recorded(capture.clone(), &format!("--method {method}"));
        ask(&hidden, &text[1000..1400], "").code(1);
        for epoch in ["full", "100ms"] {
            let shell = recorded(capture.clone(), &format!("--streams --method {method} --epoch {epoch}"));
            for at in [0, 1, 31, 444, 1000, 2600] {
                let facts = ask(&shell, &text[at..at + 400], "--json").ok().json();
                let expected = ("10.0.0.1".to_owned(), "192.0.2.1".to_owned());
                assert!(pairs(&facts).contains(&expected), "{method}, epoch {epoch}, at {at}: {facts}");
            }
            if method == "block" {
                let answer = ask(&shell, &text[2100..2500], "").code(0);
                assert!(answer.text().contains("  52 mod 2048  "), "{}", answer.text());
            }
            shell.write("document", &text);
            shell.run("net attribute store --document document").code(0);
        }
    }
}

#[test]
fn damaged_files_of_a_store_are_named_and_the_others_searched() {
    let shell = recorded(capture(), "--epoch 60s");
    let whole = shell.read("store/00000004.epoch");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    let mut newer = whole.clone();
    newer[8] = 3;
    for (number, bytes) in [
        (11, &whole[..whole.len() / 2]),
        (12, &whole[..5]),
        (13, &[][..]),
        (14, &damaged),
        (15, &newer),
        (16, b"dear diary, this is no epoch of a store"),
    ] {
        shell.write(&format!("store/000000{number}.epoch"), bytes);
    }
    std::fs::create_dir(shell.path("store/00000017.epoch")).unwrap();
    // A pipe without a writer.
    assert!(shell.program("mkfifo").arg("store/00000018.epoch").status().unwrap().success());
    shell.write("store/notes.txt", "not an epoch, and not taken for one");
    let check = |answer: Answer| {
        for (number, why) in
            [(11, "truncated"), (12, "truncated"), (13, "truncated"), (14, "damaged"), (15, "version 3")]
                .into_iter()
                .chain([(16, "not an epoch"), (17, "is a directory"), (18, "not a regular file")])
        {
            let name = format!("000000{number}.epoch");
            let line = answer.stderr.lines().find(|line| line.contains(&name)).unwrap_or_default();
            assert!(line.contains(why), "{name}: {}", answer.stderr);
        }
        assert!(!answer.stderr.contains("notes"), "{}", answer.stderr);
        answer
    };
    let found = check(ask(&shell, &bytes(77, 500), "--json").code(0)).json();
    assert_eq!((&found["epochs_searched"], &found["epochs_unread"]), (&7.into(), &8.into()));
    assert_eq!(pairs(&found), [("10.0.0.18".to_owned(), "192.0.2.1".to_owned())]);
    // The unreadable epochs might contain the excerpt.
    check(ask(&shell, &bytes(7777, 500), "").code(2));
    check(shell.pipe("net attribute store --document -", bytes(7777, 500)).code(2));

    shell.run("net attribute nowhere --excerpt c.pcap").refused(&["nowhere"]);
    shell.run("net attribute c.pcap --excerpt c.pcap").refused(&["c.pcap"]);
    std::fs::create_dir(shell.path("mine")).unwrap();
    shell.write("mine/letter.txt", "dear");
    shell.run("net attribute mine --excerpt c.pcap").refused(&["mine", "no epochs"]);
}

/// Recomputes the checksums of a changed epoch, so that only its contents are invalid.
fn refit(mut epoch: Vec<u8>) -> Vec<u8> {
    const HEAD: usize = 24 + 16 * 8;
    let sum = |bytes: &[u8]| Hasher::fast(0).digest_bytes(bytes).get().to_le_bytes();
    let head = sum(&epoch[..HEAD]);
    epoch[HEAD..HEAD + 8].copy_from_slice(&head);
    let end = epoch.len() - 8;
    let all = sum(&epoch[..end]);
    epoch[end..].copy_from_slice(&all);
    epoch
}

#[test]
fn a_crafted_store_cannot_crash_the_program() {
    for method in ["block", "hierarchical", "winnowing"] {
        let shell =
            recorded(capture(), &format!("--method {method} --epoch 60s --local 10.0.0.0/8 --streams"));
        let whole = shell.read("store/00000003.epoch");
        assert_eq!(refit(whole.clone()), whole, "this is how sums are made");
        let mut hostile = Vec::new();
        // Every number in the header after the version.
        for at in (16..24 + 16 * 8).step_by(8) {
            for number in [0, 1, 2, 3, 5, 65, 65_536, 65_538, 1 << 20, 1 << 40, 1 << 63, u64::MAX] {
                let mut epoch = whole.clone();
                epoch[at..at + 8].copy_from_slice(&u64::to_le_bytes(number));
                hostile.push(refit(epoch));
            }
        }
        // Bytes after the header: networks, the list of pairs, and the start of the digests.
        for at in 160..500 {
            for flip in [0x01, 0x80, 0xff] {
                let mut epoch = whole.clone();
                epoch[at] ^= flip;
                hostile.push(refit(epoch));
            }
        }
        for (epoch, number) in hostile.iter().zip(100..) {
            shell.write(&format!("store/{number:08}.epoch"), epoch);
        }
        for args in ["--excerpt", "--document"] {
            let answer = shell.pipe(&["net", "attribute", "store", args, "-", "--json"], bytes(77, 500));
            assert!(!answer.stderr.contains("panicked"), "{}", answer.stderr);
            let found = answer.json();
            let count = |name: &str| found[name].as_u64().unwrap() as usize;
            assert_eq!(count("epochs_searched") + count("epochs_unread"), 7 + hostile.len());
            assert!(count("epochs_unread") > 50, "{method}");
        }
    }
}

/// The smaller blocks can be judged, the larger ones cannot.
#[test]
fn epochs_that_cannot_judge_an_excerpt_are_named() {
    let shell = recorded(capture(), "");
    for _ in 0..2 {
        shell.run("net record c.pcap -o store --block 64").ok();
    }
    shell.run("net record c.pcap -o store --method winnowing").ok();
    let facts = ask(&shell, &bytes(77, 500)[..200], "--json").ok().json();
    assert_eq!(facts["epochs_searched"], 4, "{facts}");
    let epochs: Vec<&str> = facts["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["epoch"].as_str().unwrap())
        .collect();
    assert!((1..=4).all(|number| epochs.contains(&&*format!("{number:08}.epoch"))), "{epochs:?}");
    let short = ask(&shell, &bytes(77, 500)[..100], "--json").code(0);
    assert_eq!((&short.json()["epochs_searched"], &short.json()["epochs_unread"]), (&1.into(), &3.into()));
    assert!(short.stderr.contains("3 epochs left out: excerpt = 100 bytes"), "{}", short.stderr);
    // Then the absence of findings is not reliable.
    ask(&shell, &bytes(7777, 100), "").code(2);
    ask(&shell, &bytes(7777, 62), "").refused(&["62 bytes"]);
}

#[test]
fn zeros_and_endless_inputs_do_not_take_long() {
    let zeros = vec![0; 1400];
    let frames =
        (0..2000u32).map(|number| datagram(&format!("10.0.0.{}", number % 200), "192.0.2.1", &zeros));
    let shell = recorded(pcap(Link::ETHERNET, frames), "");
    let begun = Instant::now();
    let facts = ask(&shell, &zeros[..200], "--json").ok().json();
    assert_eq!(facts["findings"].as_array().unwrap().len(), 200);
    // No payload is that long.
    ask(&shell, &[0; 5000], "").code(1);
    let facts = shell.pipe("net attribute store --document - --json", [0; 200_000]).ok().json();
    assert_eq!((facts["findings"].as_array().unwrap().len(), &facts["passed_bytes"]), (200, &200_000.into()));
    shell.run("net attribute store --excerpt /dev/zero").refused(&["/dev/zero", "too long"]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_closed_output_is_not_an_error() {
    let zeros = vec![0; 500];
    let frames = (0..250u32).map(|number| datagram(&format!("10.0.0.{number}"), "192.0.2.1", &zeros));
    let shell = recorded(pcap(Link::ETHERNET, frames), "");
    for args in ["--excerpt -", "--document -", "--excerpt - --json"] {
        let mut process = shell.start(&format!("net attribute store {args}"));
        drop(process.child().stdout.take());
        let answer = process.feed(|mut stdin| std::io::Write::write_all(&mut stdin, &zeros[..200]));
        assert!(answer.code == Some(0) && !answer.stderr.contains("cannot write"), "{answer:?}");
    }
}
