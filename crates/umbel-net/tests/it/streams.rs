//! Streams: every byte is delivered once and in order, whatever the segments look like; and limits
//! hold whatever is sent.

use crate::common::{real_captures, tcp};
use proptest::prelude::*;
use std::collections::BTreeMap;
use umbel_net::capture::streams::{Ending, Event, Limits, Piece, Streams};
use umbel_net::capture::{Flow, Link, Packet, Reader, Timestamp};

/// The events of each stream, by its number.
#[derive(Debug, Default)]
struct Heard {
    streams: BTreeMap<u64, Told>,
}

#[derive(Debug, Default, PartialEq)]
struct Told {
    bytes: Vec<u8>,
    gaps: Vec<(u64, u64)>,
    end: Option<Ending>,
    flow: Option<Flow>,
}

impl Heard {
    fn hear(&mut self, piece: Piece<'_>) {
        let told = self.streams.entry(piece.stream).or_default();
        assert_eq!(*told.flow.get_or_insert(piece.flow), piece.flow);
        let gaps: u64 = told.gaps.iter().map(|(_, length)| length).sum();
        assert_eq!(piece.offset, told.bytes.len() as u64 + gaps, "offsets count delivered and missing bytes");
        match piece.event {
            Event::Bytes(bytes) => {
                assert!(!bytes.is_empty());
                told.bytes.extend(bytes);
            }
            Event::Gap(length) => told.gaps.push((piece.offset, length)),
            Event::End(why) => assert_eq!(told.end.replace(why), None, "an end is reported once"),
        }
    }

    fn texts(&self) -> Vec<&str> {
        self.streams.values().map(|told| std::str::from_utf8(&told.bytes).unwrap()).collect()
    }

    fn ends(&self) -> Vec<Option<Ending>> {
        self.streams.values().map(|told| told.end).collect()
    }
}

/// A segment: its port, second, sequence number, flags and text.
struct Segment(u16, u64, u32, &'static str, &'static str);

fn push(streams: &mut Streams, heard: &mut Heard, frame: &[u8], second: u64) {
    let packet = Packet::from_frame(Link::ETHERNET, frame, Timestamp::from_secs(second), frame.len() as u32)
        .expect("a packet");
    streams.push(&packet, |piece| heard.hear(piece));
}

fn hear(streams: &mut Streams, segments: &[Segment]) -> Heard {
    let mut heard = Heard::default();
    for Segment(port, second, seq, flags, text) in segments {
        let frame = tcp([10, 0, 0, 1], [10, 0, 0, 2], (*port, 80), *seq, flags, text.as_bytes());
        push(streams, &mut heard, &frame, *second);
    }
    heard
}

#[test]
fn connection_is_delivered_from_its_first_byte_to_its_end() {
    let mut streams = Streams::default();
    let heard = hear(
        &mut streams,
        &[
            // The first byte follows the SYN, and sequence numbers wrap around.
            Segment(1, 0, u32::MAX - 2, "S", ""),
            Segment(1, 0, u32::MAX - 2, "S", ""),
            Segment(1, 0, u32::MAX - 1, "", "ab"),
            Segment(1, 0, 2, "", "ef"),
            Segment(1, 0, 0, "", "cd"),
            Segment(1, 0, 4, "F", "gh"),
            // All of it again, which does not start a new stream.
            Segment(1, 0, u32::MAX - 1, "", "ab"),
            Segment(1, 0, 4, "F", "gh"),
            // The ports are reused.
            Segment(1, 9, 1000, "S", ""),
            Segment(1, 9, 1001, "", "again"),
        ],
    );
    assert_eq!(heard.texts(), ["abcdefgh", "again"]);
    assert_eq!(heard.ends(), [Some(Ending::Finished), None]);
    assert_eq!(streams.counts().repeated, 4);
}

