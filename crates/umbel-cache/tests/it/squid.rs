//! Squid's digests are decoded as Squid means them, and encoded as Squid writes them.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use umbel_cache::{CacheDigest, CacheKey, Error};

/// A digest from Squid 5.7, which had fetched seven documents and has icons of its own.
const GOLDEN: &[u8] = include_bytes!("../golden/squid-5.7.digest");

fn document(number: u32) -> CacheKey {
    CacheKey::from_url(&format!("http://127.0.0.1:3198/doc{number}"))
}

#[test]
fn a_digest_of_squid_contains_what_squid_has() {
    let digest = CacheDigest::decode(GOLDEN).unwrap();
    let stats = digest.filter().stats();
    assert_eq!((digest.count(), stats.bits, stats.used_cells), (58, 296, 164));
    assert!((1..=7).all(|number| digest.contains(&document(number))));
    let strangers = (8..10_008).filter(|number| digest.contains(&document(*number))).count();
    // The false positives match the number of set bits: (164/296)^4 is 9.4 %.
    let rate = stats.rate_now;
    assert!(
        (strangers as f64 / 10_000.0 - rate).abs() < 4.0 * (rate / 10_000.0).sqrt(),
        "{strangers} {rate}"
    );
    assert_eq!(digest.encode(), GOLDEN);
}

/// SPEC: with 5 bits per document, 9.2 % of absent keys are false positives, and a million
/// documents take 625 000 bytes.
#[test]
fn five_bits_per_document_have_one_false_positive_in_eleven() {
    let keys: Vec<CacheKey> = (0..100_000).map(document).collect();
    let digest = CacheDigest::from_keys(&keys, 5).unwrap();
    assert_eq!(digest.encode().len(), 128 + 62_500);
    assert!(keys.iter().all(|key| digest.contains(key)));
    let strangers = (100_000..300_000).filter(|number| digest.contains(&document(*number))).count();
    let measured = strangers as f64 / 200_000.0;
    assert!((measured - 0.0920).abs() < 0.003, "{measured}");
}

#[test]
fn invalid_digests_are_refused() {
    let changed = |at: usize, value: u8| {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] = value;
        CacheDigest::decode(&bytes)
    };
    for (at, value, why) in [
        (3, 6, "version"),
        (1, 2, "version"),
        (19, 38, "claims"),
        (21, 5, "bits for each"),
        (16, 255, "claims"),
    ] {
        let error = changed(at, value).unwrap_err();
        assert!(matches!(&error, Error::Malformed { .. }) && error.to_string().contains(why), "{error}");
    }
    for length in [0, 1, 127, 128, 164] {
        assert!(CacheDigest::decode(&GOLDEN[..length]).is_err(), "{length}");
    }
    assert!(CacheDigest::from_keys(&[], 5).is_ok_and(|digest| !digest.contains(&document(1))));
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_refused_or_survive_a_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(digest) = CacheDigest::decode(&bytes) {
            let again = CacheDigest::decode(&digest.encode()).unwrap();
            prop_assert_eq!(again, digest);
        }
    }
}
