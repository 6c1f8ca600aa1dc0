//! Reassembly of TCP streams, so that text is found even if it was split into small packets.
//!
//! ```
//! use umbel_net::capture::streams::{Event, Streams};
//! use umbel_net::capture::{Link, Packet, Timestamp};
//!
//! // Segments of a connection from port 5 to port 80, by sequence number.
//! let segment = |seq: u8, flags: u8, payload: &[u8]| {
//!     let length = 40 + payload.len() as u8;
//!     let ip = [0x45, 0, 0, length, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
//!     let tcp = [0, 5, 0, 80, 0, 0, 0, seq, 0, 0, 0, 0, 0x50, flags, 1, 1, 0, 0, 0, 0];
//!     [&ip[..], &tcp[..], payload].concat()
//! };
//! let mut streams = Streams::default();
//! let mut text = Vec::new();
//! // SYN, then the second half before the first, which also comes twice.
//! for frame in [segment(9, 2, b""), segment(14, 0, b"plans"), segment(10, 0, b"the "), segment(10, 0, b"the ")] {
//!     let packet = Packet::from_frame(Link::RAW, &frame, Timestamp::from_secs(1), 0)?;
//!     streams.push(&packet, |piece| {
//!         if let Event::Bytes(bytes) = piece.event {
//!             assert_eq!(piece.offset, text.len() as u64);
//!             text.extend_from_slice(bytes);
//!         }
//!     });
//! }
//! assert_eq!(text, b"the plans");
//! # Ok::<(), umbel_net::capture::Skip>(())
//! ```
//!
//! Each direction is a stream of its own. Bytes are delivered in order and once; where segments
//! overlap, the bytes that came first count. A segment that is ahead waits for the missing bytes
//! until [`Limits::waiting`] is exceeded or the stream ends; then the gap is reported and skipped.
//! A stream that was running when the capture began starts with its first segment that has bytes.
//!
//! A sender cannot hide bytes. Bytes after a reset are a new stream, bytes beyond the announced end
//! are delivered, and a stream that was evicted starts again. Bytes before a skipped gap, or before
//! the first byte, are a new stream, too: a segment far ahead, which the receiver ignores, does not
//! hide the bytes that follow it. Missing bytes are reported and counted.

use super::{Flow, Packet, TcpInfo, Timestamp};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Limits on the memory of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of streams at a time. Beyond that, the stream that was idle for the longest time
    /// ends.
    pub streams: usize,
    /// The number of bytes in one stream that wait for missing bytes before them.
    pub waiting: usize,
    /// The number of bytes that wait in all streams together.
    pub waiting_together: usize,
    /// The number of nanoseconds after which an idle stream ends.
    pub idle: u64,
}

impl Default for Limits {
    /// Returns limits of 65 536 streams, 256 KiB and 64 MiB waiting, and five minutes.
    fn default() -> Limits {
        Limits {
            streams: 1 << 16,
            waiting: 1 << 18,
            waiting_together: 1 << 26,
            idle: 300 * super::NANOS_PER_SECOND,
        }
    }
}

/// An event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The flow of the stream.
    pub flow: Flow,
    /// The number of the stream, from 0 in the order in which streams began. A flow may have
    /// several streams, one after the other.
    pub stream: u64,
    /// The number of bytes of the stream before this event, including missing ones.
    pub offset: u64,
    /// The time of the packet that brought the bytes, or that brought the missing bytes before
    /// them.
    pub time: Timestamp,
    /// The number of the packet with these bytes. For a gap or an end, the number of the packet
    /// that caused it, or 0 at the end of the capture.
    pub packet: u64,
    /// The event.
    pub event: Event<'a>,
}

/// Something that happens to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The next bytes; never empty.
    Bytes(&'a [u8]),
    /// This many bytes are missing.
    Gap(u64),
    /// The stream ended. Bytes beyond the end that its sender announced are still delivered.
    End(Ending),
}

/// The reason why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// Its sender finished, and all bytes were delivered.
    Finished,
    /// It was reset, or its ports were reused for another connection.
    Reset,
    /// It was idle for longer than [`Limits::idle`].
    Idle,
    /// It made room for other streams.
    Evicted,
    /// Bytes arrived from before its first byte, or from before a gap; they begin a new stream.
    Rewound,
    /// The capture ended.
    Capture,
}

/// Counts of streams and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamCounts {
    /// Streams that began.
    pub streams: u64,
    /// Streams that were evicted to make room.
    pub evicted: u64,
    /// Bytes that were delivered.
    pub delivered: u64,
    /// Bytes that were sent again.
    pub repeated: u64,
    /// Gaps in streams.
    pub gaps: u64,
    /// Bytes missing in gaps.
    pub missing: u64,
    /// Bytes beyond the end that the sender announced.
    pub beyond_end: u64,
}

