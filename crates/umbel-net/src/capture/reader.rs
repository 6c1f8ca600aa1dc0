//! The reader, which splits a capture into records and decodes the packet of each.

use super::decode::{self, Link, Skip};
use super::source::{Ended, Source};
use super::{NANOS_PER_SECOND, Packet, Timestamp};
use crate::{Error, Result};
use pcap_parser::nom::IResult;
use pcap_parser::pcapng::{Block, InterfaceDescriptionBlock, OptionCode, parse_block_be, parse_block_le};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    LegacyPcapBlock, PcapError, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header,
};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The longest record that is read: 16 MiB. The largest packet has 64 KiB, and capture programs
/// stop at 256 KiB.
pub const MAX_RECORD: usize = 1 << 24;

/// The number of interfaces of a section whose descriptions are kept; packets of others are
/// skipped. Identical descriptions compress well, so without a limit a small file could take any
/// amount of memory.
const MAX_INTERFACES: usize = 1 << 16;

/// Returns whether the first four bytes of an input are those of a capture. Decompress a compressed
/// input first.
pub fn is_capture(start: &[u8]) -> bool {
    const MAGIC: [u32; 6] = [block::SECTION, 0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34, 0xd4c3_b2a1, 0x4d3c_b2a1];
    start.len() >= 4 && MAGIC.contains(&u32_at(start, 0, false))
}

/// A reader of the packets of a capture.
pub struct Reader<'r> {
    source: Source<'r>,
    format: Format,
    name: PathBuf,
    counts: Counts,
    last: Timestamp,
    end: Option<End>,
}

/// Counts of frames and packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Frames of the capture: returned packets and skipped frames.
    pub frames: u64,
    /// Packets that were returned.
    pub packets: u64,
    /// The total length of the packets on the wire.
    pub bytes: u64,
    /// Packets that were not captured completely.
    pub cut: u64,
    /// Packets that are fragments of larger ones.
    pub fragments: u64,
    /// Packets whose transport header is incomplete or contradicts itself; they are returned
    /// without a payload.
    pub headless: u64,
    /// Packets with an earlier timestamp than the packet before them.
    pub backwards: u64,
    /// Frames without a packet, by reason.
    pub skipped: Skipped,
}

/// Frames that were skipped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped([u64; Skip::ALL.len()]);

impl Skipped {
    /// Returns the number of frames skipped for this reason.
    pub fn count(&self, reason: Skip) -> u64 {
        self.0[reason as usize]
    }

    /// Returns the number of frames skipped for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Skip, u64)> {
        Skip::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

/// The way a capture ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// After a complete record.
    Whole,
    /// Within a record, so that data is missing.
    Truncated {
        /// The byte at which that record began.
        at: u64,
    },
    /// With an invalid record, after which the next one cannot be found.
    Damaged {
        /// The byte at which it begins.
        at: u64,
    },
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Whole => f.write_str("whole"),
            End::Truncated { at } => {
                write!(f, "truncated: it ends within the record that begins at byte {at}")
            }
            End::Damaged { at } => {
                write!(f, "damaged: there is no valid record at byte {at}, and none can be found after it")
            }
        }
    }
}

/// The format of the records.
enum Format {
    Pcap(Pcap),
    PcapNg(Section),
    /// The capture ended within its header.
    None,
}

struct Pcap {
    parse: fn(&[u8]) -> ParsedFrame<'_>,
    big_endian: bool,
    /// The length of a record's header.
    head: usize,
    nanos_per_tick: u64,
    link: Link,
}

type ParsedFrame<'a> = IResult<&'a [u8], LegacyPcapBlock<'a>, PcapError<&'a [u8]>>;

/// The state of a section of a pcapng file.
#[derive(Default)]
struct Section {
    big_endian: bool,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy)]
struct Interface {
    link: Link,
    /// The number of bytes captured of each packet; 0 for no limit.
    snap: u32,
    ticks_per_second: u64,
    /// The number of seconds to add to timestamps.
    offset: i64,
}

/// The next record.
enum Step {
    Frame(Frame),
    Skipped(Skip),
    /// A record that is not a packet.
    Other,
    End(End),
}

struct Frame {
    time: Option<Timestamp>,
    link: Link,
    /// Its range in the source's buffer.
    place: Range<usize>,
    length: u32,
}

