//! `add` inserts lines and can print the new ones, `uniq` remembers its lines in a filter, and
//! `remove` explains why it cannot remove any.

use crate::shell::{self, Answer, Shell, first_occurrences, line, lines, split, text};
use std::collections::HashSet;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use umbel::{AnyFilter, Kind, Spec};

const KINDS: [&[&str]; 4] = [
    &["--kind", "blocked"],
    &["--kind", "standard"],
    &["--kind", "partitioned"],
    &["--kind", "literature", "--hash", "murmur3"],
];

#[test]
fn adding_lines_equals_building_with_all_lines() {
    let shell = Shell::new();
    let (before, after) = (lines(1, 0..30_000), lines(2, 0..25_000));
    shell.write("after", &after);
    for kind in KINDS {
        let size = ["-f", "-n", "60000"];
        shell.build("whole", &[&size, kind].concat(), [&before[..], &after].concat());
        for add in
            [&["add", "f", "after"][..], &["add", "-j", "1", "f", "after"], &["add", "-j", "7", "f", "after"]]
        {
            shell.build("f", &[&size, kind].concat(), &before);
            shell.run(add).ok();
            assert!(shell.read("f") == shell.read("whole"), "{kind:?} {add:?}");
        }
        assert_eq!(shell.info("f")["count"], 55_000);
    }
    // With a filter that threads share: more than 32 MiB for the second thread.
    shell.build("whole", "-f -n 32e6", [&before[..], &after].concat());
    shell.build("f", "-f -n 32e6", &before);
    let facts = shell.run("add -j 2 --json f after").ok().json();
    assert!(shell.read("f") == shell.read("whole"));
    for (name, value) in facts.as_object().unwrap() {
        assert_eq!(value, &shell.info("f")[name], "{name}");
    }
}

#[test]
fn new_lines_are_printed_in_order_and_once() {
    let shell = Shell::new();
    let old: HashSet<Vec<u8>> = (0..30_000).map(|number| line(1, number)).collect();
    // Old and new lines mixed, each twice, at different distances: within a tile, a block and
    // several blocks.
    let number = |i: u64| if i % 7 == 6 { i - 3 } else { i };
    let mixed: Vec<Vec<u8>> =
        (0..120_000).map(|i| line(1 + i % 2, if i < 60_000 { number(i) / 2 } else { i / 2 })).collect();
    let input = text(&mixed);
    let all: Vec<&[u8]> = mixed.iter().map(Vec::as_slice).collect();
    let expected: Vec<&[u8]> =
        first_occurrences(&all).into_iter().filter(|line| !old.contains(*line)).collect();
    assert!(
        expected.len() > 50_000 && expected.len() < 100_000,
        "the test means something: {}",
        expected.len()
    );
    for kind in KINDS {
        for threads in ["1", "2", "7"] {
            // At a rate of 10^-9, none of 60 000 new lines is a false positive.
            let size = ["-f", "-n", "200000", "-p", "1e-9"];
            shell.build("f", &[&size, kind].concat(), lines(1, 0..30_000));
            shell.build("plain", &[&size, kind].concat(), lines(1, 0..30_000));
            let answer = shell.pipe(&["add", "--new", "-j", threads, "f"], &input).ok();
            assert!(answer.stdout == text(&expected), "{kind:?}, {threads} threads");
            // The filter is the same as without --new.
            shell.pipe("add plain", &input).ok();
            assert!(shell.read("f") == shell.read("plain"), "{kind:?}, {threads} threads");
            assert_eq!(shell.pipe("add --new f", &input).ok().stdout, b"");
        }
    }
}

#[test]
fn an_overfull_filter_causes_a_warning_with_its_rate() {
    let shell = Shell::new();
    for kind in KINDS {
        shell.build("f", &[&["-f", "-n", "60000"], kind].concat(), lines(1, 0..60_000));
        // Lines that are already in the filter do not fill it further.
        shell.pipe("add f", lines(1, 0..60_000)).ok();
        let answer = shell.pipe("add f", lines(2, 0..30_000)).code(0);
        let facts = shell.info("f");
        let said = &answer.stderr;
        assert!(said.starts_with("umbel: the filter holds about "), "{said}");
        assert!(said.contains("keys, more than the 60000 it was made for: its rate is "), "{said}");
        let word = |after: &str| {
            said.split(after).nth(1).unwrap().split(' ').next().unwrap().parse::<f64>().unwrap()
        };
        assert!((word("about ") - facts["estimated_count"].as_f64().unwrap()).abs() <= 0.5, "{said}");
        assert!((word("rate is ") / 100.0 / facts["fpr_now"].as_f64().unwrap() - 1.0).abs() < 1e-3, "{said}");
        assert!(said.ends_with(" % instead of 1 %\n"), "{said}");
        // The estimate is right: 90 000 keys within 5 standard errors, missed once in 1.7 million.
        let (keys, error) = (&facts["estimated_count"], &facts["estimated_count_error"]);
        let off = (keys.as_f64().unwrap() - 90_000.0) / error.as_f64().unwrap();
        assert!(off.abs() < 5.0, "{kind:?}: {off} standard errors");
    }
}

