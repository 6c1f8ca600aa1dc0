//! `umbel distinct`: estimates are within their error for any input, and united sketches agree with
//! a sketch of all lines.

use crate::shell::{Shell, gzip, lines, number};
use umbel::Hasher;
use umbel::sketch::Distinct;

/// Fails unless the answer is within four standard errors of the truth and reports this many lines.
#[track_caller]
fn assert_near(answer: &serde_json::Value, truth: u64, count: u64) {
    let (value, error) = (number(answer, "estimated_count"), number(answer, "estimated_count_error"));
    assert!((value - truth as f64).abs() <= 4.0 * error + 0.5, "{truth}: {answer}");
    assert!(error <= 0.0021 * truth as f64, "{answer}");
    assert_eq!(answer["count"], count);
}

#[test]
fn counts_are_within_their_error_for_any_input() {
    let shell = Shell::new();
    for truth in [1, 100, 10_000, 300_000] {
        // Every line twice, and a quarter of them once more.
        let text = [lines(1, 0..truth), lines(1, 0..truth), lines(1, 0..truth / 4)].concat();
        let count = 2 * truth + truth / 4;
        let piped = shell.pipe("distinct --json", &text).ok();
        assert_near(&piped.json(), truth, count);
        shell.write("lines", &text);
        shell.write("lines.gz", gzip(&text));
        for args in ["lines", "-j 1 lines", "-j 4 lines", "lines.gz", "--error 0.2% lines"] {
            let answer = shell.run(&format!("distinct --json {args}")).ok();
            if args.contains("--error") {
                // 1.04 / 2^9 is slightly above 0.2 %, so this takes twice the memory.
                assert_near(&answer.json(), truth, count);
            } else {
                assert_eq!(answer.json(), piped.json(), "{args}");
            }
        }
    }
}

#[test]
fn the_text_output_has_the_estimate_its_error_and_the_number_of_lines() {
    let shell = Shell::new();
    assert_eq!(shell.pipe("distinct", "b\na\nb\n\na").ok().text(), "3.0 ± 0.1 different lines of 5\n");
    assert_eq!(shell.pipe("distinct", "").ok().text(), "0 different lines of 0\n");
    let coarse = shell.pipe("distinct --error 5% --json", lines(1, 0..100_000)).ok().json();
    let (value, error) = (number(&coarse, "estimated_count"), number(&coarse, "estimated_count_error"));
    assert!((0.02 * value..0.05 * value).contains(&error), "{coarse}");
    assert!((value - 1e5).abs() < 4.0 * error, "{coarse}");
}

#[test]
fn keys_are_extracted_as_by_other_commands_and_may_be_any_bytes() {
    let shell = Shell::new();
    let table = "id,mail\n1,a@x\n2,A@x\n3,\"b@x\"\n4,b@x\n";
    let answer = shell.pipe("distinct --csv --header -F mail --lower", table).ok();
    assert_eq!(answer.text(), "2.00 ± 0.09 different lines of 4\n");
    assert_eq!(
        shell.pipe("distinct -0", b"a\nb\0\xff\xfe\0a\nb\0").ok().text(),
        "2.00 ± 0.09 different lines of 3\n"
    );
    assert_eq!(
        shell.pipe("distinct", b"\xff\n\xfe\n\xff\n\0\n").ok().text(),
        "3.0 ± 0.1 different lines of 4\n"
    );
}

#[test]
fn the_union_of_saved_sketches_is_the_count_of_all_lines() {
    let shell = Shell::new();
    shell.write("left", lines(1, 0..60_000));
    shell.write("right", lines(1, 40_000..120_000));
    for side in ["left", "right"] {
        shell.run(&format!("distinct -o {side}.umbel {side}")).ok();
    }
    let whole = shell.run("distinct --json left right").ok().json();
    assert_near(&whole, 120_000, 140_000);
    for inputs in ["left.umbel right.umbel", "right.umbel left.umbel", "left.umbel right", "left right.umbel"]
    {
        assert_eq!(shell.run(&format!("distinct --json {inputs}")).ok().json(), whole, "{inputs}");
    }
    // Standard input is read in addition to a sketch only if it is named.
    assert_eq!(shell.pipe("distinct --json left.umbel -", shell.read("right")).ok().json(), whole);
    let alone = shell.pipe("distinct --json left.umbel", "not read\n").ok().json();
    assert_eq!(alone, shell.run("distinct --json left").ok().json());
    // The saved file equals that of the library, and a union can be saved again.
    shell.run("distinct -o both.umbel left.umbel right.umbel").ok();
    shell.run("distinct -o direct.umbel -j 3 left right").ok();
    assert!(shell.read("both.umbel") == shell.read("direct.umbel"));
    let loaded = Distinct::load(shell.path("both.umbel")).unwrap();
    assert_eq!(loaded.precision(), 18);
    // Reading a number back from JSON may change its last digit.
    assert!((loaded.count().value / number(&whole, "estimated_count") - 1.0).abs() < 1e-12);
}

