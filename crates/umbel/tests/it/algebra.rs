//! Union, intersection, comparison, estimates and folding behave like operations on sets, and
//! filters that do not fit together are refused.

use crate::common::{
    Keys, blocked, count_found, empty, filter_of, mix, moments, partitioned, same_bits, standard,
};
use umbel::error::Mismatch;
use umbel::internals::{Algebra, Layout};
use umbel::sizing::{Cardinality, Estimate, Overlap};
use umbel::{AnyFilter, Blocked, Bloom, Error, Hasher, Kind, Spec, Standard};

/// Calls a generic function with layouts of every kind and of awkward sizes, for `n` keys at about
/// 1 %.
macro_rules! for_every_layout {
    ($n:expr, $check:ident) => {{
        let n: u64 = $n;
        $check(standard(n * 48 / 5 + 1, 7));
        $check(partitioned(n * 7 / 5, 7));
        for lines_per_key in 1..=4 {
            $check(blocked((n / 48).max(1), lines_per_key));
        }
    }};
}

fn hashers() -> [Hasher; 4] {
    [Hasher::default(), Hasher::fast(0xdead_beef), Hasher::keyed([7; 16]), Hasher::sealed([9; 32])]
}

#[test]
fn a_union_is_bit_for_bit_the_filter_of_all_keys() {
    fn check<L: Layout>(layout: L) {
        let all = Keys::of_build(1).members(3000);
        for hasher in hashers() {
            // Overlapping halves, disjoint halves, and the empty set on either side.
            for (left, right) in
                [(0..2000, 1000..3000), (0..3000, 0..0), (0..0, 0..3000), (0..1500, 1500..3000)]
            {
                let mut union = filter_of(layout, hasher.clone(), &all[left]);
                union.union(&filter_of(layout, hasher.clone(), &all[right])).expect("the same shape");
                assert!(same_bits(&union, &filter_of(layout, hasher.clone(), &all)), "{layout:?}");
                assert_eq!(union.inserted(), None, "the number of keys in both is unknown");
                assert_eq!(count_found(&union, 3000, |number| all[number as usize]), 3000);
            }
        }
    }
    for_every_layout!(3000, check);
}

#[test]
fn an_intersection_keeps_the_common_keys_and_a_rate_no_higher_than_either() {
    fn check<L: Layout>(layout: L) {
        let keys = Keys::of_build(2);
        let all = keys.members(30_000);
        let strangers = keys.strangers(200_000);
        let (left, right) = (&all[..20_000], &all[10_000..]);
        let (a, b) =
            (filter_of(layout, Hasher::default(), left), filter_of(layout, Hasher::default(), right));
        let mut both = a.try_clone().expect("enough memory");
        both.intersect(&b).expect("the same shape");
        assert_eq!(
            both.contains_batch(&all[10_000..20_000]).count(),
            10_000,
            "{layout:?}: a common key is missing"
        );
        assert_eq!(both.inserted(), None);

        // It finds a key only if both filters find it, so its rate is not above theirs.
        let (in_a, in_b, in_both) = (
            a.contains_batch(&strangers[..]),
            b.contains_batch(&strangers[..]),
            both.contains_batch(&strangers[..]),
        );
        assert!(in_both.iter().zip(in_a.iter().zip(in_b.iter())).all(|(both, (a, b))| !both || a && b));
        assert!(in_both.count() <= in_a.count().min(in_b.count()), "{layout:?}");
        assert!(both.stats().rate_now <= a.stats().rate_now.min(b.stats().rate_now), "{layout:?}");

        // But it is not as good as a filter built from the common keys: it has all bits of that
        // one, and some that coincide by chance.
        let fresh = filter_of(layout, Hasher::default(), &all[10_000..20_000]);
        let words = fresh.words().words().iter().zip(both.words().words());
        assert!(words.clone().all(|(fresh, both)| fresh & !both == 0), "{layout:?}");
        assert!(both.stats().used_cells > fresh.stats().used_cells, "{layout:?}");
    }
    for_every_layout!(20_000, check);
}

