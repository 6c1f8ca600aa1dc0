//! Tests of the internals: buckets, fingerprints and the victim.

use super::*;
use crate::file;
use crate::memory::LINE_WORDS;
use crate::{AnyFilter, KeyRing, Level};
use proptest::prelude::*;

/// Returns the digest with this number, by a bijection that is independent of the table.
fn digest(number: u64) -> Digest {
    let x = (number ^ number >> 27).wrapping_mul(0x3c79_ac49_2ba7_b653);
    let x = (x ^ x >> 33).wrapping_mul(0x1c69_b3f7_4ac4_ae35);
    Digest::from_hash(x ^ x >> 27)
}

fn empty(buckets: u64, bits: u32, slots: u32, form: Form) -> Cuckoo {
    Cuckoo::with_table(Table::new(buckets, bits, slots, form).unwrap(), Hasher::default()).unwrap()
}

/// Every form of table: one or several words per bucket, with and without codes.
const SHAPES: [(u32, u32, Form); 14] = [
    (2, 1, Form::Plain),
    (9, 1, Form::Plain),
    (8, 2, Form::Plain),
    (32, 2, Form::Plain),
    (8, 4, Form::Plain),
    (16, 4, Form::Plain),
    (17, 4, Form::Plain),
    (7, 8, Form::Plain),
    (13, 8, Form::Plain),
    (17, 8, Form::Plain),
    (32, 8, Form::Plain),
    (4, 4, Form::SemiSorted),
    (17, 4, Form::SemiSorted),
    (32, 4, Form::SemiSorted),
];

/// Returns a filter filled until a fingerprint waits for a free slot, and the number of inserted
/// digests.
fn brimful(buckets: u64, bits: u32, slots: u32, form: Form) -> (Cuckoo, u64) {
    let (mut filter, mut number) = (empty(buckets, bits, slots, form), 0);
    while filter.victim.is_none() {
        filter.insert_digest(digest(number)).unwrap();
        number += 1;
    }
    (filter, number)
}

#[test]
fn either_bucket_and_the_fingerprint_determine_the_other_bucket() {
    for buckets in [2, 4, 6, 10, 1000, 65536, 99_998, (1 << 40) + 2] {
        for bits in [2, 5, 8, 12, 32] {
            let table = Table::new(buckets, bits, 1, Form::Plain).unwrap();
            for number in 0..2000 {
                let place = table.place(digest(number));
                let [first, second] = place.buckets;
                assert!(first < buckets && second < buckets && first % 2 != second % 2, "{place:?}");
                assert!((1..=table.fingerprints()).contains(&place.fingerprint.into()));
                let back = table.place_in(second, place.fingerprint);
                assert_eq!(back.buckets, [second, first]);
                assert!(place.is_same(&back) && place.is_same(&place));
            }
        }
    }
}

#[test]
fn fingerprints_and_buckets_are_uniform_and_independent() {
    // 15 fingerprints, 30 buckets: a contingency table of 450 cells with 400 expected in each. The
    // chi-square statistic has mean 449 and standard deviation 30; five standard deviations are
    // allowed.
    let table = Table::new(30, 4, 4, Form::Plain).unwrap();
    for which in [0, 1] {
        let mut seen = [0f64; 450];
        for number in 0..180_000 {
            let place = table.place(digest(number));
            seen[(place.fingerprint as usize - 1) * 30 + place.buckets[which] as usize] += 1.0;
        }
        let chi: f64 = seen.iter().map(|seen| (seen - 400.0).powi(2) / 400.0).sum();
        assert!((chi - 449.0).abs() < 150.0, "bucket {which}: {chi}");
    }
}

