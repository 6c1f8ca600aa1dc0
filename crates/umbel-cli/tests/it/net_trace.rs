//! `umbel net trace`: packets are traced through routers, and nothing in a store is lost.

use crate::captures::pcap;
use crate::shell::{Answer, Shell, gzip, mix};
use std::fs;
use umbel_net::capture::{Link, Timestamp, Writer};

/// The links between the routers.
const NETWORK: &str = "# a line is a link\nR1 R2\nR2 R3\nR3 R4\nR2 R5\nR3 R6\nR5 R6\n";

/// The paths of packets, by number modulo four.
const PATHS: [&[&str]; 4] =
    [&["R1", "R2", "R3", "R4"], &["R5", "R2", "R3", "R4"], &["R6", "R3", "R4"], &["R1", "R2", "R5"]];

/// Returns an IPv4 packet with a UDP datagram for a number, from this source, after some hops.
fn packet_from(source: [u8; 4], number: u16, hops: u8) -> Vec<u8> {
    let payload: Vec<u8> = (0..60).map(|byte| mix(u64::from(number) << 8 | byte) as u8).collect();
    let [high, low] = number.to_be_bytes();
    let mut packet = vec![0x45, 0, 0, 88, high, low, 0, 0, 64 - hops, 17, hops, 1];
    packet.extend([source, [10, 2, high, low]].as_flattened());
    packet.extend([high, low, 0, 80, 0, 68, 0, 0]);
    packet.extend(payload);
    packet
}

fn packet(number: u16, hops: u8) -> Vec<u8> {
    packet_from([10, 1, 0, 1], number, hops)
}

/// Records the packets below `count` at each router of their paths, into `spie`.
fn record_all(shell: &Shell, count: u16, options: &str) {
    shell.write("net.txt", NETWORK);
    for router in 1..=6 {
        let router = format!("R{router}");
        let hop = |number: &u16| PATHS[usize::from(number % 4)].iter().position(|own| *own == router);
        let packets = (0..count).filter_map(|number| Some(packet(number, hop(&number)? as u8)));
        shell.write(&format!("{router}.pcap"), pcap(Link::RAW, packets));
        shell.run(&format!("net trace record --router {router} -o spie {router}.pcap {options}")).ok();
    }
}

/// Traces a packet as its victim received it.
fn ask(shell: &Shell, number: u16, options: &str) -> Answer {
    shell.write("one.pcap", pcap(Link::RAW, [packet(number, 4)]));
    shell.run(&format!("net trace ask spie --packet one.pcap --topology net.txt {options}"))
}

#[test]
fn the_true_path_is_printed_from_the_victim_upstream() {
    let shell = Shell::new();
    record_all(&shell, 240, "--seed 1");
    for number in 200..240 {
        let path = PATHS[usize::from(number % 4)];
        if path.last() != Some(&"R4") {
            continue;
        }
        let upstream: Vec<&str> = path.iter().rev().copied().collect();
        let answer = ask(&shell, number, "--at R4").code(0);
        assert!(answer.text().lines().any(|line| line == upstream.join(" <- ")), "{}", answer.text());
        assert!(answer.stderr.contains("by chance\n"), "{}", answer.stderr);
    }
    let facts = ask(&shell, 200, "--at R4 --json").ok().json();
    assert_eq!(facts["paths"][0], serde_json::json!(["R4", "R3", "R2", "R1"]));
    assert_eq!(facts["origins"], serde_json::json!(["R1"]));
    assert_eq!((&facts["hops"][0][1]["router"], &facts["complete"]), (&"R3".into(), &true.into()));
    assert_eq!(facts["packet"]["destination"], "10.2.0.200");
    // Nobody has forwarded this one, or not at this router.
    for (number, at) in [(999, "R4"), (203, "R4")] {
        let answer = ask(&shell, number, &format!("--at {at}")).code(1);
        assert_eq!(answer.text(), "");
        assert!(answer.stderr.contains("R4 did not forward the packet"), "{}", answer.stderr);
    }
}

