//! Compares quotient filters with an exact multiset of fingerprints, and with the published
//! numbers.

use crate::common::{Keys, mix, moments, refused, tile};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use umbel::error::Mismatch;
use umbel::internals::{Level, Structure, TILE};
use umbel::quotient::Options;
use umbel::sizing::{Given, quotient};
use umbel::spec::{KindOptions, plan};
use umbel::{AnyFilter, Digest, Error, Hasher, Key, Kind, Quotient, Removed, Spec, file};

fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(12), failure_persistence: None, ..Default::default() }
}

fn empty(slots: u64, remainder_bits: u32) -> Quotient {
    Quotient::with_slots(slots, remainder_bits, Hasher::default()).unwrap()
}

/// The expected contents of a filter: each fingerprint and its number of copies.
#[derive(Clone, Debug, Default, PartialEq)]
struct Reference(BTreeMap<u64, u64>);

impl Reference {
    fn of(filter: &Quotient, keys: &[u64]) -> Reference {
        let mut reference = Reference::default();
        keys.iter().for_each(|key| reference.add(filter.fingerprint(key.digest(filter.hasher())), 1));
        reference
    }

    fn add(&mut self, fingerprint: u64, count: u64) {
        if count > 0 {
            *self.0.entry(fingerprint).or_default() += count;
        }
    }

    fn remove(&mut self, fingerprint: u64) -> bool {
        let Some(count) = self.0.get_mut(&fingerprint) else { return false };
        *count -= 1;
        if *count == 0 {
            self.0.remove(&fingerprint);
        }
        true
    }

    fn count(&self, fingerprint: u64) -> u64 {
        self.0.get(&fingerprint).copied().unwrap_or(0)
    }

    fn len(&self) -> u64 {
        self.0.values().sum()
    }

    fn all(&self) -> Vec<u64> {
        self.0.iter().flat_map(|(fingerprint, count)| vec![*fingerprint; *count as usize]).collect()
    }

    /// Compares the answers to all queries for these keys.
    fn agrees(&self, filter: &Quotient, keys: &[u64]) -> Result<(), TestCaseError> {
        prop_assert_eq!(filter.len(), self.len());
        prop_assert!(filter.fingerprints().eq(self.all()));
        let batch = filter.contains_batch(keys);
        for (i, key) in keys.iter().enumerate() {
            let count = self.count(filter.fingerprint(key.digest(filter.hasher())));
            prop_assert_eq!(filter.contains(key), count > 0);
            prop_assert_eq!(filter.count(key), count);
            prop_assert_eq!(batch.get(i), Some(count > 0));
        }
        Ok(())
    }
}

/// Writes the filter to a file and reads it back, which refuses contents that insertions cannot
/// produce.
fn reread(filter: &Quotient) -> Quotient {
    let bytes = file::to_bytes(filter, &Default::default()).unwrap();
    let stored = file::from_bytes(&bytes, &Default::default()).unwrap();
    AnyFilter::try_from(stored.filter).and_then(Quotient::try_from).unwrap()
}

