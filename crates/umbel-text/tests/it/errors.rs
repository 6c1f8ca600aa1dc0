//! An error returns its cause through `source`, does not repeat it in its own message, and prints
//! the whole chain with `{:#}`.

use crate::vault::passphrase;
use std::error::Error as _;
use std::{fs, io};
use umbel::file::FormatError;
use umbel_text::Error;
use umbel_text::address::{Address, Exact, Invalid};
use umbel_text::guard::{Files, Guard, NoFilter};
use umbel_text::index::Index;
use umbel_text::password::{List, RangeList, scan};
use umbel_text::vault::{Cost, Options, Vault};

/// Returns the system error that caused this one.
#[track_caller]
fn cause(error: &dyn std::error::Error) -> &io::Error {
    error.source().and_then(|cause| cause.downcast_ref()).unwrap_or_else(|| panic!("{error:?}"))
}

#[test]
fn a_missing_file_has_the_system_error_as_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing");
    for error in
        [Index::open(&path).err(), Exact::open(&path).err(), RangeList::open(&path).err()].map(Option::unwrap)
    {
        assert_eq!(cause(&error).kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().ends_with(path.to_str().unwrap()), "{error}");
        assert_eq!(format!("{error:#}"), format!("{error}: {}", cause(&error)));
    }
}

#[test]
fn an_error_of_the_reader_is_the_cause() {
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
    let prefix = "00000".parse().unwrap();
    for error in [List::open(Broken, None).err().unwrap(), scan(Broken, prefix).unwrap_err()] {
        assert!(matches!(error, Error::Input(_)), "{error:?}");
        assert_eq!(cause(&error).kind(), io::ErrorKind::ConnectionReset);
    }
}

#[test]
fn a_failing_writer_is_distinguished_from_a_damaged_document() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let options = Options { cost: Cost::WEAKEST, ..Options::default() };
    let vault = Vault::create(&path, &passphrase("correct horse"), &options).unwrap();
    let id = vault.add(b"plan.txt", None, &b"Attack at dawn."[..]).unwrap().entry.id;
    let error = vault.read(&id, &mut Full).unwrap_err();
    assert!(matches!(error, Error::Output(_)), "{error:?}");
    assert_eq!(cause(&error).kind(), io::ErrorKind::StorageFull);

    let document = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let document = document.filter(|path| path.file_name().unwrap() != "vault").last().unwrap();
    fs::write(&document, "something else").unwrap();
    assert!(matches!(vault.read(&id, &mut Full), Err(Error::Damaged { .. })));
}

#[test]
fn invalid_contents_and_addresses_are_causes_with_their_own_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.idx");
    fs::write(&path, "not an index").unwrap();
    let error = Index::open(&path).err().unwrap();
    assert!(error.source().is_some_and(|cause| cause.is::<FormatError>()), "{error:?}");

    let error = Error::from(Address::parse(b"mailto:someone").unwrap_err());
    let invalid = error.source().and_then(|cause| cause.downcast_ref::<Invalid>());
    assert_eq!(invalid, Some(&Invalid::Scheme));
    assert_eq!(format!("{error:#}"), format!("this is not a web address: {}", Invalid::Scheme));
}

#[test]
fn an_error_of_the_filter_library_keeps_its_cause() {
    let inner = umbel::Error::Io { path: "x".into(), doing: "read", source: io::ErrorKind::TimedOut.into() };
    let chain = format!("{inner:#}");
    let error = Error::from(inner);
    assert_eq!(cause(&error).kind(), io::ErrorKind::TimedOut);
    assert_eq!(format!("{error:#}"), chain);
}

#[test]
fn an_error_of_the_store_is_the_cause_of_a_missing_filter() {
    let error = Guard::with_rate(Files::new("/nowhere/at/all"), 0.01).err().unwrap();
    assert!(matches!(error, NoFilter::Store(_)), "{error:?}");
    assert_eq!(cause(&error).kind(), io::ErrorKind::NotFound);
    let folder = tempfile::tempdir().unwrap();
    let error = Guard::with_rate(Files::new(folder.path()), 2.0).err().unwrap();
    assert!(error.source().is_some_and(|cause| cause.is::<umbel::Error>()), "{error:?}");
}
