//! Tests of the internals: the layout bit by bit, and contents that no insertion produces.

use super::*;
use crate::file::{self, Mapped, Options};
use crate::{Key, Level};
use proptest::prelude::*;

fn with(slots: u64, bits: u32, fingerprints: &[u64]) -> Quotient {
    let mut filter = Quotient::with_slots(slots, bits, Hasher::default()).unwrap();
    for fingerprint in fingerprints {
        insert(&mut filter, *fingerprint);
    }
    filter
}

/// Returns a digest with this fingerprint: the smallest x with x * range / 2^64 = fingerprint.
fn digest(filter: &Quotient, fingerprint: u64) -> Digest {
    let range = u128::from(filter.slots.range());
    let digest = Digest::from_hash((u128::from(fingerprint) << 64).div_ceil(range) as u64);
    assert_eq!(filter.fingerprint(digest), fingerprint);
    digest
}

fn insert(filter: &mut Quotient, fingerprint: u64) {
    filter.insert_digest(digest(filter, fingerprint)).unwrap();
}

#[test]
fn the_example_of_the_literature_bit_by_bit() {
    // Bender et al. 2012, figure 1: quotients 1 1 3 3 3 4 6, of which 4 and the later copies of 3
    // have to move.
    let pairs = [(1, 0), (1, 1), (3, 2), (3, 3), (3, 4), (4, 5), (6, 6)];
    let mut order: Vec<u64> = pairs.iter().map(|(quotient, remainder)| quotient << 3 | remainder).collect();
    let first = with(64, 3, &order);
    let words = first.words.words();
    assert_eq!(words[0], 0b0101_1010, "occupied: 1, 3, 4 and 6");
    assert_eq!(words[1], 0b0011_0100, "continuations: 2, 4 and 5");
    assert_eq!(words[2], 0b1111_0100 & !(1 << 3), "shifted: 2, 4, 5, 6 and 7");
    let remainders = [0, 0, 1, 2, 3, 4, 5, 6].iter().rev().fold(0, |word, remainder| word << 3 | remainder);
    assert_eq!(words[3], remainders);
    // Every other order of insertion results in the same memory.
    for turn in 0..order.len() {
        order.rotate_left(1);
        order.swap(turn, 3);
        assert_eq!(with(64, 3, &order).words.words(), words);
    }
    assert!(first.fingerprints().eq(pairs.iter().map(|(quotient, remainder)| quotient << 3 | remainder)));
    assert!(first.check_contents().is_ok());
}

