//! Aging filters find every key for its lifetime and forget it after the window, exact to the
//! millisecond and to the key.

use crate::common::{Keys, mix};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use std::time::Duration;
use umbel::aging::{Aging, Options, Timestamp, Window};
use umbel::hash::KeyRing;
use umbel::internals::{Algebra, Level, Set, Structure};
use umbel::sizing::Given;
use umbel::spec::KindOptions;
use umbel::{AnyFilter, Digest, Error, Hasher, Key, Kind, Spec, file};

fn options(window: Option<Window>, generations: u32) -> KindOptions {
    let mut options = KindOptions::default();
    options.aging = Options { window, generations };
    options
}

fn build(capacity: u64, rate: f64, window: Option<Window>, generations: u32) -> Aging {
    Aging::build(&Spec::new(capacity, rate).unwrap().with_options(options(window, generations))).unwrap()
}

fn by_time(capacity: u64, millis: u64, generations: u32) -> Aging {
    build(capacity, 1e-9, Some(Window::Time(Duration::from_millis(millis))), generations)
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Returns the first time at which a key that was inserted at `start` is no longer found.
fn end_of_life(window: u64, generations: u32, start: u64) -> u64 {
    let mut filter = by_time(1000, window, generations);
    filter.advance(at(start)).unwrap();
    filter.insert("key");
    let found = |now: u64| {
        let mut copy = filter.try_clone().unwrap();
        copy.advance(at(now)).unwrap();
        copy.contains("key")
    };
    let end = (start..=start + window).find(|now| !found(*now)).expect("forgotten after the window");
    assert!((end..end + 3 * window).all(|now| !found(now)), "a forgotten key must stay forgotten");
    assert!([end, u64::MAX / 2, u64::MAX].into_iter().all(|now| !found(now)));
    end
}

#[test]
fn reading_at_a_time_equals_advancing_to_it() {
    let keys = Keys::of_build(1).members(60);
    for started in [true, false] {
        let mut filter = by_time(1000, 100, 7);
        for (i, key) in keys.iter().enumerate() {
            if started {
                filter.advance(at(1000 + 3 * i as u64)).unwrap();
            }
            filter.insert(key);
        }
        let before = filter.contains_batch(&keys);
        for now in (900..1400).chain([u64::MAX]) {
            let mut advanced = filter.try_clone().unwrap();
            // A time in the past counts as the latest one.
            let _ = advanced.advance(at(now));
            let read = filter.at(at(now));
            assert!(read.contains_batch(&keys).iter().eq(advanced.contains_batch(&keys).iter()), "{now}");
            assert_eq!(format!("{:?}", read.stats()), format!("{:?}", advanced.stats()), "{now}");
        }
        assert!(
            filter.contains_batch(&keys).iter().eq(before.iter()),
            "reading at a time must not change the filter"
        );
    }
    let by_keys = build(100, 0.01, None, 8);
    assert_eq!(format!("{:?}", by_keys.at(at(5)).stats()), format!("{:?}", by_keys.stats()));
}

#[test]
fn a_lifetime_is_between_the_window_less_one_generation_and_the_window() {
    for (window, generations) in [(80, 8), (7, 7), (10, 3), (100, 7), (13, 1), (5, 2)] {
        let base = 1_800_000_000_000;
        let lives: Vec<u64> =
            (0..window).map(|i| end_of_life(window, generations, base + i) - (base + i)).collect();
        for life in &lives {
            // life > T - T/g, in whole numbers.
            let (g, above) = (u64::from(generations), life * u64::from(generations));
            assert!(above > window * g - window && *life <= window, "T {window}, g {generations}: {lives:?}");
        }
        assert_eq!(lives.iter().max(), Some(&window), "the first key of a generation must live longest");
        // The shortest lifetime is that of a key in the last millisecond of its generation.
        assert_eq!(
            *lives.iter().min().unwrap(),
            (window * u64::from(generations) - window) / u64::from(generations) + 1
        );
    }
    // At the start of 1970, and at the end of time.
    assert_eq!(end_of_life(80, 8, 0), 80);
    let mut filter = by_time(10, 80, 8);
    filter.advance(at(u64::MAX)).unwrap();
    filter.insert("key");
    assert!(filter.contains("key"));
}

#[test]
fn inserting_a_key_again_renews_it() {
    let mut filter = by_time(1000, 80, 8);
    for now in (0..1000).step_by(70) {
        filter.advance(at(now)).unwrap();
        assert_eq!(filter.insert("often"), now == 0);
        filter.insert(&now);
    }
    filter.advance(at(1050)).unwrap();
    assert!(filter.contains("often") && !filter.contains(&840u64) && filter.contains(&980u64));
}

#[test]
fn skipping_whole_windows_forgets_everything() {
    let mut filter = by_time(1000, 80, 8);
    let keys = Keys::of_build(0);
    let mut now = 5;
    for (round, jump) in
        [1, 9, 10, 11, 79, 80, 81, 800, 8_000_000_000, 3, 80, 90].into_iter().cycle().take(200).enumerate()
    {
        now += jump;
        filter.advance(at(now)).unwrap();
        if jump >= 80 {
            assert_eq!(filter.stats().details[1], ("live generations", 0.0));
            assert_eq!((filter.stats().used_cells, filter.stats().rate_now), (0, 0.0));
        }
        let members: Vec<u64> = (0..50).map(|i| keys.member(round as u64 * 50 + i)).collect();
        filter.insert_batch(&members);
        assert_eq!(filter.contains_batch(&members).count(), 50);
    }
    assert_eq!(filter.inserted(), Some(10_000));
}

#[test]
fn extreme_times_round_trip_through_a_file() {
    for (window, generations) in [(1, 1), (7, 7), (10, 2), (1000, 7), (u64::MAX, 1), (u64::MAX, 8)] {
        let mut filter = by_time(100, window, generations);
        for now in [0, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            filter.advance(at(now)).unwrap();
            filter.insert(&now);
            let again = reload(&filter);
            assert!(filter.contains(&now) && again.contains(&now), "T {window}, g {generations}, {now}");
            assert_eq!((again.now(), again.held()), (filter.now(), filter.held()));
        }
    }
}

#[test]
fn a_clock_that_goes_backwards_is_refused_and_changes_nothing() {
    let mut filter = by_time(1000, 80, 8);
    filter.insert("early");
    filter.advance(at(1000)).unwrap();
    filter.insert("key");
    let before = file::to_bytes(&filter, &file::Options::default()).unwrap();
    let error = filter.advance(at(999)).unwrap_err();
    assert!(matches!(error, Error::Clock { last, got } if (last, got) == (at(1000), at(999))), "{error}");
    assert!(error.to_string().contains("backwards, from 1.000 to 0.999"), "{error}");
    assert_eq!(file::to_bytes(&filter, &file::Options::default()).unwrap(), before);
    filter.advance(at(1000)).unwrap();
    assert_eq!(filter.now(), Some(at(1000)));
    // A key from before the first time counts as inserted then.
    assert!(filter.contains("early") && filter.contains("key"));
    filter.advance(at(1079)).unwrap();
    assert!(filter.contains("early"));
    filter.advance(at(1080)).unwrap();
    assert!(!filter.contains("early") && !filter.contains("key"));
    let mut by_keys = Aging::with_capacity(100, 0.01).unwrap();
    assert!(matches!(by_keys.advance(at(1)), Err(Error::Cannot { kind: Kind::Aging, .. })));
    assert!(Timestamp::now() > at(1_700_000_000_000));
}

/// Inserts a key and then others until it is forgotten, and returns how many others.
fn lifetime_in_keys(window: u64, generations: u32, before: u64) -> u64 {
    let mut filter = build(window, 1e-9, None, generations);
    for i in 0..before {
        filter.insert(&mix(i));
    }
    filter.insert("key");
    for others in 1..=window + u64::from(generations) {
        // Repeated keys do not count if the newest generation has them.
        filter.insert(&mix(before + others));
        filter.insert(&mix(before + others));
        if !filter.contains("key") {
            return others;
        }
    }
    panic!("not forgotten")
}

#[test]
fn a_window_of_keys_forgets_after_that_many_other_keys() {
    for (window, generations) in [(80, 8), (8, 8), (12, 1), (30, 3), (64, 2)] {
        let part = window / u64::from(generations);
        for before in 0..2 * window + 3 {
            let life = lifetime_in_keys(window, generations, before);
            // The first key of a generation lives for the whole window.
            assert_eq!(life, window - before % part, "window {window}, g {generations}, after {before}");
            assert!(life > window - part && life <= window);
        }
    }
    // Rounded up to whole generations: 4 of 3 keys each.
    assert_eq!(lifetime_in_keys(10, 4, 0), 12);
    assert_eq!(lifetime_in_keys(10, 4, 2), 10);
}

#[test]
fn a_smaller_window_than_the_capacity_is_kept() {
    let mut filter = build(8000, 0.01, Some(Window::Keys(800)), 8);
    let members = Keys::of_build(1).members(5000);
    filter.insert_batch(&members);
    assert_eq!(filter.contains_batch(&members[4300..]).count(), 700);
    assert!(filter.contains_batch(&members[..4200]).count() < 42);
}

#[test]
fn the_rate_at_capacity_is_not_above_the_requested_one() {
    for (capacity, rate, builds, questions) in [
        (100, 0.01, 60, 30_000),
        (1000, 0.01, 20, 100_000),
        (100_000, 0.01, 4, 200_000),
        (5000, 0.001, 10, 400_000),
    ] {
        for (window, generations) in [(None, 8), (Some(Window::Time(Duration::from_secs(8))), 4)] {
            let (mut found, mut of_the_bits, mut predicted) = (0, 0.0, 0.0);
            for build in 0..builds {
                let (keys, spec) = (Keys::of_build(build), Spec::new(capacity, rate).unwrap());
                let spec = spec.with_hasher(Hasher::fast(build)).with_options(options(window, generations));
                let mut filter = Aging::build(&spec).unwrap();
                // Go twice around the ring and then fill it exactly.
                for (i, part) in keys
                    .members(3 * capacity)
                    .chunks((capacity as usize).div_ceil(generations as usize))
                    .enumerate()
                {
                    if window.is_some() {
                        filter.advance(at(i as u64 * 2000)).unwrap();
                    }
                    filter.insert_batch(part);
                }
                found += filter.contains_batch(&keys.strangers(questions)).count();
                let stats = filter.stats();
                of_the_bits += stats.rate_now / builds as f64;
                predicted = filter.predicted_rate(capacity).unwrap();
                assert_eq!(Aging::plan(&spec).unwrap().rate, predicted);
                assert!(stats.estimate.estimate().unwrap().value < 1.5 * capacity as f64);
            }
            let measured = found as f64 / (builds * questions) as f64;
            let error = 4.0 / (found as f64).sqrt();
            println!(
                "{capacity} {rate} {window:?}: {measured:.3e}, bits {of_the_bits:.3e}, predicted {predicted:.3e}"
            );
            assert!(predicted <= rate && measured <= rate * (1.02 + error), "{capacity} {rate}: {measured}");
            assert!(
                (measured / of_the_bits - 1.0).abs() < error + 0.01,
                "{capacity}: {measured} {of_the_bits}"
            );
        }
    }
}

#[test]
fn more_keys_than_planned_are_kept_at_a_higher_rate() {
    let mut filter = build(1000, 0.01, Some(Window::Time(Duration::from_millis(80))), 8);
    filter.advance(at(0)).unwrap();
    let keys = Keys::of_build(2);
    let members = keys.members(1000);
    filter.insert_batch(&members);
    filter.advance(at(70)).unwrap();
    assert_eq!(filter.contains_batch(&members).count(), 1000, "a generation holds eight times its capacity");
    let measured = filter.contains_batch(&keys.strangers(100_000)).count() as f64 / 100_000.0;
    let stats = filter.stats();
    assert!(stats.rate_now > 0.1 && (measured / stats.rate_now - 1.0).abs() < 0.1, "{measured} {stats:?}");
    assert!(filter.predicted_rate(100_000).unwrap() > 0.99);
}

#[test]
fn single_tile_and_batch_operations_agree() {
    let keys = Keys::of_build(3);
    let members: Vec<u64> = (0..40_000).map(|i| keys.member(i * i % 30_011 % (i + 1))).collect();
    let asked: Vec<u64> = members.iter().copied().chain(keys.strangers(3000)).collect();
    for level in Level::available() {
        let [mut single, mut batch, mut tiles] =
            std::array::from_fn(|_| Aging::with_capacity(1000, 0.02).unwrap());
        [&mut single, &mut batch, &mut tiles].into_iter().for_each(|filter| filter.set_level(level));
        for key in &members {
            let known = single.contains(key);
            assert_eq!(single.insert(key), !known);
        }
        batch.insert_batch(&members);
        let digests: Vec<Digest> = members.iter().map(|key| key.digest(tiles.hasher())).collect();
        for (i, tile) in digests.chunks(64).enumerate() {
            if i % 2 == 0 {
                tiles.insert_tile(tile);
            } else {
                tiles.insert_tile_new(tile);
            }
        }
        let [a, b, c] = [&single, &batch, &tiles]
            .map(|filter| file::to_bytes(filter, &file::Options::default()).unwrap());
        assert!(a == b && a == c, "{level}");
        let answers = single.contains_batch(&asked);
        assert!(answers.iter().eq(asked.iter().map(|key| single.contains(key))));
        for (i, tile) in asked.chunks(64).enumerate() {
            let digests: Vec<Digest> = tile.iter().map(|key| key.digest(single.hasher())).collect();
            assert_eq!(single.contains_tile(&digests), answers.as_words()[i]);
        }
    }
}

#[test]
fn a_mapped_filter_follows_the_clock_and_is_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("aging.umbel");
    let mut filter = by_time(1000, 80, 8);
    filter.advance(at(1000)).unwrap();
    filter.insert("first");
    filter.advance(at(1040)).unwrap();
    filter.insert("second");
    file::save(&path, &filter, &file::Options::default()).unwrap();
    let mapped = file::map(&path, &KeyRing::new()).unwrap();
    assert!(mapped.contains("first").unwrap() && !mapped.contains("third").unwrap());
    let mut verified = mapped.verify().unwrap().filter;
    verified.advance(at(1080)).unwrap();
    let mapped = verified.into_kind::<Aging>().unwrap();
    assert_eq!((mapped.now(), mapped.window()), (Some(at(1080)), filter.window()));
    assert!(!mapped.contains("first") && mapped.contains("second"));
    let mut copy = mapped.try_clone().unwrap();
    copy.insert("third");
    assert!(copy.contains("second") && copy.contains("third") && !copy.contains("first"));
    assert!(!mapped.contains("third"), "the copy must own its memory");
    let empty = copy.try_clone_empty().unwrap();
    assert!(!empty.contains("third") && empty.now() == copy.now() && empty.inserted() == Some(0));
}

