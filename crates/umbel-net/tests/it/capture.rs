//! Captures: every packet of a valid capture is returned, of a broken one the packets before the
//! break, and a hostile one causes nothing worse than a count.

use crate::common::{pcap, real_captures, tcp, udp};
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use umbel_net::capture::{
    Counts, End, Fragment, Link, MAX_RECORD, Packet, Reader, Skip, TcpInfo, Timestamp, Writer,
};

/// A copy of a packet, independent of the reader's buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    time: Timestamp,
    pair: (IpAddr, IpAddr),
    protocol: u8,
    ports: Option<(u16, u16)>,
    ip: Vec<u8>,
    payload: Vec<u8>,
    length: u32,
}

impl From<Packet<'_>> for Kept {
    fn from(packet: Packet<'_>) -> Kept {
        Kept {
            time: packet.time,
            pair: (packet.source, packet.destination),
            protocol: packet.protocol,
            ports: packet.ports,
            ip: packet.ip.to_vec(),
            payload: packet.payload.to_vec(),
            length: packet.length,
        }
    }
}

/// Returns all packets, the counts, and the end of a capture.
fn read(capture: impl Read + Send) -> (Vec<Kept>, Counts, End) {
    let mut reader = Reader::new(capture).expect("a capture");
    let mut packets = Vec::new();
    while let Some(packet) = reader.next().expect("no error of the system") {
        let number = packet.number;
        packets.push(packet.into());
        assert_eq!(number, reader.counts().frames, "the number of the frame");
    }
    (packets, *reader.counts(), reader.end().expect("the end"))
}

fn v4(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

fn v6(last: u16) -> IpAddr {
    [0xfd00, 0, 0, 0, 0, 0, 0, last].into()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("room");
    encoder.finish().expect("room")
}

/// A reader that returns at most this many bytes at a time, as a pipe may, and before them an
/// interruption by a signal.
struct Trickle<'a> {
    bytes: &'a [u8],
    most: usize,
    interrupted: bool,
}

impl Trickle<'_> {
    fn new(bytes: &[u8], most: usize) -> Trickle<'_> {
        Trickle { bytes, most, interrupted: false }
    }
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = buffer.len().min(self.most);
        self.bytes.read(&mut buffer[..count])
    }
}

// --- Real captures, compared with a reader that only knows lengths ---

/// The frames of a well-formed capture, found by their lengths alone; and for plain Ethernet frames
/// with IPv4, the fields at their usual offsets.
struct Naive {
    frames: usize,
    plain: Vec<([u8; 4], [u8; 4], u8)>,
}

fn naive(bytes: &[u8]) -> Naive {
    let mut naive = Naive { frames: 0, plain: Vec::new() };
    let section = [0x0a, 0x0d, 0x0d, 0x0a];
    let number = |at: usize, big: bool| {
        let field: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
        (if big { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) }) as usize
    };
    let mut frame = |link: usize, frame: &[u8]| {
        naive.frames += 1;
        if link == 1 && frame.len() >= 34 && frame[12..15] == [8, 0, 0x45] {
            naive.plain.push((
                frame[26..30].try_into().unwrap(),
                frame[30..34].try_into().unwrap(),
                frame[23],
            ));
        }
    };
    if bytes[..4] == section {
        let (mut at, mut big, mut links) = (0, false, Vec::new());
        while at < bytes.len() {
            if bytes[at..at + 4] == section {
                big = bytes[at + 8] == 0x1a;
                links.clear();
            }
            match number(at, big) {
                1 => links.push(number(at + 8, big) >> (if big { 16 } else { 0 }) & 0xffff),
                6 => frame(links[number(at + 8, big)], &bytes[at + 28..][..number(at + 20, big)]),
                2 => frame(links[0], &bytes[at + 28..][..number(at + 20, big)]),
                3 => frame(usize::MAX, &[]),
                _ => {}
            }
            at += number(at + 4, big);
        }
    } else {
        let mut at = 24;
        while at < bytes.len() {
            let length = number(at + 8, false);
            frame(number(20, false), &bytes[at + 16..][..length]);
            at += 16 + length;
        }
    }
    naive
}