#[test]
fn contents_that_no_insertion_produces_are_detected() {
    let good = with(128, 3, &[8, 8, 9, 24, 25, 26, 100, 500, 501]);
    assert!(good.check_contents().is_ok());
    // Flip each bit of the used part.
    for bit in 0..good.slots.bits() {
        let mut bad = good.try_clone().unwrap();
        bad.words.words_mut()[bit as usize / 64] ^= 1 << (bit % 64);
        let Err(problem) = bad.check_contents() else {
            // A changed remainder is valid if the run stays in order.
            let row = bit / 64 % good.slots.block_words();
            assert!(row >= 3, "bit {bit}");
            assert_eq!(bad.fingerprints().count(), 9);
            continue;
        };
        assert!(problem.to_string().contains("slot"), "{problem}");
    }
    let mut counted = good.try_clone().unwrap();
    counted.len = 8;
    assert!(counted.check_contents().is_err());
    // A valid run, but of a slot that is not a home slot.
    let mut homeless = with(64, 3, &[]);
    homeless.len = 1;
    let (row, slots) = (homeless.slots.row(1, OCCUPIED), homeless.slots);
    assert_eq!((slots.homes(), slots.all()), (64, 128));
    homeless.words.words_mut()[row] = 1;
    assert!(homeless.check_contents().is_err());
    let mut tail = with(64, 2, &[]);
    let bits = tail.slots.bits() as usize;
    assert!(bits < tail.words.words().len() * 64);
    tail.words.words_mut()[bits / 64] = 1;
    assert!(tail.check_contents().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..crate::fixed_cases() })]

    /// Files are mapped before they are verified, so no contents may make a method panic or run
    /// forever.
    #[test]
    fn arbitrary_contents_do_no_harm(
        blocks in 1..=3u64,
        bits in 1..=57u32,
        rows in prop::collection::vec(prop::sample::select(vec![0, !0, 1, 1 << 63, 0x5555_5555_5555_5555, 0xf0f0]), 18),
        noise in any::<u64>(),
        hashes in prop::collection::vec(any::<u64>(), 1..40),
    ) {
        let bits = bits.min(57 - blocks.ilog2() - u32::from(!blocks.is_power_of_two()));
        let mut filter = Quotient::with_slots(blocks * 64, bits, Hasher::default()).unwrap();
        let stride = filter.slots.block_words() as usize;
        for (i, word) in filter.words.words_mut().iter_mut().enumerate() {
            let row = rows[(i / stride * 3 + i % stride) % rows.len()];
            *word = if i % stride < 3 { row ^ (noise.rotate_left(i as u32) & noise) } else { noise.wrapping_mul(i as u64) };
        }
        filter.len = 1;
        let digests: Vec<Digest> = hashes.iter().map(|hash| Digest::from_hash(*hash)).collect();
        for level in Level::available() {
            filter.set_level(level);
            let tile = filter.contains_tile(&digests);
            for (i, digest) in digests.iter().enumerate() {
                prop_assert_eq!(filter.contains_digest(*digest), tile >> i & 1 == 1);
                filter.count_digest(*digest);
                filter.trace(*digest, &mut |_| Ok(())).unwrap();
            }
        }
        let _ = (filter.stats(), filter.check_contents(), filter.resized(blocks * 128), filter.fingerprints().count());
        let mut other = filter.try_clone().unwrap();
        let _ = (other.union(&filter), other.intersect(&filter), other.overlap(&filter));
        for digest in &digests {
            let _ = (filter.insert_digest(*digest), filter.remove_digest(*digest));
        }
    }
}

/// Maps a file with this filter. Its checksums are right, whatever its contents are.
fn mapped(filter: &Quotient, path: &std::path::Path) -> Mapped<Quotient> {
    file::save(path, filter, &Options::default()).unwrap();
    Quotient::map(path).unwrap()
}

#[test]
fn metadata_that_would_make_lookups_slow_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile");
    let keys: Vec<u64> = (0..3000).collect();
    for bits in [1, 8, 45] {
        for pattern in 0..8 {
            let mut filter = Quotient::with_slots(1 << 17, bits, Hasher::default()).unwrap();
            let size = filter.slots.block_words() as usize;
            let blocks = (filter.slots.all() / sizes::BLOCK) as usize;
            for block in filter.words.words_mut().chunks_exact_mut(size).take(blocks) {
                (0..3).for_each(|row| block[row] = if pattern >> row & 1 == 1 { !0 } else { 0 });
            }
            filter.len = 1000;
            let mapped = mapped(&filter, &path);
            let batch = mapped.contains_batch(&keys[..]);
            // Slots that continue a run or are shifted, everywhere.
            assert_eq!(batch.is_err(), pattern >= 2, "{bits} bits, pattern {pattern:03b}");
            assert_eq!(mapped.contains(&1).is_err(), pattern >= 2, "asked again");
            if let Err(error) = batch {
                assert!(error.to_string().contains("hostile"), "{error}");
                assert!(format!("{error:#}").contains("slot"), "{error:#}");
            }
        }
    }
}