#[test]
fn a_filter_is_a_subset_of_every_filter_that_has_its_keys_and_equal_to_one_of_the_same_keys() {
    let build = |kind, keys: &[u64]| {
        let mut filter = AnyFilter::build(kind, &Spec::new(2000, 0.01).unwrap()).unwrap();
        filter.insert_batch(keys).unwrap();
        filter
    };
    let keys = Keys::of_build(5).members(2000);
    for kind in [Kind::Standard, Kind::Partitioned, Kind::Blocked] {
        let (all, half, again) = (build(kind, &keys), build(kind, &keys[..1000]), build(kind, &keys[..1000]));
        assert!(half.is_subset(&all).unwrap() && !all.is_subset(&half).unwrap(), "{kind}");
        assert!(half.is_subset(&again).unwrap() && half.has_same_cells(&again), "{kind}");
        assert!(!half.has_same_cells(&all), "{kind}");
    }
    // Another shape is a mismatch for the one and a difference for the other.
    let (standard, partitioned) = (build(Kind::Standard, &[]), build(Kind::Partitioned, &[]));
    assert!(matches!(standard.is_subset(&partitioned), Err(Error::Mismatch(_))));
    assert!(!standard.has_same_cells(&partitioned));
    // The cells of a cuckoo filter depend on the order of its keys, and say nothing about subsets.
    let cuckoo = build(Kind::Cuckoo, &keys);
    assert!(matches!(cuckoo.is_subset(&cuckoo), Err(Error::Cannot { .. })) && cuckoo.has_same_cells(&cuckoo));
}

/// Checks that `mismatch`, `union`, `intersect` and `overlap` report the same difference and change
/// nothing.
#[track_caller]
fn assert_refused<L: Layout>(what: &str, ours: (L, Hasher), theirs: (L, Hasher)) {
    let keys = Keys::of_build(3);
    let mut filter = filter_of(ours.0, ours.1, &keys.members(100));
    let before = filter.try_clone().expect("enough memory");
    let other = filter_of(theirs.0, theirs.1, &keys.strangers(100));
    let mismatch = filter.mismatch(&other).expect("something differs");
    assert_eq!(mismatch.what, what);
    assert_ne!(mismatch.ours, mismatch.theirs);
    assert!(!filter.is_compatible(&other));
    let turned =
        Mismatch { what: mismatch.what, ours: mismatch.theirs.clone(), theirs: mismatch.ours.clone() };
    assert_eq!(other.mismatch(&filter), Some(turned), "in the other direction");

    let union = filter.union(&other);
    let intersection = filter.intersect(&other);
    let overlap = filter.overlap(&other).map(|_| ());
    for result in [union, intersection, overlap] {
        match result {
            Err(Error::Mismatch(found)) => assert_eq!(found, mismatch),
            other => panic!("{what} differs: {other:?}"),
        }
    }
    let sentence = Error::Mismatch(mismatch.clone()).to_string();
    for part in [what, &mismatch.ours, &mismatch.theirs] {
        assert!(sentence.contains(part), "{sentence}");
    }
    assert!(same_bits(&filter, &before), "a refused operation changed the filter");
    assert_eq!(filter.inserted(), before.inserted());
}

#[test]
fn a_mismatch_is_refused_and_the_first_difference_named() {
    let fast = Hasher::fast;
    let (keyed, sealed) = (|key| Hasher::keyed([key; 16]), |key| Hasher::sealed([key; 32]));

    assert_refused("number of bits", (standard(9586, 7), fast(0)), (standard(9587, 7), fast(0)));
    assert_refused("number of hashes", (standard(9586, 7), fast(0)), (standard(9586, 6), fast(0)));
    assert_refused("number of bits", (partitioned(1000, 7), fast(0)), (partitioned(1001, 7), fast(0)));
    // The same number of bits, but different slices.
    assert_refused("number of hashes", (partitioned(1400, 5), fast(0)), (partitioned(1000, 7), fast(0)));
    assert_refused("number of bits", (blocked(16, 1), fast(0)), (blocked(17, 1), fast(0)));
    assert_refused("number of hashes", (blocked(16, 1), fast(0)), (blocked(16, 2), fast(0)));

    macro_rules! hashes_differ {
        ($($layout:expr),*) => {$(
            assert_refused("hash", ($layout, fast(0)), ($layout, keyed(0)));
            assert_refused("hash", ($layout, fast(0)), ($layout, sealed(0)));
            assert_refused("hash", ($layout, keyed(0)), ($layout, sealed(0)));
            assert_refused("seed", ($layout, fast(0)), ($layout, fast(1)));
            assert_refused("key", ($layout, keyed(0)), ($layout, keyed(1)));
            assert_refused("key", ($layout, sealed(0)), ($layout, sealed(1)));
        )*};
    }
    hashes_differ!(standard(9586, 7), partitioned(1000, 7), blocked(16, 2));

    // If everything differs, the error names the first difference.
    assert_refused("number of bits", (standard(9586, 7), fast(0)), (standard(64, 3), keyed(1)));
    assert_refused("number of hashes", (standard(9586, 7), fast(0)), (standard(9586, 3), keyed(1)));
}

