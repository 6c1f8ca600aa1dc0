//! A store returns exactly what was put into it, or nothing: after a restart, after damage, after a
//! kill, and during concurrent writes.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use umbel_cache::store::{Options, Store};
use umbel_cache::{CacheKey, Error, PublishTrigger, View};

fn key(number: u32) -> CacheKey {
    CacheKey::from_url(&format!("http://example.org/{number}"))
}

/// Returns a body in which every part shows its number and version.
fn body(number: u32, version: u32, len: usize) -> Vec<u8> {
    let mut bytes = format!("{number}:{version}:").into_bytes().repeat(len / 4 + 1);
    bytes.truncate(len);
    bytes
}

fn put(store: &Arc<Store>, number: u32, variant: u64, head: &[u8], bytes: &[u8]) {
    let mut writer = store.begin(&key(number), variant);
    bytes.chunks(10_000).for_each(|piece| writer.write(piece).unwrap());
    writer.commit(head.to_vec()).unwrap();
}

/// Returns the contents of a store: head and body by number and variant.
fn contents(store: &Store, numbers: u32) -> BTreeMap<(u32, u64), (Vec<u8>, Vec<u8>)> {
    let mut all = BTreeMap::new();
    for number in 0..numbers {
        for entry in store.find(&key(number)) {
            let body = store.body(&entry).unwrap().bytes().unwrap().to_vec();
            all.insert((number, entry.variant()), (entry.head_bytes().to_vec(), body));
        }
    }
    all
}

/// Checks that the summary and the digest match the keys of the store.
fn check_summary(store: &Store, numbers: u32) {
    store.publish(&PublishTrigger::default(), Duration::MAX).unwrap();
    let mut view = View::default();
    view.apply(&store.summary_since(None)).unwrap();
    let held: HashSet<CacheKey> = store.keys().into_iter().collect();
    assert_eq!(view.key_count(), held.len() as u64);
    assert!(held.iter().all(|key| view.contains(key) && store.may_contain(key)));
    let wrong = (0..numbers).filter(|number| !held.contains(&key(*number)) && view.contains(&key(*number)));
    assert!(wrong.count() <= 2 + numbers as usize / 100, "there are few false positives");
    let digest = store.digest(5).unwrap();
    assert!(held.iter().all(|key| digest.contains(key)));
}

#[derive(Clone, Debug)]
enum Step {
    Put(u32, u64, usize),
    Give(u32, u64, usize),
    Update(u32, u64),
    Remove(u32, u64),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let (number, variant) = (0..12u32, 0..3u64);
    let len = prop_oneof![0..100usize, 60_000..70_000usize, Just(200_000)];
    prop_oneof![
        4 => (number.clone(), variant.clone(), len.clone()).prop_map(|(n, v, l)| Step::Put(n, v, l)),
        1 => (number.clone(), variant.clone(), len).prop_map(|(n, v, l)| Step::Give(n, v, l)),
        2 => (number.clone(), variant.clone()).prop_map(|(n, v)| Step::Update(n, v)),
        2 => (number, variant).prop_map(|(n, v)| Step::Remove(n, v)),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_is_a_map_that_outlives_its_process(steps in proptest::collection::vec(step(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { max_memory: 100_000, ..Options::default() };
        let mut store = Some(Arc::new(Store::open(folder.path(), &options).unwrap()));
        let mut expected = BTreeMap::new();
        for (version, step) in steps.into_iter().enumerate() {
            let open = store.as_ref().unwrap();
            let entry = |number, variant| {
                open.find(&key(number)).into_iter().find(|entry| entry.variant() == variant)
            };
            match step {
                Step::Put(number, variant, len) => {
                    let bytes = body(number, version as u32, len);
                    put(open, number, variant, b"first", &bytes);
                    expected.insert((number, variant), (b"first".to_vec(), bytes));
                }
                // A writer that is dropped leaves the previous response.
                Step::Give(number, variant, len) => {
                    let mut writer = open.begin(&key(number), variant);
                    writer.write(&body(number, 0, len)).unwrap();
                }
                Step::Update(number, variant) => if let Some(entry) = entry(number, variant) {
                    let head = format!("version {version}").into_bytes();
                    open.update_head(&entry, head.clone()).unwrap();
                    expected.get_mut(&(number, variant)).unwrap().0 = head;
                },
                Step::Remove(number, variant) => if let Some(entry) = entry(number, variant) {
                    prop_assert!(open.remove(&entry) && !open.remove(&entry));
                    expected.remove(&(number, variant));
                },
                Step::Reopen => {
                    drop(store.take());
                    store = Some(Arc::new(Store::open(folder.path(), &options).unwrap()));
                }
            }
            let open = store.as_ref().unwrap();
            prop_assert!(contents(open, 12) == expected);
            prop_assert_eq!(open.stats().responses, expected.len() as u64);
            prop_assert!(open.stats().memory <= 100_000 + 65_536);
        }
        check_summary(store.as_ref().unwrap(), 12);
        drop(store.take());
        // The files on disk are exactly those that were counted.
        let again = Arc::new(Store::open(folder.path(), &options).unwrap());
        let blocks = |file: &PathBuf| file.metadata().unwrap().len().next_multiple_of(4096);
        let on_disk: u64 = files(folder.path()).iter().map(blocks).sum();
        prop_assert_eq!((on_disk, again.stats().damaged), (again.stats().bytes, 0));
    }
}

/// Returns all files of responses in a store.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for room in ["heads", "bodies", "new"] {
        let mut folders = vec![folder.join(room)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { found.push(path) }
            }
        }
    }
    found
}

