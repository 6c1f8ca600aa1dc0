//! `umbel parquet index` and `add-filter`, and columns as keys: what is made of Parquet files.

use crate::shell::{Shell, number};
use std::fs;
use std::fs::File;
use std::path::PathBuf;

/// Returns the path of a golden file of the library.
fn golden(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "umbel-parquet", "tests", "golden", name].iter().collect()
}

/// A folder `lake` with these golden files.
fn lake(names: &[&str]) -> Shell {
    let shell = Shell::new();
    fs::create_dir(shell.path("lake")).unwrap();
    for name in names {
        fs::copy(golden(name), shell.path("lake").join(name)).unwrap();
    }
    shell
}

#[test]
fn an_index_answers_for_all_files_without_opening_them() {
    let shell = lake(&["types.parquet", "duckdb.parquet", "pages_zstd.parquet"]);
    shell.write("lake/notes.txt", "this is not a table\n");
    assert_eq!(shell.run("parquet index -c text lake -o text.idx").ok().text(), "");
    let which = |value: &str| shell.run(&["parquet", "which", "text.idx", value]);
    assert_eq!(which("ключ 0").ok().text(), "lake/duckdb.parquet\nlake/types.parquet\n");
    assert_eq!(which("ключ 90").ok().text(), "lake/duckdb.parquet\n");
    assert!(which("nowhere").code(1).text().is_empty());
    let zeros = shell.run(&["parquet", "which", "text.idx", "ключ 90", "--null"]).ok();
    assert_eq!(zeros.text(), "lake/duckdb.parquet\0");
    let json = shell.pipe("parquet which text.idx --values - --json", "ключ 90\nnowhere\n").ok();
    assert_eq!(json.text(), "{\"value\":\"ключ 90\",\"path\":\"lake/duckdb.parquet\",\"why\":\"filter\"}\n");
    let both = shell.pipe("parquet which text.idx --values -", "ключ 90\nключ 0\n").ok();
    assert_eq!(both.text(), "lake/duckdb.parquet\nlake/types.parquet\n");

    // Numbers are compared as numbers, and described.
    shell.run("parquet index -c packed lake -o packed.idx -p 0.001").ok();
    assert_eq!(shell.run("parquet which packed.idx 10000").ok().text(), "lake/pages_zstd.parquet\n");
    shell.run("parquet which packed.idx 1.5").refused(&["packed.idx", "not a value of int32"]);
    let facts = shell.run("index info packed.idx --json").ok().json();
    assert_eq!((number(&facts, "files"), number(&facts, "values")), (4.0, 300.0));
    assert_eq!((facts["column"].as_str(), facts["types"][0].as_str()), (Some("packed"), Some("int32")));
    let described = shell.run("index info packed.idx").ok();
    assert!(described.text().contains("values of the column packed, int32"), "{}", described.text());
}

#[test]
fn a_changed_file_is_never_answered_for_from_its_old_filter() {
    let shell = lake(&["pages_none.parquet", "pages_zstd.parquet"]);
    shell.run("parquet index -c prefix lake -o x.idx").ok();
    let which = |value: &str| shell.run(&["parquet", "which", "x.idx", value]);
    which("nowhere").code(1);
    // Other rows, in a file of the same length and with the same time.
    let path = shell.path("lake/pages_none.parquet");
    let before = fs::metadata(&path).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[4] ^= 1;
    fs::write(&path, bytes).unwrap();
    File::options().append(true).open(&path).unwrap().set_modified(before.modified().unwrap()).unwrap();
    let changed = which("nowhere").code(0);
    assert_eq!(changed.text(), "lake/pages_none.parquet\n");
    assert!(changed.stderr.contains("lake/pages_none.parquet (changed) may hold it"), "{}", changed.stderr);
    // New files may be tables, by their names or by what they begin with; others are not named.
    fs::copy(golden("pages_gzip.parquet"), shell.path("lake/part-0000")).unwrap();
    fs::copy(golden("pages_gzip.parquet"), shell.path("lake/z.parquet")).unwrap();
    shell.write("lake/_SUCCESS", "");
    shell.write("lake/z.crc", "not a table at all\n");
    assert_eq!(which("nowhere").code(0).text(), "lake/pages_none.parquet\nlake/part-0000\nlake/z.parquet\n");
    // A file that is gone is not named.
    fs::remove_file(&path).unwrap();
    assert_eq!(which("nowhere").code(0).text(), "lake/part-0000\nlake/z.parquet\n");

    let update = shell.run("parquet index -c prefix lake -o x.idx").ok();
    assert_eq!(update.text(), "4 read, 1 kept, 1 dropped\n");
    which("nowhere").code(1);
    assert_eq!(which("common/prefix/00007").ok().text().lines().count(), 3);
    assert_eq!(shell.run("parquet index -q -c prefix lake -o x.idx").ok().text(), "");
}

