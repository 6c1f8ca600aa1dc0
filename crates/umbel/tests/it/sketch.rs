//! Sketches are the same however they are filled, united and stored, and refuse invalid parameters.

use crate::common::{mix, zipf};
use crate::description_sketch;
use proptest::prelude::*;
use umbel::file::{self, Options};
use umbel::hash::KeyRing;
use umbel::internals::{Level, Structure};
use umbel::sketch::{CountMin, Distinct, Frequent, TopK};
use umbel::{Digest, Error, Hasher, Key};

fn distinct(precision: u32, seed: u64) -> Distinct {
    Distinct::with_precision(precision).unwrap().with_hasher(Hasher::fast(seed))
}

#[test]
fn the_union_of_parts_equals_the_whole_distinct_sketch() {
    let keys: Vec<u64> = (0..100_000).map(mix).collect();
    for precision in [4, 5, 12, 18] {
        let mut whole = distinct(precision, 7);
        keys.iter().for_each(|key| whole.insert(key));
        let bytes = whole.to_bytes().unwrap();
        for level in Level::available() {
            let (mut left, mut right) = (distinct(precision, 7), distinct(precision, 7));
            left.set_level(level);
            right.set_level(level);
            left.insert_batch(&keys[..30_001]);
            let digests: Vec<Digest> = keys[30_001..].iter().map(|key| key.digest(right.hasher())).collect();
            right.insert_tile(&digests[..50_000]);
            digests[50_000..].iter().for_each(|digest| right.insert_digest(*digest));
            left.union(&right).unwrap();
            assert!(left.to_bytes().unwrap() == bytes, "precision {precision}, {level}");
        }
        assert_eq!(whole.inserted(), Some(100_000));
    }
}

#[test]
fn a_requested_error_is_kept() {
    for (error, precision) in [(0.3, 4), (0.01, 14), (0.0082, 14), (0.002_1, 18), (0.000_254, 24)] {
        let sketch = Distinct::with_error(error).unwrap();
        assert_eq!(sketch.precision(), precision);
        assert!(sketch.standard_error() <= error);
    }
    let sketch = CountMin::with_error(0.001, 0.01).unwrap();
    assert_eq!((sketch.width(), sketch.depth()), (2719, 5));
    assert!(sketch.error() <= 0.001 && sketch.probability() <= 0.01);
}

#[test]
fn count_min_counts_the_same_however_it_is_filled() {
    let stream = zipf(2, 20_000, 3000, 1.0);
    for (width, depth) in [(1, 1), (7, 2), (1000, 5), (33, 40)] {
        let mut single = CountMin::with_dimensions(width, depth).unwrap();
        stream.iter().for_each(|key| _ = single.insert(key));
        let counts: Vec<u64> = (0..4000u64).map(|key| single.count(&key)).collect();
        for level in Level::available() {
            let (mut left, mut right) = (single.try_clone().unwrap(), single.try_clone().unwrap());
            for part in [&mut left, &mut right] {
                part.clear();
                part.set_level(level);
            }
            left.insert_batch(&stream[..7001]);
            right.insert_batch(&stream[7001..]);
            left.union(&right).unwrap();
            assert!(left.to_bytes().unwrap() == single.to_bytes().unwrap(), "{width} x {depth}, {level}");
            assert_eq!(
                left.count_batch(&(0..4000u64).collect::<Vec<_>>()),
                counts,
                "{width} x {depth}, {level}"
            );
        }
    }
}

