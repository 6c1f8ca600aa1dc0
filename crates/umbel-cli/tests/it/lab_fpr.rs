//! `umbel lab fpr`: the rate of a filter measured on the user's keys.

use crate::shell::{Shell, lines, number, split};
use umbel::file::{self, Options};
use umbel::{AnyFilter, Bloom, Hasher, Standard};

/// Returns a filter of 100 000 lines, and 50 000 others: at 1 %, about 500 ± 22 positives.
fn filled(args: &str) -> Shell {
    let shell = Shell::new();
    shell.write("members", lines(1, 0..100_000));
    shell.write("absent", lines(2, 0..50_000));
    shell.run(&format!("build -o filter {args} members")).ok();
    shell
}

/// The intervals are of 99.9 %, and the keys are fixed, so this cannot fail by chance.
#[test]
fn a_correct_filter_of_any_kind_is_as_promised() {
    let kinds =
        ["blocked", "standard", "partitioned", "counting", "variable-increment", "deletable", "floom"];
    for kind in kinds.into_iter().chain([
        "scalable",
        "fuse",
        "cuckoo",
        "quotient",
        "literature --hash murmur3 -n 1e5",
    ]) {
        let shell = filled(&format!("--kind {kind} -p 1%"));
        let told = shell.run("lab fpr filter --absent absent --json").ok().json();
        assert_eq!(
            (told["verdict"].as_str(), told["kind"].as_str()),
            (Some("as promised"), kind.split(' ').next())
        );
        assert_eq!((number(&told, "queries"), number(&told, "lines")), (50_000.0, 50_000.0));
        let (low, measured, high) = (number(&told, "low"), number(&told, "measured"), number(&told, "high"));
        assert!(low < measured && measured < high && high < 2.0 * low, "{kind}: {told}");
        assert_eq!(measured, number(&told, "positives") / 50_000.0);
        // `check` finds the same positives.
        let found = shell.run("check -c filter absent").ok().text().trim().to_owned();
        assert_eq!(found, told["positives"].to_string(), "{kind}");
    }
}

#[test]
fn the_result_is_printed_as_text() {
    let shell = filled("-p 1%");
    let told = shell.run("lab fpr --absent absent filter").ok();
    for words in [
        "50000 different keys in 50000 lines",
        "(Wilson, 95 %)",
        "promised now",
        "at capacity    1 %",
        "as promised: ",
    ] {
        assert!(told.text().contains(words), "{}", told.text());
    }
    // A filter without a planned capacity has no rate at capacity.
    let layout = Standard::new(1_000_000, 7).expect("a layout");
    let mut bare = Bloom::with_layout(layout, Hasher::default()).expect("memory");
    let members = shell.read("members");
    bare.insert_batch(&split(&members));
    file::save(shell.path("bare"), &AnyFilter::from(bare), &Options::default()).expect("room for a filter");
    let told = shell.run("lab fpr bare --absent absent").ok();
    assert!(!told.text().contains("at capacity") && told.text().contains("as promised: "), "{}", told.text());
}

#[test]
fn members_among_the_absent_keys_are_noticed() {
    let shell = filled("-p 1%");
    let told = shell.run("lab fpr filter --absent members").code(1);
    assert!(told.text().contains("worse than promised"), "{}", told.text());
    // A few of them suffice.
    let mixed = [shell.read("absent"), lines(1, 0..200)].concat();
    shell.write("mixed", mixed);
    let told = shell.run("lab fpr filter --absent mixed --json").code(1).json();
    assert_eq!(told["verdict"], "worse");
}

/// Lines selected for being absent have fewer positives than promised.
#[test]
fn better_than_promised_is_outside_the_interval_too() {
    let shell = filled("-p 1%");
    let negatives = shell.run("check -v filter absent").ok().stdout;
    shell.write("negatives", negatives);
    let told = shell.run("lab fpr filter --absent negatives").code(1);
    assert!(told.text().contains("better than promised"), "{}", told.text());
}

#[test]
fn a_repeated_line_counts_once() {
    let shell = filled("-p 1%");
    shell.write("again", [shell.read("absent"), shell.read("absent")].concat());
    let [once, twice] = ["--absent absent", "--absent again"]
        .map(|args| shell.run(&format!("lab fpr filter --json {args}")).ok().json());
    assert_eq!(number(&twice, "lines"), 100_000.0);
    assert_eq!((&once["queries"], &once["positives"]), (&twice["queries"], &twice["positives"]));
    let both = shell.run("lab fpr filter --json --absent absent --absent again").ok().json();
    assert_eq!((number(&both, "lines"), &both["queries"]), (150_000.0, &once["queries"]));
}

#[test]
fn absent_keys_of_a_map_get_a_value_at_its_rate() {
    let shell = Shell::new();
    let pairs: String = (0..5000).map(|number| format!("key{number}\t{}\n", number % 4)).collect();
    shell.write("pairs", pairs);
    shell.write("absent", lines(2, 0..50_000));
    shell.run("map build -o map -p 1% pairs").ok();
    let told = shell.run("lab fpr map --absent absent --json").ok().json();
    assert!(number(&told, "positives") > 50.0 && told["verdict"] == "as promised", "{told}");
}

#[test]
fn too_few_lines_cause_a_warning_and_none_an_error() {
    let shell = filled("-p 1%");
    shell.write("few", "nobody\n");
    let told = shell.run("lab fpr filter --absent few").code(0);
    assert!(told.stderr.contains("more keys would tell more"), "{}", told.stderr);
    shell.write("empty", "");
    shell.run("lab fpr filter --absent empty").refused(&["there are no lines in empty"]);
    shell.run("lab fpr filter").refused(&["--absent"]);
    shell.run("lab fpr missing --absent absent").refused(&["missing"]);
    shell.run("lab fpr absent --absent absent").refused(&["absent"]);
    shell.run("lab fpr filter --absent missing").refused(&["cannot open missing"]);
    shell.run("count build -o counts members").ok();
    shell.run("lab fpr counts --absent absent").refused(&["counts holds a multiset"]);
}

/// At both ends of the scale, no measurement can be worse or better.
#[test]
fn empty_and_full_filters_are_as_promised() {
    let shell = Shell::new();
    let lines = |range: std::ops::Range<u32>| range.map(|number| format!("{number}\n")).collect::<String>();
    shell.write("absent", lines(1_000_000..1_001_000));
    for (name, keys) in [("empty.umbel", 0..0), ("full.umbel", 0..100_000)] {
        // `build` warns that the filter is overfull.
        let built = shell.pipe(&format!("build --kind standard -n 1000 -o {name}"), lines(keys));
        assert_eq!(built.code, Some(0), "{}", built.stderr);
        assert_eq!(shell.run(&format!("lab fpr {name} --absent absent")).code, Some(0), "{name}");
    }
}
