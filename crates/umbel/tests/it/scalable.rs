//! Scalable filters keep their rate however much they grow, lose no key, and do not depend on how
//! keys are inserted.

use crate::common::Keys;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeSet;
use umbel::any::Stored;
use umbel::hash::KeyRing;
use umbel::internals::{Level, Set, Structure};
use umbel::key::Hashed;
use umbel::scalable::{Options, Stage};
use umbel::sizing::scalable::{Schedule, compound};
use umbel::sizing::{Given, rate};
use umbel::spec::KindOptions;
use umbel::{AnyFilter, Digest, Error, Hasher, Key, Kind, Scalable, Spec, file};

fn options(tightening: f64, growth: u32, stage: Stage) -> KindOptions {
    let mut options = KindOptions::default();
    options.scalable = Options { tightening, growth, stage };
    options
}

fn tuned(capacity: u64, rate: f64, options: KindOptions) -> Scalable {
    Scalable::build(&Spec::new(capacity, rate).unwrap().with_options(options)).unwrap()
}

fn bits_per_key(filter: &Scalable, keys: u64) -> f64 {
    filter.stages().map(|stage| stage.bits).sum::<u64>() as f64 / keys as f64
}

/// Inserts new keys until the filter has counted exactly `count`. Keys that it mistakes for members
/// do not count.
fn fill_to(filter: &mut Scalable, keys: Keys, next: &mut u64, count: u64) {
    loop {
        let has: u64 = filter.stages().map(|stage| stage.keys).sum();
        if has >= count {
            return;
        }
        let batch: Vec<u64> = (*next..*next + (count - has)).map(|i| keys.member(i)).collect();
        *next += count - has;
        filter.insert_batch(&batch).unwrap();
    }
}

#[test]
fn the_stages_match_the_worked_example_of_the_paper() {
    let mut filter = tuned(1000, 0.001, options(0.5, 2, Stage::Partitioned));
    fill_to(&mut filter, Keys::of_build(0), &mut 0, 63_000);
    let stages: Vec<_> = filter.stages().collect();
    assert!(stages.iter().all(|stage| stage.kind == Kind::Partitioned && stage.keys == stage.capacity));
    let rates: Vec<f64> = stages.iter().map(|stage| stage.rate).collect();
    assert_eq!(rates, [5e-4, 2.5e-4, 1.25e-4, 6.25e-5, 3.125e-5, 1.5625e-5]);
    assert_eq!(stages.iter().map(|stage| stage.hashes).collect::<Vec<_>>(), [11, 12, 13, 14, 15, 16]);
    let slices: Vec<u64> = stages.iter().map(|stage| stage.bits / u64::from(stage.hashes)).collect();
    assert_eq!(slices, [1443, 2886, 5771, 11542, 23084, 46167]);
    assert!((filter.schedule().compound_rate(6) - 9.841e-4).abs() < 5e-8);
    let (grown, fixed) = (bits_per_key(&filter, 63_000), rate::bits_per_key(0.001).unwrap());
    assert!((grown - 21.78).abs() < 0.005 && (fixed - 14.38).abs() < 0.005, "{grown} {fixed}");
    assert!((grown / fixed - 1.515).abs() < 0.0005);

    let mut filter = tuned(1000, 0.001, options(0.9, 2, Stage::Partitioned));
    fill_to(&mut filter, Keys::of_build(0), &mut 0, 63_000);
    assert!((bits_per_key(&filter, 63_000) - 20.93).abs() < 0.005, "{}", bits_per_key(&filter, 63_000));
    assert!((filter.schedule().compound_rate(6) - 4.69e-4).abs() < 1e-6);

    // Six stages, from 1000 to 1 024 000 keys.
    let mut filter = tuned(1000, 0.001, options(0.85, 4, Stage::Partitioned));
    fill_to(&mut filter, Keys::of_build(0), &mut 0, 1_365_000);
    assert!((bits_per_key(&filter, 1_365_000) - 20.19).abs() < 0.005, "{}", bits_per_key(&filter, 1_365_000));
}