#[test]
fn resets_and_sudden_starts_lose_no_bytes() {
    let mut streams = Streams::default();
    let heard = hear(
        &mut streams,
        &[
            Segment(1, 0, 500, "", ""),
            Segment(1, 0, 500, "", "from the middle"),
            Segment(1, 0, 400, "", "before"),
            Segment(1, 0, 530, "", "waits"),
            Segment(1, 0, 600, "R", ""),
            Segment(1, 0, 515, "", "goes on"),
            Segment(2, 0, 9, "S", "early"),
            Segment(2, 0, 15, "F", ""),
            Segment(2, 0, 15, "", "beyond"),
            Segment(3, 0, 7, "R", ""),
        ],
    );
    assert_eq!(heard.texts(), ["from the middle", "beforewaits", "goes on", "earlybeyond"]);
    let ends = [Some(Ending::Rewound), Some(Ending::Reset), None, Some(Ending::Finished)];
    assert_eq!(heard.ends(), ends);
    assert_eq!(heard.streams[&1].gaps, [(6, 124)]);
    assert_eq!((streams.counts().repeated, streams.counts().beyond_end), (0, 6));
}

#[test]
fn gap_is_skipped_when_too_many_bytes_wait() {
    let limits = Limits { waiting: 400, ..Limits::default() };
    let mut streams = Streams::new(limits);
    let mut segments = vec![Segment(1, 0, 0, "", "start")];
    segments.extend((0..6).map(|at| Segment(1, 0, 20 + 10 * at, "", "0123456789")));
    let mut heard = hear(&mut streams, &segments);
    let told = &heard.streams[&0];
    assert_eq!(told.gaps, [(5, 15)], "after the sixth segment, which makes it 444 bytes with overhead");
    assert_eq!(told.bytes.len(), 65);
    assert_eq!((streams.counts().gaps, streams.counts().missing, streams.waiting()), (1, 15, 0));
    // Bytes delivered since the gap are repeated.
    push(&mut streams, &mut heard, &tcp([10, 0, 0, 1], [10, 0, 0, 2], (1, 80), 20, "", b"0123456789"), 0);
    assert_eq!((heard.streams.len(), streams.counts().repeated), (1, 10));
    // The missing bytes are too late for this stream, and begin another.
    push(&mut streams, &mut heard, &tcp([10, 0, 0, 1], [10, 0, 0, 2], (1, 80), 5, "", b"too late"), 0);
    assert_eq!((heard.streams[&0].bytes.len(), heard.streams[&0].end), (65, Some(Ending::Rewound)));
    // At the end of the capture, waiting bytes are delivered.
    push(&mut streams, &mut heard, &tcp([10, 0, 0, 1], [10, 0, 0, 2], (1, 80), 90, "", b"last"), 0);
    streams.finish(|piece| heard.hear(piece));
    let told = &heard.streams[&1];
    assert_eq!(
        (&told.gaps[..], &told.bytes[..], told.end),
        (&[(8, 77)][..], &b"too latelast"[..], Some(Ending::Capture))
    );
    assert!(streams.is_empty());
}

/// Segments that a receiver ignores, since they are outside its window, must not hide the ones it
/// accepts.
#[test]
fn segments_far_ahead_do_not_hide_the_bytes_that_follow() {
    let far = 1 << 30;
    let secret = ["se", "cr", "et"];
    let real = |first: u32| (0..3).map(move |at| Segment(1, 0, first + 2 * at, "", secret[at as usize]));
    let decoys: [&[Segment]; 4] = [
        // The first captured segment, a false SYN, a false SYN with bytes, and more bytes than may
        // wait.
        &[Segment(1, 0, 500 + far, "", "decoy")],
        &[Segment(1, 0, 499, "S", ""), Segment(1, 0, 500 + far, "S", "")],
        &[Segment(1, 0, 499, "S", ""), Segment(1, 0, 500 + far, "S", "decoy")],
        &[
            Segment(1, 0, 499, "S", ""),
            Segment(1, 0, 500 + far, "", "decoy"),
            Segment(1, 0, 505 + far, "", "decoy"),
        ],
    ];
    for (number, decoy) in decoys.into_iter().enumerate() {
        let mut streams = Streams::new(Limits { waiting: 100, ..Limits::default() });
        let mut heard = hear(&mut streams, decoy);
        for Segment(port, second, seq, flags, text) in real(500) {
            let frame = tcp([10, 0, 0, 1], [10, 0, 0, 2], (port, 80), seq, flags, text.as_bytes());
            push(&mut streams, &mut heard, &frame, second);
        }
        assert!(heard.texts().contains(&"secret"), "decoy {number}: {heard:?}");
    }
}