#[test]
fn real_captures_are_read_to_their_end() {
    let mut total = Counts::default();
    for path in real_captures() {
        let bytes = std::fs::read(&path).unwrap();
        let (packets, counts, end) = read(bytes.as_slice());
        assert_eq!(end, End::Whole, "{path:?}");
        let expected = naive(&bytes);
        assert_eq!(counts.frames, expected.frames as u64, "{path:?}");
        assert_eq!(counts.frames, counts.packets + counts.skipped.total(), "{path:?}");
        assert_eq!(packets.len() as u64, counts.packets, "{path:?}");
        let mut packets = packets.into_iter();
        for (source, destination, protocol) in expected.plain {
            let wanted = (IpAddr::from(source), IpAddr::from(destination));
            let found = packets
                .any(|packet| packet.pair == wanted && (packet.protocol == protocol || protocol == 51));
            assert!(found, "{path:?}: {wanted:?} {protocol}");
        }
        total.frames += counts.frames;
        total.packets += counts.packets;
        total.headless += counts.headless;
    }
    assert!(total.packets > 20_000 && total.packets * 100 > total.frames * 90, "{total:?}");
    assert!(total.headless * 1000 < total.packets, "{total:?}");
}

#[test]
fn pipes_and_compressed_captures_yield_the_same_packets() {
    for path in real_captures().into_iter().step_by(7) {
        let bytes = std::fs::read(&path).unwrap();
        let bytes = &bytes[..bytes.len().min(200_000)];
        let expected = read(bytes);
        assert_eq!(read(Trickle::new(bytes, 7)), expected, "{path:?}");
        assert_eq!(read(gzip(bytes).as_slice()), expected, "{path:?}");
        assert_eq!(read(Trickle::new(&gzip(bytes), 1)), expected, "{path:?}");
    }
}

// --- Formats ---

/// Returns a pcap file with one frame, in either byte order and with any magic number.
fn one_record(magic: u32, big: bool, extra: usize, link: u32, frame: &[u8]) -> Vec<u8> {
    let number = |field: u32| if big { field.to_be_bytes() } else { field.to_le_bytes() };
    let version = if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    let length = frame.len() as u32;
    let mut file = number(magic).to_vec();
    file.extend(version);
    file.extend([0, 0, 65535, link].map(number).concat());
    file.extend([1_700_000_000, 5, length, length + 9].map(number).concat());
    file.extend(vec![0; extra]);
    file.extend(frame);
    file
}

#[test]
fn pcap_is_read_in_both_byte_orders_and_in_micro_and_nanoseconds() {
    let frame = udp(v4(1), v4(2), (3, 4), b"hello");
    for (magic, big, extra, nanos) in [
        (0xa1b2_c3d4, false, 0, 5000),
        (0xa1b2_c3d4, true, 0, 5000),
        (0xa1b2_3c4d, false, 0, 5),
        (0xa1b2_3c4d, true, 0, 5),
        (0xa1b2_cd34, false, 8, 5000),
    ] {
        // The high bits of the link type describe a frame check sequence after each frame.
        let file = one_record(magic, big, extra, 0x2400_0001, &frame);
        let (packets, counts, end) = read(file.as_slice());
        assert_eq!(end, End::Whole);
        let [packet] = &packets[..] else { panic!("{magic:x} {big}: {packets:?}") };
        assert_eq!(packet.time, Timestamp::from_nanos(1_700_000_000_000_000_000 + nanos), "{magic:x} {big}");
        assert_eq!((packet.pair, packet.protocol, packet.ports), ((v4(1), v4(2)), 17, Some((3, 4))));
        assert_eq!((&packet.payload[..], packet.length), (&b"hello"[..], frame.len() as u32 + 9));
        assert_eq!((counts.frames, counts.cut, counts.bytes), (1, 1, frame.len() as u64 + 9));
    }
}

/// A builder of pcapng blocks.
struct Blocks {
    big: bool,
    bytes: Vec<u8>,
}

impl Blocks {
    fn new(big: bool) -> Blocks {
        let mut blocks = Blocks { big, bytes: Vec::new() };
        let fields = [blocks.n32(0x1a2b_3c4d), blocks.n16x2(1, 0), [0xff; 4], [0xff; 4]].concat();
        blocks.block(0x0a0d_0d0a, &fields);
        blocks
    }

    fn n32(&self, number: u32) -> [u8; 4] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn n16x2(&self, one: u16, other: u16) -> [u8; 4] {
        let [[a, b], [c, d]] =
            [one, other].map(|number| if self.big { number.to_be_bytes() } else { number.to_le_bytes() });
        [a, b, c, d]
    }