proptest! {
    #![proptest_config(crate::fixed_cases())]

    #[test]
    fn writing_a_bucket_changes_no_other_bucket(
        shape in prop::sample::select(&SHAPES[..]),
        steps in prop::collection::vec((0..6u64, any::<prop::sample::Index>(), any::<u32>()), 1..100),
    ) {
        let (bits, slots, form) = shape;
        let table = Table::new(6, bits, slots, form).unwrap();
        let mut words = vec![0u64; table.lines() as usize * LINE_WORDS];
        let mut naive = vec![vec![0u32; slots as usize]; 6];
        for (bucket, slot, new) in steps {
            // Few different fingerprints, so that they repeat.
            let new = ((u64::from(new % 5) * 0x3333_3333) & table.fingerprints()) as u32;
            let (slot, plain) = (slot.index(slots as usize), &mut naive[bucket as usize]);
            let old = std::mem::replace(&mut plain[slot], new);
            plain.sort_unstable();
            prop_assert!(table.replace(&mut words, bucket, old, new));
            for (bucket, plain) in (0..).zip(&naive) {
                let found = table.bucket(&words, bucket);
                prop_assert_eq!(&found[..slots as usize], &plain[..]);
                prop_assert!(table.is_written(&words, bucket));
                for fingerprint in (1..5).map(|i| ((i * 0x3333_3333) & table.fingerprints()) as u32) {
                    let place = Candidates { buckets: [bucket; 2], fingerprint };
                    let there = plain.contains(&fingerprint);
                    prop_assert_eq!(kernels::finds(table, &words, &place), there, "{} in {:?}", fingerprint, plain);
                    prop_assert_eq!(table.replace(&mut words.clone(), bucket, fingerprint, 1), there);
                }
            }
        }
    }

    #[test]
    fn arbitrary_contents_do_no_harm(
        shape in prop::sample::select(&SHAPES[..]),
        buckets in 1..40u64,
        seed in any::<u64>(),
    ) {
        let (bits, slots, form) = shape;
        let mut filter = empty(2 * buckets, bits, slots, form);
        for (i, word) in (0..).zip(filter.words.words_mut()) {
            *word = digest(seed.wrapping_add(i)).get();
        }
        prop_assert!(filter.check_contents().is_err());
        for number in 0..200 {
            filter.contains_digest(digest(number));
            filter.trace(digest(number), &mut |_| Ok(())).unwrap();
            let _ = (filter.insert_digest(digest(number)), filter.remove_digest(digest(number + 100)));
        }
        filter.contains_batch(&(0..200u64).collect::<Vec<_>>()[..]);
        filter.stats();
        let other = filter.try_clone().unwrap();
        let _ = (filter.union(&other), filter.intersect(&other));
    }
}

#[test]
fn the_victim_is_found_counted_saved_and_removed_like_any_other_fingerprint() {
    for (bits, slots, form) in SHAPES.into_iter().filter(|(bits, ..)| *bits >= 8) {
        let (mut filter, number) = brimful(64, bits, slots, form);
        let waits = |number: &u64| filter.is_victim(&filter.table.place(digest(*number)));
        let waiting = (0..number).find(waits).expect("the victim is one of the inserted keys");
        let all: Vec<Digest> = (0..number).map(digest).collect();
        for level in Level::available() {
            filter.set_level(level);
            for tile in all.chunks(TILE) {
                assert_eq!(filter.contains_tile(tile).count_ones() as usize, tile.len());
            }
        }
        assert!(filter.contains_digest(digest(waiting)) && filter.count_digest(digest(waiting)) >= 1);
        assert!(filter.trace(digest(waiting), &mut |_| Ok(())).unwrap());
        assert_eq!((filter.len(), filter.entries().count() as u64), (number, number));
        filter.check_contents().unwrap();
        let stats = filter.stats();
        assert_eq!((stats.used_cells, stats.details[2]), (number - 1, ("keys without a place", 1.0)));

        // A file preserves it.
        let bytes = file::to_bytes(&filter, &file::Options::default()).unwrap();
        let back = file::from_bytes(&bytes, &KeyRing::new()).unwrap().filter;
        let back = Cuckoo::try_from(AnyFilter::try_from(back).unwrap()).unwrap();
        assert_eq!((back.victim, back.len()), (filter.victim, number));
        assert!(all.iter().all(|digest| back.contains_digest(*digest)));

        // It can be removed. Any fingerprints in slots that equal it go first.
        let mut without = filter.try_clone().unwrap();
        let copies = without.count_digest(digest(waiting));
        for _ in 0..copies {
            assert_eq!(without.remove_digest(digest(waiting)), Removed::Removed);
        }
        assert_eq!(without.count_digest(digest(waiting)), 0);
        assert_eq!(without.remove_digest(digest(waiting)), Removed::NotPresent);
        without.check_contents().unwrap();

        // It moves back into the table when others leave.
        for number in (0..number).filter(|number| *number != waiting).take(number as usize / 2) {
            assert_eq!(filter.remove_digest(digest(number)), Removed::Removed);
        }
        assert!(
            filter.victim.is_none() && filter.contains_digest(digest(waiting)),
            "{bits} {slots} {form:?}"
        );
        filter.check_contents().unwrap();
    }
}

