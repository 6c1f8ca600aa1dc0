//! The Floom filter works as designed and as theory predicts, but a standard filter with the same
//! memory is always better.

use crate::common::sets::{check_every_way, check_rate_at_capacity, check_round_trip, measure, memory};
use crate::common::{Keys, mix, standard};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeSet;
use umbel::error::Mismatch;
use umbel::floom::Floom;
use umbel::floom::Options;
use umbel::internals::{Set, Structure};
use umbel::sizing::{Given, KPolicy, Params, floom, rate};
use umbel::spec::{KindOptions, plan};
use umbel::{AnyFilter, Error, Hasher, Kind, Spec};

fn options(regions: u32) -> Options {
    Options { regions: Some(regions), ..Options::default() }
}

fn empty(bits: u64, hashes: u32, options: &Options) -> Floom {
    Floom::with_layout(standard(bits, hashes), options, Hasher::default()).expect("valid parameters")
}

fn filter_of(bits: u64, hashes: u32, options: &Options, keys: &[u64]) -> Floom {
    let mut filter = empty(bits, hashes, options);
    filter.insert_batch(keys);
    filter
}

fn tuned(floom: Options, spec: Spec) -> Spec {
    let mut options = KindOptions::default();
    options.floom = floom;
    spec.with_options(options)
}

/// Returns the setup of the published figures: M bits rounded up to bytes, and k computed before
/// rounding.
fn published(n: u64, p: f64) -> (u64, u32) {
    let params = Params::for_capacity(n, p, KPolicy::Round).expect("valid");
    (params.bits.next_multiple_of(8), params.hashes)
}

/// Returns the rate of a standard filter with the bits of filter and table together, with its own
/// k.
fn rate_with_equal_memory(n: u64, bits: u64, regions: u32) -> f64 {
    Params::for_bits(bits + (1 << regions), n, KPolicy::Round).expect("valid").rate
}

/// A row of the published figures with b = 16, p = 0.01: the measured rates of the standard filter,
/// the Floom filter and the larger standard filter, and the analytic rates of the latter two.
struct Row {
    n: u64,
    published: [f64; 3],
    floom: f64,
    equal: f64,
}

const TABLE: [Row; 6] = [
    Row { n: 1000, published: [0.009706, 0.000452, 0.0], floom: 0.000471, equal: 2e-16 },
    Row { n: 10_000, published: [0.009763, 0.003593, 0.000423], floom: 0.003751, equal: 0.000429 },
    Row { n: 50_000, published: [0.010043, 0.008637, 0.005283], floom: 0.008658, equal: 0.005356 },
    Row { n: 100_000, published: [0.010096, 0.009663, 0.007228], floom: 0.009643, equal: 0.007301 },
    Row { n: 200_000, published: [0.009979, 0.009928, 0.008551], floom: 0.009977, equal: 0.008548 },
    Row { n: 300_000, published: [0.010133, 0.010106, 0.009103], floom: 0.010026, equal: 0.009015 },
];

#[test]
fn the_formulas_match_the_published_table() {
    for Row { n, floom, equal, .. } in TABLE {
        let (bits, k) = published(n, 0.01);
        let found = floom::rate(bits, n, k, 16).expect("valid");
        assert!((found - floom).abs() <= 5.1e-7, "{n} keys: {found}, not {floom}");
        let found = rate_with_equal_memory(n, bits, 16);
        // The first is published with one digit.
        let tolerance = if n == 1000 { 0.5e-16 } else { 5.1e-7 };
        assert!((found - equal).abs() <= tolerance, "{n} keys: {found}, not {equal}");
    }
    let seen = floom::seen(16, 7, 200_000).expect("valid");
    assert!((seen - 0.994).abs() < 5e-4, "{seen}");
}

