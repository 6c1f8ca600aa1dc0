//! Reading packets from captures: pcap and pcapng, from files or pipes, optionally compressed with
//! gzip.
//!
//! ```
//! use umbel_net::capture::{Link, Reader, Timestamp, Writer};
//! use umbel_net::rfc3339;
//!
//! // A capture of one raw IPv4 packet: UDP from 10.0.0.1 port 53 to 10.0.0.2 port 99, with two bytes.
//! let packet = [
//!     0x45, 0, 0, 30, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
//!     0, 53, 0, 99, 0, 10, 0, 0, b'h', b'i', // UDP
//! ];
//! let mut file = Vec::new();
//! Writer::new(&mut file, Link::RAW)?.write(Timestamp::from_nanos(1_700_000_000_000_000_000), &packet)?;
//!
//! let mut reader = Reader::new(file.as_slice())?;
//! while let Some(packet) = reader.next()? {
//!     assert_eq!(packet.source.to_string(), "10.0.0.1");
//!     assert_eq!(packet.ports, Some((53, 99)));
//!     assert_eq!(packet.payload, b"hi");
//!     assert_eq!(rfc3339::format(packet.time), "2023-11-14T22:13:20.000000000Z");
//! }
//! assert!(reader.is_whole());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Supported formats
//!
//! Captures in both byte orders, in micro- and nanoseconds, with several sections and interfaces.
//! The supported link types are Ethernet with any number of VLAN tags, raw IP, both versions of the
//! Linux cooked header, and loopback. IPv4 and IPv6 are decoded with their extension headers, and
//! TCP, UDP, UDP-Lite and SCTP with ports and payload. For other protocols, the payload is
//! everything after the IP header.
//!
//! # Damaged captures
//!
//! A capture is not trusted: it may be truncated, damaged or malicious. A frame without an IP
//! packet is skipped, and [`Counts::skipped`] counts the reasons. If the capture itself breaks off,
//! the packets before are returned, and [`Reader::end`] reports whether it was truncated or
//! damaged. No claim in a capture makes the reader allocate memory: its buffer grows only with
//! bytes that were read, up to [`MAX_RECORD`], and longer records are skipped.

mod decode;
mod reader;
mod source;
pub mod streams;
mod writer;

pub use decode::{Link, Skip};
pub use reader::{Counts, End, MAX_RECORD, Reader, Skipped, is_capture};
pub use umbel::Timestamp;
pub use writer::Writer;

use std::net::IpAddr;

/// An IP packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The number of its frame in the capture, from 1, counting skipped frames; 0 if it is not from
    /// a capture.
    pub number: u64,
    /// The time of capture.
    pub time: Timestamp,
    /// The address of the sender.
    pub source: IpAddr,
    /// The address of the receiver.
    pub destination: IpAddr,
    /// The protocol that IP carries, after all extension headers: 6 is TCP, 17 is UDP.
    pub protocol: u8,
    /// The ports of source and destination, if the protocol has ports and they were captured.
    pub ports: Option<(u16, u16)>,
    /// Fields of the TCP header, if all of it was captured.
    pub tcp: Option<TcpInfo>,
    /// The position in the original packet, if this is a fragment. Only the first fragment has
    /// ports.
    pub fragment: Option<Fragment>,
    /// The captured IP packet with its headers, without trailing bytes of the link layer.
    pub ip: &'a [u8],
    /// The captured payload of the transport protocol; for an unknown protocol, everything after
    /// the IP header.
    pub payload: &'a [u8],
    /// The length of the frame on the wire.
    pub length: u32,
}

impl<'a> Packet<'a> {
    /// Decodes the packet in a frame with this time of capture and length on the wire.
    ///
    /// # Errors
    ///
    /// Fails with the reason if the frame does not contain an IP packet.
    pub fn from_frame(link: Link, frame: &'a [u8], time: Timestamp, length: u32) -> Result<Packet<'a>, Skip> {
        Ok(decode::decode(link, frame)?.packet(frame, time, length))
    }

    /// Returns the flow of the packet.
    pub fn flow(&self) -> Flow {
        let Packet { source, destination, protocol, ports, .. } = *self;
        Flow { source, destination, protocol, ports: ports.unwrap_or_default() }
    }
}

/// The flow of a packet: the fields that all packets in one direction of a connection share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The address of the sender.
    pub source: IpAddr,
    /// The address of the receiver.
    pub destination: IpAddr,
    /// The protocol that IP carries.
    pub protocol: u8,
    /// The ports of source and destination; 0 if the protocol has none.
    pub ports: (u16, u16),
}

/// Fields of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// The sequence number of the payload's first byte, or of the SYN.
    pub seq: u32,
    /// The flags, from FIN in the lowest bit to CWR in the highest.
    pub flags: u8,
}

impl TcpInfo {
    /// The sender has no more data.
    pub const FIN: u8 = 1;
    /// The sequence number is the initial one.
    pub const SYN: u8 = 2;
    /// The connection is reset.
    pub const RST: u8 = 4;

    /// Returns whether any of these flags is set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// The position of a fragment in its original packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The identification, which all fragments of a packet between the same hosts share.
    pub id: u32,
    /// The offset of its first byte in the payload of the IP packet.
    pub offset: u32,
    /// Whether more fragments follow.
    pub more: bool,
}

/// The number of nanoseconds in a second.
const NANOS_PER_SECOND: u64 = 1_000_000_000;