#[test]
fn false_branches_open_at_a_high_rate_and_the_true_path_is_still_printed() {
    let shell = Shell::new();
    record_all(&shell, 240, "--seed 2 -p 20%");
    let mut extra = 0;
    for number in (0..240).step_by(4) {
        let answer = ask(&shell, number, "--at R4 --json").ok().json();
        let paths: Vec<String> =
            answer["paths"].as_array().unwrap().iter().map(ToString::to_string).collect();
        let begins = |path: &String| path.starts_with(r#"["R4","R3","R2","R1""#);
        assert!(paths.iter().any(begins), "{paths:?}");
        extra += paths.len() - 1;
    }
    // R5 or R6 match about once in five questions each. By chance not even one of sixty does so with
    // probability 0.64^60, and the seed is fixed.
    assert!(extra > 5, "{extra}");
}

#[test]
fn only_pages_around_the_time_of_the_packet_are_asked() {
    let shell = Shell::new();
    record_all(&shell, 40, "--page-seconds 10 -n 7 --seed 1");
    let pages = shell.run("net trace info spie --json").ok().json();
    assert_eq!(pages["routers"][3]["pages"], 30u32.div_ceil(7));
    // The packet was recorded at 1700000000, and captured at the same time.
    let hour_later = "--at R4 --time 2023-11-14T23:13:20Z";
    ask(&shell, 0, "--at R4 --within 1s").code(0);
    // Whether it forwarded the packet is not known then, which is not the answer "no".
    ask(&shell, 0, hour_later).refused(&[
        "R4 recorded nothing from 2023-11-14T23:12:20",
        "--time",
        "--within",
    ]);
    ask(&shell, 0, &format!("{hour_later} --within 2h")).code(0);
    ask(&shell, 0, "--at R4 --time 1700000059").code(0);
    ask(&shell, 0, "--at R4 --time yesterday").refused(&["a time such as"]);
}

#[test]
fn a_router_that_has_recorded_nothing_is_named() {
    let shell = Shell::new();
    record_all(&shell, 40, "--seed 1");
    shell.write("net.txt", format!("{NETWORK}R2 R9\n"));
    let answer = ask(&shell, 0, "--at R4").code(0);
    assert_eq!(answer.text(), "R4 <- R3 <- R2 <- R1\n");
    assert!(answer.stderr.contains("R9 recorded nothing"), "{}", answer.stderr);
}

#[test]
fn a_translated_packet_is_traced_through_the_translation() {
    let shell = Shell::new();
    shell.write("net.txt", "Inside NAT\nNAT Outside\n");
    let outside = |number: u16, hops: u8| packet_from([198, 51, 100, 7], number, hops);
    shell.write("inside.pcap", pcap(Link::RAW, (0..100).map(|number| packet(number, 1))));
    shell.write("outside.pcap.gz", gzip(pcap(Link::RAW, (0..100).map(|number| outside(number, 2)))));
    shell.run("net trace record --router Inside --seed 1 -o spie inside.pcap").ok();
    shell.run("net trace record --router Outside --seed 1 -o spie outside.pcap.gz").ok();
    let sides = "--in inside.pcap --out outside.pcap.gz";
    let facts =
        shell.run(&format!("net trace record --router NAT --seed 1 -o spie {sides} --json")).ok().json();
    assert_eq!(facts["changed"], serde_json::json!({"translated": 100}));
    assert_eq!(
        (&facts["packets"], &facts["left"], &facts["appeared"]),
        (&100.into(), &100.into(), &0.into())
    );
    shell.write("one.pcap", pcap(Link::RAW, [outside(42, 3)]));
    let answer = shell.run("net trace ask spie --packet one.pcap --topology net.txt --at Outside").code(0);
    assert_eq!(answer.text(), "Outside <- NAT (translated) <- Inside\n");
    // Without the other side, the packet seems to begin behind the translation.
    shell.run("net trace record --router NAT --seed 1 -o blind inside.pcap").ok();
    shell.run("net trace record --router Outside --seed 1 -o blind outside.pcap.gz").ok();
    let answer = shell.run("net trace ask blind --packet one.pcap --topology net.txt --at Outside").code(0);
    assert_eq!(answer.text(), "Outside\n");
    for (args, says) in [
        ("--in inside.pcap", "--out"),
        ("--out inside.pcap", "--in"),
        ("--in inside.pcap --out outside.pcap.gz inside.pcap", "--in"),
        ("--in - --out inside.pcap", "standard input"),
    ] {
        shell.run(&format!("net trace record --router X -o spie {args}")).refused(&[says]);
    }
}

#[test]
fn a_capture_that_ends_within_a_packet_is_used_up_to_there() {
    let shell = Shell::new();
    shell.write("net.txt", "R1 R2\n");
    let whole = pcap(Link::RAW, (0..40).map(|number| packet(number, 0)));
    shell.write("cut.pcap", &whole[..whole.len() / 2 + 7]);
    let answer = shell.run("net trace record --router R1 --seed 1 -o spie cut.pcap").code(0);
    assert!(answer.stderr.contains("cut.pcap is truncated"), "{}", answer.stderr);
    ask(&shell, 3, "--at R1").code(0);
    ask(&shell, 30, "--at R1").code(1);
    let answer =
        shell.run("net trace record --router R2 --seed 1 -o spie --in cut.pcap --out cut.pcap").code(0);
    assert_eq!(answer.stderr.matches("cut.pcap is truncated").count(), 2, "{}", answer.stderr);
    ask(&shell, 3, "--at R2").code(0);
}

#[test]
fn a_damaged_page_is_named_and_the_others_still_answer() {
    let shell = Shell::new();
    record_all(&shell, 240, "--seed 1");
    let before = shell.contents("spie");
    // Of R5, which the packet did not come through, of R3, which it did, and the header of R4.
    for (page, at, paths) in [
        ("00000005.page", 200, "R4 <- R3 <- R2 <- R1\n"),
        ("00000003.page", 200, "R4\n"),
        ("00000004.page", 30, ""),
    ] {
        let mut bytes = before[page].clone();
        bytes[at] ^= 1;
        shell.write(&format!("spie/{page}"), &bytes);
        let answer = ask(&shell, 200, "--at R4").code(2);
        assert_eq!(answer.text(), paths);
        assert!(answer.stderr.contains(page) && answer.stderr.contains("damaged"), "{}", answer.stderr);
        let answer = shell.run("net trace info spie").code(2);
        assert!(answer.stderr.contains(page) && answer.text().lines().count() == 6, "{answer:?}");
        // Recording goes on, and changes nothing that was there.
        shell.run("net trace record --router R1 --seed 1 -o spie R1.pcap").ok();
        shell.write(&format!("spie/{page}"), &before[page]);
    }
    let after = shell.contents("spie");
    assert!(before.iter().all(|(name, bytes)| after[name] == *bytes) && after.len() == 9);
    assert_eq!(ask(&shell, 200, "--at R4").code(0).text(), "R4 <- R3 <- R2 <- R1\n");
}

#[test]
fn unknown_names_are_refused_with_similar_ones() {
    let shell = Shell::new();
    shell.write("a.pcap", pcap(Link::RAW, [packet(0, 0)]));
    for router in ["Berlin", "Munich"] {
        shell.run(&format!("net trace record --router {router} -o spie a.pcap")).ok();
    }
    shell.write("net.txt", "Berlin Munich\nMunich Cologne\n");
    ask(&shell, 0, "--at Berlim").refused(&["has no router Berlim", "Berlin"]);
    ask(&shell, 0, "--at X").refused(&["has no router X", "Berlin, Munich, Cologne"]);
    ask(&shell, 0, "--at Cologne").refused(&["Cologne has recorded nothing", "Berlin"]);
    shell.write("net.txt", "Berlin Munic\n");
    ask(&shell, 0, "--at Berlin").refused(&["has no router Munich", "spie", "similar names: Munic"]);
    shell.write("net.txt", "Berlin Berlin\n");
    ask(&shell, 0, "--at Berlin").refused(&["net.txt"]);
    shell.write("net.txt", "Berlin Munich\n");
    ask(&shell, 0, "--at Berlin --number 2").refused(&["no frame 2"]);
    shell.run("net trace ask spie --packet net.txt --topology net.txt --at Berlin").refused(&["pcap"]);
    shell.run("net trace ask none --packet a.pcap --topology net.txt --at Berlin").refused(&["none"]);
    for name in ["", " R", "R\n"] {
        shell.run(&["net", "trace", "record", "--router", name, "-o", "spie", "a.pcap"]).refused(&["router"]);
    }
}

#[test]
fn a_failed_recording_leaves_no_folder() {
    let shell = Shell::new();
    shell.write("a.pcap", pcap(Link::RAW, [packet(0, 0)]));
    shell.write("text", "not a capture");
    for captures in ["missing.pcap", "text", "--in a.pcap --out text"] {
        shell.run(&format!("net trace record --router R1 --seed 1 -o new/spie {captures}")).failed(&[]);
        assert!(!shell.path("new").exists(), "{captures}");
    }
    fs::create_dir(shell.path("mine")).unwrap();
    shell.write("mine/thesis.tex", "mine");
    shell.run("net trace record --router R1 --seed 1 -o mine a.pcap").refused(&["not a store"]);
    assert_eq!(shell.names("mine"), ["thesis.tex"]);
    // What came before the error is there.
    let answer = shell.run("net trace record --router R1 --seed 1 -o spie -n 1 a.pcap a.pcap text").code(2);
    assert!(answer.stderr.contains("what was recorded before is in spie"), "{}", answer.stderr);
    assert_eq!(shell.names("spie").len(), 2);
}

#[test]
fn a_seed_gives_the_same_pages_from_a_file_a_pipe_and_a_compressed_file() {
    let shell = Shell::new();
    let capture = pcap(Link::RAW, (0..100).map(|number| packet(number, 0)));
    shell.write("a.pcap", &capture);
    shell.write("a.pcap.gz", gzip(&capture));
    let record = |from: &str, to: &str, options: &str| {
        let args = format!("net trace record --router R1 -o {to} {from} {options}");
        shell.pipe(&args, &capture).ok();
        shell.contents(to)
    };
    let first = record("a.pcap", "a", "--seed 7");
    assert_eq!(first.len(), 1);
    assert_eq!(record("a.pcap.gz", "b", "--seed 7"), first);
    assert_eq!(record("-", "c", "--seed 7"), first);
    assert_ne!(record("a.pcap", "d", "--seed 8"), first);
    assert_ne!(record("a.pcap", "e", ""), record("a.pcap", "f", ""), "without a seed nobody can guess it");
}

#[test]
fn several_processes_record_into_one_store_without_losing_a_page() {
    let shell = Shell::new();
    shell.write("a.pcap", pcap(Link::RAW, (0..200).map(|number| packet(number, 0))));
    let start =
        |router: u8| shell.start(&format!("net trace record --router R{router} -o spie a.pcap -n 10"));
    let recorders: Vec<_> = (0..4).map(start).collect();
    recorders.into_iter().for_each(|recorder| drop(recorder.finish().ok()));
    let facts = shell.run("net trace info spie --json").ok().json();
    let pages: Vec<u64> =
        facts["routers"].as_array().unwrap().iter().map(|router| router["pages"].as_u64().unwrap()).collect();
    assert_eq!(pages, [20; 4]);
}

#[test]
fn info_lists_the_routers_with_their_times() {
    let shell = Shell::new();
    let mut writer = Writer::new(Vec::new(), Link::RAW).unwrap();
    for number in 0..100 {
        writer.write(Timestamp::from_secs(1_700_000_000 + u64::from(number)), &packet(number, 0)).unwrap();
    }
    shell.write("a.pcap", writer.into_inner());
    shell.run("net trace record --router R1 --seed 1 -o spie a.pcap").ok();
    let answer = shell.run("net trace info spie").ok();
    let words: Vec<Vec<&str>> = answer.text().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["router", "pages", "packets", "changed", "from", "to", "size", "rate"]);
    // The first page begins 20 seconds into a minute.
    assert_eq!(words[1][..6], ["R1", "2", "100", "0", "2023-11-14T22:13:20Z", "2023-11-14T22:14:59Z"]);
}
