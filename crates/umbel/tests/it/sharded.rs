//! A filter in shards answers like one filter, has the same files whichever processes build it, and
//! never answers without one of its shards.

use std::fs;
use std::path::Path;
use std::time::Duration;
use umbel::error::FormatError;
use umbel::hash::KeyRing;
use umbel::sharded::{self, FolderLock, MANIFEST, ShardPlan, ShardedBuilder, ShardedUpdate, shard_path};
use umbel::{Error, Hasher, Kind, Sharded, Spec, file};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const KEYS: u64 = 500_000;
const SHARDS: u32 = 5;

fn plan(kind: Kind, hasher: Hasher) -> ShardPlan {
    ShardPlan::new(kind, &Spec::new(KEYS, 0.01).unwrap().with_hasher(hasher), SHARDS).unwrap()
}

fn keys(from: u64, to: u64) -> Vec<u64> {
    (from..to).collect()
}

/// Returns the files of a folder with their contents, in order.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// Builds a filter of the first keys in a folder.
fn build(folder: &Path, plan: ShardPlan) -> Sharded {
    let builder = ShardedBuilder::new(plan).unwrap();
    builder.insert_batch(&keys(0, KEYS)).unwrap();
    builder.save(folder).unwrap();
    Sharded::open(folder).unwrap()
}

#[test]
fn every_key_is_a_member_and_the_rate_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    for kind in [Kind::Standard, Kind::Partitioned, Kind::Blocked] {
        let filter = build(&folder.path().join(kind.to_string()), plan(kind, Hasher::fast(0)));
        assert_eq!(filter.contains_batch(&keys(0, KEYS)).unwrap().count(), KEYS, "{kind}");
        let strangers = keys(KEYS, KEYS + 1_000_000);
        let answers = filter.contains_batch(&strangers).unwrap();
        let rate = answers.count() as f64 / strangers.len() as f64;
        let shards = filter.shards().iter();
        let rates: Vec<f64> = shards.map(|shard| shard.verified().unwrap().stats().rate_now).collect();
        let expected = rates.iter().sum::<f64>() / rates.len() as f64;
        // The standard deviation over a million strangers is 1 %. Shards have room for a few keys
        // more than they have, so the rate is below 1 %.
        assert!((rate / expected - 1.0).abs() < 0.05, "{kind}: {rate} and not {expected}");
        assert!(expected < 0.01, "{kind}: {expected}");
        for (i, stranger) in strangers.iter().enumerate().step_by(997) {
            assert_eq!(filter.contains(stranger).unwrap(), answers.get(i).unwrap(), "{kind}: {stranger}");
        }
        assert_eq!((filter.inserted(), filter.is_whole()), (Some(KEYS), true));
        let stats = filter.stats().unwrap();
        assert!((stats.rate_now / expected - 1.0).abs() < 1e-12, "{kind}: {}", stats.rate_now);
        assert_eq!((stats.capacity, stats.rate_target, stats.inserted), (Some(KEYS), Some(0.01), Some(KEYS)));
        let (keys, estimate) = (KEYS as f64, stats.estimate.estimate().unwrap());
        assert!((estimate.value - keys).abs() < 5.0 * estimate.standard_error, "{kind}: {estimate}");
        let cells: u64 = filter.shards().iter().map(|shard| shard.verified().unwrap().stats().cells).sum();
        assert_eq!(stats.cells, cells, "{kind}");
    }
}