/// The types of pcapng blocks that are decoded.
mod block {
    pub const SECTION: u32 = 0x0a0d_0d0a;
    pub const INTERFACE: u32 = 1;
    /// Obsolete, but found in old files.
    pub const PACKET: u32 = 2;
    pub const SIMPLE: u32 = 3;
    pub const ENHANCED: u32 = 6;
}

impl Reader<'static> {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or is neither pcap nor pcapng.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader<'static>> {
        let path = path.as_ref();
        if path == "-" {
            return Reader::named(io::stdin(), "standard input");
        }
        let file = File::open(path).map_err(Error::io(path, "open"))?;
        Reader::named(file, path)
    }
}

impl<'r> Reader<'r> {
    /// Reads a capture from any source of bytes, without seeking.
    ///
    /// # Errors
    ///
    /// Fails if the input cannot be read, or is neither pcap nor pcapng.
    pub fn new(input: impl Read + Send + 'r) -> Result<Reader<'r>> {
        Reader::named(input, "the capture")
    }

    /// Reads a capture like [`new`](Reader::new), with a name for error messages.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons.
    pub fn named(input: impl Read + Send + 'r, name: impl Into<PathBuf>) -> Result<Reader<'r>> {
        let name = name.into();
        let mut source = Source::new(input).map_err(Error::io(&name, "read"))?;
        let format = Format::recognise(&mut source, &name)?;
        Ok(Reader { source, format, name, counts: Counts::default(), last: Timestamp::default(), end: None })
    }

    /// Returns the next packet. Returns `None` at the end, and [`end`](Reader::end) then reports
    /// how the capture ended.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot read the input. A damaged capture is not an error.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend what its buffer holds")]
    pub fn next(&mut self) -> Result<Option<Packet<'_>>> {
        while self.end.is_none() {
            let step = self.step().map_err(Error::io(&self.name, "read"))?;
            let frame = match step {
                Step::Frame(frame) => frame,
                Step::Skipped(reason) => {
                    self.skip(reason);
                    continue;
                }
                Step::Other => continue,
                Step::End(end) => {
                    self.end = Some(end);
                    break;
                }
            };
            match decode::decode(frame.link, self.source.at(frame.place.clone())) {
                Ok(layout) => {
                    let time = self.count(&frame, &layout);
                    let packet = layout.packet(self.source.at(frame.place), time, frame.length);
                    return Ok(Some(Packet { number: self.counts.frames, ..packet }));
                }
                Err(reason) => self.skip(reason),
            }
        }
        Ok(None)
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns how the capture ended, once [`next`](Reader::next) has returned `None`.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Returns whether the capture was read completely.
    pub fn is_whole(&self) -> bool {
        self.end == Some(End::Whole)
    }

    /// Returns the size of the buffer in bytes.
    pub fn memory(&self) -> usize {
        self.source.memory()
    }

    fn skip(&mut self, reason: Skip) {
        self.counts.frames += 1;
        self.counts.skipped.0[reason as usize] += 1;
    }

    /// Counts a packet, and returns its time, or the time of the packet before if it has none.
    fn count(&mut self, frame: &Frame, layout: &decode::Layout) -> Timestamp {
        let time = frame.time.unwrap_or(self.last);
        let counts = &mut self.counts;
        counts.frames += 1;
        counts.packets += 1;
        counts.bytes = counts.bytes.saturating_add(frame.length.into());
        counts.cut += u64::from((frame.place.len() as u64) < frame.length.into());
        counts.fragments += u64::from(layout.fragment.is_some());
        counts.headless += u64::from(layout.transport.headless);
        counts.backwards += u64::from(time < self.last);
        self.last = time;
        time
    }

    fn step(&mut self) -> io::Result<Step> {
        match &mut self.format {
            Format::Pcap(pcap) => pcap.step(&mut self.source),
            Format::PcapNg(section) => section.step(&mut self.source),
            Format::None => Ok(Step::End(End::Truncated { at: 0 })),
        }
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reader { name, counts, end, .. } = self;
        f.debug_struct("Reader").field("name", name).field("counts", counts).field("end", end).finish()
    }
}

/// Returns the end of the capture, given that the record at this byte is missing completely or in
/// part.
fn ended(source: &Source, at: u64) -> Step {
    Step::End(match source.ended() {
        Some(Ended::Corrupt) => End::Damaged { at },
        Some(Ended::Here) if source.ready().is_empty() && source.taken() == at => End::Whole,
        _ => End::Truncated { at },
    })
}

fn u32_at(bytes: &[u8], at: usize, big_endian: bool) -> u32 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
    if big_endian { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) }
}

