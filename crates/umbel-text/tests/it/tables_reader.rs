//! A store can be read beside its writer, in ranges, and without changing a file; batches are written
//! completely or not at all, and the number of tables stays bounded.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rustix::fs::{CWD, Mode, mkfifoat};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::Path;
use umbel_text::tables::{Changes, Counts, Options, Reader, Store};
use umbel_text::{Error, Result};

fn open(folder: &Path) -> Store {
    Store::open(folder, Options::default()).expect("a store")
}

fn read(folder: &Path) -> Reader {
    Reader::open(folder, Options::default()).expect("a store")
}

fn batch(pairs: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Changes {
    let mut changes = Changes::default();
    pairs.into_iter().for_each(|(key, value)| changes.put(key, value).unwrap());
    changes
}

/// Returns the names and bytes of the files in a folder.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap()))
        .collect()
}

fn collect(entries: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    entries.collect::<Result<_>>().unwrap()
}

/// Short keys of few different bytes, so that many share a prefix; 0xff is the largest.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0u8, b'a', b'b', 0xff]), 0..5)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60, rng_seed: RngSeed::Fixed(24), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn ranges_and_prefixes_are_those_of_a_map(
        batches in prop::collection::vec(prop::collection::vec((key(), prop::option::of(0..2000usize)), 1..30), 1..4),
        in_log in prop::collection::vec(key(), 0..3),
        bounds in prop::collection::vec((bound(), bound()), 8),
        prefixes in prop::collection::vec(key(), 8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, mut map) = (open(folder.path()), BTreeMap::new());
        for entries in batches {
            let mut changes = Changes::default();
            for (key, length) in entries {
                match length {
                    Some(length) => {
                        changes.put(&key[..], vec![7; length]).unwrap();
                        map.insert(key, vec![7; length]);
                    }
                    None => {
                        changes.delete(&key[..]).unwrap();
                        map.remove(&key);
                    }
                }
            }
            store.write(changes).unwrap();
        }
        for key in in_log {
            store.put(&key, b"log").unwrap();
            map.insert(key, b"log".to_vec());
        }
        drop(store);
        let reader = read(folder.path());
        let all: Vec<_> = map.clone().into_iter().collect();
        prop_assert_eq!(collect(reader.entries().unwrap()), all.clone());
        for (from, to) in &bounds {
            let from = from.as_ref().map(Vec::as_slice);
            let to = to.as_ref().map(Vec::as_slice);
            // A map panics if the bounds are in the wrong order, where a store has no entries.
            let within = |key: &[u8]| {
                (match from { Bound::Included(from) => key >= from, Bound::Excluded(from) => key > from, Bound::Unbounded => true })
                    && (match to { Bound::Included(to) => key <= to, Bound::Excluded(to) => key < to, Bound::Unbounded => true })
            };
            let expected: Vec<_> = all.iter().filter(|(key, _)| within(key)).cloned().collect();
            prop_assert_eq!(collect(reader.range(from, to).unwrap()), expected);
        }
        for prefix in &prefixes {
            let expected: Vec<_> = all.iter().filter(|(key, _)| key.starts_with(prefix)).cloned().collect();
            prop_assert_eq!(collect(reader.prefixed(prefix).unwrap()), expected);
        }
    }
}

#[test]
fn a_reader_sees_the_store_as_it_was_and_keeps_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = |value: &str| {
        (0..500u32).map(|n| (n.to_be_bytes().to_vec(), value.as_bytes().to_vec())).collect::<Vec<_>>()
    };
    let mut store = open(folder.path());
    store.write(batch(pairs("old"))).unwrap();
    let error = Reader::open(folder.path(), Options::default()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    drop(store);
    let (first, second) = (read(folder.path()), read(folder.path()));
    let mut store = open(folder.path());
    store.write(batch(pairs("new"))).unwrap();
    store.merge(0..2).unwrap();
    assert_eq!(collect(first.entries().unwrap()), pairs("old"), "from tables that have been removed");
    assert_eq!(second.get(&7u32.to_be_bytes()).unwrap(), Some(b"old".to_vec()));
    assert_eq!(store.get(&7u32.to_be_bytes()).unwrap(), Some(b"new".to_vec()));
    drop(store);
    assert_eq!(collect(read(folder.path()).entries().unwrap()), pairs("new"));
}

