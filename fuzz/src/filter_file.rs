//! Filter files.
//!
//! No input may cause a panic in loading. A loaded filter gives answers and figures, and is the
//! same filter after it was written and read again. It then contains every key inserted into it.

use crate::seal;
use umbel::Kind;
use umbel::any::Stored;
use umbel::file::{self, Loaded};

const KEYS: [&str; 8] = ["apple", "pear", "plum", "", "quince", "fig", "medlar", "sloe"];

/// Tests any bytes, as they are and with matching checksums.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    let mut sealed = bytes.to_vec();
    seal::filter_file(&mut sealed);
    loads(&sealed);
}

/// Tries to load a filter, and returns whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let Ok(loaded) = file::from_bytes(bytes, &crate::ring()) else { return false };
    let (described, written) = (describe(&loaded.filter), write(&loaded));
    let again = file::from_bytes(&written, &crate::ring()).expect("what was written can be read");
    assert_eq!(described, self::describe(&again.filter));
    assert_eq!(written, write(&again), "the same bytes");
    take(again.filter);
    true
}

fn write(loaded: &Loaded) -> Vec<u8> {
    file::to_bytes(&loaded.filter, &loaded.options()).expect("what was read can be written")
}

/// Returns answers and figures as text, because a figure may be NaN, which equals nothing.
fn describe(filter: &Stored) -> String {
    let answers = filter.contains_batch(&KEYS[..]);
    for (key, answer) in KEYS.iter().zip(answers.iter()) {
        assert_eq!(filter.contains(*key), answer, "single and batch lookups agree");
    }
    format!("{:?} {:?} {:?} {:?}", answers, filter.stats(), filter.design(), filter.inserted())
}

/// Checks that an inserted key is never denied.
fn take(mut filter: Stored) {
    // The next stage of a scalable filter is as large as the file says, which is not a fault.
    if filter.kind() == Kind::Scalable {
        return;
    }
    for key in KEYS {
        if filter.insert(key).is_ok() {
            assert!(filter.contains(key), "{key} was inserted");
        }
    }
}
