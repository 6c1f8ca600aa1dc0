//! `union`, `intersect`, `fold`, `resize` and `convert` lose no key, and refuse combinations that would.

use crate::shell::{Shell, cells, line, lines, number, text};
use std::collections::HashSet;

const KINDS: [&[&str]; 4] = [
    &["--kind", "blocked"],
    &["--kind", "standard"],
    &["--kind", "partitioned"],
    &["--kind", "literature", "--hash", "md5-indexed"],
];

/// Returns the keys that a filter reports.
fn found<'a>(shell: &Shell, filter: &str, keys: &'a [Vec<u8>]) -> HashSet<&'a Vec<u8>> {
    let filter = shell.load(filter).filter;
    keys.iter().filter(|key| filter.contains(&key[..])).collect()
}

#[test]
fn a_union_is_the_filter_of_all_keys() {
    let shell = Shell::new();
    let keys: Vec<Vec<u8>> = (0..60_000).map(|number| line(1, number)).collect();
    for kind in KINDS {
        let size = ["-f", "-n", "60000", "--meta", "same=1"];
        shell.build("a", &[&size, kind, &["--meta", "name=a"]].concat(), text(&keys[..30_000]));
        shell.build("b", &[&size, kind, &["--meta", "name=b"]].concat(), text(&keys[20_000..50_000]));
        shell.build("c", &[&size, kind].concat(), text(&keys[50_000..]));
        shell.build("all", &[&size, kind].concat(), text(&keys));
        shell.run("union -f a b c -o u --meta new=2").ok();
        let [united, built] = ["u", "all"].map(|name| shell.load(name).filter);
        assert!(cells(&united) == cells(&built), "{kind:?}");
        let facts = shell.info("u");
        // The number of insertions is unknown; metadata is kept where all filters agree.
        assert!(facts.get("count").is_none(), "{facts}");
        assert_eq!(facts["meta"], serde_json::json!({"same": "1", "new": "2"}));
        let piped = shell.run("union a b c --meta new=2").ok().stdout;
        assert!(piped == shell.read("u"), "standard output");
    }
}

#[test]
fn an_intersection_reports_only_keys_that_both_filters_report() {
    let shell = Shell::new();
    let keys: Vec<Vec<u8>> = (0..100_000).map(|number| line(1, number)).collect();
    for kind in KINDS {
        shell.build("a", &[&["-f", "-n", "60000"], kind].concat(), text(&keys[..50_000]));
        shell.build("b", "-f --like a", text(&keys[20_000..70_000]));
        shell.run("intersect -f a b -o i").ok();
        let [a, b, both] = ["a", "b", "i"].map(|name| found(&shell, name, &keys));
        assert!(keys[20_000..50_000].iter().all(|key| both.contains(key)), "{kind:?}");
        assert!(both.iter().all(|key| a.contains(key) && b.contains(key)), "{kind:?}");
    }
}

#[test]
fn incompatible_filters_are_refused_and_the_difference_is_named() {
    let shell = Shell::new();
    shell.build("plain", "-n 60000", "a\n");
    for (name, args, difference) in [
        ("seed", &["-n", "60000", "--seed", "3"][..], "seed is 0 in one and 3 in the other"),
        ("size", &["-n", "90000"], "in one and"),
        ("kind", &["-n", "60000", "--kind", "standard"], "blocked in one and standard in the other"),
        ("family", &["-n", "60000", "--kind", "literature", "--hash", "murmur2"], "literature"),
    ] {
        shell.build(name, args, "b\n");
        for command in ["union", "intersect"] {
            shell.run(&[command, "plain", name, "-o", "out"]).refused(&[difference]);
            assert!(!shell.path("out").exists());
        }
        shell.run(&["compare", "plain", name]).refused(&[difference]);
    }
}

#[test]
fn a_folded_filter_holds_the_same_keys_in_half_the_memory() {
    let shell = Shell::new();
    let keys: Vec<Vec<u8>> = (0..60_000).map(|number| line(1, number)).collect();
    for kind in &KINDS[..3] {
        // Sized for eight times as many keys as were added. Slices with an odd number of bits
        // cannot be folded.
        let folds = |capacity: &u64| {
            let args = ["plan", "--json", "-p", "1%", "-n", &capacity.to_string()];
            let plan = shell.run(&[&args, *kind].concat()).ok().json();
            let [bits, slices] = ["bits", "hashes"].map(|name| plan[name].as_u64().unwrap());
            kind[1] != "partitioned" || (bits / slices).is_multiple_of(8)
        };
        let capacity = (480_000..).find(folds).unwrap().to_string();
        shell.build("f", &[&["-f", "-n", &capacity, "--meta", "a=b"], *kind].concat(), text(&keys));
        let before = shell.info("f");
        for (args, times) in [(&[][..], 1), (&["--times", "2"], 2), (&["-p", "1.1%"], 3)] {
            shell.run(&[&["fold", "-f", "f", "-o", "folded"], args].concat()).ok();
            let facts = shell.info("folded");
            assert_eq!(found(&shell, "folded", &keys).len(), keys.len(), "{kind:?} {args:?}");
            let share = number(&facts, "bytes") / number(&before, "bytes");
            assert!((share * f64::from(1 << times) - 1.0).abs() < 0.01, "{kind:?} {args:?}: {share}");
            assert!(number(&facts, "fpr_now") > number(&before, "fpr_now"), "{facts}");
            assert_eq!((&facts["kind"], &facts["meta"]), (&before["kind"], &before["meta"]));
            if times == 3 {
                assert!(number(&facts, "fpr_now") <= 0.011, "{facts}");
            }
        }
        // A folded filter accepts more keys, and folding a union equals uniting folded filters.
        shell.build("g", "-f --like f", lines(2, 0..30_000));
        shell.run("fold -f g -o folded-g").ok();
        shell.run("fold -f f -o folded-f").ok();
        shell.run("union -f f g -o u").ok();
        shell.run("fold -f u -o folded-u").ok();
        shell.run("union -f folded-f folded-g -o u-folded").ok();
        let [one, other] = ["folded-u", "u-folded"].map(|name| shell.load(name).filter);
        assert!(cells(&one) == cells(&other), "{kind:?}");
        shell.run("fold f -p 1e-12 -o x").refused(&["folding only raises it"]);
    }
}

