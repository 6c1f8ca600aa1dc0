//! The promises of every kind of set: no false negatives, the requested rate, a file that restores
//! the same filter, and no panics for any contents of a file.

use crate::common::Keys;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use umbel::any::Stored;
use umbel::bloomier::CodeBook;
use umbel::file::{self, Options};
use umbel::hash::KeyRing;

use umbel::any::AnySketch;
use umbel::kind::Category;
use umbel::sketch::{CountMin, Distinct, Frequent, TopK};
use umbel::spec::{Construction, plan};
use umbel::{AnyCount, AnyFilter, AnyMap, Error, Hasher, Key, Kind, Removed, Spec};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// All sets that take digests.
fn sets() -> impl Iterator<Item = Kind> {
    Kind::ALL.iter().copied().filter(|kind| kind.category() == Category::Set && *kind != Kind::Literature)
}

/// All sets that support insertion.
fn kinds() -> impl Iterator<Item = Kind> {
    sets().filter(|kind| !kind.capabilities().fixed)
}

fn build(kind: Kind, capacity: u64, rate: f64) -> AnyFilter {
    AnyFilter::build(kind, &Spec::new(capacity, rate).unwrap()).unwrap()
}

fn filled(kind: Kind, keys: &[u64], rate: f64) -> AnyFilter {
    let spec = Spec::new(keys.len() as u64, rate).unwrap();
    let digests = spec.hasher().digest_batch(keys);
    AnyFilter::from_digests(kind, &spec, digests, &Construction::default())
        .unwrap_or_else(|error| panic!("{kind}: {error}"))
}

fn bytes(filter: &AnyFilter) -> Vec<u8> {
    file::to_bytes(filter, &Options::default()).unwrap()
}

fn load(bytes: &[u8]) -> AnyFilter {
    file::from_bytes(bytes, &KeyRing::new()).unwrap().filter.try_into().unwrap()
}

#[test]
fn no_kind_loses_a_key_or_exceeds_its_rate() {
    for kind in sets() {
        for (n, rate) in [(100, 0.05), (3000, 0.01), (100_000, 0.01), (100_000, 0.001)] {
            // Small filters differ from each other, so build several, with about the same number of
            // keys in total.
            let builds = (100_000 / n).clamp(1, 100);
            let queries = 4_000_000 / builds;
            let mut wrong = 0;
            for number in 0..builds {
                let keys = Keys::of_build(number);
                let filter = filled(kind, &keys.members(n), rate);
                let found = filter.contains_batch(&keys.members(n)[..]).count();
                assert_eq!(found, n, "{kind}, {n} keys at {rate}: no false negatives");
                let strangers: Vec<u64> = (0..queries).map(|i| keys.stranger(i)).collect();
                wrong += filter.contains_batch(&strangers[..]).count();
            }
            let measured = wrong as f64 / (queries * builds) as f64;
            // Two per cent, four standard errors of the queries, and the remaining variation
            // between the builds.
            let sampling = 4.0 * (rate / (queries * builds) as f64).sqrt();
            let between = rate * 4.0 * 0.2 / (builds as f64 * (n as f64).sqrt()).sqrt();
            assert!(measured <= 1.02 * rate + sampling + between, "{kind}, {n} keys at {rate}: {measured}");
        }
    }
}

#[test]
fn filters_are_built_as_planned() {
    for kind in kinds() {
        for (n, rate) in [(1, 0.01), (1000, 0.01), (50_000, 0.001), (300_000, 0.03)] {
            let spec = Spec::new(n, rate).unwrap();
            let plan = plan(kind, &spec).unwrap();
            let filter = AnyFilter::build(kind, &spec).unwrap();
            let stats = filter.stats();
            assert_eq!((plan.kind, plan.stored_bits), (filter.kind(), stats.bits), "{kind} {n}");
            assert_eq!((plan.hashes, plan.bytes), (stats.hashes, stats.bytes), "{kind} {n}");
            assert_eq!((Some(n), Some(rate)), (stats.capacity, stats.rate_target), "{kind} {n}");
            let memory: usize = filter.sections().iter().map(|words| size_of_val(words.words())).sum();
            assert_eq!(stats.bytes, memory as u64, "{kind} {n}");
            // Rounding k may miss the rate by a little. The formula for the bits of a standard
            // filter is wrong for a single key, but the filter that is built has a whole word and
            // keeps the rate.
            let by_formula = matches!(plan.kind, Kind::Standard | Kind::Counting);
            let missed = if n == 1 && by_formula { 1.8 } else { 1.01 };
            assert!(plan.rate <= missed * rate, "{kind} {n}: {} predicted", plan.rate);
            assert!(filter.predicted_rate(n).unwrap() <= 1.01 * rate, "{kind} {n}");
            // Rounded up to whole words, lines or slots, the filter is slightly larger than
            // planned.
            assert!(filter.predicted_rate(n).unwrap() <= 1.001 * plan.rate, "{kind} {n} {plan:?}");
            assert_eq!((stats.used_cells, stats.rate_now), (0, 0.0), "{kind} {n}: the filter must be empty");
            assert!(!filter.contains("anything"), "{kind} {n}");
        }
    }
}

