//! The promises of winnowing: excerpts are cut as payloads are, no block is too long, a long
//! excerpt always has one, and the pieces of a stream have the blocks of the whole.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::{HashMap, HashSet};
use umbel::{Digest, Hasher};
use umbel_net::Error;
use umbel_net::payload::winnowing::{Block, Cutter, Winnowing};

fn winnowing(window: usize, instances: u32, overlap: usize) -> Winnowing {
    Winnowing::new(window, instances, overlap, Hasher::default()).unwrap()
}

fn random(seed: u64, count: usize) -> Vec<u8> {
    let words = (0..).flat_map(|number| Digest::from_hash(seed).salted(number).get().to_le_bytes());
    words.take(count).collect()
}

fn digests(blocks: &[Block]) -> HashSet<Digest> {
    blocks.iter().map(|block| block.digest).collect()
}

/// Returns the number of occurrences of each block.
fn counted(blocks: &[Block]) -> HashMap<Block, usize> {
    let mut counts = HashMap::new();
    blocks.iter().for_each(|block| *counts.entry(*block).or_default() += 1);
    counts
}

/// Generates payloads of few or many byte values, with runs of one byte and with repetitions.
fn payloads(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    let run = prop_oneof![
        4 => (1u16..=256).prop_flat_map(|kinds| {
            prop::collection::vec((0..kinds).prop_map(|byte| byte as u8), 1..60)
        }),
        1 => (0u8..3, 1usize..150).prop_map(|(byte, count)| vec![byte; count]),
        1 => (prop::collection::vec(0u8..3, 1..12), 2usize..20).prop_map(|(unit, times)| unit.repeat(times)),
    ];
    prop::collection::vec(run, 0..8).prop_map(move |runs| {
        let mut payload = runs.concat();
        payload.truncate(longest);
        payload
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(87), failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_block_of_every_excerpt_is_a_block_of_its_payload(
        payload in payloads(150),
        window in 1usize..20,
        instances in 1u32..=4,
        overlap in 0usize..=16,
    ) {
        let winnowing = winnowing(window, instances, overlap);
        let recorded = digests(&winnowing.blocks(&payload));
        let mut cutter = winnowing.cutter();
        for from in 0..payload.len() {
            for to in from..=payload.len() {
                let (mut missed, mut has_block) = (None, vec![false; instances as usize]);
                cutter.cut(&payload[from..to], |block| {
                    has_block[block.instance as usize] = true;
                    if !recorded.contains(&block.digest) {
                        missed = Some(block);
                    }
                });
                prop_assert_eq!(missed, None, "{}..{}", from, to);
                if to - from >= winnowing.needed() {
                    prop_assert!(has_block.iter().all(|has| *has), "{}..{} has no block", from, to);
                }
            }
        }
    }

    /// With a longer overlap, the end of a block does not determine the start of the next.
    #[test]
    fn blocks_are_adjacent_and_none_is_too_long(
        payload in payloads(1000),
        window in 1usize..70,
        overlap in 0usize..=8,
    ) {
        let winnowing = winnowing(window, 3, overlap);
        let blocks = winnowing.blocks(&payload);
        for block in &blocks {
            prop_assert!(block.start + (overlap as u64) < block.end && block.end <= payload.len() as u64);
            prop_assert!(block.end - block.start <= winnowing.longest_block() as u64);
        }
        for instance in 0..3 {
            let own: Vec<_> = blocks.iter().filter(|block| block.instance == instance).collect();
            for pair in own.windows(2) {
                prop_assert_ne!(pair[0].digest, pair[1].digest);
                let content = |block: &Block| &payload[block.start as usize..block.end as usize];
                prop_assert_ne!(content(pair[0]), content(pair[1]));
                let (boundary, next) = (pair[0].end - overlap as u64, pair[1].start);
                // The bytes left out between two blocks repeat the first one.
                let step = boundary - pair[0].start;
                prop_assert_eq!(next.checked_sub(boundary).map(|gap| gap % step), Some(0));
                for start in (boundary..next).step_by(step as usize) {
                    let repeated = Block { start, end: start + step + overlap as u64, ..*pair[0] };
                    prop_assert_eq!(content(&repeated), content(pair[0]));
                }
            }
        }
    }

    #[test]
    fn pieces_of_a_stream_have_the_blocks_of_the_whole(
        payload in payloads(1000),
        cuts in prop::collection::vec(0usize..1000, 0..30),
        window in 1usize..70,
        instances in 1u32..=4,
        overlap in 0usize..=40,
    ) {
        let winnowing = winnowing(window, instances, overlap);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (payload.len() + 1)).collect();
        places.extend([0, payload.len()]);
        places.sort_unstable();
        let (mut cutter, mut pieces) = (winnowing.cutter(), Vec::new());
        // An earlier stream has no effect.
        cutter.push(&payload, |_| ());
        cutter.end();
        for pair in places.windows(2) {
            cutter.push(&payload[pair[0]..pair[1]], |block| pieces.push(block));
        }
        prop_assert_eq!(counted(&pieces), counted(&winnowing.blocks(&payload)));
    }
}

/// Uses content that fills the buffers of several batches, whole and in pieces of various sizes.
#[test]
fn long_content_is_cut_in_the_same_way_in_any_pieces() {
    let mut payload = random(1, 60_000);
    payload[20_000..33_000].fill(7);
    payload[40_000..50_000].iter_mut().for_each(|byte| *byte &= 1);
    for (window, overlap) in [(1, 0), (64, 8), (1000, 100), (1024, 1024)] {
        let winnowing = winnowing(window, 2, overlap);
        let whole = winnowing.blocks(&payload);
        let recorded = digests(&whole);
        for size in [1, 100, 1460, 4096, 60_000] {
            // Single bytes are slow with wide windows.
            let payload = if size == 1 { &payload[18_000..24_000] } else { &payload[..] };
            let (mut cutter, mut pieces) = (winnowing.cutter(), Vec::new());
            payload.chunks(size).for_each(|piece| cutter.push(piece, |block| pieces.push(block)));
            assert_eq!(
                counted(&pieces),
                counted(&winnowing.blocks(payload)),
                "pieces of {size}, window {window}"
            );
        }
        for from in (0..55_000).step_by(997) {
            for length in [winnowing.needed(), winnowing.needed() + 1500] {
                let excerpt = winnowing.blocks(&payload[from..(from + length).min(60_000)]);
                assert!((0..2).all(|instance| excerpt.iter().any(|block| block.instance == instance)));
                assert!(digests(&excerpt).is_subset(&recorded), "window {window}, from {from}");
            }
        }
    }
}

#[test]
fn one_byte_less_than_needed_may_be_too_little() {
    for window in [1, 2, 3, 8, 32, 64] {
        for overlap in [0, 1, 7, 8, 9, 16, 40] {
            let winnowing = winnowing(window, 1, overlap);
            let mut cutter = winnowing.cutter();
            let mut is_empty = |length| {
                let mut blocks = 0;
                let content = random(length, winnowing.needed());
                cutter.cut(&content, |_| blocks += 1);
                assert!(blocks > 0);
                blocks = 0;
                cutter.cut(&content[1..], |_| blocks += 1);
                blocks == 0
            };
            // The middle of 2v - 1 positions is the minimum in one case out of 2v - 1.
            assert!((0..20 * window as u64).any(&mut is_empty), "window {window}, overlap {overlap}");
        }
    }
}

/// Returns the boundaries of each instance in content without repetitions.
fn boundaries(winnowing: &Winnowing, content: &[u8]) -> Vec<HashSet<u64>> {
    let mut boundaries = vec![HashSet::new(); winnowing.instances() as usize];
    winnowing.cutter().cut(content, |block| {
        boundaries[block.instance as usize].insert(block.start);
    });
    boundaries
}

/// The minimum of a window is a new boundary if it is the minimum of v + 1 positions and the first
/// or the last of them: 2/(v + 1). Averaged over many seeds, since one seed is one hash function.
#[test]
fn boundaries_have_the_expected_density_and_instances_are_independent() {
    const LENGTH: usize = 100_000;
    const SEEDS: u64 = 30;
    for (window, is_text) in [(4, false), (16, false), (64, false), (256, false), (64, true)] {
        let density = 2.0 / (window as f64 + 1.0);
        let (mut counts, mut common) = (Vec::new(), Vec::new());
        for seed in 0..SEEDS {
            let mut content = random(seed + 1000, LENGTH);
            if is_text {
                content.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
            }
            let winnowing = Winnowing::new(window, 3, 8, Hasher::fast(seed)).unwrap();
            let found = boundaries(&winnowing, &content);
            counts.extend(found.iter().map(|boundaries| boundaries.len() as f64));
            for (a, b) in [(0, 1), (0, 2), (1, 2)] {
                common.push(found[a].intersection(&found[b]).count() as f64);
            }
        }
        for (what, counts, expected) in [("all", counts, density), ("common", common, density * density)] {
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            let variance =
                counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64;
            let sigma = (variance / counts.len() as f64).sqrt();
            let expected = LENGTH as f64 * expected;
            // 16-bit hashes tie once in 65536/v windows, and eight letters of content occasionally
            // repeat.
            let ties = expected * window as f64 / 65536.0;
            assert!(
                (mean - expected).abs() < 4.0 * sigma + ties,
                "window {window}, text {is_text}, {what}: {mean} instead of {expected}, sigma {sigma}"
            );
        }
    }
}

/// Returns the mean numbers of blocks and of different digests of content over several seeds.
fn told(overlap: usize, content: &[u8]) -> [f64; 2] {
    const SEEDS: u64 = 40;
    let mut sums = [0.0; 2];
    for seed in 0..SEEDS {
        let blocks = Winnowing::new(64, 1, overlap, Hasher::fast(seed)).unwrap().blocks(content);
        sums[0] += blocks.len() as f64;
        sums[1] += digests(&blocks).len() as f64;
    }
    sums.map(|sum| sum / SEEDS as f64)
}

#[test]
fn repetitive_content_does_not_flood_a_filter() {
    const LENGTH: usize = 20_000;
    for overlap in [0, 8, 9, 16, 64] {
        let plain = told(overlap, &random(5, LENGTH));
        // `period` bytes repeated `times` times, then other bytes, which never occur again.
        for period in [1, 2, 3, 4, 8, 9, 16, 31] {
            for times in [2, 5, 9, 12, 16, 24, 40, 64, 72, 80, 100, 200] {
                let units = random(period as u64, LENGTH);
                let content = units.chunks(period).flat_map(|unit| unit.repeat(times));
                let found = told(overlap, &content.take(LENGTH).collect::<Vec<u8>>());
                for (found, plain) in found.iter().zip(plain) {
                    let what = format!("overlap {overlap}, {period} bytes {times} times");
                    assert!(*found < 2.5 * plain, "{found} instead of {plain}: {what}");
                }
            }
        }
        // A payload of one byte leaves one digest.
        assert_eq!(told(overlap, &vec![0; LENGTH]), [1.0; 2]);
    }
}

#[test]
fn no_block_spans_a_gap() {
    let winnowing = winnowing(8, 2, 4);
    let (first, second) = (random(1, 300), random(2, 300));
    let (mut cutter, mut found) = (winnowing.cutter(), Vec::new());
    cutter.push(&first, |block| found.push(block));
    assert_eq!(counted(&found), counted(&winnowing.blocks(&first)));
    found.clear();
    cutter.gap(1000);
    cutter.push(&second, |block| found.push(block));
    let moved = winnowing.blocks(&second).into_iter();
    let moved: Vec<Block> =
        moved.map(|block| Block { start: block.start + 1300, end: block.end + 1300, ..block }).collect();
    assert_eq!(counted(&found), counted(&moved));
    // An endless gap does no harm.
    cutter.gap(u64::MAX);
    cutter.gap(u64::MAX);
    found.clear();
    cutter.push(&second, |block| found.push(block));
    assert_eq!(digests(&found), digests(&moved));
}

#[test]
fn continued_run_is_reported_again_to_another_filter() {
    let winnowing = winnowing(8, 2, 4);
    let mut cutter = winnowing.cutter();
    let push = |cutter: &mut Cutter| {
        let mut found = Vec::new();
        cutter.push(&[0; 300], |block| found.push(block));
        digests(&found)
    };
    let first = push(&mut cutter);
    assert_eq!(first.len(), 2);
    assert!(push(&mut cutter).is_empty());
    cutter.forget_last();
    assert_eq!(push(&mut cutter), first);
}

#[test]
fn hashers_and_instances_have_different_boundaries_and_digests() {
    let content = random(9, 5000);
    let hashers = [Hasher::fast(0), Hasher::fast(1), Hasher::keyed([1; 16]), Hasher::keyed([2; 16])];
    let found: Vec<_> = hashers
        .map(|hasher| Winnowing::new(16, 2, 8, hasher).unwrap())
        .iter()
        .flat_map(|winnowing| boundaries(winnowing, &content))
        .collect();
    for (i, one) in found.iter().enumerate() {
        for other in &found[..i] {
            // 588 boundaries each, about 69 of which coincide by chance.
            assert!(one.intersection(other).count() < 130);
        }
    }
    // With windows of one position all instances cut everywhere, but all digests differ.
    let blocks = winnowing(1, 4, 8).blocks(&content);
    assert_eq!(blocks.len(), 4 * (5000 - 8));
    assert_eq!(digests(&blocks).len(), blocks.len());
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (window, instances, overlap) in [(0, 1, 0), (1025, 1, 0), (1, 0, 0), (1, 65, 0), (1, 1, 1025)] {
        let refused = Winnowing::new(window, instances, overlap, Hasher::default());
        assert!(
            matches!(refused, Err(Error::Filter(umbel::Error::Parameter { .. }))),
            "{window} {instances} {overlap}"
        );
    }
    let winnowing = winnowing(1024, 64, 1024);
    assert_eq!((winnowing.longest_block(), winnowing.needed()), (2048, 3071));
    assert!(winnowing.blocks(b"").is_empty());
    assert!(winnowing.blocks(b"short").is_empty());
}