/// E6. Eight builds with 500 000 queries each: 31 000 false positives, standard error 0.6 %.
#[test]
fn tightening_yields_the_measured_rate_of_the_paper() {
    let (builds, questions) = (8, 500_000);
    let (mut total, mut per_stage, mut untightened) = (0, [0; 6], 0);
    for build in 0..builds {
        let (keys, hasher) = (Keys::of_build(build), Hasher::fast(build));
        let strangers = hasher.digest_batch(&keys.strangers(questions));
        let spec = Spec::new(1000, 0.01).unwrap().with_hasher(hasher.clone());
        let mut filter = Scalable::build(&spec.with_options(options(0.5, 2, Stage::Partitioned))).unwrap();
        fill_to(&mut filter, keys, &mut 0, 63_000);
        total += filter.contains_batch(&Hashed(&strangers)).count();
        // The individual stages, and stages without tightening, as plain filters.
        let (mut start, mut any) = (0, vec![0u64; strangers.len().div_ceil(64)]);
        for (i, stage) in filter.stages().enumerate() {
            let range = start..start + stage.capacity;
            start = range.end;
            let members: Vec<u64> = range.map(|number| keys.member(number)).collect();
            let plain = |kind, rate| {
                let spec = Spec::new(stage.capacity, rate).unwrap().with_hasher(hasher.clone());
                let mut plain = AnyFilter::build(kind, &spec).unwrap();
                plain.insert_batch(&members).unwrap();
                plain.contains_batch(&Hashed(&strangers))
            };
            per_stage[i] += plain(Kind::Partitioned, stage.rate).count();
            // Standard filters, because their rate is 1 % and not the 2^-7 of whole slices.
            let untightened = plain(Kind::Standard, 0.01);
            any.iter_mut().zip(untightened.as_words()).for_each(|(any, word)| *any |= word);
        }
        untightened += any.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
    }
    let share = |found: u64| found as f64 / (builds * questions) as f64;
    println!("total {}, stages {:?}, untightened {}", share(total), per_stage.map(share), share(untightened));
    assert!((share(total) - 0.0077).abs() < 0.0008, "{}", share(total));
    let expected = [0.0040, 0.0019, 0.0010, 0.0005, 0.00023, 0.00010];
    for (found, expected) in per_stage.map(share).into_iter().zip(expected) {
        assert!((found - expected).abs() < 0.00004f64.max(0.05 * expected), "{found} {expected}");
    }
    for (i, found) in per_stage.map(share).into_iter().enumerate() {
        let (theory, questions) = ((-8.0 - i as f64).exp2(), (builds * questions) as f64);
        assert!(
            (found - theory).abs() < 4.0 * (theory / questions).sqrt() + 0.01 * theory,
            "stage {i}: {found} {theory}"
        );
    }
    assert!((share(untightened) - 0.0585).abs() < 0.0015 && (compound([0.01; 6]) - 0.0585).abs() < 5e-5);
}

/// Checks the mean over builds at many sizes, among them the edges of stages, and the worst single
/// build.
#[test]
fn the_requested_rate_is_not_exceeded_at_any_size() {
    for (capacity, asked, builds, questions, sizes) in [
        (100, 0.01, 60, 40_000, &[1, 50, 99, 100, 101, 299, 300, 301, 700, 1500, 3100, 6299, 6300, 6301][..]),
        (1, 0.05, 200, 4000, &[1, 2, 3, 4, 7, 8, 15, 31, 63, 127, 1023]),
        (1000, 0.001, 10, 400_000, &[1000, 1001, 3000, 7000, 15_000, 63_000, 63_001]),
        (100, 0.01, 4, 100_000, &[25_500, 25_501, 102_300, 409_500, 819_100]),
    ] {
        for tightening in [0.85, 0.5] {
            let mut found = vec![0; sizes.len()];
            for build in 0..builds {
                let keys = Keys::of_build(build);
                let spec = Spec::new(capacity, asked).unwrap().with_hasher(Hasher::fast(build));
                let mut filter =
                    Scalable::build(&spec.with_options(options(tightening, 2, Stage::Automatic))).unwrap();
                let strangers = filter.hasher().digest_batch(&keys.strangers(questions));
                let mut next = 0;
                for (size, found) in sizes.iter().zip(&mut found) {
                    fill_to(&mut filter, keys, &mut next, *size);
                    let wrong = filter.contains_batch(&Hashed(&strangers)).count();
                    *found += wrong;
                    let deviation = (asked * questions as f64).sqrt();
                    let most = asked * questions as f64 * 1.15 + 5.0 * deviation;
                    assert!((wrong as f64) < most, "n0 {capacity}, build {build}, {size} keys: {wrong}");
                }
            }
            let all = (builds * questions) as f64;
            for (size, found) in sizes.iter().zip(found) {
                let share = found as f64 / all;
                let predicted = Scalable::predicted_rate(
                    &tuned(capacity, asked, options(tightening, 2, Stage::Automatic)),
                    *size,
                );
                println!(
                    "n0 {capacity}, r {tightening}, {size} keys: {share:.3e}, predicted {:.3e}",
                    predicted.unwrap()
                );
                // Four standard errors of the count.
                let slack = 4.0 * (asked / all).sqrt();
                assert!(share <= asked + slack, "n0 {capacity}, {size} keys: {share} for {asked}");
            }
        }
    }
}

