//! Filters above 2^32 bits behave like any other: no position is truncated to 32 bits, and the rate
//! does not change.
//!
//! This is one test, so that only one of the two filters, each of about 550 MB, exists at a time.

use crate::common::{Keys, blocked, count_found, empty, fill, standard};
use umbel::Hasher;
use umbel::internals::Layout;

/// Fills a filter with `n` keys, looks up members and strangers, and checks where its bits are.
fn check<L: Layout>(layout: L, n: u64, queries: u64) {
    let keys = Keys::of_build(0);
    let mut filter = empty(layout, Hasher::default());
    fill(&mut filter, n, |number| keys.member(number));

    // No false negatives: the first and the last members.
    let some = 2_000_000;
    assert_eq!(count_found(&filter, some, |number| keys.member(number)), some);
    assert_eq!(count_found(&filter, some, |number| keys.member(n - 1 - number)), some);

    // The rate must be within 2 % and four standard errors of the count. Builds of this size do not
    // differ.
    let theory = layout.predicted_rate(n).expect("a valid load");
    let rate = count_found(&filter, queries, |number| keys.stranger(number)) as f64 / queries as f64;
    let error = (queries as f64 * theory).sqrt().recip();
    let off = rate / theory - 1.0;
    println!(
        "{layout:?}: {rate:.4e}, theory {theory:.4e} ({:+.2} %, standard error {:.2} %)",
        100.0 * off,
        100.0 * error
    );
    assert!(error < 0.01, "the measurement is too coarse: {error}");
    assert!(off.abs() <= 0.02 + 4.0 * error, "measured {rate}, theory {theory}");
    let stats = filter.stats();
    assert!((stats.rate_now / theory - 1.0).abs() <= 0.005, "bits {}, theory {theory}", stats.rate_now);
    let estimate = stats.estimate.estimate().expect("not saturated");
    assert!((estimate.value - n as f64).abs() <= 4.0 * estimate.standard_error, "{estimate}, inserted {n}");

    // The part above 2^32 must be as dense as the rest, up to the last words.
    let words = filter.words().words();
    let (low, high) = words[..(layout.bits() / 64) as usize].split_at(1 << 26);
    assert!(high.len() > 1 << 20, "a good part must be above 2^32");
    let ones = |words: &[u64]| words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
    let expected = ones(low) as f64 * high.len() as f64 / low.len() as f64;
    let share = ones(high) as f64 / expected;
    println!("{layout:?}: {} bits set above 2^32, {share:.5} of the expected number", ones(high));
    // At least a million bits, so that 1 % is many standard errors, including those of the load of
    // a blocked line.
    assert!(expected > 1e6 && (share - 1.0).abs() < 0.01, "{share}");
    let last = &words[words.len() - (1 << 16)..];
    assert!((ones(last) as f64 / ones(low) as f64 * low.len() as f64 / last.len() as f64 - 1.0).abs() < 0.05);
}

#[test]
fn filters_above_2_to_32_bits_keep_their_rate_and_use_all_of_their_bits() {
    // Two positions per key, so that fifty million keys cause a measurable rate: 5e-4, which is 20
    // 000 false positives.
    check(standard(4_400_000_081, 2), 50_000_000, 40_000_000);
    // A blocked filter sets eight bits per key and needs more keys for such a rate: about 29 in
    // each line.
    check(blocked(8_600_008, 1), 250_000_000, 40_000_000);
}
