//! A store of tables answers like a map, reads as few tables as the theory predicts, and survives
//! crashes and damage.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use umbel::{Hasher, Kind, Spec};
use umbel_text::tables::{Counts, MAX_KEY, Options, Reader, Store, share};

fn open(folder: &Path) -> Store {
    Store::open(folder, Options::default()).expect("a store")
}

fn with_rate(folder: &Path, rate: f64, seed: u64) -> Store {
    Store::open(folder, Options { rate, hasher: Some(Hasher::fast(seed)), ..Options::default() })
        .expect("a store")
}

/// Returns the files with this extension, in the order of their names.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = all.filter(|path| path.extension().is_some_and(|own| own == ending)).collect();
    files.sort();
    files
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, Vec<u8>),
    Delete(u8),
    Get(u8),
    Flush,
    Merge(usize, usize),
    Reopen,
    /// The process ends while it writes, after this many bytes of a record.
    Crash(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..30u8;
    let value = prop::collection::vec(any::<u8>(), 0..600);
    let step = prop_oneof![
        8 => (key.clone(), value).prop_map(|(key, value)| Step::Put(key, value)),
        4 => key.clone().prop_map(Step::Delete),
        6 => key.prop_map(Step::Get),
        3 => Just(Step::Flush),
        2 => (0..6usize, 1..6usize).prop_map(|(start, count)| Step::Merge(start, count)),
        1 => Just(Step::Reopen),
        1 => (1..60usize).prop_map(Step::Crash),
    ];
    prop::collection::vec(step, 1..80)
}

fn key(number: u8) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 80, rng_seed: RngSeed::Fixed(3), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn it_answers_like_a_map(steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        // Little memory, so that the store flushes by itself, and a rate at which filters are often
        // wrong.
        let options = || Options { memory: 3000, rate: 0.3, ..Options::default() };
        let mut store = Store::open(folder.path(), options()).unwrap();
        let mut map = BTreeMap::new();
        for step in steps {
            match step {
                Step::Put(number, value) => {
                    store.put(&key(number), &value).unwrap();
                    map.insert(key(number), value);
                }
                Step::Delete(number) => {
                    store.delete(&key(number)).unwrap();
                    map.remove(&key(number));
                }
                Step::Get(number) => {
                    let found = store.get(&key(number)).unwrap();
                    prop_assert_eq!(found.as_ref(), map.get(&key(number)));
                    let newest = store.history(&key(number)).unwrap().into_iter().next().flatten();
                    prop_assert_eq!(newest.as_ref(), map.get(&key(number)));
                }
                Step::Flush => store.flush().unwrap(),
                Step::Merge(start, count) => {
                    let tables = store.tables().len();
                    let end = start + count;
                    prop_assert_eq!(store.merge(start..end).is_ok(), end <= tables);
                }
                Step::Reopen => {
                    drop(store);
                    store = Store::open(folder.path(), options()).unwrap();
                    prop_assert_eq!(store.torn(), 0);
                }
                Step::Crash(bytes) => {
                    drop(store);
                    let logs = files(folder.path(), "log");
                    prop_assert!(logs.len() <= 1);
                    for log in &logs {
                        // A record whose end is missing.
                        let before = std::fs::read(log).unwrap();
                        let mut other = Store::open(folder.path(), options()).unwrap();
                        let grew = other.put(b"cut off", &[7; 60]).is_ok() && log.exists();
                        drop(other);
                        let after = std::fs::read(log).unwrap_or_default();
                        if grew && after.len() > before.len() {
                            std::fs::write(log, &after[..before.len() + bytes]).unwrap();
                        } else {
                            map.insert(b"cut off".to_vec(), vec![7; 60]);
                        }
                    }
                    store = Store::open(folder.path(), options()).unwrap();
                }
            }
        }
        let all: BTreeMap<_, _> = store.entries().unwrap().map(|entry| entry.unwrap()).collect();
        prop_assert_eq!(&all, &map);
        let tables = store.tables().len();
        store.flush().unwrap();
        if !store.tables().is_empty() {
            store.merge(0..store.tables().len()).unwrap();
            prop_assert_eq!(store.tables()[0].tombstones, 0);
            prop_assert_eq!(store.tables()[0].entries, map.len() as u64);
        }
        prop_assert!(tables <= 80);
    }
}

