//! Deletable filters find every inserted key, remove exactly the keys that they report as removed,
//! and can remove as many as theory predicts.

use crate::common::sets::{check_every_way, check_rate_at_capacity, check_round_trip, memory};
use crate::common::{Keys, mix, moments, standard};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseResult};
use std::collections::BTreeMap;
use umbel::error::Mismatch;
use umbel::internals::{Set, Structure};
use umbel::sizing::deletable::{complement, deletability, printed, resettable};
use umbel::sizing::{Given, rate};
use umbel::spec::{KindOptions, plan};
use umbel::{AnyFilter, Deletable, Digest, Error, Hasher, Kind, Removed, Spec};

fn empty(bits: u64, hashes: u32, region_bits: u64) -> Deletable {
    Deletable::with_layout(standard(bits, hashes), region_bits, Hasher::default()).expect("valid parameters")
}

fn filter_of(bits: u64, hashes: u32, region_bits: u64, keys: &[u64]) -> Deletable {
    let mut filter = empty(bits, hashes, region_bits);
    filter.insert_batch(keys);
    filter
}

fn tuned(region_bits: u64, spec: Spec) -> Spec {
    let mut options = KindOptions::default();
    options.deletable.region_bits = region_bits;
    spec.with_options(options)
}

/// A row of the published table: a budget of m bits, k, n and r; the results of the three formulas,
/// and the published simulation.
struct Row {
    m: u64,
    k: u32,
    n: u64,
    r: u64,
    formulas: [f64; 3],
    simulated: f64,
}

const fn row(m: u64, k: u32, n: u64, r: u64, formulas: [f64; 3], simulated: f64) -> Row {
    Row { m, k, n, r, formulas, simulated }
}

const TABLE: [Row; 9] = [
    row(240, 5, 22, 24, [0.0675, 0.9325, 0.8071], 0.786),
    row(240, 5, 22, 12, [0.3563, 0.6437, 0.5000], 0.455),
    row(240, 5, 22, 60, [0.0039, 0.9961, 0.9336], 0.929),
    row(240, 5, 22, 120, [0.0007, 0.9993, 0.9233], 0.925),
    row(240, 5, 35, 24, [0.4639, 0.5361, 0.3416], 0.321),
    row(1000, 7, 100, 100, [0.2906, 0.7094, 0.4889], 0.481),
    row(1000, 7, 100, 250, [0.0174, 0.9826, 0.8362], 0.835),
    row(10_000, 7, 1000, 1000, [0.2908, 0.7092, 0.4873], 0.483),
    row(10_000, 5, 625, 500, [0.0607, 0.9393, 0.8577], 0.854),
];

#[test]
fn the_formulas_match_the_published_table() {
    for Row { m, k, n, r, formulas, .. } in TABLE {
        let found =
            [printed, complement, deletability].map(|formula| formula(m - r, r, n, k).expect("valid"));
        for (found, expected) in found.into_iter().zip(formulas) {
            assert!((found - expected).abs() <= 5.1e-5, "m {m} k {k} n {n} r {r}: {found}, not {expected}");
        }
    }
}

