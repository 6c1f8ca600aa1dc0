//! `umbel net record`: the contents of a store, and that no payload is lost with any capture.

use crate::captures::{pcap, tcp, udp};
use crate::shell::{self, Shell, gzip, mix};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;
use umbel_net::capture::{Link, Timestamp, Writer};

/// Returns bytes that occur nowhere else.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| mix(seed << 32 | i) as u8).collect()
}

fn frame(number: u64, payload: &[u8]) -> Vec<u8> {
    let host = IpAddr::from([10, 0, 0, 1 + (number % 50) as u8]);
    udp(host, [192, 0, 2, 1].into(), (1000, 53), payload)
}

/// Returns a capture with this number of packets of 500 bytes.
fn capture(packets: u64) -> Vec<u8> {
    pcap(Link::ETHERNET, (0..packets).map(|number| frame(number, &bytes(number, 500))))
}

/// Returns a capture of packets at these seconds.
fn capture_at(seconds: &[u64]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), Link::ETHERNET).unwrap();
    for (&at, number) in seconds.iter().zip(0..) {
        writer.write(Timestamp::from_secs(at), &frame(number, &bytes(number, 500))).unwrap();
    }
    writer.into_inner()
}

/// Returns whether the store alone suffices to find the payload of this packet.
fn is_found(shell: &Shell, store: &str, number: u64) -> bool {
    shell.write("excerpt", &bytes(number, 500)[100..300]);
    shell.run(&["net", "attribute", store, "--excerpt", "excerpt"]).code == Some(0)
}

#[test]
fn a_recording_is_summarised_and_another_one_adds_to_the_store() {
    let shell = Shell::new();
    shell.write("c.pcap", capture(2000));
    let answer = shell.run("net record c.pcap -o store").ok();
    let words: Vec<Vec<&str>> = answer.text().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["packets", "2000"]);
    assert_eq!(words[1][..3], ["payload", "976.56", "KiB"]);
    assert_eq!(words[2], ["blocks", "30000"], "{}", answer.text());
    assert_eq!(words[3], ["epochs", "1"]);
    assert_eq!(words[4][0], "store");
    assert_eq!(shell.names("store"), ["00000001.epoch"]);

    let facts = shell.run("net record c.pcap c.pcap -o store --json").ok().json();
    for (name, value) in [
        ("packets", 4000),
        ("skipped", 0),
        ("payloads", 4000),
        ("payload_bytes", 2_000_000),
        ("blocks", 60_000),
        ("short_payloads", 0),
        ("unlisted_payloads", 0),
        ("clock_backwards", 1),
        ("epochs", 1),
    ] {
        assert_eq!(facts[name], value, "{name} in {facts}");
    }
    assert_eq!(facts["streams"], Value::Null);
    assert!(facts["share"].as_f64().unwrap() < 0.1, "{facts}");
    assert_eq!(shell.names("store"), ["00000001.epoch", "00000002.epoch"]);
    assert_eq!(facts["store_bytes"], shell.read("store/00000002.epoch").len());
}

#[test]
fn a_seed_gives_the_same_store_from_a_file_a_pipe_and_a_compressed_file() {
    let shell = Shell::new();
    let capture = capture(200);
    shell.write("c.pcap", &capture);
    shell.write("c.pcap.gz", gzip(&capture));
    for method in ["block", "hierarchical", "winnowing"] {
        let record = |from: &str, to: &str, seed: &str| {
            let store = format!("{method}-{to}");
            let args = ["net", "record", from, "-o", &store, "--method", method, "--seed", seed];
            shell.pipe(&args, &capture).ok();
            shell.contents(&store)
        };
        let first = record("c.pcap", "a", "7");
        assert_eq!(first.len(), 1);
        assert_eq!(record("c.pcap", "b", "7"), first);
        assert_eq!(record("c.pcap.gz", "c", "7"), first);
        assert_eq!(record("-", "d", "7"), first);
        assert_ne!(record("c.pcap", "e", "8"), first);
    }
    for store in ["x", "y"] {
        shell.run(&["net", "record", "c.pcap", "-o", store]).ok();
    }
    assert_ne!(shell.contents("x"), shell.contents("y"), "without a seed nobody can guess it");
    shell.pipe("net record - c.pcap -o store", &capture).refused(&["only capture"]);
}

