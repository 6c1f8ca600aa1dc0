//! A filter that tasks build in pieces has the bytes of one that is built at once, whatever the tasks
//! have and in whichever order their pieces arrive. No bytes make a merge panic, or take memory.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use umbel::pieces::{Assembly, Collector, MAX_PIECE_BYTES, Merge, PiecePlan};
use umbel::sharded::{ShardPlan, ShardedBuilder};
use umbel::{AnyFilter, Hasher, Kind, Sharded, Spec, file};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const KINDS: [Kind; 3] = [Kind::Blocked, Kind::Standard, Kind::Partitioned];

fn plan(kind: Kind, spec: &Spec, shards: Option<u32>) -> PiecePlan {
    let plan = PiecePlan::new(kind, spec, shards, false).unwrap();
    // The plan that another process would have.
    PiecePlan::from_bytes(&plan.to_bytes().unwrap()).unwrap()
}

/// Returns the bytes of the file of a filter that is built at once.
fn whole(kind: Kind, spec: &Spec, tasks: &[Vec<u64>]) -> Vec<u8> {
    let mut filter = AnyFilter::build(kind, spec).unwrap();
    tasks.iter().for_each(|keys| filter.insert_batch(keys).unwrap());
    file::to_bytes(&filter, &file::Options::default()).unwrap()
}

