//! How many packets each flow has, in a few bits for each packet: space-code filters of several resolutions (Kumar and others
//! 2004).
//!
//! ```
//! use umbel::Spec;
//! use umbel_net::capture::{Packet, Timestamp};
//! use umbel_net::flows::{By, Meter};
//!
//! let packet = |port| Packet {
//!     number: 1,
//!     time: Timestamp::default(),
//!     source: [10, 0, 0, 1].into(),
//!     destination: [10, 0, 0, 2].into(),
//!     protocol: 17,
//!     ports: Some((port, 53)),
//!     tcp: None,
//!     fragment: None,
//!     ip: &[],
//!     payload: &[],
//!     length: 60,
//! };
//! // For ten thousand packets, with a noise of half a per cent.
//! let mut meter = Meter::new(By::FiveTuple, &Spec::new(10_000, 0.005)?)?;
//! meter.record(&packet(1000))?;
//! for _ in 0..1000 {
//!     meter.record(&packet(2000))?;
//! }
//! let largest = &meter.largest(10)[0];
//! assert_eq!(By::FiveTuple.name(&largest.flow), "10.0.0.1:2000 10.0.0.2:53 udp");
//! assert!((500.0..2000.0).contains(&largest.estimate.value));
//! # Ok::<(), umbel_net::Error>(())
//! ```
//!
//! # Which flows
//!
//! The filter answers for any flow that is named, but stores no names. To list the largest flows, a
//! [`Frequent`] sketch beside it holds every flow with more than one packet in 1025. The sketch selects
//! the flows; the filter estimates the packets of each.
//!
//! # How good it is
//!
//! [`Meter::with_exact`] also counts exactly, which takes memory for every flow, and then [`Meter::comparison`] tells how far off the
//! estimates are, decade by decade, beside what one would have from a sample of 1 % of the packets, and from a
//! table of exact counters that is as large as the filter.

mod compare;

pub use compare::{Comparison, Decade, Errors};

use crate::capture::{Flow, Packet};
use crate::{Error, Result};
use compare::Rivals;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use umbel::file::fields::Fields;
use umbel::sketch::Frequent;
use umbel::space_code::Multiplicity;
use umbel::{Digest, Hasher, Key, MultiResolution, Spec};

/// What packets of a flow have in common.
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
}

impl By {
    /// All of them.
    pub const ALL: [By; 4] = [By::FiveTuple, By::Source, By::Destination, By::Pair];

    /// The flow that a packet belongs to; what does not matter is blank.
    pub fn flow(self, packet: &Packet<'_>) -> Flow {
        const BLANK: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let whole = packet.flow();
        let pair = Flow { protocol: 0, ports: (0, 0), ..whole };
        match self {
            By::FiveTuple => whole,
            By::Source => Flow { destination: BLANK, ..pair },
            By::Destination => Flow { source: BLANK, ..pair },
            By::Pair => pair,
        }
    }

