//! Decoding of a frame: link layer, IP with its extension headers, transport protocol.

use super::{Fragment, Packet, TcpInfo, Timestamp};
use etherparse::{
    IpAuthHeaderSlice, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice, Ipv6RawExtHeaderSlice,
    TcpHeaderSlice, err, ip_number,
};
use std::fmt;
use std::net::IpAddr;
use std::ops::Range;

/// The link type of a capture, as numbered in the registry of link types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link(pub u16);

impl Link {
    /// BSD loopback: a protocol family in the byte order of the machine.
    pub const NULL: Link = Link(0);
    /// Ethernet.
    pub const ETHERNET: Link = Link(1);
    /// Raw IP, under the number that some systems use.
    pub const RAW_BSD: Link = Link(12);
    /// Raw IP, under the number of OpenBSD.
    pub const RAW_OPENBSD: Link = Link(14);
    /// Raw IP of either version.
    pub const RAW: Link = Link(101);
    /// OpenBSD loopback: a protocol family, big-endian.
    pub const LOOP: Link = Link(108);
    /// Linux cooked capture, as written for the interface "any".
    pub const LINUX_SLL: Link = Link(113);
    /// Raw IPv4.
    pub const IPV4: Link = Link(228);
    /// Raw IPv6.
    pub const IPV6: Link = Link(229);
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: Link = Link(276);
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link type {}", self.0)
    }
}

/// The reason why no packet was found in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Skip {
    /// The headers up to the end of IP were not captured completely.
    Truncated,
    /// The link type is not supported.
    UnknownLink,
    /// The frame is not IP, but ARP for example.
    NotIp,
    /// The headers contradict themselves, or the interface of the frame was never described.
    Malformed,
    /// The record is longer than [`MAX_RECORD`](super::MAX_RECORD).
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

/// A decoded packet, with ranges of the frame instead of slices.
pub(super) struct Layout {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    pub(super) fragment: Option<Fragment>,
    ip: Range<usize>,
    pub(super) transport: Transport,
}

/// The decoded header of the protocol above IP.
#[derive(Default)]
pub(super) struct Transport {
    ports: Option<(u16, u16)>,
    tcp: Option<TcpInfo>,
    /// The offset of the payload in the frame.
    payload: usize,
    /// The length of the payload, if the header has it.
    length: Option<usize>,
    /// Whether the header is incomplete or contradicts itself.
    pub(super) headless: bool,
}

impl Layout {
    /// Returns the packet, given the frame that was decoded.
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
    // Later fragments do not begin with a transport header.
    if layout.fragment.is_none_or(|fragment| fragment.offset == 0) {
        let bytes = frame.get(layout.transport.payload..layout.ip.end).unwrap_or_default();
        layout.transport = transport(layout.protocol, bytes, layout.transport.payload);
    }
    Ok(layout)
}

/// Returns the offset of the IP header.
fn network(link: Link, frame: &[u8]) -> Result<usize, Skip> {
    match link {
        Link::ETHERNET => after_type(frame, 12, 14),
        Link::LINUX_SLL => after_type(frame, 14, 16),
        Link::LINUX_SLL2 => after_type(frame, 0, 20),
        Link::RAW | Link::RAW_BSD | Link::RAW_OPENBSD | Link::IPV4 | Link::IPV6 => Ok(0),
        Link::NULL | Link::LOOP => {
            let family = frame.first_chunk().ok_or(Skip::Truncated)?;
            // The family of IPv4, and those of IPv6 on Linux, NetBSD, FreeBSD and Darwin.
            let known = |family| matches!(family, 2 | 10 | 24 | 28 | 30);
            match known(u32::from_le_bytes(*family)) || known(u32::from_be_bytes(*family)) {
                true => Ok(4),
                false => Err(Skip::NotIp),
            }
        }
        _ => Err(Skip::UnknownLink),
    }
}

/// Returns the offset of the IP header, given the offset of an Ethernet type and of the header it
/// describes. Skips VLAN tags, and the SNAP header, which carries the type if Ethernet has a length
/// in its place.
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
        // With segmentation offload, the sender leaves the length to the network card.
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
        // Zero stands for no payload, for a length that does not fit in the field, or for one that
        // is left to the network card.
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

/// Skips the headers between IP and the transport protocol. Each has at least 8 bytes, so the loop
/// ends.
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
                // An atomic fragment is a whole packet.
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

/// Decodes the header of a transport protocol; `start` is its offset in the frame.
fn transport(protocol: u8, bytes: &[u8], start: usize) -> Transport {
    const UDP_LITE: u8 = 136;
    // The length of the header, the length of the payload if the header has it, and the TCP fields.
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
