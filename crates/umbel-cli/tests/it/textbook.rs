//! `build` takes the parameters of the textbook, m, k, n and p, in any sufficient combination, and
//! options and defaults fit together.

use crate::shell::{Shell, cells, lines, number};
use umbel::literature::Family;

/// Returns the number of lines that may be in a filter.
fn found(shell: &Shell, filter: &str, lines: impl AsRef<[u8]>) -> f64 {
    let answer = shell.pipe(&["check", "-c", filter], lines);
    answer.text().trim().parse().unwrap()
}

/// Returns the numbers as lines.
fn numbers(numbers: std::ops::Range<u64>) -> String {
    numbers.map(|number| format!("{number}\n")).collect()
}

#[test]
fn the_ten_bits_of_a_textbook_are_built_exactly() {
    let shell = Shell::new();
    shell.build("ten", "-m 10 -k 3", "2\n4\n9\n");
    let facts = shell.info("ten");
    assert_eq!(
        (&facts["kind"], &facts["bits"], &facts["hashes"]),
        (&"standard".into(), &10.into(), &3.into())
    );
    assert_eq!(found(&shell, "ten", "2\n4\n9\n"), 3.0);
    // 20 000 queries of one filter: five standard deviations of the measurement are 0.018.
    let (fill, measured) = (number(&facts, "fill"), found(&shell, "ten", numbers(100..20_100)) / 20_000.0);
    assert!(fill > 0.0 && fill < 1.0 && (measured - fill.powi(3)).abs() < 0.018, "{measured}, {fill} full");
    // With the number of keys, it is the same filter.
    shell.build("same", "-m 10 -k 3 -n 3", "2\n4\n9\n");
    assert_eq!(cells(&shell.load("ten").filter), cells(&shell.load("same").filter));
    // Nothing is too small, as long as some key is absent.
    shell.build("two", "-m 2 -k 3", "2\n");
    assert_eq!(shell.info("two")["bits"], 2);
}

#[test]
fn every_kind_with_bits_and_hashes_takes_them() {
    let shell = Shell::new();
    // Slices have the same length, and cache lines 512 bits.
    for (kind, bits, hashes, built) in [
        ("standard", "1000", "3", 1000),
        ("partitioned", "1000", "3", 1002),
        ("blocked", "1Mi", "8", 1 << 20),
        ("literature", "1000", "3", 1000),
        ("counting", "1000", "3", 1000),
        ("deletable", "1000", "3", 1000),
        ("floom", "1000", "3", 1000),
        ("variable-increment", "1001", "3", 1001),
    ] {
        let family: &[&str] = if kind == "literature" { &["--hash", "murmur3"] } else { &[] };
        for more in [&[][..], &["-n", "50"], &["-p", "30%"], &["-n", "50", "-p", "30%"]] {
            let args = [&["-f", "--kind", kind, "-m", bits, "-k", hashes], family, more].concat();
            shell.build("f", &args, lines(1, 0..50));
            let facts = shell.info("f");
            assert_eq!((&facts["kind"], &facts["bits"]), (&kind.into(), &built.into()), "{args:?}");
            assert_eq!(facts["hashes"].to_string(), hashes, "{args:?}");
            assert_eq!(found(&shell, "f", lines(1, 0..50)), 50.0, "{args:?}");
            if more.len() != 2 || more[0] == "-n" {
                continue;
            }
            let plan = [&["plan", "--json", "--kind", kind, "-m", bits, "-k", hashes], more].concat();
            assert_eq!(shell.run(&plan).ok().json()["capacity"], facts["capacity"], "{args:?}");
        }
    }
}

#[test]
fn the_number_of_hashes_follows_from_the_bits_and_the_keys() {
    let shell = Shell::new();
    shell.write("lines", lines(1, 0..1000));
    for (args, hashes, capacity) in [
        ("-m 10000 lines", 7, 1000),
        ("-m 10000 -j 1 lines", 7, 1000),
        ("-m 5000 lines", 3, 1000),
        ("-m 10000 -n 2000 lines", 3, 2000),
        ("-m 10000 -p 10% lines", 3, 2086),
        ("-k 4 lines", 4, 1000),
    ] {
        shell.run(&format!("build -f -o f --kind standard {args}")).ok();
        let facts = shell.info("f");
        assert_eq!((&facts["hashes"], &facts["capacity"]), (&hashes.into(), &capacity.into()), "{args}");
    }
    // k alone leaves the default rate.
    assert_eq!(shell.info("f")["fpr_target"], 0.01);
    let planned = shell.run("plan -n 1000 -k 4 --json").ok().json();
    assert_eq!(planned["built_bits"], shell.info("f")["bits"]);
}