proptest! {
    #![proptest_config(fixed(1500))]

    /// Few slots and few keys lead to long clusters, long runs, repeated keys and shared
    /// fingerprints.
    #[test]
    fn any_history_results_in_the_exact_multiset_of_fingerprints(
        blocks in 1..=4u64,
        bits in 1..=20u32,
        universe in 1..300u64,
        steps in prop::collection::vec((any::<u64>(), 0..8u8), 1..400),
    ) {
        let mut filter = empty(blocks * 64, bits);
        let mut reference = Reference::default();
        let keys: Vec<u64> = (0..universe).map(mix).collect();
        for (step, (number, operation)) in steps.into_iter().enumerate() {
            let key = mix(number % universe);
            let fingerprint = filter.fingerprint(key.digest(filter.hasher()));
            if operation < 5 {
                match filter.insert(&key) {
                    Ok(new) => {
                        prop_assert_eq!(new, reference.count(fingerprint) == 0);
                        reference.add(fingerprint, 1);
                    }
                    Err(error) => {
                        prop_assert!(matches!(error, Error::Full { .. }), "{}", error);
                        let full = quotient::max_keys(filter.slots());
                        prop_assert!(reference.len() == full || universe < 70, "{}", error);
                    }
                }
            } else {
                let removed = filter.remove(&key);
                prop_assert_eq!(removed == Removed::Removed, reference.remove(fingerprint));
            }
            if step % 50 == 0 {
                reference.agrees(&filter, &keys)?;
            }
        }
        reference.agrees(&filter, &keys)?;
        // A filter read from a file continues like the original.
        let mut copy = reread(&filter);
        reference.agrees(&copy, &keys)?;
        prop_assert_eq!(copy.inserted(), filter.inserted());
        prop_assert_eq!(copy.remove(&keys[0]), filter.remove(&keys[0]));
        prop_assert_eq!(copy.insert(&keys[0]).ok(), filter.insert(&keys[0]).ok());
        prop_assert_eq!(copy.words().words(), filter.words().words());
        // The same multiset, inserted in a different order, has the same memory.
        let mut again = empty(blocks * 64, bits);
        for key in &keys {
            while again.count(key) < filter.count(key) {
                again.insert(key).unwrap();
            }
        }
        prop_assert_eq!(again.words().words(), filter.words().words());
    }

    #[test]
    fn resizing_keeps_every_fingerprint(
        blocks in 1..=3u64,
        bits in 2..=12u32,
        numbers in prop::collection::vec(0..500u64, 0..60),
    ) {
        let keys: Vec<u64> = numbers.into_iter().map(mix).collect();
        let strangers: Vec<u64> = (0..500).map(mix).collect();
        let mut filter = empty(blocks * 64, bits);
        filter.insert_batch(&keys).unwrap();
        let reference = Reference::of(&filter, &keys);
        let before = filter.try_clone().unwrap();
        filter.grow().unwrap();
        prop_assert_eq!((filter.slots(), filter.remainder_bits()), (blocks * 128, bits - 1));
        reference.agrees(&filter, &strangers)?;
        // The result is as if it had had this size from the start.
        let mut direct = empty(blocks * 128, bits - 1);
        direct.insert_batch(&keys).unwrap();
        prop_assert_eq!(direct.words().words(), filter.words().words());
        prop_assert_eq!(filter.predicted_rate(40).unwrap(), before.predicted_rate(40).unwrap());
        filter.shrink().unwrap();
        prop_assert_eq!(before.words().words(), filter.words().words());
        prop_assert_eq!(before.inserted(), filter.inserted());
    }

    #[test]
    fn resizing_for_a_number_of_keys_keeps_every_fingerprint(
        blocks in 1..=6u64,
        bits in 1..=12u32,
        numbers in prop::collection::vec(0..500u64, 0..60),
        capacity in 0..20_000u64,
    ) {
        let keys: Vec<u64> = numbers.into_iter().map(mix).collect();
        let mut filter = empty(blocks * 64, bits);
        filter.insert_batch(&keys).unwrap();
        let reference = Reference::of(&filter, &keys);
        let slots = (blocks * 64) << (bits - 1);
        match filter.resized_for(capacity) {
            Ok(resized) => {
                reference.agrees(&resized, &keys)?;
                let load = capacity as f64 / resized.slots() as f64;
                prop_assert!(load <= quotient::LOAD, "{} keys in {} slots", capacity, resized.slots());
                prop_assert!(resized.slots() % 128 != 0 || 2.0 * load > quotient::LOAD, "it is too large");
                let design = resized.design().unwrap();
                prop_assert_eq!(design.capacity, capacity);
                prop_assert_eq!(design.rate, filter.predicted_rate(capacity).unwrap());
                reread(&resized);
            }
            Err(error) if capacity < filter.len().max(1) => {
                prop_assert!(error.to_string().contains("keys that the filter holds"), "{}", error);
            }
            Err(error) => {
                prop_assert!(capacity as f64 > quotient::LOAD * slots as f64, "{} keys: {}", capacity, error);
                let most = format!("it can grow to {} keys", quotient::max_keys(slots));
                prop_assert!(error.to_string().contains(&most), "{}", error);
            }
        }
    }

    #[test]
    fn a_union_has_the_slots_it_needs(
        bits in 1..=6u32,
        left in prop::collection::vec(0..5000u64, 0..60),
        right in prop::collection::vec(0..5000u64, 0..60),
    ) {
        let [left, right] = [left, right].map(|numbers| numbers.into_iter().map(mix).collect::<Vec<_>>());
        let [mut a, mut b] = [empty(64, bits), empty(64, bits)];
        a.insert_batch(&left).unwrap();
        b.insert_batch(&right).unwrap();
        let sum = Reference::of(&a, &[&left[..], &right].concat());
        let fits = sum.len() <= quotient::max_keys(64);
        match a.union(&b) {
            Ok(()) => {
                sum.agrees(&a, &left)?;
                prop_assert_eq!((a.slots(), a.inserted()), (if fits { 64 } else { 128 }, Some(sum.len())));
                reread(&a);
            }
            Err(error) => {
                prop_assert!(!fits && bits == 1, "{}", error);
                prop_assert!(error.to_string().contains("it can grow to 60 keys"), "{}", error);
                Reference::of(&a, &left).agrees(&a, &left)?;
            }
        }
    }

    #[test]
    fn union_is_the_sum_and_intersection_the_minimum(
        blocks in 1..=3u64,
        bits in 2..=10u32,
        resize in any::<bool>(),
        left in prop::collection::vec(0..60u64, 0..30),
        right in prop::collection::vec(0..60u64, 0..30),
    ) {
        let [left, right] = [left, right].map(|numbers| numbers.into_iter().map(mix).collect::<Vec<_>>());
        let universe: Vec<u64> = (0..80).map(mix).collect();
        let (mut a, mut b) = (empty(blocks * 64, bits), empty(blocks * 64, bits));
        a.insert_batch(&left).unwrap();
        b.insert_batch(&right).unwrap();
        let (ours, theirs) = (Reference::of(&a, &left), Reference::of(&b, &right));
        if resize {
            b.grow().unwrap();
        }
        let (mut sum, mut least) = (ours.clone(), Reference::default());
        theirs.0.iter().for_each(|(&fingerprint, &count)| {
            sum.add(fingerprint, count);
            least.add(fingerprint, count.min(ours.count(fingerprint)));
        });
        let overlap = a.overlap(&b).unwrap().unwrap();
        let common = ours.0.len() + theirs.0.len() - sum.0.len();
        prop_assert_eq!(overlap.intersection.value == 0.0, common == 0);
        let mut both = a.try_clone().unwrap();
        both.union(&b).unwrap();
        sum.agrees(&both, &universe)?;
        prop_assert_eq!(both.inserted(), Some(sum.len()));
        let mut parts = a.try_clone().unwrap();
        parts.absorb(&b).unwrap();
        prop_assert_eq!(parts.words().words(), both.words().words());
        a.intersect(&b).unwrap();
        least.agrees(&a, &universe)?;
        reread(&a);
        reread(&both);
    }
}