#[test]
fn the_file_is_replaced_atomically_and_keeps_its_permissions_and_links() {
    let shell = Shell::new();
    shell.build("f", "-n 1000", "a\n");
    shell.allow("f", 0o640);
    std::fs::create_dir(shell.path("folder")).unwrap();
    symlink("../f", shell.path("folder/link")).unwrap();
    let (before, inode) = (shell.read("f"), std::fs::metadata(shell.path("f")).unwrap().ino());
    // A process that has the file open continues to read the old contents.
    let mut open = std::fs::File::open(shell.path("f")).unwrap();
    shell.pipe("add folder/link", "b\n").ok();
    let mut seen = Vec::new();
    open.read_to_end(&mut seen).unwrap();
    assert!(seen == before && shell.read("f") != before);
    let after = std::fs::metadata(shell.path("f")).unwrap();
    assert_ne!(after.ino(), inode);
    assert_eq!(after.permissions().mode() & 0o7777, 0o640);
    assert!(std::fs::symlink_metadata(shell.path("folder/link")).unwrap().is_symlink());
    assert_eq!((shell.names(".").len(), shell.names("folder").len()), (2, 1), "nothing else is left");
    assert_eq!(shell.pipe("check folder/link", "a\nb\nc\n").ok().text(), "a\nb\n");
}

#[test]
fn adding_lines_keeps_the_metadata() {
    let shell = Shell::new();
    shell.build("f", "-n 1000 --meta source=here", "a\n");
    shell.pipe("add f", "b\n").ok();
    assert_eq!(shell.run("meta f source").ok().text(), "here\n");
}

#[test]
fn uniq_prints_the_first_occurrence_of_every_line() {
    let shell = Shell::new();
    // 100 000 lines, 40 000 of them distinct, most of them far from their repetition.
    let input: Vec<Vec<u8>> = (0..100_000u64).map(|i| line(1, shell::mix(i) % 43_000)).collect();
    let input: Vec<&[u8]> = input.iter().map(Vec::as_slice).collect();
    let expected = first_occurrences(&input);
    assert!((35_000..43_000).contains(&expected.len()));
    for threads in ["1", "2", "7"] {
        for size in [&[][..], &["-n", "43000"], &["--max-bytes", "1MiB"], &["-p", "1e-9"]] {
            let answer =
                shell.pipe(&[&["uniq", "--seed", "0", "-j", threads], size].concat(), text(&input)).code(0);
            // At a rate of at most 10^-6, 0.04 lines are dropped on average.
            assert!(answer.stdout == text(&expected), "{threads} threads, {size:?}");
            let said = format!("umbel: {} different lines of 100000; ", expected.len());
            assert!(answer.stderr.starts_with(&said), "{}", answer.stderr);
        }
        shell.pipe(&["uniq", "-q", "-j", threads], text(&input)).ok();
    }
    assert_eq!(shell.pipe("uniq -q", "").ok().stdout, b"");
    assert_eq!(shell.pipe("uniq -q", "b\na\n\nb\n\na").ok().stdout, b"b\na\n\n");
}

/// Parses the summary of `uniq`: the number of lines printed, and the expected number of lines
/// dropped.
fn said(answer: &Answer) -> (u64, f64) {
    let words: Vec<&str> = answer.stderr.split_ascii_whitespace().collect();
    assert_eq!((words[0], words[2], words[3]), ("umbel:", "different", "lines"), "{}", answer.stderr);
    (words[1].parse().unwrap(), words[6].parse().unwrap())
}