#[test]
fn a_lookup_in_a_mapped_file_passes_few_blocks_whatever_they_contain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile");
    // Stretches that are just short enough to pass, of slots that have no run.
    let mut filter = Quotient::with_slots(1 << 17, 8, Hasher::default()).unwrap();
    let size = filter.slots.block_words() as usize;
    for (i, block) in filter.words.words_mut().chunks_exact_mut(size).enumerate() {
        let shifted = if i % (MAX_STRETCH + 1) == MAX_STRETCH { !1 } else { !0 };
        [block[0], block[1], block[2]] = [!0, 0, shifted];
    }
    let mapped = mapped(&filter, &path);
    let keys: Vec<u64> = (0..3000).collect();
    assert!(mapped.contains_batch(&keys[..]).is_ok(), "no stretch is too long");
    for key in keys {
        let mut named = 0;
        let count = &mut |_| {
            named += 1;
            Ok(())
        };
        filter.trace(key.digest(filter.hasher()), count).unwrap();
        assert!(named <= MAX_STRETCH + 2, "{named} blocks");
    }
    assert!(mapped.verify().is_err());
}

#[test]
fn a_very_frequent_key_is_not_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut filter = Quotient::with_slots(1 << 16, 8, Hasher::default()).unwrap();
    let keys: Vec<u64> = (0..20_000).collect();
    filter.insert_batch(&keys[..]).unwrap();
    for _ in 0..200 * MAX_STRETCH {
        insert(&mut filter, 20_000 << 8);
    }
    assert!(filter.is_crowded(0..filter.words.words().len(), 1 << 13), "this tests something");
    let mapped = mapped(&filter, &folder.path().join("counts"));
    assert_eq!(mapped.contains_batch(&keys[..]).unwrap().count(), 20_000);
    let others: Vec<u64> = (20_000..40_000).collect();
    assert_eq!(mapped.contains_batch(&others[..]).unwrap(), filter.contains_batch(&others[..]));
    assert!(mapped.verify().is_ok());
}

#[test]
fn invalid_parameters_are_refused_before_the_words_are_read() {
    let filter = with(128, 3, &[8]);
    let restore = |params: [u64; 3]| {
        let words = filter.words.try_clone().unwrap();
        let sections = vec![(SLOTS, words)].into_iter();
        Quotient::restore(Parts { head: filter.head.clone(), params: params.to_vec(), sections })
    };
    assert!(restore([128, 3, 1]).is_ok());
    for params in
        [[0, 3, 1], [100, 3, 1], [192, 3, 1], [128, 0, 1], [128, 4, 1], [128, 64, 1], [128, 1 << 32 | 3, 1]]
    {
        assert!(restore(params).is_err(), "{params:?}");
    }
    assert!(restore([128, 3, 122]).is_err(), "more keys than it accepts");
    assert!(restore([1 << 62, 57, 1]).is_err() && restore([!63, 1, 1]).is_err());
}

#[test]
fn a_trace_reports_all_blocks_that_the_answer_depends_on() {
    let mut filter = Quotient::with_slots(64 * 40, 6, Hasher::default()).unwrap();
    let hash = |number: u64| Digest::from_hash((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let members: Vec<Digest> = (0..2400).map(hash).collect();
    filter.insert_tile(&members).unwrap();
    let (mut several, stride) = (0, filter.slots.block_words() as usize);
    for number in 1600..4000 {
        let mut blocks = Vec::new();
        let answer = filter.trace(hash(number), &mut |probe| {
            blocks.push(probe.bits.start as usize / 64 / stride);
            Ok(())
        });
        several += usize::from(blocks.len() > 1);
        // Garbage in all other blocks does not change the answer.
        let mut other = filter.try_clone().unwrap();
        for (i, word) in other.words.words_mut().iter_mut().enumerate() {
            *word ^= if blocks.contains(&(i / stride)) { 0 } else { hash(i as u64).get() };
        }
        assert_eq!(other.contains_digest(hash(number)), answer.unwrap(), "{number} {blocks:?}");
    }
    assert!(several > 500, "{several}");
}