#[test]
fn a_large_filter_survives_random_insertions_and_removals() {
    let mut filter = Quotient::with_capacity(200_000, 0.01).unwrap();
    let (keys, n) = (Keys::of_build(1), 180_000);
    filter.insert_batch(&keys.members(n)).unwrap();
    // Remove the keys with odd numbers in a different order, and insert others.
    for i in 0..n {
        let number = i * 7919 % n;
        if number % 2 == 1 {
            assert_eq!(filter.remove(&keys.member(number)), Removed::Removed);
        }
        if i % 3 == 0 {
            filter.insert(&keys.member(n + i)).unwrap();
        }
    }
    let left = (0..n).filter(|number| number % 2 == 0).chain((0..n).filter(|i| i % 3 == 0).map(|i| n + i));
    let left: Vec<u64> = left.map(|number| keys.member(number)).collect();
    let reference = Reference::of(&filter, &left);
    let asked: Vec<u64> = keys.strangers(50_000).into_iter().chain(left).collect();
    reference.agrees(&filter, &asked).unwrap();
    reference.agrees(&reread(&filter), &asked[..1000]).unwrap();
    let mut grown = filter.resized(filter.slots() * 4).unwrap();
    reference.agrees(&grown, &asked).unwrap();
    grown.union(&filter).unwrap();
    assert_eq!(grown.len(), 2 * filter.len());
    assert!(asked.iter().all(|key| grown.count(key) == 2 * filter.count(key)));
    assert!(
        matches!(filter.absorb(&grown), Err(Error::Full { .. })),
        "three times as many keys must not fit into its slots"
    );
    reference.agrees(&filter, &asked).unwrap();
    let (slots, len, rate) = (filter.slots(), filter.len(), filter.predicted_rate(1000).unwrap());
    filter.union(&grown).unwrap();
    assert_eq!((filter.slots(), filter.len(), filter.inserted()), (2 * slots, 3 * len, Some(3 * len)));
    assert_eq!(filter.predicted_rate(1000).unwrap(), rate, "growing must not change the rate");
    let stored = |key: &u64| reference.count(filter.fingerprint(key.digest(filter.hasher())));
    assert!(asked.iter().all(|key| filter.count(key) == 3 * stored(key)));
}

