//! `umbel net scan` finds signatures in files and in captures, exactly.

use crate::shell::{self, Shell, gzip, mix, split, text};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use umbel_net::capture::{Link, Timestamp, Writer};

/// A raw IPv4 packet with a UDP datagram.
fn packet(hosts: (u8, u8), payload: &[u8]) -> Vec<u8> {
    let [udp, ip] = [8, 28].map(|head| (head + payload.len() as u16).to_be_bytes());
    let mut packet = vec![0x45, 0, ip[0], ip[1], 0, 1, 0, 0, 64, 17, 0, 0];
    packet.extend([10, 0, 0, hosts.0, 10, 0, 0, hosts.1, 0, 53, 0, 99, udp[0], udp[1], 0, 0]);
    packet.extend_from_slice(payload);
    packet
}

fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), Link::RAW).unwrap();
    for (packet, second) in packets.iter().zip(1_700_000_000..) {
        writer.write(Timestamp::from_secs(second), packet).unwrap();
    }
    writer.into_inner()
}

fn number(count: usize, seed: u64) -> Vec<u8> {
    (0..count as u64).map(|i| mix(seed << 32 | i) as u8).collect()
}

#[test]
fn every_occurrence_in_a_file_is_a_line() {
    let shell = Shell::new();
    shell.write("rules", "cmd.exe\nexe\n\nGET /\nexe\nnever there\n");
    shell.write("log", "GET /cmd.exe\nGET /exexe");
    let answer = shell.run("net scan --rules rules log").ok();
    assert_eq!(answer.text(), "GET /\t0\ncmd.exe\t5\nexe\t9\nGET /\t13\nexe\t18\nexe\t20\n");
    assert_eq!(shell.redirect("net scan --rules rules -", "log").ok().stdout, answer.stdout);
    shell.write("log.gz", gzip(shell.read("log")));
    assert_eq!(shell.run("net scan --rules rules log.gz").ok().stdout, answer.stdout);
    assert_eq!(shell.run("net scan --rules rules --count log").ok().text(), "6\n");
    assert!(shell.run("net scan --rules rules --quiet log").ok().stdout.is_empty());

    shell.write("other", "an exe");
    let both = shell.run("net scan --rules rules other log").ok();
    assert!(both.text().starts_with("other\texe\t3\nlog\tGET /\t0\n"), "{both:?}");
}

#[test]
fn the_exit_code_is_1_without_a_finding() {
    let shell = Shell::new();
    shell.write("rules", "absent\n");
    shell.write("file", "nothing of that");
    shell.write("empty", "");
    for args in ["file", "empty", "--count empty", "--quiet file", "file empty"] {
        let answer = shell.run(&format!("net scan --rules rules {args}")).code(1);
        assert_eq!(answer.text(), if args.contains("count") { "0\n" } else { "" });
    }
}

#[test]
fn signatures_that_are_not_text_are_printed_in_hexadecimal() {
    let shell = Shell::new();
    shell.write("hex", "DEADbeef\r\n00\n");
    shell.write("data", b"\xde\xad\xbe\xef\x00z");
    assert_eq!(shell.run("net scan --rules hex --rules-hex data").ok().text(), "deadbeef\t0\n00\t4\n");
    shell.write("bytes", b"\xad\xbe\nz\n\xef\x00\n");
    assert_eq!(shell.run("net scan --rules bytes data").ok().text(), "hex:adbe\t1\nhex:ef00\t3\nz\t5\n");
}

#[test]
fn packets_are_searched_separately() {
    let shell = Shell::new();
    let payloads: [&[u8]; 4] = [b"an evil thing", b"", b"half of ev", b"il and evil evil"];
    let packets: Vec<_> =
        payloads.iter().zip(1..).map(|(payload, host)| packet((host, 9), payload)).collect();
    // A frame that is not a packet also has a number.
    let frames = [&packets[..2], &[vec![0x99; 40]], &packets[2..]].concat();
    let whole = capture(&frames);
    shell.write("rules", "evil\n");
    shell.write("c.pcap", &whole);
    let answer = shell.run("net scan --rules rules c.pcap").code(0);
    let lines = ["evil\t1\t3\t10.0.0.1:53\t10.0.0.9:99", "evil\t5\t7\t10.0.0.4:53\t10.0.0.9:99"];
    let last = "evil\t5\t12\t10.0.0.4:53\t10.0.0.9:99";
    assert_eq!(split(&answer.stdout), [lines[0].as_bytes(), lines[1].as_bytes(), last.as_bytes()]);
    assert!(answer.stderr.contains("c.pcap: of 5 frames, these were skipped: 1 malformed"), "{answer:?}");
    assert_eq!(shell.pipe("net scan --rules rules -", &whole).code(0).stdout, answer.stdout);
    shell.write("c.pcap.gz", gzip(&whole));
    assert_eq!(shell.run("net scan --rules rules c.pcap.gz").code(0).stdout, answer.stdout);

    shell.write("cut.pcap", &whole[..whole.len() - 3]);
    let cut = shell.run("net scan --rules rules cut.pcap").code(0);
    assert_eq!(split(&cut.stdout), [lines[0].as_bytes()]);
    assert!(cut.stderr.contains("cut.pcap is truncated"), "{cut:?}");
}

