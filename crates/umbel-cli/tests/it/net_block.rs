//! `umbel net block` as used by a firewall: it responds line by line, keeps its state over
//! restarts, and no line can end it.

use crate::shell::{Shell, number};
use std::time::Duration;

/// A time limit that suffices on a busy machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn every_line_of_a_firewall_gets_a_response() {
    let shell = Shell::new();
    let mut firewall = shell.start("net block");
    for (line, answer) in [
        ("@4000000000 block 192.0.2.7 60", "blocked 192.0.2.7 until 4000000060.000"),
        ("block 198.51.100.9/24 60", "blocked 198.51.100.0/24 until 4000000060.000 (host bits cleared)"),
        ("block 2001:db8::/32", "blocked 2001:db8::/32 until 4000003600.000"),
        ("check 192.0.2.7", "blocked 192.0.2.7 by 192.0.2.7 until 4000000060.000"),
        ("check ::ffff:198.51.100.3", "blocked 198.51.100.3 by 198.51.100.0/24 until 4000000060.000"),
        ("check 192.0.2.8", "free 192.0.2.8"),
        ("allow 2001:db8:0:53::/64", "allowed 2001:db8:0:53::/64"),
        ("check 2001:db8:0:53::1", "allowed 2001:db8:0:53::1 by 2001:db8:0:53::/64"),
        ("check 2001:db8::1", "blocked 2001:db8::1 by 2001:db8::/32 until 4000003600.000"),
        ("unblock 192.0.2.7", "unblocked 192.0.2.7"),
        ("check 192.0.2.7", "free 192.0.2.7"),
        ("tick @4000000059.999", "time 4000000059.999"),
        ("check 198.51.100.3", "blocked 198.51.100.3 by 198.51.100.0/24 until 4000000060.000"),
        ("tick @4000000060", "time 4000000060.000"),
        ("check 198.51.100.3", "free 198.51.100.3"),
    ] {
        // The response arrives before the next line is sent.
        firewall.send(format!("{line}\n"));
        let heard = firewall.next_line(RESPONSE_TIMEOUT).unwrap_or_else(|| panic!("no answer to {line}"));
        assert_eq!(String::from_utf8_lossy(&heard), format!("{answer}\n"));
    }
    let rest = firewall.finish().ok();
    assert_eq!(rest.text(), "");
}

#[test]
fn the_system_clock_is_used_by_default() {
    let shell = Shell::new();
    let mut firewall = shell.start("net block --lifetime 400ms");
    firewall.send("block 192.0.2.7\n");
    assert!(firewall.next_line(RESPONSE_TIMEOUT).is_some_and(|line| line.starts_with(b"blocked ")));
    std::thread::sleep(Duration::from_millis(450));
    firewall.send("check 192.0.2.7\n");
    assert_eq!(firewall.next_line(RESPONSE_TIMEOUT).as_deref(), Some(&b"free 192.0.2.7\n"[..]));
}

#[test]
fn invalid_lines_are_errors_and_do_not_end_the_session() {
    let shell = Shell::new();
    let mut lines =
        b"\n\x00\xff\nblock\nblock nobody\nblock 192.0.2.7 -1\nblock 192.0.2.7/33\nchek 192.0.2.7\nsave\n"
            .to_vec();
    lines.extend(b"x".repeat(100_000));
    lines.extend(b"\ntick @never\nblock 1.2.3.4 5 6\ncheck 192.0.2.7\nblock 192.0.2.7\r\n@1 stats");
    let said = shell.pipe("net block", lines).ok();
    let answers: Vec<&str> = said.text().lines().collect();
    assert_eq!(answers.len(), 14);
    for (i, answer) in answers.iter().enumerate() {
        let expected = match i {
            11 => "free ",
            12 => "blocked 192.0.2.7 until ",
            _ => "error ",
        };
        assert!(answer.starts_with(expected) && answer.len() > 25 || i == 11, "{i}: {answer}");
    }
}

