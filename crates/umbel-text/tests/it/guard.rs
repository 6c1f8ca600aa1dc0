//! A guard answers like its store, regardless of what happens to the store, and queries it less
//! often.

#[path = "../../examples/guard_sqlite/store.rs"]
mod sqlite;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use sqlite::Words;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, SystemTime};
use umbel::{Blocked, Bloom, Counting, Kind, Scalable};
use umbel_text::guard::{Change, Files, Guard, Lookup, NoFilter, Renewal};

/// The contents of a store, shared by all that change it.
#[derive(Default)]
struct Shared {
    map: BTreeMap<u64, u64>,
    /// The number of changes by others.
    version: u64,
    /// The operation that fails next.
    fails: Option<Operation>,
    lookups: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Get,
    Version,
    Keys,
    InsertBefore,
    InsertAfter,
}

#[derive(Clone, Default)]
struct Model(Rc<RefCell<Shared>>);

#[derive(Debug, PartialEq, Eq)]
struct Refused;

impl Model {
    fn check(&self, operation: Operation) -> Result<(), Refused> {
        let mut shared = self.0.borrow_mut();
        if shared.fails == Some(operation) {
            shared.fails = None;
            return Err(Refused);
        }
        Ok(())
    }
}

impl Lookup for Model {
    type Key = u64;
    type Value = u64;
    type Error = Refused;
    type Version = u64;

    fn get(&mut self, key: &u64) -> Result<Option<u64>, Refused> {
        self.check(Operation::Get)?;
        let mut shared = self.0.borrow_mut();
        shared.lookups += 1;
        Ok(shared.map.get(key).copied())
    }

    fn version(&mut self) -> Result<Option<u64>, Refused> {
        self.check(Operation::Version)?;
        Ok(Some(self.0.borrow().version))
    }

    fn keys(&mut self, each: &mut dyn FnMut(&u64)) -> Result<bool, Refused> {
        self.check(Operation::Keys)?;
        self.0.borrow().map.keys().for_each(each);
        Ok(true)
    }
}

impl Change for Model {
    fn insert(&mut self, key: &u64, value: u64) -> Result<(), Refused> {
        self.check(Operation::InsertBefore)?;
        self.0.borrow_mut().map.insert(*key, value);
        self.check(Operation::InsertAfter)
    }

