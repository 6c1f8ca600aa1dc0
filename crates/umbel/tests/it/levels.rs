//! Every instruction set yields the same bits and the same answers, in whole filters and for
//! batches of any length.

use umbel::internals::{Layout, Level, Structure};
use umbel::{Arena, Batch, Blocked, Bloom, Hasher, Partitioned, Spec, Standard};

/// Lengths around one tile of 64 keys, and several tiles.
const LENGTHS: [usize; 7] = [0, 1, 63, 64, 65, 200, 5000];

/// Fills a filter with `members` and returns its words and its answers for `asked`.
fn fill_and_ask<L: Layout, B: Batch + ?Sized>(
    level: Level,
    spec: &Spec,
    members: &B,
    asked: &B,
) -> (Vec<u64>, Vec<u64>) {
    let mut filter = Bloom::<L>::build(spec).unwrap();
    filter.set_level(level);
    filter.insert_batch(members);
    (filter.words().words().to_vec(), filter.contains_batch(asked).as_words().to_vec())
}

fn check<L: Layout, B: Batch + ?Sized>(members: &B, asked: &B) {
    // One or two lines per key in the blocked layout; seven or fourteen probes in the others.
    for rate in [0.01, 0.0001] {
        for hasher in [Hasher::fast(0), Hasher::fast(0x0123_4567_89ab_cdef), Hasher::keyed([5; 16])] {
            let spec = Spec::new(20_000, rate).unwrap().with_hasher(hasher.clone());
            let portable = fill_and_ask::<L, B>(Level::PORTABLE, &spec, members, asked);
            for level in Level::available() {
                let same = fill_and_ask::<L, B>(level, &spec, members, asked) == portable;
                assert!(same, "{level}, {} keys, rate {rate}, {hasher:?}", asked.len());
            }
            // The same bits and answers must come from single keys that are hashed outside all
            // kernels.
            let mut filter = Bloom::<L>::build(&spec).unwrap();
            let digest = |keys: &B, i| keys.with_bytes(i, |bytes| hasher.digest_bytes(bytes));
            for i in 0..members.len() {
                filter.insert_digest(digest(members, i));
            }
            assert_eq!(filter.words().words(), portable.0);
            for i in 0..asked.len() {
                let answer = portable.1[i / 64] >> (i % 64) & 1 == 1;
                assert_eq!(filter.contains_digest(digest(asked, i)), answer);
            }
        }
    }
}

fn check_layouts<B: Batch + ?Sized>(members: &B, asked: &B) {
    check::<Standard, B>(members, asked);
    check::<Partitioned, B>(members, asked);
    check::<Blocked, B>(members, asked);
}

#[test]
fn integers() {
    for len in LENGTHS {
        let keys: Vec<u64> = (0..len as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        check_layouts(&keys[..len / 2], &keys[..]);
    }
}

/// Makes strings with lengths around every boundary of the hash, most of them short. The arena has
/// no spare bytes at its start or end.
fn arena(len: usize, lengths: impl Fn(usize) -> usize) -> (Vec<u8>, Vec<u32>) {
    let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
    for i in 0..len {
        bytes.extend(
            (0..lengths(i)).map(|j| ((i * 31 + j * j * 7 + 1).wrapping_mul(0x9e37_79b1) >> 16) as u8),
        );
        offsets.push(bytes.len() as u32);
    }
    (bytes, offsets)
}

#[test]
fn strings() {
    let shapes: [fn(usize) -> usize; 5] =
        [|_| 3, |i| 16 + i % 9, |i| i % 40, |i| 9 + i % 8, |i| if i % 50 == 0 { 300 } else { 20 }];
    for len in LENGTHS {
        for lengths in shapes {
            let (bytes, offsets) = arena(len, lengths);
            let asked = Arena::new(&bytes, &offsets).unwrap();
            let members = Arena::new(&bytes, &offsets[..=len / 2]).unwrap();
            check_layouts(&members, &asked);
            let slices: Vec<&[u8]> = (0..len).map(|i| asked.get(i).unwrap()).collect();
            check::<Blocked, [&[u8]]>(&slices[..len / 2], &slices);
        }
    }
}

/// The environment variable for which [`Level::detect`] returns the portable level.
const PORTABLE: &str = "UMBEL_PORTABLE";

#[test]
fn the_portable_level_can_be_forced() {
    if std::env::var_os(PORTABLE).is_some() {
        assert_eq!(Level::detect(), Level::PORTABLE);
        println!("portable as it should be");
    }
}

/// The golden files, the worked examples, and every kind against an exact set. `fuzz/sanitize` runs
/// all tests so.
#[test]
fn the_promises_hold_without_simd() {
    let portable = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "levels::the_portable_level",
            "format::",
            "worked_examples::",
            "no_false_negatives::",
            "--nocapture",
        ])
        .env(PORTABLE, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&portable.stdout);
    assert!(portable.status.success() && printed.contains("portable as it should be"), "{printed}");
}
