//! Files of pyarrow and DuckDB: their filters answer as their writers computed them.

use crate::golden_file;
use std::fs;
use std::path::Path;
use std::process::Command;
use umbel_parquet::health::Verdict;
use umbel_parquet::{Error, ParquetFile};

/// The row groups in a column of a list of answers.
fn numbers(text: &str) -> Vec<usize> {
    text.split(',').filter(|number| *number != "-").map(|number| number.parse().unwrap()).collect()
}

/// Compares a golden file with its list of answers, and returns the number of answers.
fn check(name: &str) -> usize {
    check_in(&golden_file(""), name)
}

/// Compares a file in this folder with its list of answers, and returns the number of answers.
fn check_in(folder: &Path, name: &str) -> usize {
    let file = ParquetFile::open(folder.join(format!("{name}.parquet"))).unwrap();
    let answers = fs::read_to_string(folder.join(format!("{name}.answers"))).unwrap();
    for answer in answers.lines() {
        let [column, text, held, named] = answer.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{answer}")
        };
        let column = file.column(column).unwrap();
        let value = column.values().value(text.as_bytes()).unwrap();
        let in_filter: Vec<usize> = (0..file.row_groups())
            .filter(|row_group| match file.filter(*row_group, &column).unwrap() {
                None => true,
                Some(filter) => {
                    let mut any = false;
                    filter.find(&[value.hashes().0], |_| any = true).unwrap();
                    any
                }
            })
            .collect();
        assert_eq!(in_filter, numbers(named), "{answer}");
        // The least and the greatest value of a row group may exclude more.
        let found: Vec<usize> =
            file.find(&column, &[value]).unwrap().iter().map(|found| found.row_group).collect();
        assert!(numbers(held).iter().all(|row_group| found.contains(row_group)), "{answer}");
        assert!(found.iter().all(|row_group| in_filter.contains(row_group)), "{answer}");
    }
    answers.lines().count()
}

#[test]
fn every_type_of_pyarrow_is_found_where_its_filters_have_it() {
    assert_eq!(check("types"), 24 * 13);
    assert_eq!(check("decimals"), 2 * 13);
}

#[test]
fn filters_of_duckdb_answer_as_it_does() {
    assert_eq!(check("duckdb"), 6 * 28);
}

