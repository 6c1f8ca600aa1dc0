//! A filter that is added changes nothing else, has every value, and excludes most others.

use crate::golden_file;
use parquet::bloom_filter::Sbbf;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use umbel::file::Placing;
use umbel_parquet::{Error, ParquetFile};

/// Adds filters to a golden file; returns the copy, and the values of each row group.
fn add(name: &str, column: &str, to: &TempDir) -> (PathBuf, Vec<BTreeSet<Vec<u8>>>) {
    let path = to.path().join(format!("{}-{column}.parquet", name.trim_end_matches(".parquet")));
    let file = ParquetFile::open(golden_file(name)).unwrap();
    let column = file.column(column).unwrap();
    let added = file.add_filter(&column, 0.01, &path, Placing::default()).unwrap();
    let values: Vec<BTreeSet<Vec<u8>>> = (0..file.row_groups())
        .map(|row_group| {
            let mut values = BTreeSet::new();
            let each = |value: &[u8]| {
                values.insert(value.to_vec());
            };
            file.each_value(row_group, &column, each).unwrap();
            values
        })
        .collect();
    for (added, values) in added.iter().zip(&values) {
        assert_eq!(added.values, values.len() as u64);
        assert!(added.bytes <= (2 * values.len() as u64 * 106 / 80).max(32), "{added:?}");
    }
    (path, values)
}

/// Returns the filters of a column as the `parquet` crate reads them.
fn filters(path: &Path, column: usize) -> Vec<Option<Sbbf>> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let groups = reader.metadata().row_groups();
    let file = File::open(path).unwrap();
    groups.iter().map(|group| Sbbf::read_from_column_chunk(group.column(column), &file).unwrap()).collect()
}

#[test]
fn the_parquet_crate_finds_every_value_and_excludes_most_others() {
    let folder = tempfile::tempdir().unwrap();
    for name in
        ["pages_none", "pages_none2", "pages_snappy", "pages_gzip", "pages_zstd", "pages_lz4", "pages_brotli"]
    {
        for column in ["plain", "dictionary", "list", "group", "packed", "prefix", "lengths", "split", "null"]
        {
            let (path, values) = add(&format!("{name}.parquet"), column, &folder);
            let copy = ParquetFile::open(&path).unwrap();
            let column = copy.column(column).unwrap();
            let filters = filters(&path, column.index());
            assert_eq!(filters.len(), values.len());
            for (row_group, (filter, values)) in filters.iter().zip(&values).enumerate() {
                let filter = filter.as_ref().unwrap();
                assert!(values.iter().all(|value| filter.check(&value[..])), "{} in {name}", column.path());
                let found = (0..2000_u64)
                    .filter(|absent| filter.check(&(absent | 1 << 60).to_le_bytes()[..]))
                    .count();
                assert!(found <= 60, "{found} of 2000 in {}", column.path());
                // Our own reader agrees.
                assert_eq!(copy.filter(row_group, &column).unwrap().unwrap().bytes() % 32, 0);
            }
        }
    }
}

/// All bytes before the footer stay where they are, and so does everything that the footer says.
#[test]
fn everything_else_is_the_same_bytes_in_the_same_places() {
    let folder = tempfile::tempdir().unwrap();
    for (name, column) in [("bare.parquet", "text"), ("nested.parquet", ""), ("pages_none.parquet", "prefix")]
    {
        let source = ParquetFile::open(golden_file(name)).unwrap();
        let column = match column {
            "" => match source.columns().find(|column| {
                source.metadata().row_group(0).column(column.index()).bloom_filter_offset().is_none()
            }) {
                Some(column) => column.path().to_owned(),
                None => continue,
            },
            column => column.to_owned(),
        };
        let (path, _) = add(name, &column, &folder);
        let (before, after) = (fs::read(golden_file(name)).unwrap(), fs::read(&path).unwrap());
        let footer = source.footer_start() as usize;
        assert!(before[..footer] == after[..footer], "{name}");
        let copy = ParquetFile::open(&path).unwrap();
        let index = source.column(&column).unwrap().index();
        let (old, new) = (source.metadata(), copy.metadata());
        assert_eq!(old.file_metadata(), new.file_metadata());
        for (old, new) in old.row_groups().iter().zip(new.row_groups()) {
            assert_eq!(old.num_rows(), new.num_rows());
            for (at, (old, new)) in old.columns().iter().zip(new.columns()).enumerate() {
                let unfiltered =
                    new.clone().into_builder().set_bloom_filter_offset(old.bloom_filter_offset());
                let unfiltered =
                    unfiltered.set_bloom_filter_length(old.bloom_filter_length()).build().unwrap();
                assert_eq!(*old, unfiltered);
                assert_eq!(at == index, new.bloom_filter_offset() != old.bloom_filter_offset());
            }
        }
    }
}

#[test]
fn filters_that_are_there_are_kept_and_not_added_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = add("pages_zstd.parquet", "prefix", &folder);
    let first = ParquetFile::open(&path).unwrap();
    let column = first.column("prefix").unwrap();
    let again = first.add_filter(&column, 0.01, &folder.path().join("again"), Placing::default());
    assert!(matches!(again, Err(Error::HasFilter { row_group: 0, .. })), "{again:?}");
    let both = folder.path().join("both.parquet");
    first.add_filter(&first.column("packed").unwrap(), 0.001, &both, Placing::default()).unwrap();
    let both = ParquetFile::open(&both).unwrap();
    for row_group in 0..2 {
        let filter = |file: &ParquetFile| {
            let filter = file.filter(row_group, &column).unwrap().unwrap();
            let blocks = filter.read().unwrap();
            (filter.bytes(), blocks.fill())
        };
        assert_eq!(filter(&first), filter(&both));
        assert!(both.filter(row_group, &both.column("packed").unwrap()).unwrap().is_some());
    }
    assert!(!folder.path().join("again").exists());
}

#[test]
fn a_damaged_file_leaves_no_copy() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("damaged.parquet"), folder.path().join("copy.parquet"));
    let mut bytes = fs::read(golden_file("pages_snappy.parquet")).unwrap();
    let file = ParquetFile::open(golden_file("pages_snappy.parquet")).unwrap();
    let start = file.metadata().row_group(1).column(0).data_page_offset() as usize;
    bytes[start..start + 8].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let file = ParquetFile::open(&path).unwrap();
    let result = file.add_filter(&file.column("plain").unwrap(), 0.01, &to, Placing::default());
    assert!(matches!(result, Err(Error::Damaged { .. })), "{result:?}");
    for rate in [0.0, 1.0, f64::NAN, -1.0] {
        assert!(file.add_filter(&file.column("list").unwrap(), rate, &to, Placing::default()).is_err());
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [path]);
}
