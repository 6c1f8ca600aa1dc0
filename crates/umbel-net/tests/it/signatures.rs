//! The promises of the scanner: always the findings of an exact search, and the costs predicted by
//! theory.

use crate::common::real_captures;
use aho_corasick::{AhoCorasick, MatchKind};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use umbel::{Blocked, Bloom, Digest};
use umbel_net::capture::Reader;
use umbel_net::signatures::{
    Circuit, Finding, MAX_LENGTH, Scanner, Settings, chance_of_any, lengths, vain_probes,
};

/// Returns the signatures without duplicates, computed naively.
fn distinct(signatures: &[Vec<u8>]) -> Vec<&[u8]> {
    let mut seen = std::collections::HashSet::new();
    signatures.iter().map(Vec::as_slice).filter(|signature| seen.insert(*signature)).collect()
}

/// Returns the findings of an exact search.
fn exact(signatures: &[Vec<u8>], data: &[u8]) -> Vec<Finding> {
    let distinct = distinct(signatures);
    let automaton = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&distinct).unwrap();
    let mut found: Vec<Finding> = automaton
        .find_overlapping_iter(data)
        .map(|hit| Finding { offset: hit.start() as u64, signature: hit.pattern().as_usize() })
        .collect();
    found.sort_by_key(|finding| (finding.offset, distinct[finding.signature].len()));
    found
}

