//! `umbel similar` estimates how similar documents are, and finds near-duplicates.

use crate::shell::{Shell, gzip, mix, number, split};

/// Returns words of a family.
fn text(family: u64, from: u64, to: u64) -> String {
    (from..to).map(|word| format!("w{:x} ", mix(family << 32 | word))).collect()
}

#[test]
fn a_new_user_compares_two_drafts() {
    let shell = Shell::new();
    shell.write("draft1.txt", text(1, 0, 300));
    shell.write("draft2.txt", text(1, 100, 300) + &text(2, 0, 100));
    let answer = shell.run("similar draft1.txt draft2.txt").ok();
    for part in ["draft1.txt", "300 words", "in both", "Jaccard", "0.5", "AND score", "nothing in common"] {
        assert!(answer.text().contains(part), "{part}: {answer:?}");
    }
    assert!(!answer.text().contains("contained"));
    let facts = shell.run("similar --json draft1.txt draft2.txt").ok().json();
    let pair = &facts["pairs"][0];
    assert!((number(pair, "jaccard") - 0.5).abs() < 5.0 * number(pair, "jaccard_error"), "{facts}");
    assert!((number(pair, "left_in_right") - 2.0 / 3.0).abs() < 0.05, "{facts}");
    assert!(number(pair, "left_and") > 0.6, "{facts}");
    assert_eq!(
        (facts["by"].as_str(), facts["documents"][0]["elements"].as_u64()),
        (Some("words"), Some(300))
    );
}

#[test]
fn a_few_files_are_shown_as_a_matrix_and_containment_is_reported() {
    let shell = Shell::new();
    shell.write("whole", text(1, 0, 3000));
    shell.write("part.gz", gzip(text(1, 200, 260)));
    shell.write("other", text(2, 0, 500));
    let answer = shell.run("similar whole part.gz other").ok();
    let lines = split(&answer.stdout);
    assert_eq!(lines.len(), 5, "{answer:?}");
    assert!(answer.text().contains("2 is contained in 1, as far as the filters tell"));
    let facts = shell.run("similar --json whole part.gz other").ok().json();
    assert_eq!(facts["pairs"].as_array().unwrap().len(), 3);
    assert_eq!(facts["pairs"][0]["right_contained"], true, "the most similar first: {facts}");
    assert!((number(&facts["pairs"][0], "jaccard") - 0.02).abs() < 0.005, "{facts}");
    assert!(facts["pairs"].as_array().unwrap()[1..].iter().all(|pair| number(pair, "jaccard") < 0.01));
}

#[test]
fn shingles_depend_on_the_order_and_chunks_on_the_bytes() {
    let shell = Shell::new();
    let words = text(1, 0, 400);
    let backwards: String = words.split(' ').rev().map(|word| format!("{word} ")).collect();
    shell.write("one", &words);
    shell.write("two", &backwards);
    let jaccard =
        |args: &str| number(&shell.run(&format!("similar --json {args}")).ok().json()["pairs"][0], "jaccard");
    assert_eq!(jaccard("one two"), 1.0);
    assert!(jaccard("--by shingles one two") < 0.05);
    let bytes: Vec<u8> = (0..100_000).map(|i| mix(i) as u8).collect();
    shell.write("b1", &bytes);
    shell.write("b2", [&b"in front"[..], &bytes[..50_000], &bytes[51_000..]].concat());
    assert!(jaccard("--by chunks b1 b2") > 0.9);
    let answer = shell.run("similar one b1 two").code(2);
    assert!(answer.stderr.contains("b1: it is binary") && answer.text().contains("Jaccard"), "{answer:?}");
}

#[test]
fn only_the_visible_text_of_html_counts() {
    let shell = Shell::new();
    let page = |script: &str| {
        format!(
            "<!DOCTYPE html><title>Bees</title><script>{script}</script><p>The bees <b>hum</b> &amp; sting."
        )
    };
    shell.write("a.html", page(&text(1, 0, 100)));
    shell.write("b", page(&text(2, 0, 100)));
    shell.write("c.txt", "the bees hum sting");
    let facts = shell.run("similar --json a.html b c.txt").ok().json();
    assert!(facts["pairs"].as_array().unwrap().iter().all(|pair| pair["jaccard"] == 1.0), "{facts}");
}

#[test]
fn near_duplicates_in_a_directory_are_listed() {
    let shell = Shell::new();
    std::fs::create_dir_all(shell.path("docs/deep")).unwrap();
    for number in 0..200 {
        shell.write(&format!("docs/{number:03}"), text(number, 0, 50 + 5 * number));
    }
    shell.write("docs/deep/copy", text(7, 0, 85) + "and a little more");
    shell.write("docs/deep/same.gz", gzip(text(150, 0, 800)));
    shell.write("docs/deep/empty", "");
    let answer = shell.run("similar --at-least 0.8 docs").code(0);
    let lines: Vec<Vec<&str>> = answer.text().lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0], ["1.0000", "docs/150", "docs/deep/same.gz"]);
    assert_eq!(lines[1][1..], ["docs/007", "docs/deep/copy"]);
    assert_eq!(lines.len(), 2, "{answer:?}");
    assert!(answer.stderr.contains("2 of the 20301 pairs of 202 documents"), "{answer:?}");
    let one = shell.run("similar --top 1 docs").code(0);
    assert_eq!(split(&one.stdout).len(), 1);
    assert!(one.stderr.contains("the first 1 are listed"), "{one:?}");
    let facts = shell.run("similar --json --top 1 docs").code(0).json();
    assert_eq!((facts["pair_count"].as_u64(), facts["pairs"].as_array().unwrap().len()), (Some(2), 1));
    assert_eq!(facts["document_count"], 202);
    std::fs::remove_dir_all(shell.path("docs/deep")).unwrap();
    assert!(shell.run("similar docs").code(1).stdout.is_empty(), "nothing is similar enough");
}

