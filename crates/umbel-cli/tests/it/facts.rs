//! `info`, `compare`, `why` and `meta` report correct facts about filters, as text and, under
//! stable names, as JSON.

use crate::shell::{Shell, cells, line, lines, number, text};
use serde_json::{Value, json};

const KINDS: [&[&str]; 4] = [
    &["--kind", "blocked"],
    &["--kind", "standard"],
    &["--kind", "partitioned"],
    &["--kind", "literature", "--hash", "murmur3-enhanced"],
];

/// Asserts that an estimate is within 5 standard errors of the truth; a correct estimate misses
/// that for one in 1.7 million choices of keys.
#[track_caller]
fn close(facts: &Value, name: &str, truth: f64) {
    let (value, error) = (number(facts, name), number(facts, &format!("{name}_error")));
    assert!((value - truth).abs() <= 5.0 * error, "{name}: {value} ± {error}, but it is {truth}");
}

#[test]
fn info_describes_a_filter() {
    let shell = Shell::new();
    for kind in KINDS {
        let args = ["-f", "-n", "70000", "-p", "2%", "--meta", "source=test"];
        let repeated = [lines(1, 0..60_000), lines(1, 0..1_000)].concat();
        shell.build("f", &[&args, kind].concat(), repeated);
        let facts = shell.info("f");
        let filter = shell.load("f").filter;
        let set: u32 = cells(&filter).iter().map(|word| word.count_ones()).sum();
        assert_eq!(facts["kind"], kind[1]);
        assert_eq!((&facts["capacity"], &facts["count"]), (&json!(70_000), &json!(61_000)));
        assert_eq!((&facts["fpr_target"], &facts["meta"]), (&json!(0.02), &json!({"source": "test"})));
        assert_eq!(number(&facts, "bytes"), 8.0 * cells(&filter).len() as f64);
        assert!(number(&facts, "bits") <= 8.0 * number(&facts, "bytes"), "{facts}");
        assert!((number(&facts, "fill") * number(&facts, "bits") - f64::from(set)).abs() < 1e-6, "{facts}");
        assert_eq!(number(&facts, "file_bytes"), shell.read("f").len() as f64);
        assert!((1..10).contains(&facts["hashes"].as_u64().unwrap()), "{facts}");
        assert!(number(&facts, "fpr_now") > 0.005 && number(&facts, "fpr_now") < 0.02, "{facts}");
        close(&facts, "estimated_count", 60_000.0);

        let told = shell.run("info f").ok();
        for (name, words) in [
            ("kind", vec![format!("{}, {} bits, {} per key", kind[1], facts["bits"], facts["hashes"])]),
            ("insertions", vec!["61000".into()]),
            ("keys", vec![format!("{:.0} ± ", number(&facts, "estimated_count"))]),
            ("capacity", vec!["70000, room for ".into()]),
            ("fill", vec![format!("{:.2} %", 100.0 * number(&facts, "fill"))]),
            ("rate", vec![" % now, 2 % at capacity".into()]),
            ("hash", vec![if kind[1] == "literature" { "murmur3-enhanced" } else { "fast, seed 0" }.into()]),
            ("meta", vec!["source=test".into()]),
            ("file", vec![format!("all {} checksums hold", facts["checksums"])]),
        ] {
            let row = told.text().lines().find(|row| row.split_ascii_whitespace().next() == Some(name));
            let row = row.unwrap_or_else(|| panic!("no row {name} in {}", told.text()));
            words.iter().for_each(|word| assert!(row.contains(word), "{row:?} does not say {word:?}"));
        }
    }
}

#[test]
fn estimates_of_keys_are_within_the_reported_error() {
    let shell = Shell::new();
    for (size, keys) in [100, 3_000, 60_000, 300_000].into_iter().enumerate() {
        for (other, kind) in KINDS.into_iter().enumerate() {
            let family = 10 * (size + 1) as u64 + other as u64;
            // Far below capacity, at capacity, and far above it.
            for capacity in [10 * keys, keys, keys / 3] {
                let args = ["build", "-f", "-o", "f", "--json", "-n", &capacity.to_string()];
                let facts = shell.pipe(&[&args, kind].concat(), lines(family, 0..keys)).code(0).json();
                close(&facts, "estimated_count", keys as f64);
                assert!(number(&facts, "estimated_count_error") < 0.1 * keys as f64, "{facts}");
            }
        }
    }
}