    fn remove(&mut self, key: &u64) -> Result<bool, Refused> {
        Ok(self.0.borrow_mut().map.remove(key).is_some())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Get(u64),
    Insert(u64, u64),
    Remove(u64),
    ByOthers(u64, Option<u64>),
    Fail(Operation),
    Renew,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..40u64;
    let operation = prop_oneof![
        Just(Operation::Get),
        Just(Operation::Version),
        Just(Operation::Keys),
        Just(Operation::InsertBefore),
        Just(Operation::InsertAfter)
    ];
    let step = prop_oneof![
        12 => key.clone().prop_map(Step::Get),
        4 => (key.clone(), any::<u64>()).prop_map(|(key, value)| Step::Insert(key, value)),
        3 => key.clone().prop_map(Step::Remove),
        2 => (key, any::<Option<u64>>()).prop_map(|(key, value)| Step::ByOthers(key, value)),
        2 => operation.prop_map(Step::Fail),
        1 => Just(Step::Renew),
    ];
    prop::collection::vec(step, 1..200)
}

fn counting(keys: u64) -> umbel::Result<Counting> {
    Counting::with_capacity(keys, 0.3)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600, rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn answers_match_the_store_despite_changes_and_failures(
        steps in steps(),
        renewal in prop_oneof![
            Just(Renewal::WhenItPays), Just(Renewal::Never), (0..5u64).prop_map(Renewal::After)
        ],
    ) {
        let model = Model::default();
        let shared = model.0.clone();
        let mut guard = Guard::new(model, counting).unwrap().renewing(renewal);
        for step in steps {
            match step {
                Step::Get(key) => {
                    let expected = shared.borrow().map.get(&key).copied();
                    match guard.get(&key) {
                        Ok(found) => prop_assert_eq!(found, expected),
                        Err(Refused) => prop_assert!(shared.borrow().fails.is_none()),
                    }
                }
                Step::Insert(key, value) => {
                    let _ = guard.insert(&key, value);
                }
                Step::Remove(key) => {
                    let expected = shared.borrow().map.contains_key(&key);
                    prop_assert_eq!(guard.remove_from_both(&key), Ok(expected));
                }
                Step::ByOthers(key, value) => {
                    let mut shared = shared.borrow_mut();
                    shared.version += 1;
                    match value {
                        Some(value) => shared.map.insert(key, value),
                        None => shared.map.remove(&key),
                    };
                }
                Step::Fail(operation) => shared.borrow_mut().fails = Some(operation),
                Step::Renew => {
                    let _ = guard.renew();
                }
            }
        }
        let stats = guard.stats();
        let sum = stats.skipped + stats.found + stats.wasted + stats.passed + stats.failed;
        prop_assert_eq!(stats.asked, sum);
    }
}

fn model(keys: std::ops::Range<u64>) -> Model {
    let model = Model::default();
    model.0.borrow_mut().map = keys.map(|key| (key, key)).collect();
    model
}

#[test]
fn absent_keys_are_rarely_looked_up() {
    let model = model(0..10_000);
    let shared = model.0.clone();
    let mut guard = Guard::with_rate(model, 0.01).unwrap();
    (0..110_000).for_each(|key| assert_eq!(guard.get(&key).unwrap(), (key < 10_000).then_some(key)));
    let stats = guard.stats();
    assert_eq!((stats.asked, stats.found, stats.passed, stats.failed), (110_000, 10_000, 0, 0));
    // Its capacity is twice the number of keys, so that its rate is below one in a hundred.
    assert!(stats.wasted < 1000 && stats.skipped == 100_000 - stats.wasted, "{stats:?}");
    assert_eq!(shared.borrow().lookups, 10_000 + stats.wasted);
}

#[test]
fn crafted_keys_reach_the_store_no_more_often_than_others() {
    let mut guard = Guard::with_rate(model(0..1000), 0.01).unwrap();
    // An attacker builds the same filter with the public hash, and searches for keys that pass it.
    let mut filter = Bloom::<Blocked>::with_capacity(guard.filter().stats().capacity.unwrap(), 0.01).unwrap();
    filter.insert_batch(&(0..1000).collect::<Vec<u64>>());
    let crafted: Vec<u64> = (1000..).filter(|key| filter.contains(key)).take(1000).collect();
    crafted.iter().for_each(|key| assert_eq!(guard.get(key), Ok(None)));
    // At half its capacity the filter has a rate far below 1 %, of which 10 are expected.
    assert!(guard.stats().wasted < 10, "{:?}", guard.stats());
}

#[test]
fn a_full_filter_is_rebuilt_unless_it_grows_by_itself() {
    let mut guard = Guard::with_rate(model(0..0), 0.01).unwrap();
    (0..100_000).for_each(|key| guard.insert(&key, key).unwrap());
    // The capacity starts at 1024 and doubles whenever the filter is full.
    assert_eq!(guard.stats().renewals, 7);
    let rate = guard.filter().stats().rate_now;
    assert!(rate < 0.0105, "{rate}");

    let make = |keys| Scalable::with_capacity(keys, 0.01);
    let mut guard = Guard::new(model(0..0), make).unwrap();
    (0..100_000).for_each(|key| guard.insert(&key, key).unwrap());
    assert_eq!((guard.stats().renewals, guard.filter().kind()), (0, Kind::Scalable));
    (100_000..200_000).for_each(|key| assert_eq!(guard.get(&key), Ok(None)));
    assert!(guard.stats().wasted < 1050, "{:?}", guard.stats());
}

#[test]
fn a_stale_filter_is_bypassed_until_it_is_rebuilt() {
    let model = model(0..10);
    let shared = model.0.clone();
    let mut guard = Guard::with_rate(model, 0.001).unwrap().renewing(Renewal::After(3));
    assert_eq!(guard.get(&50), Ok(None));
    shared.borrow_mut().map.insert(50, 1);
    shared.borrow_mut().version += 1;
    for _ in 0..3 {
        assert_eq!(guard.get(&50), Ok(Some(1)));
    }
    assert_eq!((guard.stats().passed, guard.stats().renewals), (3, 0));
    assert_eq!(guard.get(&50), Ok(Some(1)));
    assert_eq!((guard.stats().passed, guard.stats().renewals, guard.stats().found), (3, 1, 1));
}

#[test]
fn a_key_that_the_store_refused_costs_only_a_wasted_lookup() {
    let model = model(0..0);
    let shared = model.0.clone();
    let mut guard = Guard::with_rate(model, 0.001).unwrap();
    shared.borrow_mut().fails = Some(Operation::InsertBefore);
    assert_eq!(guard.insert(&1, 1), Err(Refused));
    assert_eq!(guard.get(&1), Ok(None));
    assert_eq!(guard.stats().wasted, 1);
}

#[test]
fn a_counting_filter_forgets_removed_keys() {
    let make = |keys| Counting::with_capacity(keys, 0.001);
    let mut guard = Guard::new(model(0..1000), make).unwrap();
    (0..1000).for_each(|key| assert_eq!(guard.remove_from_both(&key), Ok(true)));
    assert_eq!(guard.remove_from_both(&1), Ok(false));
    (0..1000).for_each(|key| assert_eq!(guard.get(&key), Ok(None)));
    assert!(guard.stats().skipped > 990);
    let mut guard = Guard::new(model(0..1000), make).unwrap();
    (0..1000).for_each(|key| assert_eq!(guard.remove(&key), Ok(true)));
    (0..1000).for_each(|key| assert_eq!(guard.get(&key), Ok(None)));
    assert_eq!(guard.stats().wasted, 1000);
}

#[test]
fn a_supplied_filter_is_used_while_it_is_current() {
    let mut filter = umbel::Bloom::<umbel::Standard>::with_capacity(100, 0.001).unwrap();
    filter.insert_batch(&[0u64, 1, 2]);
    let model = model(0..3);
    let shared = model.0.clone();
    let mut guard = Guard::with_filter(model, filter, 0);
    assert_eq!((guard.get(&1), guard.get(&9)), (Ok(Some(1)), Ok(None)));
    assert_eq!((guard.stats().found, guard.stats().skipped), (1, 1));
    shared.borrow_mut().version = 1;
    assert_eq!(guard.get(&9), Ok(None));
    assert_eq!(guard.stats().passed, 1);
    assert!(matches!(guard.renew(), Err(NoFilter::NoKeys)));
}

#[test]
fn the_time_saved_is_that_of_the_skipped_lookups() {
    struct Slow;
    impl Lookup for Slow {
        type Key = u64;
        type Value = ();
        type Error = Refused;
        type Version = ();
        fn get(&mut self, key: &u64) -> Result<Option<()>, Refused> {
            std::thread::sleep(Duration::from_millis(1));
            Ok((*key < 20).then_some(()))
        }
        fn version(&mut self) -> Result<Option<()>, Refused> {
            Ok(Some(()))
        }
        fn keys(&mut self, each: &mut dyn FnMut(&u64)) -> Result<bool, Refused> {
            (0..20).for_each(|key| each(&key));
            Ok(true)
        }
    }
    let mut guard = Guard::with_rate(Slow, 0.001).unwrap();
    (0..220).for_each(|key| assert_eq!(guard.get(&key), Ok((key < 20).then_some(()))));
    let saved = guard.stats().seconds_saved();
    assert!(guard.stats().skipped > 190 && saved > 0.15, "{saved} {:?}", guard.stats());
}

/// A generator of pseudorandom numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        umbel::hash::reduce(x ^ x >> 31, end)
    }
}

