//! `umbel net attribute` with several stores: all are searched, on this machine and on others.

use crate::captures::{pcap, udp};
use crate::shell::{Answer, Process, Shell, mix};
use serde_json::Value;
use std::net::IpAddr;
use umbel_net::capture::Link;

/// Returns bytes that occur nowhere else.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| mix(seed << 32 | i) as u8).collect()
}

/// Records 20 packets from this host, of which the first carries the shared excerpt.
fn record(shell: &Shell, host: u8, store: &str, options: &str) {
    let payload = |number: u64| bytes(if number == 0 { 1 } else { u64::from(host) << 8 | number }, 400);
    let source = IpAddr::from([10, 3, 3, host]);
    let frames = (0..20).map(|number| udp(source, [10, 4, 4, 4].into(), (1, 80), &payload(number)));
    shell.write("c.pcap", pcap(Link::ETHERNET, frames));
    shell.run(&format!("net record c.pcap -o {store} --seed {host} {options}")).ok();
}

/// Returns a folder with two stores, an excerpt, and a program that runs commands of "other
/// machines", as ssh does: a shell runs its words, joined by blanks.
fn prepared() -> Shell {
    let shell = Shell::new();
    record(&shell, 1, "one", "");
    record(&shell, 2, "two", "");
    shell.write("excerpt", &bytes(1, 400)[30..330]);
    shell.write(
        "ssh",
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >> asked\nhost=$1\nshift\ncd \"at-$host\" && exec sh -c \"$*\"\n",
    );
    shell.allow("ssh", 0o755);
    shell
}

/// Runs umbel with itself on the path, where the fake ssh finds it.
fn run(shell: &Shell, line: &str) -> Answer {
    Process::start(&mut shell.script(line)).finish()
}

fn found(facts: &Value) -> Vec<(String, String)> {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let findings = facts["findings"].as_array().expect("findings");
    let mut found: Vec<_> =
        findings.iter().map(|finding| (text(finding, "store"), text(finding, "source"))).collect();
    found.sort();
    found
}

fn pair(store: &str, host: u8) -> (String, String) {
    (store.to_owned(), format!("10.3.3.{host}"))
}

#[test]
fn every_store_is_searched_and_each_finding_names_its_store() {
    let shell = prepared();
    let answer = shell.run("net attribute one two --excerpt excerpt").code(0);
    let lines: Vec<Vec<&str>> = answer.text().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..3], ["store", "source", "destination"]);
    let mut stores: Vec<_> = lines[1..].iter().map(|line| (line[0], line[1])).collect();
    stores.sort_unstable();
    assert_eq!(stores, [("one", "10.3.3.1"), ("two", "10.3.3.2")]);
    assert!(answer.stderr.contains("2 findings in 2 epochs"), "{}", answer.stderr);

    let facts = shell.run("net attribute one two --excerpt excerpt --json").code(0).json();
    assert_eq!(found(&facts), [pair("one", 1), pair("two", 2)]);
    assert_eq!((&facts["epochs_searched"], &facts["stores"][1]["store"]), (&2.into(), &"two".into()));
    let facts = shell.run("net attribute one two --document excerpt --json").code(0).json();
    assert_eq!(found(&facts), [pair("one", 1), pair("two", 2)]);
    let answer = shell.run("net attribute one two --document excerpt").code(0);
    assert!(answer.text().starts_with("store") && answer.text().contains("10.3.3.2"), "{}", answer.text());

    // A single store is not named.
    let alone = shell.run("net attribute two --excerpt excerpt").code(0);
    assert!(alone.text().starts_with("source") && !alone.text().contains("two"), "{}", alone.text());
    assert!(shell.run("net attribute two --excerpt excerpt --json").code(0).json().get("stores").is_none());
    shell.write("other", bytes(99, 300));
    assert_eq!(shell.run("net attribute one two --excerpt other").code(1).text(), "");
}

#[test]
fn a_store_that_fails_is_named_and_the_others_are_searched() {
    let shell = prepared();
    let mut epoch = shell.read("one/00000001.epoch");
    let middle = epoch.len() / 2;
    epoch[middle] ^= 1;
    std::fs::create_dir(shell.path("damaged")).unwrap();
    shell.write("damaged/00000001.epoch", epoch);
    for (bad, says) in [("missing", "cannot open the store missing"), ("damaged", "damaged/00000001.epoch")] {
        for stores in [format!("{bad} two"), format!("two {bad}")] {
            let answer = shell.run(&format!("net attribute {stores} --excerpt excerpt")).code(2);
            assert!(answer.stderr.contains(says), "{}", answer.stderr);
            assert!(answer.text().contains("10.3.3.2"), "{}", answer.text());
        }
        let facts = shell.run(&format!("net attribute two {bad} --excerpt excerpt --json")).code(2).json();
        assert_eq!(found(&facts), [pair("two", 2)]);
        let failed = &facts["stores"][1];
        assert!(failed["error"].is_string() || failed["epochs_unread"] == 1, "{facts}");
        assert!(facts["stores"][0]["error"].is_null());
    }
    let answer = shell.run("net attribute missing absent --excerpt excerpt").code(2);
    assert!(
        answer.text().is_empty() && answer.stderr.contains("missing") && answer.stderr.contains("absent")
    );
}

