//! An error returns its cause through `source`, does not repeat it in its own message, and prints
//! the whole chain with `{:#}`.

use std::error::Error as _;
use std::{fs, io};
use umbel::file::{self, FormatError, Options};
use umbel::hash::KeyRing;
use umbel::{BloomFilter, Error};

#[test]
fn the_cause_for_a_missing_file_is_the_system_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing.umbel");
    for error in [BloomFilter::load(&path).unwrap_err(), file::inspect(&path).unwrap_err()] {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).expect("a cause");
        assert_eq!(cause.kind(), io::ErrorKind::NotFound);
        assert_eq!(error.to_string(), format!("cannot open {}", path.display()));
        assert_eq!(format!("{error:#}"), format!("cannot open {}: {cause}", path.display()));
    }
}

#[test]
fn the_cause_for_another_file_is_the_problem_with_its_contents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    fs::write(&path, "apple\npear\n").unwrap();
    let mut empty: &[u8] = b"";
    for (error, subject) in [
        (BloomFilter::load(&path).unwrap_err(), path.to_str().unwrap()),
        (file::from_bytes(b"apple\npear\n", &KeyRing::new()).unwrap_err(), "the filter"),
        (file::read(&mut empty, 0, &KeyRing::new()).unwrap_err(), "the filter"),
    ] {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<FormatError>());
        assert_eq!(cause, Some(&FormatError::NotAFilter));
        assert_eq!(error.to_string(), format!("cannot use {subject}"));
        assert_eq!(format!("{error:#}"), format!("cannot use {subject}: {}", FormatError::NotAFilter));
    }
}

#[test]
fn the_cause_for_a_truncated_stream_is_the_system_error() {
    let filter = BloomFilter::with_capacity(1000, 0.01).unwrap();
    let bytes = file::to_bytes(&filter, &Options::default()).unwrap();
    let half = &mut &bytes[..bytes.len() / 2];
    let error = file::read(half, bytes.len() as u64, &KeyRing::new()).unwrap_err();
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).expect("a cause");
    assert_eq!(cause.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(error.to_string(), "cannot read the filter");
}

#[test]
fn an_error_without_a_cause_prints_the_same_in_both_forms() {
    let error = BloomFilter::with_capacity(0, 0.01).unwrap_err();
    assert!(matches!(error, Error::Parameter { name: "n", .. }) && error.source().is_none());
    assert_eq!(format!("{error:#}"), error.to_string());
}

#[test]
fn an_error_inside_a_system_error_keeps_its_chain() {
    let error = BloomFilter::load("/nowhere/missing.umbel").unwrap_err();
    let chain = format!("{error:#}");
    let wrapped = Error::Io { path: "copy".into(), doing: "write", source: io::Error::other(error) };
    assert_eq!(format!("{wrapped:#}"), format!("cannot write copy: {chain}"));
}