#[test]
fn the_number_of_keys_is_known_or_estimated() {
    for kind in sets() {
        let keys = Keys::of_build(7).members(40_000);
        let filter = filled(kind, &keys, 0.01);
        let stats = filter.stats();
        assert_eq!(filter.inserted(), Some(40_000), "{kind}");
        let estimate = stats.estimate.estimate().unwrap_or_else(|| panic!("{kind}: saturated"));
        let off = (estimate.value - 40_000.0).abs();
        assert!(off <= 5.0 * estimate.standard_error + 0.01 * 40_000.0, "{kind}: {estimate:?}");
        assert!(stats.rate_now > 0.0001 && stats.rate_now < 0.0105, "{kind}: {}", stats.rate_now);
    }
}

#[test]
fn every_kind_round_trips_through_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter");
    for kind in sets() {
        let keys = Keys::of_build(3);
        let filter = filled(kind, &keys.members(20_000), 0.01);
        let queries: Vec<u64> =
            keys.members(30_000).into_iter().chain((0..30_000).map(|i| keys.stranger(i))).collect();
        let answers = filter.contains_batch(&queries[..]);
        let written = bytes(&filter);
        let loaded = load(&written);
        assert_eq!(loaded.contains_batch(&queries[..]), answers, "{kind}, loaded");
        assert_eq!(loaded.stats(), filter.stats(), "{kind}");
        assert!(bytes(&loaded) == written, "{kind}: writing it again must yield the same file");
        assert!(bytes(&loaded.try_clone().unwrap()) == written, "{kind}, copied");

        file::save(&path, &filter, &Options::default()).unwrap();
        let mapped = file::map(&path, &KeyRing::new()).unwrap();
        for _ in 0..2 {
            assert_eq!(mapped.contains_batch(&queries[..]).unwrap(), answers, "{kind}, mapped");
        }
        let verified = mapped.verify().unwrap().filter.into_kind::<AnyFilter>().unwrap();
        assert_eq!(verified.contains_batch(&queries[..]), answers, "{kind}, verified");
        if kind.capabilities().fixed {
            continue;
        }
        let mut copy = verified.try_clone().unwrap();
        copy.clear().unwrap();
        assert!(
            bytes(&copy) == bytes(&filter.try_clone_empty().unwrap()),
            "{kind}: clearing must leave nothing"
        );
        assert_eq!(verified.contains_batch(&queries[..]), answers, "{kind}: the copy must own its memory");
    }
}

fn is_damage(error: &Error) -> bool {
    format!("{error:#}").contains("damaged")
}

#[test]
fn a_damaged_part_is_never_used_for_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged");
    for kind in sets() {
        let keys = Keys::of_build(4).members(150_000);
        let mut written = bytes(&filled(kind, &keys, 0.01));
        let last = written.len() - 1;
        for at in [last, last / 2] {
            written[at] ^= 0x10;
            assert!(file::from_bytes(&written, &KeyRing::new()).is_err(), "{kind}, byte {at}");
            std::fs::write(&path, &written).unwrap();
            let mapped = file::map(&path, &KeyRing::new()).unwrap();
            // Members are found, or the damage is reported. A part that no key needs may be damaged
            // without harm.
            let harmless = |result: umbel::Result<bool>| result.unwrap_or_else(|error| is_damage(&error));
            assert!(keys[..2000].iter().all(|key| harmless(mapped.contains(key))), "{kind}, byte {at}");
            let all = mapped.contains_batch(&keys[..]).map(|answers| answers.count() == 150_000);
            assert!(harmless(all), "{kind}, byte {at}");
            assert!(is_damage(&mapped.verify().unwrap_err()), "{kind}, byte {at}");
            written[at] ^= 0x10;
        }
    }
}