#[test]
fn removing_every_key_leaves_all_bits_zero() {
    for (seed, bits) in [(1, 1), (2, 3), (3, 7), (4, 31), (5, 50)] {
        let mut filter = empty(128, bits);
        // Repeated keys and, with one-bit remainders, mostly shared fingerprints.
        let keys: Vec<u64> = (0..115).map(|number| mix((seed << 32) | (number % 80))).collect();
        filter.insert_batch(&keys).unwrap();
        let order = |i: usize| keys[i * 67 % keys.len()];
        for i in 0..keys.len() {
            assert_eq!(filter.remove(&order(i)), Removed::Removed);
        }
        assert!(filter.words().words().iter().all(|word| *word == 0), "{bits}");
        assert_eq!((filter.len(), filter.inserted()), (0, Some(0)));
        assert_eq!(filter.remove(&keys[0]), Removed::NotPresent);
    }
}

#[test]
fn the_measured_rates_match_the_literature() {
    // 2^16 slots with remainders of 8 bits.
    let slots = 1 << 16;
    for (load, theory, low, high) in [(0.75, 0.002925, 0.0027, 0.0032), (0.9, 0.003509, 0.0031, 0.0037)] {
        let n = (load * slots as f64) as u64;
        let measured: Vec<f64> = (0..10)
            .map(|build| {
                let keys = Keys::of_build(build);
                let mut filter = empty(slots, 8);
                filter.insert_batch(&keys.members(n)).unwrap();
                assert!((filter.predicted_rate(n).unwrap() - theory).abs() < 1e-6);
                let stats = filter.stats();
                assert!((stats.rate_now / theory - 1.0).abs() < 0.01, "{}", stats.rate_now);
                filter.contains_batch(&keys.strangers(400_000)).count() as f64 / 400_000.0
            })
            .collect();
        let (mean, deviation) = moments(&measured);
        assert!((low..high).contains(&mean), "{load}: {mean}");
        // Four standard errors of the mean, estimated from the sample.
        assert!(
            (mean - theory).abs() < 4.0 * deviation / 10f64.sqrt() + 1e-5,
            "{load}: {mean} ± {deviation}"
        );
    }
    // 11 bits for each slot, including the slots after the last. Nine in ten slots are full.
    let filter = empty(slots, 8);
    assert!((filter.stats().bits as f64 / (0.9 * slots as f64) - 12.2).abs() < 0.15);
}

