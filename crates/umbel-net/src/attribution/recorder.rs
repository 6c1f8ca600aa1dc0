//! From packets to epochs.

use super::epoch::{About, Records};
use super::pairs::Pairs;
use super::{Epoch, Pair, Settings};
use crate::capture::streams::{Event, Piece, StreamCounts, Streams};
use crate::capture::{Packet, Time};
use crate::payload::each_record;
use std::collections::HashMap;
use std::ops::ControlFlow;
use umbel::{Digest, Hasher, Key, Result};

/// What a recorder has met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// Payloads, and pieces of streams, that had any bytes.
    pub payloads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks that were recorded.
    pub blocks: u64,
    /// Payloads that were shorter than a block and left nothing behind. Streams have none.
    pub short: u64,
    /// Payloads of pairs that were too many to be listed.
    pub unlisted: u64,
    /// Packets that were captured before the one before them, if one believes the clock.
    pub backwards: u64,
    /// Epochs that were finished.
    pub epochs: u64,
}

/// Takes packets, and gives epochs.
#[derive(Debug)]
pub struct Recorder {
    settings: Settings,
    run: u64,
    hasher: Hasher,
    /// The epoch at hand, and when it began.
    open: Option<(About, Time)>,
    pairs: Pairs,
    records: Records,
    /// The digests of a payload's blocks, which need not be allocated again and again.
    blocks: Vec<Digest>,
    streams: Option<Streams>,
    carried: HashMap<u64, Carried>,
    last: Time,
    totals: Recorded,
}

/// What is kept of a stream.
#[derive(Debug, Default)]
struct Carried {
    /// The start of a block that is not whole yet.
    start: Vec<u8>,
    /// Where the stream goes on.
    next: u64,
    /// The epoch of its last block.
    epoch: Option<u64>,
}

impl Recorder {
    /// One that begins with nothing. All that it records depends on the seed, which nobody should be able to guess who
    /// wants his payloads to be taken for others.
    pub fn new(settings: Settings, seed: u64) -> Result<Recorder> {
        settings.check()?;
        let streams = settings.streams.then(Streams::default);
        Ok(Recorder {
            settings,
            run: Digest::from_hash(seed).salted(RUN).get(),
            hasher: Hasher::default(),
            open: None,
            pairs: Pairs::default(),
            records: Records::default(),
            blocks: Vec::new(),
            streams,
            carried: HashMap::new(),
            last: Time::default(),
            totals: Recorded::default(),
        })
    }