/// Returns the pieces of all tasks, in an order that depends on `order`. A task adds its keys in
/// batches, and drains its collector after each.
fn collect(plan: &PiecePlan, tasks: &[Vec<u64>], batch: usize, order: u64) -> Vec<(u32, Vec<u8>)> {
    let mut pieces = Vec::new();
    for keys in tasks {
        let mut task = Collector::new(plan);
        for keys in keys.chunks(batch) {
            task.add(keys).unwrap();
            pieces.extend(task.drain(false));
        }
        pieces.extend(task.drain(true));
        assert!(task.drain(true).is_empty());
    }
    assert!(pieces.iter().all(|(part, piece)| *part < plan.parts() && piece.len() <= MAX_PIECE_BYTES));
    pieces.sort_by_cached_key(|(part, piece)| {
        xxh3_64_with_seed(piece, order ^ u64::from(*part).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    });
    pieces
}

fn merge(plan: &PiecePlan, pieces: &[(u32, Vec<u8>)]) -> Vec<Merge> {
    let merge = |part| {
        let mut merge = Merge::new(plan, part).unwrap();
        for (_, piece) in pieces.iter().filter(|(of, _)| *of == part) {
            merge.add(piece).unwrap();
        }
        merge
    };
    (0..plan.parts()).map(merge).collect()
}

/// Returns the bytes of the file that merges write in parts, some of which do so twice. Only some
/// pass on their checksums.
fn written(plan: &PiecePlan, merges: &[Merge], folder: &Path) -> Vec<u8> {
    let path = folder.join("target.umbel");
    let partial = plan.create_file(&path).unwrap();
    let mut sums = BTreeMap::new();
    for (range, merge) in (0..plan.parts()).zip(merges).rev() {
        let of_range = merge.write(&partial).unwrap();
        if range % 3 == 1 {
            assert_eq!(merge.write(&partial).unwrap(), of_range);
        } else {
            sums.insert(range, of_range);
        }
    }
    assert!(!path.exists());
    plan.finish_file(&path, &partial, merges.iter().map(Merge::inserted).sum(), &sums).unwrap();
    assert!(!partial.exists());
    assert_eq!(fs::read(&path).unwrap().len() as u64, plan.file_bytes().unwrap());
    fs::read(path).unwrap()
}

/// Checks every way of putting a filter together.
fn check(kind: Kind, spec: &Spec, tasks: &[Vec<u64>], batch: usize, order: u64) {
    let plan = plan(kind, spec, None);
    let expected = whole(kind, spec, tasks);
    let pieces = collect(&plan, tasks, batch, order);
    let merges = merge(&plan, &pieces);
    let options = file::Options::default();

    let mut of_bits = Assembly::new(&plan).unwrap();
    let mut of_merged = Assembly::new(&plan).unwrap();
    for (range, merge) in merges.iter().enumerate() {
        of_bits.set_range(range as u32, &merge.bits().unwrap()).unwrap();
        for piece in merge.pieces().unwrap() {
            assert!(piece.len() <= MAX_PIECE_BYTES);
            of_merged.add(&piece).unwrap();
        }
    }
    let inserted = merges.iter().map(Merge::inserted).sum();
    assert!(file::to_bytes(&of_bits.finish(inserted), &options).unwrap() == expected);
    assert!(file::to_bytes(&of_merged.finish(0), &options).unwrap() == expected);

    let mut of_pieces = Assembly::new(&plan).unwrap();
    pieces.iter().for_each(|(_, piece)| of_pieces.add(piece).unwrap());
    assert!(file::to_bytes(&of_pieces.finish(0), &options).unwrap() == expected);

    let folder = tempfile::tempdir().unwrap();
    assert!(written(&plan, &merges, folder.path()) == expected);
}

fn tasks() -> impl Strategy<Value = Vec<Vec<u64>>> {
    // Few different keys, so that tasks share some and have duplicates.
    proptest::collection::vec(proptest::collection::vec(0..5000u64, 0..2000), 0..5)
}

fn fixed() -> ProptestConfig {
    ProptestConfig {
        cases: 40,
        rng_seed: RngSeed::Fixed(28),
        failure_persistence: None,
        ..Default::default()
    }
}

proptest! {
    #![proptest_config(fixed())]

    #[test]
    fn the_bytes_are_those_of_a_filter_built_at_once(
        tasks in tasks(),
        kind in proptest::sample::select(&KINDS),
        n in proptest::sample::select(&[1u64, 700, 60_000, 400_000]),
        p in proptest::sample::select(&[0.3, 0.01, 1e-5]),
        batch in 1usize..3000,
        order: u64,
    ) {
        check(kind, &Spec::new(n, p).unwrap(), &tasks, batch, order);
    }

    #[test]
    fn the_shards_are_those_of_a_builder_in_one_process(
        tasks in tasks(),
        kind in proptest::sample::select(&KINDS),
        shards in 1u32..20,
        order: u64,
    ) {
        let spec = Spec::new(20_000, 0.01).unwrap().with_hasher(Hasher::keyed([7; 16]));
        let (plan, shard_plan) = (plan(kind, &spec, Some(shards)), ShardPlan::new(kind, &spec, shards).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let (expected, found) = (folder.path().join("expected"), folder.path().join("found"));
        let builder = ShardedBuilder::new(shard_plan).unwrap();
        tasks.iter().for_each(|keys| builder.insert_batch(keys).unwrap());
        builder.save(&expected).unwrap();

        fs::create_dir(&found).unwrap();
        let mut bytes = 0;
        for mut merge in merge(&plan, &collect(&plan, &tasks, 500, order)) {
            merge.save_shard(&found).unwrap();
            merge.save_shard(&found).unwrap();
        }
        plan.shard_plan().unwrap().seal(&found).unwrap();
        for entry in fs::read_dir(&expected).unwrap() {
            let name = entry.unwrap().file_name();
            let shard = fs::read(found.join(&name)).unwrap();
            prop_assert!(shard == fs::read(expected.join(&name)).unwrap(), "{name:?}");
            bytes += if name == "manifest" { 0 } else { shard.len() as u64 };
        }
        prop_assert_eq!(bytes, plan.file_bytes().unwrap());
        prop_assert_eq!(fs::read_dir(&found).unwrap().count(), shards as usize + 1);
    }
}

/// The payload of a forged piece: any bytes, or positions and numbers of which some are in the range.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let positions = proptest::collection::vec(0..1u32 << 20, 0..6);
    let numbers = proptest::collection::vec(u64::MAX - (1 << 60)..=u64::MAX, 0..6);
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        positions.prop_map(|positions| positions.into_iter().flat_map(u32::to_le_bytes).collect()),
        numbers.prop_map(|numbers| numbers.into_iter().flat_map(u64::to_le_bytes).collect()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..fixed() })]

    /// Random bytes, and random bytes behind a correct header and checksum.
    #[test]
    fn hostile_pieces_are_refused_or_change_only_bits(
        bytes in payload(),
        content in 0u8..5,
        start in proptest::sample::select(&[0u64, 8, 4096, 65_528, 65_536, 1 << 40, u64::MAX - 7]),
        kind in proptest::sample::select(&KINDS),
        shards in proptest::sample::select(&[None, Some(3)]),
    ) {
        let plan = plan(kind, &Spec::new(60_000, 0.01).unwrap(), shards);
        let mut merge = Merge::new(&plan, plan.parts() - 1).unwrap();
        prop_assert!(merge.add(&bytes).is_err());
        let (_, intact) = collect(&plan, &[vec![1]], 1, 0).pop().unwrap();
        let mut forged = intact[..HEADER_BYTES].to_vec();
        forged[24..28].copy_from_slice(&(plan.parts() - 1).to_le_bytes());
        forged[29] = content;
        forged[32..40].copy_from_slice(&start.to_le_bytes());
        forged.extend(&bytes);
        let before = (merge.inserted(), merge.bits().ok().map(|bits| bits.into_owned()));
        if merge.add(&sealed(forged)).is_err() {
            let after = (merge.inserted(), merge.bits().ok().map(|bits| bits.into_owned()));
            prop_assert!(before == after);
        }
        if let Ok(bits) = merge.bits() {
            // Bits beyond the end would be refused.
            Assembly::new(&plan).unwrap().set_range(plan.parts() - 1, &bits).unwrap();
        }
    }
}

