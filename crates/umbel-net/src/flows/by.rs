//! The features that the packets of a flow have in common, and the names of flows.

use crate::capture::{Flow, Packet};
use crate::network::{Prefix, quoted};
use crate::{Error, Result};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// The features that the packets of a flow have in common: one of four usual combinations, or any
/// other.
///
/// ```
/// use umbel_net::flows::By;
/// assert_eq!("5tuple".parse::<By>()?, By::FiveTuple);
/// let by: By = "dport,src/24".parse()?;
/// assert_eq!(by.to_string(), "src/24,dport");
/// # Ok::<(), umbel_net::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum By {
    /// Both addresses, both ports, and the protocol.
    #[default]
    FiveTuple,
    /// The source.
    Source,
    /// The destination.
    Destination,
    /// Source and destination.
    Pair,
    /// A list of features.
    Features(Features),
}

impl By {
    /// The usual combinations, which have names of their own.
    pub const NAMED: [By; 4] = [By::FiveTuple, By::Source, By::Destination, By::Pair];

    /// Returns the flow of a packet, with the other fields blank.
    pub fn flow(self, packet: &Packet<'_>) -> Flow {
        self.features().select(packet.flow())
    }

    /// Returns the name of a flow. It shows exactly the chosen features.
    pub fn name(self, flow: &Flow) -> String {
        let Flow { source, destination, protocol, ports } = *flow;
        match self {
            By::Pair => format!("{source} {destination}"),
            By::FiveTuple if ports == (0, 0) => format!("{source} {destination} {}", protocol_name(protocol)),
            By::FiveTuple => {
                let (from, to) = (SocketAddr::new(source, ports.0), SocketAddr::new(destination, ports.1));
                format!("{from} {to} {}", protocol_name(protocol))
            }
            By::Source | By::Destination | By::Features(_) => self.features().name(flow),
        }
    }

    /// Returns the features, one by one.
    pub fn features(self) -> Features {
        let none = Features::default();
        let (source, destination) = (Some(PrefixLengths::WHOLE), Some(PrefixLengths::WHOLE));
        match self {
            By::FiveTuple => {
                Features { source, destination, protocol: true, source_port: true, destination_port: true }
            }
            By::Source => Features { source, ..none },
            By::Destination => Features { destination, ..none },
            By::Pair => Features { source, destination, ..none },
            By::Features(features) => features,
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            By::FiveTuple => f.write_str("5tuple"),
            By::Pair => f.write_str("pair"),
            By::Source | By::Destination | By::Features(_) => self.features().fmt(f),
        }
    }
}

impl FromStr for By {
    type Err = Error;

    fn from_str(name: &str) -> Result<By> {
        let named = By::NAMED.into_iter().find(|by| by.to_string() == name);
        named.map_or_else(|| name.parse().map(By::Features), Ok)
    }
}

/// Any combination of features of a packet, written as a list: `src,dst,proto,dport`.
///
/// An address can be cut to its network. `src/24` takes the first 24 bits of an IPv4 address and
/// the whole of an IPv6 address; `src/64`, with more than 32 bits, is the other way round; and
/// `src/24/64` cuts both.
///
/// ```
/// use std::net::IpAddr;
/// use umbel_net::capture::Flow;
/// use umbel_net::flows::Features;
///
/// let [source, destination] = ["10.0.1.7", "10.9.9.9"].map(|text| text.parse::<IpAddr>().unwrap());
/// let flow = Flow { source, destination, protocol: 6, ports: (4711, 53) };
/// let features: Features = "src/24,dst,proto,dport".parse()?;
/// assert_eq!(features.name(&features.select(flow)), "10.0.1.0/24 -> 10.9.9.9 tcp :53");
/// # Ok::<(), umbel_net::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Features {
    source: Option<PrefixLengths>,
    destination: Option<PrefixLengths>,
    protocol: bool,
    source_port: bool,
    destination_port: bool,
}

