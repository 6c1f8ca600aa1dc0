//! Packets out of captures: pcap and pcapng files or pipes, compressed with gzip or not.
//!
//! ```
//! use umbel_net::capture::{Link, Reader, Time, Writer};
//!
//! // A capture of one raw IPv4 packet: UDP from 10.0.0.1 port 53 to 10.0.0.2 port 99, with two bytes.
//! let packet = [
//!     0x45, 0, 0, 30, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
//!     0, 53, 0, 99, 0, 10, 0, 0, b'h', b'i', // UDP
//! ];
//! let mut file = Vec::new();
//! Writer::new(&mut file, Link::RAW)?.write(Time::from_nanos(1_700_000_000_000_000_000), &packet)?;
//!
//! let mut reader = Reader::new(file.as_slice())?;
//! while let Some(packet) = reader.next()? {
//!     assert_eq!(packet.source.to_string(), "10.0.0.1");
//!     assert_eq!(packet.ports, Some((53, 99)));
//!     assert_eq!(packet.payload, b"hi");
//!     assert_eq!(packet.time.to_string(), "2023-11-14T22:13:20.000000000Z");
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
pub use writer::Writer;

use crate::Error;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use umbel::aging::Timestamp;

/// An IP packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The number of its frame in the capture, from 1, those included that are skipped; 0 if it comes from no capture.
    pub number: u64,
    /// When it was captured.
    pub time: Time,
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
    pub fn from_frame(link: Link, frame: &'a [u8], time: Time, length: u32) -> Result<Packet<'a>, Skip> {
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

/// A moment: nanoseconds since 1970, in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// So many nanoseconds since 1970.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// So many seconds since 1970.
    pub const fn from_secs(seconds: u64) -> Time {
        Time(seconds.saturating_mul(SECOND))
    }

    /// The nanoseconds since 1970.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The nanoseconds from an earlier time to this one; 0 if it is not earlier.
    pub const fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

const SECOND: u64 = 1_000_000_000;

impl From<Time> for Timestamp {
    fn from(time: Time) -> Timestamp {
        Timestamp::from_millis(time.0 / 1_000_000)
    }
}

/// As RFC 3339 writes it, with nine decimals.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / SECOND;
        let (days, of_day) = (seconds / 86400, seconds % 86400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        let nanos = self.0 % SECOND;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
    }
}

/// Reads what [`Display`](fmt::Display) writes, with any number of decimals, a distance from UTC instead of Z, or nothing of both, and a blank
/// instead of the T; a day alone, at its start; or the seconds since 1970.
///
/// ```
/// use umbel_net::capture::Time;
/// let time: Time = "2023-11-14T22:13:20.5Z".parse()?;
/// assert_eq!(time, "2023-11-15 00:13:20.5+02:00".parse()?);
/// assert_eq!(time, "1700000000.5".parse()?);
/// assert_eq!("1970-01-02".parse::<Time>()?, Time::from_secs(86400));
/// for wrong in ["yesterday", "2023-11-14T22:13:20Z01:00", "1.1234567890 and so on", "1."] {
///     assert!(wrong.parse::<Time>().is_err());
/// }
/// # Ok::<(), umbel_net::Error>(())
/// ```
impl FromStr for Time {
    type Err = Error;

    fn from_str(text: &str) -> Result<Time, Error> {
        let wrong =
            || Error::parameter("time", text, "a time such as 2023-11-14T22:13:20Z, or seconds since 1970");
        parse(text).ok_or_else(wrong)
    }
}

fn parse(text: &str) -> Option<Time> {
    if text.find('-').is_none_or(|at| at == 0) {
        let (seconds, nanos) = decimal(text)?;
        return seconds.checked_mul(SECOND)?.checked_add(nanos).map(Time);
    }
    let (day, rest) = text.split_at_checked(10)?;
    let mut parts = day.splitn(3, '-').map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let days = (1..=31).contains(&day).then(|| days(year, month)).flatten()?.checked_add(day - 1)?;
    // Not the 31st of April.
    if date(days) != (year, month, day) {
        return None;
    }
    let Some(rest) = rest.strip_prefix(['T', 't', ' ']) else {
        return rest.is_empty().then(|| Time::from_secs(days * 86400));
    };
    let (clock, zone) = rest.split_at(rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len()));
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (digits(parts.next()?)?, digits(parts.next()?)?);
    let (second, nanos) = parts.next().map_or(Some((0, 0)), decimal)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let local =
        (days * 86400 + hour * 3600 + minute * 60 + second).checked_mul(SECOND)?.checked_add(nanos)?;
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(Time(local));
    }
    let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let distance = (hours * 3600 + minutes * 60) * SECOND;
    // East of Greenwich the clocks are ahead.
    if zone.starts_with('+') { local.checked_sub(distance) } else { local.checked_add(distance) }.map(Time)
}

/// A number of digits alone.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Seconds and nanoseconds.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    // Digits after the ninth are too small to count.
    let is_number = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let nanos = digits(&format!("{fraction:0<9.9}")).filter(|_| is_number)?;
    Some((digits(whole)?, nanos))
}

/// The days from the first of January 1970 to the first of a month; see [`date`].
fn days(year: u64, month: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 - 719_468)
}

/// Year, month and day so many days after the first of January 1970. Years are counted from March, so that the leap day is a
/// year's last; 400 of them have 146 097 days.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_month)
}