#[test]
fn predicted_and_current_rates_match_the_measured_one() {
    for size in [500, 1000, 5000, 31_000, 200_000] {
        let (mut found, mut of_the_bits) = (0, 0.0);
        let (builds, questions) = (10, 300_000);
        let mut predicted = 0.0;
        for build in 0..builds {
            let keys = Keys::of_build(build);
            let spec = Spec::new(1000, 0.02).unwrap().with_hasher(Hasher::fast(build));
            let mut filter = Scalable::build(&spec).unwrap();
            // Some of the inserted keys were mistaken for members; the estimate includes them.
            let mut inserted = 0;
            fill_to(&mut filter, keys, &mut inserted, size);
            found += filter.contains_batch(&keys.strangers(questions)).count();
            let stats = filter.stats();
            of_the_bits += stats.rate_now / builds as f64;
            predicted = filter.predicted_rate(size).unwrap();
            let estimate = stats.estimate.estimate().unwrap();
            assert!(
                (estimate.value - inserted as f64).abs() <= 5.0 * estimate.standard_error,
                "{size} {estimate}"
            );
        }
        let measured = found as f64 / (builds * questions) as f64;
        let error = 4.0 / (found as f64).sqrt();
        println!(
            "{size}: measured {measured:.4e}, predicted {predicted:.4e}, from the bits {of_the_bits:.4e}"
        );
        assert!((measured / of_the_bits - 1.0).abs() < error, "{size}");
        assert!((measured / predicted - 1.0).abs() < error + 0.05, "{size}");
    }
}

/// Stages share the digest of a key. If their errors were correlated, a false positive of one stage
/// would be one of another stage more often than other keys.
#[test]
fn the_errors_of_stages_are_independent() {
    let (mut both, mut expected) = (0, 0.0);
    for build in 0..10 {
        let keys = Keys::of_build(build);
        let hasher = Hasher::fast(build);
        let strangers = hasher.digest_batch(&keys.strangers(1_000_000));
        // Two consecutive stages, with rates high enough that both err on some keys.
        let answers: Vec<_> = [(0, 20_000, 0.02), (20_000, 40_000, 0.017)]
            .map(|(start, count, rate)| {
                let spec = Spec::new(count, rate).unwrap().with_hasher(hasher.clone());
                let mut stage = AnyFilter::build(Kind::Blocked, &spec).unwrap();
                let members: Vec<u64> = (start..start + count).map(|i| keys.member(i)).collect();
                stage.insert_batch(&members).unwrap();
                stage.contains_batch(&Hashed(&strangers))
            })
            .into();
        let [a, b] = [&answers[0], &answers[1]];
        both += a.as_words().iter().zip(b.as_words()).map(|(a, b)| (a & b).count_ones()).sum::<u32>();
        expected += a.count() as f64 * b.count() as f64 / strangers.len() as f64;
    }
    println!("both err {both} times, independent stages would {expected:.0} times");
    assert!((f64::from(both) - expected).abs() < 4.0 * expected.sqrt());
}

