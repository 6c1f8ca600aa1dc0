//! The headers of a packet, as far as the changes in a router depend on them.

use crate::traceback::spie::{Invariant, Transform};
use std::ops::Range;
use umbel::Digest;

/// Protocol numbers above IP.
mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ICMP: u8 = 1;
    pub const IPV4: u8 = 4;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const IPV6: u8 = 41;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const GRE: u8 = 47;
    pub const ESP: u8 = 50;
    pub const AUTHENTICATION: u8 = 51;
    pub const ICMPV6: u8 = 58;
    pub const DESTINATION: u8 = 60;
}

/// The IP header of a packet and the bytes after all extension headers.
pub(super) struct Layers<'a> {
    pub(super) source: &'a [u8],
    pub(super) destination: &'a [u8],
    /// The identification, which IPv6 has only in fragments.
    pub(super) id: Option<u32>,
    /// The place of the contents in the packet before it was cut.
    pub(super) range: Range<u32>,
    /// Whether this is a fragment.
    pub(super) is_fragment: bool,
    /// The length of the packet, with its headers.
    pub(super) length: u32,
    protocol: u8,
    /// Whether an authentication header precedes the contents.
    is_authenticated: bool,
    /// The captured part of the contents: a transport header and payload, or another packet.
    body: &'a [u8],
}

impl<'a> Layers<'a> {
    /// Returns the layers of a packet that begins with its IP header.
    pub(super) fn from_packet(packet: &'a [u8]) -> Option<Layers<'a>> {
        let mut layers = match packet.first()? >> 4 {
            4 => version_4(packet)?,
            6 => version_6(packet)?,
            _ => return None,
        };
        layers.skip_extensions()?;
        Some(layers)
    }

    /// Skips extension headers up to the transport protocol. Later fragments have none.
    fn skip_extensions(&mut self) -> Option<()> {
        while self.range.start == 0 {
            let is_v6 = self.source.len() == 16;
            let length = match (self.protocol, self.body.get(1)) {
                (protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION, units) if is_v6 => {
                    8 * (usize::from(*units?) + 1)
                }
                (protocol::FRAGMENT, _) if is_v6 => {
                    let [_, _, high, low, id @ ..] = self.body.first_chunk::<8>()?;
                    let field = u16::from_be_bytes([*high, *low]);
                    let start = u32::from(field & !7);
                    self.id = Some(u32::from_be_bytes(*id));
                    self.is_fragment = start > 0 || field & 1 > 0;
                    self.range = start..start + self.range.end.saturating_sub(8);
                    8
                }
                (protocol::AUTHENTICATION, units) => {
                    self.is_authenticated = true;
                    4 * (usize::from(*units?) + 2)
                }
                _ => break,
            };
            self.protocol = *self.body.first()?;
            self.body = self.body.get(length..)?;
        }
        Some(())
    }

    /// Returns the digest of a packet inside this one, and the transformation that put it there.
    pub(super) fn inner(&self) -> Option<(Digest, Transform)> {
        if self.range.start > 0 {
            return None;
        }
        let (packet, how) = match self.protocol {
            protocol::IPV4 | protocol::IPV6 => (self.body, Transform::Tunnelled),
            protocol::GRE => (gre(self.body)?, Transform::Tunnelled),
            protocol::UDP => (datagram_tunnel(self.body)?, Transform::Tunnelled),
            // Without encryption, the packet follows the index and the sequence number.
            protocol::ESP => (self.body.get(8..)?, Transform::Secured),
            _ if self.is_icmp_error() => (self.body.get(8..)?, Transform::Quoted),
            _ => return None,
        };
        let how = if self.is_authenticated && how != Transform::Quoted { Transform::Secured } else { how };
        let inner = Invariant::from_packet(packet).ok()?;
        Some((inner.digest(), how))
    }

    /// Returns whether the contents may be encrypted by IPsec, directly or in UDP.
    pub(super) fn is_encrypted(&self) -> bool {
        const NAT_TRAVERSAL: u16 = 4500;
        match self.protocol {
            _ if self.range.start > 0 => false,
            protocol::ESP => true,
            // A key exchange has zeros in place of the index of the security association.
            protocol::UDP => {
                [0, 2].iter().any(|at| be16(self.body, *at) == Some(NAT_TRAVERSAL))
                    && self.body.get(8..12).is_some_and(|index| index != [0; 4])
            }
            _ => false,
        }
    }

    /// Returns whether the packet is protected by IPsec.
    pub(super) fn is_secured(&self) -> bool {
        self.is_authenticated || self.is_encrypted()
    }

    fn is_icmp_error(&self) -> bool {
        match (self.protocol, self.body.first()) {
            (protocol::ICMP, Some(kind)) => matches!(kind, 3 | 4 | 5 | 11 | 12),
            (protocol::ICMPV6, Some(kind)) => matches!(kind, 1..=4),
            _ => false,
        }
    }

    /// Returns the bytes that address translation leaves as they are: the contents without ports
    /// and checksums, up to a limit. Later fragments have no ports, and result in `None`.
    pub(super) fn untranslated(&self) -> Option<Vec<u8>> {
        self.untranslated_within(1)
    }

    fn untranslated_within(&self, depth: u32) -> Option<Vec<u8>> {
        if self.range.start > 0 {
            return None;
        }
        let mut bytes = vec![self.protocol];
        let mut add = |range: Range<usize>| {
            let end = range.end.min(self.body.len());
            bytes.extend(self.body.get(range.start..end).unwrap_or_default());
        };
        match self.protocol {
            // Sequence and acknowledgement numbers, flags, payload. Some translators change the
            // options of SYN segments.
            protocol::TCP => {
                add(4..12);
                add(13..14);
                // A quotation may end before the length of the header.
                let header = self.body.get(12).map_or(self.body.len(), |units| usize::from(units >> 4) * 4);
                add(header..header + PREFIX_BYTES);
            }
            // The length, and the payload.
            protocol::UDP => {
                add(4..6);
                add(8..8 + PREFIX_BYTES);
            }
            // Translation applies to the quoted packet, too.
            _ if self.is_icmp_error() => {
                add(0..2);
                let quoted = Layers::from_packet(self.body.get(8..)?)?;
                bytes.extend(quoted.id.unwrap_or_default().to_be_bytes());
                bytes.extend(quoted.untranslated_within(depth.checked_sub(1)?)?);
            }
            // Type and code, and all but the identifier, which takes the place of a port.
            protocol::ICMP | protocol::ICMPV6 => {
                add(0..2);
                add(6..8 + PREFIX_BYTES);
            }
            _ => add(0..PREFIX_BYTES),
        }
        Some(bytes)
    }
}

/// The number of payload bytes that identify a packet.
const PREFIX_BYTES: usize = 64;

fn version_4(packet: &[u8]) -> Option<Layers<'_>> {
    let header = packet.first_chunk::<20>()?;
    let head = usize::from(header[0] & 0x0f) * 4;
    let total = usize::from(be16(header, 2)?);
    // With segmentation offload, the length is 0, and the network card fills it in.
    let total = if total == 0 { packet.len() } else { total };
    let (id, field) = (be16(header, 4)?, be16(header, 6)?);
    let start = u32::from(field & 0x1fff) * 8;
    Some(Layers {
        source: &packet[12..16],
        destination: &packet[16..20],
        id: Some(id.into()),
        range: start..start + total.checked_sub(head)? as u32,
        is_fragment: start > 0 || field & 0x2000 > 0,
        length: total as u32,
        protocol: header[9],
        is_authenticated: false,
        body: packet.get(head..total.min(packet.len()))?,
    })
}

