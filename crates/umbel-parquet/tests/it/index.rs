//! The index of a column names every file that holds a value, and few others.

use crate::golden_file;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use umbel_parquet::Error;
use umbel_parquet::index::{Tables, query};
use umbel_text::index::{BuildSummary, Column, Index, Options, build_column, update_column};

/// A directory with copies of golden files.
fn lake(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("lake")).unwrap();
    for name in names {
        fs::copy(golden_file(name), folder.path().join("lake").join(name)).unwrap();
    }
    folder
}

fn build(lake: &TempDir, column: &str) -> Result<(Index, BuildSummary), umbel_text::Error> {
    let (to, root) = (lake.path().join("column.idx"), lake.path().join("lake"));
    let column = Column { name: column.into(), rate: 0.01 };
    let made = build_column(&to, &[root], &column, &Tables::default(), &Options::default())?;
    Ok((Index::open(to)?, made))
}

fn named(index: &Index, text: &str) -> Vec<String> {
    let selection = index.select(&query(index, text.as_bytes()).unwrap()).unwrap();
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    selection.named().map(name).collect()
}

#[test]
fn every_value_of_every_type_is_found() {
    let lake = lake(&["types.parquet"]);
    let answers = fs::read_to_string(golden_file("types.answers")).unwrap();
    let (mut absent, mut wrong) = (0, 0);
    for chunk in
        answers.lines().collect::<Vec<_>>().chunk_by(|a, b| a.split('\t').next() == b.split('\t').next())
    {
        let column = chunk[0].split('\t').next().unwrap();
        let (index, made) = build(&lake, column).unwrap();
        assert_eq!((made.files, made.failed.len()), (1, 0));
        for answer in chunk {
            let [_, text, held, _] = answer.split('\t').collect::<Vec<_>>()[..] else { panic!("{answer}") };
            let found = named(&index, text);
            assert!(held == "-" || !found.is_empty(), "{answer}");
            absent += usize::from(held == "-");
            wrong += usize::from(held == "-" && !found.is_empty());
        }
    }
    assert!(absent > 50 && wrong <= absent / 10, "{wrong} of {absent}");
}

#[test]
fn files_may_store_a_column_in_different_types() {
    let lake = lake(&["types.parquet", "duckdb.parquet", "pages_zstd.parquet"]);
    fs::write(lake.path().join("lake/notes.txt"), "no table").unwrap();
    fs::write(lake.path().join("lake/_SUCCESS"), "").unwrap();
    let (index, made) = build(&lake, "text").unwrap();
    assert_eq!((made.files, made.failed.len()), (5, 0));
    assert_eq!(index.column_types(), ["string"]);
    assert_eq!(named(&index, "ключ 0"), ["duckdb.parquet", "types.parquet"]);
    let (index, _) = build(&lake, "packed").unwrap();
    assert_eq!(index.column_types(), ["int32"]);
    assert_eq!(named(&index, "10000"), ["pages_zstd.parquet"]);
    assert!(matches!(query(&index, b"no number"), Err(Error::NotAValue { .. })));
    assert!(matches!(build(&lake, "nosuch"), Err(umbel_text::Error::NoColumn { .. })));
}

#[test]
fn an_update_reads_only_files_that_have_changed() {
    let lake = lake(&["pages_none.parquet", "pages_zstd.parquet", "bare.parquet"]);
    build(&lake, "prefix").unwrap();
    let root = lake.path().join("lake");
    fs::copy(golden_file("pages_gzip.parquet"), root.join("new.parquet")).unwrap();
    let to = lake.path().join("column.idx");
    // Until the update, a new file may hold anything.
    assert_eq!(named(&Index::open(&to).unwrap(), "nowhere"), ["new.parquet"]);
    let made = update_column(&to, &Tables::default(), &Options::default()).unwrap();
    assert_eq!((made.files, made.read, made.failed.len()), (4, 1, 0));
    assert_eq!(named(&Index::open(&to).unwrap(), "nowhere"), [""; 0]);
    let prefix = "common/prefix/00123";
    assert_eq!(
        named(&Index::open(&to).unwrap(), prefix),
        ["new.parquet", "pages_none.parquet", "pages_zstd.parquet"]
    );
}

#[test]
fn a_damaged_table_is_reported_without_its_path_and_never_ruled_out() {
    let lake = lake(&["pages_none.parquet"]);
    let bytes = fs::read(golden_file("pages_zstd.parquet")).unwrap();
    fs::write(lake.path().join("lake/cut.parquet"), &bytes[..bytes.len() / 2]).unwrap();
    let (index, made) = build(&lake, "prefix").unwrap();
    let [(path, error)] = &made.failed[..] else { panic!("{made:?}") };
    assert_eq!(path.file_name(), Some("cut.parquet".as_ref()));
    assert_eq!(error.to_string(), "it is not a Parquet file, or its end is missing");
    assert_eq!(named(&index, "nowhere"), ["cut.parquet"]);
}
