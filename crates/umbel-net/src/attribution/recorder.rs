//! The recorder, which turns packets into epochs.

use super::epoch::{EpochInfo, Records};
use super::pairs::Pairs;
use super::{Epoch, Method, Pair, Settings};
use crate::Result;
use crate::capture::streams::{Ending, Event, Piece, StreamCounts, Streams};
use crate::capture::{Flow, Packet, Timestamp};
use crate::payload::winnowing::{self, Block, Cutter};
use crate::payload::{Climb, Scheme, each_record};
use std::collections::HashMap;
use std::ops::ControlFlow;
use umbel::{Digest, Hasher, Key};

/// Counts of the recorded packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// The number of non-empty payloads and pieces of streams.
    pub payloads: u64,
    /// The number of bytes in them.
    pub bytes: u64,
    /// The number of recorded blocks.
    pub blocks: u64,
    /// The number of payloads shorter than a block, which left no record. Streams are not counted.
    pub short: u64,
    /// The number of payloads of pairs that did not fit in the list.
    pub unlisted: u64,
    /// The number of packets with an earlier timestamp than the packet before them.
    pub backwards: u64,
    /// The number of finished epochs.
    pub epochs: u64,
}

/// A recorder that turns packets into epochs.
#[derive(Debug)]
pub struct Recorder {
    settings: Settings,
    run: u64,
    hasher: Hasher,
    /// The current epoch, and the time when it began.
    open: Option<(EpochInfo, Timestamp)>,
    pairs: Pairs,
    records: Records,
    /// The digests of a payload's blocks; kept to reuse the allocation.
    blocks: Vec<Digest>,
    /// The winnowing, if payloads are cut by their content.
    cutter: Option<Cutter>,
    streams: Option<Streams>,
    carried: HashMap<u64, Carried>,
    last: Timestamp,
    totals: Recorded,
}

/// The state of a stream between its pieces.
#[derive(Debug)]
struct Carried {
    flow: Flow,
    /// The start of a block that is not whole yet.
    start: Vec<u8>,
    /// The offset in the stream of the next byte.
    next: u64,
    /// The epoch of its last block.
    epoch: Option<u64>,
    /// The groups of blocks, and of halves, that are not whole yet.
    climbs: [Climb; 2],
    /// The state of the winnowing.
    winnowed: winnowing::Stream,
}

impl Carried {
    fn new(flow: Flow) -> Carried {
        Carried {
            flow,
            start: Vec::new(),
            next: 0,
            epoch: None,
            climbs: Default::default(),
            winnowed: winnowing::Stream::default(),
        }
    }
}

impl Recorder {
    /// Returns a recorder whose records depend on the seed. Senders must not be able to guess it,
    /// or they could forge payloads that are mistaken for others.
    ///
    /// # Errors
    ///
    /// Fails if a setting is out of range.
    pub fn new(settings: Settings, seed: u64) -> Result<Recorder> {
        settings.check()?;
        let streams = settings.streams.then(Streams::default);
        let run = Digest::from_hash(seed).salted(RUN_SALT).get();
        let about = EpochInfo::new(&settings, run, 0, Timestamp::default());
        let cutter = match settings.method {
            Method::Winnowing => Some(about.winnowing()?.cutter()),
            Method::BlockBased | Method::Hierarchical => None,
        };
        Ok(Recorder {
            settings,
            run,
            cutter,
            hasher: Hasher::default(),
            open: None,
            pairs: Pairs::default(),
            records: Records::default(),
            blocks: Vec::new(),
            streams,
            carried: HashMap::new(),
            last: Timestamp::default(),
            totals: Recorded::default(),
        })
    }