/// The writers that are installed here may be newer than those of the golden files. `UMBEL_PYTHON` is a
/// Python with pyarrow, duckdb and xxhash.
#[test]
fn files_of_the_writers_installed_here_are_answered_like_the_golden_ones() {
    let python = std::env::var_os("UMBEL_PYTHON").unwrap_or_else(|| "python3".into());
    let found = Command::new(&python).args(["-c", "import pyarrow, duckdb, xxhash"]).output();
    if !found.is_ok_and(|found| found.status.success()) {
        eprintln!("skipped: there is no Python with pyarrow, duckdb and xxhash");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new(&python).arg(golden_file("make.py")).arg(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for name in ["types", "decimals", "duckdb", "bare"] {
        assert_eq!(check_in(folder.path(), name), check(name), "{name}");
    }
}

#[test]
fn row_groups_without_a_filter_may_hold_any_value() {
    assert_eq!(check("bare"), 11 * 13);
}

/// In a file without filters, the least and the greatest value of each row group decide.
#[test]
fn values_beyond_the_bounds_of_a_row_group_are_excluded() {
    let file = ParquetFile::open(golden_file("bare.parquet")).unwrap();
    let named = |column: &str, text: &str| {
        let column = file.column(column).unwrap();
        let value = column.values().value(text.as_bytes()).unwrap();
        file.find(&column, &[value]).unwrap().len()
    };
    for (column, below, within, above) in [
        ("i8", "-41", "-39", "127"),
        ("i64", "-3000000000000000001", "-2900000000000000000", "9223372036854775807"),
        ("u32", "0", "4294967294", "4294967295"),
        ("u64", "1", "18446744073709551614", "18446744073709551615"),
        ("text", "a", "ключ 1", "я"),
        ("four", "aaaa", "f001", "zzzz"),
        (
            "id",
            "00000000-0000-0000-0000-000000000000",
            "00000010-0000-0000-0000-000000000001",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
        ),
        ("day", "1800-01-01", "1917-01-01", "2100-01-01"),
        ("at_us", "1600-01-01T00:00", "2023-01-01T00:00", "2100-01-01T00:00"),
    ] {
        // The greatest of the unsigned numbers are there, and the least UUID.
        let (of_below, of_above) = (usize::from(column == "id"), usize::from(column.starts_with('u')));
        let counts = [below, within, above].map(|text| named(column, text));
        assert_eq!(counts, [of_below, 1, of_above], "{column}");
    }
    // Writers do not agree on the order of floats, and of decimals in bytes.
    assert_eq!((named("f64", "1e300"), named("fixed", "999999999")), (3, 3));
}

#[test]
fn many_values_are_found_as_one_by_one() {
    let file = ParquetFile::open(golden_file("duckdb.parquet")).unwrap();
    let column = file.column("text").unwrap();
    let values: Vec<_> =
        (0..1000).map(|number| column.values().value(format!("ключ {number}").as_bytes()).unwrap()).collect();
    let mut single = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let found = file.find(&column, std::slice::from_ref(value)).unwrap();
        single.extend(found.iter().map(|found| (index, found.row_group)));
    }
    let all = file.find(&column, &values).unwrap();
    assert_eq!(all.iter().map(|found| (found.value, found.row_group)).collect::<Vec<_>>(), single);
    assert!(single.len() >= 96, "the file has 96 of the values");
}

#[test]
fn columns_are_named_by_dotted_paths() {
    let file = ParquetFile::open(golden_file("nested.parquet")).unwrap();
    let paths: Vec<String> = file.columns().map(|column| column.path().to_owned()).collect();
    assert_eq!(paths, ["tags.list.element", "who.name", "who.years"]);
    assert_eq!(file.column("who.name").unwrap().path(), "who.name");
    assert_eq!(file.column("tags").unwrap().path(), "tags.list.element", "the only column below it");
    for wrong in ["who", "name", "tags.list.element.x", ""] {
        let Err(Error::NoColumn { columns, .. }) = file.column(wrong) else {
            panic!("{wrong:?} is a column")
        };
        assert_eq!(columns, paths);
    }
    let element = file.column("tags.list.element").unwrap();
    let value = element.values().value(b"tag10").unwrap();
    let found = file.find(&element, &[value]).unwrap();
    assert!(found.iter().any(|found| found.row_group == 0), "{found:?}");
}

#[test]
fn filters_are_judged_by_their_rate_now() {
    let file = ParquetFile::open(golden_file("sizes.parquet")).unwrap();
    let health = file.health(&file.columns().collect::<Vec<_>>()).unwrap();
    let verdicts: Vec<_> = health.iter().map(|chunk| (&chunk.column[..], chunk.verdict())).collect();
    assert_eq!(
        verdicts,
        [
            ("full", Verdict::Saturated),
            ("roomy", Verdict::Oversized),
            ("good", Verdict::Good),
            ("bare", Verdict::Missing)
        ]
    );
    let [full, roomy, good] = [0, 1, 2].map(|column: usize| health[column].filter.unwrap());
    assert_eq!(full.bytes, 32);
    assert!(full.fill > 0.99 && full.rate > 0.9, "{full:?}");
    assert!(roomy.rate_of_quarter < Some(0.01), "{roomy:?}");
    assert!((1e-4..0.1).contains(&good.rate), "{good:?}");
}

/// The rate is that of random values, which the filter is asked for here.
#[test]
fn the_rate_of_a_filter_is_the_measured_one() {
    const VALUES: usize = 50_000;
    let file = ParquetFile::open(golden_file("sizes.parquet")).unwrap();
    for (index, chunk) in file
        .health(&file.columns().collect::<Vec<_>>())
        .unwrap()
        .iter()
        .enumerate()
        .filter(|(_, chunk)| chunk.filter.is_some())
    {
        let column = file.columns().nth(index).unwrap();
        let values: Vec<_> = (0..VALUES)
            .map(|number| column.values().value(format!("v5 {number}").as_bytes()).unwrap())
            .collect();
        let named = file.find(&column, &values).unwrap().len() as f64;
        let expected = chunk.filter.unwrap().rate * VALUES as f64;
        // Five standard deviations of a binomial distribution, and some for rates near zero.
        let deviation = 5.0 * expected.sqrt() + 5.0;
        assert!((named - expected).abs() < deviation, "{}: {named} named, {expected} expected", chunk.column);
    }
}