#[test]
fn idle_streams_end() {
    let mut streams = Streams::default();
    let mut heard = hear(
        &mut streams,
        &[
            Segment(1, 0, 0, "", "one"),
            Segment(2, 0, 0, "", "two"),
            Segment(1, 200, 3, "", "more"),
            Segment(3, 400, 0, "", "three"),
            Segment(3, 401, 5, "", "three"),
            Segment(2, 402, 3, "", "anew"),
        ],
    );
    assert_eq!(heard.texts(), ["onemore", "two", "threethree", "anew"]);
    assert_eq!(heard.ends(), [None, Some(Ending::Idle), None, None]);
    streams.finish(|piece| heard.hear(piece));
    let capture = Some(Ending::Capture);
    assert_eq!(heard.ends(), [capture, Some(Ending::Idle), capture, capture]);
}

#[test]
fn stream_idle_for_the_longest_time_is_evicted() {
    let limits = Limits { streams: 3, ..Limits::default() };
    let mut streams = Streams::new(limits);
    let heard = hear(
        &mut streams,
        &[
            Segment(1, 0, 0, "", "a"),
            Segment(2, 0, 0, "", "b"),
            Segment(3, 0, 0, "", "c"),
            Segment(1, 0, 1, "", "a"),
            Segment(4, 0, 0, "", "d"),
            Segment(5, 0, 0, "", "e"),
        ],
    );
    let gone = Some(Ending::Evicted);
    assert_eq!(heard.texts(), ["aa", "b", "c", "d", "e"]);
    assert_eq!(heard.ends(), [None, gone, gone, None, None]);
    assert_eq!((streams.len(), streams.counts().evicted), (3, 2));
}

#[test]
fn waiting_bytes_of_all_streams_are_bounded() {
    let limits = Limits { streams: 100, waiting: 1000, waiting_together: 5000, ..Limits::default() };
    let mut streams = Streams::new(limits);
    let mut delivered = 0;
    let mut most = 0;
    for at in 0..20_000u32 {
        // Single bytes, each after a gap, five for each of 500 ports in turn; some connections are
        // reset at once.
        let flags = if at % 7 == 0 { "R" } else { "" };
        let seq = 3 * (at % 5 + 5 * (at / 2500));
        let frame = tcp([10, 0, 0, 1], [10, 0, 0, 2], ((at / 5 % 500) as u16, 80), seq, flags, b"x");
        let packet = Packet::from_frame(Link::ETHERNET, &frame, Timestamp::from_secs(1), 0).unwrap();
        streams.push(&packet, |piece| delivered += usize::from(matches!(piece.event, Event::Bytes(_))));
        most = most.max(streams.waiting());
        assert!(streams.len() <= 100 && streams.waiting() <= 5000);
    }
    streams.finish(|piece| delivered += usize::from(matches!(piece.event, Event::Bytes(_))));
    assert!(most > 4000, "{most}");
    assert_eq!(delivered as u64 + streams.counts().repeated, 20_000);
    assert_eq!(streams.counts().repeated, 0, "no byte was repeated");
    assert_eq!(streams.waiting(), 0);
}

#[test]
fn real_connections_are_delivered_completely() {
    let mut total = (0, 0, 0);
    for path in real_captures() {
        let mut reader = Reader::open(&path).unwrap();
        let mut streams = Streams::default();
        let mut heard = Heard::default();
        let mut payload = 0;
        while let Some(packet) = reader.next().unwrap() {
            if packet.tcp.is_some() {
                payload += packet.payload.len() as u64;
            }
            streams.push(&packet, |piece| heard.hear(piece));
        }
        streams.finish(|piece| heard.hear(piece));
        let counts = streams.counts();
        let delivered: usize = heard.streams.values().map(|told| told.bytes.len()).sum();
        assert_eq!(counts.delivered, delivered as u64, "{path:?}");
        assert_eq!(
            counts.delivered + counts.repeated,
            payload,
            "{path:?}: every byte was delivered or repeated"
        );
        assert!(heard.streams.values().all(|told| told.end.is_some()), "{path:?}");
        total = (total.0 + counts.delivered, total.1 + counts.gaps, total.2 + counts.streams);
    }
    // Few gaps, as expected of captures of whole connections.
    assert!(total.0 > 1_000_000 && total.2 > 1000 && total.1 * 20 < total.2, "{total:?}");
}