/// Builds 20 000 filters for each row from random digests. In each, the first keys are tested for
/// whether they could be removed, and one is removed. The answers of one build are not independent,
/// so the standard error is that of the means of the builds: at most 0.0023, and four times that is
/// within the allowed 0.01.
#[test]
fn the_simulated_deletability_matches_the_table() {
    const BUILDS: u64 = 20_000;
    for (number, Row { m, k, n, r, formulas, simulated }) in (0..).zip(&TABLE) {
        let (bits, asked) = (m - r, (*n).min(10));
        let mut filter = empty(bits, *k, bits.div_ceil(*r));
        assert_eq!(filter.regions(), *r);
        let (mut shares, mut probes) = (Vec::new(), 0.0);
        for build in 0..BUILDS {
            filter.clear();
            let digest = |i: u64| Digest::from_hash(mix(number << 56 | build << 32 | i));
            for i in 0..*n {
                filter.insert_digest(digest(i));
            }
            let verdicts = (0..asked).map(|i| filter.would_remove_digest(digest(i)));
            let deletable = verdicts.filter(|verdict| *verdict == Removed::Removed).count();
            shares.push(deletable as f64 / asked as f64);
            let free = 1.0 - filter.collided_regions() as f64 / *r as f64;
            probes += free;
            let verdict = filter.would_remove_digest(digest(0));
            assert_eq!(filter.remove_digest(digest(0)), verdict);
            assert_eq!(filter.contains_digest(digest(0)), verdict != Removed::Removed);
        }
        let (share, deviation) = moments(&shares);
        let error = deviation / (BUILDS as f64).sqrt();
        println!(
            "m {m} k {k} n {n} r {r}: {share:.4} ± {error:.4}, table {simulated}, formula {}, free regions {:.3}",
            formulas[2],
            probes / BUILDS as f64
        );
        assert!(4.0 * error < 0.01, "the measurement is too coarse");
        assert!((share - simulated).abs() < 0.01, "m {m} k {k} n {n} r {r}: {share}, not {simulated}");
        assert!((share - formulas[2]).abs() < 0.05, "the formula must be close");
        assert!(formulas[1] - share > 0.03, "the complement of the printed formula must not be close");
    }
}

/// Measures the share of hits that could be reset one by one, for m = 240, k = 5, n = 22, r = 24.
#[test]
fn a_quarter_of_the_hits_can_be_reset() {
    const BUILDS: u64 = 20_000;
    let (bits, k, n, region_bits) = (216, 5, 22, 9);
    let mut filter = empty(bits, k, region_bits);
    let mut resettable_hits = 0;
    for build in 0..BUILDS {
        filter.clear();
        let digests: Vec<_> = (0..n).map(|i| Digest::from_hash(mix(1 << 60 | build << 32 | i))).collect();
        filter.insert_tile(&digests);
        let collisions = filter.sections()[1].1.words();
        let hits = digests.iter().flat_map(|digest| digest.stream().take(k as usize));
        let regions = hits.map(|x| umbel::hash::reduce(x, bits) / region_bits);
        resettable_hits += regions.filter(|region| collisions[0] >> region & 1 == 0).count();
    }
    let share = resettable_hits as f64 / (BUILDS * n * u64::from(k)) as f64;
    println!("{share:.4}, formula {:.4}", resettable(bits, 24, n, k).expect("valid"));
    assert!((share - 0.275).abs() < 0.01, "{share}");
    assert!((share - resettable(bits, 24, n, k).expect("valid")).abs() < 0.01, "{share}");
}

/// The filter's own deletability is the share of its keys that can be removed, at any load and for
/// every size of region, and agrees with the formula.
#[test]
fn the_filter_estimates_its_own_deletability() {
    for region_bits in [1, 2, 4, 9, 16, 64] {
        for load in [2_000, 10_000, 14_000] {
            let spec = tuned(region_bits, Spec::new(10_000, 0.01).expect("a valid rate"));
            let mut filter = Deletable::build(&spec).expect("enough memory");
            let keys = Keys::of_build(region_bits).members(load);
            filter.insert_batch(&keys[..]);
            let removable = keys.iter().filter(|key| filter.would_remove(*key) == Removed::Removed).count();
            let share = removable as f64 / load as f64;
            let (reported, formula) =
                (filter.deletability(), filter.predicted_deletability(load).expect("valid"));
            println!(
                "{region_bits} bits, {load} keys: {share:.4}, reported {reported:.4}, formula {formula:.4}"
            );
            assert!(
                (reported - share).abs() < 0.015,
                "{region_bits} bits, {load} keys: {share}, reported {reported}"
            );
            assert!((reported - formula).abs() < 0.015);
            let details = filter.stats().details;
            assert!(
                details.contains(&("deletability", reported))
                    && details.contains(&("regions", filter.regions() as f64))
            );
            assert!(details.contains(&("collided regions", filter.collided_regions() as f64)));
        }
    }
    let filter = Deletable::with_capacity(10_000, 0.01).expect("enough memory");
    assert_eq!(filter.deletability(), 1.0, "nothing has collided yet");
    for (load, documented) in [(10_000, 0.90), (5_000, 0.998)] {
        let predicted = filter.predicted_deletability(load).expect("valid");
        assert!((predicted - documented).abs() < 0.002, "{load}: {predicted}");
    }
}

