//! Bloomier maps: every key has exactly its value, strangers get a value at the promised rate, and
//! changing a value changes nothing else.

use crate::common::Keys;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::HashMap;
use umbel::any::Stored;
use umbel::bloomier::CodeBook;
use umbel::bloomier::textbook::{Element, fill, lookup, match_in_rounds};
use umbel::file::{self, Options};
use umbel::hash::KeyRing;
use umbel::hash::reduce;
use umbel::internals::{Level, Structure, TILE};
use umbel::sizing::Given;
use umbel::spec::{Construction, KindOptions, plan};
use umbel::{AnyMap, Bloomier, BloomierMutable, Digest, Error, Hasher, Key, Kind, Map, Spec};

const MAPS: [Kind; 2] = [Kind::Bloomier, Kind::BloomierMutable];

fn spec(n: usize, rate: f64, segments: Option<u32>, largest: Option<u64>) -> Spec {
    let mut options = KindOptions::default();
    (options.bloomier.segments, options.bloomier.largest) = (segments, largest);
    Spec::new(n as u64, rate).unwrap().with_options(options)
}

fn build(
    kind: Kind,
    spec: &Spec,
    keys: &[u64],
    values: &[u64],
    book: Option<CodeBook>,
) -> umbel::Result<AnyMap> {
    let pairs = spec.hasher().digest_batch(keys).into_iter().zip(values.iter().copied()).collect();
    AnyMap::from_pairs(kind, spec, pairs, book, &Construction::default())
}

fn bytes(map: &AnyMap) -> Vec<u8> {
    file::to_bytes(map, &Options::default()).unwrap()
}

/// Returns the share of strangers that get a value.
fn wrong(map: &AnyMap, keys: &Keys, queries: u64) -> f64 {
    let strangers: Vec<u64> = (0..queries).map(|i| keys.stranger(i)).collect();
    map.get_batch(&strangers[..]).iter().flatten().count() as f64 / queries as f64
}

fn within_four_sigma(measured: f64, expected: f64, queries: f64) -> bool {
    (measured - expected).abs() <= 4.0 * (expected * (1.0 - expected) / queries).sqrt()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn every_key_has_exactly_its_value(
        exact in prop::collection::hash_map(any::<u64>(), any::<u64>(), 1..600),
        width in 1..=64u32,
        rate in prop_oneof![Just(0.5), Just(0.01), Just(1e-5)],
        segments in prop_oneof![Just(None), Just(Some(3)), Just(Some(4))],
        mutable: bool,
    ) {
        let (keys, values): (Vec<u64>, Vec<u64>) =
            exact.iter().map(|(key, value)| (*key, value >> (64 - width))).unzip();
        let spec = spec(keys.len(), rate, segments, None);
        let mut map = build(MAPS[usize::from(mutable)], &spec, &keys, &values, None).unwrap();
        prop_assert!(map.get_batch(&keys[..]).into_iter().eq(values.iter().map(|value| Some(*value))));
        prop_assert!(keys.iter().zip(&values).all(|(key, value)| map.get(key) == Some(*value)));
        prop_assert_eq!(map.largest_value(), values.iter().copied().max().unwrap());
        // It round-trips through a file.
        let Stored::Map(loaded) = file::from_bytes(&bytes(&map), &KeyRing::new()).unwrap().filter else { panic!() };
        prop_assert_eq!(loaded.get_batch(&keys[..]), map.get_batch(&keys[..]));
        prop_assert!(bytes(&loaded) == bytes(&map));
        // Changing one value does not change the others.
        let largest = map.largest_value();
        if mutable {
            prop_assert!(map.set(&keys[0], largest).unwrap());
            prop_assert_eq!(map.get(&keys[0]), Some(largest));
            prop_assert!(keys.iter().zip(&values).skip(1).all(|(key, value)| map.get(key) == Some(*value)));
        } else {
            let refused = map.set(&keys[0], largest);
            prop_assert!(matches!(refused, Err(Error::Cannot { .. })), "{:?}", refused);
        }
    }

    #[test]
    fn changed_values_match_those_of_an_exact_map(
        n in 1..500u64,
        changes in prop::collection::vec((0..500u64, 0..1000u64), 0..600),
        seed: u64,
    ) {
        let keys = Keys::of_build(seed % 1000).members(n);
        let mut exact: HashMap<u64, u64> = keys.iter().map(|key| (*key, key % 1000)).collect();
        let values: Vec<u64> = keys.iter().map(|key| exact[key]).collect();
        let spec = spec(keys.len(), 0.01, None, Some(999));
        let mut map = build(Kind::BloomierMutable, &spec, &keys, &values, None).unwrap();
        for (which, value) in changes {
            let key = keys[(which % n) as usize];
            exact.insert(key, value);
            prop_assert!(map.set(&key, value).unwrap());
        }
        prop_assert!(keys.iter().all(|key| map.get(key) == exact.get(key).copied()));
        let refused = map.set(&keys[0], 1000);
        prop_assert!(matches!(refused, Err(Error::Parameter { name: "value", .. })), "{:?}", refused);
        prop_assert_eq!(map.get(&keys[0]), Some(exact[&keys[0]]), "a refusal must not change the map");
    }
}