fn version_6(packet: &[u8]) -> Option<Layers<'_>> {
    let header = packet.first_chunk::<40>()?;
    let length = match be16(header, 4)? {
        0 => packet.len() - 40,
        length => usize::from(length),
    };
    Some(Layers {
        source: &packet[8..24],
        destination: &packet[24..40],
        id: None,
        range: 0..length as u32,
        is_fragment: false,
        length: 40 + length as u32,
        protocol: header[6],
        is_authenticated: false,
        body: &packet[40..packet.len().min(40 + length)],
    })
}

/// Returns the packet in a GRE header, of which some fields are optional.
fn gre(bytes: &[u8]) -> Option<&[u8]> {
    let [flags, version] = *bytes.first_chunk()?;
    let optional = [0x80, 0x20, 0x10].iter().filter(|flag| flags & **flag > 0).count();
    let contents = bytes.get(4 + 4 * optional..)?;
    if version & 7 > 0 { None } else { of_type(be16(bytes, 2)?, contents) }
}

/// Returns the packet in a UDP datagram of a tunnel: VXLAN, Geneve or GTP.
fn datagram_tunnel(datagram: &[u8]) -> Option<&[u8]> {
    let payload = datagram.get(8..)?;
    match be16(datagram, 2)? {
        4789 | 8472 => ethernet(payload.get(8..)?),
        6081 => {
            let options = usize::from(*payload.first()? & 0x3f) * 4;
            of_type(be16(payload, 2)?, payload.get(8 + options..)?)
        }
        2152 => {
            let [flags, kind] = *payload.first_chunk()?;
            let optional = if flags & 7 > 0 { 4 } else { 0 };
            (flags >> 5 == 1 && kind == 255).then(|| payload.get(8 + optional..)).flatten()
        }
        _ => None,
    }
}

/// Returns the IP packet in contents of this Ethernet type.
fn of_type(ethertype: u16, contents: &[u8]) -> Option<&[u8]> {
    match ethertype {
        0x0800 | 0x86dd => Some(contents),
        // Transparent Ethernet bridging.
        0x6558 => ethernet(contents),
        _ => None,
    }
}

fn ethernet(frame: &[u8]) -> Option<&[u8]> {
    match be16(frame, 12)? {
        0x0800 | 0x86dd => frame.get(14..),
        0x8100 if matches!(be16(frame, 16)?, 0x0800 | 0x86dd) => frame.get(18..),
        _ => None,
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
