//! `umbel net scan --streams`: signatures are found however they were split, and reported with the
//! packet in which they end.

use crate::captures::{pcap, tcp, udp};
use crate::shell::{self, Shell, gzip, mix, split};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use umbel_net::capture::Link;

/// Returns a segment from a port of 10.0.0.1 to port 80 of 10.0.0.2.
fn segment(port: u16, seq: u32, flags: &str, payload: &[u8]) -> Vec<u8> {
    tcp([10, 0, 0, 1], [10, 0, 0, 2], (port, 80), seq, flags, payload)
}

/// Returns a signature over five packets, one of them early, with a datagram and a FIN.
fn connection() -> Vec<u8> {
    let datagram = udp([10, 0, 0, 3].into(), [10, 0, 0, 4].into(), (53, 99), b"an evil thing");
    let frames = vec![
        segment(1, 99, "S", b""),
        segment(1, 100, "", b"GET /e"),
        segment(1, 108, "", b"l H"),
        datagram,
        segment(1, 106, "", b"v"),
        segment(1, 107, "", b"i"),
        segment(1, 111, "F", b"TTP"),
    ];
    pcap(Link::ETHERNET, frames)
}

const IN_DATAGRAM: &str = "evil\t4\t3\t10.0.0.3:53\t10.0.0.4:99\n";
const IN_STREAM: &str = "evil\t3\t5\t10.0.0.1:1\t10.0.0.2:80\tstream 1\n";

#[test]
fn a_signature_is_found_however_it_was_split() {
    let shell = Shell::new();
    shell.write("rules", "evil\nnever there, and much longer than what is left of the stream\n");
    shell.write("c.pcap", connection());
    assert_eq!(shell.run("net scan --rules rules c.pcap").ok().text(), IN_DATAGRAM);
    let expected = format!("{IN_DATAGRAM}{IN_STREAM}");
    let answer = shell.run("net scan --rules rules --streams c.pcap").ok();
    assert_eq!((answer.text(), answer.stderr.as_str()), (expected.as_str(), ""));
    assert_eq!(shell.pipe("net scan --rules rules --streams -", connection()).ok().text(), expected);
    shell.write("c.pcap.gz", gzip(connection()));
    assert_eq!(shell.run("net scan --rules rules --streams c.pcap.gz").ok().text(), expected);
    assert_eq!(shell.run("net scan --rules rules --streams --count c.pcap").ok().text(), "2\n");
    assert!(shell.run("net scan --rules rules --streams --quiet c.pcap").ok().stdout.is_empty());
    // Each capture has its own streams, and other files are searched as usual.
    shell.write("text", "evil");
    let answer = shell.run("net scan --rules rules --streams c.pcap text c.pcap").ok();
    let of_capture = format!("c.pcap\t{IN_DATAGRAM}c.pcap\t{IN_STREAM}");
    assert_eq!(answer.text(), format!("{of_capture}text\tevil\t0\n{of_capture}"));
}

#[test]
fn missing_bytes_are_reported_and_nothing_is_found_across_them() {
    let shell = Shell::new();
    shell.write("rules", "evil\n");
    let frames = [segment(1, 100, "", b"an ev"), segment(1, 106, "", b"il thing")];
    shell.write("c.pcap", pcap(Link::ETHERNET, frames));
    let answer = shell.run("net scan --rules rules --streams --stats c.pcap").code(1);
    assert!(
        answer.stderr.contains("c.pcap: 1 bytes are missing from TCP streams, in 1 places"),
        "{answer:?}"
    );
    assert!(answer.stderr.contains("streams") && answer.stderr.contains("bytes repeated"), "{answer:?}");
    // A packet without a TCP header is not a segment.
    let mut frame = segment(1, 100, "", b"evil");
    frame.truncate(14 + 20 + 8);
    shell.write("c.pcap", pcap(Link::ETHERNET, [frame]));
    let answer = shell.run("net scan --rules rules --streams c.pcap").code(1);
    assert!(answer.stderr.contains("1 packets have no whole transport header"), "{answer:?}");
}