impl Format {
    /// Recognizes the format by its first bytes.
    fn recognise(source: &mut Source, name: &Path) -> Result<Format> {
        const PCAP_HEAD: usize = 24;
        let failed = Error::io(name, "read");
        source.fill(4).map_err(&failed)?;
        let start = source.ready().get(..4).unwrap_or(source.ready());
        if start == block::SECTION.to_le_bytes() {
            return Ok(Format::PcapNg(Section::default()));
        }
        if !is_capture(start) {
            let found = match (start, source.ended()) {
                (_, Some(Ended::Early)) => return Ok(Format::None),
                (_, Some(Ended::Corrupt)) => "its contents cannot be decompressed".to_owned(),
                ([], _) => "it is empty".to_owned(),
                (start, _) => format!("it begins with the bytes {start:02x?}"),
            };
            return Err(Error::NotACapture { name: name.to_owned(), found });
        }
        if !source.fill(PCAP_HEAD).map_err(&failed)? {
            return Ok(Format::None);
        }
        let Ok((_, header)) = parse_pcap_header(source.ready()) else { return Ok(Format::None) };
        source.consume(PCAP_HEAD);
        let (parse, head): (fn(&[u8]) -> ParsedFrame<'_>, usize) =
            match (header.is_modified_format(), header.is_bigendian()) {
                (true, _) => (parse_pcap_frame_modified, 24),
                (_, true) => (parse_pcap_frame_be, 16),
                _ => (parse_pcap_frame, 16),
            };
        Ok(Format::Pcap(Pcap {
            parse,
            big_endian: header.is_bigendian(),
            head,
            nanos_per_tick: if header.is_nanosecond_precision() { 1 } else { 1000 },
            // The high bits describe frame check sequences after the frames, which the lengths in
            // IP headers exclude.
            link: Link((header.network.0 & 0xffff) as u16),
        }))
    }
}

impl Pcap {
    fn step(&self, source: &mut Source) -> io::Result<Step> {
        let at = source.taken();
        if !source.fill(self.head)? {
            return Ok(ended(source, at));
        }
        let captured = u32_at(source.ready(), 8, self.big_endian) as usize;
        if captured > MAX_RECORD {
            return Ok(Step::End(End::Damaged { at }));
        }
        if !source.fill(self.head + captured)? {
            return Ok(ended(source, at));
        }
        let Ok((_, record)) = (self.parse)(source.ready()) else { return Ok(Step::End(End::Damaged { at })) };
        let nanos = u64::from(record.ts_usec) * self.nanos_per_tick;
        let time = Timestamp::from_nanos(u64::from(record.ts_sec) * NANOS_PER_SECOND + nanos);
        let length = record.origlen;
        let place = source.consume(self.head + captured);
        let place = place.start + self.head..place.end;
        Ok(Step::Frame(Frame { time: Some(time), link: self.link, place, length }))
    }
}

impl Section {
    fn step(&mut self, source: &mut Source) -> io::Result<Step> {
        let at = source.taken();
        let damaged = Ok(Step::End(End::Damaged { at }));
        if !source.fill(12)? {
            return Ok(ended(source, at));
        }
        let kind = u32_at(source.ready(), 0, self.big_endian);
        if kind == block::SECTION {
            self.big_endian = match u32_at(source.ready(), 8, false) {
                0x1a2b_3c4d => false,
                0x4d3c_2b1a => true,
                _ => return damaged,
            };
        }
        let length = u32_at(source.ready(), 4, self.big_endian) as usize;
        if length < 12 || !length.is_multiple_of(4) {
            return damaged;
        }
        let is_packet = matches!(kind, block::PACKET | block::SIMPLE | block::ENHANCED);
        let is_wanted = is_packet || matches!(kind, block::SECTION | block::INTERFACE);
        if !is_wanted || (is_packet && length > MAX_RECORD) {
            return Ok(match source.skip(length as u64)? {
                false => ended(source, at),
                true if is_wanted => Step::Skipped(Skip::Oversized),
                true => Step::Other,
            });
        }
        if length > MAX_RECORD {
            return damaged;
        }
        if !source.fill(length)? {
            return Ok(ended(source, at));
        }
        let place = source.consume(length);
        let bytes = source.at(place.clone());
        let parsed = if self.big_endian { parse_block_be(bytes) } else { parse_block_le(bytes) };
        Ok(match parsed {
            Ok((_, Block::SectionHeader(_))) => {
                self.interfaces.clear();
                Step::Other
            }
            Ok((_, Block::InterfaceDescription(block))) => {
                let interface = Interface::new(&block, self.big_endian);
                self.describe(interface)
            }
            Ok((_, Block::EnhancedPacket(block))) => {
                let captured = block.packet_data().len();
                let ticks = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                self.frame(block.if_id, Some(ticks), place.start + 28, captured, block.origlen)
            }
            Ok((_, Block::SimplePacket(block))) => {
                let snap = self.interfaces.first().map_or(0, |interface| interface.snap) as usize;
                let captured = block.packet_data().len();
                let captured = if snap > 0 { captured.min(snap) } else { captured };
                self.frame(0, None, place.start + 12, captured, block.origlen)
            }
            Ok((_, Block::Unknown(_))) if kind == block::PACKET => self.old_packet(bytes, &place),
            Err(_) if kind == block::SECTION => return damaged,
            // Fill the place of an unreadable description, so that the interfaces after it keep
            // their numbers.
            Err(_) if kind == block::INTERFACE => self.describe(Interface::UNKNOWN),
            _ => Step::Skipped(Skip::Malformed),
        })
    }