#[test]
fn epochs_end_by_time_or_by_size() {
    let shell = Shell::new();
    let seconds: Vec<u64> = (0..200).map(|i| 1_700_000_000 + 2 * i).collect();
    shell.write("c.pcap", capture_at(&seconds));
    // The capture begins 20 seconds into a minute.
    for (args, epochs) in [
        ("--epoch 60s", 7),
        ("--epoch 1m", 7),
        ("--epoch 1h", 1),
        ("--epoch full", 1),
        ("--full 10000", 10),
        ("--epoch 60s --full 10000", 13),
    ] {
        let store = args.replace([' ', '-'], "");
        let facts = shell.run(&format!("net record c.pcap -o {store} --json {args}")).ok().json();
        assert_eq!(facts["epochs"], epochs, "{args}");
        assert_eq!(shell.names(&store).len(), epochs, "{args}");
        assert!([0, 17, 199].iter().all(|number| is_found(&shell, &store, *number)), "{args}");
    }
}

#[test]
fn impossible_settings_are_refused_and_leave_no_files() {
    let shell = Shell::new();
    shell.write("c.pcap", capture(10));
    for (args, why) in [
        ("--block 3", "even"),
        ("--block 5", "even"),
        ("--block 0", "even"),
        ("--block 65538", "65536"),
        ("--block 99999999999999999999", "--block"),
        ("--method winnowing --block 0", "block = 0"),
        ("--method winnowing --block 1025", "1024"),
        ("--method winnowing --instances 0", "instances"),
        ("--method winnowing --instances 65", "64"),
        ("--method rabin", "hierarchical"),
        ("--bits-per-block 0", "1024"),
        ("--bits-per-block nan", "1024"),
        ("--bits-per-block 1e9", "1024"),
        ("--epoch 0s", "epoch"),
        ("--epoch never", "full"),
        ("--epoch=-5s", "epoch"),
        ("--full 0", "1 KiB"),
        ("--full 5GiB", "4 GiB"),
        ("--pairs 0", "16777216"),
        ("--pairs 16777217", "16777216"),
        ("--local 10.0.0.0/33", "10.0.0.0/33"),
        ("--local nowhere", "nowhere"),
        ("--seed -1", "-1"),
    ] {
        shell.run(&format!("net record c.pcap -o store {args}")).refused(&[why]);
    }
    shell.run("net record c.pcap").refused(&["--output"]);
    shell.run("net record -o store").refused(&["CAPTURE"]);
    shell.run("net record nowhere -o store").refused(&["nowhere"]);
    assert_eq!(shell.names("."), ["c.pcap"]);
    // The largest and the smallest valid settings.
    for (args, blocks) in [("--block 65536", 0), ("--block 4", 1250), ("--block 500 --pairs 1", 10)] {
        let facts = shell.run(&format!("net record c.pcap -o {blocks} --json {args}")).code(0).json();
        assert_eq!(facts["blocks"], blocks);
        assert_eq!(facts["short_payloads"], if blocks == 0 { 10 } else { 0 });
        assert_eq!(
            shell.names(&blocks.to_string()).len(),
            usize::from(blocks > 0),
            "of nothing there is no epoch"
        );
    }
}

#[test]
fn a_signal_ends_the_recording_and_keeps_the_packets_before() {
    for signal in ["TERM", "INT"] {
        let shell = Shell::new();
        let mut recorder = shell.start("net record - -o store --json");
        let capture = capture(50);
        recorder.send(&capture);
        // The folder exists once signals are handled, and the input is read soon after.
        std::thread::sleep(Duration::from_millis(300));
        let id = recorder.child().id().to_string();
        assert!(shell.program("kill").args(["-s", signal, &id]).status().unwrap().success());
        // The input is still open, so only the signal ends the process.
        let facts = recorder.next_line(Duration::from_secs(20)).expect("an answer");
        let facts: Value = serde_json::from_slice(&facts).unwrap();
        assert_eq!((&facts["packets"], &facts["epochs"]), (&50.into(), &1.into()), "{signal}: {facts}");
        recorder.finish().ok();
        assert!(is_found(&shell, "store", 0) && is_found(&shell, "store", 49));
    }
}