#[test]
fn weighted_sums_of_count_min_saturate_at_the_counters() {
    let sketch = |times: u64| {
        let mut sketch = CountMin::with_dimensions(100, 3).unwrap();
        sketch.insert_times("apple", times);
        sketch.insert_times("pear", 1);
        sketch
    };
    let (few, many) = (sketch(10), sketch(u64::from(u32::MAX)));
    let sum = |terms: &[(&CountMin, i64)]| {
        let mut sum = few.weighted_sum().unwrap();
        terms.iter().for_each(|(term, weight)| sum.add(term, *weight).unwrap());
        // A sum replaces everything that the sketch has counted before.
        let mut stored = many.try_clone().unwrap();
        sum.store(&mut stored).unwrap();
        let sketch = sum.into_sketch().unwrap();
        assert!(stored.to_bytes().unwrap() == sketch.to_bytes().unwrap());
        (sketch.count("apple"), sketch.count("pear"), sketch.total())
    };
    assert_eq!(sum(&[]), (0, 0, 0));
    assert_eq!(sum(&[(&few, 1), (&few, 2)]), (30, 3, 33));
    assert_eq!(sum(&[(&few, 3), (&few, -1)]), (20, 2, 22));
    assert_eq!(sum(&[(&few, -1)]), (0, 0, 0), "counts do not fall below zero");
    assert_eq!(sum(&[(&many, 3), (&many, -2)]), (u32::MAX.into(), 1, 1 << 32), "only the sum has to fit");
    assert_eq!(sum(&[(&many, i64::MAX), (&many, i64::MAX)]), (u32::MAX.into(), u32::MAX.into(), u64::MAX));
    let mut full = many.try_clone().unwrap();
    full.union(&many).unwrap();
    assert_eq!((full.count("apple"), full.count("pear"), full.total()), (u32::MAX.into(), 2, 2 << 32));
    assert_eq!(full.insert_times("apple", u64::MAX), u32::MAX.into());
    assert_eq!(full.total(), u64::MAX, "the largest total");
    assert_eq!(CountMin::from_bytes(&full.to_bytes().unwrap()).unwrap().total(), u64::MAX);
    let other = CountMin::with_dimensions(101, 3).unwrap();
    assert!(matches!(few.weighted_sum().unwrap().add(&other, 1), Err(Error::Mismatch(_))));
    let mut seeded = few.try_clone().unwrap().with_hasher(Hasher::fast(1));
    assert!(matches!(few.weighted_sum().unwrap().store(&mut seeded), Err(Error::Mismatch(_))));
}

#[test]
fn top_k_returns_the_evicted_key() {
    let mut top = TopK::new(2).unwrap();
    assert_eq!(top.insert_times("apple", 5), None);
    assert_eq!(top.insert("pear"), None);
    assert_eq!(top.insert("pear"), None, "it is already in the list");
    assert_eq!(top.insert("plum"), None, "its count is lower than both");
    assert_eq!(top.insert("plum"), Some(b"pear".to_vec()), "a count equal to the lowest is enough");
    assert_eq!(top.count("pear"), 2, "its cells still count it");
    assert!(!top.contains("pear") && top.contains("plum"));
    assert_eq!(top.insert_times("fig", 0), None);
    assert_eq!((top.count("fig"), top.inserted()), (0, Some(9)));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn the_index_of_top_k_changes_neither_order_nor_evictions(
        k in 1..30u64,
        width in 1..20u64,
        depth in 1..5u32,
        stream in prop::collection::vec((0..80u64, 1..12u32), 1..400),
    ) {
        let mut top = TopK::builder(k).width(width).depth(depth).decay(0.9).build().unwrap();
        let mut naive = description_sketch::TopK::new(k, width, depth.into(), 0.9);
        for (key, times) in stream {
            let gone = top.insert_times(&key, times);
            prop_assert_eq!(gone, naive.insert(&key.to_le_bytes(), times.into()));
        }
        let heap: Vec<(u64, Vec<u8>)> = top.heap().map(|item| (item.count, item.key.to_vec())).collect();
        prop_assert_eq!(&heap, &naive.items);
        let read = TopK::from_bytes(&top.to_bytes().unwrap()).unwrap();
        prop_assert!(read.heap().eq(top.heap()));
        prop_assert_eq!(top.words().words()[..(width * u64::from(depth)) as usize].to_vec(), naive.cells);
        prop_assert_eq!(top.draws(), naive.draws);
    }
}