#[test]
fn a_guarded_sqlite_table_answers_a_million_operations_like_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words.db");
    let mut plain = Words::open(&path).unwrap();
    let mut guard = Guard::with_rate(Words::open(&path).unwrap(), 0.01).unwrap();
    let mut draw = Draw(1);
    let mut missed = 0;
    for operation in 0..1_000_000u64 {
        let word = draw.below(30_000).to_string();
        match draw.below(1000) {
            0..=7 => guard.insert(&word, operation.to_le_bytes().to_vec()).unwrap(),
            8..=11 => {
                let was_there = plain.get(&word).unwrap().is_some();
                assert_eq!(guard.remove(&word).unwrap(), was_there);
            }
            // Changes by another connection, and by this one without its guard.
            12 => plain.insert(&word, operation.to_le_bytes().to_vec()).unwrap(),
            13 => drop(plain.remove(&word).unwrap()),
            14 => {
                let insert = "INSERT OR REPLACE INTO words VALUES (?1, x'00')";
                guard.store_mut().connection().execute(insert, [&word]).unwrap();
            }
            _ => {
                let with = guard.get(&word).unwrap();
                let without = plain.get(&word).unwrap();
                missed += u64::from(with != without);
            }
        }
    }
    assert_eq!(missed, 0);
    let stats = guard.stats();
    assert!(stats.renewals > 100 && stats.skipped > 200_000, "{stats:?}");
}

#[test]
fn guarded_files_added_by_others_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let settling = Duration::from_secs(60);
    let files = || Files::new(folder.path()).settling(settling);
    // Makes the folder look unchanged for some time.
    let settle = |seconds: u64| {
        let time = SystemTime::now() - Duration::from_secs(100_000 - seconds);
        std::fs::File::open(folder.path()).unwrap().set_modified(time).unwrap();
    };
    let mut plain = files();
    (0..50).for_each(|number| plain.insert(&number.to_string(), vec![number]).unwrap());
    settle(0);
    let mut guard = Guard::with_rate(files(), 0.001).unwrap().renewing(Renewal::After(0));
    let mut draw = Draw(2);
    for round in 1..500 {
        let name = draw.below(200).to_string();
        match draw.below(10) {
            0 => guard.insert(&name, b"by the guard".to_vec()).unwrap(),
            1 => std::fs::write(folder.path().join(&name), "by others").unwrap(),
            2 => {
                let was_there = folder.path().join(&name).exists();
                assert_eq!(guard.remove(&name).unwrap(), was_there);
            }
            _ => {}
        }
        // A fresh folder has no version; once settled, it has a new one.
        if draw.below(4) == 0 {
            settle(round);
        }
        for _ in 0..5 {
            let name = draw.below(200).to_string();
            assert_eq!(guard.get(&name).unwrap(), plain.get(&name).unwrap());
        }
    }
    let stats = guard.stats();
    assert!(stats.renewals > 20 && stats.skipped > 100 && stats.passed > 100, "{stats:?}");
}

#[test]
fn file_names_cannot_escape_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "x").unwrap();
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    let mut files = Files::new(folder.path().join("inner"));
    for name in ["../secret", "/etc/passwd", "", ".", "..", "a/b", "a/"] {
        assert!(files.get(name).is_err(), "{name:?}");
        assert!(files.insert(name, Vec::new()).is_err() && files.remove(name).is_err(), "{name:?}");
    }
    assert!(Guard::with_rate(Files::new(folder.path().join("nowhere")), 0.01).is_err());
}