    /// Records a packet. If it belongs to a new epoch, the one before is given out.
    pub fn record(&mut self, packet: &Packet<'_>) -> Result<Option<Epoch>> {
        self.totals.backwards += u64::from(packet.time < self.last);
        self.last = packet.time;
        let finished = if self.is_over(packet.time) { self.close()? } else { None };
        let pair = Pair::new(packet.source, packet.destination);
        match self.streams.take() {
            Some(mut streams) if packet.tcp.is_some() => {
                let repeated = streams.counts().repeated;
                streams.push(packet, |piece| self.piece(&piece));
                // Whoever sends other bytes in the place of those that he has sent before does not hide them.
                if streams.counts().repeated > repeated {
                    self.payload(pair, packet.time, packet.payload);
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

    /// Ends streams that are still open, and gives out the last epoch, if anything was recorded in it.
    pub fn finish(&mut self) -> Result<Option<Epoch>> {
        if let Some(mut streams) = self.streams.take() {
            streams.finish(|piece| self.piece(&piece));
            self.streams = Some(streams);
        }
        self.close()
    }

    /// What it has met so far.
    pub fn totals(&self) -> &Recorded {
        &self.totals
    }

    /// What the streams have met, if they are put together.
    pub fn streams(&self) -> Option<&StreamCounts> {
        self.streams.as_ref().map(Streams::counts)
    }

    fn is_over(&self, time: Time) -> bool {
        let Some((about, start)) = &self.open else { return false };
        let length = self.settings.epoch.map_or(u128::MAX, |epoch| epoch.as_nanos());
        about.bytes >= self.settings.full || u128::from(time.since(*start)) >= length
    }

    /// The epoch at hand, which begins now if there is none.
    fn epoch(&mut self, time: Time) -> &mut About {
        let Recorder { settings, run, hasher, open, totals, .. } = self;
        let (about, _) = open.get_or_insert_with(|| {
            let number = totals.epochs;
            *hasher = Hasher::fast(Digest::from_hash(*run).salted(number).get());
            let about = About {
                run: *run,
                number,
                method: settings.method,
                block: settings.block,
                streams: settings.streams,
                first: time,
                last: time,
                payloads: 0,
                bytes: 0,
                blocks: 0,
                longest: 0,
                unlisted: 0,
            };
            // Epochs of a minute begin with the minute.
            let length =
                settings.epoch.map_or(u64::MAX, |epoch| epoch.as_nanos().try_into().unwrap_or(u64::MAX));
            (about, Time::from_nanos(time.nanos() - time.nanos() % length))
        });
        // Clocks may go backwards; what was recorded is in its epoch all the same.
        (about.first, about.last) = (about.first.min(time), about.last.max(time));
        about
    }

    /// Records a payload that is not part of a stream.
    fn payload(&mut self, pair: Pair, time: Time, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        self.count(time, payload.len());
        if payload.len() < self.settings.block {
            self.totals.short += 1;
            return;
        }
        self.blocks(pair, time, 0, payload, false);
    }

    /// Records a piece of a stream. Its blocks begin at multiples of their size in the stream.
    fn piece(&mut self, piece: &Piece<'_>) {
        let bytes = match piece.event {
            Event::Bytes(bytes) => bytes,
            Event::Gap(_) => return,
            Event::End(_) => {
                self.carried.remove(&piece.stream);
                return;
            }
        };
        self.count(piece.time, bytes.len());
        let size = self.settings.block;
        let pair = Pair::new(piece.flow.source, piece.flow.destination);
        let mut carried = self.carried.remove(&piece.stream).unwrap_or_default();
        if carried.next != piece.offset {
            carried.start.clear();
        }
        carried.next = piece.offset + bytes.len() as u64;
        // How much of the piece belongs to a block that began before it.
        let within = (piece.offset % size as u64) as usize;
        let (head, rest) = bytes.split_at(bytes.len().min((size - within) % size));
        if carried.start.len() == within {
            carried.start.extend(head);
        }
        let number = piece.offset / size as u64;
        let now = self.epoch(piece.time).number;
        let from_before = carried.epoch.is_some_and(|epoch| epoch != now);
        if carried.start.len() == size {
            self.blocks(pair, piece.time, number, &carried.start, from_before);
            carried.epoch = Some(now);
            carried.start.clear();
        }
        let (whole, start) = rest.split_at(rest.len() - rest.len() % size);
        if !whole.is_empty() {
            self.blocks(pair, piece.time, number + u64::from(within > 0), whole, from_before);
            carried.epoch = Some(now);
        }
        if within == 0 || !rest.is_empty() {
            carried.start.clear();
            carried.start.extend(start);
        }
        self.carried.insert(piece.stream, carried);
    }

    fn count(&mut self, time: Time, bytes: usize) {
        let about = self.epoch(time);
        about.payloads += 1;
        about.bytes += bytes as u64;
        self.totals.payloads += 1;
        self.totals.bytes += bytes as u64;
    }

    /// Records the whole blocks of these bytes, the first of which has this number.
    fn blocks(&mut self, pair: Pair, time: Time, first: u64, bytes: &[u8], continued: bool) {
        let (place, is_listed) = self.pairs.place(pair, time, &self.settings.local, self.settings.pairs);
        if continued {
            self.pairs.continues(place);
        }
        let Recorder { blocks, hasher, records, pairs, settings, totals, .. } = self;
        let salt = pairs.pair(place).digest(hasher).get();
        blocks.clear();
        blocks.extend(bytes.chunks_exact(settings.block).map(|block| block.digest(hasher)));
        let count = blocks.len() as u64;
        let Some((about, _)) = &mut self.open else { return };
        let mut put = |record: Digest| {
            records.offsets.push(record);
            records.payloads.push(record.salted(salt));
            ControlFlow::<()>::Continue(())
        };
        let _ = each_record(blocks, first, about.scheme(), &mut put);
        about.blocks += count;
        about.longest = about.longest.max(first + count);
        about.unlisted += u64::from(!is_listed);
        totals.blocks += count;
        totals.unlisted += u64::from(!is_listed);
    }

    /// Ends the epoch at hand. One in which nothing was recorded is none.
    fn close(&mut self) -> Result<Option<Epoch>> {
        let Some((about, _)) = self.open.take() else { return Ok(None) };
        if about.blocks == 0 {
            return Ok(None);
        }
        self.totals.epochs += 1;
        let records = Records {
            offsets: std::mem::take(&mut self.records.offsets),
            payloads: std::mem::take(&mut self.records.payloads),
        };
        Epoch::build(about, &self.settings, &self.hasher, self.pairs.take(), records).map(Some)
    }
}

/// So that a run is not told by its seed.
const RUN: u64 = 0x72_75_6e;
