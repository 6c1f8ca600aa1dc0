//! The options of `build`: size, limit, seed, metadata and output.

use crate::shell::{Shell, cells, lines};

#[test]
fn like_makes_filters_that_can_be_united() {
    let shell = Shell::new();
    let (left, right) = (lines(1, 0..20_000), lines(2, 0..15_000));
    for kind in [
        &["--kind", "blocked", "--seed", "5", "-n", "90000"][..],
        &["--kind", "standard", "-p", "3%", "-n", "40000"],
        &["--kind", "partitioned", "--policy", "ceil", "-n", "40000"],
        &["--kind", "literature", "--hash", "md5-indexed", "-n", "40000"],
    ] {
        shell.build("left", &[&["-f"], kind].concat(), &left);
        shell.build("right", "-f --like left", &right);
        // Without --like the size would differ.
        shell.build("both", &[&["-f"], kind].concat(), [&left[..], &right].concat());
        shell.run("union -f left right -o union").ok();
        let [united, built] = ["union", "both"].map(|name| shell.load(name).filter);
        assert!(cells(&united) == cells(&built), "{kind:?}");
        for name in ["kind", "bits", "hashes", "capacity", "fpr_target", "hash", "seed"] {
            assert_eq!(shell.info("left")[name], shell.info("right")[name], "{kind:?}");
        }
        assert_eq!(shell.info("right")["count"], 15_000);
    }
    shell.pipe("build -o x --like left -n 10", "a\n").refused(&["--like"]);
}

#[test]
fn a_limit_that_contradicts_the_rate_is_refused_and_otherwise_sets_it() {
    let shell = Shell::new();
    let lines = lines(1, 0..100_000);
    for kind in ["blocked", "standard", "partitioned"] {
        for size in [&[][..], &["-n", "100000"]] {
            let run = |args: &[&str]| {
                shell.pipe(&[&["build", "-f", "-o", "f", "--kind", kind], size, args].concat(), &lines)
            };
            // 100 000 keys at 1 % take at least 117 KiB.
            let answer = run(&["-p", "1%", "--max-bytes", "80KiB"]);
            assert!(answer.stderr.contains("at a rate of 1 % need 1"), "{}", answer.stderr);
            assert!(!shell.path("f").exists());
            answer.refused(&["and --max-bytes allows 80.00 KiB: then the rate is"]);
            // Limits that are a multiple of 64 bytes or not, and of the slices of a partitioned
            // filter or not.
            for (limit, most) in [("80KiB", 80 << 10), ("81000", 81_000), ("90001", 90_001)] {
                let answer = run(&["--max-bytes", limit]).code(0);
                let facts = shell.info("f");
                let bytes = facts["bytes"].as_u64().unwrap();
                assert!(bytes <= most && bytes > most - 1100, "no more, and nearly as much: {facts}");
                // The reported rate is that of the filter: with 6 to 7 bits per key between 3 and 8
                // %.
                let said = answer.stderr.strip_prefix("umbel: within ").expect("a warning");
                let rate = said.split_once(" the rate is ").unwrap().1.trim_end().strip_suffix(" %").unwrap();
                let rate: f64 = rate.parse::<f64>().unwrap() / 100.0;
                assert!((0.03..0.08).contains(&rate), "{said}");
                assert!((facts["fpr_now"].as_f64().unwrap() / rate - 1.0).abs() < 0.02, "{said} {facts}");
            }
            // A limit that is not reached changes nothing.
            run(&["--max-bytes", "1MiB"]).ok();
            let within = shell.read("f");
            run(&[]).ok();
            assert!(within == shell.read("f"), "{kind}");
            std::fs::remove_file(shell.path("f")).unwrap();
        }
    }
    let tiny = shell.pipe("build -o f -n 1e6 --max-bytes 10", "a\n");
    tiny.refused(&["--max-bytes 10 is too small for 1000000 keys"]);
}

#[test]
fn policies_round_the_number_of_functions() {
    let shell = Shell::new();
    // 500 keys at 5 % need 4.32 functions; 58 110 at 4 % need 4.64.
    for (policy, keys, rate, hashes) in [
        ("round", "500", "5%", 4),
        ("ceil", "500", "5%", 5),
        ("best", "500", "5%", 4),
        ("round", "58110", "4%", 5),
        ("strict", "58110", "4%", 5),
    ] {
        let args = ["-n", keys, "-p", rate, "--kind", "standard", "--policy", policy];
        shell.build("f", &[&["-f"], &args[..]].concat(), "a\n");
        let (facts, plan) =
            (shell.info("f"), shell.run(&[&["plan", "--json"], &args[..]].concat()).ok().json());
        assert_eq!((&facts["hashes"], &plan["hashes"]), (&hashes.into(), &hashes.into()), "{policy}");
        assert_eq!(facts["bytes"], plan["bytes"]);
        if policy == "strict" {
            assert!(
                plan["fpr"].as_f64().unwrap() <= 0.04 && plan["bits"].as_u64().unwrap() > 389_318,
                "{plan}"
            );
        }
    }
    shell.pipe("build --policy floor", "a\n").refused(&["possible values: round, ceil, best, strict"]);
}

