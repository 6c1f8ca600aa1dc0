//! From a frame to its IP packet: link layer, IP with its extensions, transport.

use super::{Fragment, Packet, TcpInfo, Timestamp};
use etherparse::{
    IpAuthHeaderSlice, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice, Ipv6RawExtHeaderSlice,
    TcpHeaderSlice, err, ip_number,
};
use std::fmt;
use std::net::IpAddr;
use std::ops::Range;

/// What the frames of a capture begin with, by its number in the registry of link types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link(pub u16);

impl Link {
    /// Loopback of BSD: a protocol family in the byte order of the machine.
    pub const NULL: Link = Link(0);
    /// Ethernet.
    pub const ETHERNET: Link = Link(1);
    /// Raw IP, by the number that some systems use for it.
    pub const RAW_BSD: Link = Link(12);
    /// Raw IP, by the number of OpenBSD.
    pub const RAW_OPENBSD: Link = Link(14);
    /// Raw IP of either version.
    pub const RAW: Link = Link(101);
    /// Loopback of OpenBSD: a protocol family, big-endian.
    pub const LOOP: Link = Link(108);
    /// What Linux gives when it captures on any interface.
    pub const LINUX_SLL: Link = Link(113);
    /// Raw IPv4.
    pub const IPV4: Link = Link(228);
    /// Raw IPv6.
    pub const IPV6: Link = Link(229);
    /// The second version of what Linux gives when it captures on any interface.
    pub const LINUX_SLL2: Link = Link(276);
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link type {}", self.0)
    }
}

/// Why no packet was found in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Skip {
    /// Not even the headers up to the end of IP were captured.
    Truncated,
    /// The link type is not one that is understood.
    UnknownLink,
    /// It is something else: ARP, say.
    NotIp,
    /// Headers contradict themselves, or the interface of the frame was never described.
    Malformed,
    /// It is longer than [`MAX_RECORD`](super::MAX_RECORD).
    Oversized,
}

impl Skip {
    /// All reasons.
    pub const ALL: [Skip; 5] =
        [Skip::Truncated, Skip::UnknownLink, Skip::NotIp, Skip::Malformed, Skip::Oversized];
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Skip::Truncated => "headers truncated",
            Skip::UnknownLink => "unknown link type",
            Skip::NotIp => "not IP",
            Skip::Malformed => "malformed",
            Skip::Oversized => "oversized",
        })
    }
}

impl std::error::Error for Skip {}

/// What a packet is, with places in the frame instead of slices of it.
pub(super) struct Layout {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    pub(super) fragment: Option<Fragment>,
    ip: Range<usize>,
    pub(super) transport: Transport,
}

/// What was understood of the protocol above IP.
#[derive(Default)]
pub(super) struct Transport {
    ports: Option<(u16, u16)>,
    tcp: Option<TcpInfo>,
    /// Where the payload begins in the frame.
    payload: usize,
    /// The payload's length, where the header says it.
    length: Option<usize>,
    /// Whether its header is missing in part, or contradicts itself.
    pub(super) headless: bool,
}

impl Layout {
    /// The packet, in the frame that was decoded.
    pub(super) fn packet<'a>(&self, frame: &'a [u8], time: Timestamp, length: u32) -> Packet<'a> {
        let Transport { ports, tcp, .. } = self.transport;
        let ip = frame.get(self.ip.clone()).unwrap_or_default();
        let payload = frame.get(self.transport.payload..self.ip.end).unwrap_or_default();
        let payload = self.transport.length.and_then(|length| payload.get(..length)).unwrap_or(payload);
        Packet {
            number: 0,
            time,
            source: self.source,
            destination: self.destination,
            protocol: self.protocol,
            ports,
            tcp,
            fragment: self.fragment,
            ip,
            payload,
            length,
        }
    }
}

/// Finds the IP packet in a frame.
pub(super) fn decode(link: Link, frame: &[u8]) -> Result<Layout, Skip> {
    let start = network(link, frame)?;
    let bytes = frame.get(start..).ok_or(Skip::Truncated)?;
    let mut layout = match bytes.first().ok_or(Skip::Truncated)? >> 4 {
        4 => ipv4(bytes, start)?,
        6 => ipv6(bytes, start)?,
        _ => return Err(Skip::Malformed),
    };
    // What follows in a later fragment is no header.
    if layout.fragment.is_none_or(|fragment| fragment.offset == 0) {
        let bytes = frame.get(layout.transport.payload..layout.ip.end).unwrap_or_default();
        layout.transport = transport(layout.protocol, bytes, layout.transport.payload);
    }
    Ok(layout)
}

/// Where IP begins.
fn network(link: Link, frame: &[u8]) -> Result<usize, Skip> {
    match link {
        Link::ETHERNET => after_type(frame, 12, 14),
        Link::LINUX_SLL => after_type(frame, 14, 16),
        Link::LINUX_SLL2 => after_type(frame, 0, 20),
        Link::RAW | Link::RAW_BSD | Link::RAW_OPENBSD | Link::IPV4 | Link::IPV6 => Ok(0),
        Link::NULL | Link::LOOP => {
            let family = frame.first_chunk().ok_or(Skip::Truncated)?;
            // IPv4, and what IPv6 is on Linux, NetBSD, FreeBSD and Darwin.
            let known = |family| matches!(family, 2 | 10 | 24 | 28 | 30);
            match known(u32::from_le_bytes(*family)) || known(u32::from_be_bytes(*family)) {
                true => Ok(4),
                false => Err(Skip::NotIp),
            }
        }
        _ => Err(Skip::UnknownLink),
    }
}

