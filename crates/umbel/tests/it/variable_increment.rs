//! The promises of variable-increment filters.

use crate::common::multiset::{answers_agree, fixed, history, run};
use crate::common::{Keys, moments};
use proptest::prelude::*;
use umbel::counting::Rule;
use umbel::internals::Set;
use umbel::sizing::Given;
use umbel::spec::plan;
use umbel::variable_increment::{Increments, Scheme};
use umbel::{AnyFilter, Counting, Error, Hasher, Kind, Removed, Spec, VariableIncrement};

fn filter(cells: u64, hashes: u32, scheme: &Scheme) -> VariableIncrement {
    VariableIncrement::new(cells, hashes, scheme.clone(), Hasher::fast(3)).unwrap()
}

fn filter_of(cells: u64, hashes: u32, scheme: &Scheme, keys: &[u64]) -> VariableIncrement {
    let mut filter = filter(cells, hashes, scheme);
    filter.insert_batch(keys).unwrap();
    filter
}

fn is_empty(filter: &VariableIncrement) -> bool {
    filter.words().words().iter().all(|word| *word == 0)
}

/// Returns schemes of the usual widths, and some so narrow that cells overflow soon.
fn schemes() -> Vec<Scheme> {
    let set = vec![8, 12, 14, 15];
    let b_3 = vec![1, 4, 8, 13];
    vec![
        Scheme::range(4),
        Scheme::set(&set),
        Scheme::b_h(&b_3, 3, false),
        Scheme::b_h(&b_3, 3, true),
        Scheme::range(1),
        Scheme::range(64),
        Scheme::Range { l: 4, bits: 4 },
        Scheme::Set { increments: set, bits: 5 },
        Scheme::Set { increments: vec![4, 6], bits: 6 },
        Scheme::Bh { increments: b_3, h: 3, improved: true, count_bits: 2, sum_bits: 5 },
    ]
}

proptest! {
    #![proptest_config(fixed(4000))]

    #[test]
    fn members_are_found_after_any_history(
        cells in prop_oneof![1..30u64, 30..3000u64],
        hashes in 1..12u32,
        scheme in prop::sample::select(schemes()),
        history in history(),
    ) {
        run(filter(cells, hashes, &scheme), &history, VariableIncrement::stuck_cells)?;
    }
}

#[test]
fn removing_a_key_clears_its_cells() {
    for scheme in schemes() {
        for cells in [3, 10, 64, 1000] {
            let mut filter = filter(cells, 5, &scheme);
            for key in Keys::of_build(cells).members(500) {
                assert!(filter.insert(&key).unwrap());
                if filter.stuck_cells() > 0 {
                    filter.clear();
                    continue;
                }
                assert_eq!(filter.remove(&key), Removed::Removed);
                assert!(is_empty(&filter), "{scheme:?}, {cells} cells, key {key}");
                assert_eq!(filter.remove(&key), Removed::NotPresent);
            }
        }
    }
}

#[test]
fn all_lookups_agree() {
    let keys = Keys::of_build(6);
    let asked: Vec<u64> = keys.members(3000).into_iter().chain(keys.strangers(3000)).collect();
    for scheme in schemes() {
        for hashes in [1, 2, 7] {
            let mut filter = filter_of(40_000, hashes, &scheme, &asked[..3000]);
            let answers = answers_agree(&mut filter, &asked);
            assert!(answers.iter().take(3000).all(|found| found) && answers.count() < 4000);
            let mut single = filter.try_clone_empty().unwrap();
            asked[..3000].iter().for_each(|key| assert!(single.insert(key).is_ok()));
            assert_eq!(single.words().words(), filter.words().words());
            let mut tiles = filter.try_clone_empty().unwrap();
            tiles.insert_tile(&filter.hasher().digest_batch(&asked[..3000])).unwrap();
            assert_eq!(tiles.words().words(), filter.words().words());
        }
    }
}

/// Increments are chosen evenly, and independently of the cell and of each other: each of the four
/// makes up a quarter of the values in cells with one key, near the start of the array as well as
/// near its end.
#[test]
fn increments_are_evenly_distributed() {
    let filter = filter_of(1 << 20, 3, &Scheme::default(), &Keys::of_build(1).members(100_000));
    let values: Vec<u64> = filter.values().collect();
    for part in values.chunks(1 << 18) {
        let counts: Vec<f64> =
            (4..8).map(|v| part.iter().filter(|value| **value == v).count() as f64).collect();
        let mean = counts.iter().sum::<f64>() / 4.0;
        assert!(mean > 10_000.0);
        assert!(counts.iter().all(|count| (count - mean).abs() < 4.5 * mean.sqrt()), "{counts:?}");
    }
}

