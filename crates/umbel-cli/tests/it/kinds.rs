//! Every kind of filter from the shell: the result of `build` is as planned, removal works or is
//! refused with the reason, and filters that grow or forget do so.

use crate::shell::{Shell, line, lines, number, split};
use serde_json::Value;
use std::thread::sleep;
use std::time::Duration;
use umbel::aging::Timestamp;
use umbel::file::{self, Options};

/// Every kind of set that accepts digests one after the other.
const KINDS: [&str; 11] = [
    "standard",
    "partitioned",
    "blocked",
    "counting",
    "variable-increment",
    "deletable",
    "scalable",
    "aging",
    "floom",
    "cuckoo",
    "quotient",
];

const REMOVING: [&str; 5] = ["counting", "variable-increment", "deletable", "cuckoo", "quotient"];

#[test]
fn the_kinds_are_those_that_plan_knows() {
    let shell = Shell::new();
    let plans = shell.run("plan --compare -n 1e5 -p 0.1% --json").ok().json();
    let names: Vec<&str> =
        plans.as_array().unwrap().iter().map(|plan| plan["kind"].as_str().unwrap()).collect();
    assert!(KINDS.iter().chain(&["literature", "fuse"]).all(|kind| names.contains(kind)), "{names:?}");
    assert_eq!(names.len(), KINDS.len() + 2, "maps and multisets are not compared with sets");
}

#[test]
fn the_comparison_of_kinds_matches_the_filters_built() {
    let shell = Shell::new();
    let plans = shell.run("plan --compare -n 1e5 -p 0.1% --json").ok().json();
    for plan in plans.as_array().unwrap() {
        let kind = plan["kind"].as_str().unwrap();
        if kind == "literature" {
            continue;
        }
        shell.build("f", &["-f", "--kind", kind, "-n", "1e5", "-p", "0.1%"], lines(1, 0..100_000));
        let facts = shell.info("f");
        assert_eq!((&facts["kind"], &facts["bytes"]), (&plan["kind"], &plan["bytes"]));
        let [planned, found] = [plan, &facts].map(|facts| number(facts, "bits_per_key"));
        assert!((planned - found).abs() < 0.005, "{kind}: {planned} planned, {found} built");
        assert!(number(plan, "fpr") <= 0.001_01, "{kind}: {plan}");
        assert!(number(&facts, "fpr_now") <= 0.001_05, "{kind}: {facts}");
        let told = shell.run(&["plan", "--kind", kind, "-n", "1e5", "-p", "0.1%"]).ok();
        assert!(told.text().contains(&format!("{found:.2} per key")), "{kind}: {}", told.text());
    }
}

#[test]
fn the_number_of_threads_makes_no_difference() {
    let shell = Shell::new();
    for kind in KINDS {
        // A cuckoo filter has no room for repeated lines.
        let again = if kind == "cuckoo" { 0 } else { 30_000 };
        shell.write("lines", [lines(1, 0..150_000), lines(1, 0..again)].concat());
        for size in [&[][..], &["-n", "250000"]] {
            let build = |threads: &str, name: &str| {
                let args = ["build", "-f", "--kind", kind, "-j", threads, "-o", name, "lines"];
                shell.run(&[&args, size].concat()).ok();
                shell.read(name)
            };
            assert!(build("1", "one") == build("4", "four"), "{kind} {size:?}");
            assert_eq!(shell.pipe("check -c one", lines(1, 0..150_000)).ok().text(), "150000\n", "{kind}");
        }
        shell.write("more", lines(2, 0..40_000));
        shell.run("add -j 4 four more").ok();
        shell.run("add -j 1 one more").ok();
        assert!(shell.read("one") == shell.read("four"), "{kind}, added");
    }
}

#[test]
fn lines_are_removed_and_the_others_remain() {
    let shell = Shell::new();
    for kind in REMOVING {
        shell.build("f", &["-f", "--kind", kind], lines(1, 0..20_000));
        let count = number(&shell.info("f"), "count");
        assert_eq!(count, 20_000.0, "{kind}");
        let answer = shell.pipe("remove f", lines(1, 0..10_000));
        if kind == "deletable" {
            // About one in ten keys shares all its bits.
            let left = split(&answer.stdout).len() as f64;
            assert!((500.0..1500.0).contains(&left) && answer.code == Some(1), "{left} left");
            let said = format!(
                "{left} of 10000 lines were not removed: 0 are certainly not in the filter, {left} share"
            );
            assert!(answer.stderr.contains(&said), "{}", answer.stderr);
            assert_eq!(number(&shell.info("f"), "count"), 10_000.0 + left);
        } else {
            answer.ok();
            assert_eq!(number(&shell.info("f"), "count"), 10_000.0, "{kind}");
            let left: u64 = shell.pipe("check -c f", lines(1, 0..10_000)).text().trim().parse().unwrap();
            assert!(left < 200, "{kind}: {left} are still there");
        }
        assert_eq!(shell.pipe("check -c f", lines(1, 10_000..20_000)).ok().text(), "10000\n", "{kind}");
    }
}

