//! Errors: `source` returns the cause, the message does not repeat it, and `{:#}` prints the whole
//! chain.

use std::error::Error as _;
use std::time::Duration;
use std::{fs, io};
use umbel::Timestamp;
use umbel::file::FormatError;
use umbel::hash::KeyRing;
use umbel_net::Error;
use umbel_net::attribution::Store;
use umbel_net::attribution::store::{inspect, load};
use umbel_net::blocklist::{Blocklist, Options, state};
use umbel_net::capture::Reader;
use umbel_net::topology::Graph;

#[test]
fn missing_file_has_the_system_error_as_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing");
    let ring = KeyRing::new();
    for error in [
        Reader::open(&path).unwrap_err(),
        Store::open(&path).unwrap_err(),
        Graph::open(&path).unwrap_err(),
        inspect(&path).unwrap_err(),
        load(&path).unwrap_err(),
        state::load(&path, &ring).unwrap_err(),
    ] {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).expect("a cause");
        assert_eq!(cause.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().ends_with(path.to_str().unwrap()), "{error}");
        assert_eq!(format!("{error:#}"), format!("{error}: {cause}"));
    }
}

#[test]
fn error_of_the_filter_library_keeps_its_variant_and_cause() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    fs::write(&path, "text").unwrap();
    let error = state::load(&path, &KeyRing::new()).unwrap_err();
    let Error::Format { path: named, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*named, path);
    assert!(error.source().is_some_and(|cause| cause.is::<FormatError>()), "{error:?}");

    let io = umbel::Error::Io { path: "x".into(), doing: "read", source: io::ErrorKind::TimedOut.into() };
    let chain = format!("{io:#}");
    let error = Error::from(io);
    assert!(matches!(error, Error::Io { .. }) && error.source().is_some());
    assert_eq!(format!("{error:#}"), chain);

    let parameter = umbel::Error::parameter("n", 0, "at least 1");
    let message = parameter.to_string();
    assert_eq!(format!("{:#}", Error::from(parameter)), message);
}

#[test]
fn state_held_by_another_keeper_is_locked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let list = Blocklist::new(&Options::default(), Timestamp::from_millis(0)).unwrap();
    state::save(&path, &list).unwrap();
    let _first = state::Keeper::new(&path, Duration::ZERO).unwrap();
    let error = state::Keeper::new(&path, Duration::ZERO).unwrap_err();
    assert!(matches!(&error, Error::Locked { path: locked } if *locked == path), "{error:?}");
    assert!(error.source().is_none());
}