/// Threads, the order of the keys and the sizes of batches leave no trace in the files.
#[test]
fn the_files_are_the_same_whichever_processes_build_them() {
    let folder = tempfile::tempdir().unwrap();
    let (one, many, apart) =
        (folder.path().join("one"), folder.path().join("many"), folder.path().join("apart"));
    let plan = plan(Kind::Blocked, Hasher::fast(0));
    build(&one, plan.clone());

    let builder = ShardedBuilder::new(plan.clone()).unwrap();
    std::thread::scope(|scope| {
        for part in 0..4 {
            let builder = &builder;
            scope.spawn(move || {
                let mut part: Vec<u64> = (0..KEYS).filter(|key| key % 4 == part).collect();
                part.reverse();
                part.chunks(1 + 777).for_each(|keys| builder.insert_batch(keys).unwrap());
            });
        }
    });
    builder.save(&many).unwrap();
    assert!(contents(&one) == contents(&many));

    // Each shard by a process of its own.
    fs::create_dir(&apart).unwrap();
    for shard in 0..plan.shards() {
        let mut filter = plan.build_shard().unwrap();
        let digests = plan.hasher().digest_batch(&keys(0, KEYS));
        for digest in digests.into_iter().filter(|digest| plan.shard_of(*digest) == shard) {
            filter.insert_digest(digest).unwrap();
        }
        assert!(plan.seal(&apart).is_err(), "a shard is missing");
        file::save(shard_path(&apart, shard), &filter, &file::Options::default()).unwrap();
    }
    plan.seal(&apart).unwrap();
    assert!(contents(&one) == contents(&apart));
}

#[test]
fn a_shard_that_is_damaged_missing_or_of_another_build_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("filter"), folder.path().join("other"));
    build(&path, plan(Kind::Blocked, Hasher::fast(0)));
    let (victim, all) = (shard_path(&path, 3), keys(0, KEYS));
    let intact = fs::read(&victim).unwrap();
    let name = victim.display().to_string();

    // A part of the body: found when a key needs it.
    let mut damaged = intact.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 16;
    fs::write(&victim, &damaged).unwrap();
    let error = Sharded::open(&path).unwrap().contains_batch(&all).unwrap_err();
    assert!(error.to_string().contains(&name), "{error}");
    assert!(matches!(error, Error::Format { problem: FormatError::Damaged { .. }, .. }));

    // Everything else: found when the filter is opened.
    let builder = ShardedBuilder::new(plan(Kind::Blocked, Hasher::fast(0))).unwrap();
    builder.insert_batch(&keys(1000, KEYS)).unwrap();
    builder.save(&other).unwrap();
    let of_another_build = fs::read(shard_path(&other, 3)).unwrap();
    for bytes in [Some(&intact[..intact.len() - 64]), Some(&of_another_build[..]), None] {
        match bytes {
            Some(bytes) => fs::write(&victim, bytes).unwrap(),
            None => fs::remove_file(&victim).unwrap(),
        }
        let error = Sharded::open(&path).unwrap_err();
        assert!(error.to_string().contains(&name), "{error}");
    }
    fs::write(&victim, &intact).unwrap();
    assert_eq!(Sharded::open(&path).unwrap().contains_batch(&all).unwrap().count(), KEYS);
}

#[test]
fn a_folder_without_a_manifest_is_not_a_filter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter");
    build(&path, plan(Kind::Standard, Hasher::fast(0)));
    let manifest = path.join(MANIFEST);
    let text = fs::read_to_string(&manifest).unwrap();

    // Another build does not replace it, and its shards are untouched.
    let before = contents(&path);
    let empty = ShardedBuilder::new(plan(Kind::Standard, Hasher::fast(0))).unwrap();
    let error = empty.save(&path).unwrap_err();
    assert!(format!("{error:#}").contains("already"), "{error:#}");
    assert!(contents(&path) == before);

    fs::remove_file(&manifest).unwrap();
    let error = Sharded::open(&path).unwrap_err();
    assert!(error.to_string().contains(&manifest.display().to_string()), "{error}");
    assert!(format!("{error:#}").contains("written last; build the filter again"), "{error:#}");
    let error = Sharded::open(folder.path().join("nowhere")).unwrap_err();
    assert!(!format!("{error:#}").contains("written last"), "{error:#}");
    // What an interrupted build left is completed by the next one.
    empty.save(&path).unwrap();
    assert_eq!(Sharded::open(&path).unwrap().inserted(), Some(0));

    fs::write(&manifest, text.replace("kind standard", "kind blocked")).unwrap();
    let error = Sharded::open(&path).unwrap_err();
    assert!(matches!(error, Error::Format { problem: FormatError::Damaged { .. }, .. }), "{error}");
}

