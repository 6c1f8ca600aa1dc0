//! The number of packets in each flow, estimated with a few bits per packet by a multi-resolution
//! space-code Bloom filter (Kumar and others 2004).
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
//! # Listing the largest flows
//!
//! The filter answers for any flow that is named, but stores no names. To list the largest flows, a
//! [`Frequent`] sketch beside it holds every flow with more than one packet in 1025. The sketch
//! selects the flows; the filter estimates the packets of each.
//!
//! # Accuracy
//!
//! [`Meter::with_exact`] also counts exactly, which takes memory for every flow.
//! [`Meter::comparison`] then reports the errors of the estimates, decade by decade, next to those
//! of a sample of 1 % of the packets and of a table of exact counters as large as the filter.
//!
//! # References
//!
//! * A. Kumar, J. Xu, J. Wang, O. Spatschek and L. Li. *Space-code Bloom filter for efficient
//!   per-flow traffic measurement.* INFOCOM 2004. `Kumar04`

mod by;
mod compare;

pub use by::{By, Features};
pub use compare::{Comparison, Decade, Errors};

use crate::Result;
use crate::capture::{Flow, Packet};
use compare::Rivals;
use std::net::{IpAddr, Ipv6Addr};
use umbel::file::fields::Fields;
use umbel::sketch::Frequent;
use umbel::space_code::Multiplicity;
use umbel::{Digest, Hasher, Key, MultiResolution, Spec};

/// The key of a flow has 37 bytes: source and destination as IPv6 addresses (IPv4 addresses are
/// mapped), the protocol, and the ports, big-endian.
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

/// Returns the flow with this key, or `None` if the key does not have 37 bytes. Mapped addresses
/// become IPv4 addresses.
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

/// The number of counters in the sketch that lists the largest flows. It misses none with more than
/// 1 / 1025 of the packets.
const LARGE_FLOWS: u64 = 1024;

/// A meter that counts the packets of flows.
#[derive(Debug)]
pub struct Meter {
    by: By,
    filter: MultiResolution,
    large: Frequent,
    rivals: Option<Rivals>,
    packets: u64,
}

/// A flow and its number of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The flow.
    pub flow: Flow,
    /// The number of packets, as estimated by the filter.
    pub estimate: Multiplicity,
    /// The exact number of packets, if it was counted.
    pub exact: Option<u64>,
}

impl Meter {
    /// Returns a meter whose filter follows this specification: `n` is the number of packets, and
    /// `p` the noise.
    ///
    /// # Errors
    ///
    /// Fails if the filter cannot be built.
    pub fn new(by: By, spec: &Spec) -> Result<Meter> {
        let filter = MultiResolution::build(spec)?;
        let large = Frequent::new(LARGE_FLOWS)?.with_hasher(filter.hasher().clone());
        Ok(Meter { by, filter, large, rivals: None, packets: 0 })
    }

    /// Also counts exactly, and by other methods for comparison. This takes memory for every flow.
    pub fn with_exact(self) -> Meter {
        let bytes = self.filter.stats().bytes;
        Meter { rivals: Some(Rivals::new(bytes, self.filter.seed())), ..self }
    }

    /// Counts a packet.
    ///
    /// # Errors
    ///
    /// Never fails at present.
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

    /// Returns the features that define a flow.
    pub fn by(&self) -> By {
        self.by
    }

    /// Returns the hash of the flows.
    pub fn hasher(&self) -> &Hasher {
        self.filter.hasher()
    }

    /// Returns the number of packets counted.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the filter.
    pub fn filter(&self) -> &MultiResolution {
        &self.filter
    }

    /// Returns the estimated number of packets of a flow.
    pub fn estimate(&self, flow: &Flow) -> Multiplicity {
        self.filter.count(flow)
    }

    /// Returns the flows with the most packets, by exact counts if there are any, and by estimates
    /// otherwise. Equal flows are ordered by address.
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

    /// Returns the errors of the estimates, if there are exact counts.
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
    fn flow_round_trips_through_its_key() {
        let addresses =
            ["10.0.0.1", "0.0.0.0", "fd00::1", "::", "::1"].map(|address| address.parse().unwrap());
        for (source, destination) in addresses.into_iter().flat_map(|a| addresses.map(|b| (a, b))) {
            let flow = Flow { source, destination, protocol: 132, ports: (0x0102, 65_535) };
            assert_eq!(flow.with_bytes(flow_from_key), Some(flow));
            assert_eq!(flow.with_bytes(|key| flow_from_key(&key[1..])), None);
        }
    }
}
