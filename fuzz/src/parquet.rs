//! A Parquet file: its footer, and its filters.
//!
//! No input may cause a panic in opening or querying. Many values are found in the same row groups
//! as one by one, and only in those whose filter has them. Measurements stay within their ranges.

use umbel_parquet::values::Value;
use umbel_parquet::{Column, ParquetFile, Result};

/// Texts that are values of columns of many types.
const TEXTS: [&str; 9] = [
    "0",
    "-2",
    "1.5",
    "v1",
    "four",
    "1970-01-02",
    "12:34:56",
    "2024-02-29T12:00",
    "00112233445566778899aabbccddeeff",
];

/// The number of columns that are queried, so that an input takes no longer than it is worth.
const MAX_COLUMNS: usize = 20;

/// Tests any bytes as a whole file, and as a footer.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    loads(&as_footer(bytes));
}

/// Returns a file with nothing but this footer.
fn as_footer(bytes: &[u8]) -> Vec<u8> {
    [b"PAR1", bytes, &(bytes.len() as u32).to_le_bytes(), b"PAR1"].concat()
}

/// Tries to open a file and to query its filters, and returns whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let folder = crate::folder();
    let path = folder.path().join("of.parquet");
    std::fs::write(&path, bytes).expect("room");
    ParquetFile::open(&path).and_then(|file| query(&file)).is_ok()
}

fn query(file: &ParquetFile) -> Result<()> {
    let columns: Vec<Column> = file.columns().take(MAX_COLUMNS).collect();
    for column in &columns {
        let values: Vec<Value> =
            TEXTS.iter().filter_map(|text| column.values().value(text.as_bytes()).ok()).collect();
        let all = file.find(column, &values)?;
        assert!(all.is_sorted());
        let mut single = Vec::new();
        for (index, value) in values.iter().enumerate() {
            for found in file.find(column, std::slice::from_ref(value))? {
                assert!(found.row_group < file.row_groups());
                single.push((index, found.row_group));
            }
        }
        assert!(all.iter().map(|found| (found.value, found.row_group)).eq(single.iter().copied()));
        for (index, row_group) in single {
            let Some(filter) = file.filter(row_group, column)? else { continue };
            let (blocks, (hash, other)) = (filter.read()?, values[index].hashes());
            assert!(blocks.contains_hash(hash) || other.is_some_and(|other| blocks.contains_hash(other)));
        }
    }
    for chunk in file.health(&columns)? {
        let filter = chunk.filter.into_iter();
        assert!(
            filter.flat_map(|filter| [filter.fill, filter.rate]).all(|share| (0.0..=1.0).contains(&share))
        );
    }
    Ok(())
}