#[test]
fn damaged_responses_are_never_returned() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(folder.path(), &Options::default()).unwrap());
    put(&store, 0, 0, b"small", &body(0, 0, 100));
    put(&store, 1, 0, b"large", &body(1, 0, 100_000));
    let whole = contents(&store, 2);
    drop(store);
    let mut given = 0;
    for file in files(folder.path()) {
        let original = std::fs::read(&file).unwrap();
        let step = original.len() / 60 + 1;
        for at in (0..original.len()).step_by(step) {
            for cut in [false, true] {
                let mut bytes = original.clone();
                if cut {
                    bytes.truncate(at)
                } else {
                    bytes[at] ^= 16
                }
                let other = tempfile::tempdir().unwrap();
                copy(folder.path(), other.path());
                std::fs::write(other.path().join(file.strip_prefix(folder.path()).unwrap()), &bytes).unwrap();
                let store = Arc::new(Store::open(other.path(), &Options::default()).unwrap());
                for number in 0..2 {
                    for entry in store.find(&key(number)) {
                        let (head, body) = &whole[&(number, 0)];
                        match store.body(&entry).and_then(|body| body.bytes()) {
                            Ok(found) => {
                                assert!(found == body && entry.head_bytes() == head, "{file:?} at {at}");
                                given += 1;
                            }
                            Err(error) => assert!(matches!(error, Error::Damaged(_)), "{error:?}"),
                        }
                    }
                }
                // The damaged response was removed.
                assert_eq!((store.stats().responses, store.stats().damaged), (1, 1), "{file:?} at {at}");
            }
        }
    }
    assert!(given > 200, "the undamaged one is returned: {given}");
}

fn copy(from: &Path, to: &Path) {
    // The marker file is not one of the files of responses.
    for file in files(from).into_iter().chain([from.join("umbel-cache")]) {
        let target = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(&file, target).unwrap();
    }
}