const HEADER_BYTES: usize = 40;

/// Gives a piece the checksum that its bytes have.
fn sealed(mut piece: Vec<u8>) -> Vec<u8> {
    let sum = xxh3_64_with_seed(&piece[8..], 0x73_65_63_65_69_70);
    piece[..8].copy_from_slice(&sum.to_le_bytes());
    piece
}

/// Returns keys of which a few are very frequent.
fn skewed(from: u64, to: u64) -> Vec<u64> {
    (from..to).map(|i| if i % 4 == 0 { i % 24 } else { i }).collect()
}

#[test]
fn every_hash_has_the_same_bytes_in_pieces() {
    let tasks = [skewed(0, 30_000), vec![], skewed(10_000, 50_000)];
    for hasher in [Hasher::fast(0), Hasher::fast(7), Hasher::keyed([1; 16]), Hasher::sealed([2; 32])] {
        let spec = Spec::new(60_000, 0.001).unwrap().with_hasher(hasher);
        check(Kind::Blocked, &spec, &tasks, 10_000, 1);
    }
}

/// A task with more keys than the filter has room for fills bits; other tasks list their keys. Both
/// kinds of pieces merge.
#[test]
fn tasks_that_fill_bits_merge_with_tasks_that_list_keys() {
    for kind in KINDS {
        let tasks = [skewed(0, 400_000), skewed(0, 300), vec![5; 100_000]];
        check(kind, &Spec::new(200_000, 0.01).unwrap(), &tasks, 7000, 3);
    }
}

/// The filter takes 38 MB, so the entries of its keys leave as soon as a piece is full.
#[test]
fn a_task_holds_a_bounded_number_of_entries() {
    for (kind, keys) in [(Kind::Blocked, 4_500_000), (Kind::Partitioned, 1_500_000)] {
        let keys: Vec<u64> = (0..keys).collect();
        let spec = Spec::new(30_000_000, 0.01).unwrap();
        let plan = plan(kind, &spec, None);
        let mut task = Collector::new(&plan);
        let (mut early, mut assembly) = (0, Assembly::new(&plan).unwrap());
        for batch in keys.chunks(10_000) {
            task.add(batch).unwrap();
            for (_, piece) in task.drain(false) {
                early += piece.len();
                assembly.add(&piece).unwrap();
            }
        }
        let rest = task.drain(true);
        let late: usize = rest.iter().map(|(_, piece)| piece.len()).sum();
        assert!(late <= (32 << 20) + 40 * rest.len() && early > 0, "{kind}: {early} {late}");
        rest.iter().for_each(|(_, piece)| assembly.add(piece).unwrap());
        let expected = whole(kind, &spec, std::slice::from_ref(&keys));
        assert!(file::to_bytes(&assembly.finish(0), &file::Options::default()).unwrap() == expected);
    }
}

/// The rows of a frequent key are one entry, not one each.
#[test]
fn frequent_keys_do_not_fill_pieces() {
    let plan = plan(Kind::Blocked, &Spec::new(100_000_000, 0.01).unwrap(), None);
    let mut task = Collector::new(&plan);
    let mut pieces = Vec::new();
    for _ in 0..100 {
        task.add(&vec![42u64; 10_000]).unwrap();
        pieces.extend(task.drain(false));
    }
    pieces.extend(task.drain(true));
    assert_eq!((pieces.len(), pieces[0].1.len()), (1, HEADER_BYTES + 8));
    assert_eq!(merge(&plan, &pieces).iter().map(Merge::inserted).sum::<u64>(), 1_000_000);
}