#[test]
fn kinds_without_bits_and_hashes_name_the_options_to_use_instead() {
    let shell = Shell::new();
    for (kind, instead) in
        [("cuckoo", "--fingerprint-bits"), ("fuse", "--fingerprint-bits"), ("quotient", "--load")]
    {
        for size in ["-m 1000 -k 3", "-m 1000", "-k 3"] {
            let answer = shell.pipe(&format!("build --kind {kind} {size} -o f"), "a\n");
            answer.refused(&[kind, "instead of m bits and k hash functions", instead, "--max-bytes"]);
        }
    }
    for kind in ["scalable", "aging"] {
        shell.pipe(&format!("build --kind {kind} -k 3 -o f"), "a\n").refused(&["k = 3", "use p or m"]);
    }
    shell.pipe("build --kind blocked -k 3 -n 1e6 -o f", "a\n").refused(&["k = 3", "8, 16, 24 or 32"]);
    assert!(shell.names("").is_empty(), "nothing is written");
}

#[test]
fn contradictory_parameters_are_named_and_nothing_is_written() {
    let shell = Shell::new();
    for (kind, unit) in [
        ("standard", "12366 bits"),
        ("partitioned", "12366 bits"),
        ("literature --hash murmur3", "12366 bits"),
        ("counting", "12366 counters of 4 bits"),
        ("deletable", "a rate of 1"),
        ("variable-increment", "counters of 7 bits"),
    ] {
        let answer = shell.pipe(&format!("build --kind {kind} -m 10 -k 3 -n 1000 -p 1% -o f"), "1\n");
        answer.refused(&["m = 10 bits and p = 0.01 contradict each other", "n = 1000 keys", unit]);
    }
    shell.pipe("build -m 10 -n 1000 -p 1e-7 -o f", "1\n").refused(&["m = 10 bits", "p = 1e-7"]);
    shell.pipe("build -m 10 --max-bytes 1k -o f", "1\n").refused(&["--max-bytes", "cannot be used with"]);
    assert!(shell.names("").is_empty(), "nothing is written");
}

#[test]
fn the_length_of_fingerprints_determines_the_rate_if_none_is_given() {
    let shell = Shell::new();
    for (kind, low, high) in [("cuckoo", 0.02, 0.032), ("fuse", 0.0039, 0.004)] {
        let option = format!("--kind {kind} --fingerprint-bits 8");
        shell.build(kind, &option, lines(1, 0..1000));
        let planned = shell.run(&format!("plan -n 1000 --json {option}")).ok().json();
        for rate in [number(&shell.info(kind), "fpr_target"), number(&planned, "fpr")] {
            assert!(rate > low && rate < high, "{kind}: {rate}");
        }
        shell.pipe(&format!("build {option} -n 1000 -p 0.1% -o f"), "a\n").refused(&[
            "fingerprint bits = 8",
            "p = 0.001",
            "contradict",
        ]);
    }
}

#[test]
fn an_aging_filter_is_planned_for_its_window_of_keys() {
    let shell = Shell::new();
    for count in [100, 30_000] {
        shell.build("f", "-f --kind aging --window 1e4", lines(1, 0..count));
        assert_eq!(shell.info("f")["capacity"], 10_000, "{count}");
        let last = lines(1, count.saturating_sub(5000)..count);
        assert_eq!(found(&shell, "f", last), 5000f64.min(count as f64), "{count}");
    }
    assert_eq!(shell.run("plan --kind aging --window 1e4 --json").ok().json()["capacity"], 10_000);
    shell.pipe("build --kind aging --window 1e4 -n 100 -o g", "a\n").refused(&["window = 10000", "100"]);
}