#[test]
fn overlapping_bytes_are_searched_as_a_packet() {
    let shell = Shell::new();
    shell.write("rules", "evil\n");
    let frames = [segment(1, 100, "", b"so good"), segment(1, 103, "", b"evil"), segment(1, 107, "R", b"")];
    shell.write("c.pcap", pcap(Link::ETHERNET, frames));
    let answer = shell.run("net scan --rules rules --streams c.pcap").ok();
    assert_eq!(answer.text(), "evil\t2\t0\t10.0.0.1:1\t10.0.0.2:80\n");
}

#[test]
fn a_finding_in_a_stream_is_printed_before_the_pipe_ends() {
    let shell = Shell::new();
    shell.write("rules", "evil\nmuch longer than the whole stream has been so far\n");
    let mut process = shell.start("net scan --rules rules --streams -");
    process.send(pcap(Link::ETHERNET, [segment(1, 100, "", b"ev"), segment(1, 102, "", b"il")]));
    let told = process.next_line(shell::PROCESS_TIMEOUT);
    assert_eq!(told.as_deref(), Some(&b"evil\t2\t0\t10.0.0.1:1\t10.0.0.2:80\tstream 1\n"[..]));
    process.finish().ok();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16, rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Compares with a naive search; segments have any size, are somewhat reordered, and some are
    /// repeated.
    #[test]
    fn streams_are_searched_completely(
        seed in 0u64..1 << 24,
        sizes in prop::collection::vec(0usize..20_000, 1..4),
        lengths in prop::collection::vec(1usize..300, 1..12),
        steps in prop::collection::vec(1usize..600, 1..9),
        disorder in 1u64..8,
    ) {
        let random = |number: u64| mix(seed << 32 | number);
        let bytes = |count: usize, from: u64| -> Vec<u8> { (0..count as u64).map(|i| random(from << 20 | i) as u8).collect() };
        let rules: Vec<_> = (0..).zip(&lengths).map(|(i, length)| bytes(*length, 100 + i)).collect();
        let mut texts: Vec<_> = (0..).zip(&sizes).map(|(i, size)| bytes(*size, i)).collect();
        let mut segments = Vec::new();
        for (port, text) in (0u16..).zip(&mut texts) {
            for rule in &rules {
                if let Some(last) = text.len().checked_sub(rule.len()) {
                    let start = random(900 + rule.len() as u64) as usize % (last + 1);
                    text[start..start + rule.len()].copy_from_slice(rule);
                }
            }
            let (mut start, mut at) = (0, 0);
            while start < text.len() {
                let end = text.len().min(start + steps[at as usize % steps.len()]);
                let frame = segment(port, 1 + start as u32, "", &text[start..end]);
                segments.push((at + random(at) % disorder, frame.clone()));
                if random(at) % 7 == 0 {
                    segments.push((at + 3, frame));
                }
                (start, at) = (end, at + 1);
            }
        }
        segments.sort_by_key(|(at, _)| *at);
        let first = (0..texts.len() as u16).map(|port| segment(port, 0, "S", b""));
        let shell = Shell::new();
        let hex: Vec<String> = rules.iter().map(|rule| rule.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
        shell.write("rules", hex.join("\n"));
        shell.write("c.pcap", pcap(Link::ETHERNET, first.chain(segments.into_iter().map(|(_, frame)| frame))));
        let answer = shell.run("net scan --rules rules --rules-hex --streams c.pcap");
        let mut found: Vec<(u16, u64, String)> = Vec::new();
        for line in split(&answer.stdout) {
            let columns: Vec<&str> = std::str::from_utf8(line).unwrap().split('\t').collect();
            if let [rule, _, offset, source, _, _stream] = columns[..] {
                let port = source.strip_prefix("10.0.0.1:").unwrap().parse().unwrap();
                found.push((port, offset.parse().unwrap(), rule.into()));
            }
        }
        let mut expected = Vec::new();
        for (port, text) in (0..).zip(&texts) {
            for (rule, hex) in rules.iter().zip(&hex) {
                let places = (0u64..).zip(text.windows(rule.len())).filter(|(_, window)| window == rule);
                expected.extend(places.map(|(offset, _)| (port, offset, hex.clone())));
            }
        }
        expected.sort();
        // A repeated rule counts once.
        expected.dedup();
        found.sort();
        prop_assert_eq!(answer.code, Some(if expected.is_empty() { 1 } else { 0 }));
        prop_assert_eq!(found, expected);
    }
}
