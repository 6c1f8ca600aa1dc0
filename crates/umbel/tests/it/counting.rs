//! The promises of counting filters.

use crate::common::multiset::{answers_agree, fixed, history, run};
use crate::common::{Keys, filter_of, moments, standard};
use proptest::prelude::*;
use umbel::counting::{Flip, Ones, Options, Overflow, Rule};
use umbel::file::{self, Options as FileOptions};
use umbel::hash::KeyRing;
use umbel::sizing::counting::overflow_share;
use umbel::sizing::{Given, KPolicy};
use umbel::spec::plan;
use umbel::{AnyFilter, Bloom, Counting, Error, Hasher, Kind, Removed, Spec, Standard};

fn options(counter_bits: u32, overflow: Overflow) -> Options {
    Options { counter_bits, overflow }
}

fn counting(cells: u64, hashes: u32, options: Options) -> Counting {
    Counting::new(cells, hashes, options, Hasher::fast(3)).unwrap()
}

fn counting_of(cells: u64, hashes: u32, options: Options, keys: &[u64]) -> Counting {
    let mut filter = counting(cells, hashes, options);
    filter.insert_batch(keys).unwrap();
    filter
}

fn is_empty(filter: &Counting) -> bool {
    filter.words().words().iter().all(|word| *word == 0)
}

proptest! {
    #![proptest_config(fixed(4000))]

    /// The counters are so narrow that many overflow, and some filters so small that probes of a
    /// key coincide.
    #[test]
    fn members_are_found_after_any_history(
        cells in prop_oneof![1..30u64, 30..3000u64],
        hashes in 1..12u32,
        counter_bits in 2..=9u32,
        refuse in any::<bool>(),
        history in history(),
    ) {
        let overflow = if refuse { Overflow::Error } else { Overflow::Sticky };
        run(counting(cells, hashes, options(counter_bits, overflow)), &history, Counting::stuck_cells)?;
    }
}

#[test]
fn removing_a_key_clears_its_counters() {
    let mut coincidences = 0;
    for (cells, counter_bits) in [(1, 16), (2, 8), (10, 4), (64, 5), (1000, 3)] {
        let mut filter = counting(cells, 7, options(counter_bits, Overflow::Error));
        for key in Keys::of_build(cells).members(2000) {
            if filter.insert(&key).is_err() {
                continue;
            }
            coincidences += u64::from(filter.values().any(|value| value > 1));
            assert_eq!(filter.values().sum::<u64>(), 7);
            assert_eq!(filter.remove(&key), Removed::Removed);
            assert!(is_empty(&filter), "{cells} cells, key {key}");
        }
    }
    assert!(coincidences > 2000, "only {coincidences} keys have probes that coincide");
}

#[test]
fn the_bits_equal_those_of_a_standard_filter() {
    for (n, p) in [(100, 0.01), (10_000, 0.001), (50_000, 0.03)] {
        let keys = Keys::of_build(n).members(n);
        let mut counting = Counting::with_capacity(n, p).unwrap();
        let mut bits = Bloom::<Standard>::with_capacity(n, p).unwrap();
        counting.insert_batch(&keys).unwrap();
        bits.insert_batch(&keys);
        let view = counting.to_standard().unwrap();
        assert_eq!(view.layout(), bits.layout());
        assert_eq!(view.words().words(), bits.words().words());
        assert_eq!(counting.bit_view().unwrap().words(), bits.words().words());
        assert_eq!((view.design(), view.inserted()), (bits.design(), bits.inserted()));
        assert_eq!(counting.stats().rate_now, bits.stats().rate_now);
        assert_eq!(counting.stats().estimate, bits.stats().estimate);
        assert_eq!(counting.stats().used_cells, bits.stats().used_cells);
        // After half of the keys are removed, the bits must be those of a standard filter of the
        // other half.
        let (gone, left) = keys.split_at(keys.len() / 2);
        gone.iter().for_each(|key| assert_eq!(counting.remove(key), Removed::Removed));
        let rest = filter_of(*bits.layout(), bits.hasher().clone(), left);
        assert_eq!(counting.to_standard().unwrap().words().words(), rest.words().words());
    }
}