#[test]
fn the_requested_rate_is_kept_at_capacity() {
    for (n, rate) in [(100, 0.01), (100, 0.001), (20_000, 0.01), (200_000, 0.001), (200_000, 0.007)] {
        let (builds, queries) = if n == 100 { (400, 20_000) } else { (4, 1_000_000) };
        let found: u64 = (0..builds)
            .map(|build| {
                let keys = Keys::of_build(build);
                let mut filter = Quotient::with_capacity(n, rate).unwrap();
                filter.insert_batch(&keys.members(n)).unwrap();
                assert_eq!(filter.contains_batch(&keys.members(n)).count(), n);
                filter.contains_batch(&keys.strangers(queries)).count()
            })
            .sum();
        let asked = (builds * queries) as f64;
        let measured = found as f64 / asked;
        assert!(measured <= rate * 1.02 + 4.0 * (rate / asked).sqrt(), "{n} {rate}: {measured}");
    }
}

#[test]
fn single_tile_and_batch_lookups_agree_on_every_instruction_set() {
    let keys = Keys::of_build(3);
    for (slots, bits, n) in
        [(64, 5, 60), (6400, 1, 6000), (64_000, 7, 60_000), (6400, 13, 5000), (64, 57, 50)]
    {
        let mut filters: Vec<Quotient> = Vec::new();
        for level in Level::available() {
            let mut filter = empty(slots, bits);
            filter.set_level(level);
            filter.insert_batch(&keys.members(n)).unwrap();
            filters.push(filter);
        }
        let asked: Vec<u64> = keys.members(n).into_iter().chain(keys.strangers(20_000 + 13)).collect();
        let expected = filters[0].contains_batch(&asked);
        for filter in &filters {
            assert_eq!(filter.words().words(), filters[0].words().words());
            assert_eq!(filter.contains_batch(&asked), expected);
            for (i, asked) in asked.chunks(TILE).enumerate() {
                let digests = tile(asked, filter.hasher());
                assert_eq!(filter.contains_tile(&digests), expected.as_words()[i]);
                for (j, digest) in digests.iter().enumerate() {
                    let answer = expected.get(i * TILE + j).unwrap();
                    assert_eq!(filter.contains_digest(*digest), answer);
                    assert_eq!(filter.trace(*digest, &mut |_| Ok(())).unwrap(), answer);
                }
            }
        }
    }
}

#[test]
fn a_trace_reports_the_blocks_that_a_lookup_reads() {
    let keys = Keys::of_build(4);
    let mut filter = empty(64 * 40, 6);
    filter.insert_batch(&keys.members(2400)).unwrap();
    let stride = 64 * 9;
    for key in keys.members(200).into_iter().chain(keys.strangers(2000)) {
        let digest = key.digest(filter.hasher());
        let mut blocks = Vec::new();
        let answer = filter.trace(digest, &mut |probe| {
            assert_eq!((probe.section, probe.bits.end - probe.bits.start), (0, stride));
            blocks.push(probe.bits.start / stride);
            Ok(())
        });
        let answer = answer.unwrap();
        assert_eq!(blocks[0], (filter.fingerprint(digest) >> 6) / 64);
        assert_eq!(answer, filter.contains_digest(digest));
        let mut sorted = blocks.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), blocks.len(), "each block must be reported once");
    }
    let refused = filter.trace(Digest::from_hash(1), &mut |_| Err(Error::OutOfMemory { bytes: 1 }));
    assert!(matches!(refused, Err(Error::OutOfMemory { bytes: 1 })));
}

