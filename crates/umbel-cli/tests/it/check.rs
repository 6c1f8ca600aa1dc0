//! `check` prints all members, and strangers at most at the promised rate, in the order of the
//! input with any number of threads and inputs.

use crate::shell::{self, Shell, line, lines, split, text};
use std::collections::HashSet;
use std::io::{self, Write};
use std::process::ChildStdin;

const MEMBERS: u64 = 60_000;
const STRANGERS: u64 = 120_000;

/// Every kind, with a size at which no other kind is built instead.
const KINDS: [&[&str]; 4] = [
    &["--kind", "blocked"],
    &["--kind", "standard"],
    &["--kind", "partitioned"],
    &["--kind", "literature", "--hash", "murmur3-double"],
];

/// Returns members and strangers in an irregular order, 5 MiB in twenty blocks.
fn crowd() -> Vec<Vec<u8>> {
    let mut crowd: Vec<Vec<u8>> = (0..MEMBERS).map(|number| line(1, number)).collect();
    crowd.extend((0..STRANGERS).map(|number| line(2, number)));
    crowd.sort_by_cached_key(|line| line.iter().fold(0u64, |hash, byte| shell::mix(hash ^ u64::from(*byte))));
    crowd
}

/// Returns the lines that the library finds in a filter when it queries them one by one.
fn asked_one_by_one(shell: &Shell, filter: &str, crowd: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let filter = shell.load(filter).filter;
    crowd.iter().filter(|line| filter.contains(&line[..])).cloned().collect()
}

#[test]
fn every_member_is_printed_and_strangers_at_the_promised_rate() {
    let shell = Shell::new();
    let members: HashSet<Vec<u8>> = (0..MEMBERS).map(|number| line(1, number)).collect();
    let crowd = crowd();
    for (number, kind) in KINDS.iter().enumerate() {
        let filter = format!("{number}.umbel");
        shell.build(&filter, &[&["-n", "60000", "-p", "1%"], *kind].concat(), lines(1, 0..MEMBERS));
        let facts = shell.info(&filter);
        assert_eq!(facts["kind"], kind[1]);
        let answer = shell.pipe(&["check", &filter], text(&crowd)).ok();
        let printed: HashSet<&[u8]> = split(&answer.stdout).into_iter().collect();
        let lost = members.iter().filter(|member| !printed.contains(&member[..])).count();
        assert_eq!(lost, 0, "{kind:?}: members that are not printed");
        // Each stranger passes with the rate of the bits. Their number is within 5 standard
        // deviations of the mean for all but one in 1.7 million choices of keys.
        let wrong = (printed.len() - members.len()) as f64;
        let mean = STRANGERS as f64 * facts["fpr_now"].as_f64().unwrap();
        assert!((wrong - mean).abs() < 5.0 * mean.sqrt(), "{kind:?}: {wrong} strangers, not about {mean}");
        // The bits have the requested rate within 3 %: k is a whole number, and the fill varies.
        assert!(mean < 0.0103 * STRANGERS as f64, "{kind:?}: a rate of {}", mean / STRANGERS as f64);
    }
}

#[test]
fn lines_are_printed_in_the_order_of_the_input_with_any_number_of_threads() {
    let shell = Shell::new();
    let crowd = crowd();
    shell.build("a.umbel", "-p 1%", lines(1, 0..MEMBERS));
    let expected = text(&asked_one_by_one(&shell, "a.umbel", &crowd));
    // Three files, the last two without a final newline, and a pipe between them.
    let (first, rest) = crowd.split_at(50_000);
    let (second, third) = rest.split_at(1);
    let (second, third, fourth) = (second, &third[..60_000], &third[60_000..]);
    shell.write("whole", text(&crowd));
    shell.write("first", text(first));
    shell.write("second", text(second).strip_suffix(b"\n").unwrap());
    shell.write("fourth", text(fourth).strip_suffix(b"\n").unwrap());
    for threads in ["1", "2", "7"] {
        let check = ["check", "-j", threads, "a.umbel"];
        let run = |inputs: &[&str], stdin: &[u8]| shell.pipe(&[&check, inputs].concat(), stdin).ok().stdout;
        assert!(run(&["whole"], b"") == expected, "a file with {threads} threads");
        assert!(run(&[], &text(&crowd)) == expected, "a pipe with {threads} threads");
        assert!(run(&["-"], &text(&crowd)) == expected, "- with {threads} threads");
        assert!(shell.redirect(&check, "whole").ok().stdout == expected, "< with {threads} threads");
        let pieces = ["first", "second", "-", "fourth"];
        assert!(run(&pieces, &text(third)) == expected, "four inputs with {threads} threads");
    }
}