/// 21 bits per key where a tightening of one half needs 26.
#[test]
fn growing_from_100_to_20_000_keys_takes_21_bits_per_key() {
    let bits = |tightening, stage| {
        let mut filter = tuned(100, 0.01, options(tightening, 2, stage));
        fill_to(&mut filter, Keys::of_build(1), &mut 0, 20_000);
        assert_eq!(filter.stages().count(), 8);
        bits_per_key(&filter, 20_000)
    };
    let paper = [0.85, 0.5].map(|tightening| bits(tightening, Stage::Partitioned));
    let ours = [0.85, 0.5].map(|tightening| bits(tightening, Stage::Automatic));
    println!("partitioned stages {paper:.2?}, automatic ones {ours:.2?}");
    assert_eq!(paper.map(f64::round), [21.0, 26.0]);
    assert!(ours[0] < 21.4 && ours[0] < ours[1] - 4.0);
}

#[test]
fn a_filter_grows_from_100_keys_to_ten_million() {
    let mut filter = Scalable::with_capacity(100, 0.01).unwrap();
    let keys = Keys::of_build(2);
    let mut chunk = Vec::new();
    for range in (0..10_000_000u64).step_by(1 << 16).map(|start| start..(start + (1 << 16)).min(10_000_000)) {
        chunk.clear();
        chunk.extend(range.map(|i| keys.member(i)));
        filter.insert_batch(&chunk).unwrap();
    }
    assert_eq!((filter.stages().count(), filter.inserted()), (17, Some(10_000_000)));
    assert_eq!(filter.contains_batch(&chunk).count(), chunk.len() as u64);
    assert_eq!(filter.contains_batch(&keys.members(200_000)).count(), 200_000);
    let wrong = filter.contains_batch(&keys.strangers(1_000_000)).count();
    let rate_now = filter.stats().rate_now;
    println!("{} bits per key, {wrong} wrong, {rate_now}", filter.stats().bits as f64 / 1e7);
    assert!(wrong < 10_000 && (wrong as f64 / 1e6 / rate_now - 1.0).abs() < 0.05);
}

fn same(a: &Scalable, b: &Scalable) -> bool {
    file::to_bytes(a, &file::Options::default()).unwrap()
        == file::to_bytes(b, &file::Options::default()).unwrap()
}

#[test]
fn single_tile_and_batch_operations_agree() {
    let keys = Keys::of_build(3);
    // With repetitions near and far, across the edges of stages and of groups of keys.
    let members: Vec<u64> = (0..40_000).map(|i| keys.member(i * i % 30_011 % (i + 1))).collect();
    let asked: Vec<u64> = members.iter().copied().chain(keys.strangers(5000)).collect();
    for level in Level::available() {
        let [mut single, mut batch, mut tiles] =
            std::array::from_fn(|_| Scalable::with_capacity(150, 0.02).unwrap());
        [&mut single, &mut batch, &mut tiles].into_iter().for_each(|filter| filter.set_level(level));
        let new: Vec<bool> = members.iter().map(|key| single.insert(key).unwrap()).collect();
        batch.insert_batch(&members).unwrap();
        let digests: Vec<Digest> = members.iter().map(|key| key.digest(tiles.hasher())).collect();
        for (i, tile) in digests.chunks(64).enumerate() {
            if i % 3 == 0 {
                tiles.insert_tile(tile).unwrap();
            } else {
                let answer = tiles.insert_tile_new(tile).unwrap();
                let expected = new[i * 64..].iter().take(64).enumerate();
                assert_eq!(answer, expected.fold(0, |word, (i, new)| word | u64::from(*new) << i));
            }
        }
        assert!(single.stages().count() > 4 && same(&single, &batch) && same(&single, &tiles), "{level}");
        assert_eq!(single.inserted(), Some(40_000));
        let answers = single.contains_batch(&asked);
        assert!(answers.iter().eq(asked.iter().map(|key| single.contains(key))));
        for (i, tile) in asked.chunks(64).enumerate() {
            let digests: Vec<Digest> = tile.iter().map(|key| key.digest(single.hasher())).collect();
            assert_eq!(single.contains_tile(&digests), answers.as_words()[i]);
        }
    }
}

