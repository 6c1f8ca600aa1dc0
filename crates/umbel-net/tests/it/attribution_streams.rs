//! Attribution of streams across epochs: no false negatives, whatever else the pairs send and
//! however epochs end.

use crate::common::{tcp, udp};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use umbel_net::attribution::{Epoch, Finding, Method, Pair, Recorder, Settings, Store};
use umbel_net::capture::{Link, Packet, Timestamp};

/// Returns pseudorandom bytes of this many different values.
fn bytes(seed: u64, kinds: u16, length: usize) -> Vec<u8> {
    let hasher = umbel::Hasher::fast(seed);
    (0..length as u64)
        .map(|i| (hasher.digest_bytes(&i.to_le_bytes()).get() % u64::from(kinds)) as u8)
        .collect()
}

/// A packet and its time.
type Frame = (Timestamp, Vec<u8>);

fn segment(millis: u64, hosts: (u8, u8), port: u16, seq: usize, flags: &str, payload: &[u8]) -> Frame {
    let frame = tcp([10, 0, 0, hosts.0], [10, 0, 0, hosts.1], (port, 80), seq as u32, flags, payload);
    (Timestamp::from_nanos(millis * 1_000_000), frame)
}

fn datagram(millis: u64, hosts: (u8, u8), payload: &[u8]) -> Frame {
    let [source, destination] = [hosts.0, hosts.1].map(|host| IpAddr::from(Ipv4Addr::new(10, 0, 0, host)));
    (Timestamp::from_nanos(millis * 1_000_000), udp(source, destination, (1, 2), payload))
}

/// A store with the recorded epochs of packets.
struct Kept {
    store: Store,
    epochs: Vec<Epoch>,
    _folder: tempfile::TempDir,
}

impl Kept {
    fn of(settings: Settings, frames: &[Frame]) -> Kept {
        let mut recorder = Recorder::new(Settings { streams: true, ..settings }, 7).expect("valid settings");
        let mut epochs = Vec::new();
        for (time, frame) in frames {
            let packet = Packet::from_frame(Link::ETHERNET, frame, *time, 0).expect("a packet");
            epochs.extend(recorder.record(&packet).expect("room"));
        }
        epochs.extend(recorder.finish().expect("room"));
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::create(folder.path()).expect("a store");
        epochs.iter().for_each(|epoch| drop(store.add(epoch).expect("room")));
        Kept { store, epochs, _folder: folder }
    }

    fn find(&self, excerpt: &[u8]) -> Vec<Finding> {
        let answer = self.store.find(excerpt, ..).expect("an answer");
        answer.searched.into_iter().flat_map(|searched| searched.found.findings).collect()
    }

    /// Returns whether a finding names this pair, or the entry that stands for it in a full list.
    fn names(&self, excerpt: &[u8], hosts: (u8, u8)) -> bool {
        let [source, destination] =
            [hosts.0, hosts.1].map(|host| IpAddr::from(Ipv4Addr::new(10, 0, 0, host)));
        let Pair { source, destination } = Pair::new(source, destination);
        let may_be = |pair: Pair| {
            [source, None].contains(&pair.source) && [destination, None].contains(&pair.destination)
        };
        self.find(excerpt).iter().any(|finding| may_be(finding.listed.pair))
    }
}

fn by_minute(method: Method) -> Settings {
    Settings { block: 16, epoch: Some(Duration::from_secs(60)), ..Settings::for_method(method) }
}

#[test]
fn stream_is_found_across_an_epoch_in_which_only_its_pair_was_active() {
    for method in Method::ALL {
        let text = bytes(1, 256, 400);
        let frames = [
            segment(0, (1, 2), 5, 0, "S", b""),
            segment(1_000, (1, 2), 5, 1, "", &text[..200]),
            datagram(61_000, (1, 2), &bytes(2, 256, 300)),
            segment(121_000, (1, 2), 5, 201, "", &text[200..]),
        ];
        let kept = Kept::of(by_minute(method), &frames);
        assert_eq!(kept.epochs.len(), 3);
        for from in 100..200 {
            assert!(kept.names(&text[from..from + 150], (1, 2)), "{method}: from {from}");
        }
    }
}

#[test]
fn stream_that_continues_after_its_end_is_found() {
    for method in Method::ALL {
        let text = bytes(1, 256, 400);
        let frames = [
            segment(0, (1, 2), 5, 0, "S", b""),
            segment(1, (1, 2), 5, 1, "F", &text[..195]),
            segment(2, (1, 2), 5, 196, "", &text[195..]),
        ];
        let kept = Kept::of(by_minute(method), &frames);
        for from in 100..200 {
            assert!(kept.names(&text[from..from + 150], (1, 2)), "{method}: from {from}");
        }
    }
}