#[test]
fn rarely_used_responses_are_evicted() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { max_bytes: 1_000_000, ..Options::default() };
    let store = Arc::new(Store::open(folder.path(), &options).unwrap());
    for number in 0..2000 {
        put(&store, number, 0, b"", &body(number, 0, 5000));
        // Some responses are used again and again.
        (0..20).for_each(|popular| drop(store.find(&key(popular))));
        assert!(store.stats().bytes <= 1_000_000);
    }
    let stats = store.stats();
    assert!(stats.responses > 110 && stats.evicted == 2000 - stats.responses, "{stats:?}");
    assert!((0..20).all(|popular| !store.find(&key(popular)).is_empty()), "the popular ones stay");
    check_summary(&store, 2000);
    // A smaller limit evicts responses when the store is opened.
    drop(store);
    let smaller =
        Arc::new(Store::open(folder.path(), &Options { max_bytes: 100_000, ..Options::default() }).unwrap());
    assert!(smaller.stats().bytes <= 100_000 && smaller.stats().responses > 10);
}

#[test]
fn a_folder_belongs_to_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(folder.path(), &Options::default()).unwrap());
    let error = Store::open(folder.path(), &Options::default()).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error:?}");
    assert!(error.to_string().contains("another process"), "{error}");
    drop(store);
    assert!(Store::open(folder.path(), &Options::default()).is_ok());
}

#[test]
fn readers_see_complete_responses_during_writes() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { max_bytes: 3_000_000, max_memory: 200_000, ..Options::default() };
    let store = Arc::new(Store::open(folder.path(), &options).unwrap());
    let stop = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let read = || {
            let (mut seen, mut number) = (0u64, 0);
            while !stop.load(Relaxed) {
                number = (number + 7) % 40;
                for entry in store.find(&key(number)) {
                    // The response may have been removed or replaced meanwhile, but a returned body
                    // is complete.
                    let Ok(body) = store.body(&entry).and_then(|body| body.bytes()) else { continue };
                    let version: u32 = str::from_utf8(entry.head_bytes()).unwrap().parse().unwrap();
                    assert!(body == self::body(number, version, body.len()));
                    assert_eq!(body.len() as u64, entry.len());
                    seen += 1;
                }
            }
            seen
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        for version in 0..1500u32 {
            let number = version % 40;
            let bytes = body(number, version, if version % 3 == 0 { 150_000 } else { 20_000 });
            put(&store, number, 0, version.to_string().as_bytes(), &bytes);
        }
        stop.store(true, Relaxed);
        readers.map(|reader| reader.join().unwrap()).into_iter().sum::<u64>()
    });
    assert!(seen > 1000, "{seen}");
}

const FOLDER: &str = "UMBEL_TEST_STORE";

/// Writes until it is killed. The next test runs this one in a process of its own.
#[test]
fn writer_to_be_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let options = Options { max_bytes: 2_000_000, ..Options::default() };
    let store = Arc::new(Store::open(Path::new(&folder), &options).unwrap());
    for version in 0.. {
        let number = version * 7919 % 100;
        let bytes = body(number, version, if version % 4 == 0 { 150_000 } else { 3000 });
        put(&store, number, 0, version.to_string().as_bytes(), &bytes);
        if let Some(entry) = store.find(&key(version % 100)).first().filter(|_| version % 5 == 0) {
            let head = entry.head_bytes().to_vec();
            store.update_head(entry, head).unwrap();
        }
    }
}

#[test]
fn after_a_kill_all_responses_are_complete_and_the_summary_matches() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["store::writer_to_be_killed", "--exact", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(60 + 13 * round));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let store = Arc::new(Store::open(folder.path(), &Options::default()).unwrap());
        let all = contents(&store, 100);
        assert_eq!((all.len() as u64, store.stats().damaged), (store.stats().responses, 0));
        assert!(round == 0 || all.len() > 5, "{}", all.len());
        for ((number, _), (head, found)) in all {
            let version = str::from_utf8(&head).unwrap().parse().unwrap();
            assert!(found == body(number, version, found.len()));
        }
        check_summary(&store, 100);
    }
}