    /// Its name: `5tuple`, `src`, `dst`, `pair`.
    pub fn as_str(self) -> &'static str {
        match self {
            By::FiveTuple => "5tuple",
            By::Source => "src",
            By::Destination => "dst",
            By::Pair => "pair",
        }
    }

    /// What a flow is called.
    pub fn name(self, flow: &Flow) -> String {
        let Flow { source, destination, protocol, ports } = *flow;
        match self {
            By::Source => source.to_string(),
            By::Destination => destination.to_string(),
            By::Pair => format!("{source} {destination}"),
            By::FiveTuple if ports == (0, 0) => format!("{source} {destination} {}", protocol_name(protocol)),
            By::FiveTuple => {
                let (from, to) = (SocketAddr::new(source, ports.0), SocketAddr::new(destination, ports.1));
                format!("{from} {to} {}", protocol_name(protocol))
            }
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for By {
    type Err = Error;

    fn from_str(name: &str) -> Result<By> {
        let named = By::ALL.into_iter().find(|by| by.as_str() == name);
        named.ok_or_else(|| Error::parameter("key", name, "to be 5tuple, src, dst or pair"))
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

/// 37 bytes: source and destination as IPv6 addresses, IPv4 ones mapped to them; the protocol; the ports, big-endian.
impl Key for Flow {
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        let octets = |address| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let mut bytes = [0; 37];
        bytes[..16].copy_from_slice(&octets(self.source));
        bytes[16..32].copy_from_slice(&octets(self.destination));
        bytes[32] = self.protocol;
        bytes[33..35].copy_from_slice(&self.ports.0.to_be_bytes());
        bytes[35..].copy_from_slice(&self.ports.1.to_be_bytes());
        f(&bytes)
    }
}

/// Returns the flow with these bytes as its key, or `None` if there are not 37. Mapped addresses become IPv4 addresses.
fn flow_from_key(key: &[u8]) -> Option<Flow> {
    let mut fields = Fields(key);
    let (source, destination) = (fields.array()?, fields.array()?);
    let ([protocol], from, to) = (fields.array()?, fields.array()?, fields.array()?);
    let address = |octets: [u8; 16]| Ipv6Addr::from(octets).to_canonical();
    let flow = Flow {
        source: address(source),
        destination: address(destination),
        protocol,
        ports: (u16::from_be_bytes(from), u16::from_be_bytes(to)),
    };
    fields.0.is_empty().then_some(flow)
}

/// Counters of the sketch that lists the largest flows: it misses none with more than 1 / 1025 of the packets.
const LARGE_FLOWS: u64 = 1024;

/// Counts the packets of flows.
#[derive(Debug)]
pub struct Meter {
    by: By,
    filter: MultiResolution,
    large: Frequent,
    rivals: Option<Rivals>,
    packets: u64,
}

/// A flow, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The flow.
    pub flow: Flow,
    /// How many packets it has, as the filter has it.
    pub estimate: Multiplicity,
    /// How many it has, if they were counted.
    pub exact: Option<u64>,
}

impl Meter {
    /// A meter with a filter as specified: `n` are packets, and `p` is the noise.
    pub fn new(by: By, spec: &Spec) -> Result<Meter> {
        let filter = MultiResolution::build(spec)?;
        let large = Frequent::new(LARGE_FLOWS)?.with_hasher(filter.hasher().clone());
        Ok(Meter { by, filter, large, rivals: None, packets: 0 })
    }

    /// Also counts exactly, and by other methods to compare with. That takes memory for every flow.
    pub fn with_exact(self) -> Meter {
        let bytes = self.filter.stats().bytes;
        Meter { rivals: Some(Rivals::new(bytes, self.filter.seed())), ..self }
    }

    /// Counts a packet.
    pub fn record(&mut self, packet: &Packet<'_>) -> Result<()> {
        let flow = self.by.flow(packet);
        let digest = flow.digest(self.hasher());
        self.filter.insert_digest(digest);
        match &mut self.rivals {
            // Exact counts need no list of candidates.
            Some(rivals) => rivals.record(flow, digest, self.packets),
            None => self.large.insert(&flow),
        }
        self.packets += 1;
        Ok(())
    }

    /// What the flows are.
    pub fn by(&self) -> By {
        self.by
    }

    /// With what they are hashed.
    pub fn hasher(&self) -> &Hasher {
        self.filter.hasher()
    }

    /// How many packets were counted.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The filter.
    pub fn filter(&self) -> &MultiResolution {
        &self.filter
    }

    /// How many packets a flow has, about.
    pub fn estimate(&self, flow: &Flow) -> Multiplicity {
        self.filter.count(flow)
    }

    /// The flows with the most packets: by the exact counts if there are any, by the estimates otherwise; of those that
    /// have as many, in the order of addresses.
    pub fn largest(&self, count: usize) -> Vec<Measured> {
        let measured = |flow: &Flow, exact| Measured { flow: *flow, estimate: self.estimate(flow), exact };
        let mut flows: Vec<Measured> = match &self.rivals {
            Some(rivals) => {
                let mut flows: Vec<(u64, &Flow)> =
                    rivals.exact().map(|(flow, count)| (count, flow)).collect();
                flows.sort_unstable_by_key(|(count, flow)| (std::cmp::Reverse(*count), *flow));
                return flows.iter().take(count).map(|(exact, flow)| measured(flow, Some(*exact))).collect();
            }
            None => {
                let flows = self.large.items().into_iter().filter_map(|item| flow_from_key(item.key));
                flows.map(|flow| measured(&flow, None)).collect()
            }
        };
        flows.sort_by(|a, b| b.estimate.value.total_cmp(&a.estimate.value).then(a.flow.cmp(&b.flow)));
        flows.truncate(count);
        flows
    }

    /// How far off the estimates are, if there are exact counts.
    pub fn comparison(&self) -> Option<Comparison> {
        let rivals = self.rivals.as_ref()?;
        Some(rivals.compare(
            |digest: Digest| self.filter.count_digest(digest),
            self.hasher(),
            self.filter.stats().bytes,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_comes_back_from_its_key() {
        let addresses =
            ["10.0.0.1", "0.0.0.0", "fd00::1", "::", "::1"].map(|address| address.parse().unwrap());
        for (source, destination) in addresses.into_iter().flat_map(|a| addresses.map(|b| (a, b))) {
            let flow = Flow { source, destination, protocol: 132, ports: (0x0102, 65_535) };
            assert_eq!(flow.with_bytes(flow_from_key), Some(flow));
            assert_eq!(flow.with_bytes(|key| flow_from_key(&key[1..])), None);
        }
    }
}