#[test]
fn flips_keep_a_copy_of_the_bits_up_to_date() {
    let mut filter = counting(300, 4, Options::default());
    let mut copy = vec![false; 300];
    let keys = Keys::of_build(1).members(120);
    let (mut flips, mut cleared) = (Vec::new(), 0);
    for round in 0..3 {
        for (i, key) in keys.iter().enumerate() {
            if i % 3 != round {
                let new = filter.insert_flips(key, &mut flips).unwrap();
                assert_eq!(new, !flips.is_empty());
                assert!(flips.iter().all(|flip| flip.set));
            } else if filter.contains(key) && round > 0 {
                assert_eq!(filter.remove_flips(key, &mut flips), Removed::Removed);
                assert!(flips.iter().all(|flip| !flip.set));
                cleared += flips.len();
            }
            for Flip { index, set } in flips.drain(..) {
                assert_ne!(copy[index as usize], set, "a flip must change a bit, and be reported once");
                copy[index as usize] = set;
            }
        }
        let view = filter.bit_view().unwrap();
        let bit = |i: usize| view.words()[i / 64] >> (i % 64) & 1 == 1;
        assert!((0..300).all(|i| bit(i) == copy[i]));
    }
    assert!(cleared > 0);
    // A key that is absent flips nothing.
    let mut empty = counting(300, 4, Options::default());
    assert_eq!(empty.remove_flips("nobody", &mut flips), Removed::NotPresent);
    assert!(flips.is_empty());
}

#[test]
fn stuck_counters_keep_a_key_and_decremented_ones_lose_it() {
    for (overflow, found) in [(Overflow::Sticky, true), (Overflow::Decrement, false)] {
        let mut filter = counting_of(10_000, 5, options(4, overflow), &[7; 16]);
        // If all counters are stuck, nothing can be removed, and the filter must not report a
        // removal.
        let answer = if found { Removed::NotDeletable } else { Removed::Removed };
        (0..15).for_each(|_| assert_eq!(filter.remove(&7u64), answer));
        assert_eq!(filter.contains(&7u64), found, "{overflow:?}");
        assert_eq!(filter.stuck_cells(), if found { 5 } else { 0 });
        assert_eq!(filter.inserted(), Some(if found { 16 } else { 1 }));
    }
}

#[test]
fn a_full_counter_refuses_and_changes_nothing() {
    let mut filter = counting_of(10_000, 5, options(4, Overflow::Error), &[7; 15]);
    let before = filter.words().words().to_vec();
    assert!(matches!(filter.insert(&7u64), Err(Error::Full { kind: Kind::Counting, .. })));
    // In a batch, the keys before the refused one are inserted, and those after it are not.
    assert!(matches!(filter.insert_batch(&[7u64, 8, 9]), Err(Error::Full { .. })));
    assert_eq!((filter.words().words(), filter.inserted()), (&before[..], Some(15)));
    assert!(filter.insert_batch(&[8u64, 7, 9]).is_err());
    assert!(filter.contains(&8u64) && !filter.contains(&9u64) && filter.inserted() == Some(16));
    // A union that would overflow is refused as a whole.
    let other = counting_of(10_000, 5, options(4, Overflow::Error), &[1, 7]);
    let before = filter.words().words().to_vec();
    assert!(matches!(filter.union(&other), Err(Error::Full { .. })));
    assert!(matches!(filter.absorb(&other), Err(Error::Full { .. })));
    assert_eq!((filter.words().words(), filter.inserted()), (&before[..], Some(16)));
    // Full counters are still exact: all fifteen copies can be removed.
    (0..15).for_each(|_| assert_eq!(filter.remove(&7u64), Removed::Removed));
    assert_eq!(filter.remove(&8u64), Removed::Removed);
    assert!(is_empty(&filter));
}

#[test]
fn only_equal_shapes_are_combined() {
    let shape = |cells, hashes, bits, overflow, seed| {
        Counting::new(cells, hashes, options(bits, overflow), Hasher::fast(seed)).unwrap()
    };
    let mut filter = shape(1000, 5, 4, Overflow::Sticky, 1);
    for (other, what) in [
        (shape(1001, 5, 4, Overflow::Sticky, 1), "number of cells"),
        (shape(1000, 6, 4, Overflow::Sticky, 1), "number of hashes"),
        (shape(1000, 5, 5, Overflow::Sticky, 1), "bits per cell"),
        (shape(1000, 5, 4, Overflow::Error, 1), "overflow policy"),
        (shape(1000, 5, 4, Overflow::Sticky, 2), "seed"),
    ] {
        for result in [filter.union(&other), filter.intersect(&other), filter.overlap(&other).map(drop)] {
            match result {
                Err(Error::Mismatch(mismatch)) => assert_eq!(mismatch.what, what),
                other => panic!("{what}: {other:?}"),
            }
        }
    }
}

