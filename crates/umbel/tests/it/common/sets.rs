//! Checks that apply to every kind of set.

use super::{Keys, chunks, moments};
use umbel::any::Stored;
use umbel::file::{self, Options};
use umbel::hash::KeyRing;
use umbel::internals::{Level, Set, TILE};
use umbel::{Digest, Hasher, Spec};

/// Returns the words of each section.
pub fn memory<S: Set>(set: &S) -> Vec<Vec<u64>> {
    set.sections().iter().map(|(_, words)| words.words().to_vec()).collect()
}

/// A measured false-positive rate.
pub struct Measured {
    pub rate: f64,
    /// The relative standard error, from the number of false positives and from the differences
    /// between builds.
    pub error: f64,
    /// The mean of the rates that the filters computed from their own cells.
    pub rate_now: f64,
}

/// Fills `builds` filters with `n` keys each, each filter with a different hash, and looks up
/// `queries` strangers in each.
pub fn measure<S: Set>(builds: u64, n: u64, queries: u64, build: impl Fn(Hasher) -> S) -> Measured {
    let (mut rates, mut rates_now) = (Vec::new(), Vec::new());
    for number in 0..builds {
        let keys = Keys::of_build(number);
        let mut set = build(Hasher::fast(number));
        for range in chunks(n) {
            set.insert_batch(&range.map(|i| keys.member(i)).collect::<Vec<_>>()).expect("owned memory");
        }
        let found = chunks(queries)
            .map(|range| set.contains_batch(&range.map(|i| keys.stranger(i)).collect::<Vec<_>>()).count())
            .sum::<u64>();
        rates.push(found as f64 / queries as f64);
        rates_now.push(set.stats().rate_now);
    }
    let ((rate, deviation), (rate_now, _)) = (moments(&rates), moments(&rates_now));
    // The builds differ by their queries as well, so their deviation is the whole error. The error
    // of the count is a lower bound, in case a few builds happen to agree.
    let counting = (rate * (builds * queries) as f64).sqrt().recip();
    let error = (deviation / rate / (builds as f64).sqrt()).max(counting);
    Measured { rate, error, rate_now }
}

/// Checks that tiles, batches and single digests, inserted and looked up on every instruction set,
/// lead to the same memory and the same answers, and that traced lookups agree.
pub fn check_every_way<S: Set>(empty: &S, members: &[u64], asked: &[u64]) {
    let digests = |keys: &[u64]| empty.hasher().digest_batch(keys);
    let (member_digests, asked_digests) = (digests(members), digests(asked));
    let mut one_by_one = empty.try_clone_empty().expect("enough memory");
    let mut new = Vec::new();
    for digest in &member_digests {
        let before = one_by_one.contains_digest(*digest);
        new.push(one_by_one.insert_digest(*digest).expect("owned memory"));
        assert_eq!(new[new.len() - 1], !before, "insertion and lookup disagree");
    }
    let answers: Vec<bool> = asked_digests.iter().map(|digest| one_by_one.contains_digest(*digest)).collect();
    for level in Level::available() {
        let fresh = || {
            let mut set = empty.try_clone_empty().expect("enough memory");
            set.set_level(level);
            set
        };
        let (mut by_batch, mut by_tile, mut by_new, mut at_once) = (fresh(), fresh(), fresh(), fresh());
        by_batch.insert_batch(members).expect("owned memory");
        by_tile.insert_tile(&member_digests).expect("owned memory");
        for (tile, new) in member_digests.chunks(TILE).zip(new.chunks(TILE)) {
            let reported = by_new.insert_tile_new(tile).expect("owned memory");
            let expected = new.iter().rev().fold(0, |bits, new| bits << 1 | u64::from(*new));
            assert_eq!(reported, expected, "{level}");
        }
        at_once
            .insert_tile_new(&member_digests)
            .expect("room for all, although only the first 64 have an answer");
        for set in [&by_batch, &by_tile, &by_new, &at_once] {
            assert!(memory(set) == memory(&one_by_one), "{level}");
            assert_eq!(set.inserted(), one_by_one.inserted());
        }
        assert!(by_batch.contains_batch(asked).iter().eq(answers.iter().copied()), "{level}");
        for (tile, answers) in asked_digests.chunks(TILE).zip(answers.chunks(TILE)) {
            let expected = answers.iter().rev().fold(0, |bits, answer| bits << 1 | u64::from(*answer));
            assert_eq!(by_batch.contains_tile(tile), expected, "{level}");
        }
    }
    assert_eq!(one_by_one.contains_tile(&[]), 0);
    for (digest, answer) in asked_digests.iter().zip(&answers) {
        assert_eq!(traced(&one_by_one, *digest), *answer);
    }
}

/// Traces a lookup and recomputes its answer from the reported cells: it must stop at the first
/// zero.
fn traced<S: Set>(set: &S, digest: Digest) -> bool {
    let sections = set.sections();
    let mut values = Vec::new();
    let answer = set.trace(digest, &mut |probe| {
        assert_eq!(probe.bits.end - probe.bits.start, 1);
        values.push(probe.value(sections[probe.section].1));
        Ok(())
    });
    let (last, before) = values.split_last().expect("a lookup reads something");
    assert!(before.iter().all(|value| *value == 1), "the lookup continues after a zero");
    assert_eq!(answer.expect("nothing stops it"), *last == 1);
    *last == 1
}

/// Checks that a filter read from a file equals the one that was written.
pub fn check_round_trip<S: Set + TryFrom<umbel::AnyFilter, Error = umbel::Error>>(set: &S) -> S {
    let bytes = file::to_bytes(set, &Options::default()).expect("a set that can be stored");
    let loaded = file::from_bytes(&bytes, &KeyRing::new()).expect("the bytes just written").filter;
    assert_eq!(loaded.stats(), set.stats());
    assert_eq!((loaded.design(), loaded.inserted()), (set.design(), set.inserted()));
    let Stored::Set(any) = loaded else { panic!("not a set") };
    let read = S::try_from(any).expect("the kind that was written");
    assert!(memory(&read) == memory(set) && read.params() == set.params());
    assert_eq!(file::to_bytes(&read, &Options::default()).expect("as before"), bytes);
    read
}

/// Checks that the rate at capacity is not above the requested one, and equals the rate computed
/// from the filter's bits.
pub fn check_rate_at_capacity<S: Set>() {
    for (n, asked, builds, queries) in [
        (100, 0.01, 400, 20_000),
        (1000, 0.01, 60, 100_000),
        (100_000, 0.01, 10, 400_000),
        (100_000, 0.001, 10, 1_000_000),
    ] {
        let spec = |hasher| Spec::new(n, asked).expect("a valid rate").with_hasher(hasher);
        let planned = S::plan(&spec(Hasher::default())).expect("a plan");
        let measured = measure(builds, n, queries, |hasher| S::build(&spec(hasher)).expect("enough memory"));
        println!(
            "{n} keys at {asked}: {:.4e} ± {:.2} %, planned {:.4e}, from its bits {:.4e}",
            measured.rate,
            100.0 * measured.error,
            planned.rate,
            measured.rate_now
        );
        assert!(planned.rate <= asked && planned.rate_asked == asked);
        assert!(4.0 * measured.error < 0.05, "the measurement is too coarse: {}", measured.error);
        assert!(measured.rate <= asked * (1.02 + 4.0 * measured.error), "{}", measured.rate);
        assert!((measured.rate / measured.rate_now - 1.0).abs() < 4.0 * measured.error);
    }
}