/// Generates the segments of a text: their start and end, in the order in which they are sent.
fn segments(length: usize) -> impl Strategy<Value = Vec<(usize, usize)>> {
    let jumble = prop::collection::vec((any::<prop::sample::Index>(), 1..50usize, 0..200usize), 1..60);
    jumble.prop_map(move |picks| {
        // Segments that cover the text, and others that repeat or overlap, shuffled within a
        // window.
        let step = 1 + picks[0].1;
        let mut all: Vec<(usize, usize)> =
            (0..length).step_by(step).map(|start| (start, (start + step).min(length))).collect();
        for (place, size, _) in &picks {
            let start = place.index(length);
            all.insert(place.index(all.len() + 1), (start, (start + size).min(length)));
        }
        let mut keyed: Vec<(usize, (usize, usize))> = (all.into_iter().enumerate())
            .map(|(at, piece)| (at * 20 + picks[at % picks.len()].2, piece))
            .collect();
        keyed.sort_by_key(|(key, _)| *key);
        keyed.into_iter().map(|(_, piece)| piece).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Compares with a model that keeps the first value of each byte. Overlapping segments disagree
    /// here.
    #[test]
    fn every_byte_is_delivered_once_and_the_first_value_counts(order in segments(700), first in any::<u32>()) {
        let mut streams = Streams::default();
        let mut heard = Heard::default();
        let mut model = vec![None; 700];
        let frame = tcp([10, 0, 0, 1], [10, 0, 0, 2], (1, 80), first.wrapping_sub(1), "S", b"");
        push(&mut streams, &mut heard, &frame, 0);
        for (at, (start, end)) in order.into_iter().enumerate() {
            let bytes = vec![at as u8; end - start];
            for place in &mut model[start..end] {
                place.get_or_insert(at as u8);
            }
            let seq = first.wrapping_add(start as u32);
            let frame = tcp([10, 0, 0, 1], [10, 0, 0, 2], (1, 80), seq, "", &bytes);
            push(&mut streams, &mut heard, &frame, 0);
            // All bytes that can be delivered have been.
            let ready = model.iter().take_while(|place| place.is_some()).count();
            let delivered = heard.streams.get(&0).map_or(0, |told| told.bytes.len());
            prop_assert_eq!(delivered, ready);
        }
        let told = &heard.streams[&0];
        let expected: Vec<u8> = model.into_iter().map(|place| place.expect("every byte is covered")).collect();
        prop_assert_eq!(&told.bytes, &expected);
        prop_assert_eq!((&told.gaps[..], streams.waiting()), (&[][..], 0));
    }

    /// With little room there are gaps and new streams, but every byte is delivered at its place.
    #[test]
    fn little_room_causes_gaps_but_loses_no_byte(order in segments(700), room in 0..3000usize) {
        let mut streams = Streams::new(Limits { waiting: room, ..Limits::default() });
        let mut heard = Heard::default();
        let text: Vec<u8> = (0..700u32).map(|at| (at % 251) as u8).collect();
        let frame = tcp([10, 0, 0, 1], [10, 0, 0, 2], (1, 80), 0, "S", b"");
        push(&mut streams, &mut heard, &frame, 0);
        // The start of each stream: the first begins with the SYN, others with the segment that
        // starts them.
        let mut starts = vec![0];
        for (start, end) in order {
            let frame = tcp([10, 0, 0, 1], [10, 0, 0, 2], (1, 80), 1 + start as u32, "", &text[start..end]);
            push(&mut streams, &mut heard, &frame, 0);
            prop_assert!(streams.waiting() <= room);
            starts.resize(starts.len().max(heard.streams.len()), start);
        }
        streams.finish(|piece| heard.hear(piece));
        let mut missing = vec![true; text.len()];
        for (start, told) in starts.iter().zip(heard.streams.values()) {
            let mut places: Vec<usize> = (*start..text.len()).collect();
            for (gap, length) in told.gaps.iter().rev() {
                places.drain(*gap as usize..(gap + length) as usize);
            }
            places.truncate(told.bytes.len());
            let expected: Vec<u8> = places.iter().map(|place| text[*place]).collect();
            prop_assert_eq!(&told.bytes, &expected);
            places.iter().for_each(|place| missing[*place] = false);
        }
        prop_assert!(!missing.contains(&true));
    }
}