    fn block(&mut self, kind: u32, fields: &[u8]) {
        let length = self.n32(12 + fields.len() as u32);
        let block = [&self.n32(kind), &length, fields, &length].concat();
        self.bytes.extend(block);
    }

    /// Adds an interface with this resolution and offset of its timestamps.
    fn interface(&mut self, link: Link, resolution: u8, offset: i64) {
        let offset = if self.big { offset.to_be_bytes() } else { offset.to_le_bytes() };
        let fields = [
            &self.n16x2(link.0, 0)[..],
            &self.n32(0),
            &self.n16x2(9, 1),
            &[resolution, 0, 0, 0],
            &self.n16x2(14, 8),
            &offset,
            &self.n16x2(0, 0),
        ];
        self.block(1, &fields.concat());
    }

    fn padded(frame: &[u8]) -> Vec<u8> {
        let mut padded = frame.to_vec();
        padded.resize(frame.len().next_multiple_of(4), 0);
        padded
    }

    fn packet(&mut self, interface: u32, ticks: u64, frame: &[u8]) {
        let length = frame.len() as u32;
        let fields =
            [interface, (ticks >> 32) as u32, ticks as u32, length, length].map(|field| self.n32(field));
        self.block(6, &[fields.as_flattened(), &Blocks::padded(frame)].concat());
    }
}

#[test]
fn pcapng_sections_interfaces_and_resolutions_are_read() {
    let (one, two) = (udp(v4(1), v4(2), (3, 4), b"hello"), udp(v6(1), v6(2), (5, 6), b"over six"));
    let mut file = Vec::new();
    for big in [false, true] {
        let mut blocks = Blocks::new(big);
        blocks.interface(Link::ETHERNET, 9, 0);
        blocks.interface(Link::RAW, 6, -10);
        // A power of two: 2^10 ticks per second.
        blocks.interface(Link::ETHERNET, 0x8a, 100);
        blocks.packet(0, 1_700_000_000_000_000_001, &one);
        blocks.packet(1, 1_700_000_000_000_007, &two[14..]);
        // A name resolution block, which is skipped.
        blocks.block(4, &[0; 20]);
        blocks.packet(2, 1_700_000_000 << 10 | 512, &two);
        // A simple packet has neither interface nor time.
        let simple = [&blocks.n32(one.len() as u32)[..], &Blocks::padded(&one)].concat();
        blocks.block(3, &simple);
        // An obsolete packet block: interface and drop count share a field.
        let length = one.len() as u32;
        let head =
            [blocks.n16x2(0, 77), blocks.n32(0), blocks.n32(9), blocks.n32(length), blocks.n32(length)];
        let old = [head.as_flattened(), &Blocks::padded(&one)].concat();
        blocks.block(2, &old);
        blocks.packet(3, 0, &one);
        file.extend(blocks.bytes);
    }
    let (packets, counts, end) = read(file.as_slice());
    assert_eq!(end, End::Whole);
    assert_eq!((counts.frames, counts.packets, counts.backwards), (12, 10, 4));
    assert_eq!(counts.skipped.count(Skip::Malformed), 2, "packets of an interface that was never described");
    assert_eq!(counts.skipped.iter().collect::<Vec<_>>(), [(Skip::Malformed, 2)]);
    for packets in packets.chunks(5) {
        let times: Vec<u64> = packets.iter().map(|packet| packet.time.nanos()).collect();
        let half = 1_700_000_100_500_000_000;
        assert_eq!(times, [1_700_000_000_000_000_001, 1_699_999_990_000_007_000, half, half, 9]);
        let pairs: Vec<_> = packets.iter().map(|packet| packet.pair).collect();
        let (four, six) = ((v4(1), v4(2)), (v6(1), v6(2)));
        assert_eq!(pairs, [four, six, six, four, four]);
        assert!(packets.iter().all(|packet| packet.payload == b"hello" || packet.payload == b"over six"));
    }
}

// --- Frames ---

fn decode(link: Link, frame: &[u8]) -> Result<Packet<'_>, Skip> {
    Packet::from_frame(link, frame, Timestamp::default(), frame.len() as u32)
}