#[test]
fn a_traced_lookup_reports_valid_cells_and_the_same_answer() {
    for kind in sets() {
        let keys = Keys::of_build(5);
        let filter = filled(kind, &keys.members(5000), 0.05);
        let sections = filter.sections();
        let mut members = 0;
        for key in keys.members(500).into_iter().chain((0..2000).map(|i| keys.stranger(i))) {
            let digest = key.digest(filter.hasher());
            let mut probes = 0;
            let answer = filter.trace(digest, &mut |probe| {
                let bits = sections[probe.section].words().len() as u64 * 64;
                assert!(probe.bits.start < probe.bits.end && probe.bits.end <= bits, "{kind}: {probe:?}");
                probes += 1;
                Ok(())
            });
            assert_eq!(answer.unwrap(), filter.contains_digest(digest), "{kind}");
            assert!(probes > 0, "{kind}: a lookup must read something");
            members += u64::from(filter.contains_digest(digest));
            let stopped = filter.trace(digest, &mut |_| Err(Error::OutOfMemory { bytes: 1 }));
            assert!(
                matches!(stopped, Err(Error::OutOfMemory { bytes: 1 })),
                "{kind}: an error must end the lookup"
            );
        }
        assert!((500..1500).contains(&members), "{kind}: both answers must occur");
    }
}

#[test]
fn single_tile_and_batch_insertions_agree() {
    for kind in kinds() {
        let keys = Keys::of_build(6);
        // Some keys are repeated.
        let list: Vec<u64> = (0..6000).map(|i| keys.member(i % 5000)).collect();
        let (mut single, mut batch, mut tiles) =
            (build(kind, 9000, 0.01), build(kind, 9000, 0.01), build(kind, 9000, 0.01));
        let new: Vec<bool> = list.iter().map(|key| single.insert(key).unwrap()).collect();
        batch.insert_batch(&list[..]).unwrap();
        let digests = single.hasher().digest_batch(&list[..]);
        let mut reported = Vec::new();
        for tile in digests.chunks(50) {
            let answer = tiles.insert_tile_new(tile).unwrap();
            reported.extend((0..tile.len()).map(|i| answer >> i & 1 == 1));
        }
        let mut long = build(kind, 9000, 0.01);
        let answer = long.insert_tile_new(&digests).unwrap();
        assert!((0..64).all(|i| new[i] == (answer >> i & 1 == 1)), "{kind}: answers for the first 64");
        assert!(bytes(&single) == bytes(&long), "{kind}: the rest must be inserted, too");
        assert_eq!(new, reported, "{kind}");
        assert!(bytes(&single) == bytes(&batch) && bytes(&single) == bytes(&tiles), "{kind}");
        let strangers: Vec<u64> = (0..3000).map(|i| keys.stranger(i)).collect();
        for asked in [&list[..], &strangers] {
            let answers = single.contains_batch(asked);
            for (i, key) in asked.iter().enumerate() {
                assert_eq!(answers.get(i), Some(single.contains(key)), "{kind}");
            }
        }
    }
}

#[test]
fn filling_in_parts_equals_filling_at_once() {
    for kind in kinds() {
        let list: Vec<u64> = (0..8000).map(|i| Keys::of_build(8).member(i % 6000)).collect();
        let mut whole = build(kind, 12_000, 0.01);
        let (mut left, mut right) = (whole.try_clone_empty().unwrap(), whole.try_clone_empty().unwrap());
        whole.insert_batch(&list[..]).unwrap();
        left.insert_batch(&list[..3000]).unwrap();
        right.insert_batch(&list[3000..]).unwrap();
        let before = bytes(&left);
        match left.absorb(&right) {
            Ok(()) => {
                assert!(kind.capabilities().absorb, "{kind}");
                assert!(bytes(&left) == bytes(&whole), "{kind}");
            }
            Err(error) => {
                assert!(
                    !kind.capabilities().absorb && matches!(error, Error::Cannot { .. }),
                    "{kind}: {error}"
                );
                assert!(bytes(&left) == before, "{kind}: a refusal must not change the filter");
            }
        }
    }
}