#[test]
fn lines_that_were_never_added_are_printed_and_counted() {
    let shell = Shell::new();
    for kind in REMOVING {
        shell.build("f", &["-f", "--kind", kind, "-n", "10000", "-p", "1e-6"], "a\nb\nc\n");
        let before = shell.read("f");
        let answer = shell.pipe("remove f", "x\ny\n").code(1);
        assert_eq!(answer.text(), "x\ny\n", "{kind}");
        assert!(
            answer.stderr.contains("2 of 2 lines were not removed: 2 are certainly not"),
            "{}",
            answer.stderr
        );
        assert!(shell.read("f") == before, "{kind}: nothing was removed, nothing is written");
        let answer = shell.pipe("remove -q f", "x\nb\n").code(1);
        assert_eq!(answer.text(), "", "{kind}");
        assert_eq!(shell.pipe("check f", "a\nb\nc\n").ok().text(), "a\nc\n", "{kind}");
        let json = shell.pipe("remove --json f", "a\nx\n").code(1).json();
        assert_eq!((&json["removed"], &json["not_present"]), (&1.into(), &1.into()), "{kind}");
        shell.pipe("remove f", "c\n").ok();
        assert_eq!(shell.pipe("check -c f", "a\nb\nc\n").code(1).text(), "0\n", "{kind}: nothing is left");
    }
}

#[test]
fn a_kind_without_removal_names_those_with_it() {
    let shell = Shell::new();
    for kind in KINDS.iter().filter(|kind| !REMOVING.contains(kind)) {
        shell.build("f", &["-f", "--kind", kind, "-n", "100000"], "a\n");
        let before = shell.read("f");
        let article = if *kind == "aging" { "an" } else { "a" };
        let said = format!("f is {article} {kind} filter, which cannot remove keys");
        let kinds = REMOVING.join(", ");
        shell.pipe("remove f", "a\n").refused(&[&said, &kinds]);
        assert!(shell.read("f") == before, "{kind}");
    }
}

#[test]
fn a_sketch_is_described_and_not_mistaken_for_a_set() {
    let shell = Shell::new();
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../umbel/tests/golden");
    for kind in ["distinct", "count-min", "top-k", "frequent"] {
        std::fs::copy(golden.join(kind).with_extension("umbel"), shell.path("s")).unwrap();
        let facts = shell.info("s");
        assert_eq!((&facts["kind"], facts["capacity"].is_null()), (&kind.into(), true));
        let text = shell.run("info s").ok().text().to_owned();
        assert!(text.contains(kind) && text.contains("checksums hold") && !text.contains("rate"), "{text}");
        let said = format!("s holds a sketch ({kind}): `umbel info`");
        shell.pipe("check s", "a\n").refused(&[&said]);
        shell.pipe("add s", "a\n").refused(&[&said]);
        shell.pipe("remove s", "a\n").refused(&[&said]);
        shell.run("why s a").refused(&[&said]);
        shell.run("union s s -o t").refused(&[&said]);
        shell.pipe(&format!("build -o t --kind {kind}"), "a\n").refused(&["it is a kind of sketch"]);
        shell.run(&format!("plan -n 10 --kind {kind}")).refused(&[kind]);
    }
}

#[test]
fn some_kinds_become_standard_filters_of_the_same_keys() {
    let shell = Shell::new();
    for kind in ["counting", "deletable", "floom"] {
        shell.build("f", &["-f", "--kind", kind, "-n", "30000", "--meta", "a=b"], lines(1, 0..20_000));
        shell.run("convert -f f --kind standard -o g").ok();
        let facts = shell.info("g");
        assert_eq!((&facts["kind"], &facts["count"]), (&"standard".into(), &20_000.into()), "{kind}");
        assert_eq!(facts["meta"]["a"], "b", "{kind}");
        assert_eq!(shell.pipe("check -c g", lines(1, 0..20_000)).ok().text(), "20000\n", "{kind}");
        assert!(number(&facts, "bytes") < number(&shell.info("f"), "bytes"), "{kind}");
        shell.run("convert f --kind blocked -o h").refused(&["cannot become a blocked one"]);
    }
    for kind in ["scalable", "aging", "cuckoo", "quotient", "variable-increment"] {
        shell.build("f", &["-f", "--kind", kind, "-n", "1000"], "a\n");
        let said = format!("{kind} filter cannot become a standard one");
        shell.run("convert f --kind standard -o h").refused(&[&said]);
    }
}