/// The TCP streams that are being reassembled.
#[derive(Debug, Default)]
pub struct Streams {
    limits: Limits,
    streams: HashMap<Flow, Stream>,
    /// Every stream once, ordered by its last packet at the time it was queued. A stream that was
    /// active since is queued again when its turn comes, so that packets need not move anything.
    silent: VecDeque<Turn>,
    packets: u64,
    waiting: usize,
    counts: StreamCounts,
}

/// The place of a stream in the queue of streams to evict.
#[derive(Clone, Copy, Debug)]
struct Turn {
    flow: Flow,
    stream: u64,
    /// Its last packet when it was queued, by number and by time.
    last: (u64, Timestamp),
}

/// One direction of a connection.
#[derive(Debug)]
struct Stream {
    flow: Flow,
    id: u64,
    /// The sequence number of the first byte.
    first: u32,
    /// The number of bytes that were delivered or skipped.
    next: u64,
    /// The offset from which all bytes were delivered without a gap.
    heard_from: u64,
    /// The waiting segments, by offset; they do not overlap.
    ahead: BTreeMap<u64, Waiting>,
    /// The memory of the waiting segments.
    waiting: usize,
    /// The offset of its end, once it is known.
    end: Option<u64>,
    /// Whether its end was reported. The stream is kept for a while, so that repeated bytes do not
    /// become a new stream.
    ended: bool,
    /// Its last packet, by number and by time.
    last: (u64, Timestamp),
}

/// A segment that waits for missing bytes before it.
#[derive(Debug)]
struct Waiting {
    bytes: Vec<u8>,
    /// The number of its packet.
    packet: u64,
}

/// The receiver of events, and the packet that caused them.
struct Delivery<'d, F> {
    deliver: &'d mut F,
    time: Timestamp,
    packet: u64,
}