#[test]
fn sets_are_compared_by_their_counters() {
    let keys = Keys::of_build(5).members(13_000);
    let mut a = counting_of(100_000, 7, Options::default(), &keys[..8000]);
    let b = counting_of(100_000, 7, Options::default(), &keys[5000..]);
    let overlap = a.overlap(&b).unwrap().unwrap();
    assert!((overlap.intersection.value - 3000.0).abs() < 4.0 * overlap.intersection.standard_error);
    a.intersect(&b).unwrap();
    assert!(keys[5000..8000].iter().all(|key| a.contains(key)) && a.inserted().is_none());
    assert!(keys[..5000].iter().filter(|key| a.contains(*key)).count() < 1000);
    // All common keys can be removed from the intersection, and none is lost before.
    for (i, key) in keys[5000..8000].iter().enumerate() {
        assert_eq!(a.remove(key), Removed::Removed);
        assert!(keys[5001 + i..8000].iter().step_by(97).all(|key| a.contains(key)));
    }
}

#[test]
fn all_lookups_and_insertions_agree() {
    let keys = Keys::of_build(6);
    let asked: Vec<u64> = keys.members(3000).into_iter().chain(keys.strangers(3000)).collect();
    for counter_bits in [2, 3, 4, 5, 8, 16] {
        for hashes in [1, 2, 7] {
            let mut filter =
                counting_of(40_000, hashes, options(counter_bits, Overflow::Sticky), &asked[..3000]);
            let answers = answers_agree(&mut filter, &asked);
            assert!(answers.iter().take(3000).all(|found| found) && answers.count() < 4000);
            // Inserting single keys or tiles must result in the same filter.
            let mut single = filter.try_clone_empty().unwrap();
            asked[..3000].iter().for_each(|key| assert!(single.insert(key).is_ok()));
            assert_eq!(single.words().words(), filter.words().words());
            let mut tiles = filter.try_clone_empty().unwrap();
            tiles.insert_tile(&filter.hasher().digest_batch(&asked[..3000])).unwrap();
            assert_eq!(tiles.words().words(), filter.words().words());
            assert_eq!((single.inserted(), tiles.inserted()), (Some(3000), Some(3000)));
        }
    }
}

/// Many builds, because all queries of one build share its fill. The requested rate is kept to
/// within 2 % and four standard errors, each below 1.5 % of the rate. Small filters have a lower
/// rate than requested, because their size is rounded up to whole words.
#[test]
fn the_rate_at_capacity_is_the_requested_one() {
    for (n, p, builds) in [(100, 0.01, 400), (10_000, 0.01, 20), (10_000, 0.001, 60), (100, 0.001, 800)] {
        let mut rates = Vec::new();
        for build in 0..builds {
            let keys = Keys::of_build(build);
            let hasher = Hasher::fast(build);
            let mut filter = Counting::build(&Spec::new(n, p).unwrap().with_hasher(hasher)).unwrap();
            filter.insert_batch(&keys.members(n)).unwrap();
            assert_eq!(filter.contains_batch(&keys.members(n)).count(), n);
            let strangers = if n == 100 { 10_000 } else { 100_000 };
            rates.push(filter.contains_batch(&keys.strangers(strangers)).count() as f64 / strangers as f64);
            // The rate that the filter computes from its own cells.
            let now = filter.stats().rate_now;
            let error = (now / strangers as f64).sqrt();
            assert!((rates[rates.len() - 1] - now).abs() < 5.5 * error, "{now}");
        }
        let (mean, deviation) = moments(&rates);
        let error = deviation / (builds as f64).sqrt();
        println!("n {n} p {p}: {mean:.5} ± {error:.5}");
        assert!(error < 0.015 * p);
        assert!(mean <= p * 1.02 + 4.0 * error && mean > 0.8 * p, "{n} {p}: {mean} ± {error}");
    }
}

/// Ten million probes on counters with the load of the best k. Two bits overflow at the fourth hit,
/// which happens to one counter in 180, as the Poisson tail predicts: 80 000 events, a standard
/// error of 0.35 %.
#[test]
fn two_bits_overflow_as_often_as_theory_predicts() {
    let (n, hashes) = (2_000_000, 5);
    let cells = (f64::from(hashes) * n as f64 / std::f64::consts::LN_2) as u64;
    let keys = Keys::of_build(7).members(n);
    let wide = counting_of(cells, hashes, options(8, Overflow::Sticky), &keys);
    let hits = |least| wide.values().filter(|value| *value >= least).count() as f64;
    let expected = overflow_share(std::f64::consts::LN_2, 2).unwrap() * cells as f64;
    println!("{} overflow, {expected:.0} expected", hits(4));
    assert!((hits(4) / expected - 1.0).abs() < 0.02);
    // A counter of two bits is stuck from the third hit on.
    let narrow = counting_of(cells, hashes, options(2, Overflow::Sticky), &keys);
    assert_eq!(narrow.stuck_cells() as f64, hits(3));
    let stuck = narrow.stats().details.iter().find(|(name, _)| *name == "stuck cells").unwrap().1;
    assert_eq!(stuck, hits(3));
    assert_eq!(narrow.bit_view().unwrap().words(), wide.bit_view().unwrap().words());
    // Four bits never overflow.
    assert_eq!(hits(16), 0.0);
}

