//! The promises of the passage through a router: every change of a packet that the documentation
//! lists is recognised among other packets, in both directions.

use std::slice::from_ref;
use umbel::Digest;
use umbel_net::capture::Timestamp;
use umbel_net::traceback::passage::{Change, Departure, MAX_STAY, Passage, Sighting};
use umbel_net::traceback::spie::{Invariant, Transform};

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [192, 0, 2, 80];
const OUTSIDE: [u8; 4] = [198, 51, 100, 7];
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;

/// Returns an IPv4 packet; `fragment` is the field with the flags and the offset.
fn ipv4(source: [u8; 4], destination: [u8; 4], protocol: u8, id: u16, fragment: u16, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + body.len() as u16).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0xab, 0xcd]);
    packet.extend([source, destination].as_flattened());
    packet.extend(body);
    packet
}

fn ipv6(source: u8, destination: u8, protocol: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((body.len() as u16).to_be_bytes());
    packet.extend([protocol, 64]);
    for host in [source, destination] {
        packet.extend([0xfd; 15]);
        packet.push(host);
    }
    packet.extend(body);
    packet
}

fn udp(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut datagram =
        [ports.0, ports.1, 8 + payload.len() as u16, ports.0 ^ 0x5555].map(u16::to_be_bytes).concat();
    datagram.extend(payload);
    datagram
}

fn tcp(ports: (u16, u16), seq: u32, payload: &[u8]) -> Vec<u8> {
    let mut segment = [ports.0, ports.1].map(u16::to_be_bytes).concat();
    segment.extend(seq.to_be_bytes());
    segment.extend([0, 0, 0, 9, 0x50, 0x18, 1, 1, ports.0 as u8, 7, 0, 0]);
    segment.extend(payload);
    segment
}

/// Returns an ICMP message with its four bytes after the checksum.
fn icmp(kind: u8, rest: [u8; 4], body: &[u8]) -> Vec<u8> {
    [&[kind, 0, kind ^ rest[0], 1], &rest[..], body].concat()
}

fn digest(packet: &[u8]) -> Digest {
    Invariant::from_packet(packet).unwrap().digest()
}

fn at(micros: u64) -> Timestamp {
    Timestamp::from_nanos(1_700_000_000_000_000_000 + 1000 * micros)
}

fn sighting(packet: &[u8], micros: u64) -> Sighting {
    Sighting::new(packet, at(micros)).unwrap()
}

/// Returns a packet that has nothing to do with the others.
fn other(number: u16) -> Vec<u8> {
    ipv4(CLIENT, SERVER, 17, number, 0, &udp((number, 53), format!("question {number}").as_bytes()))
}

/// Sends packets through a router that changes them, among a hundred others that it does not
/// change, and returns what is known about those that left in their place.
fn pass(entered: &[Vec<u8>], left: &[Vec<u8>]) -> Vec<Vec<Change>> {
    let mut passage = Passage::default();
    for number in 0..50 {
        passage.enter(sighting(&other(number), u64::from(number)));
        passage.leave(sighting(&other(number), u64::from(number) + 10));
    }
    entered.iter().for_each(|packet| passage.enter(sighting(packet, 100)));
    for number in 50..100 {
        passage.enter(sighting(&other(number), 100 + u64::from(number)));
        passage.leave(sighting(&other(number), 100 + u64::from(number)));
    }
    left.iter().for_each(|packet| passage.leave(sighting(packet, 400)));
    passage.finish();
    let departures: Vec<Departure> = std::iter::from_fn(|| passage.next()).collect();
    let (others, changed): (Vec<_>, Vec<_>) =
        departures.into_iter().partition(|departure| departure.is_unchanged);
    assert_eq!((others.len(), changed.len()), (100, left.len()));
    changed.into_iter().map(|departure| departure.changes).collect()
}

/// Checks that one packet became another by this transformation.
fn assert_change(name: &str, before: &[u8], after: &[u8], how: Transform) {
    let changes = pass(&[before.to_vec()], &[after.to_vec()]);
    assert_eq!(changes, [vec![Change { before: digest(before), how }]], "{name}");
}