    /// Records a packet. If it begins a new epoch, returns the epoch before.
    ///
    /// # Errors
    ///
    /// Fails if the filters of the finished epoch cannot be built.
    pub fn record(&mut self, packet: &Packet<'_>) -> Result<Option<Epoch>> {
        self.totals.backwards += u64::from(packet.time < self.last);
        self.last = packet.time;
        let finished = if self.is_over(packet.time) { self.close()? } else { None };
        let pair = Pair::new(packet.source, packet.destination);
        match self.streams.take() {
            Some(mut streams) if packet.tcp.is_some() => {
                let repeated = streams.counts().repeated;
                streams.push(packet, |piece| self.piece(&piece));
                // Record repeated bytes as well: a sender could hide others in their place.
                if streams.counts().repeated > repeated {
                    self.payload(pair, packet.time, packet.payload);
                }
                // No event is sent when a finished stream is dropped, so prune its state here.
                if self.carried.len() > 2 * streams.len() + 64 {
                    self.carried.retain(|stream, carried| streams.has(&carried.flow, *stream));
                }
                self.streams = Some(streams);
            }
            streams => {
                self.streams = streams;
                self.payload(pair, packet.time, packet.payload);
            }
        }
        Ok(finished)
    }

    /// Ends the streams that are still open, and returns the last epoch, if anything was recorded
    /// in it.
    ///
    /// # Errors
    ///
    /// Fails if the filters of the epoch cannot be built.
    pub fn finish(&mut self) -> Result<Option<Epoch>> {
        if let Some(mut streams) = self.streams.take() {
            streams.finish(|piece| self.piece(&piece));
            self.streams = Some(streams);
            self.carried.clear();
        }
        self.close()
    }

    /// Returns the counts so far.
    pub fn totals(&self) -> &Recorded {
        &self.totals
    }

    /// Returns the counts of the streams, if streams are reassembled.
    pub fn streams(&self) -> Option<&StreamCounts> {
        self.streams.as_ref().map(Streams::counts)
    }

    fn is_over(&self, time: Timestamp) -> bool {
        let Some((about, start)) = &self.open else { return false };
        let length = self.settings.epoch.map_or(u128::MAX, |epoch| epoch.as_nanos());
        about.bytes >= self.settings.full || u128::from(time.nanos_since(*start)) >= length
    }

    /// Returns the current epoch; starts one if there is none.
    fn epoch(&mut self, time: Timestamp) -> &mut EpochInfo {
        let Recorder { settings, run, hasher, open, totals, .. } = self;
        let (about, _) = open.get_or_insert_with(|| {
            let number = totals.epochs;
            *hasher = Hasher::fast(Digest::from_hash(*run).salted(number).get());
            let about = EpochInfo::new(settings, *run, number, time);
            // Align epochs to multiples of their length: an epoch of a minute begins with the
            // minute.
            let length =
                settings.epoch.map_or(u64::MAX, |epoch| epoch.as_nanos().try_into().unwrap_or(u64::MAX));
            (about, Timestamp::from_nanos(time.nanos() - time.nanos() % length))
        });
        // Clocks may run backwards; payloads stay in the epoch in which they were recorded.
        (about.first, about.last) = (about.first.min(time), about.last.max(time));
        about
    }

    /// Records a payload that is not part of a stream.
    fn payload(&mut self, pair: Pair, time: Timestamp, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        self.count(time, payload.len());
        let blocks = match self.cutter.take() {
            Some(mut cutter) => {
                let blocks = self.winnow(pair, time, |each| cutter.cut(payload, each));
                self.cutter = Some(cutter);
                blocks
            }
            None if payload.len() < self.settings.block => 0,
            None => self.blocks(pair, time, 0, payload, None),
        };
        self.totals.short += u64::from(blocks == 0);
    }