#[test]
fn filters_rule_out_two_of_three_tables() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = with_rate(folder.path(), 0.01, 0);
    // The key is only in table 3, which is queried last.
    for table in ["3", "2", "1"] {
        (0..100).for_each(|n| store.put(format!("{table}/{n}").as_bytes(), table.as_bytes()).unwrap());
        store.flush().unwrap();
    }
    assert_eq!(store.get(b"3/77").unwrap(), Some(b"3".to_vec()));
    assert_eq!(store.counts(), Counts { lookups: 1, asked: 3, skipped: 2, read: 1, wasted: 0 });
    assert_eq!(store.get(b"4/1").unwrap(), None);
    assert_eq!(store.counts(), Counts { lookups: 2, asked: 6, skipped: 5, read: 1, wasted: 0 });
}

/// Compares the mean number of reads per lookup with the theory: for absent keys, for keys of each
/// table from the newest on, and for histories.
#[test]
fn reads_match_the_theory() {
    const KEYS: u64 = 1000;
    const BUILDS: u64 = 12;
    const ASKED: u64 = 20_000;
    for (tables, rate) in [(3u64, 0.01), (8, 0.05)] {
        let plan = umbel::spec::plan(Kind::Blocked, &Spec::new(KEYS, rate).unwrap()).unwrap();
        let p = umbel::sizing::rate::classic(plan.stored_bits, KEYS, plan.hashes).unwrap();
        let (mut absent, mut early, mut history) = (0, vec![0; tables as usize], 0);
        for build in 0..BUILDS {
            let folder = tempfile::tempdir().unwrap();
            let mut store = with_rate(folder.path(), rate, build);
            for key in 0..tables * KEYS {
                store.put(&key.to_le_bytes(), b"").unwrap();
                if key % KEYS == KEYS - 1 {
                    store.flush().unwrap();
                }
            }
            let reads = |store: &Store, act: &mut dyn FnMut(&Store)| {
                let before = store.counts().read;
                act(store);
                store.counts().read - before
            };
            absent += reads(&store, &mut |store| {
                let keys = tables * KEYS..tables * KEYS + ASKED;
                keys.for_each(|key| assert_eq!(store.get(&key.to_le_bytes()).unwrap(), None));
            });
            for newer in 0..tables {
                let table = tables - 1 - newer;
                early[newer as usize] += reads(&store, &mut |store| {
                    let keys = table * KEYS..(table + 1) * KEYS;
                    keys.for_each(|key| assert!(store.get(&key.to_le_bytes()).unwrap().is_some()));
                });
            }
            history += reads(&store, &mut |store| {
                let keys = 0..tables * KEYS;
                keys.for_each(|key| assert_eq!(store.history(&key.to_le_bytes()).unwrap().len(), 1));
            });
        }
        // Allow four standard errors. The rate differs by about four per cent between filters of
        // this size.
        let near = |reads: u64, lookups: u64, certain: f64, filters: f64| {
            let lookups = (lookups * BUILDS) as f64;
            let (mean, expected) = (reads as f64 / lookups, certain + filters * p);
            let between = (0.05 * p).powi(2) * filters / BUILDS as f64;
            let tolerance = 4.0 * (filters * p / lookups + between).sqrt();
            assert!((mean - expected).abs() <= tolerance + 1e-12, "{mean} {expected} {tolerance}");
        };
        near(absent, ASKED, 0.0, tables as f64);
        early.iter().enumerate().for_each(|(newer, reads)| near(*reads, KEYS, 1.0, newer as f64));
        near(history, tables * KEYS, 1.0, (tables - 1) as f64);
    }
}

#[test]
fn tombstones_stay_until_no_older_value_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.put(b"a", b"old").unwrap();
    store.flush().unwrap();
    store.delete(b"a").unwrap();
    store.flush().unwrap();
    store.put(b"b", b"new").unwrap();
    store.flush().unwrap();
    store.merge(0..2).unwrap();
    assert_eq!(store.tables()[0].tombstones, 1, "the oldest table still has it");
    assert_eq!(store.get(b"a").unwrap(), None);
    assert_eq!(store.history(b"a").unwrap(), [None, Some(b"old".to_vec())]);
    store.merge(0..2).unwrap();
    assert_eq!((store.tables()[0].tombstones, store.tables()[0].entries), (0, 1));
    assert_eq!(store.get(b"a").unwrap(), None);
    assert_eq!(files(folder.path(), "table").len(), 1);
}

