//! Signatures in streams: the findings are those of an exact search in the reassembled bytes, in
//! whatever order they arrive; and memory stays small.

use crate::common::{real_captures, tcp, udp};
use aho_corasick::{AhoCorasick, MatchKind};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use umbel::Digest;
use umbel_net::capture::streams::{Event, Limits, Streams};
use umbel_net::capture::{Link, Packet, Reader, Timestamp};
use umbel_net::signatures::{Finding, Scanner, Settings, StreamFinding, StreamSearch, Tail};

/// Returns the findings of an exact search: the first and the last byte of each, and its number.
fn exact(signatures: &AhoCorasick, data: &[u8]) -> Vec<(usize, usize, usize)> {
    let hits = signatures.find_overlapping_iter(data);
    hits.map(|hit| (hit.start(), hit.end() - 1, hit.pattern().as_usize())).collect()
}

fn automaton(scanner: &Scanner) -> AhoCorasick {
    let all = (0..scanner.len()).map(|number| scanner.signature(number).unwrap());
    AhoCorasick::builder().match_kind(MatchKind::Standard).build(all).unwrap()
}

/// Returns `count` bytes of an alphabet of this many letters, different for each seed.
fn letters(seed: u64, alphabet: u64, count: usize) -> Vec<u8> {
    (0..count as u64).map(|i| (Digest::from_hash(i).salted(seed).get() % alphabet) as u8).collect()
}

/// Searches frames, which are numbered from 1, to their end.
fn search(scanner: &Scanner, limits: Limits, frames: &[Vec<u8>]) -> Vec<StreamFinding> {
    let mut search = scanner.search();
    let mut streams = StreamSearch::new(&mut search, limits);
    let mut all = Vec::new();
    let mut found = |found| -> ControlFlow<Infallible> {
        all.push(found);
        ControlFlow::Continue(())
    };
    for (frame, number) in frames.iter().zip(1..) {
        let packet = Packet::from_frame(Link::ETHERNET, frame, Timestamp::from_secs(1), 0).unwrap();
        let _ = streams.push(&Packet { number, ..packet }, &mut found);
    }
    let _ = streams.finish(&mut found);
    assert_eq!(streams.kept(), 0);
    assert_eq!(search.stats().confirmed, all.len() as u64);
    all
}

fn segment(port: u16, seq: u32, flags: &str, payload: &[u8]) -> Vec<u8> {
    tcp([10, 0, 0, 1], [10, 0, 0, 2], (port, 80), seq, flags, payload)
}

/// Returns the stream (or none), packet and offset of each finding.
fn told(found: &[StreamFinding]) -> Vec<(Option<u64>, u64, u64)> {
    found.iter().map(|found| (found.stream, found.packet, found.finding.offset)).collect()
}

#[derive(Clone, Debug)]
struct Case {
    signatures: Vec<Vec<u8>>,
    texts: Vec<Vec<u8>>,
    /// The segments in the order in which they are sent: the text, and the range of its bytes.
    segments: Vec<(usize, usize, usize)>,
}