#[test]
fn link_layer_headers_are_removed() {
    let ethernet = udp(v4(1), v4(2), (3, 4), b"hello");
    let ip = &ethernet[14..];
    let tagged = |tags: &[u8]| [&ethernet[..12], tags, &ethernet[12..], &[0; 9]].concat();
    let snap = [&ethernet[..12], &[0, 50, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], ip].concat();
    let sll = [&[0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 8, 0], ip].concat();
    let sll_tagged = [&[0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 0x81, 0, 0, 5, 8, 0], ip].concat();
    let sll2 = [&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0], ip].concat();
    for (link, frame) in [
        (Link::ETHERNET, ethernet.clone()),
        (Link::ETHERNET, tagged(&[])),
        (Link::ETHERNET, tagged(&[0x81, 0, 0, 5])),
        (Link::ETHERNET, tagged(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6])),
        (Link::ETHERNET, tagged(&[[0x91, 0, 0, 5]; 20].concat())),
        (Link::ETHERNET, snap),
        (Link::LINUX_SLL, sll),
        (Link::LINUX_SLL, sll_tagged),
        (Link::LINUX_SLL2, sll2),
        (Link::RAW, ip.to_vec()),
        (Link::RAW_BSD, ip.to_vec()),
        (Link::RAW_OPENBSD, ip.to_vec()),
        (Link::IPV4, ip.to_vec()),
        (Link::NULL, [&[2, 0, 0, 0], ip].concat()),
        (Link::NULL, [&[0, 0, 0, 2], ip].concat()),
        (Link::LOOP, [&[0, 0, 0, 2], ip].concat()),
    ] {
        let packet = decode(link, &frame).unwrap_or_else(|skip| panic!("{link} {frame:02x?}: {skip}"));
        assert_eq!(packet.ip, ip, "{link}, without the padding of a short frame");
        assert_eq!(packet.payload, b"hello");
        assert_eq!((packet.source, packet.destination, packet.ports), (v4(1), v4(2), Some((3, 4))));
    }
    let arp = [&ethernet[..12], &[8, 6], &[0; 28]].concat();
    assert_eq!(decode(Link::ETHERNET, &arp), Err(Skip::NotIp));
    assert_eq!(decode(Link::NULL, &[&[7, 0, 0, 0], ip].concat()), Err(Skip::NotIp));
    assert_eq!(decode(Link(105), &ethernet), Err(Skip::UnknownLink));
    assert_eq!(decode(Link::RAW, &[0; 40]), Err(Skip::Malformed));
}

/// Returns an IPv6 packet with these headers after the fixed one.
fn ipv6(next: u8, rest: &[u8]) -> Vec<u8> {
    let fixed = &udp(v6(1), v6(2), (0, 0), b"")[14..54];
    let length = (rest.len() as u16).to_be_bytes();
    [&fixed[..4], &length, &[next], &fixed[7..], rest].concat()
}

#[test]
fn extension_headers_are_skipped_and_fragments_flagged() {
    let datagram = [0, 3, 0, 4, 0, 13, 0, 0, b'h', b'e', b'l', b'l', b'o'];
    let padding = [1, 4, 0, 0, 0, 0];
    let options = |next: u8| [&[next, 0][..], &padding].concat();
    // Hop-by-hop options, routing, destination options, of which the second has 16 bytes; then an
    // authentication header of 12.
    let longer = |next: u8| [&[next, 1][..], &[0; 14]].concat();
    let auth = |next: u8| [&[next, 1][..], &[0; 10]].concat();
    let chain = [&options(43)[..], &longer(60), &options(51), &auth(17), &datagram].concat();
    let frame = ipv6(0, &chain);
    let packet = decode(Link::IPV6, &frame).unwrap();
    assert_eq!((packet.protocol, packet.ports, packet.payload), (17, Some((3, 4)), &b"hello"[..]));
    assert_eq!((packet.fragment, packet.ip), (None, &frame[..]));

    // The first fragment has ports; a later one does not, whatever its bytes look like.
    let first = ipv6(44, &[&[17, 0, 0, 1, 0, 0, 0, 9][..], &datagram].concat());
    let packet = decode(Link::RAW, &first).unwrap();
    assert_eq!(packet.fragment, Some(Fragment { id: 9, offset: 0, more: true }));
    assert_eq!(packet.ports, Some((3, 4)));
    let later = ipv6(44, &[&[60, 0, 0, 16, 0, 0, 0, 9][..], &datagram].concat());
    let packet = decode(Link::RAW, &later).unwrap();
    assert_eq!(packet.fragment, Some(Fragment { id: 9, offset: 16, more: false }));
    assert_eq!((packet.protocol, packet.ports, packet.payload), (60, None, &datagram[..]));
    // An atomic fragment is a whole packet.
    let whole = ipv6(44, &[&[17, 0, 0, 0, 0, 0, 0, 9][..], &datagram].concat());
    assert_eq!(decode(Link::RAW, &whole).unwrap().fragment, None);

    let mut frame = udp(v4(1), v4(2), (3, 4), b"hello");
    frame[20] = 0x20;
    let packet = decode(Link::ETHERNET, &frame).unwrap();
    let id = u16::from_be_bytes([frame[18], frame[19]]).into();
    assert_eq!(packet.fragment, Some(Fragment { id, offset: 0, more: true }));
    assert_eq!(packet.ports, Some((3, 4)));
    frame[20..22].copy_from_slice(&[0x00, 0x05]);
    let packet = decode(Link::ETHERNET, &frame).unwrap();
    assert_eq!(packet.fragment, Some(Fragment { id, offset: 40, more: false }));
    assert_eq!((packet.ports, packet.payload.len()), (None, 13));
}