#[test]
fn a_reader_changes_no_file_whatever_a_crash_has_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.write(batch([(b"a".to_vec(), b"1".to_vec())])).unwrap();
    let table = folder.path().join("00000001-00000001.table");
    let old = fs::read(&table).unwrap();
    store.write(batch([(b"b".to_vec(), b"2".to_vec())])).unwrap();
    store.merge(0..2).unwrap();
    store.put(b"c", b"3").unwrap();
    store.put(b"d", b"4").unwrap();
    drop(store);
    // A table that was merged, the log of a table, and a log whose last record is incomplete.
    fs::write(&table, old).unwrap();
    fs::write(folder.path().join("00000002.log"), "whatever").unwrap();
    let log = folder.path().join("00000003.log");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() - 1]).unwrap();
    let before = contents(folder.path());
    let reader = read(folder.path());
    let pair = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
    assert_eq!(collect(reader.entries().unwrap()), [pair(b"a", b"1"), pair(b"b", b"2"), pair(b"c", b"3")]);
    assert_eq!((reader.tables().len(), reader.unflushed()), (1, 1));
    assert!(reader.torn() > 0);
    assert_eq!(contents(folder.path()), before);
    // A copy without a lock is read as well.
    fs::remove_file(folder.path().join("lock")).unwrap();
    assert_eq!(read(folder.path()).get(b"b").unwrap(), Some(b"2".to_vec()));
    assert!(!folder.path().join("lock").exists());
}

#[test]
fn other_folders_are_refused_and_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    for error in [
        Reader::open(&missing, Options::default()).err(),
        Store::open_existing(&missing, Options::default()).err(),
        Reader::open(folder.path(), Options::default()).err(),
        Store::open_existing(folder.path(), Options::default()).err(),
    ] {
        assert!(matches!(error, Some(Error::NoStore { .. })), "{error:?}");
    }
    fs::write(folder.path().join("letter.txt"), "Dear Ada").unwrap();
    let error = Store::open(folder.path(), Options::default()).unwrap_err();
    assert!(matches!(error, Error::Occupied { .. }), "{error}");
    assert_eq!(contents(folder.path()).into_keys().collect::<Vec<_>>(), ["letter.txt"]);
    // An empty store is a store, also with the counts of lookups.
    drop(open(&missing));
    read(&missing).record(Counts::default()).unwrap();
    fs::write(missing.join(".umbel-Xy12.part"), "a table that a crash left").unwrap();
    drop(open(&missing));
    assert_eq!(read(&missing).get(b"a").unwrap(), None);
}

#[test]
fn files_that_only_have_the_names_of_a_store_are_refused_and_stay_as_they_are() {
    let notes = ("00000003.log", "my notes");
    let long = ("00000001.log", "my notes, which are longer than the header of a log");
    for files in [
        &[notes][..],
        &[long],
        &[("00000001.log", "UMBEL notes")],
        &[("lock", ""), notes],
        &[("lock", ""), ("letter.txt", "Dear Ada")],
        &[("lock", ""), ("00000001.log", ""), ("letter.txt", "Dear Ada")],
        &[notes, ("letter.txt", "Dear Ada")],
        &[("counts", "1 2 3")],
    ] {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
        let before = contents(folder.path());
        let error = Store::open(folder.path(), Options::default()).unwrap_err();
        match &error {
            Error::Occupied { .. } => {}
            Error::Format { problem, .. } => assert!(problem.to_string().ends_with("it is not a log")),
            _ => panic!("{error}"),
        }
        assert!(Store::open_existing(folder.path(), Options::default()).is_err(), "{files:?}");
        assert!(Reader::open(folder.path(), Options::default()).is_err(), "{files:?}");
        assert_eq!(contents(folder.path()), before);
    }
}