#[test]
fn a_finding_in_a_pipe_is_printed_before_the_pipe_ends() {
    let shell = Shell::new();
    shell.write("rules", "evil\n");
    let mut process = shell.start("net scan --rules rules -");
    process.send(capture(&[packet((1, 2), b"evil")]));
    // The reader may wait for the header of another packet first.
    let told = process.next_line(shell::PROCESS_TIMEOUT);
    assert_eq!(told.as_deref(), Some(&b"evil\t1\t0\t10.0.0.1:53\t10.0.0.2:99\n"[..]));
    process.finish().ok();
}

#[test]
fn statistics_are_printed_on_request() {
    let shell = Shell::new();
    let rules: Vec<Vec<u8>> = (0..2000)
        .map(|seed| number(8 + seed as usize % 20, seed))
        .filter(|rule| !rule.contains(&b'\n'))
        .collect();
    shell.write("rules", text(&rules));
    shell.write("data", number(100_000, 1 << 20));
    let answer = shell.run("net scan --rules rules --stats data").code(1);
    for fact in ["signatures", "lengths", "bytes searched", "100000", "exact table"] {
        assert!(answer.stderr.contains(fact), "{fact}: {answer:?}");
    }
}

#[test]
fn invalid_rules_are_refused_with_their_line() {
    let shell = Shell::new();
    shell.write("data", "data");
    shell.write("odd", "aa\nabc\n");
    shell.run("net scan --rules odd --rules-hex data").refused(&["line 2 of odd", "abc"]);
    shell.write("long", [b"a\n".to_vec(), vec![b'x'; 65_536]].concat());
    shell.run("net scan --rules long data").refused(&["line 2 of long", "65536", "65535"]);
    shell.write("none", "\n\n");
    shell.run("net scan --rules none data").refused(&["none has no signature"]);
    shell.run("net scan --rules missing data").refused(&["missing"]);
    shell.run("net scan --rules odd missing").refused(&["missing"]);
    shell.run("net scan --rules - -").refused(&["standard input"]);
    shell.write("dos", "da\r\nta\r\n");
    let said = shell.run("net scan --rules dos data").code(1);
    assert!(said.stderr.contains("carriage return"), "{}", said.stderr);
    shell.run("net scan data").refused(&["--rules"]);
    shell.run("net scan --rules odd").refused(&["INPUT"]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12, rng_seed: RngSeed::Fixed(3), failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Compares with a naive search; files are longer than one read.
    #[test]
    fn files_of_any_size_are_searched_completely(
        seed in 0u64..1 << 24,
        size in 0usize..700_000,
        lengths in prop::collection::vec(3usize..400, 1..20),
    ) {
        let mut data = number(size, seed << 5);
        let rules: Vec<_> = lengths.iter().zip(1u64..).map(|(length, i)| number(*length, seed << 5 | i)).collect();
        // Some findings cross the boundary between two reads.
        for (rule, i) in rules.iter().zip(0..) {
            let start = ((1 + i % 2) << 18) - rule.len() / 2 + i * 500;
            if start + rule.len() < data.len() {
                data[start..start + rule.len()].copy_from_slice(rule);
            }
        }
        let places = |rule: &Vec<u8>| data.windows(rule.len()).filter(|window| window == rule).count();
        let expected: usize = rules.iter().map(places).sum();
        let shell = Shell::new();
        let lines: Vec<_> = rules.iter().map(|rule| rule.iter().map(|byte| format!("{byte:02x}")).collect::<String>()).collect();
        shell.write("rules", lines.join("\n"));
        shell.write("data", &data);
        let answer = shell.run("net scan --rules rules --rules-hex data");
        prop_assert_eq!(answer.code, Some(if expected == 0 { 1 } else { 0 }));
        let found = split(&answer.stdout);
        prop_assert_eq!(found.len(), expected);
        for line in found {
            let line = std::str::from_utf8(line).unwrap();
            let (rule, at) = line.split_once('\t').unwrap();
            let rule = &rules[lines.iter().position(|line| line == rule).unwrap()];
            prop_assert!(data[at.parse::<usize>().unwrap()..].starts_with(rule));
        }
    }
}
