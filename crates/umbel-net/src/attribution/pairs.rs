//! The pairs that communicated in an epoch: an exact list that cannot be flooded.

use crate::capture::Timestamp;
use crate::network::Prefix;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use umbel::file::fields::{Fields, put_varint};
use umbel::{Digest, Hasher};

/// A source and a destination. `None` stands for all hosts that did not fit in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The sender.
    pub source: Option<IpAddr>,
    /// The receiver.
    pub destination: Option<IpAddr>,
}

impl Pair {
    /// Returns the pair of two known hosts.
    pub fn new(source: IpAddr, destination: IpAddr) -> Pair {
        Pair { source: Some(source), destination: Some(destination) }
    }

    /// Returns the digest that is mixed into the records of the pair.
    pub(super) fn digest(&self, hasher: &Hasher) -> Digest {
        let mut bytes = [0; 34];
        for (host, at) in [(self.source, 0), (self.destination, 17)] {
            match host {
                None => {}
                Some(IpAddr::V4(v4)) => {
                    bytes[at] = 4;
                    bytes[at + 1..at + 5].copy_from_slice(&v4.octets());
                }
                Some(IpAddr::V6(v6)) => {
                    bytes[at] = 6;
                    bytes[at + 1..at + 17].copy_from_slice(&v6.octets());
                }
            }
        }
        hasher.digest_bytes(&bytes)
    }
}

/// The entry of a pair in the list of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The pair.
    pub pair: Pair,
    /// A time at or before its first payload.
    pub first: Timestamp,
    /// A time at or after its last payload.
    pub last: Timestamp,
    /// Whether a stream of the pair continues from an earlier epoch.
    pub continued: bool,
}

/// The pairs of the epoch that is being recorded.
///
/// Addresses can be forged, so a flood of them must not fill the list. Pairs with a local source
/// and pairs with any other source have a limit each. Beyond it, pairs are listed by their
/// destination alone, which a sender cannot forge if the payload is to arrive. When there are too
/// many destinations, too, they share one entry without any address. So every payload stays
/// attributable to some entry, and the list stays bounded.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    listed: Vec<Listed>,
    places: HashMap<Pair, usize>,
    /// The numbers of pairs with a local source, of pairs with another source, and of destinations
    /// alone.
    counts: [usize; 3],
}

impl Pairs {
    /// Returns the index of a pair in the list, which does not change, and whether the pair has its
    /// own entry there.
    pub fn place(&mut self, pair: Pair, time: Timestamp, local: &[Prefix], limit: usize) -> (usize, bool) {
        if let Some(&place) = self.places.get(&pair) {
            let listed = &mut self.listed[place];
            (listed.first, listed.last) = (listed.first.min(time), listed.last.max(time));
            return (place, true);
        }
        let class = match pair {
            Pair { source: Some(source), .. } => usize::from(!is_in(local, source)),
            Pair { destination: Some(_), .. } => 2,
            // There is only one such entry.
            _ => return (self.add(pair, time), true),
        };
        if self.counts[class] < limit {
            self.counts[class] += 1;
            return (self.add(pair, time), true);
        }
        let lesser = match pair {
            Pair { source: Some(_), destination } => Pair { source: None, destination },
            _ => Pair { source: None, destination: None },
        };
        (self.place(lesser, time, local, limit).0, false)
    }

    fn add(&mut self, pair: Pair, time: Timestamp) -> usize {
        self.places.insert(pair, self.listed.len());
        self.listed.push(Listed { pair, first: time, last: time, continued: false });
        self.listed.len() - 1
    }

    /// Returns the pair at an index.
    pub fn pair(&self, place: usize) -> Pair {
        self.listed[place].pair
    }

    /// Marks the pair at this index: one of its streams continues from an earlier epoch.
    pub fn continues(&mut self, place: usize) {
        self.listed[place].continued = true;
    }

    /// Returns the sorted list, and starts a new one.
    pub fn finish(&mut self) -> Vec<Listed> {
        let mut listed = std::mem::take(self).listed;
        listed.sort_unstable_by_key(|listed| listed.pair);
        listed
    }
}

/// Returns whether an address is in one of these networks.
pub(super) fn is_in(networks: &[Prefix], address: IpAddr) -> bool {
    networks.iter().any(|network| network.covers(address))
}

/// The number of parts of an epoch's span. Times within the epoch are stored in a byte, as the
/// number of a part.
const TIME_PARTS: u64 = 255;

/// Encodes the list: the IPv4 addresses, the IPv6 addresses, and for each pair the indices of its
/// source and destination among them, where 0 is unknown. The source is stored as the difference
/// from the pair before. Two bytes follow with the first and the last part of the epoch's span;
/// whether a stream continues is a bit of the source.
pub(super) fn to_bytes(listed: &[Listed], span: (Timestamp, Timestamp)) -> Vec<u8> {
    let hosts = listed.iter().flat_map(|listed| [listed.pair.source, listed.pair.destination]);
    let mut addresses: Vec<IpAddr> = hosts.flatten().collect();
    // IPv4 sorts before IPv6.
    addresses.sort_unstable();
    addresses.dedup();
    let v4 = addresses.partition_point(IpAddr::is_ipv4);
    let mut bytes = Vec::new();
    for count in [v4, addresses.len() - v4, listed.len()] {
        put_varint(&mut bytes, count as u64);
    }
    for address in &addresses {
        match address {
            IpAddr::V4(v4) => bytes.extend(v4.octets()),
            IpAddr::V6(v6) => bytes.extend(v6.octets()),
        }
    }
    // All of them are present, so this is an exact search.
    let number = |host: Option<IpAddr>| {
        host.map_or(0, |host| 1 + addresses.partition_point(|address| *address < host) as u64)
    };
    let length = u128::from(span.1.nanos_since(span.0).max(1));
    let mut before = 0;
    for Listed { pair, first, last, continued } in listed {
        let source = number(pair.source);
        put_varint(&mut bytes, (source - before) << 1 | u64::from(*continued));
        put_varint(&mut bytes, number(pair.destination));
        before = source;
        let part = |time: &Timestamp| u128::from(time.nanos_since(span.0)) * u128::from(TIME_PARTS);
        bytes.push((part(first) / length) as u8);
        bytes.push(part(last).div_ceil(length) as u8);
    }
    bytes
}