    /// Records a piece of a stream.
    fn piece(&mut self, piece: &Piece<'_>) {
        let bytes = match piece.event {
            Event::Bytes(bytes) => bytes,
            // Neither event ends the state: a sender may continue after a FIN.
            Event::Gap(_) | Event::End(Ending::Finished) => return,
            Event::End(_) => {
                self.carried.remove(&piece.stream);
                return;
            }
        };
        self.count(piece.time, bytes.len());
        let now = self.epoch(piece.time).number;
        let mut carried = self.carried.remove(&piece.stream).unwrap_or_else(|| Carried::new(piece.flow));
        let from_before = carried.epoch.is_some_and(|epoch| epoch != now);
        if from_before {
            // The new epoch has another seed, so groups cannot span both.
            carried.climbs.iter_mut().for_each(Climb::forget);
        }
        let pair = Pair::new(piece.flow.source, piece.flow.destination);
        let blocks = match self.cutter.take() {
            Some(mut cutter) => {
                cutter.exchange(&mut carried.winnowed);
                if from_before {
                    cutter.forget_last();
                }
                if carried.next != piece.offset {
                    cutter.gap(piece.offset.saturating_sub(carried.next));
                }
                let blocks = self.winnow(pair, piece.time, |each| cutter.push(bytes, each));
                cutter.exchange(&mut carried.winnowed);
                self.cutter = Some(cutter);
                blocks
            }
            None => self.cut_piece(pair, piece, bytes, &mut carried),
        };
        carried.next = piece.offset + bytes.len() as u64;
        if blocks > 0 {
            carried.epoch = Some(now);
            if from_before {
                let Settings { local, pairs, .. } = &self.settings;
                let (place, _) = self.pairs.place(pair, piece.time, local, *pairs);
                self.pairs.continues(place);
            }
        }
        self.carried.insert(piece.stream, carried);
    }

    /// Cuts a piece of a stream into blocks that begin at multiples of their size in the stream,
    /// and records them.
    fn cut_piece(&mut self, pair: Pair, piece: &Piece<'_>, bytes: &[u8], carried: &mut Carried) -> u64 {
        let size = self.settings.block;
        if carried.next != piece.offset {
            carried.start.clear();
        }
        // The part of the piece that belongs to a block that began before it.
        let within = (piece.offset % size as u64) as usize;
        let (head, rest) = bytes.split_at(bytes.len().min((size - within) % size));
        if carried.start.len() == within {
            carried.start.extend(head);
        }
        let mut number = piece.offset / size as u64;
        let mut blocks = 0;
        if carried.start.len() == size {
            let start = std::mem::take(&mut carried.start);
            blocks += self.blocks(pair, piece.time, number, &start, Some(&mut carried.climbs));
        }
        number += u64::from(within > 0);
        let (whole, start) = rest.split_at(rest.len() - rest.len() % size);
        if !whole.is_empty() {
            blocks += self.blocks(pair, piece.time, number, whole, Some(&mut carried.climbs));
        }
        if within == 0 || !rest.is_empty() {
            carried.start.clear();
            carried.start.extend(start);
        }
        blocks
    }

    fn count(&mut self, time: Timestamp, bytes: usize) {
        let about = self.epoch(time);
        about.payloads += 1;
        about.bytes += bytes as u64;
        self.totals.payloads += 1;
        self.totals.bytes += bytes as u64;
    }

    /// Returns the salt that is mixed into the records of a pair, and adds the pair to the list.
    fn salt(&mut self, pair: Pair, time: Timestamp) -> u64 {
        let (place, is_listed) = self.pairs.place(pair, time, &self.settings.local, self.settings.pairs);
        self.totals.unlisted += u64::from(!is_listed);
        if let Some((about, _)) = &mut self.open {
            about.unlisted += u64::from(!is_listed);
        }
        self.pairs.pair(place).digest(&self.hasher).get()
    }