#[test]
fn responses_from_before_an_invalidation_are_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(folder.path(), &Options::default()).unwrap());
    for len in [100, 200_000] {
        let count = store.invalidation_count(&key(1));
        let mut late = store.begin(&key(1), 0).unless_invalidated_since(count);
        late.write(&body(1, 0, len)).unwrap();
        put(&store, 1, 0, b"before", &body(1, 1, len));
        let before = store.find(&key(1))[0].clone();
        store.invalidate(&key(1));
        assert!(store.find(&key(1)).is_empty());
        assert!(store.update_head(&before, b"it still holds".to_vec()).unwrap().is_none());
        let error = late.commit(b"late".to_vec()).unwrap_err();
        assert!(matches!(error, Error::Invalidated) && error.to_string().contains("changed"), "{error:?}");
        assert!(store.find(&key(1)).is_empty());
        // A response requested now is stored; the head of a replaced one cannot be updated.
        put(&store, 1, 0, b"first", &body(1, 2, len));
        let first = store.find(&key(1))[0].clone();
        put(&store, 1, 0, b"second", &body(1, 3, len));
        assert!(store.update_head(&first, b"first again".to_vec()).unwrap().is_none());
        let second = &store.find(&key(1))[0];
        assert_eq!(second.head_bytes(), b"second");
        assert!(store.body(second).unwrap().bytes().unwrap() == body(1, 3, len));
        assert!(store.update_head(second, b"second again".to_vec()).unwrap().is_some());
    }
    let bodies = std::fs::read_dir(folder.path().join("bodies")).unwrap();
    let left: usize = bodies.map(|inner| std::fs::read_dir(inner.unwrap().path()).unwrap().count()).sum();
    assert_eq!(left, 1, "bodies without an entry are removed");
}

#[test]
fn a_folder_with_other_files_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let mail = folder.path().join("new/letter");
    std::fs::create_dir(folder.path().join("new")).unwrap();
    std::fs::write(&mail, "dear").unwrap();
    let error = Store::open(folder.path(), &Options::default()).unwrap_err();
    assert!(matches!(error, Error::NotACache { .. }), "{error:?}");
    assert!(error.to_string().contains("not a cache"), "{error}");
    assert_eq!(std::fs::read_to_string(mail).unwrap(), "dear");
}

/// Symbolic links in the folder of a store are not followed.
#[test]
fn links_and_other_files_in_the_folder_are_not_touched() {
    let (folder, precious) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = precious.path().join("precious");
    std::fs::write(&file, "precious").unwrap();
    drop(Store::open(folder.path(), &Options::default()).unwrap());
    for room in ["heads/zz", "bodies/zz", "new/zz"] {
        std::os::unix::fs::symlink(precious.path(), folder.path().join(room)).unwrap();
    }
    for room in ["heads", "bodies", "new"] {
        std::fs::create_dir_all(folder.path().join(room).join("ab/folder")).unwrap();
        std::os::unix::fs::symlink(&file, folder.path().join(room).join("ab/link")).unwrap();
    }
    let store = Arc::new(Store::open(folder.path(), &Options::default()).unwrap());
    put(&store, 1, 0, b"", &body(1, 0, 100_000));
    assert_eq!((store.stats().responses, store.stats().damaged), (1, 0));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}