#[test]
fn incompatible_sketches_are_named_with_the_difference() {
    let shell = Shell::new();
    shell.write("lines", "a\nb\n");
    shell.run("distinct -o fine lines").ok();
    shell.run("distinct --error 1% -o coarse lines").ok();
    Distinct::with_precision(18).unwrap().with_hasher(Hasher::fast(7)).save(shell.path("seeded")).unwrap();
    shell.run("key new secret --hash keyed").ok();
    shell.run("distinct --key-file secret -o locked lines").ok();
    for (args, says) in [
        ("distinct fine coarse", &["fine and coarse", "precision is 18 in one and 14 in the other"][..]),
        ("distinct lines coarse fine", &["coarse and fine", "precision is 14 in one and 18 in the other"]),
        (
            "distinct --error 1% fine",
            &["--error 0.01 and fine", "precision is 14 in one and 18 in the other"],
        ),
        ("distinct fine seeded", &["fine and seeded", "seed is 0 in one and 7 in the other"]),
        ("distinct fine locked", &["locked", "built with a secret"]),
        ("distinct --key-file secret fine locked", &["fine and locked", "hash is fast in one and keyed"]),
    ] {
        println!("{args}");
        shell.run(args).refused(says);
    }
    let opened = shell.run("distinct --key-file secret locked lines").ok();
    assert_eq!(opened.text(), "2.00 ± 0.09 different lines of 4\n");
}

#[test]
fn damaged_and_foreign_files_are_refused_and_nothing_is_overwritten() {
    let shell = Shell::new();
    shell.write("lines", lines(1, 0..1000));
    shell.run("distinct -o good lines").ok();
    shell.run("top -o top lines").ok();
    shell.build("filter", "-n 100", "a\n");
    let good = shell.read("good");
    let damaged = |name: &str, at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        shell.write(name, bytes);
    };
    damaged("header", 40);
    damaged("body", good.len() / 2);
    shell.write("short", &good[..good.len() - 1]);
    let before = shell.contents(".");
    for (args, says) in [
        ("distinct header", &["header: the file is damaged"][..]),
        ("distinct good body", &["body: the file is damaged"]),
        ("distinct short lines", &["short: the file is truncated"]),
        ("distinct filter", &["filter holds a set (standard): ask it with `umbel check`"]),
        (
            "distinct top",
            &["top holds a sketch (frequent): `umbel info` describes it, and `umbel top` reads it"],
        ),
        ("distinct -o good lines", &["good exists: give -f to replace it"]),
        ("distinct -f -o good good lines", &["is both an input and the output"]),
        ("distinct -o - lines", &["name a file with -o"]),
        ("distinct -f lines", &["--output"]),
        ("distinct nothing", &["cannot open nothing", "No such file"]),
        ("distinct --error 0 lines", &["between 0 and 1"]),
        ("distinct --error 1e-5 lines", &["error", "at least 0.000254"]),
        (
            "check good lines",
            &["good holds a sketch (distinct): `umbel info` describes it, and `umbel distinct` reads it"],
        ),
        (
            "add good lines",
            &["good holds a sketch (distinct): `umbel info` describes it, and `umbel distinct` reads it"],
        ),
        ("union good good -o new", &["good holds a sketch (distinct)"]),
        ("build --kind distinct -o new lines", &["a kind of sketch, which `umbel distinct -o` makes"]),
        ("build --kind top-k -o new lines", &["a kind of sketch, which only the library makes"]),
    ] {
        println!("{args}");
        shell.run(args).refused(says);
        assert!(shell.contents(".") == before, "{args}");
    }
}

#[test]
fn info_describes_a_saved_sketch() {
    let shell = Shell::new();
    shell.pipe("distinct -o s", lines(1, 0..50_000)).ok();
    let counted = shell.run("distinct s").ok();
    let (estimate, _) = counted.text().split_once(" different").unwrap();
    let told = shell.run("info s").ok();
    for words in ["distinct, 262144 cells", "insertions", "50000", estimate, "0.002", "umbel distinct"] {
        assert!(told.text().contains(words), "{words}: {}", told.text());
    }
    assert!(!told.text().contains("rate"), "a sketch has no false positives: {}", told.text());
    let facts = shell.info("s");
    assert_eq!((&facts["kind"], &facts["holds"]), (&"distinct".into(), &"sketch".into()));
    let answer = shell.run("distinct --json s").ok().json();
    for name in ["estimated_count", "estimated_count_error", "count"] {
        assert_eq!(facts[name], answer[name], "{name}");
    }
}