#[test]
fn a_restart_keeps_entries_and_their_expiry() {
    for engine in ["exact", "aging"] {
        let shell = Shell::new();
        let args = format!("net block --state kept --engine {engine} --lifetime 80s");
        let said =
            shell.pipe(&args, "@4000000000 block 192.0.2.0/24\nblock 2001:db8::7\nallow 192.0.2.1\n").ok();
        assert_eq!(said.text().lines().count(), 3);
        let lines =
            "@4000000079 check 192.0.2.7\ncheck 2001:db8::7\ncheck 192.0.2.1\n@4000000080 check 192.0.2.7\n";
        let said = shell.pipe("net block --state kept --at 4000000001", lines).ok();
        let firsts: Vec<&str> = said.text().lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(firsts, ["blocked", "blocked", "allowed", "free"], "{engine}");
        // Nothing was changed, so the file is unchanged; `save` writes it, and so does the end
        // after a change.
        let before = shell.read("kept");
        let said = shell
            .pipe("net block --state kept --at 4000000001", "@4000000070 block 203.0.113.9\nsave\n")
            .ok();
        assert!(said.text().ends_with("saved kept\n"));
        let after = shell.read("kept");
        assert!(after != before);
        shell.pipe("net block --state kept --at 4000000071", "check 203.0.113.9\n").ok();
        assert_eq!(shell.read("kept"), after);
        assert_eq!(shell.names("."), ["kept"]);

        shell.write("half", &after[..after.len() / 2]);
        shell.pipe("net block --state half", "stats\n").refused(&["half", "truncated", "bytes"]);
        let mut broken = after.clone();
        broken[after.len() / 2] ^= 1;
        shell.write("broken", broken);
        shell.pipe("net block --state broken", "stats\n").refused(&["broken", "damaged"]);
        shell.write("text", "192.0.2.7\n");
        shell.pipe("net block --state text", "stats\n").refused(&["text", "not the state of a blocklist"]);
        shell.pipe("net block --state kept -n 7", "stats\n").refused(&["kept", "--capacity"]);
        assert_eq!(shell.read("half").len(), after.len() / 2, "what was refused is left alone");
    }
}

/// Signals as sent to a service, or by Ctrl-C to a script.
#[test]
fn a_signal_saves_the_state_before_the_end() {
    for signal in ["TERM", "INT"] {
        let shell = Shell::new();
        let mut firewall = shell.start("net block --state kept --at 4000000000");
        firewall.send("block 192.0.2.7 60\n");
        assert!(firewall.next_line(RESPONSE_TIMEOUT).is_some_and(|line| line.starts_with(b"blocked ")));
        let id = firewall.child().id().to_string();
        assert!(shell.program("kill").args(["-s", signal, &id]).status().unwrap().success());
        // The input is still open, so only the signal ends the process.
        assert_eq!(firewall.next_line(RESPONSE_TIMEOUT), None);
        firewall.finish().ok();
        let said = shell.pipe("net block --state kept --at 4000000001", "check 192.0.2.7\n").ok();
        assert_eq!(said.text(), "blocked 192.0.2.7 by 192.0.2.7 until 4000000060.000\n", "{signal}");
    }
}

#[test]
fn one_process_at_a_time_uses_a_state_file() {
    let shell = Shell::new();
    shell.write("list", "198.51.100.0/24\n");
    shell.write("log", "192.0.2.7\n");
    let mut firewall = shell.start("net block --state kept");
    // From the start, and after the file was replaced.
    for lines in [&["stats\n"][..], &["block 192.0.2.7\n", "save\n"]] {
        for line in lines {
            firewall.send(line);
            assert!(firewall.next_line(RESPONSE_TIMEOUT).is_some());
        }
        let batch = shell.start("net block --state kept --list list --check log --wait 1s");
        shell.pipe("net block --state kept --wait 1s", "block 203.0.113.9\n").refused(&["kept is locked by"]);
        batch.finish().refused(&["kept is locked by"]);
    }
    // Queries do not need the lock.
    assert_eq!(shell.run("net block --state kept --check log").ok().text(), "192.0.2.7\n");
    firewall.finish().ok();
    shell.run("net block --state kept --list list --check log").ok();
    let said = shell.pipe("net block --state kept", "check 198.51.100.1\ncheck 203.0.113.9\n").ok();
    let firsts: Vec<&str> = said.text().lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(firsts, ["blocked", "free"]);
    assert_eq!(shell.names("."), ["kept", "list", "log"]);
}

#[test]
fn concurrent_lists_are_all_kept() {
    let shell = Shell::new();
    shell.write("log", "192.0.2.255\n");
    shell.pipe("net block --state kept -n 100", "").ok();
    let lists: Vec<_> = (0..8)
        .map(|number| {
            shell.write(&format!("list{number}"), format!("192.0.2.{number}\n"));
            shell.start(&format!("net block --state kept --list list{number} --check log"))
        })
        .collect();
    lists.into_iter().for_each(|list| assert_eq!(list.finish().code(1).stderr, ""));
    let said = shell.pipe("net block --state kept", "stats\n").ok();
    assert!(said.text().contains(" blocked=8 "), "{}", said.text());
}

#[test]
fn a_state_that_cannot_be_written_is_refused_before_the_first_line() {
    let shell = Shell::new();
    let mut firewall = shell.start("net block --state nowhere/kept");
    assert_eq!(firewall.next_line(RESPONSE_TIMEOUT), None);
    firewall.finish().refused(&["nowhere/kept", "No such file"]);
}

#[test]
fn meaningless_options_are_reported() {
    let shell = Shell::new();
    shell.write("list", "192.0.2.7 60\n");
    shell.run("net block --list - --check -").refused(&["standard input"]);
    shell.run("net block --list list --check list --json").refused(&["--json"]);
    let said = shell.run("net block --allow list --innocent list").code(0);
    assert!(said.stderr.contains("allowed entries, which do not expire"), "{}", said.stderr);
}