/// Returns the scanner's findings in pieces of these sizes, which are used in a cycle.
fn in_pieces(scanner: &Scanner, data: &[u8], sizes: &[usize]) -> Vec<Finding> {
    let mut search = scanner.search();
    let mut findings = Vec::new();
    let mut rest = data;
    let mut found = |finding| -> ControlFlow<Infallible> {
        findings.push(finding);
        ControlFlow::Continue(())
    };
    for size in sizes.iter().cycle() {
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        let _ = search.feed(piece, &mut found);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    let _ = search.finish(&mut found);
    assert_eq!(search.stats().bytes, data.len() as u64);
    assert_eq!(search.stats().confirmed, findings.len() as u64);
    findings
}

/// Returns `count` bytes of an alphabet of this many letters, different for each seed.
fn letters(seed: u64, alphabet: u64, count: usize) -> Vec<u8> {
    (0..count as u64).map(|i| (Digest::from_hash(i).salted(seed).get() % alphabet) as u8).collect()
}

/// Generates signatures, and data that contains some of them: from one letter, a small alphabet, or
/// all bytes.
fn case() -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<u8>)> {
    let alphabet = prop_oneof![Just(1u64), Just(2), Just(4), Just(256)];
    let length = prop_oneof![1usize..=3, 1usize..=20, 1usize..=300, Just(8), Just(16)];
    let pieces = prop::collection::vec((length, any::<u64>(), 0u8..4), 1..60);
    (alphabet, pieces, any::<u64>(), 0usize..6000).prop_map(|(alphabet, pieces, seed, size)| {
        let mut data = letters(seed, alphabet, size);
        let mut signatures: Vec<Vec<u8>> = Vec::new();
        for (length, number, from) in pieces {
            let at = |count: usize| (number >> 8) as usize % count.max(1);
            signatures.push(match from {
                // Cut from the data, where it is then found.
                0 if data.len() > length => data[at(data.len() - length)..][..length].to_vec(),
                // The start or the end of another signature, or all of it again.
                1 if !signatures.is_empty() => {
                    let other = &signatures[at(signatures.len())];
                    let part = length.min(other.len());
                    if number % 2 == 0 {
                        other[..part].to_vec()
                    } else {
                        other[other.len() - part..].to_vec()
                    }
                }
                _ => letters(number, alphabet, length),
            });
            // Planted in the data, sometimes at the very end.
            if from == 2 {
                let signature = &signatures[signatures.len() - 1];
                match data.len().checked_sub(length) {
                    Some(last) if last > 0 => {
                        let start = if number % 8 == 0 { last } else { at(last) };
                        data[start..start + length].copy_from_slice(signature);
                    }
                    _ => data.extend_from_slice(signature),
                }
            }
        }
        (signatures, data)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400, rng_seed: RngSeed::Fixed(9), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn findings_are_those_of_an_exact_search(
        (signatures, data) in case(),
        rate in prop_oneof![Just(0.001), Just(0.3)],
        gates: bool,
        seed: u64,
        sizes in prop::collection::vec(1usize..5000, 1..4),
    ) {
        let scanner = Scanner::with(&signatures, &Settings { rate, gates, seed }).unwrap();
        let expected = exact(&signatures, &data);
        prop_assert_eq!(&scanner.find(&data), &expected);
        prop_assert_eq!(&in_pieces(&scanner, &data, &sizes), &expected);
    }
}

#[test]
fn planted_signatures_of_all_lengths_are_found() {
    let signatures: Vec<Vec<u8>> =
        (0..30_000).map(|number| letters(number, 256, 1 + number as usize % 300)).collect();
    let mut data = letters(1 << 40, 256, 1 << 20);
    for number in (0..signatures.len()).step_by(7) {
        let start = (number * 7919) % (data.len() - 300);
        data[start..start + signatures[number].len()].copy_from_slice(&signatures[number]);
    }
    let scanner = Scanner::new(&signatures).unwrap();
    let found = scanner.find(&data);
    assert_eq!(found, exact(&signatures, &data));
    let long = found.iter().filter(|finding| scanner.signature(finding.signature).unwrap().len() > 3);
    assert!(long.count() > 1000, "not only the short ones that occur everywhere");
    assert_eq!(scanner.lengths().collect::<Vec<_>>(), (1..=300).collect::<Vec<_>>());
}

#[test]
fn pieces_of_one_byte_have_the_findings_of_the_whole() {
    let signatures = vec![b"aa".to_vec(), b"a".to_vec(), b"aabaab".to_vec(), b"abaabaaba".to_vec()];
    let data = b"aabaabaabaaba".repeat(20);
    let scanner = Scanner::new(&signatures).unwrap();
    let expected = exact(&signatures, &data);
    assert!(expected.len() > 300, "{}", expected.len());
    assert_eq!(in_pieces(&scanner, &data, &[1]), expected);
    // The same search is ready for other data, in pieces or whole.
    let mut search = scanner.search();
    for _ in 0..2 {
        let mut count = 0;
        let mut found = |_| -> ControlFlow<Infallible> {
            count += 1;
            ControlFlow::Continue(())
        };
        let _ = search.feed(&data, &mut found);
        let _ = search.finish(&mut found);
        let _ = search.whole(&data, &mut found);
        assert_eq!(count, 2 * expected.len());
    }
}

#[test]
fn search_stops_when_the_callback_breaks() {
    let scanner = Scanner::new(["a"]).unwrap();
    let mut told = 0;
    let flow = scanner.search().whole(&[b'a'; 10_000], |finding| {
        told += 1;
        if finding.offset == 4_321 { ControlFlow::Break("enough") } else { ControlFlow::Continue(()) }
    });
    assert_eq!((flow, told), (ControlFlow::Break("enough"), 4_322));
}

#[test]
fn signatures_of_1_to_65535_bytes_are_accepted_and_others_refused() {
    let longest = vec![0; MAX_LENGTH];
    let scanner = Scanner::new([&longest[..], &[0]]).unwrap();
    assert_eq!((scanner.longest(), scanner.len()), (MAX_LENGTH, 2));
    let data = vec![0; MAX_LENGTH + 2];
    let found = scanner.find(&data);
    assert_eq!(found.iter().filter(|finding| finding.signature == 0).count(), 3);
    assert_eq!(found.len(), data.len() + 3);
    for wrong in [&[][..], &vec![0; MAX_LENGTH + 1]] {
        let refused = Scanner::new([&b"fine"[..], wrong]).unwrap_err().to_string();
        assert!(refused.contains("1 to 65535 bytes"), "{refused}");
    }
    let none = Scanner::new::<&[u8]>([]).unwrap();
    assert!(none.is_empty() && none.find(b"anything").is_empty() && none.signature(0).is_none());
}

#[test]
fn signatures_are_numbered_in_order_without_duplicates() {
    let scanner = Scanner::new(["long one", "b", "long one", "a", "b"]).unwrap();
    let all: Vec<_> = (0..scanner.len()).map(|number| scanner.signature(number).unwrap()).collect();
    assert_eq!(all, [&b"long one"[..], b"b", b"a"]);
    let by_bytes: HashMap<_, _> = all.iter().zip(0..).collect();
    for finding in scanner.find(b"a long one b") {
        let bytes = scanner.signature(finding.signature).unwrap();
        assert_eq!(by_bytes[&bytes], finding.signature);
        assert!(b"a long one b"[finding.offset as usize..].starts_with(bytes));
    }
}

/// Returns signatures of these lengths, and random data that does not contain them.
fn absent(build: u64, each: u64, lengths: std::ops::Range<usize>) -> (Vec<Vec<u8>>, Vec<u8>) {
    let signatures = lengths.flat_map(|length| {
        (0..each).map(move |number| letters(build << 40 | (length as u64) << 32 | number, 256, length))
    });
    (signatures.collect(), letters(build << 40 | 1 << 39, 256, 100_000))
}

#[test]
fn lookups_in_vain_without_gates_match_the_theory() {
    let rate = 0.01;
    // The size of a filter is rounded up, so it is a little better than required.
    let filter = Bloom::<Blocked>::with_capacity(10_000, rate).unwrap();
    let rate_of_filter = filter.predicted_rate(10_000).unwrap();
    let (mut bytes, mut vain) = (0, 0);
    for build in 0..4 {
        let (signatures, data) = absent(build, 10_000, 20..30);
        let scanner = Scanner::with(&signatures, &Settings { rate, gates: false, seed: build }).unwrap();
        let mut search = scanner.search();
        let _ = search.whole(&data, |_| ControlFlow::Break(()));
        let stats = search.stats();
        assert_eq!(stats.confirmed, 0);
        // At the last places, not all lengths fit.
        assert_eq!(stats.probes, (20..30).map(|length| stats.bytes - length + 1).sum());
        bytes += stats.bytes;
        vain += stats.candidates;
    }
    let expected = vain_probes(10, rate_of_filter) * bytes as f64;
    // The rate of a filter is within 2 % of its prediction; add four standard deviations of the
    // count.
    let tolerance = 0.02 * expected + 4.0 * expected.sqrt();
    assert!((vain as f64 - expected).abs() < tolerance, "{vain} instead of {expected}, {rate_of_filter}");
}

#[test]
fn gates_avoid_nearly_all_lookups_by_length() {
    let (signatures, data) = absent(9, 2_000, 8..65);
    let scanner = Scanner::new(&signatures).unwrap();
    let mut search = scanner.search();
    let _ = search.whole(&data, |_| ControlFlow::Break(()));
    let stats = search.stats();
    let expected = stats.bytes as f64 * 0.001;
    assert!((stats.passed as f64) < 1.1 * expected + 4.0 * expected.sqrt(), "{stats:?}");
    // At a place that passed by mistake, the eight lengths up to 15 are tested, and hardly ever
    // more.
    assert!(stats.probes < 9 * stats.passed, "{stats:?}");
    let memory = scanner.memory();
    assert!(memory.gates > memory.filters && memory.filters > 57 * 2_000 && memory.exact > 57 * 2_000 * 36);
}

#[test]
fn throughput_matches_the_paper_with_its_slips_corrected() {
    assert_eq!(vain_probes(10, 1e-3), 0.01);
    assert!((chance_of_any(10, 1e-3) - 0.00996).abs() < 5e-6);
    assert_eq!((lengths(3, 26), lengths(8, 8), lengths(9, 8)), (24, 1, 0));
    let paper = Circuit { engines: 4, lengths: 24, clock: 100e6, ticks: 20.0, matches: 0.001 };
    for rate in [0.0, 1e-6, 1e-4, 0.01] {
        let expected = 3.2 / (1920.0 * rate + 1.019);
        assert!((paper.throughput(rate) / 1e9 - expected).abs() < 1e-9);
    }
    // An engine without lookups in the exact table processes a byte in each tick.
    let one = Circuit { engines: 1, lengths: 1, matches: 0.0, ..paper };
    assert_eq!(one.throughput(0.0), 8.0 * 100e6);
}

/// Returns signatures of 1 to 300 bytes: a third cut from these captures, the others random.
fn rules_for(payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let cut = |number: u64| {
        let random = Digest::from_hash(number).salted(1).get();
        let payload = &payloads[random as usize % payloads.len()];
        let start = (random >> 20) as usize % payload.len();
        let length = 1 + (random >> 40) as usize % 300;
        payload[start..payload.len().min(start + length)].to_vec()
    };
    (0..3000)
        .map(
            |number| {
                if number % 3 == 0 { cut(number) } else { letters(number, 256, 4 + number as usize % 297) }
            },
        )
        .collect()
}

#[test]
fn findings_in_real_captures_are_those_of_an_exact_search() {
    let mut payloads = Vec::new();
    for path in real_captures() {
        let mut reader = Reader::open(&path).unwrap();
        while let Some(packet) = reader.next().unwrap() {
            if !packet.payload.is_empty() {
                payloads.push(packet.payload.to_vec());
            }
        }
    }
    let signatures = rules_for(&payloads);
    let distinct = distinct(&signatures);
    let scanner = Scanner::new(&signatures).unwrap();
    let automaton = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&distinct).unwrap();
    let mut total = 0;
    for payload in &payloads {
        let mut expected: Vec<_> = automaton
            .find_overlapping_iter(payload)
            .map(|hit| Finding { offset: hit.start() as u64, signature: hit.pattern().as_usize() })
            .collect();
        let mut found = scanner.find(payload);
        expected.sort();
        found.sort();
        total += found.len();
        assert_eq!(found, expected);
    }
    assert!(payloads.len() > 10_000 && total > 100_000, "{} payloads, {total} findings", payloads.len());
}