#[test]
fn shards_of_another_plan_are_not_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter");
    build(&path, plan(Kind::Blocked, Hasher::fast(0)));
    fs::remove_file(path.join(MANIFEST)).unwrap();
    for other in [plan(Kind::Blocked, Hasher::fast(1)), plan(Kind::Standard, Hasher::fast(0)), {
        ShardPlan::new(Kind::Blocked, &Spec::new(KEYS + 1000, 0.01).unwrap(), SHARDS).unwrap()
    }] {
        let error = other.seal(&path).unwrap_err();
        assert!(format!("{error:#}").contains("another plan"), "{error:#}");
    }
    plan(Kind::Blocked, Hasher::fast(0)).seal(&path).unwrap();
}

#[test]
fn a_keyed_filter_needs_its_secret_unless_it_is_embedded() {
    let folder = tempfile::tempdir().unwrap();
    let hasher = Hasher::keyed([5; 16]);
    let builder = ShardedBuilder::new(plan(Kind::Blocked, hasher.clone())).unwrap();
    builder.insert_batch(&["apple", "pear"]).unwrap();
    let (closed, open) = (folder.path().join("closed"), folder.path().join("open"));
    builder.save(&closed).unwrap();
    builder.save_with(&open, true).unwrap();

    assert!(matches!(Sharded::open(&closed), Err(Error::MissingKey { .. })));
    let mut ring = KeyRing::new();
    ring.insert(hasher);
    assert!(Sharded::open_with(&closed, &ring).unwrap().contains("pear").unwrap());
    assert!(Sharded::open(&open).unwrap().contains("apple").unwrap());
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let spec = Spec::new(1000, 0.01).unwrap();
    for shards in [0, 1025] {
        assert!(ShardPlan::new(Kind::Blocked, &spec, shards).is_err());
    }
    for kind in [Kind::Counting, Kind::Cuckoo, Kind::Fuse, Kind::Scalable, Kind::CountMin] {
        assert!(matches!(ShardPlan::new(kind, &spec, 4), Err(Error::Cannot { .. })), "{kind}");
    }
    assert!(ShardPlan::new(Kind::Standard, &Spec::default(), 4).is_err());
    // Fewer keys than shards, and as many shards as there may be.
    assert_eq!(ShardPlan::new(Kind::Standard, &spec, 1024).unwrap().shard_spec().given().n, Some(6));
    assert_eq!(ShardPlan::new(Kind::Standard, &spec, 1).unwrap().shard_spec().given().n, Some(1000));
}

/// The header of a shard may claim any number of insertions.
#[test]
fn insertions_that_cannot_be_are_added_without_overflow() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(Kind::Blocked, Hasher::default());
    for shard in 0..plan.shards() {
        let mut bytes = file::to_bytes(&plan.build_shard().unwrap(), &file::Options::default()).unwrap();
        bytes[64..72].copy_from_slice(&(u64::MAX - 1).to_le_bytes());
        let end = u32::from_le_bytes(bytes[20..24].try_into().unwrap()) as usize;
        let sum = xxh3_64_with_seed(&bytes[..end - 8], 0x006c_6562_6d75);
        bytes[end - 8..end].copy_from_slice(&sum.to_le_bytes());
        fs::write(shard_path(folder.path(), shard), bytes).unwrap();
    }
    plan.seal(folder.path()).unwrap();
    assert_eq!(Sharded::open(folder.path()).unwrap().inserted(), Some(u64::MAX));
}

#[test]
#[cfg(unix)]
fn a_pipe_instead_of_a_manifest_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(MANIFEST);
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let error = Sharded::open(folder.path()).unwrap_err();
    assert!(format!("{error:#}").contains("not a regular file"), "{error:#}");
}

/// Returns the right to write to a folder, which no other process has.
fn lock(folder: &Path) -> FolderLock {
    FolderLock::acquire(folder, Duration::ZERO).unwrap().expect("nobody else has it")
}

