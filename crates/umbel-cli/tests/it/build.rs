//! `build`: the same lines produce the same file however they are read, and the filter has the size
//! that the lines need.

use crate::shell::{self, Process, Shell, write_lines};

/// Returns 1.7 MB of lines, seven blocks, every third line a repetition.
fn some_lines() -> Vec<u8> {
    let lines: Vec<Vec<u8>> = (0..60_000).map(|number| shell::line(1, number / 3 * 2 + number % 2)).collect();
    shell::text(&lines)
}

/// The files that the text is cut into for `same_for_every_way_in`; none of them is empty.
const PIECES: [&str; 3] = ["first", "second", "third"];

/// Writes the lines as one file, and as several.
fn lay_out(shell: &Shell, text: &[u8]) {
    shell.write("whole", text);
    let end = |from: usize| from + text[from..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let (left, right) = (end(text.len() / 5), end(text.len() / 2));
    for (name, piece) in PIECES.into_iter().zip([&text[..left], &text[left..right], &text[right..]]) {
        shell.write(name, piece);
    }
}

/// Asserts that a filter built from a file by one thread is the same with more threads, from a
/// pipe, from `<` and from several files.
#[track_caller]
fn same_for_every_way_in(shell: &Shell, recipe: &[&str], threads: [&str; 2]) -> Vec<u8> {
    let [some, many] = threads;
    let args = |threads, inputs: &[&'static str]| [&["build", "-j", threads], recipe, inputs].concat();
    let expected = shell.run(&args("1", &["whole"])).ok().stdout;
    let same = |bytes: Vec<u8>, how: &str| assert!(bytes == expected, "{recipe:?}: {how}");
    same(shell.run(&args(some, &["whole"])).ok().stdout, "some threads");
    same(shell.run(&args(many, &["whole"])).ok().stdout, "many threads");
    same(shell.pipe(&args(some, &[]), shell.read("whole")).ok().stdout, "a pipe");
    same(shell.redirect(&args(many, &["-"]), "whole").ok().stdout, "<");
    same(shell.run(&args(some, &PIECES)).ok().stdout, "several files");
    expected
}

#[test]
fn the_same_lines_produce_the_same_file_for_every_kind_and_hash() {
    let shell = Shell::new();
    lay_out(&shell, &some_lines());
    shell.write("keyed", "umbel-key keyed 000102030405060708090a0b0c0d0e0f\n");
    shell.write("sealed", format!("umbel-key sealed {}\n", "5a".repeat(32)));
    for name in ["keyed", "sealed"] {
        shell.allow(name, 0o600);
    }
    let mut all = Vec::new();
    let hashes: [&[&str]; 4] = [&[], &["--seed", "9"], &["--key-file", "keyed"], &["--key-file", "sealed"]];
    for kind in ["blocked", "standard", "partitioned"] {
        for hash in hashes {
            for size in [&[][..], &["-n", "50000"]] {
                let recipe = [&["--kind", kind, "-p", "1/500"], hash, size].concat();
                all.push(same_for_every_way_in(&shell, &recipe, ["2", "7"]));
            }
        }
    }
    for family in umbel::literature::Family::ALL {
        // Three hash functions, which every family supports.
        let recipe = ["--kind", "literature", "--hash", family.name(), "-n", "40000", "-p", "10%"];
        all.push(same_for_every_way_in(&shell, &recipe, ["2", "7"]));
    }
    // The filters differ; otherwise an option without any effect would pass.
    let different: std::collections::HashSet<&Vec<u8>> = all.iter().collect();
    assert_eq!(different.len(), all.len());
}

#[test]
fn threads_that_share_a_large_filter_produce_the_same_file() {
    let shell = Shell::new();
    lay_out(&shell, &some_lines());
    for kind in ["blocked", "standard", "partitioned"] {
        // More than 32 MiB for the second thread alone, or for 31 further ones; first filled
        // directly, then from digests.
        let large = same_for_every_way_in(&shell, &["--kind", kind, "-n", "32e6"], ["2", "3"]);
        assert!(large.len() > 32 << 20, "{}", large.len());
        same_for_every_way_in(&shell, &["--kind", kind, "-n", "1e6"], ["32", "40"]);
        let small = same_for_every_way_in(&shell, &["--kind", kind, "-p", "1e-12"], ["255", "900"]);
        assert!(small.len() * 254 > 32 << 20, "{}", small.len());
    }
}

#[test]
fn a_filter_is_sized_for_the_distinct_lines() {
    let shell = Shell::new();
    for (number, (distinct, times)) in [
        (1, 1),
        (1, 5),
        (10, 3),
        (1_000, 1),
        (1_000, 4),
        (30_000, 2),
        (300_000, 1),
        (300_000, 3),
        (1_000_000, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let lines = shell::lines(10 + number as u64, 0..distinct).repeat(times);
        let facts = shell.pipe("build -f -o f --json", lines).ok().json();
        let capacity = facts["capacity"].as_u64().unwrap();
        // Lines are counted with a standard error of 0.2 %, and two standard errors are added. A
        // capacity 0.5 % too low is thus an error of 4.5 of them, which happens for one in 300 000
        // choices of lines; one 1 % too high is an error of 2.9 of them, one in 500. The lines are
        // fixed.
        let least = distinct as f64 * 0.995;
        let most = (distinct as f64 * 1.01).min((distinct * times as u64) as f64);
        assert!((least..=most).contains(&(capacity as f64)), "{capacity} for {distinct} lines {times} times");
        assert_eq!(facts["count"], distinct * times as u64);
        // The rate holds: with 0.5 % more keys than planned, a rate of 1 % becomes 1.02 %, and the
        // bits vary a little.
        assert!(distinct < 30_000 || facts["fpr_now"].as_f64().unwrap() < 0.0104, "{facts}");
    }
}

#[test]
fn digests_beyond_64_mib_go_to_disk_and_give_the_same_filter() {
    let shell = Shell::new();
    let held = 64 << 20 >> 3;
    let run = |args: &[&str], folder: &str, count: u64| {
        let mut command = shell.command(&[&["build"], args].concat());
        let process = Process::start(command.env("TMPDIR", shell.path(folder)));
        process.feed(|stdin| write_lines(stdin, count))
    };
    // A missing folder shows when the disk is needed: from the first digest that does not fit into
    // memory.
    run(&["-f", "-o", "small"], "missing", held).ok();
    run(&["-f", "-o", "large"], "missing", held + 1).refused(&["cannot keep digests in"]);
    assert!(!shell.path("large").exists());

    std::fs::create_dir(shell.path("temporary")).unwrap();
    let spilled = run(&["-j", "2"], "temporary", 9_000_000).ok().stdout;
    assert!(shell.names("temporary").is_empty(), "something is left");
    // The same capacity, without storing digests.
    shell.write("spilled", &spilled);
    let capacity = shell.info("spilled")["capacity"].to_string();
    let streamed = run(&["-j", "2", "-n", &capacity], "missing", 9_000_000).ok().stdout;
    assert!(spilled == streamed);
    assert!(run(&["-j", "1"], "temporary", 9_000_000).ok().stdout == spilled, "one thread");
}
