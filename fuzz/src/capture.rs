//! Captures and the streams in them.
//!
//! For any input: reading ends, the same bytes compressed yield the same result, the size of the
//! buffer is bounded by the bytes read, and every byte of a stream is delivered once, in order,
//! within the limits.

use flate2::Compression;
use flate2::read::GzEncoder;
use std::collections::HashMap;
use std::io::Read;
use umbel_net::capture::streams::{Ending, Event, Limits, Piece, Streams};
use umbel_net::capture::{Counts, End, MAX_RECORD, Reader};

/// Limits so low that a few small packets exceed them.
const LIMITS: Limits = Limits { streams: 4, waiting: 300, waiting_together: 700, idle: 1_000_000_000 };

/// Tests any bytes.
pub fn run(bytes: &[u8]) {
    // The buffer has at least 256 KiB, then twice the bytes read so far, up to the longest record
    // and its header.
    let most = (2 * bytes.len()).clamp(1 << 18, MAX_RECORD + 24);
    if bytes.starts_with(&[0x1f, 0x8b, 0x08]) {
        read(bytes, MAX_RECORD + 24);
    } else {
        // Stored without compression, which is fast; compressed seeds cover the rest.
        let packed = GzEncoder::new(bytes, Compression::none());
        assert_eq!(read(bytes, most), read(packed, most), "plain and compressed agree");
    }
}

/// Returns whether this is a complete capture.
pub fn loads(bytes: &[u8]) -> bool {
    read(bytes, MAX_RECORD + 24).is_some_and(|(_, end)| end == End::Whole)
}

/// Reads to the end; `None` if the input is not a capture.
fn read(input: impl Read + Send, most: usize) -> Option<(Counts, End)> {
    let mut reader = Reader::new(input).ok()?;
    let mut streams = Streams::new(LIMITS);
    let mut delivered = Delivered::default();
    let (mut payload, mut packets, mut number) = (0, 0, 0);
    while let Some(packet) = reader.next().expect("memory can be read") {
        packets += 1;
        assert!(packet.number > number, "frame numbers increase");
        number = packet.number;
        if packet.tcp.is_some() {
            payload += packet.payload.len() as u64;
        }
        streams.push(&packet, |piece| delivered.receive(piece));
        assert!(streams.waiting() <= LIMITS.waiting_together && streams.len() <= LIMITS.streams);
    }
    streams.finish(|piece| delivered.receive(piece));
    assert!(streams.is_empty() && streams.waiting() == 0, "nothing is left");

    let counts = *reader.counts();
    assert_eq!((counts.packets, counts.frames), (packets, packets + counts.skipped.total()));
    assert!(number <= counts.frames);
    assert!(reader.memory() <= most, "a buffer of {} bytes", reader.memory());
    let stream_counts = streams.counts();
    assert_eq!(
        stream_counts.delivered + stream_counts.repeated,
        payload,
        "every byte is delivered or a repetition"
    );
    assert_eq!((stream_counts.delivered, stream_counts.missing), (delivered.bytes, delivered.missing));
    assert_eq!(stream_counts.streams, delivered.streams.len() as u64);
    assert!(delivered.streams.values().all(|stream| stream.end.is_some()), "every stream ends");
    Some((counts, reader.end().expect("an end")))
}

/// The events of all streams.
#[derive(Default)]
struct Delivered {
    streams: HashMap<u64, StreamProgress>,
    bytes: u64,
    missing: u64,
}

/// The progress of a stream.
#[derive(Default)]
struct StreamProgress {
    next: u64,
    end: Option<Ending>,
}

impl Delivered {
    fn receive(&mut self, piece: Piece<'_>) {
        let stream = self.streams.entry(piece.stream).or_default();
        assert_eq!(piece.offset, stream.next, "pieces are in order");
        // A finished stream may continue; a dropped one may not.
        assert!(matches!(stream.end, None | Some(Ending::Finished)));
        match piece.event {
            Event::Bytes(bytes) => {
                assert!(!bytes.is_empty());
                stream.next += bytes.len() as u64;
                self.bytes += bytes.len() as u64;
            }
            Event::Gap(missing) => {
                assert!(missing > 0);
                stream.next += missing;
                self.missing += missing;
            }
            Event::End(why) => assert_eq!(stream.end.replace(why), None, "a stream ends once"),
        }
    }
}