#[test]
fn an_index_is_not_taken_for_another() {
    let shell = lake(&["types.parquet"]);
    shell.run("parquet index -c text lake -o x.idx").ok();
    let before = shell.read("x.idx");
    shell.run("parquet index -c day lake -o x.idx").refused(&["the column text of lake", "-f"]);
    shell.run("parquet index -c text -p 0.1 lake -o x.idx").refused(&["rate of 0.01"]);
    shell.run("parquet index -c text lake/types.parquet -o x.idx").refused(&["of lake"]);
    shell.run("parquet index -c tex lake -o y.idx").refused(&["no table has a column tex", "text"]);
    shell.run("parquet index -c text nowhere -o y.idx").refused(&["cannot open nowhere"]);
    shell.write("notes", "no index\n");
    shell.run("parquet index -c text lake -o notes").refused(&["notes exists", "-f"]);
    shell.run("index which x.idx word").refused(&["is an index of the column text", "umbel parquet which"]);
    shell.run("index update x.idx").refused(&["index of the column text", "umbel parquet index"]);
    shell.run("parquet which x.idx").refused(&["an index and one value"]);
    shell.run("parquet which lake/types.parquet word").refused(&["it is not an index"]);
    assert!(shell.read("x.idx") == before);
    shell.run("parquet index -f -c day lake -o x.idx").ok();
    shell.run("index build lake -o words.idx").ok();
    shell.run("parquet which words.idx word").refused(&["words.idx is an index of words"]);
}

#[test]
fn a_damaged_file_is_reported_and_never_ruled_out() {
    let shell = lake(&["pages_none.parquet"]);
    let bytes = fs::read(golden("pages_zstd.parquet")).unwrap();
    shell.write("lake/cut.parquet", &bytes[..bytes.len() - 1]);
    let built = shell.run("parquet index -c prefix lake -o x.idx").code(2);
    assert!(built.stderr.contains("lake/cut.parquet: it is not a Parquet file"), "{}", built.stderr);
    assert_eq!(shell.run("parquet which x.idx nowhere").code(0).text(), "lake/cut.parquet\n");
}

#[test]
fn add_filter_changes_nothing_else() {
    let shell = lake(&["pages_snappy.parquet"]);
    let source = shell.read("lake/pages_snappy.parquet");
    let which = |value: &str, name: &str| shell.run(&["parquet", "which", "-c", "plain", value, name]);
    assert_eq!(
        which("1000000000001", "lake/pages_snappy.parquet").ok().text(),
        "lake/pages_snappy.parquet\n"
    );
    shell.run("parquet add-filter -c plain lake/pages_snappy.parquet -o out.parquet").ok();
    which("1000000000001", "out.parquet").code(1);
    assert_eq!(which("1000000000000", "out.parquet").ok().text(), "out.parquet\n");
    let (end, out) = (source.len() - 3000, shell.read("out.parquet"));
    assert!(source[..end] == out[..end], "pages keep their places");
    assert!(shell.read("lake/pages_snappy.parquet") == source);

    let refused = |args: &str, says: &[&str]| shell.run(&format!("parquet add-filter {args}")).refused(says);
    refused("-c nosuch lake/pages_snappy.parquet -o no", &["no column nosuch"]);
    refused("-c plain lake/pages_snappy.parquet -o out.parquet", &["out.parquet exists", "-f"]);
    refused(
        "-c plain lake/pages_snappy.parquet -o lake/pages_snappy.parquet",
        &["both an input and the output"],
    );
    refused(
        "-f -c plain lake/pages_snappy.parquet -o lake/pages_snappy.parquet",
        &["both an input and the output"],
    );
    refused("-c plain out.parquet -o no", &["has a filter in row group 0 already"]);
    refused("-c plain missing.parquet -o no", &["cannot open missing.parquet"]);
    refused("-c plain -p 0 lake/pages_snappy.parquet -o no", &["0"]);
    assert!(shell.read("out.parquet") == out && !shell.path("no").exists());
    shell.run("parquet add-filter -f -c packed out.parquet -o both.parquet").ok();
    assert_eq!(which("1000000000000", "both.parquet").ok().text(), "both.parquet\n");
    shell.run("parquet add-filter -f -c lengths lake/pages_snappy.parquet -o out.parquet").ok();
}