/// Measures 1024 keys in filters of 300 seeds with 15 million queries. The standard error is below
/// 1.5 % of the rate, and the tolerance is 5 %.
fn check_rate<S: Set>(published: f64, build: impl Fn(Hasher) -> S) {
    let (builds, strangers) = (300, 50_000);
    let (mut measured, mut own) = (Vec::new(), Vec::new());
    for number in 0..builds {
        let keys = Keys::of_build(number);
        let mut filter = build(Hasher::fast(number));
        filter.insert_batch(&keys.members(1024)).unwrap();
        let found = filter.contains_batch(&keys.strangers(strangers)).count();
        measured.push(found as f64 / strangers as f64);
        own.push(filter.stats().rate_now);
    }
    let ((rate, deviation), (own, _)) = (moments(&measured), moments(&own));
    let error = deviation / (builds as f64).sqrt();
    println!("{rate:.5} ± {error:.5}, from the cells {own:.5}, published {published}");
    assert!(error < 0.015 * published);
    assert!((rate / published - 1.0).abs() < 0.05, "{rate} instead of {published}");
    assert!((own / rate - 1.0).abs() < 0.03, "the filter computes its own rate as {own}");
}

/// The simulated row of the published comparison.
#[test]
fn thirty_bits_per_key_have_the_published_rates() {
    let bits = 30 * 1024;
    let plain = umbel::counting::Options::default();
    check_rate(0.0273, |hasher| Counting::new(bits / 4, 5, plain, hasher).unwrap());
    let variable = |published, width, k, scheme: Scheme| {
        check_rate(published, |hasher| {
            VariableIncrement::new(bits / width, k, scheme.clone(), hasher).unwrap()
        });
    };
    variable(0.0083, 7, 5, Scheme::range(4));
    variable(0.0041, 8, 6, Scheme::set(&[8, 12, 14, 15]));
    variable(0.01527, 12, 5, Scheme::b_h(&[1, 4, 8, 13], 3, false));
}

/// Many builds, because all queries of one build share its contents. The requested rate is kept to
/// within 2 % and four standard errors, each below 2 % of the rate.
#[test]
fn the_rate_at_capacity_is_the_requested_one() {
    for scheme in schemes().into_iter().take(4) {
        for (n, p, builds) in [(100, 0.01, 500), (10_000, 0.01, 20), (10_000, 0.001, 60), (100, 0.001, 1000)]
        {
            let mut rates = Vec::new();
            for build in 0..builds {
                let keys = Keys::of_build(build);
                let spec = Spec::new(n, p).unwrap().with_hasher(Hasher::fast(build));
                let mut options = spec.options().clone();
                options.variable_increment.scheme = scheme.clone();
                let mut filter = VariableIncrement::build(&spec.with_options(options)).unwrap();
                filter.insert_batch(&keys.members(n)).unwrap();
                let strangers = if n == 100 { 10_000 } else { 100_000 };
                rates.push(
                    filter.contains_batch(&keys.strangers(strangers)).count() as f64 / strangers as f64,
                );
            }
            let (mean, deviation) = moments(&rates);
            let error = deviation / (builds as f64).sqrt();
            println!("n {n} p {p}: {mean:.5} ± {error:.5}, {scheme:?}");
            assert!(error < 0.02 * p, "{error}");
            assert!(
                mean <= p * 1.02 + 4.0 * error && mean > 0.9 * p - 4.0 * error,
                "{n} {p}: {mean} ± {error}"
            );
        }
    }
}

#[test]
fn only_equal_shapes_are_combined() {
    let mut ours = filter(1000, 5, &Scheme::default());
    let others = [
        (filter(1001, 5, &Scheme::default()), "number of cells"),
        (filter(1000, 6, &Scheme::default()), "number of hashes"),
        (filter(1000, 5, &Scheme::Range { l: 4, bits: 8 }), "bits per cell"),
        (filter(1000, 5, &Scheme::Range { l: 2, bits: 7 }), "scheme"),
        (VariableIncrement::new(1000, 5, Scheme::default(), Hasher::fast(4)).unwrap(), "seed"),
    ];
    for (other, what) in others {
        for result in [ours.union(&other), ours.intersect(&other), ours.overlap(&other).map(drop)] {
            match result {
                Err(Error::Mismatch(mismatch)) => assert_eq!(mismatch.what, what),
                other => panic!("{what}: {other:?}"),
            }
        }
    }
}

#[test]
fn sets_are_compared_by_their_cells() {
    let keys = Keys::of_build(5).members(13_000);
    for scheme in schemes().into_iter().take(4) {
        let mut a = filter_of(60_000, 6, &scheme, &keys[..8000]);
        let b = filter_of(60_000, 6, &scheme, &keys[5000..]);
        let overlap = a.overlap(&b).unwrap().unwrap();
        assert!((overlap.intersection.value - 3000.0).abs() < 4.0 * overlap.intersection.standard_error);
        a.intersect(&b).unwrap();
        for (i, key) in keys[5000..8000].iter().enumerate() {
            assert!(keys[5000 + i..8000].iter().step_by(97).all(|key| a.contains(key)), "{scheme:?}");
            assert_eq!(a.remove(key), Removed::Removed);
        }
    }
}