#[test]
fn a_crash_between_a_merge_and_the_removal_of_old_tables_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    for (key, value) in [(b"a", Some(b"1")), (b"b", Some(b"2")), (b"a", None)] {
        match value {
            Some(value) => store.put(key, value).unwrap(),
            None => store.delete(key).unwrap(),
        }
        store.flush().unwrap();
    }
    let before: Vec<_> =
        files(folder.path(), "table").into_iter().map(|path| (std::fs::read(&path).unwrap(), path)).collect();
    store.merge(0..3).unwrap();
    drop(store);
    // As if none had been removed yet, and with the log of an existing table.
    before.iter().for_each(|(bytes, path)| std::fs::write(path, bytes).unwrap());
    std::fs::write(folder.path().join("00000002.log"), "whatever").unwrap();
    let store = open(folder.path());
    assert_eq!((store.tables().len(), store.get(b"a").unwrap()), (1, None));
    assert_eq!(store.get(b"b").unwrap(), Some(b"2".to_vec()));
    assert_eq!((files(folder.path(), "table").len(), files(folder.path(), "log").len()), (1, 0));
}

#[test]
fn a_store_can_be_opened_only_once_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let error = Store::open(folder.path(), Options::default()).unwrap_err().to_string();
    assert!(error.contains("another process has locked it"), "{error}");
    drop(store);
    open(folder.path());
}

#[test]
fn a_failed_flush_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    store.put(b"a", b"1").unwrap();
    // A directory is in the way of the table.
    let blocker = folder.path().join("00000001-00000001.table");
    std::fs::create_dir(&blocker).unwrap();
    assert!(store.flush().is_err());
    assert_eq!(store.get(b"a").unwrap(), Some(b"1".to_vec()));
    let wrote = store.put(b"b", b"2").is_ok();
    std::fs::remove_dir(&blocker).unwrap();
    drop(store);
    let mut store = open(folder.path());
    assert_eq!(store.get(b"a").unwrap(), Some(b"1".to_vec()));
    assert_eq!(store.get(b"b").unwrap().is_some(), wrote, "accepted writes are there");
    store.flush().unwrap();
    assert_eq!(store.get(b"a").unwrap(), Some(b"1".to_vec()));
}

/// Creates two tables, one of `old` and one of `new` keys, with several blocks each.
fn two_tables(folder: &Path) -> [PathBuf; 2] {
    let mut store = open(folder);
    for table in ["old", "new"] {
        (0..300).for_each(|n| store.put(format!("{table} {n:03}").as_bytes(), &[n as u8; 40]).unwrap());
        store.flush().unwrap();
    }
    files(folder, "table").try_into().unwrap()
}

#[test]
fn every_flipped_bit_is_detected_or_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let [_, path] = two_tables(folder.path());
    let bytes = std::fs::read(&path).unwrap();
    let keys: Vec<_> = (0..300).map(|n| format!("new {n:03}")).collect();
    for offset in (0..bytes.len()).step_by(97).chain(0..90) {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 1 << (offset % 8);
        std::fs::write(&path, damaged).unwrap();
        let store = open(folder.path());
        let mut errors = 0;
        for (n, key) in keys.iter().enumerate() {
            match store.get(key.as_bytes()) {
                Ok(found) => assert_eq!(found, Some(vec![n as u8; 40]), "{offset}"),
                Err(error) => {
                    assert!(error.to_string().contains("00000002-00000002.table"), "{error}");
                    errors += 1;
                }
            }
        }
        // The damage is in a block, in a part that the whole table needs, or in the filter, which
        // is rebuilt.
        assert!(errors == 0 || errors == 300 || (10..120).contains(&errors), "{errors} at {offset}");
        let found = store.get(b"old 007");
        assert!(store.tables()[0].damage.is_some() || found.unwrap() == Some(vec![7; 40]), "{offset}");
    }
}

#[test]
fn a_damaged_table_is_reported_and_can_be_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = two_tables(folder.path());
    let bytes = std::fs::read(&old).unwrap();
    std::fs::write(&old, &bytes[..bytes.len() / 2]).unwrap();
    let mut store = open(folder.path());
    assert!(store.tables()[1].damage.as_ref().unwrap().contains("truncated"), "{:?}", store.tables());
    assert_eq!(store.get(b"new 007").unwrap(), Some(vec![7; 40]));
    let error = format!("{:#}", store.get(b"old 007").unwrap_err());
    assert!(error.contains(old.to_str().unwrap()) && error.contains("truncated"), "{error}");
    assert!(store.merge(0..2).is_err() && store.entries().is_err() && store.set_aside(0).is_err());
    // New writes are found.
    store.put(b"old 007", b"again").unwrap();
    assert_eq!(store.get(b"old 007").unwrap(), Some(b"again".to_vec()));
    store.set_aside(1).unwrap();
    assert_eq!(store.get(b"old 008").unwrap(), None);
    drop(store);
    assert_eq!(files(folder.path(), "damaged").len(), 1);
    let store = open(folder.path());
    assert_eq!(store.entries().unwrap().count(), 301);

    // A missing table is detected, too.
    drop(store);
    std::fs::remove_file(old).unwrap();
    let mut store = open(folder.path());
    assert_eq!(store.tables()[1].damage.as_deref(), Some("its file is missing"));
    let error = format!("{:#}", store.get(b"old 008").unwrap_err());
    assert!(error.contains("its file is missing"), "{error}");
    store.set_aside(1).unwrap();
    assert_eq!(store.get(b"old 008").unwrap(), None);
    drop(store);

    // So is a table with the name of another.
    std::fs::rename(&new, folder.path().join("00000003-00000003.table")).unwrap();
    let store = open(folder.path());
    assert_eq!(store.tables().iter().filter(|table| table.damage.is_some()).count(), 2);
}