#[test]
fn unreadable_files_are_reported_and_the_others_compared() {
    let shell = Shell::new();
    shell.write("a", text(1, 0, 30));
    shell.write("b", text(1, 0, 30));
    shell.write("empty", "");
    shell.write("latin", b"caf\xe9 \xff\xfe na\xefve");
    let answer = shell.run("similar --json a missing b").code(2);
    assert_eq!(answer.json()["pairs"][0]["jaccard"], 1.0);
    assert_eq!(answer.json()["skipped"][0]["path"], "missing");
    assert!(answer.stderr.contains("missing"));
    let answer = shell.run("similar a empty b latin").code(0);
    assert!(answer.stderr.contains("empty is empty"), "{answer:?}");
    shell.run("similar a").refused(&["nothing to compare"]);
    let answer = shell.run("similar a empty").code(2);
    assert!(answer.stderr.contains("nothing to compare: one document only"), "{answer:?}");
    shell.run("similar").refused(&["FILE|DIR"]);
    shell.run("similar - -").refused(&["standard input"]);
    shell.run("similar --at-least 0.01 a b").refused(&["0.05"]);
    shell.run("similar --by letters a b").refused(&["words"]);
    shell.run("similar --shingle 1 --by shingles a b").refused(&["2..=64"]);
    shell.run("similar -m 0 a b").refused(&["bits"]);
}

#[test]
fn full_filters_give_no_figures() {
    let shell = Shell::new();
    shell.write("a", text(1, 0, 2000));
    shell.write("b", text(2, 0, 20));
    let answer = shell.run("similar -m 64 a b").code(0);
    assert!(
        answer.text().contains("unknown: the filters are too full") && !answer.text().contains("contained"),
        "{answer:?}"
    );
    let facts = shell.run("similar -m 64 -k 4 --json a b").code(0).json();
    assert!(
        facts["pairs"][0]["jaccard"].is_null() && facts["pairs"][0]["right_contained"].is_null(),
        "{facts}"
    );
    assert_eq!(shell.pipe("similar --json a -", text(1, 0, 2000)).ok().json()["pairs"][0]["jaccard"], 1.0);
}

#[test]
fn names_of_files_cannot_take_over_a_terminal_or_make_up_lines() {
    let shell = Shell::new();
    let strange = "a\n1.0000\tx\u{1b}[2J";
    shell.write(strange, text(1, 0, 50));
    shell.write("b", text(1, 0, 50));
    shell.write("c", text(1, 0, 40));
    let names = |args: &[&str]| shell.run(&[args, &[strange, "b"]].concat()[..]);
    for args in [&["similar"][..], &["similar", "c"], &["similar", "--at-least", "0.5"]] {
        let answer = names(args).code(0);
        assert!(!answer.text().contains('\u{1b}') && !answer.text().contains("\n1.0000"), "{answer:?}");
        assert!(answer.text().contains(r#""a\n1.0000\tx\x1b[2J""#), "{answer:?}");
    }
    assert_eq!(names(&["similar", "--json"]).ok().json()["documents"][0]["path"], strange);
    std::fs::remove_file(shell.path(strange)).unwrap();
    let missing = names(&["similar", "c"]).code(2);
    assert!(missing.stderr.contains(r"a\n1.0000") && !missing.stderr.contains('\u{1b}'), "{missing:?}");
}

#[test]
fn options_are_checked() {
    let shell = Shell::new();
    shell.write("a", text(1, 0, 30));
    shell.write("b", text(1, 0, 30));
    let facts = |args: &str| shell.run(&format!("similar --json a b {args}")).ok().json();
    assert_eq!(facts("--shingle 3")["by"], "shingles");
    assert_eq!(facts("--shingle 3")["documents"][0]["elements"], 28);
    assert_eq!(facts("--by shingles")["documents"][0]["elements"], 27);
    for by in ["words", "chunks"] {
        shell.run(&format!("similar --shingle 3 --by {by} a b")).refused(&["--shingle is for shingles", by]);
    }
    for none in ["0", "0.0", "0%"] {
        shell.run(&format!("similar --at-least {none} a b")).refused(&["every pair", "0.05 to 1"]);
    }
}

/// Twice as many attributes take about twice as long; a comparison of each with all others would
/// take four times as long.
#[test]
fn a_tag_may_have_any_number_of_attributes() {
    let shell = Shell::new();
    shell.write("b.html", "<p>bees hum");
    let page = |count: u64| -> String {
        let attributes: String = (0..count).map(|number| format!(" a{number}='>'")).collect();
        format!("<p>bees <img{attributes}>hum")
    };
    let seconds = |count: u64| {
        shell.write("a.html", page(count));
        let take = || {
            let start = std::time::Instant::now();
            assert_eq!(shell.run("similar --json a.html b.html").ok().json()["pairs"][0]["jaccard"], 1.0);
            start.elapsed().as_secs_f64()
        };
        (0..3).map(|_| take()).fold(f64::MAX, f64::min)
    };
    let (few, many) = (seconds(30_000), seconds(240_000));
    assert!(many < 24.0 * few.max(0.02), "{few} s, {many} s for eight times as many");
}
