//! The hash families of the literature match their definitions bit for bit.

use std::collections::HashSet;

use md5::{Digest, Md5};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use sha1::Sha1;
use umbel::counting::{Flip, Options};
use umbel::literature::murmur::{murmur2, murmur3_x64_128, murmur3_x86_32};
use umbel::literature::{Family, Literature, Md5Slices, Scheme};
use umbel::{Counting, Error, Hasher, Removed};

const TWO_TO_32: u64 = 1 << 32;

fn positions(family: Family, key: &[u8], k: u32, m: u64) -> Vec<u64> {
    let scheme = Scheme::new(family, k, m).expect("parameters within the family's limits");
    scheme.positions(key).collect()
}

/// Computes double hashing as the papers define it, without a rule for degenerate strides.
fn plain_double_hashing(key: &[u8], k: u32, m: u64) -> Vec<u64> {
    let (a, b) = murmur3_x64_128(key, 0);
    (0..u64::from(k)).map(|i| a.wrapping_add(i.wrapping_mul(b)) % m).collect()
}

fn distinct(positions: &[u64]) -> usize {
    positions.iter().collect::<HashSet<_>>().len()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn md5_and_sha1_match_known_digests() {
    assert_eq!(hex(&Md5::digest(b"abc1")), "23734cd52ad4a4fb877d8a1e26e5df5f");
    assert_eq!(hex(&Md5::digest(b"abc\x01\0\0\0")), "b2f1568e6edff2e439c7c50cea58e427");
    assert_eq!(hex(&Sha1::digest(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

#[test]
fn seeded_families_hash_with_the_index_as_seed() {
    let fox = b"The quick brown fox jumps over the lazy dog";
    assert_eq!(positions(Family::Murmur2, fox, 2, TWO_TO_32), [0x2127_29d0, 0x1e10_49e7]);
    assert_eq!(positions(Family::Murmur3, fox, 2, TWO_TO_32), [0x2e4f_f723, 0x78e6_9e27]);
    assert_eq!(positions(Family::Murmur2, fox, 2, 1000), [0x2127_29d0 % 1000, 0x1e10_49e7 % 1000]);
    assert_eq!(positions(Family::Murmur3, fox, 2, 1000), [0x2e4f_f723 % 1000, 0x78e6_9e27 % 1000]);
}

#[test]
fn double_hashing_starts_at_the_first_half_and_steps_by_the_second() {
    let (a, b) = (0x270d_d9a5_1eeb_0832_u64, 0xda26_9d58_ac07_a707_u64);
    let sums = [a, a.wrapping_add(b), a.wrapping_add(b).wrapping_add(b)];
    assert_eq!(positions(Family::Murmur3Double, b"bloom", 3, u64::MAX), sums);
    assert_eq!(positions(Family::Murmur3Double, b"bloom", 3, 1000), sums.map(|sum| sum % 1000));
}

#[test]
fn md5_indexed_reads_eight_bytes_little_endian() {
    // The second position comes from MD5("abc" followed by 1 in four bytes) = b2f1568e6edff2e4...
    assert_eq!(positions(Family::Md5Indexed, b"abc", 2, u64::MAX)[1], 0xe4f2_df6e_8e56_f1b2);
    assert_eq!(positions(Family::Md5Indexed, b"abc", 2, 1009)[1], 0xe4f2_df6e_8e56_f1b2 % 1009);
}

#[test]
fn slices_are_the_big_endian_words_of_the_digest() {
    // MD5("abc") = 90015098 3cd24fb0 d6963f7d 28e17f72 in bytes.
    assert_eq!(
        positions(Family::Md5Slices, b"abc", 4, TWO_TO_32),
        [0x9001_5098, 0x3cd2_4fb0, 0xd696_3f7d, 0x28e1_7f72]
    );
    // SHA-1("abc") = a9993e36 4706816a ba3e2571 7850c26c 9cd0d89d in bytes.
    assert_eq!(
        positions(Family::Sha1Slices, b"abc", 5, TWO_TO_32),
        [0xa999_3e36, 0x4706_816a, 0xba3e_2571, 0x7850_c26c, 0x9cd0_d89d]
    );
    assert_eq!(positions(Family::Sha1Slices, b"abc", 1, 1009), [0xa999_3e36 % 1009]);
}

#[test]
fn c1_a_stride_divisible_by_m_becomes_one_and_other_keys_are_unchanged() {
    for m in [2, 3, 7, 10, 16, 255, 256] {
        let mut replaced = 0;
        for number in 0..10_000_u32 {
            let key = number.to_le_bytes();
            let (a, b) = murmur3_x64_128(&key, 0);
            let got = positions(Family::Murmur3Double, &key, 5, m);
            if b % m == 0 {
                replaced += 1;
                let unit_steps: Vec<u64> = (0..5).map(|i| a.wrapping_add(i) % m).collect();
                assert_eq!(got, unit_steps, "m = {m}, key {number}");
                assert_eq!(distinct(&got) as u64, m.min(5), "m = {m}, key {number}");
            } else {
                assert_eq!(got, plain_double_hashing(&key, 5, m), "m = {m}, key {number}");
            }
        }
        assert!(replaced > 0, "no key with b mod {m} = 0 among the inputs");
    }
}

#[test]
fn c1_without_the_rule_all_positions_of_such_a_key_coincide() {
    let collapses = |key: &[u8; 4]| distinct(&plain_double_hashing(key, 7, 256)) == 1;
    let key = (0..10_000_u32).map(u32::to_le_bytes).find(collapses).expect("one key in 256 collapses");
    assert_eq!(distinct(&positions(Family::Murmur3Double, &key, 7, 256)), 7);
}

#[test]
fn c2_the_enhanced_family_adds_the_cubic_term() {
    for m in [10, 1024, 1 << 40, u64::MAX] {
        let (a, b) = murmur3_x64_128(b"lovage", 0);
        let direct = (0..255_u64).map(|i| {
            let cubic = (i * i * i - i) / 6;
            a.wrapping_add(i.wrapping_mul(b)).wrapping_add(cubic) % m
        });
        assert_eq!(
            positions(Family::Murmur3Enhanced, b"lovage", 255, m),
            direct.collect::<Vec<_>>(),
            "m = {m}"
        );
    }
}

#[test]
fn c3_reducing_32_bits_is_limited_to_2_to_32_cells() {
    for family in [Family::Murmur2, Family::Murmur3, Family::Md5Slices, Family::Sha1Slices] {
        assert!(Scheme::new(family, 3, TWO_TO_32).is_ok(), "{family}");
        let error = Scheme::new(family, 3, TWO_TO_32 + 1).unwrap_err().to_string();
        assert!(error.contains("m = 4294967297") && error.contains(family.name()), "{error}");
    }
    for family in [Family::Murmur3Double, Family::Murmur3Enhanced, Family::Md5Indexed] {
        let beyond = (0..100_u32)
            .flat_map(|number| positions(family, &number.to_le_bytes(), 3, 1 << 40))
            .filter(|&position| position >= TWO_TO_32)
            .count();
        assert!(beyond > 290, "{family} reached the upper 255/256 of its cells only {beyond} times in 300");
    }
}

#[test]
fn c3_reducing_32_bits_is_biased_and_reducing_64_bits_is_not() {
    // With m = 3 * 2^30, two of the 2^32 values map to each cell of the lowest third, and one to
    // each other cell, so the lowest third has half of all positions instead of a third. 20 000
    // positions have a standard deviation of 0.0035.
    let m = 3 << 30;
    let lowest_third = |family| {
        let keys = 0..20_000_u32;
        let low = keys.filter(|number| positions(family, &number.to_le_bytes(), 1, m)[0] < m / 3).count();
        low as f64 / 20_000.0
    };
    for family in [Family::Murmur2, Family::Murmur3, Family::Md5Slices, Family::Sha1Slices] {
        let share = lowest_third(family);
        assert!((share - 1.0 / 2.0).abs() < 0.015, "{family}: {share}");
    }
    for family in [Family::Murmur3Double, Family::Murmur3Enhanced, Family::Md5Indexed] {
        let share = lowest_third(family);
        assert!((share - 1.0 / 3.0).abs() < 0.015, "{family}: {share}");
    }
}

#[test]
fn c4_positions_of_one_key_may_coincide() {
    // m (1 - (1 - 1/m)^k) = 2.71 of 3. The number of distinct positions has a standard deviation of
    // 0.48, so its mean over 100 000 keys has one of 0.0015; the tolerance is five times that. Keys
    // have eight bytes, because the functions of MurmurHash2 are not quite independent for four.
    for family in
        [Family::Murmur2, Family::Murmur3, Family::Md5Slices, Family::Sha1Slices, Family::Md5Indexed]
    {
        let keys = 0..100_000_u64;
        let total: usize =
            keys.map(|number| distinct(&positions(family, &number.to_le_bytes(), 3, 10))).sum();
        let mean = total as f64 / 100_000.0;
        assert!((mean - 2.71).abs() < 0.0075, "{family}: {mean}");
    }
}

fn any_valid() -> impl Strategy<Value = (Family, u32, u64)> {
    prop::sample::select(&Family::ALL[..]).prop_flat_map(|family| {
        let m = prop_oneof![1..=family.max_cells(), 1..=100_u64, Just(family.max_cells())];
        (Just(family), 1..=family.max_hashes(), m)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Default::default() })]
    #[test]
    fn k_positions_below_m((family, k, m) in any_valid(), key: Vec<u8>) {
        let scheme = Scheme::new(family, k, m)?;
        let mut positions = scheme.positions(&key);
        prop_assert_eq!(positions.len(), k as usize);
        prop_assert!(positions.all(|position| position < m));
        prop_assert_eq!(positions.len(), 0);
        prop_assert_eq!(positions.next(), None);
    }

    #[test]
    fn a_smaller_k_yields_the_first_positions_of_a_larger_one((family, k, m) in any_valid(), key: Vec<u8>) {
        let all = positions(family, &key, family.max_hashes(), m);
        prop_assert_eq!(&positions(family, &key, k, m)[..], &all[..k as usize]);
    }

    #[test]
    fn definitions_hold_for_any_key(key: Vec<u8>, m in 1..=TWO_TO_32) {
        for (family, hash) in [(Family::Murmur2, murmur2 as fn(&[u8], u32) -> u32), (Family::Murmur3, murmur3_x86_32)] {
            let direct: Vec<u64> = (0..9).map(|seed| u64::from(hash(&key, seed)) % m).collect();
            prop_assert_eq!(positions(family, &key, 9, m), direct);
        }
        let indexed: Vec<u64> = (0..9_u32)
            .map(|i| {
                let digest = Md5::digest([&key[..], &i.to_le_bytes()].concat());
                u64::from_le_bytes(digest[..8].try_into().expect("eight bytes")) % m
            })
            .collect();
        prop_assert_eq!(positions(Family::Md5Indexed, &key, 9, m), indexed);
    }

    #[test]
    fn any_parameters_do_not_panic(id: u8, k: u32, m: u64, key: Vec<u8>) {
        if let Some(family) = Family::from_id(id % 9)
            && let Ok(scheme) = Scheme::new(family, k % 300, m)
        {
            prop_assert_eq!(scheme.positions(&key).count(), (k % 300) as usize);
        }
    }
}

fn md5_slices(k: u32, m: u64) -> Literature {
    Literature::new(Scheme::new(Family::Md5Slices, k, m).unwrap()).unwrap()
}

#[test]
fn slices_of_one_digest_work_in_filters_of_every_size() {
    for (k, m) in [(1, 1), (4, 7), (4, 296), (3, 1000), (4, 65_536), (2, 1_000_003)] {
        let (mut by_key, mut by_slices) = (md5_slices(k, m), md5_slices(k, m));
        for key in 0..100_u64 {
            assert_eq!(by_key.insert(&key), by_slices.insert_slices(&Md5Slices::new(&key)));
        }
        assert_eq!(by_key, by_slices);
        assert_eq!(by_slices.inserted(), Some(100));
        for key in 0..1000_u64 {
            assert_eq!(by_key.contains(&key), by_key.contains_slices(&Md5Slices::new(&key)), "{key} {m}");
        }
    }
}

#[test]
fn bits_are_read_at_their_documented_positions() {
    let scheme = Scheme::new(Family::Murmur3, 3, 75).unwrap();
    let mut bytes = [0; 10];
    bytes[0] = 0b1000_0001;
    bytes[8] = 1;
    bytes[9] = 0b100;
    let filter = Literature::from_bits(scheme, &bytes).unwrap();
    let set: Vec<u64> = (0..200).filter(|index| filter.bit(*index)).collect();
    assert_eq!(set, [0, 7, 64, 74]);
    assert_eq!(filter.to_bits(), bytes);
    assert_eq!(filter.inserted(), None);
    assert_ne!(filter, Literature::new(scheme).unwrap());

    let refused = |bytes: &[u8]| matches!(Literature::from_bits(scheme, bytes), Err(Error::Format { .. }));
    bytes[9] = 0b1000;
    assert!(refused(&bytes), "bit 75 is beyond the end");
    assert!(refused(&bytes[..9]) && refused(&[0; 11]) && refused(&[]));
    // A claim of 2^48 bits without the bytes for them must not allocate memory.
    let huge = Scheme::new(Family::Murmur3Double, 3, 1 << 48).unwrap();
    assert!(matches!(Literature::from_bits(huge, &bytes), Err(Error::Format { .. })));
}

/// Summary Cache: a counting filter with slices, and a remote filter that follows it.
#[test]
fn flips_keep_the_filter_of_a_peer_equal_to_the_counting_filter() {
    let m = 300;
    let mut counting = Counting::new(m, 4, Options::default(), Hasher::default()).unwrap();
    let (mut peer, mut flips, mut cleared) = (md5_slices(4, m), Vec::new(), 0);
    let slices: Vec<Md5Slices> = (0..60_u64).map(|key| Md5Slices::new(&key)).collect();
    for slices in &slices {
        let new = counting.insert_slices(slices, &mut flips).unwrap();
        assert_eq!(new, !peer.contains_slices(slices));
        assert!(flips.drain(..).all(|flip| peer.apply(flip)), "every flip changes a bit");
        assert!(counting.contains_slices(slices) && peer.contains_slices(slices));
    }
    let (gone, left) = slices.split_at(30);
    for slices in gone {
        assert_eq!(counting.remove_slices(slices, &mut flips), Removed::Removed);
        cleared += flips.len();
        assert!(flips.drain(..).all(|flip| peer.apply(flip)), "every flip changes a bit");
    }
    assert!(cleared > 0);

    let mut rest = md5_slices(4, m);
    left.iter().for_each(|slices| {
        rest.insert_slices(slices);
    });
    assert_eq!(peer, rest);
    assert_eq!(counting.bit_view().unwrap().words(), rest.words().words());
    // A flip that is already applied changes nothing, and neither does one beyond the end.
    let known = Flip { index: 0, set: peer.bit(0) };
    assert!(!peer.apply(known) && !peer.apply(Flip { index: m, set: true }));
    assert_eq!(peer, rest);
    let stranger =
        (100..).map(|key: u64| Md5Slices::new(&key)).find(|key| !peer.contains_slices(key)).unwrap();
    assert_eq!(counting.remove_slices(&stranger, &mut flips), Removed::NotPresent);
    assert!(flips.is_empty());
}
