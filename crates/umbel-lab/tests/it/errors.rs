//! An error returns its cause through `source`, does not repeat it in its own message, and prints
//! the whole chain with `{:#}`.

use std::error::Error as _;
use std::io;
use umbel_lab::{Error, Lab, Scale, Table, find, report};

#[test]
fn the_cause_of_an_unwritable_report_is_the_error_of_the_system() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = report(file.path(), &Lab::new(Scale::Quick, 1), &[]).unwrap_err();
    assert!(matches!(&error, Error::Report { folder, .. } if folder == file.path()), "{error:?}");
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).expect("a cause");
    assert_eq!(cause.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(
        format!("{error:#}"),
        format!("cannot write the report to {}: {cause}", file.path().display())
    );
}

#[test]
fn the_cause_of_a_table_with_a_short_row_is_the_error_of_the_writer() {
    let mut table = Table::new("rates", &["n", "p"]);
    table.rows.push(vec!["1000".into()]);
    let error = table.to_csv().unwrap_err();
    assert_eq!(error.to_string(), "cannot write the table rates");
    assert!(error.source().is_some_and(|cause| cause.is::<io::Error>()), "{error:?}");
}

#[test]
fn library_errors_keep_their_message_and_their_cause() {
    let io = || umbel::Error::Io { path: "x".into(), doing: "read", source: io::ErrorKind::TimedOut.into() };
    let chain = format!("{:#}", io());
    for error in [
        Error::from(io()),
        Error::from(umbel_net::Error::from(io())),
        Error::from(umbel_text::Error::from(io())),
    ] {
        assert!(error.source().is_some_and(|cause| cause.is::<io::Error>()), "{error:?}");
        assert_eq!(format!("{error:#}"), chain);
    }
}

#[test]
fn unknown_and_unsuitable_parameters_are_refused_with_a_hint() {
    let mut lab = Lab::new(Scale::Quick, 1);
    let experiments: Vec<_> = find("E1").into_iter().collect();
    let unknown = lab.set(&experiments, "leaves", 4.0).unwrap_err();
    assert!(matches!(&unknown, Error::UnknownParameter { known } if known.contains(&"n")), "{unknown:?}");
    let wrong = lab.set(&experiments, "n", 0.5).unwrap_err();
    assert!(matches!(&wrong, Error::OutOfRange { experiment: "E1", .. }), "{wrong:?}");
    assert!(wrong.to_string().contains("in E1: a whole number from "), "{wrong}");
}