#[test]
fn strangers_get_a_value_at_the_predicted_rate() {
    // n = 5000, k = 3, q = 8, |R| = 4: 4/256.
    for segments in [Some(3), None] {
        let builds = 20;
        let mut sum = 0.0;
        for number in 0..builds {
            let keys = Keys::of_build(number);
            let values: Vec<u64> = (0..5000).map(|i| i % 4).collect();
            let spec = spec(5000, 4.0 / 256.0, segments, None);
            let map = build(Kind::Bloomier, &spec, &keys.members(5000), &values, None).unwrap();
            assert_eq!(map.stats().rate_now, 0.015625);
            assert!(matches!(&map, AnyMap::Bloomier(map) if map.cell_bits() == 8));
            sum += wrong(&map, &keys, 500_000);
        }
        let measured = sum / builds as f64;
        assert!((measured - 0.0159).abs() <= 0.0008, "{measured}");
        assert!(within_four_sigma(measured, 4.0 / 256.0, 500_000.0 * builds as f64), "{measured}");
    }
}

#[test]
fn strangers_get_a_value_of_a_mutable_map_at_the_predicted_rate() {
    for (segments, k) in [(None, 3.0), (Some(3), 3.0), (Some(4), 4.0)] {
        for (values, bits) in [(2u64, 8), (1000, 8), (1000, 10)] {
            let expected = k / 2f64.powi(bits);
            let keys = Keys::of_build(bits as u64);
            let list: Vec<u64> = (0..20_000).map(|i| i % values).collect();
            let spec = spec(20_000, expected, segments, None);
            let map = build(Kind::BloomierMutable, &spec, &keys.members(20_000), &list, None).unwrap();
            assert_eq!(map.stats().rate_now, expected, "the number of values does not matter");
            let measured = wrong(&map, &keys, 4_000_000);
            assert!(within_four_sigma(measured, expected, 4e6), "{measured} for {expected}");
        }
    }
}

#[test]
fn the_requested_rate_is_kept_for_any_number_of_values() {
    let keys = Keys::of_build(1);
    for kind in MAPS {
        for values in [1u64, 2, 3, 5, 100, 129, 1 << 20, 1 << 40, u64::MAX] {
            let list: Vec<u64> =
                (0..10_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % values).collect();
            let map =
                build(kind, &spec(10_000, 0.01, None, None), &keys.members(10_000), &list, None).unwrap();
            assert!(map.stats().rate_now <= 0.01, "{kind} {values}");
            let measured = wrong(&map, &keys, 400_000);
            assert!(measured <= 0.01 + 4.0 * (0.01f64 / 400_000.0).sqrt(), "{kind} {values}: {measured}");
        }
    }
}

/// Returns cells in three equal segments, as in the textbook.
fn neighbours(key: u64, segment: u64) -> Vec<usize> {
    let digest = key.digest(&Hasher::default());
    (0..3).zip(digest.stream()).map(|(i, x)| (i * segment + reduce(x, segment)) as usize).collect()
}

#[test]
fn without_masks_the_rate_depends_on_the_contents() {
    // The same table is queried with and without the masks: strangers whose cells are all empty
    // find 0, which is a value.
    let (n, segment) = (5000u64, (1.23 * 5000.0 + 32.0) as u64 / 3);
    let mut rates = [0.0, 0.0];
    let builds = 8;
    let mut done = 0;
    for number in 0.. {
        if done == builds {
            break;
        }
        let keys = Keys::of_build(number);
        let element = |key: u64, masked: bool| Element {
            neighbours: neighbours(key, segment),
            mask: if masked { key.digest(&Hasher::default()).salted(1).get() >> 56 } else { 0 },
            value: key % 4,
        };
        let elements: Vec<Element> = keys.members(n).into_iter().map(|key| element(key, true)).collect();
        let Some(order) = match_in_rounds(&elements, 3 * segment as usize) else { continue };
        let table = fill(&elements, &order, 3 * segment as usize, |element, _| element.value);
        for (rate, masked) in rates.iter_mut().zip([true, false]) {
            let strangers = (0..100_000).map(|i| element(keys.stranger(i), masked));
            let found = strangers.filter(|stranger| lookup(&table, stranger) < 4).count();
            *rate += found as f64 / 1e5 / builds as f64;
        }
        done += 1;
    }
    let [masked, plain] = rates;
    assert!((masked - 4.0 / 256.0).abs() < 0.0008, "{masked}");
    assert!((plain - 0.0205).abs() < 0.002, "{plain}");
}