#[test]
fn a_batch_that_cannot_be_written_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.write(batch([(b"a".to_vec(), b"1".to_vec())])).unwrap();
    // A directory is in the way of the table.
    let blocker = folder.path().join("00000002-00000002.table");
    fs::create_dir(&blocker).unwrap();
    let two = || batch([(b"a".to_vec(), b"2".to_vec()), (b"b".to_vec(), b"2".to_vec())]);
    assert!(store.write(two()).is_err());
    assert_eq!((store.get(b"a").unwrap(), store.get(b"b").unwrap()), (Some(b"1".to_vec()), None));
    fs::remove_dir(&blocker).unwrap();
    store.write(two()).unwrap();
    assert_eq!(store.get(b"a").unwrap(), Some(b"2".to_vec()));
    // Writes before the batch are older than the batch.
    store.put(b"a", b"3").unwrap();
    store.write(batch([(b"a".to_vec(), b"4".to_vec())])).unwrap();
    drop(store);
    assert_eq!(read(folder.path()).get(b"a").unwrap(), Some(b"4".to_vec()));
}

#[test]
fn writes_after_a_batch_survive_whatever_log_a_crash_has_left() {
    let header = {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path()).put(b"a", b"").unwrap();
        fs::read(folder.path().join("00000001.log")).unwrap()[..32].to_vec()
    };
    let torn_record = [&header[..], b"torn"].concat();
    for log in [&[][..], &header[..20], &[0; 64], &header, &torn_record] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("00000001.log"), log).unwrap();
        let mut store = open(folder.path());
        store.write(batch([(b"a".to_vec(), b"1".to_vec())])).unwrap();
        store.put(b"b", b"2").unwrap();
        store.delete(b"a").unwrap();
        drop(store);
        let store = open(folder.path());
        assert_eq!(store.get(b"b").unwrap(), Some(b"2".to_vec()), "{log:?}");
        assert_eq!(store.get(b"a").unwrap(), None, "{log:?}");
    }
}

#[test]
fn writes_are_refused_while_the_rest_of_a_failed_batch_is_in_their_way() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.put(b"a", b"1").unwrap();
    // The log becomes table 1, and a directory is in the way of table 2.
    let blocker = folder.path().join("00000002-00000002.table");
    fs::create_dir(&blocker).unwrap();
    let two = || batch([(b"b".to_vec(), b"2".to_vec())]);
    assert!(store.write(two()).is_err());
    let error = store.put(b"c", b"3").unwrap_err();
    let Error::Format { problem, .. } = &error else { panic!("{error}") };
    assert!(problem.to_string().contains("open the store again"), "{problem}");
    assert!(store.delete(b"a").is_err());
    assert_eq!((store.get(b"a").unwrap(), store.get(b"c").unwrap()), (Some(b"1".to_vec()), None));
    fs::remove_dir(&blocker).unwrap();
    store.write(two()).unwrap();
    store.put(b"c", b"3").unwrap();
    drop(store);
    let store = open(folder.path());
    let found = [b"a", b"b", b"c"].map(|key| store.get(key).unwrap());
    assert_eq!(found, [b"1", b"2", b"3"].map(|value| Some(value.to_vec())));
}

#[test]
fn compacting_bounds_the_tables_and_the_work() {
    const MAX_TABLES: usize = 4;
    const BATCHES: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let (mut store, mut written) = (open(folder.path()), 0);
    for n in 0..BATCHES {
        store.write(batch([(n.to_be_bytes().to_vec(), vec![7; 1000])])).unwrap();
        let before: Vec<_> = store.tables();
        store.compact(MAX_TABLES).unwrap();
        let after = store.tables();
        assert!(after.len() <= MAX_TABLES);
        let is_new = |path: &Path| before.iter().all(|table| table.path != path);
        written += after.iter().filter(|table| is_new(&table.path)).map(|table| table.bytes).sum::<u64>();
    }
    assert_eq!(store.entries().unwrap().count() as u64, BATCHES);
    let bytes: u64 = store.tables().iter().map(|table| table.bytes).sum();
    // Merging all tables each time would write about BATCHES / 2 times the bytes of the store.
    assert!(written < 8 * bytes, "{written} for {bytes}");
}