/// Collisions remain when keys are removed. A filter that always holds half its capacity, but of
/// changing keys, can finally remove nothing; it loses no keys.
#[test]
fn deletability_decays_as_keys_are_replaced() {
    let mut filter = Deletable::with_capacity(2_000, 0.01).expect("enough memory");
    let keys = Keys::of_build(7);
    let mut live: Vec<u64> = Vec::new();
    let mut reported = Vec::new();
    for round in 0..40 {
        let fresh: Vec<u64> = (round * 1000..(round + 1) * 1000).map(|i| keys.member(i)).collect();
        filter.insert_batch(&fresh[..]);
        live.extend(&fresh);
        let removable = live.iter().filter(|key| filter.would_remove(*key) == Removed::Removed).count();
        reported.push(filter.deletability());
        let share = removable as f64 / live.len() as f64;
        // The keys that remain are those that cannot be removed, so the share says less and less
        // about new ones.
        if round == 0 {
            assert!((share - reported[0]).abs() < 0.03, "{share}, reported {}", reported[0]);
        }
        let before = filter.collided_regions();
        live.retain(|key| filter.remove(key) != Removed::Removed);
        assert_eq!(filter.collided_regions(), before, "a removal must not change collisions");
        assert!(live.iter().all(|key| filter.contains(key)), "round {round}: a member is missing");
        assert_eq!(filter.inserted(), Some(live.len() as u64));
    }
    println!("{reported:.3?}");
    assert!(
        reported[0] > 0.98 && reported.is_sorted_by(|a, b| a >= b) && reported[39] < 0.01,
        "{reported:?}"
    );
    filter.clear();
    assert_eq!((filter.collided_regions(), filter.stats().used_cells), (0, 0));
}

#[test]
fn insertion_does_not_depend_on_order_and_a_union_is_the_filter_of_all_keys() {
    for (bits, hashes, region_bits) in [(10, 3, 2), (640, 5, 1), (1000, 7, 9), (9_999, 7, 4), (9_999, 7, 100)]
    {
        let all = Keys::of_build(1).members(bits / 10);
        let len = all.len();
        let whole = filter_of(bits, hashes, region_bits, &all);
        let backwards: Vec<u64> = all.iter().rev().copied().collect();
        assert!(memory(&whole) == memory(&filter_of(bits, hashes, region_bits, &backwards)));
        // Overlapping halves are as if the common keys had been inserted twice.
        for (left, right) in
            [(0..len / 2, len / 2..len), (0..0, 0..len), (0..len, 0..0), (0..len, len / 3..len)]
        {
            let (left, right) = (&all[left], &all[right]);
            let other = filter_of(bits, hashes, region_bits, right);
            let mut union = filter_of(bits, hashes, region_bits, left);
            union.union(&other).expect("the same shape");
            let expected = filter_of(bits, hashes, region_bits, &[left, right].concat());
            assert!(memory(&union) == memory(&expected), "{bits} {region_bits}");
            assert_eq!(union.inserted(), None);
            let mut absorbed = filter_of(bits, hashes, region_bits, left);
            absorbed.absorb(&other).expect("the same shape");
            assert!(memory(&absorbed) == memory(&expected));
            assert_eq!(absorbed.inserted(), expected.inserted());
        }
    }
}

