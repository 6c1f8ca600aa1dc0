//! Fuse filters: static sets of any number of keys, at a chosen rate, with as few bits as the
//! construction promises.

use crate::common::{Keys, refused};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::HashSet;
use umbel::file::{self, Options};
use umbel::internals::{Level, Structure, TILE};
use umbel::sizing::Given;
use umbel::spec::{Construction, KindOptions, plan};
use umbel::{Digest, Fuse, Hasher, Key, Kind, Spec};

fn from(keys: &[u64], rate: f64, threads: usize) -> Fuse {
    let spec = Spec::new(keys.len().max(1) as u64, rate).unwrap();
    let digests = spec.hasher().digest_batch(keys);
    Fuse::from_digests(&spec, digests, &Construction { threads, ..Construction::default() }).unwrap()
}

fn with_bits(keys: &[u64], bits: u32, seed: u64) -> Fuse {
    let mut options = KindOptions::default();
    options.fuse.fingerprint_bits = Some(bits);
    let given = Given { n: Some(keys.len() as u64), ..Given::default() };
    let spec = Spec::from_given(given).unwrap().with_hasher(Hasher::fast(seed)).with_options(options);
    let digests = spec.hasher().digest_batch(keys);
    Fuse::from_digests(&spec, digests, &Construction::default()).unwrap()
}

