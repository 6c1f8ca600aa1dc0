//! The addresses that a client may reach through the proxy, and the comparison of addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses that a client may reach through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reach {
    /// All addresses.
    Anywhere,
    /// All addresses except those of this machine, so that a remote client cannot reach local
    /// services.
    RemoteOnly,
}

impl Reach {
    /// Returns whether an address may be reached.
    pub fn permits(self, address: IpAddr) -> bool {
        self == Reach::Anywhere
            || !match address.to_canonical() {
                IpAddr::V4(v4) => {
                    v4.is_loopback() || v4.is_link_local() || v4.is_unspecified() || v4 == Ipv4Addr::BROADCAST
                }
                IpAddr::V6(v6) => {
                    v6.is_loopback() || v6.is_unicast_link_local() || v6 == Ipv6Addr::UNSPECIFIED
                }
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
            ("169.254.169.254", false),
            ("::1", false),
            ("::", false),
            ("::ffff:127.0.0.1", false),
            ("fe80::1", false),
            ("192.0.2.7", true),
            ("10.0.0.1", true),
            ("2001:db8::1", true),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(Reach::RemoteOnly.permits(address), outside, "{address}");
            assert!(Reach::Anywhere.permits(address));
        }
    }
}