#[test]
fn a_key_with_two_values_is_refused_and_a_repeated_pair_counts_once() {
    for kind in MAPS {
        let spec = spec(4, 0.01, None, None);
        match build(kind, &spec, &[1, 2, 3, 1], &[7, 8, 9, 5], None) {
            Err(Error::Conflict { digest, mut values }) => {
                values.sort_unstable();
                assert_eq!((digest, values), (1u64.digest(spec.hasher()), [5, 7]));
            }
            other => panic!("{other:?}"),
        }
        let map = build(kind, &spec, &[1, 2, 3, 1], &[7, 8, 9, 7], None).unwrap();
        assert_eq!((map.get(&1u64), map.inserted()), (Some(7), Some(3)));
        assert_eq!(map.design().unwrap().capacity, 3);
    }
}

#[test]
fn values_that_do_not_fit_are_refused() {
    for kind in MAPS {
        let parameter = |spec: &Spec, values: &[u64], book| match build(kind, spec, &[1, 2], values, book) {
            Err(Error::Parameter { name, .. }) => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(parameter(&spec(2, 0.01, None, Some(15)), &[3, 16], None), "value");
        let book = || CodeBook::new(&["red", "green"]).ok();
        assert_eq!(parameter(&spec(2, 0.01, None, None), &[0, 2], book()), "value");
        assert_eq!(parameter(&spec(2, 0.01, None, Some(2)), &[0, 1], book()), "values");
        assert_eq!(parameter(&spec(2, 0.01, Some(2), None), &[0, 1], None), "k");
        assert_eq!(parameter(&spec(2, 0.01, Some(5), None), &[0, 1], None), "k");
    }
    assert!(matches!(Bloomier::new(&[1u64, 2], &[1], 0.01), Err(Error::Parameter { name: "values", .. })));
    assert!(matches!(BloomierMutable::new(&[1u64], &[], 0.01), Err(Error::Parameter { name: "values", .. })));
    assert!(Bloomier::new(&[1u64], &[1], 0.0).is_err());
}

#[test]
fn no_plan_promises_a_rate_below_that_of_digest_collisions() {
    let given = Given { n: Some(1_000_000), m: Some(100_000_000), ..Given::default() };
    for kind in MAPS {
        let plan = plan(kind, &Spec::from_given(given).unwrap()).unwrap();
        assert!(plan.rate >= 1e6 / 2f64.powi(64), "{kind}: {}", plan.rate);
    }
}

#[test]
fn an_empty_map_has_no_keys() {
    for kind in MAPS {
        let map = build(kind, &spec(1, 0.0001, None, Some(3)), &[], &[], None).unwrap();
        assert!(wrong(&map, &Keys::of_build(1), 10_000) < 0.001, "{kind}");
        assert_eq!(map.inserted(), Some(0));
    }
}

#[test]
fn setting_a_stranger_is_refused_except_at_the_rate() {
    let keys = Keys::of_build(2);
    let members = keys.members(30_000);
    let spec = spec(30_000, 3.0 / 256.0, None, Some(1));
    let mut map = build(Kind::BloomierMutable, &spec, &members, &vec![0; 30_000], None).unwrap();
    let strangers = 20_000;
    let set = (0..strangers).filter(|i| map.set(&keys.stranger(*i), 1).unwrap()).count() as f64;
    assert!(within_four_sigma(set / strangers as f64, 3.0 / 256.0, strangers as f64), "{set}");
    // Each has changed a cell; nine in ten of these cells belong to a key.
    let changed = members.iter().filter(|key| map.get(*key) == Some(1)).count() as f64;
    assert!(changed > 0.75 * set && changed <= set, "{changed} of {set}");
}

#[test]
fn names_of_values_are_stored_with_the_map() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map");
    for kind in MAPS {
        let keys = Keys::of_build(3).members(1000);
        let names: Vec<String> = (0..700).map(|i| format!("value {i}")).collect();
        let values: Vec<u64> = (0..1000).map(|i| i % 700).collect();
        let map =
            build(kind, &spec(1000, 0.01, None, None), &keys, &values, CodeBook::new(&names).ok()).unwrap();
        file::save(&path, &map, &Options::default()).unwrap();
        let mapped = file::map(&path, &KeyRing::new()).unwrap();
        let book = mapped.book().unwrap().unwrap();
        for (key, value) in keys.iter().zip(&values) {
            let found = mapped.get(key).unwrap().unwrap();
            assert_eq!(book.get(found).as_deref(), Some(names[*value as usize].as_bytes()));
        }
        assert!(mapped.get_batch(&keys[..]).unwrap().into_iter().eq(values.iter().map(|value| Some(*value))));
        assert!(mapped.contains(&keys[0]).is_err(), "a map is not a set");
        let verified = file::map(&path, &KeyRing::new()).unwrap().verify().unwrap();
        let verified = verified.filter.into_kind::<AnyMap>().unwrap();
        assert_eq!(verified.get(&keys[5]), Some(values[5]));
        let mut owned = verified.try_clone().unwrap();
        assert_eq!(owned.set(&keys[5], 1).is_ok(), kind == Kind::BloomierMutable);
        assert_eq!(verified.get(&keys[5]), Some(values[5]), "the file must not change");

        // A flipped bit is detected before it is used for an answer.
        let mut damaged = std::fs::read(&path).unwrap();
        let last = damaged.len() - 70;
        damaged[last] ^= 4;
        std::fs::write(&path, &damaged).unwrap();
        let mapped = file::map(&path, &KeyRing::new()).unwrap();
        assert!(mapped.book().is_err() && mapped.verify().is_err(), "{kind}");
    }
}

