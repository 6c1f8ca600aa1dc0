//! `plan` computes the missing parameters by the formulas, and `build` builds exactly that filter.

use crate::shell::{Shell, number};
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
    assert!((number(&facts, "fpr") - 0.0402212).abs() < 1e-7, "{facts}");
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
