//! Filter files.
//!
//! Whatever the bytes are, loading ends without a panic. What was loaded answers, tells its figures, and is the same filter after it was
//! written and read again; what it then takes, it has.

use crate::seal;
use umbel::Kind;
use umbel::any::Stored;
use umbel::file::{self, Loaded};

const KEYS: [&str; 8] = ["apple", "pear", "plum", "", "quince", "fig", "medlar", "sloe"];

/// Takes any bytes, as they are and with sums that fit.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    let mut sealed = bytes.to_vec();
    seal::filter_file(&mut sealed);
    loads(&sealed);
}

/// Tries to load; whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let Ok(loaded) = file::from_bytes(bytes, &crate::ring()) else { return false };
    let (told, written) = (told(&loaded.filter), write(&loaded));
    let again = file::from_bytes(&written, &crate::ring()).expect("what was written can be read");
    assert_eq!(told, self::told(&again.filter));
    assert_eq!(written, write(&again), "the same bytes");
    take(again.filter);
    true
}

fn write(loaded: &Loaded) -> Vec<u8> {
    file::to_bytes(&loaded.filter, &loaded.options()).expect("what was read can be written")
}

/// Answers and figures; as text, since a figure may be none and that equals nothing.
fn told(filter: &Stored) -> String {
    let answers = filter.contains_batch(&KEYS[..]);
    for (key, answer) in KEYS.iter().zip(answers.iter()) {
        assert_eq!(filter.contains(*key), answer, "one by one, and together");
    }
    format!("{:?} {:?} {:?} {:?}", answers, filter.stats(), filter.design(), filter.inserted())
}

/// What a filter takes is never denied.
fn take(mut filter: Stored) {
    // The next stage of a scalable filter is as large as the file says, which is no fault.
    if filter.kind() == Kind::Scalable {
        return;
    }
    for key in KEYS {
        if filter.insert(key).is_ok() {
            assert!(filter.contains(key), "{key} was inserted");
        }
    }
}