#[test]
fn pair_listed_in_only_one_epoch_is_found() {
    for method in Method::ALL {
        let text = bytes(1, 256, 400);
        let flood = |start: u64| {
            (0..20).map(move |i| datagram(start + i, (100 + i as u8, 2), &bytes(i + start, 256, 40)))
        };
        for in_first in [false, true] {
            let mut frames = vec![segment(0, (1, 2), 5, 0, "S", b"")];
            let stretches = [(1_000, 1, &text[..200]), (61_000, 201, &text[200..])];
            for (i, (time, seq, stretch)) in stretches.into_iter().enumerate() {
                if in_first == (i == 0) {
                    frames.extend(flood(time - 500));
                }
                frames.push(segment(time, (1, 2), 5, seq, "", stretch));
            }
            let kept = Kept::of(Settings { pairs: 5, ..by_minute(method) }, &frames);
            for from in 100..200 {
                assert!(kept.names(&text[from..from + 150], (1, 2)), "{method}: from {from}, {in_first}");
            }
        }
    }
}

/// A step of the scenario: the stream, the number of bytes, the time since the last step, and the
/// action.
#[derive(Clone, Copy, Debug)]
struct Next {
    stream: usize,
    length: usize,
    millis: u64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// The next bytes.
    Bytes,
    /// The next bytes, in the wrong order.
    Swapped,
    /// The next bytes, marked as the last.
    Last,
    /// Bytes that were sent before.
    Again,
    /// Other traffic of the same pair.
    Datagram,
    /// The clock goes back.
    Back,
}

fn nexts(block: usize) -> impl Strategy<Value = Vec<Next>> {
    let length = prop_oneof![1..3 * block, (1..6usize).prop_map(move |n| n * block), 1..600usize];
    let millis = prop_oneof![3 => 0..100u64, 1 => 0..70_000u64];
    let what = prop_oneof![
        8 => Just(What::Bytes), 2 => Just(What::Swapped), 1 => Just(What::Last), 1 => Just(What::Again), 2 => Just(What::Datagram),
        1 => Just(What::Back)
    ];
    let next = (0..6usize, length, millis, what);
    let next = next.prop_map(|(stream, length, millis, what)| Next { stream, length, millis, what });
    prop::collection::vec(next, 1..80)
}

fn settings() -> impl Strategy<Value = Settings> {
    let bits = prop::sample::select(vec![1.0, 2.0, 6.0, 25.0]);
    let method = prop::sample::select(Method::ALL.to_vec());
    let epoch = prop::option::of((1..60u64).prop_map(Duration::from_secs));
    (method, 2usize..9, 1u32..4, bits, epoch, 1usize..4, prop_oneof![Just(1u64 << 10), Just(1 << 26)])
        .prop_map(|(method, half, instances, bits_per_block, epoch, pairs, full)| Settings {
            block: 2 * half,
            instances,
            bits_per_block,
            epoch,
            pairs,
            full,
            ..Settings::for_method(method)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Uses tiny blocks, few byte values, a flood of pairs, epochs of few bytes, and interleaved
    /// streams of the same pairs.
    #[test]
    fn every_excerpt_of_a_stream_is_found(
        (settings, nexts) in settings().prop_flat_map(|settings| (nexts(settings.block), Just(settings)).prop_map(|(nexts, settings)| (settings, nexts))),
        kinds in prop::sample::select(vec![1u16, 2, 4, 256]),
        picks in prop::collection::vec((0usize..6, 0usize..100_000, 0usize..300), 20),
    ) {
        let hosts = |stream: usize| (1 + stream as u8 / 3, 9);
        let texts: Vec<Vec<u8>> = (0..6).map(|i| bytes(i, kinds, 60_000)).collect();
        let mut sent = [0; 6];
        let mut frames: Vec<Frame> = (0..6).map(|i| segment(1_000_000, hosts(i), i as u16, 0, "S", b"")).collect();
        let mut now = 1_000_000;
        for (i, Next { stream, length, millis, what }) in nexts.into_iter().enumerate() {
            now = if what == What::Back { now - millis } else { now + millis.min(20_000) };
            let (text, at) = (&texts[stream], sent[stream]);
            let of = |from: usize, to: usize, flags| segment(now, hosts(stream), stream as u16, 1 + from, flags, &text[from..to]);
            match what {
                What::Bytes | What::Back => frames.push(of(at, at + length, "")),
                What::Last => frames.push(of(at, at + length, "F")),
                What::Swapped => {
                    let middle = at + length / 2;
                    if middle > at {
                        frames.extend([of(middle, at + length, ""), of(at, middle, "")]);
                    } else {
                        frames.push(of(at, at + length, ""));
                    }
                }
                What::Again => {
                    if at > 0 {
                        frames.push(of(at.saturating_sub(length), at, ""));
                    }
                    continue;
                }
                What::Datagram => {
                    frames.push(datagram(now, hosts(stream), &bytes(1 << 40 | i as u64, kinds, length)));
                    continue;
                }
            }
            sent[stream] += length;
        }
        let kept = Kept::of(settings, &frames);
        let Some(needed) = kept.epochs.first().map(Epoch::needed) else { return Ok(()) };
        for (stream, from, extra) in picks {
            let Some(last) = sent[stream].checked_sub(needed) else { continue };
            let from = from % (last + 1);
            let excerpt = &texts[stream][from..sent[stream].min(from + needed + extra)];
            prop_assert!(kept.names(excerpt, hosts(stream)), "stream {stream}, {from}..{}, {} epochs", from + excerpt.len(), kept.epochs.len());
        }
    }
}