#[test]
fn inverted_output_is_exactly_the_other_lines() {
    let shell = Shell::new();
    let crowd = crowd();
    shell.write("crowd", text(&crowd));
    for kind in KINDS {
        shell.build("a.umbel", &[&["-f", "-n", "60000", "-p", "5%"], kind].concat(), lines(1, 0..MEMBERS));
        let maybe = asked_one_by_one(&shell, "a.umbel", &crowd);
        let set: HashSet<&Vec<u8>> = maybe.iter().collect();
        let no: Vec<&Vec<u8>> = crowd.iter().filter(|line| !set.contains(line)).collect();
        let run = |args: &[&str]| shell.run(&[&["check"], args, &["a.umbel", "crowd"]].concat()).ok();
        assert!(run(&[]).stdout == text(&maybe), "{kind:?}");
        assert!(run(&["-v"]).stdout == text(&no), "{kind:?}");
        assert_eq!(run(&["-c"]).text(), format!("{}\n", maybe.len()));
        assert_eq!(run(&["-v", "-c"]).text(), format!("{}\n", no.len()));
        let all: Vec<Vec<u8>> = crowd
            .iter()
            .map(|line| [&line[..], if set.contains(line) { b"\tmaybe" } else { b"\tno" }].concat())
            .collect();
        assert!(run(&["--label"]).stdout == text(&all), "{kind:?}");
    }
}

#[test]
fn exit_codes_are_those_of_grep() {
    let shell = Shell::new();
    shell.build("a.umbel", "-p 1e-9", "apple\npear\n");
    let run = |args: &[&str], stdin: &str| {
        let answer = shell.pipe(&[&["check", "a.umbel"], args].concat(), stdin);
        assert_eq!(answer.stderr, "");
        (answer.code.unwrap(), String::from_utf8(answer.stdout).unwrap())
    };
    let printed = |code: i32, text: &str| (code, text.to_string());
    for (input, maybe, no) in [
        ("plum\npear\nfig\napple\n", "pear\napple\n", "plum\nfig\n"),
        ("plum\npear", "pear\n", "plum\n"),
        ("plum", "", "plum\n"),
        ("apple", "apple\n", ""),
        ("", "", ""),
        ("\n\napple\n\n", "apple\n", "\n\n\n"),
        // A carriage return, a space or another case makes a different key.
        ("apple\r\n apple\nApple\n", "", "apple\r\n apple\nApple\n"),
    ] {
        let [maybe_code, no_code] = [maybe, no].map(|lines| i32::from(lines.is_empty()));
        assert_eq!(run(&[], input), printed(maybe_code, maybe), "{input:?}");
        assert_eq!(run(&["-v"], input), printed(no_code, no), "{input:?}");
        assert_eq!(run(&["-q"], input), printed(maybe_code, ""), "{input:?}");
        assert_eq!(run(&["-q", "-v"], input), printed(no_code, ""), "{input:?}");
        let count = |lines: &str| format!("{}\n", lines.lines().count());
        assert_eq!(run(&["-c"], input), printed(maybe_code, &count(maybe)), "{input:?}");
        assert_eq!(run(&["-c", "-v"], input), printed(no_code, &count(no)), "{input:?}");
    }
}

#[test]
fn a_line_may_contain_any_byte() {
    let shell = Shell::new();
    let keys: Vec<Vec<u8>> = (0..=255u8).filter(|byte| *byte != b'\n').map(|byte| vec![b'k', byte]).collect();
    shell.build("a.umbel", "-p 1e-9", text(&keys[..100]));
    assert_eq!(shell.pipe("check a.umbel", text(&keys)).ok().stdout, text(&keys[..100]));
    assert_eq!(shell.pipe("check -v a.umbel", text(&keys)).ok().stdout, text(&keys[100..]));
}

#[test]
fn columns_are_added_before_any_line_end() {
    let shell = Shell::new();
    shell.build("a.umbel", &["-p", "1e-9"], "apple\npear\n");
    let input = "x:plum\0y:pear\0";
    let run = |args: &[&str]| {
        shell.pipe(&[&["check", "a.umbel", "-0", "-d", ":", "-F", "2"], args].concat(), input).ok().stdout
    };
    assert_eq!(run(&["--label"]), b"x:plum\tno\0y:pear\tmaybe\0");
    assert_eq!(run(&["--tag", "--print-field"]), b"pear\ta.umbel\0");
}

