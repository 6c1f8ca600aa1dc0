//! Sketches keep the errors that they promise, alone and after unions.

use crate::common::{mix, moments, zipf};
use proptest::prelude::*;
use std::collections::HashMap;
use umbel::Hasher;
use umbel::sketch::{CountMin, Distinct, Frequent, TopK};

fn exact(stream: &[u64]) -> HashMap<u64, u64> {
    let mut counts = HashMap::new();
    stream.iter().for_each(|key| *counts.entry(*key).or_default() += 1);
    counts
}

fn distinct(precision: u32, seed: u64) -> Distinct {
    Distinct::with_precision(precision).unwrap().with_hasher(Hasher::fast(seed))
}

#[test]
fn distinct_counts_are_within_four_standard_errors() {
    let sizes = [0, 1, 2, 3, 10, 30, 100, 1000, 10_000, 100_000, 300_000, 1 << 20, 3_000_000];
    let mut sketches: Vec<Distinct> = (4..=24).map(|precision| distinct(precision, 0)).collect();
    let mut inserted = 0;
    for size in sizes {
        let keys: Vec<u64> = (inserted..size).map(mix).collect();
        inserted = size;
        for sketch in &mut sketches {
            // Inserting half of the keys again makes no difference.
            sketch.insert_batch(&keys);
            sketch.insert_batch(&keys[keys.len() / 2..]);
            let (count, n, p) = (sketch.count(), size as f64, sketch.precision());
            // Half a key more, because the collisions of few keys are whole numbers.
            let off = (count.value - n).abs();
            assert!(off <= 4.0 * count.standard_error + 0.5, "precision {p}, {n} keys: {count:?}");
            assert!(count.standard_error <= sketch.standard_error() * count.value, "precision {p}, {n} keys");
        }
    }
}

#[test]
fn distinct_counts_are_unbiased_and_keep_their_stated_errors() {
    for precision in [4, 6, 8, 10] {
        for load in [0.3, 1.0, 3.0, 30.0] {
            let n = (load * f64::from(1 << precision)) as u64;
            let builds = 400;
            let estimates: Vec<_> = (0..builds)
                .map(|build| {
                    let mut sketch = distinct(precision, build);
                    sketch.insert_batch(&(0..n).map(|i| mix(build << 32 | i)).collect::<Vec<_>>());
                    sketch.count()
                })
                .collect();
            let (mean, deviation) = moments(&estimates.iter().map(|count| count.value).collect::<Vec<_>>());
            let (stated, _) =
                moments(&estimates.iter().map(|count| count.standard_error).collect::<Vec<_>>());
            println!("2^{precision} registers, {n} keys: {mean:.2} ± {deviation:.2}, stated {stated:.2}");
            // The remaining bias falls with the number of registers.
            let (bias, chance) = ((mean - n as f64).abs(), deviation / (builds as f64).sqrt());
            assert!(bias <= load + 4.0 * chance, "precision {precision}, {n} keys: {mean}");
            assert!(
                (0.75..1.15).contains(&(deviation / stated)),
                "{precision}, {n} keys: {deviation}, stated {stated}"
            );
        }
    }
}

#[test]
fn count_min_is_never_too_low_and_seldom_too_high() {
    let stream = zipf(1, 300_000, 50_000, 1.1);
    let truth = exact(&stream);
    let strangers: Vec<u64> = (1 << 40..(1 << 40) + 20_000).collect();
    let (mut asked, mut above) = (0u64, 0u64);
    for seed in 0..10 {
        let mut sketch = CountMin::with_error(0.001, 0.05).unwrap().with_hasher(Hasher::fast(seed));
        sketch.insert_batch(&stream);
        assert_eq!(sketch.total(), stream.len() as u64);
        let bound = (0.001 * stream.len() as f64) as u64;
        for (key, times) in &truth {
            let count = sketch.count(key);
            assert!(count >= *times, "{key} came {times} times, not {count}");
            above += u64::from(count > times + bound);
        }
        above += sketch.count_batch(&strangers).iter().filter(|count| **count > bound).count() as u64;
        asked += (truth.len() + strangers.len()) as u64;
    }
    let share = above as f64 / asked as f64;
    println!("{share} of the counts are off by more than 0.1 % of the total");
    assert!(share <= 0.05);
}