#[test]
fn info_describes_several_filters_and_their_checksums() {
    let shell = Shell::new();
    shell.build("a", "", lines(1, 0..60_000));
    shell.build("b", "", lines(2, 0..1_000));
    let both = shell.run("info --json a b").ok();
    let paths: Vec<Value> = both
        .text()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["path"].clone())
        .collect();
    assert_eq!(paths, ["a", "b"], "a line for each");
    let checksums = shell.info("a")["checksums"].clone();
    assert_eq!(
        shell.run("info --verify a b").ok().text(),
        format!("a: intact, all {checksums} checksums hold\nb: intact, all 2 checksums hold\n")
    );
    // A damaged filter is named, and the other one is still described.
    let mut bytes = shell.read("a");
    *bytes.last_mut().unwrap() ^= 1;
    shell.write("a", bytes);
    let answer = shell.run("info --verify a b");
    assert_eq!(answer.text(), "b: intact, all 2 checksums hold\n");
    answer.failed(&["a"]);
}

#[test]
fn a_diagram_shows_how_full_each_part_is() {
    let shell = Shell::new();
    shell.build("empty", "-n 100000", "");
    shell.build("half", "", lines(1, 0..100_000));
    let picture = |name: &str| -> Vec<char> {
        let told = shell.run(&["info", "--bits", name]).ok();
        let plain = shell.run(&["info", name]).ok();
        let picture = told.text().strip_prefix(plain.text()).expect("facts, then a picture");
        picture.lines().filter(|row| row.chars().count() == 64).flat_map(str::chars).collect()
    };
    assert_eq!(picture("empty"), [' '; 1024]);
    assert!(picture("half").iter().all(|cell| "▃▄▅".contains(*cell)), "about half of the bits are set");
}

#[test]
fn compare_estimates_the_overlap_of_known_sets() {
    let shell = Shell::new();
    // 60 000 and 40 000 keys, 20 000 of them in both: a quarter of the 80 000 distinct ones.
    let keys: Vec<Vec<u8>> = (0..80_000).map(|number| line(1, number)).collect();
    for kind in KINDS {
        shell.build("left", &[&["-f", "-n", "70000"], kind].concat(), text(&keys[..60_000]));
        shell.build("right", "-f --like left", text(&keys[40_000..]));
        shell.build("apart", "-f --like left", lines(2, 0..30_000));
        let pair = shell.run("compare --json left right").ok().json();
        let truth = [
            ("left_count", 60_000.0),
            ("right_count", 40_000.0),
            ("union", 80_000.0),
            ("intersection", 20_000.0),
            ("jaccard", 0.25),
            ("left_in_right", 1.0 / 3.0),
            ("right_in_left", 0.5),
        ];
        truth.iter().for_each(|(name, truth)| close(&pair, name, *truth));
        assert!(number(&pair, "jaccard_error") < 0.01, "{pair}");
        assert_eq!((&pair["left"], &pair["right"]), (&json!("left"), &json!("right")));

        let told = shell.run("compare left right").ok();
        let row = format!(
            "Jaccard          {:.4} ± {:.4}",
            number(&pair, "jaccard"),
            number(&pair, "jaccard_error")
        );
        assert!(told.text().lines().any(|line| line == row), "{}", told.text());

        let pairs = shell.run("compare --json left right apart").ok().json();
        assert_eq!(pairs.as_array().unwrap().len(), 3);
        assert_eq!(pairs[0], pair);
        close(&pairs[1], "jaccard", 0.0);
        // The matrix has the same numbers, with a row and a column for each filter.
        for (args, name) in [(&[][..], "jaccard"), (&["--containment"], "left_in_right")] {
            let told = shell.run(&[&["compare", "left", "right", "apart"], args].concat()).ok();
            let rows: Vec<Vec<&str>> =
                told.text().lines().map(|row| row.split_ascii_whitespace().collect()).collect();
            assert_eq!(rows.len(), 4);
            let first = &rows[1][rows[1].len() - 3..];
            let expected = [1.0, number(&pairs[0], name), number(&pairs[1], name)];
            assert_eq!(first, expected.map(|value| format!("{value:.4}")));
        }
    }
    shell.build("other", "--seed 1 -n 70000", "a\n");
    shell.build("blocked", "-n 70000", "a\n");
    shell.run("compare blocked other").refused(&["seed is 0 in one and 1 in the other"]);
}