/// Inserts random keys in at least ten builds. The rate must be within 2 % of theory and four
/// standard errors, which are 4 % at most.
#[test]
fn the_measured_rate_is_the_analytic_one() {
    let rows = TABLE.iter().map(|row| (16, 0.01, row.n, row.published));
    let others = [
        (8, 0.05, 500, [0.05134, 0.04773, 0.04159]),
        (8, 0.05, 1000, [0.05140, 0.05102, 0.04333]),
        (20, 0.03, 10_000, [0.02988, 0.01169, 0.0]),
        (20, 0.03, 50_000, [0.03008, 0.02684, 0.0]),
    ];
    for (regions, p, n, csv) in rows.chain(others) {
        let (bits, k) = published(n, p);
        let theory = floom::rate(bits, n, k, regions).expect("valid");
        let builds = (150_000 / n).clamp(10, 100);
        let queries = (12_000.0 / theory) as u64 / builds;
        let build = |hasher| Floom::with_layout(standard(bits, k), &options(regions), hasher).expect("valid");
        let measured = measure(builds, n, queries, build);
        println!(
            "b {regions}, p {p}, n {n}: {:.6} ± {:.2} %, analytic {theory:.6}, from the bits {:.6}, published {:.6}; \
             standard {:.6}, with the same memory {:.6}",
            measured.rate,
            100.0 * measured.error,
            measured.rate_now,
            csv[1],
            rate::classic(bits, n, k).expect("valid"),
            rate_with_equal_memory(n, bits, regions),
        );
        assert!(4.0 * measured.error < 0.05, "the measurement is too coarse: {}", measured.error);
        let deviation = (measured.rate / theory - 1.0).abs();
        assert!(deviation < 0.02 + 4.0 * measured.error, "b {regions}, p {p}, n {n}: {}", measured.rate);
        assert!((measured.rate / measured.rate_now - 1.0).abs() < 0.01 + 4.0 * measured.error);
        // A published run is as accurate as its count allows.
        let sampling = (csv[1] * (1e6 - n as f64)).sqrt().recip();
        assert!(
            (csv[1] / theory - 1.0).abs() < 0.04 + 4.0 * sampling,
            "b {regions}, p {p}, n {n}: published"
        );
        // The conclusion: better than the standard filter inside it, and worse than one with the
        // same memory.
        let alone = rate::classic(bits, n, k).expect("valid");
        assert!(theory < alone && rate_with_equal_memory(n, bits, regions) < theory);
    }
}