#[test]
fn a_clock_behind_the_state_unblocks_no_address() {
    let shell = Shell::new();
    shell.pipe("net block --state kept", "@4000000000 block 192.0.2.7 60\n").ok();
    let said = shell.pipe("net block --state kept --at 3900000000", "check 192.0.2.7\n").code(0);
    assert!(said.stderr.contains("100000000 s ahead of the clock"), "{}", said.stderr);
    assert_eq!(said.text(), "blocked 192.0.2.7 by 192.0.2.7 until 4000000060.000\n");
}

#[test]
fn lists_are_loaded_and_logs_are_checked() {
    let shell = Shell::new();
    shell.write(
        "drop",
        "; published today\n192.0.2.0/24 ; SBL1\n2001:db8::/32\n\n203.0.113.9 60 # a minute\n",
    );
    shell.write("friends", "192.0.2.1\n");
    let log = "192.0.2.7 GET /\n192.0.2.1 GET /\n198.51.100.1 GET /\n2001:db8::1 GET /\n\n203.0.113.9\n";
    shell.write("log", log);
    for engine in ["exact", "aging"] {
        shell.write(
            "drop",
            "; published today\n192.0.2.0/24 ; SBL1\n2001:db8::/32\n\n203.0.113.9 # for good\n",
        );
        let args = format!("net block --engine {engine} --list drop --allow friends -p 1e-9 --seed 1");
        let said = shell.run(&format!("{args} --check log")).ok();
        assert_eq!(said.text(), "192.0.2.7 GET /\n2001:db8::1 GET /\n203.0.113.9\n", "{engine}");
        shell.pipe(&format!("{args} --check -"), log).ok();
        assert_eq!(shell.pipe(&format!("{args} --check -"), "198.51.100.1\n").code(1).text(), "");
    }
    shell.write("bad", "192.0.2.0/24\nnobody\n192.0.3.7/24\n1.2.3.4.5\n");
    let said = shell.pipe("net block --list bad --check -", "192.0.3.1\nwho\n").code(0);
    assert_eq!(said.text(), "192.0.3.1\n");
    for sentence in [
        "skipped: 2; of the first, address = \"nobody\"",
        "cleared: 1",
        "skipped: 1; of the first, address = \"who\"",
    ] {
        assert!(said.stderr.contains(sentence), "{}", said.stderr);
    }
    shell.run("net block --list missing --check log").refused(&["missing"]);
    shell.run("net block --list drop -n 1 --check log").refused(&["cannot block", "takes no more"]);
}

#[test]
fn blocked_innocents_are_counted_and_limited() {
    let shell = Shell::new();
    let host = |first: u32, i: u32| std::net::Ipv4Addr::from((first << 24) + i * 3);
    let text = |first, many| (0..many).map(|i| format!("{}\n", host(first, i))).collect::<String>();
    shell.write("bad", text(10, 5000));
    shell.write("good", text(11, 100_000));
    let facts = |args: &str| {
        shell.run(&format!("net block {args} --list bad --innocent good --json --seed 3")).ok().json()
    };
    let aging = facts("--engine aging -n 5000 -p 1%");
    let (blocked, expected) = (number(&aging, "blocked"), number(&aging, "expected_by_filter"));
    // An eighth of a hundredth, since all entries are in one generation; within four standard
    // errors.
    assert!(
        (100.0..150.0).contains(&expected) && (blocked - expected).abs() < 4.0 * expected.sqrt(),
        "{aging}"
    );
    let exact = facts("-n 5000 -p 1%");
    assert_eq!(number(&exact, "blocked"), 0.0);
    assert!(number(&exact, "blocked_by_filter") > 800.0, "{exact}");
    let fitted = facts("--engine aging -n 5000 --clients 1e6 --budget 10");
    assert!(number(&fitted, "expected_clients") <= 10.0, "{fitted}");
    shell
        .run("net block --engine aging -p 1% --clients 1e6 --list bad --innocent good")
        .refused(&["at most 1.0e-6", "10000.0 would be"]);
    let said = shell.run("net block --list bad --innocent good").ok();
    assert!(said.text().contains("innocent addresses") && said.text().contains("100000"), "{}", said.text());
    shell.run("net block --generations 4 --check good").refused(&["--engine aging"]);
    shell.run("net block --lifetime 0s --check good").refused(&["not a time"]);
}

#[test]
fn a_given_secret_opens_the_state() {
    let shell = Shell::new();
    shell.run("key new secret").code(0);
    shell.pipe("net block --state kept --key-file secret", "@4000000000 block 192.0.2.7\n").ok();
    shell.pipe("net block --state kept", "stats\n").refused(&["kept", "secret"]);
    let said = shell
        .pipe("net block --state kept --key-file secret --at 4000000001", "@4000000001 check 192.0.2.7\n")
        .ok();
    assert!(said.text().starts_with("blocked "));
}