#[test]
fn a_full_filter_refuses_keys_and_does_not_change() {
    let mut filter = empty(640, 9);
    let most = quotient::max_keys(640);
    assert_eq!(most, 608);
    let keys = Keys::of_build(5);
    let error = filter.insert_batch(&keys.members(700)).unwrap_err();
    assert!(error.to_string().contains("at most 608 of its 640 slots"), "{error}");
    assert_eq!((filter.len(), filter.inserted()), (608, Some(608)));
    assert!(
        keys.members(608).iter().all(|key| filter.contains(key)),
        "the keys before the refused one must be found"
    );
    let before = filter.words().words().to_vec();
    assert!(matches!(filter.insert(&keys.member(9999)), Err(Error::Full { kind: Kind::Quotient, .. })));
    let digests = tile(&keys.strangers(64), filter.hasher());
    assert!(filter.insert_tile_new(&digests).is_err() && filter.insert_tile(&digests).is_err());
    assert!(matches!(filter.shrink(), Err(Error::Full { .. } | Error::Parameter { .. })));
    assert_eq!((filter.words().words(), filter.len()), (&before[..], 608));
    filter.grow().unwrap();
    filter.insert_batch(&keys.members(600)).unwrap();
    assert_eq!(filter.len(), 1208);
}

#[test]
fn a_repeated_last_key_fills_the_slots_after_the_last() {
    // A digest at the very end, which only fits in the slots after the last one.
    let mut filter = empty(64 * 100, 4);
    let last = Digest::from_hash(u64::MAX);
    let mut inserted = 0;
    let error = loop {
        match filter.insert_digest(last) {
            Ok(_) => inserted += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, Error::Full { .. }) && error.to_string().contains("share the last slots"),
        "{error}"
    );
    assert_eq!((inserted, filter.len(), filter.count_digest(last)), (513, 513, 513));
    reread(&filter);
    for _ in 0..513 {
        filter.remove_digest(last);
    }
    assert!(filter.words().words().iter().all(|word| *word == 0));
}

#[test]
fn invalid_parameters_and_mismatches_are_named() {
    let named = |result: umbel::Result<Quotient>, expected: &str| assert_eq!(refused(result), expected);
    let hasher = Hasher::default;
    named(Quotient::with_slots(0, 8, hasher()), "slots");
    named(Quotient::with_slots(100, 8, hasher()), "slots");
    named(Quotient::with_slots(1 << 50, 13, hasher()), "slots");
    named(Quotient::with_slots(64, 0, hasher()), "remainder bits");
    named(Quotient::with_slots(64, 58, hasher()), "remainder bits");
    named(Quotient::with_capacity(0, 0.01), "n");
    named(Quotient::with_capacity(10, 1.0), "p");
    let spec = |n, p, m, k| Spec::from_given(Given { n, p, m, k }).unwrap();
    named(Quotient::build(&spec(Some(100), Some(0.01), None, Some(3))), "k");
    named(Quotient::build(&spec(Some(100), None, None, None)), "n, p, m");
    named(Quotient::build(&spec(Some(10_000), None, Some(512), None)), "m");
    named(Quotient::build(&spec(Some(10_000), Some(1e-6), Some(130_000), None)), "m and p");
    let tuned = |options: Options| {
        let mut kind_options = KindOptions::default();
        kind_options.quotient = options;
        Quotient::build(&Spec::new(1000, 0.01).unwrap().with_options(kind_options))
    };
    named(tuned(Options::default().with_load(1.0)), "load");
    named(tuned(Options::default().with_remainder_bits(0)), "remainder bits");
    assert_eq!(tuned(Options::default().with_remainder_bits(9)).unwrap().remainder_bits(), 9);
    assert!(tuned(Options::default().with_load(0.5)).unwrap().slots() >= 2000);
    let filter = empty(192, 3);
    named(filter.resized(96), "slots");
    named(filter.resized(192 * 3), "slots");
    named(filter.resized(192 * 8), "slots");
    named(filter.resized(0), "slots");
    assert_eq!(filter.resized(192 * 4).unwrap().remainder_bits(), 1);
    // Filters whose fingerprints have a different meaning.
    let mut filter = empty(128, 5);
    for (other, what) in [
        (empty(128, 6), "number of fingerprints"),
        (empty(192, 5), "number of fingerprints"),
        (Quotient::with_slots(128, 5, Hasher::fast(7)).unwrap(), "seed"),
    ] {
        assert!(matches!(filter.union(&other), Err(Error::Mismatch(Mismatch { what: w, .. })) if w == what));
        assert!(filter.intersect(&other).is_err() && filter.overlap(&other).is_err());
    }
}