/// Ranked tables are the smallest. With them, for filters of every size, no combination has a lower
/// rate than a standard filter of the same total size with its best k.
#[test]
fn the_same_memory_is_always_better_used_for_bits() {
    let rates = [0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3];
    let keys = [100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
    let regions = [2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512, 1024];
    let (mut combinations, mut closest, mut wins) = (0, f64::INFINITY, 0);
    for (p, n) in rates.iter().flat_map(|p| keys.map(|n| (*p, n))) {
        let bits = rate::optimal_bits(n, p).expect("valid");
        for (k, b) in (1..=9).flat_map(|k| regions.map(|b| (k, b))) {
            // No filter is built with more than 24 regions, but the table can be counted.
            let mut choices = 1.0;
            let patterns: f64 = (1..=k.min(b))
                .map(|j| {
                    choices *= f64::from(b - j + 1) / f64::from(j);
                    choices
                })
                .sum();
            if b <= floom::MAX_REGIONS {
                assert_eq!(patterns.round() as u64, floom::reachable_patterns(b, k).expect("valid"));
            }
            // Skip tables that are many times as large as the filter.
            if patterns > 100.0 * bits as f64 {
                continue;
            }
            let total = bits + patterns.round() as u64;
            let best = Params::for_bits(total, n, KPolicy::Best).expect("valid").rate;
            let floom = floom::rate(bits, n, k, b).expect("valid");
            combinations += 1;
            wins += u32::from(floom < best);
            // If both rates are almost zero, rounding decides.
            if best > 1e-300 {
                closest = closest.min(floom / best);
            }
        }
    }
    println!("{combinations} combinations, {wins} wins, least ratio {closest}");
    assert!(combinations > 15_000);
    assert_eq!(wins, 0, "closest {closest}");
    assert!((1.0..1.001).contains(&closest), "it should come close for a negligible table: {closest}");
}

#[test]
fn ranked_patterns_have_the_same_answers_in_a_smaller_table() {
    let keys = Keys::of_build(1);
    for (bits, hashes, regions, smaller) in
        [(9_600, 7, 16, 2.4), (96_000, 5, 20, 48.0), (640, 4, 8, 1.5), (50, 20, 5, 1.0)]
    {
        for compat in [false, true] {
            let plain = Options { compat, ..options(regions) };
            let ranked = Options { ranked: true, ..plain };
            let members = keys.members(bits / 10);
            let asked = [&members[..], &keys.strangers(50_000)[..]].concat();
            let (plain, ranked) =
                (filter_of(bits, hashes, &plain, &members), filter_of(bits, hashes, &ranked, &members));
            assert_eq!(plain.contains_batch(&asked), ranked.contains_batch(&asked));
            assert_eq!(plain.seen_patterns(), ranked.seen_patterns());
            let ratio = plain.stats().rate_now / ranked.stats().rate_now;
            assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
            assert!(plain.pattern_bits() as f64 / ranked.pattern_bits() as f64 >= smaller);
        }
    }
}

#[test]
fn compat_differs_only_at_positions_on_boundaries() {
    let members = Keys::of_build(2).members(100);
    let table = |bits, regions, compat| {
        memory(&filter_of(bits, 5, &Options { compat, ..options(regions) }, &members))[1].clone()
    };
    // 16 regions of 60 bits have boundaries that coincide with positions; regions of a prime number
    // of bits do not.
    assert!(table(960, 16, false) != table(960, 16, true));
    assert!(table(967, 16, false) == table(967, 16, true));
}

/// An operation on a filter.
#[derive(Clone, Debug)]
enum Operation {
    Insert(Vec<u16>),
    InsertBatch(Vec<u16>),
    Union(Vec<u16>),
    /// Intersects with a filter of some keys and of every n-th member.
    Intersect(Vec<u16>, usize),
    Absorb(Vec<u16>),
    File,
    Clear,
}

fn operation() -> impl Strategy<Value = Operation> {
    let keys = || prop::collection::vec(0..2000u16, 0..100);
    prop_oneof![
        3 => keys().prop_map(Operation::Insert),
        3 => keys().prop_map(Operation::InsertBatch),
        1 => keys().prop_map(Operation::Union),
        2 => (keys(), 1..3usize).prop_map(|(keys, step)| Operation::Intersect(keys, step)),
        1 => keys().prop_map(Operation::Absorb),
        1 => Just(Operation::File),
        1 => Just(Operation::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Default::default()
    })]
    #[test]
    fn members_are_found_after_any_history(
        (bits, regions) in (1..20_000u64).prop_flat_map(|bits| (Just(bits), 1..=bits.min(14) as u32)),
        hashes in 1..12u32,
        (ranked, compat) in any::<(bool, bool)>(),
        operations in prop::collection::vec(operation(), 1..15),
    ) {
        let options = Options { regions: Some(regions), ranked, compat };
        let mut filter = empty(bits, hashes, &options);
        let mut members = BTreeSet::new();
        let keys = |keys: &[u16]| keys.iter().map(|key| mix((*key).into())).collect::<Vec<u64>>();
        for operation in &operations {
            match operation {
                Operation::Insert(new) => {
                    for key in keys(new) {
                        let found = filter.contains(&key);
                        prop_assert_eq!(filter.insert(&key), !found);
                        members.insert(key);
                    }
                }
                Operation::InsertBatch(new) => {
                    filter.insert_batch(&keys(new)[..]);
                    members.extend(keys(new));
                }
                Operation::Union(new) => {
                    filter.union(&filter_of(bits, hashes, &options, &keys(new)))?;
                    members.extend(keys(new));
                }
                Operation::Absorb(new) => {
                    filter.absorb(&filter_of(bits, hashes, &options, &keys(new)))?;
                    members.extend(keys(new));
                }
                Operation::Intersect(new, step) => {
                    let other: Vec<u64> = keys(new).into_iter().chain(members.iter().step_by(*step).copied()).collect();
                    filter.intersect(&filter_of(bits, hashes, &options, &other))?;
                    members.retain(|key| other.contains(key));
                }
                Operation::File => filter = check_round_trip(&filter),
                Operation::Clear => {
                    filter.clear();
                    members.clear();
                    prop_assert!(memory(&filter).concat().iter().all(|word| *word == 0));
                }
            }
            for key in &members {
                prop_assert!(filter.contains(key), "a member is missing");
            }
        }
    }
}