#[test]
fn uniq_drops_as_many_lines_as_it_reports() {
    let shell = Shell::new();
    const LINES: u64 = 200_000;
    for (size, family) in [("200000", 1), ("100000", 2), ("50000", 3)] {
        let input = lines(family, 0..LINES);
        let answer = shell
            .pipe(&["uniq", "--seed", "0", "-n", size, "-p", "5%"], [&input[..], &input].concat())
            .code(0);
        let printed = split(&answer.stdout);
        assert_eq!(first_occurrences(&printed).len(), printed.len(), "no line comes twice");
        let different: HashSet<&[u8]> = split(&input).into_iter().collect();
        assert!(printed.iter().all(|line| different.contains(line)));
        let (kept, expected) = said(&answer);
        assert_eq!(kept, printed.len() as u64);
        // Lines are dropped independently, with a probability that depends on the fill: the number
        // follows a Poisson distribution, and is more than 5 standard deviations from its mean for
        // one in 1.7 million choices of lines.
        let dropped = (LINES - kept) as f64;
        assert!(dropped > 500.0, "the test means something: {dropped}");
        let sigmas = (dropped - expected) / expected.sqrt();
        assert!(sigmas.abs() < 5.0, "-n {size}: {dropped} dropped, {expected} expected, {sigmas:.1} sigma");
        let warned =
            answer.stderr.contains(&format!("more than the {size} for which 5 % holds: give a larger -n"));
        assert_eq!(warned, size != "200000", "{}", answer.stderr);
    }
}

#[test]
fn uniq_loses_other_lines_in_every_run_unless_it_is_seeded() {
    let shell = Shell::new();
    let input = lines(1, 0..4000);
    let run = |options: &str| shell.pipe(&format!("uniq -q -n 2000 -p 20% {options}"), &input).ok().stdout;
    assert!(run("") != run(""), "among hundreds of lost lines, some differ");
    assert!(run("--seed 7") == run("--seed 7"));
    assert!(run("--seed 7") != run("--seed 8"));
    let summary = |options: &str| shell.pipe(&format!("uniq {options}"), "a\n").code(0).stderr;
    assert!(summary("--seed 7").ends_with("(public hash: if no line was crafted to collide)\n"));
    assert!(summary("").ends_with("(secret hash: for any lines)\n"));
}

/// An attacker who knows the lines so far computes lines that the filter mistakes for repeated ones,
/// for the hash with the seed 0.
#[test]
fn uniq_drops_no_line_because_of_lines_crafted_to_collide() {
    const LINES: u64 = 2000;
    const VICTIMS: usize = 300;
    let shell = Shell::new();
    let seen = lines(1, 0..LINES);
    let mut filter = AnyFilter::build(Kind::Blocked, &Spec::new(LINES, 0.01).unwrap()).unwrap();
    filter.insert_batch(&split(&seen)[..]).unwrap();
    let candidates = (0..).map(|number| format!("ALERT {number}"));
    let victims: Vec<String> =
        candidates.filter(|line| filter.contains(line.as_str())).take(VICTIMS).collect();
    let input = [&seen[..], format!("{}\n", victims.join("\n")).as_bytes()].concat();
    let dropped = |options: &str| {
        let answer = shell.pipe(&format!("uniq -q -n {LINES} -p 1% {options}"), &input).ok();
        let printed: HashSet<&[u8]> = split(&answer.stdout).into_iter().collect();
        victims.iter().filter(|line| !printed.contains(line.as_bytes())).count()
    };
    assert_eq!(dropped("--seed 0"), VICTIMS, "the attack works if the hash is public");
    // 3 of 300 are expected at a rate of 1 %, and 30 are less likely than one in 10^18.
    assert!(dropped("") < 30);
}

#[test]
fn uniq_has_the_capacity_that_its_help_states() {
    let shell = Shell::new();
    let plan = shell.run("plan -m 64MiB -p 1e-6 --json").ok().json();
    let capacity = plan["capacity"].as_u64().unwrap();
    let help = shell.run("uniq --help").ok();
    let help: Vec<&str> = help.text().split_ascii_whitespace().collect();
    assert!(help.join(" ").contains(&format!("enough for {} million distinct lines", capacity / 1_000_000)));
}

#[test]
fn removing_is_refused_with_the_reason() {
    let shell = Shell::new();
    for kind in KINDS {
        shell.build("f", &[&["-f", "-n", "60000"], kind].concat(), "a\nb\n");
        let before = shell.read("f");
        let answer = shell.pipe("remove f", "a\n");
        let reason = format!("f is a {} filter, which cannot remove keys: several keys share a bit", kind[1]);
        answer.refused(&[&reason]);
        assert!(shell.read("f") == before);
    }
}