#[test]
fn plans_include_all_bits_of_the_counters() {
    let spec = Spec::new(1_000_000, 0.01).unwrap();
    let (planned, bits) = (plan(Kind::Counting, &spec).unwrap(), plan(Kind::Standard, &spec).unwrap());
    assert_eq!((planned.bits, planned.stored_bits), (4 * bits.bits, 4 * bits.stored_bits));
    assert_eq!((planned.hashes, planned.rate, planned.lines_touched), (bits.hashes, bits.rate, bits.hashes));
    let filter = Counting::build(&spec).unwrap();
    let stats = filter.stats();
    assert_eq!((stats.bits, stats.bytes, stats.hashes), (planned.stored_bits, planned.bytes, planned.hashes));
    assert_eq!(
        filter.predicted_rate(1_000_000).unwrap(),
        Bloom::<Standard>::build(&spec).unwrap().predicted_rate(1_000_000).unwrap()
    );
    // A budget of bits limits the memory.
    let (n, m, p) = (Some(100_000), Some(4_000_000), Some(0.01));
    for given in [Given { n, m, ..Given::default() }, Given { m, p, ..Given::default() }] {
        let planned = plan(Kind::Counting, &Spec::from_given(given).unwrap()).unwrap();
        assert_eq!(planned.stored_bits, 4_000_000, "{planned:?}");
        assert!(planned.rate < 0.0102 && planned.capacity >= 100_000, "{planned:?}");
    }
    let strict = spec.clone().with_policy(KPolicy::Strict);
    assert!(plan(Kind::Counting, &strict).unwrap().rate <= 0.01);
    // A different width.
    let mut kind_options = spec.options().clone();
    kind_options.counting = options(3, Overflow::Error);
    let narrow = spec.with_options(kind_options);
    assert_eq!(plan(Kind::Counting, &narrow).unwrap().stored_bits, 3 * bits.stored_bits);
    assert_eq!(Counting::build(&narrow).unwrap().rule().overflow(), Overflow::Error);
}

#[test]
fn invalid_parameters_are_refused() {
    for (cells, hashes, bits) in
        [(0, 3, 4), (10, 0, 4), (10, 1025, 4), (10, 3, 1), (10, 3, 17), (1 << 47, 3, 4)]
    {
        let result = Ones::new(cells, hashes, options(bits, Overflow::Sticky));
        assert!(matches!(result, Err(Error::Parameter { .. })), "{cells} {hashes} {bits}");
        let result = Ones::from_params(&[cells, hashes.into(), bits.into(), 0]);
        assert!(result.is_err(), "{cells} {hashes} {bits}");
    }
    for params in
        [&[][..], &[10, 3, 4], &[10, 3, 4, 3], &[10, 3, 4, 0, 0], &[10, 1 << 40, 4, 0], &[10, 3, u64::MAX, 0]]
    {
        assert!(Ones::from_params(params).is_err(), "{params:?}");
    }
    let given = Given { n: Some(1_000_000), m: Some(1_000_000), p: Some(0.01), ..Given::default() };
    let error = plan(Kind::Counting, &Spec::from_given(given).unwrap()).unwrap_err().to_string();
    assert!(error.contains("counters of 4 bits"), "{error}");
}

#[test]
fn any_filter_supports_the_kind() {
    let mut filter = AnyFilter::build(Kind::Counting, &Spec::new(1000, 0.01).unwrap()).unwrap();
    filter.insert_batch(&["apple", "pear"]).unwrap();
    assert_eq!(filter.remove("apple").unwrap(), Removed::Removed);
    assert!(!filter.contains("apple") && filter.contains("pear"));
    assert!(matches!(filter.fold(), Err(Error::Cannot { .. })));
    let can = Kind::Counting.capabilities();
    assert!(can.remove && can.union && can.intersect && can.absorb && !can.fold && !can.share);
    assert_eq!("counting".parse::<Kind>().unwrap(), Kind::Counting);
    let bytes = file::to_bytes(&filter, &FileOptions::default()).unwrap();
    let loaded = file::from_bytes(&bytes, &KeyRing::new()).unwrap().filter;
    assert!(loaded.contains("pear") && !loaded.contains("apple"));
}

#[test]
fn the_rate_is_that_of_the_standard_example() {
    // 9586 counters and 7 probes for 1000 keys: 0.0100370198 by the classic formula, and this with
    // the variance of the fill, computed with 60 digits.
    let filter = counting(9586, 7, Options::default());
    assert!((filter.predicted_rate(1000).unwrap() / 0.010_043_583_137_308 - 1.0).abs() < 1e-10);
    assert_eq!(filter.to_standard().unwrap().layout(), &standard(9586, 7));
}