#[test]
fn unsupported_operations_are_refused_and_change_nothing() {
    let mut filter = Aging::with_capacity(100, 0.01).unwrap();
    filter.insert_batch(&[1u64, 2, 3]);
    let before = file::to_bytes(&filter, &file::Options::default()).unwrap();
    let other = filter.try_clone().unwrap();
    assert!(filter.is_compatible(&other));
    assert!(matches!(filter.union(&other), Err(Error::Cannot { kind: Kind::Aging, .. })));
    assert!(filter.intersect(&other).is_err() && filter.overlap(&other).is_err());
    assert!(
        Set::fold(&filter).is_err()
            && Set::absorb(&mut filter, &other).is_err()
            && filter.remove_if_able(Digest::from_hash(1)).is_err()
    );
    assert_eq!(file::to_bytes(&filter, &file::Options::default()).unwrap(), before);
    filter.clear();
    assert!(!filter.contains(&1u64) && filter.stats().used_cells == 0 && filter.inserted() == Some(0));
    assert_eq!(filter.mismatch(&build(100, 0.01, None, 4)).unwrap().what, "number of generations");
    assert_eq!(filter.mismatch(&build(100, 0.01, Some(Window::Keys(50)), 8)).unwrap().what, "window");
}

#[test]
fn invalid_parameters_are_named() {
    let refused = |window, generations| {
        let spec = Spec::new(1000, 0.01).unwrap().with_options(options(window, generations));
        match Aging::build(&spec) {
            Err(Error::Parameter { name, .. }) => name,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([refused(None, 0), refused(None, 257)], ["generations"; 2]);
    let time = |millis| Some(Window::Time(Duration::from_millis(millis)));
    for window in
        [Some(Window::Keys(0)), Some(Window::Keys(1001)), time(0), time(7), Some(Window::Time(Duration::MAX))]
    {
        assert_eq!(refused(window, 8), "window", "{window:?}");
    }
    let given = Given { n: Some(1000), p: Some(0.01), k: Some(7), ..Given::default() };
    assert!(Aging::build(&Spec::from_given(given).unwrap()).is_err());
    for (n, m) in [(1000, 20_000), (100_000, 2_000_000)] {
        let spec = Spec::from_given(Given { n: Some(n), m: Some(m), ..Given::default() }).unwrap();
        let plan = Aging::plan(&spec).unwrap();
        assert!(plan.capacity == n && plan.stored_bits <= m && plan.rate <= plan.rate_asked, "{plan:?}");
        let stats = Aging::build(&spec).unwrap().stats();
        assert_eq!((stats.bits, stats.bytes, stats.hashes), (plan.stored_bits, plan.bytes, plan.hashes));
    }
    let spec = Spec::from_given(Given { m: Some(200_000), p: Some(0.01), ..Given::default() }).unwrap();
    let plan = Aging::plan(&spec).unwrap();
    assert!(plan.stored_bits <= 200_000 && (10_000..16_000).contains(&plan.capacity), "{plan:?}");
}

fn cases() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig { rng_seed, failure_persistence: None, cases: 2000, ..ProptestConfig::default() }
}

#[derive(Clone, Debug)]
enum Operation {
    Single(Vec<u16>),
    Batch(Vec<u16>),
    Advance(u64),
    File,
    Clone,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => prop::collection::vec(0..300u16, 0..30).prop_map(Operation::Single),
        4 => prop::collection::vec(0..300u16, 0..120).prop_map(Operation::Batch),
        6 => prop_oneof![0..30u64, 0..30u64, 0..300u64].prop_map(Operation::Advance),
        1 => Just(Operation::File),
        1 => Just(Operation::Clone),
    ]
}