/// The collision bit of a region records that one of its cells was hit twice, and nothing else.
#[test]
fn a_region_has_a_collision_if_one_of_its_cells_was_hit_twice() {
    for region_bits in [1, 2, 9, 64, 1000] {
        let (bits, hashes) = (997, 5);
        let keys = Keys::of_build(3).members(60);
        let filter = filter_of(bits, hashes, region_bits, &keys);
        let mut hits = vec![0; bits as usize];
        for digest in Hasher::default().digest_batch(&keys[..]) {
            for x in digest.stream().take(hashes as usize) {
                hits[umbel::hash::reduce(x, bits) as usize] += 1;
            }
        }
        let sections = filter.sections();
        let bit = |section: usize, i: usize| sections[section].1.words()[i / 64] >> (i % 64) & 1 == 1;
        for (i, region) in hits.chunks(region_bits as usize).enumerate() {
            assert_eq!(bit(1, i), region.iter().any(|hits| *hits > 1), "region {i} of {region_bits} bits");
        }
        for (i, hits) in hits.iter().enumerate() {
            assert_eq!(bit(0, i), *hits > 0, "bit {i}");
        }
    }
}

/// Inserts and removes one key. If two of its hashes coincide, the bits of that region remain, and
/// so does the collision.
#[test]
fn a_removed_key_leaves_only_its_collisions_with_itself() {
    let mut with_itself = 0;
    for number in 0..3000 {
        let mut filter = empty(64, 5, 2);
        let nothing = memory(&filter);
        let key = Keys::of_build(4).member(number);
        filter.insert(&key);
        let collided = filter.collided_regions();
        match filter.remove(&key) {
            Removed::Removed => assert!(!filter.contains(&key)),
            verdict => assert!(verdict == Removed::NotDeletable && filter.contains(&key) && collided > 0),
        }
        if collided == 0 {
            assert!(memory(&filter) == nothing, "key {number}");
            assert_eq!((filter.inserted(), filter.stats().used_cells), (Some(0), 0));
        } else {
            with_itself += 1;
            assert!(filter.collided_regions() == collided && filter.stats().used_cells > 0);
        }
    }
    assert!(with_itself > 100, "only {with_itself} keys collided with themselves");
}

/// An operation on a filter.
#[derive(Clone, Debug)]
enum Operation {
    Insert(Vec<u16>),
    InsertBatch(Vec<u16>),
    /// Removes the members with these numbers.
    Remove(Vec<prop::sample::Index>),
    Union(Vec<u16>),
    /// Intersects with a filter of some keys and of every n-th member.
    Intersect(Vec<u16>, usize),
    Absorb(Vec<u16>),
    File,
    Clear,
}

fn operation() -> impl Strategy<Value = Operation> {
    let keys = || prop::collection::vec(0..400u16, 0..40);
    prop_oneof![
        4 => keys().prop_map(Operation::Insert),
        2 => keys().prop_map(Operation::InsertBatch),
        6 => prop::collection::vec(any::<prop::sample::Index>(), 0..40).prop_map(Operation::Remove),
        1 => keys().prop_map(Operation::Union),
        2 => (keys(), 1..3usize).prop_map(|(keys, step)| Operation::Intersect(keys, step)),
        1 => keys().prop_map(Operation::Absorb),
        1 => Just(Operation::File),
        1 => Just(Operation::Clear),
    ]
}

/// A filter and the number of copies of each key in it.
struct Checked {
    filter: Deletable,
    members: BTreeMap<u64, u64>,
}

impl Checked {
    /// Returns another filter of the same shape.
    fn other(&self, keys: impl Iterator<Item = u64>) -> Checked {
        let mut other = Checked {
            filter: self.filter.try_clone_empty().expect("enough memory"),
            members: BTreeMap::new(),
        };
        other.insert(keys);
        other
    }