#[test]
fn why_shows_the_bits_that_decide_the_answer() {
    let shell = Shell::new();
    for kind in KINDS {
        // A fifth of the strangers are false positives.
        shell.build("f", &[&["-f", "-n", "160000", "-p", "1/5"], kind].concat(), lines(1, 0..160_000));
        let facts = shell.info("f");
        let filter = shell.load("f").filter;
        let words = cells(&filter);
        let mut strangers = 0;
        for (family, number) in (0..24).flat_map(|number| [(2, number), (1, number)]).take(36) {
            let key = String::from_utf8(line(family, number)).unwrap();
            let member = shell.pipe("check f", &key).code == Some(0);
            let answer = shell.run(&["why", "--json", "f", &key]).code(i32::from(!member));
            let why = answer.json();
            assert_eq!(
                (&why["key"], &why["member"], &why["kind"]),
                (&json!(key), &json!(member), &json!(kind[1]))
            );
            let probes = why["probes"].as_array().unwrap();
            for probe in probes {
                let bit = probe["bit"].as_u64().unwrap();
                assert_eq!(probe["value"], words[bit as usize / 64] >> (bit % 64) & 1, "{why}");
                assert_eq!(probe["line"], bit / 512);
            }
            let zero = probes.iter().position(|probe| probe["value"] == 0).map(|zero| zero + 1);
            let all = facts["hashes"].as_u64().unwrap() as usize;
            assert_eq!(probes.len(), zero.unwrap_or(all), "a lookup ends at the first zero: {why}");
            assert_eq!((zero.is_none(), &why["first_zero"]), (member, &json!(zero)), "{why}");
            strangers += u32::from(family == 2 && member);
            assert!(family == 2 || member, "no member is missed");

            let told = shell.run(&["why", "f", &key]).code(i32::from(!member));
            let last = match zero {
                Some(zero) => format!("certainly not a member: probe {zero} finds a zero"),
                None => format!("may be a member: all {} bits are set", probes.len()),
            };
            assert_eq!(told.text().lines().last(), Some(&last[..]));
            let rows = told.text().lines().skip_while(|row| !row.starts_with("probe")).count();
            assert_eq!(rows, probes.len() + 2, "a heading, a row for each probe, and the answer");
        }
        assert!((1..18).contains(&strangers), "{kind:?}: strangers of both sorts were asked: {strangers}");
    }
}

#[test]
fn meta_is_read_set_and_removed() {
    let shell = Shell::new();
    shell.build("f", "-n 1000", "apple\n");
    let bits = || cells(&shell.load("f").filter);
    let before = bits();
    assert_eq!(shell.run("meta f").ok().text(), "");
    shell.run("meta f b=2 a=x=y empty=").ok();
    assert_eq!(shell.run("meta f").ok().text(), "a=x=y\nb=2\nempty=\n");
    assert_eq!(shell.run("meta f a").ok().text(), "x=y\n");
    assert_eq!(shell.run("meta f empty").ok().text(), "\n");
    assert_eq!(shell.run("meta --json f").ok().json(), json!({"a": "x=y", "b": "2", "empty": ""}));
    let missing = shell.run("meta f c").code(1);
    assert_eq!((&missing.stdout[..], &missing.stderr[..]), (&b""[..], ""));
    shell.run("meta f --unset b --unset empty a=new").ok();
    assert_eq!(shell.run("meta f").ok().text(), "a=new\n");
    shell.run("meta f --unset b").refused(&["there is no \"b\" to remove"]);
    assert!(bits() == before);
    assert_eq!(shell.pipe("check f", "apple\npear\n").ok().text(), "apple\n");
}