#[test]
fn a_union_is_the_filter_of_all_keys() {
    let all = Keys::of_build(3).members(3000);
    for options in
        [options(12), Options { ranked: true, ..options(12) }, Options { compat: true, ..options(16) }]
    {
        let whole = filter_of(28_801, 7, &options, &all);
        let mut union = filter_of(28_801, 7, &options, &all[..2000]);
        union.absorb(&filter_of(28_801, 7, &options, &all[2000..])).expect("the same shape");
        assert!(memory(&union) == memory(&whole) && union.inserted() == Some(3000));
        let mut union = filter_of(28_801, 7, &options, &all[..2000]);
        union.union(&filter_of(28_801, 7, &options, &all[1000..])).expect("the same shape");
        assert!(memory(&union) == memory(&whole) && union.inserted().is_none());
        let (left, right) =
            (filter_of(28_801, 7, &options, &all[..2000]), filter_of(28_801, 7, &options, &all[1000..]));
        let overlap = left.overlap(&right).expect("the same shape").expect("not saturated");
        assert!((overlap.intersection.value - 1000.0).abs() < 5.0 * overlap.intersection.standard_error);
    }
}

#[test]
fn the_rate_at_capacity_is_the_requested_one() {
    check_rate_at_capacity::<Floom>();
}

#[test]
fn all_lookups_and_insertions_agree() {
    let keys = Keys::of_build(5);
    for (bits, hashes, options) in [
        (64, 3, options(4)),
        (4_000, 7, Options { ranked: true, ..options(10) }),
        (200_003, 10, Options { compat: true, ..options(16) }),
    ] {
        for count in [0, 1, 63, 64, 65, 700] {
            let members = keys.members(count);
            let asked = [&members[..], &keys.strangers(500)[..]].concat();
            check_every_way(&empty(bits, hashes, &options), &members, &asked);
        }
    }
}

#[test]
fn plans_include_the_table() {
    let spec = Spec::new(1_000_000, 0.01).expect("a valid rate");
    for (options, regions, table) in [
        (Options::default(), 16, 1 << 16),
        (Options { ranked: true, ..Options::default() }, 16, 26_332),
        (options(20), 20, 1 << 20),
        (Options { ranked: true, ..options(4) }, 4, 15),
    ] {
        let spec = tuned(options, spec.clone());
        let planned = plan(Kind::Floom, &spec).expect("a plan");
        let filter = Floom::build(&spec).expect("enough memory");
        let stats = filter.stats();
        assert_eq!((filter.regions(), filter.pattern_bits()), (regions, table));
        assert_eq!(
            (planned.stored_bits, planned.bytes, planned.hashes),
            (stats.bits, stats.bytes, stats.hashes)
        );
        assert!(planned.rate <= 0.01 && planned.lines_touched == 8 && filter.sections().len() == 2);
        assert!((9_585_059..9_600_000).contains(&(planned.bits - table)), "{planned:?}");
        assert!((filter.predicted_rate(1_000_000).expect("valid") / planned.rate - 1.0).abs() < 0.001);
        check_round_trip(&filter);
    }
    // A budget covers the bits of filter and table.
    let (n, p, m, k) = (Some(10_000), Some(0.01), Some(160_000), Some(7));
    for given in [
        Given { n, m, ..Given::default() },
        Given { n, m, k, ..Given::default() },
        Given { p, m, ..Given::default() },
        Given { p, m, k, ..Given::default() },
        Given { n, p, m, ..Given::default() },
        Given { n, p, m, k },
        Given { m, k, ..Given::default() },
    ] {
        for options in [Options::default(), options(16), Options { ranked: true, ..options(16) }] {
            let spec = tuned(options, Spec::from_given(given).expect("enough is known"));
            let planned = plan(Kind::Floom, &spec).expect("a plan");
            let filter = Floom::build(&spec).expect("enough memory");
            assert!(
                (155_000..=160_000).contains(&planned.bits) && planned.bits == planned.stored_bits,
                "{planned:?}"
            );
            assert_eq!(planned.bits, filter.stats().bits);
            assert!(given.k.is_none_or(|k| k == planned.hashes) && planned.rate <= planned.rate_asked);
            assert!(given.n.is_none_or(|n| n == planned.capacity));
        }
    }
}