#[test]
fn unsupported_operations_are_refused_and_change_nothing() {
    for kind in kinds() {
        let can = kind.capabilities();
        let keys = Keys::of_build(9).members(2000);
        let mut filter = build(kind, 4000, 0.01);
        filter.insert_batch(&keys[..1000]).unwrap();
        let mut other = filter.try_clone_empty().unwrap();
        other.insert_batch(&keys[500..1500]).unwrap();
        let before = bytes(&filter);

        let mut united = filter.try_clone().unwrap();
        match united.union(&other) {
            Ok(()) => {
                assert!(can.union, "{kind}");
                assert_eq!(
                    united.contains_batch(&keys[..1500]).count(),
                    1500,
                    "{kind}: the union has all keys"
                );
                let known = can.multiset.then_some(2000);
                assert_eq!(united.inserted(), known, "{kind}: only kinds that store copies know the count");
            }
            Err(error) => {
                assert!(!can.union && matches!(error, Error::Cannot { .. }), "{kind}: {error}");
                assert!(bytes(&united) == before, "{kind}");
            }
        }
        let mut common = filter.try_clone().unwrap();
        match common.intersect(&other) {
            Ok(()) => {
                assert!(can.intersect, "{kind}");
                assert_eq!(common.contains_batch(&keys[500..1000]).count(), 500, "{kind}: the common keys");
                let rest = common.contains_batch(&keys[1500..]).count();
                assert!(rest < 40, "{kind}: {rest} of 500 strangers");
            }
            Err(error) => {
                assert!(!can.intersect && matches!(error, Error::Cannot { .. }), "{kind}: {error}");
                assert!(bytes(&common) == before, "{kind}");
            }
        }
        match filter.fold() {
            Ok(folded) => {
                assert!(can.fold, "{kind}");
                assert_eq!(folded.contains_batch(&keys[..1000]).count(), 1000, "{kind}");
            }
            Err(error) => assert!(!can.fold && matches!(error, Error::Cannot { .. }), "{kind}: {error}"),
        }
        match filter.remove(&keys[0]) {
            Ok(removed) => {
                assert!(can.remove && removed != Removed::NotPresent, "{kind}: {removed:?}");
                assert_eq!(
                    filter.contains_batch(&keys[1..1000]).count(),
                    999,
                    "{kind}: the other keys must remain"
                );
            }
            Err(error) => {
                assert!(!can.remove && matches!(error, Error::Cannot { .. }), "{kind}: {error}");
                assert!(
                    error.to_string().contains(&format!("{} filter cannot remove", filter.kind())),
                    "{error}"
                );
                assert!(bytes(&filter) == before, "{kind}");
            }
        }
    }
}

#[test]
fn static_filters_match_their_plan_and_refuse_every_change() {
    for kind in sets().filter(|kind| kind.capabilities().fixed) {
        for (n, rate) in [(1, 0.01), (1000, 0.01), (50_000, 0.001), (300_000, 0.03)] {
            let keys = Keys::of_build(12).members(n);
            let filter = filled(kind, &keys, rate);
            let (plan, stats) = (plan(kind, &Spec::new(n, rate).unwrap()).unwrap(), filter.stats());
            assert_eq!((plan.kind, plan.hashes), (filter.kind(), stats.hashes), "{kind} {n}");
            // Unlucky keys need a larger table.
            assert!((1.0..1.05).contains(&(stats.bits as f64 / plan.stored_bits as f64)), "{kind} {n}");
            assert_eq!((Some(n), Some(rate)), (stats.capacity, stats.rate_target), "{kind} {n}");
            assert!(plan.rate <= rate && filter.predicted_rate(n).unwrap() == plan.rate, "{kind} {n}");
        }
        let mut filter = filled(kind, &Keys::of_build(12).members(100), 0.01);
        let (before, other) = (bytes(&filter), filled(kind, &Keys::of_build(13).members(100), 0.01));
        let cannot = |result: umbel::Result<()>| {
            assert!(matches!(result, Err(Error::Cannot { .. })), "{kind}: {result:?}");
        };
        cannot(filter.insert("apple").map(drop));
        cannot(filter.insert_batch(&["apple", "pear"]));
        cannot(filter.remove("apple").map(drop));
        cannot(filter.clear());
        cannot(filter.union(&other));
        cannot(filter.intersect(&other));
        cannot(filter.absorb(&other));
        cannot(filter.fold().map(drop));
        cannot(filter.try_clone_empty().map(drop));
        cannot(AnyFilter::build(kind, &Spec::new(100, 0.01).unwrap()).map(drop));
        assert!(bytes(&filter) == before, "{kind}: a refusal must not change the filter");
    }
}