#[test]
fn a_scalable_filter_grows_and_keeps_its_rate() {
    let shell = Shell::new();
    shell.build("f", "--kind scalable -n 100 -p 1%", lines(1, 0..100));
    assert_eq!(number(&shell.info("f")["details"], "stages"), 1.0);
    shell.pipe("add f", lines(1, 100..60_000)).ok();
    let facts = shell.info("f");
    assert!(number(&facts["details"], "stages") > 5.0, "{facts}");
    assert!(number(&facts, "fpr_now") < 0.01, "{facts}");
    assert_eq!(shell.pipe("check -c f", lines(1, 0..60_000)).ok().text(), "60000\n");
    let wrong: f64 = shell.pipe("check -c f", lines(2, 0..100_000)).text().trim().parse().unwrap();
    assert!(wrong / 100_000.0 < 0.0102, "{wrong}");
    shell.run("build --kind scalable --tightening 1 -n 10 -o g").refused(&["tightening"]);
    shell
        .run("build --kind blocked --tightening 0.5 -n 10 -o g")
        .refused(&["--tightening is for the kind scalable"]);
}

#[test]
fn an_aging_filter_forgets_after_its_window_of_keys() {
    let shell = Shell::new();
    shell.build("f", "--kind aging --window 8000 --generations 4", lines(1, 0..8000));
    assert_eq!(shell.pipe("check -c f", lines(1, 0..8000)).ok().text(), "8000\n");
    shell.pipe("add f", lines(2, 0..8000)).ok();
    // The window ends within the last of four parts.
    assert_eq!(shell.pipe("check -c f", lines(2, 2000..8000)).ok().text(), "6000\n");
    let left: u64 = shell.pipe("check -c f", lines(1, 0..8000)).text().trim().parse().unwrap();
    assert!(left < 200, "{left}");
    shell.run("build --kind aging --window 5x -o g").refused(&["not a window"]);
}

#[test]
fn an_aging_filter_forgets_after_its_window_of_time() {
    let shell = Shell::new();
    // A key lives for at least three seconds, however slow the machine is, and at most six.
    shell.build("f", "--kind aging --window 6s --generations 2 -n 1000 -p 1e-6", "a\n");
    shell.pipe("check -q f", "a\n").ok();
    sleep(Duration::from_millis(6100));
    shell.pipe("check -q f", "a\n").code(1);
    assert_eq!(number(&shell.info("f")["details"], "live generations"), 0.0);
    shell.pipe("add f", "b\n").ok();
    shell.pipe("check -q f", "b\n").ok();
    assert_eq!(shell.run("why f b").ok().text().lines().next(), Some("key     b"));
}

#[test]
fn a_clock_that_goes_backwards_is_refused() {
    let shell = Shell::new();
    shell.build("f", "--kind aging --window 1h -n 1000", "a\n");
    let mut filter = shell.load("f").filter;
    filter.advance(Timestamp::from_millis(Timestamp::now().millis() + 600_000)).unwrap();
    file::save(shell.path("f"), &filter, &Options::default()).unwrap();
    let before = shell.read("f");
    for command in ["check f", "add f", "add --new f"] {
        shell.pipe(command, "a\n").refused(&["the clock goes backwards", "set the clock right"]);
    }
    assert!(shell.read("f") == before);
    shell.run("info f").ok();
}

#[test]
fn uniq_forgets_lines_outside_its_window() {
    let shell = Shell::new();
    // Each line is repeated after 100 others, and after 20 000 others.
    let run = |from: u64| (from..from + 100).chain(from..from + 100).collect::<Vec<_>>();
    let input: Vec<u64> =
        (0..200).flat_map(|i| run(i * 100)).chain((0..200).flat_map(|i| run(i * 100))).collect();
    let text: Vec<u8> = input.iter().flat_map(|number| [line(1, *number), b"\n".to_vec()].concat()).collect();
    let answer = shell.pipe("uniq --window 1000 -p 1e-9", &text).code(0);
    assert_eq!(split(&answer.stdout).len(), 40_000, "both times each line is first in its window");
    assert!(
        answer.stderr.contains("40000 lines that are first in their window, out of 80000"),
        "{}",
        answer.stderr
    );
    let answer = shell.pipe("uniq --window 50000 -p 1e-9", &text).code(0);
    assert_eq!(split(&answer.stdout).len(), 20_000, "the window is longer than that");
    shell.pipe("uniq --generations 3", "a\n").refused(&["--window"]);
    shell.pipe("uniq --window 0", "a\n").refused(&["a window of nothing"]);
    // More generations than lines, with one line each, cause no warning.
    let answer = shell.pipe("uniq --window 5 --generations 8 -p 1e-6", &text).code(0);
    assert_eq!(answer.stderr.lines().count(), 1, "{}", answer.stderr);
    // A memory limit that is too small for the window is an error.
    shell.pipe("uniq --window 1e6 --max-bytes 1k", "a\n").refused(&["window = 1000000"]);
    // In a window of time, lines within one second are printed once.
    assert_eq!(shell.pipe("uniq -q --window 10m", "a\nb\na\n").ok().text(), "a\nb\n");
}