impl Features {
    /// Returns the flow with only these features; the others are blank.
    pub fn select(&self, flow: Flow) -> Flow {
        const BLANK: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let address = |lengths: Option<PrefixLengths>, address| {
            lengths.map_or(BLANK, |lengths| lengths.cut(address).address())
        };
        let Flow { source, destination, protocol, ports } = flow;
        Flow {
            source: address(self.source, source),
            destination: address(self.destination, destination),
            protocol: if self.protocol { protocol } else { 0 },
            ports: (
                if self.source_port { ports.0 } else { 0 },
                if self.destination_port { ports.1 } else { 0 },
            ),
        }
    }

    /// Returns the name of a flow: `10.0.1.7 -> 10.9.9.9 tcp 4711:53` for all features, and the
    /// parts of it that were chosen for others. A lone source port is `4711:`, a lone destination
    /// port `:53`, and an arrow precedes a destination unless it is the only feature. Ports are 0
    /// if the protocol has none.
    pub fn name(&self, flow: &Flow) -> String {
        let mut parts = Vec::new();
        parts.extend(self.source.map(|lengths| lengths.cut(flow.source).to_string()));
        if let Some(lengths) = self.destination {
            let alone = *self == Features { destination: self.destination, ..Features::default() };
            let arrow = if alone { "" } else { "-> " };
            parts.push(format!("{arrow}{}", lengths.cut(flow.destination)));
        }
        if self.protocol {
            parts.push(protocol_name(flow.protocol));
        }
        if self.source_port || self.destination_port {
            let port = |chosen: bool, port: u16| if chosen { port.to_string() } else { String::new() };
            let (from, to) = flow.ports;
            parts.push(format!("{}:{}", port(self.source_port, from), port(self.destination_port, to)));
        }
        parts.join(" ")
    }

    /// Adds the feature with this name.
    fn add(&mut self, text: &str) -> Result<()> {
        let (name, lengths) = text.split_once('/').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let doubled = match name {
            "src" => self.source.replace(PrefixLengths::parse(text, lengths)?).is_some(),
            "dst" => self.destination.replace(PrefixLengths::parse(text, lengths)?).is_some(),
            "proto" | "sport" | "dport" if lengths.is_some() => {
                return Err(wrong(text, "no prefix: only the addresses src and dst have one"));
            }
            "proto" => std::mem::replace(&mut self.protocol, true),
            "sport" => std::mem::replace(&mut self.source_port, true),
            "dport" => std::mem::replace(&mut self.destination_port, true),
            _ => {
                let needs = "to be src, dst, proto, sport or dport, in a list such as src/24,dport; or 5tuple or \
                             pair, each alone";
                return Err(wrong(text, needs));
            }
        };
        if doubled { Err(wrong(text, format!("{name} to be in the list once"))) } else { Ok(()) }
    }
}

/// Returns the error for a feature that cannot be used.
fn wrong(text: &str, needs: impl Into<String>) -> Error {
    Error::parameter("feature", quoted(text), needs)
}

impl FromStr for Features {
    type Err = Error;

    fn from_str(list: &str) -> Result<Features> {
        let mut features = Features::default();
        list.split(',').try_for_each(|name| features.add(name))?;
        Ok(features)
    }
}

impl fmt::Display for Features {
    /// Writes the list of features, in the order of their names in a flow.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address =
            |name: &str, lengths: Option<PrefixLengths>| lengths.map(|lengths| format!("{name}{lengths}"));
        let other = |name: &str, chosen: bool| chosen.then(|| name.to_owned());
        let names = [
            address("src", self.source),
            address("dst", self.destination),
            other("proto", self.protocol),
            other("sport", self.source_port),
            other("dport", self.destination_port),
        ];
        f.write_str(&names.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

/// The number of bits of an address that distinguish flows, for both families.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PrefixLengths {
    v4: u8,
    v6: u8,
}

impl PrefixLengths {
    /// Whole addresses.
    const WHOLE: PrefixLengths = PrefixLengths { v4: 32, v6: 128 };