#[test]
fn different_hashes_shapes_and_kinds_do_not_combine() {
    for kind in kinds() {
        let spec = Spec::new(4000, 0.01).unwrap();
        let mut filter = AnyFilter::build(kind, &spec).unwrap();
        let seeded = spec.clone().with_hasher(Hasher::fast(1));
        let larger = Spec::new(9000, 0.01).unwrap();
        for (spec, what) in [(seeded, "seed"), (larger, "")] {
            let other = AnyFilter::build(kind, &spec).unwrap();
            let mismatch = filter.mismatch(&other).unwrap_or_else(|| panic!("{kind}: {what} differs"));
            assert!(what.is_empty() || mismatch.what == what, "{kind}: {mismatch}");
            assert!(filter.union(&other).is_err() && filter.overlap(&other).is_err(), "{kind}");
        }
        for other in kinds().filter(|other| *other != kind) {
            let other = build(other, 100, 0.01);
            if other.kind() != filter.kind() {
                assert_eq!(filter.mismatch(&other).map(|mismatch| mismatch.what), Some("kind"));
                assert!(matches!(filter.union(&other), Err(Error::Mismatch(_))), "{kind}");
            }
        }
    }
}

#[test]
fn removing_every_key_leaves_an_empty_filter() {
    for kind in kinds().filter(|kind| kind.capabilities().remove && *kind != Kind::Deletable) {
        let keys = Keys::of_build(10).members(3000);
        let mut filter = filled(kind, &keys, 0.01);
        let empty = filter.try_clone_empty().unwrap();
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(filter.remove(key).unwrap(), Removed::Removed, "{kind}");
            if i % 500 == 0 {
                assert_eq!(filter.contains_batch(&keys[i + 1..]).count(), 2999 - i as u64, "{kind}");
            }
        }
        assert!(bytes(&filter) == bytes(&empty), "{kind}: bit for bit");
        assert_eq!(filter.remove(&keys[0]).unwrap(), Removed::NotPresent, "{kind}");
        assert!(bytes(&filter) == bytes(&empty), "{kind}: and must remain empty");
        // `was_inserted` is called before anything is removed.
        let mut filter = filled(kind, &keys, 0.01);
        assert_eq!(filter.remove_checked(&keys[0], |_| false).unwrap(), Removed::NotPresent, "{kind}");
        assert_eq!(filter.remove_checked(&keys[0], |_| true).unwrap(), Removed::Removed, "{kind}");
    }
}

/// Returns files of small sets, maps, multisets and sketches of every kind, with some contents.
fn samples() -> Vec<Vec<u8>> {
    let keys = Keys::of_build(11).members(300);
    let sample = |kind| bytes(&filled(kind, &keys, 0.01));
    let map = |(kind, book): (Kind, Option<CodeBook>)| {
        let spec = Spec::new(300, 0.01).unwrap();
        let pairs = spec.hasher().digest_batch(&keys[..]).into_iter().zip((0..300).map(|i| i % 3)).collect();
        let map = AnyMap::from_pairs(kind, &spec, pairs, book, &Construction::default()).unwrap();
        file::to_bytes(&map, &Options::default()).unwrap()
    };
    let book = || CodeBook::new(&["red", "green", "blue"]).ok();
    let maps =
        [Kind::Bloomier, Kind::BloomierMutable].into_iter().flat_map(|kind| [(kind, None), (kind, book())]);
    let count = |kind| {
        let mut counts = AnyCount::build(kind, &Spec::new(300, 0.01).unwrap()).unwrap();
        counts.insert_batch(&keys[..]);
        file::to_bytes(&counts, &Options::default()).unwrap()
    };
    let counts = [Kind::SpaceCode, Kind::MultiResolution].map(count);
    let mut distinct = Distinct::with_precision(5).unwrap();
    let mut count_min = CountMin::with_dimensions(37, 3).unwrap();
    let mut top = TopK::builder(20).width(40).build().unwrap();
    let mut frequent = Frequent::new(40).unwrap();
    distinct.insert_batch(&keys);
    count_min.insert_batch(&keys);
    top.insert_batch(&keys);
    frequent.insert_batch(&keys);
    let sketches: [AnySketch; 4] = [distinct.into(), count_min.into(), top.into(), frequent.into()];
    let sketches = sketches.map(|sketch| sketch.to_bytes().unwrap());
    sets().map(sample).chain(maps.map(map)).chain(counts).chain(sketches).collect()
}