#[test]
fn packets_cut_by_a_snap_length_are_returned() {
    let frame = tcp([10, 0, 0, 1], [10, 0, 0, 2], (3, 4), 77, "S", b"payload");
    for captured in 0..=frame.len() {
        let file = {
            let mut writer = Writer::new(Vec::new(), Link::ETHERNET).unwrap();
            writer.write_cut(Timestamp::from_secs(1), &frame[..captured], frame.len() as u32).unwrap();
            writer.into_inner()
        };
        let mut reader = Reader::new(file.as_slice()).unwrap();
        let packet = reader.next().unwrap();
        match captured {
            0..34 => assert_eq!(packet, None),
            _ => {
                let packet = packet.expect("the IP header is complete");
                assert_eq!(packet.ports, (captured >= 38).then_some((3, 4)), "{captured}");
                assert_eq!(packet.tcp, (captured >= 54).then_some(TcpInfo { seq: 77, flags: TcpInfo::SYN }));
                assert_eq!(packet.payload, frame.get(54..captured).unwrap_or_default());
                assert_eq!(packet.length as usize, frame.len());
            }
        }
        assert_eq!(reader.next().unwrap(), None);
        let counts = reader.counts();
        assert_eq!(counts.skipped.count(Skip::Truncated), u64::from(captured < 34));
        assert_eq!(counts.headless, u64::from((34..54).contains(&captured)));
        assert_eq!(counts.cut, u64::from((34..frame.len()).contains(&captured)));
    }
}

#[test]
fn contradictory_lengths_are_handled() {
    let good = udp(v4(1), v4(2), (3, 4), b"hello");
    let with = |at: usize, bytes: &[u8]| {
        let mut frame = good.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        frame
    };
    // A length of 0 is left to the network card, so the captured length counts; one below the
    // header's size is wrong.
    assert_eq!(decode(Link::ETHERNET, &with(16, &[0, 0])).unwrap().payload, b"hello");
    assert_eq!(decode(Link::ETHERNET, &with(16, &[0, 19])), Err(Skip::Malformed));
    assert_eq!(decode(Link::ETHERNET, &with(14, &[0x44])), Err(Skip::Malformed), "a header of 16 bytes");
    assert_eq!(decode(Link::ETHERNET, &with(14, &[0x4f])), Err(Skip::Truncated), "a header of 60 bytes");
    // UDP lengths that claim more, and less, than there is.
    assert_eq!(decode(Link::ETHERNET, &with(38, &[0xff, 0xff])).unwrap().payload, b"hello");
    assert_eq!(decode(Link::ETHERNET, &with(38, &[0, 10])).unwrap().payload, b"he");
    assert_eq!(decode(Link::ETHERNET, &with(38, &[0, 3])).unwrap().payload, b"hello");
    assert_eq!(decode(Link::ETHERNET, &udp(v4(1), v4(2), (3, 4), b"")).unwrap().payload, b"");
    let jumbo = vec![7; 60_000];
    assert_eq!(decode(Link::ETHERNET, &udp(v6(1), v6(2), (3, 4), &jumbo)).unwrap().payload, jumbo);
}

// --- Broken captures ---