/// Generates texts that contain signatures, cut into segments that arrive out of order, more than
/// once or not at all.
fn case() -> impl Strategy<Value = Case> {
    let alphabet = prop_oneof![Just(2u64), Just(4), Just(256)];
    let length = prop_oneof![1usize..=8, 1usize..=40, 1usize..=300];
    let signatures = prop::collection::vec((length, any::<u64>()), 1..30);
    let sizes = prop::collection::vec(0usize..2500, 1..4);
    let steps = prop::collection::vec(prop_oneof![1usize..6, 1usize..400], 1..20);
    let again = prop::collection::vec(
        (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1usize..200),
        0..12,
    );
    let lost = prop_oneof![Just(0u64), Just(40)];
    (alphabet, signatures, sizes, steps, again, lost, 0u64..60, any::<u64>()).prop_map(
        |(alphabet, signatures, sizes, steps, again, lost, disorder, seed)| {
            let random = |number: u64| Digest::from_hash(number).salted(seed).get();
            let signatures: Vec<Vec<u8>> =
                signatures.into_iter().map(|(length, seed)| letters(seed, alphabet, length)).collect();
            let mut texts: Vec<Vec<u8>> =
                (0..).zip(&sizes).map(|(i, size)| letters(random(i), alphabet, *size)).collect();
            for (number, signature) in (0..).zip(&signatures) {
                let text = &mut texts[number as usize % sizes.len()];
                if let Some(last) = text.len().checked_sub(signature.len()) {
                    let start = random(1 << 20 | number) as usize % (last + 1);
                    text[start..start + signature.len()].copy_from_slice(signature);
                }
            }
            let mut keyed = Vec::new();
            for (text, bytes) in texts.iter().enumerate() {
                let (mut start, mut place) = (0, 0);
                while start < bytes.len() {
                    let end = bytes.len().min(start + steps[place % steps.len()]);
                    keyed.push((
                        place as u64 * 20 + random(start as u64) % (20 * disorder + 1),
                        (text, start, end),
                    ));
                    (start, place) = (end, place + 1);
                }
            }
            let covers = keyed.len();
            for (text, place, size) in again {
                let text = text.index(texts.len());
                if !texts[text].is_empty() {
                    let start = place.index(texts[text].len());
                    let end = texts[text].len().min(start + size);
                    keyed.push((random(keyed.len() as u64) % (covers as u64 * 20), (text, start, end)));
                }
            }
            keyed.sort_by_key(|(key, _)| *key);
            let kept = (0..).zip(keyed).filter(|(i, _)| lost == 0 || random(2 << 20 | i) % lost != 0);
            Case { signatures, texts, segments: kept.map(|(_, (_, segment))| segment).collect() }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, rng_seed: RngSeed::Fixed(11), failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Compares interleaved pieces of several texts with each text as a whole. Findings come with
    /// the piece in which they end.
    #[test]
    fn interleaved_pieces_have_the_findings_of_the_whole(case in case(), gates: bool, rate in prop_oneof![Just(0.001), Just(0.3)]) {
        let scanner = Scanner::with(&case.signatures, &Settings { gates, rate, seed: 1 }).unwrap();
        let automaton = automaton(&scanner);
        let mut search = scanner.search();
        let mut tails = vec![Tail::new_at(1000); case.texts.len()];
        let mut done = vec![0; case.texts.len()];
        let mut found = vec![Vec::new(); case.texts.len()];
        for (text, start, end) in case.segments {
            let size = (end - start).min(case.texts[text].len() - done[text]);
            let piece = &case.texts[text][done[text]..done[text] + size];
            let _: ControlFlow<Infallible> = search.follow(&mut tails[text], piece, |finding| {
                let length = scanner.signature(finding.signature).unwrap().len();
                let start = finding.offset as usize - 1000;
                assert!((done[text]..done[text] + size).contains(&(start + length - 1)), "it ends in the piece");
                found[text].push((start, start + length - 1, finding.signature));
                ControlFlow::Continue(())
            });
            done[text] += size;
            prop_assert!(tails[text].len() < scanner.longest().max(8));
        }
        for (text, mut found) in found.into_iter().enumerate() {
            let mut expected = exact(&automaton, &case.texts[text][..done[text]]);
            expected.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
        prop_assert_eq!(search.stats().bytes, done.iter().sum::<usize>() as u64);
    }

    /// Compares with a model that records for each byte which packet brought it first.
    #[test]
    fn reassembled_streams_are_searched_exactly(case in case()) {
        let scanner = Scanner::new(&case.signatures).unwrap();
        let automaton = automaton(&scanner);
        let mut frames: Vec<_> = (0..case.texts.len() as u16).map(|port| segment(port, 99, "S", b"")).collect();
        let mut brought: Vec<Vec<Option<u64>>> = case.texts.iter().map(|text| vec![None; text.len()]).collect();
        let mut expected = Vec::new();
        for (text, start, end) in case.segments {
            let payload = &case.texts[text][start..end];
            frames.push(segment(text as u16, 100 + start as u32, "", payload));
            let number = frames.len() as u64;
            let repeats = brought[text][start..end].iter().any(Option::is_some);
            brought[text][start..end].iter_mut().for_each(|place| {
                place.get_or_insert(number);
            });
            if repeats {
                let hits = exact(&automaton, payload);
                expected.extend(hits.into_iter().map(|(first, _, signature)| (None, number, first as u64, signature)));
            }
        }
        for (text, brought) in brought.iter().enumerate() {
            let mut start = 0;
            for run in brought.chunk_by(|a, b| a.is_some() == b.is_some()) {
                if run[0].is_some() {
                    let hits = exact(&automaton, &case.texts[text][start..start + run.len()]);
                    expected.extend(hits.into_iter().map(|(first, last, signature)| {
                        (Some(text as u64), run[last].unwrap(), (start + first) as u64, signature)
                    }));
                }
                start += run.len();
            }
        }
        let found = search(&scanner, Limits::default(), &frames);
        let mut found: Vec<_> = found
            .into_iter()
            .map(|StreamFinding { finding: Finding { offset, signature }, packet, stream, .. }| (stream, packet, offset, signature))
            .collect();
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn signature_is_reported_when_its_last_byte_is_delivered() {
    let scanner = Scanner::new(["evil", "a much longer signature that is never there"]).unwrap();
    let mut search = scanner.search();
    let mut streams = StreamSearch::new(&mut search, Limits::default());
    let mut after = Vec::new();
    let payloads = [(0, "an e"), (5, "il"), (4, "v"), (7, " thing")];
    for ((start, payload), number) in payloads.into_iter().zip(1..) {
        let frame = segment(1, start, "", payload.as_bytes());
        let packet = Packet::from_frame(Link::ETHERNET, &frame, Timestamp::from_secs(1), 0).unwrap();
        let _: ControlFlow<Infallible> = streams.push(&Packet { number, ..packet }, |found| {
            after.push((number, found.packet, found.finding.offset, found.flow.ports));
            ControlFlow::Continue(())
        });
    }
    // It is reported after the third packet, and ends in the second.
    assert_eq!(after, [(3, 2, 3, (1, 80))]);
}

#[test]
fn signatures_are_found_on_both_sides_of_a_gap_but_not_across() {
    let scanner = Scanner::new(["evil"]).unwrap();
    let frames = [segment(1, 0, "", b"evil ev"), segment(1, 8, "", b"il evil")];
    let found = search(&scanner, Limits::default(), &frames);
    assert_eq!(told(&found), [(Some(0), 1, 0), (Some(0), 2, 11)]);
    // The same bytes without the gap.
    let frames = [segment(1, 0, "", b"evil ev"), segment(1, 7, "", b"il evil")];
    assert_eq!(
        told(&search(&scanner, Limits::default(), &frames)),
        [(Some(0), 1, 0), (Some(0), 2, 5), (Some(0), 2, 10)]
    );
}

#[test]
fn streams_and_datagrams_are_searched_separately() {
    let scanner = Scanner::new(["evil"]).unwrap();
    let datagram = |payload: &[u8]| udp([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), (1, 80), payload);
    let frames = [
        segment(1, 0, "", b"ev"),
        segment(2, 0, "", b"il"),
        datagram(b"ev"),
        datagram(b"il evil"),
        // The other direction is another stream.
        tcp([10, 0, 0, 2], [10, 0, 0, 1], (80, 1), 2, "", b"il"),
        segment(1, 2, "", b"il"),
    ];
    let found = search(&scanner, Limits::default(), &frames);
    assert_eq!(told(&found), [(None, 4, 3), (Some(0), 6, 0)]);
}

#[test]
fn overlaps_and_false_ends_do_not_hide_a_whole_signature() {
    let scanner = Scanner::new(["evil"]).unwrap();
    // Bytes sent in place of delivered ones are searched as a packet.
    let frames = [segment(1, 0, "", b"good"), segment(1, 0, "", b"evil"), segment(1, 0, "", b"good")];
    assert_eq!(told(&search(&scanner, Limits::default(), &frames)), [(None, 2, 0)]);
    // Bytes sent in place of waiting ones, and only in part.
    let frames = [segment(1, 0, "", b"a"), segment(1, 5, "", b"good"), segment(1, 4, "", b"evils")];
    assert_eq!(told(&search(&scanner, Limits::default(), &frames)), [(None, 3, 0)]);
    // Bytes before the first byte of a stream that was already running are another stream.
    let frames = [segment(1, 50, "", b"good"), segment(1, 40, "", b"evil")];
    assert_eq!(told(&search(&scanner, Limits::default(), &frames)), [(Some(1), 2, 0)]);
    // A false end.
    let frames = [segment(1, 0, "F", b"ev"), segment(1, 2, "", b"il")];
    assert_eq!(told(&search(&scanner, Limits::default(), &frames)), [(Some(0), 2, 0)]);
    // Bytes too late for a skipped gap are another stream, too.
    let limits = Limits { waiting: 0, ..Limits::default() };
    let frames = [segment(1, 0, "", b"a"), segment(1, 5, "", b"good"), segment(1, 1, "", b"evil")];
    assert_eq!(told(&search(&scanner, limits, &frames)), [(Some(1), 3, 0)]);
}

#[test]
fn little_is_kept_of_streams_and_nothing_after_they_end() {
    let scanner = Scanner::new([letters(1, 256, 300), letters(2, 256, 60_000), b"evil".to_vec()]).unwrap();
    let mut search = scanner.search();
    let limits = Limits { streams: 50, ..Limits::default() };
    let mut streams = StreamSearch::new(&mut search, limits);
    let mut most = 0;
    for at in 0..20_000u32 {
        let (flags, start) = (["", "F", "R", ""][at as usize % 4], letters(2, 256, 40));
        let payload = if at % 3 == 0 { start } else { letters(at.into(), 256, 1400) };
        let frame = segment((at % 5000) as u16, at, flags, &payload);
        let packet = Packet::from_frame(Link::ETHERNET, &frame, Timestamp::from_secs(1), 0).unwrap();
        let _ = streams.push(&packet, |_| ControlFlow::Break(()));
        most = most.max(streams.kept());
    }
    // Of up to 164 tails, a third has 40 bytes; of the others, hardly any has more than the last
    // seven bytes.
    assert!((500..164 * 40).contains(&most), "{most}");
    // A signature that has begun is kept as far as it has arrived.
    let mut search = scanner.search();
    let mut streams = StreamSearch::new(&mut search, limits);
    let long = letters(2, 256, 60_000);
    let mut found = 0;
    for (piece, number) in long.chunks(1000).zip(0u32..) {
        let frame = segment(1, 1000 * number, "", piece);
        let packet = Packet::from_frame(Link::ETHERNET, &frame, Timestamp::from_secs(1), 0).unwrap();
        let _: ControlFlow<()> = streams.push(&packet, |_| {
            found += 1;
            ControlFlow::Continue(())
        });
        let expected =
            if number == 59 { 0..=7 } else { 1000 * (number as usize + 1)..=1000 * (number as usize + 1) };
        assert!(expected.contains(&streams.kept()), "{number}: {}", streams.kept());
    }
    assert_eq!(found, 1);
}

#[test]
fn findings_in_real_connections_are_those_of_an_exact_search() {
    let signatures = ["HTTP/1.1", "Host: ", "\r\n\r\n", "\r\n", "Content-Length", "</html>", "e"];
    let scanner = Scanner::new(signatures).unwrap();
    let automaton = automaton(&scanner);
    let (mut total, mut across) = (0, 0);
    for path in real_captures() {
        let mut reader = Reader::open(&path).unwrap();
        let mut machine = scanner.search();
        let mut streams = StreamSearch::new(&mut machine, Limits::default());
        let mut plain = Streams::default();
        let (mut found, mut runs) = (Vec::new(), BTreeMap::<u64, Vec<(u64, Vec<u8>)>>::new());
        let hear = |found: &mut Vec<_>, new: StreamFinding| -> ControlFlow<Infallible> {
            if let Some(stream) = new.stream {
                found.push((stream, new.finding.offset, new.finding.signature));
            }
            ControlFlow::Continue(())
        };
        let mut keep = |piece: umbel_net::capture::streams::Piece<'_>| {
            let runs = runs.entry(piece.stream).or_default();
            match piece.event {
                Event::Bytes(bytes) => match runs.last_mut() {
                    Some((start, run)) if *start + run.len() as u64 == piece.offset => run.extend(bytes),
                    _ => runs.push((piece.offset, bytes.to_vec())),
                },
                _ => across += 1,
            }
        };
        while let Some(packet) = reader.next().unwrap() {
            let _ = streams.push(&packet, |new| hear(&mut found, new));
            plain.push(&packet, &mut keep);
        }
        let _ = streams.finish(|new| hear(&mut found, new));
        plain.finish(&mut keep);
        let mut expected: Vec<_> = runs
            .iter()
            .flat_map(|(stream, runs)| runs.iter().map(move |run| (*stream, run)))
            .flat_map(|(stream, (start, run))| {
                let hits = exact(&automaton, run).into_iter();
                hits.map(move |(first, _, signature)| (stream, start + first as u64, signature))
            })
            .collect();
        expected.sort_unstable();
        found.sort_unstable();
        total += found.len();
        assert_eq!(found, expected, "{path:?}");
    }
    assert!(total > 10_000 && across > 1000, "{total} findings, {across} ends and gaps");
}