#[test]
fn a_filter_without_counters_converts_only_to_its_own_kind() {
    let shell = Shell::new();
    for from in KINDS {
        shell.build("f", &[&["-f", "-n", "60000", "--meta", "a=b"], from].concat(), lines(1, 0..1_000));
        for to in ["blocked", "standard", "partitioned", "literature"] {
            let answer = shell.run(&["convert", "-f", "f", "--kind", to, "-o", "converted"]);
            if to == from[1] {
                answer.ok();
                assert!(shell.read("converted") == shell.read("f"));
                std::fs::remove_file(shell.path("converted")).unwrap();
            } else {
                let from = from[1];
                let reason = format!("a {from} filter cannot become a {to} one: it does not hold its keys");
                answer.refused(&[&reason]);
                assert!(!shell.path("converted").exists());
            }
        }
    }
}

#[test]
fn a_union_of_full_quotient_filters_takes_the_room_it_needs() {
    let shell = Shell::new();
    let keys: Vec<Vec<u8>> = (0..4000).map(|number| line(1, number)).collect();
    for (name, keys) in ["a", "b", "c"].into_iter().zip(keys.chunks(1000)) {
        shell.build(name, "--kind quotient -n 1000", text(keys));
    }
    let answer = shell.run("union a b c -o all").code(0);
    assert!(answer.stderr.contains("holds about 3000 keys, more than the 1000 it was made for"));
    assert_eq!(found(&shell, "all", &keys[..3000]).len(), 3000);
    // A key raises the rate of the union as much as that of its parts.
    let [part, all] = ["a", "all"].map(|name| number(&shell.info(name), "fpr_now"));
    assert!((all / part / 3.0 - 1.0).abs() < 0.05, "{part} {all}");
    // Remainders of one bit cannot give one away.
    for (name, keys) in ["d", "e"].into_iter().zip(keys.chunks(1000)) {
        shell.build(name, "--kind quotient --remainder-bits 1 -n 1000 -p 40%", text(keys));
    }
    shell.run("union d e -o no").refused(&["d and e", "it can grow to 1216 keys", "build it again"]);
}

#[test]
fn a_resized_quotient_filter_has_the_same_keys_and_reports_its_rate() {
    let shell = Shell::new();
    let keys: Vec<Vec<u8>> = (0..6000).map(|number| line(1, number)).collect();
    shell.build("f", "--kind quotient -n 1000 --meta source=test", text(&keys[..1000]));
    shell.run("resize f -n 5000 -o larger").ok();
    let facts = shell.info("larger");
    assert_eq!((&facts["capacity"], &facts["meta"]["source"]), (&5000.into(), &"test".into()));
    assert_eq!(found(&shell, "larger", &keys[..1000]).len(), 1000);
    assert_eq!(facts["fpr_now"], shell.info("f")["fpr_now"], "the fingerprints are the same");
    shell.pipe("add larger", text(&keys[1000..5000])).ok();
    assert_eq!(found(&shell, "larger", &keys[..5000]).len(), 5000);
    let facts = shell.info("larger");
    let (now, promised) = (number(&facts, "fpr_now"), number(&facts, "fpr_target"));
    assert!((0.95 * promised..1.05 * promised).contains(&now), "{facts}");
    let said = shell.run("info larger").ok();
    assert!(said.text().contains("5000, full"), "{}", said.text());
    // Back to the size it had, as if it had never had another.
    shell.run("resize f -n 4000 -o roomy").ok();
    shell.run("resize -f roomy -n 1000 -o back").ok();
    let [before, back] = ["f", "back"].map(|name| shell.load(name).filter);
    assert!(cells(&before) == cells(&back));
}

#[test]
fn a_filter_that_cannot_be_resized_is_refused_with_the_alternative() {
    let shell = Shell::new();
    shell.build("quotient", "--kind quotient -n 1000", lines(1, 0..1000));
    shell.run("resize quotient -n 999 -o new").refused(&["n = 999", "at least the 1000 keys"]);
    shell.run("resize quotient -n 1e9 -o new").refused(&["it can grow to 77824 keys", "build it again"]);
    shell.run("resize quotient -n 0 -o new").refused(&["at least the 1000 keys"]);
    shell.run("resize quotient -o new").refused(&["-n"]);
    for (kind, says) in [
        ("standard", "a standard filter cannot be resized: it can only be folded in half: use `umbel fold`"),
        ("blocked", "`umbel fold`"),
        ("scalable", "it grows by itself"),
        ("cuckoo", "build it again from its keys"),
        ("fuse", "fuse"),
    ] {
        shell.build(kind, &format!("--kind {kind}"), lines(1, 0..1000));
        shell.run(&format!("resize {kind} -n 5000 -o new")).refused(&[says]);
    }
    assert!(!shell.path("new").exists());
    // Full filters say how to make room.
    shell.pipe("add quotient", lines(2, 0..1000)).refused(&["umbel resize"]);
}