fn plain() -> Vec<u8> {
    ipv4(CLIENT, SERVER, 17, 700, 0, &udp((4000, 9999), b"twenty bytes or more of payload"))
}

#[test]
fn address_translation_is_recognised() {
    let translated = Transform::Translated;
    let payload = b"twenty bytes or more of payload";
    let source = ipv4(OUTSIDE, SERVER, 17, 700, 0, &udp((61_000, 9999), payload));
    assert_change("source", &plain(), &source, translated);
    assert_change("back", &source, &plain(), translated);
    let renumbered = ipv4(OUTSIDE, SERVER, 17, 701, 0, &udp((61_000, 9999), payload));
    assert_change("another identification", &plain(), &renumbered, translated);
    let segment = |source, ports| ipv4(source, SERVER, 6, 9, DONT_FRAGMENT, &tcp(ports, 77, b"GET /"));
    assert_change("TCP", &segment(CLIENT, (4000, 80)), &segment(OUTSIDE, (61_000, 80)), translated);
    let acknowledgement = |source, ports| ipv4(source, SERVER, 6, 0, DONT_FRAGMENT, &tcp(ports, 78, b""));
    let [before, after] = [acknowledgement(CLIENT, (4000, 80)), acknowledgement(OUTSIDE, (61_000, 80))];
    assert_change("TCP without payload", &before, &after, translated);
    let echo = |source, id| ipv4(source, SERVER, 1, 9, 0, &icmp(8, [0, id, 0, 1], b"abcdefgh"));
    assert_change("ICMP", &echo(CLIENT, 1), &echo(OUTSIDE, 2), translated);
    let six = |source| ipv6(source, 80, 17, &udp((4000, 9999), payload));
    assert_change("IPv6", &six(1), &six(2), translated);
    assert_change("IPv4 to IPv6", &plain(), &six(2), translated);
    // An ICMP error passes through the translation of the packet that it quotes.
    let error = |destination, quoted: &[u8]| {
        ipv4(SERVER, destination, 1, 5, 0, &icmp(3, [0; 4], &quoted[..quoted.len().min(48)]))
    };
    assert_change("ICMP error", &error(OUTSIDE, &source), &error(CLIENT, &plain()), translated);
}

#[test]
fn packets_with_equal_contents_are_told_apart_by_their_identification_or_all_returned() {
    let packet = |source, id| ipv4(source, SERVER, 17, id, 0, &udp((4000, 9999), b"the same"));
    let hosts: Vec<Vec<u8>> = (1..6).map(|host| packet([10, 0, 0, host], host.into())).collect();
    let changes = pass(&hosts, &[packet(OUTSIDE, 3)]);
    assert_eq!(changes, [vec![Change { before: digest(&hosts[2]), how: Transform::Translated }]]);
    let changes = pass(&hosts, &[packet(OUTSIDE, 99)]);
    assert_eq!(changes[0].len(), 5);
    assert!(hosts.iter().all(|host| changes[0].iter().any(|change| change.before == digest(host))));
}

#[test]
fn tunnels_are_recognised_at_both_ends() {
    let inner = plain();
    let inner_6 = ipv6(1, 2, 17, &udp((4000, 9999), b"payload"));
    let mut frame = vec![2; 12];
    frame.extend([0x08, 0x00]);
    frame.extend(&inner);
    let outer = |protocol, body: &[u8]| ipv4(OUTSIDE, SERVER, protocol, 1, 0, body);
    let gre = |flags: u8, optional: usize, inner: &[u8], kind: [u8; 2]| {
        outer(47, &[&[flags, 0], &kind[..], &vec![7; optional], inner].concat())
    };
    let datagram =
        |port, header: &[u8], inner: &[u8]| outer(17, &udp((50_000, port), &[header, inner].concat()));
    for (name, inner, outer) in [
        ("IP in IP", &inner, outer(4, &inner)),
        ("IPv6 in IPv4", &inner_6, outer(41, &inner_6)),
        ("IPv4 in IPv6", &inner, ipv6(8, 9, 4, &inner)),
        ("GRE", &inner, gre(0, 0, &inner, [0x08, 0x00])),
        ("GRE with a key and a checksum", &inner_6, gre(0xa0, 8, &inner_6, [0x86, 0xdd])),
        ("GRE with Ethernet", &inner, gre(0x20, 4, &frame, [0x65, 0x58])),
        ("VXLAN", &inner, datagram(4789, &[8, 0, 0, 0, 0, 0, 5, 0], &frame)),
        ("Geneve", &inner, datagram(6081, &[1, 0, 0x65, 0x58, 0, 0, 5, 0, 1, 2, 3, 4], &frame)),
        ("GTP", &inner, datagram(2152, &[0x30, 255, 0, 40, 0, 0, 0, 1], &inner)),
    ] {
        assert_change(name, inner, &outer, Transform::Tunnelled);
        assert_change(name, &outer, inner, Transform::Tunnelled);
    }
}

