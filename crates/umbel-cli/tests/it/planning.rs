//! `plan` computes the missing parameters by the formulas, and `build` builds exactly that filter.

use crate::shell::{Shell, lines, number};
use serde_json::Value;
use std::time::{Duration, Instant};

fn plan(args: &[&str]) -> Value {
    Shell::new().run(&[&["plan", "--json"], args].concat()).ok().json()
}

#[test]
fn a_known_example_is_reproduced() {
    let facts = plan(&["-n", "58110", "-p", "0.04", "--kind", "standard"]);
    assert_eq!((&facts["kind"], &facts["capacity"]), (&"standard".into(), &58_110.into()));
    assert_eq!((&facts["bits"], &facts["hashes"]), (&389_318.into(), &5.into()));
    // The classic formula is 3e-7 lower.
    assert!((number(&facts, "fpr") - 0.04022152).abs() < 1e-8, "{facts}");
    assert_eq!(number(&facts, "bytes"), 48_704.0, "389 318 bits in lines of 64 bytes");
    let told = Shell::new().run("plan -n 58110 -p 0.04 --kind standard").ok();
    let words: Vec<&str> = told.text().split_ascii_whitespace().collect();
    for row in ["kind standard", "keys 58110", "bits 389318, 6.70 per key", "hashes 5 ", "rate 4.022 %"] {
        assert!(words.join(" ").contains(row), "{row:?} in {}", told.text());
    }
}

#[test]
fn a_large_filter_is_planned_at_once() {
    for kind in ["blocked", "standard", "partitioned"] {
        let start = Instant::now();
        let facts = plan(&["-n", "1e9", "-p", "1e-6", "--kind", kind]);
        assert!(start.elapsed() < Duration::from_secs(1), "{kind}: {:?}", start.elapsed());
        assert!((28.0..32.0).contains(&(number(&facts, "bits") / 1e9)), "{facts}");
    }
}

#[test]
fn a_plan_of_shards_has_room_for_a_few_more_keys_in_each() {
    let whole = plan(&["-n", "1e9", "-p", "1%"]);
    let facts = plan(&["-n", "1e9", "-p", "1%", "--shards", "64"]);
    let shard = &facts["shards"];
    // 15 625 000 keys and five standard deviations of 3953.
    assert_eq!((&shard["count"], &shard["capacity"]), (&64.into(), &15_644_765.into()), "{facts}");
    assert_eq!(facts["capacity"], 1_000_000_000);
    assert_eq!(number(&facts, "bytes"), 64.0 * number(shard, "bytes"));
    let more = number(&facts, "bytes") / number(&whole, "bytes");
    assert!((1.0..1.002).contains(&more), "{facts}");
    let alone = plan(&["-n", "15644765", "-p", "1%"]);
    assert_eq!((&shard["bytes"], &facts["fpr"]), (&alone["bytes"], &alone["fpr"]));
    let text = Shell::new().run("plan -n 1e9 -p 1% --shards 64").ok().text().to_owned();
    assert!(text.contains("64 of ") && text.contains(" for up to 15644765 keys"), "{text}");
}

#[test]
fn shards_are_planned_from_keys_and_a_rate() {
    let shell = Shell::new();
    shell.run("plan -n 1e9 --shards 0").refused(&["--shards", "1..=1024"]);
    shell.run("plan -n 1e9 --shards 1025").refused(&["--shards", "1..=1024"]);
    shell.run("plan -m 1GiB -p 1% --shards 4").refused(&["--shards", "--bits"]);
    shell
        .run("plan -n 1e9 --kind cuckoo --shards 4")
        .refused(&["cuckoo", "blocked, standard and partitioned"]);
}

/// Returns the textbook rate of k functions on m bits with n keys; a blocked filter has a higher
/// one.
fn textbook(kind: &str, facts: &Value) -> f64 {
    let [m, k, n] = ["bits", "hashes", "capacity"].map(|name| number(facts, name));
    match kind {
        "partitioned" => (1.0 - (n * (-k / m).ln_1p()).exp()).powf(k),
        _ => (1.0 - (-k * n / m).exp()).powf(k),
    }
}

