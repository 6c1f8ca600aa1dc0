//! Damaged and hostile files: a sentence, no panic, and no memory for what a file only claims.

use crate::golden_file;
use std::fs;
use std::path::Path;
use umbel_parquet::{Error, ParquetFile, Result};

/// Opens these bytes as a file, and asks all its filters.
fn ask(bytes: &[u8]) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.parquet");
    fs::write(&path, bytes).unwrap();
    ask_file(&path)
}

fn ask_file(path: &Path) -> Result<()> {
    let file = ParquetFile::open(path)?;
    for column in file.columns() {
        if let Ok(value) = column.values().value(b"1") {
            file.find(&column, &[value])?;
        }
    }
    file.health(&file.columns().collect::<Vec<_>>())?;
    Ok(())
}

fn message(bytes: &[u8]) -> String {
    format!("{:#}", ask(bytes).expect_err("the file is damaged"))
}

fn golden(name: &str) -> Vec<u8> {
    fs::read(golden_file(name)).unwrap()
}

/// A file of these bytes as a footer.
fn with_footer(footer: &[u8]) -> Vec<u8> {
    [b"PAR1", footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
}

#[test]
fn every_cut_of_a_file_is_refused() {
    let bytes = golden("sizes.parquet");
    assert!(ask(&bytes).is_ok());
    for end in 0..bytes.len() {
        let result = ask(&bytes[..end]);
        assert!(matches!(result, Err(Error::NotParquet { .. })), "cut at {end}: {result:?}");
    }
}

#[test]
fn a_flipped_byte_never_panics() {
    let bytes = golden("nested.parquet");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.parquet");
    let file = ParquetFile::open(golden_file("nested.parquet")).unwrap();
    let first = file.metadata().row_group(0).column(0).bloom_filter_offset().unwrap() as usize;
    // The filters and the footer; pages are not read.
    for at in first..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            fs::write(&path, damaged).unwrap();
            let _ = ask_file(&path);
        }
    }
}

#[test]
fn a_footer_lies_within_its_file() {
    let mut bytes = golden("sizes.parquet");
    let end = bytes.len() - 8;
    bytes[end..end + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(message(&bytes).contains("claims a footer of 4294967295 bytes"), "{}", message(&bytes));
    bytes[end..end + 4].copy_from_slice(&(end as u32 - 3).to_le_bytes());
    assert!(message(&bytes).contains("claims a footer"), "it would begin before the first signature");
    bytes[end + 4..].copy_from_slice(b"PARE");
    assert!(message(&bytes).contains("encrypted"));
    assert!(message(b"PAR1PAR1").contains("not a Parquet file"));
    assert!(message(&with_footer(b"")).contains("damaged"));
}

#[test]
fn a_footer_reserves_no_memory_for_what_it_only_claims() {
    // A root with 2^30 columns, and a schema of 2^31 elements.
    let root = [0x15, 2, 0x19, 0x1c, 0x48, 1, b'r', 0x15, 0x80, 0x80, 0x80, 0x80, 8, 0, 0];
    assert!(message(&with_footer(&root)).contains("more columns than there are"));
    let list = [0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0x48, 1, b'r', 0, 0];
    assert!(message(&with_footer(&list)).contains("more elements than there are bytes left"));
}

/// Replaces the header of the first filter of a file by bytes of the same length.
fn with_header(bytes: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let rest = [0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0];
    let at = bytes.windows(rest.len()).position(|window| window == rest).expect("the file has a filter") - 2;
    assert_eq!(bytes[at], 0x15, "a length of one byte");
    change(&mut bytes[at..at + 32]);
    bytes
}

#[test]
fn filters_have_whole_blocks_within_the_file() {
    let bytes = golden("nested.parquet");
    assert!(ask(&bytes).is_ok());
    for (length, word) in
        [(0, "has 0 bytes"), (66, "has 33 bytes"), (1, "has -1 bytes"), (62, "has 31 bytes")]
    {
        assert!(message(&with_header(&bytes, |header| header[1] = length)).contains(word));
    }
    // As many bytes as a length of three bytes can say: the rest of the header moves into the blocks.
    let long = with_header(&bytes, |header| {
        let rest = header[2..15].to_vec();
        header[1..4].copy_from_slice(&[0xc0, 0xff, 0x7f]);
        header[4..17].copy_from_slice(&rest);
    });
    let long = message(&long);
    assert!(long.contains("has 1048544 bytes, and the footer comes after"), "{long}");
    for at in [2, 3, 6, 7, 10, 11] {
        let other =
            message(&with_header(&bytes, |header| header[at] = if at % 4 == 2 { 0x15 } else { 0x2c }));
        assert!(other.contains("which is not") || other.contains("field"), "{other}");
    }
}

#[test]
fn only_files_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(ParquetFile::open(folder.path()), Err(Error::NotParquet { .. })));
    assert!(matches!(ParquetFile::open(folder.path().join("missing")), Err(Error::Io { .. })));
}
