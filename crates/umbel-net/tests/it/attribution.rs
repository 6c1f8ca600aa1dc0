//! Attribution: pairs that carried an excerpt are found, also after a restart; others are reported
//! as rarely as predicted; and no trouble with captures, clocks or files loses records.

use crate::common::{real_captures, tcp, udp};
use proptest::prelude::*;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use umbel_net::attribution::{Epoch, Finding, Method, Pair, Recorder, Settings, Store, store};
use umbel_net::capture::{Link, Packet, Reader, Timestamp};

/// Returns pseudorandom bytes.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let hasher = umbel::Hasher::fast(seed);
    let words = (0..length.div_ceil(8) as u64)
        .flat_map(|i| hasher.digest_bytes(&i.to_le_bytes()).get().to_le_bytes());
    words.take(length).collect()
}

fn host(number: u32) -> IpAddr {
    Ipv4Addr::from(0x0a00_0000 + number).into()
}

/// A packet and its time.
type Frame = (Timestamp, Vec<u8>);

fn datagram(millis: u64, source: u32, destination: u32, payload: &[u8]) -> Frame {
    (Timestamp::from_nanos(millis * 1_000_000), udp(host(source), host(destination), (1, 2), payload))
}

/// Records packets, and returns the epochs after a restart.
fn record(settings: Settings, frames: &[Frame]) -> Vec<Epoch> {
    let mut recorder = Recorder::new(settings, 7).expect("valid settings");
    let mut epochs = Vec::new();
    for (time, frame) in frames {
        let packet = Packet::from_frame(Link::ETHERNET, frame, *time, 0).expect("a packet");
        epochs.extend(recorder.record(&packet).expect("room"));
    }
    epochs.extend(recorder.finish().expect("room"));
    let restarted = |epoch: &Epoch| Epoch::from_bytes(&epoch.to_bytes().expect("bytes")).expect("an epoch");
    epochs.iter().map(restarted).collect()
}

fn stored(epochs: &[Epoch]) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::create(folder.path()).expect("a store");
    epochs.iter().for_each(|epoch| {
        store.add(epoch).expect("room");
    });
    (folder, Store::open(store_path(&store, epochs)).expect("a store"))
}

fn store_path(store: &Store, epochs: &[Epoch]) -> std::path::PathBuf {
    let paths = store.epochs().expect("a folder");
    assert_eq!(paths.len(), epochs.len());
    paths.first().and_then(|path| path.parent()).expect("an epoch").to_owned()
}

/// Returns all findings of a store.
fn findings(store: &Store, excerpt: &[u8]) -> Vec<Finding> {
    let answer = store.find(excerpt, ..).expect("an answer");
    assert!(answer.unread.is_empty());
    answer.searched.into_iter().flat_map(|searched| searched.found.findings).collect()
}

fn names(findings: &[Finding], source: u32, destination: u32) -> bool {
    findings.iter().any(|finding| finding.listed.pair == Pair::new(host(source), host(destination)))
}