impl<F: FnMut(Piece<'_>)> Delivery<'_, F> {
    fn send(&mut self, stream: &Stream, event: Event<'_>) {
        self.send_from(stream, self.packet, event);
    }

    fn send_from(&mut self, stream: &Stream, packet: u64, event: Event<'_>) {
        let Stream { flow, id, next, .. } = *stream;
        (self.deliver)(Piece { flow, stream: id, offset: next, time: self.time, packet, event });
    }
}

/// The memory of a waiting segment apart from its bytes. Counting it bounds many small segments,
/// too.
const SEGMENT_OVERHEAD_BYTES: usize = 64;

impl Streams {
    /// Returns streams with these limits.
    pub fn new(limits: Limits) -> Streams {
        Streams { limits, ..Streams::default() }
    }

    /// Processes a packet, and delivers the resulting events. Packets that are not TCP are ignored.
    pub fn push(&mut self, packet: &Packet<'_>, mut deliver: impl FnMut(Piece<'_>)) {
        let Some(tcp) = packet.tcp else { return };
        let flow = packet.flow();
        self.packets += 1;
        let mut out = Delivery { deliver: &mut deliver, time: packet.time, packet: packet.number };
        self.end_silent(packet.time, &mut out);
        let is_first = tcp.has(TcpInfo::SYN);
        // The SYN takes a sequence number, too.
        let seq = tcp.seq.wrapping_add(is_first.into());
        match self.streams.get(&flow) {
            Some(stream) if is_first && stream.first != seq => self.end(&flow, Ending::Reset, &mut out),
            Some(stream) if !packet.payload.is_empty() && stream.is_unheard(seq) => {
                self.end(&flow, Ending::Rewound, &mut out);
            }
            _ => {}
        }
        let stream = match self.streams.entry(flow) {
            Entry::Occupied(entry) => entry.into_mut(),
            // Acknowledgements alone do not start a stream.
            Entry::Vacant(_) if packet.payload.is_empty() && !is_first => return,
            Entry::Vacant(entry) => {
                let id = self.counts.streams;
                self.counts.streams += 1;
                self.silent.push_back(Turn { flow, stream: id, last: (self.packets, packet.time) });
                entry.insert(Stream::new(flow, id, seq))
            }
        };
        stream.last = (self.packets, packet.time);
        let before = stream.waiting;
        stream.segment(seq, packet.payload, tcp, &mut self.counts, &mut out);
        self.waiting = self.waiting + stream.waiting - before;
        let is_too_much = self.waiting > self.limits.waiting_together;
        let most = if is_too_much { 0 } else { self.limits.waiting };
        let before = stream.waiting;
        while stream.waiting > most {
            stream.pass_gap(&mut self.counts, &mut out);
        }
        stream.check_end(&mut out);
        self.waiting = self.waiting + stream.waiting - before;
        if tcp.has(TcpInfo::RST) {
            self.end(&flow, Ending::Reset, &mut out);
        }
        while self.streams.len() > self.limits.streams.max(1) && self.evict(&mut out) {}
    }

    /// Ends all streams, at the end of the capture.
    pub fn finish(&mut self, mut deliver: impl FnMut(Piece<'_>)) {
        let mut flows: Vec<(u64, Flow)> =
            self.streams.iter().map(|(flow, stream)| (stream.id, *flow)).collect();
        flows.sort_unstable_by_key(|(id, _)| *id);
        for (_, flow) in flows {
            let time = self.streams.get(&flow).map_or(Timestamp::default(), |stream| stream.last.1);
            self.end(&flow, Ending::Capture, &mut Delivery { deliver: &mut deliver, time, packet: 0 });
        }
        self.silent.clear();
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> &StreamCounts {
        &self.counts
    }

    /// Returns the number of streams that are kept.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Returns whether no stream is kept.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Returns whether the stream with this number is kept. A stream whose end was reported may
    /// still be kept, and may continue.
    pub fn has(&self, flow: &Flow, stream: u64) -> bool {
        self.streams.get(flow).is_some_and(|kept| kept.id == stream)
    }

    /// Returns the memory of the waiting segments.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Delivers the waiting segments of a stream, reports its end, and drops it.
    fn end(&mut self, flow: &Flow, why: Ending, out: &mut Delivery<'_, impl FnMut(Piece<'_>)>) {
        let Some(mut stream) = self.streams.remove(flow) else { return };
        self.waiting -= stream.waiting;
        while stream.waiting > 0 {
            stream.pass_gap(&mut self.counts, out);
        }
        stream.check_end(out);
        if !stream.ended {
            out.send(&stream, Event::End(why));
        }
    }

    /// Ends at most two idle streams, so that no packet pays for many.
    fn end_silent(&mut self, now: Timestamp, out: &mut Delivery<'_, impl FnMut(Piece<'_>)>) {
        for _ in 0..2 {
            // A stream that was recently active when it was queued is active now: no need to look
            // it up.
            let is_silent = |turn: &&Turn| now.nanos_since(turn.last.1) > self.limits.idle;
            let Some(turn) = self.silent.front().filter(is_silent).copied() else { break };
            self.take_turn(turn, Ending::Idle, out);
        }
        // Remove the entries of streams that ended for other reasons.
        if self.silent.len() > 2 * self.streams.len() + 64 {
            let mut turns = std::mem::take(&mut self.silent);
            turns.retain(|turn| self.last_of(*turn).is_some());
            self.silent = turns;
        }
    }

    /// Ends the stream that was idle for the longest time, and returns whether there was one.
    fn evict(&mut self, out: &mut Delivery<'_, impl FnMut(Piece<'_>)>) -> bool {
        while let Some(turn) = self.silent.front().copied() {
            if self.take_turn(turn, Ending::Evicted, out) {
                self.counts.evicted += 1;
                return true;
            }
        }
        false
    }

    /// Takes the first entry of the queue: queues the stream again if it was active since, or ends
    /// it. Returns whether it ended.
    fn take_turn(&mut self, turn: Turn, why: Ending, out: &mut Delivery<'_, impl FnMut(Piece<'_>)>) -> bool {
        self.silent.pop_front();
        match self.last_of(turn) {
            Some(last) if last != turn.last => self.silent.push_back(Turn { last, ..turn }),
            Some(_) => {
                self.end(&turn.flow, why, out);
                return true;
            }
            None => {}
        }
        false
    }

    /// Returns the last packet of a stream, if the stream still exists.
    fn last_of(&self, turn: Turn) -> Option<(u64, Timestamp)> {
        self.streams.get(&turn.flow).filter(|stream| stream.id == turn.stream).map(|stream| stream.last)
    }
}

impl Stream {
    fn new(flow: Flow, id: u64, first: u32) -> Stream {
        Stream {
            flow,
            id,
            first,
            next: 0,
            heard_from: 0,
            ahead: BTreeMap::new(),
            waiting: 0,
            end: None,
            ended: false,
            last: (0, Timestamp::default()),
        }
    }

    /// Returns the offset of a sequence number, or `None` before the first byte. Sequence numbers
    /// wrap around; the nearest offset is assumed.
    fn offset(&self, seq: u32) -> Option<u64> {
        let expected = self.first.wrapping_add(self.next as u32);
        self.next.checked_add_signed(i64::from(seq.wrapping_sub(expected) as i32))
    }

