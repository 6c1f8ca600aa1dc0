//! The addresses that a client may reach through the proxy, and the comparison of addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses that a client may reach through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reach {
    /// All addresses.
    Anywhere,
    /// All addresses that a remote client could reach itself. It must not get through the proxy to
    /// services of this machine and its link, such as the metadata services of clouds, nor to
    /// networks that are private to the provider.
    RemoteOnly,
}

/// The party for which names are looked up and connections are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requester {
    /// The proxy itself.
    Proxy,
    /// A client with this address.
    Client(IpAddr),
}

impl Requester {
    /// Returns the addresses that the party may reach.
    pub fn reach(self) -> Reach {
        match self {
            Requester::Client(address) if !address.to_canonical().is_loopback() => Reach::RemoteOnly,
            Requester::Client(_) | Requester::Proxy => Reach::Anywhere,
        }
    }

    /// Returns the address by which resources are shared among parties.
    pub fn address(self) -> IpAddr {
        match self {
            Requester::Proxy => Ipv6Addr::UNSPECIFIED.into(),
            Requester::Client(address) => address,
        }
    }
}

impl Reach {
    /// Returns whether an address may be reached.
    pub fn permits(self, address: IpAddr) -> bool {
        self == Reach::Anywhere
            || match address {
                IpAddr::V4(address) => is_public_v4(address),
                IpAddr::V6(address) => is_public_v6(address),
            }
    }
}

/// The address of the metadata service of Azure, which is in a public network.
const AZURE_METADATA: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Returns whether remote clients may reach an IPv4 address. Private networks (RFC 1918) are
/// permitted: the clients of a proxy are often in one.
fn is_public_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        // This network, loopback, link-local, and reserved addresses with broadcast.
        [0 | 127 | 240..=255, ..] | [169, 254, ..] => false,
        // Carrier-grade NAT (100.64.0.0/10), which some clouds use for metadata, and special
        // assignments (192.0.0.0/24).
        [100, 64..=127, ..] | [192, 0, 0, _] => false,
        _ => !address.is_multicast() && address != AZURE_METADATA,
    }
}

/// Returns whether remote clients may reach an IPv6 address. An address that a translator or tunnel
/// turns into an IPv4 address is judged by that.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    let last = v4(segments[6], segments[7]);
    match segments {
        // Unspecified, loopback, IPv4-compatible, IPv4-mapped, IPv4-translated, NAT64.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            is_public_v4(last)
        }
        // The NAT64 of a local network (64:ff9b:1::/48).
        [0x64, 0xff9b, 1, ..] => false,
        // Unique local, link-local, site-local and multicast addresses.
        [0xfc00..=0xfdff | 0xfe80..=0xfeff | 0xff00..=0xffff, ..] => false,
        // 6to4 and Teredo, with the server and the inverted address of the client.
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        [0x2001, 0, high, low, ..] => {
            is_public_v4(v4(high, low)) && is_public_v4(Ipv4Addr::from_bits(!last.to_bits()))
        }
        // ISATAP, in any network.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => is_public_v4(last),
        _ => true,
    }
}

/// Returns whether an address is that of this machine or of a link, so that it stands for another
/// host on another machine.
pub(super) fn is_local_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_loopback()
                || address.is_link_local()
                || address.is_unspecified()
                || address.is_broadcast()
        }
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unicast_link_local() || address.is_unspecified()
        }
    }
}

/// Returns whether two addresses are equal. IPv4 addresses that are mapped to IPv6 count as IPv4.
pub(super) fn is_same_address(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_clients_cannot_reach_local_addresses() {
        for (address, outside) in [
            ("127.0.0.1", false),
            ("127.9.9.9", false),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("100.100.100.200", false),
            ("100.127.255.255", false),
            ("192.0.0.192", false),
            ("168.63.129.16", false),
            ("224.0.0.1", false),
            ("239.255.255.250", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("::1", false),
            ("::", false),
            ("::127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("::ffff:0:169.254.169.254", false),
            ("64:ff9b::169.254.169.254", false),
            ("64:ff9b:1::1", false),
            ("2002:a9fe:a9fe::1", false),
            ("2002:7f00:1::", false),
            ("2001:0:7f00:1::", false),
            ("2001:0:c000:207::5601:5601", false),
            ("2001:db8::5efe:127.0.0.1", false),
            ("fd00:ec2::254", false),
            ("fc00::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
            ("192.0.2.7", true),
            ("10.0.0.1", true),
            ("172.16.0.1", true),
            ("192.168.1.1", true),
            ("100.63.255.255", true),
            ("100.128.0.1", true),
            ("::ffff:192.0.2.7", true),
            ("64:ff9b::192.0.2.7", true),
            ("2002:c000:207::1", true),
            ("2001:db8::1", true),
            ("2606:4700::1", true),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(Reach::RemoteOnly.permits(address), outside, "{address}");
            assert!(Reach::Anywhere.permits(address));
        }
    }

    #[test]
    fn other_machines_in_a_private_network_are_not_local() {
        for (address, local) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("::1", true),
            ("0.0.0.0", true),
            ("169.254.1.2", true),
            ("fe80::1", true),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("fd00::1", false),
        ] {
            assert_eq!(is_local_address(address.parse().unwrap()), local, "{address}");
        }
    }
}
