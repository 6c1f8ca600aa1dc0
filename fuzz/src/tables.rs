//! Sorted tables and their logs.
//!
//! No input may cause a panic in opening or querying a store. Opened again it gives the same
//! answers. The entries of a log are found, also after it becomes a table; a merge keeps the
//! entries that a table lists.

use crate::seal;
use std::path::Path;
use umbel_text::tables::{Options, Store};

/// The keys and values that a store lists; `None` if a part cannot be read.
type Listed = Option<Vec<(Vec<u8>, Vec<u8>)>>;

/// Tests any bytes, as they are and with matching lengths and checksums.
pub fn run(bytes: &[u8]) {
    loads(bytes);
    let mut sealed = bytes.to_vec();
    if is_log(bytes) {
        seal::log(&mut sealed);
    } else {
        seal::table(&mut sealed);
    }
    loads(&sealed);
}

/// Tries to open a store and to read all of it, and returns whether it could.
pub fn loads(bytes: &[u8]) -> bool {
    let folder = crate::folder();
    let name = if is_log(bytes) { "00000001.log" } else { "00000001-00000001.table" };
    std::fs::write(folder.path().join(name), bytes).expect("room");
    let Some(store) = open(folder.path()) else { return false };
    let (listed, described) = (listed(&store), describe(&store));
    drop(store);
    let mut store = open(folder.path()).expect("what was opened can be opened");
    assert_eq!(
        (&listed, &described),
        (&self::listed(&store), &self::describe(&store)),
        "reopening changes nothing"
    );
    if is_log(bytes) {
        hold(&store, listed.as_deref().expect("a log is read as a whole"));
        store.flush().expect("a table of a log");
        assert_eq!(listed, self::listed(&store), "the log as a table");
        hold(&store, listed.as_deref().unwrap_or_default());
    } else if listed.is_some() && store.merge(0..1).is_ok() {
        // A hostile table may have keys in any order, in which case it cannot be merged.
        assert_eq!(listed, self::listed(&store), "merged");
    }
    // The store still accepts changes.
    store.put(b"one more", b"value").expect("a store accepts a key");
    store.delete(b"key 0001").expect("a store deletes a key");
    assert_eq!(store.get(b"one more").ok().flatten().as_deref(), Some(&b"value"[..]));
    assert_eq!(store.get(b"key 0001").ok(), Some(None));
    listed.is_some()
}

fn is_log(bytes: &[u8]) -> bool {
    bytes.starts_with(b"UMBELLOG")
}

fn open(folder: &Path) -> Option<Store> {
    Store::open(folder, Options::default()).ok()
}

fn listed(store: &Store) -> Listed {
    store.entries().ok()?.collect::<umbel_text::Result<_>>().ok()
}

/// Returns answers and figures as text.
fn describe(store: &Store) -> String {
    let keys = [&b"key 0003"[..], b"key 0077", b"", b"zebra", &[255; 40]];
    let answers = keys.map(|key| (store.get(key).ok(), store.history(key).ok()));
    let counts = store.counts();
    assert_eq!(counts.lookups, 2 * keys.len() as u64);
    assert!(counts.asked == counts.skipped + counts.read && counts.wasted <= counts.read, "{counts:?}");
    format!("{answers:?} {:?} {counts:?}", store.tables())
}

/// Checks that every key is found with its value.
fn hold(store: &Store, listed: &[(Vec<u8>, Vec<u8>)]) {
    for (key, value) in listed {
        assert_eq!(store.get(key).ok().flatten().as_ref(), Some(value), "{key:?}");
    }
}