    fn insert(&mut self, keys: impl Iterator<Item = u64>) {
        for key in keys {
            let found = self.filter.contains(&key);
            assert_eq!(self.filter.insert(&key), !found);
            *self.members.entry(key).or_default() += 1;
        }
    }

    /// Applies an operation and returns how many keys were removed.
    fn apply(&mut self, operation: &Operation) -> Result<u64, TestCaseError> {
        let keys = |keys: &[u16]| keys.iter().map(|key| mix((*key).into())).collect::<Vec<u64>>().into_iter();
        let mut removed = 0;
        match operation {
            Operation::Insert(new) => self.insert(keys(new)),
            Operation::InsertBatch(new) => {
                let new: Vec<u64> = keys(new).collect();
                self.filter.insert_batch(&new[..]);
                new.iter().for_each(|key| *self.members.entry(*key).or_default() += 1);
            }
            Operation::Remove(which) => {
                for index in which.iter().filter(|_| !self.members.is_empty()).collect::<Vec<_>>() {
                    let Some((&key, &count)) = self.members.iter().nth(index.index(self.members.len()))
                    else {
                        continue;
                    };
                    let before = memory(&self.filter);
                    match self.filter.remove(&key) {
                        Removed::Removed => {
                            prop_assert_eq!(count, 1, "a key that was inserted twice cannot be removed");
                            prop_assert!(!self.filter.contains(&key));
                            self.members.remove(&key);
                            removed += 1;
                        }
                        Removed::NotDeletable => prop_assert!(memory(&self.filter) == before),
                        Removed::NotPresent => prop_assert!(false, "a member is reported as absent"),
                    }
                    if self.members.is_empty() {
                        break;
                    }
                }
            }
            Operation::Union(new) | Operation::Absorb(new) => {
                let other = self.other(keys(new));
                match operation {
                    Operation::Union(_) => self.filter.union(&other.filter),
                    _ => self.filter.absorb(&other.filter),
                }
                .expect("the same shape");
                other
                    .members
                    .into_iter()
                    .for_each(|(key, count)| *self.members.entry(key).or_default() += count);
            }
            Operation::Intersect(new, step) => {
                let some: Vec<u64> = self.members.keys().step_by(*step).copied().collect();
                let other = self.other(keys(new).chain(some));
                self.filter.intersect(&other.filter).expect("the same shape");
                let both = |key: &u64, count: u64| count.min(other.members.get(key).copied().unwrap_or(0));
                self.members = self.members.iter().map(|(key, count)| (*key, both(key, *count))).collect();
                self.members.retain(|_, count| *count > 0);
            }
            Operation::File => self.filter = check_round_trip(&self.filter),
            Operation::Clear => {
                self.filter.clear();
                self.members.clear();
            }
        }
        for key in self.members.keys() {
            prop_assert!(self.filter.contains(key), "a member is missing");
        }
        Ok(removed)
    }
}