/// Where IP begins if a type of Ethernet is at one place, and what it tells of at another; behind tags of VLANs, and behind
/// the header that carries such a type where Ethernet has a length instead.
fn after_type(frame: &[u8], mut at: usize, mut next: usize) -> Result<usize, Skip> {
    const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
    loop {
        match be16(frame, at).ok_or(Skip::Truncated)? {
            0x0800 | 0x86dd => return Ok(next),
            0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => (at, next) = (next + 2, next + 4),
            0..=1500 if frame.get(next..next + SNAP.len()) == Some(&SNAP) => {
                (at, next) = (next + 6, next + 8)
            }
            _ => return Err(Skip::NotIp),
        }
    }
}

fn ipv4(bytes: &[u8], start: usize) -> Result<Layout, Skip> {
    let header = Ipv4HeaderSlice::from_slice(bytes).map_err(|problem| match problem {
        err::ipv4::HeaderSliceError::Len(_) => Skip::Truncated,
        err::ipv4::HeaderSliceError::Content(_) => Skip::Malformed,
    })?;
    let head = header.slice().len();
    let length = match usize::from(header.total_len()) {
        // A sender whose network card cuts packets leaves the length to it.
        0 => bytes.len(),
        length if length < head => return Err(Skip::Malformed),
        length => length.min(bytes.len()),
    };
    let offset = u32::from(header.fragments_offset().value()) * 8;
    let more = header.more_fragments();
    let mut layout = Layout {
        source: header.source_addr().into(),
        destination: header.destination_addr().into(),
        protocol: header.protocol().0,
        fragment: (more || offset > 0).then(|| Fragment { id: header.identification().into(), offset, more }),
        ip: start..start + length,
        transport: Transport { payload: start + head, ..Transport::default() },
    };
    extensions(&mut layout, &bytes[head..length])?;
    Ok(layout)
}

fn ipv6(bytes: &[u8], start: usize) -> Result<Layout, Skip> {
    let header = Ipv6HeaderSlice::from_slice(bytes).map_err(|problem| match problem {
        err::ipv6::HeaderSliceError::Len(_) => Skip::Truncated,
        err::ipv6::HeaderSliceError::Content(_) => Skip::Malformed,
    })?;
    let head = header.slice().len();
    let length = match usize::from(header.payload_length()) {
        // Nothing; or too much for the field; or a length that is left to the network card.
        0 if header.next_header() == ip_number::IPV6_NO_NEXT_HEADER => head,
        0 => bytes.len(),
        length => (head + length).min(bytes.len()),
    };
    let mut layout = Layout {
        source: header.source_addr().into(),
        destination: header.destination_addr().into(),
        protocol: header.next_header().0,
        fragment: None,
        ip: start..start + length,
        transport: Transport { payload: start + head, ..Transport::default() },
    };
    extensions(&mut layout, &bytes[head..length])?;
    Ok(layout)
}

/// Goes past the headers between IP and the transport protocol. Each has at least 8 bytes, so that there is an end.
fn extensions(layout: &mut Layout, mut rest: &[u8]) -> Result<(), Skip> {
    let v6 = layout.source.is_ipv6();
    while layout.fragment.is_none_or(|fragment| fragment.offset == 0) {
        let (next, length) = match etherparse::IpNumber(layout.protocol) {
            ip_number::IPV6_HOP_BY_HOP | ip_number::IPV6_DEST_OPTIONS | ip_number::IPV6_ROUTE if v6 => {
                let header = Ipv6RawExtHeaderSlice::from_slice(rest).map_err(|_| Skip::Truncated)?;
                (header.next_header(), header.slice().len())
            }
            ip_number::IPV6_FRAG if v6 => {
                let header = Ipv6FragmentHeaderSlice::from_slice(rest).map_err(|_| Skip::Truncated)?;
                // A fragment that is the whole is none.
                if header.is_fragmenting_payload() {
                    layout.fragment = Some(Fragment {
                        id: header.identification(),
                        offset: u32::from(header.fragment_offset().value()) * 8,
                        more: header.more_fragments(),
                    });
                }
                (header.next_header(), header.slice().len())
            }
            ip_number::AUTH => {
                let header = IpAuthHeaderSlice::from_slice(rest).map_err(|problem| match problem {
                    err::ip_auth::HeaderSliceError::Len(_) => Skip::Truncated,
                    err::ip_auth::HeaderSliceError::Content(_) => Skip::Malformed,
                })?;
                (header.next_header(), header.slice().len())
            }
            _ => break,
        };
        layout.protocol = next.0;
        layout.transport.payload += length;
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(())
}

/// The header of a transport protocol; `start` is its place in the frame.
fn transport(protocol: u8, bytes: &[u8], start: usize) -> Transport {
    const UDP_LITE: u8 = 136;
    // The length of the header, and the payload's where it is told.
    let (head, length, tcp) = match protocol {
        6 => match TcpHeaderSlice::from_slice(bytes) {
            Ok(header) => {
                let flags = bytes.get(13).copied().unwrap_or_default();
                let info = TcpInfo { seq: header.sequence_number(), flags };
                (Some(header.slice().len()), None, Some(info))
            }
            Err(_) => (None, None, None),
        },
        17 => {
            let length = be16(bytes, 4).and_then(|length| usize::from(length).checked_sub(8));
            ((bytes.len() >= 8).then_some(8), length, None)
        }
        UDP_LITE => ((bytes.len() >= 8).then_some(8), None, None),
        132 => ((bytes.len() >= 12).then_some(12), None, None),
        _ => return Transport { payload: start, ..Transport::default() },
    };
    Transport {
        ports: be16(bytes, 0).zip(be16(bytes, 2)),
        tcp,
        payload: start + head.unwrap_or(bytes.len()),
        length,
        headless: head.is_none(),
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