#[test]
fn any_sufficient_subset_determines_the_rest() {
    for (kind, hashes) in [
        ("standard", &["1", "5", "8", "13"][..]),
        ("partitioned", &["1", "5", "8", "13"]),
        ("blocked", &["8", "16", "24", "32"]),
    ] {
        for k in hashes {
            let (n, p, m, k) = (["-n", "1e6"], ["-p", "1%"], ["-m", "16e6"], ["-k", *k]);
            let known: [&[[&str; 2]]; 10] = [
                &[n, p],
                &[n, m],
                &[n, k],
                &[m, p],
                &[m, k],
                &[n, p, k],
                &[n, m, k],
                &[m, p, k],
                &[n, p, m],
                &[n, p, m, k],
            ];
            for known in known {
                let args = [&known.concat()[..], &["--kind", kind]].concat();
                let has = |name: &str| known.iter().any(|[option, _]| *option == name);
                let answer = Shell::new().run(&[&["plan", "--json"], &args[..]].concat());
                if has("-n") && has("-p") && has("-m") && has("-k") && answer.code == Some(2) {
                    // All four may contradict each other; then the error says how.
                    assert!(answer.stderr.contains("1000000"), "{args:?}: {}", answer.stderr);
                    continue;
                }
                let facts = answer.ok().json();
                let rate = number(&facts, "fpr");
                if has("-n") {
                    assert_eq!(facts["capacity"], 1_000_000, "{args:?}");
                }
                if has("-k") {
                    assert_eq!(facts["hashes"].to_string(), k[1], "{args:?}");
                }
                if has("-m") {
                    // Whole cache lines, in a number that can be folded, or slices of the same
                    // length.
                    assert!((number(&facts, "bits") / 16e6 - 1.0).abs() < 1e-3, "{args:?}: {facts}");
                }
                if has("-p") {
                    // The number of functions is whole, so the rate may be missed slightly.
                    assert!(rate <= 0.0102, "{args:?}: {facts}");
                }
                if has("-p") && known.len() == 2 {
                    assert!(rate > 0.007, "{args:?}: no more memory than needed: {facts}");
                }
                let textbook = textbook(kind, &facts);
                if kind == "blocked" {
                    assert!(rate >= textbook && rate < 1000.0 * textbook, "{args:?}: {rate}, not {textbook}");
                } else {
                    assert!((rate / textbook - 1.0).abs() < 1e-3, "{args:?}: {rate}, not {textbook}");
                }
            }
            for known in [&[p][..], &[k], &[p, k], &[]] {
                let args = [&["plan", "--kind", kind], &known.concat()[..]].concat();
                Shell::new().run(&args).refused(&["give the number of keys (-n) or of bits (-m)"]);
            }
            // Without a rate, the default of `build` is used.
            for size in [n, m] {
                let args = [&["--kind", kind], &size[..]].concat();
                assert_eq!(plan(&args), plan(&[&args[..], &["-p", "1%"]].concat()));
            }
        }
    }
    Shell::new().run("plan -n 1e6 -k 7 --kind blocked").refused(&["8, 16, 24 or 32"]);
}

#[test]
fn the_filter_built_is_as_planned() {
    let shell = Shell::new();
    for kind in ["blocked", "standard", "partitioned"] {
        for (capacity, rate) in
            [("1", "1%"), ("1000", "0.1"), ("58110", "4%"), ("300k", "1/300"), ("2e6", "1e-5")]
        {
            for policy in ["round", "ceil", "best", "strict"] {
                let args = ["-n", capacity, "-p", rate, "--kind", kind, "--policy", policy];
                let plan = plan(&args);
                let facts = shell
                    .pipe(&[&["build", "-f", "-o", "f", "--json"], &args[..]].concat(), "a\n")
                    .ok()
                    .json();
                for name in ["kind", "hashes", "bytes", "capacity", "fpr_target"] {
                    assert_eq!(plan[name], facts[name], "{name}: {plan} {facts}");
                }
                assert_eq!(plan["built_bits"], facts["bits"], "{plan} {facts}");
                // A standard filter uses the rest of its last word too, and slices consist of whole
                // bytes.
                let (planned, slices) = (plan["bits"].as_u64().unwrap(), plan["hashes"].as_u64().unwrap());
                let whole = match plan["kind"].as_str() {
                    Some("standard") => planned.next_multiple_of(64),
                    Some("partitioned") => (planned / slices).next_multiple_of(8) * slices,
                    _ => planned,
                };
                assert_eq!(facts["bits"], whole, "{plan} {facts}");
                assert_eq!(number(&shell.info("f"), "bytes"), number(&plan, "bytes"));
            }
        }
    }
}