#[test]
fn a_filter_of_the_literature_counts_the_keys_of_files_and_pipes() {
    let shell = Shell::new();
    // Some keys twice, so that the number of lines is not that of keys.
    shell.write("lines", [lines(1, 0..2000), lines(1, 500..1000)].concat());
    for family in Family::ALL {
        let option = format!("--kind literature --hash {family} -p 2%");
        shell.run(&format!("build -f {option} -o file lines")).ok();
        let capacity = number(&shell.info("file"), "capacity");
        assert!((1990.0..2030.0).contains(&capacity), "{family}: {capacity}");
        shell.run(&format!("build -f {option} -n {capacity} -o given lines")).ok();
        shell.redirect(&format!("build -f {option} -o pipe"), "lines").ok();
        let [given, file, pipe] = ["given", "file", "pipe"].map(|name| shell.read(name));
        assert!(given == file && file == pipe, "{family}");
        let absent = found(&shell, "pipe", lines(2, 0..10_000)) / 10_000.0;
        assert!(absent > 0.0 && absent < 0.03, "{family}: {absent}");
    }
    // A family with few functions uses all of them.
    shell.run("build -f --kind literature --hash md5-slices -o f lines").ok();
    assert_eq!(shell.info("f")["hashes"], 4);
    shell.run("build -f --kind literature --hash md5-slices -k 3 -o f lines").ok();
    assert_eq!(shell.info("f")["hashes"], 3);
    shell.run("build --kind literature --hash md5-slices -k 5 -o g lines").refused(&["k = 5", "1 to 4"]);
}

#[test]
fn counters_of_a_b_h_sequence_are_built_and_removed_from() {
    let shell = Shell::new();
    for (scheme, bits) in [
        ("--scheme bh", 12.0),
        ("--scheme bh --increments 1,4,8,13", 12.0),
        ("--scheme bh-improved --increments 1,4,8,13", 12.0),
        ("--scheme sum --increments 8,12,14,15", 8.0),
    ] {
        shell.build("f", &format!("-f --kind variable-increment {scheme} -p 2%"), lines(1, 0..2000));
        assert_eq!(number(&shell.info("f")["details"], "bits per cell"), bits, "{scheme}");
        assert_eq!(found(&shell, "f", lines(1, 0..2000)), 2000.0, "{scheme}");
        // 10 000 queries at 2 %: five standard deviations are 0.7 %.
        let absent = found(&shell, "f", lines(2, 0..10_000)) / 10_000.0;
        assert!((absent - 0.02).abs() < 0.007, "{scheme}: {absent}");
        shell.pipe("remove f", lines(1, 0..2000)).code(0);
        assert_eq!(shell.info("f")["fill"], 0.0, "{scheme}: nothing is left");
    }
    let build = |options: &str| shell.pipe(&format!("build --kind variable-increment {options} -o g"), "a\n");
    build("--scheme bh --increments 4,4").refused(&["[4, 4]", "different numbers"]);
    build("--scheme b").refused(&["--scheme", "bh-improved"]);
    shell.pipe("build --kind counting --scheme bh -o g", "a\n").refused(&["--scheme is for the kind"]);
}

#[test]
fn the_bits_of_a_map_determine_its_rate() {
    let shell = Shell::new();
    let pairs: String = (0..1000).map(|key| format!("{key}\t{}\n", key % 5)).collect();
    for kind in ["bloomier", "bloomier-mutable"] {
        shell.pipe(&format!("map build -f --kind {kind} --values 0..4 -m 20k -o f"), &pairs).ok();
        let facts = shell.info("f");
        assert!((18_000.0..=20_000.0).contains(&number(&facts, "bits")), "{facts}");
        let plan = format!("plan --json --kind {kind} --values 0..4 -n 1000 -m 20k");
        assert_eq!(shell.run(&plan).ok().json()["built_bits"], facts["bits"], "{kind}");
        assert!(number(&facts, "fpr_target") < 0.002, "{facts}");
    }
    let few = shell.pipe("map build --values 0..4 -m 2k -p 1% -o g", &pairs);
    few.refused(&["m = 2000", "at least", "1000 keys"]);
}