fn reload(filter: &Aging) -> Aging {
    let bytes = file::to_bytes(filter, &file::Options::default()).unwrap();
    let any = AnyFilter::try_from(file::from_bytes(&bytes, &KeyRing::new()).unwrap().filter).unwrap();
    Aging::try_from(any).unwrap()
}

proptest! {
    #![proptest_config(cases())]

    /// Compares with the exact times of the last insertions: keys are found for the shortest
    /// lifetime and forgotten after the window.
    #[test]
    fn keys_are_found_for_their_lifetime_in_any_history(
        generations in 1..10u32,
        window in 10..100u64,
        start in any::<u32>(),
        operations in prop::collection::vec(operation(), 1..20),
    ) {
        let mut filter = by_time(40, window, generations);
        let (mut now, mut last) = (u64::from(start), BTreeMap::new());
        filter.advance(at(now)).unwrap();
        for operation in operations {
            match operation {
                Operation::Single(keys) => for key in keys {
                    filter.insert(&key);
                    last.insert(key, now);
                },
                Operation::Batch(keys) => {
                    filter.insert_batch(&keys);
                    last.extend(keys.into_iter().map(|key| (key, now)));
                }
                Operation::Advance(millis) => {
                    now += millis;
                    filter.advance(at(now)).unwrap();
                }
                Operation::File => filter = reload(&filter),
                Operation::Clone => filter = filter.try_clone().unwrap(),
            }
            for (key, inserted) in &last {
                let (age, g) = (now - inserted, u64::from(generations));
                if age * g <= window * g - window {
                    prop_assert!(filter.contains(key), "{} after {}", key, age);
                }
                if age >= window && filter.stats().rate_now < 1e-6 {
                    prop_assert!(!filter.contains(key), "{} after {}", key, age);
                }
            }
        }
    }

    /// Compares with a list of all insertions of keys that were not in the newest generation.
    #[test]
    fn the_last_keys_are_found_in_any_history(
        generations in 1..6u32,
        part in 1..20u64,
        operations in prop::collection::vec(operation(), 1..20),
    ) {
        let window = part * u64::from(generations);
        let mut filter = build(window, 1e-6, None, generations);
        // The model has a list per generation.
        let mut lists: Vec<Vec<u16>> = vec![vec![]];
        let mut insert = |filter: &mut Aging, keys: &[u16], single: bool| {
            if single {
                filter.extend(keys);
            } else {
                filter.insert_batch(keys);
            }
            for key in keys {
                let newest = lists.last_mut().unwrap();
                if newest.contains(key) {
                    continue;
                }
                if newest.len() as u64 == part {
                    lists.push(vec![*key]);
                } else {
                    newest.push(*key);
                }
            }
            let live = lists.len().saturating_sub(generations as usize);
            lists[live..].concat()
        };
        for operation in operations {
            match operation {
                Operation::Single(keys) => {
                    let live = insert(&mut filter, &keys, true);
                    prop_assert!(live.iter().all(|key| filter.contains(key)));
                }
                Operation::Batch(keys) => {
                    let live = insert(&mut filter, &keys, false);
                    prop_assert_eq!(filter.contains_batch(&live).count(), live.len() as u64);
                    let gone = (0..300u16).filter(|key| !live.contains(key)).filter(|key| filter.contains(key));
                    prop_assert!(gone.count() <= 1, "a forgotten key may only be found as a false positive");
                }
                Operation::File => filter = reload(&filter),
                _ => filter = filter.try_clone().unwrap(),
            }
        }
    }
}