#[test]
fn kinds_are_compared_side_by_side() {
    let all = plan(&["--compare", "-n", "1e6", "-p", "1%"]);
    let told = Shell::new().run("plan --compare -n 1e6 -p 1%").ok();
    for (number, kind) in ["standard", "partitioned", "blocked", "literature"].into_iter().enumerate() {
        assert_eq!(all[number], plan(&["-n", "1e6", "-p", "1%", "--kind", kind]));
        assert!(told.text().lines().any(|row| row.starts_with(kind)), "{}", told.text());
    }
}

/// Sets have neither values nor multiplicities.
#[test]
fn options_of_maps_and_multisets_are_not_for_comparisons() {
    let shell = Shell::new();
    for option in ["--values", "--keys", "--groups", "--levels"] {
        shell.run(&["plan", "--compare", "-n", "1e6", option, "5"]).refused(&[
            "--compare",
            option,
            "cannot be used with",
        ]);
    }
}

#[test]
fn the_capabilities_of_a_kind_are_listed() {
    let shell = Shell::new();
    for (kind, can) in [
        ("fuse", "answer only"),
        ("bloomier", "answer only"),
        ("bloomier-mutable", "change values"),
        ("scalable", "grow, union, intersect"),
    ] {
        let told = shell.run(&["plan", "-n", "1e6", "--kind", kind]).ok();
        assert!(told.text().ends_with(&format!(" {can}\n")), "{}", told.text());
        assert_eq!(plan(&["-n", "1e6", "--kind", kind])["can"]["change"], can == "change values");
    }
}

#[test]
fn a_small_blocked_filter_is_planned_as_the_kind_built_instead() {
    assert_eq!(plan(&["-n", "1000", "-p", "1%", "--kind", "blocked"])["kind"], "standard");
    let told = Shell::new().run("plan -n 1000 -p 1%").ok();
    assert!(
        told.text().contains("standard, because below 64 KiB the rate of a blocked filter varies too much"),
        "{}",
        told.text()
    );
}

#[test]
fn numbers_may_be_written_in_every_usual_form() {
    let same = |forms: &[&str], args: &[&str], option: &str| {
        let facts: Vec<Value> = forms.iter().map(|form| plan(&[args, &[option, form]].concat())).collect();
        assert!(facts.windows(2).all(|pair| pair[0] == pair[1]), "{forms:?}: {facts:?}");
        facts[0].clone()
    };
    let keys = same(&["10000000", "1e7", "1E7", "10M", "10_000_000", "10000k", "0.01G"], &["-p", "1%"], "-n");
    assert_eq!(keys["capacity"], 10_000_000);
    let rate = same(&["0.001", "0.1%", "1/1000", "1e-3", ".001"], &["-n", "1e6"], "-p");
    assert_eq!(rate["fpr_target"], 0.001);
    let bits = same(&["64MiB", "65536KiB", "536870912", "512Mi", "67108864B"], &["-p", "1%"], "-m");
    assert_eq!(bits["bytes"], 64 << 20);
    let shell = Shell::new();
    for (option, forms) in [
        ("-n", &["1.5", "-1", "ten", "1e30", "10MB", ""][..]),
        ("-p", &["0", "1", "2", "-1%", "101%", "x"]),
        ("-m", &["64Mb", "1.5", ""]),
    ] {
        for form in forms {
            let (other, value) = if option == "-n" { ("-p", "1%") } else { ("-n", "1000") };
            let answer = shell.run(&["plan", other, value, &format!("{option}{form}")]);
            answer.refused(&[if form.is_empty() { "value" } else { form.trim_start_matches('-') }]);
        }
    }
}

/// Returns the rate of k random probes after n k throws into m bits, by the distribution of the number
/// of set bits.
fn exact_rate(m: usize, n: usize, k: i32) -> f64 {
    let mut share = vec![0.0; m + 1];
    share[0] = 1.0;
    for _ in 0..n * k as usize {
        for set in (0..=m).rev() {
            let from_below = if set > 0 { share[set - 1] * (m - set + 1) as f64 } else { 0.0 };
            share[set] = (share[set] * set as f64 + from_below) / m as f64;
        }
    }
    share.iter().enumerate().map(|(set, share)| share * (set as f64 / m as f64).powi(k)).sum()
}