/// Cuts the contents of an IPv4 packet at a multiple of eight bytes.
fn cut(packet: &[u8], at: usize) -> [Vec<u8>; 2] {
    let addresses = [&packet[12..16], &packet[16..20]].map(|address| address.try_into().unwrap());
    let id = u16::from_be_bytes([packet[4], packet[5]]);
    let part = |field, body: &[u8]| ipv4(addresses[0], addresses[1], packet[9], id, field, body);
    [part(MORE_FRAGMENTS, &packet[20..20 + at]), part(at as u16 / 8, &packet[20 + at..])]
}

#[test]
fn fragments_are_recognised_even_if_they_are_translated_or_tunnelled_too() {
    let whole = ipv4(CLIENT, SERVER, 17, 700, 0, &udp((4000, 9999), &[7; 1000]));
    let outside = ipv4(OUTSIDE, SERVER, 17, 700, 0, &udp((61_000, 9999), &[7; 1000]));
    let fragmented = |packet: &[u8]| Change { before: digest(packet), how: Transform::Fragmented };
    let both = [vec![fragmented(&whole)], vec![fragmented(&whole)]];
    assert_eq!(pass(from_ref(&whole), &cut(&whole, 512)), both);
    assert_eq!(pass(from_ref(&whole), &cut(&outside, 512)), both);
    // Put together, and cut at another place.
    let parts = cut(&whole, 512);
    let all: Vec<Change> = parts.iter().map(|part| fragmented(part)).collect();
    assert_eq!(pass(&parts, from_ref(&whole)), from_ref(&all));
    assert_eq!(pass(&parts, &cut(&outside, 256)), [vec![all[0]], all]);
    // A fragment of a tunnel has the inner headers only if it is the first.
    let tunnel = ipv4(OUTSIDE, SERVER, 4, 1, 0, &whole);
    let tunnelled = Change { before: digest(&whole), how: Transform::Tunnelled };
    assert_eq!(pass(&[whole], &cut(&tunnel, 512)), [vec![tunnelled], vec![tunnelled]]);
    // In IPv6, a host cuts, and a tunnel may put together.
    let datagram = udp((4000, 9999), &[7; 64]);
    let fragment = |offset: u16, more: u16, body: &[u8]| {
        let header = [&[17, 0], &(offset | more).to_be_bytes()[..], &[0, 0, 0, 9]].concat();
        ipv6(1, 2, 44, &[&header, body].concat())
    };
    let parts = [fragment(0, 1, &datagram[..40]), fragment(40, 0, &datagram[40..])];
    assert_eq!(pass(&parts, &[fragment(0, 1, &datagram[..16])]), [vec![fragmented(&parts[0])]]);
}

#[test]
fn errors_lead_to_the_packets_that_they_quote() {
    let packet = plain();
    let error = ipv4(OUTSIDE, CLIENT, 1, 3, 0, &icmp(11, [0; 4], &packet[..28]));
    assert_change("time exceeded", &packet, &error, Transform::Quoted);
    let six = ipv6(1, 2, 17, &udp((4000, 9999), b"payload"));
    let error = ipv6(9, 1, 58, &icmp(1, [0; 4], &six));
    assert_change("unreachable", &six, &error, Transform::Quoted);
    // An error that a router forwards does not lead to the packet that it quotes.
    let mut passage = Passage::default();
    passage.enter(sighting(&packet, 0));
    passage.enter(sighting(&error, 1));
    passage.leave(sighting(&error, 2));
    passage.finish();
    assert!(passage.next().is_some_and(|departure| departure.is_unchanged));
}