#[test]
fn a_different_seed_is_named_in_the_error() {
    let mut ours = empty(standard(9586, 7), Hasher::fast(1));
    let sentence =
        ours.union(&empty(standard(9586, 7), Hasher::fast(2))).expect_err("other seeds").to_string();
    assert!(sentence.contains("seed is 1 in one and 2 in the other"), "{sentence}");
}

#[test]
fn a_mismatch_of_secrets_does_not_show_them() {
    let ours = empty(standard(64, 1), Hasher::keyed([0xab; 16]));
    let mismatch = ours.mismatch(&empty(standard(64, 1), Hasher::keyed([0xcd; 16]))).expect("other keys");
    let text = format!("{mismatch} {mismatch:?}").to_lowercase();
    assert!(
        text.contains("tag")
            && !text.contains("abab")
            && !text.contains("cdcd")
            && !text.contains("171, 171")
    );
}

/// Compares sets of 800 and 700 keys that share 200, `builds` times with different keys and seeds.
fn overlaps<L: Layout>(layout: L, builds: u64) -> Vec<(Overlap, Estimate)> {
    let one_build = |build| {
        let all = Keys::of_build(build).members(1300);
        let hasher = Hasher::fast(mix(build));
        let a = filter_of(layout, hasher.clone(), &all[..800]);
        let b = filter_of(layout, hasher, &all[600..]);
        let overlap = a.overlap(&b).expect("the same shape").expect("not saturated");
        let own = layout.shape().cardinality(a.stats().used_cells).expect("a valid number of bits");
        (overlap, own.estimate().expect("not saturated"))
    };
    (0..builds).map(one_build).collect()
}

#[test]
fn estimates_of_sets_and_their_overlap_match_the_literature() {
    // The means must be within four standard errors of 200 builds; the standard deviations within
    // 20 %, which is four of their own standard errors.
    let found = overlaps(standard(9586, 7), 200);
    let check = |what: &str, value: Quantity, expected: f64, within: f64, deviation: f64| {
        let values: Vec<f64> = found.iter().map(|(overlap, _)| value(overlap).value).collect();
        let (mean, spread) = moments(&values);
        println!(
            "{what}: {mean:.4}, one build {spread:.4}; \
             expected {expected:.4} +- {within}, one build {deviation}"
        );
        assert!((mean - expected).abs() <= within, "{what}: {mean}");
        assert!((spread / deviation - 1.0).abs() <= 0.2, "{what}: {spread}");
    };
    check("|A|", |overlap| overlap.left, 800.0, 1.9, 6.6);
    check("|A and B|", |overlap| overlap.intersection, 200.0, 2.1, 7.6);
    check("Jaccard", |overlap| overlap.jaccard, 200.0 / 1300.0, 0.0019, 0.0068);
}

/// One of the estimates of an overlap.
type Quantity = fn(&Overlap) -> Estimate;

#[test]
fn estimates_lie_within_their_stated_errors() {
    fn check<L: Layout>(layout: L) {
        let found = overlaps(layout, 200);
        let quantities: [(&str, Quantity, f64); 7] = [
            ("left", |overlap| overlap.left, 800.0),
            ("right", |overlap| overlap.right, 700.0),
            ("union", |overlap| overlap.union, 1300.0),
            ("intersection", |overlap| overlap.intersection, 200.0),
            ("jaccard", |overlap| overlap.jaccard, 200.0 / 1300.0),
            ("left in right", |overlap| overlap.left_in_right, 200.0 / 800.0),
            ("right in left", |overlap| overlap.right_in_left, 200.0 / 700.0),
        ];
        for (what, quantity, truth) in quantities {
            let scores: Vec<f64> = found
                .iter()
                .map(|(overlap, _)| (quantity(overlap).value - truth) / quantity(overlap).standard_error)
                .collect();
            let (mean, spread) = moments(&scores);
            println!("{layout:?}, {what}: {mean:+.2} +- {spread:.2} standard errors");
            // At least 99 % of 200 builds must be within four errors (normal errors would violate
            // this once in 80 such tests).
            assert!(scores.iter().filter(|score| score.abs() > 4.0).count() <= 2, "{layout:?}, {what}");
            // And the errors must be neither too small nor so large that being within them means
            // nothing: their size is right to within 25 %, five standard deviations of 200 builds.
            assert!((0.75..1.25).contains(&spread), "{layout:?}, {what}: {spread}");
        }
        // The estimate of a single filter equals that of the overlap.
        assert!(found.iter().all(|(overlap, own)| overlap.left == *own));
    }
    check(standard(9586, 7));
    check(standard(14_377, 10));
    check(partitioned(1370, 7));
    for lines_per_key in 1..=4 {
        check(blocked(24 * u64::from(lines_per_key), lines_per_key));
    }
}