#[test]
fn a_loaded_filter_continues_to_grow() {
    for stage in [Stage::Automatic, Stage::Partitioned, Stage::Compact] {
        let keys = Keys::of_build(4);
        let mut filter = tuned(500, 0.01, options(0.8, 3, stage));
        let members = keys.members(40_000);
        for part in members.chunks(7777) {
            filter.insert_batch(part).unwrap();
            let bytes = file::to_bytes(&filter, &file::Options::default()).unwrap();
            let loaded = file::from_bytes(&bytes, &KeyRing::new()).unwrap().filter;
            let Stored::Set(AnyFilter::Scalable(mut copy)) = loaded else { panic!("{loaded:?}") };
            assert_eq!(copy.stats(), filter.stats());
            assert!(copy.stages().eq(filter.stages()) && copy.schedule() == filter.schedule());
            copy.insert_batch(&members).unwrap();
            filter
                .try_clone()
                .map(|mut other| {
                    other.insert_batch(&members).unwrap();
                    assert!(same(&copy, &other));
                })
                .unwrap();
        }
    }
}

#[test]
fn a_mapped_filter_answers_lookups_and_is_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("grown.umbel");
    let mut filter = Scalable::with_capacity(100, 0.01).unwrap();
    let members = Keys::of_build(5).members(5000);
    filter.insert_batch(&members).unwrap();
    file::save(&path, &filter, &file::Options::default()).unwrap();
    let mapped = file::map(&path, &KeyRing::new()).unwrap();
    assert_eq!(mapped.contains_batch(&members).unwrap().count(), 5000);
    let mapped = mapped.into_kind::<Scalable>().unwrap().verify().unwrap().filter;
    let mut copy = mapped.try_clone().unwrap();
    copy.insert_batch(&Keys::of_build(6).members(5000)).unwrap();
    assert_eq!(copy.contains_batch(&members).count(), 5000);
    assert_eq!((mapped.stats(), copy.inserted()), (filter.stats(), Some(10_000)));
}

#[test]
fn unsupported_operations_are_refused_and_change_nothing() {
    let mut filter = Scalable::with_capacity(100, 0.01).unwrap();
    filter.insert_batch(&Keys::of_build(7).members(90)).unwrap();
    let before = file::to_bytes(&filter, &file::Options::default()).unwrap();
    let mut other = Scalable::with_capacity(100, 0.01).unwrap();
    other.insert_batch(&Keys::of_build(8).members(200)).unwrap();
    for options in [
        options(0.8, 2, Stage::Automatic),
        options(0.85, 4, Stage::Automatic),
        options(0.85, 2, Stage::Partitioned),
        options(0.85, 2, Stage::Compact),
    ] {
        assert!(matches!(filter.union(&tuned(100, 0.01, options)), Err(Error::Mismatch(_))));
    }
    let seeded = Spec::new(100, 0.01).unwrap().with_hasher(Hasher::fast(1));
    assert_eq!(filter.mismatch(&Scalable::build(&seeded).unwrap()).unwrap().what, "seed");
    assert!(
        Set::fold(&filter).is_err() && filter.intersect(&other).is_err() && filter.overlap(&other).is_err()
    );
    assert!(
        Set::absorb(&mut filter, &other).is_err() && filter.remove_if_able(Digest::from_hash(1)).is_err()
    );
    let mut any = AnyFilter::from(filter.try_clone().unwrap());
    assert!(matches!(any.remove("key"), Err(Error::Cannot { .. })));
    assert_eq!(file::to_bytes(&filter, &file::Options::default()).unwrap(), before);
}