#[test]
fn a_torn_log_is_truncated_and_a_damaged_one_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path());
    (0..10u8).for_each(|n| store.put(&[n], &[n; 20]).unwrap());
    store.sync().unwrap();
    drop(store);
    let [log] = files(folder.path(), "log").try_into().unwrap();
    let bytes = std::fs::read(&log).unwrap();
    for end in bytes.len() - 44..bytes.len() {
        std::fs::write(&log, &bytes[..end]).unwrap();
        let store = open(folder.path());
        assert_eq!(store.torn(), (end - (bytes.len() - 45)) as u64);
        assert_eq!((store.get(&[8]).unwrap(), store.get(&[9]).unwrap()), (Some(vec![8; 20]), None));
    }
    // The file grew, but the data did not reach the disk.
    std::fs::write(&log, [&bytes[..], &[0; 100]].concat()).unwrap();
    let store = open(folder.path());
    assert_eq!((store.torn(), store.get(&[9]).unwrap()), (100, Some(vec![9; 20])));
    drop(store);
    // Not even its header reached the disk.
    for start in [&bytes[..20], &[0; 64]] {
        std::fs::write(&log, start).unwrap();
        let mut store = open(folder.path());
        assert_eq!((store.torn(), store.get(&[9]).unwrap()), (start.len() as u64, None));
        store.put(b"again", b"").unwrap();
        drop(store);
        assert_eq!(open(folder.path()).get(b"again").unwrap(), Some(Vec::new()));
    }
    for offset in 0..bytes.len() - 21 {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 1 << (offset % 8);
        std::fs::write(&log, damaged).unwrap();
        let error = Store::open(folder.path(), Options::default()).unwrap_err().to_string();
        assert!(error.contains("00000001.log"), "{error}");
    }
}

#[test]
fn a_table_with_another_hash_gets_a_new_filter() {
    let folder = tempfile::tempdir().unwrap();
    two_tables(folder.path());
    let keyed = || Options { hasher: Some(Hasher::keyed([7; 16])), ..Options::default() };
    let mut store = Store::open(folder.path(), keyed()).unwrap();
    assert_eq!(store.get(b"old 007").unwrap(), Some(vec![7; 40]));
    store.merge(0..2).unwrap();
    drop(store);
    let store = Store::open(folder.path(), keyed()).unwrap();
    assert_eq!(store.get(b"new 007").unwrap(), Some(vec![7; 40]));
    (0..1000).for_each(|n| assert_eq!(store.get(format!("none {n}").as_bytes()).unwrap(), None));
    assert!(store.counts().wasted < 40, "{:?}", store.counts());
}

#[test]
fn invalid_arguments_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new");
    for rate in [0.0, 1e-30, 1.0, f64::NAN] {
        assert!(Store::open(&new, Options { rate, ..Options::default() }).is_err());
        assert!(!new.exists(), "nothing is created with a rate of {rate}");
    }
    let mut store = open(folder.path());
    assert!(store.put(&vec![0; MAX_KEY + 1], b"").is_err());
    store.put(&vec![0; MAX_KEY], b"").unwrap();
    store.put(b"", b"the empty key is a key").unwrap();
    assert!(store.merge(0..1).is_err(), "there is none yet");
    store.flush().unwrap();
    store.flush().unwrap();
    assert_eq!(store.tables().len(), 1, "an empty flush writes no table");
    assert_eq!(store.get(b"").unwrap(), Some(b"the empty key is a key".to_vec()));
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(Store::open(file, Options::default()).is_err());
}

