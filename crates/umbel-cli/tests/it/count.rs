//! `umbel count`: estimates of how often a line was recorded, within limits that hold, and the same
//! file every time.

use crate::shell::{Shell, gzip, lines, mix, number, split};
use std::collections::HashMap;
use std::fmt::Write;
use umbel::AnyCount;

/// Returns repeated lines in shuffled order with their counts: most occur once, some thousands of
/// times.
fn flows(count: u64) -> (String, HashMap<String, u64>) {
    let times = |flow: u64| ((mix(flow) >> 11) as f64 / (1u64 << 53) as f64).powf(-1.1).min(20_000.0) as u64;
    let truth: HashMap<String, u64> = (0..count).map(|flow| (format!("flow{flow}"), times(flow))).collect();
    let mut all: Vec<(u64, u64)> = (0..count)
        .flat_map(|flow| (0..times(flow)).map(move |time| (mix(flow << 32 | time), flow)))
        .collect();
    all.sort_unstable();
    let mut text = String::new();
    all.iter().for_each(|(_, flow)| writeln!(text, "flow{flow}").unwrap());
    (text, truth)
}

/// Parses the estimate and limits of each line.
fn answers(text: &str) -> Vec<(&str, f64, f64, f64)> {
    let field = |field: &str| field.trim_start_matches(">=").parse::<f64>().unwrap();
    let answer = |line| {
        let mut fields = str::split(line, '\t');
        let key = fields.next().unwrap();
        let mut next = || field(fields.next().unwrap());
        let answer = (key, next(), next(), next());
        assert_eq!(fields.next(), None, "{line}");
        answer
    };
    text.lines().map(answer).collect()
}

#[test]
fn estimates_are_accurate_and_limits_hold() {
    let shell = Shell::new();
    let (text, truth) = flows(3000);
    shell.pipe("count build -o c", &text).ok();
    let asked: String = truth.keys().map(|key| format!("{key}\n")).collect();
    let answer = shell.pipe("count get c", &asked).ok();
    let found = answers(answer.text());
    let keys: Vec<&str> = found.iter().map(|(key, ..)| *key).collect();
    assert_eq!(keys, asked.lines().collect::<Vec<_>>(), "every line, in order");
    let inside = found.iter().filter(|(key, _, low, high)| {
        let times = truth[*key] as f64;
        low - 0.5 <= times && times <= high + 0.5
    });
    let share = inside.count() as f64 / found.len() as f64;
    assert!(share > 0.93, "{share} within their limits");
    let often: Vec<_> = found.iter().filter(|(key, ..)| truth[*key] >= 5).collect();
    let near = often.iter().filter(|(key, value, ..)| (value / truth[*key] as f64 - 1.0).abs() <= 0.5);
    let share = near.count() as f64 / often.len() as f64;
    assert!(often.len() > 300 && share > 0.9, "{share} of {} within 50 %", often.len());
    assert!(found.iter().all(|(_, value, _, high)| *value > 0.0 && *high >= 1.0), "nothing recorded is 0");
}

#[test]
fn keys_never_recorded_are_zero_and_alone_cause_exit_code_1() {
    let shell = Shell::new();
    shell.pipe("count build -o c", "a\na\nb\n").ok();
    assert_eq!(shell.pipe("count get c", "x\ny\n").code(1).text(), "x\t0\t0\t0\ny\t0\t0\t0\n");
    let answer = shell.pipe("count get c", "x\na\n").ok();
    assert!(answer.text().starts_with("x\t0\t0\t0\na\t2"), "{}", answer.text());
    let answer = shell.pipe("count get -F 2 -d , c", "1,a\n").ok();
    assert!(answer.text().starts_with("1,a\t2"), "{}", answer.text());
    shell.pipe("count get c", "").code(1);
}

/// Noise adds groups to strangers and hides those of members; only a key without any group is
/// certainly absent.
#[test]
fn only_keys_that_were_certainly_never_recorded_are_zero() {
    let shell = Shell::new();
    for kind in ["space-code", "multi-resolution"] {
        for (recorded, noise) in [(300, "0.5%"), (1500, "20%"), (4000, "0.5%"), (4000, "50%")] {
            let build = format!("count build -f -n 1000 --kind {kind} -p {noise} -o c");
            shell.pipe(&build, lines(1, 0..recorded)).code(0);
            let counts = AnyCount::try_from(shell.load("c").filter).unwrap();
            let asked = [lines(1, 0..200), lines(2, 0..200)].concat();
            let answer = shell.pipe("count get c", &asked);
            let found = split(&answer.stdout).into_iter().map(|line| !line.ends_with(b"\t0\t0\t0"));
            let expected = split(&asked).into_iter().map(|key| counts.contains(key));
            assert!(found.eq(expected), "{kind} {recorded} {noise}");
        }
    }
}