/// Compares histories in which only members are removed with an exact multiset, for small and
/// crowded filters, in which nearly all keys collide, and large ones, in which nearly all can be
/// removed.
#[test]
fn members_are_found_after_any_history() {
    let config = ProptestConfig {
        cases: 4000,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let shape = (prop_oneof![1..100u64, 100..5000u64], 1..10u32, prop_oneof![1..10u64, 1..600u64]);
    let history = (shape, prop::collection::vec(operation(), 1..25));
    let removed = std::cell::Cell::new(0);
    let run = |((bits, hashes, region_bits), operations): (_, Vec<Operation>)| -> TestCaseResult {
        let mut checked = Checked { filter: empty(bits, hashes, region_bits), members: BTreeMap::new() };
        for operation in &operations {
            removed.set(removed.get() + checked.apply(operation)?);
        }
        Ok(())
    };
    proptest::test_runner::TestRunner::new(config).run(&history, run).expect("no key is lost");
    assert!(removed.get() > 50_000, "only {} keys were removed", removed.get());
}

#[test]
fn the_rate_at_capacity_is_the_requested_one() {
    check_rate_at_capacity::<Deletable>();
}

#[test]
fn all_lookups_and_insertions_agree() {
    let keys = Keys::of_build(5);
    for (bits, hashes, region_bits) in [(64, 3, 4), (4_000, 7, 4), (200_003, 10, 9)] {
        for count in [0, 1, 63, 64, 65, 700] {
            let members = keys.members(count);
            let asked = [&members[..], &keys.strangers(500)[..]].concat();
            check_every_way(&empty(bits, hashes, region_bits), &members, &asked);
        }
    }
}

#[test]
fn a_loaded_file_continues_where_it_was_saved() {
    let mut filter = Deletable::with_capacity(3_000, 0.001).expect("enough memory");
    check_round_trip(&filter);
    let keys = Keys::of_build(6).members(3_000);
    filter.insert_batch(&keys[..]);
    check_round_trip(&filter);
    keys[..1000].iter().for_each(|key| _ = filter.remove(key));
    let mut read = check_round_trip(&filter);
    // The loaded filter must continue where it was saved.
    for key in &keys[1000..] {
        assert_eq!(read.remove(key), filter.remove(key));
    }
    assert!(memory(&read) == memory(&filter));
    // A mapped filter answers lookups and whether keys could be removed, but cannot be changed.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys.umbel");
    umbel::file::save(&path, &filter, &umbel::file::Options::default()).expect("a file");
    let mapped = umbel::file::map(&path, &umbel::hash::KeyRing::new()).and_then(umbel::file::Mapped::verify);
    let mapped = mapped.expect("an intact file").filter.into_kind::<Deletable>().expect("this kind");
    assert!(keys.iter().all(|key| mapped.would_remove(key) == filter.would_remove(key)));
    let mut copy = mapped.try_clone().expect("enough memory");
    copy.clear();
    assert!(copy.insert(&keys[0]) && memory(&*mapped) == memory(&filter));
}

#[test]
fn plans_include_the_collision_bits() {
    let spec = Spec::new(1_000_000, 0.01).expect("a valid rate");
    for region_bits in [1, 4, 9] {
        let spec = tuned(region_bits, spec.clone());
        let planned = plan(Kind::Deletable, &spec).expect("a plan");
        let mut filter = AnyFilter::build(Kind::Deletable, &spec).expect("enough memory");
        assert!(filter.insert("pear").expect("owned memory"));
        assert_eq!(filter.remove("pear").expect("owned memory"), Removed::Removed);
        assert_eq!(filter.remove("pear").expect("owned memory"), Removed::NotPresent);
        let stats = filter.stats();
        assert_eq!(
            (planned.stored_bits, planned.bytes, planned.hashes),
            (stats.bits, stats.bytes, stats.hashes)
        );
        assert_eq!((filter.kind(), filter.sections().len()), (Kind::Deletable, 2));
        assert!(planned.rate <= 0.01 && planned.lines_touched == 7);
        let bits = planned.bits as f64 / 9_593_000.0;
        assert!((bits - 1.0 - 1.0 / region_bits as f64).abs() < 0.001, "{region_bits}: {bits}");
        assert!((filter.predicted_rate(1_000_000).expect("valid") / planned.rate - 1.0).abs() < 0.001);
    }
    // A budget covers all bits: m = m' + r.
    let given = |given| Spec::from_given(given).expect("enough is known");
    for (given, bits) in [
        (Given { n: Some(22), m: Some(240), k: Some(5), ..Given::default() }, 216),
        (Given { n: Some(22), m: Some(240), ..Given::default() }, 216),
        (Given { p: Some(0.1), m: Some(240), ..Given::default() }, 216),
        (Given { p: Some(0.1), m: Some(240), k: Some(3), ..Given::default() }, 216),
        (Given { m: Some(240), k: Some(3), ..Given::default() }, 216),
        (Given { n: Some(22), p: Some(0.1), m: Some(240), ..Given::default() }, 216),
    ]
    .map(|(filter, bits)| (tuned(9, given(filter)), bits))
    {
        let planned = plan(Kind::Deletable, &given).expect("a plan");
        let filter = Deletable::build(&given).expect("enough memory");
        assert_eq!((planned.bits, planned.stored_bits), (240, 240));
        assert_eq!((filter.sections()[0].1.words().len(), filter.regions()), (8, 24));
        assert_eq!(filter.params()[0], bits);
        let expected = rate::expected(bits, planned.capacity, planned.hashes).expect("valid");
        assert!(planned.rate == expected && planned.rate <= planned.rate_asked, "{planned:?}");
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
    assert_eq!(name(Deletable::build(&tuned(0, spec.clone()))), "region bits");
    assert_eq!(name(Deletable::build(&tuned(u64::MAX, spec))), "region bits");
    assert_eq!(name(Deletable::with_capacity(0, 0.01)), "n");
    assert_eq!(name(Deletable::with_capacity(10, 0.0)), "p");
    assert_eq!(name(Deletable::with_capacity(10, f64::NAN)), "p");
    assert_eq!(name(Deletable::with_layout(standard(10, 3), 0, Hasher::default())), "region bits");
    let given = |given| Spec::from_given(given).and_then(|spec| Deletable::build(&spec));
    assert_eq!(name(given(Given { n: Some(1), m: Some(1), ..Given::default() })), "m");
    assert_eq!(name(given(Given { n: Some(1), ..Given::default() })), "known");
    let too_few = given(Given { n: Some(1_000_000), p: Some(0.01), m: Some(9_600_000), ..Given::default() });
    let error = too_few.unwrap_err().to_string();
    let named = ["m = 9600000 bits", "p = 0.01", "1000000 keys"].iter().all(|part| error.contains(part));
    assert!(named, "{error}");

    // Filters that do not fit together are refused, and nothing changes.
    let keys = Keys::of_build(8).members(100);
    let filter = filter_of(1000, 5, 4, &keys);
    let seeded = Deletable::with_layout(standard(1000, 5), 4, Hasher::fast(1)).expect("valid parameters");
    for (other, what) in [
        (empty(1001, 5, 4), "number of bits"),
        (empty(1000, 6, 4), "number of hashes"),
        (empty(1000, 5, 3), "bits of a region"),
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
    assert!(matches!(filter.fold(), Err(Error::Cannot { kind: Kind::Deletable, .. })));
    assert!(Kind::Deletable.capabilities().remove && !Kind::Deletable.capabilities().share);

    // A key that is certainly absent cannot be removed, and a false positive only without checking.
    let mut ours = filter.try_clone().expect("enough memory");
    for stranger in Keys::of_build(8).strangers(1000) {
        if !ours.contains(&stranger) {
            assert_eq!(ours.remove(&stranger), Removed::NotPresent);
        } else {
            let removed = ours.remove_checked(&stranger, |_| false);
            assert_eq!(removed, Removed::NotPresent);
        }
    }
    assert!(memory(&ours) == memory(&filter) && ours.inserted() == filter.inserted());
}

#[test]
fn the_overlap_is_estimated_from_the_bits() {
    let all = Keys::of_build(9).members(3000);
    let left = filter_of(30_000, 7, 4, &all[..2000]);
    let right = filter_of(30_000, 7, 4, &all[1000..]);
    let overlap = left.overlap(&right).expect("the same shape").expect("not saturated");
    assert!((overlap.intersection.value - 1000.0).abs() < 5.0 * overlap.intersection.standard_error);
    let mut both = left.try_clone().expect("enough memory");
    both.intersect(&right).expect("the same shape");
    assert_eq!(both.contains_batch(&all[1000..2000]).count(), 1000);
    assert!(both.stats().rate_now <= left.stats().rate_now.min(right.stats().rate_now));
}