/// Decodes the output of [`to_bytes`], or returns `None` if the bytes are invalid.
pub(super) fn from_bytes(bytes: &[u8], span: (Timestamp, Timestamp)) -> Option<Vec<Listed>> {
    let mut fields = Fields(bytes);
    let [v4, v6, pairs] = [fields.varint()?, fields.varint()?, fields.varint()?];
    let mut addresses = Vec::new();
    for octets in fields.records(v4, 4)? {
        addresses.push(IpAddr::from(Ipv4Addr::from(*octets.first_chunk()?)));
    }
    for octets in fields.records(v6, 16)? {
        addresses.push(IpAddr::from(Ipv6Addr::from(*octets.first_chunk()?)));
    }
    let host = |number: u64| {
        let Some(number) = number.checked_sub(1) else { return Some(None) };
        addresses.get(usize::try_from(number).ok()?).map(|address| Some(*address))
    };
    // Each pair takes at least four bytes.
    if pairs > fields.0.len() as u64 / 4 {
        return None;
    }
    let length = u128::from(span.1.nanos_since(span.0));
    let time = |part: u8, up: u128| {
        let nanos = (u128::from(part) * length + up) / u128::from(TIME_PARTS);
        Timestamp::from_nanos(span.0.nanos().saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX)))
    };
    let mut listed = Vec::with_capacity(usize::try_from(pairs).ok()?);
    let mut source = 0u64;
    for _ in 0..pairs {
        let step = fields.varint()?;
        source = source.checked_add(step >> 1)?;
        let pair = Pair { source: host(source)?, destination: host(fields.varint()?)? };
        // The first nanosecond of the first part, and the last nanosecond of the last.
        let [first, last] = fields.array()?;
        let (first, last) = (time(first, u128::from(TIME_PARTS - 1)), time(last, 0));
        listed.push(Listed { pair, first, last, continued: step & 1 == 1 });
    }
    let is_sorted = listed.is_sorted_by(|one, next| one.pair < next.pair);
    let is_in_time = listed.iter().all(|listed| listed.first <= listed.last);
    (fields.0.is_empty() && is_sorted && is_in_time).then_some(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(source: u32, destination: u32) -> Pair {
        Pair::new(Ipv4Addr::from(source).into(), Ipv4Addr::from(destination).into())
    }

    #[test]
    fn list_round_trips_and_its_times_cover_the_exact_ones() {
        let span = (Timestamp::from_secs(1000), Timestamp::from_secs(1060));
        let mut pairs = Pairs::default();
        for i in 0..300 {
            let time = Timestamp::from_nanos(span.0.nanos() + u64::from(i) * 200_000_001);
            let (place, _) = pairs.place(pair(i % 17, 1000 + i), time, &[], 1000);
            if i % 3 == 0 {
                pairs.continues(place);
            }
        }
        let v6 = Pair::new(IpAddr::from([7; 16]), IpAddr::from([1, 2, 3, 4]));
        pairs.place(v6, span.1, &[], 1000);
        let listed = pairs.finish();
        let bytes = to_bytes(&listed, span);
        let back = from_bytes(&bytes, span).expect("a list");
        assert_eq!(back.len(), 301);
        for (one, other) in listed.iter().zip(&back) {
            assert_eq!((one.pair, one.continued), (other.pair, other.continued));
            assert!(other.first <= one.first && one.last <= other.last, "{one:?} {other:?}");
            // One of the 255 parts of a minute is less than a quarter of a second.
            assert!(
                one.first.nanos_since(other.first) < 250_000_000
                    && other.last.nanos_since(one.last) < 250_000_000
            );
        }
        assert_eq!(to_bytes(&back, span), bytes, "encoding the decoded list changes nothing");
        for cut in 0..bytes.len() {
            assert_eq!(from_bytes(&bytes[..cut], span), None, "cut at {cut}");
        }
    }

    #[test]
    fn forged_sources_fill_only_their_own_part_of_the_list() {
        let local: Vec<Prefix> = vec!["10.0.0.0/8".parse().expect("a network")];
        let home = 0x0a00_0001;
        let mut pairs = Pairs::default();
        let place = |pairs: &mut Pairs, pair| pairs.place(pair, Timestamp::default(), &local, 100);
        for forged in 0..10_000u32 {
            let (at, named) = place(&mut pairs, pair(0xc000_0000 + forged, home));
            assert_eq!(named, forged < 100);
            if !named {
                let nobody = Pair { source: None, destination: Some(Ipv4Addr::from(home).into()) };
                assert_eq!(pairs.listed[at].pair, nobody);
            }
        }
        assert!(place(&mut pairs, pair(home, 0xc000_0000)).1, "a local source still has a place");
        // Forge the destinations, too.
        for forged in 0..10_000u32 {
            place(&mut pairs, pair(0xc000_0000 + forged, 0xd000_0000 + forged));
        }
        assert_eq!(pairs.finish().len(), 100 + 100 + 1 + 1);
    }
}