#[test]
fn the_rate_of_a_small_filter_is_the_exact_one() {
    for (m, n, k) in [(128, 8, 11), (10, 3, 3), (64, 10, 4), (200, 20, 7), (2, 1, 2), (1000, 70, 10)] {
        let exact = exact_rate(m, n, k);
        let [m, n, k] = [m.to_string(), n.to_string(), k.to_string()];
        let size = ["-m", &m, "-n", &n, "-k", &k];
        for kind in ["standard", "literature"] {
            let rate = number(&plan(&[&size[..], &["--kind", kind]].concat()), "fpr");
            assert!((rate / exact - 1.0).abs() < 1e-6, "{kind} {size:?}: {rate}, not {exact}");
        }
        // A counting filter has the rate of its counters, a deletable one that of its bits.
        let bits = (4 * m.parse::<u64>().unwrap()).to_string();
        let counting = ["--kind", "counting", "-m", &bits, "-n", &n, "-k", &k];
        let rate = number(&plan(&counting), "fpr");
        assert!((rate / exact - 1.0).abs() < 1e-6, "{counting:?}: {rate}, not {exact}");
        let bits = (2 * m.parse::<u64>().unwrap()).to_string();
        let deletable = ["--kind", "deletable", "--region-bits", "1", "-m", &bits, "-n", &n, "-k", &k];
        let rate = number(&plan(&deletable), "fpr");
        assert!((rate / exact - 1.0).abs() < 1e-6, "{deletable:?}: {rate}, not {exact}");
    }
}

#[test]
fn the_rate_rises_with_every_key() {
    let rates: Vec<f64> = (170..182)
        .map(|keys| number(&plan(&["-m", "1200", "-k", "5", "-n", &keys.to_string()]), "fpr"))
        .collect();
    // The exact computation ends at 174 keys.
    assert!(rates.is_sorted_by(|one, next| one < next), "{rates:?}");
}

#[test]
fn the_formulas_of_the_literature_are_printed_side_by_side() {
    let shell = Shell::new();
    let told = shell.run("plan --formulas -m 10 -n 3 -k 3").ok();
    let rows: Vec<&str> = told.text().lines().collect();
    for (name, value) in [
        ("rate, classic", "22.99 %"),
        ("rate, asymptotic", "20.9 %"),
        ("rate, second order", "24.72 %"),
        ("rate, exact", "24.72 %"),
        ("best k", "2.310"),
        ("best k, rule of thumb", "2.308"),
    ] {
        assert!(rows.iter().any(|row| row.starts_with(name) && row.ends_with(value)), "{}", told.text());
    }
    // m, n, k, and the rates that are published.
    for (m, n, k, [classic, asymptotic, second, exact]) in [
        ("128", "8", "11", [0.000472658, 0.000458711, 0.000534941, 0.000537366]),
        ("64", "8", "6", [0.022270492, 0.021577141, 0.023792946, 0.023809225]),
        ("1024", "100", "7", [0.007319840, 0.007302421, 0.007366202, 0.007366258]),
    ] {
        let formulas = &plan(&["--formulas", "-m", m, "-n", n, "-k", k])["formulas"];
        for (name, value) in
            [("classic", classic), ("asymptotic", asymptotic), ("second_order", second), ("exact", exact)]
        {
            assert!((number(formulas, name) - value).abs() < 1e-9, "{name}: {formulas}");
        }
    }
    // A large filter is as exact as a small one, and one with many functions has no exact rate.
    let large = &plan(&["--formulas", "-n", "1e6", "-p", "1%"])["formulas"];
    assert!((number(large, "exact") / number(large, "classic") - 1.0).abs() < 1e-5, "{large}");
    assert!(plan(&["--formulas", "-n", "1e6", "-k", "30"])["formulas"]["exact"].is_null());
    shell.run("plan --formulas -n 1e6 --kind cuckoo").refused(&["--formulas is for the kind standard"]);
}