#[test]
fn filters_with_enough_room_can_be_united() {
    let (a, b) = (Keys::of_build(9).members(400), Keys::of_build(10).members(500));
    let mut filter = Scalable::with_capacity(1000, 0.01).unwrap();
    let mut other = filter.try_clone_empty().unwrap();
    filter.insert_batch(&a).unwrap();
    other.insert_batch(&b).unwrap();
    filter.union(&other).unwrap();
    assert_eq!((filter.contains_batch(&a).count(), filter.contains_batch(&b).count()), (400, 500));
    assert_eq!((filter.inserted(), filter.stages().next().unwrap().keys), (None, 900));
    // A filter that has grown accepts an empty one, and the other way round.
    filter.insert_batch(&Keys::of_build(11).members(5000)).unwrap();
    let empty = filter.try_clone_empty().unwrap();
    let stages: Vec<_> = filter.stages().collect();
    filter.union(&empty).unwrap();
    assert!(filter.stages().eq(stages.iter().copied()));
    let mut grown = empty;
    grown.union(&filter).unwrap();
    assert!(grown.stages().eq(stages) && grown.contains_batch(&b).count() == 500);
    grown.clear();
    assert!(grown.stages().count() == 1 && grown.stats().used_cells == 0 && grown.inserted() == Some(0));
}

/// Returns a filter of `keys` and the union with filters of each of `others`.
fn united(rate: f64, keys: &[u64], others: &[Vec<u64>]) -> Scalable {
    let mut filter = Scalable::with_capacity(100, rate).unwrap();
    filter.insert_batch(keys).unwrap();
    for keys in others {
        let mut other = Scalable::with_capacity(100, rate).unwrap();
        other.insert_batch(&keys[..]).unwrap();
        filter.union(&other).unwrap();
    }
    filter
}

#[test]
fn a_union_of_grown_filters_promises_the_sum_of_their_rates() {
    let keys = |build| Keys::of_build(build).members(3000);
    let others = [keys(21), keys(22), keys(23)[..90].to_vec()];
    let mut filter = united(0.01, &keys(20), &others);
    let promised = filter.design().unwrap().rate;
    // Two more filters of five stages each, and 300 keys for which the first stages of the others
    // have no room.
    let more: f64 = (0..5).map(|i| 2.0 * 0.01 * 0.15 * 0.85f64.powi(i)).sum::<f64>() + 0.01 * 0.15;
    assert!((promised / (0.01 + more) - 1.0).abs() < 1e-9, "{promised} {more}");
    assert_eq!(filter.stages().count(), 16);
    let strangers = Keys::of_build(24).strangers(400_000);
    let measured = filter.contains_batch(&strangers).count() as f64 / 400_000.0;
    let now = filter.stats().rate_now;
    assert!(measured < promised && (measured / now - 1.0).abs() < 0.05, "{measured} {now} {promised}");

    // It continues to grow, also after loading, and keeps its promised rate.
    let bytes = file::to_bytes(&filter, &file::Options::default()).unwrap();
    let loaded = file::from_bytes(&bytes, &KeyRing::new()).unwrap().filter;
    let Stored::Set(AnyFilter::Scalable(mut loaded)) = loaded else { panic!() };
    let later = Keys::of_build(25).members(100_000);
    for filter in [&mut filter, &mut loaded] {
        filter.insert_batch(&later).unwrap();
        assert_eq!(filter.contains_batch(&later).count(), later.len() as u64);
        for keys in others.iter().chain([&keys(20)]) {
            assert_eq!(filter.contains_batch(keys).count(), keys.len() as u64);
        }
        assert!(filter.stages().all(|stage| stage.keys <= stage.capacity));
        let measured = filter.contains_batch(&strangers).count() as f64 / 400_000.0;
        assert!(measured < promised, "{measured} {promised}");
    }
    assert!(loaded.stages().eq(filter.stages()));
}

#[test]
fn common_keys_are_counted_once_in_a_union() {
    let keys = Keys::of_build(26).members(90);
    let filter = united(0.01, &keys, std::slice::from_ref(&keys));
    assert_eq!(filter.stages().count(), 1, "one stage is enough for 90 keys");
    let [stage] = filter.stages().collect::<Vec<_>>()[..] else { panic!() };
    assert!((90..=100).contains(&stage.keys), "{stage:?}");
    assert_eq!(filter.design().unwrap().rate, 0.01);
    // Merging the same keys again adds no stage and counts no key.
    let full = Keys::of_build(27).members(500);
    let mut filter = united(0.01, &full, &[Keys::of_build(28).members(450)]);
    let stages: Vec<_> = filter.stages().collect();
    filter.union(&united(0.01, &full, &[])).unwrap();
    assert!(filter.stages().eq(stages));
    let [a, b] = [&keys[..60], &keys[30..]].map(|keys| united(0.01, keys, &[]));
    let overlap = a.overlap(&b).unwrap().unwrap();
    assert!((overlap.intersection.value - 30.0).abs() < 6.0, "{overlap:?}");
    let mut common = a;
    common.intersect(&b).unwrap();
    assert_eq!(common.contains_batch(&keys[30..60]).count(), 30);
    assert!(common.contains_batch(&keys[..30]).count() < 10);
}

