//! `umbel top` finds the most frequent lines, with counts within the reported limits.

use crate::shell::{Shell, line, lines, mix, number};
use std::collections::HashMap;
use std::fmt::Write;
use umbel::sketch::{Frequent, TopK};

/// The number of distinct lines up to which counts are exact.
const EXACT: u64 = 1 << 17;

/// Returns a shuffled stream in which item i occurs 20000 / i times, among lines that occur once,
/// and the counts.
fn zipf(items: u64, singles: u64) -> (String, HashMap<String, u64>) {
    let times = |item: u64| 20_000 / item;
    let mut all: Vec<(u64, String)> = (1..=items)
        .flat_map(|item| (0..times(item)).map(move |time| (mix(item << 32 | time), format!("item-{item}"))))
        .chain((0..singles).map(|single| (mix(1 << 60 | single), format!("once-{single}"))))
        .collect();
    all.sort_unstable();
    let mut text = String::new();
    all.iter().for_each(|(_, line)| writeln!(text, "{line}").unwrap());
    (text, (1..=items).map(|item| (format!("item-{item}"), times(item))).collect())
}

/// Parses the counts and lines of an output.
fn counted(text: &str) -> Vec<(u64, &str)> {
    let fields = text.lines().map(|line| line.split_once('\t').unwrap());
    fields.map(|(count, line)| (count.parse().unwrap(), line)).collect()
}

#[test]
fn the_most_frequent_lines_of_a_skewed_stream_have_counts_within_the_limits() {
    let shell = Shell::new();
    let (text, truth) = zipf(199, 200_000);
    let total = text.lines().count() as u64;
    shell.write("zipf", &text);
    for args in ["", "--error 1e-3"] {
        let answer = shell.run(&format!("top -n 20 {args} zipf")).code(0);
        let top = counted(answer.text());
        let names: Vec<String> = (1..=20).map(|item| format!("item-{item}")).collect();
        assert_eq!(top.iter().map(|(_, line)| *line).collect::<Vec<_>>(), names, "{args}");
        let report = shell.run(&format!("top -n 20 --json {args} zipf")).ok().json();
        let bound = number(&report, "error_bound") as u64;
        assert!(0 < bound && bound <= total / if args.is_empty() { 65_537 } else { 1000 }, "{report}");
        for (count, line) in top {
            assert!(count <= truth[line] && truth[line] <= count + bound, "{line}: {count}, off by {bound}");
        }
        let most = number(&report, "others_at_most") as u64;
        assert!((truth["item-21"]..=truth["item-21"] + bound).contains(&most), "{report}");
        let says =
            format!("too low by up to {bound}, and a line that is not printed came at most {most} times");
        assert!(answer.stderr.contains(&says), "{}", answer.stderr);
        assert_eq!(report["count"], total);
    }
}

#[test]
fn counts_of_few_distinct_lines_are_exact_without_a_message() {
    let shell = Shell::new();
    assert_eq!(shell.pipe("top", "b\na\nc\nb\na\nb\n\n").ok().text(), "3\tb\n2\ta\n1\t\n1\tc\n");
    assert_eq!(shell.pipe("top -n 1", "b\na\nb").ok().text(), "2\tb\n");
    assert_eq!(shell.pipe("top -n 0", "b\n").code(1).text(), "");
    assert_eq!(shell.pipe("top", "").code(1).text(), "");
    let many = [lines(1, 0..EXACT), lines(1, 0..3), lines(1, 1..2)].concat();
    let answer = shell.pipe("top -n 3", &many).ok();
    let line = |number| String::from_utf8(line(1, number)).unwrap();
    let top = counted(answer.text());
    assert_eq!(top[0], (3, &line(1)[..]));
    assert_eq!((top[1].0, top[2].0), (2, 2));
    let report = shell.pipe("top --json -n 1", "b\na\nb\n").ok().json();
    let expected = r#"{"count":3,"error_bound":0,"others_at_most":1,"lines":[{"line":"b","count":2}]}"#;
    assert_eq!(report, serde_json::from_str::<serde_json::Value>(expected).unwrap());
}

#[test]
fn lines_are_printed_unchanged_and_keys_are_extracted_as_by_other_commands() {
    let shell = Shell::new();
    let binary = b"\xff\x00\tx\r\n\xff\x00\tx\r\n\xfe\n";
    assert_eq!(shell.pipe("top", binary).ok().stdout, b"2\t\xff\x00\tx\r\n1\t\xfe\n");
    assert_eq!(shell.pipe("top -0", b"a\nb\0c\0a\nb\0").ok().stdout, b"2\ta\nb\x001\tc\0");
    let report = shell.pipe("top --json", b"\xff\n\xff\na\n").ok().json();
    assert_eq!((&report["lines"][0]["line_hex"], &report["lines"][1]["line"]), (&"ff".into(), &"a".into()));
    let log = "10.0.0.1 /\n10.0.0.2 /\n10.0.0.1 /about\n";
    let args = ["top", "-d", " ", "-F", "1"];
    assert_eq!(shell.pipe(&args, log).ok().text(), "2\t10.0.0.1\n1\t10.0.0.2\n");
    assert_eq!(shell.pipe("top --csv -F 2 --lower", "1,\"A\"\n2,a\n3,b\n").ok().text(), "2\ta\n1\tb\n");
}