#[test]
fn the_share_of_keys_that_can_be_removed_is_planned() {
    // m, k, n, bits of a region, and the share.
    for (m, k, n, region, share) in [
        ("240", "5", "22", "9", 0.8071),
        ("240", "5", "22", "19", 0.5000),
        ("240", "5", "22", "3", 0.9336),
        ("1000", "7", "100", "9", 0.4889),
        ("10000", "5", "625", "19", 0.8577),
    ] {
        let facts = plan(&["--kind", "deletable", "-m", m, "-k", k, "-n", n, "--region-bits", region]);
        assert!((number(&facts, "deletability") - share).abs() < 5e-5, "{facts}");
    }
    let told = Shell::new().run("plan --kind deletable -n 1000").ok();
    assert!(told.text().contains("\ndeletable  89.93 % of the keys at capacity\n"), "{}", told.text());
    assert!(plan(&["-n", "1000"])["deletability"].is_null());
}

#[test]
fn every_kind_is_built_with_the_bits_planned() {
    let shell = Shell::new();
    for count in [3, 10, 100, 1000, 5000, 100_000] {
        let (text, n) = (lines(1, 0..count), count.to_string());
        let compare = |kind: &str, plan_args: &str, build: &str, text: &[u8]| {
            let args = format!("plan --json --kind {kind} -n {n} {plan_args}");
            let planned = shell.run(&args).ok().json();
            shell.pipe(&format!("{build} -f -o f --kind {kind}"), text).ok();
            let facts = shell.info("f");
            assert_eq!(planned["built_bits"], facts["bits"], "{kind} {n}: {planned} {facts}");
            for name in ["kind", "hashes", "bytes", "capacity"] {
                assert_eq!(planned[name], facts[name], "{kind} {n}: {name}: {planned} {facts}");
            }
            let told = shell.run(&args.replace("--json ", "")).ok();
            let both = format!("; {} are built", planned["built_bits"]);
            assert_eq!(
                told.text().contains(&both),
                planned["bits"] != planned["built_bits"],
                "{}",
                told.text()
            );
        };
        for kind in [
            "standard",
            "partitioned",
            "counting",
            "variable-increment",
            "deletable",
            "scalable",
            "aging",
            "floom",
            "cuckoo",
            "quotient",
            "fuse",
        ] {
            compare(kind, "-p 1%", &format!("build -n {n} -p 1%"), &text);
        }
        if count == 100_000 {
            compare("blocked", "-p 1%", &format!("build -n {n} -p 1%"), &text);
        }
        compare("literature", "-p 1%", &format!("build -n {n} -p 1% --hash murmur3"), &text);
        for kind in ["space-code", "multi-resolution"] {
            compare(kind, "", &format!("count build -n {n}"), &text);
        }
        let pairs: String = (0..count).map(|key| format!("{key}\t{}\n", key % 6)).collect();
        let planned = shell.run(&format!("plan --json --kind bloomier -n {n} --values 0..5")).ok().json();
        shell.pipe("map build -f -o f --values 0..5", &pairs).ok();
        assert_eq!(planned["built_bits"], shell.info("f")["bits"], "a map of {n}");
    }
}

#[test]
fn mistaken_numbers_are_explained() {
    let shell = Shell::new();
    shell.run("plan 1000000 0.01").refused(&["numbers need their options", "umbel plan -n 1000000 -p 0.01"]);
    shell.run("plan 1e6").refused(&["umbel plan -n 1e6"]);
    shell.run("plan many").refused(&["umbel plan -n 1e6 -p 1%"]);
    for args in ["plan -n -5", "plan -m -5", "uniq -n -5", "build --seed -5 -o f", "count build -n -5 -o f"] {
        let answer = shell.run(args);
        answer.refused(&["'-5'", "a number below 0"]);
        assert!(!answer.stderr.contains("unexpected"), "{}", answer.stderr);
    }
    shell.run("plan -n 5 -p -1%").refused(&["'-1%'", "a rate lies between 0 and 1"]);
    shell.run("plan -n 5 -x").refused(&["unexpected argument '-x'"]);
    for args in ["plan -n 1000 -p 1e-300", "build -n 1000 -p 1e-300 -o f", "build -p 1e-300 -o f"] {
        let answer = shell.pipe(args, "a\n");
        answer.refused(&["p = 1e-300", "at least 5.4e-1"]);
        assert!(!answer.stderr.contains("000000"), "{}", answer.stderr);
    }
    for (increments, wrong) in [("abc", "'abc'"), ("1,abc", "'abc'"), ("1.5,2", "'1.5'")] {
        let answer = shell.run(&format!("plan --kind variable-increment -n 5 --increments {increments}"));
        answer.refused(&[wrong, "not an increment", "8,12,14,15"]);
    }
}