#[test]
fn a_union_with_a_useless_rate_is_refused() {
    let keys: Vec<Vec<u64>> = (0..8).map(|build| Keys::of_build(40 + build).members(700)).collect();
    let mut filter = united(0.4, &keys[0], &keys[1..3]);
    let other = united(0.4, &keys[3], &keys[4..6]);
    let before = file::to_bytes(&filter, &file::Options::default()).unwrap();
    assert!(matches!(filter.union(&other), Err(Error::Full { .. })));
    assert_eq!(file::to_bytes(&filter, &file::Options::default()).unwrap(), before);
}

#[test]
fn invalid_parameters_are_named() {
    let build = |tightening, growth| {
        let spec = Spec::new(1000, 0.01).unwrap().with_options(options(tightening, growth, Stage::Automatic));
        Scalable::build(&spec).map(drop)
    };
    for tightening in [1.0, 0.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
        let error = build(tightening, 2).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "tightening", .. }), "{error}");
        assert!(error.to_string().contains("without bound"), "{error}");
    }
    for growth in [0, 32_769, u32::MAX] {
        assert!(matches!(build(0.85, growth), Err(Error::Parameter { name: "growth", .. })));
    }
    for (capacity, rate) in [(0, 0.01), (10, 0.0), (10, 1.0), (10, f64::NAN), (u64::MAX, 0.01)] {
        assert!(Spec::new(capacity, rate).and_then(|spec| Scalable::build(&spec)).is_err());
    }
    let given = Given { n: Some(1000), p: Some(0.01), k: Some(7), ..Given::default() };
    let error = Scalable::build(&Spec::from_given(given).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Parameter { name: "k", .. }), "{error}");
}

#[test]
fn a_requested_size_is_kept() {
    for (n, m) in [(1000, 12_000), (1000, 40_000), (100_000, 2_000_000)] {
        let spec = Spec::from_given(Given { n: Some(n), m: Some(m), ..Given::default() }).unwrap();
        let plan = Scalable::plan(&spec).unwrap();
        assert!(plan.capacity == n && plan.stored_bits <= m && plan.stored_bits * 20 > m * 18, "{plan:?}");
        assert!(plan.rate <= plan.rate_asked && plan.rate_asked < 1.0);
        assert_eq!(Scalable::build(&spec).unwrap().stats().bits, plan.stored_bits);
    }
    for (m, p) in [(12_000, 0.01), (2_000_000, 0.001)] {
        let spec = Spec::from_given(Given { m: Some(m), p: Some(p), ..Given::default() }).unwrap();
        let plan = Scalable::plan(&spec).unwrap();
        assert!(plan.stored_bits <= m && plan.rate <= p * 0.15 * 1.001, "{plan:?}");
        let more = Spec::new(plan.capacity * 11 / 10, p).unwrap();
        assert!(Scalable::plan(&more).unwrap().stored_bits > m);
    }
    let given = Given { n: Some(1000), p: Some(0.01), m: Some(5000), ..Given::default() };
    assert!(Scalable::plan(&Spec::from_given(given).unwrap()).is_err(), "too few bits");
    let given = Given { n: Some(1_000_000), m: Some(512), ..Given::default() };
    assert!(Scalable::plan(&Spec::from_given(given).unwrap()).is_err(), "far too few bits");
}