    fn describe(&mut self, interface: Interface) -> Step {
        if self.interfaces.len() < MAX_INTERFACES {
            self.interfaces.push(interface);
        }
        Step::Other
    }

    /// Decodes a packet block of the first versions of the format, which the parser does not
    /// support. The interface and the drop count share one field; the rest is as in an enhanced
    /// packet block.
    fn old_packet(&self, bytes: &[u8], place: &Range<usize>) -> Step {
        let field = |at| u32_at(bytes, at, self.big_endian);
        let interface = if self.big_endian { field(8) >> 16 } else { field(8) & 0xffff };
        let captured = field(20) as usize;
        // 28 bytes precede the packet, and the length is repeated after it.
        if captured > bytes.len().saturating_sub(32) {
            return Step::Skipped(Skip::Malformed);
        }
        let ticks = u64::from(field(12)) << 32 | u64::from(field(16));
        self.frame(interface, Some(ticks), place.start + 28, captured, field(24))
    }

    fn frame(&self, interface: u32, ticks: Option<u64>, start: usize, captured: usize, length: u32) -> Step {
        match self.interfaces.get(interface as usize) {
            Some(interface) => Step::Frame(Frame {
                time: ticks.map(|ticks| interface.time(ticks)),
                link: interface.link,
                place: start..start + captured,
                length,
            }),
            None => Step::Skipped(Skip::Malformed),
        }
    }
}

impl Interface {
    /// The interface of an unreadable description.
    const UNKNOWN: Interface =
        Interface { link: Link(u16::MAX), snap: 0, ticks_per_second: 1_000_000, offset: 0 };

    fn new(block: &InterfaceDescriptionBlock, big_endian: bool) -> Interface {
        // The parser's own accessors reject powers of two and read the offset as little-endian.
        let option =
            |code| block.options.iter().find(|option| option.code == code).map(|option| option.value());
        let resolution = option(OptionCode::IfTsresol).and_then(|value| value.first()).copied().unwrap_or(6);
        let exponent = u32::from(resolution & 0x7f);
        let ticks = match resolution & 0x80 {
            0 => 10u64.checked_pow(exponent),
            _ => 1u64.checked_shl(exponent),
        };
        let offset = option(OptionCode::IfTsoffset).and_then(|value| value.first_chunk()).copied();
        Interface {
            // Link types have 16 bits here.
            link: Link(u16::try_from(block.linktype.0).unwrap_or(u16::MAX)),
            snap: block.snaplen,
            ticks_per_second: ticks.unwrap_or(Interface::UNKNOWN.ticks_per_second),
            offset: offset.map_or(0, if big_endian { i64::from_be_bytes } else { i64::from_le_bytes }),
        }
    }

    fn time(&self, ticks: u64) -> Timestamp {
        let nanos = u128::from(ticks) * u128::from(NANOS_PER_SECOND) / u128::from(self.ticks_per_second);
        let nanos = nanos as i128 + i128::from(self.offset) * i128::from(NANOS_PER_SECOND);
        // Times before 1970 become 1970.
        Timestamp::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }
}