#[test]
fn the_victim_takes_part_in_unions_and_intersections() {
    for buckets in [10, 20, 40] {
        let (full, count) = brimful(buckets, 12, 4, Form::Plain);
        let mut union = full.try_clone_empty().unwrap();
        union.union(&full).unwrap();
        let mut kept = full.try_clone().unwrap();
        kept.intersect(&full).unwrap();
        let mut found = union.try_clone().unwrap();
        found.intersect(&full).unwrap();
        for filter in [&union, &kept, &found] {
            assert_eq!(filter.len(), count);
            assert!((0..count).all(|number| filter.contains_digest(digest(number))));
        }
        kept.intersect(&full.try_clone_empty().unwrap()).unwrap();
        assert!(kept.is_empty() && kept.victim.is_none());
    }
}

#[test]
fn invalid_parameters_and_contents_of_a_file_are_refused() {
    let (filter, _) = brimful(64, 8, 4, Form::Plain);
    let restore = |change: &dyn Fn(&mut Vec<u64>, &mut Head)| {
        let (mut params, mut head) = (filter.params(), filter.head.clone());
        change(&mut params, &mut head);
        let sections = vec![(FINGERPRINTS, filter.words.try_clone().unwrap())].into_iter();
        Cuckoo::restore(Parts { head, params, sections }).and_then(|filter| Ok(filter.check_contents()?))
    };
    restore(&|_, _| ()).unwrap();
    for (index, value) in [
        (0, 0),
        (0, 63),
        (0, 66),
        (0, u64::MAX - 1),
        (1, 1),
        (1, 33),
        (1, u64::MAX),
        (2, 0),
        (2, 3),
        (2, 8),
        (3, 1),
        (3, 2),
        (4, 0),
        (4, 256),
        (5, 64),
        (5, u64::MAX),
    ] {
        assert!(restore(&|params, _| params[index] = value).is_err(), "parameter {index} = {value}");
    }
    assert!(restore(&|params, _| params.push(0)).is_err());
    assert!(restore(&|_, head| head.inserted = None).is_err());
    assert!(restore(&|_, head| head.inserted = Some(5)).is_err());

    let contents = |form, change: &dyn Fn(&mut [u64])| {
        let mut filter = empty(6, 8, 4, form);
        filter.insert_digest(digest(1)).unwrap();
        change(filter.words.words_mut());
        filter.check_contents()
    };
    for form in [Form::Plain, Form::SemiSorted] {
        assert!(contents(form, &|_| ()).is_ok());
        assert!(contents(form, &|words| words.fill(0)).is_err(), "one key fewer");
        assert!(contents(form, &|words| words[LINE_WORDS - 1] = 1).is_err(), "a bit beyond the table");
    }
    assert!(contents(Form::Plain, &|words| words[0] = words[0].reverse_bits() | 0xff).is_err());
    assert!(contents(Form::SemiSorted, &|words| words[0] |= 0xfff).is_err(), "an invalid code");
}

#[test]
fn any_filter_supports_cuckoo_filters() {
    let mut filter = AnyFilter::build(Kind::Cuckoo, &Spec::new(1000, 0.01).unwrap()).unwrap();
    assert_eq!((filter.kind(), Kind::Cuckoo.number()), (Kind::Cuckoo, 11));
    filter.insert("apple").unwrap();
    assert_eq!(filter.remove("apple").unwrap(), Removed::Removed);
    let part = filter.try_clone_empty().unwrap();
    assert!(matches!(filter.absorb(&part), Err(Error::Cannot { .. })));
    assert!(matches!(filter.fold(), Err(Error::Cannot { .. })));
    assert!(matches!(filter.overlap(&part), Err(Error::Cannot { .. })));
}