#[test]
fn equal_disjoint_and_empty_sets_are_recognised() {
    fn check<L: Layout>(layout: L) {
        let keys = Keys::of_build(4);
        let a = filter_of(layout, Hasher::default(), &keys.members(1000));
        let b = filter_of(layout, Hasher::default(), &keys.strangers(1000));
        let none = empty(layout, Hasher::default());
        let overlap =
            |a: &Bloom<L>, b: &Bloom<L>| a.overlap(b).expect("the same shape").expect("not saturated");

        let same = overlap(&a, &a);
        assert_eq!((same.jaccard.value, same.left_in_right.value, same.right_in_left.value), (1.0, 1.0, 1.0));
        assert_eq!(same.left.value, same.intersection.value);
        let apart = overlap(&a, &b);
        assert!(apart.intersection.value >= 0.0 && apart.jaccard.value < 0.05, "{layout:?}: {apart:?}");
        let of_none = overlap(&none, &a);
        assert_eq!((of_none.left.value, of_none.jaccard.value, of_none.left_in_right.value), (0.0, 0.0, 1.0));
        assert_eq!(overlap(&none, &none).jaccard.value, 1.0);
    }
    for_every_layout!(2000, check);
}

/// Folds until the size is odd. At every size, the folded filter must equal the one built at that
/// size.
fn fold_completely<L: Layout>(layout: L, folds: usize, refused: L) {
    let members = Keys::of_build(5).members(500);
    for hasher in hashers() {
        let mut filter = filter_of(layout, hasher.clone(), &members);
        for _ in 0..folds {
            let half = filter.fold().expect("an even size");
            assert_eq!(half.layout().bits() * 2, filter.layout().bits());
            assert_eq!(half.layout().hashes(), filter.layout().hashes());
            assert_eq!(half.inserted(), Some(500));
            let direct = filter_of(*half.layout(), hasher.clone(), &members);
            assert!(same_bits(&half, &direct), "{:?} folded to {:?}", filter.layout(), half.layout());
            assert!(half.is_compatible(&direct));
            assert_eq!(count_found(&half, 500, |number| members[number as usize]), 500);
            filter = half;
        }
        assert_eq!(*filter.layout(), refused);
        assert!(matches!(filter.fold(), Err(Error::Parameter { .. })), "{refused:?}");
        assert!(
            same_bits(&filter, &filter_of(refused, hasher, &members)),
            "a refused fold changed the filter"
        );
    }
}

#[test]
fn a_folded_filter_is_bit_for_bit_the_one_built_at_half_the_size() {
    fold_completely(standard(64 * 75, 7), 6, standard(75, 7));
    fold_completely(standard(1 << 14, 7), 14, standard(1, 7));
    fold_completely(standard(2 * 4793, 7), 1, standard(4793, 7));
    fold_completely(standard(9587, 7), 0, standard(9587, 7));
    fold_completely(partitioned(8 * 171, 7), 3, partitioned(171, 7));
    fold_completely(partitioned(1 << 10, 6), 10, partitioned(1, 6));
    for lines_per_key in 1..=4 {
        fold_completely(blocked(24, lines_per_key), 3, blocked(3, lines_per_key));
        fold_completely(blocked(32, lines_per_key), 5, blocked(1, lines_per_key));
    }
}

#[test]
fn folding_a_planned_filter_updates_its_capacity() {
    fn check<L: Layout>(folds: usize) {
        let mut filter = Bloom::<L>::with_capacity(100_000, 0.001).expect("a valid rate");
        let members = Keys::of_build(6).members(100_000 >> folds);
        filter.insert_batch(&members[..]);
        for _ in 0..folds {
            filter = filter.fold().expect("planned to be folded");
        }
        let design = filter.design().expect("still planned");
        assert_eq!(design.rate, 0.001);
        let rate = |n| filter.layout().predicted_rate(n).expect("a valid load");
        assert!(rate(design.capacity) <= 0.001 && rate(design.capacity + 1) > 0.001, "{design:?}");
        assert_eq!(filter.contains_batch(&members[..]).count(), members.len() as u64);
    }
    check::<Standard>(3);
    check::<Blocked>(3);
}