#[test]
fn a_mismatch_of_sketches_names_the_difference() {
    fn what(result: umbel::Result<()>) -> &'static str {
        match result {
            Err(Error::Mismatch(mismatch)) => mismatch.what,
            other => panic!("{other:?}"),
        }
    }
    let mut sketch = distinct(10, 0);
    assert_eq!(what(sketch.union(&distinct(11, 0))), "precision");
    assert_eq!(what(sketch.union(&distinct(10, 1))), "seed");
    let keyed = Distinct::with_precision(10).unwrap().with_hasher(Hasher::keyed([1; 16]));
    assert_eq!(what(sketch.union(&keyed)), "hash");
    let count_min = |width, depth| CountMin::with_dimensions(width, depth).unwrap();
    assert_eq!(what(count_min(10, 2).union(&count_min(11, 2))), "width");
    assert_eq!(what(count_min(10, 2).union(&count_min(10, 3))), "depth");
    assert_eq!(what(count_min(10, 2).union(&count_min(10, 2).with_hasher(Hasher::fast(9)))), "seed");
    assert_eq!(what(Frequent::new(3).unwrap().union(&Frequent::new(4).unwrap())), "number of counters");
    let mut stored = umbel::any::Stored::from(TopK::new(3).unwrap());
    let error = stored.union(&TopK::new(3).unwrap().into()).unwrap_err();
    assert!(error.to_string().starts_with("a top-k sketch cannot be united"), "{error}");
    assert_eq!(what(stored.union(&sketch.into())), "kind");
}

#[test]
fn invalid_sizes_are_refused_and_named() {
    fn named<T: std::fmt::Debug>(result: umbel::Result<T>, name: &str) {
        assert!(
            matches!(result, Err(Error::Parameter { name: found, .. }) if found == name),
            "{name}: {result:?}"
        );
    }
    for precision in [0, 3, 25, u32::MAX] {
        named(Distinct::with_precision(precision), "precision");
    }
    for error in [0.0, -0.1, 0.0002, f64::NAN] {
        named(Distinct::with_error(error), "error");
    }
    for share in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        named(CountMin::with_error(share, 0.01), "error");
        named(CountMin::with_error(0.01, share), "probability");
    }
    named(CountMin::with_error(0.01, 1e-300), "depth");
    named(CountMin::with_error(1e-300, 0.5), "width");
    for (width, depth, name) in
        [(0, 1, "width"), (u64::MAX, 2, "width"), (1 << 60, 1, "width"), (1, 0, "depth"), (1, 257, "depth")]
    {
        named(CountMin::with_dimensions(width, depth), name);
    }
    for k in [0, (1 << 31) + 1, u64::MAX] {
        named(TopK::new(k), "k");
        named(Frequent::new(k), "k");
    }
    for decay in [0.0, -1.0, 1.01, f64::NAN] {
        named(TopK::builder(3).decay(decay).build(), "decay");
    }
    named(TopK::builder(3).width(0).build(), "width");
    named(TopK::builder(3).width(u64::MAX).build(), "width");
    named(TopK::builder(3).depth(33).build(), "depth");
    named(umbel::spec::plan(umbel::Kind::Literature, &umbel::Spec::new(10, 0.01).unwrap()), "kind");
    let planned = umbel::spec::plan(umbel::Kind::Distinct, &umbel::Spec::new(10, 0.01).unwrap());
    assert!(planned.unwrap_err().to_string().starts_with("a distinct sketch cannot be planned"));
}

/// Returns every kind of sketch with a secret and a few keys.
fn keyed() -> (Hasher, Distinct, CountMin, TopK, Frequent) {
    let hasher = Hasher::keyed([0x5a; 16]);
    let mut distinct = Distinct::default().with_hasher(hasher.clone());
    let mut counts = CountMin::with_error(0.01, 0.1).unwrap().with_hasher(hasher.clone());
    let mut top = TopK::new(5).unwrap().with_hasher(hasher.clone());
    let mut frequent = Frequent::new(5).unwrap().with_hasher(hasher.clone());
    let keys = ["very secret key", "another", "very secret key"];
    distinct.extend(keys);
    counts.extend(keys);
    top.extend(keys);
    frequent.extend(keys);
    (hasher, distinct, counts, top, frequent)
}

#[test]
fn a_summary_shows_neither_secrets_nor_keys() {
    let (_, distinct, counts, top, frequent) = keyed();
    for shown in [format!("{distinct:?}"), format!("{counts:?}"), format!("{top:?}"), format!("{frequent:?}")]
    {
        assert!(!shown.contains("90, 90") && !shown.contains("5a5a") && !shown.contains("secret"), "{shown}");
        assert!(shown.contains("inserted: 3") && shown.contains("keyed, key tag"), "{shown}");
    }
}