/// Writes valid checksums, as a hostile writer would. The body is a single chunk.
fn reseal(bytes: &mut [u8]) {
    let number = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (header, sections, params) = (number(bytes, 20), number(bytes, 36), number(bytes, 72));
    let sum = xxh3_64_with_seed(&bytes[header..], 0);
    let at = 80 + 8 * params + 24 * sections;
    bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
    let sum = xxh3_64_with_seed(&bytes[..header - 8], 0x006c_6562_6d75);
    bytes[header - 8..header].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn a_static_file_without_its_number_of_keys_is_refused() {
    for sample in samples() {
        let kind = Kind::from_number(u16::from_le_bytes([sample[10], sample[11]])).unwrap();
        if !kind.capabilities().fixed {
            continue;
        }
        assert!(file::from_bytes(&sample, &KeyRing::new()).is_ok(), "{kind}");
        // The capacity and the number of keys: a different one, unknown, or too many.
        for (at, value) in [(48, 7), (64, u64::MAX), (64, 1 << 40), (64, 299)] {
            let mut bytes = sample.clone();
            bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
            reseal(&mut bytes);
            let error = file::from_bytes(&bytes, &KeyRing::new()).unwrap_err();
            let message = format!("{error:#}");
            assert!(message.contains("how many keys"), "{kind}, {value} at {at}: {message}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 10_000,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn hostile_parameters_and_contents_never_panic(
        which: prop::sample::Index,
        params in prop::collection::vec((0..64usize, prop_oneof![Just(0u64), Just(u64::MAX), 0..100u64, any::<u64>()]), 0..3),
        body in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![Just(0u8), Just(0xff), any::<u8>()]), 0..40),
    ) {
        thread_local!(static FILES: Vec<Vec<u8>> = samples());
        thread_local!(static FOLDER: tempfile::TempDir = tempfile::tempdir().unwrap());
        let mut bytes = FILES.with(|files| which.get(files).clone());
        let header = u32::from_le_bytes(bytes[20..24].try_into().unwrap()) as usize;
        let count = u32::from_le_bytes(bytes[72..76].try_into().unwrap()) as usize;
        for (which, value) in params {
            let at = 80 + 8 * (which % count);
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        for (which, value) in body {
            let at = header + which.index(bytes.len() - header);
            bytes[at] = value;
        }
        reseal(&mut bytes);
        // Any answer is valid, as long as there is one. If the file is mapped, answers come before
        // the contents have been checked.
        let path = FOLDER.with(|folder| folder.path().join("hostile"));
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(mapped) = file::map(&path, &KeyRing::new()) {
            for key in 0..20u64 {
                let _ = mapped.contains(&key);
                let _ = mapped.get(&key);
                let _ = mapped.book();
                let _ = mapped.count(&key);
            }
        }
        if let Ok(mut loaded) = file::from_bytes(&bytes, &KeyRing::new()) {
            loaded.filter.stats();
            if let Stored::Set(filter) = &mut loaded.filter {
                for key in 0..50u64 {
                    let _ = filter.insert(&key);
                }
                for key in 0..60u64 {
                    let _ = filter.remove(&key);
                }
                let _ = filter.fold();
                let copy = filter.try_clone().unwrap();
                let _ = filter.union(&copy);
                let _ = filter.intersect(&copy);
            }
            if let Stored::Map(map) = &mut loaded.filter {
                for key in 0..50u64 {
                    let value = map.get(&key).unwrap_or_default();
                    map.book().map(|book| book.get(value));
                    let _ = map.set(&key, value);
                }
            }
            if let Stored::Count(counts) = &mut loaded.filter {
                for key in 0..50u64 {
                    counts.insert(&key);
                    counts.count(&key);
                }
                let _ = counts.turn();
            }
            if let Stored::Sketch(sketch) = &mut loaded.filter {
                let copy = sketch.try_clone().unwrap();
                for key in 0..200u64 {
                    match sketch {
                        AnySketch::Distinct(sketch) => sketch.insert(&key),
                        AnySketch::CountMin(sketch) => _ = sketch.insert_times(&key, key << 28),
                        AnySketch::TopK(sketch) => _ = sketch.insert_times(&key, key as u32),
                        AnySketch::Frequent(sketch) => sketch.insert_times(&key, key << 50),
                        other => panic!("{other:?}"),
                    }
                }
                let _ = sketch.union(&copy);
            }
            loaded.filter.contains_batch(&[1u64, 2, 3]);
            file::to_bytes(&loaded.filter, &Options::default()).unwrap();
        }
    }
}
