//! Packets out of captures: pcap and pcapng files or pipes, compressed with gzip or not.
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
//! # What is read
//!
//! Both byte orders, micro- and nanoseconds, several sections and interfaces. Of link types Ethernet with any number of VLAN tags, raw
//! IP, the Linux cooked headers of both versions, and loopback. IPv4 and IPv6 with their extension headers, and the
//! ports and payloads of TCP, UDP, UDP-Lite and SCTP; of other protocols the payload is all that follows IP.
//!
//! # What cannot be read
//!
//! A capture is not to be trusted: it may be cut, damaged, or made by somebody who means harm. A frame in which no IP packet is found
//! is skipped, and [`Counts::skipped`] has the reason. Where the capture itself breaks off, the packets before are given, and
//! [`Reader::end`] tells that it was truncated or damaged. Nothing that a capture claims makes the reader take memory: its buffer
//! grows only with bytes that have come, to at most [`MAX_RECORD`], and longer records are passed over.

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
    /// The number of its frame in the capture, from 1, those included that are skipped; 0 if it comes from no capture.
    pub number: u64,
    /// When it was captured.
    pub time: Timestamp,
    /// From where.
    pub source: IpAddr,
    /// To where.
    pub destination: IpAddr,
    /// The protocol that IP carries, after all extension headers: 6 is TCP, 17 is UDP.
    pub protocol: u8,
    /// The ports of source and destination, for protocols that have them, if they were captured.
    pub ports: Option<(u16, u16)>,
    /// What TCP's header says, if it was captured wholly.
    pub tcp: Option<TcpInfo>,
    /// Where it belongs in a larger packet, if it is a fragment of one. Only the first fragment has ports.
    pub fragment: Option<Fragment>,
    /// The IP packet as captured, headers included, and without what the link layer added at its end.
    pub ip: &'a [u8],
    /// What was captured of the transport protocol's payload; for a protocol that is not understood, all that follows IP.
    pub payload: &'a [u8],
    /// How long the frame was on the wire.
    pub length: u32,
}

impl<'a> Packet<'a> {
    /// The packet in a frame that was captured at a time, and was so long on the wire.
    pub fn from_frame(link: Link, frame: &'a [u8], time: Timestamp, length: u32) -> Result<Packet<'a>, Skip> {
        Ok(decode::decode(link, frame)?.packet(frame, time, length))
    }

    /// From where to where it goes.
    pub fn flow(&self) -> Flow {
        let Packet { source, destination, protocol, ports, .. } = *self;
        Flow { source, destination, protocol, ports: ports.unwrap_or_default() }
    }
}

/// What the packets of one direction of a connection have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// From where.
    pub source: IpAddr,
    /// To where.
    pub destination: IpAddr,
    /// The protocol that IP carries.
    pub protocol: u8,
    /// The ports of source and destination; 0 where there are none.
    pub ports: (u16, u16),
}

/// What a TCP header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// The number of the payload's first byte, or of SYN.
    pub seq: u32,
    /// The flags, from FIN in the lowest bit to CWR in the highest.
    pub flags: u8,
}

impl TcpInfo {
    /// The sender has no more to say.
    pub const FIN: u8 = 1;
    /// The sequence number is the first.
    pub const SYN: u8 = 2;
    /// The connection is broken off.
    pub const RST: u8 = 4;

    /// Whether any of the flags is set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// Which part of a packet a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// What all fragments of the packet have in common, for the same pair of hosts.
    pub id: u32,
    /// The place of its first byte in the payload of IP.
    pub offset: u32,
    /// Whether others follow.
    pub more: bool,
}

/// The nanoseconds of a second.
const NANOS_PER_SECOND: u64 = 1_000_000_000;