#[test]
fn a_copy_is_independent_and_clearing_leaves_nothing() {
    let (hasher, mut distinct, mut counts, mut top, mut frequent) = keyed();
    let ring = KeyRing::from_iter([hasher]);
    macro_rules! check {
        ($($sketch:ident),*) => {$(
            let bytes = $sketch.to_bytes().unwrap();
            let loaded = file::from_bytes(&bytes, &ring).unwrap().filter;
            assert!(file::to_bytes(&loaded, &Options::default()).unwrap() == bytes);
            let embedded = file::to_bytes(&$sketch, &Options { embed_key: true, ..Options::default() }).unwrap();
            let mut copy = $sketch.try_clone().unwrap();
            copy.insert("third");
            assert!($sketch.to_bytes().unwrap() == bytes && copy.to_bytes().unwrap() != bytes);
            $sketch.clear();
            copy.clear();
            assert!($sketch.to_bytes().unwrap() == copy.to_bytes().unwrap());
            assert!(!loaded.try_clone_empty().unwrap().contains("another") && loaded.contains("another"));
            let loaded = file::from_bytes(&embedded, &KeyRing::new()).unwrap().filter;
            assert!(loaded.contains("very secret key"), "the secret is embedded");
        )*};
    }
    check!(distinct, counts, top, frequent);
}

#[test]
fn sketches_can_be_saved_loaded_and_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sketch.umbel");
    let mut sketch = distinct(12, 0);
    sketch.insert_batch(&(0..5000u64).collect::<Vec<_>>());
    sketch.save(&path).unwrap();
    assert_eq!(Distinct::load(&path).unwrap().count(), sketch.count());
    let mapped = Distinct::map(&path).unwrap().verify().unwrap().filter;
    assert_eq!(mapped.count(), sketch.count());
    let error = format!("{:#}", CountMin::load(&path).unwrap_err());
    assert!(error.contains("the file holds a distinct sketch, not a count-min sketch"), "{error}");
    let error = format!("{:#}", umbel::BloomFilter::load(&path).unwrap_err());
    assert!(error.contains("the file holds a distinct sketch"), "{error}");
    let examined = file::examine(&path).unwrap();
    assert_eq!(examined.stats(), sketch.stats());
    // Opening a damaged file fails.
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(format!("{:#}", Distinct::map(&path).unwrap_err()).contains("damaged"));
}

/// Another program may store the words and the remaining state separately.
#[test]
fn sketches_can_be_split_into_parts_and_restored() {
    let stream = zipf(5, 20_000, 500, 1.0);
    let (hasher, _, mut counts, _, _) = keyed();
    counts.insert_batch(&stream);
    let words = || counts.words().try_clone().unwrap();
    let again = CountMin::from_parts(counts.width(), counts.depth(), hasher.clone(), counts.total(), words())
        .unwrap();
    assert!(again.to_bytes().unwrap() == counts.to_bytes().unwrap());
    assert!(CountMin::from_parts(counts.width() + 16, counts.depth(), hasher.clone(), 0, words()).is_err());

    let shape = TopK::builder(20).width(40).depth(3).decay(0.9);
    let mut top = shape.build().unwrap().with_hasher(hasher.clone());
    top.insert_batch(&stream);
    let heap: Vec<_> = top.heap().map(|item| (item.count as u32, item.key.to_vec())).collect();
    let words = top.words().try_clone().unwrap();
    let mut again =
        TopK::from_parts(shape, hasher.clone(), top.draws(), words.try_clone().unwrap(), heap.clone())
            .unwrap();
    for key in &stream {
        assert_eq!(top.insert(key), again.insert(key));
    }
    assert!(top.heap().eq(again.heap()) && top.draws() == again.draws());
    assert_eq!((again.inserted(), top.inserted()), (None, Some(40_000)));
    let accepted = |change: fn(&mut Vec<(u32, Vec<u8>)>)| {
        let mut heap = heap.clone();
        change(&mut heap);
        TopK::from_parts(shape, hasher.clone(), 0, words.try_clone().unwrap(), heap).is_ok()
    };
    assert!(accepted(|_| {}) && accepted(|heap| heap[0].0 = 0));
    assert!(!accepted(|heap| heap.reverse()) && !accepted(|heap| drop(heap.pop())));
    assert!(!accepted(|heap| heap[1].1 = heap[2].1.clone()));
}