#[test]
fn damaged_files_leave_no_copy() {
    let shell = lake(&["pages_gzip.parquet"]);
    let bytes = shell.read("lake/pages_gzip.parquet");
    for cut in (0..bytes.len()).step_by(bytes.len() / 20) {
        shell.write("cut.parquet", &bytes[..cut]);
        shell.run("parquet add-filter -c plain cut.parquet -o no").refused(&["cut.parquet"]);
    }
    for at in (4..3000).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at..at + 8].fill(0xff);
        shell.write("bad.parquet", damaged);
        let answer = shell.run("parquet add-filter -f -c plain bad.parquet -o maybe");
        match answer.code {
            Some(0) => {}
            _ => answer.refused(&["bad.parquet is damaged: column plain in row group"]),
        }
    }
    assert!(!shell.path("no").exists());
}

#[test]
fn the_values_of_a_column_are_keys() {
    let shell = lake(&["pages_zstd.parquet", "types.parquet"]);
    shell.run("build --parquet prefix lake/pages_zstd.parquet -o prefix.umbel").ok();
    let lines: String = (0..300).map(|i| format!("common/prefix/{i:05}\n")).collect();
    assert_eq!(shell.pipe("check -c prefix.umbel", &lines).ok().text(), "300\n");
    // The values of a file, in its order, as often as they are there.
    shell.build("few.umbel", "", "d3\nd10\n");
    let printed = shell.run("check --parquet dictionary few.umbel lake/pages_zstd.parquet").ok();
    let expected: String =
        (0..300).map(|i| i % 11).filter(|i| [3, 10].contains(i)).map(|i| format!("d{i}\n")).collect();
    assert_eq!(printed.text(), expected);
    // Numbers and days are the texts that `which` reads; nulls are skipped.
    shell.build("days.umbel", "", "1915-03-31\n2024-02-29\n");
    assert_eq!(shell.run("check --parquet day days.umbel lake/types.parquet").ok().text(), "1915-03-31\n");
    shell.build("numbers.umbel", "", "1000000000000\n0\n");
    let numbers = shell.run("check --parquet plain numbers.umbel lake/pages_zstd.parquet").ok();
    assert_eq!(numbers.text(), "1000000000000\n");
    assert_eq!(shell.run("check --parquet null -c few.umbel lake/pages_zstd.parquet").code(1).text(), "0\n");
    shell.run("check --parquet list few.umbel -").refused(&["standard input", "name a file"]);
    shell.run("check --parquet nosuch few.umbel lake/types.parquet").refused(&["no column nosuch"]);
    shell
        .run("check --parquet day --csv -F 1 days.umbel lake/types.parquet")
        .refused(&["--parquet", "--csv"]);
    let mut bytes = shell.read("lake/pages_zstd.parquet");
    bytes[40..60].fill(0xff);
    shell.write("bad.parquet", bytes);
    shell.run("build --parquet plain bad.parquet -o no.umbel").refused(&["bad.parquet", "damaged"]);
}