#[test]
fn any_two_of_keys_rate_and_bits_lead_to_a_plan() {
    for (n, p, m) in [
        (Some(1_000_000), Some(0.01), None),
        (Some(1_000_000), None, Some(12_000_000)),
        (None, Some(0.01), Some(12_000_000)),
        (Some(1_000_000), Some(0.01), Some(13_000_000)),
        (Some(100), Some(0.001), None),
        (Some(100), None, Some(4096)),
    ] {
        let spec = Spec::from_given(Given { n, p, m, k: None }).unwrap();
        let plan = plan(Kind::Quotient, &spec).unwrap();
        assert!(n.is_none_or(|n| n == plan.capacity) && p.is_none_or(|p| plan.rate <= p), "{plan:?}");
        assert!(m.is_none_or(|m| plan.bytes * 8 <= m && plan.bytes * 8 > m * 9 / 10), "{plan:?}");
        let filter = AnyFilter::build(Kind::Quotient, &spec).unwrap();
        let stats = filter.stats();
        assert_eq!((stats.bits, stats.bytes, stats.hashes), (plan.stored_bits, plan.bytes, plan.hashes));
        assert_eq!(filter.predicted_rate(plan.capacity).unwrap(), plan.rate);
    }
}

#[test]
fn statistics_match_the_contents() {
    let mut filter = Quotient::with_capacity(10_000, 0.01).unwrap();
    let keys = Keys::of_build(6).members(5000);
    filter.insert_batch(&keys).unwrap();
    filter.insert_batch(&keys[..1000]).unwrap();
    let stats = filter.stats();
    assert_eq!((stats.used_cells, stats.inserted), (6000, Some(6000)));
    let estimate = stats.estimate.estimate().unwrap();
    assert!((estimate.value - 5000.0).abs() < 5.0 * estimate.standard_error.max(1.0), "{estimate}");
    assert!((stats.rate_now / filter.predicted_rate(5000).unwrap() - 1.0).abs() < 0.01);
    // Half of the second filter's keys are in the first.
    let mut other = filter.try_clone_empty().unwrap();
    other.insert_batch(&keys[2500..]).unwrap();
    other.insert_batch(&Keys::of_build(7).members(2500)).unwrap();
    let overlap = filter.overlap(&other).unwrap().unwrap();
    assert!(
        (overlap.intersection.value - 2500.0).abs() < 5.0 * overlap.intersection.standard_error,
        "{overlap:?}"
    );
    filter.clear();
    assert!(filter.is_empty() && filter.words().words().iter().all(|word| *word == 0));
}

#[test]
fn a_mapped_filter_answers_lookups_and_is_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys.umbel");
    let keys = Keys::of_build(8);
    let mut filter = Quotient::with_capacity(50_000, 0.001).unwrap();
    filter.insert_batch(&keys.members(50_000)).unwrap();
    file::save(&path, &filter, &Default::default()).unwrap();
    let stored = file::map(&path, &Default::default()).unwrap().verify().unwrap().filter;
    let mapped = stored.into_kind::<Quotient>().unwrap();
    assert_eq!((mapped.len(), mapped.words().words()), (50_000, filter.words().words()));
    assert!(keys.members(50_000).iter().all(|key| mapped.contains(key)));
    let key = keys.member(0);
    let mut owned = mapped.try_clone().unwrap();
    assert_eq!(owned.remove(&key), Removed::Removed);
    let mut grown = mapped.resized(2 * mapped.slots()).unwrap();
    assert_eq!(grown.remove(&key), Removed::Removed, "the grown filter must own its memory");
    assert_eq!(mapped.words().words(), filter.words().words());
}