#[test]
fn capture_truncated_anywhere_yields_the_packets_before() {
    let frames = (0..4).map(|at| udp(v4(1), v4(2), (3, 4), &vec![at; at as usize * 30]));
    let file = pcap(Link::ETHERNET, frames.clone());
    let mut ends = vec![24];
    ends.extend(frames.scan(24, |end, frame| {
        *end += 16 + frame.len();
        Some(*end)
    }));
    for cut in 4..=file.len() {
        let (packets, _, end) = read(&file[..cut]);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(packets.len(), whole.saturating_sub(1), "{cut}");
        let expected = match ends.binary_search(&cut) {
            Ok(_) => End::Whole,
            Err(0) => End::Truncated { at: 0 },
            Err(next) => End::Truncated { at: ends[next - 1] as u64 },
        };
        assert_eq!(end, expected, "{cut}");
    }
    assert!(End::Truncated { at: 5 }.to_string().contains("truncated"));
}

#[test]
fn truncated_pcapng_and_gzip_captures_yield_the_packets_before() {
    let mut blocks = Blocks::new(true);
    blocks.interface(Link::ETHERNET, 6, 0);
    let head = blocks.bytes.len();
    blocks.packet(0, 0, &udp(v4(1), v4(2), (3, 4), b"hello"));
    let one = blocks.bytes.len();
    for cut in 4..=one {
        let (packets, _, end) = read(&blocks.bytes[..cut]);
        assert_eq!(packets.len(), usize::from(cut == one), "{cut}");
        assert_eq!(end == End::Whole, [28, head, one].contains(&cut), "{cut}");
        assert!(matches!(end, End::Whole | End::Truncated { .. }), "{cut}");
    }
    // Noise, so that it does not compress.
    let noise =
        |at: u64| (0..100u64).flat_map(move |i| umbel::Digest::from_hash(at).salted(i).get().to_le_bytes());
    let frames = (0..500).map(|at| udp(v4(1), v4(2), (3, 4), &noise(at).collect::<Vec<u8>>()));
    let squeezed = gzip(&pcap(Link::ETHERNET, frames));
    let (packets, _, end) = read(&squeezed[..squeezed.len() / 2]);
    assert!((100..500).contains(&packets.len()), "{}", packets.len());
    assert!(matches!(end, End::Truncated { .. }), "{end:?}");
    let (packets, _, end) = read(&squeezed[..15]);
    assert_eq!((packets.len(), end), (0, End::Truncated { at: 0 }));
    let mut broken = squeezed.clone();
    let middle = broken.len() / 2;
    broken[middle..middle + 40].fill(0xff);
    let (_, _, end) = read(broken.as_slice());
    assert_ne!(end, End::Whole);
}

#[test]
fn other_files_are_refused_by_name() {
    for (bytes, what) in [
        (&b""[..], "it is empty"),
        (b"\x7fELF\x02\x01\x01", "7f, 45, 4c, 46"),
        (b"hi", "68, 69"),
        (b"\xd4\xc3\xb2", "d4, c3, b2"),
    ] {
        let error = Reader::named(bytes, "that.file").expect_err("no capture").to_string();
        assert!(error.contains("that.file") && error.contains("neither pcap nor pcapng"), "{error}");
        assert!(error.contains(what), "{error}");
    }
    assert!(Reader::open("/nowhere/at.all").expect_err("no file").to_string().contains("/nowhere/at.all"));
}