#[test]
fn stores_of_other_machines_are_searched_there() {
    let shell = prepared();
    std::fs::create_dir(shell.path("at-probe")).unwrap();
    std::fs::rename(shell.path("two"), shell.path("at-probe/a store; touch broken")).unwrap();
    let line = "umbel net attribute one 'probe:a store; touch broken' --ssh ./ssh --excerpt excerpt --json";
    let facts = run(&shell, line).code(0).json();
    assert_eq!(found(&facts), [pair("one", 1), pair("probe:a store; touch broken", 2)]);
    assert!(!shell.path("broken").exists() && !shell.path("at-probe/broken").exists());
    let asked = String::from_utf8(shell.read("asked")).unwrap();
    assert_eq!(
        asked, "probe umbel net attribute --json --excerpt - -- 'a store; touch broken'\n",
        "the words are quoted for the other shell"
    );
    // Alone, and with the other options.
    let line = "umbel net attribute 'probe:a store; touch broken' --ssh './ssh' --document excerpt \
                --from 2001-01-01 --local 10.3.0.0/16 --json";
    let facts = run(&shell, line).code(0).json();
    assert_eq!(found(&facts), [pair("", 2)]);
    assert_eq!(facts["findings"][0]["trust"], "local source");
    assert_eq!(facts["passed"][0].as_array().map(Vec::len), Some(2));
    let text = run(&shell, &line.replace("--json", "")).code(0);
    assert!(text.text().contains("10.3.3.2") && text.text().contains("local source"), "{}", text.text());
}

#[test]
fn a_machine_that_fails_is_named_and_the_others_are_searched() {
    let shell = prepared();
    std::fs::create_dir(shell.path("at-probe")).unwrap();
    shell.write("garbage", "#!/bin/sh\ncat > /dev/null\necho '{\"findings\": 7}'\n");
    shell.write("outside", "#!/bin/sh\ncat > /dev/null\necho '{\"findings\": [{\"source\": null, \"destination\": null, \"from\": \"2001-01-01\", \"to\": \"2001-01-01\", \"bytes\": 9, \"ranges\": [[9, 3]]}], \"stayed_inside\": 0, \"least_bytes\": 1, \"expected_by_chance\": 0, \"epochs_searched\": 1, \"epochs_unread\": 0}'\n");
    shell.allow("garbage", 0o755);
    shell.allow("outside", 0o755);
    for (ssh, store, says) in [
        (
            "./ssh",
            "probe:missing",
            "cannot search probe:missing: there is no answer: cannot open the store missing",
        ),
        ("./ssh", "nowhere:store", "cannot search nowhere:store: there is no answer"),
        ("./nothing", "probe:store", "cannot start ./nothing"),
        ("./garbage", "probe:store", "the answer is not that of umbel"),
        ("./ssh", "-oProxyCommand=reboot:store", "begins with a dash"),
        ("./ssh", "[-oProxyCommand=reboot]:store", "brackets are for IPv6 addresses alone"),
        ("./ssh", "probe:", "write HOST:PATH"),
        ("false", "probe:store", "there is no answer: ssh ended with"),
    ] {
        let answer =
            run(&shell, &format!("umbel net attribute one --ssh {ssh} --excerpt excerpt -- {store}"));
        let answer = answer.code(2);
        assert!(answer.stderr.contains(says), "{store}: {}", answer.stderr);
        assert!(answer.text().contains("10.3.3.1"), "{store}: {}", answer.text());
    }
    let answer = run(&shell, "umbel net attribute probe:store --ssh ./outside --document excerpt").code(2);
    assert!(answer.stderr.contains("parts that are not in the document"), "{}", answer.stderr);
}

#[test]
fn an_excerpt_is_asked_for_in_all_three_ways() {
    let shell = Shell::new();
    let answer = shell.run("net attribute store").code(2);
    let help = shell.run("net attribute --help").ok();
    for way in ["--excerpt ", "--excerpt-hex ", "--document "] {
        assert!(answer.stderr.contains(way), "{way}: {}", answer.stderr);
        assert!(help.text().contains(way), "{way}");
    }
    shell.run("net attribute store --excerpt x --excerpt-hex 00").code(2);
}

#[test]
fn a_block_digest_is_recorded_and_excludes_other_texts() {
    let shell = prepared();
    record(&shell, 3, "three", "--block-digest");
    let facts = shell.run("net record c.pcap -o more --block-digest --json").ok().json();
    assert!(facts["block_digest_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{facts}");
    assert!(shell.run("net record c.pcap -o more --block-digest").ok().text().contains("block digest"));
    let facts = shell.run("net attribute two three --excerpt excerpt --json").code(0).json();
    assert_eq!(found(&facts), [pair("three", 3), pair("two", 2)]);
    shell.write("other", bytes(99, 300));
    let with = shell.run("net attribute three --excerpt other --json").code(1).json();
    assert!(with["alignments_excluded"].as_u64().is_some_and(|excluded| excluded > 24), "{with}");
    let without = shell.run("net attribute two --excerpt other --json").code(1).json();
    assert_eq!(without["alignments_excluded"], 0);
    shell
        .run("net record c.pcap -o x --method winnowing --block-digest")
        .refused(&["block-digest", "hierarchical"]);
}
