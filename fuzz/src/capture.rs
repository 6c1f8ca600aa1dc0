//! Captures and the streams in them.
//!
//! Whatever the bytes are: reading ends, the same bytes compressed give the same, the buffer is bounded by what was read, and of
//! the streams every byte is delivered once, at the place that follows, within the limits.

use flate2::Compression;
use flate2::read::GzEncoder;
use std::collections::HashMap;
use std::io::Read;
use umbel_net::capture::streams::{Ending, Event, Limits, Piece, Streams};
use umbel_net::capture::{Counts, End, MAX_RECORD, Reader};

/// So little that a few small packets are too much.
const LIMITS: Limits = Limits { streams: 4, waiting: 300, waiting_together: 700, idle: 1_000_000_000 };

/// Takes any bytes.
pub fn run(bytes: &[u8]) {
    // The buffer has 256 KiB at least; then twice what has come, up to the longest record and its head.
    let most = (2 * bytes.len()).clamp(1 << 18, MAX_RECORD + 24);
    if bytes.starts_with(&[0x1f, 0x8b, 0x08]) {
        read(bytes, MAX_RECORD + 24);
    } else {
        // Stored as they are, which is fast; seeds that are compressed see to the rest.
        let packed = GzEncoder::new(bytes, Compression::none());
        assert_eq!(read(bytes, most), read(packed, most), "plain, and compressed");
    }
}

/// Whether it is a capture from its beginning to its end.
pub fn loads(bytes: &[u8]) -> bool {
    read(bytes, MAX_RECORD + 24).is_some_and(|(_, end)| end == End::Whole)
}

/// Reads to the end; nothing if it is no capture.
fn read(input: impl Read + Send, most: usize) -> Option<(Counts, End)> {
    let mut reader = Reader::new(input).ok()?;
    let mut streams = Streams::new(LIMITS);
    let mut heard = Heard::default();
    let (mut payload, mut packets, mut number) = (0, 0, 0);
    while let Some(packet) = reader.next().expect("memory can be read") {
        packets += 1;
        assert!(packet.number > number, "frames are numbered");
        number = packet.number;
        if packet.tcp.is_some() {
            payload += packet.payload.len() as u64;
        }
        streams.push(&packet, |piece| heard.hear(piece));
        assert!(streams.waiting() <= LIMITS.waiting_together && streams.len() <= LIMITS.streams);
    }
    streams.finish(|piece| heard.hear(piece));
    assert!(streams.is_empty() && streams.waiting() == 0, "nothing is left");

    let counts = *reader.counts();
    assert_eq!((counts.packets, counts.frames), (packets, packets + counts.skipped.total()));
    assert!(number <= counts.frames);
    assert!(reader.memory() <= most, "a buffer of {} bytes", reader.memory());
    let told = streams.counts();
    assert_eq!(told.delivered + told.repeated, payload, "every byte was new or was there");
    assert_eq!((told.delivered, told.missing), (heard.bytes, heard.missing));
    assert_eq!(told.streams, heard.streams.len() as u64);
    assert!(heard.streams.values().all(|stream| stream.end.is_some()), "every end is told");
    Some((counts, reader.end().expect("an end")))
}

/// What was delivered.
#[derive(Default)]
struct Heard {
    streams: HashMap<u64, Heading>,
    bytes: u64,
    missing: u64,
}

/// How far a stream has come.
#[derive(Default)]
struct Heading {
    next: u64,
    end: Option<Ending>,
}

impl Heard {
    fn hear(&mut self, piece: Piece<'_>) {
        let stream = self.streams.entry(piece.stream).or_default();
        assert_eq!(piece.offset, stream.next, "one after the other");
        // Who was finished may go on; who is forgotten may not.
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
            Event::End(why) => assert_eq!(stream.end.replace(why), None, "an end is told once"),
        }
    }
}