#[test]
fn counts_beyond_the_range_are_marked() {
    let shell = Shell::new();
    shell.pipe("count build --kind space-code -o c", "a\n".repeat(5000)).ok();
    let answer = shell.pipe("count get c", "a\n").ok();
    let fields: Vec<&str> = answer.text().trim_end().split('\t').collect();
    assert!(fields[1].starts_with(">=1") && fields[3] == "inf", "{fields:?}");
    shell.pipe("count build -o many", "a\n".repeat(3000)).ok();
    let answer = shell.pipe("count get many", "a\n").ok();
    let (_, value, low, high) = answers(answer.text())[0];
    assert!((1500.0..6000.0).contains(&value) && low < 3000.0 && 3000.0 < high, "{}", answer.text());
}

#[test]
fn threads_pipes_and_compression_make_no_difference_and_more_can_be_added() {
    let shell = Shell::new();
    let (text, _) = flows(5000);
    shell.write("flows", &text);
    shell.write("flows.gz", gzip(&text));
    for args in ["", "-n 100000 --keys 5000", "-n 100000 --kind space-code"] {
        shell.run(&format!("count build -f -j 1 {args} -o one flows")).ok();
        let one = shell.read("one");
        for input in ["-j 4 flows", "flows.gz"] {
            shell.run(&format!("count build -f {args} -o other {input}")).ok();
            assert!(shell.read("other") == one, "{args} {input}");
        }
        shell.pipe(&format!("count build -f {args} -o other"), &text).ok();
        assert!(shell.read("other") == one, "{args}");
    }
    // Recording in two parts is the same as at once.
    let half = text.len() / 2 + text[text.len() / 2..].find('\n').unwrap() + 1;
    shell.pipe("count build -f -n 100000 -o at-once", &text).ok();
    shell.pipe("count build -f -n 100000 -o parts", &text[..half]).ok();
    shell.pipe("count add parts -j 3", &text[half..]).ok();
    assert!(shell.read("parts") == shell.read("at-once"));
    assert_eq!(number(&shell.info("parts"), "count") as usize, text.lines().count());
}

#[test]
fn too_many_recordings_cause_a_warning() {
    let shell = Shell::new();
    shell.pipe("count build -n 1000 -o c", lines(1, 0..1000)).ok();
    let answer = shell.pipe("count add c", lines(2, 0..5000)).code(0);
    assert!(
        answer.stderr.contains("6000 recordings are more than the 1000 it was made for"),
        "{}",
        answer.stderr
    );
    let answer = shell.pipe("count build -o empty", "").code(0);
    assert!(answer.stderr.contains("there were no lines"), "{}", answer.stderr);
}

#[test]
fn too_many_distinct_keys_cause_an_error_or_a_warning() {
    let shell = Shell::new();
    let many = lines(1, 0..50_000);
    let noticed = "there are more different keys than the 100 it was made for: its noise is";
    for kind in ["space-code", "multi-resolution"] {
        // If the keys are counted first, nothing is built from a wrong number.
        shell
            .pipe(&format!("count build --kind {kind} --keys 100 -o {kind}"), &many)
            .refused(&["about 50", "different keys, more than --keys 100 allows for"]);
        assert!(!shell.path(kind).exists());
        // Otherwise the bits show it, even if the number of recordings is as planned.
        let build = |args: &str| shell.pipe(&format!("count build -f --kind {kind} -o c {args}"), &many);
        let answer = build("-n 50000 --keys 100").code(0);
        assert!(answer.stderr.contains(noticed), "{}", answer.stderr);
        build("-n 50000 --keys 50000").ok();
        build("--keys 50000").ok();
        build("--keys 60000").ok();
        shell.pipe(&format!("count build -f --kind {kind} -n 1e5 --keys 100 -o c"), "a\n".repeat(1000)).ok();
        let answer = shell.pipe("count add c", &many).code(0);
        assert!(answer.stderr.contains(noticed), "{}", answer.stderr);
    }
    // With few keys the estimate varies too much for a warning.
    for count in 1..200 {
        let text = lines(count, 0..count % 20 + 1).repeat(1 + count as usize % 7);
        shell.pipe("count build -f -o c", &text).ok();
        shell.pipe(&format!("count build -f -n 200 --keys {} -o c", count % 20 + 1), &text).ok();
    }
}

