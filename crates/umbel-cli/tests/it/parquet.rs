//! `umbel parquet`: which files may hold a value, and how good their filters are.

use crate::shell::{Shell, number};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use umbel_parquet::ParquetFile;

/// Returns the path of a golden file of the library: small files of pyarrow and DuckDB.
fn golden(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "umbel-parquet", "tests", "golden", name].iter().collect()
}

/// A folder with these golden files.
fn with_files(names: &[&str]) -> Shell {
    let shell = Shell::new();
    for name in names {
        fs::copy(golden(name), shell.path(name)).unwrap();
    }
    shell
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn which_prints_the_files_that_may_hold_a_value() {
    let shell = with_files(&["types.parquet", "bare.parquet", "duckdb.parquet"]);
    let which = |args: &str| shell.run(&format!("parquet which {args}"));
    assert_eq!(which("-c i16 -9000 types.parquet").ok().text(), "types.parquet\n");
    assert_eq!(which("-c i16 -- -9000 types.parquet").ok().text(), "types.parquet\n");
    assert_eq!(which("-c day 1915-03-31 types.parquet").ok().text(), "types.parquet\n");
    assert_eq!(which("-c utc_us 2024-02-29T13:00+01:00 types.parquet").ok().text(), "types.parquet\n");
    assert_eq!(which("-c fixed -3989.20 types.parquet --null").ok().text(), "types.parquet\0");
    assert_eq!(which("-c i16 -8700 types.parquet").code(1).text(), "");
    // Row groups without a filter may hold any value.
    let text = shell.run(&[
        "parquet",
        "which",
        "-c",
        "text",
        "ключ 1",
        "types.parquet",
        "duckdb.parquet",
        "bare.parquet",
    ]);
    assert_eq!(text.ok().text(), "bare.parquet\n");
}

#[test]
fn many_values_are_found_in_one_pass() {
    let shell = with_files(&["types.parquet", "duckdb.parquet"]);
    let values = "ключ 0\nключ 1\nключ 20\nключ 90\n";
    let paths = shell.pipe("parquet which -c text --values - types.parquet duckdb.parquet", values);
    assert_eq!(paths.ok().text(), "types.parquet\nduckdb.parquet\n");
    shell.write("values", values);
    let lines = shell.run("parquet which -c text --values values --json types.parquet duckdb.parquet").ok();
    let expected = [
        r#"{"value":"ключ 0","path":"types.parquet","row_groups":[0]}"#,
        r#"{"value":"ключ 20","path":"types.parquet","row_groups":[1]}"#,
        r#"{"value":"ключ 0","path":"duckdb.parquet","row_groups":[0]}"#,
        r#"{"value":"ключ 20","path":"duckdb.parquet","row_groups":[0]}"#,
        r#"{"value":"ключ 90","path":"duckdb.parquet","row_groups":[0]}"#,
    ];
    assert_eq!(json_lines(lines.text()), expected.map(|line| serde_json::from_str::<Value>(line).unwrap()));
    // The type of the column decides what a line is, in each file.
    assert_eq!(
        shell.pipe("parquet which -c i64 --values - duckdb.parquet", "0\n-1\n").ok().text(),
        "duckdb.parquet\n"
    );
}

#[test]
fn which_reads_no_data_pages() {
    let shell = with_files(&["types.parquet"]);
    let file = ParquetFile::open(shell.path("types.parquet")).unwrap();
    let first = file.metadata().row_group(0).column(0).bloom_filter_offset().unwrap() as usize;
    let mut bytes = shell.read("types.parquet");
    bytes[4..first].fill(0);
    shell.write("blind.parquet", bytes);
    for (value, code) in [("-40", 0), ("0", 0), ("-39", 1), ("127", 1)] {
        let of_both = ["types.parquet", "blind.parquet"].map(|name| {
            shell
                .run(&["parquet", "which", "--json", "-c", "i8", value, name])
                .code(code)
                .text()
                .replace("blind", "types")
        });
        assert_eq!(of_both[0], of_both[1]);
    }
}

#[test]
fn mistakes_are_explained() {
    let shell = with_files(&["types.parquet", "nested.parquet"]);
    let which = |args: &str| shell.run(&format!("parquet which {args}"));
    which("-c tex x types.parquet").refused(&["types.parquet has no column tex; similar names: text"]);
    which("-c who x nested.parquet").refused(&["no column who", "who.name, who.years"]);
    which("-c i32 x types.parquet")
        .refused(&["column i32 of types.parquet", "\"x\" is not a value of int32"]);
    which("-c day 2024-02-30 types.parquet").refused(&["not a value of date", "a day such as 2024-02-29"]);
    which("-c at_us 2024-02-29T12:00Z types.parquet").refused(&["local times"]);
    which("-c at_ms 2024-02-29T12:00:00.0005 types.parquet").refused(&["at most 3 decimals"]);
    which("-c fixed 1.234 types.parquet").refused(&["30 digits, 2 of them after the point"]);
    which("-c i32 5").refused(&["name the files"]);
    shell.write("values", "1\n\n");
    which("-c i32 --values values types.parquet").refused(&["line 2 of values", "whole number"]);
    shell.write("values", "");
    which("-c i32 --values values types.parquet").refused(&["there is no value in values"]);
    which("-c i32 1 missing.parquet").refused(&["cannot open missing.parquet"]);
    which("-c i32 1 values").refused(&["values is not a Parquet file"]);
    which("-c i32 1 .").refused(&[". is not a Parquet file"]);
    shell.run("parquet info missing.parquet").refused(&["cannot open missing.parquet"]);
    shell.run("parquet info -c nosuch types.parquet").refused(&["no column nosuch"]);
}

#[test]
fn a_damaged_file_does_not_hide_the_others() {
    let shell = with_files(&["types.parquet"]);
    let bytes = shell.read("types.parquet");
    shell.write("cut.parquet", &bytes[..bytes.len() / 2]);
    let found = shell.run("parquet which -c i8 -40 cut.parquet types.parquet").code(2);
    assert_eq!(found.text(), "types.parquet\n");
    assert!(
        found.stderr.contains("cut.parquet is not a Parquet file, or its end is missing"),
        "{}",
        found.stderr
    );
    let described = shell.run("parquet info -c i8 cut.parquet types.parquet").code(2);
    assert!(described.text().starts_with("types.parquet\n"), "{}", described.text());
}

#[test]
fn info_judges_filters() {
    let shell = with_files(&["sizes.parquet", "bare.parquet"]);
    let text = shell.run("parquet info sizes.parquet").ok();
    let rows: Vec<Vec<&str>> = text.text().lines().map(|line| line.split_whitespace().collect()).collect();
    let verdicts: Vec<_> = rows[1..].iter().map(|row| (row[0], *row.last().unwrap())).collect();
    assert_eq!(
        verdicts,
        [("full", "saturated"), ("roomy", "oversized"), ("good", "good"), ("bare", "missing")]
    );
    let lines = shell.run("parquet info --json sizes.parquet bare.parquet").ok();
    let lines = json_lines(lines.text());
    assert_eq!(lines.len(), 4 + 3 * 11);
    let good = &lines[2];
    assert_eq!(
        (&good["path"], &good["column"], &good["verdict"]),
        (&"sizes.parquet".into(), &"good".into(), &"good".into())
    );
    assert_eq!((number(good, "row_group"), number(good, "bytes")), (0.0, 256.0));
    assert!((0.3..0.7).contains(&number(good, "fill")) && number(good, "fpr_now") < 0.02, "{good}");
    assert_eq!((&lines[36]["verdict"], &lines[36]["row_group"]), (&"missing".into(), &2.into()));
    assert!(lines[36]["bytes"].is_null() && lines[36]["fpr_now"].is_null());
    let one = shell.run("parquet info --json -c f64 -c i64 bare.parquet").ok();
    assert_eq!(one.text().lines().count(), 6);
}