#[test]
fn keys_that_are_added_are_those_of_one_build() {
    let folder = tempfile::tempdir().unwrap();
    let (one, path) = (folder.path().join("one"), folder.path().join("some"));
    let plan = plan(Kind::Blocked, Hasher::fast(0));
    build(&one, plan.clone());
    let builder = ShardedBuilder::new(plan).unwrap();
    builder.insert_batch(&keys(0, 1000)).unwrap();
    builder.save(&path).unwrap();

    // Nothing changes before it is committed.
    let before = contents(&path);
    let update = ShardedUpdate::begin(lock(&path), &KeyRing::new()).unwrap();
    update.insert_batch(&keys(1000, KEYS)).unwrap();
    assert!(FolderLock::acquire(&path, Duration::ZERO).unwrap().is_none(), "another process changes it");
    assert!(contents(&path) == before);
    drop(update);
    assert!(contents(&path) == before);

    let update = ShardedUpdate::begin(lock(&path), &KeyRing::new()).unwrap();
    let new = update.insert_batch_new(&[keys(500, KEYS), keys(999, 2000)].concat()).unwrap();
    assert_eq!(new.iter().take(500).filter(|new| *new).count(), 0, "these were there");
    assert!(new.count() > KEYS - 1000 - KEYS / 50 && new.count() <= KEYS - 1000, "{}", new.count());
    assert_eq!(new.iter().skip((KEYS - 500) as usize).filter(|new| *new).count(), 0, "these were just added");
    update.commit().unwrap();
    assert_eq!(Sharded::open(&path).unwrap().contains_batch(&keys(0, KEYS)).unwrap().count(), KEYS);
    assert_eq!(contents(&path).len(), SHARDS as usize + 1, "no other file is left");
    let stats = |path| Sharded::open(path).unwrap().stats().unwrap();
    assert_eq!(stats(&path).used_cells, stats(&one).used_cells);
    // An update without keys changes nothing.
    let before = contents(&path);
    ShardedUpdate::begin(lock(&path), &KeyRing::new()).unwrap().commit().unwrap();
    assert!(contents(&path) == before);
}

/// A change is made when its manifest is there, however many of its files have their names.
#[test]
fn a_change_that_was_interrupted_is_found_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (old, new) = (path("old"), path("new"));
    let plan = plan(Kind::Standard, Hasher::fast(0));
    build(&new, plan.clone());
    // The old filter has more shards, which the change removes.
    let larger = ShardPlan::new(Kind::Standard, &Spec::new(KEYS, 0.01).unwrap(), SHARDS + 2).unwrap();
    ShardedBuilder::new(larger).unwrap().save(&old).unwrap();
    let shards = SHARDS as usize;
    // Staged shards, the manifest that commits them, a name for each shard, and one for the manifest.
    for steps in 0..shards + 1 + shards + 1 {
        let now = path(&format!("after{steps}"));
        fs::create_dir(&now).unwrap();
        contents(&old).into_iter().for_each(|(name, bytes)| fs::write(now.join(name), bytes).unwrap());
        let staged = |shard: usize| {
            let mut path = shard_path(&now, shard).into_os_string();
            path.push(".new");
            path
        };
        for step in 0..steps {
            if step < shards {
                fs::copy(shard_path(&new, step), staged(step)).unwrap();
            } else if step == shards {
                fs::copy(new.join(MANIFEST), now.join("manifest.next")).unwrap();
            } else {
                let shard = step - shards - 1;
                fs::rename(staged(shard), shard_path(&now, shard)).unwrap();
            }
        }
        let is_new = steps > shards;
        let expected = if is_new { &new } else { &old };
        assert_eq!(Sharded::open(&now).unwrap().inserted(), Some(if is_new { KEYS } else { 0 }), "{steps}");
        assert!(sharded::is_sharded(&now));
        // The next process that changes the folder completes the change or removes what it left.
        drop(lock(&now));
        assert!(contents(&now) == contents(expected), "{steps}");
    }
}