fn bytes(filter: &Fuse) -> Vec<u8> {
    file::to_bytes(filter, &Options::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn every_key_is_found_for_any_number_order_and_repetition(
        mut keys in prop::collection::vec(0..3000u64, 0..4000),
        bits in 4..=32u32,
        seed in 0..1000u64,
    ) {
        if keys.is_empty() {
            keys.push(7);
        }
        let filter = with_bits(&keys, bits, seed);
        prop_assert_eq!(filter.contains_batch(&keys[..]).count(), keys.len() as u64);
        let distinct: HashSet<u64> = keys.iter().copied().collect();
        prop_assert_eq!(filter.inserted(), Some(distinct.len() as u64));
        // Reversed and without repetitions, the keys make the same filter, because it is a set.
        let mut once: Vec<u64> = distinct.into_iter().collect();
        once.sort_unstable_by(|a, b| b.cmp(a));
        prop_assert!(bytes(&with_bits(&once, bits, seed)) == bytes(&filter));
    }
}

#[test]
fn construction_succeeds_for_any_number_of_keys() {
    // Around 11 500 keys, other implementations of the construction fail for a fifth to two fifths
    // of all sets.
    let sizes = (0..200).chain((200..2000).step_by(37)).chain((11_000..12_000).step_by(111));
    let sizes = sizes.chain([11_500, 11_501, 11_777, 23_000, 46_000, 92_000]);
    for n in sizes {
        for number in 0..5 {
            let keys = Keys::of_build(number).members(n);
            let filter = from(&keys, 0.01, 1);
            assert_eq!(filter.contains_batch(&keys[..]).count(), n, "{n} keys");
        }
    }
}

#[test]
fn the_rate_is_two_to_the_minus_fingerprint_bits() {
    for (bits, n) in
        [(4, 1000), (5, 100_000), (7, 100_000), (8, 300_000), (10, 30_000), (14, 30_000), (16, 100)]
    {
        let expected = 0.5f64.powi(bits as i32);
        let builds = if n <= 1000 { 20 } else { 4 };
        let queries = 2_000_000;
        let mut wrong = 0;
        for number in 0..builds {
            let keys = Keys::of_build(number);
            let filter = with_bits(&keys.members(n), bits, number);
            assert_eq!((filter.fingerprint_bits(), filter.stats().rate_now), (bits, expected));
            let strangers: Vec<u64> = (0..queries).map(|i| keys.stranger(i)).collect();
            wrong += filter.contains_batch(&strangers[..]).count();
        }
        let asked = (queries * builds) as f64;
        let sigma = (expected * (1.0 - expected) / asked).sqrt();
        let measured = wrong as f64 / asked;
        assert!(
            (measured - expected).abs() <= 4.0 * sigma,
            "{bits} bits, {n} keys: {measured} for {expected}"
        );
    }
}

#[test]
fn the_width_follows_from_the_rate() {
    for (rate, bits) in
        [(0.1, 4), (0.0625, 4), (0.01, 7), (1.0 / 256.0, 8), (0.001, 10), (0.0001, 14), (1e-9, 30)]
    {
        let plan = plan(Kind::Fuse, &Spec::new(1000, rate).unwrap()).unwrap();
        assert!(plan.rate <= rate && plan.rate == 0.5f64.powi(bits), "{rate}: {plan:?}");
    }
}

#[test]
fn the_size_is_that_of_binary_fuse_filters() {
    // The sizes of the binary fuse filter of the literature: 1.125 cells per key of a large set, a
    // few more for smaller ones, in whole segments.
    for n in [100_000u64, 300_000, 1_000_000, 5_000_000] {
        let ln = (n as f64).ln();
        let factor = (0.875 + 0.25 * 1e6f64.ln() / ln).max(1.125);
        let segment = 2f64.powf((ln / 3.33f64.ln() + 2.25).floor());
        let cells = (n as f64 * factor / segment).ceil() * segment;
        let plan = plan(Kind::Fuse, &Spec::new(n, 1.0 / 256.0).unwrap()).unwrap();
        let ours = plan.stored_bits as f64 / n as f64;
        assert!(ours <= 1.01 * 8.0 * cells / n as f64, "{n} keys: {ours} bits, {}", 8.0 * cells / n as f64);
    }
}

#[test]
fn several_shards_make_one_set_with_any_number_of_threads() {
    let keys = Keys::of_build(3).members(5_000_000);
    let filter = from(&keys, 0.01, 1);
    assert_eq!(filter.contains_batch(&keys[..]).count(), 5_000_000);
    assert!(bytes(&from(&keys, 0.01, 3)) == bytes(&filter));
    let strangers: Vec<u64> = (0..1_000_000).map(|i| Keys::of_build(3).stranger(i)).collect();
    let measured = filter.contains_batch(&strangers[..]).count() as f64 / 1e6;
    assert!((measured - 1.0 / 128.0).abs() < 4.0 * (1.0f64 / 128.0 / 1e6).sqrt(), "{measured}");
}

#[test]
fn single_tile_and_batch_lookups_agree_on_every_instruction_set() {
    for bits in [4, 7, 8, 13, 16, 29, 32] {
        let keys = Keys::of_build(4);
        let mut filter = with_bits(&keys.members(20_000), bits, 1);
        let asked: Vec<u64> =
            keys.members(10_000).into_iter().chain((0..40_000).map(|i| keys.stranger(i))).collect();
        let digests: Vec<Digest> = asked.iter().map(|key| key.digest(filter.hasher())).collect();
        let expected: Vec<bool> = digests.iter().map(|digest| filter.contains_digest(*digest)).collect();
        for level in Level::available() {
            filter.set_level(level);
            assert!(filter.contains_batch(&asked[..]).iter().eq(expected.iter().copied()), "{bits} {level}");
            for (tile, expected) in digests.chunks(TILE - 3).zip(expected.chunks(TILE - 3)) {
                let answer = filter.contains_tile(tile);
                assert!(
                    (0..TILE).all(|i| (answer >> i & 1 == 1) == expected.get(i).copied().unwrap_or(false))
                );
            }
        }
    }
}

#[test]
fn progress_ends_with_all_keys() {
    let seen = std::sync::Mutex::new(Vec::new());
    let progress = |done| seen.lock().unwrap().push(done);
    let spec = Spec::new(1, 0.01).unwrap();
    let digests = spec.hasher().digest_batch(&Keys::of_build(1).members(10_000)[..]);
    Fuse::from_digests(&spec, digests, &Construction { progress: &progress, ..Construction::default() })
        .unwrap();
    assert_eq!(seen.into_inner().unwrap().last(), Some(&10_000));
}

#[test]
fn an_empty_set_contains_no_keys() {
    let filter = from(&[], 0.0001, 2);
    let strangers: Vec<u64> = (0..10_000).collect();
    assert!(filter.contains_batch(&strangers[..]).count() < 10);
    assert_eq!((filter.inserted(), filter.stats().used_cells), (Some(0), 0));
}

#[test]
fn invalid_parameters_are_named() {
    let parameter = |given: Given, bits: Option<u32>| {
        let mut options = KindOptions::default();
        options.fuse.fingerprint_bits = bits;
        refused(Spec::from_given(given).and_then(|spec| plan(Kind::Fuse, &spec.with_options(options))))
    };
    let n = Given { n: Some(1000), ..Given::default() };
    assert_eq!(parameter(n, None), "p");
    assert_eq!(parameter(n, Some(3)), "fingerprint bits");
    assert_eq!(parameter(n, Some(33)), "fingerprint bits");
    assert_eq!(parameter(Given { p: Some(1e-10), ..n }, None), "p");
    assert_eq!(parameter(Given { p: Some(0.01), ..n }, Some(6)), "fingerprint bits and p");
    assert_eq!(parameter(Given { p: Some(0.01), k: Some(3), ..n }, None), "k");
    assert_eq!(parameter(Given { p: Some(0.01), m: Some(7000), ..n }, None), "m");
    assert_eq!(parameter(Given { m: Some(2000), ..n }, None), "m");
    assert_eq!(parameter(Given { p: Some(0.01), m: Some(7), ..Given::default() }, None), "m");
}

#[test]
fn the_reported_rate_is_that_of_the_table_even_with_repeated_keys() {
    let keys: Vec<u64> = (0..200_000).map(|i| i % 100_000).collect();
    let given = Given { n: Some(1), m: Some(2_000_000), ..Given::default() };
    let spec = Spec::from_given(given).unwrap();
    let filter =
        Fuse::from_digests(&spec, spec.hasher().digest_batch(&keys[..]), &Construction::default()).unwrap();
    let stats = filter.stats();
    assert_eq!((filter.inserted(), stats.capacity), (Some(100_000), Some(100_000)));
    assert_eq!(stats.rate_target, Some(stats.rate_now));
    assert_eq!(stats.rate_now, 0.5f64.powi(filter.fingerprint_bits() as i32));
    assert!(stats.bits <= 2_000_000);
}

#[test]
fn a_requested_size_is_kept() {
    let spec = |given| Spec::from_given(given).unwrap();
    let given = Given { n: Some(1_000_000), m: Some(12_000_000), ..Given::default() };
    let wide = plan(Kind::Fuse, &spec(given)).unwrap();
    assert!(wide.stored_bits <= 12_000_000 && wide.rate == 1.0 / 1024.0, "{wide:?}");
    let given = Given { p: Some(0.001), m: Some(12_000_000), ..Given::default() };
    let many = plan(Kind::Fuse, &spec(given)).unwrap();
    assert!(many.stored_bits <= 12_000_000 && many.capacity > 1_030_000, "{many:?}");
}
