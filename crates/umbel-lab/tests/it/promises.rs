//! The promises of the lab: it notices a bad hash, the same seed gives the same figures on any
//! number of threads, and the report is complete and loads nothing.

use std::sync::OnceLock;
use umbel::Digest;
use umbel_lab::{Chapter, ERRATA, Experiment, Lab, Outcome, Scale, all, find, report, run};

fn one(id: &str) -> Vec<Box<dyn Experiment>> {
    vec![find(id).expect("an experiment")]
}

#[test]
fn a_hash_that_is_not_uniform_makes_the_table_of_rates_fail() {
    let good = run(&one("E1"), &Lab::new(Scale::Quick, 1), 1, &|_| ());
    assert!(good[0].holds());
    // One digest in eight lacks its upper bits, so the first positions of these keys are all equal.
    let spoil = |digest: Digest| match digest.get() {
        bits if bits % 8 == 0 => Digest::from_hash(bits >> 16),
        bits => Digest::from_hash(bits),
    };
    let mut lab = Lab::new(Scale::Quick, 1);
    lab.spoil = spoil;
    let bad = run(&one("e1"), &lab, 1, &|_| ());
    assert!(!bad[0].holds());
}

/// Returns the tables and criteria of all outcomes as text.
fn figures(outcomes: &[Outcome]) -> Vec<String> {
    let of = |outcome: &Outcome| {
        let findings = outcome.findings.as_ref().expect("it ran");
        let tables: Vec<Vec<u8>> =
            findings.tables.iter().map(|table| table.to_csv().expect("a table")).collect();
        format!("{} {:?} {:?}", outcome.about.id, tables, findings.criteria)
    };
    outcomes.iter().map(of).collect()
}

/// The four experiments that take half of the time of all. The test of `umbel lab run all` in
/// `umbel-cli` covers them; the tests here concern behaviour that all experiments share.
const LONG: [&str; 4] = ["E7", "E8c", "E8d", "E12-caches"];

/// Returns the experiments that are short and do not measure times, since many tests run at once.
fn short() -> Vec<Box<dyn Experiment>> {
    let ids: Vec<&str> = all().iter().map(|experiment| experiment.about().id).collect();
    assert!(LONG.iter().all(|id| ids.contains(id)), "an experiment was renamed");
    let is_short = |about: umbel_lab::About| !about.timed && !LONG.contains(&about.id);
    all().into_iter().filter(|experiment| is_short(experiment.about())).collect()
}

/// Returns the outcomes of the short experiments on one thread, run once for all tests.
fn outcomes() -> &'static (Lab, Vec<Outcome>) {
    static OUTCOMES: OnceLock<(Lab, Vec<Outcome>)> = OnceLock::new();
    OUTCOMES.get_or_init(|| {
        let lab = Lab::new(Scale::Quick, 1);
        let outcomes = run(&short(), &lab, 1, &|_| ());
        (lab, outcomes)
    })
}

#[test]
fn the_same_seed_gives_the_same_figures_on_any_number_of_threads() {
    let (lab, outcomes) = outcomes();
    assert_eq!(figures(outcomes), figures(&run(&short(), lab, 3, &|_| ())));
    let of = |seed| figures(&run(&one("E1"), &Lab::new(Scale::Quick, seed), 1, &|_| ()));
    assert_ne!(of(1), of(2));
}

#[test]
fn the_report_loads_nothing_and_has_every_chart() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lab, outcomes) = outcomes();
    report(folder.path(), lab, outcomes).expect("room for a report");
    let page = std::fs::read_to_string(folder.path().join("index.html")).expect("a page");
    assert!(!page.contains("src=") && !page.contains("href=\"http"), "nothing is loaded");
    let found = || outcomes.iter().flat_map(|outcome| &outcome.findings);
    let pictures: usize = found().map(|found| found.charts.len() + found.traces.len()).sum();
    let small = page.matches("<a class=\"card\"").count();
    assert_eq!(small, 10, "the first screen has ten small pictures");
    assert_eq!(page.matches("<svg").count(), pictures + small);
    for outcome in outcomes {
        let own = folder.path().join(outcome.about.id);
        let json =
            std::fs::read_to_string(own.join(outcome.about.id).with_extension("json")).expect("a verdict");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["holds"], outcome.holds());
        let findings = outcome.findings.as_ref().expect("it ran");
        assert!(!findings.tables.is_empty(), "{}", outcome.about.id);
        assert!(findings.tables.iter().all(|table| own.join(&table.name).with_extension("csv").is_file()));
        assert!(findings.charts.iter().all(|chart| own.join(&chart.name).with_extension("svg").is_file()));
        assert!(page.contains(&format!("id=\"{}\"", outcome.about.id)));
    }
    // Every link within the page leads somewhere.
    for target in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(page.contains(&format!("id=\"{target}\"")), "{target}");
    }
    let numbers = found().flat_map(|found| &found.criteria).filter_map(|criterion| criterion.shows);
    for number in numbers {
        assert!(ERRATA.iter().any(|erratum| erratum.number == number), "{number}");
    }
    let textbooks = std::fs::read_to_string(folder.path().join("textbooks.html")).expect("a page");
    assert!(ERRATA.iter().all(|erratum| textbooks.contains(&format!("id=\"{}\"", erratum.number))));
    assert!(textbooks.contains("index.html#E1c"), "an error links to the experiment that shows it");
    assert!(textbooks.contains("index.html#ref-schierz22") && page.contains("id=\"ref-schierz22\""));
}

#[test]
fn every_experiment_has_a_unique_id_and_a_complete_description() {
    let mut ids: Vec<&str> = all().iter().map(|experiment| experiment.about().id).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]));
    for experiment in all() {
        let about = experiment.about();
        for text in [about.title, about.claim, about.set_up, about.advice, about.command] {
            assert!(!text.is_empty(), "{}", about.id);
        }
        assert!(!about.sources.is_empty(), "{}", about.id);
        assert!(about.advice.ends_with('.') && about.command.contains('`'), "{}", about.id);
    }
}

#[test]
fn experiments_are_listed_by_chapter_and_no_chapter_is_empty() {
    let mut chapters: Vec<Chapter> = all().iter().map(|experiment| experiment.about().chapter).collect();
    assert!(chapters.is_sorted());
    chapters.dedup();
    assert_eq!(chapters, Chapter::ALL);
}

#[test]
fn every_reference_is_an_entry_of_the_list_of_references() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/references.md");
    let list = std::fs::read_to_string(path).expect("the list of references");
    let plain = list.replace('*', "").split_whitespace().collect::<Vec<_>>().join(" ");
    let cited = all().into_iter().flat_map(|experiment| experiment.about().sources);
    for reference in cited.chain(ERRATA.iter().map(|erratum| &erratum.source)) {
        assert!(list.contains(&format!("<a id=\"{}\">", reference.key)), "{}", reference.key);
        assert!(plain.contains(reference.entry), "{} differs from docs/references.md", reference.key);
    }
}
