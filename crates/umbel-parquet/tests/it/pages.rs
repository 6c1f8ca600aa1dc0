//! Pages in every encoding and compression have the values that were written.

use crate::golden_file;
use std::collections::BTreeSet;
use std::fs;
use umbel_parquet::{Error, ParquetFile};

/// Returns the texts of a column in a row group.
fn texts(file: &ParquetFile, row_group: usize, column: &str) -> Vec<String> {
    let column = file.column(column).unwrap();
    let mut texts = Vec::new();
    file.each_value(row_group, &column, |value| {
        let mut text = Vec::new();
        column.values().write_text(value, &mut text).unwrap();
        texts.push(String::from_utf8(text).unwrap());
    })
    .unwrap();
    let mut distinct = BTreeSet::new();
    let each = |value: &[u8]| {
        let mut text = Vec::new();
        column.values().write_text(value, &mut text).unwrap();
        distinct.insert(String::from_utf8(text).unwrap());
    };
    file.each_distinct(row_group, &column, each).unwrap();
    assert_eq!(distinct, texts.iter().cloned().collect());
    texts
}

#[test]
fn every_encoding_and_compression_has_the_same_values() {
    for name in ["none", "none2", "snappy", "gzip", "zstd", "zstd2", "lz4", "brotli"] {
        let file = ParquetFile::open(golden_file(&format!("pages_{name}.parquet"))).unwrap();
        assert_eq!(file.row_groups(), 2);
        for (row_group, rows) in [(0, 0..200_i64), (1, 200..300)] {
            let values =
                |value: &dyn Fn(i64) -> Option<String>| rows.clone().filter_map(value).collect::<Vec<_>>();
            let check = |column: &str, expected: Vec<String>| {
                assert_eq!(texts(&file, row_group, column), expected, "{column} in {name}");
            };
            check("plain", values(&|i| (i % 7 != 0).then(|| (i * 1_000_000_000_000).to_string())));
            check("dictionary", values(&|i| Some(format!("d{}", i % 11))));
            check("group.inner", values(&|i| (i % 5 != 0).then(|| i.to_string())));
            check("packed", values(&|i| Some((i * i).to_string())));
            check("prefix", values(&|i| Some(format!("common/prefix/{i:05}"))));
            check("lengths", values(&|i| Some(format!("x{i}").repeat(i as usize % 5))));
            check("split", values(&|i| Some(format!("{:?}", i as f64 / 3.0))));
            check("null", Vec::new());
            let elements = |i: i64| (i..i + i % 4).map(|j| format!("e{j}"));
            check("list", rows.clone().filter(|i| i % 13 != 0).flat_map(elements).collect());
        }
    }
}

/// The texts of values are those that other programs write, and are read as the same values.
#[test]
fn every_type_has_the_values_of_its_writer() {
    for name in ["types", "decimals", "duckdb"] {
        let file = ParquetFile::open(golden_file(&format!("{name}.parquet"))).unwrap();
        let answers = fs::read_to_string(golden_file(&format!("{name}.answers"))).unwrap();
        for answer in answers.lines() {
            let [column, text, held, _] = answer.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{answer}")
            };
            let column = file.column(column).unwrap();
            let wanted = column.values().value(text.as_bytes()).unwrap();
            for row_group in 0..file.row_groups() {
                let (mut found, mut text) = (false, Vec::new());
                let each = |value: &[u8]| {
                    text.clear();
                    column.values().write_text(value, &mut text).unwrap();
                    assert_eq!(column.values().value(&text).unwrap().bytes(), value);
                    found |= wanted.encodings().any(|wanted| wanted == value);
                };
                file.each_value(row_group, &column, each).unwrap();
                let expected = held.split(',').any(|group| group == row_group.to_string());
                assert_eq!(found, expected, "{answer} in row group {row_group}");
            }
        }
    }
}

/// Damaged pages are refused, or decoded to other values, within the memory of a small file.
#[test]
fn damaged_pages_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.parquet");
    for name in ["none2", "snappy", "zstd2"] {
        let whole = golden_file(&format!("pages_{name}.parquet"));
        let bytes = fs::read(&whole).unwrap();
        let pages = ParquetFile::open(&whole).unwrap().footer_start() as usize;
        let (mut refused, mut count) = (0, 0);
        for at in (4..pages).step_by(13) {
            let mut damaged = bytes.clone();
            damaged[at] ^= [1, 0x10, 0x80, 0xff][at % 4];
            fs::write(&path, damaged).unwrap();
            let file = ParquetFile::open(&path).unwrap();
            for column in file.columns() {
                let result = (0..file.row_groups()).try_for_each(|row_group| {
                    file.each_distinct(row_group, &column, |_| ())?;
                    file.each_value(row_group, &column, |_| ())
                });
                count += 1;
                match result {
                    Ok(()) => {}
                    Err(Error::Damaged { what, .. }) => {
                        assert!(what.len() > 20, "{what}");
                        refused += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        assert!(refused > count / 100, "{refused} of {count} in {name}");
    }
}