#[test]
fn the_format_matches_the_golden_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = with_rate(folder.path(), 0.01, 0);
    for n in 0..120u32 {
        let key = format!("key {n:04}");
        if n % 10 == 3 {
            store.delete(key.as_bytes()).unwrap();
        } else {
            store.put(key.as_bytes(), format!("value {n} ").repeat(5).as_bytes()).unwrap();
        }
    }
    let log = std::fs::read(&files(folder.path(), "log")[0]).unwrap();
    store.flush().unwrap();
    let table = std::fs::read(&files(folder.path(), "table")[0]).unwrap();
    for (name, bytes) in [("words.table", table), ("words.log", log)] {
        let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
        assert!(std::fs::read(path).expect("the golden file") == bytes, "{name}");
    }
    // Files of an earlier version are still readable.
    for (golden, name) in [("words.table", "00000001-00000001.table"), ("words.log", "00000001.log")] {
        let folder = tempfile::tempdir().unwrap();
        let path = format!("{}/tests/golden/{golden}", env!("CARGO_MANIFEST_DIR"));
        std::fs::copy(path, folder.path().join(name)).unwrap();
        let store = open(folder.path());
        assert_eq!(store.entries().unwrap().count(), 108);
        assert_eq!(store.get(b"key 0003").unwrap(), None);
        assert_eq!(store.get(b"key 0077").unwrap(), Some("value 77 ".repeat(5).into_bytes()));
    }
}

/// A flipped bit in the last record of a log looks like a crash while it was written, which is
/// reported as such. One in the filter of a table is repaired.
#[test]
fn every_single_bit_flip_of_a_golden_file_is_detected_or_repaired() {
    for (golden, name) in [("words.table", "00000001-00000001.table"), ("words.log", "00000001.log")] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let whole = std::fs::read(format!("{}/tests/golden/{golden}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        std::fs::write(&path, &whole).unwrap();
        let read = || {
            let reader = Reader::open(folder.path(), Options::default())?;
            let entries = reader.entries()?.collect::<Result<Vec<_>, _>>()?;
            Ok::<_, umbel_text::Error>((entries, reader.torn()))
        };
        let (right, torn) = read().unwrap();
        assert_eq!((right.len(), torn), (108, 0));
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let mut detected = 0;
        for bit in 0..8 * whole.len() {
            let (at, byte) = (bit / 8, whole[bit / 8]);
            file.write_all_at(&[byte ^ 1 << (bit % 8)], at as u64).unwrap();
            match read() {
                Err(_) => detected += 1,
                Ok((entries, 0)) => assert!(entries == right, "{golden}, bit {bit}"),
                Ok((entries, _)) => {
                    assert!(entries.len() == 107 && right.starts_with(&entries), "{golden}, bit {bit}");
                    detected += 1;
                }
            }
            file.write_all_at(&[byte], at as u64).unwrap();
        }
        assert!(detected > 7 * whole.len(), "{golden}: {detected}");
    }
}

#[test]
fn sharing_memory_by_size_is_optimal() {
    let expected = |rates: &[f64]| rates.iter().sum::<f64>();
    let bits = |keys: &[u64], rates: &[f64]| -> f64 {
        let of = |(keys, rate): (&u64, &f64)| -(*keys as f64) * rate.ln() / std::f64::consts::LN_2.powi(2);
        keys.iter().zip(rates).filter(|(keys, _)| **keys > 0).map(of).sum()
    };
    for (keys, budget) in [
        (vec![1000, 10_000, 100_000], 1e6),
        (vec![5, 5, 5], 100.0),
        (vec![100, 1_000_000], 5000.0),
        (vec![0, 7], 70.0),
    ] {
        let rates = share(&keys, budget).unwrap();
        assert!((bits(&keys, &rates) - budget).abs() < 1e-6 * budget, "{rates:?}");
        let total: u64 = keys.iter().sum();
        let even = (-budget * std::f64::consts::LN_2.powi(2) / total as f64).exp();
        let tables = keys.iter().filter(|keys| **keys > 0).count() as f64;
        assert!(expected(&rates) <= even * tables + 1e-12, "{rates:?} {even}");
        // Moving memory from one table to another never improves the result.
        for (from, to) in [(0, 1), (1, 0)] {
            let mut other = rates.clone();
            let step = budget / 1000.0 * std::f64::consts::LN_2.powi(2);
            if keys[from] == 0 || keys[to] == 0 {
                continue;
            }
            other[from] *= (step / keys[from] as f64).exp();
            other[to] *= (-step / keys[to] as f64).exp();
            assert!(other[from] > 1.0 || expected(&other) >= expected(&rates) - 1e-12, "{rates:?} {other:?}");
        }
    }
    assert!(share(&[100, 200], 0.0).unwrap().iter().all(|rate| (rate - 1.0).abs() < 1e-9));
    assert!(share(&[], 5.0).unwrap().is_empty());
    assert!(share(&[1], f64::NAN).is_err() && share(&[1], -1.0).is_err());
}