#[test]
fn the_rate_of_held_keys_reveals_a_burst() {
    let (capacity, rate, generations) = (10_000, 0.01, 8);
    let second = |filter: &mut Aging, number: u64| filter.advance(at((1000 + number) * 1000)).unwrap();
    let window = Some(Window::Time(Duration::from_secs(8)));
    let strangers: Vec<u64> = (0..100_000).map(|i| Keys::of_build(1).stranger(i)).collect();
    let members = Keys::of_build(1).members(capacity);
    let measured = |filter: &Aging| filter.contains_batch(&strangers[..]).count() as f64 / 1e5;
    // The filter is planned for an eighth of the keys in each second.
    let mut even = build(capacity, rate, window, generations);
    for (number, part) in (0..).zip(members.chunks(1250)) {
        second(&mut even, number);
        even.insert_batch(part);
    }
    let held_rate = even.rate_of_held().unwrap();
    assert!(
        held_rate < 0.0102 && (held_rate / even.predicted_rate(capacity).unwrap() - 1.0).abs() < 0.02,
        "{held_rate}"
    );
    assert!((measured(&even) / held_rate - 1.0).abs() < 0.2, "{held_rate}");
    // If all come in one second, they go into an eighth of the memory.
    let mut burst = build(capacity, rate, window, generations);
    second(&mut burst, 0);
    burst.insert_batch(&members[..]);
    let held_rate = burst.rate_of_held().unwrap();
    assert!(burst.predicted_rate(burst.held()).unwrap() < 0.01 && held_rate > 0.3, "{held_rate}");
    assert!(measured(&burst) > held_rate, "keys mistaken for repeated ones are not held: {held_rate}");
    assert_eq!(build(capacity, rate, window, generations).rate_of_held().unwrap(), 0.0);
}