#[test]
fn info_describes_a_multiset_and_plan_predicts_it() {
    let shell = Shell::new();
    let plan = shell.run("plan --kind multi-resolution -n 20000 --keys 3000 --json").ok().json();
    shell.pipe("count build -n 20000 --keys 3000 --meta a=b -o c", lines(1, 0..3000)).ok();
    let facts = shell.info("c");
    assert_eq!((&plan["bytes"], &plan["kind"]), (&facts["bytes"], &facts["kind"]));
    assert_eq!((&facts["holds"], &facts["count"]), (&"multiset".into(), &3000.into()));
    assert_eq!((&facts["capacity"], &facts["headroom"]), (&20_000.into(), &17_000.into()));
    assert_eq!((&facts["details"]["groups"], &facts["details"]["levels"]), (&32.0.into(), &9.0.into()));
    let told = shell.run("info c").ok();
    for words in [
        "recordings",
        "groups",
        "levels",
        "noise",
        "0.5 % at capacity",
        "counts up to about  8511281",
        "meta",
    ] {
        assert!(told.text().contains(words), "{words}: {}", told.text());
    }
    let planned = shell.run("plan --kind space-code -n 1e6 --groups 16").ok();
    assert!(planned.text().contains("recordings") && planned.text().contains("per recording"));
    shell.pipe("count build -f --groups 16 --levels 4 -o c", "a\n").ok();
    let details = shell.info("c")["details"].clone();
    assert_eq!((&details["groups"], &details["levels"]), (&16.0.into(), &4.0.into()));
}

#[test]
fn invalid_options_are_refused() {
    let shell = Shell::new();
    shell.write("lines", "a\n");
    for (args, says) in [
        ("count build --kind space-code --levels 3 -o c lines", &["--levels", "multi-resolution"][..]),
        ("count build --groups 99 -o c lines", &["groups", "99", "64"]),
        ("count build --levels 0 -o c lines", &["levels", "0"]),
        ("count build -n 0 -o c lines", &["n = 0"]),
        ("count build --kind fuse -o c lines", &["kind of set", "umbel build"]),
        ("count build -p 3 -o c lines", &["between 0 and 1"]),
        ("count build --hash keyed -o c lines", &["a keyed hash needs its secret"]),
        ("count build --json lines", &["--json", "-o"]),
        ("count get nothing lines", &["nothing", "No such file"]),
        ("count get lines lines", &["lines"]),
        ("plan -n 1e6 --keys 5", &["--keys is for multisets"]),
        ("plan --kind bloomier -n 1e6 --groups 5", &["--groups is for multisets"]),
    ] {
        println!("{args}");
        shell.run(args).refused(says);
        assert_eq!(shell.names("."), ["lines"]);
    }
}

#[test]
fn both_estimators_agree_and_the_most_likely_number_is_whole() {
    let shell = Shell::new();
    let text: String = (1..40).flat_map(|times| (0..times).map(move |_| format!("key{times}\n"))).collect();
    shell.pipe("count build --kind space-code -o c", &text).ok();
    let asked: String = (1..40).map(|times| format!("key{times}\n")).collect();
    let [mve, mle, default] = ["--estimator mve", "--estimator mle", ""]
        .map(|option| shell.pipe(&format!("count get {option} c"), &asked).ok());
    assert_eq!(mve.text(), default.text());
    let (mve, mle) = (answers(mve.text()), answers(mle.text()));
    let mut differ = 0;
    for (mean, likely) in mve.iter().zip(&mle) {
        assert_eq!((mean.0, mean.2, mean.3), (likely.0, likely.2, likely.3), "the limits are the same");
        assert_eq!(likely.1, likely.1.round(), "{likely:?}");
        assert!((mean.1 - likely.1).abs() <= 1.0, "{mean:?} {likely:?}");
        differ += usize::from(mean.1 != likely.1);
    }
    assert!(differ > 10, "{differ}");
    shell.pipe("count get --estimator mean c", "a\n").refused(&["--estimator", "mle"]);
}

#[test]
fn the_bits_of_a_multiset_determine_its_noise() {
    let shell = Shell::new();
    for kind in ["space-code", "multi-resolution"] {
        shell.pipe(&format!("count build -f --kind {kind} -m 30k -o c"), lines(1, 0..1000)).ok();
        let facts = shell.info("c");
        assert!((28_000.0..=30_000.0).contains(&number(&facts, "bits")), "{facts}");
        let planned = shell.run(&format!("plan --json --kind {kind} -m 30k -n 1000 --keys 1000")).ok().json();
        assert_eq!(planned["built_bits"], facts["bits"], "{kind}");
    }
}
