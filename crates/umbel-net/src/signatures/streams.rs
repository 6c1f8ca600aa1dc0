//! Search for signatures in the TCP streams of a capture, however they were split into packets.

use super::{Finding, Search, Tail};
use crate::capture::streams::{Ending, Event, Limits, Piece, StreamCounts, Streams};
use crate::capture::{Flow, Packet};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// A search in the streams of a capture, and in the payloads of packets that do not belong to a
/// stream.
///
/// ```
/// use std::ops::ControlFlow;
/// use umbel_net::capture::streams::Limits;
/// use umbel_net::capture::{Link, Packet, Timestamp};
/// use umbel_net::signatures::{Scanner, StreamSearch};
///
/// // Segments of a connection from port 5 to port 80, by sequence number.
/// let segment = |seq: u8, payload: &[u8]| {
///     let length = 40 + payload.len() as u8;
///     let ip = [0x45, 0, 0, length, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
///     let tcp = [0, 5, 0, 80, 0, 0, 0, seq, 0, 0, 0, 0, 0x50, 0, 1, 1, 0, 0, 0, 0];
///     [&ip[..], &tcp[..], payload].concat()
/// };
/// let scanner = Scanner::new(["cmd.exe"])?;
/// let mut search = scanner.search();
/// let mut streams = StreamSearch::new(&mut search, Limits::default());
/// let mut reported = Vec::new();
/// for (number, frame) in (1..).zip([segment(1, b"GET /c"), segment(8, b"d.exe"), segment(7, b"m")]) {
///     let packet = Packet { number, ..Packet::from_frame(Link::RAW, &frame, Timestamp::from_secs(1), 0)? };
///     let _ = streams.push(&packet, |found| {
///         reported.push((found.finding.offset, found.packet, found.stream));
///         ControlFlow::<()>::Continue(())
///     });
/// }
/// assert_eq!(reported, [(5, 2, Some(0))]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The findings in a stream are those of an exact search in its bytes as [`Streams`] delivers them:
/// across any number of segments, but never across a gap. A finding is reported when its last byte
/// is delivered. Of each stream, only the bytes that may be the start of a signature are kept.
///
/// Where segments overlap, the bytes that came first count in the stream. A sender may send
/// different bytes in their place, and the receiver decides which to take. So a segment that
/// repeats bytes, whether equal or not, is also searched on its own, as a packet. Signatures that
/// such a segment would complete together with others are not found, nor are signatures split over
/// a reset.
#[derive(Debug)]
pub struct StreamSearch<'m, 's> {
    search: &'m mut Search<'s>,
    streams: Streams,
    /// The tails by the number of the stream.
    tails: HashMap<u64, (Flow, Tail)>,
}

/// A signature found in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFinding {
    /// The signature and its offset: in the stream, missing bytes included, or in the payload of a
    /// packet.
    pub finding: Finding,
    /// The number of the packet with its last byte.
    pub packet: u64,
    /// The flow of the stream or packet.
    pub flow: Flow,
    /// The number of the stream, from 0 in the order in which streams began; `None` if a packet was
    /// searched on its own.
    pub stream: Option<u64>,
}

impl<'m, 's> StreamSearch<'m, 's> {
    /// Returns a search in the streams of one capture. It borrows `search`, which may be used again
    /// afterwards.
    pub fn new(search: &'m mut Search<'s>, limits: Limits) -> StreamSearch<'m, 's> {
        StreamSearch { search, streams: Streams::new(limits), tails: HashMap::new() }
    }

    /// Searches the next packet, and calls `found` with the findings that it completes. If `found`
    /// breaks, the search is over.
    pub fn push<B>(
        &mut self,
        packet: &Packet<'_>,
        mut found: impl FnMut(StreamFinding) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let StreamSearch { search, streams, tails } = self;
        let before = streams.counts().repeated;
        let mut flow = ControlFlow::Continue(());
        streams.push(packet, |piece| {
            if flow.is_continue() {
                flow = hear(search, tails, piece, &mut found);
            }
        });
        flow?;
        if packet.tcp.is_none() || streams.counts().repeated > before {
            let (flow, packet, payload) = (packet.flow(), packet.number, packet.payload);
            search.whole(payload, |finding| found(StreamFinding { finding, packet, flow, stream: None }))?;
        }
        // No event is sent when a finished stream is dropped, so prune its state here.
        if tails.len() > 2 * streams.len() + 64 {
            tails.retain(|stream, (flow, _)| streams.has(flow, *stream));
        }
        ControlFlow::Continue(())
    }

    /// Ends all streams at the end of the capture: calls `found` with the findings in segments that
    /// were still waiting.
    pub fn finish<B>(&mut self, mut found: impl FnMut(StreamFinding) -> ControlFlow<B>) -> ControlFlow<B> {
        let StreamSearch { search, streams, tails } = self;
        let mut flow = ControlFlow::Continue(());
        streams.finish(|piece| {
            if flow.is_continue() {
                flow = hear(search, tails, piece, &mut found);
            }
        });
        tails.clear();
        flow
    }

    /// Returns the counts of the streams.
    pub fn counts(&self) -> &StreamCounts {
        self.streams.counts()
    }

    /// Returns the number of bytes kept of streams, not counting waiting segments.
    pub fn kept(&self) -> usize {
        self.tails.values().map(|(_, tail)| tail.len()).sum()
    }
}

/// Searches the bytes delivered by an event of a stream.
fn hear<B>(
    search: &mut Search<'_>,
    tails: &mut HashMap<u64, (Flow, Tail)>,
    piece: Piece<'_>,
    found: &mut impl FnMut(StreamFinding) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let Piece { flow, stream, packet, offset, .. } = piece;
    match piece.event {
        Event::Bytes(bytes) => {
            let (_, tail) = tails.entry(stream).or_insert_with(|| (flow, Tail::new_at(offset)));
            let stream = Some(stream);
            return search
                .follow(tail, bytes, |finding| found(StreamFinding { finding, packet, flow, stream }));
        }
        // The sender may continue after a FIN, so keep the tail.
        Event::End(Ending::Finished) => {}
        Event::Gap(_) | Event::End(_) => {
            tails.remove(&stream);
        }
    }
    ControlFlow::Continue(())
}