#[test]
fn the_end_of_growth_is_an_error_and_loses_nothing() {
    // Rates shrink so fast that digests would soon be too short; sizes end at 2^48 bits.
    let options = options(1e-9, 1, Stage::Automatic);
    let mut filter = tuned(2, 0.5, options);
    let keys = Keys::of_build(12);
    let members = keys.members(100_000);
    let error = filter.insert_batch(&members).unwrap_err();
    assert!(matches!(error, Error::Full { kind: Kind::Scalable, .. }), "{error}");
    let inserted = filter.inserted().unwrap() as usize;
    assert!(inserted > 0 && members[..inserted].iter().all(|key| filter.contains(key)));
    assert!(!filter.contains(&members[inserted]), "the first refused key must not be found");
    assert!(matches!(filter.insert(&members[inserted]), Err(Error::Full { .. })));

    // A second stage would allow 450 keys, and too many of their digests coincide for this rate.
    let mut filter = Scalable::with_capacity(150, 1e-15).unwrap();
    let error = filter.insert_batch(&members[..450]).unwrap_err();
    assert!(error.to_string().contains("digests of 64 bits"), "{error}");
    assert_eq!((filter.inserted(), filter.stages().count()), (Some(150), 1));
}

fn cases() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig { rng_seed, failure_persistence: None, cases: 1500, ..ProptestConfig::default() }
}

#[derive(Clone, Debug)]
enum Operation {
    Single(Vec<u16>),
    Tile(Vec<u16>),
    Batch(Vec<u16>),
    Union(Vec<u16>),
    File,
    Clone,
    Clear,
}

fn operation() -> impl Strategy<Value = Operation> {
    let keys = |most| prop::collection::vec(0..2000u16, 0..most);
    prop_oneof![
        3 => keys(60).prop_map(Operation::Single),
        3 => keys(65).prop_map(Operation::Tile),
        3 => keys(300).prop_map(Operation::Batch),
        1 => keys(5).prop_map(Operation::Union),
        1 => Just(Operation::File),
        1 => Just(Operation::Clone),
        1 => Just(Operation::Clear),
    ]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn members_are_found_after_any_history(
        capacity in 1..40u64,
        growth in 1..4u32,
        partitioned in any::<bool>(),
        operations in prop::collection::vec(operation(), 1..12),
    ) {
        let stage = if partitioned { Stage::Partitioned } else { Stage::Automatic };
        let mut filter = tuned(capacity, 0.1, options(0.9, growth, stage));
        let mut model: BTreeSet<u16> = BTreeSet::new();
        for operation in operations {
            match operation {
                Operation::Single(keys) => for key in keys {
                    let known = filter.contains(&key);
                    prop_assert_eq!(filter.insert(&key).unwrap(), !known);
                    prop_assert!(known || !model.contains(&key));
                    model.insert(key);
                },
                Operation::Tile(keys) => {
                    let digests: Vec<Digest> = keys.iter().map(|key| key.digest(filter.hasher())).collect();
                    filter.insert_tile(&digests).unwrap();
                    model.extend(keys);
                }
                Operation::Batch(keys) => {
                    filter.insert_batch(&keys).unwrap();
                    model.extend(keys);
                }
                Operation::Union(keys) => {
                    let mut other = filter.try_clone_empty().unwrap();
                    other.insert_batch(&keys).unwrap();
                    match filter.union(&other) {
                        Ok(()) => model.extend(keys),
                        Err(error) => {
                            let full = matches!(error, Error::Full { .. });
                            prop_assert!(full, "{}", error);
                        }
                    }
                }
                Operation::File => {
                    let bytes = file::to_bytes(&filter, &file::Options::default()).unwrap();
                    let any = AnyFilter::try_from(file::from_bytes(&bytes, &KeyRing::new()).unwrap().filter);
                    filter = Scalable::try_from(any.unwrap()).unwrap();
                }
                Operation::Clone => filter = filter.try_clone().unwrap(),
                Operation::Clear => {
                    filter.clear();
                    model.clear();
                }
            }
            let all: Vec<u16> = model.iter().copied().collect();
            prop_assert_eq!(filter.contains_batch(&all).count(), all.len() as u64);
            prop_assert!(all.iter().all(|key| filter.contains(key)));
            for stage in filter.stages() {
                prop_assert!(stage.keys <= stage.capacity);
            }
            let schedule: Schedule = filter.schedule();
            prop_assert_eq!(schedule.growth(), growth);
        }
    }
}