    /// Records the whole blocks of these bytes, the first of which has number `first`, and all
    /// halves. Returns the number of blocks.
    fn blocks(
        &mut self,
        pair: Pair,
        time: Timestamp,
        first: u64,
        bytes: &[u8],
        climbs: Option<&mut [Climb; 2]>,
    ) -> u64 {
        let salt = self.salt(pair, time);
        let Recorder { blocks, hasher, records, totals, open, .. } = self;
        let Some((about, _)) = open else { return 0 };
        let [of_blocks, of_halves] = climbs.map_or([None, None], |climbs| climbs.each_mut().map(Some));
        blocks.clear();
        blocks.extend(bytes.chunks_exact(about.block).map(|block| block.digest(hasher)));
        let count = blocks.len() as u64;
        if about.block_digest {
            records.blocks.extend_from_slice(blocks);
        }
        each(blocks, first, about.scheme(), of_blocks, |record| records.offsets.push(record));
        blocks.clear();
        blocks.extend(bytes.chunks_exact(about.half()).map(|half| half.digest(hasher)));
        let put = |record: Digest| records.payloads.push(record.salted(salt));
        each(blocks, 2 * first, about.half_scheme(), of_halves, put);
        about.blocks += count;
        about.longest = about.longest.max(first + count);
        totals.blocks += count;
        count
    }

    /// Records winnowed blocks, and returns their number.
    fn winnow(&mut self, pair: Pair, time: Timestamp, cut: impl FnOnce(&mut dyn FnMut(Block))) -> u64 {
        let Some((about, _)) = self.open else { return 0 };
        let blocks = &mut self.blocks;
        blocks.clear();
        cut(&mut |block| blocks.push(about.winnowed(&block)));
        if self.blocks.is_empty() {
            return 0;
        }
        let salt = self.salt(pair, time);
        let count = self.blocks.len() as u64;
        self.records.payloads.extend(self.blocks.iter().map(|block| block.salted(salt)));
        self.totals.blocks += count;
        if let Some((about, _)) = &mut self.open {
            about.blocks += count;
        }
        count
    }

    /// Ends the current epoch. Returns `None` if nothing was recorded in it.
    fn close(&mut self) -> Result<Option<Epoch>> {
        let Some((about, _)) = self.open.take() else { return Ok(None) };
        if about.blocks == 0 {
            return Ok(None);
        }
        self.totals.epochs += 1;
        let listed = self.pairs.finish();
        let epoch = Epoch::build(about, &self.settings, &self.hasher, listed, &self.records)?;
        // Clear instead of replacing them, to reuse their memory.
        self.records.blocks.clear();
        self.records.offsets.clear();
        self.records.payloads.clear();
        Ok(Some(epoch))
    }
}

/// Calls `put` with every record of these blocks, the first of which has number `first`. In a
/// stream, `climb` carries the groups over from the blocks before.
fn each(
    blocks: &mut Vec<Digest>,
    first: u64,
    scheme: Scheme,
    climb: Option<&mut Climb>,
    mut put: impl FnMut(Digest),
) {
    match climb {
        Some(climb) => {
            for (block, number) in blocks.iter().zip(first..) {
                climb.push(*block, number, scheme, &mut put);
            }
        }
        None => {
            let _ = each_record(blocks, first, scheme, &mut |record| {
                put(record);
                ControlFlow::<()>::Continue(())
            });
        }
    }
}

/// The salt that keeps the seed out of the run number.
const RUN_SALT: u64 = 0x72_75_6e;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Link;

    #[test]
    fn state_of_streams_that_continue_after_their_end_is_pruned() {
        let settings = Settings { streams: true, ..Settings::default() };
        let mut recorder = Recorder::new(settings, 1).expect("valid settings");
        let mut send = |port: u16, seq: u8, flags: u8| {
            let ip = [0x45, 0, 0, 41, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            let [high, low] = port.to_be_bytes();
            let tcp = [high, low, 0, 80, 0, 0, 0, seq, 0, 0, 0, 0, 0x50, flags, 1, 1, 0, 0, 0, 0, b'x'];
            let frame = [&ip[..], &tcp[..]].concat();
            let packet = Packet::from_frame(Link::RAW, &frame, Timestamp::from_secs(1), 0).expect("a packet");
            recorder.record(&packet).expect("room");
        };
        let (fin, rst) = (1, 4);
        for port in 0..10_000 {
            send(port, 1, fin);
            send(port, 2, 0);
            send(port, 3, rst);
        }
        assert!(recorder.carried.len() <= 65, "{}", recorder.carried.len());
    }
}