#[test]
fn the_same_lines_give_the_same_result_with_any_threads_and_pipes() {
    let shell = Shell::new();
    let (text, _) = zipf(50, 30_000);
    shell.write("zipf", &text);
    shell.run("top --error 1e-3 -j 1 -o one zipf").code(0);
    let one = shell.read("one");
    for args in ["-j 2", "-j 5"] {
        shell.run(&format!("top --error 1e-3 {args} -f -o other zipf")).code(0);
        assert!(shell.read("other") == one, "{args}");
    }
    shell.pipe("top --error 1e-3 -f -o other", &text).code(0);
    assert!(shell.read("other") == one);
    let loaded = Frequent::load(shell.path("one")).unwrap();
    assert_eq!((loaded.k(), loaded.total()), (999, text.lines().count() as u64));
}

#[test]
fn saved_counts_are_united_within_the_limits_of_their_sum() {
    let shell = Shell::new();
    for (name, text) in [("left", "b\na\nb\n"), ("right", "c\nb\nc\nc\nc\n")] {
        shell.write(name, text);
        shell.run(&format!("top -o {name}.umbel {name}")).ok();
    }
    let whole = "4\tc\n3\tb\n1\ta\n";
    for inputs in ["left right", "left.umbel right.umbel", "left right.umbel"] {
        assert_eq!(shell.run(&format!("top {inputs}")).ok().text(), whole, "{inputs}");
    }
    assert_eq!(shell.pipe("top left.umbel -", "c\n".repeat(4) + "b\n").ok().text(), whole);
    assert_eq!(shell.run("top -0 left.umbel").ok().text(), "2\tb\x001\ta\0");

    let (text, truth) = zipf(199, 50_000);
    let half = text.len() / 2 + text[text.len() / 2..].find('\n').unwrap() + 1;
    shell.pipe("top --error 1e-3 -o first", &text[..half]).code(0);
    shell.pipe("top --error 1e-3 -o second", &text[half..]).code(0);
    let report = shell.run("top -n 20 --json first second").ok().json();
    let bound = number(&report, "error_bound") as u64;
    assert!(bound <= number(&report, "count") as u64 / 1000, "{report}");
    for (item, line) in (1..).zip(report["lines"].as_array().unwrap()) {
        let (name, count) = (line["line"].as_str().unwrap(), number(line, "count") as u64);
        assert_eq!(name, format!("item-{item}"));
        assert!(count <= truth[name] && truth[name] <= count + bound, "{name}: {count}, off by {bound}");
    }
}

#[test]
fn incompatible_files_are_named_and_nothing_changes() {
    let shell = Shell::new();
    shell.write("lines", "a\nb\na\n");
    shell.run("top -o fine lines").ok();
    shell.run("top --error 1% -o coarse lines").ok();
    shell.run("distinct -o count lines").ok();
    TopK::new(3).unwrap().save(shell.path("heavy")).unwrap();
    let mut damaged = shell.read("fine");
    *damaged.last_mut().unwrap() ^= 1;
    shell.write("damaged", damaged);
    let before = shell.contents(".");
    for (args, says) in [
        (
            "top fine coarse",
            &["fine and coarse", "number of counters is 65536 in one and 99 in the other"][..],
        ),
        ("top --error 1% fine", &["--error 0.01 and fine", "number of counters is 99"]),
        ("top damaged", &["damaged: the file is damaged"]),
        (
            "top count",
            &["count holds a sketch (distinct): `umbel info` describes it, and `umbel distinct` reads it"],
        ),
        ("top heavy", &["heavy holds a sketch (top-k): `umbel info` describes it"]),
        (
            "check fine lines",
            &["fine holds a sketch (frequent): `umbel info` describes it, and `umbel top` reads it"],
        ),
        ("top -o fine lines", &["fine exists: give -f to replace it"]),
        ("top --error 1e-12 lines", &["k = "]),
        ("top -n x lines", &["not a number"]),
    ] {
        println!("{args}");
        shell.run(args).refused(says);
        assert!(shell.contents(".") == before, "{args}");
    }
    let told = shell.run("info fine").ok();
    for words in ["frequent", "insertions", "error bound", "umbel top"] {
        assert!(told.text().contains(words), "{words}: {}", told.text());
    }
    assert!(shell.run("info heavy").ok().text().contains("top-k"));
    assert!(shell.run("info --bits fine").ok().text().contains("no bits to show"));
}
