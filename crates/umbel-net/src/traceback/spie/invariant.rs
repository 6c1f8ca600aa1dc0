//! The invariant part of a packet, which does not change on its way.

use crate::{Error, Result};
use umbel::{Digest, Hasher};

/// The number of payload bytes that are included.
const PAYLOAD_BYTES: usize = 8;
/// The size of the longest header, that of IPv6, plus those bytes.
const MAX_BYTES: usize = 40 + PAYLOAD_BYTES;

/// The fields of a packet's header that no router changes, and the first eight bytes of its
/// payload. Fields that routers change are excluded: type of service, time to live, checksum and
/// options; in IPv6 traffic class, flow label, hop limit and hop-by-hop options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invariant {
    bytes: [u8; MAX_BYTES],
    length: usize,
}

impl Invariant {
    /// Returns the invariant part of a packet, which begins with its IP header. The header itself
    /// must be complete; the rest may be truncated, as it often is in captures.
    ///
    /// # Errors
    ///
    /// Fails if the packet does not begin with a complete IPv4 or IPv6 header.
    pub fn from_packet(packet: &[u8]) -> Result<Invariant> {
        let (header, payload) = match packet.first().map(|first| first >> 4) {
            Some(4) => version_4(packet),
            Some(6) => version_6(packet),
            _ => None,
        }
        .ok_or_else(|| {
            Error::parameter("packet", format!("{} bytes", packet.len()), "a whole header of IPv4 or IPv6")
        })?;
        let mut bytes = [0; MAX_BYTES];
        let payload = &payload[..payload.len().min(PAYLOAD_BYTES)];
        let length = header.len() + payload.len();
        let parts = header.iter().chain(payload);
        bytes.iter_mut().zip(parts).for_each(|(own, byte)| *own = *byte);
        for changes in if header.len() == 20 { &[1, 8, 10, 11][..] } else { &[1, 2, 3, 7][..] } {
            bytes[*changes] = 0;
        }
        if header.len() == 40 {
            bytes[0] &= 0xf0;
        }
        Ok(Invariant { bytes, length })
    }

    /// Returns the bytes of the invariant part.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }

    /// Returns the digest, from which routers derive theirs.
    pub fn digest(&self) -> Digest {
        Hasher::default().digest_bytes(self.bytes())
    }
}

/// Returns the fixed part of the header, and the payload.
fn version_4(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    let header = packet.get(..20)?;
    let length = usize::from(header[0] & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // With segmentation offload, the length is 0, and the network card fills it in.
    let total = if total == 0 { packet.len() } else { total };
    (length >= 20).then(|| (header, between(packet, length, total)))
}

fn version_6(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    const NO_NEXT_HEADER: u8 = 59;
    let header = packet.get(..40)?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let total = if length == 0 && header[6] != NO_NEXT_HEADER { packet.len() } else { 40 + length };
    // Hop-by-hop options, which come first if present, correspond to the options of IPv4.
    let options = match (header[6], packet.get(41)) {
        (0, Some(units)) => 8 * (usize::from(*units) + 1),
        _ => 0,
    };
    Some((header, between(packet, 40 + options, total)))
}

/// Returns the bytes after the headers, without the padding of short frames.
fn between(packet: &[u8], start: usize, total: usize) -> &[u8] {
    packet.get(start..total.min(packet.len())).unwrap_or_default()
}