    /// Parses the lengths after the first slash of a feature; `text` is the whole feature.
    fn parse(text: &str, lengths: Option<&str>) -> Result<PrefixLengths> {
        let Some(lengths) = lengths else { return Ok(PrefixLengths::WHOLE) };
        let needs = "a prefix of 0 to 32 bits for IPv4, of 33 to 128 bits for IPv6, or both as in src/24/64";
        let wrong = || wrong(text, needs);
        // `u8::from_str` accepts a plus sign, too.
        let digits = |length: &&str| length.bytes().all(|byte| byte.is_ascii_digit());
        let number = |length: &str| Some(length).filter(digits).and_then(|length| length.parse::<u8>().ok());
        let whole = PrefixLengths::WHOLE;
        let (v4, v6) = match lengths.split_once('/') {
            Some((v4, v6)) => (number(v4).ok_or_else(wrong)?, number(v6).ok_or_else(wrong)?),
            None => match number(lengths).ok_or_else(wrong)? {
                v4 @ 0..=32 => (v4, whole.v6),
                v6 => (whole.v4, v6),
            },
        };
        if v4 <= whole.v4 && v6 <= whole.v6 { Ok(PrefixLengths { v4, v6 }) } else { Err(wrong()) }
    }

    /// Returns the first bits of an address. A whole address is left as it is.
    fn cut(self, address: IpAddr) -> Prefix {
        Prefix::masked(address, if address.is_ipv4() { self.v4 } else { self.v6 })
    }
}

impl fmt::Display for PrefixLengths {
    /// Writes the lengths as they are parsed; nothing for whole addresses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PrefixLengths::WHOLE => Ok(()),
            PrefixLengths { v4, v6: 128 } => write!(f, "/{v4}"),
            PrefixLengths { v4: 32, v6: v6 @ 33.. } => write!(f, "/{v6}"),
            PrefixLengths { v4, v6 } => write!(f, "/{v4}/{v6}"),
        }
    }
}

fn protocol_name(protocol: u8) -> String {
    match protocol {
        1 => "icmp".into(),
        6 => "tcp".into(),
        17 => "udp".into(),
        58 => "icmp6".into(),
        132 => "sctp".into(),
        other => format!("protocol {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_round_trips_through_its_text() {
        for text in ["src", "dst", "proto", "sport", "dport", "src,dst", "src/24,dst/64,proto,sport,dport"] {
            assert_eq!(text.parse::<Features>().unwrap().to_string(), text);
        }
        for text in
            ["src/0", "src/33", "src/127", "src/0/0", "src/32/32", "dst/24/48,dport", "5tuple", "pair"]
        {
            assert_eq!(text.parse::<By>().unwrap().to_string(), text);
        }
        // Lengths that cut nothing are left out.
        for text in ["src/32", "src/128", "src/32/128"] {
            assert_eq!(text.parse::<Features>().unwrap(), By::Source.features());
        }
        assert_eq!("dport,src".parse::<By>().unwrap().to_string(), "src,dport");
    }

    #[test]
    fn a_wrong_feature_is_named() {
        for (list, wrong, reason) in [
            ("src,port", "\"port\"", "src, dst, proto, sport or dport"),
            ("src,5tuple", "\"5tuple\"", "alone"),
            ("src,dst,src/24", "\"src/24\"", "src to be in the list once"),
            ("proto,proto", "\"proto\"", "once"),
            ("proto/8", "\"proto/8\"", "no prefix"),
            ("src/129", "\"src/129\"", "0 to 32 bits"),
            ("src/33/64", "\"src/33/64\"", "0 to 32 bits"),
            ("src/24/64/8", "\"src/24/64/8\"", "0 to 32 bits"),
            ("src/+4", "\"src/+4\"", "0 to 32 bits"),
            ("src/", "\"src/\"", "0 to 32 bits"),
            ("", "\"\"", "src, dst"),
            ("src,", "\"\"", "src, dst"),
        ] {
            let message = list.parse::<By>().unwrap_err().to_string();
            assert!(message.contains(wrong) && message.contains(reason), "{list}: {message}");
        }
    }
}