#[test]
fn claimed_length_of_four_gigabytes_takes_no_memory() {
    let mut record = pcap(Link::ETHERNET, [udp(v4(1), v4(2), (3, 4), b"hello")]);
    let at = record.len() as u64;
    record.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
    let mut blocks = Blocks::new(false);
    blocks.interface(Link::ETHERNET, 6, 0);
    let claims = |kind: u32, length: u32| {
        let head = [kind, length, 0].map(u32::to_le_bytes).concat();
        [&blocks.bytes[..], &head, &[0; 1000]].concat()
    };
    let start = blocks.bytes.len() as u64;
    for (file, expected, most) in [
        (record, End::Damaged { at }, 1 << 18),
        (claims(6, 0xffff_fffc), End::Truncated { at: start }, 1 << 18),
        (claims(4, 0xffff_fffc), End::Truncated { at: start }, 1 << 18),
        (claims(6, MAX_RECORD as u32), End::Truncated { at: start }, 1 << 18),
        (claims(1, 0xffff_fffc), End::Damaged { at: start }, 1 << 18),
        (claims(6, 8), End::Damaged { at: start }, 1 << 18),
        (claims(6, 33), End::Damaged { at: start }, 1 << 18),
    ] {
        let mut reader = Reader::new(file.as_slice()).unwrap();
        while reader.next().unwrap().is_some() {}
        assert_eq!(reader.end(), Some(expected));
        assert!(reader.memory() <= most, "{} bytes for a file of {}", reader.memory(), file.len());
    }
    // A record that really is longer than any packet is skipped, and the next one is read.
    let mut blocks = Blocks::new(false);
    blocks.interface(Link::ETHERNET, 6, 0);
    blocks.block(6, &vec![0; MAX_RECORD]);
    blocks.packet(0, 0, &udp(v4(1), v4(2), (3, 4), b"hello"));
    let mut reader = Reader::new(blocks.bytes.as_slice()).unwrap();
    assert_eq!(reader.next().unwrap().expect("the one after it").payload, b"hello");
    assert_eq!(reader.counts().skipped.count(Skip::Oversized), 1);
    assert!(reader.memory() <= 1 << 18);
}

/// A megabyte of gzip can hold fifty million of them.
#[test]
fn endless_interfaces_take_no_memory() {
    let mut blocks = Blocks::new(false);
    (0..=1 << 16).for_each(|_| blocks.interface(Link::ETHERNET, 6, 0));
    let frame = udp(v4(1), v4(2), (3, 4), b"hello");
    blocks.packet((1 << 16) - 1, 0, &frame);
    blocks.packet(1 << 16, 0, &frame);
    let (packets, counts, end) = read(blocks.bytes.as_slice());
    assert_eq!((packets.len(), counts.skipped.count(Skip::Malformed), end), (1, 1, End::Whole));
}

// --- Hostile captures ---

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Changes bytes of real captures and truncates them: every outcome is counted.
    #[test]
    fn damaged_captures_are_survived(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let captures = real_captures();
        let mut bytes = std::fs::read(which.get(&captures)).unwrap();
        bytes.truncate(100_000);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        survive(&bytes);
    }

    /// Random bytes after a valid header.
    #[test]
    fn random_captures_are_survived(
        link in prop::sample::select(vec![0u8, 1, 12, 101, 108, 113, 228]),
        ng in any::<bool>(),
        noise in prop::collection::vec(prop_oneof![Just(0u8), 0..8u8, any::<u8>()], 0..3000),
    ) {
        let head = if ng {
            let mut blocks = Blocks::new(false);
            blocks.interface(Link(link.into()), 6, 0);
            blocks.bytes
        } else {
            one_record(0xa1b2_c3d4, false, 0, link.into(), &[])
        };
        survive(&[head, noise].concat());
    }

    /// Random frames of every link type.
    #[test]
    fn random_frames_are_survived(
        link in prop::sample::select(vec![0u16, 1, 12, 101, 108, 113, 228, 229, 276]),
        start in prop::sample::select(vec![vec![0x45], vec![0x60, 0, 0, 0], vec![0x4f], udp(v4(1), v4(2), (3, 4), b""), udp(v6(1), v6(2), (3, 4), b"")]),
        noise in prop::collection::vec(prop_oneof![Just(0u8), Just(44), Just(60), Just(51), any::<u8>()], 0..200),
    ) {
        let frame = [start, noise].concat();
        if let Ok(packet) = decode(Link(link), &frame) {
            prop_assert!(packet.payload.len() <= packet.ip.len() && packet.ip.len() <= frame.len());
        }
    }
}

fn survive(bytes: &[u8]) {
    let Ok(mut reader) = Reader::new(bytes) else { return };
    let mut given = 0;
    while let Some(packet) = reader.next().expect("no error of the system") {
        given += 1;
        assert!(packet.payload.len() <= packet.ip.len() && packet.ip.len() <= bytes.len());
    }
    let counts = reader.counts();
    assert_eq!(counts.packets, given);
    assert_eq!(counts.frames, given + counts.skipped.total());
    assert!(reader.end().is_some());
    // The initial buffer, or at most twice the bytes read.
    assert!(reader.memory() <= (1 << 18).max(2 * bytes.len()), "{} for {}", reader.memory(), bytes.len());
}
