//! The capacity page is arithmetic: its sizes are those of `umbel plan`, and its times follow from the
//! figures that `bench/scale` and `bench/billion` have measured.

use crate::markdown::{cells, tables};
use crate::shell::{Shell, number};
use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).expect("a page")
}

fn page() -> String {
    read("docs/scale.md")
}

/// Returns the rows of the table whose first column has this name, without its header.
fn table<'a>(page: &'a str, first: &str) -> Vec<Vec<&'a str>> {
    let found = tables(page).into_iter().find(|rows| cells(rows[0])[0] == first);
    let rows = found.unwrap_or_else(|| panic!("no table begins with {first}"));
    rows[2..].iter().map(|row| cells(row)).collect()
}

/// Returns a measured time per key, as the page has it and in seconds.
fn measured<'a>(page: &'a str, figure: &str) -> (&'a str, f64) {
    let rows = table(page, "figure");
    let row = rows.iter().find(|row| row[0] == figure).unwrap_or_else(|| panic!("no figure: {figure}"));
    let text = row[1].strip_suffix(" per key").unwrap_or_else(|| panic!("not a time per key: {row:?}"));
    let (number, unit) = text.split_once(' ').expect("a number and its unit");
    let units = [("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)];
    let (_, seconds) = units.into_iter().find(|(name, _)| *name == unit).expect("a unit of time");
    (text, number.parse::<f64>().expect("a number") * seconds)
}

/// Formats a number with three digits, or all before the point if there are more.
fn digits(value: f64) -> String {
    let places = (2 - value.log10().floor() as i32).max(0) as usize;
    format!("{value:.places$}")
}

fn bytes(count: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| count >= *unit).expect("a megabyte at least");
    format!("{} {name}", digits(count / unit))
}

fn time(seconds: f64) -> String {
    let units = [(7200.0, 3600.0, "h"), (120.0, 60.0, "min"), (0.0, 1.0, "s")];
    let (_, unit, name) = units.into_iter().find(|(from, ..)| seconds >= *from).expect("a time");
    format!("{} {name}", digits(seconds / unit))
}

fn rate(a_second: f64) -> String {
    if a_second < 1e6 { digits(a_second) } else { format!("{} million", digits(a_second / 1e6)) }
}

#[test]
fn the_sizes_and_times_of_the_capacity_page_follow_from_plan_and_its_measured_figures() {
    let (page, shell) = (page(), Shell::new());
    let (_, build) = measured(&page, "build by Spark");
    let rows = table(&page, "keys");
    for row in &rows {
        let [keys, rate, shards, ..] = row[..] else { panic!("{row:?}") };
        let keys = keys.replace("10^", "1e");
        let rate = rate.replace(' ', "");
        let plan = shell.run(&["plan", "--json", "-n", &keys, "-p", &rate, "--shards", shards]).ok().json();
        let keys: f64 = keys.parse().expect("a number of keys");
        let seconds = keys * build;
        let expected = [
            bytes(number(&plan, "bytes")),
            bytes(number(&plan["shards"], "bytes")),
            // A task sends the digest of each key.
            bytes(8.0 * keys),
            time(seconds),
            time(seconds / 100.0),
        ];
        assert_eq!(row[3..], expected, "{row:?}");
    }
    let different = |column: usize| {
        let mut values: Vec<&str> = rows.iter().map(|row| row[column]).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    assert!(rows.len() >= 6 && different(0) >= 3 && different(1) >= 2, "{rows:?}");
}

#[test]
fn the_costs_of_lookups_on_the_capacity_page_follow_from_its_measured_figures() {
    let page = page();
    let mut measured_rows = 0;
    for row in table(&page, "served") {
        let [served, figure, cost, a_second] = row[..] else { panic!("{row:?}") };
        if figure.is_empty() {
            assert_eq!((cost, a_second), ("not measured", ""), "{served}");
            continue;
        }
        let (time, seconds) = measured(&page, figure);
        assert_eq!([cost, a_second], [time, &rate(1.0 / seconds)], "{served}");
        measured_rows += 1;
    }
    assert!(measured_rows >= 3, "only {measured_rows} rows are measured");
}

#[test]
fn the_figure_of_redis_on_the_capacity_page_is_that_of_the_benchmarks() {
    let benchmarks = read("docs/benchmarks.md");
    let rows = table(&benchmarks, "command");
    let row = rows.iter().find(|row| row[0] == "`BF.MEXISTS` with 100 items").expect("a figure");
    let items = row[1].strip_suffix(" items").expect("a number of items").replace(' ', "");
    let nanoseconds = 1e9 / items.parse::<f64>().expect("a number");
    let page = page();
    let (figure, _) = measured(&page, "lookup in Redis, a hundred at a time");
    assert_eq!(figure, format!("{nanoseconds:.0} ns"));
}