#[test]
fn ipsec_is_recognised_with_encryption_by_time_and_length() {
    let inner = plain();
    let secured = Transform::Secured;
    let authentication = |next: u8| [&[next, 4, 0, 0], &[9; 20][..]].concat();
    let outer = |protocol, body: &[u8]| ipv4(OUTSIDE, SERVER, protocol, 1, 0, body);
    let tunnel = outer(51, &[authentication(4), inner.clone()].concat());
    let transport = ipv4(CLIENT, SERVER, 51, 700, 0, &[authentication(17), inner[20..].to_vec()].concat());
    let readable = outer(50, &[&[0, 0, 1, 0, 0, 0, 0, 1], &inner[..], &[1; 16]].concat());
    let noise: Vec<u8> = (0..inner.len() + 40).map(|byte| (byte * 89 % 251) as u8).collect();
    let encrypted = outer(50, &noise);
    let in_datagrams = outer(17, &udp((4500, 4500), &noise));
    for (name, outer) in [
        ("authenticated tunnel", tunnel),
        ("authenticated", transport),
        ("without encryption", readable),
        ("encrypted", encrypted.clone()),
        ("encrypted in UDP", in_datagrams),
    ] {
        assert_change(name, &inner, &outer, secured);
        assert_change(name, &outer, &inner, secured);
    }
    // A packet of another length cannot have been encrypted into this one.
    let long = ipv4(CLIENT, SERVER, 17, 1, 0, &udp((4000, 9999), &[1; 900]));
    assert_eq!(pass(&[long], &[encrypted]), [vec![]]);
}

#[test]
fn a_packet_that_never_entered_begins_in_the_router() {
    assert_eq!(pass(&[], &[plain()]), [vec![]]);
    assert_eq!(
        pass(&[plain()], &[ipv4(OUTSIDE, SERVER, 17, 700, 0, &udp((61_000, 9999), b"other"))]),
        [vec![]]
    );
}

#[test]
fn packets_leave_soon_after_they_entered_even_if_the_clocks_differ_a_little() {
    let after = ipv4(OUTSIDE, SERVER, 17, 700, 0, &udp((61_000, 9999), b"twenty bytes or more of payload"));
    let changes = |entered: u64, left: u64| {
        let mut passage = Passage::default();
        let (before, after) = (sighting(&plain(), entered), sighting(&after, left));
        if entered <= left {
            passage.enter(before);
            passage.leave(after);
        } else {
            passage.leave(after);
            assert!(passage.next().is_none(), "it waits for packets that entered at the same time");
            passage.enter(before);
        }
        passage.finish();
        passage.next().unwrap().changes.len()
    };
    let stay = MAX_STAY.as_micros() as u64;
    assert_eq!([changes(0, 0), changes(0, stay), changes(5000, 0)], [1; 3]);
    assert_eq!([changes(0, stay + 1), changes(10_001, 0)], [0; 2]);
}

#[test]
fn no_packet_however_short_or_strange_causes_a_panic() {
    let samples = [plain(), ipv6(1, 2, 44, &[9; 40]), ipv4(CLIENT, SERVER, 47, 1, 0, &[0xff; 40])];
    for sample in &samples {
        for length in 0..sample.len() {
            for (protocol, byte) in (0..=255).zip((0..=255).rev()) {
                let mut packet = sample[..length].to_vec();
                if let Some(field) = packet.get_mut(if sample[0] >> 4 == 4 { 9 } else { 6 }) {
                    *field = protocol;
                }
                if let Some(last) = packet.last_mut() {
                    *last = byte;
                }
                let Ok(packet) = Sighting::new(&packet, at(0)) else { continue };
                let mut passage = Passage::default();
                passage.enter(packet.clone());
                passage.leave(packet);
                passage.finish();
                assert!(passage.next().is_some_and(|departure| departure.is_unchanged));
            }
        }
    }
}