#[test]
fn a_row_of_count_min_overestimates_by_total_over_width() {
    let stream: Vec<u64> = (0..200_000).map(|i| mix(i % 100_000)).collect();
    let mut sketch = CountMin::with_dimensions(1000, 1).unwrap();
    sketch.insert_batch(&stream);
    let strangers: Vec<u64> = (0..20_000).map(|i| mix(1 << 50 | i)).collect();
    let mean = sketch.count_batch(&strangers).iter().sum::<u64>() as f64 / 20_000.0;
    assert!((mean / 200.0 - 1.0).abs() < 0.02, "{mean}");
    // Rows are independent: all of three are in the upper quarter only as often as by chance.
    let mut three = CountMin::with_dimensions(1000, 3).unwrap();
    three.insert_batch(&stream);
    let mut single = sketch.count_batch(&strangers);
    single.sort_unstable();
    let quarter = single[15_000];
    let share =
        three.count_batch(&strangers).iter().filter(|count| **count > quarter).count() as f64 / 20_000.0;
    assert!((0.008..0.024).contains(&share), "{share}, and not 1 in 64");
}

#[test]
fn top_k_finds_the_most_frequent_keys_of_a_zipf_stream() {
    for (s, k, least) in [(1.0, 20, 20), (1.0, 100, 98), (1.3, 100, 98)] {
        let stream = zipf(3, 1_000_000, 100_000, s);
        let truth = exact(&stream);
        let mut top = TopK::new(k).unwrap();
        top.insert_batch(&stream);
        let mut counts: Vec<u64> = truth.values().copied().collect();
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        let (threshold, items) = (counts[k as usize - 1], top.items());
        let key = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let found = items.iter().filter(|item| truth[&key(item.key)] >= threshold).count();
        println!("zipf {s}: {found} of {k}");
        assert!(found >= least, "zipf {s}: {found} of {k}");
        assert!(items.is_sorted_by(|a, b| a.count >= b.count) && items.len() as u64 == k);
        for item in &items {
            let times = truth[&key(item.key)];
            assert!(item.count <= times, "{} instead of {times}", item.count);
            assert!(top.contains(item.key) && top.count(item.key) == item.count);
        }
        for item in &items[..k as usize / 2] {
            let times = truth[&key(item.key)];
            assert!(item.count as f64 > 0.95 * times as f64, "{} instead of {times}", item.count);
        }
        assert_eq!(top.inserted(), Some(1_000_000));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn frequent_finds_every_key_above_its_share_even_after_unions(
        k in 1..12u64,
        parts in prop::collection::vec(prop::collection::vec((0..60u64, 1..9u64), 0..300), 1..6),
        chained: bool,
    ) {
        let mut truth = HashMap::new();
        let mut sketches: Vec<Frequent> = parts.iter().enumerate().map(|(seed, part)| {
            // A different hash for each part: keys are matched by their bytes.
            let mut sketch = Frequent::new(k).unwrap().with_hasher(Hasher::fast(seed as u64));
            for (key, times) in part {
                // Half of the stream is skewed.
                let key = if times % 2 == 0 { key * key / 60 } else { *key };
                sketch.insert_times(&key, *times);
                *truth.entry(key).or_default() += times;
            }
            sketch
        }).collect();
        while sketches.len() > 1 {
            let last = sketches.pop().unwrap();
            let at = if chained { sketches.len() - 1 } else { 0 };
            sketches[at].union(&last).unwrap();
        }
        let sketch = &sketches[0];
        let total: u64 = truth.values().sum();
        prop_assert_eq!(sketch.total(), total);
        prop_assert!(sketch.error_bound() <= total / (k + 1));
        prop_assert!(sketch.len() as u64 <= 2 * k);
        for (key, times) in truth {
            let count = sketch.count(&key);
            prop_assert!(count <= times && times <= count + sketch.error_bound(), "{} {} {}", key, count, times);
            prop_assert!(times <= total / (k + 1) || sketch.contains(&key));
        }
        let read = Frequent::from_bytes(&sketch.to_bytes().unwrap()).unwrap();
        prop_assert_eq!(read.items(), sketch.items());
    }
}

#[test]
fn frequent_keys_are_found_among_many_rare_ones() {
    let mut heavy = Frequent::new(1024).unwrap();
    // Ten keys with one in a thousand each, all of them at the beginning.
    let stream: Vec<u64> = (0..400_000).map(|i| if i < 4000 { i % 10 } else { i }).collect();
    heavy.insert_batch(&stream);
    assert!((0..10u64).all(|key| heavy.contains(&key)));
    assert!(heavy.error_bound() <= 400_000 / 1025 && heavy.len() <= 2048);
    let heaviest: Vec<_> = heavy.items().iter().take(10).map(|item| item.key[0]).collect();
    assert!(heaviest.iter().all(|key| *key < 10), "{heaviest:?}");
}