#[test]
fn a_filter_is_replaced_as_a_whole_and_keeps_its_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("filter"), folder.path().join("other"));
    build(&path, plan(Kind::Blocked, Hasher::fast(0)));
    let plan = ShardPlan::new(Kind::Standard, &Spec::new(1000, 0.01).unwrap(), 2).unwrap();
    let builder = ShardedBuilder::new(plan).unwrap();
    builder.insert_batch(&["apple", "pear"]).unwrap();
    builder.save(&other).unwrap();
    #[cfg(unix)]
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o777
    };
    #[cfg(unix)]
    for entry in fs::read_dir(&path).unwrap() {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(entry.unwrap().path(), fs::Permissions::from_mode(0o640)).unwrap();
    }
    let folder_lock = lock(&path);
    assert!(folder_lock.replaces());
    builder.save_locked(folder_lock, false).unwrap();
    assert!(contents(&path) == contents(&other));
    #[cfg(unix)]
    assert_eq!([MANIFEST, "shard-0000.umbel", "shard-0001.umbel"].map(mode), [0o640; 3]);

    // If it fails, the old filter stays, and of a new one nothing does.
    let some = ShardedBuilder::for_shards(builder.plan().clone(), 0..1).unwrap();
    some.insert_batch(&keys(0, 100)).unwrap();
    assert!(some.save_locked(lock(&path), false).is_err(), "a shard is missing");
    assert!(contents(&path) == contents(&other));
    let new = folder.path().join("new");
    fs::create_dir(&new).unwrap();
    assert!(some.save_locked(lock(&new), false).is_err(), "a shard is missing");
    assert!(contents(&new).is_empty());
}

#[test]
fn filters_of_one_plan_are_combined_and_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let plan = |seed| plan(Kind::Partitioned, Hasher::fast(seed));
    let part = |name: &str, from, to| {
        let builder = ShardedBuilder::new(plan(0)).unwrap();
        builder.insert_batch(&keys(from, to)).unwrap();
        builder.save(path(name)).unwrap();
        Sharded::open(path(name)).unwrap()
    };
    build(&path("one"), plan(0));
    let parts = [part("left", 0, 200_000), part("right", 200_000, KEYS)];
    for (name, expected) in [("union", KEYS), ("common", 0)] {
        fs::create_dir(path(name)).unwrap();
        let into = lock(&path(name));
        match name {
            "union" => sharded::unite(&parts, into).unwrap(),
            _ => sharded::intersect(&parts, into).unwrap(),
        };
        let found = Sharded::open(path(name)).unwrap().contains_batch(&keys(0, KEYS)).unwrap().count();
        assert!(found >= expected && found < expected + KEYS / 10, "{name}: {found}");
    }
    assert!(contents(&path("union")) == contents(&path("one")));
    build(&path("seed"), plan(1));
    let seed = Sharded::open(path("seed")).unwrap();
    fs::create_dir(path("none")).unwrap();
    let [left, _] = parts;
    let error = sharded::unite(&[left, seed], lock(&path("none"))).unwrap_err();
    assert!(matches!(&error, Error::Mismatch(mismatch) if mismatch.what == "seed"), "{error}");
    assert!(contents(&path("none")).is_empty());
}

/// As when a filter that was built elsewhere is moved into place.
#[cfg(unix)]
#[test]
fn a_folder_that_takes_the_place_of_the_locked_one_is_not_changed() {
    let temporary = tempfile::tempdir().unwrap();
    let (path, other) = (temporary.path().join("seen"), temporary.path().join("other"));
    build(&path, plan(Kind::Blocked, Hasher::fast(0)));
    build(&other, plan(Kind::Blocked, Hasher::fast(7)));
    let expected = contents(&other);
    let acquire = || FolderLock::acquire(&path, Duration::ZERO).unwrap();
    let update = ShardedUpdate::begin(acquire().expect("nobody has it"), &KeyRing::new()).unwrap();
    update.insert_batch(&["apple"]).unwrap();
    assert!(acquire().is_none());
    fs::rename(&path, temporary.path().join("old")).unwrap();
    fs::rename(&other, &path).unwrap();
    assert!(acquire().is_some(), "it is another folder");
    let error = format!("{:?}", update.commit().unwrap_err());
    assert!(error.contains("another folder"), "{error}");
    assert!(contents(&path) == expected);
}
