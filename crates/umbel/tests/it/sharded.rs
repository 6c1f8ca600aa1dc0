//! A filter in shards answers like one filter, has the same files whichever processes build it, and
//! never answers without one of its shards.

use std::fs;
use std::path::Path;
use umbel::error::FormatError;
use umbel::hash::KeyRing;
use umbel::sharded::{MANIFEST, ShardPlan, ShardedBuilder, shard_path};
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