#[test]
fn uniq_reports_the_losses_of_a_burst() {
    let shell = Shell::new();
    // All lines fall into one of eight parts of the window, or into two if a part ends just then.
    for size in ["-n 1000", "--max-bytes 4k"] {
        let answer = shell.pipe(&format!("uniq --seed 0 --window 10m {size}"), lines(1, 0..20_000)).code(0);
        let dropped = 20_000 - split(&answer.stdout).len();
        assert!(dropped > 15_000, "{size}: {dropped}");
        let said: Vec<&str> = answer.stderr.lines().collect();
        let lost = said[0].split("; ").nth(1).and_then(|text| text.split(' ').next()).unwrap();
        let lost: f64 = lost.parse().unwrap();
        assert!((0.3..1.1).contains(&(lost / dropped as f64)), "{size}: {said:?}");
        assert!(said[1].contains("too many of them at once"), "{size}: {said:?}");
        assert!(said[1].ends_with(size.split(' ').next().unwrap()), "{size}: {said:?}");
    }
    // Far from full, no warning is printed.
    let answer = shell.pipe("uniq --window 10m", lines(1, 0..20_000)).code(0);
    assert_eq!(
        (split(&answer.stdout).len(), answer.stderr.lines().count()),
        (20_000, 1),
        "{}",
        answer.stderr
    );
}

#[test]
fn a_full_filter_is_an_error_and_the_file_is_unchanged() {
    let shell = Shell::new();
    for kind in ["cuckoo", "quotient"] {
        shell.build("f", &["-f", "--kind", kind, "-n", "1000"], lines(1, 0..1000));
        let before = shell.read("f");
        shell.pipe("add f", lines(2, 0..2000)).refused(&[&format!("the {kind} filter takes no more")]);
        assert!(shell.read("f") == before, "{kind}");
        assert_eq!(shell.pipe("check -c f", lines(1, 0..1000)).ok().text(), "1000\n", "{kind}");
    }
    shell.build("f", "-f --kind counting --overflow error -n 1000", "a\n".repeat(15));
    let before = shell.read("f");
    shell.pipe("add f", "a\n").refused(&["counting"]);
    assert!(shell.read("f") == before);
}

#[test]
fn why_shows_the_cells_of_every_kind() {
    let shell = Shell::new();
    for kind in KINDS {
        shell.build("f", &["-f", "--kind", kind, "-n", "5000", "-p", "1e-4"], lines(1, 0..4000));
        for number in 0..5 {
            let (member, stranger) = (line(1, number), line(2, number));
            let [member, stranger] = [member, stranger].map(|line| String::from_utf8(line).unwrap());
            let why: Value = shell.run(&["why", "--json", "f", &member]).ok().json();
            assert_eq!(
                (&why["member"], why["probes"].as_array().unwrap().is_empty()),
                (&true.into(), false),
                "{kind}"
            );
            // For most kinds all probes must match, and the last one shown is the one that does
            // not.
            let (yes, no) = match kind {
                "counting" | "variable-increment" => ("cells allow it", "the cell of probe N excludes it"),
                "scalable" | "aging" => ("all its bits in part", "in every part"),
                "cuckoo" | "quotient" => ("by the last of N probes", "none of the N probes fits"),
                _ => ("all N bits are set", "probe N finds a zero"),
            };
            for (key, code, answer, reason) in
                [(&member, 0, "may be a member", yes), (&stranger, 1, "certainly not a member", no)]
            {
                let told = shell.run(&["why", "f", key]).code(code);
                let probes = told.text().lines().count() - 5;
                let reason = reason.replace('N', &probes.to_string());
                let said = told.text().lines().last().unwrap();
                assert!(said.contains(answer) && said.contains(&reason), "{kind}: {}", told.text());
            }
        }
    }
}

#[test]
fn unions_are_made_only_of_compatible_filters() {
    let shell = Shell::new();
    for kind in KINDS {
        shell.build("f", &["-f", "--kind", kind, "-n", "30000"], lines(1, 0..10_000));
        shell.pipe("build -f --like f -o g", lines(1, 5000..15_000)).ok();
        let answer = shell.run("union -f f g -o u");
        if kind == "aging" {
            answer.refused(&["an aging filter cannot be united"]);
            continue;
        }
        answer.ok();
        assert_eq!(shell.pipe("check -c u", lines(1, 0..15_000)).ok().text(), "15000\n", "{kind}");
    }
}