#[test]
fn invalid_requests_are_refused_and_change_nothing() {
    fn name<T>(result: umbel::Result<T>) -> &'static str {
        match result {
            Err(Error::Parameter { name, .. }) => name,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("accepted"),
        }
    }
    let spec = Spec::new(1000, 0.01).expect("a valid rate");
    for regions in [0, 25, u32::MAX] {
        assert_eq!(name(Floom::build(&tuned(options(regions), spec.clone()))), "regions");
        assert_eq!(
            name(Floom::with_layout(standard(1000, 7), &options(regions), Hasher::default())),
            "regions"
        );
    }
    assert_eq!(name(Floom::with_layout(standard(10, 7), &options(11), Hasher::default())), "regions");
    assert_eq!(name(Floom::with_capacity(0, 0.01)), "n");
    assert_eq!(name(Floom::with_capacity(10, 1.0)), "p");
    let given = |regions, given| {
        Spec::from_given(given).and_then(|spec| Floom::build(&tuned(options(regions), spec)))
    };
    // The table alone exceeds the budget, or leaves too little.
    assert_eq!(name(given(16, Given { n: Some(10), m: Some(65_536), ..Given::default() })), "m");
    assert_eq!(name(given(16, Given { n: Some(10), m: Some(65_540), ..Given::default() })), "m");
    assert_eq!(name(given(0, Given { n: Some(10), m: Some(65_540), ..Given::default() })), "regions");
    let too_few =
        given(16, Given { n: Some(1_000_000), p: Some(0.01), m: Some(9_000_000), ..Given::default() });
    let error = too_few.unwrap_err().to_string();
    let named = ["m = 9000000 bits", "p = 0.01", "1000000 keys"].iter().all(|part| error.contains(part));
    assert!(named, "{error}");

    let keys = Keys::of_build(8).members(100);
    let filter = filter_of(1000, 5, &options(8), &keys);
    let seeded = Floom::with_layout(standard(1000, 5), &options(8), Hasher::fast(1)).expect("valid");
    for (other, what) in [
        (empty(1001, 5, &options(8)), "number of bits"),
        (empty(1000, 6, &options(8)), "number of hashes"),
        (empty(1000, 5, &options(9)), "number of regions"),
        (empty(1000, 5, &Options { ranked: true, ..options(8) }), "form of the patterns"),
        (empty(1000, 5, &Options { compat: true, ..options(8) }), "form of the patterns"),
        (seeded, "seed"),
    ] {
        let mut ours = filter.try_clone().expect("enough memory");
        for refused in
            [ours.union(&other), ours.intersect(&other), ours.absorb(&other), ours.overlap(&other).map(drop)]
        {
            assert!(matches!(refused, Err(Error::Mismatch(Mismatch { what: found, .. })) if found == what));
        }
        assert!(memory(&ours) == memory(&filter) && ours.inserted() == filter.inserted());
    }
    assert!(filter.fold().is_err());
    let mut any = AnyFilter::from(filter);
    assert!(matches!(any.remove(&keys[0]), Err(Error::Cannot { kind: Kind::Floom, .. })));
    assert!(!Kind::Floom.capabilities().remove && any.contains(&keys[0]));

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys.umbel");
    umbel::file::save(&path, &any, &umbel::file::Options::default()).expect("a file");
    let mapped = umbel::file::map(&path, &umbel::hash::KeyRing::new()).and_then(umbel::file::Mapped::verify);
    let mapped = mapped.expect("an intact file").filter.into_kind::<AnyFilter>().expect("a set");
    assert_eq!(mapped.contains_batch(&keys).count(), 100);
}