#[test]
fn a_seed_makes_a_different_filter_that_is_queried_without_it() {
    let shell = Shell::new();
    let members = lines(1, 0..20_000);
    shell.build("default", "", &members);
    shell.build("zero", "--seed 0", &members);
    shell.build("large", "--seed 18446744073709551615", &members);
    assert!(shell.read("default") == shell.read("zero") && shell.read("default") != shell.read("large"));
    assert_eq!(shell.info("large")["seed"], u64::MAX);
    assert_eq!(shell.pipe("check -c large", &members).ok().text(), "20000\n");
    let union = shell.run("union default large -o u");
    union.refused(&["seed is 0 in one and 18446744073709551615 in the other"]);
}

#[test]
fn metadata_is_stored_with_the_filter() {
    let shell = Shell::new();
    shell.build("f", "--meta source=a=b --meta note=größer --meta empty=", "a\n");
    assert_eq!(shell.info("f")["meta"], serde_json::json!({"source": "a=b", "note": "größer", "empty": ""}));
    assert!(shell.run("info f").ok().text().contains("source=a=b"));
    shell.pipe("build --meta x", "a\n").refused(&["name=value"]);
    shell.pipe("build --meta x=1 --meta x=2", "a\n").refused(&["given twice"]);
}

#[test]
fn a_filter_goes_to_a_file_or_to_standard_output() {
    let shell = Shell::new();
    let members = lines(1, 0..20_000);
    shell.build("f", "--meta a=b", &members);
    let file = shell.read("f");
    for output in [&["-o", "-"][..], &[]] {
        let answer = shell.pipe(&[&["build", "--meta", "a=b"], output].concat(), &members).ok();
        assert!(answer.stdout == file);
    }
    // An existing file is replaced only on request.
    shell.pipe("build -o f", "other\n").refused(&["f exists: give -f to replace it, or another name"]);
    assert!(shell.read("f") == file);
    shell.pipe("build -f -o f", "other\n").ok();
    assert!(shell.read("f") != file);
}

#[test]
fn json_describes_the_filter_that_was_built() {
    let shell = Shell::new();
    let built = shell.pipe("build -o f --json --meta a=b", lines(1, 0..20_000)).ok().json();
    let facts = shell.info("f");
    for (name, value) in built.as_object().unwrap() {
        assert_eq!(value, &facts[name], "{name}");
    }
    for name in ["kind", "bits", "hashes", "bytes", "capacity", "count", "estimated_count", "fill", "fpr_now"]
    {
        assert!(built.get(name).is_some(), "{name}");
    }
    shell.pipe("build --json", "a\n").refused(&["name a file with -o"]);
}

#[test]
fn no_lines_make_an_empty_filter_and_a_warning() {
    let shell = Shell::new();
    let answer = shell.pipe("build -o f", "").code(0);
    assert!(answer.stderr.contains("there were no lines: the filter is empty"), "{}", answer.stderr);
    assert_eq!((&shell.info("f")["count"], &shell.info("f")["fill"]), (&0.into(), &0.0.into()));
    // With -n there is no warning.
    shell.pipe("build -f -n 1000 -o f", "").ok();
}

/// Mistakes should be reported before a terabyte is read.
#[test]
fn mistaken_options_are_found_before_the_lines_are_read() {
    let shell = Shell::new();
    for (args, says) in [
        ("build --kind fuse -p 1e-12 -o f", &["p = 1e-12", "fingerprint"][..]),
        ("build --kind fuse --fingerprint-bits 99 -o f", &["99"]),
        ("build --kind fuse -n 100 --fingerprint-bits 99 -o f", &["99"]),
        ("build --kind fuse --hash keyed -o f", &["a keyed hash needs its secret"]),
        ("build --kind cuckoo --fingerprint-bits 99 -o f", &["99"]),
        ("build --kind quotient --load 0.99 -o f", &["load = 0.99"]),
        ("map build -p 1e-30 -o f", &["p = 1e-30"]),
        ("map build --mutable -p 1e-30 -o f", &["p = 1e-30"]),
        ("map build --hash sealed -o f", &["a sealed hash needs its secret"]),
        ("map build --values @nothing -o f", &["cannot read the values"]),
        ("count build --groups 99 -o f", &["groups = 99"]),
    ] {
        println!("umbel {args}");
        let mut process = shell.start(args);
        // A pipe that is never written to or closed: a reader would wait for ever.
        let stdin = process.stdin();
        process.finish().refused(says);
        drop(stdin);
    }
    assert!(shell.names(".").is_empty());
    // An option that depends on the number of keys is not an error before the number is known.
    shell.build("f", "--kind aging --window 1000", lines(1, 0..2000));
    shell.pipe("map build --values 0..18446744073709551615 -o m", "a\t1\n").ok();
}