fn methods() -> impl Strategy<Value = Method> {
    proptest::sample::select(Method::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_excerpt_of_a_payload_is_found_in_every_alignment(
        method in methods(),
        half in 2usize..20,
        length in 100usize..3000,
        from in 0usize..3000,
        extra in 0usize..200,
        streams: bool,
    ) {
        let block = 2 * half;
        let settings = Settings { block, streams, ..Settings::for_method(method) };
        let payload = bytes(length as u64 | 1 << 50, length);
        let mut frames: Vec<Frame> = (0..20).map(|i| datagram(i, i as u32, 99, &bytes(i, 300))).collect();
        frames.push(datagram(20, 50, 51, &payload));
        let epochs = record(settings, &frames);
        let needed = epochs[0].needed();
        let from = from % (length - needed + 1);
        let excerpt = &payload[from..length.min(from + needed + extra)];
        let found = epochs[0].find(excerpt).expect("it is long enough").findings;
        let cycle = 64 * block as u64;
        let is_there = |finding: &&Finding| finding.listed.pair == Pair::new(host(50), host(51));
        let finding = found.iter().find(is_there).expect("the pair that carried it");
        // With few blocks, it may also match elsewhere by chance.
        prop_assert!(finding.places > 1 || finding.position().is_none_or(|at| at == from as u64 % cycle));
    }

    #[test]
    fn stream_is_found_however_it_is_cut_and_wherever_epochs_end(
        method in methods(),
        text in 400usize..4000,
        cuts in proptest::collection::vec(1usize..90, 60),
        swaps in proptest::collection::vec((0usize..1000, 0usize..3), 20),
        repeats in proptest::collection::vec(0usize..1000, 5),
        from in 0usize..4000,
        extra in 0usize..300,
        full in prop_oneof![Just(1u64 << 10), Just(1 << 26)],
        slow: bool,
    ) {
        let block = 16;
        let text = bytes(1 << 50, text);
        let mut segments = Vec::new();
        let mut at = 0;
        for cut in cuts.iter().cycle() {
            let end = text.len().min(at + cut);
            segments.push((1 + at as u32, text[at..end].to_vec()));
            at = end;
            if at == text.len() {
                break;
            }
        }
        for (place, distance) in swaps {
            let place = place % segments.len();
            let other = (place + distance).min(segments.len() - 1);
            segments.swap(place, other);
        }
        for place in repeats {
            let again = segments[place % segments.len()].clone();
            segments.push(again);
        }
        // The SYN shows where the stream begins.
        let mut frames = vec![(Timestamp::from_secs(1), tcp([10, 0, 0, 1], [10, 0, 0, 2], (5, 80), 0, "S", b""))];
        let pace = if slow { 7_000 } else { 1 };
        for (i, (seq, payload)) in segments.iter().enumerate() {
            let time = Timestamp::from_nanos(2_000_000_000 + i as u64 * pace * 1_000_000);
            frames.push((time, tcp([10, 0, 0, 1], [10, 0, 0, 2], (5, 80), *seq, "", payload)));
            // Other traffic makes epochs end.
            frames.push((time, udp(host(9), host(8), (1, 2), &bytes(i as u64, 40))));
        }
        let epoch = slow.then_some(Duration::from_secs(10));
        let settings = Settings { block, full, epoch, streams: true, ..Settings::for_method(method) };
        let epochs = record(settings, &frames);
        let (_folder, store) = stored(&epochs);
        let needed = epochs[0].needed();
        let from = from % (text.len() - needed + 1);
        let excerpt = &text[from..text.len().min(from + needed + extra)];
        prop_assert!(names(&findings(&store, excerpt), 1, 2), "{} epochs", epochs.len());
    }
}

#[test]
fn text_in_small_packets_is_found_only_if_streams_are_reassembled() {
    let text = bytes(3, 2000);
    let mut frames = vec![(Timestamp::from_secs(1), tcp([10, 0, 0, 1], [10, 0, 0, 2], (5, 80), 0, "S", b""))];
    for (i, piece) in text.chunks(20).enumerate() {
        let frame = tcp([10, 0, 0, 1], [10, 0, 0, 2], (5, 80), 1 + 20 * i as u32, "", piece);
        frames.push((Timestamp::from_secs(1), frame));
    }
    assert!(record(Settings::default(), &frames).is_empty(), "packets of 20 bytes leave no record");
    let streams = Settings { streams: true, ..Settings::default() };
    let epochs = record(streams, &frames);
    assert!(names(&epochs[0].find(&text[333..500]).expect("long enough").findings, 1, 2));
}

#[test]
fn bytes_sent_in_place_of_others_are_recorded_too() {
    let [seen, hidden] = [bytes(3, 200), bytes(4, 200)];
    let segment = |seq, flags: &str, payload: &[u8]| {
        (Timestamp::from_secs(1), tcp([10, 0, 0, 1], [10, 0, 0, 2], (5, 80), seq, flags, payload))
    };
    let frames = [segment(0, "S", b""), segment(1, "", &seen), segment(1, "", &hidden)];
    let epochs = record(Settings { streams: true, ..Settings::default() }, &frames);
    for text in [seen, hidden] {
        assert!(names(&epochs[0].find(&text[50..150]).expect("long enough").findings, 1, 2));
    }
}

#[test]
fn wrong_pairs_are_reported_as_often_as_predicted() {
    for method in Method::ALL {
        // Few enough bits to see errors by chance.
        let bits_per_block = match method {
            Method::BlockBased => 12.0,
            Method::Hierarchical => 18.0,
            Method::Winnowing => 2.5,
        };
        let settings = Settings { bits_per_block, ..Settings::for_method(method) };
        let payload = |i: u64| bytes(1000 + i, 1000 + i as usize % 400);
        let frames: Vec<Frame> =
            (0..2000).map(|i| datagram(i, i as u32 % 40, 100 + i as u32 % 25, &payload(i))).collect();
        let epochs = record(settings, &frames);
        let [epoch] = &epochs[..] else { panic!("one epoch") };
        assert_eq!(epoch.listed().len(), 200);
        // Half of the excerpts were carried, and may also match other pairs; the others were not.
        let (mut wrong, mut expected) = (0, 0.0);
        for i in 0..2000 {
            let length = epoch.needed().max(95) + i as usize % 70;
            let (excerpt, pair) = if i % 2 == 0 {
                let pair = Pair::new(host(i as u32 % 40), host(100 + i as u32 % 25));
                (payload(i)[300 + i as usize % 32..][..length].to_vec(), Some(pair))
            } else {
                (bytes(1 << 40 | i, length), None)
            };
            let found = epoch.find(&excerpt).expect("long enough");
            let named: HashSet<Pair> = found.findings.iter().map(|finding| finding.listed.pair).collect();
            assert!(pair.is_none_or(|pair| named.contains(&pair)), "excerpt {i}");
            wrong += named.len() - usize::from(pair.is_some());
            expected += found.expected;
        }
        // Errors come in groups, one for each pair at a wrong place, so they vary more than single
        // ones.
        let bound = expected + 5.0 * expected.sqrt();
        assert!(
            (0.5 * expected..bound).contains(&(wrong as f64)),
            "{method}: {wrong}, predicted {expected:.1}"
        );
        assert!(expected > 50.0, "{method}: {expected} would show nothing");
    }
}

/// Returns all payloads of the real captures with their pairs, a closed store of them, and its
/// size.
fn real_store(settings: Settings) -> (Vec<(Pair, Vec<u8>)>, tempfile::TempDir, u64) {
    let mut payloads: Vec<(Pair, Vec<u8>)> = Vec::new();
    let mut recorder = Recorder::new(settings, 11).expect("valid settings");
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::create(folder.path().join("store")).expect("a store");
    let keep = |epoch: Option<Epoch>| epoch.iter().for_each(|epoch| drop(store.add(epoch).expect("room")));
    for path in real_captures() {
        let Ok(mut reader) = Reader::open(&path) else { continue };
        while let Some(packet) = reader.next().expect("a file that can be read") {
            payloads.push((Pair::new(packet.source, packet.destination), packet.payload.to_vec()));
            keep(recorder.record(&packet).expect("room"));
        }
    }
    keep(recorder.finish().expect("room"));
    let sizes =
        store.epochs().expect("a folder").iter().map(|path| path.metadata().expect("a file").len()).sum();
    (payloads, folder, sizes)
}

/// Returns a number below another, drawn by index.
fn draw(i: u64, below: usize) -> usize {
    (umbel::Digest::from_hash(5).salted(i).get() % below as u64) as usize
}

#[test]
fn large_epoch_is_as_accurate_as_a_small_one() {
    // Filters that touch one cache line per record are fast, but inaccurate with few bits per
    // record.
    let frames: Vec<Frame> =
        (0..4000).map(|i| datagram(i, i as u32 % 1000, 5000, &bytes(i << 20, 1400))).collect();
    for (method, length, most) in
        [(Method::BlockBased, 96, 1e-4), (Method::Hierarchical, 160, 1e-4), (Method::Winnowing, 400, 1e-3)]
    {
        let epochs = record(Settings::for_method(method), &frames);
        let expected: f64 = (0..20)
            .map(|i| epochs[0].find(&bytes(i << 20, 1400)[100..100 + length]).expect("long enough").expected)
            .sum();
        assert!(expected < 20.0 * most, "{method}: {expected}");
    }
}

#[test]
fn real_captures_are_attributed_after_a_restart_with_a_tenth_of_their_size() {
    let (payloads, folder, kept) = real_store(Settings::default());
    let store = Store::open(folder.path().join("store")).expect("a store");
    let all: usize = payloads.iter().map(|(_, payload)| payload.len()).sum();
    assert!(all > 1_500_000 && kept * 10 <= all as u64, "{kept} bytes of {all}");

    let long: Vec<&(Pair, Vec<u8>)> = payloads.iter().filter(|(_, payload)| payload.len() >= 300).collect();
    let (mut by_chance, mut alike, mut expected) = (0, 0, 0.0);
    for i in 0..200 {
        let (pair, payload) = long[draw(4 * i, long.len())];
        let length = 96 + draw(4 * i + 1, 161);
        let from = draw(4 * i + 2, payload.len() - length);
        let excerpt = &payload[from..from + length];
        let answer = store.find(excerpt, ..).expect("an answer");
        let mut is_found = false;
        for searched in &answer.searched {
            expected += searched.found.expected;
            for Finding { listed, hit, .. } in &searched.found.findings {
                is_found |= listed.pair == *pair;
                let of_pair = || payloads.iter().filter(|(other, _)| *other == listed.pair);
                if of_pair().any(|(_, payload)| contains(payload, excerpt)) {
                    continue;
                }
                // Many payloads are alike. If the pair carried all but one of the compared halves
                // at their places, hardly anything distinguishes it from a pair that carried all of
                // them.
                let hit = hit.expect("a place");
                let start = hit.prefix % 16;
                let places = (hit.position as usize + start..).step_by(16);
                let is_other = |(half, at): &(&[u8], usize)| {
                    !of_pair().any(|(_, payload)| {
                        let mut places = (at % 2048..payload.len()).step_by(2048);
                        places.any(|place| payload[place..].starts_with(half))
                    })
                };
                let is_alike = excerpt[start..].chunks_exact(16).zip(places).filter(is_other).count() <= 1;
                *(if is_alike { &mut alike } else { &mut by_chance }) += 1;
            }
        }
        assert!(is_found, "excerpt {i}, {length} bytes");
    }
    println!("{kept} bytes of {all}: {:.2} %", 100.0 * kept as f64 / all as f64);
    println!(
        "wrong: {by_chance} by chance, {expected:.5} predicted, and {alike} with payloads that are alike"
    );
    assert!(
        f64::from(by_chance) <= expected + 4.0 * expected.sqrt(),
        "{by_chance} wrong, predicted {expected}"
    );
    assert!(alike <= 10, "{alike} pairs whose payloads differ only in bytes that are not compared");
}

#[test]
fn winnowing_attributes_long_excerpts_of_real_captures_with_a_fiftieth_of_their_size() {
    let (payloads, folder, kept) = real_store(Settings::for_method(Method::Winnowing));
    let store = Store::open(folder.path().join("store")).expect("a store");
    let all: usize = payloads.iter().map(|(_, payload)| payload.len()).sum();
    println!("{kept} bytes of {all}: {:.2} %", 100.0 * kept as f64 / all as f64);
    assert!(kept * 50 <= all as u64, "{kept} bytes of {all}");
    let long: Vec<&(Pair, Vec<u8>)> = payloads.iter().filter(|(_, payload)| payload.len() > 600).collect();
    let (mut wrong, mut expected) = (0, 0.0);
    for i in 0..200 {
        let (pair, payload) = long[draw(4 * i, long.len())];
        let length = 400 + draw(4 * i + 1, 201);
        let from = draw(4 * i + 2, payload.len() - length);
        let excerpt = &payload[from..from + length];
        let answer = store.find(excerpt, ..).expect("an answer");
        expected += answer.searched.iter().map(|searched| searched.found.expected).sum::<f64>();
        let named: HashSet<Pair> = answer
            .searched
            .iter()
            .flat_map(|searched| &searched.found.findings)
            .map(|finding| finding.listed.pair)
            .collect();
        assert!(named.contains(pair), "excerpt {i}, {length} bytes");
        let carries = |named: &&Pair| {
            payloads.iter().any(|(pair, payload)| pair == *named && contains(payload, excerpt))
        };
        wrong += named.len() - named.iter().filter(carries).count();
    }
    println!("wrong: {wrong}, {expected:.5} predicted");
    assert!(wrong as f64 <= expected + 4.0 * expected.sqrt(), "{wrong} wrong, predicted {expected}");
}

fn contains(text: &[u8], excerpt: &[u8]) -> bool {
    text.windows(excerpt.len()).any(|window| window == excerpt)
}

#[test]
fn epochs_end_by_time_and_by_size_and_are_found_by_time() {
    let frames: Vec<Frame> = (0..600).map(|i| datagram(i * 1000, 1, 2, &bytes(i, 200))).collect();
    let by_time = record(Settings { epoch: Some(Duration::from_secs(60)), ..Settings::default() }, &frames);
    assert_eq!(by_time.len(), 10, "a minute each, aligned to full minutes");
    for (i, epoch) in by_time.iter().enumerate() {
        let about = epoch.about();
        assert_eq!(about.number, i as u64);
        assert_eq!(
            about.span(),
            (Timestamp::from_secs(60 * i as u64), Timestamp::from_secs(60 * i as u64 + 59))
        );
        assert_eq!((about.payloads, about.bytes, about.blocks, about.longest), (60, 12_000, 360, 6));
    }
    let (_folder, store) = stored(&by_time);
    let excerpt = &bytes(130, 200)[10..190];
    let searched = |from, to| {
        let answer =
            store.find(excerpt, Timestamp::from_secs(from)..=Timestamp::from_secs(to)).expect("an answer");
        let found = answer.searched.iter().any(|searched| !searched.found.findings.is_empty());
        (answer.searched.len(), found)
    };
    assert_eq!(searched(0, 599), (10, true));
    assert_eq!(searched(125, 126), (1, true), "an epoch is searched as a whole");
    assert_eq!(searched(180, 10_000), (7, false));
    assert_eq!(searched(0, 119), (2, false));

    let by_size = record(Settings { full: 12_000, ..Settings::default() }, &frames);
    assert_eq!(by_size.len(), 10);
}

#[test]
fn clock_that_goes_backwards_loses_no_record() {
    let times = [100, 101, 5, 102, 4_000_000_000, 3, 103, 0];
    let frames: Vec<Frame> =
        (0..).zip(times).map(|(i, time)| datagram(time * 1000, 1, 2, &bytes(i, 200))).collect();
    let settings = Settings { epoch: Some(Duration::from_secs(60)), ..Settings::default() };
    let mut recorder = Recorder::new(settings.clone(), 7).expect("valid settings");
    for (time, frame) in &frames {
        let packet = Packet::from_frame(Link::ETHERNET, frame, *time, 0).expect("a packet");
        recorder.record(&packet).expect("room");
    }
    assert_eq!(recorder.totals().backwards, 3);
    let epochs = record(settings, &frames);
    assert_eq!(epochs.len(), 2);
    let (_folder, store) = stored(&epochs);
    for ((i, time), _) in (0..).zip(times).zip(&frames) {
        let time = Timestamp::from_secs(time);
        let answer = store.find(&bytes(i, 200)[20..180], time..=time).expect("an answer");
        assert!(answer.searched.iter().any(|searched| names(&searched.found.findings, 1, 2)), "packet {i}");
    }
}

#[test]
fn flood_of_forged_sources_is_bounded_and_hides_no_payload() {
    let settings = Settings {
        pairs: 100,
        local: vec!["10.0.0.0/24".parse().expect("a network")],
        ..Settings::default()
    };
    let mut frames: Vec<Frame> =
        (0..5000).map(|i| datagram(i, 70_000 + i as u32, 1, &bytes(i, 100))).collect();
    frames.push(datagram(5000, 2, 70_000, &bytes(5000, 300)));
    let mut recorder = Recorder::new(settings.clone(), 7).expect("valid settings");
    for (time, frame) in &frames {
        let packet = Packet::from_frame(Link::ETHERNET, frame, *time, 0).expect("a packet");
        recorder.record(&packet).expect("room");
    }
    assert_eq!(recorder.totals().unlisted, 4900);
    let epochs = record(settings, &frames);
    assert_eq!(
        epochs[0].listed().len(),
        102,
        "a hundred forged pairs, one entry for all others, and the local pair"
    );
    assert_eq!(epochs[0].about().unlisted, 4900);
    let found =
        |i: u64| epochs[0].find(&bytes(i, if i == 5000 { 300 } else { 100 })).expect("long enough").findings;
    assert!(names(&found(3), 70_003, 1));
    let nobody = Pair { source: None, destination: Some(host(1)) };
    assert!(found(4321).iter().any(|finding| finding.listed.pair == nobody), "its destination is known");
    assert!(names(&found(5000), 2, 70_000), "local sources have places of their own");
}

#[test]
fn parts_of_a_document_are_found_however_it_was_cut() {
    let document = bytes(1 << 50, 20_000);
    // Bytes 3000 to 9000 travel in packets of uneven lengths, after other headers; bytes 15000 to
    // 16000 within a stream.
    let mut frames: Vec<Frame> = (0..500).map(|i| datagram(i, i as u32 % 20, 30, &bytes(i, 1200))).collect();
    let mut at = 3000;
    for length in (0..).map(|i| 500 + i * 37) {
        let end = 9000.min(at + length);
        frames.push(datagram(600, 5, 6, &[&bytes(at as u64, at % 50), &document[at..end]].concat()));
        at = end;
        if at == 9000 {
            break;
        }
    }
    frames.push((Timestamp::from_secs(1), tcp([10, 0, 0, 7], [10, 0, 0, 8], (5, 80), 0, "S", b"")));
    for (i, piece) in [&bytes(1, 777)[..], &document[15_000..16_000]].concat().chunks(25).enumerate() {
        let frame = tcp([10, 0, 0, 7], [10, 0, 0, 8], (5, 80), 1 + 25 * i as u32, "", piece);
        frames.push((Timestamp::from_secs(1), frame));
    }
    let epochs = record(Settings { streams: true, ..Settings::default() }, &frames);
    let found = epochs[0].find_parts(&document).expect("long enough");
    assert!(found.expected < 1e-3 && found.least < 5 * 32);
    let ranges = |source: u32| {
        let part = found.parts.iter().find(|part| part.listed.pair.source == Some(host(source)));
        part.expect("a part").ranges.clone()
    };
    assert_eq!(found.parts.len(), 2, "{found:?}");
    // At the edges of payloads, bytes outside whole blocks are missing.
    for (source, bytes, within) in [(5, 5000..6000, 3000..9000), (7, 930..1001, 15_000..16_000)] {
        let ranges = ranges(source);
        assert!(
            ranges.iter().all(|range| within.start <= range.start && range.end <= within.end),
            "{ranges:?}"
        );
        assert!(bytes.contains(&ranges.iter().map(ExactSizeIterator::len).sum::<usize>()), "{ranges:?}");
    }
    let other = epochs[0].find_parts(&bytes(2 << 50, 20_000)).expect("long enough");
    assert!(other.parts.is_empty());
    assert!(epochs[0].find_parts(&document[..63]).is_err());
}

#[test]
fn store_survives_damaged_and_foreign_files() {
    let frames: Vec<Frame> = (0..300).map(|i| datagram(i * 1000, 1, 2, &bytes(i, 200))).collect();
    let epochs = record(Settings { epoch: Some(Duration::from_secs(60)), ..Settings::default() }, &frames);
    let (folder, store) = stored(&epochs);
    let excerpt = &bytes(250, 200)[..150];
    let paths = store.epochs().expect("a folder");
    // Truncated, damaged, of another version, empty, and not an epoch at all.
    let whole = std::fs::read(&paths[0]).expect("a file");
    let mut later = whole.clone();
    later[8] = 3;
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    for (spoilt, why) in [
        (&whole[..whole.len() / 2], "truncated"),
        (&damaged, "damaged"),
        (&later, "version 3"),
        (&[][..], "truncated"),
        (b"hello, not an epoch!", "not an epoch"),
    ] {
        std::fs::write(&paths[0], spoilt).expect("room");
        let answer = store.find(excerpt, ..).expect("an answer");
        assert_eq!((answer.unread.len(), answer.searched.len()), (1, 4), "{why}");
        let message = format!("{:#}", answer.unread[0].error);
        assert!(message.contains(why) && message.contains("00000001.epoch"), "{message}");
        assert!(answer.searched.iter().any(|searched| names(&searched.found.findings, 1, 2)));
    }
    // Foreign files in the folder do not matter, and new epochs are numbered after the last.
    std::fs::write(folder.path().join("notes.txt"), "mine").expect("room");
    std::fs::write(folder.path().join(".umbel-x.part"), "half").expect("room");
    let added = store.add(&epochs[0]).expect("room");
    assert!(added.ends_with("00000006.epoch"));
    // Epoch numbers can run out.
    std::fs::write(folder.path().join(format!("{}.epoch", u64::MAX)), "hello").expect("room");
    assert!(store.add(&epochs[0]).expect_err("no number").to_string().contains("used up"));
    // A folder with other files is not recorded into.
    let other = tempfile::tempdir().expect("a folder");
    std::fs::write(other.path().join("thesis.tex"), "mine").expect("room");
    assert!(Store::create(other.path()).expect_err("no store").to_string().contains("not a store"));
    assert!(Store::open(other.path()).expect_err("no store").to_string().contains("no epochs"));
}

#[test]
fn every_truncation_and_every_changed_byte_of_an_epoch_is_detected() {
    let frames: Vec<Frame> = (0..20).map(|i| datagram(i, i as u32 % 5, 9, &bytes(i, 200))).collect();
    let local = vec!["10.0.0.0/24".parse().expect("a network")];
    for block_digest in [false, true] {
        let epochs = record(Settings { local: local.clone(), block_digest, ..Settings::default() }, &frames);
        let whole = epochs[0].to_bytes().expect("bytes");
        for length in 0..whole.len() {
            assert!(Epoch::from_bytes(&whole[..length]).is_err(), "cut at {length}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(Epoch::from_bytes(&changed).is_err(), "changed at {at}");
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert!(Epoch::from_bytes(&longer).is_err());
    }
}

#[test]
fn every_single_bit_flip_of_a_golden_epoch_is_detected() {
    for name in ["block", "hierarchical", "winnowing", "block-digest"] {
        let path = format!("{}/tests/golden/{name}.epoch", env!("CARGO_MANIFEST_DIR"));
        let whole = std::fs::read(path).expect("the golden file");
        assert!(Epoch::from_bytes(&whole).is_ok());
        for bit in 0..8 * whole.len() {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Epoch::from_bytes(&flipped).is_err(), "{name}, bit {bit}");
        }
    }
}

#[test]
fn a_block_filter_loses_no_finding_and_excludes_most_alignments_of_other_texts() {
    for (method, streams) in
        [(Method::BlockBased, false), (Method::Hierarchical, false), (Method::BlockBased, true)]
    {
        let frames: Vec<Frame> = (0..300).map(|i| datagram(i, i as u32 % 5, 9, &bytes(i, 300))).collect();
        let settings = Settings { block_digest: true, streams, ..Settings::for_method(method) };
        let epoch =
            Epoch::from_bytes(&record(settings, &frames)[0].to_bytes().expect("bytes")).expect("an epoch");
        assert!(epoch.about().block_digest && epoch.block_filter().is_some());
        for i in 0..300 {
            // Every alignment occurs.
            let start = i as usize % 40;
            let found = epoch.find(&bytes(i, 300)[start..start + 200]).expect("long enough");
            assert!(names(&found.findings, i as u32 % 5, 9), "{method} {i}");
        }
        let document: Vec<u8> = (0..10).flat_map(|i| bytes(i, 300)).collect();
        let parts = epoch.find_parts(&document).expect("long enough");
        assert_eq!(parts.parts.iter().map(|part| part.ranges.len()).sum::<usize>(), 10, "{method}");
        // 32 alignments each. The filter has three bits per block, so that a block passes at about
        // 24 %, and an alignment, of five blocks or more, at less than one in a thousand.
        let excluded: u64 =
            (1000..1100).map(|i| epoch.find(&bytes(i, 200)).expect("long enough").excluded).sum();
        assert!(excluded > 3150, "{method}: {excluded} of 3200");
    }
    let without = record(Settings::default(), &[datagram(0, 1, 2, &bytes(1, 300))]);
    assert!(without[0].block_filter().is_none());
    assert_eq!(without[0].find(&bytes(7, 200)).expect("long enough").excluded, 0);
    let winnowing = Settings { block_digest: true, ..Settings::for_method(Method::Winnowing) };
    let error = Recorder::new(winnowing, 1).expect_err("no places").to_string();
    assert!(error.contains("block-digest") && error.contains("hierarchical"), "{error}");
}

#[test]
fn epoch_with_an_impossible_block_size_is_refused_even_with_valid_checksums() {
    let frames: Vec<Frame> = (0..20).map(|i| datagram(i, i as u32 % 5, 9, &bytes(i, 200))).collect();
    for method in Method::ALL {
        let whole = record(Settings::for_method(method), &frames)[0].to_bytes().expect("bytes");
        let with_block = |block: u64| {
            let mut changed = whole.clone();
            changed[40..48].copy_from_slice(&block.to_le_bytes());
            for end in [160, whole.len()] {
                let sum = umbel::Hasher::fast(0).digest_bytes(&changed[..end - 8]).get();
                changed[end - 8..end].copy_from_slice(&sum.to_le_bytes());
            }
            Epoch::from_bytes(&changed)
        };
        assert!(with_block(64).is_ok());
        for block in [0, 1 << 17, u64::MAX] {
            assert!(with_block(block).is_err(), "{method}: {block}");
        }
        for block in [1, 2, 33] {
            assert_eq!(with_block(block).is_err(), method != Method::Winnowing, "{method}: {block}");
        }
    }
}

#[test]
fn repeated_content_counts_only_once() {
    let pattern = bytes(1, 300);
    let frames = [datagram(0, 1, 2, &pattern.repeat(8)), datagram(1, 3, 4, &bytes(2, 3000))];
    let epochs = record(Settings::for_method(Method::Winnowing), &frames);
    let [twice, often] = [3, 8].map(|times| {
        let found = epochs[0].find(&pattern.repeat(times)).expect("long enough");
        found.findings[0]
    });
    assert_eq!((twice.blocks, twice.chance), (often.blocks, often.chance));
    assert!(epochs[0].find(&bytes(2, 1200)).expect("long enough").findings[0].blocks > twice.blocks);
}

#[test]
fn epochs_with_too_large_blocks_for_an_excerpt_are_reported() {
    let frames = [datagram(0, 1, 2, &bytes(1, 300))];
    let epochs: Vec<Epoch> = [128, 32]
        .into_iter()
        .flat_map(|block| record(Settings { block, ..Settings::default() }, &frames))
        .collect();
    let (_folder, store) = stored(&epochs);
    let answer = store.find(&bytes(1, 300)[10..110], ..).expect("an answer");
    assert_eq!((answer.searched.len(), answer.unread.len()), (1, 1));
    assert!(answer.unread[0].error.to_string().contains("at least 255 bytes"), "{}", answer.unread[0].error);
    assert!(store.find(&bytes(1, 300)[10..60], ..).is_err(), "no epoch can answer");
}

#[test]
fn epoch_format_is_stable() {
    let with_blocks = Settings { block_digest: true, ..Settings::default() };
    let settings = Method::ALL.map(|method| (method.to_string(), Settings::for_method(method)));
    for (name, settings) in settings.into_iter().chain([("block-digest".to_owned(), with_blocks)]) {
        let path = format!("{}/tests/golden/{name}.epoch", env!("CARGO_MANIFEST_DIR"));
        let mut frames: Vec<Frame> =
            (0..20).map(|i| datagram(i * 40, i as u32 % 5, 9, &bytes(i, 250))).collect();
        let six = |last: u8| IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        frames.push((Timestamp::from_secs(1), udp(six(1), six(2), (1, 2), &bytes(20, 250))));
        let local = vec!["10.0.0.0/24".parse().expect("a network"), "fd00::/8".parse().expect("a network")];
        // The last two pairs do not fit in the list.
        let epochs = record(Settings { local, pairs: 4, ..settings }, &frames);
        let golden = std::fs::read(&path).expect("the golden file");
        assert_eq!(epochs[0].to_bytes().expect("bytes"), golden, "{name}");
        let epoch = store::load(&path).expect("an epoch");
        assert_eq!(epoch.about(), &store::inspect(&path).expect("a header"));
        assert!(names(&epoch.find(&bytes(7, 250)[5..245]).expect("long enough").findings, 2, 9));
    }
}