#[test]
fn a_signal_during_files_ends_after_the_current_packet() {
    for signal in ["TERM", "INT"] {
        let shell = Shell::new();
        shell.write("second.pcap", capture(10));
        assert!(shell.program("mkfifo").arg("slow.pcap").status().unwrap().success());
        let mut recorder = shell.start("net record slow.pcap second.pcap -o store --json");
        // Both ends of the pipe are opened at the same time, and by then signals are handled.
        let mut slow = File::create(shell.path("slow.pcap")).unwrap();
        let capture = capture(2000);
        slow.write_all(&capture[..300]).unwrap();
        let id = recorder.child().id().to_string();
        assert!(shell.program("kill").args(["-s", signal, &id]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(100));
        // The reader may end before everything is written.
        let _ = slow.write_all(&capture[300..]);
        drop(slow);
        let answer = recorder.finish().code(0);
        assert!(answer.stderr.contains("stopped"), "{}", answer.stderr);
        let packets = answer.json()["packets"].as_u64().unwrap();
        assert!((1..2000).contains(&packets), "{packets}");
        assert!(is_found(&shell, "store", 0));
    }
}

#[test]
fn a_capture_cut_in_the_middle_is_recorded_up_to_the_cut() {
    let shell = Shell::new();
    let capture = capture(100);
    let cut = &capture[..capture.len() / 2 + 7];
    shell.write("cut.pcap", cut);
    let packets = (cut.len() - 24) / (16 + 542);
    let answer = shell.run("net record cut.pcap -o store --json").code(0);
    assert!(answer.stderr.contains("cut.pcap is truncated"), "{}", answer.stderr);
    assert_eq!(answer.json()["packets"], packets);
    assert!(is_found(&shell, "store", packets as u64 - 1) && !is_found(&shell, "store", packets as u64));
    let answer = shell.pipe("net record - -o piped --json", cut).code(0);
    assert!(answer.stderr.contains("standard input is truncated"), "{}", answer.stderr);
    assert_eq!(answer.json()["packets"], packets);
    // A cut in the header of the file leaves nothing to record.
    shell.write("stub.pcap", &capture[..10]);
    let answer = shell.run("net record stub.pcap -o stub --json").code(0);
    assert!(answer.stderr.contains("stub.pcap is truncated"), "{}", answer.stderr);
    assert_eq!(answer.json()["epochs"], 0);
}

#[test]
fn a_recording_that_fails_or_reads_no_frame_leaves_no_folder() {
    let shell = Shell::new();
    shell.write("empty", "");
    shell.write("garbage", "this is no capture\n");
    shell.write("stub.pcap", &capture(10)[..10]);
    shell.write("head.pcap", &capture(10)[..30]);
    let mut damaged = capture(10);
    damaged[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    shell.write("damaged.pcap", damaged);
    let names = shell.names(".");
    for capture in ["empty", "garbage", "missing", "stub.pcap", "head.pcap", "damaged.pcap"] {
        for store in ["store", "partly/new/store", "./store/."] {
            shell.run(&["net", "record", capture, "-o", store]);
            assert_eq!(shell.names("."), names, "{capture} {store}");
        }
    }
    // Folders that were there stay, empty or not.
    std::fs::create_dir_all(shell.path("old/store")).unwrap();
    shell.run("net record garbage -o old/store").code(2);
    shell.run("net record garbage -o old/new/store").code(2);
    assert_eq!(shell.names("old"), ["store"]);
    shell.write("good.pcap", capture(10));
    shell.run("net record good.pcap -o partly/new/store").ok();
    shell.run("net record garbage -o partly/new/store").code(2);
    assert_eq!(shell.names("partly/new/store"), ["00000001.epoch"]);
}

/// The captures before a bad one are not lost.
#[test]
fn a_bad_capture_after_a_good_one_is_an_error_and_the_good_one_is_kept() {
    let shell = Shell::new();
    shell.write("good.pcap", capture(20));
    shell.write("bad.pcap", "this is no capture\n");
    shell.run("net record bad.pcap -o store").refused(&["bad.pcap", "neither pcap nor pcapng"]);
    let answer = shell.run("net record good.pcap bad.pcap good.pcap -o store").code(2);
    assert!(answer.stderr.contains("bad.pcap: neither pcap nor pcapng"), "{}", answer.stderr);
    assert!(answer.stderr.contains("recorded before is in store"), "{}", answer.stderr);
    assert!(is_found(&shell, "store", 0) && is_found(&shell, "store", 19));
}

#[test]
fn unusual_frames_are_counted_and_named() {
    let shell = Shell::new();
    // A snap length of 20 bytes: the Ethernet header and six bytes of the next header.
    let whole = frame(0, &bytes(0, 500));
    let mut snapped = pcap(Link::ETHERNET, []);
    for _ in 0..3 {
        snapped.extend([1_700_000_000u32, 0, 20, whole.len() as u32].map(u32::to_le_bytes).as_flattened());
        snapped.extend(&whole[..20]);
    }
    shell.write("snapped.pcap", snapped);
    let answer = shell.run("net record snapped.pcap -o snapped --json").code(0);
    assert_eq!((&answer.json()["packets"], &answer.json()["skipped"]), (&0.into(), &3.into()));
    assert!(answer.stderr.contains("of 3 frames, these were skipped: 3 "), "{}", answer.stderr);
    // A snap length of 40: no complete transport header.
    let mut headless = pcap(Link::ETHERNET, []);
    headless.extend([1_700_000_000u32, 0, 40, whole.len() as u32].map(u32::to_le_bytes).as_flattened());
    headless.extend(&whole[..40]);
    shell.write("headless.pcap", headless);
    let answer = shell.run("net record headless.pcap -o headless --json").code(0);
    assert_eq!(answer.json()["packets"], 1);
    assert!(answer.stderr.contains("no whole transport header"), "{}", answer.stderr);

    shell.write("unknown.pcap", pcap(Link(105), [vec![0; 60]]));
    let answer = shell.run("net record unknown.pcap -o unknown").code(0);
    assert!(answer.stderr.contains("1 unknown link type"), "{}", answer.stderr);
    assert!(answer.text().contains("1 frames that could not be read"), "{}", answer.text());

    // Empty payloads, payloads shorter than a block, and the largest ones.
    let payloads = [vec![], bytes(1, 31), bytes(2, 9000), bytes(3, 65_507)];
    shell.write("sizes.pcap", pcap(Link::ETHERNET, payloads.iter().map(|payload| frame(0, payload))));
    let facts = shell.run("net record sizes.pcap -o sizes --json").ok().json();
    assert_eq!(
        (&facts["packets"], &facts["payloads"], &facts["short_payloads"]),
        (&4.into(), &3.into(), &1.into())
    );
    for payload in &payloads[2..] {
        shell.write("excerpt", &payload[payload.len() - 200..]);
        shell.run("net attribute sizes --excerpt excerpt").code(0);
    }
    assert!(shell.run("net record sizes.pcap -o sizes").ok().text().contains("too short"));

    shell.write("empty.pcap", pcap(Link::ETHERNET, []));
    let facts = shell.run("net record empty.pcap -o empty --json").ok().json();
    assert_eq!((&facts["packets"], &facts["epochs"], &facts["share"]), (&0.into(), &0.into(), &0.0.into()));
}

#[test]
fn a_clock_that_goes_backwards_is_reported_and_loses_nothing() {
    let shell = Shell::new();
    let now = 1_700_000_000;
    shell.write("c.pcap", capture_at(&[now, now + 100, now + 30, 4_000_000_000, now + 200, 0, now + 300]));
    for epoch in ["60s", "full"] {
        let answer = shell.run(&["net", "record", "c.pcap", "-o", epoch, "--epoch", epoch]).ok();
        let clock = answer.text().lines().find(|line| line.starts_with("clock")).unwrap_or_default();
        assert!(clock.contains("3 packets are older"), "{}", answer.text());
        assert!((0..7).all(|number| is_found(&shell, epoch, number)), "{epoch}");
    }
}

#[test]
fn only_a_store_or_a_new_folder_is_written_to() {
    let shell = Shell::new();
    shell.write("c.pcap", capture(10));
    std::fs::create_dir(shell.path("mine")).unwrap();
    shell.write("mine/letter.txt", "dear");
    shell.run("net record c.pcap -o mine").refused(&["mine", "not a store"]);
    assert_eq!(shell.names("mine"), ["letter.txt"]);
    shell.run("net record c.pcap -o c.pcap").refused(&["c.pcap"]);
    shell.run("net record c.pcap -o c.pcap/store").refused(&["c.pcap/store"]);
    // A place that no user can write to.
    shell.run("net record c.pcap -o /proc/store").refused(&["/proc/store"]);
    std::fs::create_dir(shell.path("new")).unwrap();
    shell.run("net record c.pcap -o new/deeper/store").ok();
    // A store may contain other files, and half an epoch still counts as one.
    shell.write("new/deeper/store/notes", "from the office");
    shell.write("new/deeper/store/00000007.epoch", "half");
    shell.run("net record c.pcap -o new/deeper/store").ok();
    assert_eq!(
        shell.names("new/deeper/store"),
        ["00000001.epoch", "00000007.epoch", "00000008.epoch", "notes"]
    );
    // All numbers are in use.
    shell.write("new/deeper/store/18446744073709551615.epoch", "last");
    shell.run("net record c.pcap -o new/deeper/store").refused(&["used up"]);
}

#[test]
fn a_full_disk_is_reported_and_keeps_the_earlier_epochs() {
    let shell = Shell::new();
    shell.write("c.pcap", capture(2000));
    // Files are limited to 16 KiB; an epoch of 100 000 bytes is smaller, one of all packets is
    // larger.
    let record = |args: &str| {
        let line =
            format!("trap '' XFSZ; ulimit -f 32; exec {} net record c.pcap -o store {args}", shell::UMBEL);
        shell::Process::start(shell.program("sh").args(["-c", &line])).finish()
    };
    record("--full 100000").ok();
    assert_eq!(shell.names("store").len(), 10);
    record("").refused(&["store/00000011.epoch", "large"]);
    assert_eq!(shell.names("store").len(), 10, "half an epoch is none");
    assert!(is_found(&shell, "store", 0) && is_found(&shell, "store", 1999));
}

#[test]
fn a_flood_of_forged_sources_is_reported_and_bounded() {
    let shell = Shell::new();
    let forged = (0..5000u32).map(|number| {
        let [_, _, a, b] = number.to_be_bytes();
        udp([198, 18, a, b].into(), [192, 0, 2, 1].into(), (1, 2), &bytes(number.into(), 64))
    });
    let ours = (0..10).map(|number| frame(number, &bytes(10_000 + number, 500)));
    shell.write("c.pcap", pcap(Link::ETHERNET, forged.chain(ours)));
    let args = "net record c.pcap -o store --pairs 100 --local 10.0.0.0/8 --json";
    let answer = shell.run(args).code(0);
    assert_eq!(answer.json()["unlisted_payloads"], 4900);
    assert!(
        answer.stderr.contains("4900 payloads") && answer.stderr.contains("--pairs"),
        "{}",
        answer.stderr
    );
    let all = shell.run("net record c.pcap -o all --json").ok();
    let bytes_of = |answer: &shell::Answer| answer.json()["store_bytes"].as_u64().unwrap();
    assert!(bytes_of(&answer) < bytes_of(&all), "a list has its limit");
    // A local source is still listed.
    shell.write("excerpt", &bytes(10_003, 500)[..200]);
    let found = shell.run("net attribute store --excerpt excerpt --json").code(0).json();
    assert_eq!(found["findings"][0]["source"], "10.0.0.4");
    // The other packets are known only by their destination.
    shell.write("excerpt", bytes(4000, 64));
    let found = shell.run("net attribute store --excerpt excerpt").code(0);
    assert!(found.text().lines().any(|line| line.starts_with("unlisted")), "{}", found.text());
}

#[test]
fn streams_are_reported_with_their_missing_bytes() {
    let shell = Shell::new();
    let text = bytes(1, 1000);
    let (from, to, ports) = ([10, 0, 0, 1], [192, 0, 2, 1], (1000, 80));
    let segment = |at: usize, bytes: &[u8]| tcp(from, to, ports, 1 + at as u32, "", bytes);
    let mut frames = vec![tcp(from, to, ports, 0, "S", b"")];
    // Bytes 400 to 500 were not captured.
    frames.extend(
        (0..1000).step_by(50).filter(|at| !(400..500).contains(at)).map(|at| segment(at, &text[at..at + 50])),
    );
    frames.push(tcp(from, to, ports, 1001, "F", b""));
    shell.write("c.pcap", pcap(Link::ETHERNET, frames));
    let facts = shell.run("net record c.pcap -o store --streams --json").ok().json();
    assert_eq!(facts["streams"]["streams"], 1);
    assert_eq!((&facts["streams"]["gaps"], &facts["streams"]["missing_bytes"]), (&1.into(), &100.into()));
    let answer = shell.run("net record c.pcap -o store --streams").ok();
    assert!(answer.text().contains("100 B at 1 places"), "{}", answer.text());
}