#[test]
fn small_changes_do_not_rewrite_large_tables_each_time() {
    const MAX_TABLES: usize = 8;
    const LARGE: [usize; 2] = [95_000, 38_000];
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    let sizes = [1; 6].into_iter().chain(LARGE).chain([1; 100]);
    let mut written = 0;
    for (n, size) in sizes.enumerate() {
        store.write(batch([(n.to_be_bytes().to_vec(), vec![7; size])])).unwrap();
        let before = store.tables();
        store.compact(MAX_TABLES).unwrap();
        assert!(store.tables().len() <= MAX_TABLES);
        let is_new = |path: &Path| before.iter().all(|table| table.path != path);
        let tables = store.tables();
        written += tables.iter().filter(|table| is_new(&table.path)).map(|table| table.bytes).sum::<u64>();
    }
    assert_eq!(store.entries().unwrap().count(), 108);
    // The small tables alone are rewritten; once per change would be a hundred times the large one.
    assert!(written < 10 * LARGE[1] as u64, "{written}");
}

#[test]
fn compacting_leaves_damaged_tables_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    for n in 0..6u8 {
        store.write(batch([(vec![n], vec![n])])).unwrap();
    }
    drop(store);
    let damaged = folder.path().join("00000003-00000003.table");
    fs::write(&damaged, "damaged").unwrap();
    let mut store = open(folder.path());
    store.compact(2).unwrap();
    assert_eq!(store.tables().len(), 4, "the three newest became one");
    assert_eq!(fs::read(&damaged).unwrap(), b"damaged");
    assert_eq!(store.get(&[4]).unwrap(), Some(vec![4]));
    let error = store.get(&[0]).unwrap_err().to_string();
    assert!(error.contains("00000003-00000003.table is damaged"), "{error}");
}

#[test]
fn recorded_counts_add_up_and_damage_to_them_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let reader = read(folder.path());
    assert_eq!(reader.recorded().unwrap(), Counts::default());
    let counts = Counts { lookups: 1503, asked: 6007, skipped: 5944, read: 63, wasted: 60 };
    reader.record(counts).unwrap();
    let total = reader.record(Counts { skipped: 5945, asked: 6007, read: 62, ..counts }).unwrap();
    assert_eq!(total, Counts { lookups: 3006, asked: 12_014, skipped: 11_889, read: 125, wasted: 120 });
    assert_eq!(read(folder.path()).recorded().unwrap(), total);
    let path = folder.path().join("counts");
    let bytes = fs::read(&path).unwrap();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/lookups.counts");
    assert!(fs::read(golden).unwrap() == bytes, "the format is that of earlier versions");
    let damaged = (0..bytes.len() * 8).map(|bit| {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        damaged
    });
    let cut = (1..bytes.len()).map(|length| bytes[..length].to_vec());
    for damaged in damaged.chain(cut).chain([[&bytes[..], b"x"].concat()]) {
        fs::write(&path, &damaged).unwrap();
        for error in [reader.recorded().unwrap_err(), reader.record(counts).unwrap_err()] {
            let error = error.to_string();
            assert!(error.contains("counts is damaged") && error.contains("remove it"), "{error}");
        }
        assert!(fs::read(&path).unwrap() == damaged, "it is left as it is");
    }
}

#[test]
fn counts_are_kept_in_a_regular_file_only_and_nobody_waits_for_them() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let reader = read(folder.path());
    let path = folder.path().join("counts");
    let refused = |what: &str| {
        for error in [reader.recorded().unwrap_err(), reader.record(Counts::default()).unwrap_err()] {
            let error = error.to_string();
            assert!(error.contains("counts") && error.contains(what), "{error}");
        }
    };
    // A link to a file elsewhere, which stays empty, and a link to a file that does not exist.
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    let missing = folder.path().join("missing");
    for target in [elsewhere.path(), &missing] {
        std::os::unix::fs::symlink(target, &path).unwrap();
        refused("not a regular file");
        fs::remove_file(&path).unwrap();
    }
    assert!(fs::read(elsewhere.path()).unwrap().is_empty() && !missing.exists());
    // A process that holds the lock does not stop the others.
    let busy = fs::File::create(&path).unwrap();
    busy.lock().unwrap();
    refused("");
    drop(busy);
    assert_eq!(reader.record(Counts::default()).unwrap(), Counts::default());
    fs::remove_file(&path).unwrap();
    // A pipe without another end.
    mkfifoat(CWD, &path, Mode::RWXU).unwrap();
    refused("not a regular file");
}