#[test]
fn damaged_and_foreign_pieces_are_refused() {
    let spec = Spec::new(60_000, 0.01).unwrap();
    let of = |spec: &Spec, shards| plan(Kind::Blocked, spec, shards);
    let (ours, keys) = (of(&spec, None), vec![vec![1u64]]);
    let (part, piece) = collect(&ours, &keys, 1, 0).pop().unwrap();
    let fresh = || Merge::new(&ours, part).unwrap();
    fresh().add(&piece).unwrap();
    for bit in 0..piece.len() * 8 {
        let mut damaged = piece.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(fresh().add(&damaged).is_err(), "bit {bit}");
    }
    (0..piece.len()).for_each(|end| assert!(fresh().add(&piece[..end]).is_err(), "cut at {end}"));
    assert!(fresh().add(&[&piece[..], &[0; 8]].concat()).is_err());
    assert!(Merge::new(&ours, (part + 1) % ours.parts()).unwrap().add(&piece).is_err());
    assert!(Merge::new(&ours, ours.parts()).is_err());
    let others = [
        of(&Spec::new(60_001, 0.01).unwrap(), None),
        of(&spec.clone().with_hasher(Hasher::fast(1)), None),
        of(&spec, Some(2)),
        plan(Kind::Standard, &spec, None),
    ];
    for other in others {
        for (part, foreign) in collect(&other, &keys, 1, 0) {
            let error = Merge::new(&ours, part).unwrap().add(&foreign).unwrap_err();
            assert!(error.to_string().contains("another one"), "{error}");
        }
    }
}

#[test]
fn plans_that_cannot_be_built_and_damaged_ones_are_refused() {
    let spec = Spec::new(60_000, 0.01).unwrap();
    for (kind, shards, embed_key) in
        [(Kind::Cuckoo, None, false), (Kind::Blocked, Some(0), false), (Kind::Blocked, None, true)]
    {
        assert!(PiecePlan::new(kind, &spec, shards, embed_key).is_err());
    }
    let bytes = plan(Kind::Blocked, &spec.with_hasher(Hasher::keyed([3; 16])), None).to_bytes().unwrap();
    for end in 0..bytes.len() {
        assert!(PiecePlan::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn embedded_secrets_are_in_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let spec = Spec::new(60_000, 0.01).unwrap().with_hasher(Hasher::keyed([9; 16]));
    let plan = PiecePlan::new(Kind::Blocked, &spec, None, true).unwrap();
    let merges = merge(&plan, &collect(&plan, &[vec![1, 2]], 9, 0));
    let bytes = written(&plan, &merges, folder.path());
    let loaded = file::from_bytes(&bytes, &umbel::hash::KeyRing::new()).unwrap();
    assert!(loaded.embedded_key && loaded.filter.contains(&1u64));

    let plan = PiecePlan::new(Kind::Blocked, &spec, Some(2), true).unwrap();
    for mut merge in merge(&plan, &collect(&plan, &[vec![1, 2]], 9, 0)) {
        merge.save_shard(folder.path()).unwrap();
    }
    plan.shard_plan().unwrap().seal(folder.path()).unwrap();
    assert!(Sharded::open(folder.path()).unwrap().contains(&2u64).unwrap());
}

/// The file of another filter, one that was finished, or none at all.
#[test]
fn ranges_are_written_only_to_the_partial_file_of_their_filter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("target.umbel");
    let spec = Spec::new(60_000, 0.01).unwrap();
    let ours = plan(Kind::Blocked, &spec, None);
    let merge = Merge::new(&ours, 0).unwrap();
    assert!(merge.write(folder.path().join("missing")).is_err());
    assert!(merge.write(folder.path()).is_err());
    let other = plan(Kind::Blocked, &Spec::new(70_000, 0.01).unwrap(), None);
    let partial = other.create_file(&path).unwrap();
    assert!(merge.write(&partial).is_err());
    assert!(ours.finish_file(&path, &partial, 0, &BTreeMap::new()).is_err());
    fs::remove_file(&partial).unwrap();

    let partial = ours.create_file(&path).unwrap();
    for wrong in [(0, vec![0; 1000]), (ours.parts(), vec![0])] {
        assert!(ours.finish_file(&path, &partial, 0, &BTreeMap::from([wrong])).is_err());
    }
    assert!(!path.exists());
    assert!(ours.create_file(folder.path()).is_err());
    assert!(Assembly::new(&ours).unwrap().set_range(0, &[0; 64]).is_err());
}