#[test]
fn quiet_stops_at_the_first_line_of_an_endless_input() {
    let shell = Shell::new();
    shell.build("a.umbel", "-p 1e-9", "y\n");
    for threads in ["1", "2"] {
        for (args, line) in [(&["-q"][..], "y\n"), (&["-q", "-v"], "n\n")] {
            let args = [&["check", "-j", threads, "a.umbel"], args].concat();
            // The writer ends only because the pipe is closed.
            let endless = |mut stdin: ChildStdin| -> io::Result<()> {
                loop {
                    stdin.write_all(line.repeat(4096).as_bytes())?;
                }
            };
            assert_eq!(shell.start(&args).feed(endless).ok().stdout, b"");
        }
    }
}

/// Filters of different kinds, seeds and sizes, including one of the literature and two that share
/// their hash.
const PANEL: [(&str, u64, &[&str]); 5] = [
    ("plain", 20_000, &[]),
    ("same-hash", 70_000, &["--kind", "standard", "-p", "10%"]),
    ("seeded", 5_000, &["--seed", "7", "--kind", "partitioned"]),
    ("other-seed", 90_000, &["--seed", "8"]),
    ("literature", 1_000, &["-n", "1000", "--kind", "literature", "--hash", "sha1-slices", "-p", "5%"]),
];

#[test]
fn several_filters_are_queried_together() {
    let shell = Shell::new();
    let crowd: Vec<Vec<u8>> = (0..120_000).map(|number| line(3, number)).collect();
    shell.write("crowd", text(&crowd));
    let mut filters = Vec::new();
    for (name, count, args) in PANEL {
        // Each holds another range of the lines; some lines are in all of them.
        let members = &crowd[10_000 - count.min(9_000) as usize..][..count as usize];
        shell.build(name, args, text(members));
        filters.push((name, shell.load(name).filter));
    }
    let tags = |line: &[u8]| -> Vec<&str> {
        filters.iter().filter(|(_, filter)| filter.contains(line)).map(|(name, _)| *name).collect()
    };
    let tags: Vec<Vec<&str>> = crowd.iter().map(|line| tags(line)).collect();
    let chosen = |choose: &dyn Fn(usize) -> bool| -> Vec<u8> {
        let lines = crowd.iter().zip(&tags).filter(|(_, tags)| choose(tags.len()));
        text(&lines.map(|(line, _)| line).collect::<Vec<_>>())
    };
    for threads in ["1", "2"] {
        let run = |args: &[&str]| {
            let with: Vec<&str> = PANEL[1..].iter().flat_map(|(name, ..)| ["--with", *name]).collect();
            let check = ["check", "-j", threads, PANEL[0].0, "crowd"];
            shell.run(&[&check[..], &with, args].concat()).ok().stdout
        };
        let any = chosen(&|tags| tags > 0);
        let all = chosen(&|tags| tags == PANEL.len());
        assert!(split(&all).len() >= 1_000 && split(&any).len() < crowd.len(), "the test means something");
        assert!(run(&[]) == any && run(&["--any"]) == any);
        assert!(run(&["--all"]) == all);
        assert!(run(&["-v"]) == chosen(&|tags| tags == 0));
        assert!(run(&["--all", "-v"]) == chosen(&|tags| tags < PANEL.len()));
        assert_eq!(run(&["--all", "-c"]), format!("{}\n", split(&all).len()).into_bytes());
        let tagged = |choose: &dyn Fn(usize) -> bool| -> Vec<u8> {
            let lines = crowd.iter().zip(&tags).filter(|(_, tags)| choose(tags.len()));
            text(
                &lines
                    .map(|(line, tags)| [&line[..], b"\t", tags.join(",").as_bytes()].concat())
                    .collect::<Vec<_>>(),
            )
        };
        assert!(run(&["--tag"]) == tagged(&|tags| tags > 0));
        assert!(run(&["--tag", "--all"]) == tagged(&|tags| tags == PANEL.len()));
        let both: Vec<Vec<u8>> = crowd
            .iter()
            .zip(&tags)
            .map(|(line, tags)| {
                let label = if tags.is_empty() { "\tno\t" } else { "\tmaybe\t" };
                [&line[..], label.as_bytes(), tags.join(",").as_bytes()].concat()
            })
            .collect();
        assert!(run(&["--label", "--tag"]) == text(&both));
    }
}