    /// Returns whether a byte precedes the part that was delivered without a gap, so that it may
    /// never have been delivered.
    fn is_unheard(&self, seq: u32) -> bool {
        self.offset(seq).is_none_or(|offset| offset < self.heard_from)
    }

    /// Processes a segment: delivers bytes that are next, holds bytes that are ahead, and drops
    /// repeated bytes.
    fn segment(
        &mut self,
        seq: u32,
        bytes: &[u8],
        tcp: TcpInfo,
        counts: &mut StreamCounts,
        out: &mut Delivery<'_, impl FnMut(Piece<'_>)>,
    ) {
        // A segment with bytes before the first byte would have begun a new stream.
        let Some(start) = self.offset(seq) else { return };
        let end = start + bytes.len() as u64;
        if tcp.has(TcpInfo::FIN) && self.end.is_none() && end >= self.next {
            self.end = Some(end);
        }
        counts.beyond_end += self.end.map_or(0, |last| end.saturating_sub(last.max(start)));
        self.insert(start, bytes, counts, out);
        self.check_end(out);
    }

    /// Delivers or holds those of the bytes from `start` on that are new.
    fn insert(
        &mut self,
        mut start: u64,
        mut bytes: &[u8],
        counts: &mut StreamCounts,
        out: &mut Delivery<'_, impl FnMut(Piece<'_>)>,
    ) {
        while !bytes.is_empty() {
            // The first known range that ends after the start: delivered bytes, or a waiting
            // segment.
            let (from, to) = match start < self.next {
                true => (0, self.next),
                false => self.neighbour(start),
            };
            if start < from {
                let new = usize::try_from(from - start).unwrap_or(usize::MAX).min(bytes.len());
                let (now, rest) = bytes.split_at(new);
                if start == self.next {
                    self.deliver(now, out.packet, counts, out);
                    self.drain(counts, out);
                } else {
                    self.ahead.insert(start, Waiting { bytes: now.to_vec(), packet: out.packet });
                    self.waiting += now.len() + SEGMENT_OVERHEAD_BYTES;
                }
                start += new as u64;
                bytes = rest;
            } else {
                let old = usize::try_from(to - start).unwrap_or(usize::MAX).min(bytes.len());
                counts.repeated += old as u64;
                start += old as u64;
                bytes = &bytes[old..];
            }
        }
    }

    /// Returns the range of the first waiting segment that ends after an offset, or a range at
    /// `u64::MAX` if there is none.
    fn neighbour(&self, offset: u64) -> (u64, u64) {
        let range = |(start, waiting): (&u64, &Waiting)| (*start, start + waiting.bytes.len() as u64);
        let before = self.ahead.range(..=offset).next_back().map(range).filter(|(_, end)| *end > offset);
        before.or_else(|| self.ahead.range(offset..).next().map(range)).unwrap_or((u64::MAX, u64::MAX))
    }

    fn deliver(
        &mut self,
        bytes: &[u8],
        packet: u64,
        counts: &mut StreamCounts,
        out: &mut Delivery<'_, impl FnMut(Piece<'_>)>,
    ) {
        out.send_from(self, packet, Event::Bytes(bytes));
        counts.delivered += bytes.len() as u64;
        self.next += bytes.len() as u64;
    }

    /// Delivers the waiting segments that now follow without a gap.
    fn drain(&mut self, counts: &mut StreamCounts, out: &mut Delivery<'_, impl FnMut(Piece<'_>)>) {
        while let Some(entry) = self.ahead.first_entry().filter(|entry| *entry.key() == self.next) {
            let Waiting { bytes, packet } = entry.remove();
            self.waiting -= bytes.len() + SEGMENT_OVERHEAD_BYTES;
            self.deliver(&bytes, packet, counts, out);
        }
    }

    /// Skips the gap before the first waiting segment.
    fn pass_gap(&mut self, counts: &mut StreamCounts, out: &mut Delivery<'_, impl FnMut(Piece<'_>)>) {
        let Some((start, _)) = self.ahead.first_key_value() else { return };
        let missing = start - self.next;
        out.send(self, Event::Gap(missing));
        counts.gaps += 1;
        counts.missing += missing;
        self.next += missing;
        self.heard_from = self.next;
        self.drain(counts, out);
    }

    fn check_end(&mut self, out: &mut Delivery<'_, impl FnMut(Piece<'_>)>) {
        if !self.ended && self.end.is_some_and(|end| end <= self.next) {
            self.ended = true;
            out.send(self, Event::End(Ending::Finished));
        }
    }
}