#[test]
fn a_refused_fold_names_an_odd_number() {
    fn check<L: Layout>(layout: L) {
        let error = empty(layout, Hasher::default()).fold().map(|_| ()).expect_err("an odd size");
        let Error::Parameter { ref got, .. } = error else { panic!("{error:?}") };
        let odd = got.parse::<u64>().is_ok_and(|number| number % 2 == 1);
        assert!(odd, "{layout:?}: \"{error}\" does not name an odd number");
    }
    check(standard(9587, 7));
    check(partitioned(171, 7));
    check(partitioned(171, 8));
    check(blocked(3, 1));
}

#[test]
fn a_saturated_filter_reports_it() {
    fn check<L: Layout>(layout: L) {
        let mut filter = empty(layout, Hasher::default());
        let few = filter_of(layout, Hasher::default(), &[1, 2, 3]);
        assert!(few.overlap(&filter).expect("the same shape").is_some());
        // Half a million keys set every bit of filters this small: a bit stays zero with a
        // probability below e^-7000.
        filter.insert_batch(&Keys::of_build(7).members(500_000)[..]);
        let stats = filter.stats();
        assert_eq!(stats.estimate, Cardinality::Saturated, "{layout:?}");
        assert_eq!((stats.used_cells, stats.fill(), stats.rate_now), (layout.bits(), 1.0, 1.0), "{layout:?}");
        assert!(filter.overlap(&few).expect("the same shape").is_none(), "{layout:?}");
        assert!(few.overlap(&filter).expect("the same shape").is_none(), "{layout:?}");
        assert_eq!(count_found(&filter, 1000, |number| number), 1000, "yes to everything");
        assert_eq!(filter.inserted(), Some(500_000));
    }
    check(standard(70, 7));
    check(standard(1000, 1));
    check(partitioned(30, 3));
    check(blocked(1, 1));
    check(blocked(1, 4));
}

#[test]
fn a_filter_of_one_bit_is_saturated_by_one_key() {
    let mut filter = empty(standard(1, 1), Hasher::default());
    assert!(!filter.contains("apple"));
    assert!(filter.insert("apple"));
    assert!(!filter.insert("pear"), "it may have been there before");
    assert_eq!(filter.stats().estimate, Cardinality::Saturated);
}

#[test]
fn a_copy_is_equal_and_independent() {
    fn check<L: Layout>(layout: L) {
        let keys = Keys::of_build(8);
        let original = filter_of(layout, Hasher::fast(5), &keys.members(1000));
        for mut copy in [original.try_clone().expect("memory"), original.try_clone().expect("memory")] {
            assert!(same_bits(&copy, &original));
            assert_eq!(copy.layout(), original.layout());
            assert_eq!(copy.stats(), original.stats());
            assert!(copy.is_compatible(&original));
            let before = original.stats();
            copy.insert_batch(&keys.strangers(1000)[..]);
            assert!(!same_bits(&copy, &original));
            assert_eq!(original.stats(), before, "changing the copy changed the original");
            copy.clear();
            assert_eq!(original.stats(), before, "clearing the copy changed the original");
            assert_eq!(count_found(&original, 1000, |number| keys.member(number)), 1000);
        }
    }
    for_every_layout!(1000, check);
}

#[test]
fn a_cleared_filter_is_empty() {
    fn check<L: Layout>(layout: L) {
        let keys = Keys::of_build(9);
        let fresh = empty(layout, Hasher::default());
        let mut filter = filter_of(layout, Hasher::default(), &keys.members(1000));
        filter.clear();
        assert!(same_bits(&filter, &fresh));
        assert_eq!(filter.stats(), fresh.stats());
        assert_eq!(
            (filter.inserted(), count_found(&filter, 1000, |number| keys.member(number))),
            (Some(0), 0)
        );
        // After a union its count is unknown, and clearing makes it known again.
        filter.union(&filter_of(layout, Hasher::default(), &keys.members(10))).expect("the same shape");
        assert_eq!(filter.inserted(), None);
        filter.clear();
        assert!(filter.insert(&7u64), "the first key is new");
        assert_eq!(filter.inserted(), Some(1));
    }
    for_every_layout!(1000, check);
}