#[test]
fn plans_take_the_least_memory() {
    let spec = Spec::new(1_000_000, 0.001).unwrap();
    let with = |scheme: Scheme| {
        let mut options = spec.options().clone();
        options.variable_increment.scheme = scheme;
        spec.clone().with_options(options)
    };
    let counting = plan(Kind::Counting, &spec).unwrap();
    let range = plan(Kind::VariableIncrement, &spec).unwrap();
    let general = plan(Kind::VariableIncrement, &with(Scheme::set(&[8, 12, 14, 15]))).unwrap();
    // A quarter and a third less than plain counters.
    assert!(range.bytes * 100 < counting.bytes * 78 && general.bytes * 100 < counting.bytes * 67);
    for planned in [&range, &general] {
        assert!(planned.rate <= 0.001 && planned.rate_asked == 0.001 && planned.capacity == 1_000_000);
        assert_eq!(planned.bits, planned.stored_bits);
        assert_eq!(planned.lines_touched, planned.hashes * if planned == &range { 2 } else { 1 });
    }
    let built = VariableIncrement::build(&spec).unwrap();
    assert_eq!((built.stats().bits, built.stats().bytes), (range.stored_bits, range.bytes));
    assert_eq!(built.predicted_rate(1_000_000).unwrap(), range.rate);
    // A budget of bits limits the memory.
    let (n, m, p) = (Some(100_000), Some(3_500_000), Some(0.01));
    for given in [Given { n, m, ..Given::default() }, Given { m, p, ..Given::default() }] {
        let planned = plan(Kind::VariableIncrement, &Spec::from_given(given).unwrap()).unwrap();
        assert!(planned.stored_bits <= 3_500_000 && planned.stored_bits > 3_400_000, "{planned:?}");
        assert!(planned.rate <= 0.01 && planned.capacity >= 100_000, "{planned:?}");
    }
}

#[test]
fn invalid_parameters_are_refused() {
    for params in [
        &[][..],
        &[10],
        &[10, 3],
        &[10, 3, 1, 0, 0, 0, 7],
        &[10, 3, 1, 0, 0, 0, 7, 3],
        &[0, 3, 1, 0, 0, 0, 7, 4],
        &[10, 0, 1, 0, 0, 0, 7, 4],
        &[10, 3, 1, 0, 0, 0, 70, 4],
        &[1 << 46, 3, 1, 0, 0, 0, 7, 4],
        &[10, 3, 3, 3, 1, 4, u64::MAX, 1],
    ] {
        assert!(Increments::from_params(params).is_err(), "{params:?}");
    }
    assert!(Increments::from_params(&[10, 3, 1, 0, 0, 0, 7, 4]).is_ok());
    let given = Given { n: Some(1_000_000), m: Some(1_000_000), p: Some(0.01), ..Given::default() };
    assert!(plan(Kind::VariableIncrement, &Spec::from_given(given).unwrap()).is_err());
    let given = Given { n: Some(1000), k: Some(3), ..Given::default() };
    assert!(plan(Kind::VariableIncrement, &Spec::from_given(given).unwrap()).is_err());
}

#[test]
fn any_filter_supports_the_kind() {
    let mut filter = AnyFilter::build(Kind::VariableIncrement, &Spec::new(1000, 0.01).unwrap()).unwrap();
    filter.insert_batch(&["apple", "pear"]).unwrap();
    assert_eq!(filter.remove("apple").unwrap(), Removed::Removed);
    assert!(!filter.contains("apple") && filter.contains("pear"));
    assert!(matches!(filter.fold(), Err(Error::Cannot { .. })));
    assert_eq!("variable-increment".parse::<Kind>().unwrap(), filter.kind());
}

#[test]
fn errors_name_the_settings_of_the_caller() {
    let error = |given, scheme| {
        let mut options = umbel::spec::KindOptions::default();
        options.variable_increment.scheme = scheme;
        let spec = Spec::from_given(given).unwrap().with_options(options);
        plan(Kind::VariableIncrement, &spec).unwrap_err().to_string()
    };
    // The size is given in bits.
    let given = Given { n: Some(1000), p: Some(0.01), m: Some(5000), k: None };
    let message = error(given, Scheme::default());
    assert!(
        message.contains("m = 5000 bits and p = 0.01") && message.contains("counters of 7 bits"),
        "{message}"
    );
    // The width follows from the increments; 4095 is the largest that fits.
    let given = Given { n: Some(1000), p: Some(0.01), ..Given::default() };
    let message = error(given, Scheme::set(&[1, 4096]));
    assert!(message.contains("bits per cell = 17") && message.contains("4095 is the largest"), "{message}");
    let spec = |largest| {
        let mut options = umbel::spec::KindOptions::default();
        options.variable_increment.scheme = Scheme::set(&[4, largest]);
        Spec::from_given(given).unwrap().with_options(options)
    };
    assert!(plan(Kind::VariableIncrement, &spec(4095)).is_ok());
}