/// A link in place of a folder of the store would choose the files that the store deletes.
#[test]
fn a_link_in_place_of_a_folder_is_refused() {
    for room in ["heads", "bodies", "new", "heads/ab", "bodies/0f"] {
        let (folder, precious) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(precious.path().join("ab")).unwrap();
        for file in ["precious", "ab/precious"] {
            std::fs::write(precious.path().join(file), "precious").unwrap();
        }
        drop(Store::open(folder.path(), &Options::default()).unwrap());
        let link = folder.path().join(room);
        let _ = std::fs::remove_dir(&link);
        std::os::unix::fs::symlink(precious.path(), &link).unwrap();
        let error = Store::open(folder.path(), &Options::default()).unwrap_err();
        let reason = std::error::Error::source(&error).unwrap().to_string();
        assert!(reason.contains(room) && reason.contains("symbolic link"), "{room}: {reason}");
        for file in ["precious", "ab/precious"] {
            assert_eq!(std::fs::read_to_string(precious.path().join(file)).unwrap(), "precious", "{room}");
        }
    }
    // Nor are links in place of files.
    for name in ["lock", "umbel-cache"] {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        drop(Store::open(folder.path(), &Options::default()).unwrap());
        std::fs::remove_file(folder.path().join(name)).unwrap();
        std::os::unix::fs::symlink(other.path().join("made"), folder.path().join(name)).unwrap();
        assert!(Store::open(folder.path(), &Options::default()).is_err(), "{name}");
        assert!(!other.path().join("made").exists(), "{name}");
    }
    // The path of the store itself may have links.
    let (real, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let link = elsewhere.path().join("cache");
    std::os::unix::fs::symlink(real.path(), &link).unwrap();
    assert!(Store::open(&link, &Options::default()).is_ok());
}

/// Links to stored responses that are replaced while the store is closed are not read.
#[test]
fn responses_are_not_read_through_links() {
    for index in 0..3 {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = Arc::new(Store::open(folder.path(), &Options::default()).unwrap());
        put(&store, 0, 0, b"small", &body(0, 0, 100));
        put(&store, 1, 0, b"large", &body(1, 0, 100_000));
        drop(store);
        let (file, moved) = (files(folder.path()).remove(index), other.path().join("moved"));
        let contents = std::fs::read(&file).unwrap();
        std::fs::rename(&file, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &file).unwrap();
        let store = Store::open(folder.path(), &Options::default()).unwrap();
        assert_eq!(store.stats().responses, 1, "{file:?}");
        assert!(std::fs::read(&moved).unwrap() == contents, "{file:?}");
    }
}

#[test]
fn only_the_owner_has_access_to_a_store() {
    let parent = tempfile::tempdir().unwrap();
    let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
    let (new, wide) = (parent.path().join("new/cache"), parent.path().join("wide"));
    std::fs::create_dir(&wide).unwrap();
    std::fs::set_permissions(&wide, std::fs::Permissions::from_mode(0o777)).unwrap();
    for folder in [new, wide] {
        let store = Arc::new(Store::open(&folder, &Options::default()).unwrap());
        put(&store, 0, 0, b"small", &body(0, 0, 100));
        put(&store, 1, 0, b"large", &body(1, 0, 100_000));
        let mut writer = store.begin(&key(2), 0);
        writer.write(&body(2, 0, 100_000)).unwrap();
        assert_eq!(mode(&folder), 0o700);
        for file in files(&folder).into_iter().chain(["lock", "umbel-cache"].map(|name| folder.join(name))) {
            assert_eq!(mode(&file), 0o600, "{file:?}");
            assert_eq!(mode(file.parent().unwrap()), 0o700, "{file:?}");
        }
        assert_eq!(files(&folder).len(), 4, "two heads, a body, and one that is being written");
    }
}

#[test]
fn a_folder_of_another_user_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // Only the administrator can give a folder away. Others try one that is not theirs.
    let foreign = match std::os::unix::fs::chown(folder.path(), Some(12_345), None) {
        Ok(()) => folder.path().to_owned(),
        Err(_) => PathBuf::from("/proc/1"),
    };
    let error = Store::open(&foreign, &Options::default()).unwrap_err();
    let is_refused = matches!(error, Error::NotOwned { .. } | Error::NotACache { .. });
    assert!(is_refused, "{error:?}");
    if foreign == folder.path() {
        assert!(error.to_string().contains("belongs to another user"), "{error}");
        assert_eq!(std::fs::read_dir(&foreign).unwrap().count(), 0);
    }
}

#[test]
fn removed_subfolders_are_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(folder.path(), &Options::default()).unwrap());
    for room in ["heads", "bodies", "new"] {
        std::fs::remove_dir_all(folder.path().join(room)).unwrap();
    }
    for (number, len) in [(1, 100), (2, 200_000)] {
        put(&store, number, 0, b"", &body(number, 0, len));
        let found = store.find(&key(number));
        assert!(store.body(&found[0]).unwrap().bytes().unwrap() == body(number, 0, len));
    }
}
