//! The promises of payload filters: the worked examples are reproduced, and no excerpt of a
//! recorded payload is missed.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use umbel::{Bloom, Standard};
use umbel_net::Error;
use umbel_net::payload::{Hit, Method, PayloadFilter, Tail};

const METHODS: [Method; 2] = [Method::BlockBased, Method::Hierarchical];

/// Returns a filter with enough room to rule out false positives.
fn roomy(size: usize, method: Method) -> PayloadFilter<Bloom<Standard>> {
    PayloadFilter::new(Bloom::with_capacity(10_000, 1e-9).unwrap(), size, method).unwrap()
}

fn places(hits: &[Hit]) -> Vec<(usize, u64)> {
    hits.iter().map(|hit| (hit.prefix, hit.block)).collect()
}

#[test]
fn worked_example_has_one_true_hit_and_one_boundary_false_hit() {
    let mut seen = roomy(3, Method::BlockBased);
    seen.record(b"ABRACADABRACADARACABA").unwrap();
    assert_eq!(seen.longest(), 7);
    let hits = seen.find(b"BRACADAB").unwrap();
    assert_eq!(places(&hits), [(1, 3), (2, 1)]);
    assert_eq!((hits[0].position, hits[0].blocks, hits[0].suffix), (8, 2, 1));
    assert_eq!((hits[1].position, hits[1].blocks, hits[1].suffix), (1, 2, 0));
    // The first block of the wrong alignment is also block 5 of the payload, but the second does
    // not follow there.
    assert_eq!(places(&seen.find_aligned(b"RAC", 0)), [(0, 3), (0, 5)]);
    assert_eq!(places(&seen.find_aligned(b"RACADA", 0)), [(0, 3)]);
    assert_eq!(places(&seen.find_aligned(b"BRACAD", 0)), []);
}

/// Returns the absent strings of two blocks that are found after S0 S1 S2 S3 and S0 S2 S3 S1, by
/// the digits of their blocks.
fn recombined(method: Method) -> Vec<String> {
    let packets = ["0123", "0231"];
    let mut seen = roomy(1, method);
    packets.iter().for_each(|packet| seen.record(packet.as_bytes()).unwrap());
    let strings = (0..16).map(|number| format!("{}{}", number / 4, number % 4));
    let absent = strings.filter(|string| packets.iter().all(|packet| !packet.contains(string.as_str())));
    absent.filter(|string| !seen.find(string.as_bytes()).unwrap().is_empty()).collect()
}

#[test]
fn hierarchy_finds_fewer_recombined_blocks_of_two_packets() {
    assert_eq!(recombined(Method::BlockBased), ["13", "21", "22", "33"]);
    assert_eq!(recombined(Method::Hierarchical), ["13", "22"]);
    let mut seen = roomy(1, Method::BlockBased);
    ["01234", "02314"].iter().for_each(|packet| seen.record(packet.as_bytes()).unwrap());
    assert_eq!(places(&seen.find(b"21").unwrap()), [(0, 2)]);
}

#[test]
fn end_of_a_payload_is_recognized_if_it_is_recorded() {
    for (tail, told) in [(Tail::Dropped, false), (Tail::Recorded, true)] {
        let mut seen = roomy(4, Method::Hierarchical).with_tail(tail);
        seen.record(b"one two three four").unwrap();
        let end = |excerpt: &[u8]| seen.find_aligned(excerpt, 0).first().map(|hit| (hit.position, hit.tail));
        assert_eq!(end(b"three four"), Some((8, told)));
        assert_eq!(end(b"three fou"), Some((8, false)), "it ends elsewhere");
    }
}

#[test]
fn short_excerpts_and_empty_blocks_are_refused() {
    let seen = roomy(4, Method::BlockBased);
    let refused = seen.find(b"sixsix").unwrap_err();
    assert!(refused.to_string().contains("at least 7 bytes"), "{refused}");
    assert!(seen.find(b"sevense").unwrap().is_empty(), "nothing was recorded");
    let filter = Bloom::<Standard>::with_capacity(10, 0.1).unwrap();
    assert!(matches!(
        PayloadFilter::new(filter, 0, Method::BlockBased),
        Err(Error::Filter(umbel::Error::Parameter { .. }))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, rng_seed: RngSeed::Fixed(8), failure_persistence: None, ..Default::default() })]

    /// Uses few byte values, so that blocks repeat within and among payloads.
    #[test]
    fn every_excerpt_is_found_in_every_alignment(
        payloads in prop::collection::vec(prop::collection::vec(0u8..3, 0..200), 1..8),
        size in 1usize..12,
        tail: bool,
        window in prop::option::of(1u32..6),
    ) {
        for method in METHODS {
            let tail = if tail { Tail::Recorded } else { Tail::Dropped };
            let filter = Bloom::<Standard>::with_capacity(500, 0.01).unwrap();
            let mut seen = PayloadFilter::new(filter, size, method).unwrap().with_tail(tail);
            let period = window.map(|window| (size as u64) << window);
            if let Some(window) = window {
                seen = seen.with_window(1 << window).unwrap();
            }
            payloads.iter().for_each(|payload| seen.record(payload).unwrap());
            for payload in &payloads {
                for start in 0..payload.len().saturating_sub(2 * size - 1) {
                    for end in [start + 2 * size - 1, (start + 5 * size).min(payload.len()), payload.len()] {
                        let hits = seen.find(&payload[start..end]).unwrap();
                        let same = |position| period.map_or(position, |period| position % period);
                        let found = hits.iter().any(|hit| same(hit.position) == same(start as u64));
                        prop_assert!(found, "{method:?}, {start}..{end} of {}, blocks of {size}", payload.len());
                    }
                }
            }
        }
    }
}