#[test]
fn single_tile_and_batch_lookups_agree_on_every_instruction_set() {
    for kind in MAPS {
        for largest in [1, 200, u64::MAX] {
            let keys = Keys::of_build(4);
            let values: Vec<u64> = (0..20_000).map(|i| i % largest).collect();
            let spec = spec(20_000, 0.05, None, Some(largest));
            let map = build(kind, &spec, &keys.members(20_000), &values, None).unwrap();
            let asked: Vec<u64> =
                keys.members(10_000).into_iter().chain((0..20_000).map(|i| keys.stranger(i))).collect();
            let digests: Vec<Digest> = asked.iter().map(|key| key.digest(map.hasher())).collect();
            let expected: Vec<Option<u64>> = digests.iter().map(|digest| map.get_digest(*digest)).collect();
            let check =
                |map: &dyn Fn(&[Digest], &mut [u64; TILE]) -> u64, batch: Vec<Option<u64>>| {
                    assert_eq!(batch, expected);
                    let mut values = [0; TILE];
                    for (tile, expected) in digests.chunks(TILE - 3).zip(expected.chunks(TILE - 3)) {
                        let found = map(tile, &mut values);
                        assert!((0..TILE).all(|i| (found >> i & 1 == 1).then(|| values[i])
                            == expected.get(i).copied().flatten()));
                    }
                };
            match map {
                AnyMap::Bloomier(mut map) => Level::available().into_iter().for_each(|level| {
                    map.set_level(level);
                    check(&|tile, values| map.get_tile(tile, values), map.get_batch(&asked[..]));
                }),
                AnyMap::BloomierMutable(mut map) => Level::available().into_iter().for_each(|level| {
                    map.set_level(level);
                    check(&|tile, values| map.get_tile(tile, values), map.get_batch(&asked[..]));
                }),
                _ => unreachable!(),
            }
        }
    }
}

#[test]
fn maps_are_built_as_planned() {
    for kind in MAPS {
        for (n, rate, largest) in [(1000u64, 0.01, 1u64), (100_000, 0.001, 255), (30_000, 0.01, 1 << 50)] {
            let spec = spec(n as usize, rate, None, Some(largest));
            let plan = plan(kind, &spec).unwrap();
            let keys = Keys::of_build(5).members(n);
            let map = build(kind, &spec, &keys, &vec![1; n as usize], None).unwrap();
            let stats = map.stats();
            assert_eq!((plan.stored_bits, plan.bytes), (stats.bits, stats.bytes), "{kind} {n}");
            assert_eq!((plan.hashes, plan.rate), (stats.hashes, stats.rate_now), "{kind} {n}");
            assert!(plan.rate <= rate && stats.capacity == Some(n), "{kind} {n}");
        }
        // Half the memory of the published arrangement is more than enough, and a plan never
        // exceeds the requested size.
        let given = Given { n: Some(100_000), m: Some(2_000_000), ..Given::default() };
        let planned = plan(kind, &Spec::from_given(given).unwrap()).unwrap();
        assert!(planned.stored_bits <= 2_000_000 && planned.rate < 0.05, "{kind}: {planned:?}");
        let given = Given { n: Some(100_000), m: Some(500_000), ..Given::default() };
        assert!(plan(kind, &Spec::from_given(given).unwrap()).is_err(), "{kind}: less than the values need");
    }
}
